//! A state of a small world, and every state that can come next.

use std::cell::RefCell;

use laneway_core::ids::WorkerId;
use laneway_core::lane::{EndpointSpec, Label, Lane};
use laneway_core::mailbox::Peer;
use laneway_core::serve::{ChildSpec, Machine, Memory, NoBell, Served};
use laneway_core::wire::Protocol;

use crate::device::Rig;
use crate::parent::{History, Parent, perform};
use crate::words::{Model, Probe, WORDS, run};
use crate::world::World;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Life {
    Serving,
    Left,
    Killed,
    Reported,
    Gone,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Offspring {
    pub(crate) machine: Machine<u8>,
    pub(crate) rig: Rig,
    /// The device as it is inside the step that is under way.
    pub(crate) rig_now: Rig,
    pub(crate) log: Vec<i64>,
    pub(crate) life: Life,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Node {
    pub(crate) model: Model,
    pub(crate) parent: Parent,
    pub(crate) parent_gone: bool,
    pub(crate) child: Offspring,
}

impl Node {
    pub(crate) fn start(world: &World) -> Self {
        let model = RefCell::new([0; WORDS]);
        let log = RefCell::new(Vec::new());
        let probe = Probe::new(world, &model, &log);
        let spec = EndpointSpec {
            label: Label::Worker(WorkerId::new(0).unwrap()),
            pid: None,
            frames: world.frames,
            protocol: Protocol::ChipTensors,
            marks_acceptance: true,
            waitable: true,
            poison_grace: EndpointSpec::POISON_GRACE,
        };
        let lane = Lane::new(spec, &probe);
        let spec = ChildSpec { frames: world.frames, protocol: Protocol::ChipTensors, depth: 2 };
        let rig = Rig { concurrent: world.concurrent, ..Rig::default() };
        Self {
            model: [0; WORDS],
            parent: Parent { lane, history: History::default(), op: None, log: Vec::new() },
            parent_gone: false,
            child: Offspring {
                machine: Machine::new(spec, Peer::Known),
                rig_now: rig.clone(),
                rig,
                log: Vec::new(),
                life: Life::Serving,
            },
        }
    }

    /// Everything that can happen next.
    pub(crate) fn successors(&self, world: &World, memory: &mut Memory) -> Vec<Self> {
        let mut next = Vec::new();
        if self.parent_gone {
            if self.child.log.is_empty() && self.child.life == Life::Serving {
                let mut node = self.clone();
                node.child.machine.orphaned();
                next.push(node);
            }
        } else if world.parent_death {
            let mut node = self.clone();
            node.parent_gone = true;
            (node.parent.op, node.parent.log) = (None, Vec::new());
            next.push(node);
        }
        match self.parent.op {
            _ if self.parent_gone => {}
            Some(_) => next.push(self.advance_parent(world)),
            None => {
                for op in self.parent.ops(world, self.child.life) {
                    let mut node = self.clone();
                    node.parent.op = Some(op);
                    next.push(node.advance_parent(world));
                }
            }
        }
        if self.child.life == Life::Serving {
            next.push(self.advance_child(world, memory));
            let rig = &self.child.rig;
            // The device moves between steps of its child; inside one nothing would tell the difference.
            if rig.launched.is_some() && self.child.log.is_empty() && !rig.done {
                let mut node = self.clone();
                let rig = &mut node.child.rig;
                (rig.accepted, rig.done) = (true, rig.accepted);
                node.child.rig_now = node.child.rig.clone();
                next.push(node);
            }
            if world.death {
                let mut node = self.clone();
                node.child.life = Life::Killed;
                node.child.log.clear();
                next.push(node);
            }
        }
        next
    }

    fn advance_parent(&self, world: &World) -> Self {
        let mut node = self.clone();
        let model = RefCell::new(self.model);
        let log = RefCell::new(self.parent.log.clone());
        let probe = Probe::new(world, &model, &log);
        let op = self.parent.op.expect("an operation is under way");
        let (mut lane, mut history) = (self.parent.lane.clone(), self.parent.history.clone());
        let mut life = self.child.life;
        let finished = run(|| perform(op, world, &probe, &mut lane, &mut history, &mut life, &self.child));
        node.model = model.into_inner();
        if finished {
            lane.take_published();
            node.parent = Parent { lane, history, op: None, log: Vec::new() };
            node.child.life = life;
        } else {
            node.parent.log = log.into_inner();
        }
        node
    }

    fn advance_child(&self, world: &World, memory: &mut Memory) -> Self {
        let mut node = self.clone();
        let model = RefCell::new(self.model);
        let log = RefCell::new(self.child.log.clone());
        let probe = Probe::new(world, &model, &log);
        let (mut machine, mut rig) = (self.child.machine, self.child.rig.clone());
        let mut served = Served::Idle;
        let finished = run(|| served = machine.step(&probe, &mut rig, memory, &mut NoBell));
        node.model = model.into_inner();
        node.child.rig_now = rig.clone();
        if finished {
            node.child = Offspring { machine, rig_now: rig.clone(), rig, log: Vec::new(), life: Life::Serving };
            if let Served::Exit(code) = served {
                assert_eq!(code, 0, "L-31: the child left because of {:?}", node.child.machine);
                node.child.life = Life::Left;
            }
        } else {
            node.child.log = log.into_inner();
        }
        node
    }

    /// Everything that was asked for has come to its end.
    pub(crate) fn is_final(&self, world: &World) -> bool {
        if self.parent_gone {
            return self.child.life == Life::Left && self.child.rig.shut;
        }
        let history = &self.parent.history;
        self.parent.op.is_none()
            && history.ended.len() == history.submitted.len()
            && (history.submitted.len() == world.tasks.len() || history.stopped || self.parent.lane.poison().is_some())
            && history.control_asked == history.control_ended
            && (!history.stopped || self.child.life != Life::Serving)
    }
}

extern crate std;

use std::println;
use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::chip::TRANSITIONS;

/// Every way of telling a table that something happened.
#[derive(Clone, Copy, Debug)]
enum Step {
    BeginPrepare,
    Prepared,
    PrepareFailed,
    Launched,
    LaunchHalfDone,
    Polled(Completion),
    Waited(Completion),
    BeginFinalize,
    Finalized,
}

const STEPS: [Step; 11] = [
    Step::BeginPrepare,
    Step::Prepared,
    Step::PrepareFailed,
    Step::Launched,
    Step::LaunchHalfDone,
    Step::Polled(Completion::Proven),
    Step::Polled(Completion::Unproven),
    Step::Waited(Completion::Proven),
    Step::Waited(Completion::Unproven),
    Step::BeginFinalize,
    Step::Finalized,
];

impl Step {
    fn call(self) -> Call {
        match self {
            Self::BeginPrepare | Self::Prepared | Self::PrepareFailed => Call::Prepare,
            Self::Launched | Self::LaunchHalfDone => Call::Launch,
            Self::Polled(_) => Call::Poll,
            Self::Waited(_) => Call::Wait,
            Self::BeginFinalize | Self::Finalized => Call::Finalize,
        }
    }

    /// Where the contract says this leads from `phase`, `None` if it is illegal there.
    fn target(self, phase: Phase) -> Option<Phase> {
        match (self, phase) {
            (Self::BeginPrepare, Phase::Empty) => Some(Phase::Preparing),
            (Self::Prepared, Phase::Preparing) => Some(Phase::Prepared),
            (Self::PrepareFailed, Phase::Preparing) => Some(Phase::Empty),
            (Self::Launched, Phase::Prepared) => Some(Phase::Launched),
            (Self::LaunchHalfDone, Phase::Prepared) => Some(Phase::Reaped),
            (Self::Polled(_) | Self::Waited(_), Phase::Launched) => Some(Phase::Reaped),
            (Self::BeginFinalize, Phase::Prepared | Phase::Reaped) => Some(Phase::Finalizing),
            (Self::Finalized, Phase::Finalizing) => Some(Phase::Empty),
            _ => None,
        }
    }

    fn apply(
        self,
        table: &mut RunTable<u32>,
        slot: PipelineSlot,
        token: &mut [Option<RunToken>; 2],
    ) -> Result<(), ChipError> {
        if let Self::BeginPrepare = self {
            token[slot.index()] = Some(table.begin_prepare(slot)?);
            return Ok(());
        }
        let Some(token) = token[slot.index()] else {
            return Err(ChipError::WrongPhase { call: self.call(), slot, phase: Phase::Empty });
        };
        match self {
            Self::BeginPrepare => unreachable!(),
            Self::Prepared => table.prepared(token, 7),
            Self::PrepareFailed => table.prepare_failed(token),
            Self::Launched => table.launched(token),
            Self::LaunchHalfDone => table.reaped(Call::Launch, token, Completion::Proven),
            Self::Polled(completion) => table.reaped(Call::Poll, token, completion),
            Self::Waited(completion) => table.reaped(Call::Wait, token, completion),
            Self::BeginFinalize => table.begin_finalize(token).map(|_| ()),
            Self::Finalized => table.finalized(token),
        }
    }
}

fn executing(phase: Phase) -> bool {
    matches!(phase, Phase::Launched | Phase::Reaped | Phase::Finalizing)
}

fn walk(table: &RunTable<u32>, tokens: [Option<RunToken>; 2], length: u32) -> u64 {
    let mut sequences = 1;
    if length == 0 {
        return sequences;
    }
    for slot in PipelineSlot::ALL {
        for step in STEPS {
            let (mut next, mut next_tokens) = (table.clone(), tokens);
            let before = [table.phase(PipelineSlot::Zero), table.phase(PipelineSlot::One)];
            let answer = step.apply(&mut next, slot, &mut next_tokens);
            let other = before[1 - slot.index()];
            let mut target = step.target(before[slot.index()]);
            if matches!(step, Step::Launched) && executing(other) {
                assert!(target.is_none() || matches!(answer, Err(ChipError::LaunchOrder { .. })));
                target = None;
            }
            assert_eq!(answer.is_ok(), target.is_some(), "{step:?} on {table:?}");
            assert_eq!(next.phase(slot), target.unwrap_or(before[slot.index()]), "{step:?} on {table:?}");
            match answer {
                Ok(()) => {}
                Err(ChipError::WrongPhase { call, phase, .. }) => {
                    assert_eq!((call, phase), (step.call(), before[slot.index()]));
                    assert_eq!(&next, table, "a refused call changes nothing");
                }
                Err(ChipError::StaleToken { .. } | ChipError::LaunchOrder { .. }) => assert_eq!(&next, table),
                Err(other) => panic!("{other}"),
            }
            sequences += walk(&next, next_tokens, length - 1);
        }
    }
    sequences
}

/// C-6, L-12, L-14, with the one exception that a launch that fails half-way counts as an executing run.
#[test]
fn every_sequence_of_five_steps_on_two_slots_moves_as_the_contract_says() {
    let sequences = walk(&RunTable::new(), [None; 2], 5);
    println!("run table: {sequences} sequences of up to 5 steps from {}", 2 * STEPS.len());
    assert!(sequences > 5_000_000);
}

/// C-6: the table of the documentation is the one that the machine obeys.
#[test]
fn the_published_transitions_are_those_of_the_machine() {
    for phase in Phase::ALL {
        for call in Call::ALL {
            let published: Vec<_> = TRANSITIONS
                .iter()
                .filter(|edge| edge.from == phase && edge.call == call && edge.from != edge.to)
                .collect();
            let machine: Vec<_> =
                STEPS.iter().filter(|step| step.call() == call).filter_map(|step| step.target(phase)).collect();
            // A launched run is waited for before its finalize, which is two steps of the machine.
            if (phase, call) == (Phase::Launched, Call::Finalize) {
                assert!(machine.is_empty() && published[0].to == Phase::Reaped);
                continue;
            }
            assert!(published.iter().all(|edge| machine.contains(&edge.to)), "{phase} {call}");
            assert!(machine.iter().all(|to| published.iter().any(|edge| edge.to == *to)), "{phase} {call}");
        }
    }
}

/// C-6: both phases are named.
#[test]
fn a_call_in_the_wrong_phase_names_both_phases() {
    let mut table = RunTable::new();
    let token = table.begin_prepare(PipelineSlot::One).unwrap();
    table.prepared(token, ()).unwrap();
    let error = table.get(Call::Poll, token).unwrap_err();
    assert_eq!(error.to_string(), "poll on run slot 1 in phase PREPARED: legal in LAUNCHED");
    table.begin_finalize(token).unwrap();
    let error = table.begin_finalize(token).unwrap_err();
    assert_eq!(error.to_string(), "finalize on run slot 1 in phase FINALIZING: legal in PREPARED, LAUNCHED or REAPED");
}

/// C-7: the lease is not the identity of a run, its epoch is.
#[test]
fn the_token_of_a_finished_run_does_not_reach_its_successor_in_the_slot() {
    let mut table = RunTable::new();
    let first = table.begin_prepare(PipelineSlot::Zero).unwrap();
    table.prepared(first, 1).unwrap();
    assert_eq!(table.begin_finalize(first).unwrap(), Finalizing::Abandoned(1));
    table.finalized(first).unwrap();
    let second = table.begin_prepare(PipelineSlot::Zero).unwrap();
    table.prepared(second, 2).unwrap();
    assert!(second.epoch() > first.epoch());
    let stale = ChipError::StaleToken { call: Call::Launch, epoch: first.epoch(), current: Some(second.epoch()) };
    assert_eq!(table.launched(first), Err(stale));
    assert_eq!(table.find(first), None);
    assert_eq!(table.find(second), Some(&2));
}

/// T-30: what a half-done launch can still reach must come out as unproven, never as clean.
#[test]
fn a_launch_that_failed_half_way_is_finalized_as_unproven() {
    let mut table = RunTable::new();
    let token = table.begin_prepare(PipelineSlot::Zero).unwrap();
    table.prepared(token, 3).unwrap();
    table.reaped(Call::Launch, token, Completion::Proven).unwrap();
    assert_eq!(table.begin_finalize(token).unwrap(), Finalizing::Unproven(3));
}

/// C-8
#[test]
fn a_device_with_a_run_is_not_idle() {
    let mut table = RunTable::new();
    table.check_idle(Call::Register).unwrap();
    let token = table.begin_prepare(PipelineSlot::One).unwrap();
    table.prepared(token, ()).unwrap();
    let refused = ChipError::RunInFlight { call: Call::Register, epoch: token.epoch(), phase: Phase::Prepared };
    assert_eq!(table.check_idle(Call::Register), Err(refused));
}

//! Backends that are wrong on purpose: each is caught, and by exactly the cases that are listed beside it.

#[path = "mutants/child.rs"]
mod child;
#[path = "mutants/device/mod.rs"]
mod device;
#[path = "mutants/list/mod.rs"]
mod list;

use std::collections::BTreeSet;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use laneway_conformance::{
    Backend, BoxError, Callables, ChildHalf, CoreChild, Facts, Filter, Memory, Runner, Setup, Tape, open_simulator,
    simulator,
};
use laneway_core::chip::DeviceRuntime;
use laneway_core::serve::ChildSpec;
use laneway_core::wire::Digest;
use laneway_linux::{ChildMode, Chip, WorkerBuilder};
use laneway_sim::Profile;

use child::{Slip, Slipping};
use device::{Mutant, Wrong};

/// What is wrong, and where.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The device, which the cases drive alone and behind a child half.
    Device(Wrong),
    /// The child half.
    Child(Slip),
    /// The device of a chip child in a tree, or of a level-2 worker.
    Tree(Wrong),
    /// The worker above the children.
    Worker(Lax),
}

/// How a worker is built wrong.
#[derive(Clone, Copy, Debug)]
enum Lax {
    /// It forks beside threads of its host.
    ForksBesideThreads,
    /// Its children are threads although they are said to be processes.
    StartsThreads,
}

/// One backend that is wrong on purpose.
struct Suspect {
    fault: Fault,
    profile: Profile,
    /// The cases that must fail, and no other.
    caught_by: &'static [&'static str],
}

impl Suspect {
    fn name(&self) -> String {
        match self.fault {
            Fault::Device(wrong) => format!("{wrong:?}"),
            Fault::Child(slip) => format!("{slip:?}"),
            Fault::Tree(wrong) => format!("{wrong:?} (in a tree)"),
            Fault::Worker(lax) => format!("{lax:?}"),
        }
    }

    fn filter(&self) -> Filter {
        match self.fault {
            Fault::Device(_) => Filter::all().or("device/").or("frame/").or("file/"),
            Fault::Child(_) => Filter::all().or("frame/"),
            Fault::Tree(_) => {
                let chips = Filter::all().or("tree/chips/").or("tree/memory/").or("tree/callables/a_chip");
                let more = chips.or("tree/deaths/a_device_that_is_lost").or("tree/kinds/a_level_2");
                more.or("tree/controls/a_control_that_fails")
            }
            Fault::Worker(_) => Filter::all().or("tree/guest/").or("tree/looking/"),
        }
    }
}

/// A simulator with one fault.
struct Faulty {
    fault: Fault,
    profile: Profile,
    right: Box<dyn Backend>,
}

impl Backend for Faulty {
    fn name(&self) -> &str {
        "a backend that is wrong on purpose"
    }

    fn facts(&self) -> Facts {
        let memory = !matches!(self.fault, Fault::Device(Wrong::HasMemoryAfterAll));
        Facts { memory, ..self.right.facts() }
    }

    fn callables(&self) -> &dyn Callables {
        self.right.callables()
    }

    fn open(&mut self, setup: &Setup) -> Result<Box<dyn DeviceRuntime>, BoxError> {
        let right = open_simulator(self.profile, setup, Memory::WholeProcess)?;
        Ok(match self.fault {
            Fault::Device(wrong) | Fault::Tree(wrong) => Box::new(Mutant::new(right, wrong)),
            Fault::Child(_) | Fault::Worker(_) => Box::new(right),
        })
    }

    fn chip(&mut self, setup: &Setup) -> Option<Chip> {
        if let Fault::Worker(_) = self.fault {
            return self.right.chip(setup);
        }
        let (Fault::Tree(wrong), profile, setup) = (self.fault, self.profile, setup.clone()) else { return None };
        let open = move |shared: &[std::ops::Range<u64>]| {
            open_simulator(profile, &setup, Memory::Ranges(shared)).map(|simulator| Mutant::new(simulator, wrong))
        };
        Some(Chip::new(profile.platform(), profile.runtime(), open))
    }

    fn worker(&self) -> WorkerBuilder {
        match self.fault {
            Fault::Worker(Lax::ForksBesideThreads) => self.right.worker().allow_foreign_threads(true),
            Fault::Worker(Lax::StartsThreads) => self.right.worker().child_mode(ChildMode::Thread),
            _ => self.right.worker(),
        }
    }

    fn child<'a>(
        &self,
        words: &'a Tape,
        device: &'a mut dyn DeviceRuntime,
        callables: &[(Digest, Vec<u8>)],
        spec: ChildSpec,
    ) -> Result<Box<dyn ChildHalf + 'a>, BoxError> {
        match self.fault {
            Fault::Child(slip) => Ok(Box::new(CoreChild::new(Slipping::new(words, slip), device, callables, spec)?)),
            _ => Ok(Box::new(CoreChild::new(words, device, callables, spec)?)),
        }
    }
}

/// How long a case may take with a backend that may hang.
const LIMIT: Duration = Duration::from_secs(3);

/// Most of the time is spent waiting, so several processes share the list.
const SHARES: usize = 4;

/// Names the share of a process.
const SHARE: &str = "LANEWAY_MUTANTS_SHARE";

fn main() -> ExitCode {
    if let Ok(share) = std::env::var(SHARE) {
        return judge_a_share(share.parse().expect("a number below the count of shares"));
    }
    let program = std::env::current_exe().expect("the path of this binary");
    let shares: Vec<_> = (0..SHARES)
        .map(|share| {
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1)).env(SHARE, share.to_string()).stdout(Stdio::piped());
            command.spawn().expect("the binary runs itself")
        })
        .collect();
    let (mut lines, mut rest, mut right) = (Vec::new(), String::new(), true);
    for share in shares {
        let output = share.wait_with_output().expect("the output of a share");
        right &= output.status.success();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if line.starts_with("mutant ") { lines.push(line.to_owned()) } else { rest += &format!("{line}\n") }
        }
    }
    lines.sort();
    lines.iter().for_each(|line| println!("{line}"));
    let caught = lines.iter().filter(|line| line.contains(" caught by ")).count();
    println!("{caught} of {} caught, each by exactly the cases that should\n{rest}", lines.len());
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// On one CPU a child that is kept on one looks like any other.
fn can_tell(case: &&str) -> bool {
    *case != "tree/looking/a_child_runs_on_the_cpus_that_it_was_given"
        || std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}

fn judge_a_share(share: usize) -> ExitCode {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_wanted = |suspect: &Suspect| wanted.as_ref().is_none_or(|part| suspect.name().contains(part.as_str()));
    let mut wrong = false;
    for suspect in list::suspects().filter(|suspect| is_wanted(suspect)).skip(share).step_by(SHARES) {
        let (fault, profile) = (suspect.fault, suspect.profile);
        let mut backend = Faulty { fault, profile, right: Box::new(simulator(profile)) };
        let report = Runner::new(suspect.filter()).timeout(LIMIT).run(&mut backend, |_| {});
        let failed: BTreeSet<&str> = report.failures().map(|entry| entry.case.as_str()).collect();
        let expected: BTreeSet<&str> = suspect.caught_by.iter().copied().filter(can_tell).collect();
        let (name, count) = (suspect.name(), failed.len());
        if failed == expected && !failed.is_empty() {
            println!("mutant {name:<44} caught by {count}");
            continue;
        }
        wrong = true;
        println!("mutant {name:<44} NOT AS LISTED");
        println!("{name}: passed although listed: {:#?}", expected.difference(&failed).collect::<Vec<_>>());
        println!("{name}: failed although not listed: {:#?}", failed.difference(&expected).collect::<Vec<_>>());
        report.failures().filter(|entry| !expected.contains(entry.case.as_str())).for_each(|entry| println!("{entry}"));
    }
    if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

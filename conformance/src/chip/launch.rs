//! Phases, acceptance, order, and what is left behind.

use laneway_core::chip::{Call, ChipError, Phase, Progress};
use laneway_core::ids::PipelineSlot;
use laneway_sim::{Action, Config, FaultPlan, Kernel, Point, Profile};

use super::{Bench, Case, ONE, PLAIN, VectorAdd, ZERO, on_every_profile, register, slot};

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let with = |name, rules, profile, faults, run| Case {
        kernels: &[Kernel::Add, Kernel::Mul],
        device: Config::new(profile).with_faults(faults),
        ..Case::new(name, rules, profile, run)
    };
    let hbg = Profile::A2a3HostBuildGraph;
    on_every_profile("no_call_is_taken_in_the_wrong_phase", &["C-6", "L-17", "T-24"], &[Kernel::Add], phases)
        .chain(on_every_profile(
            "a_run_that_was_never_launched_leaves_nothing",
            &["C-6", "L-15", "T-31"],
            &[Kernel::Add],
            abandon,
        ))
        .chain(on_every_profile("shutdown_ends_what_runs", &["C-12", "T-31"], &[Kernel::Add], shutdown))
        .chain([
            with(
                "a_second_run_launches_after_the_first_was_finalized",
                &["L-12", "L-14"],
                hbg,
                FaultPlan::none(),
                order,
            ),
            with(
                "a_run_that_hangs_is_never_ready",
                &["C-15"],
                hbg,
                FaultPlan::none().with(Point::Launch, 1, Action::Hang),
                hang,
            ),
            with(
                "an_acceptance_that_never_came_stays_away",
                &["L-17", "L-18"],
                hbg,
                FaultPlan::none().with(Point::Launch, 1, Action::SkipAcceptance),
                no_acceptance,
            ),
        ])
}

fn phases(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let work = VectorAdd::new();
    let wrong = |call, phase| ChipError::WrongPhase { call, slot: PipelineSlot::Zero, phase };
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).expect("prepare");
    let again = device.prepare(add, &work.args, &PLAIN, ZERO);
    assert_eq!(again, Err(wrong(Call::Prepare, Phase::Prepared)));
    assert_eq!(device.poll(run), Err(wrong(Call::Poll, Phase::Prepared)));
    assert_eq!(device.wait(run), Err(wrong(Call::Wait, Phase::Prepared)));
    assert!(!device.accepted(run));
    device.launch(run).expect("launch");
    assert!(device.accepted(run));
    assert_eq!(device.launch(run), Err(wrong(Call::Launch, Phase::Launched)));
    while device.poll(run).expect("poll") == Progress::NotReady {
        std::hint::spin_loop();
    }
    assert_eq!(device.poll(run), Err(wrong(Call::Poll, Phase::Reaped)));
    assert_eq!(device.wait(run), Err(wrong(Call::Wait, Phase::Reaped)));
    device.finalize(run).expect("finalize");
    assert!(work.is_done());
    let over = ChipError::StaleToken { call: Call::Finalize, epoch: run.epoch(), current: None };
    assert_eq!(device.finalize(run), Err(over));
    assert!(!device.accepted(run));
}

fn abandon(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    device.run(add, &VectorAdd::new().args, &PLAIN, ZERO).expect("run");
    let settled = device.committed_memory();
    for _ in 0..3 {
        let work = VectorAdd::new();
        let run = device.prepare(add, &work.args, &PLAIN, ZERO).expect("prepare");
        device.finalize(run).expect("abandon");
        assert!(work.is_untouched());
        assert_eq!(device.committed_memory(), settled);
    }
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).expect("prepare");
    device.launch(run).expect("launch");
    device.finalize(run).expect("finalize waits first");
    assert!(work.is_done());
}

fn shutdown(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let run = device.prepare(add, &first.args, &PLAIN, ZERO).expect("prepare");
    device.launch(run).expect("launch");
    if device.supports_concurrent_prepare() {
        device.prepare(add, &second.args, &PLAIN, ONE).expect("prepare beside it");
    }
    device.shutdown().expect("shutdown");
    assert!(first.is_done() && second.is_untouched());
    assert_eq!(device.committed_memory(), 0);
    device.shutdown().expect("a second shutdown does nothing");
    let gone = |call| ChipError::DeviceGone { call };
    assert_eq!(device.prepare(add, &first.args, &PLAIN, ZERO), Err(gone(Call::Prepare)));
    let blob = device.callable(Kernel::Add);
    assert_eq!(device.register(slot(1), &blob), Err(gone(Call::Register)));
    assert_eq!(device.malloc(1), Err(gone(Call::Malloc)));
}

fn order(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let mul = register(device, 1, Kernel::Mul);
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let one = device.prepare(add, &first.args, &PLAIN, ZERO).expect("prepare");
    device.launch(one).expect("launch");
    let two = device.prepare(mul, &second.args, &PLAIN, ONE).expect("prepare beside it");
    let refused = |phase| Err(ChipError::LaunchOrder { epoch: two.epoch(), before: one.epoch(), phase });
    assert_eq!(device.launch(two), refused(Phase::Launched));
    device.wait(one).expect("wait");
    assert_eq!(device.launch(two), refused(Phase::Reaped));
    device.finalize(one).expect("finalize");
    assert!(first.is_done() && second.is_untouched());
    assert!(!device.accepted(two));
    device.launch(two).expect("launch");
    device.finalize(two).expect("finalize");
    assert_eq!(second.out.f32s(), [10.0, 40.0, 90.0, 160.0]);
}

fn hang(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).expect("prepare");
    device.launch(run).expect("launch");
    for _ in 0..1000 {
        assert_eq!(device.poll(run), Ok(Progress::NotReady));
    }
    assert!(device.accepted(run));
}

fn no_acceptance(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).expect("prepare");
    device.launch(run).expect("launch");
    device.wait(run).expect("wait");
    assert!(!device.accepted(run));
    device.finalize(run).expect("finalize");
    assert!(work.is_done());
    let again = VectorAdd::new();
    let run = device.prepare(add, &again.args, &PLAIN, ZERO).expect("prepare");
    assert!(!device.accepted(run));
    device.launch(run).expect("launch");
    assert!(device.accepted(run));
    device.finalize(run).expect("finalize");
}

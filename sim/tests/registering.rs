//! Chip callables that are registered while chips run, also through nested workers.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;

use std::time::{Duration, Instant};

use laneway_linux::{
    BoxError, CallableError, CallableHandle, Chip, Error, Label, Platform, RuntimeKind, TaskArgs, Worker, WorkerId,
};
use laneway_sim::{Action, Config, FaultPlan, HostMemory, Kernel, Point, Profile, Simulator, callable};

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            a_chip_callable_is_registered_while_chips_run,
            a_registration_waits_for_the_executing_kernel_and_the_run_goes_on,
            one_of_two_chips_refuses_and_the_other_forgets,
            sixty_four_failing_registrations_leave_room_for_a_good_one,
            the_65th_callable_is_refused_and_a_free_slot_is_used_again,
            a_failed_undo_makes_the_digest_unusable,
            a_failed_removal_makes_the_digest_unusable,
            registrations_reach_the_chips_of_nested_workers_all_or_nothing,
            bytes_that_are_no_callable_are_refused,
        ],
        &[],
    )
}

const HBG: Profile = Profile::A2a3HostBuildGraph;

fn chip(plan: FaultPlan) -> Chip {
    Chip::new(HBG.platform(), HBG.runtime(), move |shared| {
        // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and this child makes no
        // reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(HBG).with_faults(plan.clone()), host).map_err(BoxError::from)
    })
}

fn worker(level: u32, plans: &[FaultPlan]) -> (Worker, Vec<WorkerId>) {
    let worker = harness::builder!().level(level).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20).build().unwrap();
    let chips = plans.iter().map(|plan| worker.add_chip(chip(plan.clone())).unwrap()).collect();
    (worker, chips)
}

fn register(worker: &Worker, kernel: Kernel) -> Result<CallableHandle, Error> {
    worker.register_chip(HBG.platform(), HBG.runtime(), &callable(kernel))
}

/// One sum on one chip.
fn add_on(worker: &Worker, add: &CallableHandle, chip: WorkerId) -> Result<(), Error> {
    let [a, b, c] = [2.0, 3.0, 0.0].map(|value| {
        let tensor = worker.tensor::<f32>(&[64]).unwrap();
        tensor.fill_with(|_| value).unwrap();
        tensor
    });
    worker.run(|orch| {
        Ok(orch.submit_next_level(add, chip, TaskArgs::new().input(&a).input(&b).output(&c)).map(drop)?)
    })?;
    assert_eq!(c.to_vec().unwrap(), [5.0; 64]);
    Ok(())
}

///
fn a_chip_callable_is_registered_while_chips_run() {
    let (worker, chips) = worker(3, &[FaultPlan::none(), FaultPlan::none()]);
    worker.init().unwrap();
    let add = register(&worker, Kernel::Add).unwrap();
    for chip in &chips {
        add_on(&worker, &add, *chip).unwrap();
    }
    worker.unregister(&add).unwrap();
    assert!(add_on(&worker, &add, chips[0]).is_err());
    let again = register(&worker, Kernel::Add).unwrap();
    add_on(&worker, &again, chips[1]).unwrap();
    worker.close().unwrap();
}

/// L-21, R-5
fn a_registration_waits_for_the_executing_kernel_and_the_run_goes_on() {
    let (worker, chips) = worker(3, &[FaultPlan::none()]);
    let wait = register(&worker, Kernel::Wait).unwrap();
    worker.init().unwrap();
    let millis = Duration::from_millis(100).as_nanos() as u64;
    let start = Instant::now();
    let run =
        worker.submit(|orch| Ok(orch.submit_next_level(&wait, chips[0], TaskArgs::new().scalar(millis)).map(drop)?));
    let run = run.unwrap();
    run.wait_accepted().unwrap();
    let add = register(&worker, Kernel::Add).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
    run.wait().unwrap();
    add_on(&worker, &add, chips[0]).unwrap();
    worker.close().unwrap();
}

/// R-6, T-41
fn one_of_two_chips_refuses_and_the_other_forgets() {
    let refuses = FaultPlan::none().with(Point::Register, 1, Action::Error(-3));
    let (worker, chips) = worker(3, &[FaultPlan::none(), refuses]);
    worker.init().unwrap();
    let error = register(&worker, Kernel::Add).unwrap_err();
    let Error::Callable(CallableError::RegisterPartialFailure { failures, .. }) = &error else { panic!("{error}") };
    assert!(matches!(failures[..], [(Label::Worker(id), _)] if id == chips[1]), "{error}");
    let add = register(&worker, Kernel::Add).expect("the retry is no duplicate");
    for chip in chips {
        add_on(&worker, &add, chip).unwrap();
    }
    worker.close().unwrap();
}

/// T-42
fn sixty_four_failing_registrations_leave_room_for_a_good_one() {
    let plan = (1..=64).fold(FaultPlan::none(), |plan, n| plan.with(Point::Register, n, Action::Error(-1)));
    let (worker, chips) = worker(3, &[plan, FaultPlan::none()]);
    worker.init().unwrap();
    for _ in 0..64 {
        register(&worker, Kernel::Add).unwrap_err();
    }
    let add = register(&worker, Kernel::Add).unwrap();
    for chip in chips {
        add_on(&worker, &add, chip).unwrap();
    }
    worker.close().unwrap();
}

/// R-8, before and after init.
fn the_65th_callable_is_refused_and_a_free_slot_is_used_again() {
    let kinds = || Platform::ALL.into_iter().flat_map(|platform| RuntimeKind::ALL.map(|runtime| (platform, runtime)));
    // 8 kernels for 8 kinds of chips: 64 callables.
    let mut handles = Vec::new();
    let (worker, chips) = worker(3, &[FaultPlan::none()]);
    for (i, kernel) in Kernel::ALL.into_iter().enumerate() {
        if i == 4 {
            worker.init().unwrap();
        }
        for (platform, runtime) in kinds() {
            handles.push(worker.register_chip(platform, runtime, &callable(kernel)).unwrap());
        }
    }
    assert_eq!(handles.len(), 64);
    let mut bytes = callable(Kernel::Noop);
    // Another name is another callable.
    let name = bytes.windows(4).position(|bytes| bytes == b"noop").expect("the name of the kernel");
    bytes[name..name + 4].copy_from_slice(b"poon");
    let another = || worker.register_chip(HBG.platform(), HBG.runtime(), &bytes);
    let error = another().unwrap_err();
    assert_eq!(error, Error::Callable(CallableError::LocalSlotExhausted { slots: 64 }));
    worker.register_chip(HBG.platform(), HBG.runtime(), &callable(Kernel::Add)).expect("a known one needs no slot");
    worker.unregister(&handles[20]).unwrap();
    another().expect("the slot was given back");
    let add = worker.register_chip(HBG.platform(), HBG.runtime(), &callable(Kernel::Add)).unwrap();
    add_on(&worker, &add, chips[0]).unwrap();
    worker.close().unwrap();
}

fn is_uncertain(error: &Error) -> bool {
    matches!(error, Error::Callable(CallableError::RegisterCleanupUncertain { .. }))
}

///
fn a_failed_undo_makes_the_digest_unusable() {
    let keeps = FaultPlan::none().with(Point::Unregister, 1, Action::Error(-5));
    let refuses = FaultPlan::none().with(Point::Register, 1, Action::Error(-3));
    let (worker, chips) = worker(3, &[keeps, refuses]);
    worker.init().unwrap();
    for _ in 0..2 {
        let error = register(&worker, Kernel::Add).unwrap_err();
        assert!(is_uncertain(&error) && error.to_string().contains("worker 0"), "{error}");
    }
    let noop = register(&worker, Kernel::Noop).expect("another callable");
    worker.run(|orch| Ok(orch.submit_next_level(&noop, chips[0], TaskArgs::new()).map(drop)?)).unwrap();
    worker.close().unwrap();
}

/// device state first, the table entry only on success.
fn a_failed_removal_makes_the_digest_unusable() {
    let keeps = FaultPlan::none().with(Point::Unregister, 1, Action::Error(-5));
    let (worker, _) = worker(3, &[keeps]);
    worker.init().unwrap();
    let add = register(&worker, Kernel::Add).unwrap();
    let error = worker.unregister(&add).unwrap_err();
    assert!(is_uncertain(&error), "{error}");
    assert!(is_uncertain(&register(&worker, Kernel::Add).unwrap_err()));
    worker.close().unwrap();
}

///
fn registrations_reach_the_chips_of_nested_workers_all_or_nothing() {
    let refuses = FaultPlan::none().with(Point::Register, 2, Action::Error(-3));
    let (l3, chips) = worker(3, &[FaultPlan::none(), refuses]);
    let (l4, _) = worker(4, &[]);
    let (l5, own) = worker(5, &[FaultPlan::none()]);
    // The digest goes down as data: four words.
    let orch = l4
        .register_orchestration("add everywhere", move |orch, args, _| {
            let words: Vec<String> =
                args.scalars()[..4].iter().map(|word| format!("{:016x}", word.swap_bytes())).collect();
            let add = orch.passed_on(&format!("sha256:{}", words.concat()))?;
            let [a, b, c, d] = args.tensors() else { return Err("four tensors are needed".into()) };
            orch.submit_next_level(&add, chips[0], TaskArgs::new().input(*a).input(*b).output(*c))?;
            orch.submit_next_level(&add, chips[1], TaskArgs::new().input(*c).input(*b).output(*d))?;
            assert!(matches!(
                orch.passed_on("sha256:12"),
                Err(Error::Callable(CallableError::HashidFormatInvalid { .. }))
            ));
            Ok(())
        })
        .unwrap();
    let id3 = l4.add_worker(&l3).unwrap();
    let down = l5
        .register_orchestration("down", move |o, args, _| {
            let mut same = TaskArgs::new();
            for tensor in args.tensors() {
                same.inout(*tensor);
            }
            for scalar in args.scalars() {
                same.scalar(*scalar);
            }
            Ok(o.submit_next_level(&orch, id3, &same).map(drop)?)
        })
        .unwrap();
    let id4 = l5.add_worker(&l4).unwrap();
    let early = register(&l5, Kernel::Noop).unwrap();
    l5.init().unwrap();
    let error = register(&l5, Kernel::Add).unwrap_err();
    let text = error.to_string();
    for part in ["worker 1", "level 4", "worker 0", "level 3"] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
    let add = register(&l5, Kernel::Add).expect("nothing was left of the failed one");
    add_on(&l5, &add, own[0]).unwrap();
    let tensors = [(); 4].map(|()| l5.tensor::<f32>(&[8]).unwrap());
    tensors[0].fill_with(|_| 1.0).unwrap();
    tensors[1].fill_with(|_| 2.0).unwrap();
    let run = |handle: &CallableHandle| {
        let mut args = TaskArgs::new();
        for tensor in &tensors {
            args.inout(tensor);
        }
        for word in handle.digest().words() {
            args.scalar(word);
        }
        l5.run(|o| Ok(o.submit_next_level(&down, id4, &args).map(drop)?))
    };
    run(&add).unwrap();
    assert_eq!(tensors[3].to_vec().unwrap(), [5.0; 8]);
    l5.unregister(&add).unwrap();
    assert!(run(&add).unwrap_err().to_string().contains("did not pass it on"));
    assert!(!run(&early).unwrap_err().to_string().contains("did not pass it on"), "of the start-up snapshot");
    l5.close().unwrap();
}

///
fn bytes_that_are_no_callable_are_refused() {
    let (worker, _) = worker(3, &[FaultPlan::none()]);
    for init in [false, true] {
        if init {
            worker.init().unwrap();
        }
        for bytes in [&[][..], &[0; 64], &callable(Kernel::Add)[..20]] {
            let error = worker.register_chip(HBG.platform(), HBG.runtime(), bytes).unwrap_err();
            assert!(matches!(error, Error::Wire(_)), "{error}");
        }
    }
    worker.close().unwrap();
}

//! Workers with simulated chips as child processes, and the example as a user runs it.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use laneway_linux::StartCause;
use laneway_linux::{
    BoxError, CallableHandle, Chip, Error, ExitCause, Label, SubArgs, TaskArgs, Tensor, Worker, WorkerId,
};
use laneway_sim::{Action, Config, FaultPlan, HostMemory, Kernel, Point, Profile, Simulator, callable, scale_factor};
use rustix::process::{Pid, Signal, getpid, kill_process};

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            every_profile_computes_through_the_whole_stack,
            two_chips_and_a_sub_child_share_one_graph,
            runs_overlap_on_two_frames_and_keep_their_results_apart,
            an_error_of_the_device_arrives_with_its_text,
            a_chip_that_cannot_open_fails_init_with_its_text,
            a_chip_that_panics_in_its_start_fails_init_with_the_text,
            a_callable_that_the_chip_refuses_fails_init,
            an_unknown_chip_and_a_callable_of_the_wrong_kind_are_refused,
            a_long_kernel_costs_no_cpu_in_any_process,
            an_idle_tree_with_chips_uses_no_cpu,
        ],
        harness::cases![
            a_chip_that_exits_in_its_start_fails_init_with_its_status,
            a_chip_killed_in_its_start_fails_init_with_the_signal,
            a_chip_that_is_late_fails_init_at_the_deadline,
            close_from_another_thread_cancels_init,
            a_chip_killed_in_a_task_is_reported_and_the_other_goes_on,
            the_example_computes_and_exits_with_success,
            the_example_names_the_element_that_is_wrong,
            the_example_refuses_nonsense_with_a_sentence,
            a_killed_parent_takes_a_chip_in_the_middle_of_a_kernel,
            an_orphaned_chip_closes_its_device_and_leaves_even_if_that_hangs,
        ],
    )
}

const HBG: Profile = Profile::A2a3HostBuildGraph;

/// A chip child with a simulator.
fn chip(profile: Profile) -> Chip {
    Chip::new(profile.platform(), profile.runtime(), move |shared| {
        // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and this child makes no
        // reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(profile), host)
    })
}

/// Chips whose start does `start` before it opens the device; beside a chip and a SUB child that start well.
fn start_with<E: Into<BoxError>>(timeout: Duration, start: impl Fn() -> Result<(), E> + Send + 'static) -> Error {
    let worker = harness::builder!().subs(1).init_timeout(timeout).build().unwrap();
    worker.add_chip(chip(HBG)).unwrap();
    worker
        .add_chip(Chip::new(HBG.platform(), HBG.runtime(), move |_| {
            start().map_err(Into::into)?;
            Simulator::new(Config::new(HBG), HostMemory::none()).map_err(BoxError::from)
        }))
        .unwrap();
    let error = worker.init().unwrap_err();
    assert_eq!(children(), [0_i32; 0], "nothing of the tree is left after: {error}");
    let text = error.to_string();
    let place = if harness::in_threads() { "a thread of this process" } else { "pid " };
    assert!(text.starts_with(&format!("level 3, worker 1 (chip, {place}")), "names kind, index and pid: {text}");
    // P-2: another init can follow.
    let bench = Bench::new(&[HBG], 1);
    bench.worker.close().unwrap();
    error
}

fn cause_of(error: &Error) -> &StartCause {
    let Error::ChildStart { label: Label::Worker(_), cause, .. } = error else { panic!("{error:?}") };
    cause
}

fn children() -> Vec<i32> {
    let id = std::process::id();
    let text = std::fs::read_to_string(format!("/proc/self/task/{id}/children")).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// A ready worker with chips and SUB children.
struct Bench {
    worker: Worker,
    chips: Vec<WorkerId>,
    add: CallableHandle,
    scale: CallableHandle,
    wait: CallableHandle,
    nothing: CallableHandle,
}

impl Bench {
    fn new(profiles: &[Profile], subs: u32) -> Self {
        Self::of(profiles.iter().map(|&profile| chip(profile)).collect(), subs)
    }

    fn of(chips: Vec<Chip>, subs: u32) -> Self {
        let worker = harness::builder!().subs(subs).build().unwrap();
        let chips = chips.into_iter().map(|chip| worker.add_chip(chip).unwrap()).collect();
        let register = |kernel| worker.register_chip(HBG.platform(), HBG.runtime(), &callable(kernel)).unwrap();
        let [add, scale, wait] = [Kernel::Add, Kernel::Scale, Kernel::Wait].map(register);
        let nothing = worker.register("nothing", |_: &SubArgs<'_>| Ok(())).unwrap();
        worker.init().unwrap();
        Self { worker, chips, add, scale, wait, nothing }
    }

    fn vector(&self, elements: u32, value: impl FnMut(usize) -> f32) -> Tensor<f32> {
        let tensor = self.worker.tensor(&[elements]).unwrap();
        tensor.fill_with(value).unwrap();
        tensor
    }
}

/// C-3 and the table of profiles: each depth and number of frames, the same results.
fn every_profile_computes_through_the_whole_stack() {
    for profile in Profile::ALL {
        let bench = Bench::new(&[profile], 1);
        let (a, b) = (bench.vector(1000, |i| i as f32), bench.vector(1000, |i| 2.0 * i as f32));
        let c = bench.vector(1000, |_| 0.0);
        for _ in 0..3 {
            bench
                .worker
                .run(|orch| {
                    let chip = bench.chips[0];
                    orch.submit_next_level(&bench.add, chip, TaskArgs::new().input(&a).input(&b).output(&c))?;
                    let double = scale_factor(2.0);
                    orch.submit_next_level(&bench.scale, chip, TaskArgs::new().input(&c).output(&b).scalar(double))?;
                    Ok(())
                })
                .unwrap();
        }
        // b is 2i, then 2(i + b) three times over: 6i, 14i, 30i.
        assert_eq!(b.to_vec().unwrap()[..3], [0.0, 30.0, 60.0], "{profile:?}");
        bench.worker.close().unwrap();
    }
}

fn two_chips_and_a_sub_child_share_one_graph() {
    let bench = Bench::new(&[HBG, Profile::A2a3TensormapAndRingbuffer], 1);
    let (a, b) = (bench.vector(512, |i| i as f32), bench.vector(512, |_| 1.0));
    let c = bench.vector(512, |_| 0.0);
    for round in 1..=20 {
        bench
            .worker
            .run(|orch| {
                let mut sum = TaskArgs::new();
                orch.submit_next_level(&bench.add, bench.chips[0], sum.input(&a).input(&b).output(&c))?;
                let scale = scale_factor(f64::from(round));
                orch.submit_next_level(
                    &bench.scale,
                    bench.chips[1],
                    TaskArgs::new().input(&c).output(&b).scalar(scale),
                )?;
                orch.submit_sub(&bench.nothing, TaskArgs::new().input(&b))?;
                Ok(())
            })
            .unwrap();
        b.fill_with(|_| 1.0).unwrap();
        assert_eq!(c.to_vec().unwrap()[511], 512.0);
    }
    bench.worker.close().unwrap();
}

/// E-14, E-33: up to two runs are open at once; each has its own results.
fn runs_overlap_on_two_frames_and_keep_their_results_apart() {
    let bench = Bench::new(&[HBG, HBG], 1);
    let outs: Vec<_> = (0..40).map(|_| bench.vector(64, |_| 0.0)).collect();
    let (a, b) = (bench.vector(64, |i| i as f32), bench.vector(64, |_| 0.5));
    let runs: Vec<_> = outs
        .iter()
        .enumerate()
        .map(|(i, out)| {
            let chip = bench.chips[i % 2];
            bench
                .worker
                .submit(|orch| {
                    orch.submit_next_level(&bench.add, chip, TaskArgs::new().input(&a).input(&b).output(out))?;
                    let scale = scale_factor(i as f64);
                    orch.submit_next_level(&bench.scale, chip, TaskArgs::new().input(&a).output(&b).scalar(scale))?;
                    Ok(())
                })
                .unwrap()
        })
        .collect();
    for run in &runs {
        run.wait().unwrap();
    }
    // Runs execute one after the other: b holds (i - 1) · a when run i adds it.
    for (i, out) in outs.iter().enumerate().skip(1) {
        assert_eq!(out.to_vec().unwrap()[7], 7.0 + 7.0 * (i - 1) as f32, "run {i}");
    }
    bench.worker.close().unwrap();
}

fn an_error_of_the_device_arrives_with_its_text() {
    let bench = Bench::new(&[HBG], 1);
    let (a, b) = (bench.vector(8, |_| 1.0), bench.vector(9, |_| 1.0));
    let c = bench.vector(8, |_| 0.0);
    let wrong = bench
        .worker
        .run(|orch| {
            let args = &mut TaskArgs::new();
            Ok(orch.submit_next_level(&bench.add, bench.chips[0], args.input(&a).input(&b).output(&c))?)
        })
        .unwrap_err();
    let text = wrong.to_string();
    assert!(text.contains("worker 0: code") && text.contains("shape"), "{text}");
    bench
        .worker
        .run(|orch| {
            let args = &mut TaskArgs::new();
            Ok(orch.submit_next_level(&bench.add, bench.chips[0], args.input(&a).input(&a).output(&c))?)
        })
        .unwrap();
    assert_eq!(c.to_vec().unwrap(), [2.0; 8]);
}

/// P-3, P-5
fn a_chip_that_cannot_open_fails_init_with_its_text() {
    let error = start_with(Duration::from_secs(60), || Err("device 7 is on fire"));
    assert_eq!(*cause_of(&error), StartCause::Failed("chip 1 init: device 7 is on fire".to_owned()));
}

/// P-3
fn a_chip_that_panics_in_its_start_fails_init_with_the_text() {
    let error = start_with(Duration::from_secs(60), || -> Result<(), BoxError> { panic!("no device at all") });
    let StartCause::Failed(text) = cause_of(&error) else { panic!("{error:?}") };
    assert!(text.starts_with("chip 1 init: no device at all"), "{text}");
}

/// P-5
fn a_chip_that_exits_in_its_start_fails_init_with_its_status() {
    let error = start_with(Duration::from_secs(60), || -> Result<(), BoxError> { std::process::exit(5) });
    assert!(matches!(cause_of(&error), StartCause::Died(ExitCause::Exited { status: 5, .. })), "{error:?}");
}

/// P-5
fn a_chip_killed_in_its_start_fails_init_with_the_signal() {
    let error = start_with(Duration::from_secs(60), || -> Result<(), BoxError> {
        kill_process(getpid(), Signal::KILL).unwrap();
        Ok(())
    });
    assert!(matches!(cause_of(&error), StartCause::Died(ExitCause::Signalled { signal: 9, .. })), "{error:?}");
}

/// P-5
fn a_chip_that_is_late_fails_init_at_the_deadline() {
    let timeout = Duration::from_millis(300);
    let start = Instant::now();
    let error = start_with(timeout, || -> Result<(), BoxError> {
        loop {
            std::thread::park();
        }
    });
    assert_eq!(*cause_of(&error), StartCause::Late { after: timeout });
    harness::in_time("the failed init", start.elapsed(), Duration::from_secs(5));
}

/// P-4
fn a_callable_that_the_chip_refuses_fails_init() {
    let worker = harness::builder!().build().unwrap();
    worker.add_chip(chip(HBG)).unwrap();
    let mut blob = callable(Kernel::Add);
    let last = blob.len() - 1;
    blob[last] ^= 0xff;
    match worker.register_chip(HBG.platform(), HBG.runtime(), &blob) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(handle) => {
            let error = worker.init().unwrap_err();
            assert!(error.to_string().contains(&handle.digest().short().to_string()), "names the callable: {error}");
        }
    }
    assert_eq!(children(), [0_i32; 0]);
}

/// P-7, T-35
fn close_from_another_thread_cancels_init() {
    let worker = harness::builder!().subs(1).allow_foreign_threads(true).build().unwrap();
    worker
        .add_chip(Chip::new(HBG.platform(), HBG.runtime(), |_| -> Result<Simulator, BoxError> {
            loop {
                std::thread::park();
            }
        }))
        .unwrap();
    let other = worker.clone();
    let closing = std::thread::spawn(move || {
        while children().len() < 2 {
            std::thread::yield_now();
        }
        other.close()
    });
    assert_eq!(worker.init(), Err(Error::InitCancelled));
    closing.join().unwrap().unwrap();
    assert_eq!(children(), [0_i32; 0]);
}

/// L-25, E-41
fn a_chip_killed_in_a_task_is_reported_and_the_other_goes_on() {
    let bench = Bench::new(&[HBG, HBG], 1);
    let victim = children()[0];
    let run = bench
        .worker
        .submit(|orch| {
            let an_hour = 3_600_000_000_000;
            Ok(orch.submit_next_level(&bench.wait, bench.chips[0], TaskArgs::new().scalar(an_hour)).map(drop)?)
        })
        .unwrap();
    run.wait_accepted().unwrap();
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    let text = run.wait().unwrap_err().to_string();
    assert!(text.contains("worker 0") && text.contains(&victim.to_string()) && text.contains("SIGKILL"), "{text}");
    let (a, c) = (bench.vector(8, |_| 1.0), bench.vector(8, |_| 0.0));
    let on = |chip: WorkerId| {
        bench
            .worker
            .run(|orch| Ok(orch.submit_next_level(&bench.add, chip, TaskArgs::new().input(&a).input(&a).output(&c))?))
    };
    on(bench.chips[1]).unwrap();
    assert_eq!(c.to_vec().unwrap(), [2.0; 8]);
    assert!(on(bench.chips[0]).unwrap_err().to_string().contains("SIGKILL"));
    bench.worker.close().unwrap();
}

/// E-39, R-12
fn an_unknown_chip_and_a_callable_of_the_wrong_kind_are_refused() {
    let bench = Bench::new(&[HBG], 1);
    let stranger = WorkerId::new(9).unwrap();
    let unknown = bench.worker.run(|orch| Ok(orch.submit_next_level(&bench.add, stranger, TaskArgs::new())?));
    assert!(unknown.unwrap_err().to_string().contains('9'));
    let sub = bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new())?));
    assert!(matches!(sub, Err(Error::CallableNamespace { .. })));
    let chip = bench.worker.run(|orch| Ok(orch.submit_next_level(&bench.nothing, bench.chips[0], TaskArgs::new())?));
    assert!(matches!(chip, Err(Error::CallableNamespace { .. })));
    bench.worker.close().unwrap();
}

/// Builds the example, which is there already unless this test was built alone, and runs it.
fn example(args: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--example", "vector_add", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .env("CARGO_TARGET_DIR", profile.parent().unwrap())
        .args(if profile.ends_with("release") { &["--release"][..] } else { &[] })
        .status();
    assert!(built.expect("cargo runs").success());
    Command::new(profile.join("examples/vector_add")).args(args).process_group(0).output().expect("it was built")
}

fn the_example_computes_and_exits_with_success() {
    for args in [&["--elements", "10007", "--chips", "3", "--subs", "2"][..], &["--elements", "1", "--chips", "1"]] {
        let out = example(args);
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success() && text.contains("check      passed"), "{args:?}: {text}");
    }
}

fn the_example_names_the_element_that_is_wrong() {
    let out = example(&["--elements", "5000", "--corrupt", "4321"]);
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && text.contains("element 4321 is"), "{text}");
}

fn the_example_refuses_nonsense_with_a_sentence() {
    for args in [
        &["--chips", "0"][..],
        &["--subs", "0"],
        &["--elements", "0"],
        &["--elements", "-4"],
        &["--elements", "99999999999"],
        &["--elements", "many"],
        &["--elements", "1"],
        &["--elements"],
        &["--speed", "11"],
        &["--corrupt", "1000000"],
    ] {
        let out = example(args);
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.starts_with("vector_add: ") && text.contains("usage:"), "{args:?}: {text}");
    }
}

/// User and system time of a process so far, in ticks of 10 ms.
fn cpu_time(pid: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit(')').next().unwrap();
    Duration::from_millis(fields.split_whitespace().skip(11).take(2).map(|n| 10 * n.parse::<u64>().unwrap()).sum())
}

/// CPU time of this process and all its children in a while. There is no event to wait for: that is the point.
fn used_in(window: Duration) -> Duration {
    let tree: Vec<i32> = children().into_iter().chain([std::process::id() as i32]).collect();
    let used = || tree.iter().map(|&pid| cpu_time(pid)).sum::<Duration>();
    let before = used();
    std::thread::sleep(window);
    used() - before
}

/// T-29, L-32: the device is looked at now and then, not all the time.
fn a_long_kernel_costs_no_cpu_in_any_process() {
    let bench = Bench::new(&[HBG, Profile::A5HostBuildGraph], 1);
    let run = bench
        .worker
        .submit(|orch| {
            for &chip in &bench.chips {
                orch.submit_next_level(&bench.wait, chip, TaskArgs::new().scalar(2_000_000_000))?;
            }
            Ok(())
        })
        .unwrap();
    run.wait_accepted().unwrap();
    let used = used_in(Duration::from_secs(1));
    harness::in_time("CPUs, in a second of waiting for two kernels,", used, Duration::from_millis(100));
    assert!(!run.is_done(), "measured while both ran");
    run.wait().unwrap();
    bench.worker.close().unwrap();
}

/// L-33: nothing is polled while nothing runs.
fn an_idle_tree_with_chips_uses_no_cpu() {
    let bench = Bench::new(&[HBG, Profile::A2a3TensormapAndRingbuffer], 1);
    let (a, c) = (bench.vector(8, |_| 1.0), bench.vector(8, |_| 0.0));
    bench
        .worker
        .run(|orch| {
            let args = &mut TaskArgs::new();
            Ok(orch.submit_next_level(&bench.add, bench.chips[0], args.input(&a).input(&a).output(&c))?)
        })
        .unwrap();
    let used = used_in(Duration::from_secs(2));
    assert!(used <= Duration::from_millis(20), "{used:?} of CPU in two idle seconds");
}

/// A process that has a chip child, made by `chip`, and gets it to do what `work` says; then it calls itself `launched`.
/// Killed then, its children must be gone within 100 ms.
fn kill_a_parent(chip: Chip, work: impl FnOnce(&Bench)) {
    let state = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let below = |of: i32| {
        let text = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>()
    };
    // SAFETY: this case is a process with one thread; the child goes on as a parent of its own and never returns.
    let parent = unsafe { libc::fork() };
    if parent == 0 {
        let bench = Bench::of(vec![chip], 1);
        work(&bench);
        std::fs::write("/proc/self/comm", "launched").unwrap();
        loop {
            std::thread::park();
        }
    }
    let start = Instant::now();
    while !state(parent).contains("(launched)") {
        assert!(start.elapsed() < Duration::from_secs(10), "the tree never came up");
        std::thread::yield_now();
    }
    let tree = below(parent);
    assert_eq!(tree.len(), 2, "a chip and a SUB child");
    kill_process(Pid::from_raw(parent).unwrap(), Signal::KILL).unwrap();
    let killed = Instant::now();
    while !tree.iter().all(|&pid| state(pid).is_empty() || state(pid).contains(") Z ")) {
        harness::in_time("the end of the children", killed.elapsed(), Duration::from_millis(100));
        std::thread::yield_now();
    }
    let mut status = 0;
    // SAFETY: reaps the child that was forked above.
    unsafe { libc::waitpid(parent, &mut status, 0) };
}

/// L-32, T-25: finalizing a run that executes may take for ever, so the child does not get to it.
fn a_killed_parent_takes_a_chip_in_the_middle_of_a_kernel() {
    kill_a_parent(chip(HBG), |bench| {
        let run = bench.worker.submit(|orch| {
            let an_hour = 3_600_000_000_000;
            Ok(orch.submit_next_level(&bench.wait, bench.chips[0], TaskArgs::new().scalar(an_hour)).map(drop)?)
        });
        run.unwrap().wait_accepted().unwrap();
    });
}

/// A chip whose device does `action` when it is closed; scribbling is writing a file.
fn chip_that_closes_with(action: Action, file: &Path) -> Chip {
    let file = file.to_owned();
    Chip::new(HBG.platform(), HBG.runtime(), move |_| {
        let plan = FaultPlan::none().with(Point::Shutdown, 1, action);
        let mut device = Simulator::new(Config::new(HBG).with_faults(plan), HostMemory::none())?;
        let file = file.clone();
        device.set_scribble(Box::new(move || std::fs::write(&file, "closed").unwrap()));
        Ok::<_, BoxError>(device)
    })
}

/// L-31, L-32: an orphan closes its device, but not for longer than it has.
fn an_orphaned_chip_closes_its_device_and_leaves_even_if_that_hangs() {
    let file = std::env::temp_dir().join(format!("laneway-closed-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    kill_a_parent(chip_that_closes_with(Action::Scribble, &file), |_| {});
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "closed");
    std::fs::remove_file(&file).unwrap();
    kill_a_parent(chip_that_closes_with(Action::Hang, &file), |_| {});
}

//! Chips that do not start.

use std::time::{Duration, Instant};

use laneway_linux::{BoxError, Chip, Error, ExitCause, Label, StartCause};
use laneway_sim::{Config, HostMemory, Kernel, Simulator, callable};
use rustix::process::{Signal, getpid, kill_process};

use crate::harness::{self, children};
use crate::support::{Bench, HBG, chip};

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

/// P-3, P-5
pub(crate) fn a_chip_that_cannot_open_fails_init_with_its_text() {
    let error = start_with(Duration::from_secs(60), || Err("device 7 is on fire"));
    assert_eq!(*cause_of(&error), StartCause::Failed("chip 1 init: device 7 is on fire".to_owned()));
}

/// P-3
pub(crate) fn a_chip_that_panics_in_its_start_fails_init_with_the_text() {
    let error = start_with(Duration::from_secs(60), || -> Result<(), BoxError> { panic!("no device at all") });
    let StartCause::Failed(text) = cause_of(&error) else { panic!("{error:?}") };
    assert!(text.starts_with("chip 1 init: no device at all"), "{text}");
}

/// P-5
pub(crate) fn a_chip_that_exits_in_its_start_fails_init_with_its_status() {
    let error = start_with(Duration::from_secs(60), || -> Result<(), BoxError> { std::process::exit(5) });
    assert!(matches!(cause_of(&error), StartCause::Died(ExitCause::Exited { status: 5, .. })), "{error:?}");
}

/// P-5
pub(crate) fn a_chip_killed_in_its_start_fails_init_with_the_signal() {
    let error = start_with(Duration::from_secs(60), || -> Result<(), BoxError> {
        kill_process(getpid(), Signal::KILL).unwrap();
        Ok(())
    });
    assert!(matches!(cause_of(&error), StartCause::Died(ExitCause::Signalled { signal: 9, .. })), "{error:?}");
}

/// P-5
pub(crate) fn a_chip_that_is_late_fails_init_at_the_deadline() {
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
pub(crate) fn a_callable_that_the_chip_refuses_fails_init() {
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
pub(crate) fn close_from_another_thread_cancels_init() {
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

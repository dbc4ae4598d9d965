//! The subscriber of the `tracing` crate.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use laneway_linux::{Error, TaskArgs, Worker};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::Bench;

/// One event: its text and its numbers.
#[derive(Clone, Debug, Default)]
struct Heard {
    message: String,
    numbers: HashMap<&'static str, u64>,
}

impl Visit for Heard {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.insert(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.numbers.insert(field.name(), value as u64);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}

/// Keeps what it hears, and looks into the worker while it hears it.
struct Ear {
    heard: Arc<Mutex<Vec<Heard>>>,
    worker: Arc<Mutex<Option<Worker>>>,
    most: Level,
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "laneway" && *metadata.level() <= self.most
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut heard = Heard::default();
        attributes.record(&mut heard);
        heard.message = format!("span {}", attributes.metadata().name());
        self.heard.lock().unwrap().push(heard);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        // Needs the worker's lock: called under it, this would hang.
        if let Some(worker) = &*self.worker.lock().unwrap() {
            assert_eq!(worker.health().children.len(), 1);
        }
        let mut heard = Heard::default();
        event.record(&mut heard);
        self.heard.lock().unwrap().push(heard);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

type Hearing = (Arc<Mutex<Vec<Heard>>>, Arc<Mutex<Option<Worker>>>);

/// Makes an ear the subscriber of this process.
fn listen(most: Level) -> Hearing {
    let (heard, worker) = (Arc::default(), Arc::default());
    let ear = Ear { heard: Arc::clone(&heard), worker: Arc::clone(&worker), most };
    tracing::subscriber::set_global_default(ear).unwrap();
    (heard, worker)
}

/// P-30: the facts of both processes, in the order in which each met them.
pub(crate) fn a_subscriber_hears_every_process_in_order_and_outside_of_the_lock() {
    let (heard, slot) = listen(Level::TRACE);
    let bench = Bench::new(1, |builder| builder.tracing(true));
    *slot.lock().unwrap() = Some(bench.worker.clone());
    bench.pass(3);
    let failed = bench.worker.run(|orch| Ok(orch.submit_sub(&bench.fail, TaskArgs::new()).map(drop)?));
    assert!(failed.is_err());
    *slot.lock().unwrap() = None;
    bench.worker.close().unwrap();

    let heard = heard.lock().unwrap().clone();
    let own = u64::from(std::process::id());
    let of = |parent: bool| {
        let from = heard.iter().filter(move |heard| (heard.numbers["pid"] == own) == parent);
        from.filter(|heard| !heard.message.starts_with("span")).collect::<Vec<_>>()
    };
    let messages = |of: &[&Heard]| of.iter().map(|heard| heard.message.clone()).collect::<Vec<_>>();
    let (parent, child) = (of(true), of(false));
    let task = ["submit", "dispatch"];
    let mut expected = vec!["child started", "child ready", "run begun", "run executing"];
    let start = messages(&parent)[..expected.len() + 1].to_vec();
    expected.push(task[0]);
    assert_eq!(start, expected);
    let count = |message: &str| parent.iter().filter(|heard| heard.message == message).count();
    assert_eq!((count("submit"), count("dispatch"), count("completed"), count("not completed")), (4, 4, 3, 1));
    assert_eq!((count("run begun"), count("run closed"), count("run ended"), count("child ended")), (2, 2, 2, 1));
    assert_eq!(heard.iter().filter(|heard| heard.message == "span run").count(), 2);
    let mut expected = vec!["serving"];
    expected.extend(["task begun", "task ended"].repeat(4));
    assert_eq!(messages(&child), expected);
    for events in [parent, child] {
        assert!(events.is_sorted_by_key(|heard| heard.numbers["time"]), "in order");
    }
}

/// T-50: neither the worker's own setting nor the subscriber's filter costs what the other one did not ask for.
pub(crate) fn a_subscriber_that_wants_nothing_is_told_nothing() {
    let (heard, _) = listen(Level::ERROR);
    let bench = Bench::new(1, |builder| builder.tracing(true));
    bench.pass(10);
    bench.worker.close().unwrap();
    assert!(heard.lock().unwrap().is_empty());
}

/// A log of eight chunks serves for any number of tasks, because what was told makes room.
pub(crate) fn a_full_log_makes_room_for_a_subscriber() {
    let (heard, _) = listen(Level::TRACE);
    let bench = Bench::new(1, |builder| builder.tracing(true).trace_bytes(8 * 4096));
    let count = |message: &str| heard.lock().unwrap().iter().filter(|heard| heard.message == message).count();
    for runs in 1..=100 {
        bench.pass(10);
        // Another thread may be telling it.
        let patience = Instant::now() + Duration::from_secs(10);
        while count("completed") < 10 * runs {
            assert!(Instant::now() < patience, "{} of run {runs} told", count("completed"));
            std::thread::yield_now();
        }
    }
    bench.worker.close().unwrap();
    assert_eq!((count("dispatch"), count("completed"), count("task ended")), (1000, 1000, 1000));
}

/// A subscriber that does as it likes with the worker that it hears of.
struct Rude {
    worker: Arc<Mutex<Option<Worker>>>,
    does: fn(Worker),
}

impl Subscriber for Rude {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "laneway"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        let worker = self.worker.try_lock().ok().and_then(|mut worker| worker.take());
        worker.into_iter().for_each(self.does);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Listens rudely from here on; the slot takes the worker.
fn listen_rudely(does: fn(Worker)) -> Arc<Mutex<Option<Worker>>> {
    let worker = Arc::default();
    tracing::subscriber::set_global_default(Rude { worker: Arc::clone(&worker), does }).unwrap();
    worker
}

/// P-13, L-26: a panic of a subscriber ends neither the thread that notices deaths nor a run nor a close.
pub(crate) fn a_subscriber_that_panics_has_had_its_say() {
    let slot = listen_rudely(|_| panic!("no"));
    let bench = Bench::new(1, |builder| builder.tracing(true));
    for _ in 0..10 {
        *slot.lock().unwrap() = Some(bench.worker.clone());
        bench.pass(3);
    }
    let child = bench.worker.health().children[0].pid;
    *slot.lock().unwrap() = Some(bench.worker.clone());
    rustix::process::kill_process(rustix::process::Pid::from_raw(child).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(10);
    while bench.worker.health().ready {
        assert!(Instant::now() < patience, "the death was never noticed");
    }
    *slot.lock().unwrap() = Some(bench.worker.clone());
    bench.worker.close().unwrap();
}

/// P-13: the thread that tells a subscriber may be the one that a run or a close waits for.
pub(crate) fn a_subscriber_that_would_wait_for_its_worker_is_told_so() {
    static REFUSED: Mutex<Vec<Result<(), Error>>> = Mutex::new(Vec::new());
    let slot = listen_rudely(|worker| {
        let submitted = worker.submit(|_| Ok(())).map(drop);
        REFUSED.lock().unwrap().extend([worker.run(|_| Ok(())), submitted, worker.close(), worker.close_now()]);
    });
    let bench = Bench::new(1, |builder| builder.tracing(true));
    *slot.lock().unwrap() = Some(bench.worker.clone());
    bench.pass(3);
    let refused = REFUSED.lock().unwrap().split_off(0);
    assert_eq!(refused.len(), 4);
    assert!(refused.iter().all(|answer| matches!(answer, Err(Error::InsideCallback { .. }))), "{refused:?}");
    bench.pass(3);
    bench.worker.close().unwrap();
}

/// P-13, P-14: the last handle may go where nobody can wait for the end of the tree.
pub(crate) fn a_worker_whose_last_handle_a_subscriber_drops_is_closed() {
    let slot = listen_rudely(drop);
    let bench = Bench::new(1, |builder| builder.tracing(true).reap_budget(Duration::from_millis(100)));
    let (worker, hold) = (bench.worker.clone(), bench.hold.clone());
    drop(bench);
    let gate = worker.tensor::<i64>(&[1]).unwrap();
    let run =
        worker.submit(|orch| Ok(orch.submit_sub(&hold, TaskArgs::new().no_dep(gate.as_arg())).map(drop)?)).unwrap();
    let child = worker.health().children[0].pid;
    *slot.lock().unwrap() = Some(worker);
    let patience = Instant::now() + Duration::from_secs(30);
    // Waiting makes this thread the one that tells, unless the background thread is.
    while let Err(Error::WaitTimedOut { .. }) = run.wait_timeout(Duration::from_millis(10)) {
        assert!(Instant::now() < patience, "it was never closed");
    }
    while std::path::Path::new(&format!("/proc/{child}")).exists() {
        assert!(Instant::now() < patience, "the child was never ended");
        std::thread::yield_now();
    }
}

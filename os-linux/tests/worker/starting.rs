//! How `init` begins.

use std::sync::mpsc;

use laneway_linux::{Error, TaskArgs};

use crate::support::{Bench, children, nothing};

/// P-2
pub(crate) fn init_in_a_process_with_threads_is_refused() {
    let (stop, stopped) = mpsc::channel::<()>();
    let stopped = std::sync::Arc::new(std::sync::Mutex::new(stopped));
    let parked = |stopped: std::sync::Arc<std::sync::Mutex<mpsc::Receiver<()>>>| {
        std::thread::spawn(move || stopped.lock().is_ok_and(|stopped| stopped.recv().is_ok()))
    };
    let threads = [parked(stopped.clone()), parked(stopped)];
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let error = worker.init().unwrap_err();
    assert_eq!(error, Error::ForeignThreads { count: 2 });
    assert!(error.to_string().contains("initialise before"), "says what to do: {error}");
    assert_eq!(children(), []);

    // Somebody who knows that these threads hold no lock may say so.
    let worker = crate::harness::builder!().subs(1).allow_foreign_threads(true).build().unwrap();
    let works = worker.register("works", nothing).unwrap();
    worker.init().unwrap();
    worker.run(|orch| Ok(orch.submit_sub(&works, TaskArgs::new())?)).unwrap();
    worker.close().unwrap();
    drop(stop);
    threads.into_iter().for_each(|thread| assert!(!thread.join().unwrap()));
}

/// P-2: threads of this library do not count.
pub(crate) fn a_second_worker_starts_beside_the_first() {
    let first = Bench::new(2);
    let second = Bench::new(1);
    let (x, y) = (first.tensor(1), second.tensor(1));
    for _ in 0..20 {
        first.worker.run(|orch| Ok(orch.submit_sub(&first.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
        second.worker.run(|orch| Ok(orch.submit_sub(&second.add, TaskArgs::new().inout(&y).scalar(2))?)).unwrap();
    }
    first.worker.close().unwrap();
    // E-38: memory of another worker is not shared with these children.
    let error = second.worker.run(|orch| Ok(orch.submit_sub(&second.add, TaskArgs::new().inout(&x).scalar(1))?));
    assert!(error.is_err());
    second.worker.run(|orch| Ok(orch.submit_sub(&second.add, TaskArgs::new().inout(&y).scalar(2))?)).unwrap();
    assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![20], vec![42]));
    second.worker.close().unwrap();
}

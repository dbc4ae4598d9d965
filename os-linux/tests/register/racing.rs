//! Registrations beside runs, deaths and close.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use laneway_linux::{BoxError, CallableError, Error, SubArgs, TaskArgs, Tensor, Worker};
use rustix::process::{Pid, Signal, kill_process};

use crate::late::{add, on_all, worker};

const ONE: [u8; 4] = 1_i32.to_le_bytes();

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "never happened: {what}");
        std::thread::yield_now();
    }
}

/// Says in element 1 that it runs, then waits for element 0.
fn hold(args: &SubArgs<'_>, _: &[u8]) -> Result<(), BoxError> {
    let cells = args.tensor::<i32>(0)?;
    cells.set(1, std::process::id() as i32)?;
    while cells.get(0) == Some(0) {
        std::hint::spin_loop();
    }
    Ok(())
}

fn cell(gate: &Tensor<i32>, index: usize) -> &AtomicI32 {
    let at = (gate.as_arg().addr() as usize + 4 * index) as *mut i32;
    // SAFETY: the tensor keeps its memory mapped, and everybody accesses it by atomics.
    unsafe { AtomicI32::from_ptr(at) }
}

///
pub(crate) fn unregister_waits_for_tasks_and_its_digest_is_a_tombstone_meanwhile() {
    let worker = worker(2);
    worker.init().unwrap();
    let handle = worker.register_fn("hold", 1, hold, &[]).unwrap();
    let gate = worker.tensor::<i32>(&[2]).unwrap();
    let run =
        worker.submit(|orch| Ok(orch.submit_sub(&handle, TaskArgs::new().no_dep(gate.as_arg())).map(drop)?)).unwrap();
    until("the task runs", || cell(&gate, 1).load(Ordering::Relaxed) != 0);
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| worker.unregister(&handle));
        // Nothing tells that it has begun without taking part in it; it needs no more than the lock for that.
        std::thread::sleep(Duration::from_millis(100));
        let again = worker.unregister(&handle).unwrap_err();
        assert!(matches!(again, Error::Callable(CallableError::UnregisterTombstoneActive { .. })), "{again}");
        let error = worker.register_fn("hold", 1, hold, &[]).unwrap_err();
        assert!(matches!(error, Error::Callable(CallableError::RegisterTombstoneActive { .. })), "{error}");
        let refused = worker.run(|orch| Ok(orch.submit_sub(&handle, TaskArgs::new()).map(drop)?)).unwrap_err();
        assert!(matches!(refused, Error::Callable(CallableError::CallableHandleMutated { .. })), "{refused}");
        assert!(!leaving.is_finished(), "a task still names it");
        cell(&gate, 0).store(1, Ordering::Relaxed);
        leaving.join().unwrap().unwrap();
    });
    run.wait().unwrap();
    worker.register_fn("hold", 1, hold, &[]).expect("and can be registered again");
    worker.close().unwrap();
}

///
pub(crate) fn threads_register_the_same_callable_at_once() {
    let worker = worker(2);
    worker.init().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    match worker.register_fn("add", 1, add, &ONE) {
                        Ok(handle) => {
                            assert_eq!(on_all(&worker, &handle, 2), Ok(vec![1; 2]));
                            worker.unregister(&handle).unwrap();
                        }
                        // Another thread takes the last one away just now.
                        Err(Error::Callable(CallableError::RegisterTombstoneActive { .. })) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let handle = worker.register_fn("add", 1, add, &ONE).unwrap();
    assert_eq!(on_all(&worker, &handle, 2), Ok(vec![1; 2]));
    worker.close().unwrap();
}

/// R-6, T-41: what happened where, and no child keeps it.
pub(crate) fn a_child_that_dies_while_it_is_asked_fails_the_registration_and_the_others_forget() {
    let worker = worker(2);
    worker.init().unwrap();
    let children: Vec<i32> =
        crate::harness::children_of(rustix::process::getpid()).iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    let stopped = Pid::from_raw(children[1]).unwrap();
    kill_process(stopped, Signal::STOP).unwrap();
    std::thread::scope(|scope| {
        let registering = scope.spawn(|| worker.register_fn("add", 1, add, &ONE));
        // It cannot answer; killing it is the answer.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!registering.is_finished());
        kill_process(stopped, Signal::KILL).unwrap();
        let error = registering.join().unwrap().unwrap_err();
        let Error::Callable(CallableError::RegisterPartialFailure { failures, .. }) = &error else { panic!("{error}") };
        assert!(failures.len() == 1 && failures[0].1.contains("SIGKILL"), "{error}");
    });
    let handle = worker.register_fn("add", 1, add, &ONE).expect("the dead one is out of scope");
    assert_eq!(on_all(&worker, &handle, 1), Ok(vec![1]));
    worker.close().unwrap();
}

/// T-38
pub(crate) fn a_registration_that_races_close_ends() {
    for round in 0..20 {
        let worker = worker(2);
        worker.init().unwrap();
        std::thread::scope(|scope| {
            let registering = scope.spawn(|| {
                let mut ended = 0;
                for version in 0.. {
                    if let Err(error) = worker.register_fn("add", version, add, &ONE) {
                        let closing = matches!(
                            error,
                            Error::Closing
                                | Error::WrongState { .. }
                                | Error::Callable(CallableError::RegisterPartialFailure { .. })
                        );
                        assert!(closing, "{error}");
                        ended = version;
                        break;
                    }
                }
                ended
            });
            std::thread::sleep(Duration::from_micros(300 * round));
            worker.close().unwrap();
            registering.join().unwrap();
        });
    }
}

/// the executing run goes on meanwhile.
pub(crate) fn a_callable_registered_inside_a_callback_is_used_there() {
    let worker: Worker = worker(2);
    let inherited = worker.register("set", |args| Ok(args.tensor::<i32>(0)?.set(0, 5)?)).unwrap();
    worker.init().unwrap();
    let x = worker.tensor::<i32>(&[1]).unwrap();
    worker
        .run(|orch| {
            orch.submit_sub(&inherited, TaskArgs::new().output(&x))?;
            let late = worker.register_fn("add", 1, add, &ONE)?;
            orch.submit_sub(&late, TaskArgs::new().inout(&x))?;
            worker.unregister(&late)?;
            Ok(())
        })
        .unwrap();
    assert_eq!(x.to_vec().unwrap(), [6]);
    worker.close().unwrap();
}

//! Handles, names, and what is given back.

use laneway_linux::{CallableError, Error, SubArgs, TaskArgs};

use crate::late::{add, on_all, worker};

const ONE: [u8; 4] = 1_i32.to_le_bytes();

///
pub(crate) fn handles_are_counted_and_the_last_one_takes_the_callable_away() {
    let worker = worker(2);
    worker.init().unwrap();
    let first = worker.register_fn("add", 1, add, &ONE).unwrap();
    let second = worker.register_fn("add", 1, add, &ONE).unwrap();
    assert!(first != second && first.digest() == second.digest());
    worker.unregister(&first).unwrap();
    assert!(on_all(&worker, &first, 1).is_err());
    assert_eq!(on_all(&worker, &second, 2), Ok(vec![1; 2]));
    worker.unregister(&second).unwrap();
    assert!(on_all(&worker, &second, 1).is_err());
    for _ in 0..100 {
        let again = worker.register_fn("add", 1, add, &ONE).unwrap();
        worker.unregister(&again).unwrap();
    }
    let third = worker.register_fn("add", 1, add, &ONE).unwrap();
    assert_eq!(on_all(&worker, &third, 2), Ok(vec![1; 2]));
    worker.close().unwrap();
}

///
pub(crate) fn a_dead_or_foreign_handle_is_refused_everywhere() {
    let (one, two) = (worker(1), worker(1));
    let (foreign, dead) =
        (two.register_fn("add", 1, add, &ONE).unwrap(), one.register_fn("add", 1, add, &ONE).unwrap());
    one.unregister(&dead).unwrap();
    let mutated = |error: Error| matches!(error, Error::Callable(CallableError::CallableHandleMutated { .. }));
    assert!(mutated(one.unregister(&dead).unwrap_err()), "twice, before init");
    one.init().unwrap();
    two.init().unwrap();
    for handle in [&foreign, &dead] {
        assert!(mutated(one.unregister(handle).unwrap_err()));
        assert!(mutated(on_all(&one, handle, 1).unwrap_err()));
    }
    assert_eq!(on_all(&two, &foreign, 1), Ok(vec![1]));
    one.close().unwrap();
    two.close().unwrap();
}

///
pub(crate) fn one_name_version_and_capture_is_given_to_one_function() {
    fn other(_: &SubArgs<'_>, _: &[u8]) -> Result<(), laneway_linux::BoxError> {
        Err("another function".into())
    }
    let worker = worker(1);
    let early = worker.register_fn("add", 1, add, &ONE).unwrap();
    let taken = |error: Error| matches!(error, Error::Callable(CallableError::CallableNameTaken { .. }));
    assert!(taken(worker.register_fn("add", 1, other, &ONE).unwrap_err()), "before init");
    worker.init().unwrap();
    assert!(taken(worker.register_fn("add", 1, other, &ONE).unwrap_err()));
    worker.register_fn("add", 2, other, &ONE).expect("another version");
    worker.register_fn("add", 1, other, b"more").expect("another capture");
    worker.unregister(&early).unwrap();
    worker.register_fn("add", 1, other, &ONE).expect("the name is free again");
    worker.close().unwrap();
}

///
pub(crate) fn a_callable_that_no_child_runs_is_refused() {
    let l4 = worker(0);
    l4.add_worker(&worker(1)).unwrap();
    l4.init().unwrap();
    let error = l4.register_fn("add", 1, add, &ONE).unwrap_err();
    assert!(matches!(error, Error::Callable(CallableError::CallableKindUnsupported { .. })), "{error}");
    l4.close().unwrap();
}

///
pub(crate) fn the_staged_bytes_are_given_back_whatever_happens() {
    let worker = worker(1);
    worker.init().unwrap();
    // Each fills more than half of the buffer region.
    let big = vec![1; 600 << 10];
    for version in 0..5 {
        let handle = worker.register_fn("big", version, add, &big).unwrap();
        worker.unregister(&handle).unwrap();
        // One that does not fit is an error, and leaves the name free.
        let error = worker.register_fn("huge", version, add, &vec![0; 2 << 20]).unwrap_err();
        assert!(matches!(error, Error::BuffersFull { .. }), "{error}");
    }
    worker.tensor::<u8>(&[1 << 20]).expect("everything is free");
    worker
        .run(|orch| Ok(orch.submit_sub(&worker.register_fn("add", 1, add, &ONE)?, TaskArgs::new()).map(drop)?))
        .unwrap_err();
    worker.close().unwrap();
}

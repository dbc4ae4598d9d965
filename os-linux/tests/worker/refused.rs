//! What is refused, with a sentence, and leaves the worker as it was.

use laneway_linux::{AddressSpace, CallConfig, CallableError, ChipTensor, Dtype, Error, TaskArgs};

use crate::support::{Bench, nothing};

/// Runs one submit that must be refused; its text.
fn refused(bench: &Bench, args: &TaskArgs) -> String {
    let text = bench
        .worker
        .run(|orch| {
            let error = orch.submit_sub(&bench.add, args).expect_err("refused");
            Ok(error.to_string())
        })
        .expect("a refusal does not fail the run");
    // The next run is unaffected.
    let x = bench.tensor(1);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1]);
    text
}

pub(crate) fn a_worker_without_children_is_refused() {
    let worker = crate::harness::builder!().build().unwrap();
    assert_eq!(worker.init(), Err(Error::NoChildren));
    worker.close().unwrap();
}

/// W-7, T-5, T-23, and the checks of the submit
pub(crate) fn bad_arguments_are_refused_before_anything_is_submitted() {
    let bench = Bench::new(1);
    let x = bench.tensor(8);
    let half = x.as_arg().slice(0, 0, 4, 1).unwrap();
    let mut args = TaskArgs::new();

    args.scalar(1).input(&x);
    assert!(refused(&bench, &args).contains("after"), "a tensor after a scalar");

    args.clear();
    for _ in 0..257 {
        args.no_dep(&x);
    }
    let text = refused(&bench, &args);
    assert!(text.contains("257") && text.contains("256"), "both numbers: {text}");

    args.clear();
    for _ in 0..129 {
        args.scalar(0);
    }
    let text = refused(&bench, &args);
    assert!(text.contains("129") && text.contains("128"), "both numbers: {text}");

    for order in [[&x.as_arg(), &half], [&half, &x.as_arg()]] {
        args.clear();
        args.output(*order[0]).input(*order[1]);
        let text = refused(&bench, &args);
        assert!(text.contains("overlap"), "one task reads what it writes: {text}");
    }
    let config = CallConfig { aicpu_thread_num: 1, ..CallConfig::default() };
    let error = bench.worker.run_with(|_, _, _| Ok(()), &TaskArgs::new(), &config).unwrap_err();
    assert!(error.to_string().contains("aicpu_thread_num"), "{error}");
}

/// E-38
pub(crate) fn a_plain_heap_pointer_is_refused() {
    let bench = Bench::new(1);
    let heap = vec![0_i32; 64];
    let address = heap.as_ptr() as u64;
    let tensor = ChipTensor::contiguous(address, 256, Dtype::I32, &[64], AddressSpace::Host).unwrap();
    let text = refused(&bench, TaskArgs::new().inout(tensor).scalar(1));
    assert!(text.contains(&format!("{address:#x}")), "names the address: {text}");
}

/// A view of other elements than the tensor has is refused in the child, and the text says of which argument.
pub(crate) fn a_view_of_another_element_type_names_the_argument() {
    let bench = Bench::new(1);
    let x = bench.worker.tensor::<f32>(&[4]).unwrap();
    let error =
        bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap_err();
    assert!(error.to_string().contains("tensor argument 0: its elements are f32, and i32 was asked for"), "{error}");
}

///
pub(crate) fn a_handle_of_another_worker_is_refused() {
    let other = crate::harness::builder!().subs(1).build().unwrap();
    let foreign = other.register("add", nothing).unwrap();
    let bench = Bench::new(1);
    let error = bench.worker.run(|orch| Ok(orch.submit_sub(&foreign, TaskArgs::new())?)).unwrap_err();
    assert!(matches!(error, Error::Callable(CallableError::CallableHandleMutated { .. })), "{error:?}");
    assert_ne!(foreign.digest(), bench.copy.digest());
}

///
pub(crate) fn a_closure_registered_after_init_is_refused() {
    let bench = Bench::new(1);
    let error = bench.worker.register("late", nothing).unwrap_err();
    assert!(matches!(&error, Error::RegisteredTooLate { state: "READY", .. }), "{error:?}");
    assert!(error.to_string().contains("late"), "{error}");
}

/// P-7
pub(crate) fn calls_in_the_wrong_state_name_the_state() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let state_of = |error: Error| match error {
        Error::WrongState { state, .. } => state,
        other => panic!("{other:?}"),
    };
    let early = worker.run(|_| Ok(())).unwrap_err();
    assert_eq!(early.to_string(), "run is not possible while the worker is NEW: call init first");
    assert_eq!(format!("{early:?}"), early.to_string(), "what `main` prints of it is the sentence");
    assert_eq!(state_of(early), "NEW");
    worker.init().unwrap();
    assert_eq!(state_of(worker.init().unwrap_err()), "READY");
    worker.close().unwrap();
    worker.close().unwrap();
    assert_eq!(state_of(worker.run(|_| Ok(())).unwrap_err()), "CLOSED");
    assert_eq!(state_of(worker.init().unwrap_err()), "CLOSED");
}

pub(crate) fn settings_out_of_range_are_refused() {
    let error = crate::harness::builder!().subs(1 << 20).build().unwrap_err();
    assert!(matches!(error, Error::Setting { setting: "subs", .. }), "{error:?}");
    let error = crate::harness::builder!().heap_ring_bytes(1).build().unwrap_err();
    assert!(matches!(error, Error::Setting { setting: "heap_ring_bytes", .. }), "{error:?}");
    let nowhere = crate::harness::builder!().subs(1).capacities(|engine| engine.edges = 0).build().unwrap();
    let _ = nowhere.register("nothing", nothing).unwrap();
    let error = nowhere.init().unwrap_err();
    assert!(error.to_string().contains("edges"), "names the capacity: {error}");
    let bench = Bench::new(1);
    for shape in [&[][..], &[0], &[1; 6], &[u32::MAX; 3]] {
        let error = bench.worker.tensor::<i32>(shape).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{shape:?}: {error:?}");
    }
    let error = bench.worker.tensor::<i32>(&[u32::MAX, 4]).unwrap_err();
    assert!(matches!(error, Error::BuffersFull { .. }), "{error:?}");
}

//! What outlives a worker: handles and tensors that somebody keeps.

use laneway_linux::{Error, FailureKind, TaskArgs};

use crate::harness::children;
use crate::support::{Bench, Gate, descriptors, mappings};

/// P-14, E-9: a handle of a closed worker still says how its run ended, and holds nothing of the worker.
pub(crate) fn a_kept_handle_answers_after_close_and_holds_nothing() {
    let before = descriptors();
    let bench = Bench::new(2);
    let x = bench.tensor(1);
    let done =
        bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop)?));
    let failed = bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.fail, TaskArgs::new().scalar(3)).map(drop)?));
    let (done, failed) = (done.unwrap(), failed.unwrap());
    done.wait().unwrap();
    let error = failed.wait().unwrap_err();
    let open =
        bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop)?));
    let open = open.unwrap();
    drop(x);
    bench.worker.close().unwrap();
    drop(bench);
    assert_eq!((descriptors(), mappings(), children()), (before, 0, vec![]));
    for _ in 0..2 {
        assert_eq!((done.wait(), open.wait_accepted()), (Ok(()), Ok(())));
        assert_eq!(open.wait_timeout(std::time::Duration::ZERO), Ok(()));
        assert_eq!(failed.wait(), Err(error.clone()));
        assert!([&done, &failed, &open].iter().all(|run| run.is_done() && run.cancel().is_ok()));
    }
}

/// E-36, P-14: of a run that close_now cut short too.
pub(crate) fn a_kept_handle_of_a_run_that_was_cut_short_says_so_after_close() {
    let bench = Bench::new(1);
    let (gate, x) = (Gate::new(&bench), bench.tensor(1));
    let run = bench.worker.submit(|orch| {
        orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()).inout(&x))?;
        Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop)?)
    });
    let run = run.unwrap();
    run.cancel().unwrap();
    gate.open();
    bench.worker.close_now().unwrap();
    drop((gate, x, bench));
    assert_eq!(mappings(), 0);
    let error = run.wait().unwrap_err();
    assert!(matches!(error, Error::RunFailed { kind: FailureKind::Cancelled, .. }), "{error:?}");
}

/// P-14, T-45: a kept tensor keeps the region that it lies in, and nothing else.
pub(crate) fn a_kept_tensor_keeps_its_region_alone() {
    let before = descriptors();
    let bench = Bench::new(1);
    let x = bench.tensor(4);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(7))?)).unwrap();
    bench.worker.close().unwrap();
    drop(bench);
    let kept: Vec<_> = descriptors().difference(&before).cloned().collect();
    assert!(mappings() == 1 && kept.len() == 1 && kept[0].1.contains("laneway buffers"), "{kept:?}");
    assert_eq!(x.to_vec().unwrap(), [7; 4]);
    drop(x);
    assert_eq!((descriptors(), mappings()), (before, 0));
}

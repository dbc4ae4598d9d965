//! Errors call what they are about by its name, and say what was going on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use laneway_linux::{CallableHandle, EngineError, Error, RunHandle, TaskArgs, WorkerId};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::children;
use crate::support::{Bench, Gate, nothing, until};

/// The name and the first digits of the digest, as messages show a callable.
fn shown(callable: &CallableHandle) -> String {
    format!("{} ({}…)", callable.name(), &callable.digest().to_string()[..7 + 12])
}

/// L-28
pub(crate) fn a_failed_task_names_its_callable_behind_the_text_of_the_child() {
    let bench = Bench::new(1);
    let error = bench.worker.run(|orch| Ok(orch.submit_sub(&bench.fail, TaskArgs::new().scalar(42))?)).unwrap_err();
    let Error::RunFailed { message, .. } = &error else { panic!("{error}") };
    assert_eq!(message, &format!("sub 0: code 1: element 42 is wrong; in {}", shown(&bench.fail)));
    bench.worker.close().unwrap();
}

/// L-28, R-5: a callable that came after init, a name longer than a message has room for, a text that fills it.
pub(crate) fn a_failed_task_names_its_callable_however_long_name_and_text_are() {
    let bench = Bench::new(1);
    let name = "ä".repeat(300);
    let fail = bench.worker.register_fn(&name, 1, |_, text| Err(String::from_utf8_lossy(text).into()), &[b'x'; 8000]);
    let fail = fail.unwrap();
    let error = bench.worker.run(|orch| Ok(orch.submit_sub(&fail, TaskArgs::new())?)).unwrap_err().to_string();
    let (whole, cut) = (shown(&fail), format!("{}… (", "ä".repeat(38)));
    assert!(error.ends_with(&whole.replace(&format!("{name} ("), &cut)), "{error}");
    assert!(error.contains(&format!("{}…; in ", "x".repeat(3000))), "{error}");
    bench.worker.close().unwrap();
}

/// what is refused is called by its name, and its digest does not fill the line.
pub(crate) fn a_refused_callable_is_called_by_its_name() {
    let bench = Bench::new(1);
    let named = |error: Error, handle: &CallableHandle| {
        let (text, digest) = (error.to_string(), handle.digest().to_string());
        assert!(text.contains(&shown(handle)) && !text.contains(&digest), "{text}");
    };
    let other = crate::harness::builder!().subs(1).build().unwrap();
    let foreign = other.register("foreign", nothing).unwrap();
    named(bench.worker.run(|orch| Ok(orch.submit_sub(&foreign, TaskArgs::new())?)).unwrap_err(), &foreign);
    bench.worker.unregister(&bench.add).unwrap();
    named(bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new())?)).unwrap_err(), &bench.add);
    named(bench.worker.unregister(&bench.add).unwrap_err(), &bench.add);
    let orchestration = other.register_orchestration("nobody runs it", |_, _, _| Ok(())).unwrap();
    named(other.init().unwrap_err(), &orchestration);
    bench.worker.close().unwrap();
}

/// E-39: the id is wrong, whatever the callable is.
pub(crate) fn an_unknown_worker_id_is_named_before_the_kind_of_the_callable() {
    let bench = Bench::new(1);
    let worker = WorkerId::new(7).unwrap();
    let unknown = Error::Engine(EngineError::UnknownWorker { worker });
    let to_one = bench.worker.run(|orch| Ok(orch.submit_next_level(&bench.add, worker, TaskArgs::new())?));
    assert_eq!(to_one.unwrap_err(), unknown);
    let (a, b) = (TaskArgs::new(), TaskArgs::new());
    let ids = [worker, WorkerId::new(8).unwrap()];
    let to_many =
        bench.worker.run(|orch| Ok(orch.submit_next_level_group(&bench.add, &ids, &[&a, &b], None).map(drop)?));
    assert_eq!(to_many.unwrap_err(), unknown);
    bench.worker.close().unwrap();
}

/// A run whose only child is inside `hold`, until the gate is opened.
fn held(bench: &Bench, gate: &Gate, deadline: Option<Duration>) -> RunHandle {
    let started = Gate::new(bench);
    let submitted = bench.worker.submit(|orch| {
        orch.submit_sub(&bench.add, TaskArgs::new().no_dep(started.arg()).scalar(1))?;
        orch.set_deadline(deadline);
        orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
        Ok(())
    });
    until("the child is at work", || started.cell().load(Ordering::Relaxed) == 1);
    let run = submitted.unwrap();
    let hold = shown(&bench.hold);
    until("the second task has begun", || {
        let said = bench.worker.health().children[0].to_string();
        said.contains("running for ") && said.contains(&hold)
    });
    run
}

/// L-25, P-20
pub(crate) fn a_death_says_that_the_task_ran_and_which_callable_it_was() {
    let bench = Bench::new(1);
    let (pid, gate) = (bench.child(), Gate::new(&bench));
    let run = held(&bench, &gate, None);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let text = run.wait().unwrap_err().to_string();
    let held = format!(" of {}, running by the child's own word, ", shown(&bench.hold));
    assert!(text.contains(&held) && !text.contains("not yet taken in"), "{text}");
    assert!(text.ends_with("close this worker and build a new one"), "{text}");
    bench.worker.close().unwrap();
}

/// L-25: a child that could not take its task in does not seem to have run it.
pub(crate) fn a_death_before_the_task_began_does_not_say_that_it_ran() {
    let bench = Bench::new(1);
    let pid = Pid::from_raw(bench.child()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    until("the child is stopped", || {
        std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap().contains(") T ")
    });
    let run =
        bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.fail, TaskArgs::new().scalar(1)).map(drop)?)).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let text = run.wait().unwrap_err().to_string();
    assert!(text.contains(&format!(" of {}, published, not yet taken in, ", shown(&bench.fail))), "{text}");
    assert_eq!(children(), []);
    bench.worker.close().unwrap();
}

/// E-43
pub(crate) fn a_missed_deadline_says_that_the_task_ran() {
    let bench = Bench::new(1);
    let gate = Gate::new(&bench);
    let run = held(&bench, &gate, Some(Duration::from_millis(500)));
    let text = run.wait().unwrap_err().to_string();
    assert!(text.contains("ago, it is running by the child's own word; the child is given up as lost"), "{text}");
    assert!(text.contains(&format!("; it was at {}; ", shown(&bench.hold))), "{text}");
    assert_eq!(text.matches("dispatch ").count(), 1, "{text}");
    bench.worker.close().unwrap();
}

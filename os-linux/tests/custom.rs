//! Children of a user's own kind, with nothing but the public interface.

mod harness;

use std::collections::HashMap;
use std::fmt::Write;

use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::{
    BoxError, CustomChild, CustomStart, Error, Failure, Leaf, Report, Role, StartCause, Task, TaskArgs, Worker,
    WorkerId,
};

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            a_child_of_a_users_own_kind_runs_tasks,
            its_errors_and_panics_fail_the_task_and_it_lives_on,
            its_start_can_fail_and_names_its_kind,
            its_kind_may_be_any_text,
        ],
        &[],
    )
}

/// Checks a claim about the scalars of a task: the bytes of a callable are `sum = <number>` or `count = <number>`.
struct Checker {
    claims: HashMap<Digest, (bool, u64)>,
}

impl Checker {
    fn start(given: CustomStart<'_>) -> Result<Self, BoxError> {
        let mut claims = HashMap::new();
        for (digest, bytes) in given.callables {
            let text = std::str::from_utf8(bytes)?;
            let (what, number) = text.split_once(" = ").ok_or("a claim is `<what> = <number>`")?;
            claims.insert(*digest, (what == "sum", number.parse()?));
        }
        Ok(Self { claims })
    }
}

impl Leaf for Checker {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.claims.contains_key(digest)
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        let (sum, claimed) = self.claims[task.digest];
        let scalars = task.args.scalars();
        let found = if sum { scalars.iter().sum() } else { scalars.len() as u64 };
        assert!(found < 1000, "far too much");
        if found == claimed {
            return Ok(());
        }
        let _ = write!(report, "{found} is not {claimed}");
        Err(Failure::MESSAGE)
    }

    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}

fn worker() -> (Worker, WorkerId) {
    let worker = harness::builder!().build().unwrap();
    let id = worker.add_child(CustomChild::new("checker", Checker::start)).unwrap();
    (worker, id)
}

/// P-28
fn a_child_of_a_users_own_kind_runs_tasks() {
    let (worker, id) = worker();
    let sum = worker.register_custom("sum", 1, b"sum = 6").unwrap();
    let count = worker.register_custom("count", 1, b"count = 3").unwrap();
    assert_eq!((sum.role(), sum.digest() == count.digest()), (Role::Custom, false));
    worker.init().unwrap();
    assert_eq!(worker.health().children[0].kind, "checker");
    for callable in [&sum, &count] {
        let args = TaskArgs::new().scalar(1).scalar(2).scalar(3).clone();
        worker.run(|orch| Ok(orch.submit_next_level(callable, id, &args).map(drop)?)).unwrap();
    }
    let to_sub = worker.run(|orch| Ok(orch.submit_sub(&sum, TaskArgs::new()).map(drop)?));
    assert!(matches!(to_sub, Err(Error::CallableRole { .. })));
    worker.close().unwrap();
}

/// P-28, P-19
fn its_errors_and_panics_fail_the_task_and_it_lives_on() {
    let (worker, id) = worker();
    let sum = worker.register_custom("sum", 1, b"sum = 6").unwrap();
    worker.init().unwrap();
    let run =
        |scalar| worker.run(|orch| Ok(orch.submit_next_level(&sum, id, TaskArgs::new().scalar(scalar)).map(drop)?));
    assert!(run(5).unwrap_err().to_string().contains("5 is not 6"));
    assert!(run(5000).unwrap_err().to_string().contains("panic: far too much"));
    run(6).unwrap();
    worker.close().unwrap();
}

/// P-3, P-28
fn its_start_can_fail_and_names_its_kind() {
    let (worker, _) = worker();
    worker.register_custom("odd", 1, b"nonsense").unwrap();
    let error = worker.init().unwrap_err();
    assert!(matches!(&error, Error::ChildStart { kind: "checker", cause: StartCause::Failed(_), .. }), "{error:?}");
    assert!(error.to_string().contains("checker 0 init: a claim is"), "{error}");
}

/// P-28: the name of a kind is for people; what the kernel shows of it is up to the kernel.
fn its_kind_may_be_any_text() {
    let long: &str = "é".repeat(40_000).leak();
    for kind in ["", "a\0b", "a\nb", long] {
        let worker = harness::builder!().build().unwrap();
        let id = worker.add_child(CustomChild::new(kind, Checker::start)).unwrap();
        let sum = worker.register_custom("sum", 1, b"sum = 6").unwrap();
        worker.init().unwrap();
        worker.run(|orch| Ok(orch.submit_next_level(&sum, id, TaskArgs::new().scalar(6)).map(drop)?)).unwrap();
        worker.close().unwrap();
    }
}

//! A child of one's own kind: it keeps a state between tasks, which no SUB child can be relied on to do.

// ANCHOR: leaf
use std::collections::HashMap;
use std::fmt::Write;

use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::{CustomChild, CustomStart, Error, Failure, Leaf, Report, Task, TaskArgs, Worker};

/// A bank account in a process of its own. A callable is a sign: `+` or `-`.
struct Account {
    signs: HashMap<Digest, i64>,
    balance: i64,
}

impl Account {
    /// Called once, in the child.
    fn open(start: CustomStart<'_>) -> Result<Self, String> {
        let sign = |bytes: &[u8]| match bytes {
            b"+" => Ok(1),
            b"-" => Ok(-1),
            other => Err(format!("{other:?} is no sign")),
        };
        let signs = start.callables.iter().map(|(digest, bytes)| Ok((*digest, sign(bytes)?)));
        Ok(Self { signs: signs.collect::<Result<_, String>>()?, balance: 0 })
    }
}

impl Leaf for Account {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.signs.contains_key(digest)
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        let amount: u64 = task.args.scalars().iter().sum();
        let after = self.balance + self.signs[task.digest] * amount as i64;
        if after < 0 {
            let _ = write!(report, "{amount} cannot be paid out of {}", self.balance);
            return Err(Failure::MESSAGE);
        }
        self.balance = after;
        Ok(())
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        let _ = write!(report, "an account has no {:?}", request.command());
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}
// ANCHOR_END: leaf

// ANCHOR: use
fn main() -> Result<(), Error> {
    let worker = Worker::builder().build()?;
    let account = worker.add_child(CustomChild::new("account", Account::open))?;
    let pay_in = worker.register_custom("pay in", 1, b"+")?;
    let pay_out = worker.register_custom("pay out", 1, b"-")?;
    worker.init()?;
    let run = |what, amount| {
        worker.run(|orch| Ok(orch.submit_next_level(what, account, TaskArgs::new().scalar(amount)).map(drop)?))
    };
    run(&pay_in, 100)?;
    run(&pay_out, 70)?;
    println!("{}", run(&pay_out, 70).unwrap_err());
    worker.close()
}
// ANCHOR_END: use

//! A task that hangs: seen from outside, and ended by a deadline.

// ANCHOR: look
use std::time::Duration;

use laneway_linux::{Error, TaskArgs, Worker};

fn main() -> Result<(), Error> {
    let worker = Worker::builder().subs(2).build()?;
    let hang = worker.register("hang", |_| {
        loop {
            std::thread::park();
        }
    })?;
    worker.init()?;

    let run = worker.submit(|orch| {
        // What is submitted from here on has a second from its dispatch to its end; its child is killed past that.
        orch.set_deadline(Some(Duration::from_secs(1)));
        Ok(orch.submit_sub(&hang, TaskArgs::new()).map(drop)?)
    })?;
    assert!(matches!(run.wait_timeout(Duration::from_millis(50)), Err(Error::WaitTimedOut { .. })));
    // From any thread, at any time: what each child has been doing, and for how long.
    for child in worker.health().stalled(Duration::from_millis(40)) {
        println!("stalled  {child}");
    }
    println!("ended    {}", run.wait().unwrap_err());
    worker.close()
}
// ANCHOR_END: look

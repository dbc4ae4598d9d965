//! Children as threads: the same worker without a fork. What a callable changes of what it captured is seen here.

// ANCHOR: all
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use laneway_linux::{ChildMode, Error, TaskArgs, Worker};

fn main() -> Result<(), Error> {
    let called = Arc::new(AtomicU32::new(0));
    let seen = called.clone();

    let worker = Worker::builder().subs(4).child_mode(ChildMode::Thread).build()?;
    let count = worker.register("count", move |_| {
        called.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })?;
    worker.init()?;
    worker.run(|orch| {
        for _ in 0..10 {
            orch.submit_sub(&count, TaskArgs::new())?;
        }
        Ok(())
    })?;
    println!("called {} times", seen.load(Ordering::Relaxed));
    worker.close()
}
// ANCHOR_END: all

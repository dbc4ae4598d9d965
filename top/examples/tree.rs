//! A tree to look at: a level-4 worker over a level-3 one with two SUB children, at work for a minute or for so many seconds.

use std::time::{Duration, Instant};

use laneway_linux::{Error, TaskArgs, Worker};

fn main() -> Result<(), Error> {
    let seconds = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let inner = Worker::builder().level(3).subs(2).build()?;
    let wait = inner.register("wait", |args| {
        std::thread::sleep(Duration::from_millis(args.scalar(0)?));
        Ok(())
    })?;
    let outer = Worker::builder().level(4).build()?;
    let some = outer.register_orchestration("wait in turn", move |orch, _, _| {
        for millis in [1, 10, 100, 1_000] {
            orch.submit_sub(&wait, TaskArgs::new().scalar(millis))?;
        }
        Ok(())
    })?;
    let below = outer.add_worker(&inner)?;
    outer.init()?;
    println!("laneway-top {}", std::process::id());
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        outer.run(|orch| Ok(orch.submit_next_level(&some, below, TaskArgs::new()).map(drop)?))?;
    }
    outer.close()
}

//! A worker inside a host program: Ctrl-C while it starts, threads once it runs, handles instead of waiting.

// ANCHOR: all
use std::sync::OnceLock;

use laneway_linux::{Error, InitCanceller, TaskArgs, Worker};

// ANCHOR: handler
static CANCELLER: OnceLock<InitCanceller> = OnceLock::new();

/// The host's own handler of SIGINT. laneway installs none.
extern "C" fn on_interrupt(_: libc::c_int) {
    if let Some(canceller) = CANCELLER.get() {
        canceller.cancel(); // a load, a store and a write to an eventfd
    }
}
// ANCHOR_END: handler

fn main() -> Result<(), Error> {
    // ANCHOR: cancel
    let slow = Worker::builder().subs(1).build()?;
    CANCELLER.get_or_init(|| slow.init_canceller().expect("a descriptor is free"));
    // SAFETY: the handler does what a handler may do.
    unsafe { libc::signal(libc::SIGINT, on_interrupt as *const () as libc::sighandler_t) };
    // What Ctrl-C does at any moment of `init`; here it comes just before.
    // SAFETY: the handler was installed above.
    unsafe { libc::raise(libc::SIGINT) };
    println!("{}", slow.init().unwrap_err());
    // ANCHOR_END: cancel

    // ANCHOR: threads
    // First init, then threads. A worker may be used from all of them.
    let worker = Worker::builder().subs(2).build()?;
    let nothing = worker.register("nothing", |_| Ok(()))?;
    worker.init()?;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| worker.run(|orch| Ok(orch.submit_sub(&nothing, TaskArgs::new()).map(drop)?)));
        }
    });
    // For a loop that must not wait: while nobody waits for a run, a thread of the worker drives it.
    let run = worker.submit(|orch| Ok(orch.submit_sub(&nothing, TaskArgs::new()).map(drop)?))?;
    while !run.is_done() {
        std::thread::yield_now(); // the host's other work
    }
    run.wait()?; // at once: the result is there
    // ANCHOR_END: threads
    println!("5 runs from 5 threads");
    worker.close()
}
// ANCHOR_END: all

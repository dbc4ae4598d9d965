//! `laneway-top PID`: what the workers of a running process, and the workers nested below it, are doing.
//!
//! Nothing is attached to and nobody is asked: everything is read from status boards and mailboxes that the kernel shows to a
//! process of the same user. So it works on a tree that hangs, is stopped, or dies meanwhile.
#![forbid(unsafe_code)]

mod options;
mod process;
mod text;
mod tree;
mod trouble;

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use options::{Asked, Options, USAGE};
use process::Target;
use trouble::Trouble;

/// Exit status if the command line is wrong.
const WRONG_USAGE: u8 = 2;

/// From the upper left corner on, everything is wiped.
const CLEAR: &str = "\x1b[H\x1b[J";

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(Asked::Look(options)) => options,
        Ok(Asked::Help) => return end(write(USAGE)),
        Ok(Asked::Version) => return end(write(concat!("laneway-top ", env!("CARGO_PKG_VERSION"), "\n"))),
        Err(sentence) => {
            eprintln!("laneway-top: {sentence}\n\n{USAGE}");
            return ExitCode::from(WRONG_USAGE);
        }
    };
    end(show(&options))
}

fn end(result: Result<(), Trouble>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read has seen enough, as `head` has.
        Err(Trouble::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("laneway-top: {trouble}");
            ExitCode::FAILURE
        }
    }
}

/// Looks once, or until the process ends.
fn show(options: &Options) -> Result<(), Trouble> {
    let target = Target::open(options.pid)?;
    let live = io::stdout().is_terminal() && !options.json && options.watch.is_some();
    let mut first = true;
    loop {
        let tree = tree::look(&target)?;
        let text = match (options.json, options.watch) {
            (false, _) => text::table(&tree),
            (true, None) => serde_json::to_string_pretty(&tree)? + "\n",
            (true, Some(_)) => serde_json::to_string(&tree)? + "\n",
        };
        let before = match (live, first || options.json) {
            (true, _) => CLEAR,
            (false, true) => "",
            (false, false) => "\n",
        };
        write(&format!("{before}{text}"))?;
        let Some(period) = options.watch else { return Ok(()) };
        target.wait(period)?;
        first = false;
    }
}

fn write(text: &str) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Trouble::Output)
}

/// A time in nanoseconds, as JSON has it.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

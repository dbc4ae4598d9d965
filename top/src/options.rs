//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use lexopt::ValueExt;

pub(crate) const USAGE: &str = "\
usage: laneway-top [options] PID

Shows what the laneway workers in process PID are doing, and those nested below it: one line per worker and per child. It only
reads; the tree is not stopped, asked or woken.

  --watch SECONDS   look again every so many seconds (0.05 or more) until the process ends
  --json            print JSON: one object, or with --watch one object a line
  --help, --version

The exit status is 0 if a worker was shown, 1 if the process is gone, has no worker, or may not be looked at, and 2 if the command
line is wrong.
";

/// Seconds between two looks, at least and at most.
const PERIODS: std::ops::RangeInclusive<f64> = 0.05..=86_400.0;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Look(Options),
}

/// Whom to look at, and how to show it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Options {
    pub(crate) pid: i32,
    /// The time between two looks; none to look once.
    pub(crate) watch: Option<Duration>,
    pub(crate) json: bool,
}

impl Options {
    /// The error is a sentence.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Asked, String> {
        Self::read(args).map_err(|error| error.to_string())
    }

    fn read(args: impl IntoIterator<Item = OsString>) -> Result<Asked, lexopt::Error> {
        use lexopt::Arg::{Long, Short, Value};
        let mut parser = lexopt::Parser::from_args(args);
        let (mut pid, mut watch, mut json) = (None, None, false);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("json") => json = true,
                Long("watch") => {
                    let seconds: f64 = parser.value()?.parse()?;
                    if !PERIODS.contains(&seconds) {
                        let (least, most) = (PERIODS.start(), PERIODS.end());
                        return Err(format!("--watch {seconds} is not between {least} and {most} seconds").into());
                    }
                    watch = Some(Duration::from_secs_f64(seconds));
                }
                Value(value) if pid.is_none() => {
                    let number: i32 = value.parse()?;
                    if number <= 0 {
                        return Err(format!("{number} is no process id; those are positive").into());
                    }
                    pid = Some(number);
                }
                Long("help") | Short('h') => return Ok(Asked::Help),
                Long("version") | Short('V') => return Ok(Asked::Version),
                other => return Err(other.unexpected()),
            }
        }
        let pid = pid.ok_or("which process? Pass the PID of the one that called init")?;
        Ok(Asked::Look(Self { pid, watch, json }))
    }
}

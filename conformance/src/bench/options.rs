//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

use super::schedule::Pace;

/// What `--help` prints.
pub(super) const USAGE: &str = "\
Usage: laneway-conformance bench [options]

Measures in one run, in short slices that take turns: what this machine needs at least to exchange anything
between processes, what laneway needs for tasks, and (built with --features peers) what iceoryx2 needs for a
request. Prints medians by cache mode, and which targets are met.

  --seconds <n>     all slices together take about so long (60)
  --slice-ms <n>    one slice; at most 100 (20)
  --quick           a look of a few seconds, too short to judge anything
  --filter <text>   only the case of that name, or cases whose names contain it, and the floors; may be repeated
  --from <file>     measures nothing, but shows what --json printed once
  --svg <file>      also a picture of the mode that was seen most
  --json            everything that was found, for machines
  --help            this text";

/// What the user wants.
pub(super) struct Options {
    pub(super) pace: Pace,
    /// Each situation whose CPU time is measured.
    pub(super) load_time: Duration,
    /// Only these; all if there are none.
    pub(super) filters: Vec<String>,
    pub(super) json: bool,
    /// A report that is only shown.
    pub(super) from: Option<PathBuf>,
    /// Where the picture goes.
    pub(super) svg: Option<PathBuf>,
}

impl Options {
    /// `None` for `--help`; an error is a sentence for the user.
    pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, lexopt::Error> {
        let mut parser = lexopt::Parser::from_args(arguments);
        let mut options = Self {
            pace: Pace { total: Duration::from_secs(60), slice: Duration::from_millis(20) },
            load_time: Duration::from_secs(5),
            filters: Vec::new(),
            json: false,
            from: None,
            svg: None,
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Long("seconds") => options.pace.total = Duration::from_secs(parser.value()?.parse()?),
                Long("slice-ms") => {
                    let millis = parser.value()?.parse_with(|text| match text.parse() {
                        Ok(millis @ 1..=100) => Ok(millis),
                        _ => Err("a slice takes 1 to 100 milliseconds"),
                    })?;
                    options.pace.slice = Duration::from_millis(millis);
                }
                Long("quick") => {
                    options.pace = Pace { total: Duration::from_secs(2), slice: Duration::from_millis(2) };
                    options.load_time = Duration::from_millis(300);
                }
                Long("filter") => options.filters.push(parser.value()?.string()?),
                Long("json") => options.json = true,
                Long("from") => options.from = Some(parser.value()?.into()),
                Long("svg") => options.svg = Some(parser.value()?.into()),
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>, String> {
        Options::parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_slice_is_never_longer_than_the_modes_last() {
        assert_eq!(parse("--slice-ms 100").unwrap().unwrap().pace.slice, Duration::from_millis(100));
        for line in ["--slice-ms 101", "--slice-ms 0", "--seconds", "--unknown", "word"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn help_measures_nothing() {
        assert!(parse("--quick --help").unwrap().is_none());
    }
}

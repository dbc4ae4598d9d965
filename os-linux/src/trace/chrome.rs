//! Trace events as Chrome defined them, which the Perfetto UI opens.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Names;
use super::log::TraceLog;
use super::reader::Reader;
use super::timeline::Timeline;
use crate::Error;

/// Writes everything that is in the log so far to a file.
pub(super) fn write(log: &Arc<TraceLog>, path: &Path, names: Names) -> Result<(), Error> {
    let mut reader = Reader::new(log.clone());
    let mut told = Vec::new();
    // As long as others write there is more; what is there now is enough.
    reader.read(|record| told.push(record));
    let failed = |error: io::Error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        Error::system("write", format!("writing the trace {}", path.display()), errno)
    };
    let file = create(path).map_err(failed)?;
    let mut out = Output::begin(BufWriter::new(file)).map_err(failed)?;
    Timeline::new(reader.sources(), told, names).write(&mut out).map_err(failed)?;
    out.end(log.dropped()).map_err(failed)
}

/// Opens the file without waiting, as for somebody who reads a pipe; what is written then may wait.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// One trace event.
#[derive(Clone, Debug, Default)]
pub(super) struct Event<'a> {
    pub(super) name: &'a str,
    pub(super) category: &'static str,
    /// Which kind of event, by Chrome's letter.
    pub(super) phase: &'static str,
    /// Nanoseconds since the first record.
    pub(super) time: u64,
    /// Nanoseconds, of a span.
    pub(super) duration: Option<u64>,
    pub(super) pid: i32,
    pub(super) track: u64,
    /// Of a flow or a run.
    pub(super) id: Option<Id>,
    pub(super) args: Args<'a>,
}

/// What holds events together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Id {
    /// A flow, across processes.
    Flow(u64),
    /// A run of this process.
    Run(u64),
}

/// What is shown about an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Args<'a> {
    pub(super) name: Option<String>,
    pub(super) outcome: Option<&'a str>,
    pub(super) sort_index: Option<u64>,
    pub(super) pid: Option<i32>,
    pub(super) run: Option<u64>,
    pub(super) dispatch: Option<u64>,
    pub(super) member: Option<u64>,
    pub(super) members: Option<u64>,
    pub(super) value: Option<u64>,
}

/// A file of trace events.
pub(super) struct Output<W: Write> {
    out: W,
    first: bool,
}

impl<W: Write> Output<W> {
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self { out, first: true })
    }

    pub(super) fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        let out = &mut self.out;
        out.write_all(b"{\"name\":")?;
        text(out, event.name)?;
        let Event { category, phase, pid, track, .. } = event;
        write!(out, ",\"cat\":\"{category}\",\"ph\":\"{phase}\",\"ts\":")?;
        micros(out, event.time)?;
        if let Some(duration) = event.duration {
            out.write_all(b",\"dur\":")?;
            micros(out, duration)?;
        }
        write!(out, ",\"pid\":{pid},\"tid\":{track}")?;
        match event.id {
            Some(Id::Flow(id)) => write!(out, ",\"id\":{id}")?,
            Some(Id::Run(id)) => write!(out, ",\"id2\":{{\"local\":\"{id:#x}\"}}")?,
            None => {}
        }
        match *phase {
            // A flow ends in the span around it.
            "f" => out.write_all(b",\"bp\":\"e\"")?,
            // An instant is drawn on its track alone.
            "i" => out.write_all(b",\"s\":\"t\"")?,
            _ => {}
        }
        self.args(&event.args)?;
        self.out.write_all(b"}")
    }

    fn args(&mut self, args: &Args<'_>) -> io::Result<()> {
        let out = &mut self.out;
        let texts = [("name", args.name.as_deref()), ("outcome", args.outcome)];
        let numbers = [
            ("sort_index", args.sort_index),
            ("pid", args.pid.map(|pid| pid.unsigned_abs().into())),
            ("run", args.run),
            ("dispatch", args.dispatch),
            ("member", args.member),
            ("members", args.members),
            ("value", args.value),
        ];
        let mut before: &[u8] = b",\"args\":{";
        for (name, value) in texts {
            let Some(value) = value else { continue };
            out.write_all(std::mem::replace(&mut before, b","))?;
            write!(out, "\"{name}\":")?;
            text(out, value)?;
        }
        for (name, value) in numbers {
            let Some(value) = value else { continue };
            out.write_all(std::mem::replace(&mut before, b","))?;
            write!(out, "\"{name}\":{value}")?;
        }
        if before == b"," { out.write_all(b"}") } else { Ok(()) }
    }

    /// Closes the file; `dropped` records found no room in the log.
    pub(super) fn end(mut self, dropped: u64) -> io::Result<()> {
        write!(self.out, "\n],\"otherData\":{{\"writer\":\"laneway\",\"dropped\":{dropped}}}}}\n")?;
        self.out.flush()
    }
}

/// Nanoseconds as microseconds.
fn micros(out: &mut impl Write, nanos: u64) -> io::Result<()> {
    write!(out, "{}.{:03}", nanos / 1000, nanos % 1000)
}

/// A JSON string.
fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32)?,
            other => write!(out, "{other}")?,
        }
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_json_object_whatever_it_is_called() {
        let mut out = Vec::new();
        let mut output = Output::begin(&mut out).unwrap();
        let args = Args { outcome: Some("completed"), run: Some(7), ..Args::default() };
        let event =
            Event { name: "a\"b\\c\nd", category: "task", phase: "X", time: 1_234_567, pid: 3, ..Event::default() };
        output.event(&Event { duration: Some(5), args, ..event.clone() }).unwrap();
        output.event(&Event { phase: "f", id: Some(Id::Flow(9)), ..event }).unwrap();
        output.end(2).unwrap();
        let name = "\"name\":\"a\\\"b\\\\c\\u000ad\",\"cat\":\"task\"";
        let expected = [
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_owned(),
            format!(
                "{{{name},\"ph\":\"X\",\"ts\":1234.567,\"dur\":0.005,\"pid\":3,\"tid\":0,\"args\":{{\"outcome\":\"completed\",\"run\":7}}}},"
            ),
            format!("{{{name},\"ph\":\"f\",\"ts\":1234.567,\"pid\":3,\"tid\":0,\"id\":9,\"bp\":\"e\"}}"),
            "],\"otherData\":{\"writer\":\"laneway\",\"dropped\":2}}".to_owned(),
        ];
        assert_eq!(String::from_utf8(out).unwrap().lines().collect::<Vec<_>>(), expected);
    }
}

//! The tracks of one writer: their numbers, their names, and what is drawn on them.

use std::collections::HashSet;
use std::io::{self, Write};

use super::{Flow, Timeline};
use crate::trace::chrome::{Args, Event, Id, Output};
use crate::trace::record::{Record, Side, Source};

/// The track of the submits of a driving process.
const SUBMITS: u64 = 1;

/// The first track of the frames that a child process serves. Children of its own that are threads have theirs beside them.
const OWN_FRAMES: u64 = 2;

/// The first track of the lanes of a driving process, and of the frames that a child serves which is one of its threads.
const LANES: u64 = 100;
const FRAMES: u64 = 1 << 20;

/// Tracks of each lane: two frames and the controls.
const STRIDE: u64 = 4;
pub(super) const CONTROLS: u64 = 2;

/// The shortest span that is drawn, and how long before its end a flow meets it: one nanosecond.
pub(super) const LEAST: u64 = 1;

/// Tracks of each worker of a process; there is more than one where children are threads.
const WORKER: u64 = 1 << 21;

/// The tracks of one writer.
pub(super) struct Tracks<'a, 'o, W: Write> {
    pub(super) timeline: &'a Timeline<'a>,
    pub(super) source: &'a Source,
    /// Of the worker that drives it.
    pub(super) rank: u64,
    out: &'o mut Output<W>,
    /// Tracks that have a name.
    named: HashSet<u64>,
}

impl<'a, 'o, W: Write> Tracks<'a, 'o, W> {
    /// `rank` is that of the worker which drives the writer.
    pub(super) fn new(timeline: &'a Timeline<'a>, source: &'a Source, rank: u64, out: &'o mut Output<W>) -> Self {
        Self { timeline, source, rank, out, named: HashSet::new() }
    }

    pub(super) fn span(
        &mut self,
        name: &str,
        category: &'static str,
        track: u64,
        from: u64,
        to: u64,
        args: Args<'_>,
    ) -> io::Result<()> {
        let duration = Some(to.saturating_sub(from).max(LEAST));
        self.event(Event { name, category, phase: "X", duration, track, args, ..self.at(from) })
    }

    pub(super) fn instant(&mut self, name: &str, track: u64, record: &Record) -> io::Result<()> {
        if track >= LANES && self.source.side() == Side::Parent {
            self.lane_track((record.endpoint, record.frame & 1))?;
        }
        let args = Args { value: Some(record.value).filter(|value| *value > 0), ..Args::default() };
        self.event(Event { name, category: "event", phase: "i", track, args, ..self.at(record.time) })
    }

    /// A point of the flow of a task: all of one flow share name, category and id.
    pub(super) fn flow_point(&mut self, phase: &'static str, flow: u64, track: u64, time: u64) -> io::Result<()> {
        let id = Some(Id::Flow(flow));
        self.event(Event { name: "task", category: "flow", phase, track, id, ..self.at(time) })
    }

    /// An event of this process.
    pub(super) fn at<'e>(&self, time: u64) -> Event<'e> {
        Event { time: self.timeline.since_first(time), pid: self.source.pid, ..Event::default() }
    }

    pub(super) fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        self.out.event(&event)
    }

    pub(super) fn flow(&self, record: &Record) -> Option<u64> {
        self.timeline.flows.get(&(self.source.driver(), record.endpoint, record.dispatch)).map(|flow| flow.id)
    }

    /// That of a task in the log of its child.
    pub(super) fn flow_below(&self, record: &Record) -> Option<Flow> {
        self.timeline.flows.get(&(self.source.driver(), self.source.endpoint, record.dispatch)).copied()
    }

    pub(super) fn submits(&self) -> u64 {
        self.rank * WORKER + SUBMITS
    }

    pub(super) fn lane(&self, (endpoint, part): (u16, u8)) -> u64 {
        self.rank * WORKER + LANES + u64::from(endpoint) * STRIDE + u64::from(part)
    }

    pub(super) fn frame(&self, part: u64) -> u64 {
        if self.source.pid != self.source.parent {
            return OWN_FRAMES + part;
        }
        self.rank * WORKER + FRAMES + u64::from(self.source.endpoint) * STRIDE + part
    }

    pub(super) fn frame_track(&mut self, frame: u64) -> io::Result<()> {
        let child = self.source.name();
        self.track(self.frame(frame), || format!("{child} frame {frame}"))
    }

    pub(super) fn lane_track(&mut self, at: (u16, u8)) -> io::Result<()> {
        let name = self.timeline.lanes.get(&(self.source.driver(), at.0));
        let title = || format!("lane {}, frame {}", name.map_or_else(|| at.0.to_string(), Clone::clone), at.1);
        self.track(self.lane(at), title)
    }

    /// Gives a track its name once.
    pub(super) fn track(&mut self, tid: u64, title: impl FnOnce() -> String) -> io::Result<()> {
        if !self.named.insert(tid) {
            return Ok(());
        }
        // A second worker of one process says which it is.
        let title = if self.rank == 0 { title() } else { format!("{}, worker {}", title(), self.rank + 1) };
        let args = Args { name: Some(title), ..Args::default() };
        let (name, pid) = ("thread_name", self.source.pid);
        self.event(Event { name, category: "__metadata", phase: "M", pid, track: tid, args, ..Event::default() })
    }
}

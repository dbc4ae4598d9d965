//! From records to spans: who did what for how long, on which track.
//!
//! Each process is a process of the trace. In a driving one a track shows the submits, and each task frame of each child has
//! one, from the publication of a dispatch to its end; in a child each task frame has one, with the phases of a device inside.
//! A flow leads from the submit through both to the end. Runs, which overlap, are asynchronous spans of their process.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use super::Names;
use super::chrome::{Args, Event, Id, Output};
use super::reader::Told;
use super::record::{Ending, Kind, Record, Side, Source};
use crate::sys::clock;

/// The track of the submits of a driving process.
const SUBMITS: u64 = 1;

/// The first track of the frames that a child process serves. Children of its own that are threads have theirs beside them.
const OWN_FRAMES: u64 = 2;

/// The first track of the lanes of a driving process, and of the frames that a child serves which is one of its threads.
const LANES: u64 = 100;
const FRAMES: u64 = 1 << 20;

/// Tracks of each lane: two frames and the controls.
const STRIDE: u64 = 4;
const CONTROLS: u64 = 2;

/// The shortest span that is drawn, and how long before its end a flow meets it: one nanosecond.
const LEAST: u64 = 1;

/// Tracks of each worker of a process; there is more than one where children are threads.
const WORKER: u64 = 1 << 21;

/// A driving worker: its process, and its number there.
type Driver = (i32, u32);

/// A dispatch, across processes: who drives it, on which endpoint, which one.
type Key = (Driver, u16, u64);

/// All records of all writers.
pub(super) struct Timeline<'a> {
    sources: &'a [Source],
    /// By source.
    records: Vec<Vec<Record>>,
    names: Names,
    /// What the lane of an endpoint is called.
    lanes: HashMap<(Driver, u16), String>,
    /// The flow of each dispatch that was published.
    flows: HashMap<Key, Flow>,
    /// When a child was found to have ended.
    exits: HashMap<(Driver, u16), u64>,
    /// Which of the driving workers of its process each is.
    ranks: HashMap<Driver, u64>,
    first: u64,
    last: u64,
}

/// Something that has begun.
#[derive(Clone, Copy)]
struct Begun {
    record: Record,
    /// A part of it that has begun.
    part: Option<(&'static str, u64)>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(sources: &'a [Source], told: Vec<Told>, mut names: Names) -> Self {
        let mut records = vec![Vec::new(); sources.len()];
        let (mut flows, mut exits) = (HashMap::new(), HashMap::new());
        let (mut first, mut last) = (u64::MAX, 0);
        // A time that has not come yet is nonsense.
        let now = clock::now().as_nanos();
        for Told { source, record } in told {
            let from = &sources[source as usize];
            match (record.kind(), from.side()) {
                (None, _) => continue,
                _ if record.time > now || record.value_as_time() > now - record.time => continue,
                (Some(Kind::Name), _) => drop(names.entry(record.digest).or_insert_with(|| record.text())),
                (Some(Kind::Dispatched), Side::Parent) => {
                    let id = flows.len() as u64 + 1;
                    flows.insert((from.driver(), record.endpoint, record.dispatch), Flow { id, from: record.time });
                }
                (Some(Kind::ChildExited), Side::Parent) => {
                    exits.insert((from.driver(), record.endpoint), record.time);
                }
                _ => {}
            }
            (first, last) = (record.time.min(first), (record.time + record.value_as_time()).max(last));
            records[source as usize].push(record);
        }
        let children = sources.iter().filter(|source| source.side() == Side::Child);
        let lanes = children.map(|child| ((child.driver(), child.endpoint), child.name())).collect();
        let ranks = ranks(sources);
        Self { sources, records, names, lanes, flows, exits, ranks, first, last }
    }

    pub(super) fn write<W: Write>(&self, out: &mut Output<W>) -> io::Result<()> {
        self.write_processes(out)?;
        for (source, records) in self.sources.iter().zip(&self.records) {
            let rank = self.ranks.get(&source.driver()).copied().unwrap_or_default();
            let mut track = Track { timeline: self, source, rank, out, tracks: HashMap::new() };
            match source.side() {
                Side::Parent => track.write_parent(records)?,
                Side::Child => track.write_child(records)?,
            }
        }
        Ok(())
    }

    fn write_processes<W: Write>(&self, out: &mut Output<W>) -> io::Result<()> {
        let mut known: HashMap<i32, (u32, Vec<String>)> = HashMap::new();
        for source in self.sources {
            let (level, roles) = known.entry(source.pid).or_default();
            *level = source.level.max(*level);
            match source.side() {
                Side::Child => roles.insert(0, source.name()),
                Side::Parent => roles.push(format!("level {} worker", source.level)),
            }
        }
        for (pid, (level, roles)) in known {
            let title = format!("{} (process {pid})", roles.join(", "));
            let name = Args { name: Some(title), ..Args::default() };
            let sort = Args { sort_index: Some(u64::from(u32::MAX - level)), ..Args::default() };
            for (name, args) in [("process_name", name), ("process_sort_index", sort)] {
                out.event(&Event { name, category: "__metadata", phase: "M", pid, args, ..Event::default() })?;
            }
        }
        Ok(())
    }

    /// Nanoseconds since the first record.
    fn since_first(&self, time: u64) -> u64 {
        time.saturating_sub(self.first)
    }

    fn name(&self, digest: u64) -> String {
        self.names.get(&digest).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("{digest:016x}"))
    }
}

/// A dispatch that was published.
#[derive(Clone, Copy)]
struct Flow {
    id: u64,
    /// When.
    from: u64,
}

/// The tracks of one writer.
struct Track<'a, 'o, W: Write> {
    timeline: &'a Timeline<'a>,
    source: &'a Source,
    /// Of the worker that drives it.
    rank: u64,
    out: &'o mut Output<W>,
    /// Tracks that have a name.
    tracks: HashMap<u64, ()>,
}

impl<W: Write> Track<'_, '_, W> {
    fn write_parent(&mut self, records: &[Record]) -> io::Result<()> {
        let mut submits: HashMap<(u32, u32), Record> = HashMap::new();
        let mut lanes: HashMap<(u16, u8), Begun> = HashMap::new();
        let mut controls: HashMap<u16, Record> = HashMap::new();
        let mut runs: HashMap<u64, &'static str> = HashMap::new();
        for record in records {
            let at = (record.endpoint, record.frame & 1);
            let Some(kind) = record.kind() else { continue };
            match kind {
                Kind::Submitted => {
                    submits.insert((record.slot, record.serial), *record);
                    let name = format!("submit {}", self.timeline.name(record.digest));
                    let args = Args { run: Some(record.run), members: Some(record.extra), ..Args::default() };
                    self.track(self.submits(), || "submits".to_owned())?;
                    self.span(&name, "submit", self.submits(), record.time, record.time + record.value, args)?;
                }
                Kind::Dispatched => {
                    let submit = submits.get(&(record.slot, record.serial));
                    if let (Some(submit), Some(flow)) = (submit, self.flow(record)) {
                        self.flow_point("s", flow, self.submits(), submit.time)?;
                    }
                    let part = (record.detail == 1).then_some(("staged", record.time));
                    lanes.insert(at, Begun { record: *record, part });
                }
                Kind::Activated => self.part(lanes.get_mut(&at), record, self.lane(at), None)?,
                Kind::Completed => {
                    if let Some(begun) = lanes.remove(&at) {
                        self.dispatch(at, begun, record.time, Ending::of(record.detail))?;
                    }
                }
                Kind::Staged => self.instant("staged", self.lane(at), record)?,
                Kind::Accepted => self.instant("accepted", self.lane(at), record)?,
                Kind::ChildStarted => self.instant("child started", self.lane(at), record)?,
                Kind::ChildReady => self.instant("child ready", self.lane(at), record)?,
                Kind::ChildExited => self.instant("child ended", self.lane(at), record)?,
                Kind::ChildPoisoned => self.instant("child unusable", self.lane(at), record)?,
                Kind::ControlSent => drop(controls.insert(record.endpoint, *record)),
                Kind::ControlEnded => {
                    if let Some(sent) = controls.remove(&record.endpoint) {
                        let track = self.lane((record.endpoint, CONTROLS as u8));
                        self.control(&sent, record, track)?;
                    }
                }
                Kind::RunBegun => {
                    self.run("b", &format!("run {}", record.run), record.run, record.time)?;
                    self.run("b", "building", record.run, record.time)?;
                    runs.insert(record.run, "building");
                }
                Kind::RunClosed => self.run_part(&mut runs, record, "waiting for tasks")?,
                Kind::RunExecuting => self.run("n", "executing", record.run, record.time)?,
                Kind::RunEnded => {
                    if let Some(part) = runs.remove(&record.run) {
                        self.run("e", part, record.run, record.time)?;
                        self.run("e", &format!("run {}", record.run), record.run, record.time)?;
                    }
                }
                _ => {}
            }
        }
        let last = self.timeline.last;
        for (at, begun) in lanes {
            self.dispatch(at, begun, last, "unfinished")?;
        }
        for (run, part) in runs {
            self.run("e", part, run, last)?;
            self.run("e", &format!("run {run}"), run, last)?;
        }
        Ok(())
    }

    fn write_child(&mut self, records: &[Record]) -> io::Result<()> {
        let mut frames: [Option<Begun>; 2] = [None, None];
        let mut control: Option<Record> = None;
        for record in records {
            let frame = (record.frame & 1) as usize;
            let track = self.frame(frame as u64);
            let Some(kind) = record.kind() else { continue };
            match kind {
                Kind::Serving => {
                    self.frame_track(frame as u64)?;
                    self.instant("serving", track, record)?;
                }
                Kind::TaskBegun => {
                    let mut record = *record;
                    // A child counts the turns of its spin and not the time that it lost to others meanwhile, so it may take
                    // itself to have begun before it was asked to.
                    if let Some(flow) = self.flow_below(&record) {
                        record.time = record.time.max(flow.from);
                    }
                    frames[frame] = Some(Begun { record, part: Some(("prepare", record.time)) })
                }
                // A preparation that is not told of is empty.
                Kind::Prepared => self.part(frames[frame].as_mut(), record, track, None)?,
                Kind::LaunchBegun => {
                    let next = Some(("launch", record.time));
                    self.part(frames[frame].as_mut(), record, track, next)?;
                }
                Kind::Launched => {
                    let next = Some(("execute", record.time));
                    self.part(frames[frame].as_mut(), record, track, next)?;
                }
                Kind::LaunchAccepted => self.instant("accepted", track, record)?,
                Kind::ExecutionEnded => self.part(frames[frame].as_mut(), record, track, None)?,
                Kind::FinaliseBegun => {
                    let next = Some(("finalise", record.time));
                    self.part(frames[frame].as_mut(), record, track, next)?;
                }
                Kind::TaskEnded => {
                    if let Some(begun) = frames[frame].take() {
                        self.task(track, begun, record.time, Ending::of(record.detail))?;
                    }
                }
                Kind::ControlBegun => control = Some(*record),
                Kind::ControlServed => {
                    if let Some(begun) = control.take() {
                        self.control(&begun, record, self.frame(CONTROLS))?;
                    }
                }
                _ => {}
            }
        }
        let exit = self.timeline.exits.get(&(self.source.driver(), self.source.endpoint));
        let end = exit.copied().unwrap_or(self.timeline.last);
        for (frame, begun) in (0..).zip(frames) {
            if let Some(begun) = begun {
                self.task(self.frame(frame), begun, end, "unfinished")?;
            }
        }
        Ok(())
    }

    /// Ends the part of something that has begun, and begins the next.
    fn part(
        &mut self,
        begun: Option<&mut Begun>,
        record: &Record,
        track: u64,
        next: Option<(&'static str, u64)>,
    ) -> io::Result<()> {
        let Some(begun) = begun.filter(|begun| begun.record.dispatch == record.dispatch) else { return Ok(()) };
        match std::mem::replace(&mut begun.part, next) {
            Some((name, since)) => self.span(name, "phase", track, since, record.time, Args::default()),
            None => Ok(()),
        }
    }

    /// One dispatch as its parent sees it.
    fn dispatch(&mut self, at: (u16, u8), begun: Begun, end: u64, outcome: &str) -> io::Result<()> {
        let (record, track) = (begun.record, self.lane(at));
        let name = self.timeline.name(record.digest);
        let pid = self.source.pid;
        self.lane_track(at)?;
        if let Some((part, since)) = begun.part {
            self.span(part, "phase", track, since, end, Args::default())?;
        }
        let args = Args {
            run: Some(record.run),
            dispatch: Some(record.dispatch),
            member: Some(record.extra),
            pid: Some(pid),
            outcome: Some(outcome),
            ..Args::default()
        };
        self.span(&name, "dispatch", track, record.time, end, args)?;
        if let Some(flow) = self.flow(&record) {
            self.flow_point("t", flow, track, record.time)?;
            self.flow_point("f", flow, track, end.saturating_sub(LEAST).max(record.time))?;
        }
        Ok(())
    }

    /// One task as its child sees it.
    fn task(&mut self, track: u64, begun: Begun, end: u64, outcome: &str) -> io::Result<()> {
        let record = begun.record;
        let name = self.timeline.name(record.digest);
        self.frame_track(u64::from(record.frame & 1))?;
        if let Some((part, since)) = begun.part
            && part != "prepare"
        {
            self.span(part, "phase", track, since, end, Args::default())?;
        }
        let (run, dispatch, pid) = (Some(record.run), Some(record.dispatch), Some(self.source.pid));
        let args = Args { run, dispatch, pid, outcome: Some(outcome), ..Args::default() };
        self.span(&name, "task", track, record.time, end, args)?;
        match self.flow_below(&record) {
            Some(flow) => self.flow_point("t", flow.id, track, record.time),
            None => Ok(()),
        }
    }

    fn control(&mut self, begun: &Record, ended: &Record, track: u64) -> io::Result<()> {
        self.track(track, || "controls".to_owned())?;
        let outcome = Some(if ended.detail == 1 { "completed" } else { "failed" });
        let args = Args { value: Some(begun.value), outcome, ..Args::default() };
        self.span("control", "control", track, begun.time, ended.time, args)
    }

    fn run_part(
        &mut self,
        runs: &mut HashMap<u64, &'static str>,
        record: &Record,
        next: &'static str,
    ) -> io::Result<()> {
        if let Some(part) = runs.get_mut(&record.run) {
            let before = std::mem::replace(part, next);
            self.run("e", before, record.run, record.time)?;
            self.run("b", next, record.run, record.time)?;
        }
        Ok(())
    }

    fn run(&mut self, phase: &'static str, name: &str, run: u64, time: u64) -> io::Result<()> {
        let args = Args { run: Some(run), ..Args::default() };
        self.event(Event {
            name,
            category: "run",
            phase,
            track: self.submits(),
            id: Some(Id::Run(self.rank << 48 | run)),
            args,
            ..self.at(time)
        })
    }

    fn span(
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

    fn instant(&mut self, name: &str, track: u64, record: &Record) -> io::Result<()> {
        if track >= LANES && self.source.side() == Side::Parent {
            self.lane_track((record.endpoint, record.frame & 1))?;
        }
        let args = Args { value: Some(record.value).filter(|value| *value > 0), ..Args::default() };
        self.event(Event { name, category: "event", phase: "i", track, args, ..self.at(record.time) })
    }

    /// A point of the flow of a task: all of one flow share name, category and id.
    fn flow_point(&mut self, phase: &'static str, flow: u64, track: u64, time: u64) -> io::Result<()> {
        let id = Some(Id::Flow(flow));
        self.event(Event { name: "task", category: "flow", phase, track, id, ..self.at(time) })
    }

    /// An event of this process.
    fn at<'e>(&self, time: u64) -> Event<'e> {
        Event { time: self.timeline.since_first(time), pid: self.source.pid, ..Event::default() }
    }

    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        self.out.event(&event)
    }

    fn flow(&self, record: &Record) -> Option<u64> {
        self.timeline.flows.get(&(self.source.driver(), record.endpoint, record.dispatch)).map(|flow| flow.id)
    }

    /// That of a task in the log of its child.
    fn flow_below(&self, record: &Record) -> Option<Flow> {
        self.timeline.flows.get(&(self.source.driver(), self.source.endpoint, record.dispatch)).copied()
    }

    fn submits(&self) -> u64 {
        self.rank * WORKER + SUBMITS
    }

    fn lane(&self, (endpoint, part): (u16, u8)) -> u64 {
        self.rank * WORKER + LANES + u64::from(endpoint) * STRIDE + u64::from(part)
    }

    fn frame(&self, part: u64) -> u64 {
        if self.source.pid != self.source.parent {
            return OWN_FRAMES + part;
        }
        self.rank * WORKER + FRAMES + u64::from(self.source.endpoint) * STRIDE + part
    }

    fn frame_track(&mut self, frame: u64) -> io::Result<()> {
        let child = self.source.name();
        self.track(self.frame(frame), || format!("{child} frame {frame}"))
    }

    fn lane_track(&mut self, at: (u16, u8)) -> io::Result<()> {
        let name = self.timeline.lanes.get(&(self.source.driver(), at.0));
        let title = || format!("lane {}, frame {}", name.map_or_else(|| at.0.to_string(), Clone::clone), at.1);
        self.track(self.lane(at), title)
    }

    /// Gives a track its name once.
    fn track(&mut self, tid: u64, title: impl FnOnce() -> String) -> io::Result<()> {
        if self.tracks.insert(tid, ()).is_some() {
            return Ok(());
        }
        // A second worker of one process says which it is.
        let title = if self.rank == 0 { title() } else { format!("{}, worker {}", title(), self.rank + 1) };
        let args = Args { name: Some(title), ..Args::default() };
        let (name, pid) = ("thread_name", self.source.pid);
        self.event(Event { name, category: "__metadata", phase: "M", pid, track: tid, args, ..Event::default() })
    }
}

/// Numbers the driving workers of each process, in the order of their making.
fn ranks(sources: &[Source]) -> HashMap<Driver, u64> {
    let drivers: BTreeSet<Driver> = sources.iter().map(Source::driver).collect();
    let mut counts: HashMap<i32, u64> = HashMap::new();
    let number = |(pid, worker)| {
        let next = counts.entry(pid).or_default();
        *next += 1;
        ((pid, worker), *next - 1)
    };
    drivers.into_iter().map(number).collect()
}

impl Source {
    /// The worker that drives: this half itself, or the parent of it.
    fn driver(&self) -> Driver {
        (self.parent, self.worker)
    }
}

impl Record {
    /// How long after its time a record was written, where that is known.
    fn value_as_time(&self) -> u64 {
        if self.kind() == Some(Kind::Submitted) { self.value } else { 0 }
    }
}

//! The records of one writer, paired into spans.

use std::collections::HashMap;
use std::io::{self, Write};

use super::tracks::{CONTROLS, LEAST, Tracks};
use crate::trace::chrome::{Args, Event, Id};
use crate::trace::record::{Ending, Kind, Record};

/// Something that has begun.
#[derive(Clone, Copy)]
struct Begun {
    record: Record,
    /// A part of it that has begun.
    part: Option<(&'static str, u64)>,
}

impl<W: Write> Tracks<'_, '_, W> {
    pub(super) fn write_parent(&mut self, records: &[Record]) -> io::Result<()> {
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

    pub(super) fn write_child(&mut self, records: &[Record]) -> io::Result<()> {
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
}

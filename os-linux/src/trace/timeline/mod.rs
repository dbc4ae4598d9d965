//! From records to spans: who did what for how long, on which track.
//!
//! Each process is a process of the trace. In a driving one a track shows the submits, and each task frame of each child has
//! one, from the publication of a dispatch to its end; in a child each task frame has one, with the phases of a device inside.
//! A flow leads from the submit through both to the end. Runs, which overlap, are asynchronous spans of their process.

mod spans;
mod tracks;

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use super::Names;
use super::chrome::{Args, Event, Output};
use super::reader::Told;
use super::record::{Kind, Record, Side, Source};
use crate::sys::clock;
use tracks::Tracks;

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
            let mut tracks = Tracks::new(self, source, rank, out);
            match source.side() {
                Side::Parent => tracks.write_parent(records)?,
                Side::Child => tracks.write_child(records)?,
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

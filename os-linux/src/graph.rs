//! The graph of a run, recorded as it is built, and written in the DOT language.

use std::collections::HashMap;
use std::fmt::{self, Write};

use laneway_core::engine::{Dependence, Engine, Submission, Target, Ticket};
use laneway_core::ids::RunId;
use laneway_core::wire::{ByteRange, Digest, TensorTag};

/// Names of callables, by digest.
pub(crate) type NameOf<'a> = dyn Fn(&Digest) -> Option<String> + 'a;

/// Where a recorded task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeState {
    Waiting,
    Running,
    Completed,
    Failed,
    /// It never ran, because what it depends on failed or its run did.
    Skipped,
}

impl NodeState {
    const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "never ran",
        }
    }

    const fn color(self) -> &'static str {
        match self {
            Self::Waiting => "white",
            Self::Running => "lightyellow",
            Self::Completed => "palegreen",
            Self::Failed => "lightcoral",
            Self::Skipped => "lightgray",
        }
    }
}

/// One task.
#[derive(Clone, Debug)]
struct Node {
    ticket: Ticket,
    digest: Digest,
    target: String,
    state: NodeState,
    /// Members that have not ended.
    left: usize,
    written: Vec<ByteRange>,
}

impl Node {
    fn writes_any(&self, ranges: &[ByteRange]) -> bool {
        ranges.iter().any(|range| self.written.iter().any(|other| other.overlaps(*range)))
    }
}

/// Why one task comes after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    ReadAfterWrite,
    WriteAfterWrite,
    WriteAfterRead,
}

impl Reason {
    const fn name(self) -> &'static str {
        match self {
            Self::ReadAfterWrite => "read after write",
            Self::WriteAfterWrite => "write after write",
            Self::WriteAfterRead => "write after read",
        }
    }
}

/// One run.
#[derive(Clone, Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    /// From, to, why.
    edges: Vec<(usize, usize, Reason)>,
}

/// The graphs of the runs whose handles live.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    runs: HashMap<RunId, Graph>,
    /// Where the task of a record is, by record and serial, for as long as it can be named.
    places: HashMap<(u32, u32), (RunId, usize)>,
}

impl Graphs {
    pub(crate) fn submitted(&mut self, run: RunId, submission: &Submission<'_>, ticket: Ticket, engine: &Engine) {
        let target = match submission.target {
            Target::NextLevel(id) => format!("worker {id}"),
            Target::Sub => "sub".to_owned(),
            Target::NextLevelGroup(ids) => {
                let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
                format!("workers {}", ids.join(", "))
            }
            Target::SubGroup => format!("{} subs", submission.members.len()),
        };
        let ranges = |does: fn(TensorTag) -> bool| -> Vec<ByteRange> {
            let arguments = submission.members.iter().flat_map(|args| args.tags().iter().zip(args.ranges()));
            arguments.filter(|(tag, _)| does(**tag)).map(|(_, range)| *range).collect()
        };
        let (read, written) = (ranges(reads), ranges(writes));
        let graph = self.runs.entry(run).or_default();
        let to = graph.nodes.len();
        let failed = engine.has_failed(ticket);
        if failed {
            // It failed as it was submitted (E-12), and the engine has let go of its edges.
            let lost = |node: &Node| engine.has_failed(node.ticket) && node.writes_any(&read);
            let from = graph.nodes.iter().enumerate().filter(|(_, node)| lost(node)).map(|(from, _)| from);
            graph.edges.extend(from.map(|from| (from, to, Reason::ReadAfterWrite)));
        }
        for (producer, why) in engine.producers(ticket) {
            let Some((_, from)) = self.places.get(&key(producer)).filter(|(of, _)| *of == run) else { continue };
            let reason = match why {
                Dependence::Data => Reason::ReadAfterWrite,
                Dependence::Order if graph.nodes[*from].writes_any(&written) => Reason::WriteAfterWrite,
                Dependence::Order => Reason::WriteAfterRead,
                // It keeps memory and orders nothing.
                Dependence::Lifetime => continue,
            };
            graph.edges.push((*from, to, reason));
        }
        graph.edges.sort_unstable_by_key(|(from, to, _)| (*to, *from));
        let (digest, left) = (*submission.digest, submission.members.len());
        let state = if failed { NodeState::Skipped } else { NodeState::Waiting };
        graph.nodes.push(Node { ticket, digest, target, state, left, written });
        self.places.insert(key(ticket), (run, to));
    }

    /// A dispatch of a task was published, or has ended.
    pub(crate) fn change(&mut self, ticket: Ticket, to: NodeState) {
        let Some((run, at)) = self.places.get(&key(ticket)) else { return };
        let Some(node) = self.runs.get_mut(run).and_then(|graph| graph.nodes.get_mut(*at)) else { return };
        if to == NodeState::Running || to == NodeState::Failed {
            node.state = if node.state == NodeState::Failed { NodeState::Failed } else { to };
        }
        if to == NodeState::Completed || to == NodeState::Failed {
            node.left = node.left.saturating_sub(1);
            if node.left == 0 && node.state != NodeState::Failed {
                node.state = NodeState::Completed;
            }
        }
    }

    /// The run has ended: what was not dispatched never will be.
    pub(crate) fn ended(&mut self, run: RunId) {
        self.places.retain(|_, (of, _)| *of != run);
        let nodes = self.runs.get_mut(&run).into_iter().flat_map(|graph| &mut graph.nodes);
        for node in nodes.filter(|node| node.state == NodeState::Waiting) {
            node.state = NodeState::Skipped;
        }
    }

    /// Nobody can ask for the graph of this run any more.
    pub(crate) fn forget(&mut self, run: RunId) {
        self.runs.remove(&run);
        self.places.retain(|_, (of, _)| *of != run);
    }

    /// The graph of a run in the DOT language.
    pub(crate) fn dot(&self, run: RunId, name_of: &NameOf<'_>) -> String {
        let empty = Graph::default();
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = self.runs.get(&run).unwrap_or(&empty).write(run, name_of, &mut text);
        text
    }
}

impl Graph {
    fn write(&self, run: RunId, name_of: &NameOf<'_>, out: &mut String) -> fmt::Result {
        writeln!(out, "digraph run_{run} {{")?;
        writeln!(out, "  node [shape=box, style=filled];")?;
        for (at, node) in self.nodes.iter().enumerate() {
            let name = name_of(&node.digest).unwrap_or_else(|| node.digest.to_string());
            let (target, state) = (&node.target, node.state);
            write!(out, "  t{at} [label=\"")?;
            escape(&name, out);
            writeln!(out, "\\n{target}\\n{}\", fillcolor={}];", state.name(), state.color())?;
        }
        for (from, to, reason) in &self.edges {
            let style = if *reason == Reason::ReadAfterWrite { "solid" } else { "dashed" };
            writeln!(out, "  t{from} -> t{to} [label=\"{}\", style={style}];", reason.name())?;
        }
        writeln!(out, "}}")
    }
}

fn key(ticket: Ticket) -> (u32, u32) {
    (ticket.slot().0, ticket.serial())
}

fn reads(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::Input | TensorTag::InOut)
}

fn writes(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::InOut | TensorTag::Output | TensorTag::OutputExisting)
}

/// Text inside a quoted DOT string.
fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_dot_wants_it() {
        let mut out = String::new();
        escape("a \"b\" \\ c\nd", &mut out);
        assert_eq!(out, r#"a \"b\" \\ c\nd"#);
    }
}

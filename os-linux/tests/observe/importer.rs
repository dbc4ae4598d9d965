//! What the importer of the Perfetto UI does with a file of Chrome trace events, as far as it drops or warns of any.
//!
//! Events are sorted by time; of spans that begin at the same time the longest comes first, else the order of the file
//! counts. A track holds a stack of open spans. A span that leaves the one around it is dropped, a point of a flow outside
//! of every span as well, and so is the end of an asynchronous span that is not the innermost of its id.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Times of the format are microseconds with three decimals.
fn nanos(event: &Value, field: &str) -> i64 {
    let value = event[field].as_f64().unwrap_or_else(|| panic!("{field} is no number in {event}"));
    let nanos = (value * 1000.0).round();
    assert!(nanos >= 0.0 && (value * 1000.0 - nanos).abs() < 1e-3, "{field} has more than three decimals in {event}");
    nanos as i64
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap_or_else(|| panic!("{field} is no text in {event}"))
}

/// Process and track; both are 32 bits wide in the importer.
fn track(event: &Value) -> (u32, u32) {
    let narrow = |field: &str| {
        let value = event[field].as_u64().and_then(|value| u32::try_from(value).ok());
        value.unwrap_or_else(|| panic!("{field} is no number of 32 bits in {event}"))
    };
    (narrow("pid"), narrow("tid"))
}

/// What is open while events are imported.
#[derive(Default)]
struct Importer<'a> {
    /// Per track: the ends of the spans that are open, outermost first.
    spans: HashMap<(u32, u32), Vec<i64>>,
    /// Per process, category and id: the names of what is open.
    runs: HashMap<(u32, &'a str, &'a str), Vec<&'a str>>,
    /// Per id: how far each flow is.
    flows: HashMap<u64, &'a str>,
}

impl<'a> Importer<'a> {
    fn import(&mut self, event: &'a Value) {
        let (at, track) = (nanos(event, "ts"), track(event));
        let open = self.spans.entry(track).or_default();
        open.retain(|end| *end > at);
        match text(event, "ph") {
            "X" => {
                let end = at + nanos(event, "dur");
                assert!(end > at, "a span without a length is an instant: {event}");
                assert!(
                    open.iter().all(|outer| end <= *outer),
                    "a span that leaves the one around it is dropped: {event}"
                );
                open.push(end);
            }
            "i" => assert!(["t", "p", "g"].contains(&text(event, "s")), "{event}"),
            phase @ ("s" | "t" | "f") => {
                assert!(!open.is_empty(), "a flow is bound to the span around it, and there is none: {event}");
                assert!(phase != "f" || event["bp"] == "e", "without bp it ends in the next span: {event}");
                let id = event["id"].as_u64().unwrap_or_else(|| panic!("{event}"));
                assert_eq!((text(event, "name"), text(event, "cat")), ("task", "flow"), "part of what binds a flow");
                let before = self.flows.insert(id, phase);
                let follows = match phase {
                    "s" => before.is_none(),
                    _ => matches!(before, Some("s" | "t")),
                };
                assert!(follows, "after {before:?}: {event}");
            }
            phase @ ("b" | "n" | "e") => {
                let id = event["id2"]["local"].as_str().unwrap_or_else(|| panic!("no id in {event}"));
                let open = self.runs.entry((track.0, text(event, "cat"), id)).or_default();
                match phase {
                    "b" => open.push(text(event, "name")),
                    "n" => assert!(!open.is_empty(), "{event}"),
                    _ => assert_eq!(open.pop(), Some(text(event, "name")), "ends what is not innermost: {event}"),
                }
            }
            other => panic!("{other} is no phase that is used here: {event}"),
        }
    }
}

/// Imports a file. Panics at the first event that the UI would drop, or not show where it belongs.
pub(crate) fn import(file: &Value) {
    assert!(["ns", "ms"].contains(&text(file, "displayTimeUnit")));
    let events = file["traceEvents"].as_array().expect("an array of events");
    let (metadata, mut timed): (Vec<&Value>, Vec<&Value>) = events.iter().partition(|event| event["ph"] == "M");
    let mut named = HashSet::new();
    for event in metadata {
        let (name, (pid, tid)) = (text(event, "name"), track(event));
        match name {
            "process_name" | "thread_name" => assert!(!event["args"]["name"].as_str().unwrap_or_default().is_empty()),
            "process_sort_index" => assert!(event["args"]["sort_index"].is_u64(), "{event}"),
            other => panic!("{other} is unknown: {event}"),
        }
        let tid = (name == "thread_name").then_some(tid);
        assert!(named.insert((name, pid, tid)), "named twice, and the last name stays: {event}");
    }
    for event in &timed {
        let (pid, tid) = track(event);
        assert!(named.contains(&("process_name", pid, None)), "a process without a name: {event}");
        assert!(named.contains(&("thread_name", pid, Some(tid))), "a track without a name: {event}");
    }
    // Both sorts are stable: the order of the file counts for what is not a span, and spans of a track change places among themselves.
    timed.sort_by_key(|event| nanos(event, "ts"));
    for together in timed.chunk_by_mut(|a, b| nanos(a, "ts") == nanos(b, "ts")) {
        let mut places: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
        for (at, event) in together.iter().enumerate().filter(|(_, event)| event["ph"] == "X") {
            places.entry(track(event)).or_default().push(at);
        }
        for places in places.into_values() {
            let mut spans: Vec<&Value> = places.iter().map(|&at| together[at]).collect();
            spans.sort_by_key(|span| Reverse(nanos(span, "dur")));
            for (at, span) in places.into_iter().zip(spans) {
                together[at] = span;
            }
        }
    }
    let mut importer = Importer::default();
    timed.into_iter().for_each(|event| importer.import(event));
    let unfinished: Vec<_> = importer.runs.iter().filter(|(_, open)| !open.is_empty()).collect();
    assert!(unfinished.is_empty(), "asynchronous spans without an end: {unfinished:?}");
}

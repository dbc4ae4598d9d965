//! The two streams of a device: who creates them, who may retire them, and when the AICore one is replaced.

use laneway_core::chip::RunEpoch;

/// What the AICore stream is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aicore {
    /// There is none: before the first launch, or after a launch whose completion is unproven.
    Absent,
    /// Nothing is on it. `stale` if code was uploaded since it was created: the next launch replaces it.
    Idle { stale: bool },
    /// A run is on it, which alone may retire it.
    Submitted { by: RunEpoch },
    /// The device is closed.
    Closed,
}

/// How often what happened to the streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamCounters {
    /// AICPU streams created: 1 after the first launch, never more.
    pub aicpu_created: u64,
    /// AICore streams created, replacements included.
    pub aicore_created: u64,
    /// AICore streams replaced because code was uploaded.
    pub aicore_replaced: u64,
    /// AICore streams destroyed because a completion was unproven.
    pub aicore_lost: u64,
}

/// The pair of streams of one device.
#[derive(Debug)]
pub(crate) struct Streams {
    aicore: Aicore,
    counters: StreamCounters,
}

impl Streams {
    /// No stream yet.
    pub(crate) const fn new() -> Self {
        let counters = StreamCounters { aicpu_created: 0, aicore_created: 0, aicore_replaced: 0, aicore_lost: 0 };
        Self { aicore: Aicore::Absent, counters }
    }

    /// How often what happened.
    pub(crate) const fn counters(&self) -> StreamCounters {
        self.counters
    }

    /// New code was uploaded: a stream that was created before must not run it.
    pub(crate) fn publish_code(&mut self) {
        if let Aicore::Idle { stale } = &mut self.aicore {
            *stale = true;
        }
    }

    /// Puts a run on the pair. `false`, and nothing happens, while another run is on it or the device is closed.
    pub(crate) fn submit(&mut self, by: RunEpoch) -> bool {
        match self.aicore {
            Aicore::Submitted { .. } | Aicore::Closed => return false,
            Aicore::Absent => {
                self.counters.aicpu_created = 1;
                self.counters.aicore_created += 1;
            }
            Aicore::Idle { stale: true } => {
                self.counters.aicore_replaced += 1;
                self.counters.aicore_created += 1;
            }
            Aicore::Idle { stale: false } => {}
        }
        self.aicore = Aicore::Submitted { by };
        true
    }

    /// Takes a run off the pair. With an unproven completion the AICore stream is destroyed, since the device may still
    /// be at work on it. `false`, and nothing happens, unless this run is the one that submitted.
    pub(crate) fn retire(&mut self, by: RunEpoch, proven: bool) -> bool {
        if self.aicore != (Aicore::Submitted { by }) {
            return false;
        }
        if proven {
            self.aicore = Aicore::Idle { stale: false };
        } else {
            self.counters.aicore_lost += 1;
            self.aicore = Aicore::Absent;
        }
        true
    }

    /// Destroys both.
    pub(crate) fn close(&mut self) {
        self.aicore = Aicore::Closed;
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::chip::RunTable;
    use laneway_core::ids::PipelineSlot;

    use super::*;

    fn epochs() -> [RunEpoch; 2] {
        let mut table = RunTable::<()>::new();
        PipelineSlot::ALL.map(|slot| table.begin_prepare(slot).unwrap().epoch())
    }

    /// T-32: neither a new pair per run, nor an old one after new code.
    #[test]
    fn the_pair_lives_as_long_as_the_device_and_new_code_replaces_the_aicore_stream_once() {
        let [run, _] = epochs();
        let mut streams = Streams::new();
        streams.publish_code();
        for _ in 0..3 {
            assert!(streams.submit(run) && streams.retire(run, true));
        }
        let first = StreamCounters { aicpu_created: 1, aicore_created: 1, ..StreamCounters::default() };
        assert_eq!(streams.counters(), first);
        streams.publish_code();
        streams.publish_code();
        for _ in 0..3 {
            assert!(streams.submit(run) && streams.retire(run, true));
        }
        assert_eq!(streams.counters(), StreamCounters { aicore_created: 2, aicore_replaced: 1, ..first });
    }

    #[test]
    fn only_the_run_that_submitted_may_retire() {
        let [first, second] = epochs();
        let mut streams = Streams::new();
        assert!(streams.submit(first) && !streams.submit(second));
        assert!(!streams.retire(second, true));
        assert!(streams.retire(first, true) && !streams.retire(first, true));
    }

    /// T-30: after an unproven completion nothing more may go onto that stream, while the AICPU stream stays.
    #[test]
    fn an_unproven_completion_destroys_the_aicore_stream_alone() {
        let [first, second] = epochs();
        let mut streams = Streams::new();
        assert!(streams.submit(first) && streams.retire(first, false));
        assert!(streams.submit(second));
        let expected = StreamCounters { aicpu_created: 1, aicore_created: 2, aicore_replaced: 0, aicore_lost: 1 };
        assert_eq!(streams.counters(), expected);
        streams.close();
        assert!(!streams.submit(first));
    }
}

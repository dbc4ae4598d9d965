//! The metrics of a worker for the registry of the `prometheus-client` crate.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{ChildMetrics, Counters, Histogram, Metrics};
use crate::Error;
use crate::live::Live;
use crate::worker::Worker;

/// Shows the metrics of a worker in each scrape: `registry.register_collector(Box::new(worker.collector()?))`. It does not
/// keep the worker alive; after close it shows what the numbers were last.
///
/// ```no_run
/// # fn scrape() -> Result<String, Box<dyn std::error::Error>> {
/// # let worker = laneway_linux::Worker::builder().subs(1).build()?;
/// worker.init()?;
/// let mut registry = prometheus_client::registry::Registry::default();
/// registry.register_collector(Box::new(worker.collector()?));
///
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry)?;
/// # Ok(text)
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MetricsCollector {
    counters: Arc<Counters>,
    live: Weak<Live>,
}

impl Worker {
    /// A collector for the registry of the `prometheus-client` crate. All its names begin with `laneway_`, and each number has
    /// the label `level`.
    ///
    /// # Errors
    /// [`Error::WrongState`] before init and after close.
    pub fn collector(&self) -> Result<MetricsCollector, Error> {
        let live = self.live("collector")?;
        Ok(MetricsCollector { counters: live.counters.clone(), live: Arc::downgrade(&live) })
    }
}

/// Upper bounds of the buckets that are shown: the powers of two from 256 ns to 68 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 8..=36;

impl Collector for MetricsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let metrics = self.live.upgrade().map_or_else(|| self.counters.snapshot(), |live| live.metrics());
        let level = [("level", metrics.level.to_string())];
        let Metrics { runs, tasks, pools, .. } = &metrics;
        let counters = [
            ("laneway_runs_begun", "Runs that got a lease", runs.begun),
            ("laneway_runs_completed", "Runs of which every task succeeded", runs.completed),
            ("laneway_runs_failed", "Runs that failed or were cancelled", runs.failed),
            ("laneway_tasks_submitted", "Tasks that were submitted, by member", tasks.submitted),
            ("laneway_tasks_completed", "Tasks that succeeded", tasks.completed),
            ("laneway_tasks_failed", "Tasks that ran and failed", tasks.failed),
            ("laneway_tasks_skipped", "Tasks that never ran", tasks.skipped),
            ("laneway_controls", "Control commands that were sent", metrics.controls),
            ("laneway_doorbells", "Children that slept and were woken", metrics.doorbells),
            ("laneway_sleeps", "Sleeps of the threads that drive", metrics.sleeps),
        ];
        for (name, help, value) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(family.encode_family(&level)?)?;
        }
        let gauges = [
            ("laneway_tasks_in_flight", "Tasks that are with a child", tasks.in_flight),
            ("laneway_tasks_unfinished", "Tasks that have not ended", pools.unfinished),
            ("laneway_task_records", "Task records in use", pools.tasks),
            ("laneway_edges", "Dependencies in use", pools.edges),
            ("laneway_map_entries", "Ranges of bytes that order tasks", pools.map_entries),
            ("laneway_args_bytes", "Bytes of encoded arguments", pools.args_bytes),
            ("laneway_slabs", "Blocks in the heap rings", pools.slabs),
        ];
        for (name, help, value) in gauges {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(family.encode_family(&level)?)?;
        }
        let histograms = [
            ("laneway_submit_to_dispatch_seconds", "From submit to dispatch", &metrics.submit_to_dispatch),
            ("laneway_dispatch_to_completion_seconds", "From dispatch to completion", &metrics.dispatch_to_completion),
            ("laneway_run_seconds", "From the first task of a run to its end", &metrics.run_time),
        ];
        for (name, help, histogram) in histograms {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            let (count, sum) = (histogram.count(), histogram.sum().as_secs_f64());
            family.encode_family(&level)?.encode_histogram::<[(&str, String); 1]>(
                sum,
                count,
                &buckets(histogram),
                None,
            )?;
        }
        let help = "Dispatches that were published to a child";
        let mut family = encoder.encode_descriptor("laneway_dispatches", help, None, MetricType::Counter)?;
        for child in &metrics.children {
            let labels = [("level", metrics.level.to_string()), ("child", child.label.to_string())];
            ConstCounter::new(child.dispatches).encode(family.encode_family(&labels)?)?;
        }
        // Seconds that were counted in the life of a child.
        type Seconds = fn(&ChildMetrics) -> Duration;
        let seconds: [(&str, &str, Seconds); 3] = [
            ("laneway_child_busy_seconds", "How long a child has been at tasks", |child| child.busy),
            ("laneway_child_spinning_seconds", "How long a child has spun for work", |child| child.spinning),
            ("laneway_child_age_seconds", "How long a child has been ready", |child| child.age),
        ];
        for (name, help, of) in seconds {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for child in &metrics.children {
                let labels = [("level", metrics.level.to_string()), ("child", child.label.to_string())];
                ConstCounter::new(of(child).as_secs_f64()).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "How long threads that drive the worker have spun";
        let mut family = encoder.encode_descriptor("laneway_spinning_seconds", help, None, MetricType::Counter)?;
        ConstCounter::new(metrics.spinning.as_secs_f64()).encode(family.encode_family(&level)?)
    }
}

/// How many lie in each bucket that is shown, the last one without a bound.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let bounds = BOUNDS.map(|power| std::time::Duration::from_nanos(1 << power));
    let mut below = 0;
    let mut buckets: Vec<_> = bounds
        .map(|bound| {
            let (before, upto) = (below, histogram.below(bound));
            below = upto;
            (bound.as_secs_f64(), upto - before)
        })
        .collect();
    buckets.push((f64::MAX, histogram.count().saturating_sub(below)));
    buckets
}

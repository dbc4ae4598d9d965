//! Workers on Linux: processes, shared memory, waiting, and the [`Worker`] that drives laneway-core.
//!
//! ```no_run
//! use laneway_linux::{TaskArgs, Worker};
//!
//! # fn main() -> Result<(), laneway_linux::Error> {
//! let worker = Worker::builder().level(3).subs(2).build()?;
//! let square = worker.register("square", |args| {
//!     let (x, y) = (args.tensor::<f32>(0)?, args.tensor::<f32>(1)?);
//!     y.fill_with(|i| x.get(i).unwrap_or(0.0).powi(2));
//!     Ok(())
//! })?;
//! worker.init()?; // forks the children and waits until all are ready
//!
//! let x = worker.tensor::<f32>(&[1024])?;
//! let y = worker.tensor::<f32>(&[1024])?;
//! x.fill_with(|i| i as f32)?;
//! worker.run(|orch| {
//!     orch.submit_sub(&square, TaskArgs::new().input(&x).output(&y))?;
//!     Ok(())
//! })?;
//! assert_eq!(y.to_vec()?[3], 9.0);
//! worker.close()
//! # }
//! ```
#![deny(unsafe_code)]

mod blocking;
mod board;
pub mod child_entry;
pub mod sys;

mod callable;
mod chip_worker;
mod config;
mod device_memory;
mod element;
mod error;
mod graph;
mod health;
mod host;
mod install;
mod late;
mod link;
mod live;
mod memory;
mod metrics;
mod mortal;
mod orchestrator;
mod progress;
mod recorder;
mod registry;
mod run;
mod serve_loop;
mod snapshot;
mod sub;
mod supervisor;
mod table;
mod tensor;
mod trace;
mod view;
mod waiting;
mod worker;

pub use blocking::{Block, Blocking, BlockingDevice, Bytes, DeviceMemory, ProcessMemory, RunArgs, RunError};
pub use board::observe;
pub use callable::{BoxError, CallableHandle, CallableName, Role};
pub use chip_worker::{ChipHandle, ChipRun, ChipWorker};
pub use element::Element;
pub use error::{CallableError, CpuOverlap, Errno, Error, Leftover, Place, StartCause};
pub use health::{ChildHealth, Doing, Health};
pub use host::ChildMode;
pub use late::{LateFn, LateOrchestration, NativeCall};
#[cfg(feature = "prometheus")]
pub use metrics::MetricsCollector;
pub use metrics::{ChildMetrics, Histogram, Metrics, PoolUse, RunCounts, TaskCounts};
pub use orchestrator::{Orchestrator, Outputs};
pub use run::RunHandle;
pub use sub::SubArgs;
pub use tensor::{Tensor, unallocated};
pub use view::View;
pub use worker::{
    Chip, CustomChild, CustomStart, Endpoint, EndpointBell, EndpointStart, InitCanceller, OwnEndpoint, Worker,
    WorkerBuilder,
};

pub use laneway_core::chip::{DeviceAddress, DeviceRuntime, Platform, RuntimeKind};
pub use laneway_core::engine::{Config as Capacities, EngineError, FailureKind};
pub use laneway_core::ids::{RunId, SubId, WorkerId};
pub use laneway_core::lane::{ExitCause, Label, Phase};
pub use laneway_core::model::TaskArgs;
pub use laneway_core::serve::{Failure, Leaf, Report, Task};
pub use laneway_core::wire::extension::ChildActivity;
pub use laneway_core::wire::{AddressSpace, CallConfig, ChipCallable, ChipTensor, Dtype, TaskArgsView, TensorTag};

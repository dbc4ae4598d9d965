//! Engines and endpoints that do not fit together.

use std::time::Duration;

use laneway_core::driver::{Driver, DriverError, EndpointSpec, Frames, Label};
use laneway_core::engine::{Config, Engine, WorkerClass, WorkerSpec};
use laneway_core::ids::{EndpointIndex, SubId};
use laneway_core::mailbox::ArrayWords;
use laneway_core::wire::Protocol;
use laneway_core::wire::frame::REGION_BYTES;

const LABEL: Label = Label::Sub(SubId(0));

/// A driver of one endpoint that serves `protocol`, for an engine whose only worker is at `endpoint`.
fn driver(endpoint: u16, protocol: Protocol) -> Result<Driver<ArrayWords>, DriverError> {
    let worker = WorkerSpec { class: WorkerClass::Sub(SubId(0)), endpoint: EndpointIndex(endpoint), staging: false };
    let engine = Engine::new(&Config::default(), 2, &[worker]).expect("a valid config");
    let spec = EndpointSpec {
        label: LABEL,
        pid: None,
        frames: Frames::One,
        protocol,
        marks_acceptance: false,
        waitable: true,
        poison_grace: Duration::from_secs(2),
    };
    Driver::new(engine, [(spec, ArrayWords::new(REGION_BYTES))])
}

/// W-7: a child of another protocol would misread every argument list.
#[test]
fn a_child_that_serves_another_protocol_is_refused() {
    let refused = driver(0, Protocol::Tensors).expect_err("another protocol");
    assert_eq!(refused, DriverError::Protocol { label: LABEL, protocol: Protocol::Tensors });
    assert!(driver(0, Protocol::ChipTensors).is_ok());
}

#[test]
fn a_worker_whose_endpoint_does_not_exist_is_refused() {
    let refused = driver(1, Protocol::ChipTensors).expect_err("no such endpoint");
    assert_eq!(refused, DriverError::NoSuchEndpoint { endpoint: EndpointIndex(1), endpoints: 1 });
}

//! iceoryx2 between two pinned processes. Each is a partner: nothing of it lives in the main process.

use std::cell::RefCell;
use std::thread;

use iceoryx2::prelude::*;
use laneway_core::mailbox::Words;

use super::Failure;
use super::partner::{FREE, Partner, Seat, Serve};
use super::slice::{KEPT, Slice};

/// What travels: 64 bytes.
type Payload = [u64; 8];

/// Where a client leaves its samples: their number, then one word each.
const COUNT: usize = FREE;
const SAMPLES: usize = FREE + 8;
const BYTES: usize = 8 + 4 * KEPT;

/// Two processes: one asks and measures, the other answers.
pub(super) struct Pair {
    asking: Partner,
    answering: Partner,
}

/// All that is compared with.
pub(super) struct Peers {
    pub(super) request_response: RefCell<Pair>,
    pub(super) publish_subscribe: RefCell<Pair>,
}

impl Peers {
    /// `cpus` are where the asking and the answering processes are.
    pub(super) fn start(cpus: [usize; 2]) -> Result<Self, Failure> {
        // It would say that it found no configuration file.
        set_log_level(LogLevel::Error);
        let name = |what| format!("laneway-bench/{}/{what}", std::process::id());
        let (requests, there, back) = (name("requests"), name("there"), name("back"));
        let request_response = Pair {
            answering: Partner::start("bench-iox-server", 0, Some(cpus[1]), &[], |_| server(&requests))?,
            asking: Partner::start("bench-iox-client", BYTES, Some(cpus[0]), &[], |_| client(&requests))?,
        };
        let publish_subscribe = Pair {
            answering: Partner::start("bench-iox-echo", 0, Some(cpus[1]), &[], |_| echo(&there, &back))?,
            asking: Partner::start("bench-iox-publisher", BYTES, Some(cpus[0]), &[], |_| publisher(&there, &back))?,
        };
        Ok(Self {
            request_response: RefCell::new(request_response),
            publish_subscribe: RefCell::new(publish_subscribe),
        })
    }
}

impl Pair {
    /// The main process sleeps meanwhile: both CPUs are taken.
    pub(super) fn measure(&mut self, slice: &mut Slice) -> Result<(), Failure> {
        self.answering.go();
        self.asking.go();
        thread::sleep(slice.length());
        self.asking.stop()?;
        self.answering.stop()?;
        let words = self.asking.words();
        let count = words.read(COUNT).min(KEPT as u64) as usize;
        slice.adopt((0..count).map(|index| words.load_relaxed(SAMPLES + 4 * index).cast_unsigned().into()));
        Ok(())
    }
}

/// Measures `exchange` until the slice is over, and leaves the samples in the page.
fn measure(seat: &Seat<'_>, clock_cost: std::time::Duration, mut exchange: impl FnMut(u64) -> Result<(), Failure>) {
    let mut slice = Slice::new(std::time::Duration::MAX, clock_cost);
    let mut number = 0;
    while seat.goes_on() {
        let start = laneway_linux::sys::clock::now();
        if let Err(error) = exchange(number) {
            eprintln!("iceoryx2: {error}");
            break;
        }
        slice.record(laneway_linux::sys::clock::now().since(start), 1);
        number += 1;
    }
    let samples = slice.into_samples();
    for (index, tenths) in samples.tenths().iter().enumerate() {
        seat.words.store_relaxed(SAMPLES + 4 * index, tenths.cast_signed());
    }
    seat.words.write(COUNT, samples.tenths().len() as u64);
}

/// Receives with `receive` until something comes or the slice is over.
fn receive<T>(seat: &Seat<'_>, mut receive: impl FnMut() -> Result<Option<T>, Failure>) -> Result<Option<T>, Failure> {
    loop {
        if let Some(received) = receive()? {
            return Ok(Some(received));
        }
        if !seat.goes_on() {
            return Ok(None);
        }
        std::hint::spin_loop();
    }
}

fn client<'a>(service: &str) -> Result<Serve<'a>, Failure> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = node.service_builder(&service.try_into()?).request_response::<Payload, Payload>().open_or_create()?;
    let client = service.client_builder().create()?;
    let clock_cost = super::slice::clock_cost();
    Ok(Box::new(move |seat| {
        // Moved in: the service lives as long as its node.
        let _ = &node;
        measure(seat, clock_cost, |number| {
            let pending = client.loan_uninit()?.write_payload([number; 8]).send()?;
            match receive(seat, || Ok(pending.receive()?))? {
                Some(response) if response[7] != number => Err("a response to another request".into()),
                _ => Ok(()),
            }
        });
    }))
}

fn server<'a>(service: &str) -> Result<Serve<'a>, Failure> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = node.service_builder(&service.try_into()?).request_response::<Payload, Payload>().open_or_create()?;
    let server = service.server_builder().create()?;
    Ok(Box::new(move |seat| {
        let _ = &node;
        let answer = || -> Result<(), Failure> {
            while let Some(request) = receive(seat, || Ok(server.receive()?))? {
                request.loan_uninit()?.write_payload(*request).send()?;
            }
            Ok(())
        };
        if let Err(error) = answer() {
            eprintln!("iceoryx2: {error}");
        }
    }))
}

fn publisher<'a>(there: &str, back: &str) -> Result<Serve<'a>, Failure> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let there = node.service_builder(&there.try_into()?).publish_subscribe::<Payload>().open_or_create()?;
    let back = node.service_builder(&back.try_into()?).publish_subscribe::<Payload>().open_or_create()?;
    let (publisher, subscriber) = (there.publisher_builder().create()?, back.subscriber_builder().create()?);
    let clock_cost = super::slice::clock_cost();
    Ok(Box::new(move |seat| {
        let _ = &node;
        measure(seat, clock_cost, |number| {
            publisher.loan_uninit()?.write_payload([number; 8]).send()?;
            // An echo of the last slice may still be there.
            while let Some(sample) = receive(seat, || Ok(subscriber.receive()?))? {
                if sample[7] == number {
                    break;
                }
            }
            Ok(())
        });
    }))
}

fn echo<'a>(there: &str, back: &str) -> Result<Serve<'a>, Failure> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let there = node.service_builder(&there.try_into()?).publish_subscribe::<Payload>().open_or_create()?;
    let back = node.service_builder(&back.try_into()?).publish_subscribe::<Payload>().open_or_create()?;
    let (publisher, subscriber) = (back.publisher_builder().create()?, there.subscriber_builder().create()?);
    Ok(Box::new(move |seat| {
        let _ = &node;
        let answer = || -> Result<(), Failure> {
            while let Some(sample) = receive(seat, || Ok(subscriber.receive()?))? {
                publisher.loan_uninit()?.write_payload(*sample).send()?;
            }
            Ok(())
        };
        if let Err(error) = answer() {
            eprintln!("iceoryx2: {error}");
        }
    }))
}

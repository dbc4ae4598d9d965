//! Devices that call the worker whose children they are in (P-13, P-31).

use std::sync::Arc;

use laneway_core::chip::ChipError;
use laneway_linux::{
    Block, BlockingDevice, BoxError, Bytes, ChipCallable, DeviceAddress, DeviceMemory, Error, RunArgs, RunError,
    TaskArgs, Tensor, Worker, WorkerId,
};

use crate::harness::{Channel, builder, in_threads};
use crate::support::{add_chip, register};

/// Asks its own worker for everything, wherever it is called, and tells the test what it was answered.
#[derive(Clone)]
struct Caller(Arc<Captured>);

struct Captured {
    worker: Worker,
    tensor: Tensor<i32>,
    answers: Channel,
}

impl Caller {
    fn ask(&self, site: &'static str) {
        let Captured { worker, tensor, answers } = &*self.0;
        let (chip, nowhere) = (WorkerId::new(0).unwrap(), DeviceAddress(0));
        let results = [
            ("run", worker.run(|_| Ok(()))),
            ("submit", worker.submit(|_| Ok(())).map(drop)),
            ("malloc", worker.malloc(chip, 8).map(drop)),
            ("free", worker.free(chip, nowhere)),
            ("copy_to", worker.copy_to(chip, nowhere, tensor)),
            ("copy_from", worker.copy_from(chip, tensor, nowhere)),
            ("tensor", worker.tensor::<i32>(&[1]).map(drop)),
            ("close", worker.close()),
            ("close_now", worker.close_now()),
        ];
        let passed = results.iter().find(|(_, result)| *result != Err(Error::Inherited));
        let said = passed.map_or("refused".to_owned(), |(call, result)| format!("{call}: {result:?}"));
        answers.send(format!("{site} {said}\n").as_bytes());
    }
}

/// A callable of the device; when it is dropped it asks too.
struct Loaded(Caller);

impl Drop for Loaded {
    fn drop(&mut self) {
        self.0.ask("unload");
    }
}

struct Device(Caller);

impl Drop for Device {
    fn drop(&mut self) {
        self.0.ask("drop");
    }
}

impl BlockingDevice for Device {
    type Callable = Loaded;

    fn load(&self, _: &ChipCallable<'_>) -> Result<Loaded, BoxError> {
        self.0.ask("load");
        Ok(Loaded(self.0.clone()))
    }

    fn check(&self, _: &Loaded, _: &RunArgs<'_>) -> Result<(), BoxError> {
        self.0.ask("check");
        Ok(())
    }

    fn run(&self, _: &Loaded, _: &RunArgs<'_>) -> Result<(), RunError> {
        self.0.ask("run");
        // The answer itself becomes the failure of the task.
        Ok(self.0.0.worker.run(|_| Ok(()))?)
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(self)
    }
}

impl DeviceMemory for Device {
    fn allocate(&self, _: u64) -> Result<DeviceAddress, ChipError> {
        self.0.ask("allocate");
        Ok(DeviceAddress(0x1000))
    }

    fn free(&self, _: DeviceAddress) -> Result<(), ChipError> {
        self.0.ask("free");
        Ok(())
    }

    fn copy_to(&self, _: DeviceAddress, _: Bytes<'_>) -> Result<(), ChipError> {
        self.0.ask("copy_to");
        Ok(())
    }

    fn copy_from(&self, _: Bytes<'_>, _: DeviceAddress) -> Result<(), ChipError> {
        self.0.ask("copy_from");
        Ok(())
    }

    fn block(&self, _: DeviceAddress) -> Option<Block> {
        self.0.ask("block");
        None
    }
}

/// P-13, P-27, P-31: a device that waited for the worker which waits for it would wait for ever.
pub(crate) fn a_device_that_calls_its_own_worker_is_refused_wherever_it_does() {
    let worker = builder!().build().unwrap();
    let tensor = worker.tensor::<i32>(&[4]).unwrap();
    let captured = Captured { worker: worker.clone(), tensor: tensor.clone(), answers: Channel::new() };
    let caller = Caller(Arc::new(captured));
    let opened = caller.clone();
    let chip = add_chip(&worker, move || {
        opened.ask("open");
        Ok(Device(opened.clone()))
    });
    let callable = register(&worker);
    worker.init().unwrap();

    let there = worker.malloc(chip, 16).unwrap();
    worker.copy_to(chip, there, &tensor).unwrap();
    worker.copy_from(chip, &tensor, there).unwrap();
    let run = |args: &TaskArgs| worker.run(|orch| Ok(orch.submit_next_level(&callable, chip, args).map(drop)?));
    let failed = run(TaskArgs::new().inout(&tensor)).unwrap_err().to_string();
    assert!(failed.contains(&Error::Inherited.to_string()), "{failed}");
    worker.free(chip, there).unwrap();
    worker.close().unwrap();

    let told = caller.0.answers.receive_text();
    let sites = ["open", "load", "allocate", "copy_to", "copy_from", "check", "run", "free", "unload", "drop"];
    let expected: String = sites.map(|site| format!("{site} refused\n")).concat();
    assert_eq!(told, expected, "threads: {}", in_threads());
}

//! The blocking run that every device runtime gets for free (spec: prepare → launch → wait → finalize).

use laneway_core::chip::{
    Call, CallableSlot, ChipError, Completion, Contract, DeviceAddress, DeviceRuntime, Finalizing, HostAddress,
    Progress, Reason, RunDescriptor, RunTable, RunToken,
};
use laneway_core::ids::PipelineSlot;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs};

/// A device that fails where it is told to and writes down what was asked of it.
#[derive(Default)]
struct Scripted {
    runs: RunTable<()>,
    fails_at: Option<Call>,
    log: Vec<Call>,
}

impl Scripted {
    fn log(&mut self, call: Call) -> Result<(), ChipError> {
        self.log.push(call);
        match self.fails_at {
            Some(at) if at == call => Err(ChipError::Failed { call, code: -1, reason: Reason::from("scripted") }),
            _ => Ok(()),
        }
    }
}

impl DeviceRuntime for Scripted {
    fn contract(&self) -> Contract {
        Contract::absent()
    }

    fn supports_concurrent_prepare(&self) -> bool {
        false
    }

    fn register(&mut self, _: CallableSlot, _: &[u8]) -> Result<(), ChipError> {
        self.log(Call::Register)
    }

    fn unregister(&mut self, _: CallableSlot) -> Result<(), ChipError> {
        self.log(Call::Unregister)
    }

    fn prepare(
        &mut self,
        _: CallableSlot,
        _: &ChipStorageTaskArgs,
        _: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        self.log(Call::Prepare)?;
        let token = self.runs.begin_prepare(run.slot())?;
        self.runs.prepared(token, ())?;
        Ok(token)
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.log(Call::Launch)?;
        self.runs.launched(run)
    }

    fn accepted(&self, run: RunToken) -> bool {
        self.runs.find(run).is_some()
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        self.log(Call::Poll)?;
        self.runs.reaped(Call::Poll, run, Completion::Proven)?;
        Ok(Progress::Complete)
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        let answer = self.log(Call::Wait);
        let completion = if answer.is_ok() { Completion::Proven } else { Completion::Unproven };
        self.runs.reaped(Call::Wait, run, completion)?;
        answer
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        let answer = self.log(Call::Finalize);
        let ended = self.runs.begin_finalize(run)?;
        let expected = match self.fails_at {
            Some(Call::Launch) => Finalizing::Abandoned(()),
            Some(Call::Wait) => Finalizing::Unproven(()),
            _ => Finalizing::Completed(()),
        };
        assert_eq!(ended, expected);
        self.runs.finalized(run)?;
        answer
    }

    fn malloc(&mut self, _: u64) -> Result<DeviceAddress, ChipError> {
        self.log(Call::Malloc).map(|()| DeviceAddress(1))
    }

    fn free(&mut self, _: DeviceAddress) -> Result<(), ChipError> {
        self.log(Call::Free)
    }

    fn copy_to(&mut self, _: DeviceAddress, _: HostAddress, _: u64) -> Result<(), ChipError> {
        self.log(Call::CopyTo)
    }

    fn copy_from(&mut self, _: HostAddress, _: DeviceAddress, _: u64) -> Result<(), ChipError> {
        self.log(Call::CopyFrom)
    }

    fn committed_memory(&self) -> u64 {
        0
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        self.log(Call::Shutdown)
    }
}

fn run(device: &mut dyn DeviceRuntime) -> Result<(), ChipError> {
    let slot = CallableSlot::new(0).unwrap();
    let direct = RunDescriptor::Direct(PipelineSlot::Zero);
    device.run(slot, &ChipStorageTaskArgs::new(), &CallConfig::ZERO, direct)
}

/// L-15: whatever fails, a run that was prepared is finalized, once; the first error is the one that is reported.
#[test]
fn a_blocking_run_finalizes_what_it_prepared_exactly_once() {
    use Call::{Finalize, Launch, Prepare, Wait};
    let cases: [(Option<Call>, &[Call]); 5] = [
        (None, &[Prepare, Launch, Wait, Finalize]),
        (Some(Prepare), &[Prepare]),
        (Some(Launch), &[Prepare, Launch, Finalize]),
        (Some(Wait), &[Prepare, Launch, Wait, Finalize]),
        (Some(Finalize), &[Prepare, Launch, Wait, Finalize]),
    ];
    for (fails_at, expected) in cases {
        let mut device = Scripted { fails_at, ..Scripted::default() };
        let answer = run(&mut device);
        assert_eq!(device.log, expected);
        match (fails_at, answer) {
            (None, Ok(())) => {}
            (Some(at), Err(ChipError::Failed { call, .. })) => assert_eq!(at, call),
            other => panic!("{other:?}"),
        }
        device.runs.check_idle(Call::Register).expect("no run is left");
    }
}

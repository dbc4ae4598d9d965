//! What the cases share.

use laneway_linux::{CallableHandle, Chip, SubArgs, Tensor, Worker, WorkerId};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable};

use crate::harness;

pub(crate) const HBG: Profile = Profile::A2a3HostBuildGraph;

/// A chip child with a simulator.
pub(crate) fn chip(profile: Profile) -> Chip {
    Chip::new(profile.platform(), profile.runtime(), move |shared| {
        // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and this child makes no
        // reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(profile), host)
    })
}

/// A ready worker with chips and SUB children.
pub(crate) struct Bench {
    pub(crate) worker: Worker,
    pub(crate) chips: Vec<WorkerId>,
    pub(crate) add: CallableHandle,
    pub(crate) scale: CallableHandle,
    pub(crate) wait: CallableHandle,
    pub(crate) nothing: CallableHandle,
}

impl Bench {
    pub(crate) fn new(profiles: &[Profile], subs: u32) -> Self {
        Self::of(profiles.iter().map(|&profile| chip(profile)).collect(), subs)
    }

    pub(crate) fn of(chips: Vec<Chip>, subs: u32) -> Self {
        let worker = harness::builder!().subs(subs).build().unwrap();
        let chips = chips.into_iter().map(|chip| worker.add_chip(chip).unwrap()).collect();
        let register = |kernel| worker.register_chip(HBG.platform(), HBG.runtime(), &callable(kernel)).unwrap();
        let [add, scale, wait] = [Kernel::Add, Kernel::Scale, Kernel::Wait].map(register);
        let nothing = worker.register("nothing", |_: &SubArgs<'_>| Ok(())).unwrap();
        worker.init().unwrap();
        Self { worker, chips, add, scale, wait, nothing }
    }

    pub(crate) fn vector(&self, elements: u32, value: impl FnMut(usize) -> f32) -> Tensor<f32> {
        let tensor = self.worker.tensor(&[elements]).unwrap();
        tensor.fill_with(value).unwrap();
        tensor
    }
}

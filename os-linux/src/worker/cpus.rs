//! Which child may use which CPUs (P-21).

use laneway_core::lane::Label;

use super::plan::Outline;
use crate::error::{CpuOverlap, Error};
use crate::sys::cpu;

/// The CPUs that children were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpus {
    sets: Vec<(Label, Vec<usize>)>,
    /// Whether two children may not be given the same one.
    pub(super) exclusive: bool,
}

impl Cpus {
    /// The last word about a child counts.
    pub(super) fn set(&mut self, child: Label, mut cpus: Vec<usize>) {
        cpus.sort_unstable();
        cpus.dedup();
        self.sets.retain(|(label, _)| *label != child);
        self.sets.push((child, cpus));
    }

    pub(super) fn of(&self, child: Label) -> Option<Vec<usize>> {
        self.sets.iter().find(|(label, _)| *label == child).map(|(_, cpus)| cpus.clone())
    }

    /// Refuses what cannot be, before anything is started.
    pub(super) fn check(&self, outlines: &[Outline]) -> Result<(), Error> {
        for (label, cpus) in &self.sets {
            if outlines.iter().all(|outline| outline.label != *label) {
                return Err(Error::CpusOfNobody { label: *label });
            }
            cpu::check(cpus)?;
        }
        match self.overlaps().next() {
            Some(overlap) if self.exclusive => Err(Error::CpusShared { overlap }),
            _ => Ok(()),
        }
    }

    /// Pairs of children that were given some CPUs both.
    pub(crate) fn overlaps(&self) -> impl Iterator<Item = CpuOverlap> + '_ {
        let pairs = self.sets.iter().enumerate().flat_map(|(i, one)| self.sets[..i].iter().map(move |two| (two, one)));
        pairs.filter_map(|((one, left), (other, right))| {
            let cpus: Vec<_> = left.iter().copied().filter(|cpu| right.contains(cpu)).collect();
            (!cpus.is_empty()).then_some(CpuOverlap { one: *one, other: *other, cpus })
        })
    }
}

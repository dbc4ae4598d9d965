//! The pipeline contract of a runtime, checked (C-1 … C-3).

use crate::ids::PipelineSlot;
use crate::model::MAX_PIPELINE_DEPTH;
use crate::wire::PipelineContract;

/// The contract version that this crate reads.
const ABI_VERSION: u32 = 1;
/// Resources that a contract can declare.
const MAX_RESOURCES: u32 = 8;

/// Kinds of resource that are committed together into one arena bank: GM_HEAP, GM_SM and RUNTIME_IMAGE.
const ARENA_KINDS: [u32; 3] = [1, 2, 3];
/// The last kind there is, AICORE_STREAM. Kind 0 means unspecified.
const LAST_KIND: u32 = 6;

/// Copied per run by the host; one copy per pipeline slot.
const HOST_PER_RUN: u32 = 0;
/// Scratch memory of the device; one copy.
const DEVICE_SCRATCH: u32 = 1;
/// Handles such as streams; one copy per pipeline slot.
const EXEC_HANDLE: u32 = 2;

/// Why a contract is refused (C-2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContractFault {
    /// Another version.
    #[error("version {found}, this program reads version {ABI_VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// More resources than fit.
    #[error("{found} resources declared, at most {MAX_RESOURCES} fit")]
    ResourceCount {
        /// The count found.
        found: u32,
    },
    /// A depth other than 1 and 2.
    #[error("pipeline depth {found}, legal are 1 and 2")]
    Depth {
        /// The depth found.
        found: u32,
    },
    /// A kind that does not exist, or an entry left unspecified (kind 0).
    #[error("resource {index} has kind {found}, legal are 1 to {LAST_KIND} (0 is unspecified)")]
    Kind {
        /// Position in the contract.
        index: usize,
        /// The kind found.
        found: u32,
    },
    /// A class that does not exist.
    #[error("resource {index} has class {found}, legal are 0 to 2")]
    Class {
        /// Position in the contract.
        index: usize,
        /// The class found.
        found: u32,
    },
    /// The reserved size is used.
    #[error("resource {index} states {found} bytes per copy, which is reserved and must be 0")]
    ReservedSize {
        /// Position in the contract.
        index: usize,
        /// The size found.
        found: u64,
    },
    /// Two entries of an arena kind.
    #[error("resource {index} declares arena kind {kind} a second time")]
    ArenaKindTwice {
        /// Position in the contract.
        index: usize,
        /// The kind.
        kind: u32,
    },
    /// Arena kinds that cannot be committed together.
    #[error("resource {index} has {copies} copies where the arena kinds before it have {before}; they share one bank")]
    ArenaCopies {
        /// Position in the contract.
        index: usize,
        /// Its copies.
        copies: usize,
        /// The copies of the arena kinds declared before.
        before: usize,
    },
}

/// A contract that passed the check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Contract {
    depth: usize,
    /// The arena kinds are HOST_PER_RUN, so each pipeline slot has a bank of its own.
    bank_per_slot: bool,
    /// Copies per kind, 0 for a kind that is not declared; index = kind.
    copies: [u8; LAST_KIND as usize + 1],
}

impl Contract {
    /// What a runtime without a contract gets: depth 1 (C-3).
    #[must_use]
    pub const fn absent() -> Self {
        Self { depth: 1, bank_per_slot: false, copies: [0; LAST_KIND as usize + 1] }
    }

    /// Judges what a runtime published (C-2).
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(raw: &PipelineContract) -> Result<Self, ContractFault> {
        if raw.abi_version != ABI_VERSION {
            return Err(ContractFault::Version { found: raw.abi_version });
        }
        if raw.resource_count > MAX_RESOURCES {
            return Err(ContractFault::ResourceCount { found: raw.resource_count });
        }
        let depth = raw.pipeline_depth as usize;
        if depth == 0 || depth > MAX_PIPELINE_DEPTH {
            return Err(ContractFault::Depth { found: raw.pipeline_depth });
        }
        let mut contract = Self { depth, ..Self::absent() };
        let mut arena_copies = None;
        for (index, resource) in raw.resources.iter().take(raw.resource_count as usize).enumerate() {
            if resource.kind == 0 || resource.kind > LAST_KIND {
                return Err(ContractFault::Kind { index, found: resource.kind });
            }
            let copies = match resource.class {
                HOST_PER_RUN | EXEC_HANDLE => depth,
                DEVICE_SCRATCH => 1,
                found => return Err(ContractFault::Class { index, found }),
            };
            if resource.bytes_per_copy != 0 {
                return Err(ContractFault::ReservedSize { index, found: resource.bytes_per_copy });
            }
            let declared = &mut contract.copies[resource.kind as usize];
            if ARENA_KINDS.contains(&resource.kind) {
                if *declared != 0 {
                    return Err(ContractFault::ArenaKindTwice { index, kind: resource.kind });
                }
                match arena_copies {
                    Some(before) if before != copies => {
                        return Err(ContractFault::ArenaCopies { index, copies, before });
                    }
                    _ => arena_copies = Some(copies),
                }
                contract.bank_per_slot = resource.class == HOST_PER_RUN;
            }
            *declared = copies as u8;
        }
        Ok(contract)
    }

    /// How many runs may be on the way at once, 1 or 2.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the runtime has a run slot for this pipeline slot.
    #[must_use]
    pub const fn has_slot(&self, slot: PipelineSlot) -> bool {
        slot.index() < self.depth
    }

    /// Copies of a kind of resource (C-1); 0 if the contract does not declare it.
    #[must_use]
    pub const fn copies(&self, kind: u32) -> usize {
        if kind > LAST_KIND { 0 } else { self.copies[kind as usize] as usize }
    }

    /// The arena bank of a run: its pipeline slot if each run has a bank of its own, else 0.
    #[must_use]
    pub const fn arena_bank(&self, slot: PipelineSlot) -> u32 {
        if self.bank_per_slot { slot.index() as u32 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PipelineResource;

    fn contract(depth: u32, resources: &[(u32, u32)]) -> PipelineContract {
        let mut raw = PipelineContract {
            abi_version: 1,
            resource_count: resources.len() as u32,
            pipeline_depth: depth,
            ..PipelineContract::default()
        };
        for (entry, &(kind, class)) in raw.resources.iter_mut().zip(resources) {
            *entry = PipelineResource { kind, class, bytes_per_copy: 0 };
        }
        raw
    }

    const TMR: [(u32, u32); 6] = [(4, 0), (1, 1), (2, 1), (3, 1), (5, 2), (6, 2)];
    const HBG: [(u32, u32); 4] = [(1, 0), (3, 0), (5, 2), (6, 2)];

    /// C-1
    #[test]
    fn copies_follow_the_class() {
        let tmr = Contract::check(&contract(2, &TMR)).unwrap();
        assert_eq!([1, 2, 3, 4, 5, 6].map(|kind| tmr.copies(kind)), [1, 1, 1, 2, 2, 2]);
        assert_eq!(PipelineSlot::ALL.map(|slot| tmr.arena_bank(slot)), [0, 0]);
        let hbg = Contract::check(&contract(2, &HBG)).unwrap();
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|kind| hbg.copies(kind)), [0, 2, 0, 2, 0, 2, 2, 0]);
        assert_eq!(PipelineSlot::ALL.map(|slot| hbg.arena_bank(slot)), [0, 1]);
        let shallow = Contract::check(&contract(1, &HBG)).unwrap();
        assert_eq!(shallow.copies(1), 1);
        assert!(shallow.has_slot(PipelineSlot::Zero) && !shallow.has_slot(PipelineSlot::One));
    }

    /// C-2
    #[test]
    fn every_field_out_of_range_is_refused_by_name() {
        let good = contract(2, &TMR);
        let refused = |change: fn(&mut PipelineContract)| {
            let mut raw = good;
            change(&mut raw);
            Contract::check(&raw).unwrap_err()
        };
        assert_eq!(refused(|raw| raw.abi_version = 2), ContractFault::Version { found: 2 });
        assert_eq!(refused(|raw| raw.resource_count = 9), ContractFault::ResourceCount { found: 9 });
        assert_eq!(refused(|raw| raw.pipeline_depth = 0), ContractFault::Depth { found: 0 });
        assert_eq!(refused(|raw| raw.pipeline_depth = 3), ContractFault::Depth { found: 3 });
        assert_eq!(refused(|raw| raw.resources[5].kind = 7), ContractFault::Kind { index: 5, found: 7 });
        assert_eq!(refused(|raw| raw.resource_count = 7), ContractFault::Kind { index: 6, found: 0 });
        assert_eq!(refused(|raw| raw.resources[0].class = 3), ContractFault::Class { index: 0, found: 3 });
        assert_eq!(
            refused(|raw| raw.resources[4].bytes_per_copy = 8),
            ContractFault::ReservedSize { index: 4, found: 8 }
        );
        assert_eq!(refused(|raw| raw.resources[2].kind = 1), ContractFault::ArenaKindTwice { index: 2, kind: 1 });
        assert_eq!(
            refused(|raw| raw.resources[3].class = 0),
            ContractFault::ArenaCopies { index: 3, copies: 2, before: 1 }
        );
    }

    /// C-3
    #[test]
    fn a_runtime_without_a_contract_has_depth_one() {
        assert_eq!(Contract::absent().depth(), 1);
        assert_eq!(Contract::absent().arena_bank(PipelineSlot::Zero), 0);
    }
}

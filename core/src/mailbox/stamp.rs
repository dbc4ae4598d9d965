//! Which dispatch a frame carries, as it stands there.

use core::fmt;

use crate::wire::{DispatchIdentity, PipelineSlotLease, Protocol, SlotRule, Trailer, WireError};

/// Trailer and lease of a frame, unjudged: the words that both sides compare before every hand-over that matters (L-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// Protocol, run, slot, generation, dispatch.
    pub trailer: Trailer,
    /// Slot and generation once more.
    pub lease: PipelineSlotLease,
}

impl Stamp {
    /// What the parent publishes for a dispatch.
    #[must_use]
    pub const fn of(protocol: Protocol, identity: &DispatchIdentity) -> Self {
        Self { trailer: identity.trailer(protocol), lease: identity.lease() }
    }

    /// The first five checks of L-5.
    ///
    /// # Errors
    /// The first of them that fails.
    pub fn judge(&self, served: Protocol, rule: SlotRule) -> Result<DispatchIdentity, WireError> {
        self.trailer.judge(&self.lease, served, rule)
    }

    /// Whether the dispatch was taken out of the trailer (L-38).
    #[must_use]
    pub const fn is_withdrawn(&self) -> bool {
        self.trailer.dispatch == 0
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trailer { protocol, run, slot, generation, dispatch } = self.trailer;
        let PipelineSlotLease { slot_id, reserved, generation: leased } = self.lease;
        write!(f, "dispatch {dispatch} of run {run} (slot {slot}, generation {generation}, protocol {protocol}")?;
        if (slot, generation) != (slot_id.into(), leased) || reserved != 0 {
            write!(f, "; lease: slot {slot_id}, reserved {reserved}, generation {leased}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::ids::{DispatchId, Generation, PipelineSlot, RunId};

    /// L-1: a message about a mismatch shows both identities, and a lease that disagrees.
    #[test]
    fn a_stamp_shows_the_lease_only_where_it_disagrees() {
        let identity = DispatchIdentity {
            run: RunId::FIRST,
            slot: PipelineSlot::One,
            generation: Generation::FIRST,
            dispatch: DispatchId::FIRST,
        };
        let mut stamp = Stamp::of(Protocol::ChipTensors, &identity);
        assert_eq!(stamp.to_string(), "dispatch 1 of run 1 (slot 1, generation 1, protocol 2)");
        stamp.lease.reserved = 7;
        assert!(stamp.to_string().contains("lease: slot 1, reserved 7, generation 1"));
        assert!(stamp.judge(Protocol::ChipTensors, SlotRule::Below(2)).is_err());
    }
}

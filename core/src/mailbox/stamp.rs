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
    /// What the parent publishes for a dispatch, and the only stamp that [`judge`](Self::judge) makes that identity of.
    #[inline]
    #[must_use]
    pub const fn of(protocol: Protocol, identity: &DispatchIdentity) -> Self {
        Self { trailer: identity.trailer(protocol), lease: identity.lease() }
    }

    /// The first five checks of L-5.
    ///
    /// # Errors
    /// The first of them that fails.
    #[inline]
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

    use zerocopy::IntoBytes as _;

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

    /// L-1, L-5: an identity says everything about the stamp that it was judged from, so a stamp that differs in any bit is
    /// refused or is of another identity.
    #[test]
    fn a_judged_stamp_is_that_of_its_identity() {
        let (protocol, rule) = (Protocol::ChipTensors, SlotRule::Below(2));
        for slot in PipelineSlot::ALL {
            let (generation, run) = (Generation::FIRST, RunId::FIRST);
            let identity = DispatchIdentity { run, slot, generation, dispatch: DispatchId::FIRST };
            let stamp = Stamp::of(protocol, &identity);
            assert_eq!(stamp.judge(protocol, rule), Ok(identity));
            for bit in 0..8 * (size_of::<Trailer>() + size_of::<PipelineSlotLease>()) {
                let mut other = stamp;
                let trailer = other.trailer.as_mut_bytes();
                match bit / 8 {
                    byte if byte < trailer.len() => trailer[byte] ^= 1 << (bit % 8),
                    byte => other.lease.as_mut_bytes()[byte - size_of::<Trailer>()] ^= 1 << (bit % 8),
                }
                if let Ok(judged) = other.judge(protocol, rule) {
                    assert_ne!(judged, identity, "bit {bit}");
                    assert_eq!(Stamp::of(protocol, &judged), other, "bit {bit}");
                }
            }
        }
    }
}

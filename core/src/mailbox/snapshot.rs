//! Child: the private copy of a task frame. It is copied once and judged; nothing is read twice.

use zerocopy::{FromZeros as _, IntoBytes as _};

use super::{Frame, Stamp, Words};
use crate::ids::{DispatchId, Generation, PipelineSlot, RunId};
use crate::wire::args::{self, ArgsSnapshot, ArgsView, Counts, Element};
use crate::wire::frame as at;
use crate::wire::{
    CallConfig, ChipTensor, Digest, DispatchIdentity, OUTPUT_PREFIX_BYTES, Protocol, SlotRule, TaskArgsView, Tensor,
    Trailer, WireError,
};

/// Storage for the private copy of one task frame; reused from task to task.
#[derive(Clone, Debug)]
pub struct Snapshot {
    identity: DispatchIdentity,
    /// Whether `identity` was judged; not before the first task, nor after a refusal.
    identity_judged: bool,
    digest: Digest,
    config: CallConfig,
    /// Whether `config` was judged; not after a refusal.
    config_judged: bool,
    /// Whether `config` is diagnostic.
    diagnostic: bool,
    args: ArgsSnapshot,
    /// What `args` holds: a judged list of this protocol; nothing after a refusal.
    held: Option<(Protocol, Counts)>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self::new()
    }
}

impl Snapshot {
    /// Empty storage.
    #[must_use]
    pub const fn new() -> Self {
        let (digest, config) = (Digest::ZERO, CallConfig::ZERO);
        let (args, held) = (ArgsSnapshot::new(), None);
        let identity = DispatchIdentity {
            run: RunId::FIRST,
            slot: PipelineSlot::Zero,
            generation: Generation::FIRST,
            dispatch: DispatchId::FIRST,
        };
        Self { identity, identity_judged: false, digest, config, config_judged: true, diagnostic: false, args, held }
    }

    /// The digest that was copied last.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The config that was copied last.
    #[must_use]
    pub const fn config(&self) -> &CallConfig {
        &self.config
    }

    /// Whether the config that was copied last is diagnostic.
    #[inline]
    #[must_use]
    pub(crate) const fn is_diagnostic(&self) -> bool {
        self.diagnostic
    }

    /// Whose task was copied last.
    #[inline]
    #[must_use]
    pub(crate) const fn identity(&self) -> DispatchIdentity {
        self.identity
    }

    /// Copies and judges the words that say whose task it is. Those that stand in the frame as they did last time are compared,
    /// which is both; then only the dispatch is another. A child judges what lies in one frame by one protocol and one rule.
    ///
    /// # Errors
    /// What was copied, and the first check of L-5 that it fails.
    #[inline(always)]
    pub(crate) fn copy_identity<W: Words>(
        &mut self,
        words: &W,
        frame: Frame,
        served: Protocol,
        rule: impl FnOnce() -> SlotRule,
    ) -> Result<(), (Stamp, WireError)> {
        const DISPATCH: usize = core::mem::offset_of!(Trailer, dispatch);
        let Stamp { trailer, lease } = Stamp::of(served, &self.identity);
        if self.identity_judged
            && words.holds(frame.at(at::TRAILER), &trailer.as_bytes()[..DISPATCH])
            && words.holds(frame.at(at::LEASE), lease.as_bytes())
            && let Some(dispatch) = DispatchId::new(words.read(frame.at(at::TRAILER + DISPATCH)))
        {
            self.identity.dispatch = dispatch;
            return Ok(());
        }
        self.copy_other_identity(words, frame, served, rule())
    }

    #[inline(never)]
    fn copy_other_identity<W: Words>(
        &mut self,
        words: &W,
        frame: Frame,
        served: Protocol,
        rule: SlotRule,
    ) -> Result<(), (Stamp, WireError)> {
        self.identity_judged = false;
        let stamp = frame.stamp(words);
        self.identity = stamp.judge(served, rule).map_err(|error| (stamp, error))?;
        self.identity_judged = true;
        Ok(())
    }

    /// Copies the callable digest. The same one as last time is compared and not stored: whoever looks it up at once, in pieces
    /// larger than words, would wait for the stores.
    #[inline]
    pub fn copy_digest<W: Words>(&mut self, words: &W, frame: Frame) {
        if !words.holds(frame.at(at::DIGEST), &self.digest.0) {
            words.copy_out(frame.at(at::DIGEST), &mut self.digest.0);
        }
    }

    /// Copies and judges the config. Of an empty output prefix the first word is read and no more. A config that stands in
    /// the frame as it did last time is compared, which is both: each word is read once, and the verdict is that of the copy.
    ///
    /// # Errors
    /// The field that is illegal.
    #[inline]
    pub fn copy_config<W: Words>(&mut self, words: &W, frame: Frame) -> Result<(), WireError> {
        const HEAD: usize = size_of::<CallConfig>() - OUTPUT_PREFIX_BYTES;
        let bytes = self.config.as_bytes();
        if self.config_judged && bytes[HEAD] == 0 && words.holds(frame.at(at::CONFIG), &bytes[..HEAD + 8]) {
            return Ok(());
        }
        self.copy_other_config(words, frame)
    }

    fn copy_other_config<W: Words>(&mut self, words: &W, frame: Frame) -> Result<(), WireError> {
        const HEAD: usize = size_of::<CallConfig>() - OUTPUT_PREFIX_BYTES;
        self.config_judged = false;
        let had_prefix = self.config.output_prefix[0] != 0;
        let bytes = self.config.as_mut_bytes();
        words.copy_out(frame.at(at::CONFIG), &mut bytes[..HEAD + 8]);
        if bytes[HEAD] != 0 {
            words.copy_out(frame.at(at::CONFIG) + HEAD + 8, &mut bytes[HEAD + 8..]);
        } else if had_prefix {
            bytes[HEAD..].zero();
        }
        self.config.validate()?;
        self.config_judged = true;
        self.diagnostic = self.config.is_diagnostic();
        Ok(())
    }

    /// Copies the argument blob: the counts once, then, if they are legal, exactly what they require. Every element is
    /// judged (W-7).
    ///
    /// # Errors
    /// Counts, size or an element that is illegal.
    #[inline]
    pub fn copy_args<W: Words>(&mut self, words: &W, frame: Frame, protocol: Protocol) -> Result<(), WireError> {
        let word = words.read(frame.at(at::ARGS));
        self.args.words_mut()[0] = word;
        let mut counts = Counts::NONE;
        // Without elements there is nothing to copy and nothing to judge.
        if word != 0 {
            let before = self.held.take();
            counts = Counts::parse(word, at::ARGS_CAPACITY)?;
            let judged = before.filter(|(held, _)| *held == protocol).map_or(0, |(_, counts)| counts.tensors());
            match protocol {
                Protocol::ChipTensors => self.copy_elements::<_, ChipTensor>(words, frame, counts, judged)?,
                Protocol::Tensors => self.copy_elements::<_, Tensor>(words, frame, counts, judged)?,
            }
        }
        self.held = Some((protocol, counts));
        Ok(())
    }

    /// Copies and judges what `counts` call for. Of the first `judged` tensors the copies of last time are judged: one that
    /// stands in the frame as it did then is compared, which is both, since each word is read once and the verdict is that of
    /// the copy. Most often only the address, which is the first word, is another one: then that is copied and judged.
    fn copy_elements<W: Words, E: Element>(
        &mut self,
        words: &W,
        frame: Frame,
        counts: Counts,
        judged: usize,
    ) -> Result<(), WireError> {
        let scalars = counts.tensors() * E::BYTES / 8;
        let body = &mut self.args.words_mut()[1..][..scalars + counts.scalars()];
        let (tensors, scalars) = body.split_at_mut(scalars);
        let mut from = frame.at(at::ARGS) + args::HEADER_BYTES;
        for (index, tensor) in tensors.chunks_exact_mut(E::BYTES / 8).enumerate() {
            let start = words.read(from);
            if index >= judged || !holds_rest::<W, E>(words, from, tensor) {
                words.copy_out(from, tensor.as_mut_bytes());
                E::judge(tensor.as_bytes(), index)?;
            } else if tensor[0] != start.to_le() {
                tensor[0] = start.to_le();
                E::judge_moved(tensor.as_bytes(), index)?;
            }
            from += E::BYTES;
        }
        words.copy_out(from, scalars.as_mut_bytes());
        Ok(())
    }

    /// The arguments that were copied last, if they are of protocol 2; else none. They are not judged again.
    #[inline]
    #[must_use]
    pub fn args(&self) -> TaskArgsView<'_> {
        self.view(Protocol::ChipTensors)
    }

    /// The arguments that were copied last, if they are of protocol 3; else none. They are not judged again.
    #[inline]
    #[must_use]
    pub fn described(&self) -> ArgsView<'_, Tensor> {
        self.view(Protocol::Tensors)
    }

    #[inline]
    fn view<E: Element>(&self, protocol: Protocol) -> ArgsView<'_, E> {
        match self.held {
            Some((held, counts)) if held == protocol => {
                // Nothing that could panic, so that a view that nobody looks at costs nothing.
                let words = self.args.words().get(1..counts.encoded_len(protocol) / 8);
                ArgsView::judged(counts, words.unwrap_or_default())
            }
            _ => ArgsView::default(),
        }
    }
}

/// Whether all but the first word of a tensor stand in the frame as its copy holds them. A function of its own: in the loop over the
/// tensors there are no registers left for it.
#[inline(never)]
fn holds_rest<W: Words, E: Element>(words: &W, from: usize, tensor: &[u64]) -> bool {
    words.holds(from + 8, &tensor.as_bytes()[8..E::BYTES])
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::mailbox::ArrayWords;
    use crate::wire::{AddressSpace, Dtype};

    const FRAME: Frame = Frame::task(PipelineSlot::Zero);

    fn published(blob: &[u8]) -> ArrayWords {
        let words = ArrayWords::new(at::REGION_BYTES);
        words.copy_in(FRAME.at(at::ARGS), blob);
        words
    }

    /// L-5: whatever bit of an identity differs from the one before, and whatever was before, the verdict is that on the stamp
    /// that stands in the frame.
    #[test]
    fn an_identity_after_another_is_judged_as_the_first_one_is() {
        let (served, rule) = (Protocol::ChipTensors, SlotRule::Below(2));
        let words = ArrayWords::new(at::REGION_BYTES);
        let put = |stamp: &Stamp| {
            words.copy_in(FRAME.at(at::TRAILER), stamp.trailer.as_bytes());
            words.copy_in(FRAME.at(at::LEASE), stamp.lease.as_bytes());
        };
        let (mut taken, mut refused) = (0, 0);
        for slot in PipelineSlot::ALL {
            let (run, generation, dispatch) = (RunId::FIRST, Generation::FIRST, DispatchId::FIRST);
            let stamp = Stamp::of(served, &DispatchIdentity { run, slot, generation, dispatch });
            for bit in 0..8 * (size_of::<Trailer>() + size_of_val(&stamp.lease)) {
                let mut other = stamp;
                match bit / 8 {
                    byte if byte < size_of::<Trailer>() => other.trailer.as_mut_bytes()[byte] ^= 1 << (bit % 8),
                    byte => other.lease.as_mut_bytes()[byte - size_of::<Trailer>()] ^= 1 << (bit % 8),
                }
                let mut used = Snapshot::new();
                // The other one twice: a refusal is not forgotten.
                for stamp in [&stamp, &other, &other, &stamp] {
                    put(stamp);
                    let copied = used.copy_identity(&words, FRAME, served, || rule).map(|()| used.identity());
                    assert_eq!(copied, stamp.judge(served, rule).map_err(|error| (*stamp, error)), "bit {bit}");
                    *if copied.is_ok() { &mut taken } else { &mut refused } += 1;
                }
            }
        }
        assert!(taken > 1000 && refused > 500, "{taken} {refused}");
    }

    /// W-8: what is judged is the copy; what the other side writes afterwards changes nothing.
    #[test]
    fn a_snapshot_is_apart_from_its_frame() {
        let tensor = ChipTensor::contiguous(0x1000, 64, Dtype::F32, &[16], AddressSpace::Host).unwrap();
        let mut blob = [0; 8 + 128 + 16];
        args::encode(&[tensor], &[5, 6], &mut blob).unwrap();
        let words = published(&blob);
        let mut snapshot = Snapshot::new();
        snapshot.copy_args(&words, FRAME, Protocol::ChipTensors).unwrap();
        words.copy_in(FRAME.at(at::ARGS), &[0xff; 160]);
        assert_eq!((snapshot.args().tensors(), snapshot.args().scalars()), (&[tensor][..], &[5, 6][..]));
        assert_eq!(snapshot.args().tensors().as_ptr().addr() % 64, 0);
        assert!(snapshot.described().tensors().is_empty(), "a list is of one protocol");
    }

    /// W-7: nothing of a refused list can be had, nor of the one before it.
    #[test]
    fn a_refused_list_leaves_nothing() {
        let mut snapshot = Snapshot::new();
        snapshot
            .copy_args(&published(&[0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]), FRAME, Protocol::ChipTensors)
            .unwrap();
        assert_eq!(snapshot.args().scalars(), [9]);
        let refused = snapshot.copy_args(&published(&[1, 1, 0, 0, 0, 0, 0, 0]), FRAME, Protocol::ChipTensors);
        assert!(matches!(refused, Err(WireError::ArgCounts { tensors: 257, .. })), "{refused:?}");
        assert!(snapshot.args().scalars().is_empty());
    }

    /// W-7, W-8: what is compared instead of judged again is what was judged. Lists of every length follow one another, one
    /// tensor of them new, overlaid by scalars before, or illegal.
    #[test]
    fn a_list_after_another_is_judged_as_the_first_one_is() {
        let tensor = |addr| ChipTensor::contiguous(addr, 64, Dtype::F32, &[16], AddressSpace::Host).unwrap();
        let mut used = Snapshot::new();
        for before in 0..4 {
            for after in 0..4 {
                for other in 0..=after {
                    let mut first = [0; 8 + 3 * 128 + 8 * 40];
                    let tensors: Vec<_> = (0..before as u64).map(|index| tensor(0x1000 * (index + 1))).collect();
                    args::encode(&tensors, &[u64::MAX; 40], &mut first).unwrap();
                    used.copy_args(&published(&first), FRAME, Protocol::ChipTensors).unwrap();
                    let mut second = [0; 8 + 3 * 128 + 16];
                    let mut tensors: Vec<_> = (0..after as u64).map(|index| tensor(0x1000 * (index + 1))).collect();
                    if let Some(tensor) = tensors.get_mut(other) {
                        *tensor = tensor.with_version(7);
                    }
                    args::encode(&tensors, &[5, 6], &mut second).unwrap();
                    used.copy_args(&published(&second), FRAME, Protocol::ChipTensors).unwrap();
                    assert_eq!((used.args().tensors(), used.args().scalars()), (&tensors[..], &[5, 6][..]));
                    if other < after {
                        // The rank of that tensor, which is never 0.
                        second[8 + other * 128 + 36] = 0;
                        let refused = used.copy_args(&published(&second), FRAME, Protocol::ChipTensors);
                        assert!(
                            matches!(refused, Err(WireError::Argument { index, .. }) if index == other),
                            "{refused:?}"
                        );
                        assert!(used.args().tensors().is_empty());
                        let again = used.copy_args(&published(&second), FRAME, Protocol::ChipTensors);
                        assert_eq!(again, refused, "a refused list is refused again");
                    }
                }
            }
        }
    }

    /// W-7, W-8: whatever bit of a tensor differs from the one before, its address at the end of all addresses included, the verdict
    /// and the copy are those of a child that sees it first.
    #[test]
    fn a_tensor_in_the_place_of_another_is_judged_as_the_first_one_is() {
        let (mut taken, mut refused) = (0, 0);
        for addr in [0x1000, u64::MAX - 64] {
            let tensor = ChipTensor::contiguous(addr, 64, Dtype::F32, &[16], AddressSpace::Host).unwrap();
            let mut blob = [0; 8 + 128];
            args::encode(&[tensor], &[], &mut blob).unwrap();
            for bit in 0..8 * 128 {
                let (mut used, mut other) = (Snapshot::new(), blob);
                other[8 + bit / 8] ^= 1 << (bit % 8);
                // The other one twice: a refusal is not forgotten.
                for blob in [&blob, &other, &other, &blob] {
                    let (words, mut fresh) = (published(blob), Snapshot::new());
                    let verdict = used.copy_args(&words, FRAME, Protocol::ChipTensors);
                    assert_eq!(verdict, fresh.copy_args(&words, FRAME, Protocol::ChipTensors), "bit {bit}");
                    assert_eq!(used.args().tensors(), fresh.args().tensors(), "bit {bit}");
                    *if verdict.is_ok() { &mut taken } else { &mut refused } += 1;
                }
            }
        }
        assert!(taken > 1000 && refused > 500, "{taken} {refused}");
    }

    /// A config that was refused is refused again, and the one after it is judged.
    #[test]
    fn a_refused_config_is_never_taken_for_a_judged_one() {
        let words = ArrayWords::new(at::REGION_BYTES);
        let mut snapshot = Snapshot::new();
        snapshot.copy_config(&words, FRAME).unwrap();
        for threads in [1, 1, 2, 2, 1, 0] {
            let config = CallConfig { aicpu_thread_num: threads, ..CallConfig::ZERO };
            words.copy_in(FRAME.at(at::CONFIG), config.as_bytes());
            assert_eq!(snapshot.copy_config(&words, FRAME).is_ok(), threads != 1, "{threads}");
            assert_eq!(*snapshot.config(), config);
        }
    }

    /// A prefix of an earlier task does not show through an empty one.
    #[test]
    fn a_config_without_a_prefix_has_none_after_one_that_had() {
        let words = ArrayWords::new(at::REGION_BYTES);
        let mut config = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
        config.output_prefix[..600].fill(b'x');
        words.copy_in(FRAME.at(at::CONFIG), config.as_bytes());
        let mut snapshot = Snapshot::new();
        snapshot.copy_config(&words, FRAME).unwrap();
        assert_eq!(*snapshot.config(), config);
        words.copy_in(FRAME.at(at::CONFIG), &[0; 128]);
        snapshot.copy_config(&words, FRAME).unwrap();
        assert_eq!(*snapshot.config(), CallConfig::ZERO, "although the tail of the frame still holds the old one");
    }
}

//! Child: the private copy of a task frame. It is copied once and judged; nothing is read twice.

use zerocopy::{FromZeros as _, IntoBytes as _};

use super::{Frame, Words};
use crate::wire::args::{self, ArgsSnapshot, ArgsView, Counts, Element};
use crate::wire::frame as at;
use crate::wire::{CallConfig, Digest, OUTPUT_PREFIX_BYTES, Protocol, TaskArgsView, Tensor, WireError};

/// Storage for the private copy of one task frame; reused from task to task.
#[derive(Clone, Debug)]
pub struct Snapshot {
    digest: Digest,
    config: CallConfig,
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
        Self { digest: Digest::ZERO, config: CallConfig::ZERO, args: ArgsSnapshot::new(), held: None }
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

    /// Copies the callable digest.
    #[inline]
    pub fn copy_digest<W: Words>(&mut self, words: &W, frame: Frame) {
        words.copy_out(frame.at(at::DIGEST), &mut self.digest.0);
    }

    /// Copies and judges the config. Of an empty output prefix the first word is read and no more.
    ///
    /// # Errors
    /// The field that is illegal.
    #[inline]
    pub fn copy_config<W: Words>(&mut self, words: &W, frame: Frame) -> Result<(), WireError> {
        const HEAD: usize = size_of::<CallConfig>() - OUTPUT_PREFIX_BYTES;
        let had_prefix = self.config.output_prefix[0] != 0;
        let bytes = self.config.as_mut_bytes();
        words.copy_out(frame.at(at::CONFIG), &mut bytes[..HEAD + 8]);
        if bytes[HEAD] != 0 {
            words.copy_out(frame.at(at::CONFIG) + HEAD + 8, &mut bytes[HEAD + 8..]);
        } else if had_prefix {
            bytes[HEAD..].zero();
        }
        self.config.validate()
    }

    /// Copies the argument blob: the counts once, then, if they are legal, exactly what they require. Every element is
    /// judged (W-7).
    ///
    /// # Errors
    /// Counts, size or an element that is illegal.
    #[inline]
    pub fn copy_args<W: Words>(&mut self, words: &W, frame: Frame, protocol: Protocol) -> Result<(), WireError> {
        self.held = None;
        let word = words.read(frame.at(at::ARGS));
        let counts = Counts::parse(word, at::ARGS_CAPACITY)?;
        let [head, body @ ..] = self.args.words_mut();
        *head = word;
        if word == 0 {
            // Nothing to copy and nothing to judge.
            self.held = Some((protocol, counts));
            return Ok(());
        }
        let len = counts.encoded_len(protocol);
        words.copy_out(frame.at(at::ARGS) + args::HEADER_BYTES, body[..len / 8 - 1].as_mut_bytes());
        match protocol {
            Protocol::ChipTensors => args::decode(self.args.blob(), len).map(drop)?,
            Protocol::Tensors => args::decode_described(self.args.blob(), len).map(drop)?,
        }
        self.held = Some((protocol, counts));
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
                ArgsView::judged(counts, &self.args.words()[1..counts.encoded_len(protocol) / 8])
            }
            _ => ArgsView::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PipelineSlot;
    use crate::mailbox::ArrayWords;
    use crate::wire::{AddressSpace, ChipTensor, Dtype};

    const FRAME: Frame = Frame::task(PipelineSlot::Zero);

    fn published(blob: &[u8]) -> ArrayWords {
        let words = ArrayWords::new(at::REGION_BYTES);
        words.copy_in(FRAME.at(at::ARGS), blob);
        words
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

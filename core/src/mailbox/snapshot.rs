//! Child: the private copy of a task frame. It is copied once and judged; nothing is read twice.

use zerocopy::{FromZeros as _, IntoBytes as _};

use super::{Frame, Words};
use crate::wire::args::{self, ArgsSnapshot, Counts};
use crate::wire::frame as at;
use crate::wire::{CallConfig, Digest, OUTPUT_PREFIX_BYTES, Protocol, TaskArgsView, WireError};

/// Storage for the private copy of one task frame; reused from task to task.
#[derive(Clone, Debug)]
pub struct Snapshot {
    digest: Digest,
    config: CallConfig,
    args: ArgsSnapshot,
    /// Bytes of `args` that belong to the list copied last; 0 after a refusal.
    args_len: usize,
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
        Self { digest: Digest::ZERO, config: CallConfig::ZERO, args: ArgsSnapshot::new(), args_len: 0 }
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
    pub fn copy_digest<W: Words>(&mut self, words: &W, frame: Frame) {
        words.copy_out(frame.at(at::DIGEST), &mut self.digest.0);
    }

    /// Copies and judges the config. Of an empty output prefix the first word is read and no more.
    ///
    /// # Errors
    /// The field that is illegal.
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
    pub fn copy_args<W: Words>(&mut self, words: &W, frame: Frame, protocol: Protocol) -> Result<(), WireError> {
        self.args_len = 0;
        let counts = words.read(frame.at(at::ARGS));
        let len = Counts::parse(counts, at::ARGS_CAPACITY)?.encoded_len(protocol);
        let [head, body @ ..] = self.args.words_mut();
        *head = counts;
        words.copy_out(frame.at(at::ARGS) + args::HEADER_BYTES, body[..len / 8 - 1].as_mut_bytes());
        match protocol {
            Protocol::ChipTensors => args::decode(self.args.blob(), len).map(drop)?,
            Protocol::Tensors => args::decode_described(self.args.blob(), len).map(drop)?,
        }
        self.args_len = len;
        Ok(())
    }

    /// The arguments that were copied last, of protocol 2; none after a refusal.
    #[must_use]
    pub fn args(&self) -> TaskArgsView<'_> {
        args::decode(self.args.blob(), self.args_len).unwrap_or_default()
    }
}

//! What can go wrong with callables.

use laneway_core::lane::Label;
use laneway_core::wire::Digest;

use super::wording::Listed;
use crate::callable::{CallableName, Role};

/// What can go wrong with the name, the registration and the use of callables.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallableError {
    /// No child of this worker could ever run it.
    #[error("{callable} is {role}, and this worker has no such child: {}, or do not register it", .role.way_to_a_child())]
    CallableKindUnsupported {
        /// The callable.
        callable: CallableName,
        /// What it is.
        role: Role,
    },
    /// All callable slots of a device are taken.
    #[error("all {slots} callable slots of a chip are taken: unregister a callable first")]
    LocalSlotExhausted {
        /// How many there are.
        slots: usize,
    },
    /// Bytes that are not the callable of that digest.
    #[error("the bytes given for callable {digest} are not that callable")]
    HashidDescriptorMismatch {
        /// The digest.
        digest: Digest,
    },
    /// A text that is no digest.
    #[error("{text:?} is not the text form of a digest: `sha256:` and 64 lowercase hex digits")]
    HashidFormatInvalid {
        /// The text.
        text: String,
    },
    /// Not every child could install it; those that did have forgotten it again.
    #[error("{callable} is not registered: {}", Listed(.failures))]
    RegisterPartialFailure {
        /// The callable.
        callable: CallableName,
        /// Which children failed, and what each said.
        failures: Vec<(Label, String)>,
    },
    /// A failed registration or unregistration could not be mended: which children have the callable is not known.
    #[error("{callable} cannot be used any more in this worker, since it is not known which children have it: {what}")]
    RegisterCleanupUncertain {
        /// The callable.
        callable: CallableName,
        /// What happened.
        what: String,
    },
    /// The same callable is being unregistered.
    #[error("{callable} is being unregistered: register it again when that is over")]
    RegisterTombstoneActive {
        /// The callable.
        callable: CallableName,
    },
    /// The same callable is being unregistered already.
    #[error("{callable} is being unregistered already")]
    UnregisterTombstoneActive {
        /// The callable.
        callable: CallableName,
    },
    /// A function that the children do not have.
    #[error(
        "{function} does not lie in an image that was mapped before the children were forked: register a library symbol \
         instead, or load the library before init"
    )]
    NotInImage {
        /// The function.
        function: String,
    },
    /// A library symbol that cannot be called in a child.
    #[error("symbol {symbol} of {path} cannot be loaded: {reason}")]
    Library {
        /// The library.
        path: String,
        /// The symbol.
        symbol: String,
        /// Why.
        reason: String,
    },
    /// A handle that this worker does not honour.
    #[error("the handle of {callable} is not one of this worker's: {why}; register it here and use that handle")]
    CallableHandleMutated {
        /// The callable.
        callable: CallableName,
        /// Why.
        why: &'static str,
    },
    /// Another function has the name.
    #[error("the name {name:?} is taken by {taken}; {asked} needs another name")]
    CallableNameTaken {
        /// The name.
        name: String,
        /// The function that has it.
        taken: String,
        /// The function that was to have it.
        asked: String,
    },
}

//! Callables: what a worker's children can be asked to run, and the handles that name them.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use laneway_core::chip::{Platform, RuntimeKind};
use laneway_core::model::identity::{self, Descriptor};
use laneway_core::wire::{CallableKind, ChipCallable, Digest, Namespace};

use crate::error::Error;
use crate::sub::SubArgs;

/// What a callable or a callback returns when it fails: any error, or a sentence turned into one with `?` or `.into()`.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A host function as a SUB child calls it.
pub(crate) type HostFn = Arc<dyn Fn(&SubArgs<'_>) -> Result<(), BoxError> + Send + Sync>;

/// Names one registration of a callable with one worker. Cannot be made by hand; two registrations of the same
/// payload are two handles with one digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallableHandle {
    digest: Digest,
    kind: CallableKind,
    namespace: Namespace,
    owner: u64,
    id: u32,
}

impl CallableHandle {
    /// SHA-256 of the canonical descriptor.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// What was registered.
    #[must_use]
    pub fn kind(&self) -> CallableKind {
        self.kind
    }

    /// Which kind of child resolves it.
    #[must_use]
    pub fn namespace(&self) -> Namespace {
        self.namespace
    }
}

impl fmt::Display for CallableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.digest)
    }
}

/// What a digest stands for in the start-up snapshot that children inherit.
#[derive(Clone)]
pub(crate) enum Body {
    Host(HostFn),
    Chip(Arc<[u8]>),
}

/// All registrations of one worker.
pub(crate) struct Registry {
    owner: u64,
    handles: u32,
    closures: u64,
    by_digest: HashMap<Digest, Body>,
}

impl Registry {
    /// An empty registry of the worker `owner`, a number unique in this process.
    pub(crate) fn new(owner: u64) -> Self {
        Self { owner, handles: 0, closures: 0, by_digest: HashMap::new() }
    }

    /// Registers a closure that the fork inherits. Its instance number tells closures of one name apart (R-1, kind 4).
    pub(crate) fn closure(&mut self, name: &str, body: HostFn) -> Result<CallableHandle, Error> {
        self.closures += 1;
        let captured = identity::sha256(&[]);
        let digest = Descriptor::Native { name, version: 1, captured, instance: self.closures }.digest()?;
        self.by_digest.insert(digest, Body::Host(body));
        Ok(self.handle(digest, CallableKind::Native, Namespace::LocalPython))
    }

    /// Registers a chip callable blob under its digest; the same blob twice is one entry and two handles.
    pub(crate) fn chip(
        &mut self,
        platform: Platform,
        runtime: RuntimeKind,
        blob: &[u8],
    ) -> Result<CallableHandle, Error> {
        let callable = ChipCallable::parse(blob)?;
        let digest = Descriptor::ChipCallable {
            platform: platform.name(),
            runtime: runtime.name(),
            blob: identity::sha256(blob),
            signature: identity::signature_digest(callable.signature()),
        }
        .digest()?;
        self.by_digest.entry(digest).or_insert_with(|| Body::Chip(blob.into()));
        Ok(self.handle(digest, CallableKind::ChipCallable, Namespace::LocalChip))
    }

    fn handle(&mut self, digest: Digest, kind: CallableKind, namespace: Namespace) -> CallableHandle {
        let id = self.handles;
        self.handles += 1;
        CallableHandle { digest, kind, namespace, owner: self.owner, id }
    }

    /// Refuses a handle of another worker, or one that the target's kind of child cannot resolve.
    pub(crate) fn check(&self, handle: &CallableHandle, wanted: Namespace) -> Result<(), Error> {
        if handle.owner != self.owner || handle.id >= self.handles {
            return Err(Error::ForeignCallable { digest: handle.digest });
        }
        if handle.namespace != wanted {
            return Err(Error::CallableNamespace { digest: handle.digest, found: handle.namespace, wanted });
        }
        Ok(())
    }

    /// The host functions, for a SUB child.
    pub(crate) fn host_functions(&self) -> HashMap<Digest, HostFn> {
        let host = |(digest, body): (&Digest, &Body)| match body {
            Body::Host(body) => Some((*digest, body.clone())),
            Body::Chip(_) => None,
        };
        self.by_digest.iter().filter_map(host).collect()
    }

    /// The chip callables, for a chip child.
    pub(crate) fn chip_blobs(&self) -> Vec<(Digest, Arc<[u8]>)> {
        let chip = |(digest, body): (&Digest, &Body)| match body {
            Body::Chip(blob) => Some((*digest, blob.clone())),
            Body::Host(_) => None,
        };
        self.by_digest.iter().filter_map(chip).collect()
    }
}

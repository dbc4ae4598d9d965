//! What one worker has registered: digests, what they stand for, and the handles that are alive.

use std::collections::HashMap;
use std::sync::Arc;

use laneway_core::chip::{CallableSlot, Platform, RuntimeKind};
use laneway_core::model::identity::{self, Descriptor};
use laneway_core::wire::{CallableKind, ChipCallable, Digest};

use crate::callable::{Body, CallableHandle, HostFn, Identity, OrchestrationFn, Role};
use crate::error::{CallableError, Error};

/// The version of callables that are registered without one.
const VERSION: u32 = 1;

/// All registrations of one worker.
pub(crate) struct Registry {
    owner: u64,
    handles: u32,
    closures: u64,
    by_digest: HashMap<Digest, Entry>,
}

/// One digest.
struct Entry {
    body: Body,
    /// Which function of this program, where it is one.
    identity: Option<Identity>,
}

impl Registry {
    /// An empty registry of the worker `owner`, a number unique in this process tree.
    pub(crate) fn new(owner: u64) -> Self {
        Self { owner, handles: 0, closures: 0, by_digest: HashMap::new() }
    }

    /// Registers a function of this program that the fork carries into the children. `plain` says that it captures nothing;
    /// everything else gets an ordinal, so that closures registered in a loop differ (R-1, kind 4).
    pub(crate) fn inherit(
        &mut self,
        name: &str,
        identity: Identity,
        plain: bool,
        body: Body,
    ) -> Result<CallableHandle, Error> {
        let instance = if plain { 0 } else { self.closures + 1 };
        let captured = identity::sha256(&[]);
        let digest = Descriptor::Native { name, version: VERSION, captured, instance }.digest()?;
        let role = body.role();
        match self.by_digest.get(&digest) {
            Some(Entry { identity: Some(taken), .. }) if *taken != identity => {
                let (taken, asked) = (taken.to_string(), identity.to_string());
                return Err(CallableError::CallableNameTaken { name: name.to_owned(), taken, asked }.into());
            }
            Some(_) => {}
            None => {
                self.by_digest.insert(digest, Entry { body, identity: Some(identity) });
            }
        }
        self.closures = self.closures.max(instance);
        Ok(self.handle(digest, CallableKind::Native, role))
    }

    /// Registers a chip callable blob under its digest; the same blob twice is one entry and two handles.
    pub(crate) fn chip(
        &mut self,
        platform: Platform,
        runtime: RuntimeKind,
        blob: &[u8],
    ) -> Result<CallableHandle, Error> {
        let digest = chip_digest(platform, runtime, blob)?;
        if !self.by_digest.contains_key(&digest) {
            self.check_chip_slots()?;
            self.by_digest.insert(digest, Entry { body: Body::Chip(blob.into()), identity: None });
        }
        Ok(self.handle(digest, CallableKind::ChipCallable, Role::Chip))
    }

    /// Takes over the chip callables of the worker above, for the chips below.
    pub(crate) fn adopt_chips(&mut self, blobs: Vec<(Digest, Arc<[u8]>)>) {
        for (digest, blob) in blobs {
            self.by_digest.entry(digest).or_insert(Entry { body: Body::Chip(blob), identity: None });
        }
    }

    ///
    fn check_chip_slots(&self) -> Result<(), CallableError> {
        let slots = CallableSlot::COUNT;
        let taken = self.by_digest.values().filter(|entry| entry.body.role() == Role::Chip).count();
        if taken < slots { Ok(()) } else { Err(CallableError::LocalSlotExhausted { slots }) }
    }

    fn handle(&mut self, digest: Digest, kind: CallableKind, role: Role) -> CallableHandle {
        let id = self.handles;
        self.handles += 1;
        CallableHandle { digest, kind, role, owner: self.owner, id }
    }

    /// Refuses a handle of another worker, or one that the target's kind of child cannot run.
    pub(crate) fn check(&self, handle: &CallableHandle, wanted: Role) -> Result<(), Error> {
        let digest = handle.digest;
        if handle.owner != self.owner || handle.id >= self.handles {
            return Err(CallableError::CallableHandleMutated { digest, why: "another worker registered it" }.into());
        }
        if handle.namespace() != wanted.namespace() {
            let (found, wanted) = (handle.namespace(), wanted.namespace());
            return Err(Error::CallableNamespace { digest, found, wanted });
        }
        if handle.role != wanted {
            return Err(Error::CallableRole { digest, found: handle.role, wanted });
        }
        Ok(())
    }

    /// One callable that only such children run as `served` accepts none of.
    pub(crate) fn unresolvable(&self, served: impl Fn(Role) -> bool) -> Option<(Digest, Role)> {
        let roles = self.by_digest.iter().map(|(digest, entry)| (*digest, entry.body.role()));
        roles.filter(|(_, role)| !served(*role)).min_by_key(|(digest, _)| *digest)
    }

    /// The host functions, for a SUB child.
    pub(crate) fn functions(&self) -> HashMap<Digest, HostFn> {
        self.bodies(|body| match body {
            Body::Function(function) => Some(function.clone()),
            _ => None,
        })
        .collect()
    }

    /// The orchestrations, for a nested worker.
    pub(crate) fn orchestrations(&self) -> HashMap<Digest, OrchestrationFn> {
        self.bodies(|body| match body {
            Body::Orchestration(function) => Some(function.clone()),
            _ => None,
        })
        .collect()
    }

    /// The chip callables, for a chip child.
    pub(crate) fn chip_blobs(&self) -> Vec<(Digest, Arc<[u8]>)> {
        self.bodies(|body| match body {
            Body::Chip(blob) => Some(blob.clone()),
            _ => None,
        })
        .collect()
    }

    fn bodies<B>(&self, pick: impl Fn(&Body) -> Option<B>) -> impl Iterator<Item = (Digest, B)> {
        self.by_digest.iter().filter_map(move |(digest, entry)| Some((*digest, pick(&entry.body)?)))
    }
}

/// What names a chip callable blob that was built for `platform` and `runtime`.
pub(crate) fn chip_digest(platform: Platform, runtime: RuntimeKind, blob: &[u8]) -> Result<Digest, Error> {
    let callable = ChipCallable::parse(blob)?;
    let descriptor = Descriptor::ChipCallable {
        platform: platform.name(),
        runtime: runtime.name(),
        blob: identity::sha256(blob),
        signature: identity::signature_digest(callable.signature()),
    };
    Ok(descriptor.digest()?)
}

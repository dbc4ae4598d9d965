//! What children have from their start: the callables that were registered before it.

use std::collections::HashMap;
use std::sync::Arc;

use laneway_core::wire::Digest;

use crate::callable::{Body, HostFn, OrchestrationFn, Role};
use crate::error::Error;

/// Bytes and what they are called.
pub(crate) type Named = (Digest, Arc<[u8]>);

/// Every callable that was registered before the children are started, shared by all of them.
pub(crate) struct Snapshot(Vec<(Digest, Role, Body)>);

impl Snapshot {
    pub(crate) fn new(callables: impl Iterator<Item = (Digest, Role, Body)>) -> Self {
        Self(callables.collect())
    }

    /// The host functions, for a SUB child.
    pub(crate) fn functions(&self) -> Result<HashMap<Digest, HostFn>, Error> {
        self.bodies(Role::Function, |body| match body {
            Body::Function(function) => Some(function),
            _ => None,
        })
    }

    /// The orchestrations, for a nested worker.
    pub(crate) fn orchestrations(&self) -> Result<HashMap<Digest, OrchestrationFn>, Error> {
        self.bodies(Role::Orchestration, |body| match body {
            Body::Orchestration(function) => Some(function),
            _ => None,
        })
    }

    /// The chip callables, for a chip child.
    pub(crate) fn chip_blobs(&self) -> Vec<Named> {
        let chip = |(digest, _, body): &(Digest, Role, Body)| match body {
            Body::Chip(blob) => Some((*digest, blob.clone())),
            _ => None,
        };
        self.0.iter().filter_map(chip).collect()
    }

    /// What was registered for children and endpoints of a user's own kind.
    pub(crate) fn custom_callables(&self) -> Result<Vec<Named>, Error> {
        let bodies = self.bodies(Role::Custom, |body| match body {
            Body::Custom(bytes) => Some(bytes),
            _ => None,
        })?;
        Ok(bodies.into_iter().collect())
    }

    /// Bodies of one role, ready to be called by whoever asks.
    fn bodies<B>(&self, role: Role, pick: impl Fn(Body) -> Option<B>) -> Result<HashMap<Digest, B>, Error> {
        let mut picked = HashMap::new();
        for (digest, _, body) in self.0.iter().filter(|(_, found, _)| *found == role) {
            let body = match body {
                // Only where it is called: a library is loaded nowhere else (P-26).
                Body::Late(late) => late.clone().body()?,
                body => body.clone(),
            };
            picked.extend(pick(body).map(|body| (*digest, body)));
        }
        Ok(picked)
    }
}

//! The cases, by what they are about.

mod crowd;
mod floors;
mod graphs;
mod levels;
#[cfg(feature = "peers")]
mod peers;

use super::case::Case;
use super::floors::Floors;
#[cfg(feature = "peers")]
use super::peers::Peers;
use super::trees::Trees;

pub(super) use crowd::BUSY;

/// Everything that cases run on.
pub(super) struct Stage {
    pub(super) floors: Floors,
    #[cfg(feature = "peers")]
    pub(super) peers: Peers,
    pub(super) trees: Trees,
}

/// All of them, in the order in which they take turns.
pub(super) fn all(stage: &Stage) -> Vec<Case<'_>> {
    let mut cases = floors::cases(&stage.floors);
    #[cfg(feature = "peers")]
    cases.extend(peers::cases(&stage.peers));
    cases.extend(graphs::cases(&stage.trees));
    cases.extend(levels::cases(&stage.trees));
    cases.extend(crowd::cases(&stage.trees));
    cases
}

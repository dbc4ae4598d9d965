//! Who is suspected of what, and which cases must catch it.

mod child;
mod memory;
mod results;
mod runs;
mod tree;

use laneway_sim::Profile;

use crate::Suspect;

const HBG: Profile = Profile::A2a3HostBuildGraph;
const A5_HBG: Profile = Profile::A5HostBuildGraph;

/// All of them.
pub(crate) fn suspects() -> impl Iterator<Item = &'static Suspect> {
    [runs::SUSPECTS, memory::SUSPECTS, results::SUSPECTS, child::SUSPECTS, tree::SUSPECTS].into_iter().flatten()
}

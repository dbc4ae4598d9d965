//! The search: every state that can be reached, and whether all of it can still come to an end.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use laneway_core::serve::Memory;

use crate::state::Node;
use crate::world::World;

/// Two independent multiply-and-rotate folds: 128 bits, so that among ten million states no two are taken for one.
struct Fold(u64, u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        self.1 = (self.1.rotate_left(29) ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.1
    }
}

fn fingerprint(node: &Node) -> u128 {
    let mut fold = Fold(1, 2);
    node.hash(&mut fold);
    u128::from(fold.0) | u128::from(fold.1) << 64
}

/// Visits every reachable state; from each of them a final one must be reachable, or something can be lost for good.
pub(crate) fn explore(name: &str, world: &World) -> usize {
    let mut memory = Memory::new();
    let mut known: HashMap<u128, u32> = HashMap::new();
    let mut frontier = vec![(0_u32, Node::start(world))];
    let mut before: Vec<Vec<u32>> = vec![Vec::new()];
    let mut finals = Vec::new();
    known.insert(fingerprint(&frontier[0].1), 0);
    while let Some((id, node)) = frontier.pop() {
        if node.is_final(world) {
            finals.push(id);
        }
        for next in node.successors(world, &mut memory) {
            let fresh = known.len() as u32;
            let to = *known.entry(fingerprint(&next)).or_insert(fresh);
            if to == fresh {
                before.push(Vec::new());
                frontier.push((to, next));
            }
            before[to as usize].push(id);
        }
        assert!(known.len() < 10_000_000, "{name}: more states than were meant");
    }
    let mut ends = vec![false; before.len()];
    let mut work = finals;
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut ends[id as usize], true) {
            work.extend(&before[id as usize]);
        }
    }
    let lost = ends.iter().filter(|end| !**end).count();
    assert_eq!(lost, 0, "{name}: {lost} states from which nothing ends any more");
    println!("{name}: {} states", before.len());
    before.len()
}

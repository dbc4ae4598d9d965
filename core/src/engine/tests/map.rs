//! The interval map against a plain list.

use alloc::vec::Vec;

use crate::engine::backing::TreeIndex;
use crate::engine::map::{Access, Map, NewEntry, Plan, Roots, Standing, View};
use crate::engine::slot::NIL;
use crate::engine::window::Window;
use crate::ids::{PipelineSlot, TaskSlot};
use crate::model::Footprint;
use crate::wire::{AddressSpace, ChipTensor, Dtype};

struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }
}

fn view(draw: &mut Draw) -> ChipTensor {
    let start = u64::from(draw.below(3000));
    let (shape, strides) = match draw.below(4) {
        0 | 1 => ([1 + draw.below(6), 1 + draw.below(30)], [64, 1]),
        2 => ([1, 1 + draw.below(500)], [1000, 1]),
        _ => ([1 + draw.below(3), 1 + draw.below(10)], [96, 2]),
    };
    ChipTensor::strided(0x1000, 1 << 16, Dtype::U8, &shape, &strides, start, AddressSpace::Host).expect("inside")
}

/// What comes behind all that came before, most of it without gaps, until the buffer ends.
fn step(walk: &mut u32, draw: &mut Draw) -> ChipTensor {
    let (rows, columns) = if draw.below(8) == 0 { (3, 1 + draw.below(30)) } else { (1, 1 + draw.below(100)) };
    let start = if *walk > 60_000 { 0 } else { *walk };
    *walk = start + (rows - 1) * 64 + columns;
    ChipTensor::strided(0x1000, 1 << 16, Dtype::U8, &[rows, columns], &[64, 1], start.into(), AddressSpace::Host)
        .expect("inside")
}

fn parts(tensor: &ChipTensor) -> (Window, Footprint) {
    (Window::of(tensor, tensor.byte_range(), 0x1000), Footprint::of(tensor))
}

fn view_of<'a>(window: &'a Window, shape: &'a Footprint) -> View<'a> {
    if window.contiguous { View::Contiguous(window.range) } else { View::Strided(window, shape) }
}

/// Makes an entry and says which node it has.
fn create(map: &mut Map, view: View<'_>) -> (u32, u32) {
    let (tree, stays) = (TreeIndex::NONE, Some(PipelineSlot::Zero));
    let new = NewEntry { slot: TaskSlot(0), access: Access::Write, tree, stays, view, plan: Plan::Link };
    let entry = map.create(&new);
    match map.standing(entry) {
        Standing::Alone(node) => (entry, node),
        other => panic!("a new entry is {other:?}"),
    }
}

fn chain(map: &Map, mut node: u32) -> Vec<u32> {
    let mut all = Vec::new();
    while node != NIL {
        all.push(node);
        node = map.chained(node);
    }
    all.sort_unstable();
    all
}

fn found(map: &mut Map, roots: &mut Roots, tensor: &ChipTensor) -> (Vec<u32>, Vec<u32>) {
    let (window, shape) = parts(tensor);
    let found = map.overlapping(roots, Access::Write, &view_of(&window, &shape));
    (chain(map, found.taken), chain(map, found.vacant))
}

/// The nodes of a plain list whose bytes may be among those of `tensor`.
fn listed(nodes: &[(u32, ChipTensor)], tensor: &ChipTensor) -> Vec<u32> {
    let (window, shape) = parts(tensor);
    let meets = |other: &ChipTensor| {
        let (other_window, other_shape) = parts(other);
        other_window.may_overlap(&window) && other_shape.overlaps(&shape)
    };
    let mut all: Vec<u32> = nodes.iter().filter(|(_, other)| meets(other)).map(|(node, _)| *node).collect();
    all.sort_unstable();
    all
}

/// E-16, E-42: every look-up finds what comparing with each entry finds, over thousands of insertions and removals,
/// and the trees stay balanced with true summaries. Vacant places are told from the others, are taken over, taken out, and
/// given up together; there is always a node for an entry.
#[test]
fn the_map_finds_what_a_list_finds() {
    let mut draw = Draw(7);
    let (mut moved_in, mut given_up, mut ran_out) = (0, 0, 0);
    for capacity in [1, 2, 3, 40, 700] {
        let mut map = Map::new(capacity);
        let mut roots = Roots::EMPTY;
        let mut walk = 0;
        let mut live: Vec<(u32, ChipTensor)> = Vec::new();
        let mut vacant: Vec<(u32, ChipTensor)> = Vec::new();
        for round in 0..6_000 {
            let tensor = match draw.below(8) {
                // What has been there before comes again, now and then.
                0 | 1 if !vacant.is_empty() => vacant[draw.below(vacant.len() as u32) as usize].1,
                2..5 => step(&mut walk, &mut draw),
                _ => view(&mut draw),
            };
            let (window, shape) = parts(&tensor);
            let view = view_of(&window, &shape);
            assert_eq!(found(&mut map, &mut roots, &tensor), (listed(&live, &tensor), listed(&vacant, &tensor)));
            let full = live.len() == capacity as usize;
            // Every tenth part of the test only empties the map.
            let emptying = round / 600 % 2 == 1 && round % 600 > 400;
            if full || (!live.is_empty() && (emptying || draw.below(5) < 2)) {
                let (node, tensor) = live.swap_remove(draw.below(live.len() as u32) as usize);
                let entry = map.entry(node);
                if draw.below(3) == 0 {
                    map.remove(&mut roots, node);
                } else {
                    map.vacate(PipelineSlot::Zero, node);
                    vacant.push((node, tensor));
                }
                map.free(entry);
            } else if let Some(position) = live.iter().position(|(node, _)| map.is_of(*node, &view)) {
                let (node, _) = live.swap_remove(position);
                let old = map.entry(node);
                let entry = map.inherit(node);
                map.supersede(node, entry, TaskSlot(0));
                map.free(old);
                live.push((node, tensor));
            } else if let Some(position) = vacant.iter().position(|(node, _)| map.is_of(*node, &view)) {
                let (node, _) = vacant.remove(position);
                let entry = map.move_in(node);
                assert!(!map.is_vacant(node));
                assert_eq!(found(&mut map, &mut roots, &tensor).0, listed(&live, &tensor), "it orders nothing yet");
                moved_in += 1;
                if draw.below(4) == 0 {
                    // The submit failed.
                    map.move_out(node, entry);
                    map.free(entry);
                    vacant.push((node, tensor));
                } else {
                    map.supersede(node, entry, TaskSlot(0));
                    live.push((node, tensor));
                }
            } else {
                if !map.has_free_node() {
                    let oldest = map.oldest_vacant(PipelineSlot::Zero).expect("a node is free or vacant");
                    assert_eq!(oldest, vacant.remove(0).0, "the oldest goes first");
                    map.remove(&mut roots, oldest);
                    ran_out += 1;
                }
                let (_, node) = create(&mut map, view);
                map.link(&mut roots, node);
                live.push((node, tensor));
            }
            assert_eq!(map.is_all_vacant(PipelineSlot::Zero), live.is_empty() && !vacant.is_empty());
            if live.is_empty() && draw.below(2) == 0 {
                given_up += usize::from(!vacant.is_empty());
                roots.forget_writers();
                map.free_all_vacant(PipelineSlot::Zero);
                vacant.clear();
            }
            map.check(&roots);
            assert_eq!(map.used() as usize, live.len());
        }
    }
    assert!(moved_in > 100 && given_up > 100 && ran_out > 100, "{moved_in} {given_up} {ran_out}");
}

fn tile(index: u32, rows: u32, columns: u32) -> ChipTensor {
    let per_row = 4096 / columns;
    let start = u64::from(index / per_row) * u64::from(rows) * 4096 + u64::from(index % per_row) * u64::from(columns);
    ChipTensor::strided(0x1000, 1 << 26, Dtype::F32, &[rows, columns], &[4096, 1], start, AddressSpace::Host)
        .expect("inside")
}

/// E-42, T-1: among 4,096 tiles or columns of one matrix a look-up touches a few dozen entries, not thousands.
#[test]
fn a_look_up_among_thousands_of_tiles_touches_a_few() {
    for (rows, columns) in [(64, 64), (4096, 1), (1, 4096), (256, 16)] {
        let mut map = Map::new(4096);
        let mut roots = Roots::EMPTY;
        for index in 0..4096 {
            let tensor = tile(index, rows, columns);
            let (window, shape) = parts(&tensor);
            let (_, node) = create(&mut map, view_of(&window, &shape));
            map.link(&mut roots, node);
        }
        let before = map.visited();
        for index in 0..4096 {
            assert_eq!(found(&mut map, &mut roots, &tile(index, rows, columns)).0.len(), 1);
        }
        let each = (map.visited() - before) / 4096;
        assert!(each <= 40, "{rows} × {columns}: {each} entries per look-up");
    }
}

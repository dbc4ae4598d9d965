//! The interval map against a plain list.

use alloc::vec::Vec;

use crate::engine::backing::TreeIndex;
use crate::engine::map::{Access, Map, NewEntry, Plan, Roots, Standing, View};
use crate::engine::slot::NIL;
use crate::engine::window::Window;
use crate::ids::TaskSlot;
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

fn parts(tensor: &ChipTensor) -> (Window, Footprint) {
    (Window::of(tensor, tensor.byte_range(), 0x1000), Footprint::of(tensor))
}

fn view_of<'a>(window: &'a Window, shape: &'a Footprint) -> View<'a> {
    if window.contiguous { View::Contiguous(window.range) } else { View::Strided(window, shape) }
}

/// Makes an entry and says which node it has.
fn create(map: &mut Map, view: View<'_>) -> (u32, u32) {
    let tree = TreeIndex::NONE;
    let entry = map.create(&NewEntry { slot: TaskSlot(0), access: Access::Write, tree, view, plan: Plan::Link }, NIL);
    match map.standing(entry) {
        Standing::Alone(node) => (entry, node),
        other => panic!("a new entry is {other:?}"),
    }
}

fn found(map: &mut Map, roots: &Roots, tensor: &ChipTensor) -> Vec<u32> {
    let (window, shape) = parts(tensor);
    let mut node = map.overlapping(roots.writers, &view_of(&window, &shape));
    let mut all = Vec::new();
    while node != NIL {
        all.push(map.entry(node));
        node = map.chained(node);
    }
    all.sort_unstable();
    all
}

/// E-16, E-42: every look-up finds what comparing with each entry finds, over thousands of insertions and removals,
/// and the trees stay balanced with true summaries.
#[test]
fn the_map_finds_what_a_list_finds() {
    let mut draw = Draw(7);
    for capacity in [1, 2, 3, 40, 700] {
        let mut map = Map::new(capacity);
        let mut roots = Roots::EMPTY;
        let mut live: Vec<(u32, ChipTensor)> = Vec::new();
        for _ in 0..6_000 {
            let tensor = view(&mut draw);
            let (window, shape) = parts(&tensor);
            let expected: Vec<u32> = {
                let meets = |other: &ChipTensor| {
                    let (other_window, other_shape) = parts(other);
                    other_window.may_overlap(&window) && other_shape.overlaps(&shape)
                };
                let mut all: Vec<u32> =
                    live.iter().filter(|(_, other)| meets(other)).map(|(entry, _)| *entry).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(found(&mut map, &roots, &tensor), expected);
            let full = live.len() == capacity as usize;
            if full || (!live.is_empty() && draw.below(5) < 2) {
                let (entry, _) = live.swap_remove(draw.below(live.len() as u32) as usize);
                let Standing::Linked(node) = map.standing(entry) else { panic!("a live entry is linked") };
                map.remove(&mut roots, node);
                map.free(entry);
            } else {
                let view = view_of(&window, &shape);
                let twin = live.iter().position(|(other, _)| match map.standing(*other) {
                    Standing::Linked(node) => map.is_of(node, &view),
                    _ => false,
                });
                let entry = match twin {
                    Some(position) => {
                        let (old, _) = live.swap_remove(position);
                        let Standing::Linked(node) = map.standing(old) else { panic!("a live entry is linked") };
                        let entry = map.inherit(node, NIL);
                        map.supersede(node, entry, TaskSlot(0));
                        map.free(old);
                        entry
                    }
                    None => {
                        let (entry, node) = create(&mut map, view);
                        map.link(&mut roots, node);
                        entry
                    }
                };
                live.push((entry, tensor));
            }
            map.check(&roots);
        }
        assert_eq!(map.used() as usize, live.len());
    }
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
            assert_eq!(found(&mut map, &roots, &tile(index, rows, columns)).len(), 1);
        }
        let each = (map.visited() - before) / 4096;
        assert!(each <= 40, "{rows} × {columns}: {each} entries per look-up");
    }
}

//! What programs are made of.

use proptest::prelude::*;

pub(crate) const NEXT: u16 = 3;
pub(crate) const SUBS: u16 = 2;

/// What an argument looks at. The tidy half can be decided exactly from both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View {
    /// Contiguous bytes of the buffer, in units of 16.
    Slice { at: u8, len: u8 },
    /// A tile of the 8 × 8 matrix of f32 at the start of the buffer.
    Tile { row: u8, column: u8, rows: u8, columns: u8 },
    /// The whole matrix.
    Whole,
    /// Part of a slab that the run allocated, or once did.
    Slab { which: u8, half: u8 },
    /// Device memory of the task's worker.
    Device { at: u8, len: u8 },
    /// Outputs only: to be allocated.
    Fresh { kib: u8 },
    /// A tile as columns by rows.
    Transposed { row: u8, column: u8, rows: u8, columns: u8 },
    /// Every second or third element.
    Strided { at: u8, count: u8, step: u8 },
    /// A slice whose buffer starts in the middle of the registered one.
    Rebased { at: u8, len: u8 },
    /// Tiles of three dimensions: 2 × 4 × 8 elements of the matrix.
    Cube { plane: u8, row: u8, column: u8, columns: u8 },
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Begin,
    Close,
    Fail,
    Cancel { which: u8 },
    ScopeBegin,
    ScopeEnd,
    Alloc { kib: u8 },
    Single { worker: u8, diagnostic: bool, arguments: Vec<(View, u8)> },
    Sub { arguments: Vec<(View, u8)> },
    Group { first: u8, members: Vec<Vec<(View, u8)>> },
    SubGroup { members: Vec<Vec<(View, u8)>> },
    Pump,
    End { which: u8, failure: bool },
    Accept { which: u8 },
    Late,
    Dead { endpoint: u8 },
}

fn tidy() -> impl Strategy<Value = View> {
    prop_oneof![
        3 => (0u8..16, 1u8..6).prop_map(|(at, len)| View::Slice { at, len }),
        4 => (0u8..8, 0u8..8, 1u8..5, 1u8..5)
            .prop_map(|(row, column, rows, columns)| View::Tile { row, column, rows, columns }),
        1 => Just(View::Whole),
        2 => (any::<u8>(), 0u8..3).prop_map(|(which, half)| View::Slab { which, half }),
        1 => (0u8..8, 1u8..4).prop_map(|(at, len)| View::Device { at, len }),
        1 => (1u8..6).prop_map(|kib| View::Fresh { kib }),
    ]
}

fn wild() -> impl Strategy<Value = View> {
    prop_oneof![
        3 => tidy(),
        1 => (0u8..8, 0u8..8, 1u8..5, 1u8..5)
            .prop_map(|(row, column, rows, columns)| View::Transposed { row, column, rows, columns }),
        1 => (0u8..64, 1u8..10, 2u8..4).prop_map(|(at, count, step)| View::Strided { at, count, step }),
        1 => (4u8..16, 1u8..6).prop_map(|(at, len)| View::Rebased { at, len }),
        1 => (0u8..2, 0u8..4, 0u8..8, 1u8..5)
            .prop_map(|(plane, row, column, columns)| View::Cube { plane, row, column, columns }),
    ]
}

fn op(view: impl Strategy<Value = View> + Clone + 'static) -> impl Strategy<Value = Op> {
    let list = |view, most| prop::collection::vec((view, 0u8..5), 0..most);
    prop_oneof![
        4 => Just(Op::Begin),
        2 => Just(Op::Close),
        1 => prop_oneof![3 => Just(Op::Fail), 2 => any::<u8>().prop_map(|which| Op::Cancel { which })],
        2 => Just(Op::ScopeBegin),
        2 => Just(Op::ScopeEnd),
        2 => (1u8..20).prop_map(|kib| Op::Alloc { kib }),
        16 => (0u8..NEXT as u8, prop::bool::weighted(0.1), list(view.clone(), 4))
            .prop_map(|(worker, diagnostic, arguments)| Op::Single { worker, diagnostic, arguments }),
        4 => list(view.clone(), 3).prop_map(|arguments| Op::Sub { arguments }),
        2 => (0u8..NEXT as u8, prop::collection::vec(list(view.clone(), 3), 1..4))
            .prop_map(|(first, members)| Op::Group { first, members }),
        1 => prop::collection::vec(list(view, 2), 1..3).prop_map(|members| Op::SubGroup { members }),
        8 => Just(Op::Pump),
        16 => (any::<u8>(), prop::bool::weighted(0.08)).prop_map(|(which, failure)| Op::End { which, failure }),
        2 => any::<u8>().prop_map(|which| Op::Accept { which }),
        1 => Just(Op::Late),
        1 => (0u8..30).prop_map(|endpoint| Op::Dead { endpoint }),
    ]
}

/// Tasks of one long run that come and go, most of them writers, so that what is written was often written before by a task
/// that is gone.
fn rolling_op() -> impl Strategy<Value = Op> {
    let slice = (0u8..16, 1u8..4).prop_map(|(at, len)| View::Slice { at, len });
    let tile =
        (0u8..4, 0u8..4).prop_map(|(row, column)| View::Tile { row: row * 2, column: column * 2, rows: 2, columns: 2 });
    let view = prop_oneof![3 => slice, 2 => tile, 1 => (0u8..4, 1u8..3).prop_map(|(at, len)| View::Device { at, len })];
    prop_oneof![
        3 => Just(Op::ScopeBegin),
        4 => Just(Op::ScopeEnd),
        12 => (0u8..NEXT as u8, prop::collection::vec((view, 0u8..4), 1..4))
            .prop_map(|(worker, arguments)| Op::Single { worker, diagnostic: false, arguments }),
        6 => Just(Op::Pump),
        12 => (any::<u8>(), prop::bool::weighted(0.02)).prop_map(|(which, failure)| Op::End { which, failure }),
    ]
}

/// How much room a program has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    Ample,
    Tiny,
    /// Only the map is small.
    FewEntries,
}

/// What a program is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// Every view can be decided exactly.
    Tidy,
    Wild,
    /// Tidy, and one run that goes on.
    Rolling,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub family: Family,
    pub room: Room,
    pub depth: usize,
    pub strict_war: bool,
    pub ops: Vec<Op>,
}

pub(crate) fn program(family: Family) -> BoxedStrategy<Program> {
    let view = if family == Family::Wild { wild().boxed() } else { tidy().boxed() };
    let room = prop_oneof![3 => Just(Room::Ample), 1 => Just(Room::Tiny)];
    match family {
        Family::Tidy | Family::Wild => {
            (room, 1usize..3, prop::bool::weighted(0.2), prop::collection::vec(op(view), 1..70))
                .prop_map(move |(room, depth, strict_war, ops)| Program { family, room, depth, strict_war, ops })
                .boxed()
        }
        Family::Rolling => {
            let room = prop_oneof![Just(Room::Ample), Just(Room::FewEntries)];
            (room, prop::bool::weighted(0.1), prop::collection::vec(rolling_op(), 100..500))
                .prop_map(move |(room, strict_war, mut ops)| {
                    ops.insert(0, Op::Begin);
                    Program { family, room, depth: 1, strict_war, ops }
                })
                .boxed()
        }
    }
}

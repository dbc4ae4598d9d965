//! What the machine itself takes: the least that any exchange between processes can cost here.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use laneway_core::mailbox::Words;
use laneway_linux::sys::cpu;
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::lifeline::{LifelineHold, LifelinePipe};
use laneway_linux::sys::park::Bed;
use laneway_linux::sys::spin::{PauseCost, SpinWindow};
use laneway_linux::sys::words::MappedWords;

use super::Failure;
use super::bare::BarePool;
use super::partner::{FREE, Partner, Seat, spin_until, wake};
use super::slice::Slice;

/// How long nothing happens before a wake is measured.
pub(super) const IDLE: Duration = Duration::from_millis(1);

/// All floors.
pub(super) struct Floors {
    pub(super) line: RefCell<Line>,
    pub(super) exchange: RefCell<Exchange>,
    pub(super) relay: RefCell<Relay>,
    pub(super) wake: RefCell<Wake>,
    pub(super) bare: RefCell<BarePool>,
}

impl Floors {
    /// `cpu` is where the other side of the pinned ones is.
    pub(super) fn start(cpu: usize) -> Result<Self, Failure> {
        Ok(Self {
            line: RefCell::new(Line::start(cpu)?),
            exchange: RefCell::new(Exchange::start(cpu)?),
            relay: RefCell::new(Relay::start()?),
            wake: RefCell::new(Wake::start(cpu)?),
            bare: RefCell::new(BarePool::start(9)?),
        })
    }
}

/// Floor A: one cache line that two pinned processes write in turn; a sample is there and back.
pub(super) struct Line(Partner);

impl Line {
    const WORD: usize = FREE;

    pub(super) fn start(cpu: usize) -> Result<Self, Failure> {
        let partner = Partner::start("bench-floor-line", 64, Some(cpu), &[], |_| {
            Ok(Box::new(|seat| {
                let words = seat.words;
                while seat.goes_on() {
                    let seen = words.load(Self::WORD);
                    if seen & 1 == 1 {
                        words.store(Self::WORD, seen + 1);
                    } else {
                        std::hint::spin_loop();
                    }
                }
            }))
        })?;
        Ok(Self(partner))
    }

    pub(super) fn measure(&mut self, slice: &mut Slice) -> Result<(), Failure> {
        let words = self.0.words();
        self.0.go();
        slice.repeat(1, || {
            let next = (words.load_relaxed(Self::WORD) + 1) & 0xffff | 1;
            words.store(Self::WORD, next);
            spin_until(|| words.load(Self::WORD) != next)
        })?;
        self.0.stop()
    }
}

/// A mailbox as bare as it can be: a state word, 256 bytes in, 64 bytes out.
#[derive(Clone, Copy)]
struct Mailbox(MappedWords);

impl Mailbox {
    const STATE: usize = FREE;
    const REQUEST: usize = FREE + 64;
    const REPLY: usize = Self::REQUEST + 256;
    const BYTES: usize = Self::REPLY + 64 - FREE;
    /// Values of the state word.
    const EMPTY: i32 = 0;
    const ASKED: i32 = 1;
    const ANSWERED: i32 = 2;

    /// Asks something new: every byte differs from the last question.
    #[inline]
    fn ask(self, payload: &mut [u8; 256]) {
        payload.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        self.0.copy_in(Self::REQUEST, payload);
        self.0.store(Self::STATE, Self::ASKED);
    }

    #[inline]
    fn is_asked(self) -> bool {
        self.0.load(Self::STATE) == Self::ASKED
    }

    #[inline]
    fn question(self, payload: &mut [u8; 256]) {
        self.0.copy_out(Self::REQUEST, payload);
    }

    #[inline]
    fn answer(self, payload: &[u8; 256]) {
        self.0.copy_in(Self::REPLY, &payload[..64]);
        self.0.store(Self::STATE, Self::ANSWERED);
    }

    #[inline]
    fn is_answered(self) -> bool {
        self.0.load(Self::STATE) == Self::ANSWERED
    }

    /// Takes the answer in, and checks it.
    #[inline]
    fn take(self, payload: &[u8; 256]) -> Result<(), Failure> {
        let mut reply = [0; 64];
        self.0.copy_out(Self::REPLY, &mut reply);
        self.0.store_relaxed(Self::STATE, Self::EMPTY);
        if reply[..] == payload[..64] { Ok(()) } else { Err("an answer of a floor is not what was asked".into()) }
    }
}

/// Floor B: a bare mailbox exchange between two pinned processes that spin for each other.
pub(super) struct Exchange {
    partner: Partner,
    payload: [u8; 256],
}

impl Exchange {
    pub(super) fn start(cpu: usize) -> Result<Self, Failure> {
        let partner = Partner::start("bench-floor-exchange", Mailbox::BYTES, Some(cpu), &[], |_| {
            Ok(Box::new(|seat| {
                let mailbox = Mailbox(seat.words);
                let mut payload = [0; 256];
                while seat.goes_on() {
                    if mailbox.is_asked() {
                        mailbox.question(&mut payload);
                        mailbox.answer(&payload);
                    } else {
                        std::hint::spin_loop();
                    }
                }
            }))
        })?;
        Ok(Self { partner, payload: [0; 256] })
    }

    pub(super) fn measure(&mut self, slice: &mut Slice) -> Result<(), Failure> {
        let mailbox = Mailbox(self.partner.words());
        self.partner.go();
        slice.repeat(1, || {
            mailbox.ask(&mut self.payload);
            spin_until(|| mailbox.is_answered())?;
            mailbox.take(&self.payload)
        })?;
        self.partner.stop()
    }
}

/// One side's way to the next process of the relay, with the wait policy that workers and children have: spin for the same
/// time, but not for a peer on the own CPU, and longer by a wake after one was paid for; announce, look again, sleep. A waker pays
/// for a system call only if the other side has announced its sleep.
struct Hop {
    mailbox: Mailbox,
    window: SpinWindow,
    /// The CPU that this side last said it runs on, and whether it was woken since it last spun.
    told: Cell<Option<u16>>,
    woken: Cell<bool>,
}

impl Hop {
    const ASKER_PARKED: usize = FREE + Mailbox::BYTES;
    const SERVER_PARKED: usize = Self::ASKER_PARKED + 64;
    const ASKER_CPU: usize = Self::SERVER_PARKED + 64;
    const SERVER_CPU: usize = Self::ASKER_CPU + 64;
    const BYTES: usize = Mailbox::BYTES + 256;
    /// Longer by this after a wake; about what a worker measures here.
    const WAKE: Duration = Duration::from_micros(40);

    fn new(words: MappedWords) -> Self {
        let window = SpinWindow::new(Duration::from_micros(6), PauseCost::measured());
        Self { mailbox: Mailbox(words), window, told: Cell::new(None), woken: Cell::new(false) }
    }

    /// The window of the next wait, of the side whose CPU stands at `own`.
    #[inline]
    fn window(&self, own: usize, peer: usize) -> SpinWindow {
        let words = self.mailbox.0;
        let here = cpu::current();
        if self.told.replace(here) != here {
            words.store_relaxed(own, here.map_or(0, |cpu| i32::from(cpu) + 1));
        }
        let woken = self.woken.take();
        if here.is_some_and(|cpu| words.load_relaxed(peer) == i32::from(cpu) + 1) {
            SpinWindow::NONE
        } else if woken {
            self.window.longer(Self::WAKE, PauseCost::measured())
        } else {
            self.window
        }
    }

    /// Waits for a question; `false` after a sleep.
    #[inline]
    fn await_question(&self, seat: &mut Seat<'_>) -> bool {
        let asked = self.window(Self::SERVER_CPU, Self::ASKER_CPU).until(|| self.mailbox.is_asked());
        if !asked {
            seat.park(Self::SERVER_PARKED, || self.mailbox.is_asked());
            self.woken.set(true);
        }
        asked
    }

    /// Asks and waits for the answer.
    #[inline]
    fn exchange(&self, payload: &mut [u8; 256], server: &Bell, bed: &mut Bed) -> Result<(), Failure> {
        self.mailbox.ask(payload);
        wake(&self.mailbox.0, Self::SERVER_PARKED, server);
        while !self.window(Self::ASKER_CPU, Self::SERVER_CPU).until(|| self.mailbox.is_answered()) {
            bed.park(&self.mailbox.0, Self::ASKER_PARKED, None, || self.mailbox.is_answered());
            self.woken.set(true);
        }
        self.mailbox.take(payload)
    }
}

/// Floor C: a question goes from the first process through the second to the third, and its answer back.
pub(super) struct Relay {
    middle: Partner,
    leaf: Partner,
    hop: Hop,
    bed: Bed,
    payload: [u8; 256],
    /// Keeps the bed of this process from being told that its parent is gone.
    _hold: LifelineHold,
}

impl Relay {
    pub(super) fn start() -> Result<Self, Failure> {
        let (to_main, to_middle) = (Arc::new(Bell::new()?), Arc::new(Bell::new()?));
        let leaf = {
            let up = to_middle.clone();
            Partner::start("bench-relay-leaf", Hop::BYTES, None, &[&to_middle], move |seat| {
                let hop = Hop::new(seat.words);
                let mut payload = [0; 256];
                Ok(Box::new(move |seat| {
                    while seat.goes_on() {
                        if !hop.await_question(seat) {
                            continue;
                        }
                        hop.mailbox.question(&mut payload);
                        hop.mailbox.answer(&payload);
                        wake(&hop.mailbox.0, Hop::ASKER_PARKED, &up);
                    }
                }))
            })?
        };
        let middle = {
            let (up, own, down) = (to_main.clone(), to_middle.clone(), leaf.shared_bell());
            let below = Hop::new(leaf.words());
            let bells = [&*to_main, &*to_middle, leaf.bell()];
            Partner::start("bench-relay-middle", Hop::BYTES, None, &bells, move |seat| {
                let above = Hop::new(seat.words);
                let mut bed = Bed::new(&own, seat.lifeline, None)?;
                let (mut payload, mut passed_on) = ([0; 256], [0; 256]);
                Ok(Box::new(move |seat| {
                    while seat.goes_on() {
                        if !above.await_question(seat) {
                            continue;
                        }
                        above.mailbox.question(&mut payload);
                        if below.exchange(&mut passed_on, &down, &mut bed).is_ok() {
                            above.mailbox.answer(&payload);
                            wake(&above.mailbox.0, Hop::ASKER_PARKED, &up);
                        }
                    }
                }))
            })?
        };
        let (hold, lifeline) = LifelinePipe::new()?.split();
        let bed = Bed::new(&to_main, &lifeline, None)?;
        let hop = Hop::new(middle.words());
        Ok(Self { middle, leaf, hop, bed, payload: [0; 256], _hold: hold })
    }

    pub(super) fn measure(&mut self, slice: &mut Slice) -> Result<(), Failure> {
        self.leaf.go();
        self.middle.go();
        let (hop, middle) = (&self.hop, self.middle.bell());
        slice.repeat(1, || hop.exchange(&mut self.payload, middle, &mut self.bed))?;
        self.middle.stop()?;
        self.leaf.stop()
    }
}

/// Kernel wake K: from the write of an eventfd until a store of the process that slept on it is seen, after both sides were
/// idle for a while.
pub(super) struct Wake(Partner);

impl Wake {
    const ASKED: usize = FREE;
    const SEEN: usize = FREE + 64;
    const PARKED: usize = FREE + 128;

    pub(super) fn start(cpu: usize) -> Result<Self, Failure> {
        let partner = Partner::start("bench-floor-wake", 192, Some(cpu), &[], |_| {
            Ok(Box::new(|seat| {
                let words = seat.words;
                while seat.goes_on() {
                    let asked = words.load(Self::ASKED);
                    words.store(Self::SEEN, asked);
                    seat.park(Self::PARKED, || words.load(Self::ASKED) != asked);
                }
            }))
        })?;
        Ok(Self(partner))
    }

    /// `idle` is how long nothing happens before each sample.
    pub(super) fn measure(&mut self, slice: &mut Slice, idle: Duration) -> Result<(), Failure> {
        let words = self.0.words();
        self.0.go();
        slice.repeat_after(
            || thread::sleep(idle),
            || {
                let next = words.load_relaxed(Self::ASKED).wrapping_add(1);
                // The bell is the doorbell and the news at once: the store costs nothing beside it.
                words.store(Self::ASKED, next);
                self.0.bell().ring();
                spin_until(|| words.load(Self::SEEN) == next)
            },
        )?;
        self.0.stop()
    }
}

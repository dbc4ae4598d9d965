//! Random schedules of a whole level: who moves next, who dies, what is asked for, all from one seed.

use std::time::Duration;

use laneway_core::driver::ControlTicket;
use laneway_core::ids::{EndpointIndex, RunId};
use laneway_core::wire::control::ControlRequest;

use crate::device::{QUICK, SLOW};
use crate::dice::Dice;
use crate::kind::{FAILS, Kind, UNKNOWN, digest};
use crate::world::*;

/// Everything that was asked of the level and must come to an end.
#[derive(Default)]
struct Asked {
    runs: Vec<RunId>,
    building: Option<RunId>,
    controls: Vec<ControlTicket>,
}

impl Asked {
    fn act(&mut self, world: &mut World, dice: &Dice) {
        let children = world.members.len();
        match (dice.roll(8), self.building) {
            (0 | 1, None) => {
                if let Ok(run) = world.driver.engine_mut().begin_run() {
                    self.runs.push(run);
                    self.building = Some(run);
                }
            }
            (0..=4, Some(run)) => {
                let behaviour = [QUICK, QUICK, SLOW, 1, FAILS, UNKNOWN][dice.roll(6)];
                // Refused where the target is dead or the run was cancelled; then there is nothing to wait for.
                let _ = match dice.roll(8) {
                    0 => world.submit_group(run, dice.one_in(2), behaviour),
                    1..=4 => {
                        world.submit_update(run, dice.roll(children), behaviour, dice.roll(BUFFERS as usize) as u64)
                    }
                    _ => world.submit(run, dice.roll(children), behaviour),
                };
            }
            (5, Some(run)) => {
                world.driver.engine_mut().close_submission(run).unwrap();
                self.building = None;
            }
            (6, _) => {
                let request = match dice.roll(4) {
                    0 => ControlRequest::Unregister { digest: digest(250) },
                    1 => ControlRequest::Malloc { bytes: 0 },
                    _ => ControlRequest::Malloc { bytes: 8 },
                };
                let timeout = dice.one_in(8).then(|| Duration::from_micros(50));
                let endpoint = EndpointIndex(dice.roll(children) as u16);
                if let Ok(ticket) = world.driver.control(endpoint, &request, timeout, world.now) {
                    self.controls.push(ticket);
                }
            }
            (7, _) if dice.one_in(6) => {
                if let Some(run) = self.runs.last() {
                    // A run that has ended is cancelled in vain.
                    let _ = world.driver.engine_mut().cancel(*run);
                }
            }
            _ => {}
        }
    }
}

/// One schedule; returns how many steps it took.
fn schedule(seed: u64, deaths: bool, stops: bool) -> u64 {
    let dice = Dice::of_seed(seed);
    let kinds = [Kind::Concurrent, Kind::Exclusive, Kind::Single, Kind::Sub];
    let kinds: Vec<_> = (0..1 + dice.roll(4)).map(|_| kinds[dice.roll(4)]).collect();
    let mut world = World::new(&kinds);
    let mut asked = Asked::default();
    let length = 100 + dice.roll(200);
    for _ in 0..length {
        world.now = world.now.saturating_add(Duration::from_micros(dice.roll(3) as u64));
        match dice.roll(10) {
            0..=3 => {
                world.drive();
            }
            4..=7 => world.step(dice.roll(kinds.len())),
            8 => asked.act(&mut world, &dice),
            _ if deaths && dice.one_in(20) => world.kill(dice.roll(kinds.len())),
            _ => world.report(dice.roll(kinds.len())),
        }
    }
    if let Some(run) = asked.building {
        world.driver.engine_mut().close_submission(run).unwrap();
    }
    if stops && dice.one_in(3) {
        world.driver.stop();
    }
    world.settle();
    check(&mut world, &asked);
    length as u64
}

/// Nothing hangs: each run ended, each control ended, nothing is in flight, and nothing was poisoned that nobody hurt.
fn check(world: &mut World, asked: &Asked) {
    for run in &asked.runs {
        let phase = world.driver.engine().phase(*run);
        let lives: Vec<_> = world.members.iter().map(|member| (member.kind, member.life)).collect();
        assert!(world.driver.engine().is_terminal(*run), "run {run} never ended: {phase:?}, {lives:?}");
    }
    for ticket in &asked.controls {
        assert!(world.driver.control_result(*ticket).is_some(), "{ticket:?} never ended");
    }
    assert!(world.driver.is_drained() && !world.driver.is_busy());
    for run in &asked.runs {
        world.driver.engine_mut().release(*run).unwrap();
    }
    let usage = world.driver.engine().usage();
    assert!(usage.is_idle(), "something of the engine's was not given back: {usage:?}");
    for (index, member) in world.members.iter().enumerate() {
        let poison = world.driver.lane(EndpointIndex(index as u16)).unwrap().poison();
        let expected = match poison {
            None => true,
            Some(laneway_core::lane::Poison::Dead { .. } | laneway_core::lane::Poison::ControlTimeout { .. }) => {
                member.life == Life::Gone
            }
            Some(_) => false,
        };
        assert!(expected, "child {index}, {:?}: {poison:?}", member.life);
    }
}

/// How many schedules a test runs: enough for every run of the suite, more by LANEWAY_SCHEDULES.
fn schedules() -> u64 {
    std::env::var("LANEWAY_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000)
}

fn run_all(name: &str, deaths: bool, stops: bool) {
    if let Some(seed) = std::env::var("LANEWAY_SEED").ok().and_then(|text| text.parse().ok()) {
        schedule(seed, deaths, stops);
        return;
    }
    let mut steps = 0;
    for seed in 1..=schedules() {
        let outcome = std::panic::catch_unwind(|| schedule(seed, deaths, stops));
        match outcome {
            Ok(taken) => steps += taken,
            Err(panic) => {
                eprintln!("{name}: seed {seed} fails; LANEWAY_SEED={seed} replays it");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{name}: {} schedules, {steps} steps", schedules());
}

#[test]
fn random_schedules_of_a_healthy_level_end_every_run() {
    run_all("healthy", false, false);
}

/// L-25 … L-28, E-41
#[test]
fn random_schedules_with_deaths_end_every_run() {
    run_all("deaths", true, false);
}

/// L-29 … L-31, E-36
#[test]
fn random_schedules_with_deaths_and_stops_end_every_run() {
    run_all("stops", true, true);
}

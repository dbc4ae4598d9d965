#![no_main]
#![allow(dead_code, reason = "the attack shares its files with the tests of the lanes")]

#[path = "../../core/tests/lane_protocol/hostile.rs"]
mod hostile;
#[path = "../../core/tests/lane_protocol/support.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|input: &[u8]| hostile::hostile_parent(input));

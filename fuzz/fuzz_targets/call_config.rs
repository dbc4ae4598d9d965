#![no_main]

#[path = "../../core/tests/wire_properties/mod.rs"]
mod wire_properties;

libfuzzer_sys::fuzz_target!(|input: &[u8]| wire_properties::call_config(input));

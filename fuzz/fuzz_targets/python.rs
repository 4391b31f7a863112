#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| verify::fuzzing::python(bytes));

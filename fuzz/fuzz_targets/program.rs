//! Reads arbitrary bytes as a program, then prints, simplifies, differentiates and runs it.

#![no_main]

#[path = "../../kernels/tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    hostile::treat(text);
});

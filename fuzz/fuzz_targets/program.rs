//! Any bytes as a program: read, shown, simplified, differentiated, run.

#![no_main]

#[path = "../../kernels/tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    hostile::treat(text);
});

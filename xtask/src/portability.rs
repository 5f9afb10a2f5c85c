//! Tests on other CPUs and operating systems: `cargo xtask test portability`.
//!
//! Compiles the engine for each target, and runs its tests for one of them in an emulator. Only cargo downloads anything. If
//! a target needs something that is not installed, the error explains how to install it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::Line;
use crate::test::cargo_check;
use crate::{Result, root};

/// The crates to compile: all except those for Python.
const ENGINE: &str = "--package minitensor-kernels --package minitensor --package minitensor-ops";

/// The target whose tests run in the emulator.
const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// The programs that cargo needs to link and run the tests: the cargo setting, the command, and the packages of Debian and
/// Ubuntu that contain it.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("LINKER", "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
    ("RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu", "qemu-user"),
];

/// The test that the emulator cannot run, because it cannot fork a process with several threads.
const NOT_EMULATED: &str = "--skip after_a_fork_the_child_has_a_pool_of_its_own";

/// The beginning of the error if something is missing.
pub const NEEDS: &str = "needs ";

/// Runs the engine's tests on aarch64, in an emulator unless this machine is an aarch64.
pub fn test(line: &Line) -> Result<String> {
    let is_native = cfg!(all(target_arch = "aarch64", target_os = "linux"));
    let mut missing = missing_library(TRIPLE)?;
    let mut settings = Vec::new();
    for (setting, command, packages) in PROGRAMS.iter().filter(|_| !is_native) {
        let variable = format!("CARGO_TARGET_{}_{setting}", TRIPLE.to_uppercase().replace('-', "_"));
        if std::env::var_os(&variable).is_some() {
            continue;
        }
        let program = command.split(' ').next().unwrap_or(command);
        if !runs(Command::new(program).arg("--version")) {
            missing.push(format!("the program {program} (Debian and Ubuntu: apt install {packages})"));
        }
        settings.push((variable, *command));
    }
    complete(&missing)?;
    let skipped = if is_native { String::new() } else { format!(" -- {NOT_EMULATED}") };
    cargo_check(line, &format!("test --target {TRIPLE} --no-fail-fast --lib --tests {ENGINE}{skipped}"), &settings)
}

/// Runs `cargo check` on the engine for a target. A warning is an error.
pub fn check(line: &Line, triple: &str) -> Result<String> {
    complete(&missing_library(triple)?)?;
    let settings = [("RUSTFLAGS".to_owned(), "--deny warnings")];
    cargo_check(line, &format!("check --target {triple} {ENGINE}"), &settings)
}

/// Reports the standard library of the target if it is missing, unless cargo builds it (`-Z build-std`).
fn missing_library(triple: &str) -> Result<Vec<String>> {
    if std::env::var_os("CARGO_UNSTABLE_BUILD_STD").is_some() {
        return Ok(Vec::new());
    }
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let mut rustc = Command::new(&program);
    rustc.current_dir(root()).args(["--print", "target-libdir", "--target", triple]);
    let output = rustc.output().map_err(|e| format!("cannot run {}: {e}", program.display()))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    // rustc prints a folder even if the target is not installed.
    let is_there = output.status.success() && Path::new(folder.trim()).is_dir();
    Ok(if is_there {
        vec![]
    } else {
        vec![format!("Rust's standard library for {triple} (rustup target add {triple})")]
    })
}

/// Returns an error if anything is missing.
fn complete(missing: &[String]) -> Result<()> {
    if missing.is_empty() { Ok(()) } else { Err(format!("{NEEDS}{}", missing.join(", and "))) }
}

fn runs(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

//! `cargo xtask test`: runs all tests and lints, which are listed in one table.

use std::time::{Duration, Instant};

use crate::python::{Environment, VENV, VENV_BRIDGES};
use crate::step::{Line, Steps, seconds};
use crate::{Result, cargo, levels, portability, wheel};

pub const PARTS: &str = "[rust|python|cuda|lint|docs|portability|--bridges]";

/// The argument for the tests that need other frameworks.
const BRIDGES: &str = "--bridges";

/// The part that runs only on request, because it needs programs that most machines lack.
const ON_REQUEST: &str = "portability";

/// A check: its part, its name, and its function.
type Check = (&'static str, &'static str, fn(&Line) -> Result<String>);

/// The checks in order. The Python tests come last, so their summaries are near the end of the output.
const CHECKS: &[Check] = &[
    ("lint", "cargo fmt", |line| cargo_check(line, "fmt --all --check -- --files-with-diff", &[])),
    ("lint", "cargo clippy", |line| {
        cargo_check(line, "clippy --workspace --all-targets --keep-going -- -D warnings", &[])
    }),
    ("lint", "clippy of the SDK", |line| cargo_check(line, GUEST, &[])),
    ("rust", "cargo test", |line| cargo_check(line, "test --workspace --no-fail-fast", &[])),
    ("docs", RUST_DOCS, |line| cargo_check(line, "test --doc --package minitensor-plugin-sdk", &[])),
    ("", "wheel", |line| wheel::install(line).map(|()| String::new())),
    ("lint", "ruff check", |line| tool(line, "ruff", "check .")),
    ("lint", "ruff format", |line| tool(line, "ruff", "format --check .")),
    ("lint", "mypy", |line| {
        tool(
            line,
            "mypy",
            "--config-file python/pyproject.toml --strict --package minitensor --exclude _new/(rust|c|shared|torch)/",
        )
    }),
    ("docs", "docs, in Python", |line| pytest(line, "tests/docs", &[])),
    ("python", "pytest", |line| pytest(line, "tests/python", &[])),
    ("cuda", "CUDA, or its emulation", |line| pytest(line, "tests/cuda", &[])),
    ("python", "SIMD levels", levels::test),
    ("portability", "aarch64 Linux", portability::test),
    ("portability", "Apple silicon", |line| portability::check(line, "aarch64-apple-darwin")),
    ("portability", "Windows", |line| portability::check(line, "x86_64-pc-windows-msvc")),
];

/// Lints the crate `minitensor` without its engine, as plugins use it. Nothing else in the workspace builds it this way.
const GUEST: &str = "clippy --package minitensor --no-default-features -- -D warnings";

/// This check is skipped if the tests of the workspace run, which include it.
const RUST_DOCS: &str = "docs, in Rust";

/// The result of a check.
struct Outcome {
    name: &'static str,
    time: Duration,
    /// The summary that its program prints at the end.
    closing: String,
    passed: bool,
}

pub fn run(arguments: &[String]) -> Result<()> {
    let parts: Vec<&str> = PARTS.trim_matches(['[', ']']).split('|').collect();
    if let Some(unknown) = arguments.iter().find(|a| !parts.contains(&a.as_str())) {
        return Err(format!("unknown part '{unknown}'; the parts are {}", parts.join(", ")));
    }
    let wanted = |part: &str| match arguments {
        [] => part != ON_REQUEST,
        named => named.iter().any(|a| a == part),
    };
    if arguments.iter().any(|a| a == BRIDGES) {
        return match arguments {
            [_] => bridges(),
            _ => Err(format!("{BRIDGES} has an environment of its own; pass it alone")),
        };
    }
    // The Python checks use the installed package.
    let needs_wheel = ["lint", "docs", "python", "cuda"].into_iter().any(wanted);
    let chosen: Vec<&Check> = CHECKS
        .iter()
        .filter(|(part, ..)| if part.is_empty() { needs_wheel } else { wanted(part) })
        .filter(|(_, name, _)| *name != RUST_DOCS || !wanted("rust"))
        .collect();

    let mut steps = Steps::new(chosen.len() + 2);
    steps.run("Python environment", |line| VENV.make(line))?;
    steps.run("Python packages", |line| VENV.requirements(line, "test.txt"))?;
    report(chosen, steps)?;
    if arguments.is_empty() {
        println!("not tested: other CPUs and operating systems (cargo xtask test {ON_REQUEST})");
        println!("not tested: PyTorch, JAX, Dask and ONNX (cargo xtask test {BRIDGES})");
    }
    Ok(())
}

/// The checks that need other frameworks.
const BRIDGE_CHECKS: &[Check] = &[
    ("", "PyTorch, JAX, Dask", |line| pytest_in(&VENV_BRIDGES, line, "tests/bridges", &[])),
    ("", "reference", |line| pytest_in(&VENV_BRIDGES, line, "tests/python/test_reference.py", &[])),
];

/// Runs the tests that need other frameworks, in their environment.
fn bridges() -> Result<()> {
    let mut steps = Steps::new(BRIDGE_CHECKS.len() + 6);
    // The wheel is built in the ordinary environment.
    steps.run("Python environment", |line| VENV.make(line))?;
    steps.run("Python packages", |line| VENV.requirements(line, "demo.txt"))?;
    let wheel = steps.run("build minitensor", wheel::build)?;
    steps.run("environment of the bridges", |line| VENV_BRIDGES.make(line))?;
    steps.run("PyTorch, JAX, Dask and ONNX", |line| VENV_BRIDGES.requirements(line, "bridges.txt"))?;
    steps.run("install minitensor", |line| wheel::install_in(&VENV_BRIDGES, line, &wheel))?;
    report(BRIDGE_CHECKS.iter().collect(), steps)
}

/// Runs the checks, and prints their outcomes.
fn report(checks: Vec<&Check>, mut steps: Steps) -> Result<()> {
    let outcomes: Vec<Outcome> = checks.into_iter().map(|check| outcome(check, &mut steps)).collect();
    let failed = outcomes.iter().filter(|o| !o.passed).count();
    println!();
    for Outcome { name, time, closing, passed } in &outcomes {
        println!("  {name:<18} {:<7} {}   {closing}", if *passed { "ok" } else { "FAILED" }, seconds(*time));
    }
    println!("\n{} passed, {failed} failed", outcomes.len() - failed);
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

fn outcome((_, name, run): &Check, steps: &mut Steps) -> Outcome {
    let start = Instant::now();
    let result = steps.run(name, run);
    let passed = result.is_ok();
    if let Err(output) = &result {
        println!("\n{output}\n");
    }
    let (Ok(output) | Err(output)) = result;
    Outcome { name, time: start.elapsed(), closing: closing(&output), passed }
}

/// Returns the sum of all `test result` lines, or else the last line.
pub fn closing(output: &str) -> String {
    let results: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("test result: ")).collect();
    if results.is_empty() {
        let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let verdict =
            [" passed", " failed", "Success", "Found", "All checks", "formatted"].iter().any(|w| last.contains(w))
                || [levels::HEADING, portability::NEEDS].iter().any(|heading| last.starts_with(heading));
        return if verdict { last.trim_matches(['=', ' ']).to_owned() } else { String::new() };
    }
    let count = |word: &str| -> usize {
        let numbers =
            results.iter().filter_map(|r| r.split([';', '.']).find_map(|part| part.trim().strip_suffix(word)));
        numbers.filter_map(|n| n.trim().parse::<usize>().ok()).sum()
    };
    match (count("passed"), count("failed")) {
        (passed, 0) => format!("{passed} passed"),
        (passed, failed) => format!("{failed} failed, {passed} passed"),
    }
}

/// Runs cargo with additional environment variables.
pub fn cargo_check(line: &Line, arguments: &str, variables: &[(String, &str)]) -> Result<String> {
    let mut cargo = cargo();
    cargo.args(arguments.split(' ')).env("CARGO_TERM_COLOR", "never").envs(variables.iter().map(|(k, v)| (k, v)));
    // Use one interpreter for all checks, because pyo3 is rebuilt if it changes.
    let output = line.output(cargo.env("PYO3_PYTHON", VENV.program("python").get_program()));
    output.map_err(|output| output.lines().filter(|line| !is_progress(line)).collect::<Vec<_>>().join("\n"))
}

/// Detects progress messages such as `   Compiling minitensor v0.1.0`.
fn is_progress(line: &str) -> bool {
    let words = ["Compiling ", "Checking ", "Downloading ", "Downloaded ", "Blocking "];
    line.starts_with("   ") && words.iter().any(|word| line.trim_start().starts_with(word))
}

fn tool(line: &Line, name: &str, arguments: &str) -> Result<String> {
    line.output(VENV.program(name).args(arguments.split(' ')).env("NO_COLOR", "1"))
}

/// Test files run in parallel processes. The tests of one file share fixtures, so they run in one process. A process needs up to 5 GB.
const IN_PARALLEL: &str = "--numprocesses auto --maxprocesses 3 --dist loadfile";

/// Runs pytest on the package installed in `.venv`, not on its source folder, with additional environment variables.
pub fn pytest(line: &Line, arguments: &str, variables: &[(&str, &str)]) -> Result<String> {
    pytest_in(&VENV, line, arguments, variables)
}

fn pytest_in(environment: &Environment, line: &Line, arguments: &str, variables: &[(&str, &str)]) -> Result<String> {
    let mut pytest = environment.program("python");
    pytest.args(["-m", "pytest", "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider"]);
    pytest.args(IN_PARALLEL.split(' '));
    line.output(pytest.args(arguments.split(' ')).env("MPLBACKEND", "Agg").envs(variables.iter().copied()))
}

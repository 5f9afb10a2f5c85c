//! `cargo xtask test`: everything that is checked, in one table.

use std::time::{Duration, Instant};

use crate::python::VENV;
use crate::step::{Line, Steps, seconds};
use crate::{Result, cargo, levels, portability, wheel};

pub const PARTS: &str = "[rust|python|lint|docs|portability]";

/// The part that runs only if it is named: it needs what most machines lack.
const ON_REQUEST: &str = "portability";

/// One thing to check: its part, its name, and how.
type Check = (&'static str, &'static str, fn(&Line) -> Result<String>);

/// In this order. Python's own come last, so that their closing line is near the end.
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
    ("lint", "mypy", |line| tool(line, "mypy", "--strict --package minitensor --exclude _new/(rust|c|shared)/")),
    ("docs", "docs, in Python", |line| pytest(line, "tests/docs", &[])),
    ("python", "pytest", |line| pytest(line, "tests/python", &[])),
    ("python", "SIMD levels", levels::test),
    ("portability", "aarch64 Linux", portability::test),
    ("portability", "Apple silicon", |line| portability::check(line, "aarch64-apple-darwin")),
    ("portability", "Windows", |line| portability::check(line, "x86_64-pc-windows-msvc")),
];

/// What a plugin is built with: half of the crate `minitensor`, which nothing else in the workspace uses.
const GUEST: &str = "clippy --package minitensor --no-default-features -- -D warnings";

/// They are among the tests of the workspace, too.
const RUST_DOCS: &str = "docs, in Rust";

/// What became of a check.
struct Outcome {
    name: &'static str,
    time: Duration,
    /// What its program says at its end.
    closing: String,
    passed: bool,
}

pub fn run(arguments: &[String]) -> Result<()> {
    let parts: Vec<&str> = PARTS.trim_matches(['[', ']']).split('|').collect();
    if let Some(unknown) = arguments.iter().find(|a| !parts.contains(&a.as_str())) {
        return Err(format!("there is no part '{unknown}' to test; the parts are {}", parts.join(", ")));
    }
    let wanted = |part: &str| match arguments {
        [] => part != ON_REQUEST,
        named => named.iter().any(|a| a == part),
    };
    // Python's checks try the installed package.
    let needs_wheel = ["lint", "docs", "python"].into_iter().any(wanted);
    let chosen: Vec<&Check> = CHECKS
        .iter()
        .filter(|(part, ..)| if part.is_empty() { needs_wheel } else { wanted(part) })
        .filter(|(_, name, _)| *name != RUST_DOCS || !wanted("rust"))
        .collect();

    let mut steps = Steps::new(chosen.len() + 2);
    steps.run("Python environment", |line| VENV.make(line))?;
    steps.run("Python packages", |line| VENV.requirements(line, "test.txt"))?;
    let outcomes: Vec<Outcome> = chosen.into_iter().map(|check| outcome(check, &mut steps)).collect();
    let failed = outcomes.iter().filter(|o| !o.passed).count();
    println!();
    for Outcome { name, time, closing, passed } in &outcomes {
        println!("  {name:<18} {:<7} {}   {closing}", if *passed { "ok" } else { "FAILED" }, seconds(*time));
    }
    println!("\n{} passed, {failed} failed", outcomes.len() - failed);
    if arguments.is_empty() {
        println!("not tried: other processors and systems (cargo xtask test {ON_REQUEST})");
    }
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

/// The sum of all `test result` lines, or the last line where there are none.
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

/// Runs cargo, with more variables in its environment.
pub fn cargo_check(line: &Line, arguments: &str, variables: &[(String, &str)]) -> Result<String> {
    let mut cargo = cargo();
    cargo.args(arguments.split(' ')).env("CARGO_TERM_COLOR", "never").envs(variables.iter().map(|(k, v)| (k, v)));
    // One interpreter for all, so that nothing is built twice.
    let output = line.output(cargo.env("PYO3_PYTHON", VENV.program("python").get_program()));
    output.map_err(|output| output.lines().filter(|line| !is_progress(line)).collect::<Vec<_>>().join("\n"))
}

/// `   Compiling minitensor v0.1.0`
fn is_progress(line: &str) -> bool {
    let words = ["Compiling ", "Checking ", "Downloading ", "Downloaded ", "Blocking "];
    line.starts_with("   ") && words.iter().any(|word| line.trim_start().starts_with(word))
}

fn tool(line: &Line, name: &str, arguments: &str) -> Result<String> {
    line.output(VENV.program(name).args(arguments.split(' ')).env("NO_COLOR", "1"))
}

/// Tries the installed package, not the folder it is made from, with more variables in the environment.
pub fn pytest(line: &Line, arguments: &str, variables: &[(&str, &str)]) -> Result<String> {
    let mut pytest = VENV.program("python");
    pytest.args(["-m", "pytest", "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider"]);
    line.output(pytest.args(arguments.split(' ')).env("MPLBACKEND", "Agg").envs(variables.iter().copied()))
}

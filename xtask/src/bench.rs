//! `cargo xtask bench`: compares the speed of the package with its peers. The Python package `benchmarks/` does the work.

use crate::python::{VENV, VENV_BENCH, requirements_file};
use crate::step::Steps;
use crate::{Result, wheel};

pub const ARGUMENTS: &str = "[--quick] [--save] [--memory] [NAME …]";

/// Runs the benchmarks with those peers that are already installed. They are large, so this does not install them.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut steps = Steps::new(5);
    steps.run("Python environment", |line| VENV.make(line))?;
    steps.run("Python packages", |line| VENV.requirements(line, "demo.txt"))?;
    let wheel = steps.run("build minitensor", wheel::build)?;
    steps.run("install minitensor in .venv-bench", |line| {
        VENV_BENCH.make(line)?;
        wheel::install_in(&VENV_BENCH, line, &wheel)?;
        // The dependencies, in the versions that the peers require.
        VENV_BENCH.install(line, &[&wheel, "-c".as_ref(), &requirements_file("bench.txt")])
    })?;
    steps.announce("The benchmarks");
    let mut bench = VENV_BENCH.program("python");
    let status = bench.args(["-m", "benchmarks.bench", "--wheel"]).arg(&wheel).args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the benchmarks ended with {status}")),
        Err(e) => Err(format!("cannot run the benchmarks: {e}")),
    }
}

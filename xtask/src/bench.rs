//! `cargo xtask bench`: how fast the package is beside its peers, by the programs in `benchmarks/`.

use crate::python::{VENV, VENV_BENCH, requirements_file};
use crate::step::Steps;
use crate::{Result, wheel};

pub const ARGUMENTS: &str = "[--quick] [--save] [NAME …]";

/// The peers are not installed: they are large, and whoever has some compares with these.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut steps = Steps::new(5);
    steps.run("Python environment", |line| VENV.make(line))?;
    steps.run("Python packages", |line| VENV.requirements(line, "demo.txt"))?;
    let wheel = steps.run("minitensor, built", wheel::build)?;
    steps.run("minitensor, installed in .venv-bench", |line| {
        VENV_BENCH.make(line)?;
        wheel::install_in(&VENV_BENCH, line, &wheel)?;
        // What it depends on, in the version that the peers get.
        VENV_BENCH.install(line, &[&wheel, "-c".as_ref(), &requirements_file("bench.txt")])
    })?;
    steps.announce("The benchmarks");
    let mut bench = VENV_BENCH.program("python");
    let status = bench.args(["-m", "benchmarks.bench", "--wheel"]).arg(&wheel).args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the benchmarks ended with {status}")),
        Err(e) => Err(format!("the benchmarks can't be run: {e}")),
    }
}

//! `cargo xtask demo`: builds the package and runs `examples/demo.py`.

use crate::python::VENV;
use crate::step::Steps;
use crate::{Result, no_arguments, wheel};

pub fn run(arguments: &[String]) -> Result<()> {
    no_arguments("demo", arguments)?;
    let mut steps = Steps::new(4);
    steps.run("Python environment", |line| VENV.make(line))?;
    steps.run("Python packages", |line| VENV.requirements(line, "demo.txt"))?;
    steps.run("build and install minitensor", wheel::install)?;
    steps.announce("The demo");
    let status = VENV.program("python").args(["-u", "examples/demo.py"]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the demo failed ({status})")),
        Err(e) => Err(format!("cannot run the demo: {e}")),
    }
}

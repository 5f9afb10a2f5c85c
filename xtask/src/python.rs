//! The Python interpreter, and the virtual environments of the project.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stamp::Stamp;
use crate::step::Line;
use crate::{Result, root};

/// The oldest supported version of Python.
const OLDEST: (u32, u32) = (3, 11);

/// The interpreters to try if `PYTHON` is not set.
const CANDIDATES: &[&str] = &["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"];

/// A virtual environment, identified by its folder.
pub struct Environment(&'static str);

/// The environment for building, testing and the demo.
pub const VENV: Environment = Environment(".venv");

/// The environment for benchmarks, in which peers may be installed.
pub const VENV_BENCH: Environment = Environment(".venv-bench");

/// The environment for the tests of bridges, with the frameworks.
pub const VENV_BRIDGES: Environment = Environment(".venv-bridges");

impl Environment {
    fn folder(&self) -> PathBuf {
        root().join(self.0)
    }

    /// Returns a command for a program of the environment.
    pub fn program(&self, name: &str) -> Command {
        let programs = if cfg!(windows) { "Scripts" } else { "bin" };
        let mut command = Command::new(self.folder().join(programs).join(name));
        command.current_dir(root());
        // Ignore an environment or a path that is active in the caller's shell.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        command.env("VIRTUAL_ENV", self.folder()).env("PYTHONUTF8", "1");
        command
    }

    /// Creates the environment, unless a working one exists.
    pub fn make(&self, line: &Line) -> Result<()> {
        if version(&mut self.program("python")).is_some_and(|found| found >= OLDEST) {
            return Ok(());
        }
        let python = interpreter()?;
        let made = line.output(Command::new(&python).args(["-m", "venv", "--clear"]).arg(self.folder()));
        made.map(drop).map_err(|output| {
            let _ = std::fs::remove_dir_all(self.folder());
            format!("{output}\n\n{python} has no working venv module; on Debian and Ubuntu: apt install python3-venv")
        })
    }

    /// Installs a requirements file, unless the same file is already installed.
    pub fn requirements(&self, line: &Line, name: &str) -> Result<()> {
        let file = requirements_file(name);
        let stamp = Stamp::default().path(&file)?.path(&requirements_file("demo.txt"))?;
        self.unless_stamped(stamp, name, || self.install(line, &["-r".as_ref(), &file]))
    }

    /// Runs `pip install`.
    pub fn install(&self, line: &Line, what: &[&Path]) -> Result<()> {
        let mut pip = self.program("python");
        pip.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]);
        line.output(pip.args(what)).map(drop)
    }

    /// Runs `change`, unless it has already run with the same stamp.
    pub fn unless_stamped(&self, stamp: Stamp, name: &str, change: impl FnOnce() -> Result<()>) -> Result<()> {
        stamp.unless_at(&self.folder().join(format!("{name}.stamp")), change)
    }
}

pub fn requirements_file(name: &str) -> PathBuf {
    root().join("requirements").join(name)
}

/// Finds the Python interpreter for creating environments.
fn interpreter() -> Result<String> {
    let found = |name: &str| version(&mut Command::new(name));
    let (major, minor) = OLDEST;
    let wanted = format!("minitensor needs Python {major}.{minor} or later");
    if let Ok(name) = std::env::var("PYTHON") {
        return match found(&name) {
            Some(version) if version >= OLDEST => Ok(name),
            Some((major, minor)) => Err(format!("{wanted}, but PYTHON={name} is {major}.{minor}")),
            None => Err(format!("{wanted}, but PYTHON={name} cannot be run")),
        };
    }
    let there: Vec<_> = CANDIDATES.iter().filter_map(|name| Some((*name, found(name)?))).collect();
    match there.iter().find(|(_, version)| *version >= OLDEST) {
        Some((name, _)) => Ok((*name).to_owned()),
        None => Err(match there.first() {
            Some((name, (major, minor))) => format!(
                "{wanted}, but {name} is {major}.{minor}: install a newer one from your system's packages or python.org, \
                 or set PYTHON=/path/to/python"
            ),
            None => format!(
                "{wanted}, but none was found: install it from your system's packages or python.org, or set \
                 PYTHON=/path/to/python"
            ),
        }),
    }
}

/// Returns the version of an interpreter, if it runs.
fn version(python: &mut Command) -> Option<(u32, u32)> {
    let output = python.args(["-c", "import sys; print(*sys.version_info[:2])"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map_while(|n| n.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

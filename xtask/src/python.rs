//! The Python interpreter, and the environments that the project keeps for itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stamp::Stamp;
use crate::step::Line;
use crate::{Result, root};

/// The oldest version that the package's wheels run on.
const OLDEST: (u32, u32) = (3, 11);

/// Where a Python is looked for when `PYTHON` doesn't say.
const CANDIDATES: &[&str] = &["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"];

/// A virtual environment, by the name of its folder.
pub struct Environment(&'static str);

/// What the package is built, tested and shown with.
pub const VENV: Environment = Environment(".venv");

/// What the package is compared in, with its peers if they are there.
pub const VENV_BENCH: Environment = Environment(".venv-bench");

impl Environment {
    fn folder(&self) -> PathBuf {
        root().join(self.0)
    }

    /// A program of the environment.
    pub fn program(&self, name: &str) -> Command {
        let programs = if cfg!(windows) { "Scripts" } else { "bin" };
        let mut command = Command::new(self.folder().join(programs).join(name));
        command.current_dir(root());
        // An environment or a path that the caller has active is not ours.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        command.env("VIRTUAL_ENV", self.folder()).env("PYTHONUTF8", "1");
        command
    }

    /// Makes it, unless there is one that works.
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

    /// Installs a requirements file, unless just that is installed.
    pub fn requirements(&self, line: &Line, name: &str) -> Result<()> {
        let file = requirements_file(name);
        let stamp = Stamp::default().path(&file)?.path(&requirements_file("demo.txt"))?;
        self.unless_stamped(stamp, name, || self.install(line, &["-r".as_ref(), &file]))
    }

    /// `pip install`
    pub fn install(&self, line: &Line, what: &[&Path]) -> Result<()> {
        let mut pip = self.program("python");
        pip.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]);
        line.output(pip.args(what)).map(drop)
    }

    /// Changes what is installed, unless that was done with the same stamp.
    pub fn unless_stamped(&self, stamp: Stamp, name: &str, change: impl FnOnce() -> Result<()>) -> Result<()> {
        stamp.unless_at(&self.folder().join(format!("{name}.stamp")), change)
    }
}

pub fn requirements_file(name: &str) -> PathBuf {
    root().join("requirements").join(name)
}

/// The Python that environments are made of.
fn interpreter() -> Result<String> {
    let found = |name: &str| version(&mut Command::new(name));
    let (major, minor) = OLDEST;
    let wanted = format!("minitensor needs Python {major}.{minor} or later");
    if let Ok(name) = std::env::var("PYTHON") {
        return match found(&name) {
            Some(version) if version >= OLDEST => Ok(name),
            Some((major, minor)) => Err(format!("{wanted}, and PYTHON={name} is {major}.{minor}")),
            None => Err(format!("{wanted}, and PYTHON={name} can't be run")),
        };
    }
    let there: Vec<_> = CANDIDATES.iter().filter_map(|name| Some((*name, found(name)?))).collect();
    match there.iter().find(|(_, version)| *version >= OLDEST) {
        Some((name, _)) => Ok((*name).to_owned()),
        None => Err(match there.first() {
            Some((name, (major, minor))) => format!(
                "{wanted}, and {name} is {major}.{minor}: install a newer one from your system's packages or python.org, \
                 or say where it is with PYTHON=/path/to/python"
            ),
            None => format!(
                "{wanted}, and none was found: install it from your system's packages or python.org, or say where it is \
                 with PYTHON=/path/to/python"
            ),
        }),
    }
}

/// The version of an interpreter, if there is one.
fn version(python: &mut Command) -> Option<(u32, u32)> {
    let output = python.args(["-c", "import sys; print(*sys.version_info[:2])"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map_while(|n| n.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

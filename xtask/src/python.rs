//! The Python interpreter, and the environment `.venv` that the project keeps for itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stamp::Stamp;
use crate::step::Line;
use crate::{Result, root};

/// The oldest version that the package's wheels run on.
const OLDEST: (u32, u32) = (3, 11);

/// Where a Python is looked for when `PYTHON` doesn't say.
const CANDIDATES: &[&str] = &["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"];

fn folder() -> PathBuf {
    root().join(".venv")
}

/// A program of the environment.
pub fn program(name: &str) -> Command {
    let programs = if cfg!(windows) { "Scripts" } else { "bin" };
    let mut command = Command::new(folder().join(programs).join(name));
    command.current_dir(root());
    // An environment or a path that the caller has active is not ours.
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env("VIRTUAL_ENV", folder()).env("PYTHONUTF8", "1");
    command
}

/// Makes `.venv`, unless there is one that works.
pub fn environment(line: &Line) -> Result<()> {
    if version(&mut program("python")).is_some_and(|found| found >= OLDEST) {
        return Ok(());
    }
    let python = interpreter()?;
    let made = line.output(Command::new(&python).args(["-m", "venv", "--clear"]).arg(folder()));
    made.map(drop).map_err(|output| {
        let _ = std::fs::remove_dir_all(folder());
        format!("{output}\n\n{python} has no working venv module; on Debian and Ubuntu: apt install python3-venv")
    })
}

/// Installs a requirements file, unless just that is installed.
pub fn requirements(line: &Line, name: &str) -> Result<()> {
    let file = root().join("requirements").join(name);
    let demo = root().join("requirements").join("demo.txt");
    let stamp = Stamp::default().path(&file)?.path(&demo)?;
    stamp.unless_at(&folder().join(format!("{name}.stamp")), || install(line, &["-r".as_ref(), &file]))
}

/// `pip install`
pub fn install(line: &Line, what: &[&Path]) -> Result<()> {
    let mut pip = program("python");
    pip.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]).args(what);
    line.output(&mut pip).map(drop)
}

/// The Python that `.venv` is made of.
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

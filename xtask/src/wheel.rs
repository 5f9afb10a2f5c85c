//! Builds and installs the wheel of the Python package.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python::{Environment, VENV};
use crate::stamp::Stamp;
use crate::step::{Line, Steps};
use crate::{Result, no_arguments, root};

/// The sources of the wheel.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "kernels",
    "minitensor",
    "minitensor-macros",
    "ops",
    "plugin-sdk",
    "python",
    "schema",
];

/// Runs `cargo xtask wheel`.
pub fn run(arguments: &[String]) -> Result<()> {
    no_arguments("wheel", arguments)?;
    let mut steps = Steps::new(3);
    steps.run("Python environment", |line| VENV.make(line))?;
    steps.run("Python packages", |line| VENV.requirements(line, "demo.txt"))?;
    steps.run("build and install minitensor", install)?;
    println!("\nTry it: .venv/bin/python -c 'import minitensor as mt; print(mt.ops.swish(mt.Tensor([1.0, 2.0])))'");
    Ok(())
}

/// Builds the wheel and installs it in `.venv`.
pub fn install(line: &Line) -> Result<()> {
    let wheel = build(line)?;
    install_in(&VENV, line, &wheel)
}

/// Builds the wheel, unless the sources are unchanged.
pub fn build(line: &Line) -> Result<PathBuf> {
    compiler()?;
    let mut stamp = Stamp::default();
    for source in SOURCES {
        stamp = stamp.path(&root().join(source))?;
    }
    let wheels = root().join("target").join("wheels");
    stamp.unless_at(&wheels.join("sources.stamp"), || {
        let _ = std::fs::remove_dir_all(&wheels);
        // `maturin develop` copies these folders into the package, so the wheel would contain them twice.
        for copied in ["include", "sdk"] {
            let _ = std::fs::remove_dir_all(root().join("python/python/minitensor").join(copied));
        }
        let mut maturin = VENV.program("maturin");
        maturin.args(["build", "--release", "--manifest-path"]).arg(root().join("python").join("Cargo.toml"));
        line.output(maturin.arg("--out").arg(&wheels)).map(drop)
    })?;
    built(&wheels)
}

/// Installs the wheel without its dependencies, unless it is already installed.
pub fn install_in(environment: &Environment, line: &Line, wheel: &Path) -> Result<()> {
    environment.unless_stamped(Stamp::default().path(wheel)?, "wheel", || {
        environment.install(line, &["--force-reinstall".as_ref(), "--no-deps".as_ref(), wheel])
    })
}

/// Returns the wheel in a folder.
fn built(wheels: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(wheels).map_err(|e| format!("cannot read {}: {e}", wheels.display()))?;
    let mut paths = entries.filter_map(|e| e.ok().map(|e| e.path()));
    let wheel = paths.find(|p| p.extension().is_some_and(|e| e == "whl"));
    wheel.ok_or_else(|| format!("maturin wrote no wheel to {}", wheels.display()))
}

/// Checks that the C compiler exists, which Rust needs for linking.
fn compiler() -> Result<()> {
    let there = cfg!(windows) || Command::new("cc").arg("--version").output().is_ok_and(|o| o.status.success());
    match there {
        true => Ok(()),
        false => Err("minitensor needs a C compiler for linking, but there is no 'cc': install gcc or clang \
                      (Debian and Ubuntu: apt install build-essential; macOS: xcode-select --install)"
            .into()),
    }
}

//! The development commands: `cargo xtask <command>`.
//!
//! Each command is a module. The shared modules are [`step`], which runs and times one step of a command; [`python`], the
//! interpreter and its environments; [`wheel`], which builds and installs the package; and [`stamp`], which detects
//! whether sources have changed.

#![forbid(unsafe_code)]

mod bench;
mod compile_cost;
mod demo;
mod levels;
mod portability;
mod python;
mod stamp;
mod step;
mod test;
mod ulp;
mod wheel;

use std::path::PathBuf;
use std::process::ExitCode;

/// A result whose error is the message for the user.
type Result<T> = std::result::Result<T, String>;

/// The name of a command, its arguments, its description, and its function.
type Command = (&'static str, &'static str, &'static str, fn(&[String]) -> Result<()>);

const COMMANDS: &[Command] = &[
    ("demo", "", "shows an op and trains a network on digits", demo::run),
    ("test", test::PARTS, "runs all tests and lints, or a part of them", test::run),
    ("wheel", "", "builds the Python package and installs it in .venv", wheel::run),
    ("bench", bench::ARGUMENTS, "compares the speed with NumPy, PyTorch and JAX", bench::run),
    ("ulp", ulp::ARGUMENTS, "measures the accuracy of the elementary functions", ulp::run),
    ("compile-cost", "", "measures the build time and size of ops in a plugin", compile_cost::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        println!("{}", usage());
        return ExitCode::SUCCESS;
    };
    let result = match COMMANDS.iter().find(|command| command.0 == name) {
        Some((.., run)) => run(rest),
        None if matches!(name.as_str(), "help" | "-h" | "--help") => {
            println!("{}", usage());
            Ok(())
        }
        None => Err(format!("unknown command '{name}'\n\n{}", usage())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                eprintln!("\n{message}");
            }
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("cargo xtask <command>\n");
    for (name, arguments, about, _) in COMMANDS {
        let call = format!("{name} {arguments}");
        text += &format!("\n  {call:<41} {about}");
    }
    text
}

/// The root folder of the repository.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// A command for the cargo that runs this program.
fn cargo() -> std::process::Command {
    let mut cargo = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    // `cargo run` sets variables that describe this package, which must not reach another cargo.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Returns an error if a command without parameters gets arguments.
fn no_arguments(command: &str, arguments: &[String]) -> Result<()> {
    match arguments.first() {
        Some(argument) => Err(format!("'{command}' takes no arguments, got '{argument}'\n\n{}", usage())),
        None => Ok(()),
    }
}

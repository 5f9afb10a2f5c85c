//! The project's own commands: `cargo xtask <command>`.
//!
//! Each command is a module. They share a few nouns: a [`step`] is one thing done and timed, [`python`] is the
//! interpreter and its environments, the [`wheel`] is the package as it is installed, a [`stamp`] remembers what was made
//! of what.

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

/// What a user is told when something can't go on.
type Result<T> = std::result::Result<T, String>;

/// Name, arguments, what it does, and the function that does it.
type Command = (&'static str, &'static str, &'static str, fn(&[String]) -> Result<()>);

const COMMANDS: &[Command] = &[
    ("demo", "", "sets up all it needs, shows an op, trains on digits", demo::run),
    ("test", test::PARTS, "sets up all it needs, and checks everything or a part", test::run),
    ("wheel", "", "builds the Python package and installs it in .venv", wheel::run),
    ("bench", bench::ARGUMENTS, "times minitensor beside NumPy, PyTorch and JAX", bench::run),
    ("ulp", ulp::ARGUMENTS, "tries every f32 in the elementary functions, and many f64", ulp::run),
    ("compile-cost", "", "measures what 100 ops add to a build", compile_cost::run),
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
        None => Err(format!("there is no command '{name}'\n\n{}", usage())),
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
        text += &format!("\n  {call:<33} {about}");
    }
    text
}

/// The repository.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// The cargo that runs this.
fn cargo() -> std::process::Command {
    let mut cargo = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    // What `cargo run` tells a program about its own package means nothing to the next cargo.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// A command that takes nothing was given something.
fn no_arguments(command: &str, arguments: &[String]) -> Result<()> {
    match arguments.first() {
        Some(argument) => Err(format!("'{command}' takes no '{argument}'\n\n{}", usage())),
        None => Ok(()),
    }
}

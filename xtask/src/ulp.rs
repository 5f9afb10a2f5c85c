//! `cargo xtask ulp`: how exact the elementary functions are, by the program in `accuracy/`.

use crate::{Result, cargo};

pub const ARGUMENTS: &str = "[--quick] [NAME …]";

pub fn run(arguments: &[String]) -> Result<()> {
    let mut cargo = cargo();
    cargo.args(["run", "--release", "--quiet", "--package", "minitensor-accuracy", "--"]).args(arguments);
    let status = cargo.status().map_err(|e| format!("cargo can't be run: {e}"))?;
    if status.success() { Ok(()) } else { Err("some error is above its bound".to_owned()) }
}

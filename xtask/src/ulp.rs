//! `cargo xtask ulp`: measures the accuracy of the elementary functions with the program in `accuracy/`.

use crate::{Result, cargo};

pub const ARGUMENTS: &str = "[--quick] [NAME …]";

pub fn run(arguments: &[String]) -> Result<()> {
    let mut cargo = cargo();
    cargo.args(["run", "--release", "--quiet", "--package", "minitensor-accuracy", "--"]).args(arguments);
    let status = cargo.status().map_err(|e| format!("cannot run cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err("an error exceeds its bound".to_owned()) }
}

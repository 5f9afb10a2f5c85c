//! `cargo xtask compile-cost`: measures the build time and the size that one op and 99 more add to a program.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::step::{Line, Steps, seconds};
use crate::{Result, cargo, no_arguments, root};

const OPS: usize = 100;

struct Cost {
    time: Duration,
    bytes: u64,
}

pub fn run(arguments: &[String]) -> Result<()> {
    no_arguments("compile-cost", arguments)?;
    let folder = root().join("target").join("compile-cost");
    write_crate(&folder, "no_ops", 0)?;
    write_crate(&folder, "one_op", 1)?;
    write_crate(&folder, "many_ops", OPS)?;
    let mut steps = Steps::new(4);
    steps.run("dependencies", |line| build(line, &folder, "no_ops"))?;
    let without = steps.run("a crate with no op", |line| build(line, &folder, "no_ops"))?;
    let one = steps.run("a crate with one op", |line| build(line, &folder, "one_op"))?;
    let with = steps.run(&format!("a crate with {OPS} ops"), |line| build(line, &folder, "many_ops"))?;
    let added = Cost { time: with.time.saturating_sub(one.time), bytes: with.bytes.saturating_sub(one.bytes) };
    println!("\nElement ops of two inputs and an attribute, with derivatives, in a release build:\n");
    for (name, cost) in [("no op", without), ("one op", one), ("100 ops", with), ("added", added)] {
        println!("  {name:<10} {}   {:>8} KiB", seconds(cost.time), cost.bytes / 1024);
    }
    Ok(())
}

/// Rebuilds the crate, without its dependencies.
fn build(line: &Line, folder: &Path, name: &str) -> Result<Cost> {
    let source = folder.join(name).join("src").join("main.rs");
    let touched = std::fs::File::options().append(true).open(&source).and_then(|f| f.set_modified(SystemTime::now()));
    touched.map_err(|e| format!("cannot touch {}: {e}", source.display()))?;
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--manifest-path"]).arg(folder.join(name).join("Cargo.toml"));
    let start = Instant::now();
    line.output(cargo.env("CARGO_TARGET_DIR", folder.join("target")))?;
    let time = start.elapsed();
    let program = folder.join("target/release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let bytes = std::fs::metadata(&program).map_err(|e| format!("cannot read {}: {e}", program.display()))?.len();
    Ok(Cost { time, bytes })
}

fn write_crate(folder: &Path, name: &str, ops: usize) -> Result<()> {
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nminitensor-plugin-sdk = {{ path = {:?}, features = [\"engine\"] }}\n",
        root().join("plugin-sdk")
    );
    let mut source = String::from("#![allow(unused_imports)]\nuse minitensor_plugin_sdk::{prelude::*, registry};\n");
    for i in 0..ops {
        let _ = write!(
            source,
            "\n/// One of many.\n#[custom_op]\npub fn op{i}<T: Float>(x: T, y: T, #[default = {i}.5] scale: f64) -> T {{\n    \
             if x > {i}.0 {{ x * (y * scale).sigmoid() }} else {{ x.tanh() - y }}\n}}\n"
        );
    }
    source += "\nfn main() {\n    println!(\"{}\", registry::list().len());\n}\n";
    let write = |path: PathBuf, text: String| {
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    let folder = folder.join(name);
    std::fs::create_dir_all(folder.join("src")).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap_or_default();
    write(folder.join("Cargo.lock"), lock)?;
    write(folder.join("Cargo.toml"), manifest)?;
    write(folder.join("src").join("main.rs"), source)
}

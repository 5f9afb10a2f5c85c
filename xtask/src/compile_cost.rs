//! `cargo xtask compile-cost`: measures the build time that ops add to a plugin, and the size that they add to its library.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::step::{Line, Steps, seconds};
use crate::{Result, cargo, no_arguments, root};

/// A sort of ops, with the source of the `k`-th.
struct Sort {
    name: &'static str,
    /// Spelled without spaces, for the name of the crate.
    krate: &'static str,
    op: fn(usize) -> String,
}

const SORTS: &[Sort] = &[
    Sort { name: "element ops", krate: "elements", op: element },
    Sort { name: "row ops", krate: "rows", op: |k| row(k, "") },
    Sort { name: "precompiled row ops", krate: "precompiled", op: |k| row(k, ", precompiled") },
    Sort { name: "cell ops", krate: "cells", op: cell },
];

/// The number of further ops in a plugin.
const OPS: usize = 8;

const PROFILES: [&str; 2] = ["dev", "release"];

struct Cost {
    time: Duration,
    bytes: u64,
}

pub fn run(arguments: &[String]) -> Result<()> {
    no_arguments("compile-cost", arguments)?;
    let folder = root().join("target").join("compile-cost");
    write_crate(&folder, "one", &element(0))?;
    for sort in SORTS {
        let ops: String = std::iter::once(element(0)).chain((1..=OPS).map(sort.op)).collect();
        write_crate(&folder, sort.krate, &ops)?;
    }
    let mut steps = Steps::new((2 + SORTS.len()) * PROFILES.len());
    let mut lines = Vec::new();
    for profile in PROFILES {
        steps.run(&format!("dependencies, {profile}"), |line| build(line, &folder, "one", profile))?;
        let one = steps.run(&format!("one op, {profile}"), |line| build(line, &folder, "one", profile))?;
        lines.push(format!(
            "  {profile:<8} {:<28} {}   {:>6} KiB",
            "one element op",
            seconds(one.time),
            one.bytes / 1024
        ));
        for Sort { name, krate, .. } in SORTS {
            let many = steps.run(&format!("{name}, {profile}"), |line| build(line, &folder, krate, profile))?;
            let time = many.time.saturating_sub(one.time) / OPS as u32;
            let bytes = many.bytes.saturating_sub(one.bytes) / OPS as u64;
            lines.push(format!(
                "  {profile:<8} {:<28} {}   {:>6} KiB",
                format!("each of {name}"),
                seconds(time),
                bytes / 1024
            ));
        }
    }
    println!(
        "\nA plugin with one element op, and what each further op adds. All have derivatives:\n\n{}",
        lines.join("\n")
    );
    Ok(())
}

/// Rebuilds the crate, without its dependencies.
fn build(line: &Line, folder: &Path, name: &str, profile: &str) -> Result<Cost> {
    let source = folder.join(name).join("src").join("lib.rs");
    let touched = std::fs::File::options().append(true).open(&source).and_then(|f| f.set_modified(SystemTime::now()));
    touched.map_err(|e| format!("cannot touch {}: {e}", source.display()))?;
    let mut cargo = cargo();
    cargo.args(["build", "--profile", profile, "--manifest-path"]).arg(folder.join(name).join("Cargo.toml"));
    let start = Instant::now();
    line.output(cargo.env("CARGO_TARGET_DIR", folder.join("target")))?;
    let time = start.elapsed();
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let built = if profile == "dev" { "debug" } else { profile };
    let library = folder.join("target").join(built).join(format!("{prefix}{name}{suffix}"));
    let bytes = std::fs::metadata(&library).map_err(|e| format!("cannot read {}: {e}", library.display()))?.len();
    Ok(Cost { time, bytes })
}

fn element(k: usize) -> String {
    format!(
        "\n/// One of many.\n#[custom_op]\npub fn element{k}<T: Float>(x: T, y: T, #[default = {k}.5] scale: f64) -> T {{\n    \
         if x > {k}.0 {{ x * (y * scale).sigmoid() }} else {{ x.tanh() - y }}\n}}\n"
    )
}

fn row(k: usize, clause: &str) -> String {
    format!(
        "\n/// One of many.\n#[custom_op(shape = (x: [.., n], weight: [n]) -> [.., n]{clause})]\n\
         pub fn row{k}<R: Row>(x: R, weight: R, #[default = {k}.5] scale: f64) -> R {{\n    \
         let e = ((x - x.max()) * scale).exp();\n    e / e.sum() * weight + {k}.0\n}}\n"
    )
}

fn cell(k: usize) -> String {
    format!(
        "\n/// One of many.\n#[custom_op(shape = (x: [.., n], y: [.., n]) -> [.., n], backward = none)]\n\
         pub fn cell{k}<T: Float>(x: &[T], y: &[T], out: &mut [T]) {{\n    \
         let factor: T = minitensor_plugin_sdk::kernels::lit(0.{k}5);\n    let mut sum = T::zero();\n    \
         for i in 0..x.len() {{\n        sum = sum * factor + x[i] * y[i];\n        out[i] = sum;\n    }}\n}}\n"
    )
}

/// A plugin with these ops, with the profile of a new one.
fn write_crate(folder: &Path, name: &str, ops: &str) -> Result<()> {
    let mut manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\nminitensor-plugin-sdk = {{ path = {:?} }}\n",
        root().join("plugin-sdk")
    );
    let _ = write!(
        manifest,
        "\n[profile.release]\nopt-level = 2\nstrip = true\n\n[profile.dev]\ndebug = \"line-tables-only\"\n"
    );
    let write = |path: PathBuf, text: String| {
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    let folder = folder.join(name);
    std::fs::create_dir_all(folder.join("src")).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap_or_default();
    write(folder.join("Cargo.lock"), lock)?;
    write(folder.join("Cargo.toml"), manifest)?;
    write(folder.join("src").join("lib.rs"), format!("use minitensor_plugin_sdk::prelude::*;\n{ops}\nplugin! {{}}\n"))
}

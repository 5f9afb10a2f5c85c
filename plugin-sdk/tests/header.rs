//! Checks that the C header and Rust define the same ABI. A C compiler checks the offset of every field, the size of every struct and
//! the value of every constant. The sizes show that no field is missing, because the structs have no unused space.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use minitensor_plugin_sdk::plugin::abi;

/// Returns C assertions for all definitions in Rust.
fn claims() -> String {
    let mut c = String::from("#include \"minitensor_plugin.h\"\n#ifndef __cplusplus\n#include <assert.h>\n#endif\n");
    let mut claim =
        |what: String| writeln!(c, "static_assert({what}, \"{}\");", what.replace('"', "")).expect("a string grows");
    claim(format!("MT_MAGIC == UINT64_C({:#x})", abi::MAGIC));
    claim(format!(
        "MT_ABI_MAJOR == {} && MT_ABI_MINOR == {} && MT_MAX_NDIM == {}",
        abi::MAJOR,
        abi::MINOR,
        abi::MAX_NDIM
    ));
    for layout in abi::LAYOUTS {
        let name = if layout.name == "ErrorSink" { "MtError".to_owned() } else { format!("Mt{}", layout.name) };
        claim(format!("sizeof({name}) == {}", layout.size));
        for (field, offset) in layout.fields {
            claim(format!("offsetof({name}, {}) == {offset}", field.trim_end_matches('_')));
        }
    }
    for (name, number) in abi::CODES {
        claim(format!("{name} == {number}"));
    }
    for (dtype, number, name) in abi::DTYPES {
        claim(format!("{name} == {number}u"));
        assert_eq!(number >> 8 & 0xff, 8 * dtype.size() as u32, "the bits of {dtype}");
    }
    c
}

fn compile(compiler: &str, language: &[&str], source: &str) -> Result<(), String> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    // Tests run in parallel.
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("claims-{number}.c"));
    std::fs::write(&file, source).map_err(|e| e.to_string())?;
    let strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I"];
    let done = Command::new(compiler).args(language).args(strict).arg(include).arg(&file).output();
    let done = done.map_err(|e| format!("{compiler}: {e}"))?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

fn command(variable: &str, default: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.into())
}

#[test]
fn c_and_rust_have_one_layout() {
    let cc = command("CC", "cc");
    compile(&cc, &["-std=c11"], &claims()).expect("all that Rust says of the ABI holds in C");
}

#[test]
fn so_has_cxx() {
    let cxx = command("CXX", "c++");
    if Command::new(&cxx).arg("--version").output().is_err() {
        return eprintln!("there is no C++ compiler to ask");
    }
    for standard in ["-std=c++17", "-std=c++20"] {
        compile(&cxx, &[standard, "-x", "c++"], &claims()).expect("all that Rust says of the ABI holds in C++");
    }
}

#[test]
fn a_wrong_claim_is_found() {
    let wrong = claims().replacen("offsetof(MtOp, doc) == ", "offsetof(MtOp, doc) == 1 + ", 1);
    let told = compile(&command("CC", "cc"), &["-std=c11"], &wrong).expect_err("the offset isn't that");
    assert!(told.contains("offsetof(MtOp, doc)"), "{told}");
}

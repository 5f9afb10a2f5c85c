//! Tests of `#[custom_op]` as users see it: definitions that compile, and the error messages of those that do not.
//!
//! The cases in `ui/<mistake>/` fail to compile with the messages in the `.stderr` files; `TRYBUILD=overwrite` regenerates them.

use std::fs;
use std::path::Path;

#[test]
fn ops_compile_and_run() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

#[test]
fn mistakes_are_shown() {
    let cases = trybuild::TestCases::new();
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")).unwrap();
    for folder in folders.map(|f| f.unwrap().file_name().into_string().unwrap()).filter(|f| f != "pass") {
        cases.compile_fail(format!("ui/{folder}/*.rs"));
    }
}

//! What a user of `#[custom_op]` sees: ops that compile, and mistakes with their messages.
//!
//! The cases of `ui/<mistake>/` fail to compile, with the messages beside them; `TRYBUILD=overwrite` writes those anew.

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

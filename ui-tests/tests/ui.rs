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

#[test]
fn no_first_line_names_what_an_author_did_not_write() {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")).unwrap();
    let files =
        folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap()).map(|file| file.unwrap().path());
    let shown: Vec<_> = files.filter(|file| file.extension().is_some_and(|e| e == "stderr")).collect();
    assert!(shown.len() > 300, "{} cases", shown.len());
    for file in shown {
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap_or_default().replace("minitensor::Tensor", "Tensor");
        for internal in ["__private", "minitensor::", "trait bound `T: minitensor", "Symbol", "Dual", "Const:"] {
            assert!(!first.contains(internal), "{}: {first}", file.display());
        }
    }
}

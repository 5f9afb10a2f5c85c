//! What a user of `#[custom_op]` sees: ops that compile, and mistakes with their messages.
//!
//! The cases of `ui/<mistake>/` fail to compile, with the messages beside them; `TRYBUILD=overwrite` writes those anew.

#[test]
fn ops_compile_and_run() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

#[test]
fn mistakes_are_shown() {
    trybuild::TestCases::new().compile_fail("ui/[!p]*/*.rs");
}

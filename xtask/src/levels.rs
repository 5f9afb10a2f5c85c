//! Runs the tests of results at every SIMD level that the CPU supports.

use crate::Result;
use crate::python::VENV;
use crate::step::Line;
use crate::test::{closing, pytest};

/// The tests of results, which run at every level. All other tests run at the default level only.
const QUICK: &[&str] = &["test_reference", "test_ops", "test_windows", "test_digits", "test_sort_and_index"];

/// The beginning of the last line of the output.
pub const HEADING: &str = "SIMD levels that ran: ";

/// Runs the tests at each level except the default one. The last line of the output lists the levels.
pub fn test(line: &Line) -> Result<String> {
    let ask = "import minitensor as mt; print(mt.simd_level(), *mt.simd_levels())";
    let answer = line.output(VENV.program("python").args(["-c", ask]))?;
    let mut names = answer.split_whitespace();
    let in_use = names.next().unwrap_or_default();
    let files: Vec<String> = QUICK.iter().map(|name| format!("tests/python/{name}.py")).collect();
    let (mut failures, mut ran) = (String::new(), vec![format!("{in_use} (all tests)")]);
    for level in names.filter(|level| *level != in_use) {
        let result = pytest(line, &files.join(" "), &[("MINITENSOR_SIMD", level)]);
        if let Err(output) = &result {
            failures += &format!("at the SIMD level {level}:\n{output}\n\n");
        }
        let (Ok(output) | Err(output)) = result;
        ran.push(format!("{level} ({})", closing(&output)));
    }
    let summary = format!("{HEADING}{}", ran.join(", "));
    if failures.is_empty() { Ok(summary) } else { Err(failures + &summary) }
}

//! Measures the accuracy of the elementary functions in units in the last place (ULP), and their speed.
//!
//! Functions of `f32` are tested at every `f32`, against references in double precision.

mod double;
mod function;
mod single;
mod speed;
mod ulp;
mod wide;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, names): (Vec<String>, Vec<String>) = arguments.into_iter().partition(|a| a.starts_with("--"));
    let step = if options.iter().any(|o| o == "--quick") { 997 } else { 1 };
    let chosen = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    println!("| function | dtype | worst ULP | at | M/s | platform's M/s |\n|---|---|---|---|---|---|");
    let mut failed = 0;
    let mut row = |name: &str, dtype: &str, bound: f64, ulp: f64, at: String, ours: f64, platform: f64| {
        failed += (ulp > bound) as usize;
        let verdict = if ulp > bound { format!(" > {bound}") } else { String::new() };
        println!("| `{name}` | {dtype} | {ulp:.4}{verdict} | {at} | {ours:.0} | {platform:.0} |");
    };
    for f in function::SINGLES.iter().filter(|f| chosen(f.name) && !options.iter().any(|o| o == "--f64")) {
        let worst = single::worst(f, step);
        let (ours, platform) = (speed::measure(f.ours), speed::measure(f.platform));
        row(f.name, "f32", f.bound, worst.ulp, format!("{:e}", worst.at as f64), ours, platform);
    }
    for f in function::DOUBLES.iter().filter(|f| chosen(f.name) && !options.iter().any(|o| o == "--f32")) {
        let (ulp, at) = double::worst(f, if step > 1 { 10 } else { 1 });
        row(f.name, "f64", f.bound, ulp, format!("{at:e}"), speed::measure(f.ours), speed::measure(f.platform));
    }
    for f in function::DOUBLES_OF_TWO.iter().filter(|f| chosen(f.name) && !options.iter().any(|o| o == "--f32")) {
        let (ulp, [x, y]) = double::worst_of_two(f, if step > 1 { 10 } else { 1 });
        let (ours, platform) = (speed::measure_of_two(f.ours), speed::measure_of_two(f.platform));
        row(f.name, "f64", f.bound, ulp, format!("{x:e}, {y:e}"), ours, platform);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

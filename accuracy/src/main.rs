//! How exact the elementary functions are, in units in the last place (ULP), and how fast.
//!
//! A function of singles is tried at every single there is, against what double precision makes of it.

mod function;
mod single;
mod speed;
mod ulp;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, names): (Vec<String>, Vec<String>) = arguments.into_iter().partition(|a| a.starts_with("--"));
    let step = if options.iter().any(|o| o == "--quick") { 997 } else { 1 };
    let chosen = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    println!("| function | dtype | worst ULP | at | M/s | platform's M/s |\n|---|---|---|---|---|---|");
    let mut failed = 0;
    for function in function::SINGLES.iter().filter(|f| chosen(f.name)) {
        let worst = single::worst(function, step);
        let (ours, platform) = (speed::measure(function.ours), speed::measure(function.platform));
        failed += (worst.ulp > function.bound) as usize;
        let verdict = if worst.ulp > function.bound { format!(" > {}", function.bound) } else { String::new() };
        println!(
            "| `{}` | f32 | {:.4}{verdict} | {:e} | {ours:.0} | {platform:.0} |",
            function.name, worst.ulp, worst.at
        );
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

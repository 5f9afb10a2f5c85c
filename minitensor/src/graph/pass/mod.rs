//! Passes: functions from graph to graph. The verifier runs after each.

mod copies;
mod dead;
pub(super) mod epilogue;
mod fold;
pub(super) mod fuse;
mod inner;
mod parts;
mod repeats;
mod replace;

use super::ir::Graph;
use super::verify;
use crate::error::Result;

/// A pass with its name.
pub type Pass = (&'static str, fn(Graph) -> Graph);

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    ("fold", fold::constants),
    ("repeats", repeats::remove),
    ("replace", replace::calls),
    ("parts", parts::join),
    ("copies", copies::remove),
    ("dead", dead::remove),
    ("fuse", fuse::calls),
    ("epilogue", epilogue::join),
];

/// Applies all passes. `show` sees the graph after each that changed its calls.
///
/// # Errors
/// If a pass returns a graph that is not valid.
pub fn apply(mut graph: Graph, mut show: impl FnMut(&str, &Graph)) -> Result<Graph> {
    for (name, run) in PASSES {
        let before = graph.calls.len();
        graph = run(graph).compact();
        verify(&graph).map_err(|e| e.context(format!("pass '{name}'")))?;
        if graph.calls.len() != before {
            show(name, &graph);
        }
    }
    Ok(graph)
}

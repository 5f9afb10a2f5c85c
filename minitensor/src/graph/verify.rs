//! [`verify`]: the invariants of a graph. It runs after each pass.

use super::ir::{Graph, Operand, Source, ValueId};
use crate::error::{Error, Result};

/// Checks that every call has the arguments of its op, that every value is computed once and before it is used, and
/// that all numbers of values are valid.
///
/// # Errors
/// A sentence that names the call.
pub fn verify(graph: &Graph) -> Result<()> {
    let mut is_known: Vec<bool> = graph.values.iter().map(|v| !matches!(v.source, Source::Computed)).collect();
    let wrong = |at: usize, what: String| {
        Error::runtime(format!("graph: call {at}, of op '{}', {what}", graph.calls[at].op.name))
    };
    for (at, call) in graph.calls.iter().enumerate() {
        if call.args.len() + 1 < call.op.inputs.len() {
            return Err(wrong(at, format!("has {} arguments, expected {}", call.args.len(), call.op.inputs.len())));
        }
        for arg in &call.args {
            if let Operand::Value(id) = arg
                && !is_known.get(id.at()).copied().unwrap_or(false)
            {
                return Err(wrong(at, format!("uses %{} before it is computed", id.0)));
            }
        }
        for ValueId(id) in call.computes() {
            match is_known.get_mut(id as usize) {
                Some(known) if !*known => *known = true,
                Some(_) => return Err(wrong(at, format!("computes %{id}, which is computed already"))),
                None => return Err(wrong(at, format!("computes %{id}, which does not exist"))),
            }
        }
    }
    match graph.outputs.iter().find(|id| !is_known.get(id.at()).copied().unwrap_or(false)) {
        Some(id) => Err(Error::runtime(format!("graph: its output %{} is not computed", id.0))),
        None => Ok(()),
    }
}

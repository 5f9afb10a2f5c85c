//! Checks the signature of an op: the names of its parts, and the dimensions of an op whose caller chooses the axis.

use std::collections::BTreeSet;

use crate::attr::AttrKind;
use crate::message;
use crate::problem::{At, Problem};
use crate::shape::{CoreShapes, Dim};
use crate::signature::{Arity, Role, Signature};

/// Checks a signature: parameters must have different names, and so must outputs. Only the last tensor may be a list.
pub fn signature(op: &Signature<'_>) -> Vec<Problem> {
    let inputs = op.inputs.iter().enumerate().map(|(i, input)| (At::Input(i), input.name.as_ref()));
    let attrs = op.attrs.iter().enumerate().map(|(i, attr)| (At::Attr(i), attr.name.as_ref()));
    // An output that is an input mutated in place has the name of the input.
    let outputs = op.outputs.iter().enumerate().filter(|(_, output)| !matches!(output.role, Role::Mutates(_)));
    let outputs = outputs.map(|(k, output)| (At::Output(k), output.name.as_ref()));
    let mut problems = [doubled(inputs.chain(attrs)), doubled(outputs)].concat();
    let tensors = op.inputs.iter().enumerate();
    for (i, list) in tensors.filter(|(i, input)| input.arity == Arity::Variadic && i + 1 < op.inputs.len()) {
        problems.push(Problem::new(At::Input(i), &message::VARIADIC_NOT_LAST, &[&list.name, &list.name]));
    }
    problems.extend(tuned(op));
    if let Some(variable) = op.generics.get(MOST_VARIABLES) {
        let counts = [MOST_VARIABLES + 1, MOST_VARIABLES];
        let at = At::Variable(MOST_VARIABLES);
        problems.push(Problem::new(at, &message::DTYPE_VARIABLES, &[&variable.name, &counts[0], &counts[1]]));
    }
    problems
}

/// The maximum number of dtype variables.
pub const MOST_VARIABLES: usize = 4;

/// The maximum number of combinations of the dtypes of all variables: each is a kernel.
pub const MOST_KERNELS: usize = 256;

/// Checks the number of combinations of dtypes, for an op with a kernel for each.
pub fn kernels(op: &Signature<'_>) -> Option<Problem> {
    let kernels: usize = op.computed().map(|dtypes| dtypes.len()).product();
    let last = op.generics.len().checked_sub(1).filter(|_| kernels > MOST_KERNELS)?;
    Some(Problem::new(At::Variable(last), &message::KERNELS, &[&kernels, &MOST_KERNELS, &op.generics[last].name]))
}

/// The maximum number of candidates of an attribute, and of combinations of the candidates of all attributes.
pub const MOST_CANDIDATES: usize = 64;

/// Candidates must be different positive integers, and few.
fn tuned(op: &Signature<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut combinations = 1_usize;
    for (i, attr) in op.attrs.iter().enumerate() {
        let AttrKind::Tuned(candidates) = attr.kind else { continue };
        let different: BTreeSet<i64> = candidates.iter().copied().filter(|v| *v > 0).collect();
        if candidates.is_empty() || candidates.len() > MOST_CANDIDATES || different.len() < candidates.len() {
            problems.push(Problem::new(At::Attr(i), &message::CANDIDATES, &[&attr.name, &MOST_CANDIDATES]));
            continue;
        }
        combinations *= candidates.len();
        if combinations > MOST_CANDIDATES {
            problems.push(Problem::new(At::Attr(i), &message::COMBINATIONS, &[&combinations, &MOST_CANDIDATES]));
            break;
        }
    }
    problems
}

/// A problem for each name that an earlier part already has.
fn doubled<'a>(parts: impl Iterator<Item = (At, &'a str)>) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let again = parts.filter(|(_, name)| !seen.insert(*name));
    again.map(|(at, name)| Problem::new(at, &message::DOUBLED_NAME, &[&name])).collect()
}

/// Checks the dimensions of an op whose caller chooses the axis. Each tensor may have at most one, which must be a name or an
/// attribute. If several axes may be chosen, it must be the same for all tensors. An input without `..` may have any dimensions.
pub fn axis(op: &Signature<'_>, shapes: &CoreShapes, is_many: bool) -> Option<Problem> {
    let inputs = op.inputs.iter().zip(shapes.inputs.iter()).enumerate();
    let inputs = inputs.map(|(i, (input, dims))| (At::Input(i), &input.name, dims));
    let outputs = op.outputs.iter().zip(shapes.outputs.iter()).enumerate();
    let outputs = outputs.map(|(k, (output, dims))| (At::Output(k), &output.name, dims));
    let mut only: Option<&Dim> = None;
    for (at, name, dims) in inputs.chain(outputs) {
        let fits = match dims.core.as_ref() {
            [] => true,
            _ if !dims.batch && matches!(at, At::Input(_)) => true,
            [dim @ (Dim::Name(_) | Dim::Attr(_))] => !is_many || only.get_or_insert(dim) == &dim,
            _ => false,
        };
        if !fits {
            return Some(Problem::new(at, &message::AXIS_DIMENSION, &[name]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::grammar::{Dialect, Parser, Tokens};
    use crate::signature::{Attribute, Core, DTypeRule, Input, Output};

    #[test]
    fn a_caller_may_choose_the_axis_of_one_dimension_which_may_be_an_attribute() {
        let inputs =
            [Input { name: "x".into(), arity: Arity::One, dtype: DTypeRule::Any, mutated: false, core: Core::Slice }];
        let outputs = [Output { name: "out".into(), dtype: DTypeRule::Any, role: Role::Returned, core: Core::Slice }];
        let attrs = [Attribute { name: "k".into(), kind: AttrKind::Size, optional: false, default: None }];
        let op = Signature { inputs: &inputs, attrs: &attrs, outputs: &outputs, generics: &[] };
        let at = |text: &str, is_many: bool| {
            let (tokens, _) = Tokens::of_text(text).expect("tokens");
            let shape = Parser::new(&tokens, Dialect::Text, "").shape().expect("a shape");
            axis(&op, &check::core_shapes(&op, &shape), is_many).map(|problem| problem.at)
        };
        assert_eq!(at("(x: [.., n]) -> [..]", true), None);
        assert_eq!(at("(x: [.., n]) -> [.., k]", false), None);
        assert_eq!(at("(x: [.., n]) -> [.., k]", true), Some(At::Output(0)));
        assert_eq!(at("(x: [.., n, m]) -> [.., n]", false), Some(At::Input(0)));
        assert_eq!(at("(x: [.., n]) -> [.., n / 2]", false), Some(At::Output(0)));
        assert_eq!(at("(x: [n, 2]) -> [..]", true), None);
        assert_eq!(at("(x: [.., 3]) -> [..]", false), Some(At::Input(0)));
    }
}

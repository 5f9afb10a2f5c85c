//! A backward formula against the op that it differentiates.

use crate::ast::{Arity, Gradient, Op, text};
use crate::diag::{Diag, messages, suggestion};

/// One cotangent for each output, one gradient for each input that can have one.
pub fn formula(op: &Op, diag: &mut Diag) {
    let Gradient::Formula(formula) = &op.gradient else { return };
    let (taken, returned) = (formula.cotangents.len(), op.visible().count());
    if taken != returned {
        let at = formula.cotangents.last().map_or_else(|| op.ident().clone(), |c| c.name.clone());
        diag.error(at, &messages::TOO_FEW_COTANGENTS, &[&taken, &returned]);
    }
    let names: Vec<String> = op.inputs.iter().map(|i| text(&i.ident)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (i, entry) in formula.entries.iter().enumerate() {
        let name = &entry.input;
        match op.inputs.iter().find(|input| input.ident == *name) {
            None if op.attrs.iter().any(|a| a.ident == *name) => diag.error(name, &messages::GRADIENT_OF_ATTR, &[name]),
            None => diag.error(name, &messages::GRADIENT_OF_UNKNOWN, &[name, &suggestion(&text(name), &names)]),
            Some(input) if !op.is_differentiable(input.elem) && entry.value.is_some() => {
                diag.error(name, &messages::GRADIENT_OF_INTEGER, &[name, name]);
            }
            Some(_) => {}
        }
        if formula.entries[..i].iter().any(|before| before.input == *name) {
            diag.error(name, &messages::GRADIENT_TWICE, &[name]);
        }
    }
    for input in &op.inputs {
        if input.arity == Arity::Variadic {
            diag.error(&input.ident, &messages::FORMULA_VARIADIC, &[&input.ident]);
        } else if op.is_differentiable(input.elem) && formula.entries.iter().all(|e| e.input != input.ident) {
            diag.error(&input.ident, &messages::GRADIENT_MISSING, &[&input.ident, &input.ident]);
        }
    }
}

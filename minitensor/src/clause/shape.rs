//! The clauses `shape` and `where`.

use minitensor_schema::grammar::{SHAPE_EXAMPLE, WHERE_EXAMPLE};
use minitensor_schema::{At, Problem, check, message};

use super::Clause;
use crate::error::Result;
use crate::op::{Arity, CoreShapes, OpDef, Predicate, Role, ShapeRule};

/// A `shape` clause as data.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The core dimensions. `None` if the clause has only conditions.
    pub shapes: Option<CoreShapes>,
    /// The conditions after `where`.
    pub predicates: Vec<Predicate>,
    /// Positions of the outputs that are saved for the gradient and not returned.
    pub saved: Vec<usize>,
}

/// Reads `(x: [.., n]) -> (values: [.., k], [save] order: [.., n]) where k <= n`, `(x: [.., n]) -> [..]`, or `where b > 0.0`
/// alone. The inputs, attributes and outputs of the op must be known.
///
/// # Errors
/// The errors that the macro reports, with the position in the text.
pub fn shape(op: &OpDef, text: &str) -> Result<Shape> {
    let has_only_conditions = text.trim_start().starts_with("where");
    let (name, example) = if has_only_conditions { ("where", WHERE_EXAMPLE) } else { ("shape", SHAPE_EXAMPLE) };
    let clause = Clause::new(op, name, text)?;
    let mut parser = clause.parser(example);
    let shape = if parser.is_at("where") { None } else { Some(parser.shape().map_err(|e| clause.error(&e))?) };
    let conditions = parser.optional_where().and_then(|conditions| parser.finish().map(|()| conditions));
    let conditions = conditions.map_err(|e| clause.error(&e))?;
    let signature = op.schema();
    if let Some(shape) = &shape {
        if matches!(op.shape, ShapeRule::Broadcast) {
            let at = shape.inputs.first().map_or(At::Op, |input| At::Tokens(input.at));
            return Err(clause.error(&Problem::new(at, &message::ELEMENT_SHAPE, &[])));
        }
        if let Some(i) = op.inputs.iter().position(|i| i.arity == Arity::Variadic) {
            return Err(clause.error(&Problem::new(At::Input(i), &message::LIST_SHAPE, &[&op.inputs[i].name])));
        }
        clause.check(&check::shape(&signature, shape))?;
    }
    clause.check(&check::predicates(&signature, shape.as_ref(), &conditions))?;
    let is_saved = |k: &usize| {
        let mut outputs = shape.iter().flat_map(|s| &s.outputs);
        outputs.any(|o| o.save && o.name.as_deref() == Some(op.outputs[*k].name.as_ref()))
    };
    Ok(Shape {
        saved: (0..op.outputs.len()).filter(is_saved).collect(),
        predicates: conditions.iter().map(|p| Predicate::of(&signature, p)).collect(),
        shapes: shape.map(|shape| check::core_shapes(&signature, &shape)),
    })
}

impl Shape {
    /// Stores the clause in the op.
    pub fn apply_to(self, op: &mut OpDef) {
        if let Some(shapes) = self.shapes {
            op.shape = ShapeRule::Core(shapes);
        }
        op.predicates.to_mut().extend(self.predicates);
        self.saved.into_iter().for_each(|k| op.outputs.to_mut()[k].role = Role::Saved);
    }
}

//! The clauses `linear`, `symmetric` and `replaces`.

use std::borrow::Cow;

use minitensor_schema::check;
use minitensor_schema::grammar::PROPERTY_EXAMPLE;
use minitensor_schema::property::Pattern;

use super::Clause;
use crate::error::Result;
use crate::op::{List, OpDef, Property, ShapeRule};

/// Reads `linear = x, symmetric, replaces = log(softmax(x))`, or some of these. The signature and the shape of the op must be known.
///
/// # Errors
/// The errors that the macro reports, with the position in the text.
pub fn properties(op: &OpDef, text: &str) -> Result<List<Property>> {
    if text.is_empty() {
        return Ok(Cow::Borrowed(&[]));
    }
    let clause = Clause::new(op, "properties", text)?;
    let clauses = clause.parser(PROPERTY_EXAMPLE).properties().map_err(|e| clause.error(&e))?;
    let shapes = if let ShapeRule::Core(shapes) = &op.shape { Some(shapes) } else { None };
    let mut properties = Vec::new();
    for each in &clauses {
        let found = check::properties(&op.schema(), shapes, &clause.tokens, each);
        properties.extend(found.map_err(|e| clause.error(&e))?);
    }
    Ok(properties.into())
}

/// The expression of a clause `replaces`.
///
/// # Errors
/// As above.
pub fn pattern(op: &OpDef, text: &str) -> Result<Pattern> {
    let clause = Clause::new(op, "replaces", text)?;
    let expr = clause.parser(PROPERTY_EXAMPLE).expr().map_err(|e| clause.error(&e))?;
    check::replaced(&op.schema(), &clause.tokens, &expr).map_err(|e| clause.error(&e))
}

//! Attributes for trying an op.

use super::call::shape_rule::Bindings;
use super::def::OpDef;
use crate::attr::{Attr, AttrKind};
use crate::dtype::DType;

impl OpDef {
    /// The defaults of all attributes. One that is required has the first of some small values that meets the conditions of the op.
    pub fn example(&self) -> Vec<Attr> {
        let values: Vec<Vec<Attr>> =
            self.attrs.iter().map(|a| a.default.clone().map_or_else(|| small(a.kind), |v| vec![v])).collect();
        let mut attrs: Vec<Attr> = values.iter().map(|values| values[0].clone()).collect();
        for (k, values) in values.iter().enumerate() {
            let meets = |attrs: &[Attr]| self.check_predicates(&Bindings::default(), attrs).is_ok();
            let tried = values.iter().map(|value| {
                let mut attrs = attrs.clone();
                attrs[k] = value.clone();
                attrs
            });
            if let Some(found) = tried.into_iter().find(|attrs| meets(attrs)) {
                attrs = found;
            }
        }
        attrs
    }
}

fn small(kind: AttrKind) -> Vec<Attr> {
    match kind {
        AttrKind::Bool => vec![true.into(), false.into()],
        AttrKind::Int | AttrKind::Size => [2i64, 1, 3, 0, 4, 8, -1].map(Attr::Int).into(),
        AttrKind::Float => [0.75, 1.5, -0.75, 3.0].map(Attr::Float).into(),
        AttrKind::Str => vec!["".into()],
        AttrKind::Enum(words) => vec![words[0].into()],
        AttrKind::Ints => vec![vec![0].into()],
        AttrKind::Floats => vec![vec![0.5].into()],
        AttrKind::DType => vec![DType::F64.into()],
        AttrKind::Tuned(candidates) => vec![candidates[0].into()],
    }
}

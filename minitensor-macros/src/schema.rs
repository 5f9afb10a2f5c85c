//! Converts an op to the signature that the checks of the schema take.

use std::borrow::Cow;

use minitensor_schema::grammar::PropertyClause;
use minitensor_schema::signature::{Attribute, Generic, Input, Output, Signature};
use minitensor_schema::{Attr, AttrKind, DType, Problem, Property, check, signature};

use crate::ast::{self, Core, Elem, Op, text};
use crate::source::Clause;

/// The parts of a [`Signature`].
pub struct Parts {
    inputs: Vec<Input>,
    attrs: Vec<Attribute>,
    outputs: Vec<Output>,
    generics: Vec<Generic>,
}

impl Parts {
    pub fn view(&self) -> Signature<'_> {
        Signature { inputs: &self.inputs, attrs: &self.attrs, outputs: &self.outputs, generics: &self.generics }
    }
}

impl Op {
    pub fn signature(&self) -> Parts {
        parts(&self.inputs, &self.attrs, &self.outputs, &self.generics)
    }

    /// The properties that a clause states, or why the op cannot have them.
    pub fn properties_of(&self, clause: &Clause<PropertyClause>) -> Result<Vec<Property>, Problem> {
        let mut signature = self.signature();
        let added = self.axis.iter().flat_map(|axis| ["axis"].into_iter().chain(axis.keepdims.then_some("keepdims")));
        signature.attrs.extend(added.map(|name| Attribute {
            name: name.into(),
            kind: AttrKind::Int,
            optional: false,
            default: Some(Attr::None),
        }));
        let shapes = self.shape.as_ref().map(|shape| check::core_shapes(&signature.view(), shape));
        check::properties(&signature.view(), shapes.as_ref(), &clause.source.tokens, clause)
    }
}

pub fn parts(
    inputs: &[ast::Input],
    attrs: &[ast::Attribute],
    outputs: &[ast::Output],
    generics: &[ast::Generic],
) -> Parts {
    Parts {
        inputs: inputs.iter().map(input).collect(),
        attrs: attrs.iter().map(attribute).collect(),
        outputs: outputs.iter().map(output).collect(),
        generics: generics.iter().map(|g| Generic { name: name(&g.ident), dtypes: g.dtypes }).collect(),
    }
}

fn name(ident: &syn::Ident) -> signature::Text {
    Cow::Owned(text(ident))
}

fn input(input: &ast::Input) -> Input {
    let (dtype, core) = (rule(input.elem), core(input.core));
    Input { name: name(&input.ident), arity: input.arity, dtype, mutated: input.mutated, core }
}

fn attribute(attr: &ast::Attribute) -> Attribute {
    // Checks only ask whether there is a default.
    let default = attr.has_default().then_some(Attr::None);
    Attribute { name: name(&attr.ident), kind: attr.kind, optional: attr.admits_none(), default }
}

fn output(output: &ast::Output) -> Output {
    Output { name: name(&output.ident), dtype: rule(output.elem), role: output.role, core: core(output.core) }
}

fn rule(elem: Elem) -> signature::DTypeRule {
    match elem {
        Elem::Generic(i) => signature::DTypeRule::Generic(i as u8),
        Elem::Mask(_) => signature::DTypeRule::Fixed(DType::Bool),
        Elem::Fixed(dtype) => signature::DTypeRule::Fixed(dtype),
        Elem::Attr(i) => signature::DTypeRule::Attr(i as u8),
        Elem::Any => signature::DTypeRule::Any,
    }
}

fn core(core: Core) -> signature::Core {
    match core {
        Core::Scalar | Core::Results => signature::Core::Scalar,
        Core::Slice | Core::Columns => signature::Core::Slice,
        Core::View(_) => signature::Core::View,
    }
}

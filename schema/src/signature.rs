//! The signature of an op: its tensors, attributes and outputs as data.

use std::borrow::Cow;

use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};

/// A text that is a literal in a macro's expansion and owned where an op is made at run time.
pub type Text = Cow<'static, str>;
/// A list, likewise.
pub type List<T> = Cow<'static, [T]>;

/// The signature of one op, borrowed from wherever it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    /// The tensors that it takes, in order.
    pub inputs: &'a [Input],
    /// Its attributes, in order.
    pub attrs: &'a [Attribute],
    /// The tensors that it returns or changes, then those that it saves.
    pub outputs: &'a [Output],
    /// The dtype variables.
    pub generics: &'a [Generic],
}

/// One tensor that an op takes.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its parameter name.
    pub name: Text,
    /// Required, optional, or any number of them.
    pub arity: Arity,
    /// Which dtypes it may have.
    pub dtype: DTypeRule,
    /// Whether the op changes it in place (`&mut`).
    pub mutated: bool,
    /// How a cell body sees it.
    pub core: Core,
}

/// How many tensors one parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arity {
    /// Exactly one.
    One,
    /// One or none: `Option<T>`.
    Optional,
    /// Any number: `&[&Tensor]`, the last tensor parameter.
    Variadic,
}

/// How a cell body sees one core of an argument. Element and tensor bodies have [`Core::Scalar`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Core {
    /// A single element: `&T`, `&mut T`.
    Scalar,
    /// Contiguous memory: `&[T]`, `&mut [T]`.
    Slice,
    /// Strided memory: `ArrayView1<T>`, `ArrayView2<T>`, …
    View,
}

/// Which dtype an input must have, or an output gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DTypeRule {
    /// The dtype variable of that position in [`Signature::generics`]; inputs that share one are promoted to it.
    Generic(u8),
    /// This one. `T::Mask` is `Fixed(DType::Bool)`.
    Fixed(DType),
    /// The value of the attribute of that position (a `DType` attribute).
    Attr(u8),
    /// Any dtype: tensor bodies.
    Any,
}

/// A dtype variable.
#[derive(Clone, Debug)]
pub struct Generic {
    /// `T`
    pub name: Text,
    /// The dtypes that its trait bound, or the `dtype` clause, admits.
    pub dtypes: DTypeSet,
}

/// One attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its parameter name.
    pub name: Text,
    /// The kind of value that it takes.
    pub kind: AttrKind,
    /// Whether `None` is a value of it: `Option<…>`.
    pub optional: bool,
    /// Its value when the caller gives none; without one it is required.
    pub default: Option<Attr>,
}

/// One tensor that an op returns, saves or changes.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name, `out` if it has none of its own.
    pub name: Text,
    /// Its dtype.
    pub dtype: DTypeRule,
    /// What it is for.
    pub role: Role,
    /// How a cell body sees it.
    pub core: Core,
}

/// What an output is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The caller gets it.
    Returned,
    /// Only the gradient gets it: `[save]`.
    Saved,
    /// It is the input of that position, changed in place.
    Mutates(u8),
}

/// The caller chooses along which axis the core dimension lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Position of the attribute `axis` in [`Signature::attrs`].
    pub attr: u8,
    /// Position of the attribute `keepdims`, where an output lacks the core dimension.
    pub keepdims: Option<u8>,
    /// Whether several axes, or none for all, may be given.
    pub many: bool,
}

impl Signature<'_> {
    /// Whether tensors of such a dtype can have a gradient.
    pub fn is_differentiable(&self, rule: DTypeRule) -> bool {
        match rule {
            DTypeRule::Fixed(dtype) => dtype.is_differentiable(),
            DTypeRule::Generic(g) => self.generics[g as usize].dtypes.iter().any(DType::is_differentiable),
            DTypeRule::Attr(_) | DTypeRule::Any => true,
        }
    }

    /// The attribute with that name, and its position, which clauses refer to it by.
    pub fn attr(&self, name: &str) -> Option<(u8, &Attribute)> {
        (0..=u8::MAX).zip(self.attrs).find(|(_, attr)| attr.name == name)
    }

    /// Positions of the outputs that have a cotangent: all but the saved ones.
    pub fn visible(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.outputs.len()).filter(|k| self.outputs[*k].role != Role::Saved)
    }
}

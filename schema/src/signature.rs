//! The signature of an op: its tensors, attributes and outputs as data.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};

/// A text: a literal in the expansion of a macro, or owned by an op that is made at run time.
pub type Text = Cow<'static, str>;
/// A list: static in the expansion of a macro, or owned by an op that is made at run time.
pub type List<T> = Cow<'static, [T]>;

/// The signature of one op, borrowed from its owner.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    /// The tensors that it takes, in order.
    pub inputs: &'a [Input],
    /// Its attributes, in order.
    pub attrs: &'a [Attribute],
    /// The tensors that it returns or mutates, then those that it saves.
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
    /// The rule for its dtype.
    pub dtype: DTypeRule,
    /// Whether the op mutates it in place (`&mut`).
    pub mutated: bool,
    /// The view that a cell body receives.
    pub core: Core,
}

/// The number of tensors that one parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arity {
    /// Exactly one.
    One,
    /// One or none: `Option<T>`.
    Optional,
    /// Any number: `&[&Tensor]`, the last tensor parameter.
    Variadic,
}

/// The view of one core of an argument in a cell body. Element and tensor bodies have [`Core::Scalar`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Core {
    /// A single element: `&T`, `&mut T`.
    Scalar,
    /// Contiguous memory: `&[T]`, `&mut [T]`.
    Slice,
    /// Strided memory: `ArrayView1<T>`, `ArrayView2<T>`, …
    View,
}

/// The rule for the dtype of an input or output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DTypeRule {
    /// The dtype variable at that position in [`Signature::generics`]. Inputs that share one are promoted to one dtype.
    Generic(u8),
    /// This dtype. `T::Mask` is `Fixed(DType::Bool)`.
    Fixed(DType),
    /// The value of the attribute at that position (a `DType` attribute).
    Attr(u8),
    /// Any dtype, in tensor bodies.
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
    /// Whether it may be `None`: `Option<…>`.
    pub optional: bool,
    /// Its default. Without one, the attribute is required.
    pub default: Option<Attr>,
}

/// Whether an attribute is the dtype in which a cell op computes: `dtype: Option<DType>`.
pub fn is_accumulator(name: &str, kind: AttrKind, optional: bool) -> bool {
    name == "dtype" && kind == AttrKind::DType && optional
}

/// One tensor that an op returns, saves or mutates.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name, `out` if it has none of its own.
    pub name: Text,
    /// Its dtype.
    pub dtype: DTypeRule,
    /// Its role.
    pub role: Role,
    /// The view that a cell body receives.
    pub core: Core,
}

/// The role of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It is returned to the caller.
    Returned,
    /// It is only saved for the gradient: `[save]`.
    Saved,
    /// It is the input at that position, mutated in place.
    Mutates(u8),
}

/// The caller chooses the axis of the core dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Position of the attribute `axis` in [`Signature::attrs`].
    pub attr: u8,
    /// Position of the attribute `keepdims`, if an output lacks the core dimension.
    pub keepdims: Option<u8>,
    /// Whether several axes, or none for all, may be passed.
    pub many: bool,
}

impl Signature<'_> {
    /// Whether tensors of such a dtype can have a gradient.
    pub fn is_differentiable(&self, rule: DTypeRule) -> bool {
        match rule {
            DTypeRule::Fixed(dtype) => dtype.is_differentiable(),
            DTypeRule::Generic(g) => self
                .generics
                .get(usize::from(g))
                .is_some_and(|generic| generic.dtypes.iter().any(DType::is_differentiable)),
            DTypeRule::Attr(_) | DTypeRule::Any => true,
        }
    }

    /// The dtypes of each variable in which kernels compute.
    pub fn computed(&self) -> impl Iterator<Item = BTreeSet<DType>> + '_ {
        self.generics.iter().map(|generic| generic.dtypes.iter().map(DType::compute).collect())
    }

    /// All combinations of these dtypes.
    pub fn kernels(&self) -> Vec<Vec<DType>> {
        self.computed().fold(vec![vec![]], |tuples, dtypes| {
            let longer = |tuple: Vec<DType>| {
                dtypes.iter().map(move |dtype| [&tuple[..], &[*dtype]].concat()).collect::<Vec<_>>()
            };
            tuples.into_iter().flat_map(longer).collect()
        })
    }

    /// The attribute with that name, and its position, which identifies it in clauses.
    pub fn attr(&self, name: &str) -> Option<(u8, &Attribute)> {
        (0..=u8::MAX).zip(self.attrs).find(|(_, attr)| attr.name == name)
    }

    /// Positions of the outputs that have a cotangent: all but the saved ones.
    pub fn visible(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.outputs.len()).filter(|k| self.outputs[*k].role != Role::Saved)
    }
}

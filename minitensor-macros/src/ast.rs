//! An op as the macro understands it: what [`parse`](crate::parse) reads, [`check`](crate::check) judges and
//! [`expand`](crate::expand) writes out.

use minitensor_schema::grammar::{Formula, Predicate, Shape};
pub use minitensor_schema::signature::Arity;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, Ident, ItemFn, Path, Type};

use crate::dtype::{Bound, DType, DTypeSet};
use crate::source::Clause;

/// One operation.
pub struct Op {
    /// The function as it is written, less the `#[default]`s.
    pub function: ItemFn,
    pub level: Level,
    /// The registered name, such as `swish` or `ns::swish`.
    pub name: String,
    pub aliases: Vec<String>,
    pub doc: String,
    pub since: u32,
    pub generics: Vec<Generic>,
    pub inputs: Vec<Input>,
    pub attrs: Vec<Attribute>,
    /// Mutated inputs, then what is returned, then what is saved.
    pub outputs: Vec<Output>,
    /// The function's parameters, in order.
    pub params: Vec<Slot>,
    pub returns: Returns,
    pub shape: Option<Clause<Shape>>,
    /// The conditions, of each clause that has some.
    pub predicates: Vec<Clause<Vec<Predicate>>>,
    pub axis: Option<Axis>,
    pub gradient: Gradient,
    /// The word `inplace`, where it is written.
    pub inplace: Option<Ident>,
}

/// What the body describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Element,
    Row,
    Cell,
    Tensor,
}

/// A dtype variable.
#[derive(Clone)]
pub struct Generic {
    pub ident: Ident,
    pub bound: Bound,
    pub dtypes: DTypeSet,
}

/// One tensor parameter.
#[derive(Clone)]
pub struct Input {
    pub ident: Ident,
    pub ty: Type,
    pub elem: Elem,
    pub arity: Arity,
    pub mutated: bool,
    pub core: Core,
}

/// The dtype of an input or output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elem {
    /// The dtype variable of that position.
    Generic(usize),
    /// `T::Mask` of the dtype variable of that position.
    Mask(usize),
    Fixed(DType),
    /// What the `DType` attribute of that position says.
    Attr(usize),
    Any,
}

/// How a cell body sees one core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Core {
    Scalar,
    Slice,
    /// `ArrayView` of so many dimensions.
    View(usize),
}

/// One attribute.
#[derive(Clone)]
pub struct Attribute {
    pub ident: Ident,
    /// Its type without `Option`.
    pub ty: Type,
    pub kind: AttrKind,
    pub optional: bool,
    pub default: Option<Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrKind {
    Bool,
    Int,
    Size,
    Float,
    Str,
    Enum,
    Ints,
    Floats,
    DType,
}

/// One tensor that the op gives.
#[derive(Clone)]
pub struct Output {
    pub ident: Ident,
    pub elem: Elem,
    pub role: Role,
    pub core: Core,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Returned,
    Saved,
    /// The input of that position, changed in place.
    Mutates(usize),
}

/// What one parameter of the function is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    Input(usize),
    Attr(usize),
    Output(usize),
}

/// What the function itself returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    Nothing,
    One,
    Tuple,
    /// `Vec<Tensor>`
    List,
}

/// The `axis` clause.
pub struct Axis {
    /// The axis where the caller names none; `None` for all of them, and then several may be named.
    pub default: Option<i64>,
    /// Whether some output lacks the dimension.
    pub keepdims: bool,
}

/// The gradient.
pub enum Gradient {
    /// There is none, for this reason.
    None(String),
    NotNeeded,
    /// The compiled vector-Jacobian product of an element or row body.
    Derived,
    Formula(Clause<Formula>),
    Function(Path),
    Traced,
}

impl Op {
    /// The function's name.
    pub fn ident(&self) -> &Ident {
        &self.function.sig.ident
    }

    /// What the caller gets, with positions among all outputs.
    pub fn returned(&self) -> impl Iterator<Item = (usize, &Output)> {
        self.outputs.iter().enumerate().filter(|(_, o)| o.role == Role::Returned)
    }

    /// Whether a tensor of this dtype can have a gradient.
    pub fn is_differentiable(&self, elem: Elem) -> bool {
        match elem {
            Elem::Generic(i) => self.generics[i].is_differentiable(),
            Elem::Mask(_) => false,
            Elem::Fixed(dtype) => dtype.is_differentiable(),
            Elem::Attr(_) | Elem::Any => true,
        }
    }
}

impl Generic {
    pub fn is_differentiable(&self) -> bool {
        self.dtypes.iter().any(|d| d.is_differentiable())
    }
}

/// The text of an identifier, `r#` left off.
pub fn text(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// A type without the spaces that its tokens are printed with.
pub fn spelling(ty: impl ToTokens) -> String {
    let words = ["mut", "impl", "dyn"];
    let mut spelled = ty.to_token_stream().to_string().replace(' ', "\0");
    for word in words {
        spelled = spelled.replace(&format!("{word}\0"), &format!("{word} "));
    }
    spelled.replace('\0', "").replace(',', ", ")
}

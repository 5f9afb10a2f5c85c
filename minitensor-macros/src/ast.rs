//! The definition of an op in the macro: [`parse`](crate::parse) reads it, [`check`](crate::check) checks it, and
//! [`expand`](crate::expand) writes the expansion.

use minitensor_schema::grammar::{Formula, Mode, Predicate, PropertyClause, Shape};
use minitensor_schema::signature::is_accumulator;
pub use minitensor_schema::signature::{Arity, Role};
pub use minitensor_schema::{AttrKind, Combine};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, Ident, ItemFn, Path, Type};

use crate::dtype::{Bound, DType, DTypeSet};
use crate::source::Clause;

/// An op.
pub struct Op {
    /// The function as written, without the `#[default]` attributes.
    pub function: ItemFn,
    /// The name of the struct that provides the definition: that of the function, unless another op has this name.
    pub type_name: Ident,
    pub level: Level,
    /// The registered name: for example, `swish` or `ns::swish`.
    pub name: String,
    pub aliases: Vec<String>,
    pub doc: String,
    pub since: u32,
    pub generics: Vec<Generic>,
    pub inputs: Vec<Input>,
    pub attrs: Vec<Attribute>,
    /// Mutated inputs, then returned outputs, then saved outputs.
    pub outputs: Vec<Output>,
    /// The function's parameters, in order.
    pub params: Vec<Slot>,
    pub returns: Returns,
    pub shape: Option<Clause<Shape>>,
    /// The conditions of each clause that has some.
    pub predicates: Vec<Clause<Vec<Predicate>>>,
    pub axis: Option<Axis>,
    /// The clause `combine`.
    pub combine: Option<Combine>,
    /// The clauses `linear`, `symmetric` and `replaces`.
    pub properties: Vec<Clause<PropertyClause>>,
    /// The function of rows that computes the same as a cell body.
    pub program: Option<Path>,
    pub gradient: Gradient,
    /// The word `inplace`, if it is written.
    pub inplace: Option<Ident>,
    /// The word `precompiled`, if it is written.
    pub precompiled: Option<Ident>,
}

/// The level of the body.
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

impl Generic {
    /// Whether all dtypes are integers.
    pub fn is_of_integers(&self) -> bool {
        self.dtypes.iter().all(|dtype| dtype.is_integer())
    }
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

impl Input {
    /// Whether its type is `R::Index`. Other integers of an element or row body are numbers, which the `dtype` clause stores as
    /// integers.
    pub fn is_index(&self) -> bool {
        matches!(self.elem, Elem::Fixed(_)) && is_index(&self.ty)
    }
}

/// `R::Index`
pub fn is_index(ty: &Type) -> bool {
    spelling(ty).ends_with("::Index")
}

/// The dtype of an input or output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elem {
    /// The dtype variable at that position.
    Generic(usize),
    /// `T::Mask` of the dtype variable at that position.
    Mask(usize),
    Fixed(DType),
    /// The value of the `DType` attribute at that position.
    Attr(usize),
    Any,
}

/// The view of one core that a cell body receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Core {
    Scalar,
    Slice,
    /// An `ArrayView` with this number of dimensions.
    View(usize),
    /// `Columns<T>`, `ColumnsMut<T>`: neighbouring cells as the columns of a table.
    Columns,
    /// `&mut [T]` beside `Columns<T>`: a number for each of these cells.
    Results,
}

impl Core {
    /// Whether the parameter has the elements of a row.
    pub fn is_along(self) -> bool {
        matches!(self, Core::Slice | Core::Columns)
    }
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

/// One output tensor of the op.
#[derive(Clone)]
pub struct Output {
    pub ident: Ident,
    pub elem: Elem,
    pub role: Role,
    pub core: Core,
}

/// The role of one parameter of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    Input(usize),
    Attr(usize),
    Output(usize),
}

/// The return type of the function.
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
    /// The default axis. `None` means all axes, and then a caller may pass several.
    pub default: Option<i64>,
    /// Whether an output lacks the dimension.
    pub keepdims: bool,
}

/// The gradient.
pub enum Gradient {
    /// The op has no gradient, for this reason.
    None(String),
    NotNeeded,
    /// The vector-Jacobian product of an element, row or cell body.
    Derived,
    Formula(Clause<Formula>),
    Function(Mode, Path),
    Composite,
}

impl Attribute {
    /// Whether a caller may omit it.
    pub fn has_default(&self) -> bool {
        self.optional || self.default.is_some() || self.kind.is_tuned()
    }

    /// Whether `None` is a value for a caller.
    pub fn admits_none(&self) -> bool {
        self.optional || self.kind.is_tuned()
    }
}

impl Op {
    /// The name of the function.
    pub fn ident(&self) -> &Ident {
        &self.function.sig.ident
    }

    /// The attribute `dtype` of a cell op: the dtype in which the op computes. The engine reads it.
    pub fn accumulator(&self) -> Option<usize> {
        let is_one = |a: &Attribute| is_accumulator(&text(&a.ident), a.kind, a.optional);
        if self.level == Level::Cell { self.attrs.iter().position(is_one) } else { None }
    }

    /// Whether the body takes neighbouring cells together.
    pub fn is_of_columns(&self) -> bool {
        self.inputs.iter().any(|input| input.core == Core::Columns)
    }

    /// Whether the function returns a `Result`.
    pub fn is_fallible(&self) -> bool {
        matches!(&self.function.sig.output, syn::ReturnType::Type(_, ty) if crate::parse::result(ty).is_some())
    }

    /// The positions of the outputs that the function returns. A cell body writes the others to its parameters.
    pub fn results(&self) -> Vec<usize> {
        let is_written = |k: &usize| self.params.contains(&Slot::Output(*k));
        let own = (0..self.outputs.len()).filter(|k| !matches!(self.outputs[*k].role, Role::Mutates(_)));
        own.filter(|k| !is_written(k)).collect()
    }

    /// The returned outputs, with their positions among all outputs.
    pub fn returned(&self) -> impl Iterator<Item = (usize, &Output)> {
        self.outputs.iter().enumerate().filter(|(_, o)| o.role == Role::Returned)
    }

    /// Whether a tensor of this dtype is differentiable.
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

/// The text of an identifier, without `r#`.
pub fn text(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The text of a type, without the spaces that token printing inserts.
pub fn spelling(ty: impl ToTokens) -> String {
    let words = ["mut", "impl", "dyn"];
    let mut spelled = ty.to_token_stream().to_string().replace(' ', "\0");
    for word in words {
        spelled = spelled.replace(&format!("{word}\0"), &format!("{word} "));
    }
    spelled.replace('\0', "").replace(',', ", ")
}

//! The names in scope of a body, beginning with those of its function.

use std::collections::HashMap;

use minitensor_schema::dtype::Bound;
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::visit::Visit;
use syn::{Expr, ExprPath, Ident, ItemFn, Pat, PatIdent, Path, ReturnType, Type};

use super::{Certain, ValueKind};
use crate::ast::{Arity, AttrKind, Core, Elem, Generic, Input, Level, Op, Returns, Slot, is_index, text};
use crate::dtype::COMPLEX;
use crate::hygiene::quote;
use crate::parse::variable_of_complex;

/// What the signature of a function says about its body.
pub struct Head {
    /// The dtype variables.
    pub generics: Vec<Generic>,
    /// The level of the op. That of a helper depends on its parameters in the same way.
    pub level: Level,
    pub params: Vec<(Ident, ValueKind)>,
    /// The dimensions that the `shape` clause names.
    pub dims: Vec<String>,
    /// The types of parameters of elements and attributes.
    pub certain: Vec<(Ident, Certain)>,
    /// The parameters that are integers of Rust.
    pub integers: Vec<Ident>,
    /// The types of the returned data, if the function returns only data.
    pub returned: Option<Vec<Elem>>,
    /// The dtype variable `T` of the complex numbers `Complex<T>`, if there are some. Their type is then the last of `generics`.
    pub complex: Option<usize>,
    /// The dtype variable `T` of the integers `Bits<T>`, if there are some. Their type is then the last of `generics`, after `Complex<T>`.
    pub bits: Option<usize>,
}

impl Head {
    pub fn of(op: &Op) -> Head {
        let input = |input: &Input| {
            let variable = if input.is_index() { None } else { variable(input.elem) };
            let kind = match input.arity {
                _ if op.level == Level::Cell => of_core(input.elem, input.core, input.arity),
                Arity::Optional => ValueKind::Option(variable),
                _ => ValueKind::Data(variable),
            };
            (input.ident.clone(), kind)
        };
        let attr = |attr: &crate::ast::Attribute| {
            // A uniform is data in an element body, because it has type `T` there.
            let uniform = attr.kind == AttrKind::Float && op.level != Level::Cell;
            let kind = match attr.kind {
                _ if uniform && attr.optional => ValueKind::Option(Some(0)),
                _ if uniform => ValueKind::Data(Some(0)),
                AttrKind::Float if !attr.optional => ValueKind::Float,
                AttrKind::Floats if !attr.optional && op.level == Level::Cell => ValueKind::Floats,
                AttrKind::Bool => ValueKind::Flag,
                _ => ValueKind::Static,
            };
            (attr.ident.clone(), kind)
        };
        // The other outputs are parameters that a cell body writes.
        let written = op.params.iter().filter_map(|slot| match slot {
            Slot::Output(k) => Some(&op.outputs[*k]),
            _ => None,
        });
        let written = written.map(|o| (o.ident.clone(), of_core(o.elem, o.core, Arity::One)));
        let params = op.inputs.iter().map(input).chain(op.attrs.iter().map(attr)).chain(written).collect();
        // Indices are no numbers, unlike other integers.
        let indices = indices(&op.function.sig.output);
        let computed = |(k, elem): (usize, Elem)| match elem {
            Elem::Fixed(_) if op.level != Level::Cell && !indices.contains(&k) => Elem::Generic(0),
            elem => elem,
        };
        let returned = op.results().into_iter().map(|k| op.outputs[k].elem);
        let returned = returned.enumerate().map(computed).collect();
        let returns = op.returns != Returns::Nothing;
        let mut generics = op.generics.clone();
        let has_reals = generics.iter().any(|g| g.bound.is_of_floats());
        let complex =
            if has_reals && op.level != Level::Cell { add_complex(&op.function, &mut generics) } else { None };
        let bits = if op.level == Level::Cell { None } else { add_bits(&op.function, &mut generics) };
        Head {
            generics,
            level: op.level,
            params,
            certain: certain(op),
            integers: op.attrs.iter().filter(|a| is_integer(a)).map(|a| a.ident.clone()).collect(),
            dims: op.shape.iter().flat_map(|s| s.bound()).map(|(name, _)| name.to_owned()).collect(),
            returned: returns.then_some(returned),
            complex,
            bits,
        }
    }

    /// The dtype variables of the function.
    pub fn variables(&self) -> &[Generic] {
        let types = usize::from(self.complex.is_some()) + usize::from(self.bits.is_some());
        &self.generics[..self.generics.len() - types]
    }

    /// Whether the position is that of `Complex<T>`.
    pub fn is_complex(&self, at: usize) -> bool {
        self.complex.is_some() && at == self.variables().len()
    }

    /// Whether the position is that of `Bits<T>`.
    pub fn is_bits(&self, at: usize) -> bool {
        self.bits.is_some() && at + 1 == self.generics.len()
    }

    /// The position of the bits of the elements of a dtype variable.
    pub fn bits_of(&self, variable: usize) -> Option<usize> {
        (self.bits == Some(variable)).then(|| self.generics.len() - 1)
    }

    /// Whether a value may have another type than the dtype variables.
    pub fn has_types(&self) -> bool {
        self.complex.is_some() || self.bits.is_some()
    }

    /// The dtype variable of the parts of a number, and of a comparison of such numbers.
    pub fn part(&self, at: usize) -> usize {
        let is = |yes: bool, part: Option<usize>| part.filter(|_| yes);
        is(self.is_complex(at), self.complex).or(is(self.is_bits(at), self.bits)).unwrap_or(at)
    }

    /// `T`, `Complex<T>`, `Bits<T>`
    pub fn spelled(&self, at: usize) -> String {
        let (name, part) = (text(&self.generics[at].ident), text(&self.generics[self.part(at)].ident));
        if self.part(at) == at { name } else { format!("{name}<{part}>") }
    }

    /// The same for the expansion.
    pub fn ty(&self, at: usize, rt: &TokenStream) -> TokenStream {
        let (name, part) = (&self.generics[at].ident, &self.generics[self.part(at)].ident);
        if self.part(at) == at { part.to_token_stream() } else { quote!(#rt::#name<#part>) }
    }

    /// Whether the body runs at machine numbers only, so that comparisons and `if` are those of Rust.
    pub fn is_machine(&self) -> bool {
        self.level == Level::Cell
    }
}

/// Appends the type of the complex numbers of a function to its dtype variables. Returns the variable of their parts, which is the `T`
/// of the first `Complex<T>`, or the only one if the body names `Complex` alone.
pub fn add_complex(function: &ItemFn, generics: &mut Vec<Generic>) -> Option<usize> {
    struct Found<'a> {
        generics: &'a [Generic],
        variable: Option<usize>,
        is_named: bool,
    }
    impl<'a> Visit<'a> for Found<'_> {
        fn visit_type(&mut self, ty: &'a Type) {
            self.variable = self.variable.or_else(|| variable_of_complex(ty, self.generics));
            syn::visit::visit_type(self, ty);
        }
        fn visit_expr_path(&mut self, path: &'a ExprPath) {
            self.is_named |= path.path.segments.first().is_some_and(|s| s.ident == "Complex");
            syn::visit::visit_expr_path(self, path);
        }
    }
    let mut found = Found { generics, variable: None, is_named: false };
    found.visit_item_fn(function);
    let only = (found.is_named && found.generics.len() == 1).then_some(0);
    let variable = found.variable.or(only)?;
    generics.push(Generic { ident: format_ident!("Complex"), bound: COMPLEX, dtypes: COMPLEX.dtypes });
    Some(variable)
}

/// Appends the type of the bits of floats to the dtype variables of a function. Returns the variable of the floats, which is the first that
/// has floats. `None` if the body has no bits.
pub fn add_bits(function: &ItemFn, generics: &mut Vec<Generic>) -> Option<usize> {
    const NAMES: [&str; 4] = ["to_bits", "from_bits", "to_integer", "Bits"];
    if !super::mentions(function.to_token_stream(), &|name| NAMES.iter().any(|word| name == word)) {
        return None;
    }
    let variable = generics.iter().position(|g| g.bound.is_of_floats())?;
    let bound = Bound::named("Int").expect("a trait");
    generics.push(Generic { ident: format_ident!("Bits"), bound, dtypes: bound.dtypes });
    Some(variable)
}

/// Which results have the type `R::Index`.
fn indices(output: &ReturnType) -> Vec<usize> {
    let ReturnType::Type(_, ty) = output else { return vec![] };
    let all: Vec<&Type> = if let Type::Tuple(tuple) = &**ty { tuple.elems.iter().collect() } else { vec![ty] };
    (0..all.len()).filter(|k| is_index(all[*k])).collect()
}

fn is_integer(attr: &crate::ast::Attribute) -> bool {
    matches!(attr.kind, AttrKind::Int | AttrKind::Size) && !attr.optional
}

fn certain(op: &Op) -> Vec<(Ident, Certain)> {
    if op.level == Level::Cell {
        let is_slice = |i: &&Input| i.core == Core::Slice && i.arity == Arity::One && !i.mutated;
        let slices = op.inputs.iter().filter(is_slice);
        let slices = slices.map(|i| (i.ident.clone(), Certain::Rust("a slice")));
        let optional = op.attrs.iter().filter(|a| a.kind == AttrKind::Float && a.optional);
        let optional = optional.map(|a| (a.ident.clone(), Certain::Optional));
        return slices.chain(optional).collect();
    }
    let inputs = op.inputs.iter().filter_map(|input| {
        let certain = match (input.arity, input.elem) {
            (Arity::Optional, _) => Certain::Optional,
            (_, Elem::Generic(i)) if input.mutated => Certain::Place(i),
            (_, Elem::Generic(i)) => Certain::Element(i),
            (_, Elem::Mask(i)) if !input.mutated => Certain::Mask(i),
            (_, Elem::Fixed(_)) if input.is_index() => Certain::Index,
            (_, Elem::Fixed(_)) => Certain::Element(0),
            _ => return None,
        };
        Some((input.ident.clone(), certain))
    });
    let attrs = op.attrs.iter().filter_map(|attr| {
        let certain = match attr.kind {
            _ if attr.optional => Certain::Optional,
            AttrKind::Float => Certain::Element(0),
            AttrKind::Bool => Certain::Rust("a `bool`"),
            AttrKind::Str => Certain::Rust("a text"),
            AttrKind::Enum(_) => Certain::Rust("an enum"),
            AttrKind::Ints | AttrKind::Floats => Certain::Rust("a list"),
            AttrKind::DType => Certain::Rust("a dtype"),
            _ => return None,
        };
        Some((attr.ident.clone(), certain))
    });
    inputs.chain(attrs).collect()
}

fn variable(elem: Elem) -> Option<usize> {
    match elem {
        Elem::Generic(i) | Elem::Mask(i) => Some(i),
        // A number that is stored as an integer.
        Elem::Fixed(_) => Some(0),
        _ => None,
    }
}

/// The kind of an argument of a cell body.
fn of_core(elem: Elem, core: Core, arity: Arity) -> ValueKind {
    match (elem, core, arity) {
        (Elem::Generic(i), Core::Scalar, Arity::Optional) => ValueKind::Option(Some(i)),
        (Elem::Generic(i), Core::Scalar, _) => ValueKind::Data(Some(i)),
        (Elem::Generic(i), Core::Slice | Core::View(_), _) => ValueKind::Many(Some(i)),
        _ => ValueKind::Static,
    }
}

/// A name in scope.
#[derive(Clone, Copy)]
pub struct Binding {
    pub value: ValueKind,
    /// The index of the `let` that created it, counted from the start of the body.
    pub made_by: Option<usize>,
    /// Its type, if it is certain.
    pub certain: Option<Certain>,
}

/// The names in scope, innermost last.
pub struct Scopes(Vec<HashMap<String, Binding>>);

impl Scopes {
    /// The parameters of the function.
    pub fn new(head: &Head) -> Scopes {
        let mut scopes = Scopes(vec![HashMap::new()]);
        head.params.iter().for_each(|(name, value)| scopes.bind(name, *value));
        head.certain.iter().for_each(|(name, certain)| scopes.know(name, Some(*certain)));
        scopes
    }

    /// Sets the type of the name that was bound last.
    pub fn know(&mut self, name: &Ident, certain: Option<Certain>) {
        if let Some(binding) = self.0.last_mut().and_then(|scope| scope.get_mut(&text(name))) {
            binding.certain = certain;
        }
    }

    pub fn push(&mut self) {
        self.0.push(HashMap::new());
    }

    pub fn pop(&mut self) {
        self.0.pop();
    }

    pub fn bind(&mut self, ident: &Ident, value: ValueKind) {
        self.bind_let(ident, value, None);
    }

    pub fn bind_let(&mut self, ident: &Ident, value: ValueKind, made_by: Option<usize>) {
        let innermost = self.0.last_mut().expect("a scope is open");
        innermost.insert(text(ident), Binding { value, made_by, certain: None });
    }

    /// Binds every name in a pattern.
    pub fn bind_pattern(&mut self, pattern: &Pat, value: ValueKind, made_by: Option<usize>) {
        struct Names<'a>(&'a mut Scopes, ValueKind, Option<usize>);
        impl<'a> Visit<'a> for Names<'_> {
            fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
                // `None` and constants parse as names.
                if !text(&pattern.ident).starts_with(char::is_uppercase) {
                    self.0.bind_let(&pattern.ident, self.1, self.2);
                }
            }
            fn visit_expr(&mut self, _: &'a Expr) {}
        }
        Names(self, value, made_by).visit_pat(pattern);
    }

    pub fn get(&self, name: &Ident) -> Option<Binding> {
        let name = text(name);
        self.0.iter().rev().find_map(|scope| scope.get(&name).copied())
    }

    /// The kind of value of a path.
    pub fn path(&self, path: &Path, head: &Head) -> ValueKind {
        if let Some(name) = path.get_ident() {
            return self.get(name).map_or(ValueKind::Static, |b| b.value);
        }
        let first = &path.segments[0].ident;
        match head.generics.iter().position(|g| g.ident == *first) {
            Some(i) => ValueKind::Data(Some(i)),
            None if path.segments.iter().any(|s| s.ident == "f64") => ValueKind::Float,
            None => ValueKind::Static,
        }
    }
}

//! `#[custom_op]`: one annotated function becomes a whole operation. `#[op_fn]`: a function becomes a helper of ops.
//!
//! The macro is thin: [`parse`] → [`check`] → [`lower`] → [`expand`]. The semantics of ops are in the traits and types of
//! the runtime. The macro contains the grammar, its errors, and the generation of the static definition.

#![forbid(unsafe_code)]

mod ast;
mod attr_enum;
mod body;
mod check;
mod complex;
mod composite;
mod diag;
mod drawn;
mod dtype;
mod expand;
mod hygiene;
mod lower;
mod parse;
mod runtime;
mod schema;
mod source;
#[cfg(test)]
mod tests;

use parse::helper::Helper;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, Ident, ItemFn, parse_quote};

/// Defines a tensor operation by a function. The macro generates kernels for every dtype, the gradient, validation, and
/// inference of shapes and dtypes. It also generates a struct with the name of the function, which provides the definition.
///
/// ```ignore
/// use minitensor::prelude::*;
///
/// /// Swish (SiLU): `x · σ(x)`.
/// #[custom_op(alias = "silu", inplace)]
/// pub fn swish<T: Float>(x: T) -> T {
///     x * x.sigmoid()
/// }
///
/// let y = swish::call(&x)?;    // on tensors, recorded for autograd
/// let z = swish(0.5_f32);      // the function stays a function
/// ```
///
/// # Levels
///
/// The type of the tensor parameters determines the level of the body.
///
/// | parameters | the body describes | gradient |
/// |---|---|---|
/// | `T`, `T::Mask`, `Complex<T>`, `Option<T>`, `&mut T` | one element; inputs broadcast | derived |
/// | `&[T]`, `&T`, `ArrayView1<T>` … `ArrayView5<T>` and their `&mut` | one core cell of a `shape` clause | derived, or written |
/// | `&Tensor`, `Option<&Tensor>`, `&[&Tensor]` | whole tensors, by other ops | traced |
///
/// The bound of `T` is exactly one of `Element`, `Num`, `Real`, `Int`, `Field` and `Float`. It determines the dtypes that the
/// op accepts. Parameters that share a variable are promoted to one dtype. An op has at most two variables.
///
/// # Parameters
///
/// Tensors come first, then attributes: `f64`, `i64`, `usize`, `bool`, `&str`, `&[i64]`, `&[f64]`, `DType`, an enum with
/// `#[derive(AttrEnum)]`, and `Option`s of these. `#[default = value]` makes an attribute optional for the caller. The
/// default of an `Option` is `None`. Required tensors precede optional ones, and so do attributes.
///
/// # Clauses
///
/// | clause | meaning |
/// |---|---|
/// | `shape = (x: [.., n], w: [n, m]) -> [.., m]` | core dimensions by name, after batch dimensions `..` that broadcast. Several outputs are named, `-> (values: [.., k], [save] order: [.., n])`; `[save]` marks an output that only the gradient needs. A dimension is a name, a number, or `+ - * /` of those; a `usize` attribute is one too |
/// | `where k <= n, eps >= 0.0` | conditions on dimensions and attributes; after the `shape` clause, or alone |
/// | `dtype = (x: T) -> (T, i64) where T: f32 \| f64` | dtypes that the signature does not determine, and names of outputs: `-> (sin: T, cos: T)` |
/// | `backward = …` | `auto` (the default where a gradient can be derived), `none` (differentiating raises), the path of a `BackwardFn`, or a formula |
/// | `jvp = …` | the tangents of the outputs: a formula in the tangents of the inputs, or a path. The gradient is its transpose |
/// | `axis = -1`, `axis = None` | lets the caller choose the `axis` of the one core dimension, with that default; with `None` several axes, or all. If an output lacks the dimension, also adds `keepdims` |
/// | `combine = add` | how the results for parts of a row combine, in any order; also `multiply`, `maximum`, `minimum`, `logical_or`, `logical_and`, `average`. Rows that are not contiguous are then read in the order of memory, and long ones in parts |
/// | `linear = x`, `linear = (x, y)`, `linear = [x, y]` | the results are linear in an input, in several together, or in each of several. Then one gradient suffices for derivatives of any order |
/// | `symmetric` | the results remain the same if the inputs are exchanged |
/// | `replaces = log(softmax(x))` | the op computes this expression, and takes its place in graphs |
/// | `inplace` | also defines `swish_`, which writes to its first argument |
/// | `precompiled` | rustc compiles the loops of an element or row body of floats for each dtype and SIMD level. Without it, they are assembled at the first call |
/// | `name = "ns::op"` | the registered name; by default that of the function |
/// | `alias = "a"`, `alias = ["a", "b"]` | other names |
/// | `since = 2` | the first version of the package with this op; 1 by default |
/// | `crate = path` | the path of minitensor, if not `::minitensor` or `::minitensor_plugin_sdk` |
///
/// # Formulas
///
/// ```ignore
/// backward = |d_out| {
///     let s = out.sum(axis = -1, keepdims = true);
///     x: d_out * s,
///     mask: none,
/// }
/// ```
///
/// The closure takes one cotangent for each returned output, and has one entry for each differentiable input. Inputs,
/// outputs (`out` if unnamed), cotangents, attributes and dimensions are in scope. The call saves the inputs and outputs
/// that the formula mentions. Operators, methods and calls on tensors are calls of ops by name, with keywords as in Python.
/// `x.shape`, `x.dtype` and `x.ndim` are known without saving `x`. An entry runs only if its gradient is needed, and its
/// result is summed to the shape of the input. Formulas consist of ops, so they are differentiable.
///
/// # Bodies over whole tensors
///
/// Operators, methods and slices of values that are certainly tensors are calls of ops by name: `x * 2.0`, `x.sum(axis = -1)`,
/// `x[(.., 1..n)]`. So are `ops::concat([x, y], -1)` and other paths that begin with `ops::`. Each call ends with an implied `?`. All
/// other code is unchanged.
///
/// # Element bodies
///
/// A body is generic code. The macro rewrites syntax that Rust cannot overload: a literal operand of data becomes an
/// element, comparisons return masks, and `if`, `&&` and `||` on data select for every element. `f64` attributes are elements
/// too. `for` loops, `match` and `if` on known values (attributes, constants) are unchanged. `x.max(y)`, `x.ln()`,
/// `x.powf(y)` and other method names of Rust's floats are accepted for `maximum`, `log`, `pow`.
#[proc_macro_attribute]
pub fn custom_op(attr: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    op(attr.into(), item.into()).into()
}

/// Makes an enum usable as an attribute of an op. Its variants become words: `HalfPixel` becomes `"half_pixel"`.
///
/// ```ignore
/// #[derive(Clone, Copy, Debug, AttrEnum)]
/// pub enum Approximate {
///     None,
///     Tanh,
/// }
/// ```
#[proc_macro_derive(AttrEnum)]
pub fn attr_enum(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(item as DeriveInput);
    attr_enum::expand(&input, &runtime::path(None)).into()
}

/// Makes a generic function a helper of op bodies. Its body is written like theirs, and lowered in the same way: literals
/// become elements, comparisons return masks, `if` selects for every element, and `f64` parameters are elements.
///
/// ```ignore
/// #[op_fn]
/// fn huber<T: Float>(x: T, delta: f64) -> T {
///     let a = x.abs();
///     if a <= delta { 0.5 * a * a } else { delta * (a - 0.5 * delta) }
/// }
/// ```
///
/// A helper with `R: Row` works on rows. A helper that takes `&Tensor` works on whole tensors. A helper that takes `&[T]`, `&T` or views works on cells: its body is plain Rust,
/// except that literals beside elements become elements.
///
/// `#[op_fn(crate = path)]` sets the path of minitensor, if not `::minitensor` or `::minitensor_plugin_sdk`.
#[proc_macro_attribute]
pub fn op_fn(attr: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    helper(attr.into(), item.into()).into()
}

fn helper(attr: TokenStream, item: TokenStream) -> TokenStream {
    let function = match parse::function(item.clone()) {
        Ok(function) => function,
        Err(error) => return parse::incomplete(error, item),
    };
    let mut diag = diag::Diag::default();
    let (path, head) = parse::helper::head(attr, &function, &mut diag);
    let Some(head) = head else { return kept(without_body(function), diag) };
    let runtime = runtime::path(path.as_ref());
    let lowered = match head {
        Helper::Numbers(head) => lower::function(&function, &head, &runtime, &mut diag),
        Helper::Tensors => {
            lower::tensor::function(&function, &format!("function '{}'", function.sig.ident), &runtime, &mut diag)
        }
    };
    if !diag.is_empty() {
        return kept(without_body(lowered), diag);
    }
    diag.finish();
    lowered.into_token_stream()
}

fn op(attr: TokenStream, item: TokenStream) -> TokenStream {
    match parse::function(item.clone()) {
        Ok(function) => definition(attr, function, None),
        Err(error) => parse::incomplete(error, item),
    }
}

/// Expands a definition. The struct has the name of the function, or another one.
fn definition(mut attr: TokenStream, mut function: ItemFn, type_name: Option<Ident>) -> TokenStream {
    let mut diag = diag::Diag::default();
    let complex = complex::Complex::of(&attr, &function, &mut diag);
    if !diag.is_empty() {
        drawn::strip(&mut function);
        return kept(without_body(function), diag);
    }
    if let Some(complex) = complex {
        diag.finish();
        return definition_of_complex(&complex, &function);
    }
    let drawn = drawn::Drawn::take(&attr, &mut function, &mut diag);
    if let Some(drawn) = &drawn {
        attr = drawn.clauses();
    }
    let (clauses, op) = parse::op(attr, function.clone(), &mut diag);
    let runtime = runtime::path(clauses.runtime.as_ref());
    let Some(mut op) = op else { return kept(without_body(function), diag) };
    if let Some(type_name) = type_name {
        op.type_name = type_name;
    }
    // Made before the op is renamed, and expanded after it is checked.
    let composite = drawn.as_ref().map(|drawn| {
        let composite = drawn.composite(&op, &clauses, &runtime, &mut diag);
        (composite, op.ident().clone())
    });
    check::op(&op, &clauses, &mut diag);
    if let Some(drawn) = &drawn {
        drawn.rename(&mut op);
    }
    if op.shape.is_some() && op.level == ast::Level::Element {
        // The body is probably written for rows.
        return kept(without_body(function), diag);
    }
    let lowered = lower::op(&op, &runtime, &mut diag);
    if !diag.is_empty() {
        return kept(without_body(lowered.function), diag);
    }
    diag.finish();
    let composite = composite.map(|((attr, function), ident)| definition(attr, function, Some(ident)));
    let own = expand::op(op, lowered, &runtime);
    quote!(#own #composite)
}

/// Expands a definition with complex and real numbers.
fn definition_of_complex(complex: &complex::Complex, function: &ItemFn) -> TokenStream {
    let mut diag = diag::Diag::default();
    let (attr, parts) = complex.of_parts(function);
    let (clauses, op) = parse::op(attr, parts, &mut diag);
    let runtime = runtime::path(clauses.runtime.as_ref());
    let Some(mut op) = op else { return kept(without_body(function.clone()), diag) };
    check::op(&op, &clauses, &mut diag);
    let mut own = function.clone();
    parse::strip_defaults(&mut own);
    // The function is lowered like a helper.
    if let (_, Some(Helper::Numbers(head))) = parse::helper::head(TokenStream::new(), &own, &mut diag) {
        own = lower::function(&own, &head, &runtime, &mut diag);
    }
    op.name = complex.name_of_parts(function);
    op.type_name = composite::type_of_given(&function.sig.ident);
    let (attr, composite) = complex.of_tensors(function, &op, &runtime, &mut diag);
    let lowered = lower::op(&op, &runtime, &mut diag);
    if !diag.is_empty() {
        return kept(without_body(function.clone()), diag);
    }
    diag.finish();
    let composite = definition(attr, composite, Some(function.sig.ident.clone()));
    let parts = expand::op(op, lowered, &runtime);
    quote!(#own #parts #composite)
}

/// The body of a wrong definition may not be valid Rust, so rustc would report further errors.
fn without_body(mut function: ItemFn) -> ItemFn {
    function.block = parse_quote!({ ::core::unimplemented!() });
    if matches!(&function.sig.output, syn::ReturnType::Type(_, ty) if matches!(**ty, syn::Type::ImplTrait(_))) {
        function.sig.output = syn::ReturnType::Default;
    }
    function
}

/// The errors, and the function, because other code may call it.
fn kept(mut function: ItemFn, diag: diag::Diag) -> TokenStream {
    parse::strip_defaults(&mut function);
    parse::strip_names(&mut function);
    let errors = diag.finish();
    quote!(#errors #[allow(unused, clippy::all)] #function)
}

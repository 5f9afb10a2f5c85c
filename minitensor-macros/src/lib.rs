//! `#[custom_op]`: one annotated function becomes a whole operation.
//!
//! The macro is thin: [`parse`] → [`check`] → [`lower`] → [`expand`]. What an op *means* lives in the runtime's traits
//! and types; here are its grammar, its mistakes, and the static record that is made of it.

#![forbid(unsafe_code)]

mod ast;
mod attr_enum;
mod body;
mod check;
mod diag;
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

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, ItemFn, parse_quote};

/// Makes a tensor operation of a function: its kernels for every dtype, its gradient, its validation, its inference of
/// shapes and dtypes, and a struct of the function's name through which everything else reads what the op is.
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
/// The type of the tensor parameters decides what the body describes.
///
/// | parameters | the body describes | gradient |
/// |---|---|---|
/// | `T`, `T::Mask`, `Option<T>`, `&mut T` | one element; inputs broadcast | derived |
/// | `&[T]`, `&T`, `ArrayView1<T>` … `ArrayView5<T>` and their `&mut` | one core cell of a `shape` clause | written |
/// | `&Tensor`, `Option<&Tensor>`, `&[&Tensor]` | whole tensors, by other ops | traced |
///
/// `T` is bounded by one of `Element`, `Num`, `Real`, `Int`, `Field` and `Float`, and by nothing else; that says which
/// dtypes the op takes. Parameters that share a variable are promoted to one dtype; an op has two variables at most.
///
/// # Parameters
///
/// Tensors come first, then attributes: `f64`, `i64`, `usize`, `bool`, `&str`, `&[i64]`, `&[f64]`, `DType`, an enum with
/// `#[derive(AttrEnum)]`, and `Option`s of these. `#[default = value]` makes an attribute optional for the caller, and
/// an `Option` is `None` by default. What must be given stands before what need not be.
///
/// # Clauses
///
/// | clause | says |
/// |---|---|
/// | `shape = (x: [.., n], w: [n, m]) -> [.., m]` | core dimensions by name, behind batch dimensions `..` that broadcast. Several outputs are named, `-> (values: [.., k], [save] order: [.., n])`; `[save]` marks what only the gradient needs. A dimension is a name, a number, or `+ - * /` of those; a `usize` attribute is one too |
/// | `where k <= n, eps >= 0.0` | what must hold of dimensions and attributes; behind the `shape` clause, or alone |
/// | `dtype = (x: T) -> (T, i64) where T: f32 \| f64` | dtypes, where the signature doesn't say them, and names of outputs: `-> (sin: T, cos: T)` |
/// | `backward = …` | `auto` (the default where a gradient can be derived), `none` (differentiating raises), the path of a `BackwardFn`, or a formula |
/// | `axis = -1`, `axis = None` | a caller's `axis` for the one core dimension, with that default; with `None` several, or all. Where an output lacks the dimension there is `keepdims` too |
/// | `inplace` | also `swish_`, which writes to its first argument |
/// | `name = "ns::op"` | the registered name; by default the function's |
/// | `alias = "a"`, `alias = ["a", "b"]` | other names |
/// | `since = 2` | the version of the package that had it first; 1 by default |
/// | `crate = path` | where minitensor is, if not at `::minitensor` or `::minitensor_plugin_sdk` |
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
/// The closure takes one cotangent for each returned output, and has one entry for each input that can have a gradient.
/// Inputs, outputs (`out` where unnamed), cotangents, attributes and dimensions are in scope; the inputs and outputs
/// that are mentioned are what is saved. Operators, methods and calls on tensors are calls of ops by name, with
/// keywords as in Python; `x.shape`, `x.dtype` and `x.ndim` are known without saving `x`. An entry runs only if its
/// gradient is needed, and is summed to the input's shape. Formulas are made of ops, so they can be differentiated.
///
/// # Element bodies
///
/// A body is generic code. The macro rewrites what Rust can't overload: a literal beside data becomes an element,
/// comparisons give masks, and `if`, `&&` and `||` on data choose for every element. `f64` attributes are elements too.
/// `for` loops, `match` and `if` over what is known (attributes, constants) stay as they are. `x.max(y)`, `x.ln()`,
/// `x.powf(y)` and other names of Rust's floats are understood as `maximum`, `log`, `pow`.
#[proc_macro_attribute]
pub fn custom_op(attr: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    op(attr.into(), item.into()).into()
}

/// Lets an enum be an attribute of an op: its variants become words, `HalfPixel` becomes `"half_pixel"`.
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

fn op(attr: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        // Half-written code: the compiler says what is wrong with it, and an editor gets what there is.
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let mut diag = diag::Diag::default();
    let (clauses, op) = parse::op(attr, function.clone(), &mut diag);
    let runtime = runtime::path(clauses.runtime.as_ref());
    let Some(op) = op else { return kept(without_body(function), diag) };
    check::op(&op, &clauses, &mut diag);
    let lowered = lower::op(&op, &runtime, &mut diag);
    if !diag.is_empty() {
        return kept(lowered.function, diag);
    }
    diag.finish();
    expand::op(op, lowered, &runtime)
}

/// A generic body isn't Rust before it is lowered: rustc would add its own mistakes to ours.
fn without_body(mut function: ItemFn) -> ItemFn {
    let generic = function.sig.generics.type_params().next().is_some();
    if generic || function.sig.inputs.to_token_stream().into_iter().any(|t| t.to_string() == "impl") {
        function.block = parse_quote!({ ::core::unimplemented!() });
    }
    function
}

/// The mistakes, and the function, which other code may call.
fn kept(mut function: ItemFn, diag: diag::Diag) -> TokenStream {
    parse::strip_defaults(&mut function);
    parse::strip_names(&mut function);
    let errors = diag.finish();
    quote!(#errors #[allow(unused, clippy::all)] #function)
}

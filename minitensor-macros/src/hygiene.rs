//! Names in the expansion that cannot collide with names of the user.
//!
//! Local variables have the span of the macro definition, so they are hygienic. Items are not hygienic with any span, so
//! their names begin with `__`, which no op and no parameter does. Everything else is accessed through the runtime path,
//! `__private`, because a user may define a `Result`, a `Some` or an `f32`.

use proc_macro2::{Ident, Span};

/// [`quote::quote!`] whose local variables are hygienic.
macro_rules! hygienic {
    ($($tokens:tt)*) => { ::quote::quote_spanned!(::proc_macro2::Span::mixed_site()=> $($tokens)*) };
}
pub(crate) use hygienic as quote;

/// A numbered local variable, such as `input0`.
pub fn local(name: &str, at: usize) -> Ident {
    Ident::new(&format!("{name}{at}"), Span::mixed_site())
}

/// The name of an attribute in the expansion. The name of its parameter may be in use already.
pub fn attribute(at: usize) -> Ident {
    local("attr", at)
}

/// The name of an input.
pub fn input(at: usize) -> Ident {
    local("input", at)
}

/// The name of the flag for the presence of an optional input.
pub fn flag(at: usize) -> Ident {
    local("has", at)
}

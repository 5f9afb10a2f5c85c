//! Names of the expansion that a user's names can't collide with.
//!
//! Local variables have the span of the macro's definition, so they are hygienic. Items are not, whatever their span: their names begin
//! with `__`, which no op and no parameter does. Everything else is reached through the runtime's path, `__rt`: a user may have a
//! `Result`, a `Some` or an `f32` of his own.

use proc_macro2::{Ident, Span};

/// [`quote::quote!`] whose local variables are hygienic.
macro_rules! hygienic {
    ($($tokens:tt)*) => { ::quote::quote_spanned!(::proc_macro2::Span::mixed_site()=> $($tokens)*) };
}
pub(crate) use hygienic as quote;

/// One of a number of local variables, such as `input0`.
pub fn local(name: &str, at: usize) -> Ident {
    Ident::new(&format!("{name}{at}"), Span::mixed_site())
}

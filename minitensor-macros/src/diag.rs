//! [`Diag`] collects errors, which are reported all at once.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Error;

use crate::ast::Op;
use crate::source::Source;

pub mod messages;
pub use minitensor_schema::suggestion::{list, suggestion};
pub use minitensor_schema::{At, Message, Problem, Sentence};

/// The errors found so far. If dropped without [`finish`](Diag::finish) it panics, so that no error is lost.
#[derive(Default)]
pub struct Diag {
    errors: Vec<Error>,
    finished: bool,
}

impl Diag {
    /// Reports an error at a span. The arguments fill the `{}` of the message in order.
    pub fn error(&mut self, at: impl ToTokens, message: &Message, args: &[&dyn Display]) {
        self.errors.push(error(at, message, args));
    }

    /// Reports the problems that checks of the schema found in the op, or in a clause of it.
    pub fn problems(&mut self, op: &Op, clause: Option<&Source>, problems: &[Problem]) {
        for Problem { at, sentence } in problems {
            let at = match *at {
                At::Tokens(at) => clause.map_or_else(|| op.ident().to_token_stream(), |source| source.anchor(at)),
                At::Input(i) => op.inputs[i].ident.to_token_stream(),
                At::Attr(i) => op.attrs[i].ident.to_token_stream(),
                At::Output(k) => op.outputs[k].ident.to_token_stream(),
                At::Variable(g) => op.generics[g].ident.to_token_stream(),
                At::Op => op.ident().to_token_stream(),
            };
            self.sentence(at, sentence);
        }
    }

    /// Reports an error that a check of the schema found.
    pub fn sentence(&mut self, at: impl ToTokens, sentence: &Sentence) {
        self.errors.push(Error::new_spanned(at, sentence.for_rust()));
    }

    /// Reports an error found while parsing.
    pub fn push(&mut self, error: Error) {
        self.errors.push(error);
    }

    /// Returns the value, or reports the error.
    pub fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|e| self.push(e)).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// The number of errors.
    pub fn len(&self) -> usize {
        self.errors.len()
    }

    /// All errors as `compile_error!`s. Empty if there are none.
    pub fn finish(mut self) -> TokenStream {
        self.finished = true;
        self.errors.iter().map(Error::to_compile_error).collect()
    }
}

impl Drop for Diag {
    fn drop(&mut self) {
        if cfg!(debug_assertions) && !self.finished && !std::thread::panicking() {
            panic!("{} mistakes were found and not reported", self.errors.len());
        }
    }
}

/// One error, for parsers that return it.
pub fn error(at: impl ToTokens, message: &Message, args: &[&dyn Display]) -> Error {
    Error::new_spanned(at, message.filled(args).for_rust())
}

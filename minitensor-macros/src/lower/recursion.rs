//! A limit for functions that call themselves.

use proc_macro2::TokenStream;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, Ident, ItemFn};

use crate::hygiene;

/// Lets a function that calls itself end with an error before the stack overflows.
pub fn limit(function: &ItemFn, lowered: &mut ItemFn, rt: &TokenStream) {
    if calls_itself(function) {
        let name = function.sig.ident.to_string();
        let enter = hygiene::quote!(let _call = #rt::Recursion::enter(#name););
        lowered.block.stmts.insert(0, syn::parse2(enter).expect("a statement"));
    }
}

fn calls_itself(function: &ItemFn) -> bool {
    struct Calls<'a>(&'a Ident, bool);
    impl<'a> Visit<'a> for Calls<'a> {
        fn visit_expr_call(&mut self, call: &'a ExprCall) {
            self.1 |= matches!(&*call.func, Expr::Path(callee) if callee.path.is_ident(self.0));
            visit::visit_expr_call(self, call);
        }
    }
    let mut calls = Calls(&function.sig.ident, false);
    calls.visit_block(&function.block);
    calls.1
}

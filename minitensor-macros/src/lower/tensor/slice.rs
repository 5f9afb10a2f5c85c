//! `x[(.., 1..n)]`: a part of a tensor.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Expr, ExprIndex, RangeLimits};

use super::Lowering;
use super::op::operand;
use crate::diag::messages;
use crate::hygiene::quote;
use crate::lower::call;

impl Lowering {
    /// The slice of a tensor, which is lowered already.
    pub fn slice(&mut self, index: &mut ExprIndex) -> TokenStream {
        let mut parts: Vec<&mut Expr> = match &mut *index.index {
            Expr::Tuple(tuple) => tuple.elems.iter_mut().collect(),
            one => vec![one],
        };
        let is_rest = |part: &&&mut Expr| matches!(part, Expr::Range(r) if r.start.is_none() && r.end.is_none());
        if let Some(second) = parts.iter().filter(is_rest).nth(1) {
            self.error(second.to_token_stream(), &messages::SLICE_REST, &[]);
        }
        let parts: Vec<_> = parts.iter_mut().map(|part| self.part(part)).collect();
        self.may_fail = true;
        self.is_used = true;
        let tensor = operand(&index.expr);
        quote!(__private::sliced(&#tensor, &[#(#parts),*])?)
    }

    fn part(&mut self, part: &mut Expr) -> TokenStream {
        match part {
            Expr::Path(path) if path.path.is_ident("None") => {
                self.calls.note("unsqueeze");
                quote!(__private::Part::New)
            }
            Expr::Range(range) if range.start.is_none() && range.end.is_none() => quote!(__private::Part::Rest),
            Expr::Range(range) => {
                if let RangeLimits::Closed(sign) = &range.limits {
                    self.error(sign, &messages::SLICE_CLOSED, &[]);
                }
                self.calls.note("slice");
                let (start, end) = (self.bound(range.start.as_deref_mut()), self.bound(range.end.as_deref_mut()));
                quote!(__private::Part::Range(#start, #end))
            }
            at => {
                let shown = crate::lower::shown(at);
                let tokens = at.to_token_stream();
                if self.expr(at).is_tensor() {
                    self.error(tokens, &messages::SLICE_TENSOR, &[&shown]);
                }
                self.calls.note("slice");
                self.calls.note("squeeze");
                let at = position(at);
                quote!(__private::Part::At(#at))
            }
        }
    }

    fn bound(&mut self, bound: Option<&mut Expr>) -> TokenStream {
        let Some(bound) = bound else { return quote!(__private::None) };
        self.expr(bound);
        let at = position(bound);
        quote!(__private::Some(#at))
    }
}

fn position(at: &Expr) -> TokenStream {
    let span: Span = call::located(at);
    quote::quote_spanned!(span=> __private::at(#at))
}

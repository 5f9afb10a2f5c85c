//! Expressions of Rust that hold tensors.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprField, ExprForLoop, ExprIndex, ExprMacro, ExprPath, ExprRepeat, ExprTry, ExprWhile, Token};

use super::kind::Kind;
use super::op::operand;
use super::{Lowered, Lowering, without_parens};
use crate::diag::messages;
use crate::hygiene::quote;
use crate::lower::shown;

impl Lowering {
    pub fn variable(&mut self, path: &ExprPath, wanted: &Kind) -> Kind {
        let found = path.path.get_ident().and_then(|name| self.lookup(name)).cloned();
        let Some((_, kind, declared)) = found else { return Kind::Other };
        if kind.is_less_than(wanted) || kind == Kind::Outputs && matches!(wanted, Kind::Tuple(_)) {
            self.want(declared, wanted);
        }
        kind
    }

    pub fn index(&mut self, index: &mut ExprIndex) -> Lowered {
        let list = self.expr(&mut index.expr);
        if list.is_tensor() {
            return Lowered::replaced(self.slice(index), Kind::New);
        }
        self.expr(&mut index.index);
        let is_range = matches!(without_parens(&index.index), Expr::Range(_));
        Lowered::kept(if is_range { list } else { list.item() })
    }

    pub fn field(&mut self, field: &mut ExprField) -> Lowered {
        let syn::Member::Unnamed(at) = field.member.clone() else {
            self.expr(&mut field.base);
            return Lowered::kept(Kind::Other);
        };
        let source = shown(&field.base);
        let kind = self.value(&mut field.base, &Kind::Outputs);
        if kind == Kind::Outputs {
            (self.is_used, self.may_fail) = (true, true);
            let base = operand(&field.base);
            return Lowered::replaced(quote!(__private::part(&#base, #at)?), Kind::New);
        }
        if kind.is_tensor() {
            self.error(&at, &messages::TENSOR_FIELD, &[&source, &at.index]);
        }
        Lowered::kept(kind.part(at.index as usize))
    }

    /// `x?`.
    pub fn question(&mut self, inner: &mut ExprTry, wanted: &Kind) -> Lowered {
        let kind = self.value(&mut inner.expr, &Kind::Result(Box::new(wanted.clone())));
        match without_parens(&inner.expr) {
            // The call of an op has its `?` already.
            Expr::Verbatim(_) if kind.is_tensors() => Lowered::replaced(inner.expr.to_token_stream(), kind),
            tensor if kind.is_tensor() => {
                self.error(inner.question_token, &messages::TENSOR_TRY, &[&shown(tensor)]);
                Lowered::kept(kind)
            }
            _ => Lowered::kept(kind.inside()),
        }
    }

    /// The kinds of the parts of a tuple or an array.
    pub fn parts(&mut self, parts: &mut Punctuated<Expr, Token![,]>, wanted: &Kind) -> Vec<Kind> {
        parts.iter_mut().enumerate().map(|(i, part)| self.value(part, &wanted.part(i))).collect()
    }

    /// `vec![…]`.
    pub fn vector(&mut self, vector: &mut ExprMacro, wanted: &Kind) -> Kind {
        let tokens = &vector.mac.tokens;
        let Ok(mut list) = syn::parse2::<Expr>(quote!([#tokens])) else { return Kind::Other };
        let kind = self.value(&mut list, wanted);
        vector.mac.tokens = match list {
            Expr::Array(list) => list.elems.into_token_stream(),
            Expr::Repeat(ExprRepeat { expr, len, .. }) => quote!(#expr; #len),
            _ => return Kind::Other,
        };
        kind
    }

    /// An `if` or a `match`.
    pub fn choice(&mut self, choice: &mut Expr, wanted: &Kind) -> Kind {
        let declared = self.declaration();
        let wanted = self.wanted.get(&declared).cloned().unwrap_or_else(|| wanted.clone());
        let mut ends = vec![];
        let kind = self.branches(choice, &wanted, &mut ends);
        let tuple = ends.iter().find(|end| matches!(end, Kind::Tuple(_)));
        if let (Some(tuple), true) = (tuple, ends.iter().any(|end| matches!(end, Kind::New | Kind::Outputs))) {
            self.want(declared, tuple);
        }
        self.own_ends(choice, &kind, &mut ends.into_iter());
        kind
    }

    pub fn while_loop(&mut self, each: &mut ExprWhile) -> Kind {
        self.scoped(|this| {
            this.condition(&mut each.cond);
            this.block(&mut each.body, &Kind::Other);
        });
        Kind::Other
    }

    pub fn for_loop(&mut self, each: &mut ExprForLoop) -> Kind {
        let list = self.value(&mut each.expr, &Kind::List(Box::new(Kind::of_pattern(&each.pat))));
        self.scoped(|this| {
            this.bind(&each.pat, list.item());
            this.block(&mut each.body, &Kind::Other);
        });
        Kind::Other
    }
}

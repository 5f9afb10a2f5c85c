//! The variables in scope: their kinds, and what they are bound to and assigned.

use syn::{Expr, ExprArray, ExprTuple, Ident, Pat};

use super::kind::Kind;
use super::{Lowering, as_ident};
use crate::ast::{spelling, text};
use crate::diag::messages;
use crate::lower::shown;

impl Lowering {
    pub(super) fn lookup(&self, name: &Ident) -> Option<&(String, Kind, usize)> {
        let name = text(name);
        self.scope.iter().rev().find(|(known, ..)| *known == name)
    }

    /// The number of a declaration or of a branch.
    pub(super) fn declaration(&mut self) -> usize {
        self.declared += 1;
        self.declared
    }

    /// Notes that a variable or a branch must hold several outputs of an op.
    pub(super) fn want(&mut self, declared: usize, kind: &Kind) {
        let known = self.wanted.get(&declared);
        if known.is_none_or(|known| *known == Kind::Outputs && matches!(kind, Kind::Tuple(_))) {
            self.wanted.insert(declared, kind.clone());
        }
    }

    pub(super) fn bind(&mut self, pattern: &Pat, kind: Kind) {
        match pattern {
            Pat::Tuple(_) | Pat::Slice(_) if kind.is_tensor() => {
                self.error(pattern, &messages::TENSOR_PATTERN, &[&spelling(pattern)]);
            }
            Pat::Ident(pattern) => {
                let kind = if pattern.by_ref.is_some() { kind.referred() } else { kind };
                if let Some((_, inner)) = &pattern.subpat {
                    self.bind(inner, kind.clone());
                }
                let declared = self.declaration();
                self.scope.push((text(&pattern.ident), kind, declared));
            }
            Pat::Type(pattern) => {
                let declared = Kind::of_type(&pattern.ty);
                self.bind(&pattern.pat, if declared == Kind::Other { kind } else { declared });
            }
            Pat::Reference(pattern) => self.bind(&pattern.pat, kind),
            Pat::Paren(pattern) => self.bind(&pattern.pat, kind),
            Pat::Guard(pattern) => self.bind(&pattern.pat, kind),
            Pat::Tuple(tuple) => self.bind_each(tuple.elems.iter(), |i| kind.part(i)),
            Pat::Slice(slice) => self.bind_each(slice.elems.iter(), |i| kind.part(i)),
            Pat::TupleStruct(pattern) if pattern.elems.len() == 1 => self.bind(&pattern.elems[0], kind.inside()),
            other => {
                // The names hide others.
                let mut names = Names(vec![]);
                syn::visit::Visit::visit_pat(&mut names, other);
                names.0.iter().for_each(|name| self.scope.push((text(name), Kind::Other, 0)));
            }
        }
    }

    /// Binds the patterns of a list. Those after `..` are unknown, unless all parts are alike.
    fn bind_each<'p>(&mut self, patterns: impl Iterator<Item = &'p Pat>, part: impl Fn(usize) -> Kind) {
        let mut is_known = true;
        for (i, pattern) in patterns.enumerate() {
            match pattern {
                Pat::Rest(_) => is_known = false,
                // `rest @ ..`
                Pat::Ident(rest) if rest.subpat.is_some() => {
                    self.bind(pattern, Kind::List(Box::new(part(i))));
                    is_known = false;
                }
                _ => self.bind(pattern, if is_known { part(i) } else { Kind::Other }),
            }
        }
    }

    /// Runs `inside` in a scope of its own.
    pub(super) fn scoped<V>(&mut self, inside: impl FnOnce(&mut Self) -> V) -> V {
        let outside = self.scope.len();
        let value = inside(self);
        self.scope.truncate(outside);
        value
    }

    /// Notes that a variable is assigned a new tensor.
    pub(super) fn assigned(&mut self, place: &Expr) {
        let Some(name) = as_ident(place).map(text) else { return };
        if let Some((_, kind, declared)) = self.scope.iter_mut().rev().find(|(known, ..)| *known == name) {
            if *kind == Kind::Tensor {
                self.owned.insert(*declared);
            }
            *kind = Kind::New;
        }
    }

    /// The kind of the values that a place takes.
    pub(super) fn place(&self, place: &Expr) -> Kind {
        match place {
            Expr::Tuple(places) => Kind::Tuple(places.elems.iter().map(|place| self.place(place)).collect()),
            Expr::Array(places) => Kind::Array(places.elems.iter().map(|place| self.place(place)).collect()),
            place => match as_ident(place).and_then(|name| self.lookup(name)) {
                Some((_, kind, declared)) => self.wanted.get(declared).unwrap_or(kind).clone(),
                None => Kind::Other,
            },
        }
    }

    /// Records the kind of the value that is assigned to a place.
    pub(super) fn assign(&mut self, place: &Expr, kind: &Kind) {
        match place {
            Expr::Tuple(ExprTuple { elems, .. }) | Expr::Array(ExprArray { elems, .. }) => {
                if kind.is_tensor() {
                    return self.error(place, &messages::TENSOR_PATTERN, &[&shown(place)]);
                }
                elems.iter().enumerate().for_each(|(i, place)| self.assign(place, &kind.part(i)));
            }
            place if *kind == Kind::New => self.assigned(place),
            place if kind.is_several() => {
                let Some(name) = as_ident(place).map(text) else { return };
                if let Some((_, known, _)) = self.scope.iter_mut().rev().find(|(known, ..)| *known == name) {
                    known.clone_from(kind);
                }
            }
            _ => {}
        }
    }
}

struct Names(Vec<Ident>);

impl<'a> syn::visit::Visit<'a> for Names {
    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        self.0.push(pattern.ident.clone());
        syn::visit::visit_pat_ident(self, pattern);
    }
}

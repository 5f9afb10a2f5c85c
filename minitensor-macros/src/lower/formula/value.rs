//! The values of a formula: tensor expressions become calls of ops by name, all others remain Rust.

use minitensor_schema::Attr;
use minitensor_schema::Extent;
use minitensor_schema::gradient::{Bound, Let, Name, Property, ResolvedExpr, ResolvedKind};
use proc_macro2::{Literal, TokenStream, TokenTree};

use super::Writer;
use crate::ast::{Arity, AttrKind, text};
use crate::hygiene::quote;
use crate::lower::call::{self, Outputs};

impl Writer<'_> {
    /// `let a = x;`
    pub fn binding(&mut self, bound: &Let) -> TokenStream {
        let pattern = self.source.rust(bound.pattern, &[]);
        match &bound.value {
            Bound::One(value) => {
                let value = self.owned(value);
                quote!(let #pattern = #value;)
            }
            Bound::Each(values) => {
                let values: Vec<_> = values.iter().map(|v| self.owned(v)).collect();
                quote!(let #pattern = (#(#values),*);)
            }
            Bound::Outputs(call) => {
                let call = self.call(call, Outputs::Array(bound.names.len()));
                let inside = Extent { start: bound.pattern.start + 1, end: bound.pattern.end - 1 };
                let names = self.source.rust(inside, &[]);
                quote!(let [#names] = #call;)
            }
        }
    }

    /// An owned tensor, or a value that is not a tensor.
    pub fn owned(&mut self, node: &ResolvedExpr) -> TokenStream {
        match &node.kind {
            ResolvedKind::Name(_) if node.is_tensor => {
                let tokens = self.tensor(node);
                quote!(#tokens.clone())
            }
            _ if node.is_tensor => self.tensor(node),
            _ => self.known(node),
        }
    }

    /// An argument of an op.
    fn argument(&mut self, node: &ResolvedExpr) -> TokenStream {
        let tokens = match &node.kind {
            ResolvedKind::Const(Attr::None) => return call::none(),
            ResolvedKind::List(items) => {
                let items: Vec<_> = items.iter().map(|item| self.argument(item)).collect();
                return call::list(&items);
            }
            _ if node.is_tensor => self.tensor(node),
            ResolvedKind::Operator(_, sides) if sides.len() == 2 => {
                let tokens = self.known(node);
                quote!((#tokens))
            }
            ResolvedKind::Rust(parts) if !parts.is_empty() => {
                let tokens = self.known(node);
                quote!((#tokens))
            }
            _ => self.known(node),
        };
        call::value(tokens)
    }

    fn tensor(&mut self, node: &ResolvedExpr) -> TokenStream {
        match &node.kind {
            ResolvedKind::Name(name) => {
                self.mention(*name, node.at);
                self.source.rust(node.at, &[])
            }
            ResolvedKind::Block(..) => {
                let block = self.block(node);
                quote!({ #block })
            }
            ResolvedKind::If(parts) => {
                let [condition, yes, no] = &**parts;
                let (condition, yes, no) = (self.known(condition), self.block(yes), self.block(no));
                quote!(if #condition { #yes } else { #no })
            }
            ResolvedKind::IfLet(pattern, parts) => {
                let [of, yes, no] = &**parts;
                let pattern = self.source.rust(*pattern, &[]);
                let of = if of.is_tensor { self.tensor(of) } else { self.known(of) };
                let (yes, no) = (self.block(yes), self.block(no));
                quote!(if let #pattern = &#of { #yes } else { #no })
            }
            ResolvedKind::Match(of, arms) => {
                let of = self.known(of);
                let arms: Vec<_> = arms
                    .iter()
                    .map(|(pattern, value)| {
                        let (pattern, value) = (self.source.rust(*pattern, &[]), self.owned(value));
                        quote!(#pattern => #value,)
                    })
                    .collect();
                quote!(match #of { #(#arms)* })
            }
            _ => self.call(node, Outputs::One),
        }
    }

    /// The contents of a block, without the braces.
    fn block(&mut self, node: &ResolvedExpr) -> TokenStream {
        let ResolvedKind::Block(lets, value) = &node.kind else { return self.owned(node) };
        let lets: Vec<_> = lets.iter().map(|bound| self.binding(bound)).collect();
        let value = self.owned(value);
        quote!(#(#lets)* #value)
    }

    fn call(&mut self, node: &ResolvedExpr, outputs: Outputs) -> TokenStream {
        let ResolvedKind::Call { op, op_at, args, keywords } = &node.kind else { return self.known(node) };
        let args: Vec<_> = args.iter().map(|arg| self.argument(arg)).collect();
        let keywords: Vec<_> = keywords.iter().map(|(name, value)| (name.clone(), self.argument(value))).collect();
        let (op_span, span) = (self.source.span(op_at.start), self.source.span(node.at.start));
        self.calls.call(op, op_span, &args, &keywords, outputs, span)
    }

    /// The Rust source, with the properties of tensors replaced.
    fn known(&mut self, node: &ResolvedExpr) -> TokenStream {
        let mut replaced = vec![];
        self.replace(node, &mut replaced);
        replaced.sort_by_key(|(at, _)| at.start);
        self.source.rust(node.at, &replaced)
    }

    fn replace(&mut self, node: &ResolvedExpr, replaced: &mut Vec<(Extent, TokenStream)>) {
        match &node.kind {
            ResolvedKind::Name(name) => self.mention(*name, node.at),
            ResolvedKind::Property(of, property) => {
                let tokens = self.property(of, *property);
                replaced.push((node.at, tokens));
            }
            ResolvedKind::IsNone(of, wanted) => {
                let tokens = self.is_none(of, *wanted);
                replaced.push((node.at, tokens));
            }
            ResolvedKind::Call { .. } => {
                let tokens = self.call(node, Outputs::One);
                replaced.push((node.at, tokens));
            }
            ResolvedKind::Operator(_, sides) if sides.iter().any(|side| self.is_float(side)) => {
                for side in sides {
                    match side.kind {
                        ResolvedKind::Const(Attr::Int(value)) => {
                            let value = Literal::f64_suffixed(value as f64);
                            replaced.push((side.at, quote!(#value)));
                        }
                        _ => self.replace(side, replaced),
                    }
                }
            }
            _ => node.parts().into_iter().for_each(|part| self.replace(part, replaced)),
        }
    }

    /// Whether a value that is not a tensor is an `f64`, next to which an integer literal is one, too: `1 - decay`.
    fn is_float(&self, node: &ResolvedExpr) -> bool {
        match &node.kind {
            ResolvedKind::Const(Attr::Float(_)) => true,
            ResolvedKind::Name(Name::Attr(i)) => {
                let attr = &self.op.attrs[*i];
                attr.kind == AttrKind::Float && !attr.optional
            }
            ResolvedKind::Operator(_, sides) => sides.iter().any(|side| self.is_float(side)),
            _ => false,
        }
    }

    /// A property such as `x.shape`. For an input it is known without saving the input.
    fn property(&mut self, of: &ResolvedExpr, property: Property) -> TokenStream {
        let (shape, dtype) = match of.kind {
            ResolvedKind::Name(Name::Input(i)) => {
                let at = syn::Index::from(i);
                (quote!(ctx.shape(#at)), quote!(ctx.dtype(#at)))
            }
            _ => {
                let tensor = self.tensor(of);
                (quote!(#tensor.shape()[..]), quote!(#tensor.dtype()))
            }
        };
        match property {
            Property::Shape => shape,
            Property::DType => dtype,
            Property::Ndim => quote!((#shape.len() as __private::i64)),
        }
    }

    /// `weight == None`: only an optional input or an attribute may be absent.
    fn is_none(&mut self, of: &ResolvedExpr, wanted: bool) -> TokenStream {
        let is_given = match of.kind {
            ResolvedKind::Name(Name::Input(i)) => self.op.inputs[i].arity != Arity::Optional,
            _ => of.is_tensor,
        };
        if is_given {
            return if wanted { quote!(false) } else { quote!(true) };
        }
        let of = if of.is_tensor { self.tensor(of) } else { self.known(of) };
        if wanted { quote!(#of.is_none()) } else { quote!(#of.is_some()) }
    }

    /// Records a name whose value the call provides.
    fn mention(&mut self, name: Name, at: Extent) {
        if matches!(name, Name::Slot(..) | Name::Pattern(_)) {
            return;
        }
        if let Some(TokenTree::Ident(ident)) = self.source.rust(at, &[]).into_iter().next() {
            self.used.entry(text(&ident)).or_insert((name, ident));
        }
    }
}

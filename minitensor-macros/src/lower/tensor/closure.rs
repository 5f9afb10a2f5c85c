//! Closures, and methods of Rust that take them.

use syn::ext::IdentExt;
use syn::{Expr, ExprClosure, ExprMethodCall, ReturnType, parse_quote};

use super::kind::{self, Kind};
use super::statement::tail;
use super::{Lowering, container};
use crate::hygiene::quote;

impl Lowering {
    /// Lowers a closure. `kinds` are those of its arguments, as far as they are known.
    /// `wanted` is that of the closure.
    pub fn closure(&mut self, closure: &mut ExprClosure, kinds: &[Kind], wanted: &Kind) -> Kind {
        let around = std::mem::take(&mut self.may_fail);
        let returned = match (&closure.output, wanted) {
            (ReturnType::Default, Kind::Fn(wanted)) => (**wanted).clone(),
            (output, _) => Kind::of_output(output),
        };
        let returned_around = std::mem::replace(&mut self.returned, returned.clone());
        let tail = match &*closure.body {
            Expr::Block(block) => tail(&block.block),
            body => Some(body.clone()),
        };
        let kind = self.scoped(|this| {
            for (i, pattern) in closure.inputs.iter().enumerate() {
                this.bind(pattern, kinds.get(i).cloned().unwrap_or(Kind::Other));
            }
            this.value(&mut closure.body, &returned)
        });
        self.returned = returned_around;
        self.result("closure", &closure.output, &kind, tail);
        if std::mem::replace(&mut self.may_fail, around)
            && matches!((&closure.output, &kind), (ReturnType::Default, Kind::Result(_)))
        {
            // The `?` of an op does not determine the type of the error.
            let body = &closure.body;
            closure.output = parse_quote!(-> __private::Result<_>);
            *closure.body = Expr::Verbatim(quote!({ #body }));
        }
        match &closure.output {
            ReturnType::Type(..) if kind == Kind::Other => Kind::Fn(Box::new(Kind::of_output(&closure.output))),
            _ => Kind::Fn(Box::new(kind)),
        }
    }

    /// Lowers the arguments of a Rust method. Returns the kind of its result.
    pub fn rust_method(&mut self, receiver: &Kind, call: &mut ExprMethodCall) -> Kind {
        let name = call.method.unraw().to_string();
        let mut kinds: Vec<Kind> = vec![];
        for arg in &mut call.args {
            kinds.push(match arg {
                Expr::Closure(closure) => {
                    let given = container::closure_arguments(receiver, &name, &kinds);
                    self.closure(closure, &given, &Kind::Other)
                }
                arg => self.expr(arg),
            });
        }
        match receiver {
            Kind::New if matches!(name.as_str(), "clone" | "detach") => Kind::New,
            tensor if tensor.is_tensor() => kind::method(&name).map_or(Kind::Other, |returns| returns.kind()),
            other => container::method(other, &name, &kinds),
        }
    }
}

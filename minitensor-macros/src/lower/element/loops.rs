//! Loops.

use syn::{Expr, ExprLoop, Pat};

use super::{Lowering, placeholder, shown};
use crate::body::{Certain, ValueKind};
use crate::diag::messages;

impl Lowering<'_> {
    pub fn for_loop(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::ForLoop(each) = expr else { return ValueKind::Static };
        let end = match &*each.expr {
            Expr::Range(range) => range.end.as_deref().and_then(|end| self.certain(end)),
            _ => None,
        };
        if matches!(end, Some(Certain::Element(_))) {
            let at = each.expr.clone();
            self.mistake(expr, at, &messages::COUNT, &[]);
            return ValueKind::Static;
        }
        if self.wrong_list(&each.expr, &each.expr) {
            *expr = placeholder();
            return ValueKind::Static;
        }
        let is_enumerated = matches!(&*each.expr, Expr::MethodCall(call) if call.method == "enumerate");
        let value = self.value(&mut each.expr, None);
        let id = self.loops;
        self.loops += 1;
        self.scopes.push();
        match self.head.is_machine() {
            true => self.bind_flow(&each.pat),
            false => match &*each.pat {
                // `(i, x)` of `list.iter().enumerate()`
                Pat::Tuple(pair) if pair.elems.len() == 2 && is_enumerated => {
                    self.scopes.bind_pattern(&pair.elems[0], ValueKind::Static, None);
                    self.scopes.bind_pattern(&pair.elems[1], value, None);
                }
                pattern => self.scopes.bind_pattern(pattern, value, None),
            },
        }
        self.around.push(Some(id));
        let ending = self.ended.contains(&id).then(|| self.ending_loop(each, id));
        if ending.is_none() {
            self.block(&mut each.body, None);
        }
        self.around.pop();
        self.scopes.pop();
        ending.into_iter().for_each(|ending| *expr = ending);
        ValueKind::Static
    }

    pub fn while_loop(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::While(each) = expr else { return ValueKind::Static };
        self.scopes.push();
        let written = each.cond.clone();
        let condition = self.value(&mut each.cond, None);
        self.around.push(None);
        self.block(&mut each.body, None);
        self.around.pop();
        self.scopes.pop();
        if condition.is_data() && !self.head.is_machine() {
            let (at, condition) = (each.while_token, shown(&written));
            self.mistake(expr, at, &messages::WHILE, &[&condition]);
        }
        ValueKind::Static
    }

    pub fn endless_loop(&mut self, each: &mut ExprLoop) -> ValueKind {
        self.around.push(None);
        self.block(&mut each.body, None);
        self.around.pop();
        ValueKind::Static
    }
}

//! Closures, methods and functions.

use std::collections::HashMap;

use syn::{Expr, ExprCall, ExprClosure, ExprMethodCall, GenericArgument};

use super::tables::{OF_FLOATS, OF_INTEGERS, ONE, PARTS, REDUCTIONS, SAME, SIZES, TAKES_ITEMS, WRITES, is_in};
use super::{Flow, Place, last_name, makes_struct, place};
use crate::body::methods::{renamed, returns_element};
use crate::body::{Item, UNKNOWN, ValueKind};

impl Flow<'_> {
    /// Runs a closure. `given` are its arguments, as far as they are known.
    pub(super) fn call_closure(&mut self, closure: &ExprClosure, given: &[Item]) -> Item {
        self.scopes.push(HashMap::new());
        for (k, pattern) in closure.inputs.iter().enumerate() {
            let known = self.bodies.get(&place(closure)).and_then(|(params, _)| params.get(k)).cloned();
            let item = given.get(k).cloned().or(known).unwrap_or(UNKNOWN);
            self.bind(pattern, item);
        }
        let around = std::mem::take(&mut self.breaks);
        let result = self.expr(&closure.body);
        self.breaks = around;
        self.scopes.pop();
        let params = closure.inputs.iter().map(|pattern| self.pattern(pattern)).collect();
        self.bodies.insert(place(closure), (params, result.clone()));
        result
    }

    /// An argument that may be a closure.
    fn argument(&mut self, arg: &Expr, given: &[Item]) -> Item {
        match arg {
            Expr::Closure(closure) => {
                let result = self.call_closure(closure, given);
                self.found.insert(place(arg), Item::Closure(place(closure)));
                result
            }
            arg => match self.expr(arg) {
                Item::Closure(at) => {
                    self.give(at, given);
                    self.bodies.get(&at).map_or(UNKNOWN, |(_, result)| result.clone())
                }
                item => item,
            },
        }
    }

    /// Adds the values of arguments to the parameters of a closure, for the next time that it is read.
    fn give(&mut self, closure: Place, given: &[Item]) {
        let Some((params, _)) = self.bodies.get_mut(&closure) else { return };
        for (param, item) in params.iter_mut().zip(given) {
            let joined = param.clone().join(item.clone());
            if joined != *param {
                *param = joined;
                self.has_changed = true;
            }
        }
    }

    pub(super) fn method(&mut self, call: &ExprMethodCall) -> Item {
        let receiver = self.expr(&call.receiver);
        let name = call.method.to_string();
        let args: Vec<&Expr> = call.args.iter().collect();
        let each = receiver.clone().items();
        if let Item::One(ValueKind::Data(_) | ValueKind::Float) = receiver
            && !is_in(SAME, &name)
            // That of an optional element is called with a closure.
            && !args.iter().any(|arg| matches!(arg, Expr::Closure(_)))
        {
            if name == "sin_cos" {
                return Item::Tuple(vec![receiver.clone(), receiver]);
            }
            let given = args.iter().map(|arg| self.expr(arg)).fold(receiver, Item::arithmetic);
            return match returns_element(renamed(&name, args.len())) {
                true => given,
                false => UNKNOWN,
            };
        }
        if receiver == Item::Maybe
            && returns_element(renamed(&name, args.len()))
            && args.is_empty()
            && is_in(OF_FLOATS, &name)
        {
            return self.data();
        }
        if let (Item::Number, true) = (&receiver, is_in(OF_INTEGERS, &name)) {
            args.iter().for_each(|arg| _ = self.expr(arg));
            return Item::Number;
        }
        let typed = call.turbofish.as_ref().and_then(|t| match t.args.first() {
            Some(GenericArgument::Type(ty)) => Some(self.of_type(ty)),
            _ => None,
        });
        match (&*name, &args[..]) {
            ("fold" | "try_fold", [first, step]) => {
                let first = self.expr(first);
                let total = if let Expr::Closure(closure) = step { closure.inputs.first() } else { None };
                let known = total.map_or(UNKNOWN, |pattern| self.pattern(pattern));
                let begun = first.join(known);
                let next = self.argument(step, &[begun.clone(), each]);
                let result = begun.join(next);
                if let Some(pattern) = total {
                    self.scopes.push(HashMap::new());
                    self.bind(pattern, result.clone());
                    self.scopes.pop();
                }
                result
            }
            ("scan", [first, step]) => {
                let first = self.expr(first);
                Item::list(self.argument(step, &[first, each]))
            }
            ("map" | "mapv" | "mapv_into" | "flat_map" | "filter_map" | "map_while", [step]) => {
                let (item, is_one) = if matches!(receiver, Item::List(_)) { (each, false) } else { (receiver, true) };
                let result = self.argument(step, &[item]);
                let result = if name == "flat_map" { result.items() } else { result };
                if is_one { result } else { Item::list(result) }
            }
            ("map_or", [first, step]) => {
                let first = self.expr(first);
                self.argument(step, &[receiver]).join(first)
            }
            ("reduce", [step]) => {
                self.argument(step, &[each.clone(), each.clone()]);
                each
            }
            // `.sum::<f64>()` of elements is an element.
            ("sum" | "product", []) => typed.filter(|t| *t != UNKNOWN && !each.is_element()).unwrap_or(each),
            ("enumerate", []) => Item::list(Item::Tuple(vec![Item::Number, each])),
            ("indexed_iter" | "indexed_iter_mut", []) => Item::list(Item::Tuple(vec![UNKNOWN, each])),
            ("zip", [other]) => {
                let other = self.expr(other).items();
                Item::list(Item::Tuple(vec![each, other]))
            }
            ("split_first" | "split_last", []) => Item::Tuple(vec![each, receiver]),
            ("split_at" | "split_at_mut", [at]) => {
                self.expr(at);
                Item::Tuple(vec![receiver.clone(), receiver])
            }
            ("dim", []) => Item::Number,
            ("shape", []) => Item::list(Item::Number),
            (name, _) => {
                let given = [each.clone(), each.clone()];
                let given: &[Item] = if is_in(TAKES_ITEMS, name) { &given } else { &[] };
                let last = args.iter().map(|arg| self.argument(arg, given)).last();
                match name {
                    name if is_in(WRITES, name) => {
                        self.write(&call.receiver, Item::list(last.unwrap_or(UNKNOWN)));
                        UNKNOWN
                    }
                    "extend" | "extend_from_slice" | "append" | "copy_from_slice" | "clone_from_slice"
                    | "clone_from" | "assign" => {
                        self.write(&call.receiver, last.unwrap_or(UNKNOWN));
                        UNKNOWN
                    }
                    "unwrap_or" | "or" | "chain" => receiver.join(last.unwrap_or(UNKNOWN)),
                    name if is_in(SIZES, name) => Item::Number,
                    name if is_in(SAME, name) => receiver,
                    name if is_in(ONE, name) => each,
                    name if is_in(PARTS, name) => Item::list(receiver),
                    _ => UNKNOWN,
                }
            }
        }
    }

    pub(super) fn call(&mut self, call: &ExprCall) -> Item {
        let called = self.expr(&call.func);
        let Expr::Path(path) = &*call.func else {
            call.args.iter().for_each(|arg| _ = self.expr(arg));
            return UNKNOWN;
        };
        let last = last_name(&path.path);
        // The closure of a function of `minitensor::kernels::rows` takes the elements of the first argument.
        let is_of_rows = path.path.segments.iter().any(|s| s.ident == "rows");
        let mut given: Vec<Item> = vec![];
        for arg in &call.args {
            let each = given.first().cloned().filter(|_| is_of_rows).map(Item::items);
            let item = self.argument(arg, each.as_slice());
            given.push(item);
        }
        if let Item::Closure(at) = called {
            self.give(at, &given);
            return self.bodies.get(&at).map_or(UNKNOWN, |(_, result)| result.clone());
        }
        let first = || given.first().cloned().unwrap_or(UNKNOWN);
        if let Some(i) = self.head.generics.iter().position(|g| path.path.segments[0].ident == g.ident) {
            return if last == "from" || returns_element(&last) {
                Item::One(ValueKind::Data(Some(i)))
            } else {
                UNKNOWN
            };
        }
        if makes_struct(&path.path) {
            for (k, item) in given.into_iter().enumerate() {
                self.write_field(&last, &k.to_string(), item);
            }
            return Item::Struct(last);
        }
        // Both places hold both values.
        if let ("swap" | "replace", [a, b]) = (&*last, &call.args.iter().collect::<Vec<_>>()[..]) {
            let (first, second) = (given[0].clone(), given[1].clone());
            self.write(a, second);
            self.write(b, first.clone());
            return if last == "replace" { first } else { UNKNOWN };
        }
        match &*last {
            "Some" | "Ok" | "vec_of" | "take" | "Box" => first(),
            "vec_repeat" => Item::list(first()),
            "from_elem" | "from_shape_fn" => Item::list(given.get(1).cloned().unwrap_or(UNKNOWN)),
            "from_shape_vec" | "from_vec" | "from_iter" => given.last().cloned().unwrap_or(UNKNOWN),
            "new" | "with_capacity" | "zeros" | "ones" => Item::list(UNKNOWN),
            last if is_of_rows && is_in(REDUCTIONS, last) => first().items(),
            // `f64::max(x, y)`
            last if path.path.segments[0].ident == "f64"
                && returns_element(renamed(last, given.len().saturating_sub(1))) =>
            {
                if given.iter().any(Item::is_element) { self.data() } else { Item::One(ValueKind::Float) }
            }
            _ if path.path.segments.iter().any(|s| s.ident == "f64" || s.ident == "usize") => UNKNOWN,
            _ if given.iter().any(Item::has_element) => Item::Maybe,
            _ => UNKNOWN,
        }
    }
}

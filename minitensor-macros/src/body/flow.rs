//! [`Flow`]: what each expression of a body of machine numbers is, and which numbers become elements.
//!
//! The body is read as often as something new is found. A variable, a parameter of a closure or a field of a struct is an element if an element
//! is assigned to it. So the number that it begins with is one, too.

use std::collections::HashMap;

use quote::ToTokens;
use syn::{
    Block, Expr, ExprCall, ExprClosure, ExprField, ExprMethodCall, ExprUnary, Lit, Member, Pat, PatIdent, Stmt, Type,
    UnOp,
};

use super::methods::{renamed, returns_element};
use super::{Head, Item, UNKNOWN, ValueKind, is_compound};
use crate::ast::{spelling, text};
use crate::dtype::{DType, DTypeSet};
use crate::parse::wrapped;

/// Methods that keep the items of a list, or return one that has them.
pub const SAME: &[&str] = &[
    "iter",
    "iter_mut",
    "into_iter",
    "rev",
    "skip",
    "take",
    "step_by",
    "copied",
    "cloned",
    "by_ref",
    "to_vec",
    "to_owned",
    "view",
    "view_mut",
    "row",
    "row_mut",
    "column",
    "column_mut",
    "slice",
    "slice_mut",
    "filter",
    "skip_while",
    "take_while",
    "chain",
    "cycle",
    "peekable",
    "clone",
    "collect",
    "as_slice",
    "as_mut_slice",
    "as_ref",
    "as_mut",
    "unwrap",
    "expect",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "drain",
    "split_off",
    "to_vec",
    "inspect",
    "ok",
    "ok_or",
    "into_owned",
    "reborrow",
    "t",
    "reversed_axes",
    "or",
    "fuse",
];
/// Those that return one item.
const ONE: &[&str] = &[
    "first",
    "last",
    "get",
    "get_mut",
    "first_mut",
    "last_mut",
    "next",
    "next_back",
    "nth",
    "reduce",
    "max_by",
    "min_by",
    "find",
    "pop",
    "pop_front",
    "pop_back",
    "front",
    "back",
    "remove",
    "swap_remove",
    "peek",
    "max_by_key",
    "min_by_key",
];
/// Those whose items are lists.
const PARTS: &[&str] = &[
    "windows",
    "chunks",
    "chunks_mut",
    "chunks_exact",
    "chunks_exact_mut",
    "rows",
    "rows_mut",
    "columns",
    "columns_mut",
    "outer_iter",
    "outer_iter_mut",
    "array_windows",
    "split",
];
/// Those that write their last argument to a list.
pub const WRITES: &[&str] = &["push", "push_back", "push_front", "insert", "resize", "fill"];
/// Methods of slices and views that return an integer.
pub const SIZES: &[&str] = &["len", "nrows", "ncols", "len_of", "count"];
/// Methods of integers that return an integer.
pub const OF_INTEGERS: &[&str] =
    &["min", "max", "clamp", "pow", "abs_diff", "div_ceil", "isqrt", "saturating_add", "saturating_sub", "rem_euclid"];
/// Functions of `minitensor::kernels::rows` that return an element.
pub const REDUCTIONS: &[&str] = &["sum", "sum_map", "prod", "dot"];
/// The most times that the body is read.
const MOST: usize = 12;

/// The address of a node. The tree does not move while a `Flow` is used.
type Place = usize;

fn place<N>(node: &N) -> Place {
    std::ptr::from_ref(node) as usize
}

pub struct Flow<'a> {
    head: &'a Head,
    /// What each expression is.
    found: HashMap<Place, Item>,
    /// What each name is where it is bound.
    names: HashMap<Place, Item>,
    /// The names whose type is written.
    fixed: HashMap<Place, Item>,
    /// The fields of each struct.
    structs: HashMap<String, HashMap<String, Item>>,
    scopes: Vec<HashMap<String, Place>>,
    params: HashMap<String, Item>,
    /// The closures that names are bound to.
    closures: HashMap<Place, Place>,
    /// The patterns of the parameters of a closure, and its body.
    bodies: HashMap<Place, (Vec<Item>, Item)>,
    /// The values that the loops around the current expression end with.
    breaks: Vec<Item>,
    has_changed: bool,
}

impl<'a> Flow<'a> {
    pub fn of(block: &Block, head: &'a Head) -> Flow<'a> {
        let mut params: HashMap<String, Item> =
            head.params.iter().map(|(name, kind)| (text(name), Item::of(*kind))).collect();
        let numbers = head.certain.iter().filter(|(_, certain)| *certain == super::Certain::NUMBER);
        params.extend(numbers.map(|(name, _)| (text(name), Item::Number)));
        let mut flow = Flow {
            head,
            found: HashMap::new(),
            names: HashMap::new(),
            fixed: HashMap::new(),
            structs: HashMap::new(),
            scopes: vec![],
            params,
            closures: HashMap::new(),
            bodies: HashMap::new(),
            breaks: vec![],
            has_changed: true,
        };
        for _ in 0..MOST {
            if !std::mem::take(&mut flow.has_changed) {
                break;
            }
            flow.block(block);
        }
        flow
    }

    /// What an expression is, before it is lowered.
    pub fn item(&self, expr: &Expr) -> Item {
        self.found.get(&place(expr)).cloned().unwrap_or(UNKNOWN)
    }

    /// What a name is where it is bound.
    pub fn name(&self, name: &PatIdent) -> Item {
        self.names.get(&place(name)).cloned().unwrap_or(UNKNOWN)
    }

    /// What a pattern takes.
    pub fn pattern(&self, pattern: &Pat) -> Item {
        match pattern {
            Pat::Ident(name) => self.name(name),
            Pat::Type(typed) => self.pattern(&typed.pat),
            Pat::Reference(inner) => self.pattern(&inner.pat),
            Pat::Paren(inner) => self.pattern(&inner.pat),
            Pat::Tuple(tuple) => Item::Tuple(tuple.elems.iter().map(|part| self.pattern(part)).collect()),
            _ => UNKNOWN,
        }
    }

    /// What the fields of a struct are.
    pub fn field(&self, of: &str, name: &str) -> Item {
        self.structs.get(of).and_then(|fields| fields.get(name)).cloned().unwrap_or(UNKNOWN)
    }

    /// What a closure takes, and what it returns.
    pub fn closure(&self, called: &Expr) -> Option<&(Vec<Item>, Item)> {
        let Expr::Path(path) = called else { return None };
        let at = self.found.get(&(place(path) + 1))?;
        let Item::Closure(body) = at else { return None };
        self.bodies.get(body)
    }

    fn data(&self) -> Item {
        Item::One(ValueKind::Data((self.head.variables().len() == 1).then_some(0)))
    }

    // Names.

    fn lookup(&self, name: &str) -> Option<Place> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    fn join(&mut self, at: Place, item: Item) {
        if self.fixed.contains_key(&at) {
            return;
        }
        let before = self.names.entry(at).or_insert(UNKNOWN);
        let after = before.clone().join(item);
        if *before != after {
            *before = after;
            self.has_changed = true;
        }
    }

    /// Binds the names of a pattern.
    fn bind(&mut self, pattern: &Pat, item: Item) {
        match pattern {
            Pat::Ident(name) => {
                let text = text(&name.ident);
                // `None` and constants parse as names.
                if text.starts_with(char::is_uppercase) {
                    return;
                }
                self.join(place(name), item);
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(text, place(name));
                }
            }
            Pat::Type(typed) => {
                let declared = self.of_type(&typed.ty);
                if let (Pat::Ident(name), true) = (&*typed.pat, declared.is_certain()) {
                    let at = place(name);
                    self.names.insert(at, declared.clone());
                    self.fixed.insert(at, declared.clone());
                }
                self.bind(&typed.pat, if declared == UNKNOWN { item } else { declared });
            }
            Pat::Reference(inner) => self.bind(&inner.pat, item),
            Pat::Paren(inner) => self.bind(&inner.pat, item),
            Pat::Tuple(tuple) => {
                for (k, part) in tuple.elems.iter().enumerate() {
                    self.bind(part, item.clone().part(k));
                }
            }
            Pat::Slice(slice) => {
                let each = item.clone().items();
                for part in &slice.elems {
                    let own = if matches!(part, Pat::Rest(_)) || is_rest(part) { item.clone() } else { each.clone() };
                    self.bind(part, own);
                }
            }
            // `Some(x)`, `Ok(x)`
            Pat::TupleStruct(tuple) if tuple.elems.len() == 1 => self.bind(&tuple.elems[0], item),
            Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|part| self.bind(part, UNKNOWN)),
            Pat::Struct(fields) => {
                let of = last_name(&fields.path);
                for field in &fields.fields {
                    let item =
                        if let Member::Named(name) = &field.member { self.field(&of, &text(name)) } else { UNKNOWN };
                    self.bind(&field.pat, item);
                }
            }
            Pat::Or(or) => or.cases.iter().for_each(|case| self.bind(case, item.clone())),
            Pat::Guard(guard) => {
                self.bind(&guard.pat, item);
                self.expr(&guard.guard);
            }
            _ => {}
        }
    }

    /// Writes a value to a place.
    fn write(&mut self, to: &Expr, item: Item) {
        match to {
            Expr::Path(path) => {
                if let Some(at) = path.path.get_ident().and_then(|name| self.lookup(&text(name))) {
                    self.join(at, item);
                }
            }
            Expr::Paren(inner) => self.write(&inner.expr, item),
            Expr::Reference(inner) => self.write(&inner.expr, item),
            Expr::Unary(inner) => self.write(&inner.expr, item),
            Expr::Index(inner) => self.write(&inner.expr, Item::list(item)),
            Expr::Field(ExprField { base, member: Member::Unnamed(at), .. }) => {
                let mut parts = vec![UNKNOWN; at.index as usize];
                parts.push(item);
                self.write(base, Item::Tuple(parts));
            }
            Expr::Field(ExprField { base, member: Member::Named(name), .. }) => {
                if let Item::Struct(of) = self.item(base) {
                    self.write_field(&of, &text(name), item);
                }
            }
            Expr::Tuple(tuple) => {
                for (k, part) in tuple.elems.iter().enumerate() {
                    self.write(part, item.clone().part(k));
                }
            }
            Expr::MethodCall(call) if SAME.contains(&&*call.method.to_string()) => self.write(&call.receiver, item),
            Expr::MethodCall(call) if ONE.contains(&&*call.method.to_string()) => {
                self.write(&call.receiver, Item::list(item));
            }
            _ => {}
        }
    }

    fn write_field(&mut self, of: &str, name: &str, item: Item) {
        let before = self.structs.entry(of.to_owned()).or_default().entry(name.to_owned()).or_insert(UNKNOWN);
        let after = before.clone().join(item);
        if *before != after {
            *before = after;
            self.has_changed = true;
        }
    }

    // Types.

    pub fn of_type(&self, ty: &Type) -> Item {
        let of = |ty: &Type| self.of_type(ty);
        match ty {
            Type::Reference(inner) => of(&inner.elem),
            Type::Tuple(tuple) => Item::Tuple(tuple.elems.iter().map(of).collect()),
            Type::Array(array) => Item::list(of(&array.elem)),
            Type::Slice(slice) => Item::list(of(&slice.elem)),
            Type::Path(path) => {
                let last = path.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
                let is_list = last.starts_with("Vec") || last.starts_with("Array");
                let spelled = spelling(ty);
                match self.head.generics.iter().position(|g| g.ident == spelled) {
                    Some(i) => Item::One(ValueKind::Data(Some(i))),
                    None if is_list => Item::list(wrapped(ty, &last).map_or(UNKNOWN, of)),
                    None if last == "Option" || last == "Result" => wrapped(ty, &last).map_or(UNKNOWN, of),
                    None if is_integer(ty) => Item::Number,
                    None if matches!(&*spelled, "f64" | "f32") => Item::One(ValueKind::Float),
                    None if spelled == "bool" => Item::One(ValueKind::Flag),
                    None if self.structs.contains_key(&last) => Item::Struct(last),
                    None => UNKNOWN,
                }
            }
            _ => UNKNOWN,
        }
    }

    // Expressions.

    fn block(&mut self, block: &Block) -> Item {
        self.scopes.push(HashMap::new());
        let mut value = UNKNOWN;
        for stmt in &block.stmts {
            value = UNKNOWN;
            match stmt {
                Stmt::Local(local) => {
                    let item = local.init.as_ref().map_or(UNKNOWN, |init| {
                        if let Some((_, otherwise)) = &init.diverge {
                            self.expr(otherwise);
                        }
                        self.expr(&init.expr)
                    });
                    if let (Some(init), Pat::Ident(name)) = (&local.init, &local.pat)
                        && let Expr::Closure(closure) = &*init.expr
                    {
                        self.closures.insert(place(name), place(closure));
                    }
                    self.bind(&local.pat, item);
                }
                Stmt::Expr(expr, semi) => {
                    let item = self.expr(expr);
                    if semi.is_none() {
                        value = item;
                    }
                }
                _ => {}
            }
        }
        self.scopes.pop();
        value
    }

    fn expr(&mut self, expr: &Expr) -> Item {
        let item = self.value(expr);
        self.found.insert(place(expr), item.clone());
        item
    }

    fn value(&mut self, expr: &Expr) -> Item {
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Float(_) => Item::One(ValueKind::Float),
                Lit::Int(_) => Item::Number,
                Lit::Bool(_) => Item::One(ValueKind::Flag),
                _ => UNKNOWN,
            },
            Expr::Paren(inner) => self.expr(&inner.expr),
            Expr::Group(inner) => self.expr(&inner.expr),
            Expr::Reference(inner) => self.expr(&inner.expr),
            Expr::Unary(ExprUnary { op: UnOp::Not(_), expr, .. }) => {
                self.expr(expr);
                Item::One(ValueKind::Flag)
            }
            Expr::Unary(inner) => self.expr(&inner.expr),
            Expr::Path(path) => self.path(path),
            Expr::Binary(binary) if is_compound(&binary.op) => {
                let (left, right) = (self.expr(&binary.left), self.expr(&binary.right));
                // `n *= 2.0` does not change what a number is.
                self.write(&binary.left, left.arithmetic(right));
                UNKNOWN
            }
            Expr::Binary(binary) => {
                use syn::BinOp::*;
                let (left, right) = (self.expr(&binary.left), self.expr(&binary.right));
                match binary.op {
                    Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_) => left.arithmetic(right),
                    Shl(_) | Shr(_) | BitAnd(_) | BitOr(_) | BitXor(_) => left,
                    _ => Item::One(ValueKind::Flag),
                }
            }
            Expr::Index(inner) => {
                self.expr(&inner.index);
                let list = self.expr(&inner.expr);
                if matches!(&*inner.index, Expr::Range(_)) { list } else { list.items() }
            }
            Expr::Field(ExprField { base, member: Member::Unnamed(at), .. }) => self.expr(base).part(at.index as usize),
            Expr::Field(ExprField { base, member: Member::Named(name), .. }) => match self.expr(base) {
                Item::Struct(of) => self.field(&of, &text(name)),
                _ => UNKNOWN,
            },
            Expr::Struct(fields) => {
                let of = last_name(&fields.path);
                for field in &fields.fields {
                    let item = self.expr(&field.expr);
                    if let Member::Named(name) = &field.member {
                        self.write_field(&of, &text(name), item);
                    }
                }
                fields.rest.iter().for_each(|rest| _ = self.expr(rest));
                Item::Struct(of)
            }
            Expr::Cast(cast) => {
                self.expr(&cast.expr);
                self.of_type(&cast.ty)
            }
            Expr::Tuple(tuple) => Item::Tuple(tuple.elems.iter().map(|e| self.expr(e)).collect()),
            Expr::Array(array) => {
                let each: Vec<_> = array.elems.iter().map(|e| self.expr(e)).collect();
                Item::list(each.into_iter().reduce(Item::join).unwrap_or(UNKNOWN))
            }
            Expr::Repeat(array) => {
                self.expr(&array.len);
                Item::list(self.expr(&array.expr))
            }
            Expr::Range(range) => {
                let ends = [&range.start, &range.end].into_iter().flatten();
                Item::list(ends.map(|end| self.expr(end)).reduce(Item::join).unwrap_or(Item::Number))
            }
            Expr::Block(inner) => self.block(&inner.block),
            Expr::Unsafe(inner) => self.block(&inner.block),
            Expr::If(branch) => {
                self.scopes.push(HashMap::new());
                self.expr(&branch.cond);
                let then = self.block(&branch.then_branch);
                self.scopes.pop();
                let otherwise = branch.else_branch.as_ref().map_or(UNKNOWN, |(_, e)| self.expr(e));
                then.join(otherwise)
            }
            Expr::Let(condition) => {
                let item = self.expr(&condition.expr);
                self.bind(&condition.pat, item);
                Item::One(ValueKind::Flag)
            }
            Expr::Match(choice) => {
                let item = self.expr(&choice.expr);
                let arms = choice.arms.iter().map(|arm| {
                    self.scopes.push(HashMap::new());
                    self.bind(&arm.pat, item.clone());
                    let value = self.expr(&arm.body);
                    self.scopes.pop();
                    value
                });
                arms.reduce(Item::join).unwrap_or(UNKNOWN)
            }
            Expr::ForLoop(each) => {
                let items = self.expr(&each.expr).items();
                self.scopes.push(HashMap::new());
                self.bind(&each.pat, items);
                self.looped(&each.body);
                self.scopes.pop();
                UNKNOWN
            }
            Expr::While(each) => {
                self.scopes.push(HashMap::new());
                self.expr(&each.cond);
                self.looped(&each.body);
                self.scopes.pop();
                UNKNOWN
            }
            Expr::Loop(each) => self.looped(&each.body),
            Expr::Break(end) => {
                let item = end.expr.as_ref().map_or(UNKNOWN, |value| self.expr(value));
                if let Some(of) = self.breaks.last_mut() {
                    *of = of.clone().join(item);
                }
                UNKNOWN
            }
            Expr::Return(end) => {
                end.expr.iter().for_each(|value| _ = self.expr(value));
                UNKNOWN
            }
            Expr::Assign(assign) => {
                self.expr(&assign.left);
                let item = self.expr(&assign.right);
                self.write(&assign.left, item);
                UNKNOWN
            }
            Expr::Closure(closure) => {
                self.call_closure(closure, &[]);
                Item::Closure(place(closure))
            }
            Expr::Try(inner) => self.expr(&inner.expr),
            Expr::MethodCall(call) => self.method(call),
            Expr::Call(call) => self.call(call),
            _ => UNKNOWN,
        }
    }

    fn looped(&mut self, body: &Block) -> Item {
        self.breaks.push(UNKNOWN);
        self.block(body);
        self.breaks.pop().unwrap_or(UNKNOWN)
    }

    fn path(&mut self, path: &syn::ExprPath) -> Item {
        let Some(name) = path.path.get_ident().map(text) else {
            let first = &path.path.segments[0].ident;
            return match self.head.generics.iter().position(|g| g.ident == *first) {
                Some(i) => Item::One(ValueKind::Data(Some(i))),
                None if path.path.segments.iter().any(|s| s.ident == "f64" || s.ident == "f32") => {
                    Item::One(ValueKind::Float)
                }
                None if is_constant(&last_name(&path.path)) => Item::Number,
                None => UNKNOWN,
            };
        };
        match self.lookup(&name) {
            Some(at) => {
                if let Some(closure) = self.closures.get(&at) {
                    self.found.insert(place(path) + 1, Item::Closure(*closure));
                }
                self.names.get(&at).cloned().unwrap_or(UNKNOWN)
            }
            None => match self.params.get(&name) {
                Some(item) => item.clone(),
                None if is_constant(&name) => Item::Number,
                None => UNKNOWN,
            },
        }
    }

    /// Runs a closure. `given` are its arguments, as far as they are known.
    fn call_closure(&mut self, closure: &ExprClosure, given: &[Item]) -> Item {
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

    /// Adds what the arguments of a closure are, for the next time that it is read.
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

    fn method(&mut self, call: &ExprMethodCall) -> Item {
        let receiver = self.expr(&call.receiver);
        let name = call.method.to_string();
        let args: Vec<&Expr> = call.args.iter().collect();
        let each = receiver.clone().items();
        if let Item::One(ValueKind::Data(_) | ValueKind::Float) = receiver
            && !SAME.contains(&&*name)
        {
            let given = args.iter().map(|arg| self.expr(arg)).fold(receiver, Item::arithmetic);
            return match returns_element(renamed(&name, args.len())) {
                true => given,
                false => UNKNOWN,
            };
        }
        if receiver == Item::Maybe
            && returns_element(renamed(&name, args.len()))
            && args.is_empty()
            && is_of_floats(&name)
        {
            return self.data();
        }
        if let (Item::Number, true) = (&receiver, OF_INTEGERS.contains(&&*name)) {
            args.iter().for_each(|arg| _ = self.expr(arg));
            return Item::Number;
        }
        let typed = call.turbofish.as_ref().and_then(|t| match t.args.first() {
            Some(syn::GenericArgument::Type(ty)) => Some(self.of_type(ty)),
            _ => None,
        });
        match (&*name, &args[..]) {
            ("fold" | "try_fold", [first, step]) => {
                let first = self.expr(first);
                let known = match step {
                    Expr::Closure(closure) => match closure.inputs.first() {
                        Some(pattern) => self.pattern(pattern),
                        None => UNKNOWN,
                    },
                    _ => UNKNOWN,
                };
                let begun = first.join(known);
                let next = self.argument(step, &[begun.clone(), each]);
                let total = begun.join(next);
                if let Expr::Closure(closure) = step {
                    self.scopes.push(HashMap::new());
                    closure.inputs.first().into_iter().for_each(|pattern| self.bind(pattern, total.clone()));
                    self.scopes.pop();
                }
                total
            }
            ("scan", [first, step]) => {
                let first = self.expr(first);
                Item::list(self.argument(step, &[first, each]))
            }
            ("map" | "flat_map" | "filter_map" | "map_while", [step]) => {
                let (item, is_one) = if matches!(receiver, Item::List(_)) { (each, false) } else { (receiver, true) };
                let result = self.argument(step, &[item]);
                let result = if name == "flat_map" { result.items() } else { result };
                if is_one { result } else { Item::list(result) }
            }
            ("reduce", [step]) => {
                self.argument(step, &[each.clone(), each.clone()]);
                each
            }
            ("sum" | "product", []) => typed.filter(|t| *t != UNKNOWN).unwrap_or(each),
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
                let given: &[Item] = match name {
                    "sort_by" | "max_by" | "min_by" | "for_each" | "filter" | "position" | "any" | "all" | "retain"
                    | "skip_while" | "take_while" | "find" | "sort_by_key" | "max_by_key" | "min_by_key"
                    | "inspect" | "partition_point" => &[each.clone(), each.clone()],
                    _ => &[],
                };
                let last = args.iter().map(|arg| self.argument(arg, given)).last();
                match name {
                    name if WRITES.contains(&name) => {
                        self.write(&call.receiver, Item::list(last.unwrap_or(UNKNOWN)));
                        UNKNOWN
                    }
                    "extend" | "extend_from_slice" | "append" => {
                        self.write(&call.receiver, last.unwrap_or(UNKNOWN));
                        UNKNOWN
                    }
                    "unwrap_or" | "or" | "chain" => receiver.join(last.unwrap_or(UNKNOWN)),
                    name if SIZES.contains(&name) => Item::Number,
                    name if SAME.contains(&name) => receiver,
                    name if ONE.contains(&name) => each,
                    name if PARTS.contains(&name) => Item::list(receiver),
                    _ => UNKNOWN,
                }
            }
        }
    }

    fn call(&mut self, call: &ExprCall) -> Item {
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
        if let Item::Closure(at) = self.found.get(&(place(path) + 1)).cloned().unwrap_or(called) {
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
        match &*last {
            "Some" | "Ok" | "vec_of" | "replace" | "take" | "Box" => first(),
            "vec_repeat" => Item::list(first()),
            "swap" => UNKNOWN,
            "from_elem" => Item::list(given.get(1).cloned().unwrap_or(UNKNOWN)),
            "new" | "with_capacity" | "zeros" | "ones" => Item::list(UNKNOWN),
            last if is_of_rows && REDUCTIONS.contains(&last) => first().items(),
            "f64" | "usize" => UNKNOWN,
            _ if path.path.segments.iter().any(|s| s.ident == "f64" || s.ident == "usize") => UNKNOWN,
            _ if given.iter().any(Item::has_element) => Item::Maybe,
            _ => UNKNOWN,
        }
    }
}

/// Whether only floats have a method.
fn is_of_floats(name: &str) -> bool {
    matches!(
        name,
        "sqrt"
            | "exp"
            | "ln"
            | "sin"
            | "cos"
            | "tan"
            | "tanh"
            | "recip"
            | "exp_m1"
            | "ln_1p"
            | "floor"
            | "ceil"
            | "round"
            | "log"
            | "atan"
            | "asin"
            | "acos"
    )
}

/// `rest @ ..`
fn is_rest(pattern: &Pat) -> bool {
    matches!(pattern, Pat::Ident(PatIdent { subpat: Some((_, inner)), .. }) if matches!(**inner, Pat::Rest(_)))
}

fn last_name(path: &syn::Path) -> String {
    path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default()
}

/// `usize`, `i64`
pub fn is_integer(ty: &Type) -> bool {
    let name = ty.to_token_stream().to_string();
    matches!(name.as_str(), "usize" | "isize") || DType::of_rust(&name).is_some_and(|d| DTypeSet::INT.contains(d))
}

/// Whether the name of a value is one of a constant: `FRAC_1_SQRT_2`, `W`.
pub fn is_constant(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

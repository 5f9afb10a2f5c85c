//! [`Flow`]: the structure of each value of a body of machine numbers, and which numbers become elements.
//!
//! The body is read as often as something new is found. A variable, a parameter of a closure or a field of a struct is an element if an element
//! is assigned to it. So the number that it begins with is one, too.

mod calls;
pub mod tables;

use std::collections::{HashMap, HashSet};

use quote::ToTokens;
use syn::{Block, Expr, ExprField, ExprUnary, Lit, Member, Pat, PatIdent, Stmt, Type, UnOp};

use super::{Head, Item, UNKNOWN, ValueKind, is_compound};
use crate::ast::{spelling, text};
use crate::dtype::{DType, DTypeSet};
use crate::parse::wrapped;
use tables::{ONE, SAME, is_in};

/// The most times that the body is read.
const MOST: usize = 12;

/// The address of a node. The tree does not move while a `Flow` is used.
type Place = usize;

fn place<N>(node: &N) -> Place {
    std::ptr::from_ref(node) as usize
}

/// The structure of the values of a body.
pub struct Flow<'a> {
    head: &'a Head,
    /// The values of expressions.
    found: HashMap<Place, Item>,
    /// The values of names, by the place where the name is bound.
    names: HashMap<Place, Item>,
    /// The names whose type is written.
    fixed: HashSet<Place>,
    /// The fields of each struct.
    structs: HashMap<String, HashMap<String, Item>>,
    scopes: Vec<HashMap<String, Place>>,
    params: HashMap<String, Item>,
    /// The parameters and the result of each closure.
    bodies: HashMap<Place, (Vec<Item>, Item)>,
    /// The values that the loops around the current expression end with.
    breaks: Vec<Item>,
    has_changed: bool,
}

impl<'a> Flow<'a> {
    pub fn of(block: &Block, head: &'a Head) -> Flow<'a> {
        let mut params: HashMap<String, Item> =
            head.params.iter().map(|(name, kind)| (text(name), Item::of(*kind))).collect();
        params.extend(head.integers.iter().map(|name| (text(name), Item::Number)));
        // `Some(x)` is what `x` is.
        let optional = head.certain.iter().filter(|(_, certain)| *certain == super::Certain::Optional);
        params.extend(optional.map(|(name, _)| (text(name), Item::One(ValueKind::Float))));
        let mut flow = Flow {
            head,
            found: HashMap::new(),
            names: HashMap::new(),
            fixed: HashSet::new(),
            structs: HashMap::new(),
            scopes: vec![],
            params,
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

    /// The value of an expression before it is lowered.
    pub fn item(&self, expr: &Expr) -> Item {
        self.found.get(&place(expr)).cloned().unwrap_or(UNKNOWN)
    }

    /// The value of a name that is bound here.
    pub fn name(&self, name: &PatIdent) -> Item {
        self.names.get(&place(name)).cloned().unwrap_or(UNKNOWN)
    }

    /// The value that a pattern matches.
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

    /// The value of a field of a struct.
    pub fn field(&self, of: &str, name: &str) -> Item {
        self.structs.get(of).and_then(|fields| fields.get(name)).cloned().unwrap_or(UNKNOWN)
    }

    /// The parameters and the result of a closure.
    pub fn closure(&self, called: &Expr) -> Option<&(Vec<Item>, Item)> {
        if let Item::Closure(at) = self.item(called) { self.bodies.get(&at) } else { None }
    }

    fn data(&self) -> Item {
        Item::One(ValueKind::Data((self.head.variables().len() == 1).then_some(0)))
    }

    // Names.

    fn lookup(&self, name: &str) -> Option<Place> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    fn join(&mut self, at: Place, item: Item) {
        if self.fixed.contains(&at) {
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
                    self.fixed.insert(at);
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
                    let item = self.field(&of, &name_of(&field.member));
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
            Expr::Field(ExprField { base, member, .. }) => match (self.item(base), member) {
                (Item::Struct(of), member) => self.write_field(&of, &name_of(member), item),
                (_, Member::Unnamed(at)) => {
                    let mut parts = vec![UNKNOWN; at.index as usize];
                    parts.push(item);
                    self.write(base, Item::Tuple(parts));
                }
                _ => {}
            },
            Expr::Tuple(tuple) => {
                for (k, part) in tuple.elems.iter().enumerate() {
                    self.write(part, item.clone().part(k));
                }
            }
            Expr::MethodCall(call) if is_in(SAME, &call.method.to_string()) => self.write(&call.receiver, item),
            Expr::MethodCall(call) if is_in(ONE, &call.method.to_string()) => {
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
            Expr::Field(ExprField { base, member, .. }) => match (self.expr(base), member) {
                (Item::Struct(of), member) => self.field(&of, &name_of(member)),
                (base, Member::Unnamed(at)) => base.part(at.index as usize),
                _ => UNKNOWN,
            },
            Expr::Struct(fields) => {
                let of = last_name(&fields.path);
                for field in &fields.fields {
                    let item = self.expr(&field.expr);
                    self.write_field(&of, &name_of(&field.member), item);
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
                None if is_constant(&last_name(&path.path)) => Item::Constant,
                None => UNKNOWN,
            };
        };
        match self.lookup(&name) {
            Some(at) => self.names.get(&at).cloned().unwrap_or(UNKNOWN),
            None => match self.params.get(&name) {
                Some(item) => item.clone(),
                None if is_constant(&name) => Item::Constant,
                None => UNKNOWN,
            },
        }
    }
}

/// The name of a field, or its position.
pub fn name_of(member: &Member) -> String {
    match member {
        Member::Named(name) => text(name),
        Member::Unnamed(at) => at.index.to_string(),
    }
}

/// Whether a function makes a struct without names of fields, such as `Point(x, y)`.
pub fn makes_struct(path: &syn::Path) -> bool {
    let is_other = |name: &str| matches!(name, "Some" | "Ok" | "Err" | "Box");
    path.get_ident().is_some_and(|name| {
        let name = name.to_string();
        name.starts_with(char::is_uppercase) && !is_other(&name)
    })
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

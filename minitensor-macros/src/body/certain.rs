//! Types of expressions, where they are certain. They allow errors about operands before rustc sees the expansion.

use syn::{BinOp, Expr, ExprLit, Lit, Member, Pat, Stmt, Type, UnOp};

use super::methods::{COMPLEX_ITEMS, COMPLEX_PARTS, MASKS, METHODS, ROW_METHODS, renamed};
use super::{Head, Scopes, ValueKind};
use crate::ast::spelling;

/// The type of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certain {
    /// An element of the dtype variable at that position.
    Element(usize),
    /// A mask of that dtype variable.
    Mask(usize),
    /// A mutable reference to an element.
    Place(usize),
    /// An optional element, mask or number.
    Optional,
    /// An index into a row.
    Index,
    /// A value of this Rust type.
    Rust(&'static str),
}

/// The type of an expression as written, if the names in scope and the methods of elements determine it.
pub fn of(expr: &Expr, scopes: &Scopes, head: &Head) -> Option<Certain> {
    let of = |expr: &Expr| of(expr, scopes, head);
    // A number beside a complex one is complex. Beside an unknown value, only a complex number is certain.
    let is_open = |expr: &Expr| head.complex.is_some() && !matches!(expr, Expr::Lit(_));
    let elements = |a: &Expr, b: &Expr| match (of(a), of(b)) {
        (Some(Certain::Element(_)), Some(Certain::Element(j))) if head.is_complex(j) => Some(j),
        (Some(Certain::Element(i)), None) if is_open(b) && !head.is_complex(i) => None,
        (None, Some(Certain::Element(j))) if is_open(a) && !head.is_complex(j) => None,
        (Some(Certain::Element(i)), _) | (None, Some(Certain::Element(i))) => Some(i),
        _ => None,
    };
    match expr {
        Expr::Paren(inner) => of(&inner.expr),
        Expr::Group(inner) => of(&inner.expr),
        Expr::Path(path) => {
            let binding = path.path.get_ident().and_then(|name| scopes.get(name))?;
            binding.certain.or(match binding.value {
                ValueKind::Data(Some(i)) if head.part(i) != i => Some(Certain::Element(i)),
                _ => None,
            })
        }
        Expr::Field(field) => match (&field.member, of(&field.base)?) {
            (Member::Named(part), Certain::Element(i)) if head.is_complex(i) && (part == "re" || part == "im") => {
                Some(Certain::Element(head.part(i)))
            }
            _ => None,
        },
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => Some(Certain::Rust("a text")),
        Expr::Unary(unary) => match (unary.op, of(&unary.expr)?) {
            (UnOp::Neg(_), element @ Certain::Element(_)) => Some(element),
            (UnOp::Not(_), mask @ Certain::Mask(_)) => Some(mask),
            (UnOp::Not(_), bits @ Certain::Element(i)) if head.is_bits(i) => Some(bits),
            (UnOp::Deref(_), Certain::Place(i)) => Some(Certain::Element(i)),
            _ => None,
        },
        Expr::Binary(binary) => match binary.op {
            BinOp::Add(_)
            | BinOp::Sub(_)
            | BinOp::Mul(_)
            | BinOp::Div(_)
            | BinOp::Rem(_)
            | BinOp::BitAnd(_)
            | BinOp::BitOr(_)
            | BinOp::BitXor(_)
            | BinOp::Shl(_)
            | BinOp::Shr(_) => match elements(&binary.left, &binary.right) {
                None if matches!(binary.op, BinOp::BitXor(_)) => masks(of(&binary.left), of(&binary.right)),
                element => element.map(Certain::Element),
            },
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_) => {
                // A comparison is certain even if the other operand is not.
                let compared = elements(&binary.left, &binary.right).or_else(|| {
                    let sides = head.complex.map(|_| (of(&binary.left), of(&binary.right)));
                    match sides? {
                        (Some(Certain::Element(i)), _) | (_, Some(Certain::Element(i))) => Some(i),
                        _ => None,
                    }
                });
                compared.map(|i| Certain::Mask(head.part(i))).or_else(|| masks(of(&binary.left), of(&binary.right)))
            }
            BinOp::And(_) | BinOp::Or(_) => masks(of(&binary.left), of(&binary.right)),
            _ => None,
        },
        Expr::MethodCall(call) => {
            let Certain::Element(i) = of(&call.receiver)? else { return None };
            let name = call.method.to_string();
            match name.as_str() {
                "to_bits" | "to_integer" => return head.bits_of(i).map(Certain::Element),
                "to_index" => return Some(Certain::Index),
                "to_number" => return Some(Certain::Element(head.part(i))),
                _ => {}
            }
            if ROW_METHODS.contains(&(name.as_str(), call.args.len())) {
                return Some(Certain::Element(i));
            }
            if head.is_complex(i) && COMPLEX_PARTS.contains(&name.as_str()) {
                return Some(Certain::Element(head.part(i)));
            }
            result(renamed(&name, call.args.len()), i).map(|certain| match certain {
                Certain::Mask(i) => Certain::Mask(head.part(i)),
                certain => certain,
            })
        }
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else { return None };
            let [variable, name] = &path.path.segments.iter().collect::<Vec<_>>()[..] else { return None };
            let i = head.generics.iter().position(|g| g.ident == variable.ident)?;
            match name.ident.to_string().as_str() {
                "any" | "all" => Some(Certain::Mask(i)),
                "scan" => call.args.first().and_then(of),
                name if head.is_complex(i) && COMPLEX_ITEMS.contains(&name) => Some(Certain::Element(i)),
                name => result(name, i),
            }
        }
        Expr::Cast(cast) => of_type(&cast.ty, head).filter(|to| matches!(to, Certain::Element(_))),
        Expr::Block(block) => tail(&block.block).and_then(of),
        // A branch that is a literal has the type of the other.
        Expr::If(branch) => {
            let then = tail(&branch.then_branch).and_then(of);
            then.or_else(|| branch.else_branch.as_ref().and_then(|(_, other)| of(other)))
        }
        _ => None,
    }
}

fn masks(left: Option<Certain>, right: Option<Certain>) -> Option<Certain> {
    [left, right].into_iter().flatten().find(|side| matches!(side, Certain::Mask(_)))
}

fn result(method: &str, variable: usize) -> Option<Certain> {
    let is_in = |table: &[(&str, &[&str])]| table.iter().any(|(_, names)| names.contains(&method));
    match method {
        _ if is_in(METHODS) => Some(Certain::Element(variable)),
        _ if is_in(MASKS) => Some(Certain::Mask(variable)),
        _ => None,
    }
}

/// The final expression of a block, unless it depends on names that the block binds.
pub fn tail(block: &syn::Block) -> Option<&Expr> {
    match &block.stmts[..] {
        [Stmt::Expr(only, None)] => Some(only),
        _ => None,
    }
}

/// The type that a `let` declares.
pub fn declared(pattern: &Pat, head: &Head) -> Option<Certain> {
    let Pat::Type(pattern) = pattern else { return None };
    of_type(&pattern.ty, head)
}

/// `T`, `T::Mask`
pub fn of_type(ty: &Type, head: &Head) -> Option<Certain> {
    let spelled = spelling(ty);
    (0..head.generics.len()).find_map(|i| match spelled.strip_prefix(&head.spelled(i))? {
        "" => Some(Certain::Element(i)),
        "::Mask" => Some(Certain::Mask(i)),
        _ => None,
    })
}

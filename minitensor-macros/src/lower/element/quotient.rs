//! Divisions of integers, whose fraction would be lost unnoticed where the quotient becomes an element.

use syn::{BinOp, Expr, ExprBinary, ExprLit, Lit};

use super::{Lowering, shown};
use crate::body::Item;
use crate::body::flow::is_integer;
use crate::diag::messages;

impl Lowering<'_> {
    /// Whether a number that becomes an element is made from a quotient of integers. The error is reported.
    pub fn divides_integers(&mut self, expr: &mut Expr) -> bool {
        let Some(quotient) = self.quotient(expr).cloned() else { return false };
        let (left, right, whole) =
            (as_float(&quotient.left), as_float(&quotient.right), shown(&Expr::Binary(quotient.clone())));
        self.mistake(expr, &quotient, &messages::INTEGER_DIVISION, &[&whole, &left, &right, &whole]);
        true
    }

    /// Whether it is `1 / n` for an integer `n`, which is 0 beside an element.
    pub fn is_lost_fraction(&self, binary: &ExprBinary) -> bool {
        let is_one =
            matches!(&*binary.left, Expr::Lit(ExprLit { lit: Lit::Int(one), .. }) if one.base10_digits() == "1");
        let is_divided = matches!(binary.op, BinOp::Div(_)) && self.structure(&binary.right) == Item::Number;
        is_one && is_divided && !matches!(*binary.right, Expr::Lit(_))
    }

    fn quotient<'e>(&self, expr: &'e Expr) -> Option<&'e ExprBinary> {
        match expr {
            Expr::Paren(inner) => self.quotient(&inner.expr),
            Expr::Group(inner) => self.quotient(&inner.expr),
            Expr::Unary(inner) => self.quotient(&inner.expr),
            Expr::Binary(binary) => match binary.op {
                BinOp::Div(_) if self.is_integer(&binary.left) && self.is_integer(&binary.right) => {
                    (!is_exact(binary)).then_some(binary)
                }
                BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) => {
                    self.quotient(&binary.left).or_else(|| self.quotient(&binary.right))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn is_integer(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => !literal.suffix().starts_with('f'),
            Expr::Paren(inner) => self.is_integer(&inner.expr),
            Expr::Group(inner) => self.is_integer(&inner.expr),
            Expr::Unary(inner) => self.is_integer(&inner.expr),
            Expr::Cast(cast) => is_integer(&cast.ty),
            Expr::Binary(binary) => match binary.op {
                BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_) => {
                    self.is_integer(&binary.left) && self.is_integer(&binary.right)
                }
                _ => false,
            },
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) if self.head.integers.contains(name) => {
                    self.scopes.get(name).is_none_or(|binding| binding.made_by.is_none())
                }
                _ => self.structure(expr) == Item::Number,
            },
            expr => self.structure(expr) == Item::Number,
        }
    }
}

/// Whether a quotient of literals has no fraction.
fn is_exact(quotient: &ExprBinary) -> bool {
    let literal = |side: &Expr| match side {
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => literal.base10_parse::<i128>().ok(),
        _ => None,
    };
    let (left, right) = (literal(&quotient.left), literal(&quotient.right));
    left.zip(right).is_some_and(|(left, right)| right != 0 && left % right == 0)
}

/// An integer, written as a float.
fn as_float(expr: &Expr) -> String {
    match expr {
        Expr::Lit(_) => format!("{}.0", shown(expr)),
        Expr::Binary(_) => format!("({}) as f64", shown(expr)),
        _ => format!("{} as f64", shown(expr)),
    }
}

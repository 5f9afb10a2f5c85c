//! Errors about operands, conditions and results whose types are certain. Without them, rustc would report the traits and functions of
//! the expansion.

use quote::ToTokens;
use syn::{BinOp, Expr, ExprBinary, ExprLit, Lit, UnOp};

use super::Lowering;
use crate::ast::{Elem, Level};
use crate::body::methods::bounds_with;
use crate::body::{Certain, certain};
use crate::diag::{Message, error, messages};
use crate::dtype::{Bound, DType};

/// Whether the bound with this name is one of rows.
fn is_of_rows(bound: &str) -> bool {
    Bound::named(bound).is_some_and(|bound| bound.is_of_rows())
}

impl Lowering<'_> {
    /// The type of an expression before it is lowered. Bodies of machine numbers are left to rustc.
    pub fn certain(&self, expr: &Expr) -> Option<Certain> {
        if self.head.is_machine() { None } else { certain::of(expr, &self.scopes, self.head) }
    }

    pub fn report(&mut self, at: impl ToTokens, message: &Message, args: &[&dyn std::fmt::Display]) -> bool {
        self.errors.push(error(at, message, args));
        true
    }

    /// Whether a literal `true` or `false` stands for a number. The error is reported.
    pub fn flag_operand(&mut self, expr: &mut Expr) -> bool {
        let is_flag = matches!(expr, Expr::Lit(ExprLit { lit: Lit::Bool(_), .. }));
        if is_flag {
            let (at, literal) = (expr.clone(), shown(expr));
            self.mistake(expr, &at, &messages::FLAG_NUMBER, &[&literal, if literal == "true" { &"1" } else { &"0" }]);
        }
        is_flag
    }

    pub fn variable_name(&self, i: usize) -> String {
        self.head.spelled(i)
    }

    /// An element or a mask is expected here, but the value is neither.
    pub fn wrong_operand(&mut self, operand: &Expr, has: Certain) -> bool {
        let shown = shown(operand);
        match has {
            Certain::Mask(_) => self.report(operand, &messages::MASK_OPERAND, &[&shown, &shown]),
            Certain::Optional => self.report(operand, &messages::OPTIONAL_OPERAND, &[&shown, &shown]),
            Certain::Index => self.report(operand, &messages::INDEX_OPERAND, &[&shown, &shown, &shown]),
            Certain::Place(_) => self.report(operand, &messages::PLACE_OPERAND, &[&shown, &shown]),
            Certain::Rust("a `bool`") => self.report(operand, &messages::FLAG_OPERAND, &[&shown, &shown]),
            Certain::Rust(kind) => self.report(operand, &messages::RUST_OPERAND, &[&shown, &kind]),
            Certain::Element(_) => false,
        }
    }

    /// Whether a binary operation on data has an operand of a wrong type. The error is reported.
    pub fn wrong_binary(&mut self, binary: &ExprBinary) -> bool {
        let (left, right) = (self.certain(&binary.left), self.certain(&binary.right));
        let is_data = |c| matches!(c, Some(Certain::Element(_) | Certain::Mask(_)));
        let is_known = |c: Option<Certain>| c.is_none_or(|c| matches!(c, Certain::Rust("a `bool`")));
        let logical = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
        if !is_data(left) && !is_data(right) {
            // Neither an index nor an optional number has operators.
            let is_arithmetic = matches!(binary.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_));
            let has_none = |c| c == Some(Certain::Index) || is_arithmetic && c == Some(Certain::Optional);
            return match (has_none(left), has_none(right)) {
                (true, _) => left.is_some_and(|has| self.wrong_operand(&binary.left, has)),
                (_, true) => right.is_some_and(|has| self.wrong_operand(&binary.right, has)),
                _ => false,
            };
        }
        for (operand, has) in [(&*binary.left, left), (&*binary.right, right)] {
            let Some(has) = has else { continue };
            let wrong = match has {
                Certain::Element(_) if logical => self.wrong_condition(operand),
                Certain::Mask(_) if logical || is_bitwise(&binary.op) || compares_masks(&binary.op) => false,
                has if logical && is_known(Some(has)) => false,
                // The place of `*p += 1` is not an operand.
                Certain::Place(_) if crate::body::is_compound(&binary.op) => false,
                has => self.wrong_operand(operand, has),
            };
            if wrong {
                return true;
            }
        }
        match (left, right) {
            // A real and a complex number have the operators `+ - * /`.
            (Some(Certain::Element(i)), Some(Certain::Element(j)))
                if i != j && (self.head.is_bits(i) || self.head.is_bits(j)) =>
            {
                let (number, bits) =
                    if self.head.is_bits(i) { (&binary.right, &binary.left) } else { (&binary.left, &binary.right) };
                let (number, bits) = (shown(number), shown(bits));
                self.report(binary.op, &messages::BITS_MIXED, &[&number, &bits, &number, &number, &bits])
            }
            (Some(Certain::Element(i)), Some(Certain::Element(j)))
                if i != j
                    && self.head.part(i) == self.head.part(j)
                    && is_arithmetic(&binary.op, self.head.is_complex(i)) =>
            {
                false
            }
            (Some(Certain::Element(i)), Some(Certain::Element(j))) if i != j => {
                let complex = if self.head.is_complex(i) { i } else { j };
                if self.head.is_complex(complex) && self.wrong_operator(&binary.op, complex) {
                    return true;
                }
                self.mixed(&binary.left, i, &binary.right, j);
                true
            }
            (Some(Certain::Element(i)), _) | (_, Some(Certain::Element(i))) => self.wrong_operator(&binary.op, i),
            _ => false,
        }
    }

    pub fn mixed(&mut self, left: &Expr, i: usize, right: &Expr, j: usize) {
        if self.head.part(i) == self.head.part(j) {
            let (real, complex) = if self.head.is_complex(i) { (right, left) } else { (left, right) };
            let (real, complex) = (shown(real), shown(complex));
            self.report(right, &messages::COMPLEX_MIXED, &[&real, &complex, &real]);
            return;
        }
        let (t, u) = (self.variable_name(i), self.variable_name(j));
        self.report(right, &messages::MIXED_DTYPES, &[&shown(right), &u, &shown(left), &t, &t]);
    }

    /// An operator that the bound of the dtype variable lacks.
    pub fn wrong_operator(&mut self, op: &BinOp, variable: usize) -> bool {
        if self.head.is_complex(variable) {
            let sign = op.to_token_stream().to_string();
            return match op {
                BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => self.report(
                    op,
                    &messages::NO_COMPLEX,
                    &[&"operator", &sign, &"compare real numbers, such as `z.abs() < 1.0`"],
                ),
                BinOp::Rem(_)
                | BinOp::BitXor(_)
                | BinOp::BitAnd(_)
                | BinOp::BitOr(_)
                | BinOp::Shl(_)
                | BinOp::Shr(_) => self.report(
                    op,
                    &messages::NO_COMPLEX,
                    &[&"operator", &sign, &"compute with the parts `z.re()` and `z.im()`"],
                ),
                _ => false,
            };
        }
        let (needed, instead) = match op {
            BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) => ("Num", ""),
            BinOp::Div(_) => ("Field", ", or write `x.floor_divide(y)`"),
            BinOp::Rem(_) => ("Float", ", or write `x.remainder(y)`"),
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => ("Real", ""),
            BinOp::BitXor(_) => ("Int", "; a power is `x.powi(2)` or `x.pow(y)`"),
            BinOp::BitAnd(_) | BinOp::BitOr(_) => ("Int", "; for conditions, write `&&` and `||`"),
            BinOp::Shl(_) | BinOp::Shr(_) => ("Int", ""),
            _ => return false,
        };
        self.wrong_bound(op, &op.to_token_stream().to_string(), needed, variable, instead)
    }

    pub fn wrong_bound(&mut self, at: impl ToTokens, what: &str, needed: &str, variable: usize, instead: &str) -> bool {
        let has = self.head.generics[variable].bound.name;
        let enough = bounds_with(needed);
        if enough.contains(&has) {
            return false;
        }
        if let (true, Some(instead)) =
            (self.head.generics[variable].bound.is_of_integers(), instead.strip_prefix(", or "))
        {
            return self.report(at, &messages::NOT_OF_INTEGERS, &[&what, &self.variable_name(variable), &instead]);
        }
        let is_row = self.head.generics[variable].bound.is_of_rows();
        let shown: Vec<_> = enough.iter().filter(|b| is_row == is_of_rows(b)).map(|b| format!("`{b}`")).collect();
        let name = self.variable_name(variable);
        self.report(at, &messages::WEAK_BOUND, &[&what, &name, &name, &shown.join(" or "), &has, &instead])
    }

    /// Whether an element is used as a condition. The error is reported.
    pub fn wrong_condition(&mut self, condition: &Expr) -> bool {
        let Some(Certain::Element(_)) = self.certain(condition) else { return false };
        let shown = shown(condition);
        self.report(condition, &messages::NOT_A_CONDITION, &[&shown, &shown])
    }

    /// Whether a unary operator does not apply to its operand.
    pub fn wrong_unary(&mut self, op: &UnOp, operand: &Expr) -> bool {
        match (op, self.certain(operand)) {
            (UnOp::Not(_), Some(Certain::Element(i))) if !self.head.generics[i].bound.is_of_integers() => {
                self.wrong_condition(operand)
            }
            (UnOp::Deref(_), Some(Certain::Element(_))) => {
                let shown = shown(operand);
                self.report(op, &messages::DEREFERENCED, &[&shown, &shown])
            }
            (UnOp::Neg(_), Some(has @ (Certain::Mask(_) | Certain::Optional | Certain::Index))) => {
                self.wrong_operand(operand, has)
            }
            _ => false,
        }
    }

    /// Whether a result has another type than the function returns.
    pub fn wrong_result(&mut self, result: &Expr, want: Elem) -> bool {
        if self.is_several(result) {
            return true;
        }
        if let (Expr::Tuple(tuple), Elem::Generic(i)) = (result, want)
            && self.head.is_complex(i)
            && tuple.elems.len() == 2
        {
            let (re, im) = (shown(&tuple.elems[0]), shown(&tuple.elems[1]));
            return self.report(result, &messages::TUPLE_RESULT, &[&re, &im]);
        }
        let Some(has) = self.certain(result) else { return false };
        let shown = shown(result);
        match (has, want) {
            (Certain::Mask(_), Elem::Generic(i)) => {
                let name = self.variable_name(i);
                self.report(result, &messages::MASK_RESULT, &[&shown, &name, &name, &shown])
            }
            (Certain::Element(_), Elem::Mask(i)) => {
                let name = self.variable_name(i);
                self.report(result, &messages::ELEMENT_RESULT, &[&shown, &name, &shown])
            }
            (Certain::Element(i), Elem::Fixed(DType::I64)) if self.head.level == Level::Row => {
                let name = self.variable_name(i);
                self.report(result, &messages::INDEX_RESULT, &[&shown, &name, &shown])
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j && self.head.is_bits(i) => {
                let variable = self.variable_name(self.head.part(i));
                self.report(result, &messages::BITS_RESULT, &[&shown, &shown, &variable, &shown])
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j && self.head.is_bits(j) => {
                self.report(result, &messages::NUMBER_RESULT, &[&shown, &shown, &shown])
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j && self.head.part(i) == self.head.part(j) => {
                let want = self.variable_name(j);
                match self.head.is_complex(i) {
                    true => {
                        let of = if let Expr::Binary(_) = result { format!("({shown})") } else { shown.clone() };
                        self.report(result, &messages::REAL_RESULT, &[&shown, &want, &of, &of])
                    }
                    false => self.report(result, &messages::COMPLEX_RESULT, &[&shown, &want, &shown]),
                }
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j => {
                let (has, want) = (self.variable_name(i), self.variable_name(j));
                self.report(result, &messages::MIXED_RESULT, &[&shown, &has, &want, &has])
            }
            (Certain::Element(_) | Certain::Mask(_), _) | (Certain::Rust("a `bool`"), Elem::Mask(_)) => false,
            (has, Elem::Generic(_) | Elem::Mask(_)) => self.wrong_operand(result, has),
            _ => false,
        }
    }
}

/// Whether it is `+ - * /`, or the assignment of such a result to a complex number.
fn is_arithmetic(op: &BinOp, assigns_complex: bool) -> bool {
    match op {
        BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) => true,
        BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::MulAssign(_) | BinOp::DivAssign(_) => assigns_complex,
        _ => false,
    }
}

fn is_bitwise(op: &BinOp) -> bool {
    matches!(op, BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitAndAssign(_) | BinOp::BitOrAssign(_))
}

/// Whether an operator tells masks apart: `a ^ b` is `a != b`.
pub fn compares_masks(op: &BinOp) -> bool {
    matches!(op, BinOp::BitXor(_) | BinOp::BitXorAssign(_) | BinOp::Eq(_) | BinOp::Ne(_))
}

/// The source of an expression in a message.
pub fn shown(expr: &Expr) -> String {
    if let Expr::Paren(inner) = expr {
        return shown(&inner.expr);
    }
    let tokens = expr.to_token_stream().to_string();
    let mut shown =
        tokens.replace(" . ", ".").replace("( ", "(").replace(" )", ")").replace(" (", "(").replace(" ,", ",");
    shown = shown.replace(" :: ", "::").replace("- ", "-").replace(" -", " - ").replace("* (", "*(").replace(" [", "[");
    minitensor_schema::suggestion::shortened(&shown)
}

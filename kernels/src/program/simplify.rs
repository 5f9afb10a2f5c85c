//! Rewrites that make a program numerically stable or shorter, as a table.

use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::OnceLock;

use super::{Id, Instruction, Primitive, Program, Symbol};
use crate::number::scalar::{Const, Field, Float, Num, lit};

/// A program with one output, and a better program that computes the same from the same inputs.
struct Rule {
    from: Program,
    to: Program,
}

macro_rules! rules {
    ($($x:ident $($y:ident)? : $from:expr => $to:expr;)*) => {
        vec![$(rules!(@rule $x $($y)? : $from => $to)),*]
    };
    (@rule $x:ident : $from:expr => $to:expr) => {
        Rule { from: side(&["x"], |v| { let $x = v[0]; $from }), to: side(&["x"], |v| { let $x = v[0]; $to }) }
    };
    (@rule $x:ident $y:ident : $from:expr => $to:expr) => {
        Rule {
            from: side(&["x", "y"], |v| { let ($x, $y) = (v[0], v[1]); $from }),
            to: side(&["x", "y"], |v| { let ($x, $y) = (v[0], v[1]); $to }),
        }
    };
}

fn side(names: &[&str], f: impl FnOnce(&[Symbol]) -> Symbol) -> Program {
    Program::write(names, &[], |x, _| vec![("out".to_owned(), f(x).into())])
}

/// Initializes lazy values. A process calls it before it forks: otherwise the child could wait forever for an
/// initialization that a thread of the parent had begun.
pub fn make_ready() {
    rules();
}

fn rules() -> &'static [Rule] {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let one = || lit::<Symbol>(1);
        rules! {
            x: x.exp() / (one() + x.exp()) => x.sigmoid();
            x y: x / (one() + (-y).exp()) => x * y.sigmoid();
            x: (one() + (-x).exp()).recip() => x.sigmoid();
            x: x.exp() - one() => x.expm1();
            x: (one() + x).log() => x.log1p();
            x: x.exp().log1p() => x.softplus();
            x: x.sigmoid().log() => x.log_sigmoid();
            x: -(-x).softplus() => x.log_sigmoid();
            x y: (x.exp() + y.exp()).log() => x.logaddexp(y);
            x y: (x.square() + y.square()).sqrt() => x.hypot(y);
            x y: x / y.sqrt() => x * y.rsqrt();
            x: x.sqrt().recip() => x.rsqrt();
            x: one() - x.erf() => x.erfc();
            x: lit::<Symbol>(0.5) * (-x * lit(FRAC_1_SQRT_2)).erfc() => x.normal_cdf();
            x: lit::<Symbol>(0.5) * (one() + (x * lit(FRAC_1_SQRT_2)).erf()) => x.normal_cdf();
            x: x.exp().log() => x;
            x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()) => x.tanh();
            x: x.pow(lit(2)) => x.square();
        }
    })
}

/// The maximum number of passes over all rules. Each pass but the last makes the program simpler.
const TRIES: usize = 64;

impl Program {
    /// Replaces naive expressions by functions that are accurate and don't overflow: `x / (1 + exp(-x))` becomes `x *
    /// sigmoid(x)`.
    ///
    /// ```
    /// use minitensor_kernels::{Field, lit, program::{Program, Symbol}};
    ///
    /// let naive = |x: Symbol| x / (lit::<Symbol>(1) + (-x).exp());
    /// let program = Program::write(&["x"], &[], |x, _| vec![("out".into(), naive(x[0]).into())]);
    /// assert_eq!(program.to_string(), "out = x / (1 + exp(-x))");
    /// assert_eq!(program.simplified().to_string(), "out = x * sigmoid(x)");
    /// ```
    pub fn simplified(&self) -> Program {
        let mut program = self.clone();
        for _ in 0..TRIES {
            let found = (0..program.instructions.len())
                .rev()
                .find_map(|at| rules().iter().find_map(|rule| Some((at, rule, program.matched(Id(at as u32), rule)?))));
            let Some((at, rule, bound)) = found else { break };
            program = program.replaced(at, rule, &bound);
        }
        program
    }

    /// The instructions bound to the rule's variables, if the instruction matches the rule.
    fn matched(&self, at: Id, rule: &Rule) -> Option<Vec<Id>> {
        let mut bound = vec![None; rule.from.inputs.len()];
        self.fits(at, &rule.from, rule.from.outputs[0].1, &mut bound).then(|| bound.into_iter().flatten().collect())
    }

    fn fits(&self, at: Id, rule: &Program, wanted: Id, bound: &mut Vec<Option<Id>>) -> bool {
        match (&self.instructions[at.at()], &rule.instructions[wanted.at()]) {
            (_, Instruction::Input(k)) => *bound[*k as usize].get_or_insert(at) == at,
            (Instruction::Constant(a), Instruction::Constant(b)) => number(*a) == number(*b),
            (Instruction::Apply(p, x), Instruction::Apply(q, y)) if p == q => {
                let before = bound.clone();
                let fits = |x: &[Id], bound: &mut Vec<Option<Id>>| {
                    x.iter().zip(y).all(|(a, b)| self.fits(*a, rule, *b, bound))
                };
                if fits(x, bound) {
                    return true;
                }
                *bound = before;
                matches!(p, Primitive::Add | Primitive::Multiply) && fits(&[x[1], x[0]], bound)
            }
            _ => false,
        }
    }

    /// The program with one instruction replaced according to the rule.
    fn replaced(&self, at: usize, rule: &Rule, bound: &[Id]) -> Program {
        let inputs: Vec<&str> = self.inputs.iter().map(String::as_str).collect();
        let uniforms: Vec<&str> = self.uniforms.iter().map(String::as_str).collect();
        Program::write(&inputs, &uniforms, |x, u| {
            let values = self.at_but(x, u, |k, before| {
                let bound: Vec<Symbol> = bound.iter().filter_map(|id| before.get(id.at())?.number()).collect();
                if k == at { rule.to.at(&bound, &[])?.first().copied() } else { None }
            });
            self.outputs.iter().map(|(name, _)| name.clone()).zip(values.unwrap_or_default()).collect()
        })
    }
}

fn number(value: Const) -> f64 {
    match value {
        Const::Bool(v) => f64::from(u8::from(v)),
        Const::Int(v) => v as f64,
        Const::Float(v) => v,
    }
}

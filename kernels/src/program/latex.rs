//! A program as LaTeX.

use super::Program;
use super::text::{Style, Tight, infix};
use crate::number::scalar::Const;

struct Latex;

/// Functions with their own notation: `#0`, `#1` are the arguments.
const SPELLINGS: &[(&str, &str)] = &[
    ("divide", r"\frac{#0}{#1}"),
    ("recip", r"\frac{1}{#0}"),
    ("sqrt", r"\sqrt{#0}"),
    ("cbrt", r"\sqrt[3]{#0}"),
    ("rsqrt", r"\frac{1}{\sqrt{#0}}"),
    ("exp", r"e^{#0}"),
    ("exp2", r"2^{#0}"),
    ("square", r"\left(#0\right)^2"),
    ("powi", r"\left(#0\right)^{#1}"),
    ("pow", r"\left(#0\right)^{#1}"),
    ("abs", r"\left|#0\right|"),
    ("floor", r"\left\lfloor #0\right\rfloor"),
    ("ceil", r"\left\lceil #0\right\rceil"),
    ("conj", r"\overline{#0}"),
    ("sigmoid", r"\sigma\left(#0\right)"),
    ("normal_cdf", r"\Phi\left(#0\right)"),
    ("normal_pdf", r"\varphi\left(#0\right)"),
    ("lgamma", r"\ln\left|\Gamma\left(#0\right)\right|"),
    ("digamma", r"\psi\left(#0\right)"),
    ("polygamma", r"\psi^{(#1)}\left(#0\right)"),
    ("equal", r"#0 = #1"),
    ("less", r"#0 < #1"),
    ("less_equal", r"#0 \le #1"),
    ("and", r"#0 \wedge #1"),
    ("or", r"#0 \vee #1"),
    ("not", r"\neg\left(#0\right)"),
    ("select", r"\begin{cases}#1 & #0\\#2 & \text{otherwise}\end{cases}"),
    ("epsilon", r"\varepsilon"),
    ("sum", r"\sum_i\left(#0\right)"),
    ("prod", r"\prod_i\left(#0\right)"),
    ("max", r"\max_i\left(#0\right)"),
    ("min", r"\min_i\left(#0\right)"),
    ("cumsum", r"\sum_{j \le i}\left(#0\right)"),
    ("reverse_cumsum", r"\sum_{j \ge i}\left(#0\right)"),
    ("shift", r"\left(#0\right)_{i-(#1)}"),
    ("reverse", r"\left(#0\right)_{n-1-i}"),
    ("cummax", r"\max_{j \le i}\left(#0\right)"),
    ("take", r"\left(#0\right)_{#1}"),
    ("position", r"i"),
    ("count", r"n"),
    ("detach", r"#0"),
];

/// Functions whose LaTeX command or name differs from theirs.
const COMMANDS: &[(&str, &str)] = &[
    ("log", r"\ln"),
    ("log2", r"\log_2"),
    ("log10", r"\log_{10}"),
    ("sin", r"\sin"),
    ("cos", r"\cos"),
    ("tan", r"\tan"),
    ("asin", r"\arcsin"),
    ("acos", r"\arccos"),
    ("atan", r"\arctan"),
    ("sinh", r"\sinh"),
    ("cosh", r"\cosh"),
    ("tanh", r"\tanh"),
    ("maximum", r"\max"),
    ("minimum", r"\min"),
];

fn find(table: &[(&str, &'static str)], function: &str) -> Option<&'static str> {
    table.iter().find(|(name, _)| *name == function).map(|(_, spelling)| *spelling)
}

/// True for the name of a variable or of a step, whose power needs no brackets.
fn is_name(text: &str) -> bool {
    let inner = [r"\mathrm{", "t_{"].iter().find_map(|start| text.strip_prefix(start)?.strip_suffix('}'));
    text.chars().count() == 1 || inner.is_some_and(|name| !name.contains(['{', '}']))
}

impl Style for Latex {
    fn step(&self, number: usize) -> String {
        format!("t_{{{number}}}")
    }

    fn name(&self, name: &str) -> String {
        let mut letters = name.chars();
        match (letters.next(), letters.next()) {
            (Some(_), None) => name.to_owned(),
            _ => format!(r"\mathrm{{{}}}", name.replace('_', r"\_")),
        }
    }

    fn constant(&self, value: Const) -> String {
        match value {
            Const::Bool(v) => format!(r"\text{{{v}}}"),
            Const::Int(v) => v.to_string(),
            Const::Float(v) if v.is_nan() => r"\text{NaN}".to_owned(),
            Const::Float(v) if v.is_infinite() => if v > 0.0 { r"\infty" } else { r"-\infty" }.to_owned(),
            Const::Float(v) => v.to_string(),
        }
    }

    fn bracketed(&self, inner: &str) -> String {
        format!(r"\left({inner}\right)")
    }

    fn call(&self, function: &str, x: &[(String, Tight)]) -> (String, Tight) {
        if let Some(spelling) = find(SPELLINGS, function) {
            // An argument inside a condition, a fraction or a power needs no brackets.
            let plain = x.first().filter(|(x, _)| is_name(x)).map(|_| spelling.replace(r"\left(#0\right)^", "#0^"));
            let spelling = plain.unwrap_or_else(|| spelling.to_owned());
            let fill = |text: String, (k, (x, _)): (usize, &(String, Tight))| text.replace(&format!("#{k}"), x);
            return (x.iter().enumerate().fold(spelling, fill), Tight::Atom);
        }
        match (function, x) {
            ("add", [_, _]) => infix(self, x, " + ", Tight::Sum),
            ("subtract", [_, _]) => infix(self, x, " - ", Tight::Sum),
            ("multiply" | "chain", [_, _]) => infix(self, x, r" \cdot ", Tight::Product),
            ("negative", [(x, tight)]) => {
                (format!("-{}", if *tight < Tight::Sign { self.bracketed(x) } else { x.clone() }), Tight::Sign)
            }
            _ => {
                let name = match find(COMMANDS, function) {
                    Some(command) => command.to_owned(),
                    None => format!(r"\operatorname{{{}}}", function.replace('_', r"\_")),
                };
                let x: Vec<&str> = x.iter().map(|(x, _)| x.as_str()).collect();
                (name + &self.bracketed(&x.join(", ")), Tight::Atom)
            }
        }
    }
}

impl Program {
    /// The program as LaTeX, one equation per line.
    ///
    /// ```
    /// use minitensor_kernels::{Field, program::Program};
    ///
    /// let swish = Program::write(&["x"], &[], |x, _| vec![("y".into(), (x[0] * x[0].sigmoid()).into())]);
    /// assert_eq!(swish.to_latex(), r"y = x \cdot \sigma\left(x\right)");
    /// ```
    pub fn to_latex(&self) -> String {
        let lines: Vec<_> = self.lines(&Latex).into_iter().map(|(name, y)| format!("{name} = {y}")).collect();
        lines.join(" \\\\\n")
    }
}

//! Graphs as text and for Graphviz.

use std::fmt;

use minitensor_kernels::Const;

use super::ir::{Call, Graph, Operand, Source, ValueId};

impl Graph {
    /// A value, with its dtype and shape.
    fn typed(&self, id: ValueId) -> String {
        let value = self.value(id);
        format!("%{}: {} {}", id.0, value.dtype, value.shape)
    }

    fn arguments(&self, call: &Call) -> String {
        let operand = |arg: &Operand| match arg {
            Operand::None => "None".to_owned(),
            Operand::Number(Const::Bool(value)) => value.to_string(),
            Operand::Number(Const::Int(value)) => value.to_string(),
            Operand::Number(Const::Float(value)) => format!("{value:?}"),
            Operand::Value(id) => format!("%{}", id.0),
        };
        let set = |at: usize| call.numbers.as_ref().is_some_and(|(positions, _)| positions.contains(&at));
        let attr = |(at, (a, v)): (usize, (&crate::op::Attribute, &crate::Attr))| match set(at) {
            true => format!("{}=…", a.name),
            false => format!("{}={v}", a.name),
        };
        let attrs = call.op.attrs.iter().zip(&call.attrs).enumerate().map(attr);
        call.args.iter().map(operand).chain(attrs).collect::<Vec<_>>().join(", ")
    }

    /// The graph in the language of Graphviz: `dot -Tsvg`.
    pub fn to_dot(&self) -> String {
        let mut lines = vec!["digraph {".to_owned(), "  node [shape=box]".to_owned()];
        for (at, value) in self.values.iter().enumerate() {
            if let Some(name) = name(&value.source) {
                lines.push(format!("  v{at} [label=\"{name}\\n{} {}\", shape=ellipse]", value.dtype, value.shape));
            }
        }
        for (at, call) in self.calls.iter().enumerate() {
            lines.push(format!("  c{at} [label=\"{}\"]", call.op.name));
            lines.extend(call.reads().map(|id| format!("  v{} -> c{at}", id.0)));
            for id in call.computes() {
                let value = self.value(id);
                lines.push(format!("  v{} [label=\"{} {}\", shape=plain]", id.0, value.dtype, value.shape));
                lines.push(format!("  c{at} -> v{}", id.0));
            }
        }
        lines.extend(self.outputs.iter().enumerate().map(|(k, id)| format!("  v{} -> out{k}", id.0)));
        lines.push("}".to_owned());
        lines.join("\n")
    }
}

/// The kind of a value that no call computes.
fn name(source: &Source) -> Option<&'static str> {
    match source {
        Source::Input(_) => Some("input"),
        Source::Captured(_) => Some("captured"),
        Source::Constant(_) => Some("constant"),
        Source::Gradient(_) | Source::GradientOf(_) => Some("gradient"),
        Source::Key(..) => Some("key"),
        Source::Computed => None,
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, value) in self.values.iter().enumerate() {
            if let Some(name) = name(&value.source) {
                writeln!(f, "{name} {}", self.typed(ValueId(at as u32)))?;
            }
        }
        for call in &self.calls {
            let results: Vec<_> = call.computes().map(|id| self.typed(id)).collect();
            let results = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
            writeln!(f, "{results}{}({})", call.op.name, self.arguments(call))?;
            if call.op.name.starts_with("fused(") {
                let program = call.op.program(&call.attrs, |_| true).ok().flatten().map(|program| program.to_string());
                for line in program.as_deref().unwrap_or(&call.op.doc).lines() {
                    writeln!(f, "    {line}")?;
                }
            }
        }
        let outputs: Vec<_> = self.outputs.iter().map(|id| format!("%{}", id.0)).collect();
        write!(f, "return {}", outputs.join(", "))
    }
}

//! Checks that a list of nodes is a valid program.

use std::fmt;

use super::{Kind, Node, Program};

/// The maximum number of nodes in a program. Later algorithms are quadratic in it in the worst case.
const MOST: usize = 1 << 14;

/// The error of an invalid program, with the place of the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub(super) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid program: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl Program {
    /// Checks that every node uses only earlier nodes, of the right kind and number, that all inputs, uniforms and
    /// outputs exist, and that names are unique. Programs from [`Program::write`] are valid; deserialized ones may not
    /// be.
    pub fn verify(&self) -> Result<(), Malformed> {
        if self.nodes.len() > MOST {
            return Err(Malformed(format!("it has {} nodes, at most {MOST} are allowed", self.nodes.len())));
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let wrong = |what: String| Err(Malformed(format!("node {at} {what}")));
            match node {
                Node::Input(k) if *k as usize >= self.inputs.len() => {
                    return wrong(format!("refers to input {k}, but the number of inputs is {}", self.inputs.len()));
                }
                Node::Uniform(k) if *k as usize >= self.uniforms.len() => {
                    return wrong(format!(
                        "refers to uniform {k}, but the number of uniforms is {}",
                        self.uniforms.len()
                    ));
                }
                Node::Apply(p, x) if x.len() != p.arity() => {
                    return wrong(format!("passes {} arguments to '{}', which takes {}", x.len(), p.name(), p.arity()));
                }
                _ => {}
            }
            for (id, kind) in node.operands() {
                if id.at() >= at {
                    return wrong(format!("uses node {}, which doesn't precede it", id.0));
                }
                if self.nodes[id.at()].kind() != kind {
                    let (is, wants) = if kind == Kind::Number {
                        ("a truth value", "a number")
                    } else {
                        ("a number", "a truth value")
                    };
                    return wrong(format!("uses node {}, {is}, as {wants}", id.0));
                }
            }
        }
        for (name, id) in &self.outputs {
            if id.at() >= self.nodes.len() {
                return Err(Malformed(format!(
                    "output '{name}' refers to node {}, but the number of nodes is {}",
                    id.0,
                    self.nodes.len()
                )));
            }
        }
        let arguments: Vec<&str> = self.inputs.iter().chain(&self.uniforms).map(String::as_str).collect();
        let results: Vec<&str> = self.outputs.iter().map(|(name, _)| name.as_str()).collect();
        for (mut names, what) in [(arguments, "inputs"), (results, "outputs")] {
            names.sort_unstable();
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Malformed(format!("two {what} have the name '{}'", pair[0])));
            }
        }
        Ok(())
    }
}

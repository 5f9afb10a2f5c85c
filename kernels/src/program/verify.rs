//! Checks that a list of instructions is a valid program.

use std::fmt;

use super::{Instruction, Program, ValueType};
use crate::row::RowFunction;

/// The maximum number of instructions in a program. In the worst case, other algorithms take quadratic time.
const MOST: usize = 1 << 14;

/// The maximum number of instructions that are recorded, including those that no output needs.
pub(super) const MOST_STEPS: usize = 16 * MOST;

/// The error for an invalid program. It names the invalid part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub(super) String);

impl Malformed {
    #[cold]
    pub(super) fn too_long(what: fmt::Arguments<'_>) -> Malformed {
        Malformed(format!(
            "it {what}, at most {MOST} are allowed; reduce the number of turns of its loops, or write it for cells"
        ))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid program: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl Program {
    /// Checks that every instruction has the right number of operands, and that they are earlier instructions of the
    /// right type. Checks that all inputs, uniforms and outputs exist, and that names are unique. Programs from
    /// [`Program::write`] are valid; programs that are read from a text may not be.
    pub fn verify(&self) -> Result<(), Malformed> {
        if self.instructions.len() > MOST {
            return Err(Malformed::too_long(format_args!("has {} nodes", self.instructions.len())));
        }
        for (at, instruction) in self.instructions.iter().enumerate() {
            let malformed = |fault: String| Err(Malformed(format!("node {at} {fault}")));
            match instruction {
                Instruction::Input(k) if *k as usize >= self.inputs.len() => {
                    return malformed(format!(
                        "refers to input {k}, but the number of inputs is {}",
                        self.inputs.len()
                    ));
                }
                Instruction::Uniform(k) if *k as usize >= self.uniforms.len() => {
                    return malformed(format!(
                        "refers to uniform {k}, but the number of uniforms is {}",
                        self.uniforms.len()
                    ));
                }
                Instruction::Apply(p, x) if x.len() != p.arity() => {
                    let (name, arity, given) = (p.name(), p.arity(), x.len());
                    return malformed(format!("has a wrong number of operands: '{name}' takes {arity}, got {given}"));
                }
                Instruction::Row(RowFunction::Scan(scan), x) if x.len() == scan.arity() => {
                    scan.verify().or_else(|fault| malformed(format!("has an invalid step of a scan: {}", fault.0)))?;
                }
                Instruction::Row(f, x) if x.len() != f.arity() => {
                    let (name, arity, given) = (f.name(), f.arity(), x.len());
                    return malformed(format!("has a wrong number of operands: '{name}' takes {arity}, got {given}"));
                }
                _ => {}
            }
            for (id, kind) in instruction.operands() {
                if id.at() >= at {
                    return malformed(format!("uses node {}, which doesn't precede it", id.0));
                }
                if self.instructions[id.at()].kind() != kind {
                    let (is, expected) = if kind == ValueType::Number {
                        ("a truth value", "a number")
                    } else {
                        ("a number", "a truth value")
                    };
                    return malformed(format!("uses node {}, which is {is}, as {expected}", id.0));
                }
            }
        }
        for (name, id) in &self.outputs {
            if id.at() >= self.instructions.len() {
                return Err(Malformed(format!(
                    "output '{name}' refers to node {}, but the number of nodes is {}",
                    id.0,
                    self.instructions.len()
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

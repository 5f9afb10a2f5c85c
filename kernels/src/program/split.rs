//! Splits a program over numbers of several types into one program for each type. Only truth values pass from one to another.

use super::{Id, Instruction, Primitive, Program, ValueType};

/// The program for the numbers of one type.
#[derive(Clone, Debug)]
pub struct Part {
    /// The program. It takes `inputs`, then `takes`, and returns `outputs`, then `gives`.
    pub program: Program,
    /// The type of its numbers.
    pub of: usize,
    /// The inputs of the whole program that it takes.
    pub inputs: Vec<usize>,
    /// The outputs of the whole program that it returns.
    pub outputs: Vec<usize>,
    /// The truth values of earlier parts that it takes.
    pub takes: Vec<usize>,
    /// The truth values that it returns for later parts.
    pub gives: Vec<usize>,
}

/// Programs that together compute what one over numbers of several types does.
#[derive(Clone, Debug)]
pub struct Split {
    /// One program for each type, in the order in which they run.
    pub parts: Vec<Part>,
    /// The number of truth values that pass between them.
    pub masks: usize,
}

/// Where an instruction is computed. The bit `1 << k` stands for the part that runs in place `k`.
#[derive(Clone, Copy, Default)]
struct Need {
    /// The parts that compute it.
    by: u32,
    /// The parts that take it, a truth value, from the part of its type.
    passes: u32,
}

impl Need {
    fn is_by(self, part: usize) -> bool {
        self.by >> part & 1 == 1
    }

    fn passes_to(self, part: usize) -> bool {
        self.passes >> part & 1 == 1
    }
}

/// A split in which the parts run in this order of their types.
struct Ordered<'a> {
    program: &'a Program,
    order: &'a [usize],
    /// For each instruction, the part of the numbers that it computes or compares; `None` if any part can compute it.
    parts: Vec<Option<usize>>,
    inputs: Vec<Option<usize>>,
    /// Truth values are returned by the last part.
    outputs: Vec<usize>,
}

impl Program {
    /// Splits a program with numbers of `count` types. `inputs` and `outputs` are their types; `None` for truth values. Uniforms are of
    /// type 0. `None` if the types do not fit together, or if types need truth values of each other.
    pub fn split(&self, count: usize, inputs: &[Option<usize>], outputs: &[Option<usize>]) -> Option<Split> {
        if inputs.len() != self.inputs.len() || outputs.len() != self.outputs.len() {
            return None;
        }
        let types = self.types(inputs)?;
        orders(count).iter().find_map(|order| {
            let part = |of: Option<usize>| of.and_then(|of| order.iter().position(|other| *other == of));
            let parts = |types: &[Option<usize>]| types.iter().map(|of| part(*of)).collect::<Vec<_>>();
            let outputs = parts(outputs).into_iter().map(|part| part.unwrap_or(count - 1)).collect();
            Ordered { program: self, order, parts: parts(&types), inputs: parts(inputs), outputs }.split()
        })
    }

    /// For each instruction, the type of the numbers that it computes or compares; `None` if they may be of any.
    fn types(&self, inputs: &[Option<usize>]) -> Option<Vec<Option<usize>>> {
        let mut types: Vec<Option<usize>> = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            let own = match instruction {
                Instruction::Input(k) => inputs[*k as usize],
                Instruction::Uniform(_) => Some(0),
                _ => None,
            };
            let numbers = instruction.operands().into_iter().filter(|(_, kind)| *kind == ValueType::Number);
            let mut found = own;
            for (id, _) in numbers {
                match (found, types[id.at()]) {
                    (Some(a), Some(b)) if a != b => return None,
                    (a, b) => found = a.or(b),
                }
            }
            types.push(found);
        }
        Some(types)
    }
}

/// All orders of `count` types.
fn orders(count: usize) -> Vec<Vec<usize>> {
    (0..count).fold(vec![vec![]], |orders, last| {
        let with =
            |order: Vec<usize>| (0..=order.len()).rev().map(move |at| [&order[..at], &[last], &order[at..]].concat());
        orders.into_iter().flat_map(with).collect()
    })
}

impl Ordered<'_> {
    /// `None` if a part needs a truth value of a later one.
    fn split(&self) -> Option<Split> {
        let needs = self.needs()?;
        let passed: Vec<usize> = (0..needs.len()).filter(|at| needs[*at].passes != 0).collect();
        let parts = (0..self.order.len()).map(|part| self.part(part, &needs, &passed)).collect();
        Some(Split { parts, masks: passed.len() })
    }

    /// What each part computes, from the part of each output.
    fn needs(&self) -> Option<Vec<Need>> {
        let instructions = &self.program.instructions;
        let mut needs = vec![Need::default(); instructions.len()];
        for ((_, id), part) in self.program.outputs.iter().zip(&self.outputs) {
            needs[id.at()].by |= 1 << part;
        }
        for (at, instruction) in instructions.iter().enumerate().rev() {
            if let Some(own) = self.parts[at] {
                let others = needs[at].by & !(1 << own);
                // Only a truth value passes, and only to later parts.
                if others != 0 && (instruction.kind() != ValueType::Mask || others.trailing_zeros() < own as u32) {
                    return None;
                }
                needs[at] = Need { by: if needs[at].by == 0 { 0 } else { 1 << own }, passes: others };
            }
            let by = needs[at].by;
            instruction.operands().into_iter().for_each(|(id, _)| needs[id.at()].by |= by);
        }
        Some(needs)
    }

    fn part(&self, part: usize, needs: &[Need], passed: &[usize]) -> Part {
        let program = self.program;
        let inputs: Vec<usize> =
            (0..self.inputs.len()).filter(|k| self.inputs[*k].is_none_or(|own| own == part)).collect();
        let outputs: Vec<usize> = (0..self.outputs.len()).filter(|k| self.outputs[*k] == part).collect();
        let masks = |is: &dyn Fn(usize) -> bool| (0..passed.len()).filter(|k| is(passed[*k])).collect::<Vec<_>>();
        let takes = masks(&|at| needs[at].passes_to(part));
        let gives = masks(&|at| self.parts[at] == Some(part));
        let mut instructions: Vec<Instruction> = Vec::new();
        let mut places: Vec<Id> = Vec::with_capacity(program.instructions.len());
        let mut push = |instruction: Instruction| {
            instructions.push(instruction);
            Id(instructions.len() as u32 - 1)
        };
        for (at, instruction) in program.instructions.iter().enumerate() {
            places.push(match instruction {
                _ if needs[at].passes_to(part) => {
                    let k = inputs.len() + takes.iter().position(|k| passed[*k] == at).unwrap_or_default();
                    let mask = push(Instruction::Input(k as u32));
                    push(Instruction::apply(Primitive::Truthy, &[mask]))
                }
                // Nothing refers to it.
                _ if !needs[at].is_by(part) => Id(u32::MAX),
                Instruction::Input(k) => {
                    push(Instruction::Input(inputs.binary_search(&(*k as usize)).unwrap_or_default() as u32))
                }
                other => push(other.clone().moved(|id| places[id.at()])),
            });
        }
        let name = |k: &usize| format!("truth {k}");
        let given = outputs.iter().map(|k| &program.outputs[*k]).map(|(name, id)| (name.clone(), places[id.at()]));
        let passes = gives.iter().map(|k| (name(k), places[passed[*k]]));
        let program = Program {
            inputs: inputs.iter().map(|k| program.inputs[*k].clone()).chain(takes.iter().map(name)).collect(),
            uniforms: if self.order[part] == 0 { program.uniforms.clone() } else { vec![] },
            outputs: given.chain(passes).collect(),
            instructions,
        };
        Part { program, of: self.order[part], inputs, outputs, takes, gives }
    }
}

//! Splits a program over numbers of two types into two programs. Only truth values pass from one to the other.

use super::{Id, Instruction, Primitive, Program, ValueType};

/// One of the two programs.
#[derive(Clone, Debug)]
pub struct Part {
    /// The program.
    pub program: Program,
    /// The inputs of the whole program that it takes. The second program then takes the truth values of the first.
    pub inputs: Vec<usize>,
    /// The outputs of the whole program that it returns. The first program then returns the truth values for the second.
    pub outputs: Vec<usize>,
}

/// Two programs that compute what one over numbers of two types does.
#[derive(Clone, Debug)]
pub struct Split {
    /// The programs, in the order in which they run.
    pub parts: [Part; 2],
    /// For each part, whether its numbers are of the second type.
    pub is_second: [bool; 2],
    /// The number of truth values that pass from one to the other.
    pub masks: usize,
}

/// Where an instruction is computed.
#[derive(Clone, Copy, Default)]
struct Need {
    /// In each of the two programs.
    by: [bool; 2],
    /// Whether it is a truth value that the first program returns for the second.
    passes: bool,
}

impl Program {
    /// Splits a program. `inputs` and `outputs` are their types; `None` for truth values. Uniforms are of the first type. `None` if the
    /// types do not fit together, or if each type needs truth values of the other.
    pub fn split(&self, inputs: &[Option<bool>], outputs: &[Option<bool>]) -> Option<Split> {
        if inputs.len() != self.inputs.len() || outputs.len() != self.outputs.len() {
            return None;
        }
        let types = self.types(inputs)?;
        [[true, false], [false, true]].into_iter().find_map(|order| self.split_in(order, &types, inputs, outputs))
    }

    /// For each instruction, whether its numbers, or those that it compares, are of the second type; `None` if they may be of any.
    fn types(&self, inputs: &[Option<bool>]) -> Option<Vec<Option<bool>>> {
        let mut types: Vec<Option<bool>> = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            let own = match instruction {
                Instruction::Input(k) => inputs[*k as usize],
                Instruction::Uniform(_) => Some(false),
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

    fn split_in(
        &self,
        is_second: [bool; 2],
        types: &[Option<bool>],
        inputs: &[Option<bool>],
        outputs: &[Option<bool>],
    ) -> Option<Split> {
        let part_of = |of: Option<bool>| of.map(|of| usize::from(of != is_second[0]));
        let needs = self
            .needs(&outputs.iter().map(|of| part_of(*of).unwrap_or(1)).collect::<Vec<_>>(), |at| part_of(types[at]))?;
        let passed: Vec<usize> = (0..needs.len()).filter(|at| needs[*at].passes).collect();
        let part = |which: usize| {
            let takes = |k: &usize| part_of(inputs[*k]).is_none_or(|part| part == which);
            let gives = |k: &usize| part_of(outputs[*k]).unwrap_or(1) == which;
            let inputs: Vec<usize> = (0..inputs.len()).filter(takes).collect();
            let outputs: Vec<usize> = (0..outputs.len()).filter(gives).collect();
            let program = self.part(which, &needs, &passed, &inputs, &outputs, is_second[which]);
            Part { program, inputs, outputs }
        };
        Some(Split { parts: [part(0), part(1)], is_second, masks: passed.len() })
    }

    /// What each program computes, from the program of each output. `None` if the first needs a truth value of the second.
    fn needs(&self, outputs: &[usize], part_of: impl Fn(usize) -> Option<usize>) -> Option<Vec<Need>> {
        let mut needs = vec![Need::default(); self.instructions.len()];
        for ((_, id), part) in self.outputs.iter().zip(outputs) {
            needs[id.at()].by[*part] = true;
        }
        for (at, instruction) in self.instructions.iter().enumerate().rev() {
            let own = part_of(at);
            let is_test = instruction.kind() == ValueType::Mask;
            for part in 0..2 {
                match own {
                    _ if !needs[at].by[part] => continue,
                    Some(own) if own != part => {
                        // Only a truth value passes, and only to the second program.
                        if !is_test || part == 0 {
                            return None;
                        }
                        needs[at].passes = true;
                        needs[at].by = [true, false];
                    }
                    _ => {}
                }
            }
            let by = needs[at].by;
            for (id, _) in instruction.operands() {
                (0..2).filter(|part| by[*part]).for_each(|part| needs[id.at()].by[part] = true);
            }
        }
        Some(needs)
    }

    fn part(
        &self,
        which: usize,
        needs: &[Need],
        passed: &[usize],
        inputs: &[usize],
        outputs: &[usize],
        is_second: bool,
    ) -> Program {
        let masks = || (0..passed.len()).map(|k| format!("truth {k}"));
        let names = inputs.iter().map(|k| self.inputs[*k].clone());
        let mut instructions: Vec<Instruction> = Vec::new();
        let mut places: Vec<Id> = Vec::with_capacity(self.instructions.len());
        let mut push = |instruction: Instruction| {
            instructions.push(instruction);
            Id(instructions.len() as u32 - 1)
        };
        for (at, instruction) in self.instructions.iter().enumerate() {
            places.push(match instruction {
                _ if which == 1 && needs[at].passes => {
                    let k = inputs.len() + passed.binary_search(&at).unwrap_or_default();
                    let mask = push(Instruction::Input(k as u32));
                    push(Instruction::apply(Primitive::Truthy, &[mask]))
                }
                // Nothing refers to it.
                _ if !needs[at].by[which] => Id(u32::MAX),
                Instruction::Input(k) => {
                    push(Instruction::Input(inputs.binary_search(&(*k as usize)).unwrap_or_default() as u32))
                }
                other => push(other.clone().moved(|id| places[id.at()])),
            });
        }
        let given = outputs.iter().map(|k| &self.outputs[*k]).map(|(name, id)| (name.clone(), places[id.at()]));
        let passes = passed.iter().zip(masks()).filter(|_| which == 0).map(|(at, name)| (name, places[*at]));
        Program {
            inputs: names.chain(masks().filter(|_| which == 1)).collect(),
            uniforms: if is_second { vec![] } else { self.uniforms.clone() },
            outputs: given.chain(passes).collect(),
            instructions,
        }
    }
}

//! The op of a program whose detached values have inputs of their own, which is the function that its gradient differentiates.

use std::sync::Arc;

use crate::attr::Attr;
use crate::error::Result;
use crate::op::Gradients;
use crate::op::def::*;
use crate::op::kernel::{KernelTable, Kernels};
use crate::op::program::ProgramFn;
use crate::op::variants::{Choice, Variants};

impl OpDef {
    /// The op for the program of a call, with twice as many inputs: the detached values are computed from the second half. `None` if the op
    /// has no program, or nothing is detached.
    pub(crate) fn with_detached_apart(
        &self,
        attrs: &[Attr],
        is_given: impl Fn(usize) -> bool,
    ) -> Result<Option<OpRef>> {
        let Some(program) = self.program(attrs, &is_given)? else { return Ok(None) };
        let ProgramArguments { inputs, numbers, positions, .. } = self.program_arguments();
        let program = program.with_numbers_as_inputs(&inputs, &[numbers, positions].concat());
        let Some(program) = program.with_detached_apart() else { return Ok(None) };
        let mut op = OpDef {
            inputs: self.inputs.iter().chain(self.inputs.iter()).cloned().collect(),
            backward: Backward::Program(Gradients::new()),
            combine: None,
            properties: List::Borrowed(&[]),
            ..self.clone()
        };
        op.inputs.to_mut().iter_mut().zip(program.inputs()).for_each(|(input, name)| input.name = name.clone().into());
        if let ShapeRule::Core(rule) = &mut op.shape {
            rule.inputs = rule.inputs.iter().chain(rule.inputs.iter()).cloned().collect();
        }
        let given = (0..self.inputs.len()).map(is_given).collect::<Vec<_>>().repeat(2);
        let choice = Choice { attrs: attrs[..self.own_attrs(attrs.len())].into(), given: given.into() };
        (op.body, op.kernels) = match op.shape {
            ShapeRule::Core(_) => {
                let rows = Arc::new(Variants::new(&op, (choice, program), None)?);
                (Body::Cell(Some(ProgramFn::Rows(rows.clone()))), KernelTable::cpu(Kernels::Rows(rows)))
            }
            _ => {
                let elements = Arc::new(Variants::new(&op, (choice, program), None)?);
                (
                    Body::Element(Some(ProgramFn::Elements(elements.clone()))),
                    KernelTable::cpu(Kernels::Programs(elements)),
                )
            }
        };
        Ok(Some(OpRef::Shared(Arc::new(op))))
    }
}

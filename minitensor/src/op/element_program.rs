//! [`ElementProgram`]: a program as a loop over elements.

use minitensor_kernels::program::{Plan, Program};

use super::def::{DTypeRule, OpDef};
use super::program::dtypes_of_elements;
use super::variants::Prepared;
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};

/// The kernel of an element op that a program computes.
#[derive(Debug)]
pub struct ElementProgram {
    /// The plan.
    pub plan: Plan,
    dtypes: DTypeSet,
}

impl Prepared for ElementProgram {
    fn of_inputs(_: &OpDef, program: Program) -> Program {
        program
    }

    fn new(op: &OpDef, program: Program) -> Result<ElementProgram> {
        let is_mask = |i: &usize| op.inputs[*i].dtype == DTypeRule::Fixed(DType::Bool);
        let masks: Vec<usize> = (0..op.inputs.len()).filter(is_mask).collect();
        let dtypes = dtypes_of_elements(&program)?;
        Ok(ElementProgram { plan: Plan::new(program, &masks).map_err(|e| Error::value(e.to_string()))?, dtypes })
    }

    fn program(&self) -> &Program {
        self.plan.program()
    }

    fn dtypes(&self) -> DTypeSet {
        self.dtypes
    }
}

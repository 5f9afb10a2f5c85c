//! [`ElementProgram`]: a program as a loop over elements.

use std::sync::Arc;

use minitensor_kernels::program::{Part, Plan, Program, Split, Storage};
use smallvec::{SmallVec, smallvec};

use super::def::{DTypeRule, OpDef};
use super::program::dtypes_of_elements;
use super::variants::Prepared;
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use minitensor_kernels::Kept;

/// The kernel of an element op that a program computes.
#[derive(Debug)]
pub struct ElementProgram {
    /// The plan of the whole program.
    pub plan: Plan,
    /// The parts that compute an op with several dtype variables, instead of the plan.
    pub parts: Option<Parts>,
    /// The same plan for inputs and outputs that are stored in other ways.
    stored: Kept<SmallVec<[Storage; 8]>, Plan>,
    dtypes: SmallVec<[DTypeSet; 2]>,
}

/// The parts of a program with numbers of several dtypes.
#[derive(Debug)]
pub struct Parts {
    /// The parts.
    pub split: Split,
    /// Their plans.
    pub plans: Vec<Plan>,
}

impl Prepared for ElementProgram {
    fn of_inputs(_: &OpDef, program: Program) -> Program {
        program
    }

    fn new(op: &OpDef, program: Program) -> Result<ElementProgram> {
        let split = split(op, &program)?;
        let dtypes = dtypes_of(&program, split.as_ref())?;
        let plan =
            |program: Program, masks: Vec<usize>| Plan::new(program, &masks).map_err(|e| Error::value(e.to_string()));
        let parts = split.map(|split| {
            let of_part = |Part { program, inputs, .. }: &Part| {
                let own = (0..inputs.len()).filter(|k| is_mask(op, inputs[*k]));
                plan(program.clone(), own.chain(inputs.len()..program.inputs().len()).collect())
            };
            let plans = split.parts.iter().map(of_part).collect::<Result<_>>()?;
            Ok::<_, Error>(Parts { split, plans })
        });
        let plan = plan(program, masks_of(op))?;
        Ok(ElementProgram { plan, parts: parts.transpose()?, stored: Kept::new(), dtypes })
    }

    fn program(&self) -> &Program {
        self.plan.program()
    }

    fn dtypes(&self) -> &[DTypeSet] {
        &self.dtypes
    }
}

impl ElementProgram {
    /// The plan for inputs and outputs that are stored so, of an op with one dtype variable. Only machine code runs it. `of_reals` is the
    /// program for real numbers, if it is another one.
    pub fn stored(
        &self,
        op: &OpDef,
        storage: &[Storage],
        of_reals: impl FnOnce() -> Option<Program>,
    ) -> Option<Arc<Plan>> {
        if self.parts.is_some() {
            return None;
        }
        if let Some(plan) = self.stored.find(|known| known[..] == *storage) {
            return Some(plan.clone());
        }
        let (inputs, outputs) = storage.split_at(op.inputs.len());
        let program = of_reals().unwrap_or_else(|| self.plan.program().clone());
        let plan = Plan::new(program, &masks_of(op)).ok()?.stored(inputs.into(), outputs.into());
        let plan = Arc::new(plan);
        self.stored.keep(storage.into(), plan.clone());
        Some(plan)
    }
}

/// Whether an input is truth values.
fn is_mask(op: &OpDef, input: usize) -> bool {
    op.inputs[input].dtype == DTypeRule::Fixed(DType::Bool)
}

/// The inputs that are truth values.
fn masks_of(op: &OpDef) -> Vec<usize> {
    (0..op.inputs.len()).filter(|i| is_mask(op, *i)).collect()
}

/// The dtypes at which a program of an element op runs, for each dtype variable of the op.
pub fn dtypes_of_variables(op: &OpDef, program: &Program) -> Result<SmallVec<[DTypeSet; 2]>> {
    dtypes_of(program, split(op, program)?.as_ref())
}

fn dtypes_of(program: &Program, split: Option<&Split>) -> Result<SmallVec<[DTypeSet; 2]>> {
    let Some(Split { parts, .. }) = split else { return Ok(smallvec![dtypes_of_elements(program)?]) };
    let mut dtypes = smallvec![DTypeSet::of(&[]); parts.len()];
    for part in parts {
        dtypes[part.of] = dtypes_of_elements(&part.program)?;
    }
    Ok(dtypes)
}

/// The parts of a program of an op with several dtype variables; `None` if it has one.
fn split(op: &OpDef, program: &Program) -> Result<Option<Split>> {
    let count = op.generics.len();
    if count == 1 {
        return Ok(None);
    }
    let variable = |rule: DTypeRule| if let DTypeRule::Generic(g) = rule { Some(usize::from(g)) } else { None };
    let inputs: Vec<Option<usize>> = op.inputs.iter().map(|input| variable(input.dtype)).collect();
    let outputs: Vec<Option<usize>> = op.outputs.iter().map(|output| variable(output.dtype)).collect();
    program.split(count, &inputs, &outputs).map(Some).ok_or_else(|| {
        Error::value(
            "numbers of its dtype variables meet in its program, or two of them depend on conditions of each other",
        )
    })
}

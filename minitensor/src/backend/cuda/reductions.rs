//! Reductions whose definitions are loops of the CPU, as programs over rows.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use minitensor_kernels::program::{Program, Symbol};
use minitensor_kernels::row::Reduction;
use minitensor_kernels::{Const, Element, RealRow};

use super::{CUDA, rows};
use crate::backend::programs::{ProgramCall, RowOutput, RowsOfCall};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{ArrayKernel, KernelCall, KernelEntry, Kernels};
use crate::tensor::Shape;

/// A program over rows with one input, which returns a number.
type Reduce = fn(Symbol) -> Symbol;

fn number(value: i64) -> Symbol {
    Symbol::constant(Const::Int(value.into()))
}

/// 1 for a number that is true, else 0.
fn is_true(x: Symbol) -> Symbol {
    Symbol::select(x.truthy(), number(1), number(0))
}

/// The first position of an element that is equal to `best`, or of a NaN.
fn first(x: Symbol, best: Symbol) -> Symbol {
    let is_best = x.equal(best) | !x.equal(x);
    Symbol::select(is_best, x.position(), x.count()).reduce(Reduction::Min)
}

/// The dtypes of the elements, and the dtype that the program computes in.
const OWN_INTEGERS: &[(DType, DType)] = &[
    (DType::I8, DType::I8),
    (DType::I16, DType::I16),
    (DType::I32, DType::I32),
    (DType::I64, DType::I64),
    (DType::U8, DType::U8),
    (DType::U16, DType::U16),
    (DType::U32, DType::U32),
    (DType::U64, DType::U64),
];
const OWN: &[(DType, DType)] = &[
    (DType::F16, DType::F32),
    (DType::Bf16, DType::F32),
    (DType::F32, DType::F32),
    (DType::F64, DType::F64),
    (DType::I64, DType::I64),
    (DType::U64, DType::U64),
];
/// Positions are exact.
const WIDE: &[(DType, DType)] = &[
    (DType::F16, DType::F64),
    (DType::Bf16, DType::F64),
    (DType::F32, DType::F64),
    (DType::F64, DType::F64),
    (DType::I8, DType::I64),
    (DType::I16, DType::I64),
    (DType::I32, DType::I64),
    (DType::I64, DType::I64),
    (DType::U8, DType::I64),
    (DType::U16, DType::I64),
    (DType::U32, DType::I64),
    (DType::U64, DType::U64),
    (DType::Bool, DType::I64),
];

/// The kernels of a reduction.
fn kernels(program: &'static LazyLock<Arc<Program>>, dtypes: &[(DType, DType)]) -> Kernels {
    let kernel = |(dtype, compute): &(DType, DType)| {
        let compute = *compute;
        let run: ArrayKernel = Arc::new(move |call: &KernelCall<'_>| run(program, compute, call));
        (vec![*dtype], run)
    };
    Kernels::Arrays(dtypes.iter().map(kernel).collect())
}

fn run(program: &LazyLock<Arc<Program>>, dtype: DType, call: &KernelCall<'_>) -> Result<()> {
    let (Some(x), Some(out)) = (call.inputs[0], call.outputs[0]) else { return Ok(()) };
    let owner: Arc<dyn Any + Send + Sync> = Arc::clone(program) as _;
    let batch: Shape = x.shape()[..x.ndim() - 1].into();
    let program_call =
        ProgramCall { op: &call.op.name, program, owner: &owner, dtype, masks: &[], device: x.device(), uniforms: &[] };
    let arguments = RowsOfCall {
        batch: &batch,
        count: x.shape()[x.ndim() - 1],
        inputs: &[Some(x.clone())],
        numbers: &[],
        positions: 0,
        outputs: &[Some((out.clone(), RowOutput { is_row: false, is_shared: false }))],
    };
    match rows::run(CUDA.device(x.device().index())?, &program_call, &arguments)? {
        true => Ok(()),
        false => {
            Err(Error::not_implemented(format!("op '{}' has no kernel for {dtype} on device 'cuda'", call.op.name)))
        }
    }
}

macro_rules! reductions {
    ($($name:literal $dtypes:ident $program:expr;)*) => {$(
        inventory::submit! {
            KernelEntry {
                op: $name,
                device: "cuda",
                kernels: || {
                    static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
                        let reduce: Reduce = $program;
                        Arc::new(Program::write(&["x"], &[], |x, _| vec![("out".into(), reduce(x[0]).into())]))
                    });
                    kernels(&PROGRAM, $dtypes)
                },
            }
        }
    )*};
}
reductions! {
    "sum" OWN_INTEGERS |x| x.sum();
    "prod" OWN |x| x.reduce(Reduction::Prod);
    "max" OWN_INTEGERS |x| x.max();
    "min" OWN_INTEGERS |x| x.min();
    "any" WIDE |x| is_true(x).sum();
    "all" WIDE |x| is_true(x).min();
    "count_nonzero" WIDE |x| is_true(x).sum();
    "argmax" WIDE |x| first(x, x.max());
    "argmin" WIDE |x| first(x, x.min());
}

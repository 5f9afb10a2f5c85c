//! [`Call`]: a call of a cell body, its results, and their places.

use smallvec::SmallVec;

use super::operand::CellOperand;
use crate::attr::Attr;
use crate::backend::Wanted;
use crate::backend::shapes::CallShapes;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::{CoreShapes, Dims};
use crate::op::{CellKernel, DTypeRule, Kernel, Kernels, OpDef, Role};
use crate::tensor::{Device, DeviceKind, Tensor};

pub type Results = SmallVec<[Option<Tensor>; 1]>;

pub struct Call<'a> {
    pub op: &'a OpDef,
    pub shapes: &'a CallShapes,
    pub rule: &'a CoreShapes,
    pub inputs: &'a [Option<&'a Tensor>],
    pub attrs: &'a [Attr],
    pub dtypes: &'a DTypes,
}

impl<'a> Call<'a> {
    /// The dtypes in which the body computes.
    pub fn compute(&self) -> SmallVec<[DType; 2]> {
        let of = if self.is_of_integer_rows() { DType::of_rows } else { DType::compute };
        self.dtypes.iter().map(|d| of(*d)).collect()
    }

    /// The dtype in which the body computes a tensor, from those of the dtype variables.
    pub fn computed(t: &Tensor, rule: DTypeRule, compute: &[DType]) -> DType {
        if let DTypeRule::Generic(g) = rule { compute[usize::from(g)] } else { t.dtype().compute() }
    }

    /// Whether a program computes rows of integers. If there are compiled loops for them, the program computes only floats.
    fn is_of_integer_rows(&self) -> bool {
        let kernels = || self.op.kernels_on(DeviceKind::Cpu);
        matches!(self.dtypes[..], [dtype] if dtype.is_integer())
            && kernels().any(|k| matches!(k, Kernels::Rows(_)))
            && !kernels().any(|k| k.cell(self.dtypes).is_some())
    }

    /// Memory for the wanted results; the others are `None`.
    pub fn results(&self, device: Device, wanted: Wanted<'_>) -> Result<Results> {
        let mut results = Results::new();
        for (k, (output, shape)) in self.op.outputs.iter().zip(&self.shapes.outputs).enumerate() {
            let dtype = self.op.stored_dtype_of(output, self.dtypes, self.attrs)?;
            results.push(match output.role {
                Role::Mutates(i) => self.inputs[usize::from(i)].filter(|_| wanted.has(k)).map(Tensor::detach),
                _ => wanted.output(k, shape, dtype, device)?,
            });
        }
        Ok(results)
    }

    /// The inputs, then the results. Results that are sums over the cells are absent. `compute` has the dtypes in which the body computes.
    /// `is_stored` is whether inputs stay in their dtypes.
    pub fn operands(&self, results: &Results, compute: &[DType], is_stored: bool) -> Vec<Option<CellOperand>> {
        let Call { op, shapes, rule, .. } = self;
        let mut operands = Vec::with_capacity(self.inputs.len() + results.len());
        for ((input, dims), t) in op.inputs.iter().zip(rule.inputs.iter()).zip(self.inputs) {
            let of = |t: &Tensor| {
                let compute = if is_stored { t.dtype() } else { Call::computed(t, input.dtype, compute) };
                CellOperand::new(shapes, t, compute, dims.batch, dims.core.len(), input.core, false)
            };
            operands.push(t.map(of));
        }
        for ((output, dims), t) in op.outputs.iter().zip(rule.outputs.iter()).zip(results) {
            let of = |t: &Tensor| {
                let compute = Call::computed(t, output.dtype, compute);
                let of = CellOperand::new(shapes, t, compute, dims.batch, dims.core.len(), output.core, true);
                match (output.role, output.dtype) {
                    (Role::Mutates(_), DTypeRule::Fixed(DType::Bool)) => of.of_bools().of_changed(),
                    (Role::Mutates(_), _) => of.of_changed(),
                    _ => of,
                }
            };
            operands.push(t.as_ref().filter(|_| !self.is_summed(dims)).map(of));
        }
        operands
    }

    /// The results that are sums over the cells, each with its position among the operands.
    pub fn sums<'r>(&self, results: &'r Results) -> SmallVec<[(usize, &'r Tensor); 1]> {
        let all = results.iter().zip(self.rule.outputs.iter()).enumerate();
        let sums = all.filter(|(_, (_, dims))| self.is_summed(dims));
        sums.filter_map(|(k, (t, _))| Some((self.inputs.len() + k, t.as_ref()?))).collect()
    }

    /// Whether an output is the sum over all cells: it has no batch dimensions, but there is a batch.
    fn is_summed(&self, dims: &Dims) -> bool {
        !dims.batch && self.rule.inputs.iter().any(|input| input.batch)
    }

    /// The kernel that takes half floats as they are in memory, if the op has one for the inputs.
    pub fn kernel_of_halves(&self) -> Option<Kernel<'static, CellKernel>> {
        let [dtype @ (DType::F16 | DType::Bf16)] = self.dtypes[..] else { return None };
        let cores: Option<SmallVec<[&[usize]; 4]>> = self
            .inputs
            .iter()
            .zip(self.rule.inputs.iter())
            .map(|(t, dims)| {
                let t = t.filter(|t| t.dtype() == dtype)?;
                t.shape().get(t.ndim().checked_sub(dims.core.len())?..)
            })
            .collect();
        let cores = cores.filter(|_| self.op.axis.is_none())?;
        let of = |kernels: &'a Kernels| match kernels {
            Kernels::HalfCells(cells) if cells.dtype == dtype && (cells.is_fit)(&cores) => {
                Some(Kernel::Compiled(cells.run))
            }
            _ => None,
        };
        self.op.kernels_on(DeviceKind::Cpu).find_map(of)
    }
}

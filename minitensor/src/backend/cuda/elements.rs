//! Programs over elements.

use minitensor_kernels::cuda::{ElementKernel, Inner, Operand};
use smallvec::SmallVec;

use super::device::{CudaDevice, Kernel};
use super::layout::{OperandStrides, merge, vector};
use super::type_of;
use crate::backend::programs::{Elements, ProgramCall};
use crate::backend::shapes::expanded;
use crate::error::Result;
use crate::tensor::Tensor;

/// The threads of a block.
const THREADS: usize = 256;
/// The most blocks. Each thread computes several groups of elements if there are more.
const MOST_BLOCKS: usize = 1 << 20;
/// The most operands and dimensions of a kernel, whose argument has at most 4 KiB.
const MOST_FIELDS: usize = 500;

/// Submits the kernel. Returns false if there is none.
pub fn run(device: &CudaDevice, call: &ProgramCall<'_>, arguments: &Elements<'_>) -> Result<bool> {
    let n = arguments.shape.numel();
    let inputs: Vec<Option<Tensor>> =
        arguments.inputs.iter().map(|t| t.map(|t| expanded(t.clone(), arguments.shape))).collect();
    let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let given: Vec<&Tensor> = inputs.iter().flatten().chain(arguments.outputs.iter().flatten()).copied().collect();
    let Some(compute) = type_of(call.dtype) else { return Ok(false) };
    if given.iter().any(|t| type_of(t.dtype()).is_none()) {
        return Ok(false);
    }
    if n == 0 {
        return Ok(true);
    }
    let mut sizes: SmallVec<[usize; 6]> = arguments.shape.iter().copied().collect();
    let mut strides: Vec<OperandStrides> = given.iter().map(|t| t.strides().iter().copied().collect()).collect();
    merge(&mut sizes, &mut strides);
    let last = sizes.len() - 1;
    let operands: Vec<(usize, usize, &[isize])> =
        given.iter().zip(&strides).map(|(t, strides)| (t.data_ptr().addr(), t.dtype().size(), &strides[..])).collect();
    // Neighbours of an output must be neighbours in memory.
    let outputs = &strides[inputs.iter().flatten().count()..];
    let is_plain = outputs.iter().all(|strides| strides[last] == 1);
    let vector = if is_plain { vector(sizes[last], last > 0, &operands) } else { 1 };
    let length = sizes[last];
    sizes[last] = length.div_ceil(vector);
    let groups: usize = sizes.iter().product();
    let mut all = strides.iter();
    let mut operand = |t: &Option<&Tensor>| {
        let t = (*t)?;
        let inner = match all.next()?[last] {
            1 => Inner::Contiguous,
            0 => Inner::Single,
            _ => Inner::Strided,
        };
        Some(Operand { memory: type_of(t.dtype())?, inner })
    };
    let kernel = ElementKernel {
        compute,
        rank: sizes.len(),
        vector,
        is_small: u32::try_from(groups).is_ok(),
        inputs: inputs.iter().map(&mut operand).collect(),
        outputs: arguments.outputs.iter().map(&mut operand).collect(),
    };
    let mut argument: SmallVec<[u64; 64]> = SmallVec::new();
    argument.extend([length as u64, groups as u64]);
    argument.extend(sizes.iter().map(|n| *n as u64));
    for (t, strides) in given.iter().zip(&strides) {
        argument.push(t.data_ptr().expose_provenance() as u64);
        argument.extend(strides[..last].iter().map(|s| *s as u64));
        argument.push((strides[last] * vector as isize) as u64);
    }
    argument.extend(call.uniforms.iter().copied());
    if argument.len() > MOST_FIELDS {
        return Ok(false);
    }
    let blocks = groups.div_ceil(THREADS).min(MOST_BLOCKS);
    // SAFETY: the argument has the fields of the kernel, which reads and writes the elements of these tensors.
    unsafe { device.run(call, Kernel::Elements(kernel), (blocks, 1), &argument) }
}

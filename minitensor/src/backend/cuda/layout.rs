//! The dimensions that a kernel loops over.

use smallvec::SmallVec;

/// The strides of an operand, in elements.
pub type OperandStrides = SmallVec<[isize; 6]>;

/// Removes dimensions of size 1, and merges those that all operands step through alike. At least one dimension is left.
pub fn merge(sizes: &mut SmallVec<[usize; 6]>, operands: &mut [OperandStrides]) {
    for d in (0..sizes.len()).rev() {
        if sizes[d] == 1 {
            sizes.remove(d);
            for strides in operands.iter_mut() {
                strides.remove(d);
            }
        }
    }
    for d in (1..sizes.len()).rev() {
        let inner = sizes[d] as isize;
        if operands.iter().all(|strides| strides[d - 1] == strides[d] * inner) {
            sizes[d - 1] *= sizes[d];
            sizes.remove(d);
            for strides in operands.iter_mut() {
                strides[d - 1] = strides[d];
                strides.remove(d);
            }
        }
    }
    if sizes.is_empty() {
        sizes.push(1);
        operands.iter_mut().for_each(|strides| strides.push(0));
    }
}

/// The largest power of two, up to 16 bytes for each operand, such that all operands can be read in vectors of so many elements. An
/// operand has its address, the size of its elements, and its strides, of which the last is that between neighbours.
pub fn vector(length: usize, is_exact: bool, operands: &[(usize, usize, &[isize])]) -> usize {
    let widest = operands.iter().map(|(_, size, _)| *size).max().unwrap_or(16);
    let fits = |vector: &usize| {
        let is_aligned = |(address, size, strides): &(usize, usize, &[isize])| {
            let bytes = vector * size;
            let Some((inner, outer)) = strides.split_last() else { return false };
            match inner {
                0 => true,
                1 => address % bytes == 0 && outer.iter().all(|stride| stride.unsigned_abs() * size % bytes == 0),
                _ => *vector == 1,
            }
        };
        (!is_exact || length.is_multiple_of(*vector)) && operands.iter().all(is_aligned)
    };
    [16, 8, 4, 2].into_iter().filter(|vector| vector * widest <= 16 && *vector <= length).find(fits).unwrap_or(1)
}

//! [`Buffers`]: memory in which a thread packs cells.

use std::cell::Cell;

use minitensor_kernels::memory::Line;

use super::walk::BESIDE;
use crate::error::Result;
use crate::tensor::try_vec;

/// The most bytes that a thread keeps for its next call.
const MOST_KEPT: usize = 2 * BESIDE;

thread_local! {
    /// The buffers of the last call on this thread.
    static KEPT: Cell<Vec<Vec<Line>>> = const { Cell::new(Vec::new()) };
}

/// One buffer for each operand. They are kept for the next call of the thread, because new memory is slow at its first access.
pub struct Buffers(Vec<Vec<Line>>);

impl Buffers {
    /// Buffers of at least these numbers of bytes, with any content.
    pub fn of(sizes: impl ExactSizeIterator<Item = usize>) -> Result<Buffers> {
        let mut buffers = Buffers(KEPT.try_with(Cell::take).unwrap_or_default());
        let count = sizes.len().max(buffers.0.len());
        buffers.0.resize_with(count, Vec::new);
        for (buffer, bytes) in buffers.0.iter_mut().zip(sizes) {
            let lines = bytes.div_ceil(Line::BYTES);
            if buffer.len() < lines {
                *buffer = Vec::new();
                *buffer = try_vec(lines)?;
                buffer.resize(lines, Line::ZERO);
            }
        }
        Ok(buffers)
    }

    pub fn as_mut(&mut self) -> &mut [Vec<Line>] {
        &mut self.0
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let bytes: usize = self.0.iter().map(|buffer| buffer.len() * Line::BYTES).sum();
        if bytes <= MOST_KEPT {
            // Unless the thread is ending.
            let _ = KEPT.try_with(|kept| kept.set(std::mem::take(&mut self.0)));
        }
    }
}

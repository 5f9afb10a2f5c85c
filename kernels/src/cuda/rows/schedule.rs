//! [`Schedule`]: when each line of a program over rows can be computed.

use crate::cuda::lines::{Lines, Value};

/// A program, and when each line can be computed.
pub(super) struct Schedule<'a> {
    pub lines: &'a Lines,
    /// For each line, the number of reductions that must be known, one after the other.
    pub levels: Vec<usize>,
    /// For each line, whether its value differs along the row.
    pub is_element: Vec<bool>,
}

impl Schedule<'_> {
    pub fn of(lines: &Lines) -> Schedule<'_> {
        let mut schedule = Schedule { lines, levels: Vec::new(), is_element: Vec::new() };
        for line in &lines.all {
            let operands = || line.operands.iter();
            let (level, is_element) = match line.value {
                Value::Reduced(k) => (schedule.levels[lines.reductions[k].1] + 1, false),
                Value::Input(_) | Value::Position => (0, true),
                _ => (
                    operands().map(|id| schedule.levels[*id]).max().unwrap_or(0),
                    operands().any(|id| schedule.is_element[*id]),
                ),
            };
            schedule.levels.push(level);
            schedule.is_element.push(is_element);
        }
        schedule
    }

    /// The lines along the row that these need, in order.
    pub fn needed(&self, roots: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut is_needed = vec![false; self.lines.all.len()];
        roots.for_each(|id| is_needed[id] = self.is_element[id]);
        for id in (0..is_needed.len()).rev().filter(|id| self.is_element[*id]) {
            if is_needed[id] {
                self.lines.all[id].operands.iter().for_each(|id| is_needed[*id] |= self.is_element[*id]);
            }
        }
        (0..is_needed.len()).filter(|id| is_needed[*id]).collect()
    }
}

//! Detached values as functions of inputs of their own.

use super::{Instruction, Program};

impl Program {
    /// The same function with twice as many inputs: the detached values are computed from the second half. If both halves are equal, so are
    /// the results, but a change of the first half leaves the detached values constant. `None` if nothing is detached.
    ///
    /// ```
    /// use minitensor_kernels::{Num, Real, program::Program};
    ///
    /// let rounded = Program::write(&["x"], &[], |x, _| vec![("y".into(), (x[0] + (x[0].round() - x[0]).detach()).into())]);
    /// let apart = rounded.with_detached_apart().unwrap();
    /// assert_eq!(apart.at(&[1.5, 0.75], &[]).unwrap()[0].number(), Some(1.75));
    /// ```
    pub fn with_detached_apart(&self) -> Option<Program> {
        if !self.instructions.iter().any(|instruction| matches!(instruction, Instruction::Detach(_))) {
            return None;
        }
        let mut names = self.inputs.clone();
        for input in &self.inputs {
            let mut name = format!("{input}_detached");
            while names.contains(&name) || self.uniforms.contains(&name) {
                name.push('_');
            }
            names.push(name);
        }
        self.written_as(&names, |x, u| {
            let (own, detached) = x.split_at(self.inputs.len());
            let constant = self.values(detached, u)?;
            let mut values = Vec::with_capacity(self.instructions.len());
            for (at, instruction) in self.instructions.iter().enumerate() {
                values.push(match instruction {
                    Instruction::Detach(_) => constant[at],
                    _ => instruction.value(own, u, &values)?,
                });
            }
            Some(self.outputs.iter().map(|(name, id)| (name.clone(), values[id.at()])).collect())
        })
    }
}

//! The gradient of a portable op.

use super::{Portable, PortableCall, PortableGradient, PortableProgram};
use crate::__private::vjp_program;
use crate::op::def::*;

/// The gradient of an op with these programs.
pub fn of(op: &OpDef, programs: &[PortableProgram]) -> PortableGradient {
    let name = &op.name;
    match &op.backward {
        Backward::None(why) => PortableGradient::None(why.to_string()),
        Backward::NotNeeded | Backward::Program(_) => PortableGradient::Derived,
        Backward::Derived(derived) => {
            let cotangents = op.cotangents().count();
            let attrs = derived.vjp.attrs.len();
            let calls: Vec<PortableCall> = programs
                .iter()
                .map(|p| {
                    let given = std::iter::repeat_n(true, cotangents).chain(p.given.iter().copied());
                    (p.attrs.iter().take(attrs).cloned().collect(), given.collect())
                })
                .collect();
            match Portable::of(&derived.vjp, &calls) {
                // The same program for real numbers has fewer steps than one for complex numbers.
                Ok(vjp) if !vjp.is_of_rows && op.generics.len() == 1 && is_derived(op, programs, derived, &vjp) => {
                    PortableGradient::Derived
                }
                Ok(vjp) if vjp.unchecked(false).is_ok() => PortableGradient::Op(Box::new(vjp), derived.wrt.to_vec()),
                // The gradient that is derived from the program has one dtype, which may lose digits of the others.
                _ if op.generics.len() > 1 => PortableGradient::None(format!(
                    "the gradient of '{name}' has no program for its dtypes; install the plugin of the op"
                )),
                _ => PortableGradient::Derived,
            }
        }
        Backward::Formula(Formula { mode, run: BackwardBody::Clause(_, text), .. }) => {
            PortableGradient::Formula(*mode, text.to_string())
        }
        Backward::Formula(_) | Backward::Composite => PortableGradient::None(format!(
            "the gradient of '{name}' is a function of its plugin, which the file that the op was loaded from cannot contain; \
             install the plugin"
        )),
    }
}

/// Whether the programs of a vector-Jacobian product are those that are derived from the programs of its op.
fn is_derived(op: &OpDef, programs: &[PortableProgram], derived: &Derived, vjp: &Portable) -> bool {
    let cotangents: Vec<usize> = op.cotangents().collect();
    let wrt: Vec<usize> = derived.wrt.iter().map(|i| usize::from(*i)).collect();
    let names = derived.vjp.program_names();
    let is_it = |(forward, vjp): (&PortableProgram, &PortableProgram), is_complex: bool| {
        vjp_program(&forward.program, &cotangents, &wrt, is_complex).is_ok_and(|p| p.with_names(&names) == vjp.program)
    };
    let all = |is_complex: bool| programs.iter().zip(&vjp.programs).all(|pair| is_it(pair, is_complex));
    programs.len() == vjp.programs.len() && (all(false) || all(true))
}

//! [`opcheck`]: the checks that apply to every op.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::sample::{Sample, made};
use super::{
    attributes, batches, formulas, gradients, graphs, layouts, lazy, nan, parts, precision, programs, properties, sizes,
};
use crate::dtype::DType;
use crate::error::{Error, Result, counted, panic_text};
use crate::op::{DTypeRule, OpRef, registry};
use crate::random::Own;

/// A fault of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// The fault, with the arguments that show it.
    pub message: String,
}

/// The result of [`opcheck`].
#[derive(Clone, Debug)]
pub struct Report {
    /// The op.
    pub op: String,
    /// The number of samples tried.
    pub samples: usize,
    /// If no samples could be made, the error of the op for the first arguments tried.
    pub refusal: Option<String>,
    /// The faults found. Empty if the op is correct.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Returns an error that lists the findings, if there are any.
    pub fn into_result(self) -> Result<()> {
        if self.samples == 0 {
            return Err(Error::value(self.to_string()));
        }
        if self.findings.is_empty() { Ok(()) } else { Err(Error::runtime(self.to_string())) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refusal) = &self.refusal {
            return write!(
                f,
                "opcheck of '{}': the op rejects all generated arguments; pass samples. Its error is: {refusal}",
                self.op
            );
        }
        let (samples, findings) = (counted(self.samples, "sample"), counted(self.findings.len(), "finding"));
        write!(f, "opcheck of '{}': {samples}, {findings}", self.op)?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {}: {}", finding.check, finding.message))
    }
}

/// A check of one sample. Its error is the finding.
type Check = fn(&OpRef, &Sample) -> Result<()>;

/// All checks, in the order of their cost.
const CHECKS: &[(&str, Check)] = &[
    ("arguments", attributes::wrong_arguments_are_refused),
    ("inference", layouts::inferred_is_real),
    ("purity", layouts::inputs_are_left_alone),
    ("outputs", layouts::outputs_are_written),
    ("determinism", layouts::twice_is_the_same),
    ("requires_grad", gradients::history_is_the_frameworks),
    ("dtypes", layouts::dtypes_agree),
    ("promotion", precision::integers_are_promoted),
    ("layout", layouts::layout_does_not_matter),
    ("shape", layouts::broadcasts_and_empties),
    ("sizes", sizes::small_sizes_do_not_panic),
    ("overlap", layouts::overlapping_writes_are_refused),
    ("special values", nan::nan_is_not_swallowed),
    ("program", programs::program_is_the_body),
    ("combine", parts::parts_combine),
    ("properties", properties::properties_hold),
    ("attributes", attributes::domains_are_enforced),
    ("tuning", attributes::candidates_agree),
    ("graph", graphs::graph_is_the_op),
    ("lazy", lazy::postponed_is_the_op),
    ("batch", batches::batch_is_the_loop),
    ("gradient", gradients::agrees_with_differences),
    ("formula", formulas::formula_is_the_derivative),
    ("complex gradient", gradients::agrees_with_complex_differences),
    ("half precision", precision::halves_are_rounded_once),
    ("gradient of aliases", gradients::one_tensor_twice),
    ("gradient at extremes", gradients::finite_where_the_value_is),
    ("saved tensors", gradients::stale_tensors_are_noticed),
    ("threads", gradients::any_thread_will_do),
    ("memory", gradients::dropped_results_are_freed),
    ("precision", precision::long_rows_keep_their_digits),
];

/// Runs all checks on an op, with the given samples, or with [`samples`] made from its definition. The global generator of random numbers
/// stays as it is.
pub fn opcheck(op: &OpRef, given: &[Sample]) -> Report {
    let _own = Own::new(0);
    let (made, mut refusal) = if given.is_empty() { made(op) } else { (given.to_vec(), None) };
    // No arguments help a body that calls an unknown op.
    let unknown = refusal.take_if(|error| error.contains(registry::UNKNOWN));
    let mut findings: Vec<Finding> = unknown.map(|message| Finding { check: "calls", message }).into_iter().collect();
    for sample in &made {
        for (check, run) in CHECKS {
            if findings.iter().any(|f| f.check == *check) {
                continue;
            }
            let outcome = sample.copied().and_then(|s| quietly(|| run(op, &s)));
            if let Err(error) = outcome {
                let message = error.to_string();
                let told = message.contains(WITH);
                let message = if told { message } else { message + &with(op, sample) };
                findings.push(Finding { check, message });
            }
        }
    }
    Report { op: op.name.to_string(), samples: made.len(), refusal, findings }
}

/// Runs a check. A panic in the op becomes an error.
pub(super) fn quietly<R>(run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(Error::runtime(format!("panicked: {}", panic_text(&*panic)))))
}

const WITH: &str = " — with ";

/// The arguments that show a fault. A check that makes its own arguments appends them to its message itself.
pub(super) fn with(op: &OpRef, sample: &Sample) -> String {
    let tensor = |(i, t): (usize, &Option<crate::Tensor>)| match t {
        Some(t) => format!("{}: {} {}", op.parameter(i).name, t.dtype(), t.shape()),
        None => format!("{}: None", op.parameter(i).name),
    };
    let attrs = op.attrs.iter().zip(&sample.attrs).map(|(a, v)| format!("{}={v}", a.name));
    let arguments: Vec<String> = sample.inputs.iter().enumerate().map(tensor).chain(attrs).collect();
    format!("{WITH}{}", arguments.join(", "))
}

/// The dtypes that an op's samples can be converted to: those of its dtype variable.
pub(super) fn dtypes(op: &OpRef) -> Vec<DType> {
    let generic = op.inputs.iter().find_map(|i| match i.dtype {
        DTypeRule::Generic(g) => Some(g),
        _ => None,
    });
    generic.map_or_else(Vec::new, |g| op.generics[g as usize].dtypes.iter().collect())
}

//! The rules that determine the compute dtypes of an op from the dtypes of the arguments.

use minitensor_kernels::Const;
use minitensor_schema::signature::is_accumulator;
use smallvec::{SmallVec, smallvec};

use crate::attr::Attr;
use crate::dtype::{DType, DTypeSet, Kind};
use crate::error::{Error, Result};
use crate::op::call::Arg;
use crate::op::def::{Arity, Attribute, Body, DTypeRule, Input, OpDef};
#[cfg(feature = "engine")]
use crate::op::def::{Output, Role};

/// The dtype of each dtype variable.
pub type DTypes = SmallVec<[DType; 2]>;

impl OpDef {
    /// The parameter to which a flat input belongs.
    #[inline]
    pub fn parameter(&self, flat: usize) -> &Input {
        &self.inputs[self.parameter_at(flat)]
    }

    /// Its position.
    #[inline]
    pub(crate) fn parameter_at(&self, flat: usize) -> usize {
        flat.min(self.inputs.len() - 1)
    }

    /// The position of the attribute `dtype` of a reduction: the dtype in which it computes.
    pub(crate) fn accumulator(&self) -> Option<usize> {
        let is_one = |a: &Attribute| is_accumulator(&a.name, a.kind, a.optional);
        if matches!(self.body, Body::Cell(_)) { self.attrs.iter().position(is_one) } else { None }
    }

    /// Promotes the inputs that share a dtype variable, and checks every input's dtype.
    pub(crate) fn resolve_dtypes(&self, args: &[Arg<'_>], attrs: &[Attr]) -> Result<DTypes> {
        let mut found: SmallVec<[Option<DType>; 2]> = smallvec![None; self.generics.len()];
        for (i, arg) in args.iter().enumerate() {
            let Arg::Tensor(t) = arg else { continue };
            match self.parameter(i).dtype {
                DTypeRule::Generic(g) => {
                    let slot = &mut found[g as usize];
                    *slot = Some(slot.map_or(t.dtype(), |d| d.promote(t.dtype())));
                }
                DTypeRule::Fixed(d) if d != t.dtype() => return Err(self.wrong_dtype(i, &d.to_string(), t.dtype())),
                _ => {}
            }
        }
        for (i, arg) in args.iter().enumerate() {
            if let (Arg::Number(n), DTypeRule::Generic(g)) = (arg, self.parameter(i).dtype) {
                let slot = &mut found[g as usize];
                *slot = match (*slot, n) {
                    (None, Const::Bool(_)) if self.accumulator().is_some() => Some(DType::Bool),
                    (found, n) => Some(weak(found, *n, self.generics[g as usize].dtypes)),
                };
            }
        }
        let mut dtypes = DTypes::new();
        for (g, slot) in found.iter().enumerate() {
            let generic = &self.generics[g];
            let dtype = taken(slot.unwrap_or(DType::F32), generic.dtypes);
            let dtype = match self.accumulator().filter(|_| g == 0).map(|a| attrs.get(a)) {
                None => dtype,
                Some(Some(Attr::DType(wanted))) if dtype.is_complex() && !wanted.is_complex() => {
                    return Err(Error::type_(format!(
                        "op '{}': a {dtype} tensor as {wanted} would lose the imaginary parts; take its parts first, with \
                         real(x) and imag(x)",
                        self.name
                    )));
                }
                Some(Some(Attr::DType(wanted))) => *wanted,
                Some(_) => summed(dtype),
            };
            if !generic.dtypes.contains(dtype) {
                return Err(self.refuse_dtype(args, g, dtype));
            }
            dtypes.push(dtype);
        }
        for (i, arg) in args.iter().enumerate() {
            #[cfg(feature = "engine")]
            self.round_into(i, arg, &mut dtypes);
            self.check_mutated(i, arg, &dtypes)?;
        }
        Ok(dtypes)
    }

    /// Allows `float32` intermediates of a tensor body to change a half-float tensor in place: the computation is in `float32`
    /// anyway.
    #[cfg(feature = "engine")]
    fn round_into(&self, i: usize, arg: &Arg<'_>, dtypes: &mut DTypes) {
        let input = self.parameter(i);
        if let (true, DTypeRule::Generic(g), Arg::Tensor(t)) = (input.mutated, input.dtype, arg)
            && t.dtype() != dtypes[g as usize]
            && t.dtype().compute() == dtypes[g as usize]
            && crate::precision::is_wide()
        {
            dtypes[g as usize] = t.dtype();
        }
    }

    /// An error if the other inputs promote a tensor that is changed in place: its dtype cannot change.
    fn check_mutated(&self, i: usize, arg: &Arg<'_>, dtypes: &DTypes) -> Result<()> {
        let input = self.parameter(i);
        let (true, DTypeRule::Generic(g)) = (input.mutated, input.dtype) else { return Ok(()) };
        let wanted = dtypes[g as usize];
        match arg {
            Arg::Tensor(t) if t.dtype() != wanted => Err(Error::type_(format!(
                "op '{}' changes '{}' in place, but its dtype {} cannot hold the result of dtype {wanted}; convert it \
                 with astype('{wanted}') first, or use the op that returns a new tensor",
                self.name,
                input.name,
                t.dtype()
            ))),
            Arg::Tensor(_) => Ok(()),
            _ => Err(Error::type_(format!(
                "op '{}' changes '{}' in place, so it must be a tensor",
                self.name, input.name
            ))),
        }
    }

    #[cold]
    fn refuse_dtype(&self, args: &[Arg<'_>], generic: usize, dtype: DType) -> Error {
        let admitted = self.generics[generic].dtypes;
        if self.accumulator().is_some() && args.iter().all(|arg| !matches!(arg, Arg::Tensor(t) if t.dtype() == dtype)) {
            return Error::type_(format!("op '{}' computes in {admitted}, got dtype {dtype}", self.name));
        }
        let at = args.iter().enumerate().position(|(i, arg)| {
            self.parameter(i).dtype == DTypeRule::Generic(generic as u8)
                && matches!(arg, Arg::Tensor(t) if !admitted.contains(t.dtype()))
        });
        match (at, at.map(|i| args[i])) {
            (Some(i), Some(Arg::Tensor(t))) => self.wrong_dtype(i, &admitted.to_string(), t.dtype()),
            _ => Error::type_(format!("op '{}' takes {admitted}, but its arguments promote to {dtype}", self.name)),
        }
    }

    #[cold]
    fn wrong_dtype(&self, flat: usize, expected: &str, got: DType) -> Error {
        let input = self.parameter(flat);
        let admitted = match input.dtype {
            DTypeRule::Generic(g) => self.generics[g as usize].dtypes,
            DTypeRule::Fixed(d) => DTypeSet::of(&[d]),
            _ => DTypeSet::ELEMENT,
        };
        let hint = got.conversion_to(admitted);
        let index =
            if input.arity == Arity::Variadic { format!("[{}]", flat + 1 - self.inputs.len()) } else { String::new() };
        Error::type_(format!("op '{}': '{}{index}' takes {expected}, got {got}{hint}", self.name, input.name))
    }

    /// The dtype of the tensor that a plain number becomes.
    #[cfg(feature = "engine")]
    pub(crate) fn number_dtype(&self, flat: usize, number: Const, dtypes: &[DType]) -> DType {
        match (self.parameter(flat).dtype, number) {
            (DTypeRule::Generic(g), _) => dtypes[g as usize],
            (DTypeRule::Fixed(d), _) => d,
            (_, Const::Bool(_)) => DType::Bool,
            (_, Const::Int(_)) => DType::I64,
            (_, Const::Float(_)) => DType::F32,
        }
    }

    /// The dtype in which a loop stores an output.
    #[cfg(feature = "engine")]
    #[inline]
    pub(crate) fn stored_dtype_of(&self, output: &Output, dtypes: &[DType], attrs: &[Attr]) -> Result<DType> {
        let dtype = self.output_dtype_of(output.dtype, dtypes, attrs)?;
        let is_new = matches!(output.dtype, DTypeRule::Generic(_)) && !matches!(output.role, Role::Mutates(_));
        Ok(if is_new { crate::precision::stored_dtype(dtype) } else { dtype })
    }

    /// The dtype of an output.
    pub(crate) fn output_dtype_of(&self, rule: DTypeRule, dtypes: &[DType], attrs: &[Attr]) -> Result<DType> {
        match rule {
            DTypeRule::Generic(g) => Ok(dtypes[g as usize]),
            DTypeRule::Fixed(d) => Ok(d),
            DTypeRule::Attr(a) => match attrs[a as usize] {
                Attr::DType(d) => Ok(d),
                _ => {
                    Err(Error::type_(format!("op '{}' needs a dtype for '{}'", self.name, self.attrs[a as usize].name)))
                }
            },
            DTypeRule::Any => Err(Error::not_implemented(format!(
                "op '{}': the dtype of its output is only known by running it",
                self.name
            ))),
        }
    }
}

/// The dtype to which inputs of a dtype are converted. If only floating or complex dtypes are admitted, integers and booleans
/// are computed in the default dtype, as in PyTorch.
pub fn taken(dtype: DType, admitted: DTypeSet) -> DType {
    let admits_whole = admitted.intersection(DTypeSet::WHOLE) != DTypeSet::of(&[]);
    if dtype.kind() < Kind::Float && !admits_whole && admitted.contains(DType::F32) { DType::F32 } else { dtype }
}

/// The dtype in which integers and booleans are summed: 64 bits, as in the Array API.
fn summed(dtype: DType) -> DType {
    match dtype.kind() {
        Kind::Bool | Kind::Signed => DType::I64,
        Kind::Unsigned => DType::U64,
        _ => dtype,
    }
}

/// The dtype after promotion with a plain number. The number can change the kind, but not the size.
fn weak(dtype: Option<DType>, number: Const, admitted: DTypeSet) -> DType {
    let (kind, default) = match number {
        Const::Bool(_) => (Kind::Bool, DType::Bool),
        Const::Int(_) => (Kind::Unsigned, DType::I64),
        Const::Float(_) => (Kind::Float, DType::F32),
    };
    match dtype {
        Some(d) if d.kind() >= kind => d,
        None if !admitted.contains(default) && admitted.contains(DType::F32) => DType::F32,
        _ => default,
    }
}

//! Advice for a tensor of the wrong dtype. The conversion that it names must work, and must not lose data without saying so.

use super::{DType, DTypeSet, Kind};

/// The target dtypes of conversions, best first.
const CANDIDATES: [DType; 6] = [DType::F32, DType::I64, DType::Bool, DType::F64, DType::C64, DType::C128];

impl DType {
    /// Describes how to convert a tensor of this dtype to one that is accepted, as the end of a sentence.
    pub fn conversion_to(self, admitted: DTypeSet) -> String {
        conversion(self, admitted)
    }
}

fn conversion(got: DType, admitted: DTypeSet) -> String {
    let candidates = || CANDIDATES.into_iter().chain(admitted.iter()).filter(|d| admitted.contains(*d));
    if let Some(to) = candidates().find(|d| is_lossless(got, *d)) {
        return format!("; convert it with astype('{to}')");
    }
    match (got.kind(), candidates().next()) {
        (_, None) => String::new(),
        (Kind::Complex, _) => "; take its parts first, with real(x) and imag(x)".into(),
        (_, Some(DType::Bool)) => "; compare it first, as in x != 0".into(),
        (Kind::Float, Some(to)) if to.kind() != Kind::Float => {
            format!("; round it, and convert it with astype('{to}')")
        }
        (_, Some(to)) => format!("; convert it with astype('{to}') if its values fit"),
    }
}

/// Whether a dtype can represent every value of another. An integer of 32 bits or more has more digits than float32.
fn is_lossless(from: DType, to: DType) -> bool {
    let is_integer = matches!(from.kind(), Kind::Unsigned | Kind::Signed);
    match to.kind() {
        Kind::Float | Kind::Complex if is_integer => {
            let mantissa = if matches!(to, DType::F64 | DType::C128) { 8 } else { 4 };
            from.size() < mantissa
        }
        _ => from.promote(to) == to && !(to == DType::U64 && from.kind() == Kind::Signed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_loses_nothing_or_says_so() {
        let floats = DTypeSet::FLOAT;
        assert_eq!(conversion(DType::I16, floats), "; convert it with astype('float32')");
        assert_eq!(conversion(DType::I32, floats), "; convert it with astype('float64')");
        assert_eq!(conversion(DType::U64, floats), "; convert it with astype('float32') if its values fit");
        assert_eq!(conversion(DType::C64, floats), "; take its parts first, with real(x) and imag(x)");
        assert_eq!(
            conversion(DType::F32, DTypeSet::of(&[DType::I64])),
            "; round it, and convert it with astype('int64')"
        );
        assert_eq!(
            conversion(DType::U64, DTypeSet::of(&[DType::I64])),
            "; convert it with astype('int64') if its values fit"
        );
        assert_eq!(conversion(DType::F32, DTypeSet::of(&[DType::Bool])), "; compare it first, as in x != 0");
        assert_eq!(conversion(DType::Bool, DTypeSet::of(&[DType::C64])), "; convert it with astype('complex64')");
    }
}

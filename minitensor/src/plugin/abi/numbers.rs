//! The numbers of enumerations, devices, dtypes and errors.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::DeviceKind;

macro_rules! codes {
    ($($type:ident { $($name:ident = $value:literal $header:literal;)* })*) => {
        $(
            pub mod $type {
                $(pub const $name: u32 = $value;)*
            }
        )*
        /// All values of the enumerations of the header, with their names there.
        pub const CODES: &[(&str, u32)] = &[$($(($header, $value),)*)*];
    };
}

codes! {
    kind {
        NONE = 0 "MT_NONE"; BOOL = 1 "MT_KIND_BOOL"; INT = 2 "MT_KIND_INT"; SIZE = 3 "MT_KIND_SIZE"; FLOAT = 4 "MT_KIND_FLOAT";
        STR = 5 "MT_KIND_STR"; WORD = 6 "MT_KIND_WORD"; INTS = 7 "MT_KIND_INTS"; FLOATS = 8 "MT_KIND_FLOATS";
        DTYPE = 9 "MT_KIND_DTYPE"; TUNED = 10 "MT_KIND_TUNED";
    }
    arity { ONE = 0 "MT_ONE"; OPTIONAL = 1 "MT_OPTIONAL"; VARIADIC = 2 "MT_VARIADIC"; }
    core { SCALAR = 0 "MT_SCALAR"; SLICE = 1 "MT_SLICE"; VIEW = 2 "MT_VIEW"; COLUMNS = 3 "MT_COLUMNS"; }
    rule { GENERIC = 0 "MT_GENERIC"; FIXED = 1 "MT_FIXED"; FROM_ATTR = 2 "MT_FROM_ATTR"; ANY = 3 "MT_ANY"; }
    role { RETURNED = 0 "MT_RETURNED"; SAVED = 1 "MT_SAVED"; MUTATES = 2 "MT_MUTATES"; }
    backward {
        NONE = 0 "MT_NO_GRADIENT"; NOT_NEEDED = 1 "MT_NOT_NEEDED"; FORMULA = 2 "MT_FORMULA"; PROGRAM = 3 "MT_FROM_PROGRAM";
        VJP = 4 "MT_VJP"; FUNCTION = 5 "MT_GRADIENT_FN"; COMPOSITE = 6 "MT_COMPOSITE";
        JVP_FORMULA = 7 "MT_JVP_FORMULA"; JVP_FUNCTION = 8 "MT_JVP_FN";
    }
    combine {
        NONE = 0 "MT_NOT_COMBINED"; ADD = 1 "MT_COMBINE_ADD"; MULTIPLY = 2 "MT_COMBINE_MULTIPLY"; MAXIMUM = 3 "MT_COMBINE_MAXIMUM";
        MINIMUM = 4 "MT_COMBINE_MINIMUM"; LOGICAL_OR = 5 "MT_COMBINE_LOGICAL_OR"; LOGICAL_AND = 6 "MT_COMBINE_LOGICAL_AND";
        AVERAGE = 7 "MT_COMBINE_AVERAGE";
    }
    body { ELEMENTS = 1 "MT_ELEMENTS"; CELLS = 2 "MT_CELLS"; ARRAYS = 3 "MT_ARRAYS"; TENSORS = 4 "MT_TENSORS"; }
    level { DEBUG = 10 "MT_DEBUG"; INFO = 20 "MT_INFO"; WARNING = 30 "MT_WARNING"; ERROR = 40 "MT_ERROR"; }
    code {
        OK = 0 "MT_OK"; TYPE = 1 "MT_ERROR_TYPE"; VALUE = 2 "MT_ERROR_VALUE"; INDEX = 3 "MT_ERROR_INDEX";
        MEMORY = 4 "MT_ERROR_MEMORY"; RUNTIME = 5 "MT_ERROR_RUNTIME"; NOT_IMPLEMENTED = 6 "MT_ERROR_NOT_IMPLEMENTED";
        PANIC = 7 "MT_PANIC";
    }
}

/// The kinds of devices that every host has, with their numbers: those of DLPack, and 0 for tensors without data.
const DEVICE_TYPES: [(DeviceKind, i32); 2] = [(DeviceKind::Meta, 0), (DeviceKind::Cpu, 1)];
/// The number of the first other kind. A host assigns these numbers.
#[cfg(feature = "engine")]
const OTHER_DEVICES: i32 = 1024;

/// The number of a kind of device that every host has.
pub fn known_type(kind: DeviceKind) -> Option<i32> {
    DEVICE_TYPES.iter().find(|(known, _)| *known == kind).map(|(_, number)| *number)
}

/// The kind of device with this number, if every host has it.
pub fn known_kind(number: i32) -> Option<DeviceKind> {
    DEVICE_TYPES.iter().find(|(_, known)| *known == number).map(|(kind, _)| *kind)
}

/// The number of a kind of device of this host.
#[cfg(feature = "engine")]
pub fn device_type(kind: DeviceKind) -> i32 {
    known_type(kind).unwrap_or(OTHER_DEVICES + kind.number() as i32)
}

/// The kind of device with this number, if this host has it.
#[cfg(feature = "engine")]
pub fn device_kind(number: i32) -> Option<DeviceKind> {
    DeviceKind::all().find(|kind| device_type(*kind) == number)
}

/// Every dtype, with its number and its name in the header.
pub const DTYPES: &[(DType, u32, &str)] = &[
    (DType::Bool, 0x0001_0806, "MT_BOOL"),
    (DType::I8, 0x0001_0800, "MT_INT8"),
    (DType::I16, 0x0001_1000, "MT_INT16"),
    (DType::I32, 0x0001_2000, "MT_INT32"),
    (DType::I64, 0x0001_4000, "MT_INT64"),
    (DType::U8, 0x0001_0801, "MT_UINT8"),
    (DType::U16, 0x0001_1001, "MT_UINT16"),
    (DType::U32, 0x0001_2001, "MT_UINT32"),
    (DType::U64, 0x0001_4001, "MT_UINT64"),
    (DType::F16, 0x0001_1002, "MT_FLOAT16"),
    (DType::Bf16, 0x0001_1004, "MT_BFLOAT16"),
    (DType::F32, 0x0001_2002, "MT_FLOAT32"),
    (DType::F64, 0x0001_4002, "MT_FLOAT64"),
    (DType::C64, 0x0001_4005, "MT_COMPLEX64"),
    (DType::C128, 0x0001_8005, "MT_COMPLEX128"),
];

/// The number of a dtype in the ABI.
pub fn number(dtype: DType) -> u32 {
    DTYPES[dtype as usize].1
}

/// The dtype for a number of the ABI.
pub fn dtype(number: u32) -> Result<DType> {
    let found = DTYPES.iter().find(|(_, n, _)| *n == number).map(|(dtype, ..)| *dtype);
    found.ok_or_else(|| Error::value(format!("unknown dtype {number:#010x}")))
}

const KINDS: &[(ErrorKind, u32)] = &[
    (ErrorKind::Type, code::TYPE),
    (ErrorKind::Value, code::VALUE),
    (ErrorKind::Index, code::INDEX),
    (ErrorKind::Memory, code::MEMORY),
    (ErrorKind::Runtime, code::RUNTIME),
    (ErrorKind::NotImplemented, code::NOT_IMPLEMENTED),
];

/// The code of an error in the ABI.
pub fn code_of(error: &Error) -> i32 {
    KINDS.iter().find(|(kind, _)| *kind == error.kind()).map_or(code::RUNTIME, |(_, code)| *code) as i32
}

/// The kind of error for a code. `None` for an unknown code.
pub fn kind_of(code: i32) -> Option<ErrorKind> {
    KINDS.iter().find(|(_, c)| *c as i32 == code).map(|(kind, _)| *kind)
}

//! The C structs of XLA's foreign function interface, as in `xla/ffi/api/c_api.h`. Structs that handlers do not use are omitted.
//!
//! The version of the interface is 0.x. The fields below are the same in all minor versions up to [`MINOR`]; later versions append
//! fields. Enums are integers here, because XLA may pass values that are not known.

use std::ffi::{c_char, c_int, c_void};

/// The major version.
pub const MAJOR: c_int = 0;
/// The latest minor version that was read.
pub const MINOR: c_int = 3;

/// `XLA_FFI_Extension_Metadata`
pub const METADATA: c_int = 1;
/// `XLA_FFI_ExecutionStage_EXECUTE`
pub const EXECUTE: c_int = 3;
/// `XLA_FFI_ArgType_BUFFER` and `XLA_FFI_RetType_BUFFER`
pub const BUFFER: c_int = 1;
/// `XLA_FFI_AttrType_STRING`
pub const STRING: c_int = 4;

/// `XLA_FFI_Error_Code`
#[derive(Clone, Copy)]
#[repr(C)]
pub enum Code {
    InvalidArgument = 3,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
}

/// `XLA_FFI_Extension_Base`
#[repr(C)]
pub struct Extension {
    pub size: usize,
    pub kind: c_int,
    pub next: *mut Extension,
}

/// `XLA_FFI_Api_Version`
#[repr(C)]
pub struct Version {
    pub size: usize,
    pub extension: *mut Extension,
    pub major: c_int,
    pub minor: c_int,
}

/// `XLA_FFI_Metadata`, up to `traits`
#[repr(C)]
pub struct Metadata {
    pub size: usize,
    pub version: Version,
    pub traits: u32,
}

/// `XLA_FFI_Metadata_Extension`
#[repr(C)]
pub struct MetadataExtension {
    pub base: Extension,
    pub metadata: *mut Metadata,
}

/// `XLA_FFI_ByteSpan`
#[repr(C)]
pub struct Span {
    pub data: *const u8,
    pub len: usize,
}

/// `XLA_FFI_Buffer`
#[repr(C)]
pub struct Buffer {
    pub size: usize,
    pub extension: *mut Extension,
    pub dtype: c_int,
    pub data: *mut c_void,
    pub rank: i64,
    pub dims: *const i64,
}

/// `XLA_FFI_Args` and `XLA_FFI_Rets`, which have the same layout
#[repr(C)]
pub struct Buffers {
    pub size: usize,
    pub extension: *mut Extension,
    pub count: i64,
    pub kinds: *const c_int,
    pub values: *const *mut c_void,
}

/// `XLA_FFI_Attrs`
#[repr(C)]
pub struct Attrs {
    pub size: usize,
    pub extension: *mut Extension,
    pub count: i64,
    pub kinds: *const c_int,
    pub names: *const *const Span,
    pub values: *const *mut c_void,
}

/// `XLA_FFI_CallFrame`, up to `attrs`
#[repr(C)]
pub struct CallFrame {
    pub size: usize,
    pub extension: *mut Extension,
    pub api: *const Api,
    pub context: *mut c_void,
    pub stage: c_int,
    pub args: Buffers,
    pub rets: Buffers,
    pub attrs: Attrs,
}

/// `XLA_FFI_Error`
#[repr(C)]
pub struct XlaError(c_void);

/// `XLA_FFI_Error_Create_Args`
#[repr(C)]
pub struct ErrorArgs {
    pub size: usize,
    pub extension: *mut Extension,
    pub message: *const c_char,
    pub code: Code,
}

/// `XLA_FFI_Api`, up to the first function
#[repr(C)]
pub struct Api {
    pub size: usize,
    pub extension: *mut Extension,
    pub version: Version,
    pub internal: *const c_void,
    pub create_error: unsafe extern "C" fn(*mut ErrorArgs) -> *mut XlaError,
}

/// The dtypes by the number of `XLA_FFI_DataType`.
pub const DTYPES: &[(c_int, minitensor::DType)] = {
    use minitensor::DType::*;
    &[
        (1, Bool),
        (2, I8),
        (3, I16),
        (4, I32),
        (5, I64),
        (6, U8),
        (7, U16),
        (8, U32),
        (9, U64),
        (10, F16),
        (11, F32),
        (12, F64),
        (15, C64),
        (16, Bf16),
        (18, C128),
    ]
};

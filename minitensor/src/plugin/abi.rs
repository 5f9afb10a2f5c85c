//! The plugin ABI: `plugin-sdk/include/minitensor_plugin.h` in Rust. The header documents every item. A test checks that both
//! have the same layout (`plugin-sdk/tests/header.rs`).

#![allow(missing_docs)]

use std::ffi::c_void;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::DeviceKind;

pub const MAGIC: u64 = u64::from_le_bytes(*b"MTPLUGIN");
pub const MAJOR: u32 = 1;
pub const MINOR: u32 = 0;
pub const MAX_NDIM: usize = 64;
/// The name of the exported symbol.
pub const SYMBOL: &str = "minitensor_plugin";

/// The offsets of the fields of a struct.
#[derive(Debug)]
pub struct Layout {
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
}

macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name { $(pub $field: $ty,)* }
        )*

        /// All structs of the ABI. In the header their names begin with `Mt`.
        pub const LAYOUTS: &[Layout] = &[$(Layout {
            name: stringify!($name),
            size: size_of::<$name>(),
            fields: &[$((stringify!($field), std::mem::offset_of!($name, $field))),*],
        }),*];
    };
}

structs! {
    Str { data: *const u8, len: usize, }
    ErrorSink {
        struct_size: usize,
        context: *mut c_void,
        set: Option<unsafe extern "C" fn(*mut c_void, Str)>,
    }
    Value { kind: u32, reserved: u32, as_: Payload, }
    Array {
        data: *mut c_void,
        device_type: i32,
        device_id: i32,
        ndim: i32,
        dtype: u32,
        shape: *const i64,
        strides: *const i64,
        byte_offset: u64,
    }
    Meta { dtype: u32, ndim: i32, shape: [i64; MAX_NDIM], }
    Generic { name: Str, dtypes: *const u32, n_dtypes: usize, }
    Input { name: Str, arity: u32, core: u32, dtype_rule: u32, dtype_index: u32, dtype: u32, is_mutated: u32, }
    Attr {
        name: Str,
        kind: u32,
        is_optional: u32,
        has_default: u32,
        reserved: u32,
        value: Value,
        words: *const Str,
        n_words: usize,
    }
    Output { name: Str, role: u32, input: u32, core: u32, dtype_rule: u32, dtype_index: u32, dtype: u32, }
    Cell {
        data: *mut c_void,
        step: i64,
        is_large: u64,
        ndim: usize,
        shape: *const usize,
        strides: *const isize,
    }
    Kernel { dtypes: [u32; 2], run: KernelFn, context: *const c_void, }
    Call {
        struct_size: usize,
        host: *const Host,
        context: *const c_void,
        n_inputs: i32,
        n_attrs: i32,
        n_outputs: i32,
        reserved: i32,
        input_arrays: *const *const Array,
        output_arrays: *const *const Array,
        inputs: *const *mut Tensor,
        attrs: *const Value,
        sink: *mut c_void,
        give: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor)>,
        stream: *mut c_void,
    }
    Gradient {
        struct_size: usize,
        host: *const Host,
        context: *const c_void,
        n_inputs: i32,
        n_attrs: i32,
        n_outputs: i32,
        n_dims: i32,
        input_metas: *const Meta,
        output_metas: *const Meta,
        inputs: *const *mut Tensor,
        outputs: *const *mut Tensor,
        cotangents: *const *mut Tensor,
        needs: *const u8,
        attrs: *const Value,
        dim_names: *const Str,
        dims: *const i64,
        gradients: *mut *mut Tensor,
    }
    Op {
        struct_size: usize,
        name: Str,
        doc: Str,
        aliases: *const Str,
        n_aliases: usize,
        since: u32,
        line: u32,
        file: Str,
        inputs: *const Input,
        attrs: *const Attr,
        outputs: *const Output,
        generics: *const Generic,
        n_inputs: i32,
        n_attrs: i32,
        n_outputs: i32,
        n_generics: i32,
        shape: Str,
        axis: i32,
        keepdims: i32,
        many_axes: i32,
        body: u32,
        context: *const c_void,
        kernels: *const Kernel,
        n_kernels: usize,
        call: Option<CallFn>,
        infer: Option<InferFn>,
        program: Option<ProgramFn>,
        backward_kind: u32,
        n_wrt: u32,
        backward: Str,
        vjp: *const Op,
        wrt: *const u32,
        gradient: Option<GradientFn>,
        gradient_context: *const c_void,
        saved_inputs: *const u32,
        saved_outputs: *const u32,
        without: *const u32,
        n_saved_inputs: u32,
        n_saved_outputs: u32,
        n_without: u32,
        reserved: u32,
        cuda: Str,
    }
    Device {
        struct_size: usize,
        name: Str,
        count: i32,
        reserved: i32,
        context: *const c_void,
        allocate: Option<DeviceAllocateFn>,
        release: Option<DeviceReleaseFn>,
        write: Option<DeviceWriteFn>,
        read: Option<DeviceReadFn>,
        stream: Option<DeviceStreamFn>,
    }
    DeviceKernel {
        struct_size: usize,
        op: Str,
        device: Str,
        dtypes: *const u32,
        n_dtypes: usize,
        run: Option<CallFn>,
        context: *const c_void,
    }
    Arg { tensor: *mut Tensor, tensors: *const *mut Tensor, n_tensors: usize, value: Value, }
    Host {
        struct_size: usize,
        abi_major: u32,
        abi_minor: u32,
        version: Str,
        register_op: unsafe extern "C" fn(*const Host, *const Op, *mut ErrorSink) -> i32,
        register_device: unsafe extern "C" fn(*const Host, *const Device, *mut ErrorSink) -> i32,
        register_kernel: unsafe extern "C" fn(*const Host, *const DeviceKernel, *mut ErrorSink) -> i32,
        device_type: unsafe extern "C" fn(Str, *mut ErrorSink) -> i32,
        device_name: unsafe extern "C" fn(i32) -> Str,
        allocate: unsafe extern "C" fn(usize) -> *mut c_void,
        release: unsafe extern "C" fn(*mut c_void, usize),
        num_threads: unsafe extern "C" fn() -> i32,
        parallel_for: unsafe extern "C" fn(i64, i64, RangeFn, *mut c_void, *mut ErrorSink) -> i32,
        check_interrupt: unsafe extern "C" fn(*mut ErrorSink) -> i32,
        log: unsafe extern "C" fn(u32, Str),
        tensor_zeros: unsafe extern "C" fn(u32, i32, *const i64, i32, i32, *mut ErrorSink) -> *mut Tensor,
        tensor_retain: unsafe extern "C" fn(*const Tensor) -> *mut Tensor,
        tensor_release: unsafe extern "C" fn(*mut Tensor),
        tensor_array: unsafe extern "C" fn(*const Tensor) -> Array,
        op_find: unsafe extern "C" fn(Str, *mut ErrorSink) -> *mut OpRef,
        op_release: unsafe extern "C" fn(*mut OpRef),
        op_call: OpCallFn,
        op_vjp: OpVjpFn,
    }
    Plugin {
        magic: u64,
        abi_major: u32,
        abi_minor: u32,
        struct_size: u64,
        name: [u8; 64],
        version: [u8; 32],
        description: [u8; 256],
        author: [u8; 128],
        min_minitensor: [u8; 32],
        max_minitensor: [u8; 32],
        built_with: [u8; 64],
        init: Option<unsafe extern "C" fn(*const Host, *mut ErrorSink) -> i32>,
        fini: Option<unsafe extern "C" fn(*mut ErrorSink) -> i32>,
    }
}

// SAFETY: it is a constant of the plugin. By the rules of the header its functions may be called on any thread.
unsafe impl Sync for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// A tensor of the host. Plugins only hold pointers to it.
#[repr(C)]
pub struct Tensor([u8; 0]);
/// An op of the host. Plugins only hold pointers to it.
#[repr(C)]
pub struct OpRef([u8; 0]);

#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    pub i: i64,
    pub f: f64,
    pub list: Slice,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    pub data: *const c_void,
    pub len: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union KernelFn {
    pub elements: Option<ElementsFn>,
    pub cells: Option<CellsFn>,
}

pub type ElementsFn = unsafe extern "C" fn(
    *const c_void,
    *const Value,
    i64,
    *const *const c_void,
    *const *mut c_void,
    *mut ErrorSink,
) -> i32;
pub type CellsFn = unsafe extern "C" fn(*const c_void, *const Value, *const Cell, i64, *mut ErrorSink) -> i32;
pub type CallFn = unsafe extern "C" fn(*const Call, *mut ErrorSink) -> i32;
pub type DeviceAllocateFn = unsafe extern "C" fn(*const c_void, i32, usize, *mut ErrorSink) -> *mut c_void;
pub type DeviceReleaseFn = unsafe extern "C" fn(*const c_void, i32, *mut c_void, usize);
pub type DeviceWriteFn =
    unsafe extern "C" fn(*const c_void, i32, *mut c_void, *const c_void, usize, *mut ErrorSink) -> i32;
pub type DeviceReadFn =
    unsafe extern "C" fn(*const c_void, i32, *mut c_void, *const c_void, usize, *mut ErrorSink) -> i32;
pub type DeviceStreamFn = unsafe extern "C" fn(*const c_void, i32) -> *mut c_void;
pub type InferFn =
    unsafe extern "C" fn(*const c_void, *const Meta, i32, *const Value, i32, *mut Meta, i32, *mut ErrorSink) -> i32;
pub type GiveFn = unsafe extern "C" fn(*mut c_void, Str);
pub type ProgramFn = unsafe extern "C" fn(*const c_void, *const Value, i32, *mut c_void, GiveFn, *mut ErrorSink) -> i32;
pub type GradientFn = unsafe extern "C" fn(*const Gradient, *mut ErrorSink) -> i32;
pub type RangeFn = unsafe extern "C" fn(*mut c_void, i64, i64, *mut ErrorSink) -> i32;
pub type OpCallFn = unsafe extern "C" fn(
    *const OpRef,
    *const Arg,
    usize,
    *const Str,
    *const Arg,
    usize,
    *mut *mut Tensor,
    *mut usize,
    *mut ErrorSink,
) -> i32;
pub type OpVjpFn =
    unsafe extern "C" fn(*const OpRef, *const *mut Tensor, usize, *mut Tensor, *mut *mut Tensor, *mut ErrorSink) -> i32;

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
        DTYPE = 9 "MT_KIND_DTYPE";
    }
    arity { ONE = 0 "MT_ONE"; OPTIONAL = 1 "MT_OPTIONAL"; VARIADIC = 2 "MT_VARIADIC"; }
    core { SCALAR = 0 "MT_SCALAR"; SLICE = 1 "MT_SLICE"; VIEW = 2 "MT_VIEW"; }
    rule { GENERIC = 0 "MT_GENERIC"; FIXED = 1 "MT_FIXED"; FROM_ATTR = 2 "MT_FROM_ATTR"; ANY = 3 "MT_ANY"; }
    role { RETURNED = 0 "MT_RETURNED"; SAVED = 1 "MT_SAVED"; MUTATES = 2 "MT_MUTATES"; }
    backward {
        NONE = 0 "MT_NO_GRADIENT"; NOT_NEEDED = 1 "MT_NOT_NEEDED"; FORMULA = 2 "MT_FORMULA"; PROGRAM = 3 "MT_FROM_PROGRAM";
        VJP = 4 "MT_VJP"; FUNCTION = 5 "MT_GRADIENT_FN"; COMPOSITE = 6 "MT_COMPOSITE";
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

impl Str {
    pub const EMPTY: Str = Str { data: std::ptr::null(), len: 0 };

    /// A borrowed view of a text.
    pub const fn of(text: &str) -> Str {
        Str { data: text.as_ptr(), len: text.len() }
    }

    /// The text, with U+FFFD for invalid parts, since it is better to show a damaged message than to reject it. A message that
    /// exceeds the limit is not read.
    ///
    /// # Safety
    /// As for [`Str::get`].
    pub unsafe fn lossy(self) -> String {
        if self.len > most::SENTENCE {
            return format!("(the message has {} bytes, expected at most {})", self.len, most::SENTENCE);
        }
        // SAFETY: by the contract of this function. Null is excluded, and the length is within the limit.
        let bytes = if self.data.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.len) } };
        String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
    }

    /// The text, if it is valid UTF-8 without a NUL and has at most `most` bytes. A longer text is not read.
    ///
    /// # Safety
    /// If the length is within the limit, the pointer is null or valid for reads of `len` bytes for `'a`.
    pub unsafe fn get<'a>(self, most: usize) -> Result<&'a str> {
        if self.len == 0 {
            return Ok("");
        }
        if self.data.is_null() {
            return Err(Error::value("a string is a null pointer"));
        }
        if self.len > most {
            return Err(Error::value(format!("a string has {} bytes, expected at most {most}", self.len)));
        }
        // SAFETY: by the contract of this function. Null is excluded, and the length is within the limit.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.len) };
        let text = std::str::from_utf8(bytes).map_err(|_| Error::value("a string is not valid UTF-8"))?;
        match text.contains('\0') {
            true => Err(Error::value(format!("the string {:?} contains a NUL", shortened(text)))),
            false => Ok(text),
        }
    }

    /// The text, if it is fit for a message or a path: it must not contain control characters either.
    ///
    /// # Safety
    /// As for [`Str::get`].
    pub unsafe fn line<'a>(self, most: usize) -> Result<&'a str> {
        // SAFETY: by the contract of this function.
        let text = unsafe { self.get(most) }?;
        match text.chars().any(char::is_control) {
            true => Err(Error::value(format!("the string {:?} contains a control character", shortened(text)))),
            false => Ok(text),
        }
    }
}

/// The first characters of a text, for an error message.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The `len` values at a pointer. Fails for null, or if there are more than `most`.
///
/// # Safety
/// If the pointer is not null and `len` is within the limit, it is aligned and valid for reads of `len` values for `'a`.
pub unsafe fn slice<'a, T>(data: *const T, len: usize, most: usize, what: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if len > most {
        return Err(Error::value(format!("'{what}' has {len} items, expected at most {most}")));
    }
    if data.is_null() || !data.is_aligned() {
        return Err(Error::value(format!("the pointer of '{what}' is null or not aligned")));
    }
    // SAFETY: by the contract of this function. Null is excluded, and the length is within the limit.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// The limits of all lengths, in bytes for texts and in items for lists. Nothing above its limit is read.
pub mod most {
    /// The name of an op, an argument, a dimension or a word.
    pub const NAME: usize = 255;
    /// The path of a source file.
    pub const FILE: usize = 4096;
    /// A shape clause or a backward clause.
    pub const CLAUSE: usize = 1 << 16;
    /// The documentation of an op.
    pub const DOC: usize = 1 << 20;
    /// An error or a log message.
    pub const SENTENCE: usize = 1 << 20;
    /// A text attribute.
    pub const TEXT: usize = 1 << 24;
    /// A program as JSON.
    pub const PROGRAM: usize = 1 << 26;
    /// The inputs, attributes, outputs, dtype variables or aliases of an op.
    pub const PARTS: usize = 64;
    /// The dimensions of a tensor.
    pub const DIMS: usize = 64;
    /// The possible words of an attribute.
    pub const WORDS: usize = 1024;
    /// The dtypes of a variable.
    pub const DTYPES: usize = super::DTYPES.len();
    /// The kernels of an op: one for each pair of dtypes.
    pub const KERNELS: usize = DTYPES * DTYPES;
    /// The tensors of a variadic input, or the items of a list attribute.
    pub const LIST: usize = 1 << 20;
}

impl Value {
    pub const NONE: Value = Value { kind: kind::NONE, reserved: 0, as_: Payload { i: 0 } };

    /// A borrowed view of an attribute.
    pub fn of(attr: &crate::attr::Attr) -> Value {
        use crate::attr::Attr;
        fn list<T>(kind: u32, items: &[T]) -> Value {
            let list = Slice { data: items.as_ptr().cast(), len: items.len() };
            Value { kind, reserved: 0, as_: Payload { list } }
        }
        let whole = |kind, i| Value { kind, reserved: 0, as_: Payload { i } };
        match attr {
            Attr::None => Value::NONE,
            Attr::Bool(v) => whole(kind::BOOL, (*v).into()),
            Attr::Int(v) => whole(kind::INT, *v),
            Attr::Float(f) => Value { kind: kind::FLOAT, reserved: 0, as_: Payload { f: *f } },
            Attr::Str(v) => list(kind::STR, v.as_bytes()),
            Attr::Ints(v) => list(kind::INTS, v),
            Attr::Floats(v) => list(kind::FLOATS, v),
            Attr::DType(v) => whole(kind::DTYPE, number(*v).into()),
        }
    }

    /// Converts to an attribute.
    ///
    /// # Safety
    /// All pointers in the value are valid for reads of their lengths.
    pub unsafe fn get(&self) -> Result<crate::attr::Attr> {
        use crate::attr::Attr;
        // SAFETY: every payload is plain data, so reading any variant is sound. Lists are valid by the contract of this function.
        unsafe {
            let list = self.as_.list;
            Ok(match self.kind {
                kind::NONE => Attr::None,
                kind::BOOL => Attr::Bool(self.as_.i != 0),
                kind::INT | kind::SIZE => Attr::Int(self.as_.i),
                kind::FLOAT => Attr::Float(self.as_.f),
                kind::STR | kind::WORD => {
                    Attr::Str(Str { data: list.data.cast(), len: list.len }.get(most::TEXT)?.to_owned().into())
                }
                kind::INTS => Attr::Ints(slice(list.data.cast::<i64>(), list.len, most::LIST, "ints")?.to_vec().into()),
                kind::FLOATS => {
                    Attr::Floats(slice(list.data.cast::<f64>(), list.len, most::LIST, "floats")?.to_vec().into())
                }
                kind::DTYPE => Attr::DType(dtype(self.as_.i as u32)?),
                other => return Err(Error::value(format!("unknown kind of value {other}"))),
            })
        }
    }
}

//! The tables: structs, unions and functions of the header.

use std::ffi::c_void;

pub const MAX_NDIM: usize = 64;

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
        combine: u32,
        cuda: Str,
        properties: Str,
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
        tensor_layout: unsafe extern "C" fn(*const Tensor) -> Array,
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

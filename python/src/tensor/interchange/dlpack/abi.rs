//! The structures of DLPack: arrays, and the two kinds of managed arrays.

use std::ffi::{CStr, c_void};

use minitensor::dtype::Kind;
use minitensor::{DType, Device, Error, Shape, Tensor};

use super::device::DlDevice;

/// The memory must not be changed.
pub const READ_ONLY: u64 = 1;
/// The memory is a copy.
pub const IS_COPIED: u64 = 2;
/// The version that is exported. Versions with the same major number can be imported.
pub const VERSION: Version = Version { major: 1, minor: 3 };

/// `DLPackVersion`
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

/// `DLDataType`
#[repr(C)]
pub struct Element {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`
#[repr(C)]
pub struct Array {
    pub data: *mut c_void,
    pub device: DlDevice,
    ndim: i32,
    pub dtype: Element,
    shape: *mut i64,
    strides: *mut i64,
    pub byte_offset: u64,
}

/// `DLManagedTensor`
#[repr(C)]
pub struct Legacy {
    array: Array,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
pub struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    array: Array,
}

/// The two kinds of capsule. They differ in their names and in how they are released.
pub trait Managed: Sized + 'static {
    const NAME: &'static CStr;
    const USED: &'static CStr;
    /// The version of DLPack; `None` for legacy capsules, which don't contain it.
    fn version(&self) -> Option<Version>;
    fn array(&self) -> &Array;
    /// Whether the memory may be changed; `None` for legacy capsules, which don't say.
    fn writable(&self) -> Option<bool>;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
    fn wrap(array: Array, context: *mut c_void, flags: u64, deleter: unsafe extern "C" fn(*mut Self)) -> Self;
    fn context(&self) -> *mut c_void;
}

macro_rules! managed {
    ($t:ident, $name:literal, $used:literal, |$m:ident| $version:expr, $writable:expr, |$array:ident, $context:ident, $flags:ident, $deleter:ident| $new:expr) => {
        impl Managed for $t {
            const NAME: &'static CStr = $name;
            const USED: &'static CStr = $used;
            fn version(&self) -> Option<Version> {
                let $m = self;
                $version
            }
            fn array(&self) -> &Array {
                &self.array
            }
            fn writable(&self) -> Option<bool> {
                let $m = self;
                $writable
            }
            fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
                self.deleter
            }
            fn wrap(
                $array: Array,
                $context: *mut c_void,
                $flags: u64,
                $deleter: unsafe extern "C" fn(*mut Self),
            ) -> Self {
                $new
            }
            fn context(&self) -> *mut c_void {
                self.context
            }
        }
    };
}

managed!(Legacy, c"dltensor", c"used_dltensor", |_m| None, None, |array, context, flags, deleter| {
    let _ = flags;
    Legacy { array, context, deleter: Some(deleter) }
});
managed!(
    Versioned,
    c"dltensor_versioned",
    c"used_dltensor_versioned",
    |m| Some(m.version),
    Some(m.flags & READ_ONLY == 0),
    |array, context, flags, deleter| Versioned { version: VERSION, context, deleter: Some(deleter), flags, array }
);

/// Dtypes of DLPack that no tensor has: type code, bits and name.
const OTHERS: [(u8, u8, &str); 9] = [
    (5, 32, "complex32"),
    (7, 8, "float8_e3m4"),
    (8, 8, "float8_e4m3"),
    (9, 8, "float8_e4m3b11fnuz"),
    (10, 8, "float8_e4m3fn"),
    (11, 8, "float8_e4m3fnuz"),
    (12, 8, "float8_e5m2"),
    (13, 8, "float8_e5m2fnuz"),
    (14, 8, "float8_e8m0fnu"),
];

impl Element {
    /// The dtype.
    pub fn read(&self) -> minitensor::Result<DType> {
        let kind = match self.code {
            0 => Some(Kind::Signed),
            1 => Some(Kind::Unsigned),
            2 | 4 => Some(Kind::Float),
            5 => Some(Kind::Complex),
            6 => Some(Kind::Bool),
            _ => None,
        };
        let fits = |d: &DType| {
            Some(d.kind()) == kind
                && d.size() * 8 == usize::from(self.bits)
                && (*d == DType::Bf16) == (self.code == 4)
                && self.lanes == 1
        };
        DType::ALL.iter().copied().find(fits).ok_or_else(|| {
            let known =
                OTHERS.iter().find(|(code, bits, _)| (*code, *bits) == (self.code, self.bits) && self.lanes == 1);
            Error::type_(match known {
                Some((.., name)) => format!("from_dlpack: no tensor has the dtype {name}; convert the array first"),
                None => format!(
                    "from_dlpack: unknown dtype of type code {}, {} bits, {} lanes; convert the array first",
                    self.code, self.bits, self.lanes
                ),
            })
        })
    }
}

impl Array {
    /// A description of a tensor on this device. The pointers are to its sizes and strides.
    pub fn new(tensor: &Tensor, device: DlDevice, shape: *mut i64, strides: *mut i64) -> Array {
        tensor.storage().set_exported();
        let code = match (tensor.dtype(), tensor.dtype().kind()) {
            (DType::Bf16, _) => 4,
            (_, Kind::Signed) => 0,
            (_, Kind::Unsigned) => 1,
            (_, Kind::Float) => 2,
            (_, Kind::Complex) => 5,
            (_, Kind::Bool) => 6,
        };
        Array {
            data: tensor.data_ptr().cast(),
            device,
            ndim: tensor.ndim() as i32,
            dtype: Element { code, bits: (tensor.dtype().size() * 8) as u8, lanes: 1 },
            shape,
            strides,
            byte_offset: 0,
        }
    }

    /// The dtype, the shape and the device of a prototype.
    pub fn prototype(&self) -> minitensor::Result<(DType, Shape, Device)> {
        let missing = || Error::value(format!("the allocator of minitensor makes no arrays on {}", self.device));
        let device = self.device.find_new().ok_or_else(missing)?;
        Ok((self.dtype.read()?, self.sizes()?, device))
    }

    /// The shape.
    fn sizes(&self) -> minitensor::Result<Shape> {
        let rank = usize::try_from(self.ndim)
            .map_err(|_| Error::value(format!("from_dlpack: expected ndim of at least 0, got {}", self.ndim)))?;
        Shape::check_rank(rank)?;
        if rank > 0 && self.shape.is_null() {
            return Err(Error::value(format!("from_dlpack: the shape of {rank} dimensions is a null pointer")));
        }
        let sizes = self.list(self.shape);
        let mut shape = Shape::default();
        for size in sizes {
            shape.push(
                usize::try_from(*size)
                    .map_err(|_| Error::value(format!("from_dlpack: expected sizes of at least 0, got {sizes:?}")))?,
            );
        }
        shape.checked_numel()?;
        Ok(shape)
    }

    /// The shape, and the strides in elements.
    pub fn layout(&self) -> minitensor::Result<(Shape, Vec<isize>)> {
        let shape = self.sizes()?;
        let strides = match self.strides.is_null() {
            true => shape.contiguous_strides().to_vec(),
            false => self.list(self.strides).iter().map(|s| *s as isize).collect(),
        };
        Ok((shape, strides))
    }

    /// The sizes or the strides, one for each dimension.
    fn list(&self, numbers: *const i64) -> &[i64] {
        // SAFETY: DLPack's shape and strides have `ndim` numbers each.
        if self.ndim <= 0 { &[] } else { unsafe { std::slice::from_raw_parts(numbers, self.ndim as usize) } }
    }
}

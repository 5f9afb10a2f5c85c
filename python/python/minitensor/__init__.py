"""A tensor library in which each operation is defined once, in Rust, and its gradient is derived from the definition.

>>> import minitensor as mt
>>> x = mt.Tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = mt.ops.swish(x).sum()
>>> y.backward()
>>> x.grad.shape
(3,)
"""

from __future__ import annotations

import typing as _typing

from . import _interpreter as _interpreter  # isort: skip
from . import _minitensor, _namespaces, cuda, nn, onnx, ops, optim, plugins, profiler, testing, tuning
from ._description.notebook import register as _register_with_notebook
from ._grad_mode import enable_grad, no_grad, set_grad_enabled
from ._minitensor import (
    Device,
    DType,
    Graph,
    HookHandle,
    Tensor,
    __version__,
    arange,
    asarray,
    bfloat16,
    bool,
    complex64,
    complex128,
    empty,
    empty_cache,
    empty_like,
    execute_custom_op,
    execute_custom_op_py,
    eye,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    get_num_threads,
    get_rng_state,
    grad,
    int8,
    int16,
    int32,
    int64,
    is_custom_op_registered_py,
    is_grad_enabled,
    linspace,
    list_custom_ops_py,
    manual_seed,
    memory_stats,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    register_example_custom_ops,
    reset_peak_memory_stats,
    set_num_threads,
    set_rng_state,
    simd_level,
    simd_levels,
    uint8,
    uint16,
    uint32,
    uint64,
    unregister_custom_op_py,
    zeros,
    zeros_like,
)
from .arrays import as_ufunc, gufunc_signature, map_blocks
from .custom import BackwardContext, CustomOpBuilder, custom_op
from .forward_mode import jvp
from .program_op import element_op, row_op
from .saving import load, load_checkpoint, load_state, save, save_checkpoint, save_state
from .tracing import cond, jit, lazy, scan, vmap, while_loop

pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None


def tensor(
    data: object,
    dtype: _typing.Any = None,
    device: Device | str | None = None,
    requires_grad: _typing.Literal[True, False] = False,
) -> Tensor:
    """Creates a tensor with a copy of `data`. This is the same as `Tensor(…)`.

    >>> import minitensor as mt
    >>> mt.tensor([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    return Tensor(data, dtype, device, requires_grad)


if _typing.TYPE_CHECKING:
    # Every op is also an attribute of this module: `mt.exp` is `mt.ops.exp`. A real `__getattr__` slows down calls.
    def __getattr__(name: str) -> _typing.Any: ...


_minitensor._fill_ops()
plugins.discovery.enable_autoload()
_register_with_notebook()
_namespaces.install()

__all__ = [
    "BackwardContext",
    "CustomOpBuilder",
    "DType",
    "Device",
    "Graph",
    "HookHandle",
    "Tensor",
    "__version__",
    "arange",
    "as_ufunc",
    "asarray",
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "cond",
    "cuda",
    "custom_op",
    "e",
    "element_op",
    "empty",
    "empty_cache",
    "empty_like",
    "enable_grad",
    "execute_custom_op",
    "execute_custom_op_py",
    "eye",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "get_num_threads",
    "get_rng_state",
    "grad",
    "gufunc_signature",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_custom_op_registered_py",
    "is_grad_enabled",
    "jit",
    "jvp",
    "lazy",
    "linspace",
    "list_custom_ops_py",
    "load",
    "load_checkpoint",
    "load_state",
    "manual_seed",
    "map_blocks",
    "memory_stats",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "ones",
    "ones_like",
    "onnx",
    "ops",
    "optim",
    "pi",
    "plugins",
    "profiler",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "register_example_custom_ops",
    "reset_peak_memory_stats",
    "row_op",
    "save",
    "save_checkpoint",
    "save_state",
    "scan",
    "set_grad_enabled",
    "set_num_threads",
    "set_rng_state",
    "simd_level",
    "simd_levels",
    "tensor",
    "testing",
    "tuning",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unregister_custom_op_py",
    "vmap",
    "while_loop",
    "zeros",
    "zeros_like",
]

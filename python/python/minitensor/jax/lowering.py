"""The XLA programs of calls: a custom call of minitensor's handler, on the CPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import jax
from jax.extend.core import Primitive
from jax.interpreters import mlir

from .._minitensor import _xla_handler
from . import sharding
from .abstract import abstract_eval
from .call import Call, decode

#: The name of the handler in XLA.
TARGET = "minitensor"


def minor_version() -> int:
    """The minor version of XLA's foreign function interface, from the header that jaxlib contains."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text()) if header.exists() else None
    return int(found[1]) if found else 0


jax.ffi.register_ffi_target(TARGET, _xla_handler(minor_version()), platform="cpu")

# JAX passes the devices of a program to the lowering of these primitives only. It has no public way to add one. Without
# it, sharded arrays are gathered before a call.
try:
    from jax._src.dispatch import prim_requires_devices_during_lowering as _USES_DEVICES
except ImportError:  # pragma: no cover
    _USES_DEVICES = None


def uses_devices(primitive: Primitive) -> None:
    """Marks a primitive whose lowering needs the devices of the program."""
    if _USES_DEVICES is not None:
        _USES_DEVICES.add(primitive)


#: A call within one device.
local_p = Primitive("minitensor_local")
local_p.multiple_results = True
local_p.def_abstract_eval(abstract_eval)


def on_one_device(ctx: Any, *values: Any, **params: Any) -> Any:
    """The program of a call within one device."""
    call = Call(**params)
    return jax.ffi.ffi_lowering(TARGET)(ctx, *values, call=call.text, present=call.present, wrt=call.wrt)


def on_cpu(ctx: Any, *values: Any, **params: Any) -> Any:
    """The program of a call. On several devices, each computes its part of a batch that is sharded."""

    def local(*arrays: Any) -> list[Any]:
        return list(local_p.bind(*arrays, **params))

    if _USES_DEVICES is not None and jax.device_count() > 1:
        rule = sharding.Rule.of(Call(**params), ctx.avals_in, ctx.avals_out)
        if rule is not None:
            return mlir.lower_fun(rule.partitioned(local), multiple_results=True)(ctx, *values)
    return on_one_device(ctx, *values, **params)


def elsewhere(ctx: Any, *values: Any, **params: Any) -> NoReturn:
    """Refuses other devices."""
    name = decode(Call(**params).text)[0]
    raise NotImplementedError(
        f"op '{name}' has kernels for the CPU only, and the computation is for another platform; move its arguments "
        "with jax.device_put(x, jax.devices('cpu')[0]), or use jax.default_device"
    )


mlir.register_lowering(local_p, on_one_device, platform="cpu")

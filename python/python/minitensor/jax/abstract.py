"""The shapes and dtypes of the results of calls."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.sharding import PartitionSpec

from .._minitensor import _infer_call
from .call import Call, decode
from .sharding import Rule


class UnknownShapeError(jax.errors.JAXTypeError):
    """The shapes of the results depend on values, which are not known while a function is traced."""


def abstract_eval(*avals: Any, **params: Any) -> list[Any]:
    """The abstract arrays of the results of a call."""
    call = Call(**params)
    if call.wrt:
        # A gradient has the type of its tensor.
        return [avals[i].update(weak_type=False) for i in call.wanted()]
    try:
        results = _infer_call(call.text, metas(call.present, avals))
    except (RuntimeError, NotImplementedError) as error:
        raise UnknownShapeError(
            f"op '{decode(call.text)[0]}': the shapes of its results are not known without the values of its inputs, "
            "so jax.jit, jax.vmap and similar transformations cannot trace it; pass size= if the op takes it, or call "
            f"it outside of them. Its error: {error}"
        ) from error
    arrays = [ShapedArray(shape, jax.dtypes.canonicalize_dtype(jnp.dtype(dtype))) for shape, dtype in results]
    return _on_mesh(call, avals, arrays)


#: The shapes and dtypes of the inputs of a call; None for an absent one.
Metas = tuple[tuple[tuple[int, ...], str] | None, ...]


def metas(present: str, avals: Sequence[Any]) -> Metas:
    """The shapes and dtypes of the inputs of a call, as the op sees them."""
    given = iter(avals)
    inputs = [None if flag == "0" else next(given) for flag in present]
    return tuple(
        None if t is None else (t.shape, wide(t.dtype.name) if flag == "2" else t.dtype.name)
        for t, flag in zip(inputs, present, strict=True)
    )


#: The integers of twice the size.
_WIDE = {"int32": "int64", "uint32": "uint64"}


def wide(dtype: str) -> str:
    """The integer dtype of twice the size."""
    return _WIDE.get(dtype, dtype)


@functools.lru_cache(4096)
def fitting(text: str, inputs: Metas, wider: str) -> str | None:
    """The second of two ways to pass tensors, if the op takes only that: `wider` has the flags of a `Call`.

    JAX has no integers of 64 bits unless they are enabled, but an op may take only these, as indices do.
    """
    try:
        _infer_call(text, inputs)
    except TypeError:
        dtypes = zip(inputs, wider, strict=True)
        try:
            _infer_call(text, [(t[0], wide(t[1])) if t is not None and flag == "2" else t for t, flag in dtypes])
        except (TypeError, ValueError, RuntimeError, NotImplementedError):
            return None
        return wider
    except (ValueError, RuntimeError, NotImplementedError):
        return None
    return None


def _on_mesh(call: Call, avals: Sequence[Any], results: list[Any]) -> list[Any]:
    """The results on the mesh of the arguments, if they have one: sharded as these, and varying over the same axes."""
    model = next((a for a in avals if not a.sharding.mesh.empty), None)
    if model is None:
        return results
    mesh = model.sharding.mesh
    rule = Rule.of(call, avals, results)
    axes = {} if rule is None else rule.axes(mesh, avals)
    on_mesh = []
    for k, result in enumerate(results):
        names = [""] * len(result.shape) if rule is None else rule.outputs[k]
        sharding = model.sharding.update(spec=PartitionSpec(*[axes.get(name) for name in names]))
        on_mesh.append(model.update(shape=result.shape, dtype=result.dtype, weak_type=False, sharding=sharding))
    return on_mesh


def varying_axes(aval: Any) -> frozenset[Any]:
    """The mesh axes over which an array varies within `jax.shard_map`."""
    if hasattr(aval, "mat"):
        return frozenset(aval.mat.varying)
    # Versions of JAX before 0.10.
    return frozenset(getattr(aval, "vma", ()))

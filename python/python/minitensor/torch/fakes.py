"""The shapes of ops over whole tensors, for symbolic sizes.

The body of such an op computes shapes in Rust, where a size is a number. PyTorch computes the same shapes for symbols
by a *fake*: a function whose results have the shapes of ours.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .._minitensor import _op_identity

Fake = Callable[..., Any]

_log = logging.getLogger("minitensor.torch")

#: The fakes of built-in ops, by name.
FAKES: dict[str, Fake] = {}
#: Those of other ops, each with the identity of the op.
_ADDED: dict[str, tuple[Fake, int]] = {}


def register_fake(name: str) -> Callable[[Fake], Fake]:
    """Registers a function that computes the shapes of the results of an op, also for symbolic sizes.

    Only an op over whole tensors without a `shape` clause needs one. Without it, `torch.compile` compiles the op for
    each size.

    The function takes the arguments of the op; the tensors are of float32 and have no values. It returns one tensor for
    each result, of which only the shape matters. When a call is compiled, the shapes are compared with those of the op.
    If they differ, or if the function raises an error, the call is compiled for its sizes, and the logger
    `minitensor.torch` says why.

    Args:
        name: the full name of the op, such as `my_ops::tiled`.

    Raises:
        ValueError: if there is no such op.

    >>> import minitensor as mt, minitensor.torch
    >>> @mt.custom_op(name="docs::tiled")
    ... def tiled(x, *, count: int):
    ...     return mt.concat([x] * count)
    >>> @minitensor.torch.register_fake("docs::tiled")
    ... def _(x, count):
    ...     return x.new_empty(x.shape[0] * count, *x.shape[1:])
    >>> mt.unregister_custom_op_py("docs::tiled")
    """
    identity = _op_identity(name)
    if identity is None:
        raise ValueError(f"register_fake: there is no op '{name}'; register the op first")

    def register(fake: Fake) -> Fake:
        _ADDED[name] = fake, identity
        return fake

    return register


def find(name: str) -> Fake | None:
    """The fake of an op. One that was registered for an earlier op of this name does not count."""
    added = _ADDED.get(name)
    return added[0] if added is not None and added[1] == _op_identity(name) else FAKES.get(name)


def shapes(name: str, fake: Fake, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[tuple[Any, ...]] | None:
    """The shapes of the results by the fake of an op; None if it does not take these arguments."""
    try:
        found = fake(*map(_without_values, inputs), **attrs)
        return [tuple(t.shape) for t in ([found] if isinstance(found, Tensor) else found)]
    except Exception as error:
        report(name, f"{type(error).__name__}: {error}")
        return None


def report(name: str, why: str) -> None:
    """Logs why the fake of an op is not used."""
    _log.info("op '%s' is compiled for its sizes, without its fake: %s", name, why)


def _without_values(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [_without_values(t) for t in given]
    return None if given is None else torch.empty(given.shape, device="meta")


def _like_first(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return x


def _of_shape(x: Tensor, *_: Any, shape: Sequence[int], **__: Any) -> Tensor:
    return x.new_empty(tuple(shape))


def _reduced(t: Tensor, reduction: str) -> Tensor:
    return t if reduction == "none" else t.new_empty(())


def _sliced(x: Tensor, axis: int, start: int | None, stop: int | None, step: int) -> Tensor:
    if step > 0:
        return x.movedim(axis, 0)[start:stop:step].movedim(0, axis)
    # PyTorch takes no negative step.
    n = x.shape[axis]

    def bound(given: int | None, default: Any) -> Any:
        at = default if given is None else given + n if given < 0 else given
        return torch.sym_max(torch.sym_min(at, n - 1), -1)

    count = (bound(start, n - 1) - bound(stop, -1) - step - 1) // -step
    return _with_size(x, axis, torch.sym_max(count, 0))


def _with_size(x: Tensor, axis: int, *sizes: Any) -> Tensor:
    """A tensor with other sizes in place of an axis."""
    axis %= x.ndim
    return x.new_empty((*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def _indexed(x: Tensor, indices: Sequence[Tensor]) -> Tensor:
    return x[tuple(index.long() for index in indices)]


def _margins(padding: Sequence[int], sign: int) -> list[int]:
    # PyTorch names the last axis first.
    return [sign * n for k in range(len(padding) - 2, -1, -2) for n in padding[k : k + 2]]


def _each(values: Sequence[int], rank: int) -> list[int]:
    """The value for each axis, if one may stand for all."""
    return list(values) * rank if len(values) == 1 else list(values)


def _max_pool1d(
    x: Tensor,
    kernel_size: list[int],
    stride: list[int] | None,
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> Tensor:
    # That of PyTorch makes the sizes constant.
    steps = [1, *stride] if stride else None
    rows = F.max_pool2d(x[..., None, :], [1, *kernel_size], steps, [0, *padding], [1, *dilation], ceil_mode=ceil_mode)
    return rows.squeeze(-2)


def _unfolded(x: Tensor, kernel_size: list[int], dilation: list[int], padding: list[int], stride: list[int]) -> Tensor:
    taps, count = 1, 1
    each = (_each(values, 2) for values in (kernel_size, dilation, padding, stride))
    for n, k, d, p, s in zip(x.shape[-2:], *each, strict=True):
        taps, count = taps * k, count * ((n + 2 * p - d * (k - 1) - 1) // s + 1)
    return x.new_empty(*x.shape[:-3], x.shape[-3] * taps, count)


def _folded(x: Tensor, output_size: list[int], kernel_size: list[int], **_: Any) -> Tensor:
    return x.new_empty(*x.shape[:-2], x.shape[-2] // math.prod(_each(kernel_size, 2)), *_each(output_size, 2))


def _over_windows(function: Callable[..., Tensor], rank: int) -> Fake:
    """The fake of a pool or convolution over the last axes. Functions of PyTorch admit one axis of batches."""

    def fake(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, **attrs: Any) -> Tensor:
        example = x.new_empty((1, *x.shape[-rank - 1 :]))
        found = function(example, **attrs) if weight is None else function(example, weight, **attrs)
        return x.new_empty((*x.shape[: -rank - 1], *found.shape[1:]))

    return fake


def _adaptive_pool(x: Tensor, output_size: list[int], rank: int) -> Tensor:
    return x.new_empty((*x.shape[:-rank], *_each(output_size, rank)))


FAKES |= {
    **dict.fromkeys(("astype", "clone", "conj", "contiguous", "imag", "real", "zeros_like"), _like_first),
    **dict.fromkeys(("argsort", "flip", "roll", "rand_like", "dropout", "random::dropout"), _like_first),
    **dict.fromkeys(("batch_norm", "group_norm", "instance_norm"), _like_first),
    "complex": lambda re, im: re + im,
    "concat": lambda tensors, axis: torch.cat(tensors, axis),
    "crop": lambda x, padding: F.pad(x, _margins(padding, -1)),
    "cross_entropy": lambda logits, target, reduction: _reduced(logits[..., 0], reduction),
    "expand": lambda x, shape: x.expand(shape),
    "flatten": lambda x, start, end: x.flatten(start, end),
    "fold": _folded,
    "index": _indexed,
    "matmul": torch.matmul,
    "matrix_transpose": lambda x: x.mT,
    "moveaxis": torch.movedim,
    "mse": lambda x, y, reduction: _reduced(x + y, reduction),
    "pad": lambda x, padding, value: F.pad(x, _margins(padding, 1)),
    "permute_dims": lambda x, axes: x.permute(axes),
    "reshape": lambda x, shape: x.reshape(shape),
    "slice": _sliced,
    "squeeze": lambda x, axis: x.squeeze() if axis is None else x.squeeze(axis),
    "stack": lambda tensors, axis: torch.stack(tensors, axis),
    "take": lambda x, indices, axis: _with_size(x, axis, *indices.shape),
    "transpose": lambda x, axis0, axis1: x.transpose(axis0, axis1),
    "unfold": _unfolded,
    "unsqueeze": lambda x, axis: x.unsqueeze(axis),
    **dict.fromkeys(("random::integers", "random::normal", "random::uniform"), _of_shape),
    **dict.fromkeys(("indexing::added_rows", "unslice"), _of_shape),
}
for _rank, _largest in ((1, _max_pool1d), (2, F.max_pool2d), (3, F.max_pool3d)):
    FAKES |= {
        f"adaptive_avg_pool{_rank}d": functools.partial(_adaptive_pool, rank=_rank),
        f"avg_pool{_rank}d": _over_windows(getattr(F, f"avg_pool{_rank}d"), _rank),
        f"conv{_rank}d": _over_windows(getattr(F, f"conv{_rank}d"), _rank),
        f"conv_transpose{_rank}d": _over_windows(getattr(F, f"conv_transpose{_rank}d"), _rank),
        f"max_pool{_rank}d": _over_windows(_largest, _rank),
    }

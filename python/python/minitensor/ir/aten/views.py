"""Other shapes of the same elements, and parts of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import ops
from ..native import rule
from .promotion import Tensor, cast


@rule("alias", "clone", "contiguous", "detach", "lift_fresh_copy", "lift_fresh", "resolve_conj")
@rule("resolve_neg")
def _same(self: Tensor) -> Tensor:
    return self


@rule("_to_copy", "to.dtype", "to.dtype_layout", "to.device")
def _to(
    self: Tensor, out_dtype: str, dtype: str | None = None, copy: bool = False, non_blocking: bool = False
) -> Tensor:
    return cast(self, out_dtype)  # type: ignore[no-any-return]


@rule("to.other", "type_as")
def _to_other(self: Tensor, other: Tensor, out_dtype: str, non_blocking: bool = False, copy: bool = False) -> Tensor:
    return cast(self, out_dtype)  # type: ignore[no-any-return]


@rule("copy")
def _copy(self: Tensor, src: Tensor, out_dtype: str, non_blocking: bool = False) -> Tensor:
    return ops.expand(cast(src, out_dtype), self.shape)


def reshape(x: Tensor, size: Sequence[int]) -> Tensor:
    """Returns the elements in another shape. One size may be -1, also if the tensor is empty."""
    known = math.prod(s for s in size if s != -1)
    return ops.reshape(x, [x.size // known if s == -1 and known else max(s, 0) for s in size])


@rule("view", "_unsafe_view", "view_copy")
def _view(self: Tensor, size: Sequence[int]) -> Tensor:
    return reshape(self, size)


@rule("reshape")
def _reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    return reshape(self, shape)


@rule("view_as", "reshape_as")
def _view_as(self: Tensor, other: Tensor) -> Tensor:
    return ops.reshape(self, other.shape)


@rule("flatten.using_ints")
def _flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    rank = max(self.ndim, 1)
    start, end = start_dim % rank, end_dim % rank
    shape = self.shape or (1,)
    return ops.reshape(self, [*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]])


@rule("unflatten.int")
def _unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    axis = dim % self.ndim
    return reshape(self, [*self.shape[:axis], *_filled(sizes, self.shape[axis]), *self.shape[axis + 1 :]])


def _filled(sizes: Sequence[int], count: int) -> list[int]:
    known = math.prod(s for s in sizes if s != -1)
    return [count // known if s == -1 else s for s in sizes]


@rule("permute", "permute_copy")
def _permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    return ops.permute_dims(self, list(dims)) if self.ndim else self


@rule("transpose.int", "swapaxes", "swapdims", "transpose_copy.int")
def _transpose(
    self: Tensor, dim0: int = 0, dim1: int = 0, axis0: int | None = None, axis1: int | None = None
) -> Tensor:
    first, second = dim0 if axis0 is None else axis0, dim1 if axis1 is None else axis1
    return ops.swapaxes(self, first, second) if self.ndim > 1 else self


@rule("t", "numpy_T", "t_copy")
def _t(self: Tensor) -> Tensor:
    return ops.permute_dims(self, list(reversed(range(self.ndim)))) if self.ndim > 1 else self


@rule("mT", "adjoint")
def _mt(self: Tensor) -> Tensor:
    return ops.matrix_transpose(self)


@rule("movedim.int", "moveaxis.int")
def _movedim(self: Tensor, source: int, destination: int) -> Tensor:
    return ops.moveaxis(self, source, destination)


@rule("movedim.intlist", "moveaxis.intlist")
def _movedims(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> Tensor:
    rank = self.ndim
    places = {d % rank: s % rank for s, d in zip(source, destination, strict=True)}
    rest = iter(axis for axis in range(rank) if axis not in places.values())
    return ops.permute_dims(self, [places[i] if i in places else next(rest) for i in range(rank)])


@rule("expand", "expand_copy")
def _expand(self: Tensor, size: Sequence[int], implicit: bool = False) -> Tensor:
    missing = len(size) - self.ndim
    return ops.expand(self, [self.shape[i - missing] if s == -1 else s for i, s in enumerate(size)])


@rule("broadcast_to")
def _broadcast_to(self: Tensor, size: Sequence[int]) -> Tensor:
    return _expand(self, size)  # type: ignore[no-any-return]


@rule("expand_as")
def _expand_as(self: Tensor, other: Tensor) -> Tensor:
    return ops.expand(self, other.shape)


@rule("broadcast_tensors")
def _broadcast_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    shape = _joined_shape([t.shape for t in tensors])
    return [ops.expand(t, shape) for t in tensors]


def _joined_shape(shapes: Sequence[Sequence[int]]) -> list[int]:
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
    return [next((s for s in sizes if s != 1), 1) for sizes in zip(*padded, strict=True)]


@rule("unsqueeze", "unsqueeze_copy")
def _unsqueeze(self: Tensor, dim: int) -> Tensor:
    return ops.expand_dims(self, dim)


@rule("squeeze", "squeeze.dim", "squeeze.dims", "squeeze_copy.dims")
def _squeeze(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    dims = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    removed = {d % self.ndim for d in dims} if self.ndim else set()
    return ops.reshape(self, [s for i, s in enumerate(self.shape) if i not in removed or s != 1])


def part(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Returns `length` elements from `start` along an axis."""
    return ops.slice(x, dim, start, start + length)


@rule("select.int", "select_copy.int")
def _select(self: Tensor, dim: int, index: int) -> Tensor:
    axis = dim % self.ndim
    found = part(self, axis, index % self.shape[axis], 1)
    return ops.reshape(found, [*self.shape[:axis], *self.shape[axis + 1 :]])


def bounds(size: int, start: int | None, end: int | None, step: int = 1) -> tuple[int, int]:
    """Returns the bounds of a slice of an axis."""
    first, last, _ = slice(start, end, step).indices(size)
    return first, max(first, last)


@rule("slice.Tensor", "slice_copy.Tensor")
def _slice(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    first, last = bounds(self.shape[dim], start, end)
    return self if (first, last, step) == (0, self.shape[dim], 1) else ops.slice(self, dim, first, last, step)


@rule("narrow", "narrow_copy")
def _narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    return part(self, dim, start % max(self.shape[dim], 1) if start < 0 else start, length)


@rule("split_with_sizes", "split_with_sizes_copy")
def _split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    starts = [sum(split_sizes[:i]) for i in range(len(split_sizes))]
    return [part(self, dim, start, size) for start, size in zip(starts, split_sizes, strict=True)]


@rule("split.sizes")
def _split_sizes(self: Tensor, split_size: Sequence[int], dim: int = 0) -> list[Tensor]:
    return _split_with_sizes(self, split_size, dim)  # type: ignore[no-any-return]


@rule("split.Tensor", "split_copy.Tensor")
def _split(self: Tensor, split_size: int, dim: int = 0) -> list[Tensor]:
    size = self.shape[dim]
    if not size:
        return [self]
    return [part(self, dim, start, min(split_size, size - start)) for start in range(0, size, split_size)]


@rule("chunk")
def _chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    return _split(self, max(-(-self.shape[dim] // chunks), 1), dim)  # type: ignore[no-any-return]


@rule("tensor_split.sections")
def _tensor_split(self: Tensor, sections: int, dim: int = 0) -> list[Tensor]:
    least, more = divmod(self.shape[dim], sections)
    return _split_with_sizes(  # type: ignore[no-any-return]
        self, [least + (i < more) for i in range(sections)], dim
    )


@rule("unbind.int", "unbind_copy.int")
def _unbind(self: Tensor, dim: int = 0) -> list[Tensor]:
    return [_select(self, dim, i) for i in range(self.shape[dim])]


@rule("diagonal", "diagonal_copy")
def _diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    rank = self.ndim
    a, b = dim1 % rank, dim2 % rank
    x = ops.permute_dims(self, [*(i for i in range(rank) if i not in (a, b)), a, b])
    rows, columns = x.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(rows - row, columns - column), 0)
    if not count:
        return ops.reshape(ops.slice(x, -1, 0, 0), [*x.shape[:-2], 0]) if not x.size else _empty_diagonal(x)
    # In a row of all elements, those of the diagonal are `columns + 1` apart.
    flat = ops.reshape(x, [*x.shape[:-2], rows * columns])
    first = row * columns + column
    return ops.slice(flat, -1, first, first + (count - 1) * (columns + 1) + 1, columns + 1)


def _empty_diagonal(x: Tensor) -> Tensor:
    return ops.reshape(ops.slice(ops.slice(x, -1, 0, 1), -2, 0, 0), [*x.shape[:-2], 0])


@rule("diag_embed")
def _diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    count = self.shape[-1]
    size = count + abs(offset)
    row, column = max(-offset, 0), max(offset, 0)
    positions = [(row + i) * size + column + i for i in range(count)]
    indices = Tensor(positions, dtype="int64") if positions else Tensor([], dtype="int64")
    flat = ops.scatter(self, ops.expand(indices, self.shape), size * size, -1)
    x = ops.reshape(flat, [*self.shape[:-1], size, size])
    rank = x.ndim
    places = {dim1 % rank: rank - 2, dim2 % rank: rank - 1}
    rest = iter(range(rank - 2))
    return ops.permute_dims(x, [places[i] if i in places else next(rest) for i in range(rank)])


@rule("as_strided", "as_strided_copy")
def _as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    from .indexing import grid

    positions = grid(size, stride, storage_offset or 0)
    return ops.take(ops.reshape(self, [self.size]), positions)


@rule("flip")
def _flip(self: Tensor, dims: Sequence[int]) -> Tensor:
    return ops.flip(self, list(dims)) if dims and self.ndim else self


@rule("roll")
def _roll(self: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    x = self if dims else ops.reshape(self, [self.size])
    for shift, dim in zip(shifts, dims or [0], strict=True):
        x = ops.roll(x, shift, dim)
    return ops.reshape(x, self.shape)


@rule("repeat")
def _repeat(self: Tensor, repeats: Sequence[int]) -> Tensor:
    return tiled(self, repeats)


def tiled(x: Tensor, repeats: Sequence[int]) -> Tensor:
    """Repeats the elements along each axis. Axes are added in front if there are more repeats."""
    sizes = [1] * (len(repeats) - x.ndim) + list(x.shape)
    pairs = [n for repeat, size in zip(repeats, sizes, strict=True) for n in (repeat, size)]
    ones = [n for size in sizes for n in (1, size)]
    wide = ops.expand(ops.reshape(x, ones), pairs)
    return ops.reshape(wide, [r * s for r, s in zip(repeats, sizes, strict=True)])


@rule("tile")
def _tile(self: Tensor, dims: Sequence[int]) -> Tensor:
    return _repeat(self, [1] * (self.ndim - len(dims)) + list(dims))  # type: ignore[no-any-return]


@rule("repeat_interleave.self_int")
def _repeat_interleave(self: Tensor, repeats: int, dim: int | None = None, output_size: int | None = None) -> Tensor:
    x = ops.reshape(self, [self.size]) if dim is None else self
    axis = (0 if dim is None else dim) % x.ndim
    wide = ops.expand(ops.expand_dims(x, axis + 1), [*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]])
    return ops.reshape(wide, [*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]])


@rule("cat", "concat", "concatenate")
def _cat(tensors: Sequence[Tensor], out_dtype: str, dim: int = 0) -> Tensor:
    # PyTorch skips empty rows of any shape.
    kept = [cast(t, out_dtype) for t in tensors if t.shape != (0,)] or [cast(tensors[0], out_dtype)]
    return ops.concat(kept, dim) if len(kept) > 1 else kept[0]


@rule("stack")
def _stack(tensors: Sequence[Tensor], out_dtype: str, dim: int = 0) -> Tensor:
    return ops.stack([cast(t, out_dtype) for t in tensors], dim)


@rule("unfold")
def _unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    from .indexing import grid

    self = self if self.ndim else ops.reshape(self, [1])  # noqa: PLW0642 - the schema
    axis = dimension % self.ndim
    count = (self.shape[axis] - size) // step + 1
    found = ops.take(self, ops.reshape(grid([count, size], [step, 1]), [count * size]), axis)
    wide = ops.reshape(found, [*self.shape[:axis], count, size, *self.shape[axis + 1 :]])
    return ops.moveaxis(wide, axis + 1, -1)


@rule("meshgrid", "meshgrid.indexing")
def _meshgrid(tensors: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    sizes = [t.size for t in tensors]
    found = []
    for i, t in enumerate(tensors):
        found.append(ops.expand(ops.reshape(t, [sizes[i] if i == j else 1 for j in range(len(sizes))]), sizes))
    return [ops.swapaxes(t, 0, 1) for t in found] if indexing == "xy" and len(sizes) > 1 else found


@rule("pixel_shuffle")
def _pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    *batch, channels, height, width = self.shape
    r, rank = upscale_factor, len(batch)
    x = ops.reshape(self, [*batch, channels // r**2, r, r, height, width])
    axes = [*range(rank), *(rank + i for i in (0, 3, 1, 4, 2))]
    return ops.reshape(ops.permute_dims(x, axes), [*batch, channels // r**2, height * r, width * r])


@rule("pixel_unshuffle")
def _pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    *batch, channels, height, width = self.shape
    r, rank = downscale_factor, len(batch)
    x = ops.reshape(self, [*batch, channels, height // r, r, width // r, r])
    axes = [*range(rank), *(rank + i for i in (0, 2, 4, 1, 3))]
    return ops.reshape(ops.permute_dims(x, axes), [*batch, channels * r**2, height // r, width // r])


@rule("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(self: Tensor, groups: int) -> Tensor:
    batch, channels, *rest = self.shape
    x = ops.reshape(self, [batch, groups, channels // groups, *rest])
    return ops.reshape(ops.swapaxes(x, 1, 2), self.shape)


@rule("view_as_complex")
def _view_as_complex(self: Tensor) -> Tensor:
    return ops.complex(_select(self, -1, 0), _select(self, -1, 1))


@rule("view_as_real")
def _view_as_real(self: Tensor) -> Tensor:
    return ops.stack([ops.real(self), ops.imag(self)], -1)


@rule("real")
def _real(self: Tensor) -> Tensor:
    return ops.real(self)


@rule("imag")
def _imag(self: Tensor) -> Tensor:
    return ops.imag(self)


@rule("complex")
def _complex(real: Tensor, imag: Tensor) -> Tensor:
    return ops.complex(real, imag)


@rule("conj", "_conj", "conj_physical", "_conj_physical")
def _conj(self: Tensor) -> Tensor:
    return ops.conj(self)


@rule("constant_pad_nd")
def _constant_pad_nd(self: Tensor, pad: Sequence[int], out_dtype: str, value: Any = 0) -> Tensor:
    # The pairs begin with the last axis. Negative numbers remove elements.
    x = self
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        if before < 0 or after < 0:
            size = x.shape[-1 - i]
            x = ops.slice(x, x.ndim - 1 - i, max(-before, 0), size - max(-after, 0))
    pairs = [max(n, 0) for i in reversed(range(len(pad) // 2)) for n in (pad[2 * i], pad[2 * i + 1])]
    return ops.pad(x, pairs, float(value or 0)) if any(pairs) else x

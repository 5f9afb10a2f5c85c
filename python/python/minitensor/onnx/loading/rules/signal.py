"""Fourier transforms, and filters of frequencies."""

from __future__ import annotations

import numpy as np

from .... import ops
from ....ir.aten.indexing import grid
from ..elements import dtype_of
from ..error import OnnxError
from ..rule import rule
from ..values import Known, Tensor, tensor

#: Transforms of at most this length are products of matrices.
MAX_MATRIX = 256


def _transformed(re: Tensor, im: Tensor, sign: int) -> tuple[Tensor, Tensor]:
    """Returns the Fourier transform along the last axis. Lengths are halved while they are even (Cooley–Tukey)."""
    n = re.shape[-1]
    if n > MAX_MATRIX and n % 2 == 0:
        (a, b), (c, d) = (_transformed(ops.slice(re, -1, k, n, 2), ops.slice(im, -1, k, n, 2), sign) for k in (0, 1))
        angle = sign * 2 * np.pi * np.arange(n // 2) / n
        cos, sin = (tensor(f(angle)).astype(re.dtype) for f in (np.cos, np.sin))
        c, d = c * cos - d * sin, c * sin + d * cos
        return ops.concat([a + c, a - c], -1), ops.concat([b + d, b - d], -1)
    # The products of positions are reduced first, so that angles are exact.
    angle = sign * 2 * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n
    cos, sin = (tensor(f(angle)).astype(re.dtype) for f in (np.cos, np.sin))
    return ops.matmul(re, cos) - ops.matmul(im, sin), ops.matmul(re, sin) + ops.matmul(im, cos)


def _dft(x: Tensor, length: int | None, axis: int, inverse: bool, onesided: bool) -> Tensor:
    at = axis % x.ndim
    moved = ops.moveaxis(x, at, -2)
    if length is None:
        length = 2 * (moved.shape[-2] - 1) if inverse and onesided else moved.shape[-2]
    re = ops.reshape(ops.slice(moved, -1, 0, 1), moved.shape[:-1])
    is_real = moved.shape[-1] == 1
    im = ops.zeros_like(re) if is_real else ops.reshape(ops.slice(moved, -1, 1, 2), moved.shape[:-1])
    wanted = length // 2 + 1 if inverse and onesided else length
    re, im = (_resized(t, wanted) for t in (re, im))
    if inverse and onesided:
        # The other half of the spectrum are the conjugates.
        re, im = (
            ops.concat([t, ops.flip(ops.slice(t, -1, 1, length - wanted + 1), -1) * sign], -1)
            for t, sign in ((re, 1.0), (im, -1.0))
        )
    a, b = _transformed(re, im, 1 if inverse else -1)
    if inverse:
        a, b = a / float(length), b / float(length)
    if onesided and not inverse:
        a, b = (ops.slice(t, -1, 0, length // 2 + 1) for t in (a, b))
    parts = [a] if onesided and inverse else [a, b]
    return ops.moveaxis(ops.stack(parts, -1), -2, at)


def _resized(x: Tensor, size: int) -> Tensor:
    """Cuts rows, or appends zeros."""
    return ops.slice(x, -1, 0, size) if x.shape[-1] >= size else ops.pad(x, [0, size - x.shape[-1]])


@rule("DFT", since=20)
def _dft_20(
    x: Tensor, dft_length: Known | None = None, axis: Known | None = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    length = None if dft_length is None else int(dft_length.item())
    return _dft(x, length, -2 if axis is None else int(axis.item()), bool(inverse), bool(onesided))


@rule("DFT", since=17)
def _dft_17(
    x: Tensor, dft_length: Known | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _dft(x, None if dft_length is None else int(dft_length.item()), axis, bool(inverse), bool(onesided))


@rule("STFT")
def _stft(
    signal: Tensor,
    frame_step: Known,
    window: Tensor | None = None,
    frame_length: Known | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    batch, total, parts = signal.shape
    step = int(frame_step.item())
    length = total if window is None else window.shape[0]
    length = length if frame_length is None else int(frame_length.item())
    if step < 1 or not 1 <= length <= total:
        raise OnnxError(f"frames of {length} elements with steps of {step} do not fit a signal of {total} elements")
    count = (total - length) // step + 1
    at = ops.reshape(grid([count, length], [step, 1]), [count * length])
    frames = ops.reshape(ops.take(signal, at, 1), [batch, count, length, parts])
    if window is not None:
        frames = frames * ops.reshape(window, [length, 1])
    return _dft(frames, length, 2, False, bool(onesided) and parts == 1)


@rule("MelWeightMatrix")
def _mel_weight_matrix(
    num_mel_bins: Known,
    dft_length: Known,
    sample_rate: Known,
    lower_edge_hertz: Known,
    upper_edge_hertz: Known,
    *,
    output_datatype: int = 1,
) -> Tensor:
    bins, length = int(num_mel_bins.item()), int(dft_length.item())
    low, high = (2595 * np.log10(1 + float(edge.item()) / 700) for edge in (lower_edge_hertz, upper_edge_hertz))
    mels = low + (high - low) / (bins + 2) * np.arange(bins + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    edges = ((length + 1) * hertz // int(sample_rate.item())).astype("int64")
    found = np.zeros((length // 2 + 1, bins))
    at = np.arange(length // 2 + 1)
    for k in range(bins):
        left, center, right = edges[k : k + 3]
        # A triangle. The half of it that has no width is left out, but for the peak.
        rising = (at - left) / (center - left) if center > left else (at == center).astype(float)
        falling = (right - at) / (right - center) if right > center else np.zeros(len(at))
        is_left = (at >= left) & (at <= center)
        found[:, k] = np.where(is_left, rising, np.where((at > center) & (at < right), falling, 0))
    return tensor(found).astype(dtype_of(output_datatype))

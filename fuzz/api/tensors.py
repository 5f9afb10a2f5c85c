"""Random tensors: any dtype, shape and layout; and how results are compared."""

import hashlib

import numpy as np

import minitensor as mt

FLOATS = ["float32", "float64", "float16", "bfloat16"]
COMPLEX = ["complex64", "complex128"]
WHOLE = ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"]
DTYPES = [*FLOATS, *COMPLEX, *WHOLE, "bool"]

SIZES = [0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-310, 1e-20, 1e20, 3e38, 1e300, 88.8, -104.0, 710.0]
EDGES = [0, 1, -1, 2, 127, 128, 255, 256, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


def shape(rng, dims=None, most=600):
    """A random shape of at most `most` elements; sometimes of many dimensions."""
    if dims is None:
        dims = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]) if rng.random() < 0.97 else rng.randint(6, 64)
    sizes, room = [], most
    for _ in range(dims):
        size = rng.choice(SIZES if dims < 6 else [1, 1, 1, 1, 1, 1, 1, 2])
        size = size if size <= room else 1
        room //= max(size, 1)
        sizes.append(size)
    return tuple(sizes)


def values(rng, dims, dtype):
    """An array of random numbers, among them those at the ends of the range. It stands for bfloat16 as float32."""
    draw = np.random.default_rng(rng.getrandbits(64))
    if dtype == "bool":
        return draw.random(dims) < 0.5
    if dtype in WHOLE:
        array = draw.integers(0, 4, dims) if dtype[0] == "u" else draw.integers(-3, 4, dims)
        if rng.random() < 0.3:
            array = np.where(draw.random(dims) < 0.3, draw.choice(np.array(EDGES, "int64"), dims), array)
        return np.asarray(array).astype(dtype)
    array = np.asarray(draw.standard_normal(dims))
    if rng.random() < 0.3:
        array = np.round(array * 2)
    if rng.random() < 0.3:
        array = np.where(draw.random(dims) < 0.2, draw.choice(np.array(SPECIAL), dims), array)
    if dtype in COMPLEX:
        array = array + 1j * draw.standard_normal(dims)
    with np.errstate(all="ignore"):
        return np.asarray(array).astype("float32" if dtype == "bfloat16" else dtype)


def tensor(rng, dims, dtype, contiguous=0.4):
    """A tensor of that shape and dtype; mostly a view: permuted, sliced, backwards, expanded, or at an offset."""
    if rng.random() < contiguous:
        return mt.Tensor(values(rng, dims, dtype), dtype=dtype)
    order = list(range(len(dims)))
    rng.shuffle(order)
    steps = [rng.choice([1, 1, 1, 2, -1, -2]) for _ in dims]
    starts = [rng.choice([0, 0, 1]) for _ in dims]
    expanded = [rng.random() < 0.12 for _ in dims]
    small = len(dims) <= 8
    sizes = [
        1 if wide else (n * abs(step) + start if small else n)
        for n, step, start, wide in zip(dims, steps, starts, expanded, strict=True)
    ]
    base = mt.Tensor(values(rng, tuple(sizes[axis] for axis in order), dtype), dtype=dtype)
    x = base.permute([order.index(axis) for axis in range(len(dims))]) if dims else base
    if small and dims:
        x = x[tuple(part(n, *rest) for n, *rest in zip(dims, steps, starts, expanded, strict=True))]
    return x.expand(*dims) if any(expanded) else x


def part(size, step, start, expanded):
    """The slice of `size` elements, from `start` on if the step goes forwards."""
    if expanded:
        return slice(None)
    if step > 0:
        return slice(start, start + size * step, step)
    return slice(None, None, step) if not start else slice(-1, -1 - size * -step, step) if size else slice(0, 0)


def array(x):
    """The elements as NumPy has them, and bfloat16 as float32."""
    x = x.detach()
    return (x.astype("float32") if x.dtype == mt.bfloat16 else x).numpy()


def digest(x):
    """What two results share if all their bits agree, any NaN for any other."""
    a = np.array(array(x), order="C").reshape(-1)
    if a.dtype.kind in "fc":
        parts = a.view(a.real.dtype)
        parts[np.isnan(parts)] = np.nan
    return hashlib.blake2b(f"{x.dtype}{x.shape}".encode() + a.tobytes(), digest_size=8).hexdigest()


def close(x, y, tolerance, terms=0.0):
    """Whether two results agree but for rounding.

    They are sums of terms of this size, or of their own size if it is larger.
    """
    a, b = array(x), array(y)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return bool((a == b).all())
    # Where sums overflow, or are of numbers that are no numbers, it depends on the order of the terms.
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return True
    size = float(np.abs(b).max(initial=terms))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * size + np.finfo(a.dtype).tiny))


def describe(x):
    """A tensor, or another argument, in few words."""
    if isinstance(x, mt.Tensor):
        return f"{x.dtype}{list(x.shape)}/{list(x.strides)}@{x.device}{'*' if x.requires_grad else ''}"
    if isinstance(x, (list, tuple)) and any(isinstance(v, mt.Tensor) for v in x):
        return "[" + ", ".join(map(describe, x)) + "]"
    return repr(x)[:80]

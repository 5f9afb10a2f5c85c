"""Chains of what a tensor's methods do, beside the same steps of NumPy."""

import copy
import pickle

import claims
import numpy as np
import tensors

import minitensor as mt

#: What NumPy has too, with results of the same bits.
KINDS = ["float32", "float64", "float16", "int64", "int8", "uint8", "bool"]


def index(rng, dims):
    """Anything that may stand in brackets, for a tensor and for an array."""
    parts, pairs = rng.choice([1, 1, 2, 2, 3, 4]), []
    for axis in range(parts):
        pairs.append(INDICES[rng.choice(list(INDICES))](rng, dims[axis] if axis < len(dims) else 2, dims[axis:]))
    if len(pairs) == 1 and rng.random() < 0.7:
        return pairs[0]
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


def both(value):
    return value, value


def whole(rng, n):
    return rng.randint(-n, n - 1) if n and rng.random() < 0.9 else rng.choice([0, n, -n - 1, 2**40, 2**70])


def cut(rng, n):
    ends = [None, 0, 1, -1, n, -n, n + 3, 2**62, -(2**63)]
    return slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 1, 2, -1, -3, 2**62]))


def listed(rng, n):
    dims = rng.choice([(2,), (3,), (0,), (2, 2), (1,), ()])
    count = int(np.prod(dims))
    low = -n if rng.random() < 0.3 else 0
    drawn = [rng.randint(low, n - 1) if n else 0 for _ in range(count)]
    a = np.array(drawn, "int64").reshape(dims)
    short = a.astype("int8" if n < 128 else "int32")
    return rng.choice([(mt.Tensor(a), a), (a, a), (a.tolist(), a.tolist()), (mt.Tensor(short), a)])


def mask(rng, dims):
    a = tensors.values(rng, tuple(dims[: rng.choice([1, 1, 2])]), "bool")
    return rng.choice([(mt.Tensor(a), a), (a, a)])


INDICES = {
    "whole": lambda rng, n, dims: both(whole(rng, n)),
    "slice": lambda rng, n, dims: both(cut(rng, n)),
    "none": lambda rng, n, dims: both(None),
    "dots": lambda rng, n, dims: both(...),
    "list": lambda rng, n, dims: listed(rng, n),
    "mask": lambda rng, n, dims: mask(rng, dims),
    "truth": lambda rng, n, dims: both(rng.random() < 0.5),
    "number": lambda rng, n, dims: rng.choice([(mt.Tensor(0), np.int64(0)), both(np.int32(0)), both(0)]),
    "odd": lambda rng, n, dims: both(rng.choice(ODD)),
}
ODD = ["a", 1.5, {}, [[]], [None], object(), 1j, b"x", [1.5], [[0], [1, 2]]]


def reshaped(rng, x, a, told):
    dims = list(a.shape)
    rng.shuffle(dims)
    if dims and rng.random() < 0.4:
        dims[rng.randrange(len(dims))] = -1
    if rng.random() < 0.2:
        dims = [rng.choice([1, 0, -1, 2, a.size, 2**62]) for _ in range(rng.randint(0, 3))]
    return attempted(lambda: x.reshape(dims), lambda: a.reshape(dims))


def permuted(rng, x, a, told):
    axes = rng.sample(range(a.ndim), a.ndim)
    axes = [axis - a.ndim if rng.random() < 0.3 else axis for axis in axes]
    return attempted(lambda: x.permute(axes), lambda: a.transpose(axes))


def expanded(rng, x, a, told):
    dims = [rng.choice([1, 2])] * rng.choice([0, 1]) + [n if n != 1 else rng.choice([1, 3, 0]) for n in a.shape]
    return attempted(lambda: x.expand(dims), lambda: np.broadcast_to(a, dims))


def taken(rng, x, a, told):
    mine, theirs = index(rng, a.shape)
    told["call"] += f"[{theirs!r:.200}]"
    return attempted(lambda: x[mine], lambda: a[theirs])


def assigned(rng, x, a, told):
    mine, theirs = index(rng, a.shape)
    value = rng.choice([0, 1.5, True, np.float32(1), mt.Tensor([1]), [1], np.ones(3, a.dtype), mt.zeros(0), "a", None])
    told["call"] += f"[{theirs!r:.200}] = {value!r:.80}"
    x, a = x.clone(), a.copy()

    def mine_():
        x[mine] = value
        return x

    def theirs_():
        a[theirs] = np.asarray(value) if isinstance(value, mt.Tensor) else value
        return a

    return attempted(mine_, theirs_)


def turned(rng, x, a, told):
    return attempted(lambda: mt.from_dlpack(x), lambda: np.from_dlpack(x))


def through(rng, x, a, told):
    way = rng.choice(
        [
            lambda x: pickle.loads(pickle.dumps(x)),
            copy.copy,
            copy.deepcopy,
            lambda x: mt.from_numpy(x.numpy()),
            lambda x: mt.asarray(memoryview(x)),
            lambda x: mt.Tensor(x.tolist(), dtype=x.dtype).reshape(x.shape),
            lambda x: mt.Tensor(np.asarray(x)),
            lambda x: mt.stack(list(x)) if x.ndim and len(x) else x,
            lambda x: x.contiguous(),
            lambda x: x.clone().detach(),
            lambda x: x.to("cpu"),
        ]
    )
    return attempted(lambda: way(x), lambda: a)


def shown(rng, x, a, told):
    claims.attempt(rng.choice([repr, str, len, bool, float, int, complex, hash, list, dir, sizes, format, item]), x)
    return x, a


def item(x):
    return x.item()


def sizes(x):
    return x.nbytes, x.itemsize, x.strides, x.size, x.T, x.mT, x.is_contiguous(), x._repr_html_()


def calculated(rng, x, a, told):
    name = rng.choice(["add", "sub", "mul", "neg", "invert", "and", "lt", "eq", "abs"])
    other = () if name in ("neg", "invert", "abs") else (rng.choice([1, 2, x, True]),)
    name = f"__{name}__"
    theirs = tuple(a if o is x else o for o in other)
    mine = claims.attempt(lambda: getattr(x, name)(*other))
    with np.errstate(all="ignore"):
        expected = claims.attempt(lambda: getattr(a, name)(*theirs))
    if claims.failed(mine) or claims.failed(expected) or mine is NotImplemented or expected is NotImplemented:
        return x, a
    return (mine, np.asarray(expected)) if mine.dtype.name == np.asarray(expected).dtype.name else (x, a)


class Same(Exception):
    """A step that is refused on both sides."""


def attempted(mine, theirs):
    mine = claims.attempt(mine)
    try:
        theirs = theirs()
    except (KeyboardInterrupt, AssertionError):
        raise
    except Exception as error:
        # NumPy has no empty arrays of huge sizes.
        if claims.failed(mine) or "too big" in str(error):
            raise Same from None
        raise claims.Broken(f"NumPy raises {error!r:.200}, minitensor returns {tensors.describe(mine)}") from None
    if claims.failed(mine):
        raise Same
    return mine, np.asarray(theirs)


STEPS = [reshaped, permuted, expanded, taken, taken, assigned, turned, through, shown, calculated]


def case(rng, told):
    """Some steps from one tensor, compared after each."""
    dtype = rng.choice(KINDS)
    x = tensors.tensor(rng, tensors.shape(rng), dtype)
    a = x.numpy().copy()
    told["call"] = tensors.describe(x)
    for _ in range(rng.randint(1, 6)):
        step = rng.choice(STEPS)
        told["call"] += f" {step.__name__}"
        try:
            x, a = step(rng, x, a, told)
        except Same:
            continue
        if x.numel() > claims.MOST:
            return "large"
        if any(n > 1 << 40 for n in x.shape):
            return "large"
        got = x.numpy()
        if got.shape != a.shape or got.dtype != a.dtype or not np.array_equal(got, a, equal_nan=a.dtype.kind in "fc"):
            mine, theirs = (f"{v.dtype}{v.shape} {v.tolist()!r:.300}" for v in (got, a))
            raise claims.Broken(f"{mine}, NumPy {theirs}")
    return "returned"

"""Compares every built-in op with NumPy, SciPy and PyTorch (if installed): values and gradients over random shapes,
dtypes and layouts."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import philox
import pytest
import window_cases
from scipy import special

import minitensor as mt

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

# The ranges of random elements.
DOMAINS = {
    "real": lambda rng, shape: rng.normal(0, 2, shape),
    "positive": lambda rng, shape: rng.uniform(0.2, 4, shape),
    "unit": lambda rng, shape: rng.uniform(-0.9, 0.9, shape),
    "above_one": lambda rng, shape: rng.uniform(1.1, 4, shape),
    "nonzero": lambda rng, shape: rng.uniform(0.5, 3, shape) * rng.choice([-1, 1], shape),
    "whole": lambda rng, shape: rng.integers(-5, 6, shape),
    "natural": lambda rng, shape: rng.integers(0, 4, shape),
    "bool": lambda rng, shape: rng.integers(0, 2, shape).astype(bool),
    "special": lambda rng, shape: rng.choice([0.0, -0.0, 1.5, np.nan, np.inf, -np.inf], shape),
    "complex": lambda rng, shape: rng.normal(0, 1, shape) + 1j * rng.normal(0, 1, shape),
    "double": lambda rng, shape: rng.normal(0, 2, shape),
    "key": lambda rng, shape: rng.integers(0, 2**64, shape, dtype=np.uint64),
}
# The ops to test in every floating dtype.
FLOATING = {"real", "positive", "unit", "above_one", "nonzero", "special"}

TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-10, "complex128": 1e-10}


@dataclass
class Case:
    """An op, its arguments, and the reference functions."""

    name: str
    inputs: list[tuple[str, tuple]]
    numpy: Callable
    torch: Callable | None = None
    attrs: dict = field(default_factory=dict)

    def __str__(self):
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items())
        return f"{self.name}({';'.join(f'{d}{s}' for d, s in self.inputs)};{attrs})".replace(" ", "")

    def op(self):
        f = mt.ops
        for part in self.name.split("::"):
            f = getattr(f, part)
        return f


# The second column of a matrix of two rows and three columns.
REGION = {"region": [0, 1, 2, 2, 3, 3, 1, 2, 3]}


def with_column(x, part):
    """Returns the matrix with its second column replaced."""
    out = x.copy()
    out[:, 1] = part
    return out


def sigmoid(x):
    return special.expit(x)


def expand(case, shapes):
    """Returns the case for several input shapes."""
    domains = [d for d, _ in case.inputs]
    for shape in shapes:
        each = shape if isinstance(shape, list) else [shape] * len(domains)
        yield Case(case.name, list(zip(domains, each, strict=True)), case.numpy, case.torch, case.attrs)


def unary(name, numpy, torch=None, domain="real", **attrs):
    case = Case(name, [(domain, ())], numpy, torch, attrs)
    return expand(case, [(3, 4), (2, 3, 5), (), (0, 3), (33, 65)])


def binary(name, numpy, torch=None, x="real", y="real", **attrs):
    case = Case(name, [(x, ()), (y, ())], numpy, torch, attrs)
    return expand(case, [(3, 4), [(2, 1, 4), (3, 1)], [(), (5,)], [(1, 3), (0, 1)], [(40, 1), (1, 70)]])


def reduction(name, numpy, torch=None, domain="real", tuples=True, **attrs):
    for axis in [None, 0, -1] + ([(0, 2)] if tuples else []):
        for keepdims in (False, True):
            given = dict(attrs, axis=axis, keepdims=keepdims)

            def theirs(x, numpy=numpy, axis=axis, keepdims=keepdims):
                return numpy(x, axis=axis, keepdims=keepdims)

            def torchs(x, axis=axis, keepdims=keepdims):
                return torch(x, dim=tuple(range(x.ndim)) if axis is None else axis, keepdim=keepdims)

            yield Case(name, [(domain, (4, 3, 70))], theirs, torch and torchs, given)


def one(name, inputs, numpy, torch=None, **attrs):
    yield Case(name, inputs, numpy, torch, attrs)


def layer_norm(x, weight, bias, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + eps) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def standardize(x, axis=None, eps=1e-5):
    c = x - x.mean(axis, keepdims=True)
    return c / np.sqrt((c * c).mean(axis, keepdims=True) + eps)


def per_channel(numbers, x):
    return numbers.reshape(-1, *[1] * (x.ndim - 2))


def batch_norm(x, mean, var, weight, bias, eps=1e-5):
    mean, var, weight, bias = (per_channel(v, x) for v in (mean, var, weight, bias))
    return (x - mean) / np.sqrt(var + eps) * weight + bias


def torch_batch_norm(x, mean, var, weight, bias):
    """A reference for PyTorch, whose own function has no gradient for the statistics."""
    return (x - mean) * (var + 1e-5).rsqrt() * weight + bias


def group_norm(x, weight, bias, groups):
    y = standardize(x.reshape(x.shape[0], groups, -1), -1).reshape(x.shape)
    return y * per_channel(weight, x) + per_channel(bias, x)


def cosine_similarity(x, y):
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def cross_entropy(logits, target, reduction="mean"):
    losses = special.logsumexp(logits, -1) - np.take_along_axis(logits, target[..., None], -1)[..., 0]
    return {"mean": losses.mean(), "sum": losses.sum(), "none": losses}[reduction]


def mse(x, y, reduction="mean"):
    losses = (x - y) ** 2
    return {"mean": losses.mean(), "sum": losses.sum(), "none": losses}[reduction]


def scattered(x, index, size, axis=-1):
    out = np.zeros((*x.shape[:-1], size), x.dtype)
    for at in np.ndindex(*x.shape[:-1]):
        np.add.at(out[at], index[at], x[at])
    return out


def scattered_rows(x, index, size):
    out = np.zeros((size, *x.shape[1:]), x.dtype)
    np.add.at(out, index, x)
    return out


def topk(x, k, axis=-1):
    order = np.argsort(-x, axis=axis, kind="stable")[..., :k]
    return np.take_along_axis(x, order, axis), order


def unsliced(x):
    out = np.zeros((2, 8), x.dtype)
    out[:, 1:7:2] = x
    return out


def products_of_others(x):
    at = range(x.shape[-1])
    return np.stack([np.prod(np.delete(x, i, -1), -1) for i in at], -1)


def sgd(p, v, g, lr, momentum, nesterov, weight_decay):
    g = g + weight_decay * p
    v = momentum * v + g
    return p - lr * (g + momentum * v if nesterov else v), v


def adam(p, m, v, g, lr, correction1, correction2, weight_decay, decoupled, beta1=0.9, beta2=0.999, eps=1e-8):
    if decoupled:
        p = p - lr * weight_decay * p
    else:
        g = g + weight_decay * p
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return p - lr * (m / correction1) / (np.sqrt(v / correction2) + eps), m, v


def t(path):
    """Returns PyTorch's function of this name, if PyTorch is installed."""
    f = torch
    for part in path.split("."):
        f = getattr(f, part, None)
    return f


SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946)
X = ("real", (4, 6))
KEY = ("key", (2,))
INTEGERS = {"low": -3, "high": 5, "shape": [7]}
ROWS = ("real", (3, 4, 6))
IMAGES = ("real", (3, 4, 6))

TABLE = [
    unary("abs", np.abs, t("abs")),
    unary("acos", np.arccos, t("acos"), "unit"),
    unary("acosh", np.arccosh, t("acosh"), "above_one"),
    unary("asin", np.arcsin, t("asin"), "unit"),
    unary("asinh", np.arcsinh, t("asinh")),
    unary("atan", np.arctan, t("atan")),
    unary("atanh", np.arctanh, t("atanh"), "unit"),
    unary("bitwise_invert", np.invert, domain="whole"),
    unary("cbrt", np.cbrt, lambda x: x.sign() * x.abs() ** (1 / 3), "nonzero"),
    unary("ceil", np.ceil, t("ceil")),
    unary("clamp", lambda x: np.clip(x, -0.5, 1.0), lambda x: x.clamp(-0.5, 1.0), lo=-0.5, hi=1.0),
    unary("clone", lambda x: x, lambda x: x.clone()),
    unary("zeros_like", np.zeros_like),
    unary("conj", np.conj, domain="complex"),
    unary("conversion::conj", np.conj, domain="complex"),
    unary("contiguous", lambda x: x),
    unary("device::copy", lambda x: x),
    unary("cos", np.cos, t("cos")),
    unary("cosh", np.cosh, t("cosh")),
    unary("digamma", special.digamma, t("digamma"), "positive"),
    unary("elu", lambda x: np.where(x > 0, x, 1.5 * np.expm1(x)), lambda x: F.elu(x, 1.5), alpha=1.5),
    unary("erf", special.erf, t("erf")),
    unary("erfc", special.erfc, t("erfc")),
    unary("exp", np.exp, t("exp")),
    unary("exp", np.exp, domain="complex"),
    unary("exp2", np.exp2, t("exp2")),
    unary("expm1", np.expm1, t("expm1")),
    unary("floor", np.floor, t("floor")),
    unary("gelu", lambda x: x * special.ndtr(x), lambda x: F.gelu(x)),
    unary(
        "gelu",
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        lambda x: F.gelu(x, approximate="tanh"),
        approximate="tanh",
    ),
    unary("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), lambda x: (x / 6 + 0.5).clamp(0, 1)),
    unary("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, lambda x: F.hardswish(x)),
    unary("imag", np.imag, domain="complex"),
    unary("isfinite", np.isfinite, domain="special"),
    unary("isinf", np.isinf, domain="special"),
    unary("isnan", np.isnan, domain="special"),
    unary("leaky_relu", lambda x: np.where(x > 0, x, 0.1 * x), lambda x: F.leaky_relu(x, 0.1), negative_slope=0.1),
    unary("lgamma", special.gammaln, t("lgamma"), "positive"),
    unary("log", np.log, t("log"), "positive"),
    unary("log", np.log, domain="complex"),
    unary("log10", np.log10, t("log10"), "positive"),
    unary("log1p", np.log1p, t("log1p"), "positive"),
    unary("log2", np.log2, t("log2"), "positive"),
    unary("log_sigmoid", special.log_expit, lambda x: F.logsigmoid(x)),
    unary("logical_not", np.logical_not, domain="bool"),
    unary("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), lambda x: F.mish(x)),
    unary("negative", np.negative, t("neg")),
    unary("positive", np.positive, t("positive")),
    unary("real", np.real, domain="complex"),
    unary("reciprocal", np.reciprocal, t("reciprocal"), "nonzero"),
    unary("relu", lambda x: np.maximum(x, 0), lambda x: F.relu(x)),
    unary("relu6", lambda x: np.clip(x, 0, 6), lambda x: F.relu6(x)),
    unary("round", np.round, t("round")),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), t("rsqrt"), "positive"),
    unary("selu", lambda x: SELU[1] * np.where(x > 0, x, SELU[0] * np.expm1(x)), lambda x: F.selu(x)),
    unary("sigmoid", sigmoid, t("sigmoid")),
    unary("sign", np.sign, t("sign")),
    unary("sign", np.sign, domain="whole"),
    unary("signbit", np.signbit, domain="special"),
    unary("sin", np.sin, t("sin")),
    unary("sin", np.sin, domain="complex"),
    unary("sinh", np.sinh, t("sinh")),
    unary("softplus", lambda x: np.logaddexp(0, x), lambda x: F.softplus(x)),
    unary("softsign", lambda x: x / (1 + np.abs(x)), lambda x: F.softsign(x)),
    unary("sqrt", np.sqrt, t("sqrt"), "positive"),
    unary("square", np.square, t("square")),
    unary("square", np.square, domain="whole"),
    unary("swish", lambda x: x * sigmoid(x), lambda x: F.silu(x)),
    unary("tan", np.tan, t("tan"), "unit"),
    unary("tanh", np.tanh, t("tanh")),
    unary("trunc", np.trunc, t("trunc")),
    binary("add", np.add, t("add")),
    binary("add", np.add, x="whole", y="real"),
    binary("atan2", np.arctan2, t("atan2"), "nonzero"),
    binary("bitwise_and", np.bitwise_and, x="whole", y="whole"),
    binary("bitwise_left_shift", np.left_shift, x="natural", y="natural"),
    binary("bitwise_or", np.bitwise_or, x="whole", y="whole"),
    binary("bitwise_right_shift", np.right_shift, x="whole", y="natural"),
    binary("bitwise_xor", np.bitwise_xor, x="whole", y="whole"),
    binary("complex", lambda x, y: x + 1j * y, None, "double", "double"),
    binary("copysign", np.copysign, t("copysign"), "nonzero", "nonzero"),
    binary("divide", np.divide, t("div"), y="nonzero"),
    binary("equal", np.equal, x="natural", y="natural"),
    binary("floor_divide", np.floor_divide, lambda x, y: torch.div(x, y, rounding_mode="floor"), y="nonzero"),
    binary("fmod", np.fmod, t("fmod"), y="nonzero"),
    binary("greater", np.greater, x="natural", y="natural"),
    binary("greater_equal", np.greater_equal, x="natural", y="natural"),
    binary("hypot", np.hypot, t("hypot"), "nonzero", "nonzero"),
    binary("less", np.less),
    binary("less_equal", np.less_equal, x="natural", y="natural"),
    binary("logaddexp", np.logaddexp, t("logaddexp")),
    binary("logical_and", np.logical_and, x="bool", y="bool"),
    binary("logical_or", np.logical_or, x="natural", y="natural"),
    binary("logical_xor", np.logical_xor, x="bool", y="bool"),
    binary("maximum", np.maximum, t("maximum")),
    binary("maximum", np.maximum, x="special", y="special"),
    binary("minimum", np.minimum, t("minimum")),
    binary("minimum", np.minimum, x="special", y="special"),
    binary("multiply", np.multiply, t("mul")),
    binary("multiply", np.multiply, x="complex", y="real"),
    binary("not_equal", np.not_equal, x="natural", y="natural"),
    binary("power", np.power, t("pow"), "positive"),
    binary("remainder", np.remainder, t("remainder"), y="nonzero"),
    binary("subtract", np.subtract, t("sub")),
    expand(Case("lerp", [X] * 3, lambda a, b, w: a + w * (b - a), t("lerp")), [(3, 4), [(2, 1), (1, 3), (2, 3)]]),
    expand(
        Case("where", [("bool", ()), X, X], np.where, t("where")), [(3, 4), [(2, 1), (1, 3), (2, 3)], [(4,), (), (4,)]]
    ),
    reduction("all", np.all, domain="bool"),
    reduction("any", np.any, domain="natural"),
    reduction("argmax", np.argmax, tuples=False),
    reduction("argmin", np.argmin, tuples=False),
    reduction("count_nonzero", np.count_nonzero, domain="natural"),
    reduction("logsumexp", special.logsumexp, t("logsumexp")),
    reduction("max", np.max, t("amax")),
    reduction("max", np.max, t("amax"), "whole"),
    reduction("mean", np.mean, t("mean")),
    reduction("min", np.min, t("amin")),
    reduction("prod", np.prod, domain="unit"),
    reduction("row::all", np.all, domain="bool"),
    reduction("row::any", np.any, domain="natural"),
    reduction("row::argmax", np.argmax, tuples=False),
    reduction("row::argmin", np.argmin, tuples=False),
    reduction("row::count_nonzero", np.count_nonzero, domain="natural"),
    reduction("row::max", np.max, t("amax")),
    reduction("row::mean", np.mean, t("mean")),
    reduction("row::min", np.min, t("amin")),
    reduction("row::prod", np.prod, domain="unit"),
    reduction("row::sum", np.sum, t("sum")),
    reduction("std", np.std, lambda x, dim, keepdim: x.std(dim, correction=0, keepdim=keepdim)),
    reduction("sum", np.sum, t("sum")),
    reduction("sum", np.sum, domain="whole"),
    *(
        one("sum", [("real", (5, 40, 30))], lambda x, a=a: x.sum(a), lambda x, a=a: x.sum(a), axis=list(a))
        for a in [(0,), (0, 1), (1, 0), (-3,), (1,)]
    ),
    reduction("var", np.var, lambda x, dim, keepdim: x.var(dim, correction=0, keepdim=keepdim)),
    one("var", [X], lambda x: np.var(x, -1, ddof=1), lambda x: x.var(-1), correction=1.0, axis=-1),
    one("argsort", [X], lambda x: np.argsort(x, kind="stable")),
    one("argsort", [X], lambda x: np.argsort(-x, 0, kind="stable"), descending=True, axis=0),
    one("astype", [X], lambda x: x.astype("float32"), dtype="float32"),
    one("astype", [X], lambda x: x.astype("int32"), dtype="int32"),
    one("crop", [X], lambda x: x[:, 2:-1], lambda x: x[:, 2:-1], padding=[2, 1]),
    one("column::all", [("bool", (3, 70, 9))], lambda x: x.all(1)),
    one("column::any", [("natural", (3, 70, 9))], lambda x: x.any(1)),
    one("column::argmax", [("natural", (3, 70, 9))], lambda x: x.argmax(1)),
    one("column::argmin", [("natural", (3, 70, 9))], lambda x: x.argmin(1)),
    one("column::count_nonzero", [("natural", (3, 70, 9))], lambda x: np.count_nonzero(x, 1)),
    one("column::cumsum", [("real", (3, 70, 9))], lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
    one("column::max", [("real", (70, 30))], lambda x: x.max(0), lambda x: x.amax(0)),
    one("column::mean", [("real", (70, 30))], lambda x: x.mean(0), lambda x: x.mean(0)),
    one("column::min", [("real", (70, 30))], lambda x: x.min(0), lambda x: x.amin(0)),
    one("column::prod", [("unit", (5, 30))], lambda x: x.prod(0), lambda x: x.prod(0)),
    one("column::sum", [("real", (70, 300))], lambda x: x.sum(0), lambda x: x.sum(0)),
    one("cross_entropy", [X, ("natural", (4,))], cross_entropy, lambda x, i: F.cross_entropy(x, i)),
    one(
        "cross_entropy",
        [X, ("natural", (4,))],
        lambda x, i: cross_entropy(x, i, "none"),
        lambda x, i: F.cross_entropy(x, i, reduction="none"),
        reduction="none",
    ),
    one("cumsum", [ROWS], lambda x: np.cumsum(x, 1), lambda x: x.cumsum(1), axis=1),
    one("dropout", [X], lambda x: x, lambda x: x, p=0.5, training=False),
    one("embedding", [X, ("natural", (2, 5))], lambda w, i: w[i], lambda w, i: F.embedding(i, w)),
    one("indexing::take_rows", [X, ("natural", (7,))], lambda x, i: x[i], lambda x, i: x[i]),
    one(
        "expand",
        [("real", (3, 1))],
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        lambda x: x.expand(2, 3, 4),
        shape=[2, 3, 4],
    ),
    one("flatten", [ROWS], lambda x: x.reshape(3, 24), lambda x: x.flatten(1), start=1),
    one("flip", [ROWS], lambda x: np.flip(x, (0, 2)), lambda x: x.flip(0, 2), axis=[0, 2]),
    one(
        "gather",
        [X, ("natural", (4, 9))],
        lambda x, i: np.take_along_axis(x, i, -1),
        lambda x, i: x.gather(-1, i),
    ),
    one("index", [X, ("natural", (2, 2))], lambda x, i: x[i], lambda x, i: x[i]),
    one(
        "indexing::added_rows",
        [("real", (2, 2, 6)), ("natural", (2, 2))],
        lambda x, i: scattered_rows(x.reshape(4, 6), i.reshape(4), 5),
        lambda x, i: torch.zeros(5, 6, dtype=x.dtype).index_add(0, i.reshape(4), x.reshape(4, 6)),
        shape=[5, 6],
    ),
    one("indexing::wrap", [("whole", (7,))], lambda i: np.where(i < 0, i + 6, i), size=6, axis=0),
    one("layer_norm", [ROWS, ("real", (6,)), ("real", (6,))], layer_norm, lambda x, w, b: F.layer_norm(x, (6,), w, b)),
    one("linalg::matrix_product", [("real", (2, 3, 4)), ("real", (2, 4, 5))], np.matmul, t("matmul")),
    one("log_softmax", [ROWS], lambda x: special.log_softmax(x, 1), lambda x: x.log_softmax(1), axis=1),
    expand(
        Case("matmul", [X, X], np.matmul, t("matmul")),
        [
            [(3, 4), (4, 5)],
            [(2, 1, 3, 4), (5, 4, 2)],
            [(4,), (4,)],
            [(3, 4), (4,)],
            [(4,), (2, 4, 3)],
            [(0, 4), (4, 2)],
            [(3, 0), (0, 2)],
            [(65, 33), (33, 70)],
        ],
    ),
    expand(Case("matmul", [("whole", ())] * 2, np.matmul), [[(3, 4), (4, 5)]]),
    expand(Case("matmul", [("complex", ())] * 2, np.matmul), [[(3, 4), (4, 5)]]),
    one("matrix_transpose", [ROWS], lambda x: np.swapaxes(x, -1, -2), lambda x: x.mT),
    one("moveaxis", [ROWS], lambda x: np.moveaxis(x, 0, -1), lambda x: x.moveaxis(0, -1), source=0, destination=-1),
    one("mse", [X, X], mse, lambda x, y: F.mse_loss(x, y)),
    one("mse", [X, X], lambda x, y: mse(x, y, "sum"), lambda x, y: F.mse_loss(x, y, reduction="sum"), reduction="sum"),
    one("nonzero", [("natural", (4, 5))], lambda x: np.stack(np.nonzero(x), -1)),
    one("one_hot", [("natural", (2, 3))], lambda i: np.eye(5, dtype=int)[i], num_classes=5),
    one(
        "pad",
        [X],
        lambda x: np.pad(x, [(0, 0), (2, 1)], constant_values=3),
        lambda x: F.pad(x, (2, 1), value=3.0),
        padding=[2, 1],
        value=3.0,
    ),
    one("permute_dims", [ROWS], lambda x: x.transpose(2, 0, 1), lambda x: x.permute(2, 0, 1), axes=[2, 0, 1]),
    one("reshape", [ROWS], lambda x: x.reshape(8, 9), lambda x: x.reshape(8, 9), shape=[8, -1]),
    one("row::cumsum", [("real", (3, 700))], lambda x: x.cumsum(-1), lambda x: x.cumsum(-1)),
    one("rms_norm", [ROWS, ("real", (6,))], rms_norm, lambda x, w: F.rms_norm(x, (6,), w, eps=1e-5)),
    one("roll", [ROWS], lambda x: np.roll(x, -2, 1), lambda x: x.roll(-2, 1), shift=-2, axis=1),
    one("standardize", [ROWS], standardize, lambda x: F.layer_norm(x, x.shape)),
    one(
        "standardize",
        [ROWS],
        lambda x: standardize(x, 0),
        lambda x: (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt(),
        axis=0,
    ),
    one("layer_norm", [ROWS], lambda x: standardize(x, -1), lambda x: F.layer_norm(x, (6,))),
    one("rms_norm", [ROWS], lambda x: rms_norm(x, 1), lambda x: F.rms_norm(x, (6,), eps=1e-5)),
    one("cosine_similarity", [X, X], cosine_similarity, lambda x, y: F.cosine_similarity(x, y, -1)),
    one("batch_norm", [IMAGES], lambda x: standardize(x, (0, 2)), lambda x: F.batch_norm(x, None, None, training=True)),
    one(
        "batch_norm",
        [IMAGES, ("real", (4,)), ("positive", (4,)), ("real", (4,)), ("real", (4,))],
        batch_norm,
        lambda x, *numbers: torch_batch_norm(x, *(v[:, None] for v in numbers)),
    ),
    one("instance_norm", [IMAGES], lambda x: standardize(x, 2), lambda x: F.instance_norm(x)),
    one(
        "instance_norm",
        [IMAGES, ("real", (4,)), ("real", (4,))],
        lambda x, w, b: group_norm(x, w, b, 4),
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
    ),
    one(
        "group_norm",
        [IMAGES, ("real", (4,)), ("real", (4,))],
        lambda x, w, b: group_norm(x, w, b, 2),
        lambda x, w, b: F.group_norm(x, 2, w, b),
        groups=2,
    ),
    one(
        "example::chain",
        [X, X, X],
        lambda x, y, z: np.tanh(x * y + z) * sigmoid(y) - z / 2,
        lambda x, y, z: torch.tanh(x * y + z) * torch.sigmoid(y) - z / 2,
    ),
    one(
        "example::entropy",
        [ROWS],
        lambda x: -(special.softmax(x, -1) * special.log_softmax(x, -1)).sum(-1),
        lambda x: -(x.softmax(-1) * x.log_softmax(-1)).sum(-1),
    ),
    one("activation::softsign_vjp", [X, X], lambda d, x: d / (1 + abs(x)) ** 2),
    one("row::softmax_vjp", [X, X], lambda d, y: y * (d - (d * y).sum(-1, keepdims=True))),
    one("row::log_softmax_vjp", [X, X], lambda d, y: d - np.exp(y) * d.sum(-1, keepdims=True)),
    one("row::cross_entropy", [X, ("natural", (4,))], lambda x, i: cross_entropy(x, i, "none")),
    one("row::prod_of_others", [X], products_of_others),
    one(
        "scatter",
        [X, ("natural", (4, 6))],
        lambda x, i: scattered(x, i, 5),
        lambda x, i: torch.zeros(4, 5, dtype=x.dtype).scatter_add(-1, i, x),
        size=5,
    ),
    one(
        "scatter_rows",
        [X, ("natural", (4,))],
        lambda x, i: scattered_rows(x, i, 5),
        lambda x, i: torch.zeros(5, 6, dtype=x.dtype).index_add(0, i, x),
        size=5,
    ),
    one("slice", [X], lambda x: x[:, 5:0:-2], axis=1, start=5, stop=0, step=-2),
    one("softmax", [ROWS], lambda x: special.softmax(x, 0), lambda x: x.softmax(0), axis=0),
    one("sort", [X], lambda x: (np.sort(x), np.argsort(x, kind="stable")), lambda x: x.sort(stable=True)),
    one("squeeze", [("real", (1, 3, 1))], lambda x: x[0], lambda x: x.squeeze(0), axis=[0]),
    one("take", [X, ("natural", (3,))], lambda x, i: np.take(x, i, 1), lambda x, i: x[:, i], axis=1),
    one("topk", [ROWS], lambda x: topk(x, 2), lambda x: x.topk(2), k=2),
    one("transpose", [ROWS], lambda x: np.swapaxes(x, 0, 2), lambda x: x.transpose(0, 2), axis0=0, axis1=2),
    one("tril", [ROWS], lambda x: np.tril(x, 1), lambda x: x.tril(1), k=1),
    one("triu", [ROWS], lambda x: np.triu(x, -1), lambda x: x.triu(-1), k=-1),
    one("unslice", [("real", (2, 3))], unsliced, shape=[2, 8], axis=1, start=1, stop=7, step=2),
    one("unsqueeze", [X], lambda x: x[:, None], lambda x: x.unsqueeze(1), axis=1),
    (Case(*row) for row in window_cases.rows(F)),
    [
        Case(
            "random::dropout", [("double", (5, 3)), KEY], lambda x, key: philox.dropout(x, key, 0.3), attrs={"p": 0.3}
        ),
        Case("random::integers", [KEY], lambda key: philox.integers(key, -3, 5, (7,)), attrs=INTEGERS),
        Case(
            "random::normal", [KEY], lambda key: philox.normal(key, (3, 5)), attrs={"shape": [3, 5], "dtype": "float64"}
        ),
        Case("random::uniform", [KEY], lambda key: philox.uniform(key, (3, 5)), attrs={"shape": [3, 5]}),
    ],
    [
        Case("region::part", [("real", (2, 3))], lambda x: x[:, 1], attrs=REGION),
        Case("region::cleared", [("real", (2, 3))], lambda x: with_column(x, 0), attrs=REGION),
        Case("region::replaced", [("real", (2, 3)), ("real", (2,))], with_column, attrs=REGION),
        Case("region::spread", [("real", (2,))], lambda part: with_column(np.zeros((2, 3)), part), attrs=REGION),
    ],
]
CASES = [case for cases in TABLE for case in cases]

# Ops without a case above, and the reason.
ELSEWHERE = {
    "adam_step": "test_optimizer_steps",
    "concat": "test_lists_of_tensors",
    "copy_": "test_in_place_forms, and indexing",
    "rand_like": "random: test_creation",
    "random::scale_where": "the part of dropout that is differentiated",
    "row::prod_of_others_vjp": "the gradient of the gradient of prod, by opcheck",
    "sgd_step": "test_optimizer_steps",
    "stack": "test_lists_of_tensors",
}


def test_every_op_has_a_reference(registered):
    canonical = {mt.ops.describe(name)["name"] for name in mt.list_custom_ops_py()}
    forward = {name for name in canonical if not (name.endswith("_") and name[:-1] in canonical)}
    known = {case.name for case in CASES} | set(ELSEWHERE)
    assert forward - known == set()
    assert known - canonical == set()


# Memory layouts of an input: each function returns an equal array that is a view of a copy.
LAYOUTS = {
    "contiguous": lambda make, a: make(a),
    "transposed": lambda make, a: make(np.ascontiguousarray(a.T)).T if a.ndim == 2 else make(a),
    "stepped": lambda make, a: make(np.repeat(a, 2, -1))[..., ::2] if a.ndim else make(a),
    "reversed": lambda make, a: make(np.ascontiguousarray(a[..., ::-1]))[..., ::-1] if a.ndim else make(a),
}


def arrays(case, seed, dtype=None):
    rng = np.random.default_rng(seed)
    drawn = [np.asarray(DOMAINS[domain](rng, shape)) for domain, shape in case.inputs]
    return [a.astype(dtype) if dtype and a.dtype == np.float64 else a for a in drawn]


def as_list(outputs):
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def dtypes(case):
    return ["float64", "float32", "float16"] if any(d in FLOATING for d, _ in case.inputs) else [None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case, layout):
    for dtype in dtypes(case):
        given = arrays(case, 1, dtype)
        ours = as_list(case.op()(*[LAYOUTS[layout](mt.Tensor, a) for a in given], **case.attrs))
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in given]
        theirs = as_list(case.numpy(*wide))
        assert len(ours) == len(theirs)
        tolerance = TOLERANCE.get(dtype or "float64")
        for out, expected in zip(ours, theirs, strict=True):
            expected = np.asarray(expected)
            assert out.shape == expected.shape
            assert np.dtype(str(out.dtype)).kind in {expected.dtype.kind, "f" if dtype else expected.dtype.kind}
            scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=1)
            np.testing.assert_allclose(out.numpy(), expected, rtol=tolerance * 4, atol=tolerance * scale)


@pytest.mark.skipif(torch is None, reason="needs PyTorch")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", [c for c in CASES if c.torch], ids=str)
def test_gradients_equal_pytorch(case, layout):
    given = arrays(case, 2)
    ours = [LAYOUTS[layout](mt.Tensor, a) for a in given]
    theirs = [torch.tensor(a) for a in given]
    floats = [i for i, a in enumerate(given) if a.dtype.kind == "f"]
    for i in floats:
        ours[i] = ours[i].detach()
        ours[i].requires_grad = True
        theirs[i].requires_grad_()
    out, expected = as_list(case.op()(*ours, **case.attrs)), as_list(case.torch(*theirs))[0]
    np.testing.assert_allclose(out[0].numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-9)
    if not expected.requires_grad:
        return
    d = np.random.default_rng(3).normal(size=tuple(expected.shape))
    expected = torch.autograd.grad(expected, [theirs[i] for i in floats], torch.tensor(d), allow_unused=True)
    grads = mt.grad(out[0], [ours[i] for i in floats], mt.Tensor(d), allow_unused=True)
    for grad, want in zip(grads, expected, strict=True):
        np.testing.assert_allclose(grad.numpy(), want.numpy(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", sorted({mt.ops.describe(name)["name"] for name in mt.list_custom_ops_py()}))
def test_every_op_passes_opcheck(name):
    case = next((c for c in CASES if c.name == name and all(0 not in shape for _, shape in c.inputs)), None)
    if case is None:
        case = Case(name, [], None)
        mt.testing.opcheck(case.op())
    else:
        mt.testing.opcheck(case.op(), *map(mt.Tensor, arrays(case, 5)), **case.attrs)


IN_PLACE = [name for name in mt.list_custom_ops_py() if name.endswith("_") and not name.startswith("copy")]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_variants_write_the_result_of_the_op(name, rng):
    op, in_place = getattr(mt.ops, name[:-1]), getattr(mt.ops, name)
    domain = next((d for c in CASES if c.name == name[:-1] for d, _ in c.inputs), "positive")
    count = sum(p.default is inspect.Parameter.empty for p in inspect.signature(op).parameters.values())
    x, *others = [mt.Tensor(DOMAINS[domain](rng, (3, 4))) for _ in range(count)]
    expected = op(x, *others).numpy()
    assert in_place(x, *others) is x
    assert (x.numpy() == expected).all()


def test_lists_of_tensors(rng):
    parts = [rng.normal(size=(2, n)) for n in (3, 0, 4)]
    assert (mt.ops.concat([mt.Tensor(a) for a in parts], axis=1).numpy() == np.concatenate(parts, 1)).all()
    same = [rng.normal(size=(2, 3)) for _ in range(4)]
    assert (mt.ops.stack([mt.Tensor(a) for a in same], axis=-1).numpy() == np.stack(same, -1)).all()


@pytest.mark.parametrize("flag", [False, True])
def test_optimizer_steps(flag, rng):
    given = [rng.normal(size=(5, 7)) for _ in range(3)]
    ours = [mt.Tensor(a) for a in given]
    mt.ops.sgd_step(*ours, lr=0.1, momentum=0.9, nesterov=flag, weight_decay=0.01)
    for out, expected in zip(ours, sgd(*given, 0.1, 0.9, flag, 0.01), strict=False):
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
    p, m, g = given
    given = [p, m, np.abs(g), rng.normal(size=(5, 7))]
    ours = [mt.Tensor(a) for a in given]
    mt.ops.adam_step(*ours, lr=0.1, correction1=0.1, correction2=0.001, weight_decay=0.01, decoupled=flag)
    for out, expected in zip(ours, adam(*given, 0.1, 0.1, 0.001, 0.01, flag), strict=False):
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)

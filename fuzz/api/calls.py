"""Random calls of every registered op, made from what the registry says of it and from a table of what it does not."""

import re
from typing import Any, NamedTuple

import tensors
from tensors import COMPLEX, DTYPES, FLOATS, WHOLE

import minitensor as mt

OPS = {name: mt.ops.describe(name) for name in mt.list_custom_ops_py()}
NAMES = sorted(OPS)

# Shapes of ops whose shape rule is not a clause, in the words of one. `g*c` is a product; `..` is any dimensions.
SHAPES = {
    "matmul": "x: [.., m, k], y: [.., k, n]",
    "linalg::matrix_product": "x: [.., m, k], y: [.., k, n]",
    "cross_entropy": "logits: [b, n], target: [b]",
    "embedding": "weight: [n, e], index: [..]",
    "indexing::added_rows": "x: [m, e], index: [m]",
    "group_norm": "x: [b, g*c, l], weight: [g*c], bias: [g*c]",
    "batch_norm": "x: [b, c, l], mean: [c], var: [c], weight: [c], bias: [c]",
    "instance_norm": "x: [b, c, l], weight: [c], bias: [c]",
    **{f"conv{d}d": "x: [b, g*c, {}], weight: [g*o, c, {}], bias: [g*o]" for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": "x: [b, g*c, {}], weight: [g*c, o, {}], bias: [g*o]" for d in (1, 2, 3)},
    **{f"{kind}_pool{d}d": "x: [b, c, {}]" for kind in ("avg", "max", "adaptive_avg") for d in (1, 2, 3)},
    "unfold": "x: [b, c, l, l]",
}
SMALL = {"g": [1, 1, 2, 3], "s": [1, 2, 3], "c": [1, 2, 3, 4], "o": [1, 2, 5], "b": [0, 1, 2, 3]}
# Ops whose results are random, or depend on what the elements are.
RANDOM = {"dropout", "rand_like", "random::key", "random::scale_where"}
# Ops that combine elements in an order that depends on the layout; the largest of 0 and -0 is the first.
SUMS = re.compile(
    r"\b(max|min)$|matmul|linalg|conv|pool|window|norm|standardize|mean|sum|prod|var|std|mse|entropy|softmax|cosine"
)
# Ops whose rounding depends on the SIMD level.
LEVELS_MAY_DIFFER = re.compile(r"matmul|linalg|conv")
POSITIONS = {"index", "indices", "target"}


class Call(NamedTuple):
    name: str
    inputs: list[Any]
    attrs: dict[str, Any]

    def __call__(self, inputs=None):
        """The result as a list of tensors."""
        function = mt.ops
        for word in self.name.split("::"):
            function = getattr(function, word)
        inputs = self.inputs if inputs is None else inputs
        result = function(*inputs, **self.attrs)
        # An op in place returns what it was given, be it an array or nothing.
        results = result if isinstance(result, tuple) else [result]
        return [x for x in results if isinstance(x, mt.Tensor)]

    def __str__(self):
        parts = [tensors.describe(x) for x in self.inputs] + [f"{k}={v!r:.80}" for k, v in self.attrs.items()]
        return f"{self.name}({', '.join(parts)})"


def clause_of(name):
    """The shapes of the inputs as a list of (name, dimensions), or None if any go."""
    rule = SHAPES.get(name, OPS[name]["shape_rule"])
    digit = re.search(r"(\d)d$", name)
    if digit and "{}" in rule:
        d = int(digit[1])
        rule = rule.replace("{}", ", ".join(["l"] * d), 1).replace("{}", ", ".join(["s"] * d))
    found = re.findall(r"(\w+): \[(.*?)\]", rule.split("->")[0])
    return {n: [d.strip() for d in dims.split(",") if d.strip()] for n, dims in found} or None


CLAUSES = {name: clause_of(name) for name in NAMES}


def size_of(rng, sizes, text, large):
    """The size of a dimension such as `n` or `g*c`."""
    product = 1
    for word in text.split("*"):
        if word.isdigit():
            product *= int(word)
            continue
        choices = SMALL.get(word) or ([64, 300, 1000] if large else tensors.SIZES)
        product *= sizes.setdefault(word, rng.choice(choices))
    return product


def shapes(rng, name, large=False):
    """A shape for each input, and the sizes of the dimensions that have names."""
    op, clause, sizes = OPS[name], CLAUSES[name], {}
    most = 200_000 if large else 600
    batch = tensors.shape(rng, rng.choice([0, 0, 1, 1, 2]), 300 if large else 12)
    whole = (rng.choice([1000, 5000, 100_000]),) if large and not clause else tensors.shape(rng, most=most)
    found = []
    for i in op["inputs"]:
        if clause and i["name"] in clause:
            dims = []
            for word in clause[i["name"]]:
                dims += broadcastable(rng, batch) if word == ".." else [size_of(rng, sizes, word, large)]
            found.append(limited(dims, most * 10))
        else:
            found.append(tuple(broadcastable(rng, whole)) if len(op["inputs"]) > 1 else whole)
    return found, sizes


def limited(dims, most):
    """These dimensions as far as they have at most so many elements, and 1 for the rest."""
    found, count = [], 1
    for n in reversed(dims):
        found.append(n if count * n <= most else 1)
        count *= max(found[-1], 1)
    return tuple(reversed(found))


def broadcastable(rng, dims):
    """Dimensions that broadcast to these, mostly the same."""
    if rng.random() < 0.7:
        return list(dims)
    return [1 if rng.random() < 0.3 else n for n in dims][rng.randint(0, len(dims)) if rng.random() < 0.3 else 0 :]


def dtype_of(rng, op, i, chosen):
    words = i["dtypes"]
    if words in DTYPES:
        return words
    if "int64" in words and "any" not in words and "float" not in words:
        return "int64"
    for generic, admitted in op["dtypes"].items():
        if rng.random() < 0.05:
            return rng.choice(DTYPES)
        if generic not in chosen:
            likely = [d for d in admitted if d in FLOATS]
            chosen[generic] = rng.choice(likely if likely and rng.random() < 0.7 else admitted)
        return chosen[generic]
    if i["name"] in POSITIONS:
        return "int64"
    if "any" not in chosen:
        chosen["any"] = rng.choice(FLOATS if rng.random() < 0.7 else [*COMPLEX, *WHOLE, "bool"])
    return chosen["any"] if rng.random() < 0.95 else rng.choice(DTYPES)


def positions(rng, dims, sizes):
    n = sizes.get("n") or rng.choice([1, 2, 3])
    draw = tensors.np.random.default_rng(rng.getrandbits(64))
    low, high = (0, n) if rng.random() < 0.7 else (-n, n)
    if rng.random() < 0.1:
        low, high = -n - 1, n + 2
    return mt.Tensor(draw.integers(low, high, dims))


def odd_argument(rng, x):
    """Something else in place of a tensor."""
    return rng.choice(
        [None, 2, -1, 2.5, True, 1j, float("nan"), 2**70, "a", [], [1.0, 2.0], {}, tensors.array(x), x.to("meta"), [x]]
    )


def inputs(rng, name, large=False):
    op, chosen = OPS[name], {}
    dims, sizes = shapes(rng, name, large)
    made = []
    for i, d in zip(op["inputs"], dims, strict=True):
        if i["optional"] and rng.random() < 0.3:
            made.append(None)
            continue
        if rng.random() < 0.03 and not large:
            d = tensors.shape(rng)
        many = rng.randint(1, 3) if i["variadic"] else 1
        if name == "index":
            x = indices(rng, made[0]) if i["variadic"] else tensors.tensor(rng, d, dtype_of(rng, op, i, chosen))
        else:
            x = []
            for _ in range(many):
                dtype = dtype_of(rng, op, i, chosen)
                at = i["name"] in POSITIONS and dtype == "int64" and rng.random() < 0.95
                x.append(positions(rng, d, sizes) if at else tensors.tensor(rng, d, dtype))
            x = x if i["variadic"] else x[0]
        if not large and not i["variadic"] and rng.random() < 0.03:
            x = odd_argument(rng, x)
        made.append(x)
    return made, sizes


def indices(rng, x):
    dims = tensors.shape(rng, rng.choice([0, 1, 1, 2]), 60)
    return [
        positions(rng, dims, {"n": max(n, 1)}) if rng.random() < 0.9 else mt.Tensor(tensors.values(rng, (n,), "bool"))
        for n in getattr(x, "shape", (2,))[: rng.randint(1, 3)]
    ]


INTS = [0, 1, -1, 2, 3, 4, 7, -2, -3]
FAR = [2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, 2**70]
NUMBERS = [0.0, -0.0, 0.5, 1.0, -1.0, 1e-5, 2.5, 1e300, 1e-320, float("inf"), float("-inf"), float("nan")]
WRONG = [None, "a", [], [None], 1.5, 1j, {}, object, [1, "a"], (1, 2, 3, 4, 5, 6, 7)]


def spatial(name):
    digit = re.search(r"(\d)d$", name)
    return int(digit[1]) if digit else 3 if "::" in name else 2


# A fitting value for an attribute, from (rng, the op's name, the first input, the sizes that have names).
ATTRS = {
    "axis": lambda r, name, x, s: axis(r, x),
    "axis0": lambda r, name, x, s: axis(r, x),
    "axis1": lambda r, name, x, s: axis(r, x),
    "source": lambda r, name, x, s: [axis(r, x)],
    "destination": lambda r, name, x, s: [axis(r, x)],
    "start": lambda r, name, x, s: r.choice([None, 0, 1, -1, -2]),
    "stop": lambda r, name, x, s: r.choice([None, 0, 1, 2, -1, 5]),
    "step": lambda r, name, x, s: r.choice([1, 1, 2, -1, -2, 3]),
    "axes": lambda r, name, x, s: r.sample(range(x.ndim), x.ndim),
    "groups": lambda r, name, x, s: s.get("g", 1),
    "kernel_size": lambda r, name, x, s: [r.choice([1, 2, 3]) for _ in range(spatial(name))],
    "stride": lambda r, name, x, s: [r.choice([1, 1, 2, 3]) for _ in range(spatial(name))],
    "dilation": lambda r, name, x, s: [r.choice([1, 1, 2]) for _ in range(spatial(name))],
    "output_padding": lambda r, name, x, s: [r.choice([0, 0, 1]) for _ in range(spatial(name))],
    "output_size": lambda r, name, x, s: [r.choice([1, 2, 3, 7]) for _ in range(spatial(name))],
    "padding": lambda r, name, x, s: [
        r.choice([0, 0, 1, 2]) for _ in range(2 * x.ndim if name in ("pad", "crop") else spatial(name))
    ],
    "shape": lambda r, name, x, s: reshaped(r, name, x),
    "k": lambda r, name, x, s: r.choice([0, 1, 2, -1]),
    "num_classes": lambda r, name, x, s: s.get("n", 3),
    "size": lambda r, name, x, s: s.get("n", 3) + r.choice([0, 1]),
    "p": lambda r, name, x, s: r.choice([0.0, 0.3, 1.0]),
    "eps": lambda r, name, x, s: r.choice([1e-5, 0.0, 1.0]),
}


def axis(rng, x):
    return rng.randint(-x.ndim, x.ndim - 1) if x.ndim else 0


def reshaped(rng, name, x):
    """A shape that `x` can be given by the op."""
    if name in ("expand", "broadcast_to"):
        return [rng.choice([1, 2])] * rng.choice([0, 0, 1]) + [3 if n == 1 else n for n in x.shape]
    dims = list(x.shape)
    rng.shuffle(dims)
    if dims and rng.random() < 0.3 and 0 not in dims:
        dims[rng.randrange(len(dims))] = -1
    return dims


def attribute(rng, name, attr, x, sizes):
    kind, roll = attr["kind"], rng.random()
    if roll < 0.04:
        return rng.choice(WRONG)
    if "words" in attr:
        return rng.choice(attr["words"]) if roll < 0.97 else "odd"
    fitting = ATTRS.get(attr["name"])
    if fitting and roll < 0.9 and isinstance(x, mt.Tensor):
        value = fitting(rng, name, x, sizes)
        if kind == "list[int]" and not isinstance(value, list):
            return rng.choice([None, value, [value]])
        return value
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "int":
        return rng.choice(INTS) if roll < 0.97 else rng.choice(FAR)
    if kind == "float":
        return rng.choice(NUMBERS)
    if kind == "dtype":
        return rng.choice(DTYPES)
    if kind.startswith("list"):
        among = NUMBERS if kind == "list[float]" else INTS if roll < 0.97 else INTS + FAR
        return [rng.choice(among) for _ in range(rng.randint(0, 4))]
    return rng.choice(["", "none", "mean", "sum"])


def random_call(rng, large=False):
    name = rng.choice(NAMES)
    made, sizes = inputs(rng, name, large)
    first = next((x for x in made if isinstance(x, mt.Tensor)), None)
    attrs = {}
    for attr in OPS[name]["attributes"]:
        if attr["required"] or rng.random() < 0.5:
            attrs[attr["name"]] = attribute(rng, name, attr, first, sizes)
    if rng.random() < 0.01:
        attrs["odd"] = 1
    if rng.random() < 0.01 and made:
        made.pop()
    return Call(name, made, attrs)

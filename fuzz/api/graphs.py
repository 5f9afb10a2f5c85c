"""Random functions of several calls: the graph, and lazy mode, compute the bits that separate calls compute."""

import operator

import claims
import tensors

import minitensor as mt

#: The functions of one, two and three tensors. A step whose call raises is left out.
UNARY = {
    **{name: getattr(operator, name) for name in ("neg", "abs", "invert")},
    **{
        name: getattr(mt.ops, name)
        for name in (
            "exp",
            "tanh",
            "sqrt",
            "relu",
            "sign",
            "square",
            "floor",
            "logical_not",
            "isnan",
            "gelu",
            "erf",
        )
    },
    "sum": lambda x: x.sum(axis=-1, keepdims=True),
    "mean": lambda x: x.mean(axis=-1, keepdims=True),
    # Which of 0 and -0 is the larger depends on their order, which the graph may change.
    "max": lambda x: x.max(axis=-1, keepdims=True) + 0,
    "softmax": lambda x: mt.ops.softmax(x),
    "halves": lambda x: x * 0.5,
    "more": lambda x: x + 3,
    "bits": lambda x: x & 5,
    "root": lambda x: x**0.5,
    "cube": lambda x: x**3,
    "negative": lambda x: x < 0,
    "below": lambda x: x < 0.5,
    "equal to one": lambda x: x == 1,
    "beyond": lambda x: x > -1,
    "half": lambda x: x[..., ::2],
    "left": lambda x: x[..., : (x.shape[-1] + 1) // 2],
    "right": lambda x: x[..., x.shape[-1] // 2 :],
    "turned": lambda x: x.T,
    "row": lambda x: x[..., :1],
    "total": lambda x: x.sum(),
    **{dtype: lambda x, dtype=dtype: x.astype(dtype) for dtype in tensors.FLOATS + tensors.WHOLE + ["bool"]},
}
BINARY = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift")
    + ("lt", "le", "gt", "ge", "eq", "ne", "matmul")
} | {
    **{
        name: getattr(mt.ops, name)
        for name in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor", "hypot")
    },
    "concat": lambda x, y: mt.ops.concat([x, y], axis=-1),
}
TERNARY = {"where": mt.where, "clip": lambda x, a, b: mt.ops.minimum(mt.ops.maximum(x, a), b)}
#: If rows are not contiguous, the graph may add their elements in another order.
OF_ROWS = {"sum", "mean", "max", "softmax", "total"}
VIEWS = {"half", "left", "right", "turned", "row"}


class Function:
    """Steps, each with a function and the positions of its arguments among the values before it."""

    def __init__(self, steps, results):
        self.steps, self.results = steps, results

    def __call__(self, *values):
        values = list(values)
        for _, function, at in self.steps:
            values.append(function(*(values[i] for i in at)))
        return [values[i] for i in self.results]

    def __str__(self):
        return f"{[(name, *at) for name, _, at in self.steps]} -> {self.results}"


def random_function(rng, inputs, without):
    """A function for which separate calls succeed."""
    values, steps = list(inputs), []
    for _ in range(rng.choice([2, 4, 8, 16, 30])):
        table, arity = rng.choice([(UNARY, 1), (UNARY, 1), (BINARY, 2), (BINARY, 2), (BINARY, 2), (TERNARY, 3)])
        name = rng.choice(sorted(table.keys() - without))
        # Recent values, so that there are chains.
        recent = range(max(0, len(values) - 6), len(values))
        if len(recent) < arity:
            continue
        at = rng.sample(recent, arity)
        result = claims.attempt(table[name], *(values[i] for i in at))
        if isinstance(result, mt.Tensor) and result.numel() <= 4 * claims.MOST:
            steps.append((name, table[name], at))
            values.append(result)
    results = sorted({len(values) - 1, *(rng.randrange(len(values)) for _ in range(rng.choice([0, 1, 3])))})
    return Function(steps, results)


def gradients(function, inputs):
    """The gradients of all that has one, for cotangents of ones."""
    leaves = [x.detach().requires_grad_() if claims.differentiable(x) else x for x in inputs]
    results = [y for y in function(*leaves) if y.requires_grad]
    wanted = [x for x in leaves if x.requires_grad]
    return mt.grad(results, wanted, [mt.ones_like(y.detach()) for y in results], allow_unused=True) if results else []


def case(rng, told):
    shape = tensors.shape(rng, most=rng.choice([60, 600, 60_000]))
    has_rows = rng.random() < 0.5
    few = rng.sample(tensors.DTYPES[:4] + tensors.WHOLE + ["bool"], 2)
    inputs = []
    for _ in range(rng.choice([1, 2, 3, 4])):
        dims = tuple(1 if rng.random() < 0.1 else n for n in shape)
        inputs.append(tensors.tensor(rng, dims, rng.choice(few), contiguous=has_rows))
    function = random_function(rng, inputs, without=VIEWS if has_rows else OF_ROWS)
    told["call"] = f"{', '.join(map(tensors.describe, inputs))}: {function}"
    expected = claims.attempt(function, *inputs)
    if claims.failed(expected):
        return type(expected).__name__
    if not claims.small(expected):
        return "large"
    jitted = mt.jit(function)
    for what in ("recording", "graph"):
        claims.same(what, None, claims.attempt(jitted, *inputs), expected, exact=True)
    with mt.lazy():
        postponed = function(*inputs)
    claims.same("lazy mode", None, postponed, expected, exact=True)
    wanted = claims.attempt(gradients, function, inputs)
    got = claims.attempt(gradients, mt.jit(function), inputs)
    if claims.failed(wanted) or claims.failed(got):
        if claims.failed(wanted) != claims.failed(got):
            raise claims.Broken(f"gradients: {got!r:.300} and {wanted!r:.300}")
        return "without gradient"
    # The cotangents are ones, which may cancel.
    claims.same("gradients", None, got, wanted, exact=False, terms=1.0)
    return "ok"

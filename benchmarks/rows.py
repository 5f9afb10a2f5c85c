"""The table of benchmarks."""

from __future__ import annotations

from functools import partial

from . import models, training
from .row import KI, MI, Group, Input, Row, Spelling, Work, index, mask, normal

CALL = Group("One call, 8 elements", 2)
BACKWARD = Group("Forward and backward, 8 elements", 5)
ELEMENTWISE = Group("Elementwise, up to 1 Mi", 1.2)
LARGE = Group("Elementwise, 16 Mi", 3)
CHAIN = Group("Chains that can be fused", 1.5)
REDUCTION = Group("Reductions, softmax, norms, losses", 1.2)
MATMUL = Group("Matrix products", 0.97)
CONVOLUTION = Group("Convolutions", 0.9)
PLACES = Group("Layout, indexing, sorting", None)
TRAINING = Group("Training", 1.5)
GRAPH_CALL = Group("Graphs: one call, 8 elements", 3)
GRAPH_COMPILATION = Group("Graphs: compilation", 20)
GRAPH_CHAIN = Group("Graphs: chains", 1.5)
GRAPH_CHAIN_LARGE = Group("Graphs: chains, 16 Mi", 3)
GRAPH_CHAIN_GRADIENT = Group("Graphs: chains with gradient", 2)
GRAPH_NORM = Group("Graphs: gelu, dropout, residual, norm", 1.5)
GRAPH_EPILOGUE = Group("Graphs: products with element ops", 1)
GRAPH_TRAINING = Group("Graphs: training with AdamW", 1.3)

MEAN_TARGET = 1.8
"""The target for the geometric mean of all rows."""


# Elementwise operations.

ADD = Work("add", "x + y", "x + y", "x + y", "x + y")
EXP = Work("exp", "mt.ops.exp(x)", "np.exp(x)", "torch.exp(x)", "jnp.exp(x)")
TANH = Work("tanh", "mt.ops.tanh(x)", "np.tanh(x)", "torch.tanh(x)", "jnp.tanh(x)")
SWISH = Work("swish", "mt.ops.swish(x)", "x / (1 + np.exp(-x))", "F.silu(x)", "jax.nn.silu(x)")
GELU = Work(
    "gelu (tanh)",
    "mt.ops.gelu(x, approximate='tanh')",
    "0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
    "F.gelu(x, approximate='tanh')",
    "jax.nn.gelu(x, approximate=True)",
)
COPY = Work("copy", "x.copy()", "x.copy()", "x.clone()", "jnp.copy(x)")
WHERE = Work(
    "where", "mt.ops.where(x > y, x, y)", "np.where(x > y, x, y)", "torch.where(x > y, x, y)", "jnp.where(x > y, x, y)"
)
STRIDED = Work("add every other column", *["x[:, ::2] + y[:, ::2]"] * 4)
TRANSPOSED = Work("add a transpose", *["x + y.T"] * 4)
ADD_ROW = Work("add a row", *["x + y"] * 4)
OUTER = Work("outer product", *["x * y"] * 4)
TO_F64 = Work(
    "cast to f64",
    "x.astype(mt.float64)",
    "x.astype(np.float64)",
    "x.to(torch.float64)",
    "x.astype(jnp.float64)",
    wide=True,
)
TO_BF16 = Work("cast to bf16", "x.astype(mt.bfloat16)", None, "x.to(torch.bfloat16)", "x.astype(jnp.bfloat16)")
FROM_I64 = Work(
    "cast i64 to f32",
    "x.astype(mt.float32)",
    "x.astype(np.float32)",
    "x.to(torch.float32)",
    "x.astype(jnp.float32)",
    wide=True,
)
FUSED = Work(
    "tanh(x·y + z)·σ(y) − z/2",
    "mt.ops.example.chain(x, y, z)",
    "np.tanh(x * y + z) * (1 / (1 + np.exp(-y))) - 0.5 * z",
    "torch.tanh(x * y + z) * torch.sigmoid(y) - 0.5 * z",
    "jnp.tanh(x * y + z) * jax.nn.sigmoid(y) - 0.5 * z",
)

# Reductions, and operations composed of them.

SUM = Work("sum", "x.sum()", "x.sum()", "x.sum()", "x.sum()")
SUM_0 = Work("sum axis 0", "x.sum(axis=0)", "x.sum(axis=0)", "x.sum(0)", "x.sum(axis=0)")
SUM_1 = Work("sum axis 1", "x.sum(axis=1)", "x.sum(axis=1)", "x.sum(1)", "x.sum(axis=1)")
MAX_0 = Work("max axis 0", "x.max(axis=0)", "x.max(axis=0)", "x.amax(0)", "x.max(axis=0)")
MAX_1 = Work("max axis 1", "x.max(axis=1)", "x.max(axis=1)", "x.amax(1)", "x.max(axis=1)")
SOFTMAX = Work(
    "softmax",
    "mt.ops.softmax(x)",
    "(e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True)",
    "torch.softmax(x, -1)",
    "jax.nn.softmax(x)",
)
SOFTMAX_0 = Work(
    "softmax axis 0",
    "mt.ops.softmax(x, 0)",
    "(e := np.exp(x - x.max(0, keepdims=True))) / e.sum(0, keepdims=True)",
    "torch.softmax(x, 0)",
    "jax.nn.softmax(x, 0)",
)
LOGSUMEXP_0 = Work(
    "logsumexp axis 0",
    "mt.ops.logsumexp(x, 0)",
    "np.log(np.exp(x - (m := x.max(0))).sum(0)) + m",
    "torch.logsumexp(x, 0)",
    "jax.nn.logsumexp(x, 0)",
)
LOG_SOFTMAX = Work(
    "log_softmax",
    "mt.ops.log_softmax(x)",
    "(z := x - x.max(-1, keepdims=True)) - np.log(np.exp(z).sum(-1, keepdims=True))",
    "torch.log_softmax(x, -1)",
    "jax.nn.log_softmax(x)",
)
LAYER_NORM = Work(
    "layer_norm",
    "mt.ops.layer_norm(x, w, b)",
    "(c := x - x.mean(-1, keepdims=True)) / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * w + b",
    "F.layer_norm(x, w.shape, w, b)",
    "(c := x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt((c * c).mean(-1, keepdims=True) + 1e-5) * w + b",
)
RMS_NORM = Work(
    "rms_norm",
    "mt.ops.rms_norm(x, w, eps=1e-5)",
    "x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w",
    "F.rms_norm(x, w.shape, w, 1e-5)",
    "x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w",
)
CROSS_ENTROPY = Work(
    "cross_entropy",
    "mt.ops.cross_entropy(x, t)",
    "(np.log(np.exp(z := x - x.max(-1, keepdims=True)).sum(-1)) - z[np.arange(len(t)), t]).mean()",
    "F.cross_entropy(x, t)",
    "-jnp.take_along_axis(jax.nn.log_softmax(x), t[:, None], -1).mean()",
)
CUMSUM = Work("cumsum", "x.cumsum(-1)", "x.cumsum(-1)", "x.cumsum(-1)", "x.cumsum(-1)")

# Matrix products.

PRODUCT = Work("matmul", *["x @ y"] * 4)
PRODUCT_RIGHT = Work("matmul x·yᵀ", *["x @ y.T"] * 4)
PRODUCT_LEFT = Work("matmul xᵀ·y", *["x.T @ y"] * 4)
BATCHED = Work("batched matmul", *["x @ y"] * 4)
MATVEC = Work("matvec", *["x @ y"] * 4)

# Convolutions.


def convolution(name: str, *, stride: int = 1, padding: int = 1, axes: int = 2, groups: str = "1") -> Work:
    """Returns a convolution. `groups` is an expression of the inputs."""
    options = f"stride={stride}, padding={padding}, groups={groups}"
    strides, paddings = (stride,) * axes, ((padding, padding),) * axes
    return Work(
        name,
        f"mt.ops.conv{axes}d(x, w, {options})",
        None,
        f"F.conv{axes}d(x, w, None, {options})",
        f"jax.lax.conv_general_dilated(x, w, {strides}, {paddings}, feature_group_count={groups})",
    )


TRANSPOSED_CONVOLUTION = Work(
    "conv_transpose 4×4, stride 2",
    "mt.ops.conv_transpose2d(x, w, stride=2, padding=1)",
    None,
    "F.conv_transpose2d(x, w, None, stride=2, padding=1)",
    "jax.lax.conv_transpose("
    "x, w, (2, 2), ((2, 2), (2, 2)), dimension_numbers=('NCHW', 'OIHW', 'NCHW'), transpose_kernel=True)",
)

# Elements that move.

TRANSPOSE = Work(
    "transpose, made contiguous", "x.T.contiguous()", "np.ascontiguousarray(x.T)", "x.T.contiguous()", "jnp.copy(x.T)"
)
CONCAT = Work("concat", "mt.ops.concat([x, y])", "np.concat([x, y])", "torch.cat([x, y])", "jnp.concat([x, y])")
INDEX = Work("index", *["x[i]"] * 4)
EMBEDDING = Work("embedding", "mt.ops.embedding(w, i)", "w[i]", "F.embedding(i, w)", "w[i]")
GATHER = Work(
    "gather",
    "mt.ops.gather(x, i)",
    "np.take_along_axis(x, i, -1)",
    "torch.gather(x, -1, i)",
    "jnp.take_along_axis(x, i, -1)",
)
SCATTER = Work(
    "scatter, adding rows",
    "mt.ops.scatter_rows(x, i, w.shape[0])",
    "(np.add.at(out := np.zeros_like(w), i, x), out)[1]",
    "torch.zeros_like(w).index_add_(0, i, x)",
    "jnp.zeros_like(w).at[i].add(x)",
)
SORT = Work("sort", "mt.ops.sort(x).values", "np.sort(x)", "torch.sort(x).values", "jnp.sort(x)")
ARGSORT = Work("argsort", "mt.ops.argsort(x)", "np.argsort(x)", "torch.argsort(x)", "jnp.argsort(x)")
TOPK = Work("topk 16", "mt.ops.topk(x, 16)", None, "torch.topk(x, 16)", "jax.lax.top_k(x, 16)")

# Functions for graphs.


def chain(count: int) -> Work:
    """Returns a chain of `count` element ops: x = tanh(t)·σ(t) with t = x·y + ½, repeatedly."""

    def spelling(tanh: str, sigmoid: str) -> str:
        x = "x"
        for _ in range(count // 5):
            x = f"{tanh}(t := {x} * y + 0.5) * {sigmoid}"
        return x

    return Work(
        f"chain of {count} ops,",
        spelling("mt.ops.tanh", "mt.ops.sigmoid(t)"),
        spelling("np.tanh", "(1 / (1 + np.exp(-t)))"),
        spelling("torch.tanh", "torch.sigmoid(t)"),
        spelling("jnp.tanh", "jax.nn.sigmoid(t)"),
    )


def add_and_norm() -> Work:
    """Returns `layer_norm(dropout(gelu(x + a)) + r)`, with the mask of the dropout as an input."""

    def spelling(where: str, gelu: Spelling | None, layer_norm: Spelling | None) -> str:
        return f"(lambda x: {layer_norm})({where}(m, 2 * (lambda x: {gelu})(x + a), 0) + r)"

    return Work(
        "add and norm",
        spelling("mt.ops.where", GELU.minitensor, LAYER_NORM.minitensor),
        spelling("np.where", GELU.numpy, LAYER_NORM.numpy),
        spelling("torch.where", GELU.torch, LAYER_NORM.torch),
        spelling("jnp.where", GELU.jax, LAYER_NORM.jax),
    )


LINEAR = Work(
    "linear, relu",
    "mt.ops.relu(x @ w + b)",
    "np.maximum(x @ w + b, 0)",
    "F.relu(torch.addmm(b, x, w))",
    "jax.nn.relu(x @ w + b)",
)
POINTWISE = Work(
    "conv 1×1, scale, silu",
    "mt.ops.silu(mt.ops.conv2d(x, w) * a)",
    None,
    "F.silu(F.conv2d(x, w) * a)",
    "jax.nn.silu(jax.lax.conv(x, w, (1, 1), 'VALID') * a)",
)

# Training.


def train(name: str, model: models.Model) -> Work:
    """Returns the training step of a model."""
    return Work(
        name,
        partial(training.train_minitensor, model.minitensor),
        None,
        partial(training.train_torch, model.torch),
        partial(training.train_jax, model.jax),
    )


MLP = train("train step, AdamW,", models.MLP)
ADAMW = Work("AdamW step,", training.adamw_minitensor, training.adamw_numpy, training.adamw_torch, training.adamw_jax)

EIGHT = {"x": normal(8)}
TWICE_EIGHT = EIGHT | {"y": normal(8)}
FLAT = [{"x": normal(n)} for n in (64 * KI, MI, 16 * MI)]
PAIRS = [{"x": normal(n), "y": normal(n)} for n in (64 * KI, MI, 4 * MI, 16 * MI)]
TRIPLES = [{"x": normal(n), "y": normal(n), "z": normal(n)} for n in (MI, 16 * MI)]
MATRIX = {"x": normal(4096, 1024)}
MATRICES = {"x": normal(2048, 2048), "y": normal(2048, 2048)}
SCALED = MATRIX | {"w": normal(1024)}
SHIFTED = SCALED | {"b": normal(1024)}
DROPPED = SHIFTED | {"a": normal(1024), "m": mask(4096, 1024), "r": normal(4096, 1024)}
LABELLED = MATRIX | {"t": index(4096, below=1024)}
TABLE = {"w": normal(32 * KI, 128), "i": index(16 * KI, below=32 * KI)}
LAYERS = {
    "w1": normal(784, 256),
    "b1": normal(256),
    "w2": normal(256, 256),
    "b2": normal(256),
    "w3": normal(256, 10),
    "b3": normal(10),
}
DIGITS = {"x": normal(128, 784), "t": index(128, below=10)} | LAYERS
TOKENS = {
    "x": normal(8, 128, 256),
    "t": normal(8, 128, 256),
    "qkv": normal(256, 3, 256),
    "o": normal(256, 256),
    "g1": normal(256),
    "b1": normal(256),
    "w1": normal(256, 1024),
    "c1": normal(1024),
    "w2": normal(1024, 256),
    "c2": normal(256),
    "g2": normal(256),
    "b2": normal(256),
}
IMAGES = {
    "x": normal(32, 3, 32, 32),
    "t": index(32, below=10),
    "w1": normal(32, 3, 3, 3),
    "b1": normal(32),
    "w2": normal(64, 32, 3, 3),
    "b2": normal(64),
    "w3": normal(64, 10),
    "b3": normal(10),
}


CONVOLUTIONS = (
    (convolution("conv 3×3"), {"x": normal(32, 64, 28, 28), "w": normal(64, 64, 3, 3)}),
    (convolution("conv 3×3"), {"x": normal(8, 512, 7, 7), "w": normal(512, 512, 3, 3)}),
    (convolution("conv 3×3, stride 2", stride=2), {"x": normal(8, 64, 56, 56), "w": normal(128, 64, 3, 3)}),
    (
        convolution("conv 7×7, stride 2", stride=2, padding=3),
        {"x": normal(8, 3, 112, 112), "w": normal(64, 3, 7, 7)},
    ),
    (convolution("depthwise conv 3×3", groups="len(w)"), {"x": normal(8, 64, 56, 56), "w": normal(64, 1, 3, 3)}),
    (
        convolution("depthwise conv 3×3, stride 2", stride=2, groups="len(w)"),
        {"x": normal(8, 64, 56, 56), "w": normal(64, 1, 3, 3)},
    ),
    (convolution("conv 9", padding=4, axes=1), {"x": normal(8, 32, 4096), "w": normal(32, 32, 9)}),
    (TRANSPOSED_CONVOLUTION, {"x": normal(8, 64, 28, 28), "w": normal(64, 32, 4, 4)}),
)


def square(n: int) -> dict[str, Input]:
    return {"x": normal(n, n), "y": normal(n, n)}


ROWS: tuple[Row, ...] = (
    Row(CALL, ADD, TWICE_EIGHT),
    Row(CALL, EXP, EIGHT),
    Row(BACKWARD, SWISH, EIGHT, gradient=True),
    *(Row(ELEMENTWISE, ADD, inputs) for inputs in PAIRS[:2]),
    *(Row(ELEMENTWISE, work, inputs) for work in (SWISH, GELU, EXP, TANH) for inputs in FLAT[:2]),
    Row(ELEMENTWISE, SWISH, FLAT[1], gradient=True),
    Row(ELEMENTWISE, WHERE, PAIRS[1]),
    Row(ELEMENTWISE, STRIDED, MATRICES),
    Row(ELEMENTWISE, TRANSPOSED, MATRICES),
    Row(ELEMENTWISE, ADD_ROW, MATRIX | {"y": normal(1024)}),
    Row(ELEMENTWISE, OUTER, {"x": normal(1024, 1), "y": normal(1, 1024)}, size="1024×1024"),
    Row(ELEMENTWISE, TO_F64, FLAT[1]),
    Row(ELEMENTWISE, TO_BF16, FLAT[1]),
    Row(ELEMENTWISE, FROM_I64, {"x": index(MI, below=1000)}),
    *(Row(ELEMENTWISE, work, FLAT[1], "float64") for work in (EXP, TANH)),
    Row(ELEMENTWISE, ADD, PAIRS[1], "float64"),
    Row(ELEMENTWISE, ADD, PAIRS[1], "bfloat16"),
    Row(ELEMENTWISE, SWISH, FLAT[1], "bfloat16"),
    Row(LARGE, COPY, FLAT[2]),
    Row(LARGE, ADD, PAIRS[-1]),
    *(Row(LARGE, work, FLAT[2]) for work in (SWISH, GELU, EXP, TANH)),
    *(Row(CHAIN, FUSED, inputs) for inputs in TRIPLES),
    Row(CHAIN, FUSED, TRIPLES[0], gradient=True),
    Row(REDUCTION, SUM, FLAT[2]),
    Row(REDUCTION, SUM, FLAT[2], "float64"),
    *(Row(REDUCTION, work, MATRIX) for work in (SUM_0, SUM_1, MAX_0, MAX_1)),
    *(
        Row(REDUCTION, work, inputs, gradient=gradient)
        for work, inputs in (
            (SOFTMAX, MATRIX),
            (LOG_SOFTMAX, MATRIX),
            (LAYER_NORM, SHIFTED),
            (RMS_NORM, SCALED),
            (CROSS_ENTROPY, LABELLED),
        )
        for gradient in (False, True)
    ),
    Row(REDUCTION, SOFTMAX_0, MATRIX),
    Row(REDUCTION, SOFTMAX_0, MATRIX, gradient=True),
    Row(REDUCTION, LOGSUMEXP_0, MATRIX),
    Row(REDUCTION, SOFTMAX, {"x": normal(4 * MI)}),
    Row(REDUCTION, SOFTMAX, MATRIX, "float64"),
    Row(REDUCTION, SOFTMAX, MATRIX, "bfloat16"),
    Row(REDUCTION, LAYER_NORM, SHIFTED, "bfloat16"),
    *(Row(MATMUL, PRODUCT, square(n)) for n in (64, 128, 256, 512, 1024)),
    Row(MATMUL, PRODUCT, square(512), gradient=True),
    Row(MATMUL, PRODUCT, square(512), "float64"),
    Row(MATMUL, PRODUCT, square(512), "bfloat16"),
    Row(MATMUL, PRODUCT_RIGHT, square(512)),
    Row(MATMUL, PRODUCT_LEFT, square(512)),
    Row(MATMUL, BATCHED, {"x": normal(64, 128, 128), "y": normal(64, 128, 128)}),
    Row(MATMUL, MATVEC, {"x": normal(4096, 4096), "y": normal(4096)}),
    *(Row(CONVOLUTION, work, inputs, gradient=gradient) for work, inputs in CONVOLUTIONS for gradient in (False, True)),
    Row(PLACES, TRANSPOSE, {"x": normal(2048, 2048)}),
    Row(PLACES, CONCAT, MATRICES),
    Row(PLACES, INDEX, FLAT[1] | {"i": index(MI, below=MI)}),
    Row(PLACES, EMBEDDING, TABLE),
    Row(PLACES, EMBEDDING, TABLE, gradient=True),
    Row(PLACES, GATHER, MATRIX | {"i": index(4096, 256, below=1024)}),
    Row(PLACES, SCATTER, {"x": normal(16 * KI, 128)} | TABLE),
    Row(PLACES, SORT, FLAT[1]),
    Row(PLACES, SORT, {"x": normal(1024, 1024)}),
    Row(PLACES, ARGSORT, {"x": normal(1024, 1024)}),
    Row(PLACES, TOPK, MATRIX),
    Row(PLACES, CUMSUM, FLAT[1]),
    Row(PLACES, CUMSUM, MATRIX),
    Row(TRAINING, MLP, DIGITS, size="MLP 784-256-256-10"),
    Row(TRAINING, ADAMW, LAYERS, size="MLP 784-256-256-10"),
    Row(GRAPH_CALL, chain(10), TWICE_EIGHT, jitted=True),
    Row(GRAPH_COMPILATION, chain(10), TWICE_EIGHT, jitted=True, anew=True),
    *(Row(GRAPH_CHAIN, chain(count), inputs, jitted=True) for count in (5, 20) for inputs in PAIRS[:2]),
    *(Row(GRAPH_CHAIN_LARGE, chain(count), PAIRS[-1], jitted=True) for count in (5, 20)),
    *(
        Row(GRAPH_CHAIN_GRADIENT, chain(count), inputs, gradient=True, jitted=True)
        for count in (5, 20)
        for inputs in PAIRS[:3]
    ),
    *(
        Row(GRAPH_EPILOGUE, LINEAR, {"x": normal(m, k), "w": normal(k, n), "b": normal(n)}, jitted=True)
        for m, k, n in ((4096, 64, 1024), (1024, 256, 1024))
    ),
    Row(
        GRAPH_EPILOGUE,
        POINTWISE,
        {"x": normal(8, 64, 56, 56), "w": normal(128, 64, 1, 1), "a": normal(128, 1, 1)},
        jitted=True,
    ),
    *(Row(GRAPH_NORM, add_and_norm(), DROPPED, gradient=gradient, jitted=True) for gradient in (False, True)),
    *(
        Row(GRAPH_TRAINING, train("train step,", model), inputs, size=size, jitted=True)
        for model, inputs, size in (
            (models.MLP, DIGITS, "MLP 784-256-256-10"),
            (models.ATTENTION, TOKENS, "attention 8×128×256"),
            (models.CNN, IMAGES, "CNN 32×3×32×32"),
        )
    ),
)


def named(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)

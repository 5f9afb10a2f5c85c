"""How large an IR is, and how much it computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .meta import ITEMSIZE, TensorMeta
from .node import OpNode
from .symbols import evaluate

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["CallStatistics", "Statistics", "of"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class CallStatistics:
    """The statistics of one call."""

    name: str
    op_type: str
    #: Additions and multiplications, each counted, or one operation for each element.
    flops: int
    #: The bytes of the inputs and of the results.
    bytes_moved: int


@dataclass(frozen=True)
class Statistics:
    """The statistics of an IR."""

    #: The elements of the weights.
    parameters: int
    #: The bytes of the weights.
    weight_bytes: int
    flops: int
    bytes_moved: int
    calls: tuple[CallStatistics, ...]

    def __str__(self) -> str:
        width = max((len(call.op_type) for call in self.calls), default=0)
        lines = [f"{c.op_type:{width}} {c.flops:>16,} FLOPs {c.bytes_moved:>16,} bytes  {c.name}" for c in self.calls]
        lines.append(
            f"{self.parameters:,} parameters ({self.weight_bytes:,} bytes), {self.flops:,} FLOPs, "
            f"{self.bytes_moved:,} bytes moved, {len(self.calls)} calls"
        )
        return "\n".join(lines)


def of(ir: IR, symbols: Mapping[str, int]) -> Statistics:
    """Returns the statistics, given the values of symbols."""
    ir.check()

    def shape(meta: TensorMeta) -> Shape:
        return tuple(evaluate(size, symbols) for size in meta.shape)

    calls = []
    for node in ir.nodes:
        moved = sum(math.prod(shape(m)) * ITEMSIZE[m.dtype] for m in (*node.inputs, *node.outputs))
        flops = _flops(_op(node), [shape(m) for m in node.inputs], [shape(m) for m in node.outputs])
        # A view moves no memory.
        calls.append(CallStatistics(node.name, node.op_type, flops, 0 if _op(node) in VIEWS else moved))
    sizes = [(math.prod(shape(m)), ITEMSIZE[m.dtype]) for m in ir.weights]
    return Statistics(
        sum(count for count, _ in sizes),
        sum(count * size for count, size in sizes),
        sum(call.flops for call in calls),
        sum(call.bytes_moved for call in calls),
        tuple(calls),
    )


def _op(node: OpNode) -> str:
    """The name without namespace and overload."""
    parts = node.op_type.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _flops(op: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    if op in MOVES or op in VIEWS:
        return 0
    if op in PRODUCTS and len(inputs) >= 2:
        return PRODUCTS[op](inputs, outputs)
    if op in REDUCTIONS:
        return sum(math.prod(shape) for shape in inputs)
    passes = PASSES.get(op, 1)
    return passes * max((math.prod(shape) for shape in outputs), default=0)


def _product(rows: Shape, columns: Shape) -> int:
    """The FLOPs of a sum of products for each element of a result, given the result and the summed dimensions."""
    return 2 * math.prod(rows) * math.prod(columns)


def _attention(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    query, key, value = inputs[:3]
    scores = math.prod(query[:-1]) * key[-2]
    return 2 * scores * query[-1] + 5 * scores + 2 * scores * value[-1]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Matrix products and the like: the FLOPs from the shapes of inputs and results.
PRODUCTS: dict[str, Callable[[Sequence[Shape], Sequence[Shape]], int]] = {
    **dict.fromkeys(("mm", "bmm", "matmul", "dot", "mv", "linear"), lambda i, o: _product(o[0], i[0][-1:])),
    **dict.fromkeys(("addmm", "baddbmm", "addmv", "addbmm"), lambda i, o: _product(o[0], i[1][-1:])),
    **dict.fromkeys(
        ("conv1d", "conv2d", "conv3d", "convolution", "_convolution"), lambda i, o: _product(o[0], i[1][1:])
    ),
    **dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), lambda i, o: _product(i[0], i[1][1:])
    ),
    "scaled_dot_product_attention": _attention,
}
#: One operation for each element of the inputs.
REDUCTIONS = _words(
    """
    all amax amin any argmax argmin avg_pool1d avg_pool2d avg_pool3d count_nonzero cumprod cumsum max max_pool1d
    max_pool2d max_pool3d mean min norm prod std sum var
    """
)
#: Several operations for each element.
PASSES = {
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), 5),
    **dict.fromkeys(["layer_norm", "native_layer_norm", "group_norm", "native_group_norm", "rms_norm"], 8),
    **dict.fromkeys(["batch_norm", "_native_batch_norm_legit_no_training"], 4),
}
#: Views: they move nothing.
VIEWS = _words(
    """
    alias as_strided chunk detach diagonal expand expand_as flatten movedim moveaxis mT narrow numpy_T permute
    reshape select slice split split_with_sizes squeeze swapaxes t transpose unbind unflatten unfold unsqueeze view
    view_as broadcast_to expand_dims permute_dims matrix_transpose
    """
)
#: Copies of elements.
MOVES = _words(
    """
    _to_copy arange cat clone concat constant_pad_nd contiguous copy dropout embedding empty eye flip full full_like
    gather index index_put index_select lift_fresh_copy masked_select nonzero nonzero_static ones ones_like pad
    repeat roll scalar_tensor scatter select_scatter slice_scatter stack tile to tril triu zeros zeros_like cast astype
    take
    """
)

"""Models of PyTorch as graphs without weights, which minitensor runs.

>>> import torch
>>> from minitensor.torch_ir import extract_ir
>>> model = torch.nn.Linear(3, 2)
>>> ir = extract_ir(model, (torch.randn(1, 3),))
>>> [node.op_type for node in ir.nodes]
['aten.linear.default']
>>> ir.verify(model, (torch.randn(1, 3),)) < 1e-5
True
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "minitensor.torch_ir needs PyTorch, which is not installed; install it with: pip install torch"
    ) from error

from ..ir import IR, Constant, Input, IRError, OpNode, Sym, TensorMeta
from . import executor as _executor  # registered executors take part in runs
from .converter import extract_ir
from .exporting import export_model
from .verification import verify

__all__ = [
    "IR",
    "Constant",
    "IRError",
    "Input",
    "OpNode",
    "Sym",
    "TensorMeta",
    "export_model",
    "extract_ir",
    "verify",
]

_executor.install()

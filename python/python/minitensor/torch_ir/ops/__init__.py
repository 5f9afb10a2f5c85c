"""Conversions and executors for ops, beyond those of ATen.

>>> from minitensor.torch_ir.ops import register_executor
>>> @register_executor("example.double")
... def double(inputs, attrs):
...     return [inputs[0] * 2]
>>> from minitensor.torch_ir.ops import registry
>>> registry.unregister_executor("example.double")
"""

from __future__ import annotations

from .registry import register_executor, register_op, unregister_executor, unregister_op

__all__ = ["register_executor", "register_op", "unregister_executor", "unregister_op"]

"""Ops of minitensor as functions of JAX.

`minitensor.jax.<op>` is the op of `mt.ops.<op>` on arrays of JAX. It works under `jax.jit`, `jax.vmap`, `jax.shard_map`
and all derivatives: `jax.grad`, `jax.jvp`, `jax.hessian`, of any order. Ops that are registered later appear at once.

>>> import jax, jax.numpy as jnp
>>> import minitensor.jax as mj
>>> jax.jit(jax.grad(lambda x: mj.swish(x).sum()))(jnp.zeros(2)).tolist()
[0.5, 0.5]
"""

from __future__ import annotations

from typing import Any

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise ImportError("minitensor.jax needs JAX; install it with: pip install jax") from error

from .namespace import attribute, find, names

__all__ = ["call"]


def call(name: str, arguments: dict[str, Any]) -> Any:
    """Calls an op on arrays of JAX.

    `arguments` are the inputs and attributes by name. Wrong arguments raise the errors of the op. An error during the
    computation is a `jax.errors.JaxRuntimeError` with the message of the op. If the compiled function has run before,
    JAX raises ValueError instead.

    >>> import jax.numpy as jnp
    >>> import minitensor.jax as mj
    >>> mj.call("add", {"x": jnp.ones(2), "y": 1}).tolist()
    [2.0, 2.0]
    """
    return find(name).call(dict(arguments))


def __getattr__(name: str) -> Any:
    return attribute(__name__, "", name)


def __dir__() -> list[str]:
    return sorted({*__all__, *names("")})

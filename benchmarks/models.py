"""The models of the training rows: the loss in every framework, as a function of the inputs and the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Loss = Callable[..., Any]
"""A function `loss(x, t, *weights)`. `t` is the target."""


@dataclass(frozen=True)
class Model:
    """The loss in each framework."""

    minitensor: Loss
    torch: Loss
    jax: Loss


def mlp_minitensor(x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    import minitensor as mt

    h = mt.ops.relu(x @ w1 + b1)
    h = mt.ops.relu(h @ w2 + b2)
    return mt.ops.cross_entropy(h @ w3 + b3, t)


def mlp_torch(x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    import torch
    import torch.nn.functional as F

    h = F.relu(torch.addmm(b1, x, w1))
    h = F.relu(torch.addmm(b2, h, w2))
    return F.cross_entropy(torch.addmm(b3, h, w3), t)


def mlp_jax(x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    import jax

    h = jax.nn.relu(x @ w1 + b1)
    h = jax.nn.relu(h @ w2 + b2)
    return cross_entropy_jax(h @ w3 + b3, t)


def cross_entropy_jax(logits: Any, t: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return -jnp.take_along_axis(jax.nn.log_softmax(logits), t[:, None], -1).mean()


MLP = Model(mlp_minitensor, mlp_torch, mlp_jax)

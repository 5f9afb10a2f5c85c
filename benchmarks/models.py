"""The models of the training rows: the loss in every framework, as a function of the inputs and the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

HEADS = 4

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


def attention_minitensor(
    x: Any, t: Any, qkv: Any, o: Any, g1: Any, b1: Any, w1: Any, c1: Any, w2: Any, c2: Any, g2: Any, b2: Any
) -> Any:
    import minitensor as mt

    batch, tokens, width = x.shape
    h = mt.ops.layer_norm(x, g1, b1) @ qkv.reshape(width, 3 * width)
    q, k, v = h.reshape(batch, tokens, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
    h = mt.ops.softmax(q @ k.mT * (width // HEADS) ** -0.5) @ v
    x = x + h.permute(0, 2, 1, 3).reshape(batch, tokens, width) @ o
    h = mt.ops.gelu(mt.ops.layer_norm(x, g2, b2) @ w1 + c1)
    return mt.ops.mse(x + h @ w2 + c2, t)


def attention_torch(
    x: Any, t: Any, qkv: Any, o: Any, g1: Any, b1: Any, w1: Any, c1: Any, w2: Any, c2: Any, g2: Any, b2: Any
) -> Any:
    import torch.nn.functional as F

    batch, tokens, width = x.shape
    h = F.layer_norm(x, (width,), g1, b1) @ qkv.reshape(width, 3 * width)
    q, k, v = h.reshape(batch, tokens, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
    h = F.scaled_dot_product_attention(q, k, v)
    x = x + h.permute(0, 2, 1, 3).reshape(batch, tokens, width) @ o
    h = F.gelu(F.layer_norm(x, (width,), g2, b2) @ w1 + c1)
    return F.mse_loss(x + h @ w2 + c2, t)


def attention_jax(
    x: Any, t: Any, qkv: Any, o: Any, g1: Any, b1: Any, w1: Any, c1: Any, w2: Any, c2: Any, g2: Any, b2: Any
) -> Any:
    import jax
    import jax.numpy as jnp

    batch, tokens, width = x.shape
    h = layer_norm_jax(x, g1, b1) @ qkv.reshape(width, 3 * width)
    q, k, v = jnp.moveaxis(h.reshape(batch, tokens, 3, HEADS, width // HEADS), 2, 0)
    h = jax.nn.dot_product_attention(q, k, v)
    x = x + h.reshape(batch, tokens, width) @ o
    h = jax.nn.gelu(layer_norm_jax(x, g2, b2) @ w1 + c1, approximate=False)
    return ((x + h @ w2 + c2 - t) ** 2).mean()


def cnn_minitensor(x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    import minitensor as mt

    h = mt.ops.max_pool2d(mt.ops.relu(mt.ops.conv2d(x, w1, b1, padding=1)), 2)
    h = mt.ops.max_pool2d(mt.ops.relu(mt.ops.conv2d(h, w2, b2, padding=1)), 2)
    return mt.ops.cross_entropy(h.mean(axis=(2, 3)) @ w3 + b3, t)


def cnn_torch(x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    import torch
    import torch.nn.functional as F

    h = F.max_pool2d(F.relu(F.conv2d(x, w1, b1, padding=1)), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, w2, b2, padding=1)), 2)
    return F.cross_entropy(torch.addmm(b3, h.mean((2, 3)), w3), t)


def cnn_jax(x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    import jax
    import jax.numpy as jnp

    # The last axis has the channels, as in the layers of Flax.
    h = jnp.moveaxis(x, 1, -1)
    for w, b in (w1, b1), (w2, b2):
        h = jax.lax.conv_general_dilated(h, w, (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC"))
        h = jax.lax.reduce_window(jax.nn.relu(h + b), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return cross_entropy_jax(h.mean(axis=(1, 2)) @ w3 + b3, t)


def cross_entropy_jax(logits: Any, t: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return -jnp.take_along_axis(jax.nn.log_softmax(logits), t[:, None], -1).mean()


def layer_norm_jax(x: Any, weight: Any, bias: Any) -> Any:
    import jax

    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


MLP = Model(mlp_minitensor, mlp_torch, mlp_jax)
ATTENTION = Model(attention_minitensor, attention_torch, attention_jax)
"""A block of a transformer: attention and an MLP, each with a layer norm before it and a residual connection."""
CNN = Model(cnn_minitensor, cnn_torch, cnn_jax)
"""Two convolutions with pooling, the mean of each channel, and a linear layer."""

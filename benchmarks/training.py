"""Operations with a state: a training step of a model, and an optimizer step alone, in every framework.

Each function takes the tensors of a row and returns the step. A step returns a value to compare: the loss before the
step, or the first parameter after it. The parameters are copied first, so a row can be prepared again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .models import Loss

Step = Callable[[], Any]

LR, BETAS, EPS, DECAY = 1e-3, (0.9, 0.999), 1e-8, 1e-2

GAIN = 0.05
"""The scale of the initial weights, because the inputs of a row are normally distributed."""


def train_minitensor(loss: Loss, x: Any, t: Any, **weights: Any) -> Step:
    import minitensor as mt

    params = [(p * GAIN).requires_grad_() for p in weights.values()]
    optimizer = mt.optim.AdamW(params, LR, BETAS, EPS, DECAY)

    def step() -> Any:
        out = loss(x, t, *params)
        optimizer.zero_grad()
        out.backward()
        optimizer.step()
        return out

    return step


def train_torch(loss: Loss, x: Any, t: Any, compiled: bool, **weights: Any) -> Step:
    import torch

    params = [(p * GAIN).requires_grad_() for p in weights.values()]
    optimizer = torch.optim.AdamW(params, LR, BETAS, EPS, DECAY, fused=True)
    forward = torch.compile(loss) if compiled else loss

    def step() -> Any:
        out = forward(x, t, *params)
        optimizer.zero_grad()
        out.backward()
        optimizer.step()
        return out

    return step


def train_jax(loss: Loss, x: Any, t: Any, **weights: Any) -> Step:
    import jax

    def update(state: Any, x: Any, t: Any) -> Any:
        out, grads = jax.value_and_grad(lambda params: loss(x, t, *params))(state[0])
        return out, adamw_update(state, grads)

    compiled = jax.jit(update, donate_argnums=0)
    state = adamw_state([p * GAIN for p in weights.values()])

    def step() -> Any:
        nonlocal state
        out, state = compiled(state, x, t)
        return out.block_until_ready()

    return step


def adamw_minitensor(**weights: Any) -> Step:
    import minitensor as mt

    params = [(p * 1).requires_grad_() for p in weights.values()]
    for param, grad in zip(params, weights.values(), strict=True):
        param.grad = grad
    optimizer = mt.optim.AdamW(params, LR, BETAS, EPS, DECAY)

    def step() -> Any:
        optimizer.step()
        return params[0]

    return step


def adamw_numpy(**weights: Any) -> Step:
    import numpy as np

    grads = list(weights.values())
    params = [p.copy() for p in grads]
    m, v = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    steps = 0

    def step() -> Any:
        nonlocal steps
        steps += 1
        a, b = 1 - BETAS[0] ** steps, 1 - BETAS[1] ** steps
        for p, g, m_, v_ in zip(params, grads, m, v, strict=True):
            p *= 1 - LR * DECAY
            m_ += (1 - BETAS[0]) * (g - m_)
            v_ += (1 - BETAS[1]) * (g * g - v_)
            p -= LR / a * m_ / (np.sqrt(v_ / b) + EPS)
        return params[0]

    return step


def adamw_torch(compiled: bool, **weights: Any) -> Step:
    import torch

    params = [p.clone().requires_grad_() for p in weights.values()]
    for param, grad in zip(params, weights.values(), strict=True):
        param.grad = grad
    optimizer = torch.optim.AdamW(params, LR, BETAS, EPS, DECAY, fused=not compiled)
    update = torch.compile(optimizer.step) if compiled else optimizer.step

    def step() -> Any:
        update()
        return params[0]

    return step


def adamw_jax(**weights: Any) -> Step:
    import jax

    compiled = jax.jit(adamw_update, donate_argnums=0)
    grads = list(weights.values())
    state = adamw_state([p * 1 for p in grads])

    def step() -> Any:
        nonlocal state
        state = compiled(state, grads)
        return state[0][0].block_until_ready()

    return step


def adamw_state(params: list[Any]) -> Any:
    """Returns the state for JAX: the parameters, both moments, and the number of steps."""
    import jax.numpy as jnp

    return params, [jnp.zeros_like(p) for p in params], [jnp.zeros_like(p) for p in params], jnp.int32(0)


def adamw_update(state: Any, grads: list[Any]) -> Any:
    """Computes a step of AdamW (Loshchilov and Hutter, 2019) in JAX."""
    import jax.numpy as jnp

    params, m, v, steps = state
    steps = steps + 1
    m = [BETAS[0] * m_ + (1 - BETAS[0]) * g for m_, g in zip(m, grads, strict=True)]
    v = [BETAS[1] * v_ + (1 - BETAS[1]) * g * g for v_, g in zip(v, grads, strict=True)]
    a, b = 1 - BETAS[0] ** steps, 1 - BETAS[1] ** steps
    params = [
        p * (1 - LR * DECAY) - LR * (m_ / a) / (jnp.sqrt(v_ / b) + EPS) for p, m_, v_ in zip(params, m, v, strict=True)
    ]
    return params, m, v, steps

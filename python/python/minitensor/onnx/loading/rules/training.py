"""Steps of optimizers: the domain `ai.onnx.preview.training`."""

from __future__ import annotations

from collections.abc import Callable

from .... import ops
from ..rule import rule
from ..values import Known, Tensor

DOMAIN = "ai.onnx.preview.training"


def _each(xs: tuple[Tensor, ...], parts: int, step: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Applies a step to each tensor, with its gradient and its states. Inputs and outputs are sorted by their roles."""
    count = len(xs) // parts
    columns = [step(*xs[k::count]) for k in range(count)]
    return tuple(column[role] for role in range(parts - 1) for column in columns)


@rule("Adagrad", domain=DOMAIN)
def _adagrad(
    rate: Tensor,
    count: Known,
    *xs: Tensor,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Tensor, ...]:
    r = rate / (1.0 + int(count.item()) * decay_factor)

    def step(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = x * norm_coefficient + g
        h = h + g * g
        return x - r * g / (ops.sqrt(h) + epsilon), h

    return _each(xs, 3, step)


@rule("Adam", domain=DOMAIN)
def _adam(
    rate: Tensor,
    count: Known,
    *xs: Tensor,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Tensor, ...]:
    t = int(count.item())
    r = rate * ((1.0 - beta**t) ** 0.5 / (1.0 - alpha**t)) if t > 0 else rate

    def step(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = x * norm_coefficient + g
        v = v * alpha + g * (1.0 - alpha)
        h = h * beta + g * g * (1.0 - beta)
        return (x - r * v / (ops.sqrt(h) + epsilon)) * (1.0 - norm_coefficient_post), v, h

    return _each(xs, 4, step)


@rule("Momentum", domain=DOMAIN)
def _momentum(
    rate: Tensor, count: Known, *xs: Tensor, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> tuple[Tensor, ...]:
    factor = beta if int(count.item()) > 0 else 1.0

    def step(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        g = x * norm_coefficient + g
        v = v * alpha + g * factor
        return x - rate * (g + v * alpha if mode == "nesterov" else v), v

    return _each(xs, 3, step)

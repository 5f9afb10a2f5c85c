"""Recurrent layers: RNN, GRU, LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .... import _minitensor as mt
from .... import ops
from ..error import OnnxError
from ..rule import rule
from ..values import Tensor

Activation = Callable[[Tensor], Tensor]

#: The activations by name, each with the defaults of alpha and beta.
_ACTIVATIONS: dict[str, tuple[Callable[[Tensor, float, float], Tensor], float, float]] = {
    "affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "elu": (lambda x, a, b: ops.where(ops.ge(x, 0.0), x, ops.expm1(ops.minimum(x, 0.0)) * a), 1.0, 0.0),
    "hardsigmoid": (lambda x, a, b: ops.minimum(ops.maximum(x * a + b, 0.0), 1.0), 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: ops.leaky_relu(x, a), 0.01, 0.0),
    "relu": (lambda x, a, b: ops.relu(x), 0.0, 0.0),
    "scaledtanh": (lambda x, a, b: ops.tanh(x * b) * a, 1.0, 1.0),
    "sigmoid": (lambda x, a, b: ops.sigmoid(x), 0.0, 0.0),
    "softplus": (lambda x, a, b: ops.softplus(x), 0.0, 0.0),
    "softsign": (lambda x, a, b: ops.softsign(x), 0.0, 0.0),
    "tanh": (lambda x, a, b: ops.tanh(x), 0.0, 0.0),
    "thresholdedrelu": (lambda x, a, b: ops.where(ops.gt(x, a), x, ops.zeros_like(x)), 1.0, 0.0),
}
#: The activations that have an alpha, and those that have a beta, in the lists of attributes.
_WITH_ALPHA = {"affine", "elu", "hardsigmoid", "leakyrelu", "scaledtanh", "thresholdedrelu"}
_WITH_BETA = {"affine", "hardsigmoid", "scaledtanh"}


def _activations(
    names: Sequence[str], alphas: list[float] | None, betas: list[float] | None, clip: float | None
) -> list[Activation]:
    alpha, beta = iter(alphas or []), iter(betas or [])
    found: list[Activation] = []
    for name in map(str.lower, names):
        if name not in _ACTIVATIONS:
            raise OnnxError(f"the activation '{name}' is unknown; expected {', '.join(_ACTIVATIONS)}")
        function, default_a, default_b = _ACTIVATIONS[name]
        a = next(alpha, default_a) if name in _WITH_ALPHA else default_a
        b = next(beta, default_b) if name in _WITH_BETA else default_b

        def apply(x: Tensor, function: Any = function, a: float = a, b: float = b) -> Tensor:
            return function(x if clip is None else ops.minimum(ops.maximum(x, -clip), clip), a, b)

        found.append(apply)
    return found


def _reversed(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverses the steps of each sequence. The first axis has the steps, and the second one the sequences."""
    if lengths is None:
        return ops.flip(x, 0)
    at = ops.reshape(mt.arange(x.shape[0], dtype="int64"), [x.shape[0], 1])
    index = ops.where(ops.lt(at, lengths), lengths - 1 - at, at)
    index = ops.reshape(index, [*index.shape, *[1] * (x.ndim - 2)])
    return ops.gather(x, ops.expand(index, x.shape), 0)


#: Returns the new states for the states, and the product of the input of the step with the weights.
Cell = Callable[[list[Tensor], Tensor], list[Tensor]]


def _layer(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    states: Sequence[Tensor | None],
    sizes: Sequence[int],
    lengths: Tensor | None,
    direction: str,
    layout: int,
    cell: Callable[[int], Cell],
) -> tuple[Tensor, ...]:
    """Runs the cells of all directions over all steps. `bias` has a row for each direction."""
    x = ops.swapaxes(x, 0, 1) if layout else x
    count, batch = x.shape[:2]
    hidden = sizes[0]
    lengths = None if lengths is None else ops.reshape(ops.astype(lengths, "int64"), [batch])
    found, last = [], []
    for k in range(weight.shape[0]):
        is_backward = direction == "reverse" or k == 1
        rows = _reversed(x, lengths) if is_backward else x
        # The products of all steps are one product of matrices.
        flat = ops.matmul(ops.reshape(rows, [count * batch, x.shape[2]]), ops.matrix_transpose(_part(weight, k)))
        inputs = ops.reshape(flat + _part(bias, k), [count, batch, weight.shape[1]])
        now = []
        for state in states:
            if state is None:
                now.append(mt.zeros((batch, hidden), dtype=x.dtype))
            else:
                now.append(_part(ops.swapaxes(state, 0, 1) if layout else state, k))
        step = cell(k)
        outputs = []
        for t in range(count):
            new = step(now, _part(inputs, t))
            output = new[0]
            if lengths is not None:
                # A sequence that has ended keeps its states.
                is_running = ops.expand_dims(ops.gt(lengths, t), 1)
                new = [ops.where(is_running, a, b) for a, b in zip(new, now, strict=True)]
                output = ops.where(is_running, output, ops.zeros_like(output))
            now = new
            outputs.append(output)
        stacked = ops.stack(outputs, 0) if outputs else mt.zeros((0, batch, hidden), dtype=x.dtype)
        found.append(_reversed(stacked, lengths) if is_backward else stacked)
        last.append(now)
    y = ops.stack(found, 1)
    ends = [ops.stack([states[k] for states in last], 0) for k in range(len(states))]
    if layout:
        return ops.permute_dims(y, [2, 0, 1, 3]), *(ops.swapaxes(end, 0, 1) for end in ends)
    return y, *ends


def _part(x: Tensor, k: int) -> Tensor:
    return ops.reshape(ops.slice(x, 0, k, k + 1), x.shape[1:])


def _gates(x: Tensor, count: int) -> list[Tensor]:
    size = x.shape[-1] // count
    return [ops.slice(x, -1, k * size, (k + 1) * size) for k in range(count)]


def _biases(bias: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the bias of the inputs and that of the states: a row for each direction."""
    if bias is None:
        zeros = mt.zeros(weight.shape[:2], dtype=weight.dtype)
        return zeros, zeros
    first, second = _gates(bias, 2)
    return first, second


def _each(names: list[str] | None, defaults: list[str], directions: int) -> list[str]:
    return names or defaults * directions


@rule("RNN", since=7)
def _rnn(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    names = _each(activations, ["Tanh"], weight.shape[0])
    functions = _activations(names, activation_alpha, activation_beta, clip)
    first, second = _biases(bias, weight)

    def cell(k: int) -> Cell:
        matrix = ops.matrix_transpose(_part(recurrence, k))
        return lambda states, given: [functions[k](given + ops.matmul(states[0], matrix))]

    return _layer(
        x, weight, first + second, [initial_h], [recurrence.shape[-1]], sequence_lens, direction, layout, cell
    )


@rule("GRU", since=7)
def _gru(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Tensor, ...]:
    names = _each(activations, ["Sigmoid", "Tanh"], weight.shape[0])
    functions = _activations(names, activation_alpha, activation_beta, clip)
    first, second = _biases(bias, weight)

    def cell(k: int) -> Cell:
        gate, candidate = functions[2 * k : 2 * k + 2]
        matrices = [ops.matrix_transpose(m) for m in _rows(_part(recurrence, k), 3)]
        biases = _gates(_part(second, k), 3)

        def step(states: list[Tensor], given: Tensor) -> list[Tensor]:
            (h,) = states
            z_in, r_in, h_in = _gates(given, 3)
            z = gate(z_in + ops.matmul(h, matrices[0]) + biases[0])
            r = gate(r_in + ops.matmul(h, matrices[1]) + biases[1])
            if linear_before_reset:
                new = candidate(h_in + r * (ops.matmul(h, matrices[2]) + biases[2]))
            else:
                new = candidate(h_in + ops.matmul(r * h, matrices[2]) + biases[2])
            return [(1.0 - z) * new + z * h]

        return step

    return _layer(x, weight, first, [initial_h], [recurrence.shape[-1]], sequence_lens, direction, layout, cell)


def _rows(x: Tensor, count: int) -> list[Tensor]:
    size = x.shape[0] // count
    return [ops.slice(x, 0, k * size, (k + 1) * size) for k in range(count)]


@rule("LSTM", since=7)
def _lstm(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    peepholes: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    names = _each(activations, ["Sigmoid", "Tanh", "Tanh"], weight.shape[0])
    functions = _activations(names, activation_alpha, activation_beta, clip)
    first, second = _biases(bias, weight)

    def cell(k: int) -> Cell:
        gate, candidate, output = functions[3 * k : 3 * k + 3]
        matrix = ops.matrix_transpose(_part(recurrence, k))
        peep = None if peepholes is None else _gates(_part(peepholes, k), 3)

        def step(states: list[Tensor], given: Tensor) -> list[Tensor]:
            h, c = states
            i, o, f, new = _gates(given + ops.matmul(h, matrix), 4)
            i = gate(i if peep is None else i + peep[0] * c)
            f = 1.0 - i if input_forget else gate(f if peep is None else f + peep[2] * c)
            now = f * c + i * candidate(new)
            o = gate(o if peep is None else o + peep[1] * now)
            return [o * output(now), now]

        return step

    states = [initial_h, initial_c]
    return _layer(x, weight, first + second, states, [recurrence.shape[-1]], sequence_lens, direction, layout, cell)

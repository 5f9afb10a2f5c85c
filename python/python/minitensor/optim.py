"""Optimizers. Each step is an in-place op, `sgd_step` or `adam_step`, that passes over the memory once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from . import ops
from ._grad_mode import no_grad
from ._minitensor import Tensor, zeros_like
from ._runs import before_each, do_not_keep, last_call_takes

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


def _at_least_0(name: str, value: float) -> float:
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, got {value}")
    return float(value)


def _below_1(name: str, value: float) -> float:
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1, got {value}")
    return float(value)


class Optimizer:
    """The base class of optimizers: the parameters, the state of each, saving and loading."""

    #: The names of the state tensors of each parameter.
    buffers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params must be a list of Tensors, got a Tensor; write [param]")
        self.params = list(params)
        if not self.params:
            raise ValueError("an optimizer needs at least one parameter, got none")
        for i, p in enumerate(self.params):
            if not isinstance(p, Tensor):
                raise TypeError(f"params[{i}] must be a Tensor, got {type(p).__name__}")
            if not p.is_leaf or not p.requires_grad:
                raise ValueError(f"params[{i}] must be a leaf that requires a gradient (requires_grad=True)")
        if len({id(p) for p in self.params}) != len(self.params):
            raise ValueError("a parameter is listed twice")
        self._lr = _at_least_0("lr", lr)
        self._steps = 0
        #: The number of updates of each parameter. A step skips parameters without a gradient.
        self._updates = [0] * len(self.params)
        self.state: list[dict[str, Tensor]] = [{} for _ in self.params]

    def _numbers(self, i: int) -> dict[str, float]:
        """Returns the attributes of the update of a parameter that differ between steps."""
        return {"lr": self._lr}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Tensor], numbers: dict[str, float]) -> None:
        raise NotImplementedError

    # A graph reads both in each run. Code that is recorded must not depend on them.
    @property
    def lr(self) -> float:
        """The learning rate."""
        do_not_keep()
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        do_not_keep()
        self._lr = value

    @property
    def steps(self) -> int:
        """The number of steps."""
        do_not_keep()
        return self._steps

    @steps.setter
    def steps(self, value: int) -> None:
        do_not_keep()
        self._steps = value

    @no_grad()
    def step(self) -> None:
        """Updates every parameter that has a gradient, in place."""
        grads = [param.grad for param in self.params]
        # A graph keeps the function, so it must not keep the gradients.
        is_updated = [grad is not None for grad in grads]
        before_each(lambda: self._count(is_updated))
        for i, (param, grad, state) in enumerate(zip(self.params, grads, self.state, strict=True)):
            if grad is None:
                continue
            for name in self.buffers:
                if name not in state:
                    state[name] = zeros_like(param)
                    # The graph of the first step would keep its zeros, and never run again.
                    do_not_keep()
            self._update(param, grad, state, self._numbers(i))
            if type(self) in _OURS:
                last_call_takes(list(self._numbers(i)), partial(self._values, i))
            else:
                do_not_keep()

    def _values(self, i: int) -> list[float]:
        return list(self._numbers(i).values())

    def _count(self, is_updated: list[bool]) -> None:
        self._steps += 1
        self._updates = [n + updated for n, updated in zip(self._updates, is_updated, strict=True)]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of the parameters to `None`, or to zeros."""
        for param in self.params:
            param.zero_grad(set_to_none)

    def _options(self) -> dict[str, Any]:
        held = ("params", "state", "_steps", "_updates")
        return {name.removeprefix("_"): value for name, value in vars(self).items() if name not in held}

    def state_dict(self) -> dict[str, Any]:
        """Returns the options, the number of steps, and copies of the state tensors of each parameter."""
        state = [{name: t.detach().clone() for name, t in s.items()} for s in self.state]
        return {"options": self._options(), "steps": self.steps, "updates": list(self._updates), "state": state}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Restores a state returned by `state_dict`."""
        if not isinstance(saved, dict):
            raise TypeError(f"the state of an optimizer must be a dict, got {type(saved).__name__}")
        if missing := {"options", "steps", "state"} - saved.keys():
            raise ValueError(f"not a state of an optimizer; missing keys: {', '.join(sorted(missing))}")
        options, states = saved["options"], saved["state"]
        if not isinstance(options, dict) or not isinstance(states, (list, tuple)):
            raise ValueError("not a state of an optimizer; 'options' must be a dict, and 'state' a list")
        if unknown := options.keys() ^ self._options().keys():
            raise ValueError(f"the state belongs to another optimizer; differing options: {', '.join(sorted(unknown))}")
        for name, own in self._options().items():
            if _kind(options[name]) != _kind(own):
                raise ValueError(f"the option '{name}' must be like {own!r}, got {options[name]!r}")
        if len(states) != len(self.params):
            raise ValueError(f"the state has {len(states)} parameters, this optimizer {len(self.params)}")
        updates = saved.get("updates", [saved["steps"]] * len(self.params))
        if not _are_counts([saved["steps"]]) or not _are_counts(updates) or len(updates) != len(self.params):
            raise ValueError("'steps' must be a number of steps, and 'updates' one for each parameter")
        for i, (param, state) in enumerate(zip(self.params, states, strict=True)):
            if not isinstance(state, dict) or not all(isinstance(t, Tensor) for t in state.values()):
                raise ValueError(f"the state of parameter {i} must be a dict of tensors")
            if type(self) in _OURS and (unknown := state.keys() - set(self.buffers)):
                raise ValueError(f"the state of parameter {i} has unknown tensors: {', '.join(sorted(unknown))}")
            for name, t in state.items():
                if t.shape != param.shape or t.dtype != param.dtype:
                    raise ValueError(
                        f"'{name}' of parameter {i} is {t.dtype.name} {t.shape}, the parameter {param.dtype.name} "
                        f"{param.shape}"
                    )
        for name, value in saved["options"].items():
            setattr(self, name, value)
        self.steps = saved["steps"]
        self._updates = list(updates)
        self.state = [{name: t.detach().clone() for name, t in s.items()} for s in states]


def _kind(value: Any) -> Any:
    """What the values of one option have in common: numbers, truth values, or tuples of numbers."""
    if isinstance(value, tuple):
        return [_kind(item) for item in value]
    return float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)


def _are_counts(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(type(n) is int and n >= 0 for n in values)


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum or Nesterov momentum.

    >>> import minitensor as mt
    >>> w = mt.Tensor([1.0], requires_grad=True)
    >>> optimizer = mt.optim.SGD([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    buffers = ("velocity",)

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-2,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        self.momentum = _at_least_0("momentum", momentum)
        self.nesterov = bool(nesterov)
        self.weight_decay = _at_least_0("weight_decay", weight_decay)
        if nesterov and momentum == 0:
            raise ValueError("nesterov requires a momentum greater than 0")

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Tensor], numbers: dict[str, float]) -> None:
        ops.sgd_step(
            param,
            state["velocity"],
            grad,
            **numbers,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
        )


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015). Weight decay is added to the gradient."""

    buffers = ("m", "v")
    _decoupled: ClassVar[bool] = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        self.betas = (_below_1("betas[0]", betas[0]), _below_1("betas[1]", betas[1]))
        self.eps = _at_least_0("eps", eps)
        self.weight_decay = _at_least_0("weight_decay", weight_decay)

    def _numbers(self, i: int) -> dict[str, float]:
        (beta1, beta2), step = self.betas, self._updates[i]
        return {"lr": self._lr, "correction1": 1 - beta1**step, "correction2": 1 - beta2**step}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Tensor], numbers: dict[str, float]) -> None:
        ops.adam_step(
            param,
            state["m"],
            state["v"],
            grad,
            **numbers,
            beta1=self.betas[0],
            beta2=self.betas[1],
            eps=self.eps,
            weight_decay=self.weight_decay,
            decoupled=self._decoupled,
        )


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


#: The classes whose update of a parameter is one call with the numbers of the step.
_OURS = (SGD, Adam, AdamW)

"""`cond` and `while_loop`: control flow that is one call of a graph.

Under `mt.jit`, each function that is passed here is recorded as a graph of its own (`Branch`). A run of the call runs
these graphs. The gradient of `cond` is a `cond` of gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._minitensor import Tensor, _is_recording
from . import tree
from .branch import Branch, captures_of, detached_except
from .call import call, fresh
from .values import Signature, copied, differentiable, expect_functions, expect_truth, tensors_in


def cond(pred: bool | Tensor, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Returns `true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    `pred` is a bool, or a bool tensor of shape (). The results have memory of their own.

    Under `mt.jit`, this is one call: each run chooses by the value that `pred` has then, and gradients flow through the
    chosen function. For this, both functions run once while the graph is recorded. They must return the same structure
    of lists, tuples and dicts, with tensors of the same shapes and dtypes. They must not change operands or captured
    tensors in place, change Python state, or draw random numbers.

    >>> import minitensor as mt
    >>> @mt.jit
    ... def f(x):
    ...     return mt.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x)
    >>> f(mt.Tensor([1.0, 2.0])), f(mt.Tensor([-1.0, -2.0]))
    (tensor([2., 4.]), tensor([1., 2.]))
    >>> f.graphs[0].ops[-1]
    'control::cond'
    """
    functions = {"mt.cond: true_fn": true_fn, "mt.cond: false_fn": false_fn}
    expect_functions(functions)
    is_known = not isinstance(pred, Tensor)
    expect_truth("mt.cond: pred", pred)
    if is_known or not _is_recording():
        where, function = list(functions.items())[0 if pred else 1]
        return copied(where, function(*operands))
    tensors = tensors_in("mt.cond", operands)
    captures = captures_of((true_fn, false_fn), operands, pred.device)  # type: ignore[union-attr]

    def arguments(tensors: list[Tensor]) -> Sequence[Any]:
        return tree.replaced(operands, iter(tensors))  # type: ignore[no-any-return]

    branches = [Branch(where, function, arguments, tensors, captures) for where, function in functions.items()]
    first, second = branches
    if (first.key, first.outputs) != (second.key, second.outputs):
        raise TypeError(
            "mt.cond: true_fn and false_fn must return the same structure, shapes and dtypes; true_fn returned "
            f"{first.example}, false_fn returned {second.example}"
        )
    return first.rebuild(iter(_chosen(pred, branches, [*tensors, *captures])))  # type: ignore[arg-type]


def _chosen(pred: Tensor, branches: Sequence[Branch], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Calls the first branch if `pred` is true, else the second."""
    wrt = sorted({i for branch in branches for i in branch.wrt})

    def run(inputs: Sequence[Tensor]) -> list[Tensor]:
        return branches[0 if inputs[0] else 1].run(inputs[1:])

    def backward(inputs: Sequence[Tensor], _: Sequence[Tensor], grads: Sequence[Tensor]) -> dict[int, Tensor]:
        pred, *inputs = inputs
        cotangents = differentiable(grads, branches[0].outputs)

        def gradient(branch: Branch, *tensors: Tensor) -> list[Tensor]:
            return branch.gradient(tensors[: len(inputs)], tensors[len(inputs) :], wrt)

        tensors = [*inputs, *cotangents]
        gradients = [
            Branch(
                f"the gradient of {branch.where}", functools.partial(gradient, branch), tuple, tensors, parent=branch
            )
            for branch in branches
        ]
        return dict(zip((1 + i for i in wrt), _chosen(pred, gradients, tensors), strict=True))

    return call("cond", run, backward, [pred, *detached_except(inputs, wrt)], branches[0].outputs)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """Returns the first of `init`, `body_fun(init)`, `body_fun(body_fun(init))`, … for which `cond_fun` is false.

    The value is a tensor, or lists, tuples and dicts of tensors. `body_fun` returns the same structure, shapes and
    dtypes. `cond_fun` returns a bool tensor of shape (). The results have memory of their own.

    Under `mt.jit`, this is one call, and each run makes as many steps as its values need. The functions have the limits
    of those of `mt.cond`. The call has no gradient, because the number of steps has no limit; use `mt.scan`. Without
    `mt.jit`, gradients flow as usual.

    >>> import minitensor as mt
    >>> @mt.jit
    ... def double_to_100(x):
    ...     return mt.while_loop(lambda x: x < 100, lambda x: x * 2, x)
    >>> double_to_100(mt.tensor(3.0)), double_to_100(mt.tensor(60.0))
    (tensor(192.), tensor(120.))
    """
    expect_functions({"mt.while_loop: cond_fun": cond_fun, "mt.while_loop: body_fun": body_fun})
    tensors = tensors_in("mt.while_loop", init)
    if not tensors:
        raise TypeError(f"mt.while_loop: init must contain a tensor, got {tree.described(init)}")
    expected = Signature.of(init)
    test = functools.partial(_truth, cond_fun)
    body = functools.partial(_next_value, body_fun, expected)
    if not _is_recording():
        value = init
        while test(value):
            value = body(value)
        return copied("mt.while_loop: body_fun", value)
    captures = captures_of((cond_fun, body_fun), init, tensors[0].device)

    def arguments(tensors: list[Tensor]) -> Sequence[Any]:
        return (tree.replaced(init, iter(tensors)),)

    tested = Branch("mt.while_loop: cond_fun", test, arguments, tensors, captures)
    if not isinstance(tested.rebuild(iter(tensors)), Tensor):
        raise TypeError(
            f"mt.while_loop: cond_fun must return a bool tensor of shape () under mt.jit, got {tested.example}"
        )
    step = Branch("mt.while_loop: body_fun", body, arguments, tensors, captures)
    count = len(tensors)

    def run(inputs: Sequence[Tensor]) -> list[Tensor]:
        values, rest = list(inputs[:count]), inputs[count:]
        while tested.run([*values, *rest])[0]:
            values = step.run([*values, *rest])
        return [fresh(t) for t in values]

    def backward(*_: Any) -> dict[int, Tensor]:
        raise RuntimeError(
            "mt.while_loop has no gradient under mt.jit, because the number of its steps has no limit; use mt.scan, "
            "detach() the values that need no gradient, or call it outside of mt.jit"
        )

    inputs = detached_except([*tensors, *captures], {*range(count), *step.wrt})
    return step.rebuild(iter(call("while_loop", run, backward, inputs, step.outputs)))


def _truth(cond_fun: Callable[[Any], Any], value: Any) -> Any:
    truth = cond_fun(value)
    expect_truth("mt.while_loop: the result of cond_fun", truth)
    return truth


def _next_value(body_fun: Callable[[Any], Any], expected: Signature, value: Any) -> Any:
    value = body_fun(value)
    expected.check("mt.while_loop: body_fun must return a value of the structure, shapes and dtypes of init", value)
    return value

"""The functions `minitensor.torch.<op>`: calls with the least overhead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from .definition import in_schema, literal
from .recording import Call

if TYPE_CHECKING:
    from .op import Op

_is_compiling = torch.compiler.is_compiling
_grad_enabled = torch.is_grad_enabled
_transforms = torch._C._functorch.peek_interpreter_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_tracing = torch._C._get_tracing_state
_strided = torch.strided
#: PyTorch before 2.9 compiles neither a union of types nor `next` with a default.
NUMBERS = (bool, int, float, complex)
_MISSING = inspect.Parameter.empty


def make_function(op: Op) -> Callable[..., Any]:
    """Returns the function of an op.

    Plain tensors go to the kernel directly: their memory has their values, and PyTorch need not see the call, since it
    does not compile, trace or transform a function. Everything else goes through PyTorch's dispatcher.
    """
    definition, direct = op.definition, op.direct
    inputs, count = definition.inputs, len(definition.inputs)
    changed = [k for k, i in enumerate(inputs) if i.mutated]
    returns_input = changed[0] if len(changed) == 1 and not definition.outputs else None
    is_simple = not definition.is_variadic and definition.mutated is None
    is_differentiable = definition.is_differentiable
    recorded = op.recorded
    signature = make_signature(op)
    parameters = [(p.name, p.default) for p in signature.parameters.values()]

    def call(*args: Any, **kwargs: Any) -> Any:
        if is_simple and not (
            _is_compiling()
            or _transforms() is not None
            or _dispatch_modes()
            or _function_modes()
            or _tracing() is not None
            or forward_ad._current_level >= 0
        ):
            if len(args) < count:
                args, kwargs = bind(args, kwargs), {}
            needs_gradient = False
            for t in args[:count]:
                kind = type(t)
                if (kind is not Tensor and kind is not Parameter) or not t.is_cpu or t.layout is not _strided:
                    break
                if t.is_neg() or t.is_conj():
                    break
                if t.requires_grad:
                    needs_gradient = True
            else:
                if not (needs_gradient and _grad_enabled()):
                    return direct(*args, **kwargs)
                if is_differentiable:
                    args = bind(args, kwargs)
                    return recorded(Call((), args[count:]), *args[:count])
        return dispatch(bind(args, kwargs))

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        # As `signature.bind`, which PyTorch before 2.8 does not compile.
        values, found = list(args), 0
        for name, default in parameters[len(args) :]:
            if name in kwargs:
                found += 1
            values.append(kwargs.get(name, default))
        if found < len(kwargs) or len(values) > len(parameters) or any(value is _MISSING for value in values):
            # Raises an error that names the op.
            direct(*args, **kwargs)
            signature.bind(*args, **kwargs)
        return tuple(values)

    def dispatch(args: tuple[Any, ...]) -> Any:
        tensors = definition.flat(args)
        given = [t for t in tensors if isinstance(t, Tensor)]
        like = given[0] if given else None
        tensors = [number(t, like) if isinstance(t, NUMBERS) else t for t in tensors]
        is_wrong = any(t is not None and not isinstance(t, Tensor) for t in tensors)
        if is_wrong or (inputs and all(t is None for t in tensors)):
            return direct(*args)
        if not _is_compiling() and any(type(t).__name__ == "DTensor" for t in tensors):
            from .registration import register_sharding

            register_sharding()
        attributes = [in_schema(attr, value) for attr, value in zip(definition.attrs, args[count:], strict=True)]
        result = op.op(*definition.nested(tensors), *attributes)
        return result if returns_input is None else args[returns_input]

    call.__name__ = call.__qualname__ = op.name
    call.__module__ = "minitensor.torch"
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = direct.__doc__
    return call


def number(value: complex, like: Tensor | None) -> Tensor:
    """A number as a tensor without dimensions, of the dtype that it takes beside a tensor."""
    dtype = torch.result_type(like, value) if like is not None else None
    return torch.tensor(value, dtype=dtype, device=like.device if like is not None else None)


def make_signature(op: Op) -> inspect.Signature:
    """Returns the signature, with the names and defaults of the op."""
    parameters = []
    for given in op.definition.inputs:
        default = None if given.arity == "optional" else inspect.Parameter.empty
        parameters.append(inspect.Parameter(given.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    for attr in op.definition.attrs:
        default = inspect.Parameter.empty if attr.required else attr.default if literal(attr) is not None else None
        parameters.append(inspect.Parameter(attr.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    # In Python, a parameter without a default cannot follow one with a default. None means "not given".
    seen = False
    for k, parameter in enumerate(parameters):
        seen = seen or parameter.default is not inspect.Parameter.empty
        if seen and parameter.default is inspect.Parameter.empty:
            parameters[k] = parameter.replace(default=None)
    return inspect.Signature(parameters)

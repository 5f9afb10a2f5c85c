"""The functions `minitensor.torch.<op>`: calls with the least overhead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._minitensor import Tensor as OurTensor
from .._minitensor import _result_class, asarray
from .definition import Definition, copied, literal
from .recording import recorded_directly

if TYPE_CHECKING:
    from .op import Op

_is_compiling = torch.compiler.is_compiling
#: Whether `torch.compile` reads the call. Other compilers observe it.
_is_traced = torch.compiler.is_dynamo_compiling
#: PyTorch before 2.9 compiles neither a union of types nor `next` with a default.
NUMBERS = (bool, int, float, complex)
_MISSING = inspect.Parameter.empty


def make_function(op: Op) -> Callable[..., Any]:
    """Returns the function of an op.

    Plain tensors go to the kernel directly. Everything else goes through PyTorch's dispatcher.
    """
    definition, direct, undispatched = op.definition, op.direct, op.undispatched
    inputs, count = definition.inputs, len(definition.inputs)
    needs_attributes = any(a.required for a in definition.attrs)
    defaults = definition.attributes(definition.all_arguments(()))
    changed = [k for k, i in enumerate(inputs) if i.mutated]
    returns_input = changed[0] if len(changed) == 1 and not definition.outputs else None
    is_simple = not definition.is_variadic and definition.mutated is None
    is_differentiable = definition.is_differentiable
    # Autograd takes no list of results.
    is_recorded = is_simple and is_differentiable and not definition.gives_list
    recorded = recorded_directly(op) if is_recorded else None
    with_tensors = make_numbers(definition)
    has_names = len(definition.outputs) > 1 and not definition.gives_list
    named = _result_class(definition.name) if has_names else None
    signature = make_signature(op)
    parameters = [(p.name, p.default) for p in signature.parameters.values()]
    wrong = f"op '{definition.name}' was called with wrong arguments; its signature is {signature}"

    def call(*args: Any, **kwargs: Any) -> Any:
        if is_simple and not _is_traced():
            found = undispatched(*args, **kwargs)
            if found is None and recorded is not None:
                attributes = defaults
                if kwargs or len(args) != count or needs_attributes:
                    args = bind(args, kwargs)
                    attributes = {name: copied(value) for name, value in definition.attributes(args).items()}
                found = recorded(attributes, *args[:count])
                return found if named is None else named(*found)
            if found is not None and found is not NotImplemented:
                return found
        found = dispatch(bind(args, kwargs))
        return found if named is None else named(*found)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        # As `signature.bind`, which PyTorch before 2.8 does not compile.
        args = definition.collected(args)
        values, found = list(args), 0
        for name, default in parameters[len(args) :]:
            if name in kwargs:
                found += 1
            values.append(kwargs.get(name, default))
        if found < len(kwargs) or len(values) > len(parameters) or any(value is _MISSING for value in values):
            if _is_traced():
                raise TypeError(wrong)
            # Raises an error that names the op.
            direct(*args, **kwargs)
            signature.bind(*args, **kwargs)
        return tuple(values)

    def dispatch(args: tuple[Any, ...]) -> Any:
        tensors = definition.flat(args)
        if definition.mutated is None and any(isinstance(t, Tensor) for t in tensors):
            tensors = [as_constant(t) for t in tensors]
        if any(isinstance(t, NUMBERS) for t in tensors):
            tensors = with_tensors(tensors)
        # Other classes, such as the proxies of torch.fx, may take part in PyTorch's calls.
        is_wrong = any(
            t is not None and not isinstance(t, Tensor) and not hasattr(type(t), "__torch_function__") for t in tensors
        )
        if is_wrong or (inputs and all(t is None for t in tensors)):
            return direct(*args)
        if not _is_compiling() and any(type(t).__name__ == "DTensor" for t in tensors):
            from .registration import register_sharding

            register_sharding()
        result = op.dispatch(tensors, args[count:])
        return result if returns_input is None else args[returns_input]

    *namespaces, last = definition.name.split("::")
    call.__name__ = call.__qualname__ = last
    call.__module__ = ".".join(["minitensor.torch", *namespaces])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = direct.__doc__
    return call


def as_constant(value: Any) -> Any:
    """A number of NumPy beside tensors of PyTorch as a plain number; an array, or a tensor of ours, as a tensor."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        value = asarray(value if all(stride >= 0 for stride in value.strides) else value.copy())
    return torch.from_dlpack(value) if isinstance(value, OurTensor) else value


def make_numbers(definition: Definition) -> Callable[[list[Any]], list[Any]]:
    """Returns a function that makes tensors of the numbers among the inputs of a call."""
    last = len(definition.inputs) - 1

    def with_tensors(inputs: list[Any]) -> list[Any]:
        variables = [definition.inputs[min(k, last)].dtype for k in range(len(inputs))]
        tensors = [(t, of) for t, of in zip(inputs, variables, strict=True) if isinstance(t, Tensor)]
        made = []
        for value, variable in zip(inputs, variables, strict=True):
            if isinstance(value, NUMBERS):
                # A number adopts the dtype of the tensors that share its dtype variable.
                beside = [t.dtype for t, of in tensors if of == variable]
                device = tensors[0][0].device if tensors else None
                value = torch.tensor(value, dtype=dtype_beside(value, beside), device=device)
            made.append(value)
        return made

    return with_tensors


def dtype_beside(value: complex, dtypes: list[torch.dtype]) -> torch.dtype | None:
    """The dtype of a number beside tensors: theirs, unless the number is of a higher kind. None without tensors."""
    if not dtypes:
        return None
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = torch.promote_types(dtype, other)
    is_real = not dtype.is_complex
    if isinstance(value, complex) and is_real:
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if isinstance(value, float) and is_real and not dtype.is_floating_point:
        return torch.get_default_dtype()
    if isinstance(value, int) and not isinstance(value, bool) and dtype == torch.bool:
        return torch.int64
    return dtype


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

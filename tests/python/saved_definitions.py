"""Compares an op with the op that is built from its definition in a file."""

import json
import math

from minitensor._definitions import define
from minitensor.saving import nodes
from saved_training import bits

import minitensor as mt


def definition_of(name, samples=None):
    """The definition of an op, with the programs for these samples."""
    inputs = define(name).inputs
    calls = []
    for args, attrs in samples or []:
        given = [k < len(args) and args[k] is not None for k in range(len(inputs))]
        calls.append((attrs, given))
    return json.loads(mt._minitensor._op_to_json(name, calls))


def rebuilt(data, name="saved::again"):
    """An op of another name that is built from a definition."""
    data = data | {"name": name}
    if data["gradient"]["kind"] == "op":
        data["gradient"] = data["gradient"] | {"op": data["gradient"]["op"] | {"name": f"{name}.vjp"}}
    return mt._minitensor._op_from_json(json.dumps(data))


def compare(name, samples, data):
    """Compares all results and gradients bit by bit. Returns the number of calls that could be compared."""
    op = rebuilt(data)
    function = op.register()
    # A formula in Rust is no part of a definition.
    has_gradient = data["gradient"]["kind"] != "none"
    changed = [declared.mutated for declared in define(name).inputs]
    compared = 0
    for args, attrs in samples:
        try:
            expected = _results(nodes.function(name), args, attrs, changed, has_gradient)
        except (ValueError, TypeError, RuntimeError):
            continue
        assert _results(function, args, attrs, changed, has_gradient) == expected, (name, attrs)
        compared += 1
    op.unregister()
    return compared


def _results(function, args, attrs, changed, has_gradient):
    """The bits of the results, and of the gradients of floating inputs."""
    leaves = [a.detach().clone().requires_grad_(has_gradient) if _is_floating(a) else a for a in args]
    # A leaf cannot be changed in place.
    inputs = [_unshared(a) if change else a for a, change in zip(leaves, changed, strict=False)]
    inputs += leaves[len(inputs) :]
    results = function(*inputs, **attrs)
    results = [] if results is None else [results] if isinstance(results, mt.Tensor) else list(results)
    results += [a for a, change in zip(inputs, changed, strict=False) if change]
    found = [_one_nan(t) for t in results]
    outputs = [t for t in results if t.requires_grad]
    leaves = [a for a in leaves if _is_floating(a)]
    if outputs and has_gradient:
        total = sum(((t * (k + 1.5)).sum() for k, t in enumerate(outputs)), start=mt.zeros(()))
        # The compiled gradients of fmod and remainder have other signs of zero.
        found += [g if g is None else _one_nan(g + 0.0) for g in mt.grad(total, leaves, allow_unused=True)]
    return found


def _unshared(t):
    return t * 1 if t.requires_grad else t.clone()


def _one_nan(t):
    """The bits. Only the sign and payload of NaN may differ between compiled loops and programs."""
    return t.dtype.name, t.shape, bits(mt.where(t == t, t, math.nan) if _is_floating(t) else t)


def _is_floating(value):
    return isinstance(value, mt.Tensor) and value.dtype.is_floating_point

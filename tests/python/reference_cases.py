"""Cases of the comparison with NumPy and PyTorch: an op, its arguments and the reference functions."""

from collections.abc import Callable
from dataclasses import dataclass, field

import minitensor as mt


@dataclass
class Case:
    """An op, its arguments, and the reference functions."""

    name: str
    inputs: list[tuple[str, tuple]]
    numpy: Callable
    torch: Callable | None = None
    attrs: dict = field(default_factory=dict)

    def __str__(self):
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items())
        return f"{self.name}({';'.join(f'{d}{s}' for d, s in self.inputs)};{attrs})".replace(" ", "")

    def op(self):
        f = mt.ops
        for part in self.name.split("::"):
            f = getattr(f, part)
        return f


def expand(case, shapes):
    """Returns the case for several input shapes."""
    domains = [d for d, _ in case.inputs]
    for shape in shapes:
        each = shape if isinstance(shape, list) else [shape] * len(domains)
        yield Case(case.name, list(zip(domains, each, strict=True)), case.numpy, case.torch, case.attrs)


def unary(name, numpy, torch=None, domain="real", **attrs):
    case = Case(name, [(domain, ())], numpy, torch, attrs)
    return expand(case, [(3, 4), (2, 3, 5), (), (0, 3), (33, 65)])


def binary(name, numpy, torch=None, x="real", y="real", **attrs):
    case = Case(name, [(x, ()), (y, ())], numpy, torch, attrs)
    return expand(case, [(3, 4), [(2, 1, 4), (3, 1)], [(), (5,)], [(1, 3), (0, 1)], [(40, 1), (1, 70)]])


def reduction(name, numpy, torch=None, domain="real", tuples=True, **attrs):
    for axis in [None, 0, -1] + ([(0, 2)] if tuples else []):
        for keepdims in (False, True):
            given = dict(attrs, axis=axis, keepdims=keepdims)

            def theirs(x, numpy=numpy, axis=axis, keepdims=keepdims):
                return numpy(x, axis=axis, keepdims=keepdims)

            def torchs(x, axis=axis, keepdims=keepdims):
                return torch(x, dim=tuple(range(x.ndim)) if axis is None else axis, keepdim=keepdims)

            yield Case(name, [(domain, (4, 3, 70))], theirs, torch and torchs, given)


def one(name, inputs, numpy, torch=None, **attrs):
    yield Case(name, inputs, numpy, torch, attrs)

"""Compares every built-in op with NumPy, SciPy and PyTorch (if installed): values and gradients over random shapes,
dtypes and layouts."""

import inspect

import numpy as np
import pytest
from numpy_functions import adam, sgd
from reference_cases import Case
from reference_table import CASES, ELSEWHERE

import minitensor as mt

try:
    import torch
except ImportError:
    torch = None

# The ranges of random elements.
DOMAINS = {
    "real": lambda rng, shape: rng.normal(0, 2, shape),
    "positive": lambda rng, shape: rng.uniform(0.2, 4, shape),
    "unit": lambda rng, shape: rng.uniform(-0.9, 0.9, shape),
    "above_one": lambda rng, shape: rng.uniform(1.1, 4, shape),
    "nonzero": lambda rng, shape: rng.uniform(0.5, 3, shape) * rng.choice([-1, 1], shape),
    "whole": lambda rng, shape: rng.integers(-5, 6, shape),
    "natural": lambda rng, shape: rng.integers(0, 4, shape),
    "bool": lambda rng, shape: rng.integers(0, 2, shape).astype(bool),
    "special": lambda rng, shape: rng.choice([0.0, -0.0, 1.5, np.nan, np.inf, -np.inf], shape),
    "complex": lambda rng, shape: rng.normal(0, 1, shape) + 1j * rng.normal(0, 1, shape),
    "double": lambda rng, shape: rng.normal(0, 2, shape),
    "key": lambda rng, shape: rng.integers(0, 2**64, shape, dtype=np.uint64),
}
# The ops to test in every floating dtype.
FLOATING = {"real", "positive", "unit", "above_one", "nonzero", "special"}

TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-10, "complex128": 1e-10}


def test_every_op_has_a_reference(registered):
    canonical = {mt.ops.describe(name)["name"] for name in mt.list_custom_ops_py()}
    forward = {name for name in canonical if not (name.endswith("_") and name[:-1] in canonical)}
    known = {case.name for case in CASES} | set(ELSEWHERE)
    assert forward - known == set()
    assert known - canonical == set()


# Memory layouts of an input: each function returns an equal array that is a view of a copy.
LAYOUTS = {
    "contiguous": lambda make, a: make(a),
    "transposed": lambda make, a: make(np.ascontiguousarray(a.T)).T if a.ndim == 2 else make(a),
    "stepped": lambda make, a: make(np.repeat(a, 2, -1))[..., ::2] if a.ndim else make(a),
    "reversed": lambda make, a: make(np.ascontiguousarray(a[..., ::-1]))[..., ::-1] if a.ndim else make(a),
}


def arrays(case, seed, dtype=None):
    rng = np.random.default_rng(seed)
    drawn = [np.asarray(DOMAINS[domain](rng, shape)) for domain, shape in case.inputs]
    return [a.astype(dtype) if dtype and a.dtype == np.float64 else a for a in drawn]


def as_list(outputs):
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def dtypes(case):
    return ["float64", "float32", "float16"] if any(d in FLOATING for d, _ in case.inputs) else [None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case, layout):
    for dtype in dtypes(case):
        given = arrays(case, 1, dtype)
        ours = as_list(case.op()(*[LAYOUTS[layout](mt.Tensor, a) for a in given], **case.attrs))
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in given]
        theirs = as_list(case.numpy(*wide))
        assert len(ours) == len(theirs)
        tolerance = TOLERANCE.get(dtype or "float64")
        for out, expected in zip(ours, theirs, strict=True):
            expected = np.asarray(expected)
            assert out.shape == expected.shape
            assert np.dtype(str(out.dtype)).kind in {expected.dtype.kind, "f" if dtype else expected.dtype.kind}
            scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=1)
            np.testing.assert_allclose(out.numpy(), expected, rtol=tolerance * 4, atol=tolerance * scale)


@pytest.mark.skipif(torch is None, reason="needs PyTorch")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", [c for c in CASES if c.torch], ids=str)
def test_gradients_equal_pytorch(case, layout):
    given = arrays(case, 2)
    ours = [LAYOUTS[layout](mt.Tensor, a) for a in given]
    theirs = [torch.tensor(a) for a in given]
    floats = [i for i, a in enumerate(given) if a.dtype.kind == "f"]
    for i in floats:
        ours[i] = ours[i].detach()
        ours[i].requires_grad = True
        theirs[i].requires_grad_()
    out, expected = as_list(case.op()(*ours, **case.attrs)), as_list(case.torch(*theirs))[0]
    np.testing.assert_allclose(out[0].detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-9)
    if not expected.requires_grad:
        return
    d = np.random.default_rng(3).normal(size=tuple(expected.shape))
    expected = torch.autograd.grad(expected, [theirs[i] for i in floats], torch.tensor(d), allow_unused=True)
    grads = mt.grad(out[0], [ours[i] for i in floats], mt.Tensor(d), allow_unused=True)
    for grad, want in zip(grads, expected, strict=True):
        np.testing.assert_allclose(grad.numpy(), want.numpy(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", sorted({mt.ops.describe(name)["name"] for name in mt.list_custom_ops_py()}))
def test_every_op_passes_opcheck(name):
    case = next((c for c in CASES if c.name == name and all(0 not in shape for _, shape in c.inputs)), None)
    if case is None:
        case = Case(name, [], None)
        mt.testing.opcheck(case.op())
    else:
        mt.testing.opcheck(case.op(), *map(mt.Tensor, arrays(case, 5)), **case.attrs)


IN_PLACE = [name for name in mt.list_custom_ops_py() if name.endswith("_") and not name.startswith("copy")]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_variants_write_the_result_of_the_op(name, rng):
    op, in_place = getattr(mt.ops, name[:-1]), getattr(mt.ops, name)
    domain = next((d for c in CASES if c.name == name[:-1] for d, _ in c.inputs), "positive")
    count = sum(p.default is inspect.Parameter.empty for p in inspect.signature(op).parameters.values())
    x, *others = [mt.Tensor(DOMAINS[domain](rng, (3, 4))) for _ in range(count)]
    expected = op(x, *others).numpy()
    assert in_place(x, *others) is x
    assert (x.numpy() == expected).all()


def test_lists_of_tensors(rng):
    parts = [rng.normal(size=(2, n)) for n in (3, 0, 4)]
    assert (mt.ops.concat([mt.Tensor(a) for a in parts], axis=1).numpy() == np.concatenate(parts, 1)).all()
    same = [rng.normal(size=(2, 3)) for _ in range(4)]
    assert (mt.ops.stack([mt.Tensor(a) for a in same], axis=-1).numpy() == np.stack(same, -1)).all()


@pytest.mark.parametrize("flag", [False, True])
def test_optimizer_steps(flag, rng):
    given = [rng.normal(size=(5, 7)) for _ in range(3)]
    ours = [mt.Tensor(a) for a in given]
    mt.ops.sgd_step(*ours, lr=0.1, momentum=0.9, nesterov=flag, weight_decay=0.01)
    for out, expected in zip(ours, sgd(*given, 0.1, 0.9, flag, 0.01), strict=False):
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
    p, m, g = given
    given = [p, m, np.abs(g), rng.normal(size=(5, 7))]
    ours = [mt.Tensor(a) for a in given]
    mt.ops.adam_step(*ours, lr=0.1, correction1=0.1, correction2=0.001, weight_decay=0.01, decoupled=flag)
    for out, expected in zip(ours, adam(*given, 0.1, 0.1, 0.001, 0.01, flag), strict=False):
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)

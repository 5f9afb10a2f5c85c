"""Every registered op as a PyTorch op, compared with minitensor and checked by PyTorch's own opcheck."""

import pytest

torch = pytest.importorskip("torch")

from torch_samples import assert_same, call_ours, call_torch, gradients_of_ours, gradients_of_torch, positional, samples

import minitensor.torch.registration
from minitensor._minitensor import _op_names

find = minitensor.torch.registration.find
NAMES = _op_names()


@pytest.mark.parametrize("name", NAMES)
def test_results_equal_those_of_minitensor(name):
    op = find(name)
    for sample in samples(name):
        expected = call_ours(name, sample)
        if isinstance(expected, Exception):
            with pytest.raises(type(expected)):
                call_torch(op.function, op, sample)
            continue
        assert_same(expected, call_torch(op.function, op, sample))
        if not op.definition.mutates:
            assert_same(expected, call_torch(op.op, op, sample))


@pytest.mark.parametrize("name", [name for name in NAMES if find(name).definition.is_differentiable])
def test_gradients_equal_those_of_minitensor(name):
    op = find(name)
    for sample in samples(name):
        expected = gradients_of_ours(name, sample)
        if expected is not None:
            for call in (op.function, op.op):
                assert_same(expected, gradients_of_torch(call, op, sample))


@pytest.mark.parametrize("name", NAMES)
def test_opcheck_of_pytorch(name):
    op = find(name)
    for sample in [s for s in samples(name) if not isinstance(call_ours(name, s), Exception)][:2]:
        torch.library.opcheck(op.op, positional(op, sample))

"""Every registered op as a PyTorch op, compared with minitensor and checked by PyTorch's own opcheck."""

import pytest
import torch
from minitensor._minitensor import _op_names
from minitensor.torch.registration import find
from sample_calls import call_ours, flat, gradients_of_ours, mapped, samples
from torch_samples import assert_same, call_torch, gradients_of_torch, positional

NAMES = _op_names()


def test_every_op_has_samples():
    without = [name for name in NAMES if not any(not isinstance(call_ours(name, s), Exception) for s in samples(name))]
    assert without == []


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
        if not op.definition.mutated:
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
    checks = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    # PyTorch's opcheck compares two calls, which draw different numbers.
    checks = checks[:3] if name in ("dropout", "rand_like", "random::key") else checks
    accepted = [s for s in samples(name) if not isinstance(call_ours(name, s), Exception)]
    for sample in accepted[:2]:
        # It takes NaN for a difference.
        torch.library.opcheck(op.op, without_nan(op, positional(op, sample)), test_utils=checks)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_ops_are_compiled_without_graph_breaks(name, dynamic):
    op = find(name)
    sample = next(s for s in samples(name) if not isinstance(call_ours(name, s), Exception))
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(op.function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
        assert_same(call_ours(name, sample), call_torch(compiled, op, sample))
        expected = gradients_of_ours(name, sample) if op.definition.is_differentiable else None
        if expected is not None:
            assert_same(expected, gradients_of_torch(compiled, op, sample))


def without_nan(op, args):
    """The arguments, changed if results would be NaN."""
    count = len(op.definition.inputs)
    for change in (lambda t: t, torch.sigmoid, lambda t: 1 + torch.sigmoid(t)):
        changed = mapped(lambda t, change=change: change(t) if t.is_floating_point() else t, list(args[:count]))
        if not any(t.isnan().any() for t in flat(op.function(*changed, *args[count:]))):
            return (*changed, *args[count:])
    return args

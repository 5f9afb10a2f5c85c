"""Batches of `torch.autograd`: `is_grads_batched`, and `vectorize` of `torch.autograd.functional`."""

import minitensor.torch as mtt
import pytest
import torch
import torch.nn.functional as F
from torch.autograd.functional import hessian, jacobian

#: Ops with functions of PyTorch that compute the same.
TWINS = {
    "element": (mtt.swish, F.silu),
    "row": (mtt.softmax, lambda x: F.softmax(x, -1)),
    "reads its result": (mtt.tanh, torch.tanh),
    "two tensors": (lambda x: mtt.multiply(x, x.exp()), lambda x: x * x.exp()),
    "several results": (lambda x: mtt.topk(x, 2)[0], lambda x: x.topk(2)[0]),
    "dispatcher": (torch.ops.minitensor.gelu, F.gelu),
}


@pytest.fixture
def x():
    return torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()


@pytest.mark.parametrize("name", TWINS)
def test_batched_cotangents(name, x):
    ours, theirs = TWINS[name]
    cotangents = torch.randn(5, *theirs(x).shape, dtype=torch.float64)
    found = [torch.autograd.grad(f(x), x, cotangents, is_grads_batched=True)[0] for f in (ours, theirs)]
    torch.testing.assert_close(*found)
    each = [torch.autograd.grad(ours(x), x, cotangent)[0] for cotangent in cotangents]
    torch.testing.assert_close(found[0], torch.stack(each))


@pytest.mark.parametrize("name", TWINS)
def test_vectorized_derivatives(name, x):
    ours, theirs = TWINS[name]
    torch.testing.assert_close(jacobian(ours, x, vectorize=True), jacobian(theirs, x))
    second = [hessian(lambda x, f=f: (f(x) ** 3).sum(), x, vectorize=f is ours) for f in (ours, theirs)]
    torch.testing.assert_close(*second)


def test_gradcheck_of_batches(x):
    assert torch.autograd.gradcheck(mtt.log_softmax, x, check_batched_grad=True)


def test_random_numbers_of_the_examples():
    x = torch.ones(4, 64)

    def dropped(x):
        return mtt.dropout(x, 0.5)

    masks = torch.vmap(dropped, randomness="different")(x)
    assert len({tuple(mask.tolist()) for mask in masks}) == 4
    messages = {"error": "draws random numbers; pass randomness='different'", "same": "cannot have the same"}
    for randomness, message in messages.items():
        with pytest.raises(RuntimeError, match=f"op 'dropout' .*{message}"):
            torch.vmap(dropped, randomness=randomness)(x)

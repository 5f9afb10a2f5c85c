"""Tests of the ops in PyTorch."""

import my_ops  # noqa: F401
import pytest
import torch

ops = torch.ops.my_ops


def test_my_op_correctness():
    x = torch.randn(32, 32)
    torch.testing.assert_close(ops.my_op(x, 2.0), x * 2.0)


def test_my_op_opcheck():
    for x, factor in [
        (torch.randn(32), 2.0),
        (torch.randn(32, 32), -1.0),
        (torch.randn(8, 16, 32, dtype=torch.float16), 0.5),
        (torch.randn(4, requires_grad=True), 3.0),
    ]:
        torch.library.opcheck(ops.my_op, (x, factor))


@pytest.mark.parametrize("name", ["squareplus", "tempered_softmax", "free_energy", "moving_average"])
def test_opcheck(name):
    torch.library.opcheck(getattr(ops, name), (torch.rand(3, 8, requires_grad=True),))


@pytest.mark.parametrize("dynamic", [False, True])
def test_my_op_compile_no_graph_break(dynamic):
    x = torch.randn(32, 32, requires_grad=True)

    @torch.compile(fullgraph=True, dynamic=dynamic)
    def fn(x):
        return ops.my_op(x, 2.0)

    torch.testing.assert_close(fn(x), x * 2.0)
    fn(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 2.0))


@pytest.mark.parametrize("shape", [(10,), (32, 32), (8, 16, 32), (0,), ()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_my_op_shapes_and_dtypes(shape, dtype):
    x = torch.randn(shape, dtype=dtype)
    torch.testing.assert_close(ops.my_op(x, 2.0), x * 2.0)


def test_several_outputs():
    x = torch.randn(5, requires_grad=True)
    sine, cosine = ops.my_multi_out(x)
    torch.testing.assert_close(sine, x.sin())
    torch.testing.assert_close(cosine, x.cos())
    (sine + 2 * cosine).sum().backward()
    torch.testing.assert_close(x.grad, x.cos() - 2 * x.sin())
    torch.library.opcheck(ops.my_multi_out, (torch.randn(3),))


def test_in_place():
    x = torch.randn(5)
    expected = x + 2
    ops.my_inplace(x, 2.0)
    torch.testing.assert_close(x, expected)
    torch.library.opcheck(ops.my_inplace, (torch.randn(3),))

    @torch.compile(fullgraph=True)
    def fn(x):
        y = x.clone()
        ops.my_inplace(y, 1.0)
        return y

    torch.testing.assert_close(fn(x), x + 1)


def test_optional_argument():
    x = torch.randn(5)
    torch.testing.assert_close(ops.my_optional(x), x)
    torch.testing.assert_close(ops.my_optional(x, torch.tensor(3.0)), 3 * x)
    torch.library.opcheck(ops.my_optional, (x, torch.randn(5)))
    torch.library.opcheck(ops.my_optional, (x,))


def test_gradients():
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    for name in ("squareplus", "tempered_softmax", "free_energy"):
        assert torch.autograd.gradcheck(getattr(ops, name), (x,))
        assert torch.autograd.gradgradcheck(getattr(ops, name), (x,))

"""Calls on tensors of PyTorch that skip its dispatcher, and those that must not."""

import minitensor.torch as mtt
import pytest
import torch

import minitensor as mt


@pytest.mark.parametrize("add", [mtt.add, mt.ops.add, torch.ops.minitensor.add])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "lazy",
    [
        lambda z: z.conj(),
        lambda z: z.conj().imag,
        lambda z: torch._neg_view(z.real),
        lambda z: torch._neg_view(z[:1].imag),
        lambda z: torch._efficientzerotensor(3),
    ],
)
def test_tensors_whose_memory_lacks_their_values(add, requires_grad, lazy):
    z = torch.tensor([1 + 2j, 3 - 1j, -5j], requires_grad=requires_grad)
    y = torch.tensor([1.0, -2.0, 4.0], requires_grad=requires_grad)
    found, expected = add(y, lazy(z)), torch.add(y, lazy(z))
    torch.testing.assert_close(found, expected)
    if requires_grad:
        of = [y] if lazy(z).grad_fn is None else [y, z]
        cotangent = torch.ones(3) * (1j if expected.is_complex() else 1)
        torch.testing.assert_close(
            torch.autograd.grad(found, of, cotangent), torch.autograd.grad(expected, of, cotangent)
        )


@pytest.mark.parametrize("namespace", [mtt, mt.ops])
def test_numbers_beside_a_tensor_that_requires_a_gradient(namespace):
    w = torch.arange(1.0, 4.0).requires_grad_()
    mask = torch.tensor([True, False, True])
    for found, expected in [
        (namespace.add(w, 2.0), w + 2),
        (namespace.multiply(2, w), 2 * w),
        (namespace.multiply(x=w, y=2), 2 * w),
        (namespace.where(mask, w, 0.0), torch.where(mask, w, 0.0)),
        (namespace.power(w, 3), w**3),
    ]:
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*(torch.autograd.grad(y.sum(), w)[0] for y in (found, expected)))


class Scaled(torch.Tensor):
    """Ops of minitensor return ten times their results."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result * 10 if "minitensor" in str(func) else result


class Wrapped:
    """An object that takes part in PyTorch's calls."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*[a.value if isinstance(a, Wrapped) else a for a in args], **(kwargs or {}))


@pytest.mark.parametrize("multiply", [mtt.multiply, mt.ops.multiply, torch.ops.minitensor.multiply])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_other_classes_beside_a_tensor(multiply, requires_grad):
    w = torch.arange(1.0, 4.0, requires_grad=requires_grad)
    scaled = multiply(w, torch.full((3,), 2.0).as_subclass(Scaled))
    assert type(scaled) is Scaled
    assert scaled.tolist() == [20.0, 40.0, 60.0]
    if requires_grad:
        scaled.sum().backward()
        assert w.grad.tolist() == [20.0] * 3
    if multiply is not mt.ops.multiply:
        assert multiply(w, Wrapped(torch.full((3,), 2.0))).tolist() == [2.0, 4.0, 6.0]


def test_the_first_vmap_of_pytorch():
    w = torch.arange(1.0, 4.0).requires_grad_()
    y = torch._vmap_internals._vmap(lambda v: mtt.multiply(w, v))(torch.ones(2, 3))
    assert torch.autograd.grad(y.sum(), w)[0].tolist() == [2.0] * 3


def test_attributes_may_change_before_the_gradient_is_computed():
    x = torch.arange(8.0).reshape(2, 2, 2).requires_grad_()
    axes, axis = [1, 0, 2], torch.tensor(0)
    y, z = mtt.permute_dims(x, axes), mtt.softmax(x, axis)
    weight = torch.arange(8.0).reshape(2, 2, 2) ** 2
    axes[:] = [0, 2, 1]
    axis.fill_(2)
    torch.testing.assert_close(*torch.autograd.grad((y * weight).sum(), x), weight.permute(1, 0, 2))
    expected = torch.autograd.grad((torch.softmax(x, 0) * weight).sum(), x)
    torch.testing.assert_close(torch.autograd.grad((z * weight).sum(), x), expected)


def test_tensors_of_two_devices_are_refused():
    for add in (mtt.add, mt.ops.add, torch.ops.minitensor.add):
        for requires_grad in (False, True):
            x = torch.ones(3, requires_grad=requires_grad)
            with pytest.raises(RuntimeError, match="op 'add' takes tensors of one device, got 'cpu' and 'meta'"):
                add(x, torch.ones(3, device="meta"))


def test_functions_of_replaced_ops_are_refused():
    x = [torch.ones(2, requires_grad=True), torch.ones(2)]
    stale = []
    for k in range(4):

        @mt.custom_op(name="bridged::joined")
        def joined(*xs, factor=float(k)):
            return mt.ops.concat(list(xs), 0) * factor

        for f in stale:
            with pytest.raises(RuntimeError, match="op 'bridged::joined' of this function was defined again"):
                f(x)
        assert mtt.bridged.joined(x).tolist() == [k] * 4
        stale.append(mtt.bridged.joined)
        mt.unregister_custom_op_py("bridged::joined")

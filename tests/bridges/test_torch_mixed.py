"""Ops of tensors of PyTorch beside numbers and arrays of NumPy, and tensors of minitensor, which are constants."""

import minitensor.torch as mtt
import numpy as np
import pytest
import torch

import minitensor as mt

#: Constants, and the dtype of a product with a tensor of float32.
CONSTANTS = {
    "float32": (np.float32(2), torch.float32),
    "float64": (np.float64(2), torch.float32),
    "int64": (np.int64(2), torch.float32),
    "bool": (np.bool_(True), torch.float32),
    "array": (np.array([1.0, 2.0], "float32"), torch.float32),
    "array of float64": (np.array(2.0), torch.float64),
    "reversed array": (np.arange(4, dtype="float32")[::-2], torch.float32),
    "array of another byte order": (np.arange(2, dtype=">f4"), torch.float32),
    "tensor of minitensor": (mt.Tensor([1.0, 2.0]), torch.float32),
}


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(("constant", "dtype"), CONSTANTS.values(), ids=CONSTANTS)
def test_gradients_of_a_product_with_a_constant(constant, dtype, is_first):
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = mtt.multiply(constant, w) if is_first else mtt.multiply(w, constant)
    assert type(y) is torch.Tensor and y.dtype == dtype
    expected = np.broadcast_to(np.asarray(constant).astype("float64"), (2,))
    np.testing.assert_allclose(y.detach(), expected * [3, 4])
    y.sum().backward()
    np.testing.assert_allclose(w.grad, expected)


def test_named_inputs_and_lists():
    w, x = torch.ones(2, requires_grad=True), np.array([[1.0, 3.0]], "float32")
    for y in (mt.ops.layer_norm(x, weight=w), mtt.layer_norm(x, weight=w), mtt.concat([w, np.ones(2, "float32")])):
        assert type(y) is torch.Tensor and y.requires_grad


def test_compiled_and_transformed_functions():
    w, a = torch.ones(2, requires_grad=True), np.array([1.0, 2.0], "float32")
    for constant in (np.float32(2), a):
        y = torch.compile(lambda w, c=constant: mtt.multiply(w, c), backend="aot_eager")(w)
        assert y.requires_grad
    assert torch.func.grad(lambda w: mtt.multiply(w, a).sum())(w).tolist() == [1.0, 2.0]


def test_a_tensor_of_minitensor_that_requires_a_gradient():
    with pytest.raises(BufferError, match="detach"):
        mtt.add(torch.ones(2), mt.ones(2, requires_grad=True))

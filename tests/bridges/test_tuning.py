"""A tuned attribute is optional in every framework."""

import numpy as np
import pytest

import minitensor as mt

FRAMEWORKS = ("torch", "jax")


@pytest.fixture
def tuned():
    @mt.custom_op(name="bridged::tuned", tune={"tile": [1, 2, 4]})
    def tuned(x: mt.Tensor, factor: float = 2.0, *, tile: int) -> mt.Tensor:
        assert tile in (1, 2, 4)
        return x * factor

    yield tuned
    mt.unregister_custom_op_py("bridged::tuned")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_opcheck_passes_with_and_without_a_value(tuned, framework):
    pytest.importorskip(framework)
    for tile in ({}, {"tile": 2}):
        report = mt.testing.opcheck("bridged::tuned", mt.ones(3, dtype="float64"), backends=(framework,), **tile)
        assert report.findings == []


def test_it_compiles_in_pytorch(tuned):
    torch = pytest.importorskip("torch")
    import minitensor.torch

    x = torch.ones(5, requires_grad=True)
    for tile in (None, 4):
        function = torch.compile(lambda x, tile=tile: minitensor.torch.bridged.tuned(x, 3.0, tile=tile), fullgraph=True)
        (gradient,) = torch.autograd.grad(function(x).sum(), x)
        assert function(x).tolist() == [3.0] * 5 and gradient.tolist() == [3.0] * 5
    with pytest.raises(ValueError, match="attribute 'tile' takes one of 1, 2, 4 or None, got 3"):
        minitensor.torch.bridged.tuned(x, tile=3)


def test_it_is_jitted_in_jax(tuned):
    jax = pytest.importorskip("jax")
    import minitensor.jax

    x = np.ones(5, "float32")
    for tile in (None, 4):
        np.testing.assert_array_equal(
            jax.jit(lambda x, tile=tile: minitensor.jax.bridged.tuned(x, tile=tile))(x), x * 2
        )

"""Tests of `mt.ops`, whose functions are created from the registry."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import minitensor as mt


def test_op_functions_look_like_builtins():
    f = mt.ops.swish
    assert (f.__name__, f.__qualname__, f.__module__) == ("swish", "swish", "minitensor.ops")
    assert str(inspect.signature(f)) == "(x)"
    assert "Swish" in f.__doc__
    assert "floating dtypes" in f.__doc__
    assert inspect.isbuiltin(f)
    assert pickle.loads(pickle.dumps(f)) is f


def test_signatures_show_defaults():
    signature = inspect.signature(mt.ops.clamp)
    assert list(signature.parameters) == ["x", "lo", "hi"]
    assert signature.parameters["hi"].default == float("inf")
    assert inspect.signature(mt.ops.sum).parameters["axis"].default is None


def test_every_op_has_a_signature_and_a_doc():
    for name in mt.list_custom_ops_py():
        f = getattr(mt.ops, name) if "::" not in name else mt.ops
        if "::" in name:
            for part in name.split("::"):
                f = getattr(f, part)
        inspect.signature(f)
        assert f.__doc__, name
        described = mt.ops.describe(name)
        assert described["name"] == name
        assert described["doc"] and described["location"]


def test_the_registry_is_listed():
    assert {"swish", "silu", "add", "describe"} <= set(dir(mt.ops))
    assert mt.ops.silu is mt.ops.swish
    assert mt.swish is mt.ops.swish
    assert mt.ops.describe("power")["inputs"][0]["name"] == "x"
    assert mt.ops.describe("swish")["differentiable"]
    assert not mt.ops.describe("argmax")["differentiable"]


def test_an_element_op_is_described_by_its_program():
    described = mt.ops.describe("sigmoid")
    assert described["program"] == "out = sigmoid(x)"
    assert described["latex"] == r"\mathrm{out} = \sigma\left(x\right)"
    assert mt.ops.describe("square")["program"] == "out = square(x)"
    assert mt.ops.describe("lerp")["program"].startswith("out = ")
    assert "program" not in mt.ops.describe("topk")


def test_gradient_ops_and_in_place_ops_can_be_reached():
    x = mt.Tensor([0.0, 1.0])
    assert mt.execute_custom_op("swish.vjp", [mt.ones(2), x]).shape == (2,)
    assert mt.ops.swish_(x) is x


@pytest.mark.parametrize("call", ["mt.ops.swihs", "mt.swihs", "mt.execute_custom_op('swihs', [])"])
def test_an_unknown_op_raises_with_the_nearest_name(call):
    shown = subprocess.run([sys.executable, "-c", f"import minitensor as mt; {call}"], capture_output=True, text=True)
    assert shown.returncode == 1
    assert "did you mean 'swish'" in shown.stderr.lower().replace("mean:", "mean")


def test_arguments_go_by_position_keyword_and_default():
    x = mt.Tensor([-1.0, 0.5, 2.0])
    expected = [0.0, 0.5, 1.0]
    assert mt.ops.clamp(x, 0.0, 1.0).tolist() == expected
    assert mt.ops.clamp(x, hi=1.0, lo=0.0).tolist() == expected
    assert mt.ops.clamp(x=x, lo=0, hi=1).tolist() == expected
    assert mt.ops.clamp(x, **{"".join(["l", "o"]): 0.0}).tolist() == [0.0, 0.5, 2.0]
    assert mt.ops.clamp(x).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: mt.ops.swish(), TypeError, "op 'swish': missing argument 'x'; call it as swish"),
        (lambda x: mt.ops.swish(x, x), TypeError, "takes 1 argument, got 2"),
        (lambda x: mt.ops.clamp(x, low=1), TypeError, "no argument 'low'; did you mean 'lo'"),
        (lambda x: mt.sum(x, dim=0), TypeError, "no argument 'dim'; did you mean 'axis'"),
        (lambda x: x.sum(keepdim=True), TypeError, "no argument 'keepdim'; did you mean 'keepdims'"),
        (lambda x: x.clamp(min=0.0), TypeError, "no argument 'min'; did you mean 'lo'"),
        (lambda x: mt.ops.add(x, other=x), TypeError, "no argument 'other'; did you mean 'y'"),
        (lambda x: mt.ops.clamp(x, 0.0, lo=1), TypeError, "'lo' is passed twice"),
        (lambda x: mt.ops.clamp(x, lo="a"), TypeError, r"attribute 'lo' takes float, got 'a' \(str\)"),
        (lambda x: mt.ops.clamp(x, 1.0, 0.0), ValueError, "lo <= hi"),
        (lambda x: mt.ops.swish([1.0]), TypeError, "input 'x' must be a tensor, got list"),
        (lambda x: mt.ops.swish("a"), TypeError, "input 'x' must be a tensor, got str"),
        (lambda x: mt.ops.swish(mt.Tensor([1j])), TypeError, "'x' takes floating dtypes, got complex64"),
        (lambda x: mt.ops.sum(x, axis=1.5), TypeError, "'axis' takes int or list of int or None, got 1.5"),
        (lambda x: mt.ops.sum(x, keepdims=1), TypeError, "'keepdims' takes bool"),
        (lambda x: mt.ops.sum(x, axis=3), IndexError, "axis 3 is out of range"),
        (lambda x: mt.ops.gelu(x, approximate="tan"), ValueError, "one of 'none', 'tanh'"),
        (lambda x: mt.ops.concat(x), TypeError, None),
        (lambda x: mt.ops.concat([x, 1]), TypeError, r"tensors\[1\]"),
        (lambda x: mt.ops.concat([]), ValueError, "at least one"),
        (lambda x: mt.ops.reshape(x, (2, 2)), ValueError, "cannot reshape"),
        (lambda x: mt.ops.astype(x, "float31"), ValueError, "unknown dtype"),
        (lambda x: mt.ops.add(x, mt.zeros(1).to("meta")), RuntimeError, "is on device 'meta'"),
    ],
)
def test_wrong_calls_raise_and_say_what_was_expected(call, error, words):
    x = mt.Tensor([-1.0, 0.5, 2.0])
    if words is None:
        assert call(x).tolist() == x.tolist()
        return
    with pytest.raises(error, match=words):
        call(x)


def test_variadic_inputs_take_a_list_or_tensors():
    a, b = mt.Tensor([1]), mt.Tensor([2])
    for out in (
        mt.ops.concat([a, b]),
        mt.ops.concat((a, b), axis=0),
        mt.ops.concat(a, b),
        mt.ops.concat(tensors=[a, b]),
    ):
        assert out.tolist() == [1, 2]
    assert mt.execute_custom_op("concat", [a, b], axis=0).tolist() == [1, 2]


def test_shapes_may_be_passed_as_separate_integers():
    x = mt.arange(6)
    assert x.reshape(2, 3).shape == x.reshape((2, 3)).shape == mt.ops.reshape(x, 2, 3).shape == (2, 3)
    assert x.reshape(2, 3).permute_dims(1, 0).shape == (3, 2)
    assert x.reshape(-1).shape == (6,)


def test_several_outputs_are_a_named_tuple():
    out = mt.ops.topk(mt.Tensor([3.0, 1.0, 2.0]), 2)
    assert out._fields == ("values", "indices")
    assert out.values.tolist() == [3.0, 2.0]
    assert type(out) is type(mt.ops.topk(mt.Tensor([1.0]), 1))


def test_numpy_arrays_and_scalars_are_tensors_to_ops():
    a = np.array([1.0, 2.0])
    assert mt.ops.multiply(a, mt.Tensor(a)).tolist() == [1.0, 4.0]
    assert mt.ops.exp(np.float32(0)).item() == 1.0


def test_a_tensor_that_requires_a_gradient_is_not_an_attribute():
    with pytest.raises(TypeError, match="an attribute is a plain number, so the gradient"):
        mt.ops.clamp(mt.zeros(1), lo=mt.Tensor(1.0, requires_grad=True))


@pytest.mark.parametrize(
    "name",
    ["exp", "log1p", "sin", "tanh", "sqrt", "floor", "abs", "sign", "square", "expm1", "cosh", "trunc", "arctan"],
)
def test_unary_functions_equal_numpy(name, rng):
    a = rng.uniform(0.1, 2, (3, 4))
    ours = getattr(mt.ops, {"arctan": "atan"}.get(name, name))
    assert np.allclose(ours(mt.Tensor(a)).numpy(), getattr(np, name)(a))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "var", "std", "any", "all"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_reductions_equal_numpy(name, axis, rng):
    a = rng.normal(size=(2, 3, 4))
    for keepdims in (False, True):
        ours = getattr(mt.Tensor(a), name)(axis=axis, keepdims=keepdims)
        theirs = getattr(np, name)(a, axis=axis, keepdims=keepdims)
        assert ours.shape == theirs.shape
        assert np.allclose(ours.numpy(), theirs)


def test_methods_are_ops_with_signatures():
    assert str(inspect.signature(mt.Tensor.sum)).startswith("(self, /, axis=None")
    assert mt.zeros(2).exp().tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="no argument 'axs'; did you mean 'axis'"):
        mt.zeros(2).sum(axs=0)


def test_calls_from_many_threads_agree():
    from concurrent.futures import ThreadPoolExecutor

    x = mt.linspace(-3, 3, 100_000)
    expected = mt.ops.swish(x).sum().item()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: mt.ops.swish(x).sum().item(), range(32))) == {expected}

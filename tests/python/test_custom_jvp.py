"""The gradient of an op that states tangents is their transpose: `jvp` of `mt.custom_op`, and of plugins in C."""

import itertools

import numpy as np
import pytest
import saved_definitions
from c_plugin import library, loaded

import minitensor as mt

_NUMBERS = itertools.count()
X, Y = np.linspace(-1.2, 1.7, 12).reshape(3, 4), np.linspace(0.3, 2.1, 4)


def fresh():
    """A name that no op has."""
    return f"custom_jvp::op{next(_NUMBERS)}"


def product(name, **given):
    """`x · sin(y)`, with tangents that NumPy can check."""

    def jvp(ctx, dx, dy):
        x, y = ctx.inputs
        return ctx.attrs["scale"] * (dx * mt.sin(y) + x * mt.cos(y) * dy)

    @mt.custom_op(name=name, jvp=jvp, **given)
    def op(x, y, scale: float = 2.0):
        return x * mt.sin(y) * scale

    return op


@pytest.fixture
def op():
    name = fresh()
    yield product(name)
    mt.unregister_custom_op_py(name)


def test_the_gradients_are_the_transpose_of_the_tangents(op):
    x, y = (mt.Tensor(a, requires_grad=True) for a in (X, Y))
    weights = mt.Tensor(np.arange(12.0).reshape(3, 4))
    (op(x, y, scale=3.0) * weights).sum().backward()
    d = np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(x.grad, 3 * d * np.sin(Y), rtol=1e-15)
    np.testing.assert_allclose(y.grad, (3 * d * X * np.cos(Y)).sum(axis=0), rtol=1e-14)


def test_forward_mode_returns_the_tangents(op):
    tangents = (np.full_like(X, 0.5), np.linspace(1, 2, 4))
    _, dy = mt.jvp(op, (mt.Tensor(X), mt.Tensor(Y)), tuple(map(mt.Tensor, tangents)))
    np.testing.assert_allclose(dy, 2 * (tangents[0] * np.sin(Y) + X * np.cos(Y) * tangents[1]), rtol=1e-14)


def test_opcheck_passes_and_higher_derivatives_exist(op):
    mt.testing.opcheck(op)
    y = mt.Tensor(Y, requires_grad=True)
    (first,) = mt.grad(op(mt.Tensor(X), y).sum(), [y], create_graph=True)
    (second,) = mt.grad(first.sum(), [y])
    np.testing.assert_allclose(second, (-2 * X * np.sin(Y)).sum(axis=0), rtol=1e-14)


def test_hooks_of_inputs_run_once(op):
    seen = []
    x = mt.Tensor(X, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.shape))
    op(x, mt.Tensor(Y)).sum().backward()
    assert seen == [(3, 4)]


def test_it_works_in_graphs(op):
    def step(x, y):
        value = op(x, y).sum()
        return mt.grad(value, [x, y])

    x, y = (mt.Tensor(a, requires_grad=True) for a in (X, Y))
    for found, expected in zip(mt.jit(step)(x, y), step(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_half_floats_are_rounded_once(op):
    x = mt.Tensor(X).astype("bfloat16").requires_grad_()
    y = mt.Tensor(Y).astype("bfloat16")
    op(x, y, scale=3.0).sum().backward()
    exact = 3 * np.broadcast_to(np.sin(np.asarray(y.astype("float64"))), X.shape)
    assert x.grad.dtype == mt.bfloat16
    np.testing.assert_array_less(abs(np.asarray(x.grad.astype("float64")) / exact - 1), 2**-7)


def test_several_outputs_and_zero_tangents():
    name = fresh()

    @mt.custom_op(name=name, jvp=lambda ctx, dx: (2 * ctx.inputs[0] * dx, None), outputs=["square", "sign"])
    def parts(x):
        return x * x, mt.sign(x)

    x = mt.Tensor(X, requires_grad=True)
    square, sign = parts(x)
    (square.sum() + 5 * sign.sum()).backward()
    np.testing.assert_array_equal(x.grad, 2 * X)
    mt.testing.opcheck(parts)
    mt.unregister_custom_op_py(name)


def test_a_jvp_may_call_its_own_op():
    name = fresh()

    @mt.custom_op(name=name, jvp=lambda ctx, dx: own(ctx.inputs[0]) * dx)
    def own(x):
        return mt.exp(x)

    x = mt.Tensor(Y, requires_grad=True)
    (first,) = mt.grad(own(x).sum(), x, create_graph=True)
    (second,) = mt.grad(first.sum(), x)
    np.testing.assert_allclose(second, np.exp(Y), rtol=1e-14)
    mt.unregister_custom_op_py(name)


def test_mistakes_are_errors():
    with pytest.raises(ValueError, match="pass either backward or jvp, got both; the gradient follows from jvp"):
        product(fresh(), backward=lambda ctx, d: (d, d))
    with pytest.raises(TypeError, match="jvp must be a function or None, got str"):
        mt.custom_op(name=fresh(), jvp="none")(lambda x: x)
    weight = mt.Tensor(X, requires_grad=True)
    for jvp, message in {
        lambda ctx, dx: (dx, dx): "its jvp returned 2 tangents for 1 output",
        lambda ctx, dx: dx.sum(): None,
        lambda ctx, dx: mt.stack([dx, dx]): r"tangent of shape \(2, 3, 4\) for the output 'out' of shape \(3, 4\)",
        lambda ctx, dx: 3: "the jvp function",
        lambda ctx, dx: mt.asarray(2 * dx.detach().numpy()): "ops do not compute from the tangents of the inputs",
        lambda ctx, dx: weight * dx.detach(): "ops do not compute from the tangents of the inputs",
    }.items():
        name = fresh()
        op = mt.custom_op(name=name, jvp=jvp)(lambda x: x * 1)
        x = mt.Tensor(X, requires_grad=True)
        if message is None:
            op(x).sum().backward()
            np.testing.assert_array_equal(x.grad, np.full_like(X, 12.0))
        else:
            with pytest.raises((RuntimeError, TypeError, ValueError), match=message):
                op(x).sum().backward()
        mt.unregister_custom_op_py(name)


def test_the_builder_and_the_description():
    name = fresh()
    builder = mt.CustomOpBuilder(name, 1).forward(lambda x: x * x).jvp(lambda ctx, dx: 2 * ctx.inputs[0] * dx)
    square = builder.register()
    x = mt.Tensor(X, requires_grad=True)
    square(x).sum().backward()
    np.testing.assert_array_equal(x.grad, 2 * X)
    assert mt.ops.describe(name)["gradient"] == "jvp"
    mt.unregister_custom_op_py(name)


FUNCTION = """
static int32_t pushed(const MtGradient *call, MtError *error) {
  MtOpRef *op = call->host->op_find(mt_str("multiply"), error);
  if (!op) return MT_ERROR_RUNTIME;
  MtArg args[] = {{.tensor = call->cotangents[0]}, {.value = {.kind = MT_KIND_FLOAT, .as.f = 2}}};
  size_t room = 1;
  int32_t done = call->host->op_call(op, args, 2, NULL, NULL, 0, call->gradients, &room, error);
  call->host->op_release(op);
  return done;
}
"""


@pytest.mark.usefixtures("no_plugins_stay")
@pytest.mark.parametrize(
    ("code", "op"),
    [
        ("", '.backward_kind = MT_JVP_FORMULA, .backward = MT_STR("|dx| { out: 2 * dx }"),'),
        (FUNCTION, ".backward_kind = MT_JVP_FN, .gradient = pushed,"),
    ],
    ids=["formula", "function"],
)
def test_a_plugin_in_c_states_tangents(code, op):
    with loaded(library(code=code, op=op)):
        x = mt.Tensor(X, requires_grad=True)
        (mt.ops.probe(x) * mt.Tensor(X)).sum().backward()
        np.testing.assert_array_equal(x.grad, 2 * X)
        mt.testing.opcheck("probe")
        assert mt.ops.describe("probe")["gradient"] == "jvp"


def test_a_definition_in_a_file_keeps_tangents():
    gradient = {"kind": "jvp", "formula": "|dx| { out: 2 * x * dx }"}
    name = fresh()
    op = saved_definitions.rebuilt(saved_definitions.definition_of("square") | {"gradient": gradient}, name=name)
    square = op.register()
    x = mt.Tensor(X, requires_grad=True)
    square(x).sum().backward()
    np.testing.assert_array_equal(x.grad, 2 * X)
    assert saved_definitions.definition_of(name)["gradient"] == gradient
    op.unregister()

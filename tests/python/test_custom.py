"""Tests of ops written in Python."""

import inspect
from collections.abc import Sequence

import pytest

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered")


def test_a_function_becomes_an_op():
    @mt.custom_op
    def scaled(x, scale: float = 2.0):
        """`x` times `scale`."""
        return x * scale

    assert scaled is mt.ops.scaled
    assert str(inspect.signature(scaled)) == "(x, scale=2.0)"
    assert scaled.__doc__.startswith("`x` times `scale`.")
    assert "test_custom.py" in mt.ops.describe("scaled")["location"]
    assert mt.is_custom_op_registered_py("scaled")
    x = mt.Tensor([1.0, 2.0], requires_grad=True)
    assert scaled(x, scale=3).tolist() == [3.0, 6.0]
    assert mt.execute_custom_op("scaled", [x], scale=4.0).tolist() == [4.0, 8.0]
    scaled(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_all_kinds_of_attributes_reach_the_kernel():
    seen = {}

    @mt.custom_op(name="test::kinds")
    def kinds(
        x,
        a: float,
        b: int = 1,
        c: bool = True,
        d: str = "s",
        e: list[int] = (1, 2),
        f: float | None = None,
        g: mt.DType = mt.float32,
    ):
        seen.update(a=a, b=b, c=c, d=d, e=e, f=f, g=g)
        return x * 1

    mt.ops.test.kinds(mt.zeros(1), 1)
    assert seen == {"a": 1.0, "b": 1, "c": True, "d": "s", "e": [1, 2], "f": None, "g": mt.float32}
    mt.ops.test.kinds(mt.zeros(1), 1, e=7, f=2, g="int8")
    assert (seen["e"], seen["f"], seen["g"]) == ([7], 2.0, mt.int8)
    with pytest.raises(TypeError, match="missing argument 'a'"):
        mt.ops.test.kinds(mt.zeros(1))
    with pytest.raises(TypeError, match="'b' takes int"):
        mt.ops.test.kinds(mt.zeros(1), 1, b=1.5)


def test_optional_and_variadic_inputs():
    @mt.custom_op
    def affine(x, weight, bias=None):
        y = x * weight
        return y if bias is None else y + bias

    @mt.custom_op
    def total(*xs, scale: float = 1.0):
        out = xs[0]
        for x in xs[1:]:
            out = out + x
        return out * scale

    one = mt.ones(1, requires_grad=True)
    assert affine(one, one).item() == 1.0
    assert affine(one, one, one).item() == 2.0
    assert affine(one, one, bias=one).item() == 2.0
    assert total(one, one, one, scale=2.0).item() == 6.0
    assert total([one, one]).item() == 2.0
    total(one, one, one).backward()
    assert one.grad.item() == 3.0


def test_a_written_gradient_is_used():
    @mt.custom_op(backward=lambda ctx, grad: grad * ctx.attrs["k"] * ctx.inputs[0] * ctx.outputs[0])
    def odd(x, k: float = 10.0):
        return x * 2

    x = mt.Tensor([3.0], requires_grad=True)
    odd(x).backward()
    assert x.grad.item() == 180.0


def test_gradients_by_position_for_several_inputs_and_outputs():
    def backward(ctx, d_sum, d_difference):
        assert ctx.needs_input_grad == (True, False)
        return d_sum + d_difference, None

    @mt.custom_op(backward=backward)
    def both(x, y) -> tuple[mt.Tensor, mt.Tensor]:
        return x + y, x - y

    x, y = mt.Tensor([1.0], requires_grad=True), mt.Tensor([2.0])
    out = both(x, y)
    assert [t.item() for t in out] == [3.0, -1.0]
    (out[0] * 2 + out[1]).backward()
    assert x.grad.item() == 3.0


def test_only_the_gradients_that_mt_grad_asks_for_are_computed():
    needed = []

    def backward(ctx, grad):
        needed.append((ctx.attrs["name"], ctx.needs_input_grad))
        return [grad * 2 if need else None for need in ctx.needs_input_grad]

    @mt.custom_op(backward=backward)
    def weighted(x, w, name: str):
        return 2 * (x + w)

    x, v, w, other = (mt.Tensor([float(k)], requires_grad=True) for k in range(4))
    seen = []
    for t in (x, v, w, other):
        t.register_hook(lambda g, t=t: seen.append(t.item()))
    first = weighted(x, v, "first")
    second = weighted(first, w, "second")
    aside = weighted(other, w, "aside")
    out = (second + aside * 3).sum()
    cases = [
        ([w], {"second": (False, True), "aside": (False, True)}, [2.0 + 6.0], [2.0]),
        ([x], {"second": (True, False), "first": (True, False)}, [4.0], [0.0]),
        # The call that computed an input need not run.
        ([first], {"second": (True, False)}, [2.0], []),
        ([first, v], {"second": (True, False), "first": (False, True)}, [2.0, 4.0], [1.0]),
        ([aside, x], {"second": (True, False), "first": (True, False)}, [3.0, 4.0], [0.0]),
        ([out], {}, [1.0], []),
    ]
    for inputs, calls, gradients, hooks in cases:
        needed.clear()
        seen.clear()
        found = mt.grad(out, inputs, retain_graph=True)
        assert [g.item() for g in found] == gradients
        assert dict(needed) == calls and len(needed) == len(calls) and seen == hooks
    # Without `retain_graph`, only the calls that have run are released.
    mt.grad(out, [other])
    mt.grad(first.sum(), [x])
    with pytest.raises(RuntimeError, match="its graph was released"):
        mt.grad(out, [x])


def test_an_op_without_a_gradient_raises_and_is_named():
    @mt.custom_op(backward="none")
    def hard(x):
        return x * 1

    y = hard(mt.Tensor([1.0], requires_grad=True))
    with pytest.raises(RuntimeError, match="'hard' is defined without a gradient"):
        y.backward()


def test_second_derivatives_follow_from_the_parts():
    @mt.custom_op
    def cube(x):
        return x * x * x

    assert mt.testing.gradcheck(cube, mt.Tensor([1.0, 2.0], dtype="float64"))
    assert not mt.testing.opcheck(cube, mt.Tensor([1.0, 2.0], dtype="float64"), raises=False).findings


def test_opcheck_takes_detached_tensors_as_constants():
    @mt.custom_op
    def straight_through(x: mt.Tensor) -> mt.Tensor:
        return x + (mt.ops.round(x) - x).detach()

    mt.testing.opcheck(straight_through, mt.Tensor([[0.3, -1.2, 1.9]], dtype="float64"))


def test_exceptions_keep_type_and_traceback():
    class Own(Exception):
        pass

    @mt.custom_op
    def fails(x):
        raise Own("inside")

    with pytest.raises(Own, match="inside") as caught:
        fails(mt.zeros(1))
    assert caught.traceback[-1].name == "fails"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: None, "got None"),
        (lambda x: 1.0, "must return Tensors, got float"),
        (lambda x: (x, x), "must return 1 Tensor, got 2"),
    ],
)
def test_a_wrong_result_raises_and_names_the_op(function, words):
    f = mt.custom_op(name="wrong")(function)
    with pytest.raises((TypeError, ValueError), match="op 'wrong'.*" + words):
        f(mt.zeros(1))


def test_wrong_definitions_raise():
    with pytest.raises(TypeError, match=r"\*\*kw"):
        mt.custom_op(name="bad")(lambda x, **kw: x)
    with pytest.raises(TypeError, match="comes after an attribute"):
        mt.custom_op(name="bad")(lambda x, a=1.0, y=None: x)
    with pytest.raises(ValueError, match="'1bad' is not a valid name of an op"):
        mt.custom_op(name="1bad")(lambda x: x)
    with pytest.raises(ValueError, match="backward must be a function"):
        mt.custom_op(name="bad", backward="maybe")(lambda x: x)
    assert not mt.is_custom_op_registered_py("bad")


def define_again(factor, name="again::scale"):
    @mt.custom_op(name=name)
    def scale(x):
        return x * factor

    return scale


@pytest.mark.parametrize(
    "annotation",
    [list[mt.Tensor], Sequence[mt.Tensor] | None, tuple[mt.Tensor, ...], list, dict[str, mt.Tensor], list[str]],
)
def test_a_list_of_tensors_is_written_with_a_star(annotation):
    def first(xs):
        return xs[0]

    first.__annotations__["xs"] = annotation
    words = r"op 'first': 'xs' cannot be a collection of tensors; write \*xs: mt.Tensor for any number of tensors"
    with pytest.raises(TypeError, match=words):
        mt.custom_op(first)
    for define in (mt.element_op, mt.row_op):
        with pytest.raises(TypeError, match="cannot be a collection of tensors; write one parameter for each"):
            define(first)


def test_a_function_that_is_defined_again_replaces_its_op(registered):
    first = define_again(2)
    second = define_again(3)
    assert mt.ops.again.scale(mt.ones(1)).item() == second(mt.ones(1)).item() == 3.0
    with pytest.raises(RuntimeError, match="op 'again::scale' of this function was replaced by another op"):
        first(mt.ones(1))
    mt.unregister_custom_op_py("again::scale")
    assert define_again(4)(mt.ones(1)).item() == 4.0


def test_another_function_does_not_replace_an_op(registered):
    define_again(2)
    with pytest.raises(ValueError, match="'again::scale' is already registered"):

        @mt.custom_op(name="again::scale")
        def other(x):
            return x

    mt.unregister_custom_op_py("again::scale")
    built = mt.CustomOpBuilder("again::scale", 1).forward(lambda x: x).register()
    with pytest.raises(ValueError, match="'again::scale' is already registered"):
        define_again(3)
    assert built(mt.ones(1)).item() == 1.0


def test_a_definition_that_fails_keeps_the_op_that_it_would_replace(registered):
    first = define_again(2)
    mt.CustomOpBuilder("again::outer::inner", 1).forward(lambda x: x).register()
    with pytest.raises(ValueError, match="cannot both be registered"):
        define_again(3, "again::outer")
    with pytest.raises(ValueError, match="backward must be a function"):
        mt.custom_op(name="again::scale", backward="maybe")(lambda x: x)
    assert first(mt.ones(1)).item() == 2.0


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (2,)])
def test_a_backward_that_returns_another_shape_raises_and_names_the_op(registered, shape):
    @mt.custom_op(name="shaped::twice", backward=lambda ctx, grad: mt.ones(shape))
    def twice(x):
        return x * 2

    x = mt.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match=r"op 'shaped::twice': .* shape \(3,\) for the input 'x', got shape \("):
        twice(x).sum().backward()
    assert x.grad is None


def test_a_gradient_is_summed_where_the_input_was_broadcast(registered):
    @mt.custom_op(name="shaped::add", backward=lambda ctx, grad: (grad, grad))
    def add(x, y):
        return x + y

    x, y = mt.ones((2, 3), requires_grad=True), mt.ones(3, requires_grad=True)
    add(x, y).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0, 2.0]


def test_registering_twice_raises_and_changes_nothing():
    first = mt.custom_op(name="twice")(lambda x: x * 1)
    with pytest.raises(ValueError, match="is already registered.*test_custom"):
        mt.custom_op(name="twice")(lambda x: x * 2)
    with pytest.raises(ValueError, match="is already registered"):
        mt.custom_op(name="swish")(lambda x: x)
    for name in ("swish::inner", "linalg"):
        with pytest.raises(ValueError, match=f"op '{name}', by .* cannot both be registered"):
            mt.custom_op(name=name)(lambda x: x)
    assert first(mt.ones(1)).item() == 1.0


def test_an_unregistered_op_raises_and_its_graphs_live_on():
    f = mt.custom_op(name="passing")(lambda x: x * 2)
    x = mt.ones(1, requires_grad=True)
    y = f(x)
    mt.unregister_custom_op_py("passing")
    with pytest.raises(AttributeError, match="no attribute 'passing'"):
        mt.ops.passing  # noqa: B018
    with pytest.raises(RuntimeError, match="'passing' was unregistered"):
        f(x)
    with pytest.raises(ValueError, match="no op 'passing'"):
        mt.unregister_custom_op_py("passing")
    y.backward()
    assert x.grad.item() == 2.0
    again = mt.custom_op(name="passing")(lambda x: x * 3)
    assert again(x).item() == mt.ops.passing(x).item() == 3.0


def test_the_builder_makes_an_op_step_by_step():
    def check(x, y):
        if x.shape != y.shape:
            raise ValueError("shapes must be equal")

    built = (
        mt.CustomOpBuilder("built", 2)
        .forward(lambda x, y, k: x * y * k)
        .backward(lambda ctx, g: (g * ctx.inputs[1] * ctx.attrs["k"], g * ctx.inputs[0] * ctx.attrs["k"]))
        .validate(check)
        .attr("k", float, 2.0)
        .build()
    )
    assert not mt.is_custom_op_registered_py("built")
    f = built.register()
    x = mt.Tensor([3.0], requires_grad=True)
    f(x, x).backward()
    assert x.grad.item() == 12.0
    with pytest.raises(ValueError, match="shapes must be equal"):
        f(x, mt.ones(2))
    with pytest.raises(ValueError, match="no forward"):
        mt.CustomOpBuilder("empty", 1).build()


def test_ops_of_namespaces_can_be_imported():
    mt.custom_op(name="space::twice")(lambda x: x * 2)
    from minitensor.ops.space import twice

    assert twice(mt.ones(1)).item() == 2.0
    assert twice.__module__ == "minitensor.ops.space"
    with pytest.raises(AttributeError, match="no attribute 'twic'"):
        mt.ops.space.twic  # noqa: B018


def test_ops_in_python_call_each_other_and_come_from_threads():
    from concurrent.futures import ThreadPoolExecutor

    @mt.custom_op
    def inner(x):
        return x * 2

    @mt.custom_op
    def outer(x):
        return inner(x) + inner(x)

    x = mt.ones(100_000)
    with ThreadPoolExecutor(4) as pool:
        assert all(t.sum().item() == 400_000 for t in pool.map(outer, [x] * 16))


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", ["describe", "ns::__doc__", "__getattr__"])
def test_an_op_replaces_no_other_attribute(name):
    before = mt.ops.describe
    with pytest.raises(ValueError, match=f"'{name}'.*; (choose|give it) another name"):
        mt.CustomOpBuilder(name, 1).forward(abs).register()
    assert mt.ops.describe is before and not mt.is_custom_op_registered_py(name)


def test_opcheck_ends_a_body_that_counts_to_a_large_attribute(registered):
    @mt.custom_op(name="docs::halve")
    def halve(x, steps: int = 2):
        for _ in range(steps):
            x = x * 0.5
        return x

    assert mt.testing.opcheck(halve, raises=False).findings == []

"""What `mt.cond`, `mt.while_loop` and `mt.scan` refuse."""

import numpy as np
import pytest
from control_flow_checks import NEGATIVE, POSITIVE, assert_same

import minitensor as mt


def broken(x):
    raise KeyError("mine")


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (
            lambda x: (x, x),
            r"true_fn returned float32 \(3,\), false_fn returned \(float32 \(3,\), float32 \(3,\)\)",
        ),
        (lambda x: x[:2], r"false_fn returned float32 \(2,\)"),
        (lambda x: x.astype("float64"), r"false_fn returned float64 \(3,\)"),
        (lambda x: 3, "false_fn returned 3"),
    ],
    ids=lambda _: "",
)
def test_branches_that_differ(other, text):
    with pytest.raises(TypeError, match=rf"mt\.cond: true_fn and false_fn must return the same .*{text}"):
        mt.jit(lambda x: mt.cond(x.sum() > 0, lambda x: x, other, x))(POSITIVE)


@pytest.mark.parametrize("wrap", [lambda f: f, mt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: mt.cond(x > 0, lambda: x, lambda: x),
            TypeError,
            r"pred must be a bool tensor of shape \(\), got bool \(3,\)",
        ),
        (lambda x: mt.cond(x.sum(), lambda: x, lambda: x), TypeError, r"pred must be .* got float32 \(\); compare"),
        (lambda x: mt.cond(1, lambda: x, lambda: x), TypeError, "pred must be a bool or a bool tensor .* got int"),
        (lambda x: mt.cond(True, x, lambda: x), TypeError, "mt.cond: true_fn must be a function, got Tensor"),
        (
            lambda x: mt.cond(x.sum() > 0, lambda: np.ones(3), lambda: x),
            TypeError,
            "mt.cond: true_fn returned a ndarray",
        ),
        (lambda x: mt.cond(x.sum() > 0, broken, lambda x: x, x), KeyError, "mine"),
        (lambda x: mt.while_loop(lambda x: x.sum(), lambda x: x, x), TypeError, "the result of cond_fun must be"),
        (
            lambda x: mt.while_loop(lambda x: x.sum() < 9, lambda x: (x, x), x),
            TypeError,
            r"expected float32 \(3,\), got \(",
        ),
        (lambda x: mt.while_loop(lambda x: x < 9, lambda x: x, 0), TypeError, "init must contain a tensor, got 0"),
        (lambda x: mt.while_loop(lambda x: x.sum() < 9, broken, x), KeyError, "mine"),
        (
            lambda x: mt.while_loop(lambda x: x.sum() < 9, None, x),
            TypeError,
            "body_fun must be a function, got NoneType",
        ),
        (lambda x: mt.scan(lambda c, x: c, x, x), TypeError, r"f must return a pair \(carry, y\), got float32"),
        (
            lambda x: mt.scan(lambda c, x: (c.sum(), x), x, x),
            TypeError,
            r"carry .* expected float32 \(3,\), got float32 \(\)",
        ),
        (lambda x: mt.scan(lambda c, x: (c + 1, x), 0, x), TypeError, "expected 0, got 1"),
        (lambda x: mt.scan(lambda c, x: (c, x), x), ValueError, "expected a tensor in xs, or length"),
        (lambda x: mt.scan(lambda c, x: (c, x), x, x.sum()), ValueError, "must have an axis to go along"),
        (
            lambda x: mt.scan(lambda c, x: (c, x), x, x, 4),
            ValueError,
            "length is 4, but the tensors in xs have size 3",
        ),
        (
            lambda x: mt.scan(lambda c, x: (c, x), x, None, -1),
            ValueError,
            "length must be an integer of at least 0, got -1",
        ),
        (
            lambda x: mt.scan(lambda c, x: (c, x), x, (x, x[:2])),
            ValueError,
            r"same size along axis 0, got \[2, 3\]",
        ),
        (lambda x: mt.scan(broken, x, x), TypeError, "positional argument"),
        (lambda x: mt.scan(lambda c, x: (c, np.ones(2)), x, x), TypeError, "mt.scan: f returned a ndarray"),
        (
            lambda x: mt.scan(lambda c, x: (c, x), x, np.ones(3)),
            TypeError,
            r"mt.scan: an argument is of type numpy.ndarray",
        ),
    ],
    ids=lambda _: "",
)
def test_bad_input(wrap, call, error, text):
    with pytest.raises(error, match=text):
        wrap(call)(POSITIVE)
    # The recording has ended.
    assert mt.jit(lambda x: x + 1)(mt.ones(1)).item() == 2


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda h, s: lambda x: (x.__iadd__(1), x * 2)[1],
            "mt.cond: .* changes an operand or a captured tensor in place",
        ),
        (lambda h, s: lambda x: (h.__setitem__(0, 1), x)[1], "changes an operand or a captured tensor in place"),
        (lambda h, s: lambda x: (s["t"].__iadd__(1), x)[1], "changes an operand or a captured tensor in place"),
        (lambda h, s: lambda x: x + mt.rand(3), "draws random numbers"),
        (lambda h, s: lambda x: mt.ops.dropout(x), "draws random numbers"),
        (lambda h, s: lambda x: x * x.sum().item(), "reads the elements of a tensor"),
        (lambda h, s: lambda x: x if x.sum() > 0 else -x, "reads the elements of a tensor"),
        (lambda h, s: lambda x: (s["log"].append(x), x)[1], "changes Python state"),
        (lambda h, s: lambda x: (s.update(n=s["n"] + 1), x)[1], "changes Python state"),
        (lambda h, s: lambda x: ((x * s["w"]).sum().backward(), x)[1], "reads the accumulated|calls backward"),
        (lambda h, s: lambda x: x * s["w"].grad, "reads the accumulated gradient"),
        (lambda h, s: lambda x: x * s["deep"][0][0][0][0][0][0], "because an object refers to it"),
    ],
    ids=lambda _: "",
)
def test_what_the_graph_of_a_branch_cannot_repeat(make, text, is_first):
    state = {
        "t": mt.ones(3),
        "log": [],
        "n": 0,
        "w": mt.ones(3, requires_grad=True),
        "deep": [[[[[[mt.ones(3)]]]]]],
    }
    state["w"].grad = mt.ones(3)

    def f(x):
        h = x * 2
        functions = [make(h, state), lambda x: x * 1]
        return mt.cond(x.sum() > 0, *(functions if is_first else functions[::-1]), x)

    with pytest.raises(RuntimeError, match=text):
        mt.jit(f)(POSITIVE)


def test_assigning_a_variable_outside():
    def f(x):
        h = x * 1.0
        h = (h + x).detach() if not x.requires_grad else h

        def first():
            nonlocal h
            h = h * 2
            return h

        return mt.cond(x.sum() > 0, first, lambda: h * 1), h

    for x in (POSITIVE, POSITIVE.detach().requires_grad_()):
        with pytest.raises(RuntimeError, match="changes Python state|changes a variable"):
            mt.jit(f)(x)


def test_changing_a_list_outside():
    def f(x):
        hs = [x * 1]

        def first():
            hs.append(hs[0] * 2)
            return hs[-1]

        return mt.cond(x.sum() > 0, first, lambda: hs[0] * 1)

    for x in (POSITIVE, POSITIVE.detach().requires_grad_()):
        with pytest.raises(RuntimeError, match="changes Python state|changes a variable"):
            mt.jit(f)(x)


def test_an_error_of_a_branch_that_is_not_chosen():
    with pytest.raises(KeyError, match="mine") as raised:
        mt.jit(lambda x: mt.cond(x.sum() > 0, lambda x: x, broken, x))(POSITIVE)
    assert raised.value.__notes__ == [
        "mt.cond: false_fn runs while mt.jit records, even if no run of the graph needs it."
    ]


def test_a_condition_that_is_known():
    with pytest.raises(TypeError, match="cond_fun must return a bool tensor .* under mt.jit, got True"):
        mt.jit(lambda x: mt.while_loop(lambda x: True, lambda x: x, x))(POSITIVE)


def test_random_numbers_in_an_op_in_python():
    @mt.custom_op(name="control_test::noisy", backward=lambda ctx, grad: grad * ctx.outputs[0])
    def noisy(x):
        return x * mt.rand(3)

    try:
        with pytest.raises(RuntimeError, match="draws random numbers"):
            mt.jit(lambda x: mt.cond(x.sum() > 0, lambda: noisy(x), lambda: x * 1))(POSITIVE)
    finally:
        mt.unregister_custom_op_py("control_test::noisy")


def test_random_numbers_with_a_key_are_not_refused():
    key = mt.Tensor([1, 2], dtype="uint64")
    assert_same(
        lambda x: mt.cond(x[0] > 0, lambda: mt.ops.random.normal(key, (3,)), lambda: x), (POSITIVE,), (NEGATIVE,)
    )


def test_a_tensor_that_leaves_a_branch():
    class Box:
        __slots__ = ("value",)

    box = Box()

    def first(x):
        box.value = x * 2
        return x

    def f(x):
        mt.cond(x.sum() > 0, first, lambda x: x * 1, x)
        return box.value + 1

    with pytest.raises(RuntimeError, match="created inside of another call"):
        mt.jit(f)(POSITIVE)


def test_a_history_that_is_hidden():
    class Box:
        __slots__ = ("value",)

    box = Box()
    w = mt.ones(3, requires_grad=True)

    def f(x):
        box.value = x * w
        return mt.cond(x.sum() > 0, lambda x: x * box.value, lambda x: x * 1, x)

    with pytest.raises(RuntimeError, match="pass the tensor as an operand"):
        mt.jit(f)(POSITIVE)


def test_changing_a_list_that_is_an_operand():
    with pytest.raises(RuntimeError, match="changes a list or dict"):
        mt.jit(lambda x: mt.cond(x.sum() > 0, lambda v: v.pop(), lambda v: v[0] * 1, [x, x]))(POSITIVE)


def test_a_branch_that_steps_an_optimizer():
    model = mt.nn.Linear(3, 3)
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)

    def first(x):
        optimizer.step()
        return x

    for p in model.parameters():
        p.grad = mt.ones_like(p)
    with pytest.raises(RuntimeError, match="mt.cond: true_fn"):
        mt.jit(lambda x: mt.cond(x.sum() > 0, first, lambda x: x * 1, x))(POSITIVE)


def test_recursion_in_a_branch():
    def f(x):
        return mt.cond(x.sum() < 100, lambda: f(x * 2), lambda: x)

    assert f(mt.ones(3)).tolist() == [64.0] * 3
    with pytest.raises(RecursionError, match="a graph has no recursion: write mt.while_loop") as caught:
        mt.jit(f)(mt.ones(3))
    assert len(caught.value.__notes__) == 1

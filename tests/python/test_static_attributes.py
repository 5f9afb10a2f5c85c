"""Static attributes of element and row ops, compared with NumPy, ops written in Rust, and finite differences."""

from __future__ import annotations

import enum
import inspect
import os
import pickle
import threading
import traceback
from typing import Literal

import numpy as np
import pytest

import minitensor as mt

pytestmark = pytest.mark.usefixtures("registered")

X = np.linspace(-2.0, 2.0, 41)
ROWS = np.random.default_rng(3).standard_normal((4, 6))


class Loss(enum.Enum):
    HUBER = "huber"
    LOG_COSH = "log_cosh"


class Norm(enum.StrEnum):
    MEAN = "mean"
    MAX = "max"


def leaky(x, slope: float = 0.1, power: int = 1, mode: Literal["soft", "hard"] = "soft", centered: bool = False):
    """`x`, and less of it below 0."""
    y = mt.where(x > 0, x, slope * x) if mode == "hard" else slope * x + (1 - slope) * mt.softplus(x)
    for _ in range(1, power):
        y = y * x
    return y - 1 if centered else y


def leaky_in_numpy(x, slope=0.1, power=1, mode="soft", centered=False):
    y = np.where(x > 0, x, slope * x) if mode == "hard" else slope * x + (1 - slope) * np.logaddexp(0, x)
    return y * x ** (power - 1) - centered


CALLS = [
    {},
    {"slope": 0.5},
    {"power": 3},
    {"mode": "hard"},
    {"centered": True},
    {"slope": 0.0, "power": 2, "mode": "hard", "centered": True},
]


@pytest.mark.parametrize("attrs", CALLS)
def test_values_choose_the_program(attrs):
    op = mt.element_op(leaky)
    np.testing.assert_allclose(op(mt.Tensor(X), **attrs), leaky_in_numpy(X, **attrs), rtol=1e-13, atol=1e-14)
    x = mt.Tensor(X + 0.013, requires_grad=True)
    mt.testing.gradcheck(lambda x: op(x, **attrs), x)


def test_an_op_is_like_one_written_in_rust():
    op = mt.element_op(where="power >= 1")(leaky)
    assert str(inspect.signature(op)) == "(x, slope=0.1, power=1, mode='soft', centered=False)"
    assert "mode: one of 'soft', 'hard', 'soft' if not given" in op.__doc__
    assert "power: int, 1 if not given" in op.__doc__
    described = mt.ops.describe("leaky")
    assert [a["kind"] for a in described["attributes"]] == ["float", "int", "str", "bool"]
    assert described["attributes"][2]["words"] == ["soft", "hard"]
    mt.testing.opcheck("leaky")
    assert pickle.loads(pickle.dumps(op)) is op


def test_derivatives_of_any_order_are_those_of_the_op_in_rust():
    @mt.element_op(name="docs::gelu")
    def gelu(x, approximate: Literal["none", "tanh"] = "none"):
        if approximate == "tanh":
            return 0.5 * x * (1 + (0.7978845608028654 * (x + 0.044715 * x**3)).tanh())
        return x * x.normal_cdf()

    for approximate in ("none", "tanh"):
        results = []
        for f in (gelu, mt.ops.gelu):
            x = mt.Tensor(X, requires_grad=True)
            y, parts = f(x, approximate=approximate), []
            for _ in range(4):
                parts.append(np.asarray(y.detach()))
                (y,) = mt.grad(y.sum(), x, create_graph=True)
            results.append(parts)
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_the_function_runs_once_for_each_choice():
    runs = []

    @mt.element_op(name="docs::counted")
    def counted(x, scale: float = 1.0, n: int = 2, name: str = "a"):
        runs.append((n, name))
        return scale * x**n

    x = mt.Tensor(X, requires_grad=True)
    for _ in range(3):
        for scale in (1.0, 2.0):
            for n in (2, 3):
                y = counted(x, scale=scale, n=n)
                (g,) = mt.grad(y.sum(), x, create_graph=True)
                g.sum().backward()
                mt.jit(lambda x, n=n: counted(x, n=n) * 2)(x)
                mt.vmap(lambda x, n=n: counted(x, n=n) * 2)(x)
                counted(mt.Tensor(X, dtype="float32"), n=n)
    assert runs == [(2, "a"), (3, "a")]


def test_enums():
    @mt.element_op(name="docs::robust")
    def robust(x, loss: Loss = Loss.HUBER, norm: Norm | None = None):
        assert loss in Loss and (norm is None or norm in Norm)
        y = mt.where(abs(x) < 1, x * x / 2, abs(x) - 0.5) if loss is Loss.HUBER else x.cosh().log()
        return y if norm is None else y / (2 if norm is Norm.MEAN else 4)

    huber = np.where(abs(X) < 1, X * X / 2, abs(X) - 0.5)
    assert str(inspect.signature(robust)) == "(x, loss='huber', norm=None)"
    np.testing.assert_allclose(robust(X), huber, atol=1e-15)
    np.testing.assert_allclose(robust(X, loss=Loss.LOG_COSH), np.log(np.cosh(X)), atol=1e-15)
    np.testing.assert_allclose(robust(X, loss="log_cosh", norm="max"), np.log(np.cosh(X)) / 4, atol=1e-15)
    np.testing.assert_allclose(robust(X, norm=Norm.MEAN), huber / 2, atol=1e-15)
    with pytest.raises(ValueError, match="'loss' takes one of 'huber', 'log_cosh', got 'huberr'"):
        robust(X, loss="huberr")
    with pytest.raises(ValueError, match="'norm' takes one of 'mean', 'max' or None, got 'huber'"):
        robust(X, norm=Loss.HUBER)
    mt.testing.opcheck("docs::robust")


def test_ops_of_whole_tensors_take_words_and_members():
    @mt.custom_op(name="docs::whole")
    def whole(x, loss: Loss = Loss.HUBER, mode: Literal["a", "b"] = "a"):
        assert isinstance(loss, Loss)
        return x * (2 if loss is Loss.HUBER else 3) + (mode == "b")

    assert whole(mt.ones(1)).item() == 2 and whole(mt.ones(1), loss=Loss.LOG_COSH, mode="b").item() == 4
    with pytest.raises(ValueError, match="'mode' takes one of 'a', 'b', got 'c'"):
        whole(mt.ones(1), mode="c")


def test_all_kinds_of_attributes_reach_the_function():
    seen = {}

    @mt.element_op(name="docs::kinds")
    def kinds(
        x,
        a: float,
        b: int = 1,
        c: bool = True,
        d: str = "s",
        e: list[int] = (1, 2),
        f: list[float] = (0.5,),
        g: mt.DType = mt.float32,
        h: int | None = None,
    ):
        seen.update(b=b, c=c, d=d, e=e, f=f, g=g, h=h)
        return x * a + sum(f)

    assert kinds(mt.ones(1), 2).item() == 2.5
    assert seen == {"b": 1, "c": True, "d": "s", "e": [1, 2], "f": [0.5], "g": mt.float32, "h": None}
    assert kinds(mt.ones(1), 2, b=3, c=False, d="t", e=7, f=[1.0, 2.0], g="int8", h=4).item() == 5.0
    assert seen == {"b": 3, "c": False, "d": "t", "e": [7], "f": [1.0, 2.0], "g": mt.int8, "h": 4}


def test_an_optional_float_is_none_or_a_symbol():
    @mt.element_op(name="docs::clamped", where="limit > 0")
    def clamped(x, limit: float | None = None):
        return x if limit is None else mt.minimum(x, limit)

    np.testing.assert_array_equal(clamped(X), X)
    for limit in (0.5, 1.0):
        np.testing.assert_array_equal(clamped(X, limit=limit), np.minimum(X, limit))
    with pytest.raises(ValueError, match="needs limit > 0, got limit = -1"):
        clamped(X, limit=-1)
    mt.testing.opcheck("docs::clamped")
    x = mt.Tensor(X, requires_grad=True)
    for limit, wanted in ((None, np.ones(41)), (0.55, (X < 0.55) * 1.0)):
        (g,) = mt.grad(clamped(x, limit=limit).sum(), x)
        np.testing.assert_array_equal(g, wanted)


def test_required_attributes_are_tried_with_small_values():
    tried = []

    @mt.element_op(name="docs::power", where="n > 2")
    def power(x, n: int, sign: bool):
        tried.append((n, sign))
        return x**n * (1 if sign else -1)

    assert tried == [(3, True)]
    np.testing.assert_allclose(power(X, 4, False), -(X**4), atol=1e-14)
    with pytest.raises(TypeError, match=r"missing argument 'n'; call it as docs::power\(x, n, sign\)"):
        power(X)
    mt.testing.opcheck("docs::power")
    with pytest.raises(ValueError, match="(?s)n is odd.*op 'docs::odd' was called with n=2"):

        @mt.element_op(name="docs::odd")
        def odd(x, n: int):
            if n % 2 == 0:
                raise ValueError("n is odd")
            return x


def test_values_of_the_wrong_type_are_errors():
    op = mt.element_op(where="power >= 1")(leaky)
    with pytest.raises(TypeError, match=r"op 'leaky': attribute 'power' takes int, got 1.5"):
        op(X, power=1.5)
    with pytest.raises(TypeError, match=r"op 'leaky': attribute 'centered' takes bool, got 1"):
        op(X, centered=1)
    with pytest.raises(TypeError, match=r"op 'leaky': attribute 'mode' takes one of 'soft', 'hard', got 1"):
        op(X, mode=1)
    with pytest.raises(ValueError, match=r"op 'leaky': attribute 'mode' takes one of 'soft', 'hard', got 'sotf'"):
        op(X, mode="sotf")
    with pytest.raises(TypeError, match="did you mean 'centered'"):
        op(X, centred=True)


#: Static attributes that do not exist, with the error.
WRONG = {
    "literal": (lambda x, k: x, {"k": Literal[1, 2]}, "attribute 'k': the values of Literal.1, 2. must be strings"),
    "enum": (lambda x, k: x, {"k": enum.Enum("Count", "ONE TWO")}, "the values of the enum 'Count' must be strings"),
    "order": (lambda x, k, y: x, {"k": int}, "the tensor 'y' comes after an attribute"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_attributes(name):
    function, annotations, words = WRONG[name]
    function.__annotations__ = annotations
    with pytest.raises(TypeError, match=words):
        mt.element_op(name="docs::wrong")(function)


def test_an_attribute_that_is_a_symbol_cannot_count():
    with pytest.raises(TypeError, match="a float attribute has no value .* annotate it with int"):
        mt.element_op(name="docs::wrong")(lambda x, n=3: sum(x for _ in range(n)))


def test_conditions_are_checked_before_the_function_runs():
    runs = []

    @mt.row_op(name="docs::conditioned", where="n >= 1, eps > 0")
    def conditioned(x, n: int = 1, eps: float = 1.0):
        runs.append(n)
        return x.sum() / n + eps

    for attrs in ({"n": 0}, {"n": 5, "eps": -1.0}):
        with pytest.raises(ValueError, match="op 'docs::conditioned' needs"):
            conditioned(mt.Tensor(ROWS, requires_grad=True), **attrs)
    assert 0 not in runs


def test_an_exception_keeps_type_and_traceback_and_names_the_values():
    class Own(Exception):
        pass

    @mt.row_op(name="docs::fails", axis=-1)
    def fails(x, k: int = 1, mode: Literal["a", "b"] = "a", scale: float = 1.0):
        if k > 2:
            raise Own("inside")
        return x * scale

    for x in (mt.Tensor(ROWS), mt.Tensor(ROWS, requires_grad=True), ROWS, mt.zeros(100, 1000)):
        with pytest.raises(Own, match="inside") as caught:
            fails(x, k=3, mode="b")
        assert caught.value.__notes__ == ["op 'docs::fails' was called with k=3, mode='b'"]
        assert any(frame.name == "fails" for frame in traceback.extract_tb(caught.value.__traceback__))
    with pytest.raises(Own):
        fails(mt.Tensor(ROWS, device="meta"), k=3)
    assert fails(mt.Tensor(ROWS), k=2).shape == (4, 6)


def test_an_error_of_a_symbol_names_the_values():
    op = mt.element_op(name="docs::branching")(lambda x, hard=False: (x if x > 0 else -x) if hard else x)
    with pytest.raises(TypeError, match="(?s)op 'docs::branching': 'if'.*was called with hard=True"):
        op(X, hard=True)


def test_outputs_do_not_depend_on_values():
    several = mt.element_op(name="docs::several")(lambda x, both=False: (x, x) if both else x)
    with pytest.raises(ValueError, match=r"(?s)returned 2 outputs, expected 1: \['out'\].*both=True"):
        several(X, both=True)
    truth = mt.element_op(name="docs::truth")(lambda x, asks=False: x > 0 if asks else x)
    with pytest.raises(ValueError, match="op 'docs::truth' with asks=True: output 'out' is a truth value, but the op"):
        truth(X, asks=True)
    reduced = mt.row_op(name="docs::reduced")(lambda x, total=False: x.sum() if total else x)
    with pytest.raises(ValueError, match="with total=True: output 'out' is a number for each row, but a row"):
        reduced(ROWS, total=True)
    whole = mt.row_op(name="docs::whole")(lambda x, total=True: x.sum() if total else x)
    with pytest.raises(ValueError, match="with total=False: output 'out' is a row, but a number for each row"):
        whole(ROWS, total=False)


def test_a_shape_clause_fixes_the_rows():
    op = mt.row_op(name="docs::shaped", shape="(x: [.., n]) -> [.., n]")(lambda x, total=False: x.sum() if total else x)
    np.testing.assert_allclose(op(ROWS, total=True), np.repeat(ROWS.sum(-1, keepdims=True), 6, -1), rtol=1e-14)
    x = mt.Tensor(ROWS, requires_grad=True)
    mt.testing.gradcheck(lambda x: op(x, total=True), x)
    mt.testing.opcheck("docs::shaped")


def test_dtypes_are_those_of_the_defaults():
    op = mt.element_op(name="docs::halved")(lambda x, half=False: x * 0.5 if half else x * 2)
    assert op(mt.Tensor([1, 2])).dtype == mt.int64
    with pytest.raises(TypeError, match="op 'docs::halved' with half=True takes .*, got int64; convert it with astype"):
        op(mt.Tensor([1, 2]), half=True)
    assert op(mt.Tensor([1.0, 2.0], dtype="float16"), half=True).tolist() == [0.5, 1.0]
    floats = mt.element_op(name="docs::doubled")(lambda x, half=True: x * 0.5 if half else x * 2)
    assert floats(mt.Tensor([1, 2]), half=False).dtype == mt.float32


def normalize(x, weight, norm: Norm = Norm.MEAN, power: int = 2, eps: float = 0.0):
    """`x` divided by a norm of its row."""
    size = (abs(x) ** power).mean() ** (1 / power) if norm is Norm.MEAN else abs(x).max()
    return x / (size + eps) * weight


@pytest.mark.parametrize("attrs", [{}, {"power": 4}, {"norm": "max", "eps": 0.5}])
def test_rows(attrs):
    op = mt.row_op(name="docs::normalize")(normalize)
    w = np.linspace(0.5, 2.0, 6)
    power, eps = attrs.get("power", 2), attrs.get("eps", 0.0)
    size = (abs(ROWS) ** power).mean(-1, keepdims=True) ** (1 / power)
    size = abs(ROWS).max(-1, keepdims=True) if "norm" in attrs else size
    np.testing.assert_allclose(op(mt.Tensor(ROWS), mt.Tensor(w), **attrs), ROWS / (size + eps) * w, rtol=1e-12)
    x, weight = mt.Tensor(ROWS, requires_grad=True), mt.Tensor(w, requires_grad=True)
    mt.testing.gradcheck(lambda x, w: op(x, w, **attrs), (x, weight))
    mt.testing.opcheck("docs::normalize")


def test_ops_with_static_attributes_call_each_other():
    mt.element_op(leaky)
    twice = mt.element_op(name="docs::twice")(lambda x, mode="soft", s=0.1: mt.ops.leaky(mt.ops.leaky(x, s, mode=mode)))
    for mode in ("soft", "hard"):
        once = leaky_in_numpy(X, 0.3, mode=mode)
        np.testing.assert_allclose(twice(X, mode=mode, s=0.3), leaky_in_numpy(once), rtol=1e-12, atol=1e-14)


def test_values_are_part_of_graphs():
    op = mt.element_op(leaky)
    x = mt.Tensor(X, requires_grad=True)

    @mt.jit
    def f(x, power):
        return op(x * 2, power=power, mode="hard").sum()

    for power in (1, 3, 2, 3):
        (g,) = mt.grad(f(x, power), x)
        (wanted,) = mt.grad(op(x * 2, power=power, mode="hard").sum(), x)
        np.testing.assert_allclose(g, wanted, rtol=1e-13)
        rows = mt.vmap(lambda x, power=power: op(x, power=power))(mt.Tensor(X.reshape(-1, 1)))
        np.testing.assert_allclose(rows, leaky_in_numpy(X, power=power).reshape(-1, 1), rtol=1e-13, atol=1e-14)


def test_what_the_function_computes_is_not_part_of_a_graph():
    @mt.element_op(name="docs::table")
    def table(x, n: int = 1):
        factors = mt.arange(n + 1, dtype="float64") + 1
        return x * (factors * factors).sum().item()

    f = mt.jit(lambda x: table(x, n=3) + 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(mt.Tensor(X)), X * 30 + 1)


def test_threads_may_choose_at_the_same_time():
    op = mt.element_op(name="docs::shifted")(lambda x, n=(0,): x + sum(n))
    size, wrong = 100_000, []

    def work(first):
        for k in range(first, first + 30):
            x = mt.full(size if k % 2 else 10, 1.0, requires_grad=True)
            y = op(x, n=[k % 40])
            y.sum().backward()
            if y[0].item() != 1 + k % 40 or x.grad[0].item() != 1:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 40, 5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_function_may_call_the_op_in_a_hook_of_a_backward_pass():
    op = mt.element_op(name="docs::scaled")(lambda x, n=(1,): x * n[0])
    x = mt.full(100_000, 1.0, requires_grad=True)
    y = x * 1.0
    y.register_hook(lambda g: op(g, n=[7]))
    op(y, n=[3]).sum().backward()
    assert x.grad[0].item() == 21


def test_many_values():
    op = mt.element_op(name="docs::many")(lambda x, n=[0]: x * n[0])  # noqa: B006
    x = mt.Tensor([2.0], requires_grad=True)
    for n in [*range(300), *range(280, 300)]:
        y = op(x, n=[n])
        assert y.item() == 2 * n and mt.grad(y, x)[0].item() == n


def test_an_op_is_freed_with_its_function():
    import gc
    import weakref

    class Marker:
        pass

    def define():
        marker = Marker()

        @mt.element_op(name="docs::freed")
        def freed(x, n: int = 1):
            assert marker
            return x * n

        freed(mt.ones(1), n=2)
        return weakref.ref(marker)

    marker = define()
    mt.unregister_custom_op_py("docs::freed")
    gc.collect()
    assert marker() is None


def test_an_op_may_call_itself_with_other_values():
    @mt.element_op(name="docs::doubled")
    def doubled(x, n: int = 0, is_endless: bool = False):
        if n == 0:
            return x
        return mt.ops.docs.doubled(x, n=n if is_endless else n - 1, is_endless=is_endless) * 2

    assert doubled(mt.ones(1), n=5).item() == 32
    with pytest.raises(RecursionError) as caught:
        doubled(mt.ones(1), n=1, is_endless=True)
    assert caught.value.__notes__ == ["op 'docs::doubled' was called with n=1, is_endless=True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_may_choose():
    op = mt.element_op(name="docs::forked")(lambda x, n=(0,): x * n[0])
    process = os.fork()
    if process == 0:
        os._exit(int(op(mt.ones(1), n=[7]).item()))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7

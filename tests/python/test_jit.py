"""`mt.jit`: a graph computes what its function computes."""

import numpy as np
from jit_checks import assert_same, bits, in_place, randn

import minitensor as mt


def test_a_chain_is_one_fused_call():
    jitted = assert_same(lambda x, y: (x * 2 + y).tanh() * x.sigmoid() - 1, (randn(3, 4), randn(4)), graphs=1)
    assert jitted.graphs[0].ops == ["fused(multiply, add, tanh, sigmoid, multiply, subtract)"]


def test_other_values_of_the_same_shape_use_the_same_graph():
    assert_same(lambda x: x.exp().sum(axis=0) / 2, (randn(3, 4),), (randn(3, 4) + 1,), (randn(3, 4) * 0,), graphs=1)


def test_shapes_dtypes_and_layouts_have_graphs_of_their_own():
    x = randn(4, 4)
    calls = [(x,), (x[:2],), (x.astype("float64"),), (x.T,), (x[::2],), (x.astype("float16"),), (mt.arange(4),)]
    assert_same(lambda x: (x * x + 1).reshape(-1) * 2, *calls)


def test_containers():
    def f(pair, options, *rest, scale):
        x, y = pair
        return {
            "sum": x + y * scale,
            "rest": [t * options["factor"] for t in rest],
            "name": options["name"],
            "none": None,
        }

    jitted = mt.jit(f)
    for factor in (2, 3, 3.0, True):
        args = ((randn(3), randn(3) + 1), {"factor": factor, "name": "n"}, randn(2), randn(1))
        for _ in range(2):
            assert bits(jitted(*args, scale=randn(3))) == bits(f(*args, scale=randn(3)))
    assert len(jitted.graphs) == 4


def test_results_that_are_arguments_are_these_objects_memory():
    x = randn(3)
    jitted = mt.jit(lambda x: (x, x + 1))
    for _ in range(3):
        same, _ = jitted(x)
        same += 1
    np.testing.assert_array_equal(x.numpy(), randn(3).numpy() + np.float32(1) + np.float32(1) + np.float32(1))


def test_results_share_no_memory_between_runs():
    constant = mt.jit(lambda x: (x * 0 + 1, mt.ones(3)))
    first = constant(randn(3))
    second = constant(randn(3))
    for t in (*first, *second):
        t += 1
    assert [t.tolist() for t in (*first, *second)] == [[2.0] * 3] * 4
    assert [t.tolist() for t in constant(randn(3))] == [[1.0] * 3] * 2


def test_a_constant_that_is_changed_in_place_starts_again_in_each_run():
    def f(x):
        total = mt.zeros(3)
        for _ in range(3):
            total += x
        return total

    assert_same(f, (randn(3),), (randn(3) * 2,), graphs=1)


def test_views_and_in_place_changes():
    assert_same(in_place, (randn(4, 4),), (randn(4, 4) + 3,), graphs=1)


def test_changes_of_arguments_in_place():
    def f(x, y):
        x += y
        x[0] = 5
        return x * 2

    jitted = mt.jit(f)
    a, b = randn(4), randn(4)
    for _ in range(3):
        assert bits(jitted(a, randn(4))) == bits(f(b, randn(4)))
        assert bits(a) == bits(b)


def test_aliased_arguments_have_a_graph_of_their_own():
    def f(x, y):
        x += 1
        return x * y

    jitted = mt.jit(f)
    for _ in range(3):
        a, b = randn(4), randn(4) + 1
        assert bits(jitted(a, b)) == bits(f(randn(4), randn(4) + 1))
        a, b = randn(4), randn(4)
        assert bits(jitted(a, a)) == bits(f(b, b))
        a, b = randn(8), randn(8)
        assert bits(jitted(a[:4], a[2:6])) == bits(f(b[:4], b[2:6]))
        assert bits(jitted(a[:4], a[4:])) == bits(f(b[:4], b[4:]))


def test_integers_masks_and_indices():
    def f(x, i):
        mask = (x > 0) & (x < 1)
        return mt.where(mask, x, -x), x[i], mt.ops.argmax(x, axis=-1), mask.sum()

    assert_same(f, (randn(4, 5), mt.Tensor([0, 2])), (-randn(4, 5), mt.Tensor([1, 1])), graphs=1)


def test_random_numbers_continue_the_stream():
    def f(x):
        noise = mt.rand(3, 4)
        mt.randn(2)
        return mt.ops.dropout(x) + noise, mt.randint(0, 10, (5,)), mt.ops.rand_like(x)

    jitted = mt.jit(f)
    mt.manual_seed(0)
    expected = [bits(f(randn(3, 4))) for _ in range(4)]
    mt.manual_seed(0)
    assert [bits(jitted(randn(3, 4))) for _ in range(4)] == expected


def test_ops_in_python_and_plugins_of_programs_fuse():
    @mt.element_op(name="jit_test_op")
    def jit_test_op(x, scale=2.0):
        return x * mt.ops.exp(-x * scale)

    try:
        jitted = assert_same(lambda x: jit_test_op(x + 1, scale=0.5).tanh(), (randn(5),))
        assert len(jitted.graphs[0].ops) == 1
    finally:
        mt.unregister_custom_op_py("jit_test_op")


def test_a_python_op_that_reads_elements_is_one_call():
    @mt.custom_op(name="jit_test_numpy")
    def op(x):
        return mt.Tensor(np.sort(x.numpy())[::-1].copy())

    try:
        jitted = assert_same(lambda x: op(x * 2) + 1, (randn(5),), (-randn(5),), graphs=1)
        assert "jit_test_numpy" in jitted.graphs[0].ops
    finally:
        mt.unregister_custom_op_py("jit_test_numpy")


def test_nested_jit():
    inner = mt.jit(lambda x: x * 2)
    assert_same(lambda x: inner(x).exp() + inner(x + 1), (randn(3),), graphs=1)


def test_methods():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @mt.jit
        def __call__(self, x):
            return x * self.factor

    two, three = Scale(2.0), Scale(mt.full((3,), 3.0))
    for _ in range(2):
        np.testing.assert_array_equal(two(randn(3)).numpy(), randn(3).numpy() * 2)
        np.testing.assert_array_equal(three(randn(3)).numpy(), randn(3).numpy() * 3)
    two.factor = 5.0
    np.testing.assert_array_equal(two(randn(3)).numpy(), randn(3).numpy() * 5)


def test_half_precision_is_rounded_as_in_eager_mode():
    for dtype in ("float16", "bfloat16"):
        x = randn(6, 8).astype(dtype)
        assert_same(lambda x: mt.ops.softmax(x * 3 + 1, axis=-1).mean(axis=0) - x.sum(), (x,), graphs=1)


def test_repeated_and_unused_calls_are_removed():
    def f(x):
        _ = x.exp() @ x
        return (x @ x).sum() + (x @ x).sum()

    assert assert_same(f, (randn(3, 3),)).graphs[0].ops.count("linalg::matrix_product") == 1


def test_recorded_graphs_are_printed(monkeypatch, capsys):
    def double(x):
        return x * 2 + 1

    monkeypatch.setenv("MINITENSOR_LOG", "graph")
    mt.jit(double)(mt.ones(2, requires_grad=True))
    printed = capsys.readouterr().err
    assert printed.startswith(
        "# mt.jit test_recorded_graphs_are_printed.<locals>.double: recorded\ninput %0: float32 (2,)"
    )
    assert "double: gradient\n" in printed and "fused(multiply, add)(%0)" in printed
    monkeypatch.delenv("MINITENSOR_LOG")
    mt.jit(lambda x: x + 1)(mt.ones(2))
    assert capsys.readouterr().err == ""


def test_tensors_without_elements_have_shapes_and_dtypes_only():
    f = mt.jit(lambda x, y: (x @ y).tanh())
    for _ in range(2):
        result = f(mt.zeros((2, 3), device="meta"), mt.zeros((3, 4), device="meta"))
        assert (result.device, result.shape, result.dtype) == ("meta", (2, 4), mt.float32)

"""`mt.jit`: a graph computes what its function computes, and is recorded again when it would not."""

import gc
import itertools
import random
import types
import warnings

import numpy as np
import pytest

import minitensor as mt


def bits(value):
    """The bytes of all tensors in a result."""
    if isinstance(value, mt.Tensor):
        value = value.detach()
        return (value.astype("float32") if value.dtype == mt.bfloat16 else value).numpy().tobytes()
    if isinstance(value, dict):
        return {name: bits(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(item) for item in value]
    return value


def assert_same(f, *calls, graphs=None):
    """Each call of the function under `mt.jit` gives the bits that the function gives."""
    jitted = mt.jit(f)
    for args in calls:
        assert bits(jitted(*args)) == bits(f(*args))
    for args in reversed(calls):
        assert bits(jitted(*args)) == bits(f(*args))
    if graphs is not None:
        assert len(jitted.graphs) == graphs
    return jitted


def randn(*shape, **options):
    return mt.Tensor(np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype("float32"), **options)


class TestResults:
    def test_a_chain_is_one_fused_call(self):
        jitted = assert_same(lambda x, y: (x * 2 + y).tanh() * x.sigmoid() - 1, (randn(3, 4), randn(4)), graphs=1)
        assert jitted.graphs[0].ops == ["fused(multiply, add, tanh, sigmoid, multiply, subtract)"]

    def test_other_values_of_the_same_shape_use_the_same_graph(self):
        assert_same(lambda x: x.exp().sum(axis=0) / 2, (randn(3, 4),), (randn(3, 4) + 1,), (randn(3, 4) * 0,), graphs=1)

    def test_shapes_dtypes_and_layouts_have_graphs_of_their_own(self):
        x = randn(4, 4)
        calls = [(x,), (x[:2],), (x.astype("float64"),), (x.T,), (x[::2],), (x.astype("float16"),), (mt.arange(4),)]
        assert_same(lambda x: (x * x + 1).reshape(-1) * 2, *calls)

    def test_containers(self):
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

    def test_results_that_are_arguments_are_these_objects_memory(self):
        x = randn(3)
        jitted = mt.jit(lambda x: (x, x + 1))
        for _ in range(3):
            same, _ = jitted(x)
            same += 1
        np.testing.assert_array_equal(x.numpy(), randn(3).numpy() + np.float32(1) + np.float32(1) + np.float32(1))

    def test_results_share_no_memory_between_runs(self):
        constant = mt.jit(lambda x: (x * 0 + 1, mt.ones(3)))
        first = constant(randn(3))
        second = constant(randn(3))
        for t in (*first, *second):
            t += 1
        assert [t.tolist() for t in (*first, *second)] == [[2.0] * 3] * 4
        assert [t.tolist() for t in constant(randn(3))] == [[1.0] * 3] * 2

    def test_a_constant_that_is_changed_in_place_starts_again_in_each_run(self):
        def f(x):
            total = mt.zeros(3)
            for _ in range(3):
                total += x
            return total

        assert_same(f, (randn(3),), (randn(3) * 2,), graphs=1)

    def test_views_and_in_place_changes(self):
        def f(x):
            y = x * 2
            y[1:] += x[:-1]
            y.T[0] *= 3
            z = y + 1
            y[0, 0] = 7
            return y, z, y.sum(axis=0)

        assert_same(f, (randn(4, 4),), (randn(4, 4) + 3,), graphs=1)

    def test_changes_of_arguments_in_place(self):
        def f(x, y):
            x += y
            x[0] = 5
            return x * 2

        jitted = mt.jit(f)
        a, b = randn(4), randn(4)
        for _ in range(3):
            assert bits(jitted(a, randn(4))) == bits(f(b, randn(4)))
            assert bits(a) == bits(b)

    def test_aliased_arguments_have_a_graph_of_their_own(self):
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

    def test_integers_masks_and_indices(self):
        def f(x, i):
            mask = (x > 0) & (x < 1)
            return mt.where(mask, x, -x), x[i], mt.ops.argmax(x, axis=-1), mask.sum()

        assert_same(f, (randn(4, 5), mt.Tensor([0, 2])), (-randn(4, 5), mt.Tensor([1, 1])), graphs=1)

    def test_random_numbers_continue_the_stream(self):
        def f(x):
            noise = mt.rand(3, 4)
            mt.randn(2)
            return mt.ops.dropout(x) + noise, mt.randint(0, 10, (5,)), mt.ops.rand_like(x)

        jitted = mt.jit(f)
        mt.manual_seed(0)
        expected = [bits(f(randn(3, 4))) for _ in range(4)]
        mt.manual_seed(0)
        assert [bits(jitted(randn(3, 4))) for _ in range(4)] == expected

    def test_ops_in_python_and_plugins_of_programs_fuse(self):
        @mt.element_op(name="jit_test_op")
        def jit_test_op(x, scale=2.0):
            return x * mt.ops.exp(-x * scale)

        try:
            jitted = assert_same(lambda x: jit_test_op(x + 1, scale=0.5).tanh(), (randn(5),))
            assert len(jitted.graphs[0].ops) == 1
        finally:
            mt.unregister_custom_op_py("jit_test_op")

    def test_a_python_op_that_reads_elements_is_one_call(self):
        @mt.custom_op(name="jit_test_numpy")
        def op(x):
            return mt.Tensor(np.sort(x.numpy())[::-1].copy())

        try:
            jitted = assert_same(lambda x: op(x * 2) + 1, (randn(5),), (-randn(5),), graphs=1)
            assert "jit_test_numpy" in jitted.graphs[0].ops
        finally:
            mt.unregister_custom_op_py("jit_test_numpy")

    def test_nested_jit(self):
        inner = mt.jit(lambda x: x * 2)
        assert_same(lambda x: inner(x).exp() + inner(x + 1), (randn(3),), graphs=1)

    def test_methods(self):
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

    def test_half_precision_is_rounded_as_in_eager_mode(self):
        for dtype in ("float16", "bfloat16"):
            x = randn(6, 8).astype(dtype)
            assert_same(lambda x: mt.ops.softmax(x * 3 + 1, axis=-1).mean(axis=0) - x.sum(), (x,), graphs=1)

    def test_repeated_and_unused_calls_are_removed(self):
        def f(x):
            _ = x.exp() @ x
            return (x @ x).sum() + (x @ x).sum()

        assert assert_same(f, (randn(3, 3),)).graphs[0].ops.count("linalg::matrix_product") == 1


class TestGradients:
    def check(self, f, *inputs):
        """Gradients through a jitted function, and within one, are those of the function."""

        def gradients(f):
            leaves = [t.detach().clone().requires_grad_() for t in inputs]
            out = f(*leaves)
            (out * out).sum().backward()
            return [out, *(leaf.grad for leaf in leaves)]

        def inside(*tensors):
            leaves = [t.detach().clone().requires_grad_() for t in tensors]
            out = f(*leaves)
            return [out, *mt.grad((out * out).sum(), leaves)]

        jitted = mt.jit(f)
        for _ in range(3):
            assert bits(gradients(jitted)) == bits(gradients(f))
        assert_same(inside, inputs, tuple(t + 1 for t in inputs), graphs=1)
        return jitted

    def test_chain(self):
        self.check(lambda x, y: (x * y).tanh() * y.exp() + x, randn(3, 4), randn(4))

    def test_rows_and_products(self):
        self.check(lambda x, w: mt.ops.softmax(mt.ops.gelu(x @ w), axis=-1), randn(3, 4), randn(4, 5))

    def test_slices_and_in_place(self):
        def f(x):
            y = x * 2
            y[1:] = y[:-1].clone() * x[1:]
            y[0] *= 3
            return y

        self.check(f, randn(5))

    def test_convolution(self):
        def f(x, w):
            return mt.ops.relu(mt.ops.conv2d(x, w)).mean(axis=(2, 3))

        self.check(f, randn(2, 3, 6, 6), randn(4, 3, 3, 3))

    def test_gradient_of_a_gradient(self):
        def second(f):
            x = randn(4).requires_grad_()
            (g,) = mt.grad(f(x).sum(), x, create_graph=True)
            (h,) = mt.grad((g * g).sum(), x)
            return h.numpy()

        def f(x):
            return x.tanh() * x.exp()

        jitted = mt.jit(f)
        jitted(randn(4).requires_grad_())
        np.testing.assert_allclose(second(jitted), second(f), rtol=1e-5)
        assert mt.testing.gradcheck(jitted, randn(3).astype("float64"))

    def test_arguments_with_a_history(self):
        w = randn(3).requires_grad_()
        jitted = mt.jit(lambda x: x * x + w)
        for _ in range(3):
            w.grad = None
            jitted(w * 3).sum().backward()
            np.testing.assert_allclose(w.grad.numpy(), 18 * w.detach().numpy() + 1, rtol=1e-6)

    def test_recording_mode_is_part_of_the_kind_of_call(self):
        x = randn(3).requires_grad_()
        jitted = mt.jit(lambda x: x * 2)
        for _ in range(2):
            assert jitted(x).requires_grad
            with mt.no_grad():
                assert not jitted(x).requires_grad
            assert not jitted(x.detach()).requires_grad

    def test_hooks_of_parameters_run_once(self):
        w = randn(3).requires_grad_()
        w.register_hook(lambda g: g * 3)
        jitted = mt.jit(lambda x: (x * w).sum())
        for _ in range(3):
            w.grad = None
            jitted(mt.ones(3)).backward()
            assert w.grad.tolist() == [3, 3, 3]
            (g,) = mt.grad(jitted(mt.ones(3)), w, create_graph=True)
            assert g.tolist() == [3, 3, 3]

    def test_one_leaf_passed_twice(self):
        x = mt.Tensor([3.0], requires_grad=True)
        jitted = mt.jit(lambda x, y: x * y)
        for _ in range(3):
            x.grad = None
            jitted(x, x).sum().backward()
            assert x.grad.tolist() == [6]

    def test_an_argument_that_is_also_captured(self):
        p = mt.Tensor([2.0], requires_grad=True)
        jitted = mt.jit(lambda x: x * p)
        for factor, expected in ((1, 4), (2, 8), (3, 12), (1, 4)):
            p.grad = None
            y = jitted(p if factor == 1 else p * factor)
            y.sum().backward()
            assert (y.item(), p.grad.item()) == (4 * factor, expected)

    def test_views_of_a_captured_leaf_and_its_detached_copy(self):
        w = randn(2, 2).requires_grad_()

        def f(x):
            return (w.detach() * x).sum() + (w[::1] * w).sum() + (w.reshape(2, 2) * x).sum()

        def gradient(f):
            w.grad = None
            f(mt.ones((2, 2))).backward()
            return w.grad.numpy()

        jitted = mt.jit(f)
        for _ in range(3):
            np.testing.assert_array_equal(gradient(jitted), gradient(f))

    def test_backward_inside_on_arguments(self):
        def f(x, y):
            (x * x * y).sum().backward()
            return x.grad * 1

        jitted = mt.jit(f)
        a, b = (mt.Tensor([v], requires_grad=True) for v in (1.0, 2.0))
        c, d = (mt.Tensor([v], requires_grad=True) for v in (1.0, 2.0))
        for first, second in ((0, 1), (1, 0), (0, 0), (1, 1), (0, 1)):
            one, other = (a, b), (c, d)
            assert jitted(one[first], one[second]).tolist() == f(other[first], other[second]).tolist()
            assert [None if t.grad is None else t.grad.tolist() for t in one] == [
                None if t.grad is None else t.grad.tolist() for t in other
            ]

    def test_backward_inside_beyond_an_argument(self):
        p = randn(3).requires_grad_()
        with pytest.raises(RuntimeError, match="reaches an argument that has a history"):
            mt.jit(lambda x: (x * x).sum().backward())(p * 2)
        with pytest.raises(RuntimeError, match=r"use mt\.grad"):
            mt.jit(lambda x: (p * x).exp().sum().backward(create_graph=True))(randn(3))

    def test_hooks_that_are_added_later(self):
        w = randn(3).requires_grad_()
        jitted = mt.jit(lambda x: (x * w).sum().backward())
        for factor in (1, 1, 5, 5):
            if factor == 5 and not w.requires_grad:
                break
            w.grad = None
            jitted(mt.ones(3))
            assert w.grad.tolist() == [1, 1, 1]
        with w.register_hook(lambda g: g * 5):
            for _ in range(3):
                w.grad = None
                jitted(mt.ones(3))
                assert w.grad.tolist() == [5, 5, 5]

    def test_results_that_are_not_used(self):
        x = mt.Tensor([1.0, 2.0], requires_grad=True)
        c = mt.Tensor([float("inf"), 1.0])
        jitted = mt.jit(lambda x, c: (x @ c, x * 2))
        for _ in range(2):
            x.grad = None
            jitted(x, c)[1].sum().backward()
            assert x.grad.tolist() == [2, 2]

    def test_a_second_pass_through_a_released_graph_is_an_error(self):
        x = randn(3).requires_grad_()
        jitted = mt.jit(lambda x: x.exp())
        for _ in range(2):
            y = jitted(x).sum()
            y.backward()
            with pytest.raises(RuntimeError, match="retain_graph"):
                y.backward()

    def test_an_op_without_a_gradient_fails_in_the_backward_pass(self):
        x = randn(3).requires_grad_()
        jitted = mt.jit(
            lambda x: mt.ops.isfinite(x).astype("float32") + mt.ops.random.normal(key, (3,)) + mt.ops.ceil(x)
        )
        key = mt.Tensor([1, 2], dtype="uint64")
        for _ in range(2):
            jitted(x).sum().backward()
        assert not x.grad.numpy().any()

    def test_changing_a_saved_tensor_is_noticed(self):
        x = randn(3).requires_grad_()
        w = randn(3)
        jitted = mt.jit(lambda x: x * w)
        for _ in range(2):
            y = jitted(x)
            w += 1
            with pytest.raises(RuntimeError, match="changed in place"):
                y.sum().backward()


def mlp():
    mt.manual_seed(1)
    return mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.Function(mt.ops.gelu), mt.nn.Linear(8, 2))


class TestTraining:
    @pytest.mark.parametrize("make", [
        lambda p: mt.optim.SGD(p, lr=0.1),
        lambda p: mt.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: mt.optim.Adam(p, lr=0.01),
        lambda p: mt.optim.AdamW(p, lr=0.01),
    ])  # fmt: skip
    def test_a_step_with_an_optimizer(self, make):
        def run(wrap):
            model = mlp()
            optimizer = make(model.parameters())

            def step(x, y):
                optimizer.zero_grad()
                loss = ((model(mt.ops.dropout(x, p=0.1)) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
                return loss

            step = wrap(step)
            losses = []
            for i in range(8):
                if i == 5:
                    optimizer.lr *= 0.5
                losses.append(step(randn(6, 4) + i, randn(6, 2)).item())
            grads = [p.grad.tolist() for p in model.parameters()]
            return losses, {name: t.tolist() for name, t in model.state_dict().items()}, grads, optimizer.steps, step

        *eager, _ = run(lambda f: f)
        *jitted, step = run(mt.jit)
        assert jitted == eager
        assert sum(kind.recordings for kind in step._kinds.values()) <= 3

    def test_accumulated_gradients(self):
        def run(wrap):
            w = randn(4).requires_grad_()
            f = wrap(lambda x: ((x * w) ** 2).sum().backward())
            for i in range(5):
                f(randn(4) + i)
            return w.grad.tolist()

        assert run(mt.jit) == run(lambda f: f)

    def test_a_module_as_argument_and_its_mode(self):
        model = mt.nn.Sequential(mt.nn.Linear(4, 4), mt.nn.Function(mt.ops.tanh))
        jitted = mt.jit(lambda model, x: model(x) * (2 if model.training else 3))
        for mode in (True, False, True, False):
            model.train(mode)
            for _ in range(2):
                assert bits(jitted(model, randn(2, 4))) == bits(model(randn(2, 4)) * (2 if mode else 3))

    def test_replaced_parameters_are_used(self):
        model = mt.nn.Linear(4, 4)
        jitted = mt.jit(model)
        for i in range(3):
            model.weight = randn(4, 4).requires_grad_() if i else model.weight
            for _ in range(2):
                assert bits(jitted(randn(2, 4))) == bits(model(randn(2, 4)))
        model.load_state_dict({"weight": randn(4, 4) + 1, "bias": randn(4)})
        assert bits(jitted(randn(2, 4))) == bits(model(randn(2, 4)))

    def test_hidden_state_of_an_object(self):
        class Cell:
            def __init__(self):
                self.h = mt.zeros(3)

            def __call__(self, x):
                self.h = (self.h + x).tanh()
                return self.h * 1

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eager, cell = Cell(), Cell()
            jitted = mt.jit(cell)
            for i in range(20):
                assert bits(jitted(randn(3) + i)) == bits(eager(randn(3) + i))

    def test_a_new_optimizer_and_a_restored_one(self):
        def run(wrap):
            p = mt.Tensor([1.0], requires_grad=True)
            optimizer = mt.optim.Adam([p], lr=0.1)
            values = []

            def step(x):
                optimizer.zero_grad()
                ((p * x) ** 2).sum().backward()
                optimizer.step()

            step = wrap(step)
            initial = optimizer.state_dict()
            for i in range(24):
                if i == 5:
                    optimizer = mt.optim.Adam([p], lr=0.05)
                if i == 10:
                    kept = [dict(state) for state in optimizer.state]
                    saved = optimizer.state_dict()
                if i == 15:
                    optimizer.load_state_dict(saved)
                if i == 20:
                    optimizer.load_state_dict(initial)
                step(mt.ones(1))
                values.append(p.item())
            return values, [len(state) for state in kept]

        assert run(mt.jit) == run(lambda f: f)

    @pytest.mark.filterwarnings("ignore:mt.jit")
    def test_code_that_uses_the_state_of_an_optimizer(self):
        class Half(mt.optim.Adam):
            def _update(self, param, grad, state, numbers):
                super()._update(param, grad, state, {**numbers, "lr": numbers["lr"] / 2})

        def run(wrap, make, body):
            p = mt.Tensor([1.0], requires_grad=True)
            optimizer = make([p])
            step = wrap(lambda x: body(optimizer, p, x))
            results = []
            for i in range(20):
                if i == 10:
                    optimizer.lr = 0.01
                results.append(step(mt.ones(1)).item())
            return results, p.item()

        def plain(optimizer, p, x):
            optimizer.zero_grad()
            loss = ((p * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        def decaying(optimizer, p, x):
            optimizer.lr *= 0.9
            return plain(optimizer, p, x) * optimizer.steps

        for make, body in ((Half, plain), (mt.optim.SGD, decaying), (mt.optim.Adam, decaying)):
            assert run(mt.jit, make, body) == run(lambda f: f, make, body)

    def test_hooks_of_modules(self):
        model = mt.nn.Linear(2, 2)
        jitted = mt.jit(model)
        for _ in range(2):
            assert bits(jitted(randn(1, 2))) == bits(model(randn(1, 2)))
        with model.register_forward_hook(lambda module, args, output: output * 2):
            for _ in range(2):
                assert bits(jitted(randn(1, 2))) == bits(model(randn(1, 2)))
        assert bits(jitted(randn(1, 2))) == bits(model(randn(1, 2)))


SCALE = 2.0


class Scaled(mt.nn.Module):
    bias = 1.0

    def forward(self, x):
        return self.helper(x) + self.bias

    def helper(self, x):
        return x * SCALE


class TestState:
    def test_methods_and_classes_are_watched(self):
        global SCALE
        module = Scaled()
        jitted = mt.jit(module)
        for SCALE, Scaled.bias in ((2.0, 1.0), (3.0, 1.0), (3.0, 5.0), (2.0, 1.0)):
            for _ in range(2):
                assert jitted(mt.ones(1)).item() == SCALE + Scaled.bias

    def test_attributes_of_classes_and_modules(self):
        class Config:
            scale = 2.0

        module = types.ModuleType("jit_test_config")
        module.bias = 1.0
        jitted = mt.jit(lambda x: x * Config.scale + module.bias)
        for Config.scale, module.bias in ((2.0, 1.0), (3.0, 1.0), (3.0, 4.0)):
            for _ in range(2):
                assert jitted(mt.ones(1)).item() == Config.scale + module.bias

    def test_tensors_that_are_not_operands(self):
        d = {"m": mt.ones(2)}
        jitted = mt.jit(lambda x: x * 3 if d["m"] is None else x * d["m"].shape[0])
        for size in (2, None, 4, None, 5, 5):
            d["m"] = None if size is None else mt.ones(size)
            assert jitted(mt.ones(1)).item() == (3 if size is None else size)

    def test_signs_of_zeros(self):
        assert_same(lambda x: ((1 / (x * 0.0)).exp(), (1 / (x * -0.0)).exp()), (mt.ones(2),))

    def test_globals_closures_and_attributes_are_watched(self):
        factor = 2.0
        config = {"bias": 1.0}
        jitted = mt.jit(lambda x: x * factor + config["bias"])
        np.testing.assert_array_equal(jitted(mt.ones(2)).numpy(), [3, 3])
        factor = 3.0
        np.testing.assert_array_equal(jitted(mt.ones(2)).numpy(), [4, 4])
        config["bias"] = 5.0
        np.testing.assert_array_equal(jitted(mt.ones(2)).numpy(), [8, 8])

    def test_captured_tensors_are_read_in_each_run(self):
        w = mt.ones(2)
        jitted = mt.jit(lambda x: x * w)
        jitted(mt.ones(2))
        w += 1
        assert jitted(mt.ones(2)).tolist() == [2, 2]
        w = mt.full((2,), 5.0)
        assert jitted(mt.ones(2)).tolist() == [5, 5]

    def test_a_function_that_changes_its_own_state_runs_without_a_graph_in_the_end(self):
        count = [0]

        def f(x):
            count[0] += 1
            return x * count[0]

        jitted = mt.jit(f)
        with pytest.warns(RuntimeWarning, match=r"recorded 16 times .* count\[0\] changes"):
            assert [jitted(mt.ones(1)).item() for _ in range(20)] == list(range(1, 21))

    def test_an_op_that_is_registered_again(self):
        def define(factor):
            @mt.element_op(name="jit_test_again")
            def jit_test_again(x):
                return x * factor

        jitted = mt.jit(lambda x: mt.ops.jit_test_again(x) + 1)
        try:
            define(2.0)
            assert [jitted(mt.ones(1)).item() for _ in range(2)] == [3, 3]
            mt.unregister_custom_op_py("jit_test_again")
            with pytest.raises(AttributeError, match="jit_test_again"):
                jitted(mt.ones(1))
            define(5.0)
            assert [jitted(mt.ones(1)).item() for _ in range(2)] == [6, 6]
        finally:
            mt.unregister_custom_op_py("jit_test_again")

    def test_sizes_that_return_keep_their_graphs(self):
        calls = itertools.count()

        @mt.jit
        def total(x):
            next(calls)
            return (x * 2 + 1).sum()

        sizes = random.Random(5).choices(range(1, 200), k=2000)
        results = [total(mt.ones(n)).item() for n in sizes]
        assert results == [3 * n for n in sizes]
        assert next(calls) == len(total.graphs) == len(set(sizes))

    def test_more_sizes_than_graphs_that_are_kept(self):
        f = mt.jit(lambda x: (x * 2 + 1).sum())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # A size is recorded again in each round, because the others drop its graph.
            for _ in range(20):
                assert all(f(mt.ones(n)).item() == 3 * n for n in range(300))
        assert len(f.graphs) == 256
        assert f.graphs[-1].ops

    def test_graphs_do_not_keep_captured_tensors(self):
        w = [mt.ones(1000)]
        jitted = mt.jit(lambda x: x + w[0])
        jitted(mt.ones(1000))
        before = mt.memory_stats()["allocated"]
        w[0] = mt.full((1000,), 2.0)
        gc.collect()
        assert mt.memory_stats()["allocated"] <= before
        assert jitted(mt.ones(1000))[0].item() == 3


def peak(work):
    """Returns the peak of additionally allocated bytes, in units of one matrix of 512×512."""
    gc.collect()
    before = mt.memory_stats()["allocated"]
    mt.reset_peak_memory_stats()
    work()
    return (mt.memory_stats()["peak"] - before) / (512 * 512 * 4)


class TestMemory:
    """The first call, which records, needs about as much memory as the function itself."""

    def test_results_that_are_not_in_use_are_freed(self):
        def f(x):
            for _ in range(40):
                x = mt.ops.cumsum(x, axis=1).T * 0.01
            return x + 1

        x = randn(512, 512)
        eager, jitted = peak(lambda: f(x)), mt.jit(f)
        assert peak(lambda: jitted(x)) <= eager + 1.5
        assert peak(lambda: jitted(x)) <= eager + 0.5
        assert np.array_equal(jitted(x).numpy(), f(x).numpy())

    @pytest.mark.parametrize("reads", [1, 30])
    def test_a_training_step(self, reads):
        weights = [randn(512, 512).requires_grad_() for _ in range(4)]
        optimizer = mt.optim.SGD(weights, lr=1e-3)

        def step(x):
            for w in weights * 4:
                x = mt.ops.cumsum((x @ w).tanh(), axis=1) * 0.01
            loss = x.sum()
            for _ in range(reads):
                loss = loss + x.sin().mean().detach()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        x = randn(512, 512)
        step(x)
        eager, jitted = peak(lambda: step(x)), mt.jit(step)
        assert peak(lambda: jitted(x)) <= 1.3 * eager + 2

    def test_a_value_that_a_gradient_computes_again_is_kept(self):
        # The calls save the result of tanh. The graph saves the product instead, and computes tanh again.
        w = randn(512, 512).requires_grad_()

        def f(x):
            y = (x @ w + 1).tanh()
            for _ in range(10):
                mt.ops.cumsum(y, axis=1)
            return y.sum()

        x = randn(512, 512)
        jitted = mt.jit(f)
        gradients = []
        for function in (f, jitted, jitted):
            w.grad = None
            function(x).backward()
            gradients.append(w.grad.numpy())
        assert all(np.array_equal(gradient, gradients[0]) for gradient in gradients)


class TestErrors:
    @pytest.mark.parametrize(
        "read",
        [
            lambda x: x + 1 if x.sum() > 0 else x,
            lambda x: x * x.sum().item(),
            lambda x: x * float(x[0]),
            lambda x: x + mt.Tensor(x.tolist()),
            lambda x: x + mt.asarray(x.numpy()),
            lambda x: x + mt.Tensor(np.asarray(x) * 2),
            lambda x: (print(x), x)[1],
            lambda x: x + x.__dlpack__().__sizeof__(),
            lambda x: x + len(str(x)),
            lambda x: x + int(x.astype("int64").sum()),
        ],
        ids=lambda _: "",
    )
    def test_reading_elements_names_the_line(self, read):
        with pytest.raises(RuntimeError, match=r"test_jit.py, line \d+.*mt.where"):
            mt.jit(read)(randn(3))
        # The recording has ended.
        assert mt.jit(lambda x: x + 1)(mt.ones(1)).item() == 2

    def test_reading_a_captured_tensor(self):
        w = mt.ones(1)
        with pytest.raises(RuntimeError, match="reads the elements"):
            mt.jit(lambda x: x * w.item())(randn(3))

    def test_errors_of_the_function_pass_through(self):
        def f(x):
            if x.shape == (3,):
                raise KeyError("mine")
            return x

        jitted = mt.jit(f)
        for _ in range(2):
            with pytest.raises(KeyError, match="mine"):
                jitted(randn(3))
            assert jitted(randn(4)).shape == (4,)

    def test_errors_of_ops_are_those_of_eager_mode(self):
        jitted = mt.jit(lambda x, i: mt.ops.take(x, i, axis=0) * 2)
        assert jitted(randn(3), mt.Tensor([0])).shape == (1,)
        with pytest.raises(IndexError, match="take"):
            jitted(randn(3), mt.Tensor([5]))
        with pytest.raises(ValueError, match="multiply"):
            mt.jit(lambda x, y: x * y)(randn(3), randn(4))

    @pytest.mark.parametrize("f", [lambda x: x[x > 0], lambda x: mt.ops.nonzero(x > 0)[0] + 1])
    def test_sizes_that_depend_on_elements(self, f):
        jitted = mt.jit(f)
        x = mt.Tensor([1.0, -1.0])
        assert bits(jitted(x)) == bits(f(x))
        assert bits(jitted(x * 2)) == bits(f(x * 2))
        with pytest.raises(RuntimeError, match=r"op 'nonzero' returned shape .*mt\.where"):
            jitted(x * x)

    def test_an_array_inside(self):
        array = np.ones(3, "float32")
        for f in (lambda x: x + array, lambda x: x + mt.asarray(array), lambda x: x + mt.Tensor(array)):
            with pytest.raises(RuntimeError, match="reads an array of another library"):
                mt.jit(f)(randn(3))

    def test_seed_inside(self):
        with pytest.raises(RuntimeError, match="seed"):
            mt.jit(lambda x: (mt.manual_seed(0), x)[1])(randn(3))

    def test_arrays_are_not_arguments_or_results(self):
        with pytest.raises(TypeError, match=r"mt\.asarray"):
            mt.jit(lambda x: x)(np.ones(3))
        with pytest.raises(TypeError, match="returned a ndarray"):
            mt.jit(lambda x: np.ones(3))(randn(3))

    def test_a_recorded_change_of_an_argument(self):
        x = randn(3).requires_grad_()

        def f(x, y):
            y[0] = x[0]
            return y * 1

        with pytest.raises(RuntimeError, match="in place"):
            mt.jit(f)(x, randn(3))

    def test_other_results_and_changed_arguments(self):
        from collections import OrderedDict

        for f in (lambda x: OrderedDict(y=x), lambda x: (t for t in [x]), lambda x: {x.shape}):
            with pytest.raises(TypeError, match="expected tensors, plain values, and lists"):
                mt.jit(f)(randn(3))
        with pytest.raises(RuntimeError, match="changes a list or dict that is an argument"):
            mt.jit(lambda d, x: d.update(k=x))({}, randn(3))

    def test_not_a_function(self):
        with pytest.raises(TypeError, match=r"mt\.jit takes a function, got int"):
            mt.jit(3)

    def test_threads_record_independently(self):
        import threading

        jitted = mt.jit(lambda x: (x * 2).exp().sum())
        expected = (randn(100) * 2).exp().sum().item()
        wrong = []

        def work():
            wrong.extend(value for _ in range(50) if (value := jitted(randn(100)).item()) != expected)

        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not wrong


def scaled(k):
    return lambda x: x * k[0]


class WithDefault:
    scale = 1.0

    def __init__(self):
        self.own = 1.0

    def f(self, x):
        return x * self.own


class Layers(list):
    pass


def changes():
    """Functions with state, and changes of it that must be noticed: two parts of the state have the same name."""
    one, two, lacks = WithDefault(), WithDefault(), WithDefault()
    one.scale = 1.0
    yield "attribute and default", lambda x: x * one.scale, lambda: setattr(one, "scale", 5.0)
    yield "first time", lambda x: x * two.scale, lambda: setattr(two, "scale", 5.0)
    yield "getattr", lambda x: x * getattr(lacks, "k", 1.0), lambda: setattr(lacks, "k", 5.0)
    for i in range(2):
        cells = [1.0], [1.0]
        a, b = map(scaled, cells)
        yield f"closure {i}", lambda x, a=a, b=b: a(x) + b(x), lambda c=cells[i]: c.__setitem__(0, 5.0)
        owners = WithDefault(), WithDefault()
        f, g = (owner.f for owner in owners)
        yield f"method {i}", lambda x, f=f, g=g: f(x) + g(x), lambda o=owners[i]: setattr(o, "own", 5.0)
        pair = [scaled([1.0]), scaled([1.0])]
        yield f"list {i}", lambda x, p=pair: p[0](x) + p[1](x), lambda p=pair, i=i: p.__setitem__(i, scaled([9.0]))
    values = {1}
    yield "set", lambda x: x * len(values), lambda: values.add(2)
    layers = Layers([2.0])
    yield "subclass of list", lambda x: x * layers[0], lambda: layers.__setitem__(0, 3.0)


@pytest.mark.parametrize(("f", "change"), [pytest.param(f, change, id=name) for name, f, change in changes()])
def test_changes_of_state_are_noticed(f, change):
    x, jitted = randn(3), mt.jit(f)
    for _ in range(3):
        assert bits(jitted(x)) == bits(f(x))
    assert len(jitted.graphs) == 1
    change()
    assert bits(jitted(x)) == bits(f(x))


UNARY = ["exp", "tanh", "sigmoid", "sin", "negative", "square", "relu", "gelu", "softplus", "abs", "swish", "erf"]
KINDS = (
    ["unary"] * 5 + ["binary"] * 6 + ["number", "where", "row", "sum", "matmul", "view", "in place", "compare", "cast"]
)
BINARY = ["add", "multiply", "subtract", "maximum", "minimum", "atan2"]


def random_function(seed, size):
    """A function of `size` random calls."""
    rng = random.Random(seed)
    steps = []
    for _ in range(size):
        kind = rng.choice(KINDS)
        steps.append((kind, rng.choice(UNARY), rng.choice(BINARY), rng.random(), [rng.random() for _ in range(3)]))

    def f(*inputs):
        values = list(inputs)
        for kind, unary, binary, number, where in steps:
            a, b, c = (values[int(w * len(values))] for w in where)
            match kind:
                case "unary":
                    y = getattr(mt.ops, unary)(a)
                case "binary":
                    y = getattr(mt.ops, binary)(a, b)
                case "number":
                    y = a * number + 1
                case "where":
                    y = mt.where(a > b, c, b)
                case "compare":
                    y = mt.where((a > 0) & (b <= c), a, number)
                case "row":
                    y = mt.ops.softmax(a, axis=-1)
                case "sum":
                    y = a - a.mean(axis=0)
                case "matmul":
                    y = (a @ b.T) @ c * 0.1
                case "view":
                    y = a[:, :1] + b[1:2]
                case "cast":
                    y = a.astype(c.dtype) * b
                case _:
                    y = a * 1
                    y[1:] += b[:-1].astype(y.dtype)
                    y[0] *= number
            values.append(mt.ops.clamp(y, -3, 3))
        return values[-3:]

    return f


@pytest.mark.parametrize("dtypes", ["float32", "bfloat16", "float16", "float32 bfloat16 float16"])
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_agree(seed, dtypes):
    f = random_function(seed, 200)
    dtypes = (dtypes.split() * 3)[:3]
    inputs = [(randn(5, 6 - i % 1) + i).astype(dtype) for i, dtype in enumerate(dtypes)]

    def loss(*inputs):
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        results = f(*leaves)
        return results, mt.grad(sum(t.sum() for t in results), leaves, allow_unused=True)

    assert_same(f, inputs, [t * 0.5 for t in inputs], graphs=1)
    assert_same(loss, inputs, [t * 0.5 for t in inputs], graphs=1)

    def through(f, inputs):
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        results = [t for t in f(*leaves) if t.requires_grad]
        return results, mt.grad(sum(t.sum() for t in results), leaves, allow_unused=True) if results else ()

    jitted = mt.jit(f)
    for _ in range(2):
        _, got = through(jitted, inputs)
        _, expected = through(f, inputs)
        for a, b in zip(got, expected, strict=True):
            assert (a is None) == (b is None) or not (a if b is None else b).any()
            if a is not None and b is not None:
                # Terms of a gradient are added in another order.
                a, b = a.astype("float32").numpy(), b.astype("float32").numpy()
                np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-5)


def test_casts_and_half_floats_are_fused():
    def step(w, g, mask):
        updated = w.astype("float32") - 0.01 * g
        return mt.where(mask, updated, 0).astype("bfloat16"), updated.astype("float16") * 2

    w, g = randn(4, 300).astype("bfloat16"), randn(4, 300)
    jitted = assert_same(step, (w, g, g > 0), (w * 2, -g, g < 0), graphs=1)
    assert len(jitted.graphs[0].ops) == 1
    # float64 is computed in another dtype.
    assert len(assert_same(lambda x: (x * 2).astype("float64") * 3, (w,)).graphs[0].ops) == 3


def test_a_table_of_half_floats_is_an_argument():
    table, index = randn(5, 3).astype("float16"), mt.Tensor([[1, 2], [4, 0]])
    assert_same(lambda t, i: mt.ops.embedding(t, i) * 2, (table, index), (table + 1, index), graphs=1)


def check_against_eager(function, *inputs, order=2):
    """Compares results and derivatives of a function with those under `mt.jit`, in three calls with other numbers."""
    jitted = mt.jit(function)
    for k in range(3):
        found = []
        for f in (function, jitted):
            leaves = [mt.Tensor(np.asarray(x) + 0.25 * k, dtype="float64", requires_grad=True) for x in inputs]
            y, values = f(*leaves), []
            values.append(np.asarray(y.detach()))
            for _ in range(order):
                y = (y * y).sum()
                grads = mt.grad(y, leaves, create_graph=True, allow_unused=True)
                values += [np.asarray(g.detach()) for g in grads if g is not None]
                y = sum(((g * (i + 2.0)).sum() for i, g in enumerate(grads) if g is not None), mt.zeros(()))
                if not y.requires_grad:
                    break
            found.append(values)
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def changes_a_constant(x):
    t = mt.zeros(3, dtype="float64")
    t += x * x
    return t * mt.full((3,), 2.0, dtype="float64") + x


def test_a_constant_that_is_changed_is_not_folded():
    f = mt.jit(changes_a_constant)
    for k in range(3):
        x = mt.Tensor([1.0, 2.0, 3.0 + k], dtype="float64")
        np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(changes_a_constant(x)))


def test_the_gradient_reads_a_constant_as_it_was_changed():
    def function(x):
        t = mt.zeros(3)
        t += x * x
        return t * x

    f = mt.jit(function)
    for k in range(3):
        x = mt.Tensor([1.0, 2.0, 3.0 + k], requires_grad=True)
        assert mt.grad(f(x).sum(), x)[0].tolist() == (3 * x * x).tolist()


def test_a_captured_tensor_whose_history_leads_to_an_argument():
    x = mt.Tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    for _ in range(2):
        (grad,) = mt.grad(mt.jit(lambda x: x * h)(x).sum(), x, retain_graph=True)
        assert grad.tolist() == [6.0, 12.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.detach() * x,
        lambda x: x.detach().clone() * x * x,
        lambda x: (x * x).detach() * x * x,
        lambda x: x.detach().exp() * x.sin() + (x.exp().detach() * x),
        lambda x: mt.ops.where(x.detach() > 0, x * x.detach(), x),
    ],
)
def test_detached_tensors_in_derivatives(function):
    check_against_eager(function, [1.0, -2.0, 3.0], order=3)


def test_calls_without_gradients_in_derivatives():
    def function(x):
        with mt.no_grad():
            scale = (x * x).sum()
        return x * x * scale

    check_against_eager(function, [1.0, -2.0, 3.0], order=3)


def test_a_gradient_in_a_function_that_is_differentiated():
    def function(x):
        inner = x * x * x
        (slope,) = mt.grad(inner.sum(), x)
        return slope * x

    def second(x):
        (slope,) = mt.grad((x * x * x).sum(), x, create_graph=True)
        return slope * x

    for f in (function, second):
        check_against_eager(f, [1.0, -2.0, 3.0], order=2)


def test_a_detached_argument_is_a_result():
    f = mt.jit(lambda x: (x.detach(), x * 2))
    x = mt.ones(2, requires_grad=True)
    for _ in range(3):
        y, z = f(x)
        assert not y.requires_grad and z.requires_grad


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

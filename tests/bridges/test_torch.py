"""`minitensor.torch`: calls, compilation, transforms, export, and errors."""

import gc
import subprocess
import sys
import threading

import minitensor.torch as mtt
import pytest
import torch
import torch.nn.functional as F

import minitensor as mt


def compiled(f, **options):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager", **options)


def test_mt_ops_takes_and_returns_tensors_of_pytorch():
    x = torch.randn(5, requires_grad=True)
    y = mt.ops.swish(x)
    assert type(y) is torch.Tensor
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(F.silu(x).sum(), x)[0])
    assert type(mt.ops.concat([torch.ones(1), torch.ones(2)])) is torch.Tensor


def test_memory_is_shared_only_with_the_caller_s_knowledge():
    x = torch.arange(6.0).reshape(2, 3)
    for y in (mtt.reshape(x, [3, 2]), mtt.permute_dims(x, [1, 0]), mtt.sum(x.T[:1], axis=0)):
        assert y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
        assert y.is_contiguous()
    a, b = x[:1], x[1:]
    torch.testing.assert_close(mtt.add(a.T, b.T), a.T + b.T)
    torch.testing.assert_close(mtt.swish(x.T[::2, ::2]), F.silu(x.T[::2, ::2]))


def test_in_place_ops_change_the_tensor():
    p, m, g = torch.ones(3), torch.zeros(3), torch.full((3,), 2.0)
    before = p.data_ptr()
    mtt.sgd_step(p, m, g, lr=0.5, momentum=0.0)
    assert p.data_ptr() == before
    assert not torch.equal(p, torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(dtype):
    x = torch.linspace(-3, 3, 7, dtype=dtype, requires_grad=True)
    y = mtt.swish(x)
    assert y.dtype == dtype
    y.sum().backward()
    assert x.grad.dtype == dtype
    exact = F.silu(x.double())
    torch.testing.assert_close(y.double(), exact, rtol=2 * torch.finfo(dtype).eps, atol=1e-7)


def test_double_backward_and_gradcheck():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, dtype=torch.float64, requires_grad=True)
    for call in (mtt.layer_norm, torch.ops.minitensor.layer_norm):
        assert torch.autograd.gradcheck(lambda x, w, call=call: call(x, w), (x, w))
        assert torch.autograd.gradgradcheck(lambda x, w, call=call: call(x, w), (x, w))
    third = torch.autograd.functional.jacobian(
        lambda x: torch.autograd.functional.hessian(lambda x: mtt.swish(x).sum(), x, create_graph=True), x[0]
    )
    expected = torch.autograd.functional.jacobian(
        lambda x: torch.autograd.functional.hessian(lambda x: (x * torch.sigmoid(x)).sum(), x, create_graph=True), x[0]
    )
    torch.testing.assert_close(third, expected)


def normalized(x):
    # `F.layer_norm` has wrong second derivatives in forward mode.
    centered = x - x.mean(-1, keepdim=True)
    return centered * torch.rsqrt(centered.square().mean(-1, keepdim=True) + 1e-5)


TWINS = [
    (mtt.swish, F.silu),
    (mtt.tanh, torch.tanh),
    (mtt.softmax, lambda x: torch.softmax(x, -1)),
    (mtt.layer_norm, normalized),
    (lambda x: mtt.matmul(x, x.T), lambda x: x @ x.T),
    (lambda x: mtt.topk(x, 2)[0], lambda x: torch.topk(x, 2)[0]),
    (torch.ops.minitensor.swish, F.silu),
]


def scalar(f):
    return lambda x: (f(x) ** 2).sum()


@pytest.mark.parametrize(("ours", "theirs"), TWINS)
def test_transforms(ours, theirs):
    func = torch.func
    x, v = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    for transform in (
        lambda f: func.jvp(f, (x,), (v,))[1],
        lambda f: func.jacfwd(f)(x),
        lambda f: func.jacrev(f)(x),
        lambda f: func.jacfwd(func.jacrev(scalar(f)))(x),
        lambda f: func.jacrev(func.jacrev(scalar(f)))(x),
        lambda f: func.jacfwd(func.jacfwd(scalar(f)))(x),
        lambda f: func.jacrev(func.jacfwd(scalar(f)))(x),
        lambda f: torch.vmap(func.grad(scalar(f)))(torch.stack([x, v])),
    ):
        torch.testing.assert_close(transform(ours), transform(theirs))


@pytest.mark.parametrize(("ours", "theirs"), TWINS[:4])
def test_compiled_transforms(ours, theirs):
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    for transform in (torch.func.jacfwd, torch.func.hessian, lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1]):
        actual = compiled(transform(scalar(ours)))(x[0])
        torch.testing.assert_close(actual, transform(scalar(theirs))(x[0]))
    for transform in (torch.func.grad, lambda f: torch.vmap(torch.func.grad(f))):
        actual = compiled(transform(scalar(ours)))(x[0] if transform is torch.func.grad else x)
        expected = transform(scalar(theirs))(x[0] if transform is torch.func.grad else x)
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize(("ours", "theirs"), TWINS)
def test_forward_mode(ours, theirs):
    x, v = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    tangents = []
    for f in (ours, theirs):
        with torch.autograd.forward_ad.dual_level():
            found = f(torch.autograd.forward_ad.make_dual(x, v))
            tangents.append(torch.autograd.forward_ad.unpack_dual(found).tangent)
    torch.testing.assert_close(*tangents)


def test_lazy_conjugates_and_negatives_of_cotangents():
    z = torch.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    x = torch.randn(3, requires_grad=True)
    lazy = torch.tensor([1 + 2j, 3 - 4j, 5j]).conj().imag
    for ours, theirs in ((mtt.exp, torch.exp), (mtt.tanh, torch.tanh)):
        found = torch.autograd.grad(ours(z).conj().sum().real, z)
        torch.testing.assert_close(found, torch.autograd.grad(theirs(z).conj().sum().real, z))
        found = torch.autograd.grad(ours(x), x, lazy)
        torch.testing.assert_close(found, torch.autograd.grad(theirs(x), x, lazy))


def test_changes_in_place_are_seen_by_autograd():
    x = torch.randn(3, requires_grad=True)
    y = torch.exp(x)
    mtt.exp_(y.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    for call in (mtt.exp_, torch.ops.minitensor.exp_):
        for t in (x, x * 2):
            with pytest.raises(RuntimeError, match="op 'exp_' changes 'x' in place, which gradients"):
                call(t)
        t = torch.zeros(3)
        call(t)
        assert t.tolist() == [1, 1, 1] and t._version > 0
    with torch.no_grad():
        mtt.exp_(x)


def test_compiled_autograd():
    for ours, theirs in TWINS[:4]:
        gradients = []
        for f in (ours, theirs):
            x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
            with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
                scalar(f)(x).backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)


def test_empty_batches_and_batches_of_some_arguments():
    for f in (mtt.softmax, torch.func.grad(scalar(mtt.swish)), lambda x: mtt.topk(x, 1), lambda x: mtt.matmul(x, x.T)):
        shapes = [tuple(t.shape) for t in _flat(torch.vmap(f)(torch.ones(0, 2, 3)))]
        assert shapes == [(0, *t.shape) for t in _flat(f(torch.ones(2, 3)))]
    x, y = torch.randn(4, 3), torch.randn(2, 4, 3)
    for in_dims, args in (((None, 0), (x, y)), ((0, None), (y, x))):
        found = torch.vmap(mtt.cosine_similarity, in_dims)(*args)
        expected = torch.vmap(lambda a, b: F.cosine_similarity(a, b, -1), in_dims)(*args)
        torch.testing.assert_close(found, expected)


def _flat(results):
    return [results] if isinstance(results, torch.Tensor) else list(results)


def test_ops_do_not_reach_into_the_batch():
    for f, shape in (
        (mtt.softmax, (3,)),
        (lambda x: mtt.softmax(x, axis=-2), (3, 2)),
        (lambda x: mtt.softmax(x, axis=1), (3, 2)),
        (lambda x: mtt.var(x, axis=[-2]), (3, 2)),
        (mtt.layer_norm, (3,)),
        (mtt.tril, (3, 4)),
    ):
        x = torch.randn(shape)
        outcomes = []
        for run in (lambda f=f, x=x: f(x[0]), lambda f=f, x=x: torch.vmap(f)(x)):
            try:
                outcomes.append(tuple(run().shape))
            except (IndexError, ValueError) as error:
                outcomes.append(type(error))
        single, batched = outcomes
        assert batched == (single if isinstance(single, type) else (3, *single))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32, torch.bool, torch.complex64])
def test_numbers_adopt_the_dtype_of_their_variable(dtype):
    x, condition = torch.ones(2).to(dtype), torch.tensor([True, False])
    # minitensor has no complex numbers of two half floats.
    for value in (True, 3, 0.1) if dtype == torch.float16 else (True, 3, 0.1, 1j):
        expected = torch.where(condition, x, torch.tensor(value, dtype=torch.result_type(x, value)))
        found = mtt.where(condition, x, value)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    torch.testing.assert_close(compiled(lambda x: mtt.add(x, 1.5))(torch.ones(2)), torch.full((2,), 2.5))


def test_the_gradient_of_an_op_that_was_replaced_is_an_error():
    def define(f):
        @mt.custom_op(name="bridged::power")
        def power(x: mt.Tensor) -> mt.Tensor:
            return f(x)

    define(lambda x: x * x)
    x = torch.ones(2, requires_grad=True)
    y = mtt.bridged.power(x)
    mt.unregister_custom_op_py("bridged::power")
    define(lambda x: 10 * x * x * x)
    with pytest.raises(RuntimeError, match="op 'bridged::power' was unregistered or defined again"):
        y.sum().backward()
    mt.unregister_custom_op_py("bridged::power")


def test_attributes_of_recorded_calls_are_those_of_schemas():
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(mtt.logsumexp(x, axis=-1).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    (expected,) = torch.autograd.grad(torch.logsumexp(x, -1).sum(), x, create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(expected.square().sum(), x)[0])


def test_gradients_of_each_example():
    x = torch.randn(3, 4, dtype=torch.float64)
    w = torch.randn(4, dtype=torch.float64)
    torch.testing.assert_close(torch.vmap(mtt.softmax)(x), torch.softmax(x, -1))
    func = torch.func
    per_example = torch.vmap(func.grad(lambda w, x: mtt.layer_norm(x, w).square().sum()), in_dims=(None, 0))(w, x)
    expected = torch.vmap(func.grad(lambda w, x: F.layer_norm(x, (4,), w).square().sum()), in_dims=(None, 0))(w, x)
    torch.testing.assert_close(per_example, expected)


def test_a_result_that_the_gradient_reads_is_kept():
    # `softmax` runs once; without its result, the gradient would run it again.
    x = torch.randn(3, 4, requires_grad=True)
    with mt.profiler.profile() as p:
        mtt.softmax(x).sum().backward()
    assert [event.name for event in p.events()].count("softmax") == 1


@pytest.mark.parametrize("in_dims", [(0, None), (None, 1), (1, 0), (2, 2)])
def test_batches_of_broadcast_ops(in_dims):
    x, y = torch.randn(4, 4, 4), torch.randn(4, 4, 4)
    x, y = (t if dim is not None else t[0, 0] for t, dim in zip((x, y), in_dims, strict=True))
    torch.testing.assert_close(torch.vmap(mtt.add, in_dims)(x, y), torch.vmap(torch.add, in_dims)(x, y))


def test_inductor_and_export(tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x):
            return mtt.layer_norm(mtt.swish(torch.relu(x) * 2))

    model, x = Model(), torch.randn(7, 6)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, fullgraph=True)(x), model(x))
    shapes = {"x": {0: torch.export.Dim("batch")}}
    exported = torch.export.export(model, (torch.randn(4, 6),), dynamic_shapes=shapes)
    torch.testing.assert_close(exported.module()(x), model(x))
    names = {node.target for node in exported.graph.nodes if node.op == "call_function"}
    assert torch.ops.minitensor.swish.default in names
    package = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
    torch.testing.assert_close(torch._inductor.aoti_load_package(package)(x), model(x))


def test_autocast():
    linear = torch.nn.Linear(6, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = linear(torch.randn(4, 6))
        assert hidden.dtype == torch.bfloat16
        # A weight of float32 promotes, as it does without autocast.
        assert mtt.layer_norm(hidden, torch.ones(6)).dtype == torch.float32
        assert mtt.swish(hidden).dtype == torch.bfloat16


ERRORS = [
    (lambda: mtt.swish("a"), TypeError, "op 'swish': input 'x' must be a tensor, got str"),
    (lambda: mtt.swish(torch.ones(3), beta=1), TypeError, "op 'swish' has no argument 'beta'"),
    (lambda: mtt.softmax(torch.ones(3), axis=7), IndexError, "op 'softmax': axis 7 is out of range"),
    (lambda: torch.ops.minitensor.softmax(torch.ones(3), 7), IndexError, "op 'softmax': axis 7 is out of range"),
    (lambda: mtt.layer_norm(torch.ones(3, 4), torch.ones(5)), ValueError, "expected size 4 for dimension n, got 5"),
    (lambda: mtt.swish(torch.ones(3, dtype=torch.complex64)), TypeError, "op 'swish': 'x' takes"),
    (lambda: compiled(lambda x: mtt.softmax(x, axis=7))(torch.ones(3)), Exception, "axis 7 is out of range"),
    (
        lambda: compiled(lambda x: mtt.swish(x, x, x))(torch.ones(3)),
        Exception,
        r"op 'swish' was called with wrong arguments; its signature is \(x\)",
    ),
    (
        lambda: compiled(lambda x: mtt.softmax(x, nope=1))(torch.ones(3)),
        Exception,
        r"op 'softmax' was called with wrong arguments; its signature is \(x, axis=-1\)",
    ),
    # The fake of an in-place op.
    (
        lambda: compiled(lambda x: mtt.add_(x, torch.ones(2, 3)))(torch.ones(3)),
        Exception,
        r"op 'add_' changes 'x' in place, but its shape \(3,\) differs from the shape \(2, 3\) of the result",
    ),
    (lambda: mtt.swish(torch.ones(3).to(torch.float8_e4m3fn)), TypeError, "no tensor has the dtype float8_e4m3fn"),
    (lambda: mtt.swish(torch.ones(3).to(torch.complex32)), TypeError, "no tensor has the dtype complex32"),
    (
        lambda: mtt.swish(torch.ones(3).to_sparse()),
        NotImplementedError,
        "got torch.sparse_coo torch.float32 on 'cpu'; convert them",
    ),
    (lambda: mtt.swish(), TypeError, "op 'swish': missing argument 'x'"),
    (lambda: mtt.swish(None), TypeError, "op 'swish': input 'x' must be a tensor, got NoneType"),
    (lambda: mtt.concat([]), ValueError, "op 'concat'"),
    (lambda: mtt.register("my ops"), ValueError, "a namespace of PyTorch must be an identifier, got 'my ops'"),
    (lambda: mtt.nope, AttributeError, "'minitensor.torch' has no op .nope."),
    (lambda: mtt.register("minitensor", "other"), ValueError, "already|choose another namespace"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_an_op_without_a_gradient_says_why():
    x = torch.ones(3, requires_grad=True)
    for call in (mtt.sign, mtt.floor):
        if mtt.registration.find(call.__name__).definition.no_gradient:
            with pytest.raises(RuntimeError, match="has no gradient"):
                call(x).sum().backward()


@pytest.mark.parametrize("call", [mt.ops, mtt])
def test_the_tensors_of_a_list_may_be_arguments_of_their_own(call):
    @mt.custom_op(name="bridged::mixed")
    def _mixed(a, *others, by: float = 1.0):
        return a + sum(others) * by

    @mt.custom_op(name="bridged::total")
    def _total(*parts):
        return sum(parts)

    x, mixed, total = torch.ones(2), call.bridged.mixed, call.bridged.total
    for found in (mixed(x, x, x, by=2.0), mixed(x, [x, x], 2.0), mixed(x, x, x, 2.0), mixed(x, others=(x, x), by=2.0)):
        assert found.tolist() == [5, 5]
    assert total(x, x).tolist() == total([x, x]).tolist() == [2, 2]
    assert torch.func.grad(lambda x: mtt.bridged.total(x, x).sum())(x).tolist() == [2, 2]
    assert compiled(lambda x: mtt.bridged.mixed(x, x, by=3.0))(x).tolist() == [4, 4]


def test_ops_of_python_are_added_replaced_and_removed():
    @mt.custom_op(name="bridged::twice")
    def twice(x: mt.Tensor) -> mt.Tensor:
        return x + x

    x = torch.ones(3)
    assert mtt.bridged.twice(x).tolist() == [2, 2, 2]
    assert torch.ops.minitensor.bridged__twice(x).tolist() == [2, 2, 2]
    g = compiled(lambda x: mtt.bridged.twice(x) + 1)
    assert g(x).tolist() == [3, 3, 3]

    mt.unregister_custom_op_py("bridged::twice")
    with pytest.raises(RuntimeError, match="op 'bridged::twice' was unregistered"):
        g(x)

    @mt.custom_op(name="bridged::twice")
    def failing(x: mt.Tensor) -> mt.Tensor:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        mtt.bridged.twice(x)
    mt.unregister_custom_op_py("bridged::twice")


def test_an_op_of_pytorch_that_is_held_gets_a_new_definition():
    def define(k):
        @mt.element_op(name="bridged::scaled")
        def scaled(x):
            return x * k

    define(2.0)
    held = torch.ops.minitensor.bridged__scaled
    held_overload, g = held.default, compiled(lambda x: torch.ops.minitensor.bridged__scaled(x) + 1)
    x = torch.ones(2, requires_grad=True)
    assert held(x).tolist() == [2, 2] and g(x).tolist() == [3, 3]
    for k in (3.0, 4.0):
        mt.unregister_custom_op_py("bridged::scaled")
        with pytest.raises(RuntimeError, match="op 'bridged::scaled' was unregistered"):
            held(x)
        define(k)
        gc.collect()
        for f in (held, held_overload, torch.ops.minitensor.bridged__scaled, mtt.bridged.scaled):
            y = f(x)
            assert y.tolist() == [k, k] and torch.autograd.grad(y.sum(), x)[0].tolist() == [k, k]
            assert torch.func.vmap(f)(x.detach()).tolist() == [k, k]
    mt.unregister_custom_op_py("bridged::scaled")


def test_threads_and_repeated_registration():
    errors = []

    def work():
        try:
            for _ in range(20):
                mtt.register()
                x = torch.randn(4, 4, requires_grad=True)
                mtt.softmax(x).square().sum().backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert errors == []


def test_a_forked_worker_calls_ops():
    code = (
        "import os, torch, minitensor.torch as mtt\n"
        "mtt.swish(torch.ones(3))\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(0 if mtt.swish(torch.ones(3)).shape == (3,) else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_results_keep_their_names_with_a_gradient():
    x = torch.randn(4, 5)
    for op in (mtt.topk, mt.ops.topk):
        plain, recorded = op(x, 2), op(x.clone().requires_grad_(), 2)
        assert type(plain) is type(recorded)
        assert recorded._fields == ("values", "indices") and torch.equal(recorded.values, plain.values)
        recorded.values.sum().backward()
        assert torch.func.vmap(lambda row, op=op: op(row, 2))(x).indices.shape == (4, 2)


def test_the_import_without_pytorch_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None\nimport minitensor.torch"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "ImportError: minitensor.torch needs PyTorch, which is not installed; install it with" in result.stderr


def test_training_a_transformer_block_gives_the_losses_of_pytorch():
    def losses(norm, activation, loss, run):
        torch.manual_seed(0)
        embed = torch.nn.Embedding(20, 16)
        attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        up, down, head = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16), torch.nn.Linear(16, 20)
        weights = [torch.nn.Parameter(torch.ones(16)) for _ in range(2)]
        modules = torch.nn.ModuleList([embed, attention, up, down, head])
        optimizer = torch.optim.AdamW([*modules.parameters(), *weights], 1e-2)
        tokens = torch.randint(20, (8, 10))

        def step(tokens):
            x = embed(tokens)
            y = norm(x, weights[0])
            x = x + attention(y, y, y, need_weights=False)[0]
            x = x + down(activation(up(norm(x, weights[1]))))
            return loss(head(x[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

        step, found = run(step), []
        for _ in range(5):
            value = step(tokens)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            found.append(value.item())
        return found

    torch._dynamo.reset()
    theirs = losses(lambda x, w: F.layer_norm(x, (16,), w), F.silu, F.cross_entropy, lambda f: f)
    for run in (lambda f: f, lambda f: torch.compile(f, fullgraph=True)):
        ours = losses(mtt.layer_norm, mtt.swish, mtt.cross_entropy, run)
        assert ours == pytest.approx(theirs, rel=1e-4)
        assert ours[-1] < ours[0]

"""Tests of modules: parameters, calls, conversion, saving and loading."""

import copy
import io
import pickle

import numpy as np
import pytest

import minitensor as mt
from minitensor import nn


class Scale(nn.Module):
    def __init__(self, n=2):
        self.factor = mt.ones(n, requires_grad=True)
        self.register_buffer("calls", mt.zeros((), dtype="int64"))

    def forward(self, x):
        self.calls += 1
        return x * self.factor


def model():
    return nn.Sequential(nn.Linear(2, 4), mt.ops.tanh, nn.Sequential(Scale(4), nn.Linear(4, 1)))


def names(pairs):
    return [name for name, _ in pairs]


def test_parameters_buffers_and_submodules_are_determined_by_type():
    m = model()
    assert names(m.named_parameters()) == ["0.weight", "0.bias", "2.0.factor", "2.1.weight", "2.1.bias"]
    assert names(m.named_parameters("net")) == ["net." + name for name in names(m.named_parameters())]
    assert names(m.named_buffers()) == ["2.0.calls"]
    assert names(m.named_children()) == ["0", "1", "2"]
    assert names(m.named_modules()) == ["", "0", "1", "2", "2.0", "2.1"]
    assert [type(c).__name__ for c in m.children()] == ["Linear", "Function", "Sequential"]
    assert len(list(m.parameters())) == 5 and len(list(m.buffers())) == 1 and len(list(m.modules())) == 6
    assert list(m.parameters(recurse=False)) == [] and names(m[0].named_parameters(recurse=False)) == ["weight", "bias"]


def test_results_and_tensors_without_gradient_are_not_parameters():
    m = nn.Module()
    m.plain, m.result, m.word = mt.zeros(1), mt.zeros(1, requires_grad=True) * 2, "word"
    assert list(m.parameters()) == [] and m.state_dict() == {}


def test_a_parameter_is_created_from_any_data():
    p = nn.Parameter([1.0, 2.0])
    assert p.is_leaf and p.requires_grad and p.tolist() == [1.0, 2.0]
    q = nn.Parameter(p * 2)
    assert q.is_leaf and q.requires_grad and q.tolist() == [2.0, 4.0]
    m = nn.Module()
    m.register_parameter("frozen", nn.Parameter([1.0], requires_grad=False))
    m.register_parameter("absent", None)
    assert names(m.named_parameters()) == ["frozen"]
    m.absent = nn.Parameter([1.0], requires_grad=False)
    assert names(m.named_parameters()) == ["frozen", "absent"]


def test_shared_parameters_are_listed_once():
    m = nn.Module()
    m.a, m.b = nn.Linear(3, 3), nn.Linear(3, 3)
    m.b.weight = m.a.weight
    m.c = m.a
    assert names(m.named_parameters()) == ["a.weight", "a.bias", "b.bias"]
    assert names(m.named_modules()) == ["", "a", "b"]
    assert names(m.named_children()) == ["a", "b"]
    mt.optim.SGD(m.parameters())


def test_attributes_keep_their_kind():
    m = Scale()
    m.factor = mt.zeros(2)
    m.calls = mt.ones(())
    assert names(m.named_parameters()) == ["factor"] and names(m.named_buffers()) == ["calls"]
    m.factor = None
    assert list(m.parameters()) == []
    m.factor = mt.ones(3)
    assert names(m.named_parameters()) == ["factor"]
    m.factor = nn.Linear(1, 1)
    assert names(m.named_children()) == ["factor"]
    del m.factor
    assert not hasattr(m, "factor") and list(m.children()) == []


WRONG = [
    (lambda m: setattr(m, "factor", 1), TypeError, "'factor' is a parameter; set it to a Tensor or None, got int"),
    (lambda m: setattr(m, "factor", mt.ones(2, requires_grad=True) * 2), ValueError, "cannot be the result of an op"),
    (lambda m: setattr(m, "calls", 1.0), TypeError, "'calls' is a buffer; set it to a Tensor or None, got float"),
    (lambda m: setattr(m, "part", mt.ones(1)), TypeError, "'part' is a module; set it to a Module or None, got Tensor"),
    (lambda m: m.register_parameter("factor", 3), TypeError, "'factor' must be a Tensor or None, got int"),
    (lambda m: m.register_buffer("forward", mt.ones(1)), ValueError, "already has an attribute 'forward'"),
    (
        lambda m: m.register_buffer("a.b", mt.ones(1)),
        ValueError,
        "a name must be a non-empty string without dots, got 'a.b'",
    ),
    (lambda m: m.add_module("", nn.Module()), ValueError, "a name must be a non-empty string without dots, got ''"),
    (lambda m: m.add_module("x", mt.ones(1)), TypeError, "'x' must be a Module or None, got Tensor"),
    (lambda m: m.train("yes"), TypeError, "train takes True or False, got str"),
    (lambda m: m.to("int32"), TypeError, "converted to floating-point and complex dtypes only, got int32"),
    (lambda m: m.to("nowhere"), ValueError, "unknown device 'nowhere'"),
    (lambda m: m.to("float32", device="cpu"), TypeError, "use the keywords dtype and device"),
    (lambda m: m.register_forward_hook(3), TypeError, "a hook must be callable, got int"),
    (lambda m: nn.Module()(1), NotImplementedError, "Module has no forward method; define"),
    (lambda m: nn.Linear(-1, 1), ValueError, "in_features must be an integer of at least 0, got -1"),
    (lambda m: nn.Linear(1, 2.0), ValueError, "out_features must be an integer of at least 0, got 2.0"),
    (lambda m: nn.Linear(3, 1)(mt.ones(2)), ValueError, r"last axis has length 3, got shape \(2,\)"),
    (lambda m: nn.Sequential(3), TypeError, "Sequential contains Modules and functions, got int"),
    (lambda m: nn.Sequential(nn.Linear), TypeError, "got the class Linear; instantiate it"),
    (lambda m: nn.ModuleList([mt.ops.relu]), TypeError, "ModuleList contains Modules, got builtin_function"),
    (lambda m: nn.ModuleList(nn.Linear(1, 1)), TypeError, "takes a list of Modules, got Linear"),
    (lambda m: nn.ModuleList()[0], IndexError, "index 0 is out of range for 0 modules"),
    (lambda m: nn.ModuleDict({"a": 1}), TypeError, "ModuleDict contains Modules, got int for 'a'"),
    (lambda m: nn.ModuleDict({"forward": nn.Module()}), ValueError, "already has an attribute 'forward'"),
    (lambda m: nn.Function(1), TypeError, "takes a callable, got int"),
    (lambda m: m.load_state_dict([1]), TypeError, "a state must be a mapping of names to tensors, got list"),
]


@pytest.mark.parametrize(("use", "error", "words"), WRONG, ids=[words for *_, words in WRONG])
def test_invalid_use_raises_with_a_clear_message(use, error, words):
    m = Scale()
    m.part = nn.Module()
    before = m.state_dict()
    with pytest.raises(error, match=words):
        use(m)
    assert {n: t.tolist() for n, t in m.state_dict().items()} == {n: t.tolist() for n, t in before.items()}


def test_train_and_eval_apply_to_all_submodules():
    m = model()
    assert m.training
    assert m.eval() is m and not any(part.training for part in m.modules())
    assert m[2].train() is m[2] and m[2][0].training and not m.training


def test_apply_visits_submodules_first_and_once():
    m = model()
    m.again = m[2]
    seen = []
    assert m.apply(seen.append) is m
    assert seen == [m[0], m[1], m[2][0], m[2][1], m[2], m]


def test_gradients_are_reset_and_parameters_frozen():
    m = model()
    m(mt.ones((3, 2))).sum().backward()
    assert all(p.grad is not None for p in m.parameters())
    m.zero_grad(set_to_none=False)
    assert all(not p.grad.numpy().any() for p in m.parameters())
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())
    assert m.requires_grad_(False) is m
    assert not m(mt.ones((3, 2))).requires_grad and len(list(m.parameters())) == 5
    m.requires_grad_()
    assert m(mt.ones((3, 2))).requires_grad


def test_hooks_see_and_replace_inputs_and_outputs():
    m = nn.Function(mt.ops.relu)
    seen = []
    before = m.register_forward_pre_hook(lambda module, args: seen.append((module, args)))
    doubled = m.register_forward_pre_hook(lambda module, args: args[0] * 2)
    after = m.register_forward_hook(lambda module, args, output: output + args[0])
    x = mt.Tensor([1.0])
    assert m(x).item() == 4.0
    assert seen[0][0] is m and seen[0][1] == (x,)
    doubled.remove()
    doubled.remove()
    assert m(x).item() == 2.0
    after.remove()
    before.remove()
    assert m(x).item() == 1.0 and len(seen) == 2
    with m.register_forward_hook(lambda *_: None):
        assert m(x).item() == 1.0


def test_to_converts_floats_and_keeps_sharing_and_gradients():
    m = model()
    m[2][1].bias = m[2][1].bias
    m.tied = m[0].weight
    m(mt.ones((3, 2))).sum().backward()
    before = m[0].weight
    assert m.to("float32")[0].weight is before
    assert m.to("float64") is m
    assert {p.dtype for p in m.parameters()} == {mt.float64}
    assert m[2][0].calls.dtype == mt.int64
    assert m.tied is m[0].weight and m.tied.is_leaf and m.tied.requires_grad
    assert m.tied.grad.dtype == mt.float64 and np.allclose(m.tied.grad.numpy(), before.grad.numpy())
    assert m(mt.ones((3, 2), dtype="float64")).dtype == mt.float64
    assert m.to(dtype="float32", device="meta")[0].weight.device == "meta"
    m = nn.Linear(1, 1).to("complex64")
    with pytest.raises(TypeError, match="cannot be converted to float32; use complex64"):
        m.to("float32")


def test_a_state_is_saved_by_numpy_and_loaded_in_place():
    m, other = model(), model()
    m(mt.ones((3, 2)))
    kept = list(other.parameters())
    file = io.BytesIO()
    np.savez(file, **m.state_dict())
    file.seek(0)
    assert other.load_state_dict(np.load(file)) == ([], [])
    assert all(a is b for a, b in zip(kept, other.parameters(), strict=True))
    assert other[2][0].calls.item() == 1
    x = mt.ones((3, 2))
    assert other(x).tolist() == m(x).tolist()
    saved = m.state_dict()
    with mt.no_grad():
        m[0].weight.copy_(mt.zeros((4, 2)))
    assert saved["0.weight"].numpy().any()


def test_numbers_are_converted_without_loss_of_kind():
    m = nn.Linear(2, 1)
    m.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": [3]})
    assert m.weight.dtype == mt.float32 and m.bias.tolist() == [3.0]


def misfits():
    weight, bias = np.zeros((1, 2), np.float32), np.zeros(1, np.float32)
    return [
        ({"weight": weight}, "missing: bias"),
        ({"weight": weight, "bias": bias, "extra": bias}, "unexpected: extra"),
        ({"weight": weight, "bias": np.zeros(2)}, r"'bias': the module's shape is \(1,\), the saved one \(2,\)"),
        ({"weight": weight, "bias": bias * 1j}, "'bias': the module's dtype is float32, which cannot store complex64"),
        ({"weight": weight, "bias": mt.zeros(1, device="meta")}, "the module's tensor is on 'cpu', the saved one on"),
        ({"weight": weight, "bias": "word"}, "'bias': "),
    ]


@pytest.mark.parametrize(("saved", "words"), misfits(), ids=[words for _, words in misfits()])
def test_a_state_that_does_not_match_changes_nothing(saved, words):
    m = nn.Linear(2, 1)
    before = m.weight.tolist(), m.bias.tolist()
    with pytest.raises(ValueError, match=words):
        m.load_state_dict(saved)
    assert (m.weight.tolist(), m.bias.tolist()) == before


def test_all_differences_are_reported_at_once():
    with pytest.raises(ValueError) as caught:
        nn.Linear(2, 1).load_state_dict({"weight": np.zeros(3), "b": np.zeros(1)})
    assert "missing: bias" in str(caught.value)
    assert "unexpected: b" in str(caught.value)
    assert "'weight': the module's shape" in str(caught.value)


def test_an_incomplete_state_is_loaded_if_not_strict():
    m = nn.Linear(2, 1)
    keys = m.load_state_dict({"weight": np.ones((1, 2)), "b": 0}, strict=False)
    assert keys.missing == ["bias"] and keys.unexpected == ["b"]
    assert m.weight.tolist() == [[1.0, 1.0]]


def test_a_read_only_parameter_is_detected_before_any_is_written():
    m = nn.Module()
    array = np.zeros(2)
    array.flags.writeable = False
    m.first = nn.Parameter([1.0])
    m.register_parameter("second", mt.asarray(array, copy=False))
    with pytest.raises(ValueError, match="read-only"):
        m.load_state_dict({"first": np.zeros(1), "second": np.zeros(2)})
    assert m.first.item() == 1.0


def test_shared_parameters_are_saved_under_both_names_which_must_agree():
    m = nn.Module()
    m.a, m.b = nn.Linear(2, 2), nn.Linear(2, 2)
    m.b.weight = m.a.weight
    saved = m.state_dict()
    assert list(saved) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    m.load_state_dict(saved)
    saved["b.weight"] = mt.zeros((2, 2))
    with pytest.raises(ValueError, match=r"'b.weight' and 'a.weight' are one tensor in the module, but differ"):
        m.load_state_dict(saved)


def test_buffers_may_be_passing():
    m = nn.Module()
    m.register_buffer("kept", mt.zeros(1))
    m.register_buffer("passing", mt.zeros(1), persistent=False)
    assert names(m.named_buffers()) == ["kept", "passing"] and list(m.state_dict()) == ["kept"]


def test_the_repr_shows_the_submodules():
    m = nn.ModuleDict({"body": nn.Sequential(nn.Linear(2, 3, bias=False), mt.ops.relu), "head": Scale()})
    assert repr(m) == (
        "ModuleDict(\n"
        "  (body): Sequential(\n"
        "    (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "    (1): Function(relu)\n"
        "  )\n"
        "  (head): Scale()\n"
        ")"
    )


def test_modules_are_copied_and_pickled_with_what_they_share():
    m = nn.Sequential(nn.Linear(2, 2), mt.ops.relu, nn.Linear(2, 2))
    m[2].weight = m[0].weight
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other[2].weight is other[0].weight is not m[0].weight
        x = mt.ones((1, 2))
        assert other(x).tolist() == m(x).tolist()
        assert len(list(other.parameters())) == 3


def test_sequential_is_a_list():
    a, b, c = nn.Linear(1, 2), nn.Linear(2, 3), nn.Linear(3, 4)
    m = nn.Sequential(a, c)
    assert m.insert(1, b) is m
    assert list(m) == [a, b, c] and len(m) == 3 and m[-1] is c
    assert list(m[1:]) == [b, c] and isinstance(m[1:], nn.Sequential)
    assert names(m.named_children()) == ["0", "1", "2"]
    del m[0]
    m[0] = mt.ops.relu
    m += [a]
    assert [type(part).__name__ for part in m] == ["Function", "Linear", "Linear"]
    assert names(m.append(b).named_children()) == ["0", "1", "2", "3"]
    named = nn.Sequential({"first": a, "second": b})
    assert names(named.named_children()) == ["first", "second"]
    assert names(named.append(c).insert(0, mt.ops.relu).named_children()) == ["0", "first", "second", "3"]


def test_module_lists_and_dicts_contain_modules():
    items = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))
    assert len(list(items.parameters())) == 6 and len(items[::2]) == 2
    with pytest.raises(NotImplementedError, match="ModuleList has no forward"):
        items(1)
    table = nn.ModuleDict([("a", items[0])])
    table.update({"b": items[1]})
    assert list(table) == list(table.keys()) == ["a", "b"] and len(table) == 2 and "a" in table
    assert list(table.values()) == [items[0], items[1]] and dict(table.items())["b"] is items[1]
    assert table.pop("a") is items[0] and "a" not in table
    del table["b"]
    for remove in (table.__delitem__, table.__getitem__, table.pop):
        with pytest.raises(KeyError, match="'b'"):
            remove("b")


def test_linear_starts_within_its_bound_and_is_repeatable():
    mt.manual_seed(3)
    layer = nn.Linear(100, 50)
    values = layer.weight.detach().numpy()
    assert abs(values).max() <= 0.1 and abs(values).max() > 0.099 and abs(values.mean()) < 0.002
    assert abs(layer.bias.detach().numpy()).max() <= 0.1
    mt.manual_seed(3)
    assert nn.Linear(100, 50).weight.tolist() == layer.weight.tolist()
    assert nn.Linear(2, 3, bias=False, dtype="float64").weight.dtype == mt.float64
    assert nn.Linear(2, 3, bias=False).bias is None
    assert nn.Linear(0, 2)(mt.zeros((3, 0))).shape == (3, 2)


def test_linear_has_the_gradients_of_its_formula():
    layer = nn.Linear(3, 2, dtype="float64")
    x = mt.randn((4, 3), dtype="float64")
    weight, bias = layer.weight.detach(), layer.bias.detach()
    assert np.allclose(layer(x).detach().numpy(), x.numpy() @ weight.numpy().T + bias.numpy())
    parameters = [x, weight, bias]
    assert mt.testing.gradcheck(lambda x, w, b: (x @ w.T + b).square(), parameters)


def test_a_network_learns_a_curve():
    mt.manual_seed(0)
    m = nn.Sequential(nn.Linear(1, 16), mt.ops.tanh, nn.Linear(16, 1))
    x = mt.linspace(-2.0, 2.0, 64).reshape(64, 1)
    y = mt.ops.sin(x)
    optimizer = mt.optim.Adam(m.parameters(), lr=0.02)
    for _ in range(400):
        m.zero_grad()
        loss = ((m(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3

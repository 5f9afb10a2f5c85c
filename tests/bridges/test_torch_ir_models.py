"""Real architectures: extracted, written, read, run by minitensor, and compared with PyTorch."""

import copy

import pytest
import torch
from minitensor.torch_ir import IR, extract_ir
from torch import nn
from torch.utils import _pytree as pytree
from torch_ir_models import MODELS, build

SMALL = {
    "perceptron": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), (8,)),
    "convolutions": (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(2), nn.Flatten()),
        (3, 12, 12),
    ),
    "transformer": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (6, 16)),
    "upsampling": (
        nn.Sequential(nn.ConvTranspose2d(3, 4, 3, 2), nn.GroupNorm(2, 4), nn.Upsample(scale_factor=2)),
        (3, 5, 5),
    ),
}


def results(model, inputs):
    with torch.no_grad():
        return pytree.tree_leaves(model(**inputs) if isinstance(inputs, dict) else model(*inputs))


def doubled(inputs):
    return pytree.tree_map_only(torch.Tensor, lambda t: t.double() if t.is_floating_point() else t, inputs)


def compared(name, model, inputs):
    ir = extract_ir(model, inputs, name=name.replace(" ", "_"))
    text = ir.to_json()
    read = IR.from_json(text)
    assert read == ir
    assert read.to_json() == text
    assert read.coverage().share == 1.0, str(read.coverage())
    tensors = [t for t in pytree.tree_leaves(inputs) if isinstance(t, torch.Tensor)]
    program = read.compile(model)
    wanted, exact = results(model, inputs), results(copy.deepcopy(model).double(), doubled(inputs))
    for _ in range(2):
        for result, expected, reference in zip(program(tensors), wanted, exact, strict=True):
            scale, error = expected.abs().max().item(), (expected - reference).abs().max().item()
            assert scale > 1e-3, "the comparison has no meaning"
            # The results of PyTorch have rounding errors of their own.
            allowed = max(1e-5 * max(1.0, scale), 3 * error)
            assert error < 1e-4 * scale
            torch.testing.assert_close(result, expected, rtol=0, atol=allowed)
    assert program.fallbacks == []
    assert program.is_jitted
    assert read.statistics().parameters >= sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", SMALL)
def test_small_models_agree_with_pytorch(name):
    torch.manual_seed(0)
    model, shape = SMALL[name]
    compared(name, model.eval(), (torch.randn(2, *shape),))


@pytest.mark.parametrize("name", MODELS)
def test_architectures_agree_with_pytorch(name):
    compared(name, *build(MODELS[name]))

"""Real architectures with random weights and small sizes. Those of packages that are not installed are left out."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None
HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None

#: Returns a model, and its inputs: a tuple, or a dict by name.
Maker = Callable[[], tuple[nn.Module, Any]]


class Results(nn.Module):
    """A model that returns some of its results."""

    def __init__(self, model: nn.Module, keys: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.keys = keys

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        results = self.model(*args, **kwargs)
        return tuple(results[key] for key in self.keys)


class Heads(nn.Module):
    """The backbone and the heads of a detector, without the boxes that depend on elements."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = detector.backbone, detector.head

    def forward(self, x: torch.Tensor) -> Any:
        found = self.head(list(self.backbone(x).values()))
        return found["bbox_regression"], found["cls_logits"]


def vision(name: str, size: int = 64, **options: Any) -> Maker:
    def make() -> tuple[nn.Module, Any]:
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **options), (torch.randn(2, 3, size, size),)

    return make


def vision_transformer() -> tuple[nn.Module, Any]:
    import torchvision

    return torchvision.models.VisionTransformer(32, 8, 2, 4, 64, 128), (torch.randn(2, 3, 32, 32),)


def pyramid() -> tuple[nn.Module, Any]:
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    model = resnet_fpn_backbone(backbone_name="resnet18", weights=None)
    return Results(model, ("0", "1", "2", "3", "pool")), (torch.randn(1, 3, 64, 64),)


def detector() -> tuple[nn.Module, Any]:
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large as make

    return Heads(make(weights=None, weights_backbone=None)), (torch.randn(1, 3, 160, 160),)


def language(name: str, results: tuple[str, ...], inputs: Callable[[], Any], **config: Any) -> Maker:
    """A model of transformers: the name without `Config` and `Model`, and the sizes."""

    def make() -> tuple[nn.Module, Any]:
        import transformers

        kind = name.removesuffix("Model").removesuffix("ForCausalLM").removesuffix("LMHead")
        configuration = getattr(transformers, f"{kind}Config")(**config)
        return Results(getattr(transformers, name)(configuration), results), inputs()

    return make


def whisper_encoder() -> tuple[nn.Module, Any]:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        vocab_size=99,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        d_model=32,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        num_mel_bins=16,
        max_source_positions=50,
    )
    return Results(WhisperEncoder(config), ("last_hidden_state",)), (torch.randn(2, 16, 100),)


def tokens(length: int = 12) -> torch.Tensor:
    return torch.randint(3, 99, (2, length))


_SIZES = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_TEXT = {**_SIZES, "intermediate_size": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_IMAGE = {**_TEXT, "image_size": 32, "patch_size": 8}
for _name in ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"):
    del _IMAGE[_name]

VISION: dict[str, Maker] = {
    "ResNet-18": vision("resnet18"),
    "ResNet-50": vision("resnet50"),
    "MobileNetV2": vision("mobilenet_v2"),
    "MobileNetV3 small": vision("mobilenet_v3_small"),
    "EfficientNet-B0": vision("efficientnet_b0"),
    "DenseNet-121": vision("densenet121"),
    "ViT": vision_transformer,
    "Swin-T": vision("swin_t"),
    "ConvNeXt-T": vision("convnext_tiny"),
    "ResNet-18 FPN": pyramid,
    "SSDLite, backbone and heads": detector,
}
LANGUAGE: dict[str, Maker] = {
    "BERT": language(
        "BertModel",
        ("last_hidden_state", "pooler_output"),
        lambda: {"input_ids": tokens(), "attention_mask": torch.tensor([[1] * 12, [1] * 7 + [0] * 5])},
        **_TEXT,
    ),
    "GPT-2": language(
        "GPT2LMHeadModel",
        ("logits",),
        lambda: {"input_ids": tokens()},
        vocab_size=99,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        use_cache=False,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "LLaMA": language(
        "LlamaForCausalLM",
        ("logits",),
        lambda: {"input_ids": tokens()},
        **_TEXT,
        num_key_value_heads=2,
        use_cache=False,
    ),
    "T5": language(
        "T5Model",
        ("last_hidden_state",),
        lambda: {"input_ids": tokens(), "decoder_input_ids": tokens(6)},
        vocab_size=99,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        use_cache=False,
    ),
    "Whisper encoder": whisper_encoder,
    "CLIP": language(
        "CLIPModel",
        ("logits_per_image", "image_embeds"),
        lambda: {"input_ids": tokens(), "pixel_values": torch.randn(2, 3, 32, 32)},
        text_config={**_TEXT, "max_position_embeddings": 16},
        vision_config=_IMAGE,
        projection_dim=16,
    ),
}
MODELS = (VISION if HAS_TORCHVISION else {}) | (LANGUAGE if HAS_TRANSFORMERS else {})


def build(make: Maker) -> tuple[nn.Module, Any]:
    """Returns a model whose results are of the order of 1: fresh ones have weights and results of almost zero."""
    torch.manual_seed(0)
    model, inputs = make()
    norms = [part for part in model.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.abs().max() > 0:
                parameter.normal_(std=0.05)
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        if norms:
            model.train()
            for _ in range(2):
                model(*(torch.randn(4, *x.shape[1:]) for x in inputs))
    return model.eval(), inputs

"""Settings for the tests of bridges. Those of frameworks that are not installed are not collected."""

import importlib.util
import os

import pytest

import minitensor as mt

collect_ignore_glob = [
    f"test_{framework}*.py"
    for framework in ("torch", "jax", "dask", "xarray", "cubed", "ray", "safetensors", "onnx")
    if importlib.util.find_spec(framework) is None
]

# Compiled code of an earlier version of an op must not be reused.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"


@pytest.fixture
def exports_quickly(monkeypatch):
    """Files are not flushed to the disk, which takes most of the time of an export. Random numbers are the same."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    mt.manual_seed(0)

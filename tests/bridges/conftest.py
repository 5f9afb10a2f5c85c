"""Settings for the tests of bridges. Those of frameworks that are not installed are not collected."""

import importlib.util
import os

collect_ignore_glob = [
    f"test_{framework}*.py"
    for framework in ("torch", "jax", "dask", "xarray", "cubed", "ray", "safetensors", "onnx")
    if importlib.util.find_spec(framework) is None
]

# Compiled code of an earlier version of an op must not be reused.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

"""Registers the ops with PyTorch: `torch.ops.my_ops.squareplus(x)`."""

import minitensor as mt
import minitensor.torch

from . import library

if not mt.plugins.is_plugin_loaded("my_ops"):
    mt.plugins.load_plugin(library())
minitensor.torch.register("my_ops", "my_ops::")

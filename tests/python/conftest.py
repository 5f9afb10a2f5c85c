"""These tests need no GPU, and some of them expect that there is none."""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.pop("MINITENSOR_CUDA", None)

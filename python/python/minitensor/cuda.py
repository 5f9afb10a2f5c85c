"""CUDA devices. This build does not support CUDA."""


def is_available() -> bool:
    """Returns whether tensors can be created with `device="cuda"`."""
    return False


def device_count() -> int:
    """Returns the number of CUDA devices."""
    return 0

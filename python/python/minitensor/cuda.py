"""GPUs, of which this build has none."""


def is_available() -> bool:
    """Whether tensors can be made with `device="cuda"`."""
    return False


def device_count() -> int:
    """How many GPUs there are."""
    return 0

from . import _torch as _torch  # noqa: E402

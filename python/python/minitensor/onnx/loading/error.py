"""The error of models that cannot be loaded or run."""

__all__ = ["OnnxError"]


class OnnxError(ValueError):
    """An ONNX model is not valid, needs what minitensor lacks, or was called with wrong inputs."""

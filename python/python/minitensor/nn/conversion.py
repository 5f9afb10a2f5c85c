"""Conversion of tensors to other dtypes and devices, for `Module.to`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._minitensor import Device, DType, Tensor, empty

if TYPE_CHECKING:
    from .._minitensor import DeviceLike, DTypeLike

__all__ = ["Conversion"]


def _dtype(given: object) -> DType | None:
    """Returns the dtype for the argument of `to(target)`, or None if it is a device."""
    if isinstance(given, Device):
        return None
    if not isinstance(given, str):
        return DType(given)  # type: ignore[arg-type]
    try:
        return DType(given)
    except ValueError:
        return None


class Conversion:
    """Converts tensors. A tensor that occurs twice is converted once."""

    def __init__(
        self, target: DTypeLike | DeviceLike | None, dtype: DTypeLike | None, device: DeviceLike | None
    ) -> None:
        self._dtype = None if dtype is None else DType(dtype)
        self._device = device
        if target is not None:
            if dtype is not None or device is not None:
                raise TypeError("to takes a dtype or a device; to pass both, use the keywords dtype and device")
            self._dtype = _dtype(target)
            if self._dtype is None:
                assert isinstance(target, (str, Device))
                self._device = target
        if self._dtype is not None and not (self._dtype.is_floating_point or self._dtype.is_complex):
            raise TypeError(
                f"a module can be converted to floating-point and complex dtypes only, got {self._dtype.name}"
            )
        # An unknown device is an error even if the module has no tensors.
        empty(0, device=self._device)
        # The originals are kept alive, because Python may reuse the id of a freed tensor.
        self._done: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, tensor: Tensor) -> Tensor:
        if id(tensor) not in self._done:
            self._done[id(tensor)] = tensor, self._convert(tensor)
        return self._done[id(tensor)][1]

    def _convert(self, tensor: Tensor) -> Tensor:
        dtype = self._dtype
        if dtype is None or not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            dtype = tensor.dtype
        if tensor.dtype.is_complex and not dtype.is_complex:
            raise TypeError(
                f"a module with a {tensor.dtype.name} tensor cannot be converted to {dtype.name}; use complex64"
            )
        if dtype == tensor.dtype and self._device in (None, tensor.device):
            return tensor
        converted = tensor.detach().to(dtype=dtype, device=self._device)
        if tensor.requires_grad:
            converted.requires_grad_()
        if tensor.grad is not None:
            converted.grad = tensor.grad.detach().to(dtype=dtype, device=self._device)
        return converted

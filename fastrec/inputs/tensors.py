"""Arrays of PyTorch, JAX, TensorFlow, CuPy and others as NumPy arrays, without importing these libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fastrec.checks import whole_number
from fastrec.exceptions import InputTypeError, RowNumber, Text, shown

Array = np.ndarray[Any, Any]
ON_HOST = (1, 3, 11)  # DLPack devices with memory that the CPU reads: CPU, pinned for CUDA, pinned for ROCm
OF_FRAMES = frozenset(
    ("pandas", "polars", "pyarrow", "narwhals", "modin", "scipy", "numpy")
)  # fastrec reads these in other ways
FRAME_PARTS = ("__arrow_c_array__", "__arrow_c_stream__", "__dataframe__", "iloc")


def is_tensor(value: Any) -> bool:
    """Return whether a value is an array of a library other than NumPy and the data frame libraries."""
    return _is_kind_of_tensor(type(value))


def _is_kind_of_tensor(kind: type) -> bool:
    if not (hasattr(kind, "__dlpack__") or hasattr(kind, "__array__")):
        return False
    roots = {parent.__module__.partition(".")[0] for parent in kind.__mro__}
    return not (roots & OF_FRAMES or any(hasattr(kind, part) for part in FRAME_PARTS))


def holds_tensors(values: Iterable[Any]) -> bool:
    """Return whether there is a tensor among values."""
    return any(map(_is_kind_of_tensor, set(map(type, values))))


def as_numpy(tensor: Any, name: str) -> Array:
    """Return a tensor as a NumPy array, in the same memory if possible.

    Raises InputTypeError for a tensor that requires grad, is on another device, or has a dtype that NumPy lacks.
    """
    kind = f"{type(tensor).__module__.partition('.')[0]}.{type(tensor).__name__}"
    if _attribute(tensor, "requires_grad", name, kind) is True:
        raise InputTypeError(name, f" is a {kind} that requires grad: pass ", name, ".detach().cpu()")
    if (device := _device(tensor, name, kind)) is not None:
        raise InputTypeError(
            name,
            f" is a {kind} on another device, {device}: pass ",
            name,
            ".detach().cpu(), or copy it to the host with its library",
        )
    try:
        array = _shared(tensor)
        array = np.asanyarray(tensor) if array is None else array  # `asarray` would drop a mask
    except Exception as error:  # noqa: BLE001 - from any library
        if "bfloat16" in (dtype := str(_attribute(tensor, "dtype", name, kind))):
            raise InputTypeError(_no_dtype(name, dtype)) from None
        raise InputTypeError(name, f", a {kind}, cannot be converted to a NumPy array: {shown(str(error))}") from None
    if array.dtype.kind == "V":  # bfloat16 and float8 of ml_dtypes
        raise InputTypeError(_no_dtype(name, array.dtype))
    refuse_unusual(array, name)
    return np.asarray(array)


def refuse_unusual(values: Any, name: str, advice: str = "fill it first") -> None:
    """Reject masked arrays and matrices: NumPy accepts them as arrays, but their values or shapes mean otherwise."""
    if type(values) is not np.ndarray and (wrong := why_unusual(values, advice)) is not None:
        raise InputTypeError(name, f" {wrong}")


def why_unusual(values: Any, advice: str = "fill it first") -> str | None:
    """Say what is wrong with a masked array or a matrix; `advice` says what to do about a mask."""
    masked = sys.modules.get("numpy.ma")  # np.ma would import it; without it there are no masked arrays
    if isinstance(values, getattr(masked, "MaskedArray", ())):
        return f"must not be a masked array: {advice}"
    if isinstance(values, np.matrix):
        return (
            "must not be an np.matrix, which is always two-dimensional: pass np.asarray(x), or x.A1 for one dimension"
        )
    return None


def _attribute(tensor: Any, attribute: str, name: str, kind: str) -> Any:
    """Return an attribute of a tensor, None if it has none."""
    try:
        return getattr(tensor, attribute, None)
    except Exception as error:  # noqa: BLE001 - from any library
        raise InputTypeError(
            name, f", a {kind}, cannot be read: its {attribute} raises {type(error).__name__}: {shown(str(error))}"
        ) from None


def _no_dtype(name: str, dtype: Any) -> Text:
    why = f" holds {dtype}, which NumPy lacks: convert it to float32 first, e.g. "
    return Text(name, why, name, ".float() in PyTorch")


def _device(tensor: Any, name: str, kind: str) -> str | None:
    """Return the device of a tensor, None if the CPU can read its memory."""
    try:
        found = tensor.__dlpack_device__()
    except Exception:  # noqa: BLE001 - optional; a failed conversion says more
        return None
    number = whole_number(found[0]) if isinstance(found, tuple) and found else None
    if number is None:
        raise InputTypeError(
            name, f", a {kind}, cannot be read: its __dlpack_device__ gives {shown(found)}, expected two numbers"
        )
    if number in ON_HOST:
        return None
    return str(_attribute(tensor, "device", name, kind) or f"DLPack device {number}")


def _shared(tensor: Any) -> Array | None:
    """Return the memory of a tensor as an array; None if the library or NumPy cannot share it."""
    if not hasattr(tensor, "__dlpack__"):
        return None
    try:
        return np.from_dlpack(tensor)
    except Exception:
        if not hasattr(tensor, "__array__"):
            raise
        return None


def plain_values(values: Sequence[Any], name: str) -> Sequence[Any]:
    """Return values with tensors of 0 dimensions as NumPy scalars."""
    if not holds_tensors(values):
        return values
    found = [as_numpy(value, Text(name, f"[{at}]")) if is_tensor(value) else value for at, value in enumerate(values)]
    for at, value in enumerate(found):
        if isinstance(value, np.ndarray) and value.ndim and is_tensor(values[at]):
            raise InputTypeError(
                name, f" must hold plain values, found a tensor of shape {value.shape}", RowNumber.at(at, "position")
            )
    return [value[()] if isinstance(value, np.ndarray) and not value.ndim else value for value in found]

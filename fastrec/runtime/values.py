"""Arguments of kernels as compiled code takes them: a flat row of slots, 8 bytes for each array or number.

The slot of an array holds the address of the Python object, where compiled code finds the shape and the data. To ask
the 60 arrays of a kernel for them in Python would take 100 microseconds.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

__all__ = ["CONTIGUOUS", "HEAD", "WORDS", "WRITEABLE", "describe", "flatten", "reads_arrays", "regular"]

# An array as C sees it, which is part of the binary interface of NumPy: words after the head of every object.
HEAD = object.__basicsize__
WORDS = ("data", "ndim", "shape", "strides", "base", "dtype", "flags")
CONTIGUOUS, WRITEABLE = {"C": 1, "F": 2, "A": 0}, 0x400  # flags
INT64_MAX = np.iinfo(np.int64).max


@functools.cache
def reads_arrays() -> bool:
    """Return whether this Python and NumPy have objects and arrays of the form that compiled code reads."""
    array = np.zeros((3, 5), np.int32)[:, ::2]
    words = dict(zip(WORDS, (ctypes.c_int64 * len(WORDS)).from_address(id(array) + HEAD), strict=True))
    if (words["data"], words["base"], words["dtype"]) != (array.ctypes.data, id(array.base), id(array.dtype)):
        return False
    numbers = words["ndim"] & 0xFFFFFFFF, words["flags"] & 0xFFFFFFFF
    lists = (tuple((ctypes.c_int64 * 2).from_address(words[name])) for name in ("shape", "strides"))
    return (*numbers, *lists) == (array.ndim, array.flags.num, array.shape, array.strides)


def flatten(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the Python types of arguments, tuple by tuple, and the arguments without the tuples around them."""
    kinds: list[tuple[type, ...]] = []
    leaves: list[Any] = []
    _flatten(arguments, kinds, leaves)
    return tuple(kinds), leaves


def _flatten(arguments: tuple[Any, ...], kinds: list[tuple[type, ...]], leaves: list[Any]) -> None:
    own = tuple(map(type, arguments))
    kinds.append(own)
    if not _hold_tuples(own):
        leaves += arguments
        return
    for argument in arguments:
        if isinstance(argument, tuple):
            _flatten(argument, kinds, leaves)
        else:
            leaves.append(argument)


@functools.cache
def _hold_tuples(kinds: tuple[type, ...]) -> bool:
    return any(issubclass(kind, tuple) for kind in kinds)


def regular(argument: Any) -> Any:
    """Return an argument with arrays that compiled code recognises: no subclasses, no copies of NumPy's own dtypes."""
    if isinstance(argument, tuple):
        parts = map(regular, argument)
        return argument._make(parts) if hasattr(argument, "_make") else tuple(parts)
    if isinstance(argument, np.ndarray):
        own = np.dtype(argument.dtype.str)
        return argument if type(argument) is np.ndarray and argument.dtype is own else argument.view(own, np.ndarray)
    return argument


def describe(argument: Any) -> str:
    """Return the type of a regular argument as compiled code distinguishes it."""
    if isinstance(argument, tuple):
        kind = type(argument)
        name = "" if kind is tuple else f"{kind.__module__}.{kind.__qualname__}:{getattr(kind, '_fields', '')}"
        return f"{name}({','.join(map(describe, argument))})"
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{argument.dtype.str}{argument.ndim}{layout}{'' if flags.writeable else 'r'}"
    return "none" if argument is None else _describe_number(argument)


def _describe_number(value: Any) -> str:
    """Return the dtype of a number, as Numba chooses it. Compiled code takes nothing else."""
    if isinstance(value, np.generic):
        return value.dtype.str
    if isinstance(value, int):
        return "|b1" if isinstance(value, bool) else "<i8" if value <= INT64_MAX else "<u8"
    return "<f8" if isinstance(value, float) else type(value).__qualname__

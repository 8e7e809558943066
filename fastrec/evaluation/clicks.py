"""Checks of what a call says about logged clicks: the columns of their propensities, and the curve of examination."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from fastrec.checks import with_article
from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.ragged import as_array

Array = np.ndarray[Any, Any]


def as_frame_of_clicks(truth: Any) -> Frame:
    """Return the truth as a frame whose columns the side `logged` may have; raise for another form."""
    found = open_foreign(truth, "truth")
    if isinstance(found, Frame):
        return found
    wanted = " needs a truth with a column of propensities, a data frame: pass one number per row of the truth"
    raise InputError(Argument("logged", ("truth",)), wanted)


def check_examination(curve: Any) -> Array | None:
    """Return the examination of ranks 1, 2, ..., float64 (n,), NaN where it is unknown; or None."""
    if curve is None:
        return None
    if hasattr(curve, "curve"):
        found = f" must be numbers of ranks 1, 2, ..., found {with_article(type(curve).__name__)}: pass its curve"
        raise InputTypeError(Argument("examination"), found)
    if isinstance(curve, str | bytes | Mapping | AbstractSet) or not hasattr(curve, "__len__"):
        raise InputTypeError(Argument("examination"), f" must be numbers of ranks 1, 2, ..., found {shown(curve)}")
    numbers = as_array(curve, "examination")
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf" or not numbers.size:
        found = f"found dtype {numbers.dtype} and shape {numbers.shape}"
        raise InputTypeError(Argument("examination"), f" must be one number for each of the ranks 1, 2, ..., {found}")
    return np.ascontiguousarray(numbers, np.float64)

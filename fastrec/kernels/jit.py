"""`njit` and `prange` for all kernels: those of Numba, or those of plain Python.

fastrec loads this package under up to three names. As `fastrec.kernels` it is plain Python: small inputs are
interpreted, without an import of Numba. As `fastrec.compiled_kernels` it is compiled as it is written. As
`fastrec.serial_kernels` it is compiled without `parallel=True`, so that `prange` is `range`. All give the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["anew", "njit", "prange"]

VARIANT = (__package__ or "").rpartition(".")[2]

if VARIANT == "kernels":
    prange = range

    def njit(*functions: Callable[..., Any], **options: Any) -> Any:  # noqa: ARG001 - those of Numba
        """Return functions as they are."""
        return functions[0] if functions else lambda function: function

else:
    import numba
    from numba import prange  # type: ignore[no-redef]

    from fastrec.runtime.code_folder import code_folder

    ALWAYS = {"nogil": True, "error_model": "numpy"}
    INSIDE_ONLY = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # a third less time to compile

    def njit(*functions: Callable[..., Any], **options: Any) -> Any:
        """Compile functions that kernels call, or with `cache=True` kernels that Python calls.

        Functions that make arrays say `allocates=True`: Numba counts references to arrays there, and frees them. Where
        rows are short, counting those of slices would take longer than the work on the rows. A function that counts
        must not call one that does not and returns arrays, nor the other way round.

        Numba keeps code by the text of one file only: an older kernel would go on calling an older function of another
        file. So the folder of the code has a name that all files decide.
        """
        if not functions:
            return lambda function: _compile(function, options)
        return _compile(functions[0], options)

    def anew(dispatcher: Any, *, kept: bool) -> Any:
        """Return a kernel that nothing is compiled for yet, and whose code is kept or not."""
        options = {name: value for name, value in dispatcher.targetoptions.items() if name != "nopython"}
        return _keep(dispatcher.py_func, options) if kept else numba.njit(**options)(dispatcher.py_func)

    def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Any:
        own = {name: value for name, value in options.items() if name not in ("cache", "allocates")} | ALWAYS
        own["_nrt"] = options.get("allocates", False)
        if VARIANT == "serial_kernels":
            own.pop("parallel", None)
        return _keep(function, own) if options.get("cache") else numba.njit(**own, **INSIDE_ONLY)(function)

    def _keep(function: Callable[..., Any], options: dict[str, Any]) -> Any:
        if (folder := code_folder()) is None:
            return numba.njit(**options)(function)
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, os.path.join(folder, VARIANT)
        try:
            kept = numba.njit(cache=True, **options)(function)
            if str(kept.stats.cache_path).startswith(folder):  # else Numba has taken a folder inside the package
                return kept
        except RuntimeError:  # nothing can be written anywhere
            pass
        finally:
            numba.config.CACHE_DIR = before
        return numba.njit(**options)(function)

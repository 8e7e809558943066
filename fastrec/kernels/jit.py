"""`njit` and `prange` for all kernels: those of Numba, or those of plain Python.

fastrec loads this package under up to three names. As `fastrec.kernels` it is plain Python: small inputs are
interpreted, without an import of Numba. As `fastrec.compiled_kernels` it is compiled as it is written. As
`fastrec.serial_kernels` it is compiled without `parallel=True`, so that `prange` is `range`. All give the same bits.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["compile_kernel", "njit", "prange"]

VARIANT = (__package__ or "").rpartition(".")[2]

if VARIANT == "kernels":
    prange = range

    def njit(*functions: Callable[..., Any], **options: Any) -> Any:  # noqa: ARG001 - those of Numba
        """Return functions as they are."""
        return functions[0] if functions else lambda function: function

else:
    import numba
    from numba import prange  # type: ignore[no-redef]

    from fastrec.runtime.announcement import announced
    from fastrec.runtime.code_folder import code_folder

    ALWAYS = {"nogil": True, "error_model": "numpy"}
    INSIDE_ONLY = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # a third less time to compile

    def njit(*functions: Callable[..., Any], **options: Any) -> Any:
        """Compile functions that kernels call, or with `cache=True` kernels: what `compile_kernel` compiles and keeps.

        Functions that make arrays say `allocates=True`: Numba counts references to arrays there, and frees them. Where
        rows are short, counting those of slices would take longer than the work on the rows. A function that counts
        must not call one that does not and returns arrays, nor the other way round.
        """
        if not functions:
            return lambda function: _decorate(function, options)
        return _decorate(functions[0], options)

    def compile_kernel(kernel: Any, types: tuple[Any, ...], *, is_callback: bool) -> Any:
        """Return the code of a kernel for arguments of some types: from disk, or else compiled and kept there.

        A callback is a C function for other kernels to call; Python has its address, and takes no lock to pass it on.

        Numba keeps code by the text of one file only: an older kernel would go on calling an older function of another
        file. So the folder has a name that all files decide. In it each kernel has a folder for these types alone:
        of two processes that keep code at once in one folder, one may give the other's a name of its own.
        """
        options, function = kernel.targetoptions, kernel.py_func
        of_dispatcher = {name: value for name, value in options.items() if name != "nopython"}

        def compile_it(*, cache: bool) -> Any:
            if is_callback:
                return numba.cfunc(numba.void(*types), cache=cache, **options)(function)
            dispatcher = numba.njit(cache=cache, **of_dispatcher)(function)
            dispatcher.compile(types)
            return dispatcher

        if (folder := code_folder()) is not None:
            own = Path(folder, VARIANT, hashlib.sha256(f"{is_callback} {types}".encode()).hexdigest()[:16])
            before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(own)
            try:
                path = numba.njit(cache=True, **of_dispatcher)(function).stats.cache_path
                if str(path).startswith(folder):  # else Numba has taken a folder inside the package
                    with contextlib.nullcontext() if any(own.rglob("*.nbi")) else announced():
                        return compile_it(cache=True)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001, S110 - damaged code, a full disk; other causes raise it again
                pass
            finally:
                numba.config.CACHE_DIR = before
        with announced():
            return compile_it(cache=False)

    def _decorate(function: Callable[..., Any], options: dict[str, Any]) -> Any:
        own = {name: value for name, value in options.items() if name not in ("cache", "allocates")} | ALWAYS
        own["_nrt"] = options.get("allocates", False)
        if VARIANT == "serial_kernels":
            own.pop("parallel", None)
        return numba.njit(**own, **({} if options.get("cache") else INSIDE_ONLY))(function)

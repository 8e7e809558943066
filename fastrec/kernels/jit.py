"""`njit` and `prange` for all kernels: those of Numba, or those of plain Python.

fastrec loads this package under up to three names. As `fastrec.kernels` it is plain Python: small inputs are
interpreted, without an import of Numba. As `fastrec.compiled_kernels` it is compiled as it is written. As
`fastrec.serial_kernels` it is compiled without `parallel=True`, so that `prange` is `range`. All give the same bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
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
    from fastrec.runtime.code_folder import are_sources_of, code_folder

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
        folder = code_folder()
        if folder is not None and are_sources_of(folder):
            name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__} {is_callback} {types}"
            own = Path(folder, VARIANT, hashlib.sha256(name.encode()).hexdigest()[:16])
            try:
                with contextlib.nullcontext() if any(own.rglob("*.nbi")) else announced():
                    return _compile_in(own, kernel, types, is_callback=is_callback)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - damaged code, a full disk; other causes raise it again
                shutil.rmtree(own, ignore_errors=True)
        with announced():
            return _compile(kernel, types, cache=False, is_callback=is_callback)

    def _compile_in(folder: Path, kernel: Any, types: tuple[Any, ...], *, is_callback: bool) -> Any:
        """Compile a kernel, or read its code, where Numba keeps code in a folder."""
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            path = _decorated(kernel, cache=True).stats.cache_path  # Numba may have taken a folder inside the package
            return _compile(kernel, types, cache=str(path).startswith(str(folder)), is_callback=is_callback)
        finally:
            if numba.config.CACHE_DIR == str(folder):  # else the user has set it meanwhile
                numba.config.CACHE_DIR = before

    def _compile(kernel: Any, types: tuple[Any, ...], *, cache: bool, is_callback: bool) -> Any:
        if is_callback:
            return numba.cfunc(numba.void(*types), cache=cache, **kernel.targetoptions)(kernel.py_func)
        dispatcher = _decorated(kernel, cache=cache)
        dispatcher.compile(types)
        return dispatcher

    def _decorated(kernel: Any, *, cache: bool) -> Any:
        """Return a dispatcher of a kernel that nothing is compiled for yet."""
        options = {name: value for name, value in kernel.targetoptions.items() if name != "nopython"}
        return numba.njit(cache=cache, **options)(kernel.py_func)

    def _decorate(function: Callable[..., Any], options: dict[str, Any]) -> Any:
        own = {name: value for name, value in options.items() if name not in ("cache", "allocates")} | ALWAYS
        own["_nrt"] = options.get("allocates", False)
        if VARIANT == "serial_kernels":
            own.pop("parallel", None)
        return numba.njit(**own, **({} if options.get("cache") else INSIDE_ONLY))(function)

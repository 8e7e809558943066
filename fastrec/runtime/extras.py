"""Import of optional packages; where one is missing, the error names the extra that installs it."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from fastrec.exceptions import MissingExtraError, cut_line
from fastrec.runtime.installed import installing
from fastrec.runtime.limits import check_space
from fastrec.runtime.threads import uninterrupted


def require(module: str, extra: str, *, what: str = "this") -> ModuleType:
    """Import an optional module, or raise an error of one line that names the extra to install.

    Parameters
    ----------
    module : the module to import, such as "pyarrow.parquet".
    extra : the extra of fastrec that installs it.
    what : the feature that needs it, as the subject of the message.

    Raises
    ------
    MissingExtraError : the package is not installed, or its import fails: mostly its version does not fit that of
        another package.
    MemoryError : `ulimit -v` leaves less address space than the package takes.

    Examples
    --------
    >>> require("json", "cli").__name__
    'json'
    >>> require("no_such_package", "cli", what="reading files")
    Traceback (most recent call last):
    fastrec.exceptions.MissingExtraError: reading files needs no_such_package: pip install 'fastrec-eval[cli]'
    """
    try:
        if module in sys.modules:  # another thread may still be importing it
            return importlib.import_module(module)
        check_space(module.partition(".")[0], what)
        return uninterrupted(lambda: importlib.import_module(module))
    except (ImportError, AttributeError, RuntimeError, ValueError) as error:
        package = module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] == package:
            raise MissingExtraError(f"{what} needs {package}: {installing(extra)}") from None
        if isinstance(error, ModuleNotFoundError) and error.name:
            raise MissingExtraError(f"{what} needs {package}, which needs {error.name}: install it") from error
        raise MissingExtraError(
            f"{what} needs {package}, which is installed but cannot be imported: {cut_line(str(error))}. Mostly "
            f"versions clash: install an older {package}, or a newer version of the package that it names"
        ) from error

"""Numba's settings, as far as they decide which code is compiled. Where nothing sets them, Numba is not imported."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["is_told_to_interpret", "settings", "version"]

FILE = Path(".numba_config.yaml")  # Numba reads it, too, from the working folder
PREFIX = "NUMBA_"
IRRELEVANT = {"NUM_THREADS", "THREADING_LAYER", "THREADING_LAYER_PRIORITY", "CACHE_DIR", "DISABLE_JIT"}
# programs change these at run time: values that change nothing
DEFAULTS: dict[str, Any] = {
    "BOUNDSCHECK": None,
    "CPU_FEATURES": None,
    "CPU_NAME": None,
    "DEBUG": 0,
    "DEBUGINFO_DEFAULT": 0,
    "LOOP_VECTORIZE": 1,
    "OPT": 3,
    "SLP_VECTORIZE": 0,
}


def settings() -> str:
    """Describe all settings that are not Numba's defaults."""
    told = [f"{name}={value}" for name, value in _environment().items() if name not in IRRELEVANT]
    if FILE.is_file():
        told.append(FILE.read_text())
    loaded = sys.modules.get("numba.core.config")
    changed = {name: getattr(loaded, name, usual) for name, usual in DEFAULTS.items()}
    return "\n".join([*told, *(f"{name}: {value}" for name, value in changed.items() if value != DEFAULTS[name])])


def is_told_to_interpret() -> bool:
    """Return whether Numba is told to compile nothing (NUMBA_DISABLE_JIT)."""
    if "numba.core.config" in sys.modules or "DISABLE_JIT" in _environment() or FILE.is_file():
        return bool(import_module("numba.core.config").DISABLE_JIT)
    return False


def version() -> str:
    """Return the version of Numba."""
    found = find_spec("numba")
    if found is not None and found.origin is not None:
        source = Path(found.origin).with_name("_version.py")
        # absent in a working copy, of which only an import tells the version
        if source.is_file() and (written := re.search(r'"version": "([^"]+)"', source.read_text())):
            return written[1]
    return str(import_module("numba").__version__)


def _environment() -> dict[str, str]:
    found = ((name.removeprefix(PREFIX), value) for name, value in os.environ.items() if name.startswith(PREFIX))
    return dict(sorted(found))

"""fastrec: the offline evaluator for recommenders. Every metric, exact, at memory speed.

Nothing but NumPy is imported here; what is used is loaded at its first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fastrec._version import __version__
from fastrec.exceptions import (
    FastrecError,
    FastrecWarning,
    InputError,
    InputTypeError,
    MetricError,
    MetricNotFoundError,
    MissingExtraError,
)
from fastrec.ragged import Ragged

if TYPE_CHECKING:
    from fastrec.api import Evaluator, evaluate, warmup
    from fastrec.registry import catalogue, ranking_metric
    from fastrec.report import Estimate, Report, load

_LAZY = {
    "Estimate": "fastrec.report",
    "Evaluator": "fastrec.api",
    "Report": "fastrec.report",
    "catalogue": "fastrec.registry",
    "evaluate": "fastrec.api",
    "load": "fastrec.report",
    "ranking_metric": "fastrec.registry",
    "warmup": "fastrec.api",
}

__all__ = [
    "Estimate",
    "Evaluator",
    "FastrecError",
    "FastrecWarning",
    "InputError",
    "InputTypeError",
    "MetricError",
    "MetricNotFoundError",
    "MissingExtraError",
    "Ragged",
    "Report",
    "__version__",
    "catalogue",
    "evaluate",
    "load",
    "ranking_metric",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'fastrec' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

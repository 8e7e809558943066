"""Calls on logs in files, and all that their reports say."""

from typing import Any

import numpy as np

LOG = ["auc", "gauc", "log_loss", "ndcg@3", "ece"]
LOGS_IN_MEMORY: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights": {"sample_weight": "weight"},
    "ties by id": {"ties": "id_asc", "item": "item"},
    "segments": {"row_by": ["position", "device"]},
    "groups of users": {"by": {user: "ab"[user % 2] for user in range(-900, 1200)}},
    "ties expected": {"ties": "expected"},
}


def log_of(users: Any, draw: np.random.Generator) -> dict[str, Any]:
    """Return the columns of a log with these users."""
    n = len(users)
    return {
        "user_id": users,
        "label": draw.random(n) < 0.3,
        "score": np.round(draw.random(n), 2).astype(np.float32),
        "item": draw.integers(0, 90, n),
        "weight": draw.integers(0, 5, n) / 4,
        "position": draw.integers(1, 5, n),
        "device": draw.integers(-3, 3, n).astype(np.int8),
    }


def everything(report: Any) -> tuple[Any, ...]:
    """Return all that a report says, numbers as their bits."""
    order = np.argsort(report.user_ids)
    values = {name: report.per_user[name][order].view(np.int64).tolist() for name in report}
    errors = {name: report.estimates[name].std_error.hex() for name in report}
    return dict(report), errors, values, sorted(report.user_ids.tolist()), report.data, report.warnings

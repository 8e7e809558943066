"""Users of scored rows for laws and bytes of states."""

from typing import Any

import numpy as np

from support.row_calls import MATRIX, refuses_ties, takes

N_USERS = 700  # more than a block of the kernels
N_ITEMS = 1000
ASKS = [ask for ask in MATRIX if takes(ask, "binary", "unit") and not refuses_ties(ask)]
TEXTS = [ask.text for ask in ASKS]
ORDER_OF_ROWS = ["auc", "auc(max_fpr=0.3)", "gauc", "gauc(constant=drop, weight=pairs)", "ks", "ks(average=user)"]


class Users:
    """Users with ties, one class, one row, no rows; with groups and weights."""

    def __init__(self) -> None:
        draw = np.random.default_rng(21)
        lengths = draw.choice([0, 1, 2, 10, 40], N_USERS)
        self.labels = [(draw.random(n) < draw.choice([0.0, 0.2, 0.5, 1.0])).astype(np.int8) for n in lengths]
        self.scores = [np.round(draw.random(n), int(draw.choice([1, 3, 9]))) for n in lengths]
        self.row_weights = [draw.choice([0.0, 0.1, 1.0, 3.3], n) for n in lengths]
        self.groups = {"plan": draw.choice(["free", "paid"], N_USERS), "year": draw.choice([2023, 2024, 2025], N_USERS)}
        self.weights = draw.choice([0.0, 0.1, 1.0, 2.5], N_USERS)

    def call(self, users: Any, *, weighted: bool = False, row_weights: bool = False) -> dict[str, Any]:
        """Return the arguments for some users."""
        chosen = np.arange(N_USERS)[users].tolist()

        def joined(parts: list[Any]) -> Any:
            return np.concatenate([parts[u] for u in chosen]) if chosen else parts[0][:0]

        indptr = np.cumsum([0, *(len(self.labels[u]) for u in chosen)])
        out = {"labels": joined(self.labels), "scores": joined(self.scores), "indptr": indptr}
        out["groups"] = {name: labels[users] for name, labels in self.groups.items()}
        if weighted:
            out["user_weight"] = self.weights[users]
        if row_weights:
            out["sample_weight"] = joined(self.row_weights)
        return out


USERS = Users()

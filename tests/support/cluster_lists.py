"""Lists to evaluate on clusters."""

import numpy as np


def rows_of_lists(n_users, *, strings, seed):
    """Return the rows of lists, and of a truth that lacks some of their users and has others, as dicts."""
    rng = np.random.default_rng(seed)
    user_name, item_name = ("user {}".format, "item {}".format) if strings else (int, int)
    recs, truth = [], []
    for user in range(n_users):
        about = {"user_id": user_name(user), "plan": user % 3, "weight": 1 + user % 5 / 4}
        if user % 10:
            items = rng.choice(80, size=int(rng.integers(1, 30)), replace=False).tolist()
            recs += [about | {"item_id": item_name(item), "rank": nth + 1} for nth, item in enumerate(items)]
        if user % 7:
            items = rng.choice(80, size=int(rng.integers(1, 12)), replace=False).tolist()
            truth += [about | {"item_id": item_name(item), "gain": float(rng.integers(0, 4))} for item in items]
    return recs, truth

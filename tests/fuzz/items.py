"""Metrics of items, histories and other lists on random shops, against the oracle; some shops have hostile values.

`scripts/fuzz --target items` runs it for long, `test_fuzz` for a few seconds.
"""

import copy
import math
import random
from typing import Any

import fastrec
from fuzz.calls import Finding
from support.item_calls import check, evaluate
from support.item_cases import metric_texts, random_shop
from support.item_oracle import Shop

__all__ = ["Finding", "describe", "run_case"]

TEXTS = [text for k in (None, 1, 2, 5) for text in metric_texts(k)]
ODD: list[Any] = [None, math.nan, math.inf, -1, 0, 1e300, 10**400, "x", "", "A|B", [], [math.nan], ["A", 3], {}, True]
ODD += [b"x", [[1.0]], (1.0, 2.0), {"A"}, 2**63, "a" * 1000]
CALLS = 4


def draw_case(seed: int) -> tuple[Shop, list[str], bool]:
    """Return a shop, metrics, and whether a value of the shop is hostile."""
    r = random.Random(seed)
    shop, is_hostile = random_shop(seed), r.random() < 0.25
    if is_hostile:
        shop = copy.deepcopy(shop)
        assert shop.items is not None and shop.history is not None
        if r.random() < 0.8:
            row = shop.items[r.choice(list(shop.items))]
            row[r.choice(["category", "features", "segment", "popularity", "propensity"])] = r.choice(ODD)
        elif shop.subtopics and r.random() < 0.4:
            own: Any = shop.subtopics[r.choice(list(shop.subtopics))]
            own[r.choice([0, "i", -1, *own])] = r.choice([*ODD, ODD])
        elif shop.logged and r.random() < 0.5:
            shop.logged[r.choice(list(shop.logged))] = {r.choice([0, "i"]): r.choice(ODD)}
        else:
            shop.history[r.choice(list(shop.history))] = r.choice(ODD)
    return shop, r.sample(TEXTS, CALLS), is_hostile


def describe(seed: int) -> str:
    shop, texts, _ = draw_case(seed)
    return "\n".join([*texts, str(shop)])


def run_case(seed: int) -> int:
    """Compare some metrics of one shop; return how many."""
    shop, texts, is_hostile = draw_case(seed)
    for text in texts:
        try:
            if is_hostile:
                check_hostile(shop, text)
            else:
                check(shop, text)
        except AssertionError as error:
            raise Finding("wrong value", str(error)) from None
        except Exception as error:
            raise Finding("foreign error", f"{text}: {error!r}") from error
    return len(texts)


def check_hostile(shop: Shop, text: str) -> None:
    """Evaluate one metric, which must be refused or have a value within its range."""
    try:
        report = evaluate(shop, text)
    except fastrec.FastrecError:
        return
    (name,) = report
    low, high = next(metric["range"] for metric in fastrec.catalogue() if metric["name"] == text.partition("(")[0])
    value = report[name]
    assert math.isnan(value) or ((low is None or value >= low - 1e-9) and (high is None or value <= high + 1e-9)), text

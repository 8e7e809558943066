"""Answers of PyClick: the examination of ranks by its position-based model, which knows ten ranks."""

import importlib.metadata
import json
import sys

sys.path.pop(0)  # this folder, with files named like the tools

from pyclick.click_models import Inference
from pyclick.click_models.PBM import PBM
from pyclick.search_session.SearchResult import SearchResult
from pyclick.search_session.SearchSession import SearchSession

RANKS = 10
Inference.xrange = range  # PyClick is of Python 2


def session_of(query, shown):
    """Return a list as it was shown, with its clicks."""
    session = SearchSession(query, None)
    session.web_results = [SearchResult(item, click) for item, click in shown]
    return session


def main():
    """Answer the cases on standard input."""
    given, values = json.load(sys.stdin), {}
    for case in given["sessions"]:
        model = PBM()
        model.train([session_of(*session) for session in case["sessions"]])
        examination = model.params[PBM.param_names.exam]
        values[case["name"]] = {f"em@{rank + 1}": examination.get(rank).value() for rank in range(RANKS)}
    answer = {
        "versions": {"PyClick": importlib.metadata.version("PyClick")},
        "values": values,
        "skipped": {},
        "names": ["em"],
    }
    print(json.dumps(answer))


main()

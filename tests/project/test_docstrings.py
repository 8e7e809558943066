"""Names in help() can be reached from `import fastrec` alone."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import fastrec


def documented() -> Iterator[tuple[str, str]]:
    """Yield every public object and member, and its docstring."""
    yield "fastrec", fastrec.__doc__ or ""
    for name in fastrec.__all__:
        value = getattr(fastrec, name)
        yield name, inspect.getdoc(value) or ""
        for own, member in inspect.getmembers(value) if inspect.isclass(value) else ():
            if not own.startswith("_") and not hasattr(object, own):
                yield f"{name}.{own}", inspect.getdoc(member) or ""


def named_in(doc: str) -> set[str]:
    """Yield the names in a docstring: `fastrec.load`, a public name in backticks, or a member of a class, as
    `Report.data`."""
    found = {name.rstrip(".") for name in re.findall(r"(?<!from )\bfastrec\.[A-Za-z_][\w.]*", doc)}
    for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*)(?:\([^`]*\))?`(?!`)", doc):
        first = name.partition(".")[0]
        if first in fastrec.__all__ or (first[0].isupper() and "." in name):
            found.add(f"fastrec.{name}")
    return found


def test_what_docstrings_name_is_there() -> None:
    wanted = {name: where for where, doc in documented() for name in named_in(doc)}
    assert len(wanted) > 30 and "fastrec.explain" in wanted and "fastrec.Report.data" in wanted
    modules_first = sorted(wanted, key=lambda name: name.split(".")[1] in fastrec.__all__)  # which load modules
    fresh = (
        "import sys, fastrec\nfor name in sys.argv[1:]:\n    try: eval(name)\n    except AttributeError: print(name)"
    )
    done = subprocess.run([sys.executable, "-c", fresh, *modules_first], capture_output=True, text=True, check=True)
    missing = [name for name in done.stdout.split() if not is_attribute(name)]
    assert {name: wanted[name] for name in missing} == {}


def is_attribute(name: str) -> bool:
    """Return whether it is an attribute of instances, which the docstring of the class lists."""
    parts = name.split(".")
    owner: Any = getattr(fastrec, parts[1], None)
    return (
        len(parts) == 3
        and re.search(rf"^{parts[2]} :|, {parts[2]} :", inspect.getdoc(owner) or "", re.MULTILINE) is not None
    )

"""Everything that other programs depend on, as text: public names, their arguments, and the fields of every JSON.

`python tests/describe_api.py` writes it to `api.txt`, and `test_api.py` compares the two: a change is a visible line.
"""

import inspect
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastrec

FILE = Path(__file__).with_name("api.txt")


def described() -> str:
    """Return all of it, one line each."""
    parts = {
        "Commands": list(of_commands()),
        "Names and arguments": [line for name in sorted(fastrec.__all__) for line in of_name(name)],
        **{f"Fields of {name}": list(of_value(document)) for name, document in documents().items()},
    }
    return "\n\n".join("\n".join([f"# {title}", *lines]) for title, lines in parts.items()) + "\n"


def of_commands() -> Iterator[str]:
    """Yield each command with its arguments and options."""
    from fastrec.cli.program import program

    for name, command in sorted(program.commands.items()):
        yield f"fastrec {name} " + " ".join("/".join(parameter.opts) for parameter in command.params)


def of_name(name: str) -> Iterator[str]:
    """Yield a function with its arguments, or a class with its bases, its arguments and all its attributes."""
    value = getattr(fastrec, name)
    if not callable(value):
        yield f"{name}: {type(value).__name__}"
    elif not inspect.isclass(value):
        yield f"{name}{arguments(value)}"
    elif issubclass(value, Exception):
        yield f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
    else:
        yield f"class {name}{arguments(value)}"
        for own, member in inspect.getmembers(value):
            inherited = hasattr(object, own) or (issubclass(value, tuple) and hasattr(tuple, own))
            if own.startswith("_") or inherited:
                continue
            is_method = callable(member)
            yield f"    {own}{arguments(member) if is_method else ''}"


def arguments(function: Any) -> str:
    """Return names, kinds and defaults, without `self`."""
    try:
        found = inspect.signature(function)
    except ValueError:  # for a class that only inherits
        return "()"
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in found.parameters.items()
        if name != "self"
    ]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def of_value(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path and the content of each field."""
    if isinstance(value, dict) and value:
        for key, own in value.items():
            yield from of_value(own, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        yield from of_value(value[0], f"{path}[]")
    else:
        yield f"{path}: {type(value).__name__}"


def documents() -> dict[str, Any]:
    """Return an example of every JSON."""
    truth = {"ann": [1], "bob": [2], "eve": []}
    systems = {
        name: fastrec.evaluate({"ann": [1, 2], "bob": own}, truth, "ndcg@2", per_user=True, groups=None, by=None)
        for name, own in (("old", [3]), ("new", [2]))
    }
    grouped = fastrec.evaluate([[1, 2], [3]], [[1], [2]], "ndcg@2", groups={"plan": ["free", "paid"]})
    scored = fastrec.evaluate_scores([1, 0, 1], [0.5, 0.25, 1.0], [0, 2, 3], ["auc", "gauc"])
    lists = {"ann": [1, 2], "bob": [3]}
    shop = {item: {"segment": ("head", "tail")[item % 2]} for item in range(4)}
    drifted = fastrec.drift([lists, lists], k=2, items=shop, provider="segment")
    clicks, ranks, users = [1, 0, 1, 0], [1, 2, 1, 2], ["ann", "ann", "bob", "bob"]
    counted = fastrec.ctr_by_rank(clicks, ranks, user_ids=users, row_groups={"plan": ["free"] * 4})
    calibrated = fastrec.calibration_curve(clicks, [0.5] * 4, user_ids=users, row_groups={"plan": ["free"] * 4})
    bias = fastrec.position_bias(clicks, ranks, users, [7] * 4, method="em", n_samples=5)
    valued = fastrec.policy_value([1.0, 0.0], [0.5, 0.5], [0.5, 0.25], estimator=["ips", "snips"], clip=2.0)
    explained = fastrec.explain("ndcg@2", lists, truth, like="rectools", n_users=1)
    return {
        "Report.to_dict() of lists": grouped.to_dict(),
        "Report.to_dict() of scored rows": scored.to_dict(),
        "Report.to_rows()": grouped.to_rows(),
        "Comparison.to_dict()": fastrec.compare(systems, test="t").to_dict(),
        "Comparison.to_rows()": fastrec.compare(systems, test="t").to_rows(),
        "Drift.to_dict()": drifted.to_dict(),
        "Drift.to_rows()": drifted.to_rows(),
        "CalibrationCurve.to_dict()": calibrated.to_dict(),
        "CtrByRank.to_dict()": counted.to_dict(),
        "PositionBias.to_dict()": bias.to_dict(),
        "PolicyEstimate.to_dict()": valued["ips"].to_dict(),
        "PolicyEstimates.to_dict()": valued.to_dict(),
        "PolicyEstimates.to_rows()": valued.to_rows(),
        "Explanation.to_dict()": explained.to_dict(),
        "catalogue()": fastrec.catalogue(),
        **commands(),
    }


def commands() -> dict[str, Any]:
    """Return the JSON that the command line prints."""
    from click.testing import CliRunner

    from fastrec.cli.program import program

    with tempfile.TemporaryDirectory() as folder:
        lists, truth, log = (str(Path(folder, f"{name}.csv")) for name in ("lists", "truth", "log"))
        Path(lists).write_text("user_id,item_id\nann,1\nann,2\nbob,3\n")
        Path(truth).write_text("user_id,item_id\nann,1\nbob,2\n")
        Path(log).write_text("label,score\n1,0.5\n0,0.25\n")
        called = {
            "fastrec evaluate --format json": ["evaluate", lists, truth, "-m", "ndcg@2"],
            "fastrec compare --format json": ["compare", f"a={lists}", f"b={truth}", "--truth", truth, "-m", "ndcg@2"],
            "fastrec explain --format json": ["explain", "ndcg@2", "--like", "rectools"],
            "fastrec metrics --format json": ["metrics", "ndcg"],
        }
        found = {
            name: json.loads(CliRunner().invoke(program, [*options, "--format", "json"]).stdout)
            for name, options in called.items()
        }
        curves = str(Path(folder, "curves.json"))
        CliRunner().invoke(program, ["evaluate", log, "-m", "auc", "--curves", curves])
        return found | {"fastrec evaluate --curves FILE.json": json.loads(Path(curves).read_text())}


if __name__ == "__main__":
    FILE.write_text(described())

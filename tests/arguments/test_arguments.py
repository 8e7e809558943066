"""Arguments and policies are declared once; signatures, documentation and options follow."""

import inspect
import re
from collections.abc import Callable
from typing import Any, get_args

import pytest

import fastrec
import fastrec.dask
import fastrec.ray
import fastrec.spark
from fastrec import policies
from fastrec.arguments import documents, options_in, options_of
from fastrec.cli.program import program
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.rows import RowEvaluation
from fastrec.policies import POLICIES, SAMPLING

CALLS = (fastrec.evaluate, fastrec.evaluate_files, fastrec.evaluate_model, fastrec.evaluate_scores)
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *CALLS,
    fastrec.Evaluator.__init__,
    fastrec.Evaluator.update,
    fastrec.Evaluator.update_model,
    fastrec.ScoreEvaluator.__init__,
    fastrec.ScoreEvaluator.update,
    fastrec.compare_scores,
    fastrec.dask.evaluate,
    fastrec.evaluate_by_items,
    fastrec.explain,
    fastrec.explain_scores,
    fastrec.interpolated_pr_curve,
    fastrec.policy_value,
    fastrec.ray.evaluate,
    fastrec.spark.evaluate,
    fastrec.spark.evaluate_files,
    fastrec.spark.evaluate_scores,
    fastrec.spark.policy_value,
    fastrec.top_items,
)
LITERALS = {
    "ties": policies.Ties,
    "no_truth": policies.NoTruth,
    "no_recs": policies.NoRecs,
    "duplicates": policies.Duplicates,
    "one_class": policies.OneClass,
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: f"{function.__module__}.{function.__qualname__}")
def test_signatures_and_documentation_have_every_argument(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert all(own.kind is not own.VAR_KEYWORD for own in parameters.values())
    heads = re.findall(r"^(\w+(?:, \w+)*) : \S", inspect.cleandoc(function.__doc__ or ""), re.MULTILINE)
    alone = [head for head in heads if head in parameters]
    assert alone == [name for name in parameters if name in alone]
    assert set(parameters) - {"self"} <= {name for head in heads for name in head.split(", ")}


@pytest.mark.parametrize(
    ("evaluation", "evaluator"),
    [(ListEvaluation, fastrec.Evaluator), (RowEvaluation, fastrec.ScoreEvaluator)],
    ids=["lists", "rows"],
)
def test_an_evaluation_takes_the_settings_of_its_evaluator(evaluation: Any, evaluator: Any) -> None:
    def settings(called: Callable[..., Any]) -> list[tuple[str, Any]]:
        return [(name, option.default) for name, option in options_in(called).items()]

    assert settings(evaluator.__init__) == settings(evaluation.__init__)


def test_the_documentation_fits_the_width() -> None:
    docs = [option.doc for function in FUNCTIONS for option in options_in(function).values()]
    assert not [line for doc in docs for line in doc.splitlines() if len(line) > 116]


def test_an_unknown_argument_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(fastrec.InputTypeError, match=r"^evaluate takes no argument 'tie'; did you mean 'ties'\?$"):
        fastrec.evaluate([[1]], [[1]], tie="worst")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"takes no argument 'target'; in a data frame, label= names the targets$"):
        fastrec.evaluate_scores([1], [1], target="stars")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"'row_by'; to compare models in a segment of rows, pass its rows alone$"):
        fastrec.compare_scores([1], {"a": [1]}, row_by="device")
    with pytest.raises(TypeError, match=r"^Evaluator\.update takes no argument 'k'"):
        fastrec.Evaluator("mrr").update([[1]], [[1]], k=1)


def test_options_and_their_documentation_are_copied() -> None:
    @documents()
    def call(at: str, *, deep: bool = False, wide: int | None = None) -> None:
        """Take a place.

        Parameters
        ----------
        deep : whether to look deeper
            A second line.
        wide : how far
        """

    @options_of((call, "deep wide"))
    def look(at: str, **given: Any) -> Any:
        """Look.

        Parameters
        ----------
        at : anything

        Returns
        -------
        what was given
        """
        return at, given

    @options_of((call, "wide"), "high", (call, "deep"), fill=False)
    def glance(*, high: float = 1.0, **given: Any) -> Any:
        """Glance.

        Parameters
        ----------
        high : how high
        """
        return high, given

    assert look("here") == ("here", {"deep": False, "wide": None})
    assert look("here", deep=True) == ("here", {"deep": True, "wide": None})
    assert (glance(), glance(deep=False)) == ((1.0, {}), (1.0, {"deep": False}))
    assert str(inspect.signature(look)).startswith("(at: str, *, deep: bool = False, wide: int | None = None)")
    wanted = "at : anything\ndeep : whether to look deeper\n    A second line.\nwide : how far\n\nReturns"
    assert wanted in (look.__doc__ or "")
    assert str(inspect.signature(glance)).startswith(
        "(*, wide: int | None = None, high: float = 1.0, deep: bool = False)"
    )
    assert "\nwide : how far\nhigh : how high\ndeep : whether to look deeper\n" in (glance.__doc__ or "")


@pytest.mark.parametrize("name", LITERALS)
def test_the_type_of_a_policy_has_its_values(name: str) -> None:
    assert get_args(LITERALS[name]) == tuple(POLICIES[name].values)
    assert POLICIES[name].default in POLICIES[name].values


def test_defaults_that_are_written_out_are_those_of_policies() -> None:
    for call in CALLS:
        for name, option in options_in(call).items():
            if (policy := (POLICIES | SAMPLING).get(name)) is not None:
                assert option.default in (None, policy.default)


@pytest.mark.parametrize("name", LITERALS)
def test_the_command_line_has_the_values_and_effects_of_a_policy(name: str) -> None:
    option = next(own for own in program.commands["evaluate"].params if own.name == name)
    assert list(option.type.choices) == list(POLICIES[name].values)  # type: ignore[attr-defined]
    assert option.default == POLICIES[name].default
    shown = re.sub(r"\s+", " ", option.help or "")  # type: ignore[attr-defined]
    assert all(f"{value}: {own.effect}" in shown for value, own in POLICIES[name].values.items())

"""Arguments and policies are declared once; signatures, documentation and options follow."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, TypedDict, Unpack, get_args

import pytest

import fastrec
import fastrec.spark
from fastrec import policies
from fastrec.arguments import calls
from fastrec.arguments.signature import arguments_of, takes
from fastrec.cli.program import program
from fastrec.policies import POLICIES

TAKEN: dict[Callable[..., Any], type[Any]] = {
    fastrec.Evaluator.__init__: calls.ListSettings,
    fastrec.Evaluator.update: calls.ListBatch,
    fastrec.ScoreEvaluator.__init__: calls.RowSettings,
    fastrec.ScoreEvaluator.update: calls.RowBatch,
    fastrec.evaluate: calls.ListOptions,
    fastrec.evaluate_by_items: calls.SegmentOptions,
    fastrec.evaluate_files: calls.FileOptions,
    fastrec.evaluate_scores: calls.RowOptions,
    fastrec.explain: calls.ExplainOptions,
    fastrec.explain_scores: calls.ExplainRowOptions,
    fastrec.interpolated_pr_curve: calls.ListCurveOptions,
    fastrec.policy_value: calls.PolicyOptions,
    fastrec.spark.evaluate: calls.SparkListOptions,
    fastrec.spark.evaluate_scores: calls.SparkRowOptions,
    fastrec.spark.policy_value: calls.SparkPolicyOptions,
}
LITERALS = {
    "ties": policies.Ties,
    "no_truth": policies.NoTruth,
    "no_recs": policies.NoRecs,
    "duplicates": policies.Duplicates,
    "one_class": policies.OneClass,
}


@pytest.mark.parametrize("function", TAKEN, ids=lambda function: function.__qualname__)
def test_signatures_and_documentation_have_every_argument(function: Callable[..., Any]) -> None:
    arguments, parameters = arguments_of(TAKEN[function]), inspect.signature(function).parameters
    assert all(kind.kind is not kind.VAR_KEYWORD for kind in parameters.values())
    assert {name: own.default for name, own in parameters.items() if name in arguments} == {
        name: own.default for name, own in arguments.items()
    }
    lines = (function.__doc__ or "").splitlines()
    assert [line.partition(" : ")[0] for line in lines if line.partition(" : ")[0] in arguments] == list(arguments)


@pytest.mark.parametrize("function", TAKEN, ids=lambda function: function.__qualname__)
def test_the_group_of_the_signature_is_that_of_the_decorator(function: Callable[..., Any]) -> None:
    (group,) = get_args(eval(inspect.unwrap(function).__annotations__["given"], vars(calls) | {"Unpack": Unpack}))
    assert group is TAKEN[function]


def test_the_documentation_fits_the_width() -> None:
    assert not {
        (group.__name__, line)
        for group in TAKEN.values()
        for argument in arguments_of(group).values()
        for line in argument.doc.splitlines()
        if len(line) > 112
    }


def test_an_unknown_argument_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(fastrec.InputTypeError, match=r"^evaluate takes no argument 'tie'; did you mean 'ties'\?$"):
        fastrec.evaluate([[1]], [[1]], tie="worst")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"takes no argument 'target'; in a data frame, label= names the targets$"):
        fastrec.evaluate_scores([1], [1], target="stars")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"'row_by'; to compare models in a segment of rows, pass its rows alone$"):
        fastrec.compare_scores([1], {"a": [1]}, row_by="device")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Evaluator\.update takes no argument 'k'"):
        fastrec.Evaluator("mrr").update([[1]], [[1]], k=1)  # type: ignore[call-arg]


def test_an_argument_of_a_group_reaches_every_function_that_takes_it() -> None:
    class Own(TypedDict, total=False):
        deep: Annotated[bool, "whether to look deeper\nA second line."]

    @takes(Own)
    def look(at: str, **given: Unpack[Own]) -> Any:
        """Look.

        Parameters
        ----------
        at : anything

        Returns
        -------
        what was given
        """
        return at, given

    @takes(Own, fill=False)
    def glance(**given: Unpack[Own]) -> Any:
        """Glance."""
        return given

    assert look("here") == ("here", {"deep": None})
    assert look("here", deep=True) == ("here", {"deep": True})
    assert (glance(), glance(deep=False)) == ({}, {"deep": False})
    assert str(inspect.signature(look)).startswith("(at: str, *, deep: bool = None)")
    assert "at : anything\ndeep : whether to look deeper\n    A second line.\n\nReturns" in (look.__doc__ or "")


@pytest.mark.parametrize("name", LITERALS)
def test_the_type_of_a_policy_has_its_values(name: str) -> None:
    assert get_args(LITERALS[name]) == tuple(POLICIES[name].values)
    assert POLICIES[name].default in POLICIES[name].values


@pytest.mark.parametrize("name", LITERALS)
def test_the_command_line_has_the_values_and_effects_of_a_policy(name: str) -> None:
    option = next(own for own in program.commands["evaluate"].params if own.name == name)
    assert list(option.type.choices) == list(POLICIES[name].values)  # type: ignore[attr-defined]
    assert option.default == POLICIES[name].default
    shown = re.sub(r"\s+", " ", option.help or "")  # type: ignore[attr-defined]
    assert all(f"{value}: {own.effect}" in shown for value, own in POLICIES[name].values.items())

"""Evidence for findings, which adds up over batches of users, and the findings that follow from it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from fastrec.checks import counted
from fastrec.exceptions import Argument, InputError, Text, shortened, shown

MAX_EXAMPLES = 3
NO_COMMON_ID = "no_common_id"  # only explains another warning
NO_LIST = "no_list"  # says nothing if there are no lists at all
NEARLY_ALL, MOST = 0.99, 0.5
FEWEST_DRAWN = 500  # ids of a side: more are estimated from some of them
FEW_LISTS = 3  # fewer show nothing
Severity = Literal["error", "warning", "note"]


class Evidence(NamedTuple):
    """How many of the rows, lists or ids that could show something do show it."""

    code: str  # of the finding
    count: int  # type: ignore[assignment] # not the method of tuples
    total: int
    examples: tuple[Any, ...] = ()  # the first ones in order, at most three: strings, or a user and a string
    detail: Any = ""  # what they show, such as a column: other details are other evidence

    @property
    def text(self) -> str:
        """What it says if it is enough for a finding."""
        return KINDS[self.code].tell(self)


class Finding(NamedTuple):
    """What is wrong with the input, or may be."""

    code: str
    severity: Severity
    count: int  # type: ignore[assignment]
    share: float
    examples: tuple[str, ...]
    text: str


class _Kind(NamedTuple):
    severity: Severity
    least_share: float  # exclusive if it is that of most
    least_count: int
    tell: Callable[[Evidence], str]
    is_enough_alone: bool = False  # whether a single one tells if there are no others
    is_of_one: bool = False  # whether the examples are what all must have in common


def remark(text: str) -> Evidence:
    """Return evidence that is enough by itself, for a finding of any text."""
    return Evidence("remark", 1, 1, (), text)


def evidence_of_no_common_id(role: str, ours: Sequence[Any] = (), theirs: Sequence[Any] = ()) -> Evidence:
    """Return evidence of a batch that no id of the truth is one of the lists; without ids, that some are."""
    first = [f"{shortened(min(theirs))} in recs and {shortened(min(ours))} in truth"] if len(ours) else []
    return Evidence(NO_COMMON_ID, len(first), 1, tuple(first), role)


def add_evidence(
    known: Mapping[tuple[str, Any], Evidence], more: Iterable[Evidence]
) -> dict[tuple[str, Any], Evidence]:
    """Return evidence by code and detail, with that of further users."""
    found = dict(known)
    for one in more:
        other = found.get((one.code, one.detail), one._replace(count=0, total=0))
        examples = tuple(sorted({*one.examples, *other.examples}, key=_place)[:MAX_EXAMPLES])
        total = one._replace(count=one.count + other.count, total=one.total + other.total, examples=examples)
        found[one.code, one.detail] = total
    return found


def _place(example: Any) -> tuple[str, Any]:
    """Return what examples are sorted by: users of each type among themselves."""
    own = example[0] if isinstance(example, tuple) else example
    return type(own).__name__, own if isinstance(own, int | str) else repr(own)


def read_evidence(saved: Any) -> Evidence:
    """Return evidence from JSON; raise an error if it is damaged."""
    code, count, total, examples, detail = saved
    examples = tuple(tuple(own) if isinstance(own, list) else own for own in examples)
    one = Evidence(code, count, total, examples, tuple(detail) if isinstance(detail, list) else detail)
    if not (0 <= operator.index(count) <= operator.index(total) and sorted(examples, key=_place) == [*examples]):
        raise InputError(f"evidence must count from 0 to its total, found {shown(one)}")
    one._replace(total=max(total, 1), examples=examples or ("",) * MAX_EXAMPLES).text.splitlines()  # raises, too
    return one


def findings_of(evidence: Iterable[Evidence]) -> list[Finding]:
    """Return the findings for which there is enough evidence."""
    found: list[Finding] = []
    for one in evidence:
        kind, share = KINDS[one.code], one.count / one.total if one.total else 0.0
        enough = share > MOST if kind.least_share == MOST else share >= kind.least_share
        least = 1 if kind.is_enough_alone and one.count == one.total else kind.least_count
        if enough and one.count >= least and not (kind.is_of_one and len(one.examples) > 1):
            found.append(Finding(one.code, kind.severity, one.count, share, one.examples, one.text))
    return found


def _of_ids(one: Evidence) -> str:
    (role, side), about = one.detail, "about " if one.total > FEWEST_DRAWN else ""
    of = "of the truth" if side == "truth" else f"of {side}"
    ids = f"{about}{one.count:,} of the {one.total:,} ids {of} match no list because of this: spell them alike"
    return f"{role} ids differ in {one.examples[0]}; {ids}"


def _of_no_common_id(one: Evidence) -> str:
    return f"{one.detail} ids look like {one.examples[0]}"


def _of_no_list(one: Evidence) -> str:
    return f"no user of {one.detail} has a list: do the user ids match?"


def _of_gaps(one: Evidence) -> str:
    user, ranks = one.examples[0]
    return f"{one.detail} ({counted(one.count, 'list')}, e.g. of user {user!r}: {ranks})"


def _of_cells(one: Evidence) -> str:
    cells = f"cells of {one.detail} hold several items: {one.examples[0]}; {counted(one.count, 'cell')} of this kind"
    return (
        f"{cells}: split them, so that each row has one item, or pass item_sep= (--item-sep) if each user has one row"
    )


def _of_unreachable(one: Evidence) -> str:
    rows = f" removes {one.count:,} of the {one.total:,} relevant rows of the truth from every list"
    best = f": no list can have more than {1 - one.count / max(one.total, 1):.1%} of them"
    return Text(Argument("exclude"), rows, best)


def _of_ranks(one: Evidence) -> str:
    lists = f"the scores of {one.count:,} of {counted(one.total, 'list')} are 1, 2, 3, ... from the first row on"
    return Text(lists, ", and the largest score comes first: if they are ranks, name them with ", Argument("rank"))


def _of_constant_scores(one: Evidence) -> str:
    rows = f"{one.count:,} of the {counted(one.total, 'row')} of lists"
    return f"{rows} have the score {one.examples[0]}: is it the right one?"


def _of_swapped(one: Evidence) -> str:
    users = f"truth has fractional gains that differ for {one.count:,} of {counted(one.total, 'user')}"
    return f"{users}, and the scores of recs are few whole numbers: are the two swapped?"


def _of_order(one: Evidence) -> str:
    role, name = one.detail
    found = "recs has no column 'rank' or 'score', so lists keep row order, but column "
    lists = f" implies another for {one.count:,} of {counted(one.total, 'list')}: pass "
    return Text(f"{found}{name!r}{lists}", Argument(role, (name,)), " to use it")


def _of_slates(one: Evidence) -> str:
    slates = f"implies another for {one.count:,} of {counted(one.total, 'slate')}: pass "
    text = f"the log has no column 'rank', so slates keep row order, but column {one.detail!r} {slates}"
    return Text(text, Argument("rank", (one.detail,)), " to use it")


def _of_ranks_and_scores(one: Evidence) -> str:
    lists = f"ranks and scores are in other orders in {one.count:,} of {counted(one.total, 'list')}"
    return f"{lists}, which follow {one.detail}: is rank 1 the best item? Leave out the column that is wrong"


def _of_no_gain(one: Evidence) -> str:
    return f"no row of the truth has a gain {one.detail} ({counted(one.total, 'row')}): no item is relevant"


def _of_several_lists(one: Evidence) -> str:
    users = f"rows of {one.count:,} of {counted(one.total, 'user')} lie in several folders {one.detail}=..."
    return f"{users} and make one list: if each folder has lists of its own, evaluate them one by one"


def _of_padding(one: Evidence) -> str:
    lists = f"{one.count:,} of {counted(one.total, 'list')} end with item {one.detail}, which stands nowhere else"
    return f"{lists}: if it fills rows up to one length, leave it out, or in an array pass -1 in its place"


KINDS = {
    "remark": _Kind("warning", 0.0, 1, lambda one: one.detail),
    "rank_gaps": _Kind("warning", 0.0, 1, _of_gaps),
    NO_LIST: _Kind("warning", 1.0, 1, _of_no_list),
    NO_COMMON_ID: _Kind("warning", 1.0, 1, _of_no_common_id),
    "ids_differ": _Kind("error", 0.01, 2, _of_ids, is_enough_alone=True),
    "several_ids": _Kind("error", 0.01, 2, _of_cells),
    "unreachable": _Kind("warning", 0.0, 1, _of_unreachable),
    "ranks_as_scores": _Kind("warning", NEARLY_ALL, FEW_LISTS, _of_ranks),
    "constant_scores": _Kind("warning", NEARLY_ALL, 2 * FEW_LISTS, _of_constant_scores, is_of_one=True),
    "order_by_rows": _Kind("warning", MOST, 2, _of_order),
    "slates_by_rows": _Kind("warning", 0.0, 1, _of_slates),
    "rank_against_score": _Kind("warning", MOST, 1, _of_ranks_and_scores),
    "swapped": _Kind("warning", MOST, 1, _of_swapped),
    "several_lists": _Kind("warning", MOST, 1, _of_several_lists),
    "padding": _Kind("warning", 0.0, 1, _of_padding),
    "no_gain": _Kind("warning", 1.0, 1, _of_no_gain),
}

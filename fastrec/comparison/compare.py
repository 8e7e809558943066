"""Comparison of systems on the same users."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastrec.checks import check_choice, check_level, check_progress, counted, listed_in_order, some_names, with_article
from fastrec.comparison.comparison import Comparison, Correction, Missing, Test
from fastrec.comparison.pairing import NO_USER_DIFFERS, PairedValues, listed_names
from fastrec.comparison.row import ComparisonRow
from fastrec.comparison.tables import alpha, least_p_values, what_helps
from fastrec.exceptions import Argument, InputError, InputTypeError, Text, joined, shown, warn
from fastrec.metrics.directions import Direction
from fastrec.report.report import Report, clips_of
from fastrec.report.significance import CORRECTIONS, TESTS, correct, detectable_difference, levels_of_steps
from fastrec.report.values import check_resampling
from fastrec.runtime.limits import resolve_threads

MISSING = ("drop", "zero", "error")
FEW_USERS = 20  # for the bootstrap
MANY_USERS = 1_000  # for Wilcoxon's test (Ihemelandu & Ekstrand 2023)
# settings that do not change a number of all users or a group; "units" is of metrics of the order of all rows alone
NO_NUMBERS = ("like", "names", "row_groupings", "units")
SEGMENTS = "a user has no values in segments of rows, which compare needs: compare the rows of a segment alone"
OF_METRICS = ("n_items",)  # a setting that only the metrics that read it depend on, see `PairedValues.why_not`
MAY_LACK = ("exclude", "no_features")  # settings that a report without such metrics or data may lack
TRUTH_COUNTS: dict[str, Callable[[Report], int | float | None]] = {  # counts that depend on the truth alone
    "rows": lambda report: report.data.get("truth_rows"),
    "rows that are not relevant": lambda report: report.data.get("truth_rows_not_relevant"),
    "users with a relevant item": lambda report: report.users["total"] - report.users.get("no_truth", 0),
    "rows with gains": lambda report: report.data.get("truth_rows_with_gains"),
    "duplicates": lambda report: report.data.get("duplicates_in_truth"),
}
LOG_COUNTS: dict[str, Callable[[Report], int | float | None]] = {  # counts that do not depend on scores
    "rows": lambda report: report.data.get("rows"),
    "positive rows": lambda report: report.data.get("positive_rows"),
    "users": lambda report: report.users["total"],
}


def compare(
    reports: Mapping[str, Report],
    baseline: str | None = None,
    metrics: str | Iterable[str] | None = None,
    test: Test = "randomization",
    correction: Correction = "holm",
    level: float = 0.95,
    n_rounds: int = 10_000,
    seed: int = 0,
    n_threads: int | None = None,
    *,
    missing: Missing = "drop",
    power: float = 0.8,
    progress: Callable[[int, int], Any] | None = None,
) -> Comparison:
    r"""Compare systems evaluated on the same users: test the mean differences, overall and by group.

    Parameters
    ----------
    reports : {name: report}, two or more, each with values per user: ``evaluate(..., per_user=True)``
        Users with ids are paired by id, others by position. A user in the group "(none)" of one report counts in the
        group that another report knows. All reports must have the same settings, and exclude alike: nothing, the
        history or other items. Metrics that read ``n_items`` are compared if it is the same in all. A warning says if
        the truths differ, in any user, item or gain, or the labels of logs, in any user, label or weight. Where a
        report has no digest of these, only the numbers of users and rows are compared, and of rows that are relevant,
        positive or have gains. Another warning says if ``log_loss`` clipped a score, and the scores have different
        dtypes.
    baseline : the system to compare all others with; by default every pair is compared, the later with the earlier
    metrics : by default the metrics that all reports have and that can be compared: means of users' values, and metrics
        with a target; `Comparison.left_out` names the others. Metrics of all lists together, such as ``gini``, are
        compared if the same users have lists in all reports, and not within groups. Metrics of all rows together, such
        as ``auc``, ``log_loss`` and ``gauc``, are compared if the same users have rows in all reports.
    test : two-sided test of the mean difference over users
        ``randomization`` (Fisher 1935) draws the signs of the differences ``n_rounds`` times: p = (b + 1) / (B + 1). It
        tries all signs, for an exact p, if there are at most ``n_rounds`` and at most 65,536. ``bootstrap`` (Efron
        1979) draws users with replacement. ``t`` is the test of Student (1908). ``wilcoxon`` (1945) tests by signed
        ranks whether differences are symmetric around 0; it leaves out metrics of all rows together. ``wilcoxon``
        needs SciPy. Two values of a user that differ by at most 2^-40 of the larger are a tie, so rounding
        errors do not count as wins. Tests round differences to 2^-40 of the largest value among users without a tie.
    correction : of p-values, over all users together and within each grouping: ``holm`` (1979), ``bonferroni``, ``bh``
        (Benjamini & Hochberg 1995: false discovery rate), ``none``. A warning says if no row of a table can be
        significant, as with few users or many rows for the rounds.
    level : of intervals: expanded percentiles for ``bootstrap`` (Hesterberg 2015), else Student's t, cut to the width
        of the range of the metric. Where p-values are corrected, or users are few, the interval of a row may exclude 0
        without significance; its note says so.
    n_rounds, seed : of ``randomization`` and ``bootstrap``: the same bits for any number of threads, and for any order
        of users with ids
    n_threads : threads to use; default: all that the machine grants
    missing : users whom only one of two systems counts: ``drop``, the default, leaves them out; ``zero`` counts them as
        0 for the other system (not for errors and metrics with a target, for which 0 may be good); ``error`` raises
    power : the chance of a significant result for a true difference as large as ``detectable``, between 0 and 1
    progress : called as progress(rows done, rows)

    The value of a user in a metric of all rows together is the metric plus the effect of the user's rows on it times
    the number of users (delta method; for ``auc`` Obuchowski 1997). Rows of one user, which are alike, count together.

    Each metric declares its direction: higher, lower or neither is better, or nearer to a target t. With a target,
    compare takes each user's distance \|x - t\| in place of the value x. For a metric of all rows together, such as
    ``calibration`` (t = 1), it takes the distance of the metric: \|mean - t\| - \|baseline mean - t\|. If a ratio of
    sums with a target has no effects of users, the interval and the p-value are Student's, with the sum of the two
    standard errors, and ``test`` is not used. This sum is at least the standard error of the difference, so the test
    may miss a small difference. A metric without a direction has no verdict.

    Returns
    -------
    Comparison
        A row per metric and pair, also within each group if all reports have groups.

    Raises
    ------
    InputError, InputTypeError
        If a report has no values per user, settings differ, ids do not match, or a metric cannot be compared.
    """
    systems = _check_reports(reports)
    doubts = [*truth_warnings(systems), *_clip_warnings(systems)]
    warn(doubts)
    check_progress(progress)
    settings: dict[str, Any] = {"baseline": baseline, "test": test, "correction": correction, "level": level}
    settings |= {"n_rounds": n_rounds, "seed": seed, "missing": missing, "power": power}
    _check_settings(settings, systems)
    paired = PairedValues(systems, settings, resolve_threads(n_threads))
    wanted, left_out = _choose_metrics(systems, metrics, paired.why_not)
    pairs = [(later, earlier) for earlier, later in itertools.combinations(systems, 2)]
    if baseline is not None:
        pairs = [(name, baseline) for name in systems if name != baseline]
    tables: dict[str | None, list[tuple[str | None, Any]]] = {None: [(None, None)], **paired.segments()}
    if clustered := [metric for metric in wanted if paired.is_of_all_rows(metric)]:
        settings["clustered"] = clustered
    if all(_is_of_rows(report) for report in systems.values()):
        settings["units"] = "rows"
    without = {(grouping, metric): paired.why_not_within(metric, grouping) for grouping in tables for metric in wanted}
    compared = {grouping: [metric for metric in wanted if not without[grouping, metric]] for grouping in tables}
    left_out |= {f"{metric} within groups": why for (_, metric), why in without.items() if why}
    of_rows = dict.fromkeys(name for report in systems.values() for name in report.row_groupings)
    left_out |= {f"segments of rows by {name}": SEGMENTS for name in of_rows}
    sizes = (len(compared[grouping]) * len(segments) for grouping, segments in tables.items())
    n_rows, done = len(pairs) * sum(sizes), itertools.count(1)
    found: dict[str | None, tuple[ComparisonRow, ...]] = {}
    for grouping, segments in tables.items():
        rows = []
        for metric, pair, segment in itertools.product(compared[grouping], pairs, segments):
            rows.append(paired.row(metric, *pair, *segment))
            if progress is not None:
                progress(next(done), n_rows)
        found[grouping] = tuple(_judged(rows, settings))
    late = [*_warnings_of_tests(found, settings), *_warnings_of_resolution(found, settings)]
    warn(late)
    overall = found.pop(None)
    warnings = _warnings_of(systems)
    by_group = {str(name): rows for name, rows in found.items() if rows}
    estimates = {name: report.estimates for name, report in systems.items()}
    return Comparison(overall, by_group, settings, left_out, (*warnings, *doubts, *late), estimates)


def _judged(rows: Sequence[ComparisonRow], settings: Mapping[str, Any]) -> Iterator[ComparisonRow]:
    """Yield the rows of a table with corrected p-values, and what follows from these."""
    p_values, most = [row.p_value for row in rows], alpha(settings["level"])
    steps = levels_of_steps(p_values, settings["correction"], most)
    for row, p_corrected, step in zip(rows, correct(p_values, settings["correction"]), steps, strict=True):
        verdict = Direction(row.direction, row.target).verdict(row.difference, p_corrected, most)
        detectable = detectable_difference(row.std_error, row.users, step, settings["power"])
        notes = [row.note] if row.note else []
        if p_corrected > most and (row.low > 0 or row.high < 0):
            notes += [f"the interval excludes 0, but the verdict follows the corrected p-value, above {most:.4g}"]
        yield row._replace(p_corrected=p_corrected, verdict=verdict, detectable=detectable, note="; ".join(notes))


def _warnings_of_tests(tables: Mapping[str | None, Sequence[ComparisonRow]], settings: Mapping[str, Any]) -> list[str]:
    """Return a warning if the test is known to find too many differences for so many users."""
    counts = [row.users for rows in tables.values() for row in rows if not math.isnan(row.p_value)]
    test, t = Argument("test", (settings["test"],)), Argument("test", ("t",))
    if settings["test"] == "bootstrap" and min(counts, default=FEW_USERS) < FEW_USERS:
        return [Text(test, f" finds too many differences with fewer than {FEW_USERS} users: take ", t)]
    if settings["test"] == "wilcoxon" and max(counts, default=0) >= MANY_USERS:
        why = " finds far too many differences with so many users, as their values are not symmetric"
        return [Text(test, f"{why} (from {MANY_USERS:,} on): take ", t)]
    return []


def _warnings_of_resolution(
    tables: Mapping[str | None, Sequence[ComparisonRow]], settings: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a warning for each table in which no row can be significant, with what would help."""
    for grouping, rows in tables.items():
        tested = [row for row in rows if not math.isnan(row.p_value)]
        differing = [row.note != NO_USER_DIFFERS for row in tested]
        pairs = zip(least_p_values(tested, settings), tested, differing, strict=True)
        least = [(p, row.p_floor) for p, row, differs in pairs if differs or not any(differing)]
        if tested and min(least)[0] > alpha(settings["level"]):
            where = "" if grouping is None else f" by {grouping}"
            yield Text(
                f"no row{where} can be significant: ",
                Argument("test", (settings["test"],)),
                f" gives p-values of at least {min(floor for _, floor in least):.3g}, and ",
                Argument("correction", (settings["correction"],)),
                f" has {counted(len(tested), 'row')}: ",
                what_helps(tested, settings),
            )


def _check_reports(reports: Any) -> dict[str, Report]:
    """Return the reports if they are two or more, with values per user and the same settings."""
    named = isinstance(reports, Mapping) and all(isinstance(name, str) for name in reports)
    if not named or isinstance(reports, Report):
        kind = with_article(type(reports).__name__)
        raise InputTypeError(f"reports must be a dict {{name: report}}, found {kind}: compare({{'a': a, 'b': b}})")
    if len(reports) < 2:
        raise InputError(f"compare needs two reports or more, found {len(reports)}")
    for name, report in reports.items():
        if not isinstance(report, Report):
            raise InputTypeError(f"reports[{name!r}] must be a Report, found {type(report).__name__}")
        if not report.has_values:
            raise InputError(f"the report of {name} has no values per user: evaluate(..., per_user=True) keeps them")
        if report.data.get("rows") == 0:
            raise InputError(f"the log of {name} has no rows, so there is nothing to compare")
    (first, one), *others = reports.items()
    for name, other in others:
        kinds = [_lists_of(report) for report in (one, other)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"reports must be of the same lists, but {first} is of {kinds[0]} and {name} of {kinds[1]}"
            )
        for setting in sorted({*one.settings, *other.settings} - {*NO_NUMBERS, *OF_METRICS}):
            here, there = one.settings.get(setting, "absent"), other.settings.get(setting, "absent")
            if setting in MAY_LACK and "absent" in (here, there):
                continue
            if here != there:
                raise InputError(
                    f"reports must be made with the same settings, but {setting} is {shown(here)} in {first} and "
                    f"{shown(there)} in {name}"
                )
    return dict(reports)


def _lists_of(report: Report) -> str:
    """Return what a report ranks items among."""
    kinds = {"negatives": "items drawn for each user", "sampled_from": "lists that hold a sample"}
    return next((text for name, text in kinds.items() if name in report.settings), "the whole catalogue")


def truth_warnings(systems: Mapping[str, Report]) -> list[str]:
    """Return a warning if the truths of the reports differ, or the labels of logs."""
    for column, counts, where in (("truth_rows", TRUTH_COUNTS, "truth differs"), ("rows", LOG_COUNTS, "logs differ")):
        if any(column not in report.data for report in systems.values()):
            continue
        for what, count_of in counts.items():
            found = {name: n for name, report in systems.items() if (n := count_of(report)) is not None}
            if len(set(found.values())) > 1:
                return [f"the {where} in the number of {what}: {listed_names(found)}"]
        return _digest_warnings(systems, ("labels", "weights") if column == "rows" else ("truth", "gains"))
    return []


def _digest_warnings(systems: Mapping[str, Report], names: tuple[str, str]) -> list[str]:
    """Return a warning if the digest of a report with equal counts is not that of the first report that has one."""
    digests = {name: report.digest for name, report in systems.items() if report.digest is not None}
    for (first, one), (name, other) in itertools.product([*digests.items()][:1], digests.items()):
        if not one.rows or (one.version, one.users is None) != (other.version, other.users is None):
            continue
        where = f"the {names[0]} of {first} and {name} differ"
        if one.without_gains != other.without_gains:
            return [f"{where}: not all rows have the same user and {'item' if one.items else 'label'}"]
        if None not in (one.with_gains, other.with_gains) and one.with_gains != other.with_gains:
            return [f"{where}: the rows are the same, but not all of their {names[1]}"]
        if None not in (one.in_order, other.in_order) and one.in_order != other.in_order:
            return [f"{where}, or the rows of a user are in another order"]
        for whose in ("users", "items"):
            kinds = getattr(one, whose), getattr(other, whose)
            if kinds[0] != kinds[1]:
                ids = f"the ids of {whose} are {kinds[0]} in {first} and {kinds[1]} in {name}"
                return [f"{where}: {ids}, with the same digits"]
    return []


def _clip_warnings(systems: Mapping[str, Report]) -> list[str]:
    """Return a warning if scores are clipped, and not alike, as by log_loss for scores of float32 and of float64."""
    clips = {name: clips_of(report) for name, report in systems.items()}
    if len({eps for own in clips.values() for eps in own}) < 2 or not any(any(own.values()) for own in clips.values()):
        return []
    listing = listed_names({name: " and ".join(f"{eps:.2g}" for eps in own) for name, own in clips.items() if own})
    clip = "log_loss and normalized_entropy clip scores to [eps, 1 - eps] with the eps of their dtype, which differs"
    mend = "so equal scores of 0 or 1 have other losses: pass all scores as float64, or all as float32"
    return [f"{clip}: {listing}; {mend}"]


def _is_of_rows(report: Report) -> bool:
    """Return whether each row of a log is a user of its own."""
    return report.user_ids is None and report.users["total"] == report.data.get("rows")


def _warnings_of(systems: Mapping[str, Report]) -> list[str]:
    """Return the warnings of all reports, each once, with its systems."""
    about: dict[str, list[str]] = {}
    for name, report in systems.items():
        for line in report.warnings:
            about.setdefault(line, []).append(name)
    return [Text(f"{', '.join(names)}: ", line) for line, names in about.items()]


def _check_settings(settings: dict[str, Any], systems: Mapping[str, Report]) -> None:
    """Reject invalid arguments, and turn numbers into those of Python."""
    for name, choices in (("test", TESTS), ("correction", CORRECTIONS), ("missing", MISSING)):
        check_choice(name, settings[name], choices)
    baseline = settings["baseline"]
    if baseline is not None and (not isinstance(baseline, str) or baseline not in systems):
        known = some_names(list(systems))
        raise InputError(Argument("baseline", (baseline,)), f" is not one of the reports {known}")
    settings |= check_resampling(*(settings[name] for name in ("level", "n_rounds", "seed")))
    settings["power"] = check_level(settings["power"], "power")


def _choose_metrics(
    systems: Mapping[str, Report], metrics: str | Iterable[str] | None, why_not: Callable[[str], str]
) -> tuple[list[str], dict[str, str]]:
    """Return the canonical metrics to compare, and why others are left out."""
    first, *others = systems.values()
    if metrics is None:
        shared = [metric for metric in first if all(metric in other for other in others)]
        left_out = {metric: why for metric in shared if (why := why_not(metric))}
        if len(left_out) == len(shared):
            reasons = joined((Text(metric, " ", why) for metric, why in left_out.items()), "; ")
            why = reasons or "no metric is in all of them"
            raise InputError("the reports share no metric that can be compared: ", why)
        return [metric for metric in shared if metric not in left_out], left_out
    single = isinstance(metrics, str) or not isinstance(metrics, Iterable)
    asked = [metrics] if single else listed_in_order(metrics, "metrics")
    if not asked or not all(isinstance(name, str) for name in asked):
        raise InputError(f"metrics must name at least one metric, such as 'ndcg@10', found {shown(metrics)}")
    wanted = list(dict.fromkeys(map(first.name_of, asked)))
    for metric in wanted:
        for name, report in systems.items():
            if metric not in report:
                raise InputError(f"{metric} is not in the report of {name}")
        if why := why_not(metric):
            raise InputError(f"{metric} ", why)
    return wanted, {}

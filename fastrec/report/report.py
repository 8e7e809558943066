"""The report of an evaluation: values, intervals, groups, values of users, exports."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import IO, Any

from numpy.typing import NDArray

from fastrec.checks import check_file, check_path, check_text, check_there, counted
from fastrec.exceptions import InputError, InputTypeError, located, one_line, shown, warn
from fastrec.inputs.users import NO_LABEL, check_saved_ids, pack_ids, unpack_ids
from fastrec.metrics.declaration import LISTS
from fastrec.report.archive import (
    holds,
    pack_labels,
    read_archive,
    unpack_labels,
    write_archive,
)
from fastrec.report.definitions import definitions, known_call, settings_table
from fastrec.report.doubts import NOTES
from fastrec.report.estimates import Estimate
from fastrec.report.plain import group_rows, plain_data, refuse_ending, rows_of, scalar_name
from fastrec.report.plans import NAN_POLICIES
from fastrec.report.row_digests import read_digest
from fastrec.report.saved import (
    PREFIX,
    SCHEMA,
    datum_of,
    estimate_of,
    group_estimates_of,
    pack_warnings,
    unpack_effects,
    unpack_values,
    unpack_warnings,
)
from fastrec.report.tables import (
    about_intervals,
    count_tables,
    cutoff_families,
    distributions,
    estimated,
    group_tables,
    in_several,
    notes_on_data,
    order_of_lists,
    size_of_groups,
)
from fastrec.report.values import Label, ReportValues, parts_of
from fastrec.runtime.outputs import atomic_write
from fastrec.runtime.threads import uninterrupted
from fastrec.show.frames import frame_of, users_as_columns
from fastrec.show.numbers import margins
from fastrec.show.shown import Charted, Published
from fastrec.show.tables import Lead, Section, Table, warning_lines, with_notes, with_warnings


class Report(Published, ReportValues):
    """The metrics of one evaluation, with their uncertainty, counts, groups and per-user values.

    A report is a read-only mapping from metric to mean. The metrics keep the order of the call.

    Attributes
    ----------
    estimates : {metric: Estimate}.
    users : counts of users: "total", "evaluated", "no_truth" (no relevant item). Lists also have "no_recs" (no list).
        Scored rows also have "no_negatives", "constant_scores" (both classes, one score) and "no_rows".
    data : counts of rows. Lists also have the shares "truth_users_with_recs" and "truth_items_in_recs", NaN if nothing
        is relevant. "rec_rows_by_rank", "rec_rows_by_score" and "rec_rows_by_place" count the rows that were ordered
        by rank, by score, or by their place in a frame or file; they are 0 for lists passed in order.
        "truth_rows_with_gains" counts the rows with a given gain. With `ips` or `snips`, over all relevant items of the
        truth: "effective_sample_size", (sum of w)^2 / sum of w^2; "largest_weight_share", the largest w / sum of w;
        "clipped_rows", those with a propensity below ``clip``. If clips differ, the names say which, as in
        "clipped_rows(clip=0.1)".
    settings : the options of the call; with ``like`` also "names", the tool's names of metrics: {name: metric}. Scored
        rows with `auc` or `average_precision` also have "units": what the standard errors of these take as
        independent, "users" (clustered) or "rows".
    groups : {grouping: {label: {metric: GroupEstimate}}}, empty without groups. `row_groupings` names those of rows,
        which have no estimates of the rest.
    user_ids : array (n_users,), or None if users have no ids.
    labels : {grouping: array (n_users,)}, the group of each user, if values of users were kept.
    effects : of scored rows, if values of users were kept: {metric: {grouping, or None for all users: float64
        (n_users,)}}, the metric plus the effect of each user's rows on it times the number of users; see `compare`.
    digest : a digest of the truth, or of the labels of scored rows, which `compare` looks at; None if it is unknown, or
        values of users were not kept, as in reports of clusters. It has the "version" of the hash, "rows", the types of
        ids of "users" and "items", and sums of hashes: "without_gains" (of scored rows, weights) and "with_gains",
        which no order of rows changes, and of scored rows "in_order", which the order of a user's rows changes.
    fastrec_version : the version that computed the report.

    Examples
    --------
    >>> import fastrec
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3], [4, 5, 6]], [[2, 9], [4, 5]], ["precision@2", "hits@2"]
    ... )
    >>> report
    metric         mean    95 % interval  users
    precision@2  0.7500  0.0000 – 1.0000      2
    hits@2       1.5000  0.0000 – 7.8531      2
    2 of 2 users counted
    precision@2, hits@2: few users with a hit: the interval may be too narrow
    >>> report["precision@2"]
    0.75
    >>> dict(report)
    {'precision@2': 0.75, 'hits@2': 1.5}
    """

    _title = "Evaluation"

    def with_groups(
        self,
        groups: Mapping[str, Mapping[Label, Mapping[str, Estimate]]],
        labels: Mapping[str, NDArray[Any]] | None = None,
        named: Mapping[str, str] | None = None,
    ) -> Report:
        """Return the same report with other groups, and the labels of users in them.

        `named` has the new names of groupings that stay, whose effects of users are then kept.

        >>> import fastrec
        >>> report = fastrec.evaluate(
        ...     [[1], [2]], [[1], [1]], ["hits"], groups={"plan": [0, 1]}
        ... )
        >>> named = {
        ...     "plan": {
        ...         ("free", "paid")[code]: own
        ...         for code, own in report.groups["plan"].items()
        ...     }
        ... }
        >>> report.with_groups(named).groups["plan"]["free"]["hits"].mean
        1.0
        """
        _check_groups(groups)
        effects = {
            metric: {None: by[None], **{name: by[own] for own, name in (named or {}).items() if own in by}}
            for metric, by in self.effects.items()
        }
        report = Report(**parts_of(self) | {"groups": groups, "labels": labels, "effects": effects})
        note_clips(report, self._clips)
        return report

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict per metric, then one per group and metric.

        Keys: "metric", "mean", "std_error", "low", "high" (95 % interval), "users". With groups also "grouping" and
        "group", both None in the rows over all users, and "difference", "difference_low", "difference_high": the
        difference to the mean of all other users, see `GroupEstimate.difference`.

        >>> import fastrec
        >>> report = fastrec.evaluate(
        ...     [[1, 2], [3, 4]], [[1], [9]], ["hits@1"], groups=["new", "old"]
        ... )
        >>> for row in report.to_rows():
        ...     print(
        ...         row["grouping"],
        ...         row["group"],
        ...         row["metric"],
        ...         row["mean"],
        ...         row["users"],
        ...         row["difference"],
        ...     )
        None None hits@1 0.5 2 nan
        group new hits@1 1.0 1 1.0
        group old hits@1 0.0 1 -1.0
        """
        if not self.groups:
            return rows_of(self.estimates)
        rows = group_rows(None, None, self.estimates)
        for grouping, by_label in self.groups.items():
            for label, estimates in by_label.items():
                rows += group_rows(grouping, label, estimates)
        return rows

    def to_scalars(self, prefix: str = "") -> dict[str, float]:
        """Return the means as {name: float}, with names that MLflow, Weights & Biases and TensorBoard accept.

        A name has only letters, digits and the characters ``_ - . /``. ``@`` becomes ``_at_``, each option follows a
        dot with ``-`` for ``=``, and a table has ``_`` between its numbers. NaN stays NaN. Groups, standard errors and
        counts are left out: `to_rows` has them.

        Parameters
        ----------
        prefix : the start of every name, such as ``"val/"``: words of letters, digits, ``_ - .``, each followed by
            ``/``, which is optional after the last word.

        Raises
        ------
        InputError
            If a prefix has other characters, or two custom metrics would get the same name.

        >>> import fastrec
        >>> metrics = [
        ...     "ndcg@10",
        ...     "ndcg(gain=exp2, ideal=list)@10",
        ...     "cg(gain=[0, 1.5])",
        ...     "mrr",
        ... ]
        >>> list(fastrec.evaluate([[1, 2]], [[2]], metrics).to_scalars("val/"))
        ['val/ndcg_at_10', 'val/ndcg.gain-exp2.ideal-list_at_10', 'val/cg.gain-0_1.5', 'val/mrr']
        """
        if not PREFIX.fullmatch(check_text("prefix", prefix)):
            raise InputError(f"prefix must be letters, digits and _ - . / as in 'val/', found {shown(prefix)}")
        named: dict[str, str] = {}
        for metric in self:
            name = scalar_name(metric)
            if named.setdefault(name, metric) != metric:
                raise InputError(f"{metric} and {named[name]} would both become the scalar {name}")
        return {prefix + name: float(self[metric]) for name, metric in named.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the report without per-user values, as plain data that JSON can hold (schema 1).

        NaN becomes None, an infinity the string "Infinity" or "-Infinity". Group labels become strings.

        >>> import fastrec
        >>> document = fastrec.evaluate(
        ...     [[1, 2, 3]], [[2, 9]], ["precision@2"]
        ... ).to_dict()
        >>> {
        ...     name: document["metrics"]["precision@2"][name]
        ...     for name in ("mean", "std_error", "users")
        ... }
        {'mean': 0.5, 'std_error': None, 'users': 1}
        """
        document = {
            "schema": SCHEMA,
            "fastrec": self.fastrec_version,
            "metrics": self.estimates,
            "users": self.users,
            "data": self.data,
            "groups": self.groups,
            "settings": self.settings,
            "warnings": self.warnings,
            "digest": self.digest and self.digest._asdict(),
        }
        return {key: plain_data(value) for key, value in document.items()}

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
        curves: Iterable[Charted] = (),
    ) -> str | None:
        """Return or write a page for people: one HTML file that needs no network and no library.

        Its head says the first metric in words, and warns. The page shows charts of metrics against cut-offs and of
        groups, the metrics with their 95 % intervals, groups and their difference to the rest, definitions, settings,
        and counts of users and rows. If per-user values were kept, it shows their distribution, on demand. A click on
        a column head sorts a table. The page suits light and dark mode, screens of any width, paper and screen readers.

        Parameters
        ----------
        path, title, about : the file, by default returned; the title, "Evaluation"; facts, {name: text}, such as a date
        curves : curves of the same rows that the page also shows, after the groups: results of `roc_curve`, `pr_curve`,
            `interpolated_pr_curve`, `calibration_curve`, `ctr_by_rank`, `position_bias`. A report has no rows to draw
            them from.

        Returns
        -------
        The page as a string, or None if it was written to `path`.

        >>> import fastrec
        >>> report = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["hits@2"])
        >>> report.to_html(title="Spring & summer").count("<h1>Spring &amp; summer")
        1
        """
        from fastrec.report.pages import sections_of

        metrics, groups, *others = self._sections()
        return self._write_page(path, title, about, [metrics, groups, *sections_of(curves), *others])

    def to_frame(self, kind: str | None = None, *, per_user: bool = False) -> Any:
        """Return `to_rows` as a data frame: "pandas", "polars" or "pyarrow", by default the first installed.

        With `per_user`, a row per user instead: its id in `user` (its position if there are no ids; `user_1`, `user_2`
        and so on if several columns name a user), its labels, and its values, NaN where a metric did not count it.

        >>> import fastrec
        >>> lists, truth = {"ann": [1, 2], "bob": [3]}, {"ann": [2], "bob": [4]}
        >>> report = fastrec.evaluate(lists, truth, "mrr", per_user=True)
        >>> report.to_frame("pyarrow", per_user=True).to_pylist()
        [{'user': 'ann', 'mrr': 0.5}, {'user': 'bob', 'mrr': 0.0}]
        """
        if not per_user:
            return super().to_frame(kind)
        values = self.per_user
        if not isinstance(values, dict):
            raise InputError("the values of users are a data frame of the cluster: use .per_user")
        ids = list(range(self.users["total"])) if self.user_ids is None else self.user_ids.tolist()
        users = users_as_columns(ids)
        labels = {name: own.tolist() for name, own in self.labels.items()}
        if twice := {*users} & {*labels} | {*users, *labels} & {*values}:
            raise InputError(f"a row per user would have two columns {min(twice)!r}: rename the column to group by")
        return frame_of({**users, **labels, **values}, kind)

    def _printed(self) -> list[Table]:
        symmetric = all(one.is_symmetric() for one in self.estimates.values())
        table = estimated(self)
        if symmetric:
            halves = [(high - low) / 2 for low, high in (one.interval() for one in self.estimates.values())]
            rows = [[*row[:2], margin, *row[3:]] for row, margin in zip(table.rows, margins(halves), strict=True)]
            table = table._replace(head=[*table.head[:2], "± 95 %", *table.head[3:]], rows=rows)
        return [table._replace(notes=self._notes())]

    def _tables(self) -> list[Table]:
        """Return a table of metrics over all users, then one by group."""
        by_group = (table._replace(title="", notes=()) for table in group_tables(self))
        notes = [*size_of_groups(self), *in_several(self, self.groups), *about_intervals(self)]
        notes += warning_lines(self.warnings)
        return with_notes([estimated(self), *by_group], notes)

    def _paper(self) -> Table:
        from fastrec.report.pages import paper_table

        return with_warnings(paper_table(self), self.warnings)

    def _lead(self) -> Lead:
        from fastrec.report.pages import findings

        headline, *others = findings(self) or [""]
        return Lead(headline, others, self.warnings, [*self._counted(), f"fastrec {self.fastrec_version}"])

    def _sections(self) -> list[Section]:
        from fastrec.report.pages import segments, summary

        meanings = [("total", "in the data", ""), ("evaluated", "counted", "")]
        meanings += [(name, meaning, self._rules(policies)) for name, meaning, policies in NOTES]
        return [
            summary(self),
            segments(self),
            *([distributions(self)] if self.has_values else []),
            Section("Definitions", [definitions(self)]),
            Section("Settings", [settings_table(self.settings)]),
            Section("Data", count_tables(self.users, meanings, self.data)),
        ]

    def _rules(self, policies: Iterable[str]) -> str:
        """Return those of the policies that a metric of this report follows, with their settings."""
        ours = self._policies()
        return ", ".join(f"{policy}={self.settings[policy]}" for policy in policies if policy in ours)

    def _policies(self) -> set[str]:
        """Return the policies that a metric follows. In rows, metrics of lists follow `no_truth`, gauc `one_class`."""
        found = {policy for policy in NAN_POLICIES if policy in self.settings}
        if "rows" not in self.data:
            return found
        calls = [known_call(name) for name in self]
        if not any(call is None or call.metric.family is LISTS for call in calls):
            found.discard("no_truth")
        if not any(call is not None and ("one_class", "call") in call.options for call in calls):
            found.discard("one_class")
        return found

    def plot(self, ax: Any = None) -> Any:
        """Draw the means with their 95 % intervals: against the cut-off k if every metric has several, else as bars.

        Parameters
        ----------
        ax : matplotlib axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        The axes.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InputTypeError
            If `ax` is not a matplotlib axes.

        >>> import fastrec, matplotlib
        >>> matplotlib.use("Agg")
        >>> ax = fastrec.evaluate(
        ...     [[1, 2, 3], [4, 5, 6]], [[2, 9], [4]], ["recall"], k=[1, 2, 3]
        ... ).plot()
        >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
        ('k', ['recall'])
        """
        from fastrec.show.plots import draw_estimates

        rows = rows_of(self.estimates)
        return draw_estimates(rows, cutoff_families(rows), ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole report, per-user values and ids included, to one file that `load` reads.

        The file is an .npz archive of JSON and arrays, without pickle. It appears at the path only when it is complete.
        No ending is added to the path. Links are followed, an existing file keeps its mode, and the path may be a
        device or a pipe.

        Raises
        ------
        InputError : the path cannot be that of a file, its folder does not exist, or it has the ending of another
            format (.txt, .json, .csv, .md, .html, .tex); ids or labels are neither strings nor integers, or their
            number is not the number of users.
        OSError : the system does not allow writing the file.

        >>> import fastrec, pathlib, tempfile
        >>> report = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["precision@2"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report.save(pathlib.Path(folder, "report.npz"))
        ...     fastrec.load(pathlib.Path(folder, "report.npz"))["precision@2"]
        0.5
        """
        refuse_ending(check_path("path", path))
        document, arrays = self._members()
        _restore(document, arrays)  # a file that could not be loaded is not written
        with atomic_write(path) as file:
            write_archive(file, "report", document, arrays, small=False)

    def _members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the document and the arrays of a saved report.

        The document adds fields to `to_dict`: "per_user" lists the metrics with per-user values, "labels" has the
        group labels with their types, "labelled" lists the groupings with an array of users' labels, and "effects" the
        pairs of a metric and a grouping, or None, with effects of users. The array "per_user_<i>" has the values of
        metric i of "per_user", "effects_<i>" those of pair i of "effects". "named_warnings" has the parts of warnings
        that name arguments, "clips" what `note_clips` takes.
        """
        per_user = self._per_user
        labelled, arrays = pack_labels(self.labels)
        document = self.to_dict() | {"clips": list(self._clips.items())}
        document |= {
            "per_user": None if per_user is None else list(per_user),
            "labels": {grouping: plain_data(list(by_label)) for grouping, by_label in self.groups.items()},
            "labelled": labelled,
        }
        document["named_warnings"] = pack_warnings(self.warnings)
        arrays |= pack_ids(self.user_ids)
        for position, values in enumerate((per_user or {}).values()):
            arrays[f"per_user_{position}"] = values
        document["effects"] = [[metric, grouping] for metric, by in self.effects.items() for grouping in by]
        effects = (own for by in self.effects.values() for own in by.values())
        arrays |= {f"effects_{nth}": own for nth, own in enumerate(effects)}
        return document, arrays

    def _counted(self) -> list[str]:
        """Return lines on the users and rows that were counted, and on missing intervals."""
        total = self.users["total"]
        users = [f"{self.users['evaluated']:,} of {counted(total, 'user')} counted"]
        if "rows" in self.data:
            rows = f"{self.data['rows']:,} rows"
            users = [f"{rows} of {counted(total, 'user')}" if total else rows]
        for name, meaning, policies in NOTES:
            if self.users.get(name):
                rules = self._rules(policies)
                users.append(f"{self.users[name]:,} {meaning}{f' ({rules})' if rules else ''}")
        return ["; ".join(users), *about_intervals(self), *notes_on_data(self.data), *order_of_lists(self.data)]

    def _notes(self) -> list[str]:
        """Return the lines under the printed table."""
        notes = self._counted()
        if self.groups:
            sizes = (
                f"{grouping} ({sum(label != NO_LABEL for label in by_label):,})"
                for grouping, by_label in self.groups.items()
            )
            notes.append(f"groups: {', '.join(sizes)}, in .groups and .to_frame()")
            notes += in_several(self, self.groups)
        return [*notes, *warning_lines(self.warnings)]


def _check_groups(groups: Any) -> None:
    """Raise InputTypeError unless estimates are given by grouping, label and metric."""
    is_form = isinstance(groups, Mapping) and all(
        isinstance(by_label, Mapping)
        and all(
            isinstance(own, Mapping) and all(isinstance(one, Estimate) for one in own.values())
            for own in by_label.values()
        )
        for by_label in groups.values()
    )
    if not is_form:
        raise InputTypeError(
            "groups must be estimates by grouping, label and metric, as in report.groups; "
            f"fastrec.evaluate(groups=...) takes the labels of users; found {shown(groups)}"
        )


def record(report: Report, lines: Iterable[str], *, silent: Collection[str] = ()) -> None:
    """Add warnings to a report that was just made, and give them.

    All code that warns of a report does so here. Lines in `silent` are added and not given.
    """
    more = [line for line in map(located, lines) if line not in report.warnings]
    report._warnings += more  # noqa: SLF001 - of this module
    warn([line for line in more if line not in silent])


def note_clips(report: Report, clips: Mapping[float, bool]) -> None:
    """Let a report know how metrics clipped the scores: {eps of their dtype: whether a score was clipped}."""
    report._clips = dict(clips)  # noqa: SLF001 - of this module


def clips_of(report: Report) -> Mapping[float, bool]:
    """Return how metrics clipped the scores; empty if none did."""
    return report._clips  # noqa: SLF001 - of this module


def reword(report: Report, change: Callable[[str], str]) -> None:
    """Change the names in the warnings of a report that was just made."""
    report._warnings = list(map(change, report.warnings))  # noqa: SLF001 - of this module


def load(path: str | os.PathLike[str]) -> Report:
    """Read a report that `Report.save` wrote, with the same numbers to the last bit.

    Parameters
    ----------
    path : the file, with any ending

    Raises
    ------
    InputError : the file is damaged, was changed, is not a report, or was written by a fastrec with another format; the
        path is a folder, or cannot be that of a file.
    MissingFileError : the file does not exist. The error is an InputError and a FileNotFoundError.
    OSError : the file cannot be opened.

    Examples
    --------
    >>> import fastrec, pathlib, tempfile
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3]], [[2, 9]], ["precision@2"], per_user=True
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.save(pathlib.Path(folder, "report.npz"))
    ...     fastrec.load(pathlib.Path(folder, "report.npz")).per_user["precision@2"]
    array([0.5])
    """
    found = check_file("path", path)
    check_there(found)

    def read() -> Report:
        with open(found, "rb") as file:
            try:
                return _read(file)
            except MemoryError:
                raise
            except Exception as error:  # a damaged file can fail in the zip, a header, the JSON or the content
                raise InputError(found, f" is not a readable fastrec report: {error}") from error

    return uninterrupted(read)  # a handler of signals may raise other errors


def is_saved(path: str) -> bool:
    """Return whether a file is a saved report, damaged or not, by its ending or its content."""
    return os.path.isfile(path) and (path.lower().endswith(".fastrec") or holds(path, "report"))


def _read(file: IO[bytes]) -> Report:
    """Read the report in a file."""
    start = file.read(1 << 10).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"{":
        raise InputError("it is JSON as to_json writes it, which load cannot read; use Report.save to write the file")
    if start[:2] != b"PK":  # as every archive begins
        what = "an HTML page" if start[:1] == b"<" else "not a saved report"
        raise InputError(
            f"it is {what}; Report.save writes such reports, and --save or -o FILE.fastrec on the command line"
        )
    document, arrays = read_archive(file, "report")
    if document["schema"] != SCHEMA:
        version = one_line(document["fastrec"])
        raise InputError(f"it has schema {document['schema']} of fastrec {version}, this version reads schema {SCHEMA}")
    return _restore(document, arrays)


def _restore(document: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Report:
    """Undo `Report._members`. Raise InputError for arrays that do not fit the document."""
    n_users = document["users"]["total"]
    found = Report(
        estimates={name: estimate_of(fields) for name, fields in document["metrics"].items()},
        users=document["users"],
        data={name: datum_of(value) for name, value in document["data"].items()},
        settings=document["settings"],
        groups={
            grouping: dict(zip(labels, map(group_estimates_of, document["groups"][grouping].values()), strict=True))
            for grouping, labels in document["labels"].items()
        },
        per_user=unpack_values(document["per_user"], arrays, n_users),
        user_ids=check_saved_ids(unpack_ids(arrays, n_users)),
        fastrec_version=document["fastrec"],
        labels=unpack_labels(document["labelled"], arrays, n_users),
        effects=unpack_effects(document["effects"], arrays, n_users),
        warnings=unpack_warnings(document),
        digest=read_digest(document["digest"]),
    )
    note_clips(found, dict(document["clips"]))
    return found

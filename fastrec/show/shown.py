"""The forms that results have in common: `repr`, notebooks, Markdown, LaTeX, JSON, data frames, pages."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from fastrec.checks import check_choice
from fastrec.runtime.outputs import atomic_write
from fastrec.show.frames import as_frame
from fastrec.show.json import dump_json
from fastrec.show.latex import as_latex, as_latex_float
from fastrec.show.markdown import as_markdown, as_markdown_with_caption
from fastrec.show.tables import Lead, Section, Table
from fastrec.show.text import as_text

Form = Literal["full", "paper"]
FORMS = ("full", "paper")


class Shown(ABC):
    """Result that prints its tables and has them as Markdown, and itself as JSON."""

    @abstractmethod
    def _printed(self) -> Sequence[Table]:
        """Return the tables of `repr` and notebooks, with all notes."""

    @abstractmethod
    def _tables(self) -> Sequence[Table]:
        """Return the tables for documents, with their notes."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""

    def __repr__(self) -> str:
        """Return aligned tables, with notes and warnings below."""
        return as_text(self._printed())

    def _repr_html_(self) -> str:
        """Return the same as `repr`, as HTML for notebooks."""
        from fastrec.show.html import as_html

        return as_html(self._printed())

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as strict JSON; floats keep all their digits.

        >>> import fastrec, json
        >>> text = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["precision@2"]).to_json()
        >>> json.loads(text)["metrics"]["precision@2"]["mean"]
        0.5
        """
        return dump_json(self.to_dict(), indent=indent)

    def to_markdown(self) -> str:
        """Return the tables as Markdown, with lists of notes and warnings below.

        A report has tables of its metrics and groups with 95 % intervals, a comparison of its rows over all users and
        by segment, where * marks significant rows, and an explanation of definitions, numbers and users.

        >>> import fastrec
        >>> print(
        ...     fastrec.evaluate([[1, 2], [3, 4]], [[1], [9]], ["hits@1"]).to_markdown()
        ... )
        | metric | mean | 95 % interval | users |
        | --- | ---: | ---: | ---: |
        | hits@1 | 0.5000 | 0.0000 – 6.8531 | 2 |
        <BLANKLINE>
        - hits@1: few users with a hit: the interval may be too narrow
        """
        return as_markdown(self._tables())


class Charted(ABC):
    """Curve that the page of a report can show."""

    @abstractmethod
    def _in_report(self) -> list[Section]:
        """Return the sections of the curve; a page joins those of one title."""


class Exported(Shown):
    """Result that is also a LaTeX document, a data frame and a page."""

    _title: ClassVar[str]  # of the page

    @abstractmethod
    def to_rows(self) -> list[dict[str, Any]]:
        """Return the numbers as one dict per row."""

    @abstractmethod
    def _lead(self) -> Lead:
        """Return the findings, warnings and notes at the head of the page."""

    @abstractmethod
    def _sections(self) -> list[Section]:
        """Return the sections of the page."""

    def to_latex(self) -> str:
        r"""Return the tables of `to_markdown` for LaTeX, with rules of the package booktabs; notes are comments.

        >>> import fastrec
        >>> print(fastrec.evaluate([[1, 2], [3, 4]], [[1], [9]], ["hit_rate@1"]).to_latex())
        \begin{tabular}{lrrr}
        \toprule
        metric & mean & 95 \% interval & users \\
        \midrule
        hit\_rate@1 & 0.5000 & 0.0945 -- 0.9055 & 2 \\
        \bottomrule
        \end{tabular}
        """
        return as_latex(self._tables())

    def to_frame(self, kind: str | None = None) -> Any:
        """Return `to_rows` as a data frame: "pandas", "polars" or "pyarrow", by default the first installed.

        Group labels stay integers if all of them are; otherwise all become strings.

        >>> import fastrec
        >>> report = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["precision@2", "hits@2"])
        >>> report.to_frame("pyarrow").column("mean").to_pylist()
        [0.5, 1.0]
        """
        return as_frame(self.to_rows(), kind)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> str | None:
        """Return or write an HTML page: one file that needs no network and no library.

        Its head says the findings in words, and warns. Charts and tables with their intervals, definitions and settings
        follow.

        Parameters
        ----------
        path : the file to write, which appears only when it is complete. By default the page is returned.
        title : the title of the page, by default the kind of the result.
        about : facts about the evaluation at the head of the page, {name: text}, such as its date, data set or files.
            The page has no date of its own, so the same numbers give the same page.

        Returns
        -------
        The page as a string, or None if it was written to `path`.
        """
        return self._write_page(path, title, about, self._sections())

    def _write_page(
        self,
        path: str | os.PathLike[str] | None,
        title: str | None,
        about: Mapping[str, str] | None,
        sections: Sequence[Section],
    ) -> str | None:
        """Write the page to a file that appears only when complete, or return it if `path` is None."""
        from fastrec.show.html import html_page

        page = html_page(self._title if title is None else title, sections, self._lead(), about)
        if path is None:
            return page
        with atomic_write(path) as file:
            file.write(page.encode())
        return None


class Published(Exported):
    """Result that is also a table for a paper."""

    @abstractmethod
    def _paper(self) -> Table:
        """Return the table for a paper; its title is the caption."""

    def to_markdown(self, *, form: Form = "full") -> str:
        r"""Return the tables as Markdown.

        Parameters
        ----------
        form : "full" has all tables, with lists of notes and warnings below. A report has tables of its metrics and
            groups with 95 % intervals; a comparison has its rows over all users and by segment, where * marks
            significant rows. "paper" is one table with a caption. A comparison has a row per system and a column per
            metric, the best means in bold, marks of significance, and a caption that names the test. A report has a
            row for all users and one per group.

        Raises
        ------
        InputError
            If `form` is neither.

        >>> import fastrec
        >>> report = fastrec.evaluate([[1, 2], [3, 4]], [[1], [9]], ["hits@1"])
        >>> print(report.to_markdown())
        | metric | mean | 95 % interval | users |
        | --- | ---: | ---: | ---: |
        | hits@1 | 0.5000 | 0.0000 – 6.8531 | 2 |
        <BLANKLINE>
        - hits@1: few users with a hit: the interval may be too narrow
        >>> print(report.to_markdown(form="paper"))
        | users | hits@1 |
        | --- | ---: |
        | all | 0.5000 (0.0000 – 6.8531) |
        <BLANKLINE>
        Table: Means over 2 users with 95 % intervals.
        """
        check_choice("form", form, FORMS)
        return super().to_markdown() if form == "full" else as_markdown_with_caption(self._paper())

    def to_latex(self, *, form: Form = "full") -> str:
        r"""Return the tables of `to_markdown` for LaTeX, with rules of the package booktabs; notes are comments.

        The form "paper" is a float (`table`) with its caption.

        >>> import fastrec
        >>> report = fastrec.evaluate([[1, 2], [3, 4]], [[1], [9]], ["hit_rate@1"])
        >>> print(report.to_latex())
        \begin{tabular}{lrrr}
        \toprule
        metric & mean & 95 \% interval & users \\
        \midrule
        hit\_rate@1 & 0.5000 & 0.0945 -- 0.9055 & 2 \\
        \bottomrule
        \end{tabular}
        >>> print(report.to_latex(form="paper").splitlines()[2])
        \caption{Means over 2 users with 95 \% intervals.}
        """
        check_choice("form", form, FORMS)
        return super().to_latex() if form == "full" else as_latex_float(self._paper())

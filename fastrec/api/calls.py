"""The calls that evaluate: each option has its name, type, default and documentation here.

Other functions take some of these options; see `fastrec.arguments`. Policies have the documentation of
`fastrec.policies`. What a call leaves undocumented is as in `evaluate`. Annotations are types, not strings, because
`inspect.signature` and `help` show them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fastrec import policies
from fastrec.arguments import documents, pick
from fastrec.checks import MinGain, check_n_items
from fastrec.inputs.items import read_items
from fastrec.report.report import Report

Progress = Callable[[int, int], Any]


@documents(*policies.POLICIES.values(), *policies.ITEM_POLICIES.values(), *policies.SAMPLING.values())
def evaluate(
    recs: Any,
    truth: Any = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    per_user: bool = False,
    groups: Any = None,
    user_weight: Any = None,
    user_ids: Any = None,
    min_gain: MinGain | None = None,
    n_items: int | None = None,
    exclude: Any = None,
    items: Any = None,
    history: Any = None,
    n_users: int | None = None,
    unseen: policies.Unseen | None = None,
    no_history: policies.NoHistory | None = None,
    no_features: policies.NoFeatures | None = None,
    examination: Sequence[float] | None = None,
    reference: Any = None,
    logged: Any = None,
    subtopics: Any = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    propensity: str | None = None,
    logged_rank: str | None = None,
    subtopic: str | None = None,
    item_sep: str | None = None,
    by: Any = None,
    like: str | None = None,
    ties: policies.Ties | None = None,
    no_truth: policies.NoTruth | None = None,
    no_recs: policies.NoRecs | None = None,
    duplicates: policies.Duplicates | None = None,
    n_threads: int | None = None,
    sampled_from: int | None = None,
    correct: policies.Correct = "none",
    progress: Progress | None = None,
) -> Report:
    """Evaluate recommended lists against held-out truth: all metrics and cut-offs from one pass.

    Parameters
    ----------
    recs : the recommended lists, best item first
        One of:

        - ``(items, indptr)``, with the list of user u in ``items[indptr[u]:indptr[u + 1]]``
        - ``(items, indptr, scores)``; scores order each list
        - a `Ragged`, a 2-D integer array padded with -1 at the ends of rows, or an Arrow array of lists
        - a SciPy CSR matrix; its data are scores
        - one list per user
        - a dict {user: list} or {user: {item: score}}
        - a data frame of pandas, Polars, PyArrow or another library that exports Arrow data, or a list of Spark rows:
          one row per user and item, or one per user with columns of lists

        Items are integers up to 2^63 - 1 or strings. Arrays of int32 and int64 are not copied; do not change them
        during the call.
    truth : the relevant items, in the same forms and for the same users
        The third array, or the data of a CSR matrix, holds gains; without them every item has gain 1. Dicts and data
        frames are matched with ``recs`` by user, never by position. Dict keys are integers or strings, the same type on
        every side. Tuples also match, but such a report cannot be saved. Metrics that read no truth need none.
    metrics : strings such as ``"ndcg@10"`` or ``"map(denominator=n_rel)@100"``
        Default: ndcg, recall, precision, map, mrr and hit_rate, at 10 without ``k``. `fastrec.catalogue` lists all.
    k : cut-offs for the metrics without a cut-off of their own
    per_user : keep the value of every user, as float64, NaN for users that are not counted
    groups : one label per user, or a dict {name: labels}
        The report has mean, standard error and users per label. Labels are in the order of `Report.user_ids`, with
        dicts that of the keys of the truth; ``by={user: label}`` is matched by id. For scored rows with one key per
        row in ``user_ids``: one entry per row, equal for all rows of a user.
    user_weight : weight of each user in means, 0 or from 1e-100 to 1e100; with data frames the name of a column
        One weight per user, in the order that ``groups`` has, or {user: weight}, which is matched by id.
        In scored rows it multiplies the weights of the user's rows, and the weight in gauc.
    user_ids : a distinct label per user, for `Report.user_ids` and error messages
    min_gain : the gain from which an item is relevant; default: any gain above 0
        ``"any"``: every row of the truth is relevant, whatever its gain, and gains below 0 count as 0.
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
    n_items : size of the catalogue, for the metrics that need it
    exclude : items that a user has seen, in the forms of ``recs``; they are removed from the lists and the gaps closed
        ``"history"``: remove the items of ``history``. ``"unjudged"``: remove items without a gain of 0 or more.
    items : table of items, for the metrics that read columns of it
        A data frame or a dict of columns with ``item_id``, or a dict {item: {column: value}}. Columns hold numbers,
        categories (one or several per item) or vectors. Its number of rows is the default of ``n_items``.
    history : past interactions of the users, in the forms of ``truth``, for the metrics that read them
        An `Evaluator` takes dicts or data frames that hold the users of all batches; lists by position are the history
        of one batch. Its saved state keeps digests of the columns and counts that its metrics read; `merge` raises an
        error if they differ.
    n_users : number of users that column ``popularity`` of ``items`` counts; default: users of ``history`` with a row
    examination : probability that a user looks at rank 1, 2, ..., up to a factor for ``snips``, as from `position_bias`
        The propensity of a click is then that of its rank in ``logged``.
    reference : lists of the same users to compare with, in the forms of ``recs``, for the metrics that read them
    logged : propensities of the relevant items, for ``ips`` and ``snips``; with ``examination`` the ranks they had
        One number per row of ``truth``, or rows in the forms of ``truth`` with a number each. With data frames
        ``"truth"``: the columns of ``truth``.
    subtopics : subtopics that items cover for a user, numbers, for `alpha_dcg` and its kin: rows (user, item, subtopic)
        ``(items, indptr, subtopics)``, {user: {item: subtopic or list of subtopics}}, or a data frame. An item has a
        row for each subtopic. Leave out rows that say that an item does not cover a subtopic.
    user : name of the column of a data frame with users; default: ``user_id``
        Several names make a user of lists together, such as a user and a day; models have one.
    item : name of the column of a data frame with items; default: ``item_id``
    rank : name of the column of ranks, from 1, which order the lists; default: ``rank``, if present
        Without rank and score, lists keep the order of rows. `Report.data` says which applied. A warning names
        the only unused column of numbers that differs within lists if it implies another order.
    score : name of the column of scores, which order lists without ranks; default: ``score``, if present
    gain : name of the column of gains in the truth; default: ``gain``, if present, else all gains are 1
    propensity : name of the column of propensities in ``logged``; default: ``propensity``, if present
    logged_rank : name of the column in ``logged`` with the ranks of items, from 1; default: ``logged_rank``, if present
    subtopic : name of the column of subtopics in ``subtopics``; default: ``subtopic``, if present
    item_sep : what separates ids in cells of the column of items, as in ``"0706 0372"``; default: a cell has one id
        Each row is then the list of a user, in the order of its cell, and ids are strings. An empty cell has none.
    by : column or columns of data frames to group users by, or labels by user
        Columns do for data frames what ``groups`` does for arrays. Labels by user are {user: label}, such as
        ``dict(zip(users, segment_users(history, users)))``, {grouping: {user: label}}, a data frame of users in
        which each further column is a grouping, or a Series of pandas with the users as its index. Labels are all
        integers or all strings, and become strings.
        Users without a label, or with the label ``"(none)"``, form the group ``"(none)"``.
    like : a tool whose names, definitions and policies apply, such as ``"trec_eval"``; `explain` lists the tools
        ``metrics`` have their names in that tool and are computed as it does. Its values of ``min_gain`` and of
        the policies apply where the call does not give them. A tool that sorts by scores reads those of a frame or
        file that has ranks, too. A warning says if its number may be another.
    n_threads : threads to use; default: all that the machine grants
        The number does not change the bits.
    sampled_from : size of the catalogue, if each list holds the user's relevant items and a sample of the other items
        The samples are uniform, without replacement, from all items outside the user's truth.
    progress : called as progress(users done, users)

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError
        If an argument is wrong. Messages say what was found, what was expected, and where; rows and positions count
        from 0.
    MetricError
        If a metric or option is unknown; the message names the nearest one.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3], [4, 5, 6]], [[1, 3], [6]], ["ndcg", "recall"], k=[1, 3]
    ... )
    >>> {name: round(report[name], 4) for name in report}
    {'ndcg@1': 0.5, 'ndcg@3': 0.7099, 'recall@1': 0.25, 'recall@3': 1.0}

    Lists that hold a relevant item and a sample of 2 of the other 100 items. The relevant item of the second user is
    under one of the two, so the estimate of its rank is 51:

    >>> lists, truth = [[1, 2, 3], [4, 5, 6]], [[1], [5]]
    >>> report = fastrec.evaluate(
    ...     lists, truth, "mrr", sampled_from=101, correct="rank", per_user=True
    ... )
    >>> 1 / report.per_user["mrr"]
    array([ 1., 51.])
    """
    from fastrec.evaluation.lists import ListEvaluation  # the command line reads the options of these calls alone

    options = pick(evaluate, locals())
    if items is not None:
        options["items"] = read_items(items, item)
    evaluation = ListEvaluation(metrics, **pick(ListEvaluation.__init__, options))
    evaluation.evaluate(evaluation.sides(recs, truth, options), options)
    return evaluation.report()


@documents(policies.SAMPLING["sample"], others=evaluate)
def evaluate_model(
    model: Any,
    truth: Any = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    per_user: bool = False,
    users: Any = None,
    user_ids: Any = None,
    item_ids: Any = None,
    candidates: Any = None,
    user_bias: Any = None,
    item_bias: Any = None,
    groups: Any = None,
    user_weight: Any = None,
    min_gain: MinGain | None = None,
    n_items: int | None = None,
    exclude: Any = None,
    items: Any = None,
    history: Any = None,
    n_users: int | None = None,
    unseen: policies.Unseen | None = None,
    no_history: policies.NoHistory | None = None,
    no_features: policies.NoFeatures | None = None,
    reference: Any = None,
    logged: Any = None,
    subtopics: Any = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    propensity: str | None = None,
    logged_rank: str | None = None,
    subtopic: str | None = None,
    item_sep: str | None = None,
    by: Any = None,
    like: str | None = None,
    ties: policies.Ties | None = None,
    no_truth: policies.NoTruth | None = None,
    no_recs: policies.NoRecs | None = None,
    duplicates: policies.Duplicates | None = None,
    negatives: int | None = None,
    seed: int = 1,
    sample: policies.Sample = "uniform",
    correct: policies.Correct = "none",
    memory: int | str | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Evaluate a model over its whole catalogue: every item that is not excluded is in the list of every user.

    The report is that of `evaluate` for these lists with their scores and ``n_items``. They are not made: metrics with
    cut-offs need the first items, and others the ranks of relevant items, which are counted. Only metrics of items and
    histories make lists of all items, without a cut-off or under ``ties="best"`` or ``"worst"``: for some users at a
    time, as ``memory`` allows, and sorted. A standard error that needs these lists again scores all users again,
    unless ``memory`` can keep the lists. Where `evaluate` rejects all tied scores, a model is rejected for those that
    matter: for metrics of items under ``ties="expected"`` among the first items, under ``ties="error"`` of a relevant
    item.

    With ``negatives=``, lists hold a sample of the catalogue, as in many publications: the user's items in the truth,
    ranked among a few drawn items. Sample only to compare with such numbers. All items are scored all the same, so
    sampling saves no time, it adds variance, and it may order models in another way than full rankings (Krichene &
    Rendle 2020). ``correct=`` estimates the metrics of the whole catalogue from such lists. The report says that it is
    of samples wherever it is shown.

    Scores are computed in blocks of users whose size depends only on the number of items, the type of scores, and
    whether metrics need lists of all items. With threadpoolctl (the extra ``models``), each block is multiplied by one
    thread, so the report has the same bits for any number of threads; without it, BLAS uses its own threads, and
    products may then depend on their number. Products also depend on the BLAS library and on the positions of users in
    blocks, which follow from the rows of the model that the call evaluates, whatever ``memory``.

    Parameters
    ----------
    model : what scores all items for a user
        One of:

        - ``(user_factors, item_factors)``, arrays (n_users, d) and (n_items, d), float32 or float64 (other numbers are
          converted); the scores are their products
        - ``(X, B)``, matrices (n_users, m) and (m, n_items), at least one of them sparse; the scores are their product
          (two arrays are factors, and an error if the second is square, unless it is symmetric)
        - a 2-D array of scores (n_users, n_items); a memory map is read in blocks
        - data frames of pandas in place of these arrays: their index and columns are the default of ``user_ids`` and
          ``item_ids``, unless they are 0, 1, 2, ...; the columns of X are items if B is square
        - a function that takes an integer array of rows and returns scores (len(rows), ``n_items``); the main thread
          calls it for one block after the other, a second time if the lists of all items are made again, and it may
          return the same memory each time; without ``users`` and ``user_ids``, its rows are those of ``truth``

        Infinite scores order items; NaN raises an error, and so do finite factors whose product is not finite.
    truth : the relevant items of each row of the model, as in `evaluate`
        Arrays and lists are matched by position, dicts and data frames by ``user_ids``.
    metrics : as in `evaluate`
    users : the rows of the model to use, an integer array; default: all
        Row ``users[i]`` belongs to user i of the other arguments, or to the user of that name in ``user_ids``.
    user_ids : a distinct label per row of the model, which dicts and data frames name; default: row numbers, from 0
        Users of ``truth`` that the model lacks count as users without a list. Without ``user_ids`` they are an error.
    item_ids : a distinct id per item of the model, integers or strings; default: column numbers, from 0
        Items of other arguments that the model lacks are never listed, and the report counts those of ``truth`` and
        ``exclude``. Without ``item_ids`` they are an error; ``range(n)`` says that ids are column numbers.
    candidates : items that may be listed: array of ids for all users, or items of each user in the forms of ``truth``
        By default all items may. The size of the catalogue stays that of the model.
    user_bias : array (n_users,), added to the products of factors
    item_bias : array (n_items,), added to the products of factors
    n_items : the number of items that the model scores, which a function does not say; default: that of other models
        More, if metrics are to count items that the model lacks; a function must score as many.
    negatives : number of items to draw for each user, without replacement, in place of the whole catalogue
        Neither items of the user's truth nor excluded ones are drawn. The list of a user is these items and those of
        the truth. A user with fewer items left gets all of them, and the report counts such users.
    seed : seed of the draws, from 0 to 2^63 - 1
        The draws of a user follow from the seed, the user's row of the model and the items that are left.
    memory : bytes for scores and lists at a time, or a string such as ``"4GB"``, at least 64 MB; default: 512 MiB
        With less, fewer users are ranked at a time, and fewer threads work on large catalogues. The bits stay. Input,
        values per user and the returned lists take further memory, and so does a copy of the items' factors or weights
        if ``candidates`` choose some for all users, or ``ties="id_asc"`` or ``"id_desc"`` orders them.

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError, MetricError
        As `evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> users, items = (
    ...     np.array([[1.0, 0.0], [0.0, 1.0]]),
    ...     np.array([[0.9, 0.1], [0.5, 0.8], [0.1, 0.7]]),
    ... )
    >>> report = fastrec.evaluate_model(
    ...     (users, items), [[1], [2]], ["recall@1", "mrr"], exclude=[[0], []]
    ... )
    >>> report["recall@1"], report["mrr"]
    (0.5, 0.75)

    A sample of one item for each user:

    >>> fastrec.evaluate_model(
    ...     (users, items), [[1], [2]], "recall@1", negatives=1, seed=7
    ... )
    metric      mean    95 % interval  users
    recall@1  0.5000  0.0945 – 0.9055      2
    2 of 2 users counted
    lists in the order of their scores; all gains 1
    warning: sampled: ranks are among 1 item drawn uniformly for each user (seed 7) and relevant ones, not among all
    """
    from fastrec.evaluation.lists import ListEvaluation
    from fastrec.inputs.models import read_call

    options = pick(evaluate_model, locals())
    if items is not None:
        options["items"] = read_items(items, item)
    options["n_items"] = check_n_items(n_items)
    call = read_call(model, options)
    if items is None and n_items is None:
        options["n_items"] = call.n_items
    evaluation = ListEvaluation(metrics, **pick(ListEvaluation.__init__, options))
    evaluation.evaluate_model(call, truth, options)
    return evaluation.report()


@documents(policies.TIES_OF_ROWS, policies.NO_TRUTH_OF_ROWS, policies.ONE_CLASS, others=evaluate)
def evaluate_scores(
    labels: Any,
    scores: Any = None,
    indptr: Any = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    user_ids: Any = None,
    item_ids: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    user_weight: Any = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    label: str | None = None,
    score: str | None = None,
    by: Any = None,
    row_groups: Any = None,
    row_by: str | Sequence[str] | None = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    like: str | None = None,
    ties: policies.Ties | None = None,
    no_truth: policies.NoTruth | None = None,
    one_class: policies.OneClass = "drop",
    n_threads: int | None = None,
    per_user: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Evaluate scored, labelled rows, such as an impression log: per user, grouped and over all rows.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for others. Or grades: rows with at least ``min_gain`` are positive, and graded metrics
        of lists use grades as gains. Or targets, for mae, mse and rmse. Or, alone, a data frame as in `evaluate`: one
        row per label, or one per user with columns of lists.
    scores : array (n,), float32 or float64 (other numbers are converted)
        Predictions. Metrics of their order take infinities, NaN raises an error, -0.0 equals 0.0.
    indptr : integers (n_users + 1,), optional
        The rows of user u are ``indptr[u]:indptr[u + 1]``. Do not change this or other arrays during the call.
    metrics : strings such as ``"gauc"``, ``"auc"``, ``"ndcg@10"`` or ``"precision(threshold=0.5)"``
        Default: auc, gauc, average_precision, log_loss, calibration and ndcg@10. Without users, the default keeps the
        metrics that need no users. With ``sample_weight``, it leaves out ndcg, which takes no weights. Metrics of lists
        rank the rows of each user by score.
    user_ids : with ``indptr`` one label per user; without it one key per row, rows in any order
        A tuple of several such arrays makes each combination of keys a user. Without ``indptr`` and ``user_ids``,
        only metrics over all rows are available.
    item_ids : array (n,), for ``ties='id_asc'`` and ``'id_desc'``
    sample_weight : array (n,), weights of rows, 0 or from 1e-100 to 1e100; metrics of lists take none
    user : name of the column of a data frame with users; default: ``user_id``, if present
        Several names make a user together.
    item : name of the column of a data frame with items, for ``ties='id_asc'`` and ``'id_desc'``
    label : name of the column of a data frame with labels; default: ``label``
    score : name of the column of a data frame with scores; default: ``score``
    row_groups : one label per row, or a dict {name: labels}, that may vary within a user: a position, a device
        The report has for each label what it would have for the rows with this label alone, in ``groups["row_group"]``
        or ``groups[name]``. Labels are integers or strings; a row with None, or a missing value of pandas,
        Polars or PyArrow, is in no segment.
    row_by : name of the column of a data frame, or several, to segment rows by
        Columns do for data frames what ``row_groups`` does for arrays. A row without a value is in no segment.
    min_gain : the label from which a row is positive
        Numbers are compared as doubles: a float32 of 0.7 is below 0.7.

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError, MetricError
        As `evaluate`; also if a metric cannot be computed from these arguments.

    Examples
    --------
    >>> labels, scores = (
    ...     [1, 0, 1, 1, 0, 1, 0, 0, 1],
    ...     [0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.8, 0.7, 0.6],
    ... )
    >>> report = fastrec.evaluate_scores(
    ...     labels, scores, [0, 5, 9], ["gauc", "auc", "ndcg@3"]
    ... )
    >>> {name: round(report[name], 4) for name in report}
    {'gauc': 0.5926, 'auc': 0.575, 'ndcg@3': 0.6585}
    """
    from fastrec.evaluation.row_reports import report_of_rows  # lists need none

    return report_of_rows(labels, scores, indptr, metrics, pick(evaluate_scores, locals()))

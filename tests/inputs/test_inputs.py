"""Input of `evaluate`: errors, exact conversions, and the order of lists."""

import itertools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import fastrec
from fastrec.inputs.ragged import read_only
from fastrec.runtime.launcher import SMALL_WORK
from support import oracle, strategies
from support.arrays import STRINGS
from support.list_calls import CI, Ask, check_estimate, check_user_values, flat, recs_of, truth_of, write
from support.strategies import Log

RECS, TRUTH = [[1, 2, 3], [4, 5]], [[2], [4, 9]]
ITEMS, POINTERS = np.array([1, 2, 3, 4, 5]), np.array([0, 3, 5])
HELD, HELD_POINTERS = np.array([2, 4, 9]), np.array([0, 1, 3])
NAMES = ["ann", "bob"]
HUGE = 2**63


class Fault(NamedTuple):
    """Arguments of a call on two users, and the expected error."""

    change: dict[str, Any]
    error: type[fastrec.FastrecError]
    says: list[str]


def masked(values: Any) -> Any:
    return np.ma.masked_array(values, mask=[True] + [False] * (len(values) - 1))


def recs(items: Any, indptr: Any = POINTERS, *scores: Any) -> dict[str, Any]:
    return {"recs": (items, indptr, *scores)}


def truth(items: Any, indptr: Any = HELD_POINTERS, *gains: Any) -> dict[str, Any]:
    return {"truth": (items, indptr, *gains)}


def gains(values: Any) -> dict[str, Any]:
    return truth(HELD, HELD_POINTERS, values)


def scores(values: Any) -> dict[str, Any]:
    return recs(ITEMS, POINTERS, values)


Value, Type, Metric = fastrec.InputError, fastrec.InputTypeError, fastrec.MetricError

DATA: dict[str, Fault] = {
    # forms
    "recs is nothing": Fault({"recs": None}, Type, ["recs", "(items, indptr)", "found", "NoneType"]),
    "recs is a number": Fault({"recs": 3}, Type, ["recs", "found", "int"]),
    "recs is a text": Fault({"recs": "abc"}, Type, ["recs", "found", "str"]),
    "recs is an iterator": Fault({"recs": iter(RECS)}, Type, ["recs", "found", "iterator"]),
    "truth is a set": Fault({"truth": {1, 2}}, Type, ["truth", "(items, indptr, gains)", "found", "set"]),
    "1-D": Fault({"recs": ITEMS}, Value, ["recs", "(5,)", "(items, indptr)"]),
    "3-D": Fault({"recs": np.zeros((2, 2, 2), int)}, Value, ["recs", "(2, 2, 2)", "2-D"]),
    "matrix of scores": Fault({"recs": np.ones((2, 3))}, Type, ["recs", "float", "(2, 3)", "fastrec.evaluate_model"]),
    "matrix of scores, as lists": Fault({"recs": [[0.1, 0.2], [0.3, 0.4]]}, Type, ["recs", "float", "0.1"]),
    "matrix of booleans": Fault({"recs": np.ones((2, 3), bool)}, Type, ["recs", "integers", "bool"]),
    "matrix of complex": Fault({"truth": np.ones((2, 3), complex)}, Type, ["truth", "integers", "complex"]),
    "masked matrix": Fault({"recs": np.ma.ones((2, 3), int)}, Type, ["recs", "masked", "-1"]),
    "item after padding": Fault({"recs": np.array([[1, 2, 3], [4, -1, 5]])}, Value, ["recs[1]", "-1", "[4, -1, 5]"]),
    "tuple of one": Fault({"recs": (ITEMS,)}, Value, ["recs", "tuple of 1", "(items, indptr)"]),
    "tuple of four lists": Fault(
        {"recs": ([1], [2], [3], [4])}, Value, ["recs", "tuple of 4", "as a list, not as a tuple"]
    ),
    "tuple of two lists": Fault({"recs": ([1, 2], [4, 5])}, Value, ["recs", "indptr", "4"]),
    "list of items": Fault({"recs": [1, 2]}, Type, ["recs[0]", "list of items", "int"]),
    "list of texts": Fault({"truth": ["ab", "cd"]}, Type, ["truth[0]", "list of items", "str"]),
    "an iterator in the list": Fault({"recs": [[1], iter([2])]}, Type, ["recs[1]", "list of items", "iterator"]),
    "a scalar array in the list": Fault({"recs": [[1], np.array(2)]}, Type, ["recs[1]", "list of items"]),
    "a matrix in the list": Fault({"recs": [np.array([[1, 2]]), []]}, Type, ["recs", "ndarray"]),
    "scores for some": Fault({"recs": [{1: 0.5}, [2]]}, Type, ["recs", "scores for all users or for none"]),
    "gains for some": Fault({"truth": [{1: 0.5}, [2]]}, Type, ["truth", "gains for all users or for none"]),
    "COO": Fault({"recs": sparse.coo_matrix(np.eye(2))}, Type, ["recs", "sparse", "tocsr()"]),
    "CSC": Fault({"truth": sparse.csc_matrix(np.eye(2))}, Type, ["truth", "csc", "tocsr()"]),
    "path of lists": Fault({"recs": "recs.csv"}, Type, ["recs must be data", "'recs.csv'", "evaluate_files reads"]),
    "path of truth": Fault({"truth": Path("t.csv")}, Type, ["truth must be data", "t.csv", "evaluate_files"]),
    "dict and list": Fault({"recs": {1: [1]}}, Type, ["dicts", "truth", "list"]),
    "list and dict": Fault({"truth": {1: [1]}}, Type, ["dicts", "recs", "list"]),
    "dicts and a list of seen": Fault(
        {"recs": {1: [1]}, "truth": {1: [1]}, "exclude": [[1]]}, Type, ["dicts", "exclude", "list"]
    ),
    "keys of other types": Fault(
        {"recs": {1: [1]}, "truth": {"1": [1]}}, Type, ["user ids", "one type", "recs: integers, truth: strings"]
    ),
    "keys of two types": Fault(
        {"recs": {1: [1], "b": [2]}, "truth": {1: [1]}},
        Type,
        ["one type", "recs: integers and strings, truth: integers"],
    ),
    "keys of seen items": Fault(
        {"recs": {1: [1]}, "truth": {1: [1]}, "exclude": {(1, 2): [1]}}, Type, ["one type", "exclude: tuple"]
    ),
    "key is None": Fault({"recs": {None: [1]}, "truth": {None: [1]}}, Type, ["user ids", "found None in recs"]),
    "key is NaN": Fault({"recs": {}, "truth": {math.nan: [1]}}, Type, ["user ids", "found nan in truth"]),
    "key is a float": Fault({"recs": {1: [1]}, "truth": {np.float32(1): [1]}}, Type, ["user ids", "found", "in truth"]),
    "key is a boolean": Fault({"recs": {1: [1]}, "truth": {True: [1]}}, Type, ["user ids", "found True in truth"]),
    "dict of numbers": Fault(
        {"recs": {"ann": 5}, "truth": {"ann": [1]}}, Type, ["recs['ann']", "list of items", "int"]
    ),
    "dict of texts": Fault(
        {"recs": {"ann": [1]}, "truth": {"ann": "x"}}, Type, ["truth['ann']", "list of items", "str"]
    ),
    # ids
    "float ids": Fault(recs(ITEMS * 1.0), Type, ["recs items", "float64", "astype"]),
    "float ids of the truth": Fault(truth(HELD.astype(np.float32)), Type, ["truth items", "float32"]),
    "boolean ids": Fault(recs(ITEMS > 2), Type, ["recs items", "bool"]),
    "complex ids": Fault(recs(ITEMS * 1j), Type, ["recs items", "complex128"]),
    "dates": Fault(recs(ITEMS.astype("M8[D]")), Type, ["recs items", "datetime64"]),
    "numbers and texts": Fault({"recs": [[1, "a"], [2]]}, Type, ["recs items", "int", "str"]),
    "texts and bytes": Fault({"recs": [["a", b"b"], []]}, Type, ["recs items", "bytes", "str"]),
    "a missing id": Fault({"truth": [[2], [None]]}, Type, ["truth items", "NoneType"]),
    "a float among integers": Fault({"recs": [[1, 2.5], [3]]}, Type, ["recs items", "float", "position 1", "2.5"]),
    "True among integers": Fault({"recs": [[True, 2], [3]]}, Type, ["recs items", "bool"]),
    "texts against integers": Fault({"recs": [["a"], ["b"]]}, Type, ["recs: strings", "truth: integers"]),
    "bytes against texts": Fault({"recs": [[b"a"], []], "truth": [["a"], []]}, Type, ["recs: bytes", "truth: strings"]),
    "seen texts": Fault({"exclude": [["a"], []]}, Type, ["exclude: strings", "recs: integers"]),
    "masked ids": Fault(recs(masked(ITEMS)), Type, ["recs items", "masked"]),
    "2-D ids": Fault(recs(ITEMS.reshape(1, 5)), Value, ["recs items", "1-D", "(1, 5)"]),
    "unsigned past the largest": Fault(
        recs(np.array([1, 2, HUGE, 4, 5], np.uint64)), Value, ["recs items", "2**63 - 1", str(HUGE), "position 2"]
    ),
    "whole number past the largest": Fault({"truth": [[2], [HUGE]]}, Value, ["truth items", "2**63 - 1", str(HUGE)]),
    "whole number below the smallest": Fault({"recs": [[-HUGE - 1], []]}, Value, ["recs items", str(-HUGE - 1)]),
    "negative id in a list": Fault({"recs": [[1, -2], [3]]}, Value, ["recs of user 0", "negative", "-2", "rank 2"]),
    "negative id in a matrix": Fault({"recs": np.array([[1, -7], [3, 4]])}, Value, ["recs of user 0", "-7"]),
    "negative id in the truth": Fault({"truth": [[2], [4, -9]]}, Value, ["truth of user 1", "negative", "-9"]),
    "-1 in a list that may have blanks": Fault(
        {"recs": [[1], [3, -1]], "duplicates": "miss"}, Value, ["recs of user 1", "negative", "-1", "rank 2"]
    ),
    "float ids in a Ragged": Fault({"recs": fastrec.Ragged(ITEMS * 1.0, POINTERS)}, Type, ["recs.values", "float64"]),
    "seen float ids": Fault({"exclude": [[0.5], []]}, Type, ["exclude items", "0.5"]),
    # pointers
    "falling": Fault(recs(ITEMS, [0, 3, 2, 5]), Value, ["recs indptr", "must not decrease", "[1] = 3", "[2] = 2"]),
    "falling, of the truth": Fault(truth(HELD, [0, 4, 3]), Value, ["truth indptr", "[1] = 4", "[2] = 3"]),
    "too short": Fault(recs(ITEMS, [0, 3, 4]), Value, ["recs indptr", "5", "[-1] = 4"]),
    "too long": Fault(recs(ITEMS, [0, 3, 6]), Value, ["recs indptr", "5", "[-1] = 6"]),
    "not from 0": Fault(recs(ITEMS, [1, 3, 5]), Value, ["recs indptr", "start at 0", "[0] = 1"]),
    "no pointers": Fault(recs(ITEMS, []), Value, ["recs indptr", "(0,)"]),
    "2-D pointers": Fault(recs(ITEMS, [[0, 3, 5]]), Value, ["recs indptr", "1-D", "(1, 3)"]),
    "float pointers": Fault(recs(ITEMS, POINTERS * 1.0), Type, ["recs indptr", "integers", "float64"]),
    "boolean pointers": Fault(recs([7], [False, True]), Type, ["recs indptr", "integers", "bool"]),
    "masked pointers": Fault(recs(ITEMS, masked(POINTERS)), Type, ["recs indptr", "masked"]),
    "no number among pointers": Fault(recs(ITEMS, [0, 3, None]), Type, ["recs indptr", "integers", "object"]),
    "huge pointer": Fault(recs(ITEMS, np.array([0, HUGE, 5], np.uint64)), Value, ["recs indptr", str(HUGE)]),
    # scores and gains
    "NaN gain": Fault(gains([1, math.nan, 1]), Value, ["truth gains", "NaN", "position 1"]),
    "infinite gain": Fault(gains([1, 1, math.inf]), Value, ["truth gains", "finite", "inf", "position 2"]),
    "infinite loss": Fault(gains([-math.inf, 1, 1]), Value, ["truth gains", "finite", "-inf", "position 0"]),
    "NaN score": Fault(scores([1, 2, math.nan, 4, 5]), Value, ["recs scores", "NaN", "position 2"]),
    "NaN in a CSR matrix": Fault(
        {"recs": sparse.csr_matrix([[1.0, math.nan], [0, 2]])}, Value, ["recs.data", "NaN", "position 1"]
    ),
    "few gains": Fault(gains([1.0, 1.0]), Value, ["truth gains", "3", "(2,)"]),
    "many scores": Fault(scores(np.ones(6)), Value, ["recs scores", "5", "(6,)"]),
    "2-D gains": Fault(gains(np.ones((3, 1))), Value, ["truth gains", "(3, 1)"]),
    "gains are texts": Fault(gains(["a", "b", "c"]), Type, ["truth gains", "numbers", "<U1"]),
    "gains are complex": Fault(gains(np.ones(3) * 1j), Type, ["truth gains", "complex128"]),
    "a missing gain": Fault(gains([1, None, 1]), Type, ["truth gains", "object"]),
    "masked gains": Fault(gains(masked(np.ones(3))), Type, ["truth gains", "masked"]),
    "masked scores": Fault(scores(masked(np.ones(5))), Type, ["recs scores", "masked"]),
    "gain just past the exact ones": Fault(gains([1, 2**53 + 1, 1]), Value, ["truth gains", str(2**53 + 1)]),
    "score just past the exact ones": Fault(scores([1, 2, 3, 4, -(2**53) - 1]), Value, ["recs scores", "position 4"]),
    "inexact gain": Fault(gains([1, 2**60, 1]), Value, ["truth gains", "2**53", str(2**60), "position 1"]),
    "NaN gain of an item": Fault({"truth": [{2: math.nan}, {}]}, Value, ["truth gains", "NaN"]),
    # users
    "users differ": Fault({"truth": [[1]]}, Value, ["recs and truth", "same users", "2 and 1"]),
    "users of the seen differ": Fault({"exclude": [[1]]}, Value, ["recs and exclude", "same users", "2 and 1"]),
    "no truth": Fault({"truth": [[2], []], "no_truth": "error"}, Value, ["user 1", "no relevant item", "no_truth"]),
    "no list": Fault(
        {"recs": [[], [4]], "no_recs": "error", "user_ids": NAMES}, Value, ["user 'ann'", "no list", "no_recs"]
    ),
    # duplicates
    "twice in a list": Fault(
        {"recs": [[1], [4, 6, 4]]}, Value, ["recs of user 1", "item 4", "twice", "rank 3", "first"]
    ),
    "twice in the truth": Fault({"truth": [[2], [9, 9]]}, Value, ["truth of user 1", "item 9", "twice", "first"]),
    "text twice in a list": Fault(
        {"recs": [["a"], ["c", "d", "c"]], "truth": [["a"], ["d"]], "user_ids": NAMES},
        Value,
        ["recs of user 'bob'", "item 'c'", "rank 3"],
    ),
    "text twice in the truth": Fault(
        {"recs": [["a"], ["c"]], "truth": [["a", "b", "a"], ["d"]], "user_ids": NAMES},
        Value,
        ["truth of user 'ann'", "item 'a'"],
    ),
    "twice in a dict of lists": Fault(
        {"recs": {"x": [1], "y": [2, 2]}, "truth": {"y": [2], "x": [1]}},
        Value,
        ["recs of user 'y'", "item 2", "rank 2"],
    ),
    "tied": Fault(
        scores([3, 1, 1, 2, 1.0]) | {"ties": "error"},
        Value,
        ["recs of user 0", "items 2 and 3", "score 1.0", "'expected'", "'id_desc'"],
    ),
    "zeros tied": Fault(scores([3, 2, 1, -0.0, 0.0]) | {"ties": "error"}, Value, ["recs of user 1", "items 4 and 5"]),
    "copies tied": Fault(
        recs(np.array([2, 5, 2, 4, 5]), POINTERS, [1, 1, 1.0, 2, 3]) | {"duplicates": "first"},
        Value,
        ["recs of user 0", "item 2 appears twice", "same score", "'input'"],
    ),
    "tied, and no closed form": Fault(
        scores([3, 1, 1, 2, 1.0]) | {"metrics": "ndcg(ideal=list_at_k)@2"},
        Value,
        ["ndcg(ideal=list_at_k)@2", "tied scores", "user 0", "'worst'"],
    ),
    "tied texts": Fault(
        {"recs": [{"a": 1.0, "b": 1.0}, {}], "truth": [["a"], []], "user_ids": NAMES, "ties": "error"},
        Value,
        ["recs of user 'ann'", "items 'a' and 'b'", "'id_asc'"],
    ),
    # metrics that cannot use this data
    "gain above max_gain": Fault(
        {"truth": [{2: 3.0}, {}], "metrics": "err(max_gain=2)"}, Value, ["truth gains", "max_gain = 2", "3.0"]
    ),
    "grade past the table": Fault(
        {"truth": [{2: 3.0}, {}], "metrics": "cg(gain=[0, 1, 3])"}, Value, ["table of 3", "0, 1, ..., 2", "3.0"]
    ),
    "grade between": Fault({"truth": [{2: 1.5}, {}], "metrics": "cg(gain=[0, 1, 3])"}, Value, ["table of 3", "1.5"]),
    "ideal of ones": Fault(
        {"truth": [{2: 2.0}, {}], "metrics": "ndcg(ideal=k)@3"}, Value, ["ndcg(ideal=k)@3", "gains of 1", "2.0"]
    ),
    "gain too large for exp2": Fault(
        {"truth": [{2: 1100.0}, {}], "metrics": "ndcg(gain=exp2)"}, Value, ["ndcg(gain=exp2) of user 0", "too large"]
    ),
    "n_items too small": Fault({"metrics": "mcc@2", "n_items": 2}, Value, ["n_items = 2", "too small", "3 items"]),
}

ABOUT_USERS: dict[str, Fault] = {
    "few labels": Fault({"groups": ["a"]}, Value, ["groups", "one label per user", "2", "(1,)"]),
    "few labels of a grouping": Fault({"groups": {"plan": ["a"]}}, Value, ["groups['plan']", "2", "(1,)"]),
    "2-D labels": Fault({"groups": np.ones((2, 2), int)}, Value, ["groups", "(2, 2)"]),
    "labels are floats": Fault({"groups": np.ones(2)}, Type, ["groups", "integers or strings", "float64"]),
    "labels are booleans": Fault({"groups": np.ones(2, bool)}, Type, ["groups", "bool"]),
    "labels of two kinds": Fault({"groups": ["a", 1]}, Type, ["groups", "all integers or all strings"]),
    "a missing label": Fault(
        {"groups": {"plan": ["a", None]}}, Type, ["groups['plan']", "all integers or all strings"]
    ),
    "masked labels": Fault({"groups": masked(np.ones(2, int))}, Type, ["groups", "masked"]),
    "labels in a text": Fault({"groups": "ab"}, Type, ["groups", "str"]),
    "labels are a number": Fault({"groups": 5}, Type, ["groups", "int"]),
    "grouping without a name": Fault({"groups": {1: NAMES}}, Type, ["groups", "strings", "1"]),
    "few weights": Fault({"user_weight": [1.0]}, Value, ["user_weight", "2", "(1,)"]),
    "one weight": Fault({"user_weight": 2.0}, Value, ["user_weight", "2", "()"]),
    "negative weight": Fault({"user_weight": [1, -1]}, Value, ["user_weight", "negative", "-1.0", "user 1"]),
    "NaN weight": Fault({"user_weight": [math.nan, 1]}, Value, ["user_weight", "finite", "nan", "user 0"]),
    "infinite weight": Fault({"user_weight": [1, math.inf]}, Value, ["user_weight", "finite", "inf", "user 1"]),
    "weights are texts": Fault({"user_weight": ["a", "b"]}, Type, ["user_weight", "numbers", "<U1"]),
    "a missing weight": Fault({"user_weight": [1, None]}, Type, ["user_weight", "numbers", "object"]),
    "masked weights": Fault({"user_weight": masked(np.ones(2))}, Type, ["user_weight", "masked"]),
    "few ids": Fault({"user_ids": ["ann"]}, Value, ["user_ids", "2", "(1,)"]),
    "an id twice": Fault({"user_ids": ["ann", "ann"]}, Value, ["user_ids", "once", "ann"]),
    "a number twice": Fault({"user_ids": np.array([7, 7])}, Value, ["user_ids", "once", "7"]),
    "float user ids": Fault({"user_ids": np.array([1.0, 2.0])}, Type, ["user_ids", "float64"]),
    "masked user ids": Fault({"user_ids": masked(np.ones(2, int))}, Type, ["user_ids", "masked"]),
    "user ids in a text": Fault({"user_ids": "ab"}, Type, ["user_ids", "str"]),
    "user ids are a number": Fault({"user_ids": 4}, Type, ["user_ids", "int"]),
    "user ids are lists": Fault({"user_ids": [[1], [2]]}, Type, ["user_ids", "list"]),
    "user ids of two types": Fault({"user_ids": ["ann", 1]}, Type, ["one type", "user_ids: integers and strings"]),
    "a missing user id": Fault({"user_ids": ["ann", None]}, Type, ["user ids", "found None in user_ids"]),
    "user ids hold lists": Fault({"user_ids": [(1, [2]), (3, 4)]}, Type, ["user_ids", "a tuple at position 0"]),
    "ids beside dicts": Fault(
        {"recs": {1: [1], 2: []}, "truth": {1: [1]}, "user_ids": NAMES}, Value, ["user_ids", "dicts"]
    ),
}

SETTINGS: dict[str, Fault] = {
    "unknown metric": Fault({"metrics": "ndgc@10"}, Metric, ["'ndgc'", "did you mean 'ndcg'"]),
    "metric of other tools": Fault({"metrics": "AP@10"}, Metric, ["'AP'", "did you mean 'map'"]),
    "several metrics in a text": Fault(
        {"metrics": "ndcg(gain=[0, 1])@1,recall@1"}, Metric, ["a list", "['ndcg(gain=[0, 1])@1', 'recall@1']"]
    ),
    "unknown option": Fault({"metrics": "ndcg(gains=exp2)"}, Metric, ["ndcg", "'gains'", "did you mean 'gain'"]),
    "unknown choice": Fault({"metrics": "ndcg(gain=exp)"}, Metric, ["gain=exp", "linear", "did you mean 'exp2'"]),
    "no metric": Fault({"metrics": []}, Metric, ["metrics", "at least one"]),
    "metric is a number": Fault({"metrics": [3]}, Metric, ["string", "3"]),
    "metrics is a number": Fault({"metrics": 3}, Type, ["metrics", "3"]),
    "metrics by cut-off": Fault({"metrics": {"ndcg": 10}}, Type, ["metrics", "a list", "dict", "write 'ndcg@5'"]),
    "metrics without order": Fault({"metrics": {"ndcg@5", "recall@5"}}, Type, ["metrics", "a list", "found a set"]),
    "cut-offs by metric": Fault({"k": {5: "ndcg"}}, Type, ["k", "a list", "found a dict"]),
    "cut-offs without order": Fault({"k": frozenset({5, 10})}, Type, ["k", "a list", "found a frozenset"]),
    "metrics of a tool without order": Fault(
        {"metrics": {"ndcg@5"}, "like": "trec_eval"}, Type, ["metrics", "a list", "found a set"]
    ),
    "option without a value": Fault({"metrics": "ndcg(exp2)"}, Metric, ["'exp2'", "name=value"]),
    "option twice": Fault({"metrics": "cg(gain=exp2, gain=linear)"}, Metric, ["gain", "twice"]),
    "open bracket": Fault({"metrics": "ndcg(gain=exp2@3"}, Metric, ["'ndcg(gain=exp2@3'", "name(option=value)@k"]),
    "no name": Fault({"metrics": "@3"}, Metric, ["'@3'", "name(option=value)@k"]),
    "k in words": Fault({"metrics": "ndcg@ten"}, Metric, ["cut-off", "'ndcg@ten'", "integer", "'ten'"]),
    "k = 0": Fault({"k": 0}, Metric, ["k must be from 1", "found 0"]),
    "@0": Fault({"metrics": "ndcg@0"}, Metric, ["cut-off", "'ndcg@0'", "from 1", "found 0"]),
    "negative k": Fault({"k": [5, -1]}, Metric, ["k", "from 1", "-1"]),
    "k is a float": Fault({"k": 10.0}, Metric, ["k", "integer", "10.0"]),
    "k is a text": Fault({"k": "10"}, Metric, ["k", "integer", "'10'"]),
    "k is bytes": Fault({"k": b"10"}, Metric, ["k", "integer", "b'10'"]),
    "k is True": Fault({"k": True}, Metric, ["k", "integer", "True"]),
    "no k": Fault({"k": []}, Metric, ["k", "at least one"]),
    "k too large": Fault({"k": 2**31}, Metric, ["k", str(2**31 - 1), str(2**31)]),
    "k too large for ideal=k": Fault({"metrics": "ndcg(ideal=k)@100000000"}, Metric, ["ideal=k", "100000000"]),
    "max_gain missing": Fault({"metrics": "err@10"}, Metric, ["err", "max_gain", "err(max_gain=4)@10"]),
    "p = 1": Fault({"metrics": "rbp(p=1)"}, Metric, ["rbp", "p=1", "below 1"]),
    "p = nan": Fault({"metrics": "rbp(p=nan)"}, Metric, ["rbp", "p=nan"]),
    "negative beta": Fault({"metrics": "f_beta(beta=-1)"}, Metric, ["f_beta", "beta=-1"]),
    "table not from 0": Fault({"metrics": "cg(gain=[1, 2])"}, Metric, ["gain table", "start with 0", "[1, 2]"]),
    "table falls": Fault({"metrics": "cg(gain=[0, 2, 1])"}, Metric, ["gain table", "not decrease", "[0, 2, 1]"]),
    "discounts rise": Fault({"metrics": "dcg(discount=[1, 2])"}, Metric, ["discount table", "not increase", "[1, 2]"]),
    "negative discount": Fault({"metrics": "dcg(discount=[1, -2])"}, Metric, ["discount", "finite", ">= 0", "-2"]),
    "NaN in a table": Fault({"metrics": "cg(gain=[0, nan])"}, Metric, ["gain", "finite", "nan"]),
    "empty table": Fault({"metrics": "dcg(discount=[])"}, Metric, ["discount", "[]"]),
    "words in a table": Fault({"metrics": "cg(gain=[0, a])"}, Metric, ["gain", "numbers", "a"]),
    "min_gain of a metric": Fault({"metrics": "ndcg(min_gain=0)"}, Metric, ["ndcg", "min_gain=0", "above 0"]),
    "n_items missing": Fault({"metrics": "mcc@2"}, Metric, ["mcc@2", "n_items"]),
    "n_items = 0": Fault({"n_items": 0}, Value, ["n_items", "from 1", "found 0"]),
    "n_items too large": Fault({"n_items": 2**60}, Value, ["n_items", "2**53", str(2**60)]),
    "n_items is a float": Fault({"n_items": 10.0}, Type, ["n_items", "integer", "10.0"]),
    "n_items is True": Fault({"n_items": True}, Type, ["n_items", "True"]),
    "min_gain = 0": Fault({"min_gain": 0}, Value, ["min_gain", "above 0", "found 0"]),
    "negative min_gain": Fault({"min_gain": -1.5}, Value, ["min_gain", "above 0", "-1.5"]),
    "NaN min_gain": Fault({"min_gain": math.nan}, Value, ["min_gain", "finite", "nan"]),
    "infinite min_gain": Fault({"min_gain": math.inf}, Value, ["min_gain", "finite", "inf"]),
    "min_gain past all doubles": Fault({"min_gain": 10**400}, Value, ["min_gain", "finite"]),
    "min_gain is a text": Fault({"min_gain": "1"}, Type, ["min_gain", "number or 'any'", "'1'"]),
    "min_gain is True": Fault({"min_gain": True}, Type, ["min_gain", "True"]),
    "no threads": Fault({"n_threads": 0}, Value, ["n_threads", "at least 1", "0"]),
    "threads are a float": Fault({"n_threads": 1.5}, Type, ["n_threads", "integer", "1.5"]),
    "threads are True": Fault({"n_threads": True}, Type, ["n_threads", "True"]),
    "per_user is an array": Fault({"per_user": np.array([True, False])}, Type, ["per_user", "True or False", "array"]),
    "per_user is a text": Fault({"per_user": "no"}, Type, ["per_user", "True or False", "'no'"]),
    "ties": Fault({"ties": "asc"}, Value, ["ties", "id_asc", "'asc'"]),
    "no_truth": Fault({"no_truth": "drop"}, Value, ["no_truth", "skip, zero, nan, error", "'drop'"]),
    "no_recs": Fault({"no_recs": "none"}, Value, ["no_recs", "skip, zero, nan, error", "none"]),
    "duplicates": Fault({"duplicates": ["first"]}, Value, ["duplicates", "error, first, miss", "['first']"]),
}
BATCHES = DATA | ABOUT_USERS
OF_UPDATE = ("recs", "truth", "exclude", "groups", "user_weight", "user_ids")


def check_error(error: fastrec.FastrecError, fault: Fault) -> None:
    assert isinstance(error, fault.error)
    assert isinstance(error, (ValueError, TypeError))
    message = str(error)
    assert all(part in message for part in fault.says), message
    assert "\n" not in message


@pytest.mark.parametrize("name", [*BATCHES, *SETTINGS])
def test_evaluate_says_what_is_wrong(name: str) -> None:
    fault = (BATCHES | SETTINGS)[name]
    arguments: dict[str, Any] = {"recs": RECS, "truth": TRUTH} | fault.change
    with pytest.raises(fastrec.FastrecError) as caught:
        fastrec.evaluate(**arguments)
    check_error(caught.value, fault)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_evaluator_refuses_its_settings_at_once(name: str) -> None:
    with pytest.raises(fastrec.FastrecError) as caught:
        fastrec.Evaluator(**SETTINGS[name].change)
    check_error(caught.value, SETTINGS[name])


def snapshot(evaluator: fastrec.Evaluator) -> Any:
    report = evaluator.result()
    values = {name: values.tolist() for name, values in report.per_user.items()}
    return repr((report.to_dict(), values, None if report.user_ids is None else report.user_ids.tolist()))


@pytest.mark.parametrize("name", BATCHES)
def test_a_failed_update_changes_nothing(name: str) -> None:
    change = BATCHES[name].change
    settings = {key: value for key, value in change.items() if key not in OF_UPDATE}
    batch: dict[str, Any] = {"recs": RECS, "truth": TRUTH}
    batch |= {key: value for key, value in change.items() if key in OF_UPDATE}
    good: dict[str, Any] = {"recs": [[1, 2]], "truth": [[2]]}
    if "user_weight" in change:
        good["user_weight"] = [1.0]
    if "user_ids" in change or isinstance(change.get("recs"), dict):
        good["user_ids"] = ["eve"]
    arguments: dict[str, Any] = {"metrics": ["recall", "cg"], "per_user": True} | settings
    evaluator = fastrec.Evaluator(**arguments)
    evaluator.update(**good)
    before = snapshot(evaluator)
    with pytest.raises(fastrec.FastrecError) as caught:
        evaluator.update(**batch)
    check_error(caught.value, BATCHES[name])
    assert snapshot(evaluator) == before
    if "user_ids" in good:
        good["user_ids"] = ["zoe"]
    evaluator.update(**good)
    assert evaluator.result().users["total"] == 2


RAGGED: dict[str, tuple[Any, Any, type[Exception], list[str]]] = {
    "2-D values": (np.ones((2, 2)), [0, 2], Value, ["1-D", "(2, 2)"]),
    "pointers fall": ([7, 8, 9], [0, 2, 1, 3], Value, ["indptr[1] = 2", "indptr[2] = 1"]),
    "pointers end early": ([7, 8, 9], [0, 2], Value, ["3", "indptr[-1] = 2"]),
    "pointers start late": ([7, 8, 9], [1, 3], Value, ["indptr[0] = 1"]),
    "float pointers": ([7, 8, 9], [0.0, 3.0], Type, ["indptr", "float64"]),
    "no pointers": ([7, 8, 9], [], Value, ["indptr", "(0,)"]),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_says_what_is_wrong(name: str) -> None:
    values, indptr, error, says = RAGGED[name]
    with pytest.raises(error) as caught:
        fastrec.Ragged(values, indptr)
    assert all(part in str(caught.value) for part in says), str(caught.value)


def test_rows_of_a_ragged() -> None:
    rows = fastrec.Ragged(np.array([7, 8, 9], np.int32), np.array([0, 2, 2, 3]))
    assert [rows[at].tolist() for at in range(len(rows))] == [[7, 8], [], [9]]
    assert rows[-1].tolist() == [9]
    assert rows[0].dtype == np.int32
    for outside in (3, -4):
        with pytest.raises(IndexError, match=f"{outside}.*3 rows"):
            rows[outside]


def many_rows() -> tuple[Any, Any]:
    assert SMALL_WORK < 4000 * 100 * 2
    return np.tile(np.arange(100), 4000), np.arange(4001) * 100


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_the_first_faulty_user_is_named_whatever_the_threads(n_threads: int) -> None:
    items, indptr = many_rows()
    for user in (3999, 2100, 2049, 1203):  # in this order, so that the first of them changes
        items[user * 100 + 7] = items[user * 100 + 5]
        with pytest.raises(fastrec.InputError, match=f"recs of user {user}: item 5 appears twice.*rank 8"):
            fastrec.evaluate((items, indptr), many_rows(), ["recall"], n_threads=n_threads)


# Batches and merging


def evaluator_of(user_ids: Any, **settings: Any) -> fastrec.Evaluator:
    evaluator = fastrec.Evaluator(**{"metrics": "recall"} | settings)
    evaluator.update(RECS[: len(user_ids)], TRUTH[: len(user_ids)], user_ids=user_ids)
    return evaluator


@pytest.mark.parametrize(
    ("first", "second", "again"),
    [
        ([1, 2], [3, 1], "1"),
        (["ann", "bob"], ["robert", "ann"], "'ann'"),
        ([1, 2], np.array([2, 3], np.uint64), "2"),
        (np.array([1, 2], np.uint8), np.array([2, 3], np.int16), "2"),
        (["a\0", "b"], ["c", "a\0"], "'a"),
        ([(1, 2), (3, 4)], [(5, 6), (3, 4)], "(3, 4)"),
    ],
)
def test_a_user_comes_once(first: Any, second: Any, again: str) -> None:
    evaluator = evaluator_of(first)
    with pytest.raises(fastrec.InputError) as caught:
        evaluator.update(RECS, TRUTH, user_ids=second)
    assert f"user {again}" in str(caught.value)
    assert "earlier update" in str(caught.value)
    other = evaluator_of(second)
    with pytest.raises(fastrec.InputError) as caught:
        evaluator.merge(other)
    assert f"user {again}" in str(caught.value)
    assert evaluator.result().users["total"] == 2


def test_users_that_are_neither_texts_nor_integers() -> None:
    recs, truth = {("a", 1): [1], ("a", 2): [2], ("b", 1): [3]}, {("a", 1): [1], ("a", 2): [9], ("b", 1): []}
    evaluator = fastrec.Evaluator("recall")
    evaluator.update(recs, truth)
    report = evaluator.result()
    assert report["recall"] == 0.5
    assert report.user_ids is not None
    assert report.user_ids.tolist() == [("a", 1), ("a", 2), ("b", 1)]
    with pytest.raises(fastrec.InputError, match=r"user \('a', 2\)"):
        evaluator.update({("a", 2): [1]}, {("a", 2): [1]})
    evaluator.update({("b", 2): [1]}, {("b", 2): [1]})
    assert evaluator.result().users["total"] == 4


def test_keys_of_one_kind_match_whatever_their_types() -> None:
    recs = {1: [1], np.int32(2): [9], 2**63: [5], np.uint64(4): [7]}
    truth = {np.int64(1): [1], 2: [2], np.uint64(2**63): [5]}
    values = fastrec.evaluate(recs, truth, "recall", per_user=True).per_user["recall"]
    assert values.tolist() == pytest.approx([1, 0, 1, math.nan], nan_ok=True)
    with pytest.warns(fastrec.FastrecWarning, match="no user with truth"):
        assert fastrec.evaluate({}, {"a": [1]}, "recall")["recall"] == 0


def test_a_user_who_was_refused_may_come_again() -> None:
    evaluator = evaluator_of([1, 2])
    with pytest.raises(fastrec.InputError, match="twice"):
        evaluator.update([[1, 1]], [[1]], user_ids=[3])
    evaluator.update([[1]], [[1]], user_ids=[3])
    assert evaluator.result().users["total"] == 3


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"metrics": "ndcg"}, ["metrics", "['recall']", "['ndcg']"]),
        ({"metrics": "recall@5"}, ["metrics", "['recall@5']"]),
        ({"per_user": True}, ["per_user", "False", "True"]),
        ({"min_gain": 2}, ["min_gain", "None", "2.0"]),
        ({"n_items": 50}, ["n_items", "50"]),
        ({"ties": "input"}, ["ties", "'expected'", "'input'"]),
        ({"no_truth": "zero"}, ["no_truth", "'zero'"]),
        ({"no_recs": "skip"}, ["no_recs", "'skip'"]),
        ({"duplicates": "miss"}, ["duplicates", "'miss'"]),
    ],
)
def test_merging_needs_equal_settings(settings: dict[str, Any], says: list[str]) -> None:
    mine, other = evaluator_of([1, 2]), evaluator_of([3, 4], **settings)
    with pytest.raises(fastrec.InputError) as caught:
        mine.merge(other)
    assert all(part in str(caught.value) for part in says)
    assert mine.result().users["total"] == other.result().users["total"] == 2


def test_merging_needs_an_evaluator() -> None:
    with pytest.raises(fastrec.InputTypeError, match="Evaluator, found Report"):
        evaluator_of([1]).merge(evaluator_of([2]).result())  # type: ignore[arg-type]


def test_an_evaluator_is_not_merged_with_itself() -> None:
    evaluator = fastrec.Evaluator("recall")
    evaluator.update(RECS, TRUTH)
    with pytest.raises(fastrec.InputError, match="itself"):
        evaluator.merge(evaluator)
    assert evaluator.result().users["total"] == 2


@pytest.mark.parametrize("name", ["user_ids", "user_weight"])
def test_every_batch_has_it_or_none(name: str) -> None:
    def argument(values: list[int], *, given: bool) -> dict[str, Any]:
        return {name: values} if given else {}

    def fed(*, given: bool) -> fastrec.Evaluator:
        evaluator = fastrec.Evaluator("recall")
        evaluator.update(RECS, TRUTH, **argument([1, 2], given=given))
        return evaluator

    for given_first in (False, True):
        evaluator = fed(given=given_first)
        with pytest.raises(fastrec.InputError, match=name):
            evaluator.update(RECS, TRUTH, **argument([3, 4], given=not given_first))
        with pytest.raises(fastrec.InputError, match=name):
            evaluator.merge(fed(given=not given_first))
        assert evaluator.result().users["total"] == 2


def test_an_empty_batch_adds_nothing() -> None:
    evaluator = fastrec.Evaluator("recall", per_user=True)
    evaluator.update(RECS, TRUTH, user_ids=NAMES, groups=NAMES, user_weight=[1, 2])
    before = snapshot(evaluator)
    evaluator.update([], [], user_ids=[], groups=[], user_weight=[])
    assert snapshot(evaluator) == before


def test_batches_may_have_other_groups() -> None:
    evaluator = fastrec.Evaluator("hits")
    evaluator.update(RECS, TRUTH, groups={"plan": ["free", "paid"], "age": [30, 7]})
    evaluator.update(RECS, TRUTH, groups={"plan": ["paid", "gone"]})
    evaluator.update(RECS, TRUTH)
    report = evaluator.result()
    counts = {
        name: {label: own["hits"].users for label, own in by_label.items()} for name, by_label in report.groups.items()
    }
    assert counts == {"age": {7: 1, 30: 1}, "plan": {"free": 1, "gone": 1, "paid": 2}}
    assert report.users["total"] == 6


# The caller's data stay unchanged


def everything() -> dict[str, Any]:
    """Make a call in which something might write to each array."""
    items = np.array([3, 1, 1, 2, 5, 4, 5, 9], np.int64)
    return {
        "recs": (items, np.array([0, 5, 8]), np.array([1, 1, 2, 1, 0, 3, 3, 4.0])),
        "truth": (np.array([1, 1, 2, 9], np.int64), np.array([0, 3, 4]), np.array([1.0, 3.0, 2.0, -1.0])),
        "exclude": (np.array([2, 4], np.int64), np.array([0, 1, 2])),
        "user_ids": np.array([7, 8]),
        "groups": {"plan": np.array(["a", "b"]), "age": np.array([2, 1])},
        "user_weight": np.array([2.0, 1.0]),
    }


@pytest.mark.parametrize("layout", ["as it is", "with gaps", "unaligned"])
def test_kernels_get_one_form_of_arrays(layout: str) -> None:
    """Another form would be another signature, compiled and kept beside the first."""
    numbers = np.arange(6)
    given = {
        "as it is": numbers,
        "with gaps": np.repeat(numbers, 2)[::2],
        "unaligned": np.frombuffer(b"x" + numbers.tobytes(), numbers.dtype, offset=1),
    }[layout]
    found = read_only(given)
    assert found.flags.c_contiguous and found.flags.aligned and not found.flags.writeable
    assert found.tolist() == numbers.tolist()
    assert numbers.flags.writeable


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return [array for part in parts for array in arrays_in(part)]


@pytest.mark.parametrize("duplicates", ["first", "miss"])
@pytest.mark.parametrize("ties", ["input", "worst", "best", "id_asc", "id_desc"])
def test_arguments_may_be_read_only_and_stay_as_they_are(ties: str, duplicates: str) -> None:
    call = everything()
    arrays = arrays_in(call)
    assert len(arrays) == 12
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    report = fastrec.evaluate(**call, ties=ties, duplicates=duplicates, per_user=True)  # type: ignore[arg-type]
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert report.users["total"] == 2


def test_lists_and_dicts_stay_as_they_are() -> None:
    recs, truth, seen = {"a": {1: 0.5, 2: 0.5}, "b": {}}, {"a": {1: 2.0, 3: 0.0}, "c": {1: 1.0}}, {"a": [2]}
    before = repr((recs, truth, seen))
    fastrec.evaluate(recs, truth, exclude=seen, ties="best", duplicates="first")
    assert repr((recs, truth, seen)) == before


def test_a_buffer_may_be_used_again_for_the_next_batch() -> None:
    """An evaluator copies what it keeps, because streams fill the same arrays again and again."""
    ids, weights, items = np.array([1, 2]), np.array([1.0, 3.0]), np.array([1, 2, 3, 4])
    truth, indptr = items.copy(), np.array([0, 2, 4])
    evaluator = fastrec.Evaluator("recall", per_user=True)
    evaluator.update((items, indptr), (truth, indptr), user_ids=ids, user_weight=weights)
    ids += 2
    truth[:2] += 90
    evaluator.update((items, indptr), (truth, indptr), user_ids=ids, user_weight=weights)
    report = evaluator.result()
    assert report.user_ids is not None
    assert report.user_ids.tolist() == [1, 2, 3, 4]
    assert report.per_user["recall"].tolist() == [1, 1, 0, 1]


def test_a_report_is_not_tied_to_its_evaluator() -> None:
    evaluator = fastrec.Evaluator("recall", per_user=True)
    evaluator.update(RECS, TRUTH, user_ids=[1, 2])
    report = evaluator.result()
    evaluator.update(RECS, TRUTH, user_ids=[3, 4])
    assert report.users["total"] == len(report.per_user["recall"]) == 2
    report.per_user["recall"][:] = 9
    assert report.user_ids is not None
    report.user_ids[:] = 9
    again = evaluator.result()
    assert again.user_ids is not None
    assert again.user_ids.tolist() == [1, 2, 3, 4]
    assert again.per_user["recall"].tolist() == [1, 0.5, 1, 0.5]


# Conversions are exact

CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "little-endian": lambda a: a.astype(a.dtype.newbyteorder("<")),
    "strided": lambda a: np.repeat(a, 3)[::3],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1),
    "Fortran column": lambda a: np.asfortranarray(np.stack([a, a]))[1],
    "a list": lambda a: a.tolist(),
    "objects": lambda a: a.astype(object),
}


@pytest.mark.parametrize("width", [np.int32, np.int64, np.uint16, np.uint64])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_arrays_of_any_layout(conversion: str, width: Any) -> None:
    convert = CONVERSIONS[conversion]
    gains, scores = np.array([1.0, 3.0, 2.0]), np.array([0.5, -1.0, 2.0, 1.0, 3.0])
    indptr, held_indptr = POINTERS.astype(np.int64), HELD_POINTERS.astype(np.int32)
    if conversion != "objects":
        indptr, held_indptr, gains, scores = map(convert, (indptr, held_indptr, gains, scores))
    call = {
        "recs": (convert(ITEMS.astype(width)), indptr, scores),
        "truth": (convert(HELD.astype(width)), held_indptr, gains),
    }
    expected = {"recs": [[3, 1, 2], [5, 4]], "truth": [{2: 1.0}, {4: 3.0, 9: 2.0}]}
    found, wanted = (fastrec.evaluate(**each, metrics=["ndcg", "mrr"]) for each in (call, expected))
    assert dict(found) == dict(wanted)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_the_largest_id(dtype: Any) -> None:
    items = np.array([HUGE - 1, HUGE - 2, 0], dtype)
    report = fastrec.evaluate((items, [0, 2, 3]), [[HUGE - 2], [0]], ["mrr"], per_user=True)
    assert report.per_user["mrr"].tolist() == [0.5, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_unsigned_arrays_have_no_padding(dtype: Any) -> None:
    padded = np.array([[7, 9, 8], [7, -1, -1], [8, -1, -1]]).astype(dtype)
    for recs, truth, name in ((padded, [[7]] * 3, "recs"), ([[7]] * 3, padded, "truth")):
        with pytest.raises(
            fastrec.InputError, match=rf"{name}\[1\] ends in {np.iinfo(dtype).max}, which -1 becomes in u"
        ):
            fastrec.evaluate(recs, truth, "recall@2")
    signed = padded.astype(np.int64)
    signed[1:, 1:] = -1
    assert fastrec.evaluate(signed, signed, "recall@2")["recall@2"] == pytest.approx(8 / 9)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_the_largest_id_of_a_small_array(dtype: Any) -> None:
    largest = np.iinfo(dtype).max
    recs = np.array([[7, largest], [largest, 8]], dtype)
    assert fastrec.evaluate(recs, [[largest], [largest]], "mrr")["mrr"] == 0.75


def test_unsigned_padding_of_one_place() -> None:
    padded = np.array([[7, 2**32 - 1], [8, 2**32 - 1]], np.uint32)
    with pytest.raises(fastrec.InputError, match=r"recs\[0\] ends in 4294967295, which -1 becomes in uint32"):
        fastrec.evaluate(padded, padded, "recall@2")


@pytest.mark.parametrize("wide_side", ["recs", "truth"])
@pytest.mark.parametrize("extra", [0, 10])
def test_ids_of_two_widths_are_not_cut(wide_side: str, extra: int) -> None:
    """2^32 + 5 is not 5, whichever side is converted."""
    narrow, wide = np.arange(5, 6 + extra, dtype=np.int32), np.array([2**32 + 5, 5 + extra])
    sides = [(narrow, [0, len(narrow)]), (wide, [0, 2])]
    recs, truth = sides if wide_side == "truth" else sides[::-1]
    assert fastrec.evaluate(recs, truth, "hits")["hits"] == 1


def test_one_list_of_arrays_of_two_kinds() -> None:
    """NumPy would make floats of them."""
    recs = [np.array([2**53 + 1], np.int64), np.array([2**53 + 1], np.uint64)]
    assert fastrec.evaluate(recs, [[2**53], [2**53 + 1]], "hits")["hits"] == 0.5


def test_texts_of_any_type() -> None:
    plain = [["a", "b"], ["c"]]
    items = ["a", "b", "c"]
    forms: list[Any] = [np.array(items), np.array(items, object), *(np.array(items, dtype) for dtype in STRINGS)]
    forms.append([np.str_(item) for item in items])
    for form in forms:
        report = fastrec.evaluate((form, [0, 2, 3]), plain, "recall")
        assert report["recall"] == 1
    assert fastrec.evaluate((np.array(items, "S1"), [0, 2, 3]), [[b"a", b"b"], [b"c"]], "recall")["recall"] == 1


def test_texts_are_not_normalised() -> None:
    recs, truth = [["\u00e9"], ["\u00fc"], ["e\0"]], [["e\u0301"], ["u\u0308"], ["e"]]
    with pytest.warns(fastrec.FastrecWarning) as caught:
        assert fastrec.evaluate(recs, truth, "hits")["hits"] == 0
    assert [str(one.message)[:13] for one in caught] == ["no truth item", "item ids diff"]


def test_numbers_of_any_type() -> None:
    items, indptr, values = *flat([[1, 2], [3]]), [2, 3, 1]
    wanted = fastrec.evaluate([[1, 2], [3]], [{1: 2.0, 2: 3.0}, {3: 1.0}], "cg")["cg"]
    for dtype in (np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64):
        truth = (items, indptr, np.array(values, dtype))
        assert fastrec.evaluate((items, indptr), truth, "cg", user_weight=np.ones(2, dtype))["cg"] == wanted
    ones = (items, indptr, np.ones(3, bool))
    assert fastrec.evaluate((items, indptr), ones, "cg")["cg"] == 1.5


@pytest.mark.parametrize("k", [[1, 2], (1, 2), range(1, 3), np.array([1, 2]), {1: 0, 2: 0}.keys(), iter([1, 2])])
def test_cutoffs_in_any_collection(k: Any) -> None:
    assert list(fastrec.evaluate(RECS, TRUTH, ["hits", "mrr@7"], k=k)) == ["hits@1", "hits@2", "mrr@7"]


def test_numpy_numbers_as_settings() -> None:
    numbers: dict[str, Any] = {"k": np.int32(2), "n_items": np.int64(20), "min_gain": np.float32(0.5)}
    report = fastrec.evaluate(RECS, TRUTH, "mcc", n_threads=np.int8(2), **numbers)  # type: ignore[arg-type]
    assert list(report) == ["mcc@2"]
    assert (report.settings["n_items"], report.settings["min_gain"]) == (20, 0.5)


def test_no_users_at_all() -> None:
    forms: list[Any] = [[], np.zeros((0, 5), int), (np.zeros(0, int), [0]), {}]
    for nothing in forms:
        with pytest.warns(fastrec.FastrecWarning, match="the truth has no rows"):
            report = fastrec.evaluate(nothing, nothing, ["ndcg", "recall(average=pooled)"], per_user=True)
        assert all(math.isnan(report[name]) for name in report)
        assert [len(values) for values in report.per_user.values()] == [0, 0]
        assert report.users == {"total": 0, "evaluated": 0, "no_truth": 0, "no_recs": 0}
    with pytest.warns(fastrec.FastrecWarning, match="the truth has no rows"):
        report = fastrec.Evaluator(["ndcg"]).result()
    assert math.isnan(report["ndcg"])
    assert report.users["total"] == 0


# Order, seen items, duplicates

ASKS = [
    Ask(write(name, options, k), name, options, k)
    for name, options in [
        ("mrr", {}),
        ("hits", {}),
        ("precision", {}),
        ("map", {"denominator": "min_n_rel_n_rec"}),
        ("cg", {}),
        ("ndcg", {}),
        ("ndcg", {"ideal": "list_at_k"}),
        ("f1", {"average": "pooled"}),
    ]
    for k in (None, 1, 4)
]


def check_lists(log: Log, recs: Any, truth: Any, **call: Any) -> fastrec.Report:
    """Evaluate, and compare with the oracle, which takes scores and seen items as lists."""
    own = {name: value for name, value in call.items() if name not in ("scores", "exclude")}
    seen = None if call.get("exclude") is None else flat(call["exclude"], recs[0].dtype)
    if call.get("scores") is not None:
        recs = (*recs, flat(call["scores"], np.float64)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastrec.FastrecWarning)
        report = fastrec.evaluate(recs, truth, [ask.text for ask in ASKS], per_user=True, exclude=seen, **own)
    for ask in ASKS:
        expected = oracle.evaluate(log.recs, log.truth, ask.name, k=ask.k, options=ask.options, **call)
        check_estimate(report.estimates[ask.text], expected, ask.text)
        check_user_values(report.per_user[ask.text], expected, ask.text)
    return report


@pytest.mark.thorough(except_for="error-best|first-id_asc|miss-worst")
@pytest.mark.parametrize("ties", ["input", "worst", "best", "id_asc", "id_desc"])
@pytest.mark.parametrize("duplicates", ["error", "first", "miss"])
@CI
@given(data=st.data())
def test_lists_are_put_right_as_the_oracle_does(ties: str, duplicates: str, data: st.DataObject) -> None:
    log = data.draw(strategies.logs(duplicates=duplicates != "error"))
    seen = data.draw(st.none() | strategies.seen_items(log))
    call = {
        "scores": data.draw(st.none() | strategies.scores(log)),
        "exclude": seen,
        "min_gain": data.draw(st.sampled_from([None, 0.75, 2.0])),
        "no_recs": data.draw(st.sampled_from(["skip", "zero"])),
    }
    report = check_lists(log, recs_of(log), truth_of(log), ties=ties, duplicates=duplicates, **call)
    if seen is not None:
        dropped = sum(item in own for own, items in zip(seen, log.recs, strict=True) for item in items)
        assert report.data["excluded_items"] == dropped
    copies = [len(rows) - len({item for item, _ in rows}) for rows in log.truth]
    assert report.data["duplicates_in_truth"] == sum(copies)


@pytest.mark.parametrize("ties", ["id_asc", "id_desc"])
@CI
@given(data=st.data())
def test_ties_of_texts_go_by_their_bytes(ties: str, data: st.DataObject) -> None:
    names = ["", "Z", "a", "a\0", "aa", "\u00e9", "\uff41", "\U0001f600", "b", "10", "9", "\U00010000"]
    assert sorted(names) == sorted(names, key=str.encode)
    lists = st.lists(st.sampled_from(names), unique=True)
    recs = data.draw(st.lists(lists, max_size=4))
    held = data.draw(st.lists(lists, min_size=len(recs), max_size=len(recs)))
    log = Log(recs, [[(item, 1.0) for item in items] for items in held])  # type: ignore[arg-type, misc]
    scores = data.draw(strategies.scores(log))
    check_lists(log, flat(recs, object), flat(held, object), scores=scores, ties=ties)


@CI
@given(data=st.data())
def test_scores_without_ties_need_no_policy(data: st.DataObject) -> None:
    log = data.draw(strategies.logs())
    scores = [data.draw(st.permutations([float(i) for i in range(len(items))])) for items in log.recs]
    check_lists(log, recs_of(log), truth_of(log), scores=scores, ties=data.draw(st.sampled_from(["error", "input"])))


def test_many_users_and_long_lists_are_put_right() -> None:
    """More users than one task has, and lists longer than every small size; several threads give the bits of one."""
    draw = np.random.default_rng(0)
    lengths = np.where(np.arange(40_000) == 20_001, 5000, 3)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    items, scores = draw.integers(0, 4000, indptr[-1]), draw.integers(0, 50, indptr[-1]) / 8
    held = (items[indptr[:-1] + 1], np.arange(len(indptr)))
    seen = (items[indptr[:-1]], np.arange(len(indptr)))
    call: dict[str, Any] = {"ties": "worst", "duplicates": "first", "exclude": seen, "no_recs": "zero"}
    one, four = (
        fastrec.evaluate((items, indptr, scores), held, ["ndcg", "mrr"], per_user=True, n_threads=n, **call)
        for n in (1, 4)
    )
    np.testing.assert_array_equal(one.per_user["mrr"], four.per_user["mrr"])
    for user in (0, 16_384, 20_001, 39_999):
        own = slice(indptr[user], indptr[user + 1])
        expected = oracle.evaluate(
            [items[own].tolist()],
            [[(int(held[0][user]), 1.0)]],
            "mrr",
            scores=[scores[own].tolist()],
            ties="worst",
            duplicates="first",
            exclude=[[int(seen[0][user])]],
        )
        assert one.per_user["mrr"][user] == expected.per_user[0]


# Counts of the data in the report


def test_rows_and_shares() -> None:
    report = fastrec.evaluate(
        [[1, 2, 2, 3], [4, 5], [], [6]],
        [{1: 1.0, 3: 2.0}, {4: 0.0, 8: 3.0}, {1: 1.0}, {6: -1.0}],
        ["hits"],
        exclude=[[3, 77], [], [], []],
        duplicates="miss",
    )
    assert report.data["excluded_items"] == 1
    assert report.data["duplicates_in_recs"] == 1
    assert report.data["duplicates_in_truth"] == 0
    assert report.data["truth_rows"] == 6
    assert report.data["truth_rows_not_relevant"] == 2
    assert report.data["truth_users_with_recs"] == pytest.approx(2 / 3)
    assert report.data["truth_items_in_recs"] == pytest.approx(1 / 4)
    assert report.users == {"total": 4, "evaluated": 3, "no_truth": 1, "no_recs": 1}


MISMATCHES = {
    "items": ([[1], [2]], [[7], [8]], "no truth item is in its user's list"),
    "users": ([[1], []], [[], [1]], "no user with truth has a list"),
}


@pytest.mark.parametrize("name", MISMATCHES)
@pytest.mark.parametrize("by_evaluator", [False, True])
def test_ids_that_do_not_match_are_warned_of_where_it_was_called(name: str, by_evaluator: bool) -> None:
    recs, truth, says = MISMATCHES[name]
    evaluator = fastrec.Evaluator("hits")
    evaluator.update(recs, truth)
    with pytest.warns(fastrec.FastrecWarning, match=says) as caught:
        if by_evaluator:
            evaluator.result()
        else:
            fastrec.evaluate(recs, truth, "hits")
    assert [warning.filename for warning in caught] == [__file__]


def test_progress_is_told() -> None:
    calls: list[tuple[int, int]] = []
    items, indptr = many_rows()
    fastrec.evaluate((items, indptr), (items, indptr), "hits", progress=lambda *done: calls.append(done))
    assert calls[-1] == (4000, 4000)
    assert all(a < b for (a, _), (b, _) in itertools.pairwise(calls))


def test_progress_must_be_callable() -> None:
    with pytest.raises(fastrec.InputTypeError, match=r"progress.*3"):
        fastrec.evaluate(RECS, TRUTH, progress=3)  # type: ignore[arg-type]


def test_weights_of_every_size() -> None:
    """Only the ratios of weights matter."""
    recs, truth, base = [[1], [1], [2, 1]], [[1], [2], [1]], np.array([1.0, 2.0, 3.0])
    wanted = fastrec.evaluate(recs, truth, ["recall", "mrr", "recall(average=pooled)"], user_weight=base)
    for scale in (2.0**-300, 2.0**-200, 2.0**200, 2.0**300):
        found = fastrec.evaluate(recs, truth, list(wanted), user_weight=base * scale)
        assert found.estimates == wanted.estimates

"""Tensors in place of arrays: stand-ins with only the protocols and, if installed, PyTorch itself."""

import math
import subprocess
import sys

import numpy as np
import pytest

import fastrec

RECS, TRUTH = [[3, 1, 2], [4, 6, 5]], [[1, 9], [5]]
LABELS, SCORES, INDPTR = [1, 0, 0, 1], [0.5, 0.25, 0.75, 0.125], [0, 2, 4]


class OfDlpack:
    """The minimum that DLPack requires; on the CPU unless set otherwise."""

    device = "other:0"

    def __init__(self, values, dtype=None, device=1):
        self.array, self.kind = np.array(values, dtype), device

    def __dlpack__(self, **options):
        assert self.kind == 1, "memory of another device was touched"
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.kind, 0


class OfArray:
    """NumPy's own protocol only, like tensors of TensorFlow."""

    requires_grad = False

    def __init__(self, values, dtype=None):
        self.array = np.array(values, dtype)

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


def of_torch(values, dtype=None):
    torch = pytest.importorskip("torch")
    return torch.tensor(values, dtype=None if dtype is None else getattr(torch, dtype))


@pytest.fixture(params=[OfDlpack, OfArray, of_torch])
def tensor(request):
    if request.param is of_torch:
        pytest.importorskip("torch")
    return request.param


def same(report, other):
    assert report.to_dict()["metrics"] == other.to_dict()["metrics"]


def test_lists_and_truth(tensor):
    metrics = ["ndcg@3", "recall@2", "map"]
    expected = fastrec.evaluate(RECS, TRUTH, metrics)
    flat, pointers, padded = [1, 9, 5], [0, 2, 3], [[1, 9], [5, -1]]
    truths = [
        tensor(padded),
        (tensor(flat), tensor(pointers)),
        (tensor(flat, "int32"), tensor(pointers, "int32"), tensor([1.0, 1.0, 1.0])),
        [tensor([1, 9]), tensor([5])],
        [[tensor(1), tensor(9)], [tensor(5)]],
        [tensor([1, 9]), [5]],
        [{1: tensor(1.0), 9: tensor(1)}, {5: tensor(1.0)}],
        fastrec.Ragged(tensor(flat), tensor(pointers)),
    ]
    lists = [tensor(RECS), [tensor(row) for row in RECS], (tensor([3, 1, 2, 4, 6, 5]), tensor([0, 3, 6]))]
    for truth in truths:
        same(fastrec.evaluate(RECS, truth, metrics), expected)
    for recs in lists:
        same(fastrec.evaluate(recs, truths[0], metrics), expected)
    scored = (tensor([1, 2, 3, 4, 5, 6]), tensor([0, 3, 6]), tensor([0.5, 0.25, 0.75, 0.75, 0.25, 0.5], "float16"))
    same(fastrec.evaluate(scored, TRUTH, metrics), expected)
    keyed = fastrec.evaluate({1: tensor(RECS[0]), 2: tensor(RECS[1])}, {1: tensor([1, 9]), 2: [tensor(5)]}, metrics)
    same(keyed, expected)


def test_what_goes_with_users(tensor):
    options = {"user_ids": [7, 8], "groups": [0, 1], "user_weight": [1.0, 3.0]}
    expected = fastrec.evaluate(RECS, TRUTH, "ndcg@3", exclude=[[3], []], **options)
    given = {"user_ids": tensor([7, 8]), "groups": {"group": tensor([0, 1])}, "user_weight": tensor([1.0, 3.0])}
    found = fastrec.evaluate(RECS, TRUTH, "ndcg@3", exclude=[tensor([3]), []], **given)
    assert found.to_dict() == expected.to_dict()
    single = {"user_ids": [tensor(7), tensor(8)], "groups": [tensor(0), tensor(1)], "user_weight": [tensor(1.0), 3.0]}
    assert fastrec.evaluate(RECS, TRUTH, "ndcg@3", exclude=[[3], []], **single).to_dict() == expected.to_dict()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_scored_rows(tensor, dtype):
    metrics = ["auc", "gauc", "ndcg", "log_loss"]
    weights = [1.0, 2.0, 1.0, 0.5]
    expected = fastrec.evaluate_scores(LABELS, np.array(SCORES, dtype), INDPTR, metrics=metrics)
    found = fastrec.evaluate_scores(tensor(LABELS), tensor(SCORES, dtype), tensor(INDPTR), metrics=metrics)
    assert found.to_dict() == expected.to_dict()
    names = ["gauc", "auc"]
    weighed = fastrec.evaluate_scores(LABELS, SCORES, user_ids=[1, 1, 2, 2], metrics=names, sample_weight=weights)
    keys = {"user_ids": tensor([1, 1, 2, 2]), "metrics": names, "sample_weight": tensor(weights)}
    by_key = fastrec.evaluate_scores(tensor([True, False, False, True]), tensor(SCORES, dtype), **keys)
    assert by_key.to_dict() == weighed.to_dict()
    assert fastrec.auc(tensor(LABELS), tensor(SCORES, dtype)) == expected["auc"]
    assert fastrec.auc([tensor(1), tensor(0)], [tensor(0.5), 0.25]) == 1.0
    assert fastrec.rmse(tensor([1.0, 2.0]), tensor([1.0, 4.0])) == math.sqrt(2)
    assert len(fastrec.roc_curve(tensor(LABELS), tensor(SCORES, dtype)).thresholds) == 5


class NeedsGrad(OfArray):
    requires_grad = True


class OfBrain(OfArray):
    """Number type that NumPy has only as bytes, like those of ml_dtypes."""

    dtype = "bfloat16"

    def __init__(self, values):
        super().__init__(values)

    def __array__(self, dtype=None, copy=None):
        return np.zeros(len(self.array), "V2")


class Broken(OfArray):
    def __array__(self, dtype=None, copy=None):
        raise OSError("lost\nmemory")


def raising(name, **options):
    """Tensor with a property that raises."""

    def fail(_):
        raise RuntimeError(f"no {name}")

    if options:
        return lambda values: type("Raising", (OfDlpack,), {name: property(fail)})(values, **options)
    return type("Raising", (Broken,), {name: property(fail)})


class Masked(OfArray):
    def __array__(self, dtype=None, copy=None):
        return np.ma.masked_array(self.array, mask=np.arange(self.array.size).reshape(self.array.shape) == 0)


class Matrix(OfArray):
    def __array__(self, dtype=None, copy=None):
        return self.array.view(np.matrix)


@pytest.mark.parametrize(
    ("made", "match"),
    [
        (lambda values: OfDlpack(values, device="cpu"), r"{0}, a .*: its __dlpack_device__ gives \('cpu', 0\)"),
        (lambda values: OfDlpack(values, device=None), r"{0}, a .*: its __dlpack_device__ gives \(None, 0\)"),
        (raising("requires_grad"), "{0}, a .*: its requires_grad raises RuntimeError: 'no requires_grad'"),
        (raising("dtype"), "{0}, a .*: its dtype raises RuntimeError: 'no dtype'"),
        (raising("device", device=2), "{0}, a .*: its device raises RuntimeError: 'no device'"),
        (Masked, "{0} must not be a masked array"),
        (Matrix, r"{0} must not be an np\.matrix, which is always two-dimensional: pass np\.asarray\(x\), or x\.A1"),
        (
            lambda values: np.array(values, ndmin=2).view(np.matrix),
            r"{0} must not be an np\.matrix, which is always two",
        ),
        (NeedsGrad, r"requires grad: pass {0}\.detach\(\)\.cpu\(\)"),
        (lambda values: OfDlpack(values, device=2), r"on another device, other:0: pass {0}\.detach\(\)\.cpu\(\)"),
        (OfBrain, r"{0} holds .*, which NumPy lacks: convert it to float32 first"),
        (Broken, "{0}, a test_tensors.Broken, cannot be converted to a NumPy array: 'lost.*memory'"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_ours(made, match):
    calls = [
        ("recs", lambda: fastrec.evaluate(made([[1]]), [[1]], "mrr")),
        ("truth", lambda: fastrec.evaluate([[1]], made([[1]]), "mrr")),
        (r"truth\[0\]", lambda: fastrec.evaluate([[1]], [made([1])], "mrr")),
        (r"recs\['a'\]", lambda: fastrec.evaluate({"a": made([1])}, {"a": [1]}, "mrr")),
        ("user_weight", lambda: fastrec.evaluate([[1]], [[1]], "mrr", user_weight=made([1.0]))),
        ("scores", lambda: fastrec.evaluate_scores([1, 0], made([0.5, 0.25]), metrics="auc")),
        ("labels", lambda: fastrec.evaluate_scores(made([1, 0]), [0.5, 0.25], metrics="auc")),
        ("indptr", lambda: fastrec.evaluate_scores([1, 0], [0.5, 0.25], made([0, 2]), metrics="gauc")),
    ]
    for name, call in calls:
        with pytest.raises(fastrec.InputTypeError, match=match.format(name)) as raised:
            call()
        assert "\n" not in str(raised.value)


def test_a_tensor_with_a_dimension_is_no_item(tensor):
    with pytest.raises(
        fastrec.InputTypeError, match=r"truth items must hold plain values, found a tensor of shape \(1,\)"
    ):
        fastrec.evaluate([[1]], [[tensor([1])]], "mrr")


def test_the_memory_is_shared():
    from fastrec.inputs.tensors import as_numpy

    given = OfDlpack([1, 2, 3])
    assert np.shares_memory(as_numpy(given, "x"), given.array)


def test_pytorch_itself():
    torch = pytest.importorskip("torch")
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]], requires_grad=True)
    assert fastrec.evaluate(torch.topk(scores, 2).indices, [[1], [1]], "mrr")["mrr"] == 0.5
    bfloat = torch.tensor([0.5, 0.25], dtype=torch.bfloat16)
    calls = [
        (
            lambda: fastrec.auc([1, 0], scores[0][:2]),
            r"scores is a torch.Tensor that requires grad: pass scores.detach",
        ),
        (lambda: fastrec.auc([1, 0], list(scores[0][:2])), r"scores\[0\] is a torch.Tensor that requires grad"),
        (
            lambda: fastrec.auc([1, 0], bfloat),
            "scores holds torch.bfloat16, which NumPy lacks: convert it to float32",
        ),
        (
            lambda: fastrec.evaluate(torch.zeros(1, 1, device="meta"), [[1]], "mrr"),
            "recs, a torch.Tensor, cannot be converted to a NumPy array",
        ),
        (lambda: fastrec.evaluate(scores.detach(), [[1], [1]], "mrr"), "recs is a float array"),
    ]
    for call, match in calls:
        with pytest.raises(fastrec.InputTypeError, match=match):
            call()


def test_torch_is_not_imported():
    code = "import sys, fastrec; fastrec.evaluate([[1]], [[1]], 'mrr'); assert not {'torch', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_evaluator_per_epoch(tensor):
    """As in the documentation: `reset` begins the next epoch."""
    evaluator, found = fastrec.Evaluator("recall@2", per_user=True), []
    for recs in (RECS, [[9, 1, 2], [5, 4, 6]]):
        for row, relevant in zip(recs, TRUTH, strict=True):
            evaluator.update(tensor([row]), [relevant])
        report = evaluator.result()
        assert report.users["total"] == 2
        found.append(report["recall@2"])
        evaluator.reset()
    assert found == [fastrec.evaluate(recs, TRUTH, "recall@2")["recall@2"] for recs in (RECS, [[9, 1, 2], [5, 4, 6]])]
    evaluator.update(RECS, TRUTH, user_ids=[1, 2])
    evaluator.reset()
    evaluator.update(RECS, TRUTH, user_ids=[1, 2])  # neither seen before, nor required to have ids
    assert evaluator.result().per_user["recall@2"].tolist() == [0.5, 0.0]
    scorer = fastrec.ScoreEvaluator(["auc"])
    scorer.update(LABELS, SCORES, INDPTR)
    scorer.reset()
    scorer.update([1, 0], [0.5, 0.25])
    assert scorer.result()["auc"] == 1.0


def test_models(tensor):
    users, items = [[1.0, 0.0], [0.0, 1.0]], [[0.9, 0.1], [0.5, 0.8], [0.1, 0.7]]
    scores = np.array(users) @ np.array(items).T
    wanted = fastrec.evaluate_model((np.array(users), np.array(items)), [[1], [2]], "mrr")
    model = tensor(users, "float64"), tensor(items, "float64")
    same(fastrec.evaluate_model(model, [[1], [2]], "mrr"), wanted)
    same(fastrec.evaluate_model(tensor(scores, "float64"), [[1], [2]], "mrr"), wanted)
    function = lambda rows: tensor(scores[rows], "float64")  # noqa: E731 - one line
    same(fastrec.evaluate_model(function, [[1], [2]], "mrr", n_items=3), wanted)
    biased = fastrec.evaluate_model(model, [[1], [2]], "mrr", item_bias=tensor([0.0, 1.0, 0.0], "float64"))
    assert biased["mrr"] == 0.75
    assert fastrec.top_items(model, 1)[0].tolist() == [0, 1]

"""Readers of foreign bytes on bytes changed at random: files, Arrow streams, states of evaluators, saved reports.

They must give values or fastrec errors, and nothing else. `scripts/fuzz --target readers` changes the bytes blindly;
`--target coverage` (with atheris) is guided by the branches taken in fastrec. `test_fuzz` runs the first for a few
seconds.
"""

import atexit
import base64
import contextlib
import gzip
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if __name__ == "__main__":  # the guided run must start coverage before it imports fastrec
    import atheris

    KERNELS = [f"fastrec.kernels.{path.stem}" for path in Path(__file__).parents[2].glob("fastrec/kernels/*.py")]
    with atheris.instrument_imports(include=["fastrec"], exclude=KERNELS):  # Numba does not compile traced code
        import fastrec
        import fastrec.evaluation.state
        import fastrec.files.evaluate
        import fastrec.files.formats.recognise
        import fastrec.files.hints
        import fastrec.inputs.arrow
        import fastrec.report.archive
        import fastrec.report.report
        import fastrec.scored.curves
else:
    import fastrec

from rich.console import Console

from fastrec.cli.draw import draw_report
from fastrec.files import job
from fastrec.report.archive import CHECKSUM, _checksum
from fuzz.calls import Draw, Finding, one_in

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-readers-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


class Target(NamedTuple):
    """Reader, and bytes that it reads."""

    read: Callable[[bytes], Any]
    seeds: list[bytes]
    weight: float = 1.0


# Archives: the bytes are a number and a new member, because a change of the zip itself fails its own checksum


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def of_members(whole: bytes, read: Callable[[bytes], Any]) -> Target:
    """Return an archive with one of its members replaced."""
    members = members_of(whole)
    names = list(members)

    def replaced(data: bytes) -> Any:
        if not data:
            return None
        changed = members | {names[data[0] % len(names)]: data[1:]}
        try:
            arrays = {name.removesuffix(".npy"): np.load(io.BytesIO(own)) for name, own in changed.items()}
        except Exception:  # noqa: BLE001 - no array, in any way: that is found before the checksum
            return read(zipped(changed))
        del arrays[CHECKSUM]
        np.save(stream := io.BytesIO(), _checksum(arrays))
        with contextlib.suppress(Exception):  # forged numbers may raise anything, but must not end the process
            return read(zipped(changed | {f"{CHECKSUM}.npy": stream.getvalue()}))
        return None

    return Target(replaced, [bytes([at]) + members[name] for at, name in enumerate(names)])


def lists_evaluator() -> fastrec.Evaluator:
    metrics = ["ndcg@2", "recall(average=pooled)", "f1(average=means)@2", "cg"]
    evaluator = fastrec.Evaluator(metrics, per_user=True, n_items=50)
    about = {"groups": {"g": ["a", "b"], "h": [1, 2]}, "user_weight": [1.0, 2.0], "user_ids": ["x", "ü\0"]}
    evaluator.update([[1, 2], [3]], [{1: 2.0}, {9: 1.0}], **about)
    return evaluator


def scores_evaluator(**more: Any) -> fastrec.ScoreEvaluator:
    metrics = ["auc", "gauc", "average_precision", "ks", "auc(max_fpr=0.3)", "log_loss"]
    evaluator = fastrec.ScoreEvaluator(metrics, per_user=True)
    evaluator.update([1, 0, 1, 0], [0.5, 0.25, 0.1, 0.7], [0, 2, 4], user_ids=[7, 2**62], groups=["a", "b"], **more)
    return evaluator


def use_state(make: Callable[[], Any], data: bytes) -> None:
    """Read a state and use it in every way."""
    kind = type(make())
    evaluator = kind.from_bytes(data)
    report = evaluator.result()
    use_report(report)
    kind.from_bytes(evaluator.to_bytes())
    with contextlib.suppress(fastrec.FastrecError):
        make().merge(evaluator)
    evaluator.merge(kind.from_bytes(make().to_bytes()))
    evaluator.result().to_dict()


def draw(report: fastrec.Report) -> None:
    draw_report(Console(file=io.StringIO()), report)


def compare(report: fastrec.Report) -> None:
    if report.has_values:
        fastrec.compare({"a": report, "b": report}, n_rounds=10)


SHOWN = [repr, fastrec.Report.to_dict, fastrec.Report.to_rows, fastrec.Report.to_json, fastrec.Report.to_html]
SHOWN += [fastrec.Report.to_markdown, fastrec.Report.to_latex, fastrec.Report.to_scalars, draw, compare]


def use_report(report: fastrec.Report) -> None:
    for show in SHOWN:
        with contextlib.suppress(fastrec.FastrecError):
            show(report)


def read_report(data: bytes) -> None:
    path = FOLDER / "report.npz"
    path.write_bytes(data)
    report = fastrec.load(path)
    use_report(report)
    try:
        report.save(path)
    except fastrec.InputError as error:
        raise Finding("wrong value", f"what was loaded cannot be saved: {error}") from error


def saved_report(report: fastrec.Report) -> bytes:
    path = FOLDER / "saved.npz"
    report.save(path)
    return path.read_bytes()


def report_of_tool() -> fastrec.Report:
    return fastrec.evaluate([[1, 2], [3]], [{1: 2.0}, {9: 1.0}], ["map", "ndcg_cut_5"], like="trec_eval", per_user=True)


# Files


RECS = b"user_id,item_id,score\n1,5,0.5\n1,6,0.25\n2,7,1\n"
TRUTH = b"user_id,item_id,gain\n1,6,2\n2,7,1\n3,5,1\n"
LOG = b"user_id,label,score\n1,1,0.5\n1,0,0.25\n2,1,1.0\n"
JSONL = b'{"user_id": "a", "item_id": 5, "score": 0.5}\n{"user_id": "b", "item_id": 6, "score": 1}\n'
RUN = b"q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\nq2\tQ0\td3  1\t .5 tag\n"
QRELS = b"q1 0 d2 1\nq2 0 d3 2\nq2 0 d4 -1\n"


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, **options)
    return stream.getvalue()


def read_lists(name: str, truth: bytes) -> Callable[[bytes], Any]:
    """Evaluate lists of a file against a valid truth."""

    def read(data: bytes) -> Any:
        (FOLDER / name).write_bytes(data)
        (FOLDER / "truth").write_bytes(truth)
        return fastrec.evaluate_files(FOLDER / name, FOLDER / "truth", ["ndcg@2", "recall"], n_threads=1)

    return read


def read_truth(name: str, recs: bytes) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        (FOLDER / name).write_bytes(data)
        (FOLDER / "recs").write_bytes(recs)
        return fastrec.evaluate_files(FOLDER / "recs", FOLDER / name, ["ndcg@2", "mrr"], n_threads=1)

    return read


def read_log(name: str) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        (FOLDER / name).write_bytes(data)
        return fastrec.evaluate_files(FOLDER / name, metrics=["auc", "gauc"], n_threads=1)

    return read


# Arrow streams, as from other processes


def arrow(columns: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_arrow(data: bytes) -> Any:
    try:
        table = pa.ipc.open_stream(data).read_all()
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError):
        return None  # PyArrow's own errors
    if b"label" in data:
        return fastrec.evaluate_scores(table, metrics=["auc", "gauc"], n_threads=1)
    return fastrec.evaluate(table, table, ["hits", "ndcg@2"], n_threads=1)


ARROW = [
    arrow({"user_id": [1, 1, 2], "item_id": [5, 6, 7]}),
    arrow({"user_id": ["a", "a", "b"], "item_id": ["x", "y", "x"], "score": [1.0, 0.5, 0.25]}),
    arrow({"user_id": pa.array(["a", "b"]).dictionary_encode(), "item_id": [[1, 2], [3]]}),
    arrow({"user_id": [1, 1, 2], "label": [1, 0, 1], "score": pa.array([0.5, 0.25, 1.0], pa.float32())}),
    arrow({"user_id": [1, 2], "label": [[True, False], [True]], "score": [[0.5, 0.1], [0.7]]}),
]
PARQUET_LISTS = parquet({"user_id": [1, 1, 2], "item_id": [5, 6, 7], "score": [1.0, 0.5, 0.25]}, compression="none")
PARQUET_LOG = parquet({"user_id": ["a", "a", "b"], "label": [1, 0, 1], "score": [0.5, 0.25, 1.0]})


TARGETS: dict[str, Target] = {
    "state of lists": of_members(lists_evaluator().to_bytes(), lambda data: use_state(lists_evaluator, data)),
    "state of scores": of_members(scores_evaluator().to_bytes(), lambda data: use_state(scores_evaluator, data)),
    "state of weighted scores": of_members(
        scores_evaluator(sample_weight=[1, 2, 0.5, 1]).to_bytes(),
        lambda data: use_state(lambda: scores_evaluator(sample_weight=[1, 2, 0.5, 1]), data),
    ),
    "state": Target(lambda data: use_state(lists_evaluator, data), [lists_evaluator().to_bytes()], 0.3),
    "report": of_members(saved_report(lists_evaluator().result()), read_report),
    "report of a log": of_members(saved_report(scores_evaluator().result()), read_report),
    "report like a tool": of_members(saved_report(report_of_tool()), read_report),
    "arrow": Target(read_arrow, ARROW, 2.0),
    "recs.csv": Target(read_lists("recs.csv", TRUTH), [RECS, RECS.replace(b",", b"\t")], 0.06),
    "recs.csv.gz": Target(read_lists("recs.csv.gz", TRUTH), [gzip.compress(RECS)], 0.03),
    "truth.csv": Target(read_truth("truth.csv", RECS), [TRUTH], 0.06),
    "log.csv": Target(read_log("log.csv"), [LOG, LOG.replace(b",", b";")], 0.06),
    "recs.jsonl": Target(read_lists("recs.jsonl", TRUTH.replace(b"1,6", b"a,6")), [JSONL], 0.06),
    "run": Target(read_lists("run", QRELS), [RUN], 0.06),
    "qrels": Target(read_truth("qrels", RUN), [QRELS], 0.06),
    "recs.parquet": Target(read_lists("recs.parquet", TRUTH), [PARQUET_LISTS], 0.1),
    "log.parquet": Target(read_log("log.parquet"), [PARQUET_LOG], 0.1),
}
NAMES = list(TARGETS)
GUIDED = [name for name, target in TARGETS.items() for _ in range(1 if target.weight < 0.2 else 6)]  # files are slow
TOKENS = [b"NaN", b"inf", b"-1", b"1e400", b"99999999999999999999", b"9223372036854775807", b",", b"\n", b'"', b"\0"]
TOKENS += ["é".encode(), b"\xff", b"{", b"}", b"[", b"]", b"null", b"true", b"\t", b" ", b"\r\n", b"0.1", b"<f8", b"|O"]
NUMBERS = [0, 1, -1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63)]


def change(r: Draw, data: bytes) -> bytes:
    """Return the bytes, changed in a few places."""
    out = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 4])):
        at = r.randint(0, len(out))
        end = min(len(out), at + r.choice([1, 1, 2, 8, 30]))
        kind = r.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << r.randrange(8)
        elif kind == 1:
            del out[at:end]
        elif kind == 2:
            out[at:at] = out[at:end]
        elif kind == 3:
            out[at : at + r.choice([0, 0, end - at])] = r.choice(TOKENS)
        elif kind == 4:
            size = r.choice([1, 2, 4, 8])
            at -= at % size
            out[at : at + size] = (r.choice(NUMBERS) & (256**size - 1)).to_bytes(size, "little")
        elif kind == 5:
            out[at:end] = r.randbytes(end - at)
        elif one_in(r, 5):
            del out[at:]
    return bytes(out)


def draw_case(seed: int) -> tuple[str, bytes]:
    """Return the reader and the bytes of a seed."""
    r = random.Random(seed)
    (name,) = r.choices(NAMES, [target.weight for target in TARGETS.values()])
    seed = r.choice(TARGETS[name].seeds)
    return name, change(r, seed)


def read_one(name: str, data: bytes) -> bool:
    """Read bytes; return whether they gave a value. Raise `Finding` for a forbidden result."""
    try:
        with contextlib.ExitStack() as stack:
            if len(data) % 2:  # the rows of half of the files are put into parts
                stack.enter_context(mock.patch.object(job, "COPIES", 1 << 60))
            TARGETS[name].read(data)
    except fastrec.FastrecError:
        return False
    except Finding:
        raise
    except Exception as error:
        shown = base64.b64encode(data[:300]).decode()
        raise Finding("foreign error", f"{name}: {type(error).__name__}: {error}; base64 {shown}") from error
    return True


def run_case(seed: int) -> bool:
    """Read the bytes of a seed."""
    return read_one(*draw_case(seed))


def describe(seed: int) -> str:
    """Return the reader and the bytes of a seed for a replay."""
    name, data = draw_case(seed)
    return f"{name}: {data!r}"


# Guided by coverage


def run_guided(cases: int, seconds: float, seed: int) -> int:
    """Run libFuzzer, by atheris, in a separate process; return 1 if it found anything."""
    folder = tempfile.mkdtemp(prefix="fuzz-corpus-")
    for at, name in enumerate(GUIDED):
        for nth, data in enumerate(TARGETS[name].seeds):
            Path(folder, f"{at}-{nth}").write_bytes(bytes([at]) + data)
    limits = [f"-runs={cases}", f"-seed={seed}", "-timeout=300", "-rss_limit_mb=6000", "-max_len=4096"]
    limits += [f"-max_total_time={int(seconds)}"] if seconds < 10**9 else []
    command = [sys.executable, __file__, *limits, f"-artifact_prefix={tempfile.gettempdir()}/", "-print_final_stats=1"]
    found_in = os.pathsep.join(map(str, Path(__file__).parents[1:3]))  # modules of the tests, and fastrec
    streams = {"stderr": subprocess.STDOUT, "stdout": subprocess.PIPE, "text": True}
    start = time.monotonic()
    with subprocess.Popen([*command, folder], env={**os.environ, "PYTHONPATH": found_in}, **streams) as process:
        assert process.stdout is not None
        lines = [line for line in process.stdout if not print(line, end="") and not line.startswith("#")]
    shutil.rmtree(folder)
    done = re.findall(r"stat::number_of_executed_units: *(\d+)", "".join(lines))
    failed = process.returncode != 0
    print(
        f"coverage from seed {seed}: {done[-1] if done else '?'} cases in {time.monotonic() - start:.0f} s: "
        f"{'something was found, see above' if failed else 'nothing was found'}"
    )
    return int(failed)


def one_input(data: bytes) -> None:
    """Run a case of libFuzzer: the first byte chooses the reader."""
    if data:
        read_one(GUIDED[data[0] % len(GUIDED)], data[1:])


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("error")
    warnings.simplefilter("ignore", fastrec.FastrecWarning)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()

"""A toy engine: Arrow tables evaluated in partitions by processes, with the functions of `fastrec.clusters.job`."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

import fastrec
from fastrec.clusters.job import Job
from fastrec.clusters.packets import pack

PROCESSES = 2
BUCKETS = 64
ROWS = 150  # packed together


def evaluate(job: Job, sides: Mapping[str, pa.Table], *, n_partitions: int) -> fastrec.Report:
    """Pack pieces of all sides, bring equal buckets together, evaluate partitions, and merge their states."""
    job = job._replace(empty={name: table.slice(0, 0) for name, table in sides.items()})
    evaluation = job.check(job.empty, per_user=False)
    pieces = [(name, batch, job.keys) for name, table in sides.items() for batch in table.to_batches(ROWS)]
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        packets = pa.Table.from_batches(chain.from_iterable(pool.starmap(pack_piece, pieces))).sort_by("bucket")
        buckets = packets.column("bucket").to_numpy()
        partitions = [(job, packets.filter(buckets % n_partitions == nth)) for nth in range(n_partitions)]
        job.merge(chain.from_iterable(pool.starmap(state_of, partitions)), evaluation)
    return evaluation.report()


def pack_piece(name: str, batch: pa.RecordBatch, keys: tuple[str, ...]) -> list[pa.RecordBatch]:
    """Run in a process: pack rows by user."""
    return list(pack([batch], name, keys, BUCKETS))


def state_of(job: Job, packets: pa.Table) -> list[dict[str, Any]]:
    """Run in a process: evaluate a partition."""
    return [row for batch in job.states(packets.to_batches()) for row in batch.to_pylist()]

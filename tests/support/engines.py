"""Engines that tests run: frames of Dask and datasets of Ray, and lists to evaluate on them."""

import pytest

from support.cluster_lists import rows_of_lists

pd = pytest.importorskip("pandas")


def make_lists(n_users=150, strings=False, seed=0):
    """Return lists, and a truth that lacks some of their users and has others, with rows in any order."""
    tables = map(pd.DataFrame, rows_of_lists(n_users, strings=strings, seed=seed))
    return tuple(table.sample(frac=1, random_state=seed).reset_index(drop=True) for table in tables)


class OnDask:
    """Frames in partitions of a local cluster, or of threads in this process."""

    name = "Dask"

    def __init__(self, *, distributed=False):
        self.dataframe = pytest.importorskip("dask.dataframe", reason="no Dask: pip install 'fastrec-eval[dask]'")
        self.client = None
        if distributed:
            cluster = pytest.importorskip("distributed")
            self.client = cluster.Client(n_workers=2, threads_per_worker=1, dashboard_address=None)

    def make(self, frame, n_partitions=3):
        return self.dataframe.from_pandas(frame, npartitions=n_partitions)

    def close(self):
        if self.client is not None:
            self.client.shutdown()


class OnRay:
    """Datasets in blocks of a local cluster."""

    name = "Ray"

    def __init__(self):
        self.data = pytest.importorskip("ray.data", reason="no Ray: pip install 'fastrec-eval[ray]'")
        self.ray = pytest.importorskip("ray")
        self.ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)

    def make(self, frame, n_partitions=3):
        return self.data.from_pandas(frame).repartition(n_partitions)

    def close(self):
        self.ray.shutdown()

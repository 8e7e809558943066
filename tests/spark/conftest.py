"""A Spark session on this machine, with the settings that its tests need."""

import sys

import numpy as np
import pytest

from fastrec.runtime.code_folder import cache_root


@pytest.fixture(scope="module")
def environment():
    """Give Spark's workers this Python, and the kernels that other tests have compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        if (folder := cache_root()) is not None:
            patch.setenv("FASTREC_CACHE_DIR", str(folder.parent))
        yield


@pytest.fixture(scope="module")
def session(environment, tmp_path_factory):
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder),
        "spark.speculation": "true",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    }
    builder = SparkSession.builder.master("local[2, 3]").appName("fastrec")  # a task may fail twice
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture
def on_spark(session):
    """Return a PyArrow table as a data frame of Spark, with its rows at random in some partitions."""

    def make(table, n_partitions=3, seed=0):
        order = np.random.default_rng(seed).permutation(len(table))
        return session.createDataFrame(table.take(order)).repartition(n_partitions)

    return make

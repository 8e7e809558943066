"""Job for spark-submit: evaluate lists against truth, both Parquet, and write the report as JSON.

    cp fastrec_eval-*.whl fastrec.zip  # Spark takes Python files by this ending, and a wheel is a zip file
    spark-submit --py-files fastrec.zip examples/spark_job.py recs.parquet truth.parquet report.json

The executors need NumPy, Numba and PyArrow; fastrec travels with the job. If it is installed on the executors instead,
each node compiles kernels once, and `--conf spark.executorEnv.FASTREC_CACHE_DIR=FOLDER` keeps them from job to job.
"""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

import fastrec.spark


def main() -> None:
    """Evaluate the files in the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recs", help="Parquet of user_id, item_id and rank or score")
    parser.add_argument("truth", help="Parquet of user_id and item_id")
    parser.add_argument("output", type=Path, help="file for the report")
    parser.add_argument("--metrics", nargs="+", default=["ndcg@10", "recall@10", "mrr"])
    options = parser.parse_args()
    session = SparkSession.builder.appName("fastrec").getOrCreate()
    report = fastrec.spark.evaluate_files(options.recs, options.truth, options.metrics)
    options.output.write_text(report.to_json(indent=2), encoding="utf-8")
    session.stop()


if __name__ == "__main__":
    main()

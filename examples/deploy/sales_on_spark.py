"""The service of `sales.py` on Spark: its workers are the tasks of a job that stays.

The program is Spark's driver. What it is to know is in the environment, as for `sales.py`, and

    POINTSTAMP_SPARK_MASTER  where Spark is, as k8s://https://kubernetes.default.svc; this machine

with the rest in `spark-defaults.conf`, in the folder that SPARK_CONF_DIR names. The checkpoint is a
folder that the driver and all executors reach.

    python examples/deploy/sales_on_spark.py
"""

from __future__ import annotations

import os

import sales

import pointstamp.spark


def main() -> None:
    found = sales.settings(os.environ)
    # One slot more than there are workers, for jobs of other kinds.
    master = os.environ.get("POINTSTAMP_SPARK_MASTER")
    spark = pointstamp.spark.session(master, workers=found.workers + 1)
    spark.sparkContext.addPyFile(str(sales.__file__))  # the tasks import it as well
    try:
        with pointstamp.spark.serve(
            sales.totals,
            spark,
            found.workers,
            collections={"sales": sales.SALES},
            checkpoint=found.checkpoint,
            snapshot_every=sales.SNAPSHOT_EVERY,
            memory_limit=found.memory_limit,
            metrics=found.metrics,
        ) as service:
            sales.run(service, found)
    finally:
        spark.stop()
    sales.say("all that was taken is complete")


if __name__ == "__main__":
    main()

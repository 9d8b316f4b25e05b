"""A Spark session of this machine that has its web UI, for what is shown there.

A process has one session, and that of most tests has no UI, which takes a second to start. So
this is for processes of their own, such as what takes pictures.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp.spark import java
from pointstamp.spark.session import LOCAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 120.0


@contextmanager
def session_with_ui(slots: int) -> Iterator[SparkSession]:
    """A session with so many slots, whose UI is at a free port."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master(f"local[{slots}]").appName("pointstamp")
    settings = {"spark.ui.enabled": "true", "spark.ui.port": "0", "spark.log.level": "ERROR"}
    for key, value in {**LOCAL, "spark.sql.shuffle.partitions": str(slots), **settings}.items():
        builder = builder.config(key, value)
    with java.for_spark() as home:
        os.environ["JAVA_HOME"] = str(home)
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def ask(spark: SparkSession, what: str) -> Any:
    """What the UI's REST API answers: "jobs", "stages", "sql"."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/{what}"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def ask_until(spark: SparkSession, what: str, is_so: Callable[[Any], bool]) -> Any:
    """The same, once it is so: the UI learns of what happens a little later."""
    until = time.monotonic() + PATIENCE_S
    while not is_so(found := ask(spark, what)):
        assert time.monotonic() < until, found
        time.sleep(0.05)
    return found

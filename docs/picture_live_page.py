"""Takes pictures for docs/watching.md: the live page of five programs, in headless Chromium.

    python -m docs.picture_live_page [FOLDER]      writes them here, or there

They are a loop whose input never ends, PageRank on two workers, the program `STUCK` below, a
service with a checkpoint, and one on Spark, which a stream of Spark feeds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.observability.browser import Browser

DOCS = Path(__file__).resolve().parent
_SAYS_URL = r"page is at (\S+)"

COLLATZ = """\
import sys
sys.path.insert(0, "examples")
from itertools import count
from collatz import after
import pointstamp as ps


def lengths(worker):
    with worker.dataflow("collatz") as scope:
        numbers, stream = scope.new_input("numbers")
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1)
            again = stream.enter(inner).concat(cycle).exchange(lambda x: x[0])
            done, rest = again.branch(lambda x: x[1] != 1)
            loop.connect(rest.map(lambda x: (x[0], after(x[1]), x[2] + 1)))
            found = done.leave()
        counted = found.exchange(lambda x: x[2]).inspect(lambda x: None)
        probe = counted.probe(name="counted")
    for epoch in count(1):
        for n in range(1000 * epoch + worker.index, 1000 * epoch + 300, worker.peers):
            numbers.send((n, n, 0))
        numbers.advance_to(epoch)
        worker.step_while(lambda: probe.less_than(epoch - 12))


if __name__ == "__main__":
    ps.execute(lengths, workers=2, dashboard=True)
"""

PAGERANK = """\
import sys
sys.path.insert(0, "examples")
import pagerank
import pointstamp as ps

if __name__ == "__main__":
    ps.execute(pagerank.rank, pagerank.epochs(20_000, 2_000, 400), workers=2, dashboard=True)
"""

STUCK = """\
import time
import pointstamp as ps


def report(worker):
    with worker.dataflow("report") as scope:
        orders, stream = scope.new_input("orders")
        prices, others = scope.new_input("prices")
        priced = stream.map(lambda x: (x % 9, x)).join(others.map(lambda x: (x % 9, x)))
        probe = priced.exchange().probe(name="reported")
    for epoch in range(1, 1000):
        orders.send(epoch)
        orders.advance_to(epoch)
        if epoch < 20 or worker.index == 0:
            prices.send(epoch)
            prices.advance_to(epoch)  # which worker 1 forgets from epoch 20 on
        worker.step_while(lambda: probe.less_than(epoch - 5))


if __name__ == "__main__":
    ps.execute(report, workers=2, dashboard=True)
"""

SERVICE = """\
import tempfile, time
import pointstamp as ps


def totals(scope, sales, shops):
    return sales.join(shops, on="shop").group_by("city").agg(n=ps.count(), cents=ps.sum("cents"))


if __name__ == "__main__":
    schemas = {"sales": "shop long, cents long", "shops": "shop long, city long"}
    with tempfile.TemporaryDirectory() as folder, ps.serve(
        totals, workers=2, collections=schemas, checkpoint=folder, snapshot_every=10, dashboard=True
    ) as service:
        service.input("shops").insert([(shop, shop % 40) for shop in range(1000)])
        for epoch in range(10_000):
            service.input("sales").insert([(epoch * n % 1000, n) for n in range(2000)])
            service.advance()
            service.probe.wait(epoch)
            service.output("result").discard(epoch)
            time.sleep(0.1)
"""

ON_SPARK = """\
import tempfile
from pyspark.sql import SparkSession
import pointstamp as ps
import pointstamp.spark


def totals(scope, sales):
    return sales.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"))


spark = SparkSession.builder.master("local[4]").getOrCreate()
schemas = {"sales": "city long, cents long"}
with tempfile.TemporaryDirectory() as folder, pointstamp.spark.serve(
    totals, spark, workers=2, collections=schemas, checkpoint=folder, dashboard=True
) as service:
    rates = spark.readStream.format("rate").option("rowsPerSecond", 5000).load()
    sales = rates.selectExpr("value % 40 as city", "value as cents")
    service.input("sales").follow(sales, "append").awaitTermination(600)
"""


@contextmanager
def shown(program: str, name: str, browser: Browser, after: str = "") -> Iterator[None]:
    """Run a program and open its page."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(program)
        # Tasks of Spark run in the Python that is first on the path.
        paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        with subprocess.Popen(
            [sys.executable, path],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": paths},
        ) as running:
            try:
                assert running.stderr is not None
                said = iter(running.stderr.readline, "")
                url = next(found[1] for line in said if (found := re.search(_SAYS_URL, line)))
                time.sleep(3)
                browser.open(url + after)
                browser.wait("document.body?.dataset.ready")
                browser.value("void (document.documentElement.style.scrollbarWidth = 'none')")
                time.sleep(15)
                yield
            finally:
                running.kill()


def main() -> None:
    """Run each program, and take its picture while it runs."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile), 1100, 1000) as browser:
        with shown(COLLATZ, "lengths.py", browser):
            browser.click("g[data-operator='0/5']")
            browser.wait("document.querySelectorAll('rect.lit').length > 1")
            browser.picture(folder / "watching.png", whole=False)
        with shown(PAGERANK, "pagerank.py", browser):
            browser.wait("document.querySelectorAll('#loops table').length")  # not always
            browser.picture(folder / "watching_pagerank.png", "main")
        with shown(STUCK, "report.py", browser, "#mode=held"):
            browser.click("g[data-operator='0/7']")
            browser.wait("document.querySelectorAll('rect.lit').length > 1")
            browser.picture(folder / "watching_stuck.png", "#graph", "#details")
        with shown(SERVICE, "totals.py", browser):
            browser.picture(folder / "watching_service.png", "main")
        with shown(ON_SPARK, "totals_on_spark.py", browser):
            browser.picture(folder / "watching_on_spark.png", "main")


if __name__ == "__main__":
    main()

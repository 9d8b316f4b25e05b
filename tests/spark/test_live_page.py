"""A service on Spark serves a live page: the driver asks the tasks for it.

In a file of its own, for a page shows all that runs in its process, and other tests of services
keep one for as long as they run.
"""

import json
import re
import time
import urllib.request

import pytest

from tests.spark.test_serve import serve

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def taken(view):
    """By exchange: thirteen numbers, each of which is exchanged for both outputs."""
    return [sum(each["taken"]) for each in view["exchanges"] if each["name"] == "Exchange"]


def test_the_driver_serves_the_live_page_of_a_service(spark, capfd):
    with serve(spark, dashboard=True) as running:
        running.input("numbers").send([{"n": n} for n in range(13)])
        running.input("numbers").advance_to(1)
        running.input("others").advance_to(1)
        running.output("all").collect(upto=0)
        (url,) = re.findall(r"the live page is at (\S+)", capfd.readouterr().err)

        def answer(what):
            with urllib.request.urlopen(url.replace("/?", f"/api/{what}?"), timeout=60) as found:
                return json.load(found)

        structure, view = answer("structure"), answer("view")
        until = time.monotonic() + 60
        while not (len(view["workers"]) == 2 and taken(view) == [13, 13]):
            assert time.monotonic() < until, view
            time.sleep(0.1)
            view = answer("view")  # one may have taken too long to answer
        assert [each["worker"] for each in view["workers"]] == [0, 1]
        names = {each["address"]: each["name"] for each in structure["operators"]}
        assert "Concatenate" in names.values()
        assert any("test_serve.py" in each["line"] for each in structure["operators"])
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=5)

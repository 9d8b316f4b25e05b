"""What the tasks of a job get, pickled once, for several plans.

PySpark pickles a function when a plan with it is made. Of a DataFrame of which there are two plans,
one of them made later, both are to run what the program gave, as it was then.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from pointstamp.errors import SerializationError

if TYPE_CHECKING:
    from pyspark import SparkContext

    from pointstamp.spark.task import Job


class PickledJob:
    """A job, which is what comes out where this is pickled and read again.

    Broadcast variables of Spark in it go along: PySpark collects those that it meets while it
    pickles, for the next plan that it makes.
    """

    def __init__(self, job: Job, context: SparkContext) -> None:
        from pyspark.serializers import CloudPickleSerializer

        self._met: Any = context._pickled_broadcast_vars
        serializer: Any = CloudPickleSerializer  # which has no annotations
        try:
            self._bytes: bytes = serializer().dumps(job)
        except Exception as error:
            # Here and not above: all jobs but those that fail do without.
            from pointstamp.operators.building import name_of

            raise SerializationError(
                f"the function {name_of(job.build)} cannot be pickled and so not be sent to the "
                f"workers, with all that it refers to: {error}"
            ) from error
        self._broadcast = list(self._met)
        self._met.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        for variable in self._broadcast:
            self._met.add(variable)
        return pickle.loads, (self._bytes,)

"""The process that Spark forks Python workers from, with what each of them imports imported.

Spark's own imports nothing, for the sake of libraries that start threads when they are imported,
so each worker of each job takes half a second of a processor for it. Of what tasks of ours import
none starts any, and what is here is shared by all workers of the machine. `session` has it on this
machine; elsewhere `spark.python.daemon.module` is a setting of the cluster's own, which
`pointstamp.spark.python_daemon` may be where this package is installed on each executor.
"""

from __future__ import annotations

import contextlib
import gc
from importlib import import_module

IMPORTS = ("pandas", "pyspark.worker", "pointstamp.communication.mesh", "pointstamp.spark.task")


def main() -> None:
    """Import, and be what Spark's daemon is."""
    for module in IMPORTS:
        # What a worker cannot import either, it says itself.
        with contextlib.suppress(ImportError):
            import_module(module)
    # The garbage collector of each worker would look at all of it again, and so copy it.
    gc.freeze()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()

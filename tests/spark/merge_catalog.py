"""A catalog whose tables have MERGE, compiled by Spark's own compiler; see `MergeCatalog.java`."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "MergeCatalog.java"


def add_merge_catalog(spark: Any, jar: Path, name: str, **options: Any) -> str:
    """Have a session know the catalog, which is compiled into `jar`; its name."""
    jvm = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(SOURCE.read_text())
    codes = compiler.getBytecodes()
    with zipfile.ZipFile(jar, "w") as archive:
        for called in codes:
            archive.writestr(f"{called.replace('.', '/')}.class", bytes(codes[called]))
    spark.sql(f"ADD JAR '{jar}'")
    spark.conf.set(f"spark.sql.catalog.{name}", "tests.MergeCatalog")
    for option, value in options.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{option}", str(value))
    return name

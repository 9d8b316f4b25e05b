"""Which lines are the program's, and which the package's."""

from __future__ import annotations

import sys

from pointstamp.dataflow.program_lines import PACKAGE, frame_of_program, is_own, line_of_program


def test_files_of_the_package_are_own_and_those_beside_it_are_not() -> None:
    assert is_own(f"{PACKAGE}dataflow/scope_core.py")
    assert is_own("pointstamp/dataflow/scope_core.py")  # as compiled modules say it
    assert not is_own(f"{PACKAGE[:-1]}_jobs/report.py")
    assert not is_own(__file__)


def test_the_frame_of_the_program_is_the_first_that_is_not_of_the_package() -> None:
    here = sys._getframe()
    assert frame_of_program(here) is here
    assert line_of_program() == f"{__file__}:{here.f_lineno}"
    # Code of the package that is called here, and calls back.
    source = compile("def call(f):\n    return f()", f"{PACKAGE}made.py", "exec")
    names: dict[str, object] = {}
    exec(source, names)
    call = names["call"]
    assert callable(call)
    assert call(lambda: frame_of_program(sys._getframe(1))) is here

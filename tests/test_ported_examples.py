"""Programs of Bytewax's and Pathway's documentation, in Pointstamp: each says what it should."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PORTED = ROOT / "examples" / "ported"

# Worked out by hand, from the data in each file.
SAID = {
    "wordcount.py": "and 1\nragged 1\nran 1\nrascal 1\nrock 1\nround 2\nrugged 1\nthe 2\n",
    "search_sessions.py": "1 cats True\n1 dogs True\n2 fruit False\n",
    "join.py": "('123', 'bob', 'bob@mail', '555 1')\n('456', 'ann', 'ann@mail', None)\n",
    # Before the 30: 4 5 6 5 4 6 5, of mean 5 and variance 4/7.
    # Before the 6: 4 5, of mean 4.5 and deviation 0.5.
    "anomalies.py": "2 s: qps is 6, 3.0 standard deviations away\n"
    "7 s: qps is 30, 33.1 standard deviations away\n",
    "measurements.py": "Lima=18.2/18.2/18.2\nOslo=-3.5/-1.0/1.5\nRome=21.0/23.0/25.0\n",
    "suspicious_logins.py": "50.37.169.241: 5 failures from second 0 to 60\n",
    "shortest_paths.py": "[((1, 0), 1), ((2, 3), 1), ((3, 7), 1), ((4, 8), 1)]\n"
    "[((3, 7), -1), ((3, 10), 1), ((4, 8), -1), ((4, 11), 1)]\n",
    "components.py": "1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 8: 1\n4: 4, 5: 4, 8: 4\n9: 9, 10: 9\n"
    "9: 1, 10: 1\n3: 3, 9: 3, 10: 3\n",
    "asof_join.py": "AAA: a recall on 2023-01-07, -5.9 % on 2023-01-09\n"
    "BBB: a merger on 2023-01-04, +10.0 % on 2023-01-05\n",
    # Of 28 23 24.5 26 28.5 26 the mean is 26; squares of what is beyond add up to 21.5.
    # With 20 in the place of the last 26 the mean is 25, and they add up to 51.5.
    "deviation.py": "[(26.0, 3.5833)]\n[(25.0, 8.5833)]\n",
}


@pytest.mark.parametrize("name", SAID)
def test_a_ported_program_says_what_it_should(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location(
        f"ported_{name.removesuffix('.py')}", PORTED / name
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    assert capsys.readouterr().out == SAID[name]


def test_no_ported_program_is_left_out() -> None:
    assert {path.name for path in PORTED.glob("*.py")} == set(SAID)


def n_lines(program: str) -> int:
    """How many lines are neither empty nor only a comment."""
    return sum(bool(line.strip()) and line.strip()[0] != "#" for line in program.splitlines())


def test_the_page_has_their_lengths() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    rows = re.findall(
        r"^\| \[`(\w+\.py)`\]\(\.\./examples/ported/\1\) \| [^|]* \| (\d+) \|", page, re.MULTILINE
    )
    assert {name: int(n) for name, n in rows} == {
        path.name: n_lines(path.read_text()) for path in PORTED.glob("*.py")
    }

"""Packages that an extra brings, asked for before they are used."""

from __future__ import annotations

from importlib.util import find_spec

from pointstamp.errors import MissingExtraError


def require_extra(package: str, extra: str, what: str) -> None:
    """Raise unless a package can be imported.

    Parameters
    ----------
    package : str
        As it is imported.
    extra : str
        Which of Pointstamp's extras brings it.
    what : str
        What it is needed for, as the beginning of a sentence.

    Raises
    ------
    MissingExtraError

    >>> require_extra("json", "json", "lines of JSON are read by json")
    """
    if find_spec(package) is None:
        raise MissingExtraError(
            f"{what}, which is not installed here: pip install 'pointstamp[{extra}]'"
        )

"""Packages that an extra brings, asked for before they are used."""

from __future__ import annotations

from importlib.util import find_spec

from pointstamp.errors import MissingExtraError


def is_installed(package: str) -> bool:
    """Whether a package, or a module in one, can be imported.

    >>> is_installed("json.decoder"), is_installed("no.such")
    (True, False)
    """
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False  # nor is the package that it would be in


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
    if not is_installed(package):
        raise MissingExtraError(
            f"{what}, which is not installed here: pip install 'pointstamp[{extra}]'"
        )

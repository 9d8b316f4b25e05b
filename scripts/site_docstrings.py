"""Docstrings as the site shows them: an extension of Griffe, which `mkdocs.yml` names.

A doctest stands in a docstring without a heading; in Markdown its `>>>` would be a quotation of
quotations, so it is put into a fence. An entry of several parameters becomes one of each: Griffe
gives all of them the type and the default of the first.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)
"""From a prompt to the next empty line, as doctest reads it."""


SECTION = re.compile(r"^-{3,}$", re.MULTILINE)
EXAMPLES = re.compile(r"^Examples\n-{3,}$", re.MULTILINE)


NAMES = re.compile(r"^((?:\w+, )+\w+)(?: : (.*))?\n((?:(?: .*)?\n)+)", re.MULTILINE)
"""Several names, what they are, and the lines about them."""


def separated(text: str) -> str:
    r"""The text, with an entry for each parameter; what is `optional` and no more has its own type.

    >>> separated("Parameters\n----------\nhost, port\n    Where.\n").splitlines()[2:]
    ['host', '    Where.', 'port', '    Where.']
    >>> last = "Parameters\n----------\nhost, port\n    Where.\n\nReturns\n-------\nbool\n"
    >>> separated(last).splitlines()[4:]
    ['port', '    Where.', '', 'Returns', '-------', 'bool']
    """
    head, title, rest = text.partition("Parameters\n----------\n")
    following = re.search(r"^\w+\n-{3,}$", rest, re.MULTILINE)
    end = following.start() if following else len(rest)
    return head + title + NAMES.sub(_each, f"{rest[:end]}\n")[:-1] + rest[end:]


def _each(found: re.Match[str]) -> str:
    names, what, about = found.groups()
    said = "" if what in (None, "optional") else f" : {what}"
    lines = about.rstrip()
    # An empty line stays where it is: without it the next section would be lines of this one.
    after = about[len(lines) :]
    return "\n".join(f"{name}{said}\n{lines}" for name in names.split(", ")) + after


def fenced(text: str) -> str:
    """The text, with each run of doctests in a fence.

    Those that follow a section of numpydoc's belong to none; they get a section of examples.
    """
    text = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
    section, doctest = SECTION.search(text), re.search("^```pycon$", text, re.MULTILINE)
    if not section or not doctest or EXAMPLES.search(text):
        return text
    after = text.find("```pycon", section.start())
    return text if after < 0 else f"{text[:after]}Examples\n--------\n{text[after:]}"


class DoctestFences(griffe.Extension):
    """Puts the doctests of all docstrings into fences."""

    def on_object(self, *, obj: griffe.Object, **given: Any) -> None:
        """Change the docstring of an object, once."""
        if obj.docstring is not None and "```pycon" not in obj.docstring.value:
            obj.docstring.value = fenced(separated(obj.docstring.value))

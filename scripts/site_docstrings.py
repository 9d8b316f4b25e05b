"""Docstrings as the site shows them: an extension of Griffe, which `mkdocs.yml` names.

A doctest stands in a docstring without a heading; in Markdown its `>>>` would be a quotation of
quotations, so it is put into a fence; so is a block after `::`, which Markdown would show. An entry
of several parameters becomes one of each: Griffe gives all of them the type and the default of the
first.
"""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)
"""From a prompt to the next empty line, as doctest reads it."""
FLAGS = re.compile(r" *# doctest:.*")


LITERAL = re.compile(r"^(.*)::\n\n((?:(?: {4}.*)?\n)* {4}.*)$", re.MULTILINE)
"""What is said before a block of code, if anything, and the block, as Sphinx has them."""

SECTION = re.compile(r"^-{3,}$", re.MULTILINE)
EXAMPLES = re.compile(r"^Examples\n-{3,}$", re.MULTILINE)


SAID = re.compile(r"(?<=\n\n)(\w+) : (\S)")
"""A parameter of which a line says what it is, as a paragraph of its own."""

MADE = re.compile(r"(\w+)\(")
"""A value that is made by a call, and of what."""

OPTIONAL = re.compile(r"^(\w+) : optional$", re.MULTILINE)
"""A name of which nothing but that is said: its annotation says the type."""

NAMES = re.compile(r"^((?:\w+, )+\w+)(?: : (.*))?\n((?:(?: .*)?\n)+)", re.MULTILINE)
"""Several names, what they are, and the lines about them."""


def separated(text: str) -> str:
    r"""The text, with an entry for each parameter; what is `optional` and no more has its own type.

    >>> separated("Parameters\n----------\nhost, port\n    Where.\n").splitlines()[2:]
    ['host', '    Where.', 'port', '    Where.']
    >>> last = "Parameters\n----------\nhost, port\n    Where.\n\nReturns\n-------\nbool\n"
    >>> separated(last).splitlines()[4:]
    ['port', '    Where.', '', 'Returns', '-------', 'bool']
    >>> separated("Attributes\n----------\nport : optional\n    Where.\n").splitlines()[2:]
    ['port', '    Where.']
    """
    text = OPTIONAL.sub(r"\1", text)
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


def listed(text: str) -> str:
    r"""The text, with what is said of a parameter outside of any section as an entry of a list.

    >>> listed("Joins.\n\nother : by as many\n    columns\n\nAnd more.").splitlines()[2:4]
    ['- `other`: by as many', '    columns']
    >>> listed("Joins.\n\nParameters\n----------\nother : Collection").splitlines()[-1]
    'other : Collection'
    """
    section = SECTION.search(text)
    end = text.rfind("\n\n", 0, section.start()) if section else len(text)
    return SAID.sub(r"- `\1`: \2", text[: max(end, 0)]) + text[max(end, 0) :]


def with_code(text: str) -> str:
    r"""The text, with each block that follows `::` in a fence.

    >>> with_code("A program::\n\n    for x in y:\n\n        x()\n\nAnd more.").splitlines()[:4]
    ['A program:', '', '```python', 'for x in y:']
    >>> with_code("::\n\n    f()").splitlines()
    ['```python', 'f()', '```']
    """
    return LITERAL.sub(_fence, text)


def _fence(found: re.Match[str]) -> str:
    said, block = found.groups()
    code = dedent(block).strip("\n")
    return f"{said}:\n\n```python\n{code}\n```" if said else f"```python\n{code}\n```"


def fenced(text: str) -> str:
    """The text, with each run of doctests in a fence.

    Those that follow a section of numpydoc's belong to none; they get a section of examples.
    """
    text = DOCTEST.sub(lambda found: f"```pycon\n{FLAGS.sub('', found[0])}\n```", text)
    section, doctest = SECTION.search(text), re.search("^```pycon$", text, re.MULTILINE)
    if not section or not doctest or EXAMPLES.search(text):
        return text
    after = text.find("```pycon", section.start())
    return text if after < 0 else f"{text[:after]}Examples\n--------\n{text[after:]}"


class ShownDocstrings(griffe.Extension):
    """Docstrings as the site shows them."""

    def on_object(self, *, obj: griffe.Object, **given: Any) -> None:
        """Change the docstring of an object, once; a value has that of its class."""
        if obj.docstring is None and obj.is_attribute and (made := MADE.match(str(obj.value))):
            of = obj.parent.members.get(made[1])
            if of is not None and not of.is_alias and of.is_class and of.docstring is not None:
                obj.docstring = griffe.Docstring(of.docstring.value, parent=obj)
        if obj.docstring is not None and "```pycon" not in obj.docstring.value:
            text = separated(listed(obj.docstring.value))
            obj.docstring.value = with_code(fenced(text))

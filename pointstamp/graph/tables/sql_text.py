"""Conditions and expressions as text, in SQL's words: text in, a tree out.

    or         =  and ("or" and)*
    and        =  not ("and" not)*
    not        =  "not" not | predicate
    predicate  =  sum [compare sum | "is" ["not"] "null" | ["not"] "in" "(" sum, ... ")"
                       | ["not"] "between" sum "and" sum
                       | ["not"] ("like" | "ilike" | "rlike" | "regexp") sum]
    compare    =  "=" | "==" | "<=>" | "!=" | "<>" | "<" | "<=" | ">" | ">="
    sum        =  product (("+" | "-" | "||") product)*
    product    =  sign (("*" | "/" | "%") sign)*
    sign       =  ["-" | "+"] primary
    primary    =  number | 'text' | "true" | "false" | "null" | "date" 'text' | "timestamp" 'text'
                  | "(" or ")" | function "(" or, ... ")"
                  | ("cast" | "try_cast") "(" or "as" type ")"
                  | "case" ("when" or "then" or)* ["else" or] "end" | name ("." name)*

A backslash in a text is as in Spark's SQL: the next character is itself, but for those that stand
for others, such as the n of a line feed; in `r'text'` a backslash is one.

Knows no table and no types: what a name means and what is computed is `sql_values`.
Source: the part of Spark SQL's expressions that conditions on attributes are made of.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from pointstamp.errors import UsageError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)
      | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|[rR]'[^']*'|[rR]"[^"]*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=>|<=|>=|<>|!=|==|\|\||[=<>+\-*/%(),.])
    )""",
    re.VERBOSE | re.DOTALL,
)
_END = re.compile(r"\s*\Z")

_COMPARE = {
    "=": "equal",
    "==": "equal",
    "<=>": "same",
    "!=": "not_equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_SUM = {"+": "add", "-": "subtract", "||": "concat"}
_PRODUCT = {"*": "multiply", "/": "divide", "%": "remainder"}
SIGNS = {
    function: sign
    for signs in (_COMPARE, _SUM, _PRODUCT)
    for sign, function in reversed(signs.items())
}
"""How functions that are signs are written, by the name that they have in a tree."""

_MATCHING = {"like": "like", "ilike": "ilike", "rlike": "rlike", "regexp": "rlike"}

_RESERVED = frozenset(
    ["and", "or", "not", "is", "in", "between", "like", "case", "when", "then", "else", "end", "as"]
)

_ESCAPED = re.compile(
    r"""\\(?:u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|(?P<octal>[01][0-7]{2})
      | (?P<pattern>[%_])|(?P<one>.))""",
    re.VERBOSE | re.DOTALL,
)
_OF_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


@dataclass(frozen=True)
class Constant:
    """A value that is written in the text.

    kind : "date" or "timestamp" where it is one; "decimal" of a number with a point, a Decimal
    """

    value: Any
    kind: str = ""


@dataclass(frozen=True)
class Named:
    """What is named, by the parts of its name: `a.kind` has two."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Computed:
    """A function of other trees; operators are functions too."""

    function: str
    operands: tuple[Tree, ...]


Tree = Constant | Named | Computed

IN_ZONE = "in zone"
"""The function that evaluates an expression in a time zone; no text can call it."""


def in_zone(tree: Tree, zone: str) -> Tree:
    """An expression whose times are those that clocks in a zone show, as in a session of Spark.

    >>> in_zone(Named(("at",)), "Asia/Tokyo").operands[1].value
    'Asia/Tokyo'
    """
    return Computed(IN_ZONE, (tree, Constant(zone)))


def parse_sql(text: str) -> Tree:
    """The tree of a condition or an expression.

    Raises
    ------
    UsageError
        If it cannot be understood, with a caret under the character at fault.

    Examples
    --------
    >>> parse_sql("a.age > 30")
    Computed(function='greater', operands=(Named(parts=('a', 'age')), Constant(value=30, kind='')))
    >>> parse_sql("age > ")
    Traceback (most recent call last):
    pointstamp.errors.UsageError: a value was expected here, and the text ends
        age >
             ^
    """
    if not isinstance(text, str) or not text.strip():
        raise UsageError(
            f"a condition is text such as \"age > 30 and kind = 'bank'\", not {text!r}"
        )
    parser = _SqlParser(text)
    tree = parser.disjunction()
    if parser.kind != "end":
        parser.fail("an operator or the end was expected here")
    return tree


def conjuncts(tree: Tree) -> list[Tree]:
    """The conditions of which all must hold.

    >>> [part.operands[0].parts for part in conjuncts(parse_sql("a = 1 and (b = 2 and c = 3)"))]
    [('a',), ('b',), ('c',)]
    """
    if isinstance(tree, Computed) and tree.function == "and":
        return [part for operand in tree.operands for part in conjuncts(operand)]
    return [tree]


def names_in(tree: Tree) -> list[Named]:
    """All names in it, in order, those that repeat once."""
    if isinstance(tree, Named):
        return [tree]
    if isinstance(tree, Constant):
        return []
    return list(dict.fromkeys(name for part in tree.operands for name in names_in(part)))


class _SqlParser:
    """Reads left to right; `kind` and `token` are of the next token, which begins at `at`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = 0
        self._step()

    def _step(self) -> None:
        if _END.match(self._text, self._next):
            self.kind, self.token, self.at = "end", "", len(self._text.rstrip())
            return
        found = _TOKEN.match(self._text, self._next)
        if found is None:
            space = re.match(r"\s*", self._text[self._next :])
            self.at = self._next + (space.end() if space else 0)
            self.fail("this character begins nothing that is known here")
        self.kind = str(found.lastgroup)
        self.token = found[self.kind]
        self.at, self._next = found.start(self.kind), found.end()

    def fail(self, problem: str) -> NoReturn:
        shown = " ".join(self._text.split("\n")).rstrip()
        raise UsageError(f"{problem}\n    {shown}\n    {' ' * self.at}^")

    def _is(self, *tokens: str) -> bool:
        if self.kind == "word":
            return self.token.lower() in tokens
        return self.kind == "sign" and self.token in tokens

    def _take(self, *tokens: str) -> str | None:
        if not self._is(*tokens):
            return None
        token = self.token.lower()
        self._step()
        return token

    def _expect(self, token: str) -> None:
        if self._take(token) is None:
            self.fail(f"{token!r} was expected here")

    def disjunction(self) -> Tree:
        tree = self._conjunction()
        while self._take("or"):
            tree = Computed("or", (tree, self._conjunction()))
        return tree

    def _conjunction(self) -> Tree:
        tree = self._negation()
        while self._take("and"):
            tree = Computed("and", (tree, self._negation()))
        return tree

    def _negation(self) -> Tree:
        if self._take("not"):
            return Computed("not", (self._negation(),))
        return self._predicate()

    def _predicate(self) -> Tree:
        left = self._sum()
        if sign := self._take(*_COMPARE):
            return Computed(_COMPARE[sign], (left, self._sum()))
        if self._take("is"):
            negated = self._take("not")
            self._expect("null")
            return _negated(Computed("is_null", (left,)), negated)
        negated = self._take("not")
        if self._take("in"):
            self._expect("(")
            if self._is(")"):
                self.fail("a value was expected here, one of those that it may be")
            return _negated(Computed("in", (left, *self._listed(self._sum))), negated)
        if self._take("between"):
            low = self._sum()
            self._expect("and")
            between = (
                Computed("less_equal", (low, left)),
                Computed("less_equal", (left, self._sum())),
            )
            return _negated(Computed("and", between), negated)
        if sign := self._take(*_MATCHING):
            return _negated(Computed(_MATCHING[sign], (left, self._sum())), negated)
        if negated:
            self.fail("'in', 'between', 'like' or 'rlike' was expected here, after 'not'")
        return left

    def _sum(self) -> Tree:
        tree = self._product()
        while sign := self._take(*_SUM):
            tree = Computed(_SUM[sign], (tree, self._product()))
        return tree

    def _product(self) -> Tree:
        tree = self._sign()
        while sign := self._take(*_PRODUCT):
            tree = Computed(_PRODUCT[sign], (tree, self._sign()))
        return tree

    def _sign(self) -> Tree:
        if self._take("-"):
            operand = self._sign()
            if isinstance(operand, Constant) and isinstance(operand.value, Decimal):
                return Constant(operand.value.copy_negate(), operand.kind)  # - would round it
            if isinstance(operand, Constant) and isinstance(operand.value, int | float):
                return Constant(-operand.value, operand.kind)
            return Computed("negate", (operand,))
        self._take("+")
        return self._primary()

    def _primary(self) -> Tree:
        kind, token, at = self.kind, self.token, self.at
        if self._take("("):
            tree = self.disjunction()
            self._expect(")")
            return tree
        if kind in ("number", "text"):
            number = _number(token) if kind == "number" else Constant(_unquoted(token))
            if isinstance(number.value, Decimal) and len(number.value.as_tuple().digits) > _MOST:
                self.fail(f"a number with a point has at most {_MOST} digits")
            self._step()
            return number
        if kind == "word" and token.lower() in ("true", "false", "null"):
            self._step()
            return Constant({"true": True, "false": False, "null": None}[token.lower()])
        if self._take("case"):
            return self._case()
        if kind == "quoted" or (kind == "word" and token.lower() not in _RESERVED):
            self._step()
            return self._after_name(kind, token, at)
        found = ", and the text ends" if kind == "end" else f", and not {token!r}"
        return self.fail(f"a value was expected here{found}")

    def _after_name(self, kind: str, token: str, at: int) -> Tree:
        name = token.lower()
        if kind == "word" and name in ("date", "timestamp") and self.kind == "text":
            value = _unquoted(self.token)
            self._step()
            return Constant(value, name)
        if kind == "word" and self._take("("):
            if name in ("cast", "try_cast"):
                value_tree = self.disjunction()
                self._expect("as")
                type_name = self.token.lower()
                self._step()
                if self._take("("):  # as in decimal(10, 2)
                    figures = self._listed(self._primary)
                    type_name += f"({','.join(str(getattr(f, 'value', f)) for f in figures)})"
                self._expect(")")
                return Computed(name, (value_tree, Constant(type_name)))
            if self._take("*"):
                self._expect(")")
                return Computed(name, ())
            return Computed(name, self._listed(self.disjunction))
        parts = [_plain_name(token)]
        while self._take("."):
            if self.kind not in ("word", "quoted"):
                self.fail("a name was expected here, after '.'")
            parts.append(_plain_name(self.token))
            self._step()
        return Named(tuple(parts))

    def _listed(self, item: Any) -> tuple[Tree, ...]:
        """Trees with commas between them, up to the parenthesis that ends them."""
        items: list[Tree] = []
        if self._take(")"):
            return ()
        items.append(item())
        while self._take(","):
            items.append(item())
        self._expect(")")
        return tuple(items)

    def _case(self) -> Tree:
        operands: list[Tree] = []
        while self._take("when"):
            operands.append(self.disjunction())
            self._expect("then")
            operands.append(self.disjunction())
        if not operands:
            self.fail("'when' was expected here")
        operands.append(self.disjunction() if self._take("else") else Constant(None))
        self._expect("end")
        return Computed("case", tuple(operands))


def _negated(tree: Tree, negated: str | None) -> Tree:
    return Computed("not", (tree,)) if negated else tree


_MOST = 38
"""So many digits a decimal has at most."""


def _number(token: str) -> Constant:
    if token.isdigit():
        return Constant(int(token))
    if "e" in token.lower():
        return Constant(float(token))
    return Constant(Decimal(token), "decimal")


def _plain_name(token: str) -> str:
    """A name without the backticks around it, of which two are one in it."""
    return token[1:-1].replace("``", "`") if token[0] == "`" else token


def _unquoted(token: str) -> str:
    if token[0] in "rR":
        return token[2:-1]
    quote = token[0]
    return _ESCAPED.sub(_escaped, token[1:-1].replace(quote * 2, quote))


def _escaped(found: re.Match[str]) -> str:
    """What a backslash and what follows it stand for; those of patterns of `like` stay."""
    code = found["four"] or found["eight"]
    if code is not None:
        if int(code, 16) > sys.maxunicode:
            raise UsageError(f"{found[0]!r} in a text stands for no character")
        return chr(int(code, 16))
    if found["octal"] is not None:
        return chr(int(found["octal"], 8))
    if found["pattern"] is not None:
        return found[0]
    return _OF_LETTERS.get(found["one"], found["one"])

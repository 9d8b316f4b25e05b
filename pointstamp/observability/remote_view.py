"""The live page's view of a page that is served elsewhere: its questions are handed on."""

from __future__ import annotations

import json
import threading
import time
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from pointstamp.errors import CommunicationError, UsageError
from pointstamp.observability.page_columns import TABLES, with_tables
from pointstamp.observability.page_view import READ_EVERY_S

TIMEOUT_S = 10.0


class RemoteView:
    """What the page at an address shows.

    Parameters
    ----------
    url : str
        The whole address, with the token.

    Raises
    ------
    UsageError
        If it has no token.
    CommunicationError
        If nothing answers there, or refuses the token.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        token = parse_qs(parts.query).get("token", [""])[-1]
        if not token:
            raise UsageError(f"{url} has no token: give the whole address, as it was printed")
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._token = token
        # Not by a proxy of the environment: the token is for the page alone.
        self._opener = build_opener(ProxyHandler({}))
        self._lock = threading.Lock()
        self._view: dict[str, Any] | None = None
        self._read_s = 0.0
        self.structure()

    def structure(self) -> dict[str, Any]:
        """See `PageSource`."""
        return self._ask_json("structure")

    def view(self) -> dict[str, Any]:
        """See `PageSource`."""
        with self._lock:
            now = time.monotonic()
            # A browser asks for figures and each table by itself: the page there is asked once.
            if self._view is None or now - self._read_s >= READ_EVERY_S:
                figures = self._ask_json("view")
                tables = {name: self._ask(name) for name in TABLES}
                try:
                    self._view, self._read_s = with_tables(figures, tables), now
                except (KeyError, ValueError) as error:  # of Arrow, or a page of another version
                    raise CommunicationError(f"{self._base} is no page: {error}") from error
            return self._view

    def explain(self, address: str) -> dict[str, Any]:
        """See `PageSource`."""
        return self._ask_json("explain", f"&operator={quote(address)}")

    def _ask_json(self, what: str, more: str = "") -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._ask(what, more))
        except ValueError as error:
            raise CommunicationError(f"{self._base} does not answer: {error}") from error
        return found

    def _ask(self, what: str, more: str = "") -> bytes:
        request = Request(f"{self._base}/api/{what}?token={quote(self._token)}{more}")
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                found: bytes = answer.read()
                return found
        except HTTPError as error:
            said = error.read(2000).decode(errors="replace").strip()
            raise CommunicationError(f"{self._base} answers {error.code}: {said}") from error
        except (URLError, OSError) as error:
            raise CommunicationError(f"{self._base} does not answer: {error}") from error

"""A real browser for tests of the live page: headless Chromium, where the machine has one.

It is driven over two pipes by the protocol of its developer tools, which is JSON with a zero byte
behind each message, so that no package is needed for it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
LIMIT_S = 60.0

BOX = """selector => { const box = document.querySelector(selector).getBoundingClientRect();
return [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY]; }"""
"""Where the first element of a selector is: left, top, right and bottom."""

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason=f"needs a browser to show the page: none of {', '.join(NAMES)} is here"
)


class Browser:
    """A window of headless Chromium.

    Attributes
    ----------
    errors : list of str
        What scripts of the page have raised, and what the page was refused.
    """

    def __init__(self, folder: Path, width: int = 1400, height: int = 1500) -> None:
        assert CHROMIUM is not None
        asked, self._ask = os.pipe()
        self._answers, answered = os.pipe()
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
            f"--window-size={width},{height}", f"--user-data-dir={folder / 'profile'}",
            # It finds no other machine: the page may need no network.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        ]  # fmt: skip

        def as_expected() -> None:
            os.dup2(asked, 3)
            os.dup2(answered, 4)

        # The pipes may be 3 and 4 themselves, in the other order: moved out of the way first.
        first = os.dup(asked), os.dup(answered)
        os.close(asked)
        os.close(answered)
        asked, answered = (os.dup(each) if each < 5 else each for each in first)
        self._process = subprocess.Popen(
            command,
            pass_fds=(3, 4, asked, answered),
            preexec_fn=as_expected,
            stderr=subprocess.DEVNULL,
        )
        for each in {asked, answered, *first}:
            os.close(each)
        self._read = b""
        self._number = 0
        self._session = self._context = ""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have another window in place of this, which is as that of a browser that has started."""
        self._session = ""
        if self._context:
            self._call("Target.disposeBrowserContext", browserContextId=self._context)
        self.errors: list[str] = []
        self._context = self._call("Target.createBrowserContext")["browserContextId"]
        target = self._call(
            "Target.createTarget", url="about:blank", browserContextId=self._context
        )["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Go to a page."""
        self._call("Page.navigate", url=url)

    def resize(self, width: int, height: int) -> None:
        """Have the page that large, as it is on a phone."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def darken(self) -> None:
        """Have pages dark, as a reader of them may have asked for."""
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        self._call("Emulation.setEmulatedMedia", features=[dark])

    def value(self, script: str) -> Any:
        """What an expression of the page gives."""
        answer = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        """The same, once it is something."""
        until = time.monotonic() + LIMIT_S
        while not (found := self.value(script)):
            assert time.monotonic() < until, f"{script} stays {found!r}; errors: {self.errors}"
            time.sleep(0.05)
        return found

    def texts(self, selector: str) -> list[str]:
        """What the elements of a selector say."""
        found: list[str] = self.value(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(each => each.textContent)"
        )
        return found

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of an element."""
        x, y = self.value(
            f"""(() => {{ const each = document.querySelector({json.dumps(selector)});
            each.scrollIntoView({{block: "nearest"}}); const box = each.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def pinch(self, selector: str, factor: float) -> None:
        """Put two fingers on an element, and move them apart, to so many times as far."""
        left, top, right, bottom = self.value(f"({BOX})({json.dumps(selector)})")
        x, y = (left + right) / 2, (top + bottom) / 2
        for kind, apart in (("touchStart", 30.0), ("touchMove", 30 * factor), ("touchEnd", None)):
            at = [] if apart is None else [
                {"x": x + side * apart, "y": y, "id": i} for i, side in enumerate((-1, 1))
            ]  # fmt: skip
            self._call("Input.dispatchTouchEvent", type=kind, touchPoints=at)

    def picture(self, path: Path, *selectors: str, whole: bool = True) -> None:
        """Write the page as PNG, or what is seen of it without scrolling.

        With some selectors it is only the part with the first element of each.
        """
        shown = {}
        if selectors:
            boxes = [self.value(f"({BOX})({json.dumps(selector)})") for selector in selectors]
            left, top, right, bottom = zip(*boxes, strict=True)
            x, y = min(left), min(top)
            size = {"width": max(right) - x, "height": max(bottom) - y}
            shown["clip"] = {"x": x, "y": y, **size, "scale": 1}
        answer = self._call("Page.captureScreenshot", captureBeyondViewport=whole, **shown)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._ask, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result
            self._note(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            more = os.read(self._answers, 1 << 20)
            assert more, "the browser has ended"
            self._read += more
        first, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(first)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        if event["method"] == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description", details)))
        elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            entry = event["params"]["entry"]
            self.errors.append(f"{entry['text']} {entry.get('url', '')}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.write(self._ask, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self._process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._ask)
        os.close(self._answers)

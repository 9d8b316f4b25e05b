"""Takes pictures of what one learns from: a notebook in JupyterLab, and the site, in Chromium.

    python -m docs.picture_learning JUPYTER SITE [FOLDER]      writes them here, or there

`JUPYTER` is the program `jupyter` of an environment with JupyterLab, which need not be this one:
the kernel of the notebook is this Python. `SITE` is a folder that `make docs` has made, of one
version.
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.observability.browser import LIMIT_S, Browser

DOCS = Path(__file__).resolve().parent
NOTEBOOK = "watched_service.ipynb"


@contextmanager
def jupyter_lab(program: str, folder: Path) -> Iterator[str]:
    """The address of the notebook in a JupyterLab that ends with the block."""
    kernel = folder / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    described = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(described))
    asks = folder / "settings" / "@jupyterlab" / "apputils-extension"
    asks.mkdir(parents=True)
    (asks / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    notebooks = folder / "notebooks"
    notebooks.mkdir()
    notebook = json.loads((DOCS / "notebooks" / NOTEBOOK).read_text())
    notebook["cells"] = notebook["cells"][:-2]  # which stop the service, and so its page
    (notebooks / NOTEBOOK).write_text(json.dumps(notebook))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    token = secrets.token_urlsafe()
    command = [
        program, "lab", "--no-browser", "--allow-root", "--expose-app-in-browser",
        f"--ServerApp.port={port}", f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={notebooks}",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "JUPYTER_PATH": str(folder),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "PYTHONPATH": str(DOCS.parent),
    }
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as running:
        try:
            url = f"http://127.0.0.1:{port}"
            _await(f"{url}/api")
            yield f"{url}/lab/tree/{NOTEBOOK}?token={token}"
        finally:
            running.terminate()


def _await(url: str) -> None:
    until = time.monotonic() + LIMIT_S
    while True:
        try:
            urlopen(url).close()
        except URLError:
            assert time.monotonic() < until, f"nothing answers at {url}"
            time.sleep(0.1)
        else:
            return


@contextmanager
def served(folder: str) -> Iterator[str]:
    """The address of a folder's files."""
    handler = functools.partial(_Quiet, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed for a request."""


def main() -> None:
    """Take the pictures."""
    program, site, *rest = sys.argv[1:]
    folder = Path(rest[0]) if rest else DOCS
    with tempfile.TemporaryDirectory() as temporary:
        profile = Path(temporary, "browser")
        with Browser(profile, 1100, 1000) as browser:
            with jupyter_lab(program, Path(temporary)) as url:
                browser.resize(1100, 1300)
                browser.open(url)
                browser.wait("!!window.jupyterapp?.shell?.currentWidget?.context?.isReady")
                browser.value("jupyterapp.shell.collapseLeft()")
                browser.wait("!!jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
                browser.value("void jupyterapp.commands.execute('notebook:run-all-cells')")
                time.sleep(20)
                browser.picture(folder / "notebook.png", whole=False)
            with served(site) as url:
                browser.resize(1400, 900)
                browser.open(url)
                browser.wait("document.readyState === 'complete'")
                time.sleep(2)
                browser.picture(folder / "site.png", whole=False)
                browser.darken()
                browser.open(f"{url}/loops.html")
                browser.wait(
                    "location.pathname.startsWith('/loops') && document.readyState === 'complete'"
                )
                time.sleep(2)
                browser.picture(folder / "site_dark.png", whole=False)


if __name__ == "__main__":
    main()

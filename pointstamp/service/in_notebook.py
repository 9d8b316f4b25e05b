"""What a notebook shows of a service: its live page in a cell, for as long as it is served."""

from __future__ import annotations

from html import escape

FRAME_HEIGHT = 640
"""In pixels; the page scrolls in it."""


def shown_in_cell(text: str, url: str | None) -> dict[str, str]:
    """The forms in which a notebook may show a service, by their types.

    Parameters
    ----------
    text : str
        What is shown where there is no page.
    url : str, optional
        The whole address of the page, with its token.

    >>> sorted(shown_in_cell("Service('a')", "http://127.0.0.1:1/?token=t"))
    ['text/html', 'text/plain']
    >>> shown_in_cell("Service('a')", None)
    {'text/plain': "Service('a')"}
    """
    bundle = {"text/plain": text}
    if url is not None:
        bundle["text/html"] = (
            f'<iframe src="{escape(url)}" title="{escape(text)}" width="100%" '
            f'height="{FRAME_HEIGHT}" style="border: 1px solid #c8d3dc; border-radius: 8px; '
            'box-sizing: border-box"></iframe>'
        )
    return bundle

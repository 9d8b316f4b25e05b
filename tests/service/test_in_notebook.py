"""A service as the value of a cell: its live page, as long as that is served."""

from __future__ import annotations

import re
from urllib.request import urlopen

import pointstamp as ps


def doubled(scope, numbers):
    return numbers.distinct()


def test_a_service_is_shown_by_its_page_until_it_ends() -> None:
    with ps.serve(doubled, threads=True, collections={"t": "n long"}, dashboard=True) as service:
        assert repr(service) == "Service('service', 1 workers, outputs=['result'])"
        bundle = service._repr_mimebundle_(include=None, exclude=None)
        assert bundle["text/plain"] == repr(service)
        (address,) = re.findall(r'<iframe src="([^"]+)"', bundle["text/html"])
        assert address == service.dashboard_url
        with urlopen(address) as answer:
            assert answer.status == 200
    assert service.dashboard_url is None
    assert repr(service) == "Service('service', stopped, outputs=['result'])"
    assert service._repr_mimebundle_() == {"text/plain": repr(service)}


def test_without_a_page_a_service_is_text() -> None:
    with ps.serve(doubled, 2, threads=True, collections={"t": "n long"}) as service:
        assert service.dashboard_url is None
        assert service._repr_mimebundle_() == {
            "text/plain": "Service('service', 2 workers, outputs=['result'])"
        }

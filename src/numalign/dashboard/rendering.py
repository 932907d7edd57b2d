"""Turns templates into responses. Every page of the dashboard calls `page`, or `part` for what htmx replaces in place.

Templates escape all values. They have no inline script or style, because the Content-Security-Policy forbids both:
colours are classes, sizes are classes or attributes of SVG."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.templating import Jinja2Templates

from numalign.dashboard import statics, words
from numalign.dashboard.moment import Moment
from numalign.dashboard.source import Source

NAVIGATION: Final = (
    ("fleet", "Fleet"),
    ("waiting", "Waiting pods"),
    ("decisions", "Decisions"),
    ("health", "Health"),
)
"""Pages that the head of every page leads to, with their titles."""
LATEST: Final = 253_402_300_799.0
"""The end of the year 9999, the last that a time can be written in."""


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("numalign.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": words.ago,
        "amount": words.amount,
        "amount_up": words.amount_up,
        "clock": words.clock,
        "cpuset": words.cpus,
        "duration": words.duration,
        "placement": words.placement,
        "grouped": words.grouped,
        "short": words.short_resource,
    }
    made.globals |= {"navigation": NAVIGATION}
    return made


TEMPLATES: Final = Jinja2Templates(env=_environment())


class Links:
    """The addresses of the dashboard's pages, all at one time: `link("node", "node-1")` in templates."""

    def __init__(self, base: str, at: float | None = None) -> None:
        """`base`: the path of the dashboard, without a slash at its end."""
        self.base, self.at = base, at

    def __call__(self, page: str, *names: str, **query: object) -> str:
        """`names` are parts of the path below the page. Values that are None or empty are left out of the query."""
        asked = {"at": f"{self.at:.3f}" if self.at is not None else None} | query
        given = {name: value for name, value in asked.items() if value not in (None, "")}
        path = "/".join((self.base, *(quote(each, safe="") for each in (page, *names))))
        return f"{path}?{urlencode(given, doseq=True)}" if given else path

    def static(self, name: str) -> str:
        return f"{self.base}/static/{name}?v={_fingerprint(name)}"


@cache
def _fingerprint(name: str) -> str:
    return hashlib.sha256(statics.content(name)).hexdigest()[:12]


def root(request: Request) -> str:
    """The path below which the dashboard is served."""
    found: str = request.scope.get("root_path", "")
    return found


def source(request: Request) -> Source:
    found: Source = request.app.state.source
    return found


def asked_time(request: Request) -> float | None:
    """The time that the request asks for; None: now."""
    try:
        at = float(request.query_params["at"])
    except (KeyError, ValueError):
        return None
    return at if 0 <= at <= LATEST else None


async def moment(request: Request) -> Moment:
    """The moment that the request asks for. SourceFailed if it cannot be read."""
    return await source(request).moment(asked_time(request))


def page(request: Request, name: str, shown: Moment, *, here: str = "", **values: Any) -> HTMLResponse:
    """A whole page: `templates/NAME.html`, which extends base.html. `here`: its place in the navigation, or NAME."""
    return part(request, name, shown, here=here or name, **values)


def part(request: Request, name: str, shown: Moment, **values: Any) -> HTMLResponse:
    """A part of a page. Templates have `moment`, `source`, `link` and the values."""
    known = {"moment": shown, "source": source(request), "link": links(request), "static": _is_file(request)}
    known["can_sign_out"] = request.app.state.sessions is not None
    return TEMPLATES.TemplateResponse(request, f"{name}.html", known | values)


def notice(request: Request, status: int, title: str, text: str) -> HTMLResponse:
    """A page that says why there is no other one."""
    return _bare(request, "notice", status, title=title, text=text, is_gone=status == 404)


def sign_in(request: Request, then: str, problem: str = "", status: int = 200) -> HTMLResponse:
    return _bare(request, "signin", status, then=then, problem=problem, title="Sign in")


def _bare(request: Request, name: str, status: int, **values: Any) -> HTMLResponse:
    known = {"moment": None, "link": Links(root(request)), "here": "", "static": False}
    return TEMPLATES.TemplateResponse(request, f"{name}.html", known | values, status_code=status)


def links(request: Request) -> Links:
    found: Links | None = request.app.state.links
    return found or Links(root(request), asked_time(request))


def _is_file(request: Request) -> bool:
    """Whether the page becomes a file, which no server answers for."""
    return request.app.state.links is not None

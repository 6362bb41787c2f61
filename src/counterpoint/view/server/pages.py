"""The pages of the web view: runs, one run, its report, two runs side by side, and the files that pages need.

Conventions
-----------
* A page is made in a thread, of at most `THREADS` at a time, so that it takes none of the receiver. Pages of
  runs have threads of their own: the list does not wait for a long run.
* The parts of a page that cost something are kept by run and revision (`Parts`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from counterpoint.errors import CounterpointError
from counterpoint.view.markup import inline
from counterpoint.view.server.compare_page import compare_main
from counterpoint.view.server.layout import STATIC, document, key_of, link_to, run_of, short, static_file
from counterpoint.view.server.parts import Parts, mark, state_of
from counterpoint.view.server.run_page import report_of, run_main, run_name, size
from counterpoint.view.server.runs_page import Asked, runs_main

if TYPE_CHECKING:
    from fastapi import APIRouter, Request, Response

    from counterpoint.store import Run, Store

__all__ = ["not_found", "router"]

THREADS = 4
FOREVER = "public, max-age=31536000, immutable"


def not_found(what: str) -> str:
    """The page that says so; ``what`` is HTML."""
    return document("Not found", f'<h1>Not found</h1><p>{what}</p><p><a href="/">All runs</a></p>')


class Views:
    """Requests to pages; each method is a route."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.parts = Parts()

    def runs(self, request: Request) -> tuple[str, int]:
        """``/``: the list."""
        since = mark(self.store)
        asked, here = Asked.of(request.query_params), str(request.base_url).rstrip("/")
        main, told, status = runs_main(self.store, asked, here)
        events = link_to("/events", {"since": since})
        return document("Runs", f"<h1>Runs</h1>\n{main}", here="/", events=events, told=told), status

    def run(self, request: Request) -> tuple[str, int]:
        """``/runs/{key}``: one run."""
        run = self._run(request.path_params["key"])
        if run is None:
            return _no_run(request.path_params["key"]), 404
        main = self.parts.of(("run", run.id), state_of(run), lambda: run_main(self.store, run))
        told = f"{run.state}, {size(run)}"
        return document(run_name(run), main.text, events=_events([run]), told=told, again_s=main.again_s), 200

    def report(self, request: Request) -> tuple[str, int]:
        """``/runs/{key}/report``: the run as a file of its own."""
        run = self._run(request.path_params["key"])
        if run is None:
            return _no_run(request.path_params["key"]), 404
        state = state_of(run)  # in the key as well: a file is of the run as it is
        made = self.parts.of(("report", run.id, *state), state, lambda: report_of(self.store, run))
        return made.text, 200

    def compare(self, request: Request) -> tuple[str, int]:
        """``/compare?a=&b=``: two runs side by side."""
        keys = [request.query_params.get(name, "") for name in ("a", "b")]
        if not all(keys):
            link = link_to("/", {"a": key_of(run_of(keys[0])) if keys[0] else ""})
            text = f'<p>Two runs are needed: choose them in <a href="{link}">the list of runs</a>.</p>'
            return document("Compare two runs", f"<h1>Compare two runs</h1>{text}"), 400
        one, other = (self._run(key) for key in keys)
        if one is None or other is None:
            return _no_run(keys[0] if one is None else keys[1]), 404
        main = self.parts.of(
            ("compare", one.id, other.id),
            (*state_of(one), *state_of(other)),
            lambda: compare_main(self.store, one, other),
        )
        told, events = f"A {one.state}, B {other.state}", _events([one, other])
        return document(
            "Two runs side by side", main.text, events=events, told=told, again_s=main.again_s
        ), 200

    def _run(self, key: str) -> Run | None:
        return self.store.run(run_of(key))


def _no_run(key: str) -> str:
    name = short(run_of(key), 100)
    return not_found(f"There is no run <bdi>{name}</bdi> in this store. It may have been pruned.")


def _fault(error: CounterpointError) -> str:
    return document("Not to be shown", f"<h1>This cannot be shown</h1><p>{inline(str(error), 1000)}</p>")


def _events(runs: list[Run]) -> str:
    since = "_".join("-".join(map(str, state_of(run))) for run in runs)
    return link_to("/events", [("since", since), *(("run", key_of(run.id)) for run in runs)])


def router(store: Store) -> APIRouter:
    """The routes of all pages."""
    import anyio
    from fastapi import APIRouter
    from fastapi.responses import HTMLResponse, PlainTextResponse
    from fastapi.responses import Response as Plain

    views, found = Views(store), APIRouter()
    quick, slow = anyio.CapacityLimiter(THREADS), anyio.CapacityLimiter(THREADS)

    def add(path: str, make: Callable[[Request], tuple[str, int]], *, download: bool = False) -> None:
        async def answer(request: Request) -> Response:
            try:
                text, status = await anyio.to_thread.run_sync(
                    make, request, limiter=quick if path == "/" else slow
                )
            except CounterpointError as error:  # of the store, or a run that went away meanwhile
                text, status = _fault(error), 503
            response = HTMLResponse(text.encode("utf-8", "replace"), status)
            if download and status == 200:
                name = key_of(run_of(request.path_params["key"]))[:40]
                response.headers["Content-Disposition"] = f'attachment; filename="counterpoint-{name}.html"'
            return response

        found.add_route(path, answer, methods=["GET"])

    add("/", views.runs)
    add("/runs/{key}", views.run)
    add("/runs/{key}/report", views.report, download=True)
    add("/compare", views.compare)

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return PlainTextResponse("not found\n", 404)
        return Plain(static_file(name), media_type=STATIC[name], headers={"Cache-Control": FOREVER})

    found.add_route("/static/{name}", static, methods=["GET"])
    return found

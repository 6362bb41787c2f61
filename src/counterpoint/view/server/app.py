"""The application of `counterpoint serve`: the guard around the pages, their events and the receiver."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

from counterpoint.errors import CounterpointError
from counterpoint.store import Store
from counterpoint.view.server import events, pages
from counterpoint.view.server.limits import Limits
from counterpoint.view.server.otlp import Receiver
from counterpoint.view.server.security import Guard

__all__ = ["create_app"]


def create_app(
    store: Store,
    *,
    token: str | None = None,
    hosts: Collection[str] = (),
    limits: Limits | None = None,
    keep_secrets: bool = False,
) -> FastAPI:
    """The ASGI application over a store.

    Parameters
    ----------
    token
        What every request but those to `security.OPEN` has to show; None: nothing, for loopback only.
    hosts
        Names and addresses, besides those of loopback, that a Host header may have.
    keep_secrets
        Write spans as they come, with values that look like keys.

    ``app.state.stopping`` is to be set where the server stops, so that open streams of events end.
    """
    receiver = Receiver(store, limits or Limits(), keep_secrets=keep_secrets)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        receiver.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.stopping = threading.Event()
    app.add_middleware(Guard, token=token, hosts=hosts)
    app.router.routes.append(Route("/v1/{signal:path}", receiver))
    app.add_route("/healthz", _health(store), methods=["GET"])
    app.include_router(events.router(store))
    app.include_router(pages.router(store))
    app.add_exception_handler(404, _not_found)
    app.add_exception_handler(405, _not_allowed)
    return app


def _health(store: Store) -> Callable[[Request], Response]:
    def health(_: Request) -> Response:
        try:
            store.check()
        except CounterpointError as error:
            return PlainTextResponse(f"{error}\n", 503)
        return PlainTextResponse("ok\n")

    return health


async def _not_allowed(request: Request, error: Exception) -> Response:
    headers = getattr(error, "headers", None)
    told = f"{request.method} is not taken here: this can only be read, with GET\n"
    return PlainTextResponse(told, 405, headers)


async def _not_found(request: Request, _: Exception) -> Response:
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(pages.not_found("There is no such page."), 404)
    return PlainTextResponse("not found\n", 404)

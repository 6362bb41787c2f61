"""Server-sent events: a page that is open is told that it is out of date, and fetches itself anew.

Conventions
-----------
* A stream is asked for by a page, with the runs that it shows (``run``, none for the list) and the `mark` it
  was made at (``since``), so that nothing is missed between the page and its stream.
* An event ``change`` has the new mark as its id, which browsers send again when they come back.
* A comment every few seconds tells both ends that the other is there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from counterpoint.errors import CounterpointError
from counterpoint.view.server.layout import run_of
from counterpoint.view.server.parts import mark

if TYPE_CHECKING:
    from fastapi import APIRouter, Request, Response

    from counterpoint.store import Store

__all__ = ["MOST_STREAMS", "router"]

MOST_STREAMS = 64
MOST_RUNS = 2
POLL_S, HEARTBEAT_S, RETRY_MS = 0.4, 15.0, 2000

_LOG = logging.getLogger("counterpoint.serve")


class Streams:
    """The open streams: how many there are, and whether the server stops."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.open = 0

    async def tell(self, request: Request, run_ids: Sequence[str], since: str) -> AsyncIterator[str]:
        """The lines of one stream, until the reader is gone or the server stops."""
        import anyio

        self.open += 1
        try:
            yield f"retry: {RETRY_MS}\n\n"
            version, quiet = -1, 0.0
            while not await _over(request):
                now = await anyio.to_thread.run_sync(self.store.version)
                if now != version:
                    version = now
                    found = await anyio.to_thread.run_sync(mark, self.store, run_ids)
                    if found != since:
                        since, quiet = found, 0.0
                        yield f"id: {found}\nevent: change\ndata: {json.dumps({'mark': found})}\n\n"
                if quiet >= HEARTBEAT_S:
                    quiet = 0.0
                    yield ": still here\n\n"
                await anyio.sleep(POLL_S)
                quiet += POLL_S
        except CounterpointError as error:  # the store cannot be read: the browser asks again after a while
            _LOG.warning("a stream of events ends: %s", error)
        finally:
            self.open -= 1


async def _over(request: Request) -> bool:
    """Whether nobody reads any more, or the server was asked to stop: an open stream must not hold it up."""
    stopping = getattr(request.app.state, "stopping", None)
    return (stopping is not None and stopping.is_set()) or await request.is_disconnected()


def router(store: Store) -> APIRouter:
    """``/events``. ``app.state.stopping``, a `threading.Event`, ends the streams where it is set."""
    from fastapi import APIRouter
    from fastapi.responses import PlainTextResponse, StreamingResponse
    from fastapi.responses import Response as Plain

    streams = Streams(store)
    found = APIRouter()

    async def events(request: Request) -> Response:
        if request.method == "HEAD":
            return Plain(media_type="text/event-stream")
        if streams.open >= MOST_STREAMS:
            return PlainTextResponse(
                f"{MOST_STREAMS} pages are kept up to date already: close some, or reload this one by hand\n",
                status_code=503,
                headers={"Retry-After": "30"},
            )
        runs = [run_of(key) for key in request.query_params.getlist("run")[:MOST_RUNS]]
        since = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return StreamingResponse(
            streams.tell(request, runs, since),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    found.add_route("/events", events, methods=["GET"])
    return found

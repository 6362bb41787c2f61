"""Adapters: one trace format a file. `read` finds the right one and streams traces."""

from __future__ import annotations

TABLE: dict[str, str] = {
    "native": "counterpoint.adapters.native",
    "who_and_when": "counterpoint.adapters.who_and_when",
    "autogen": "counterpoint.adapters.autogen",
    "chat": "counterpoint.adapters.chat",
}

"""Models: what turns texts into vectors, and what answers a chat. Importing this loads none of them.

Chat models stand in `TABLE` below, embedders in the table of `counterpoint.models.embed`.
"""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE: dict[str, str] = {
    "chat_http": "counterpoint.models.chat_http:ChatHTTP",
    "chat_local": "counterpoint.models.chat_local:ChatLocal",
    "simulated": "counterpoint.models.simulated:Simulated",
    "scripted": "counterpoint.models.scripted:Scripted",
}

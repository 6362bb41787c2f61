"""The scripted model behind HTTP, as a client sees it: plain urllib and sockets, no fakes."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from counterpoint.errors import ModelError
from counterpoint.models.scripted import Fault, ScriptedServer, ToolCall, Turn, scripted_server

WAIT_S = 120.0
"""Machines may be slow; nothing here takes this long."""
QUESTION = {"messages": [{"role": "user", "content": "What is 3 + 4?"}]}


def post(
    server: ScriptedServer, body: Any = QUESTION, path: str = "/chat/completions", **headers: str
) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with urlopen(Request(server.base_url + path, data, headers), timeout=WAIT_S) as response:
        return json.load(response)


def events(server: ScriptedServer, body: dict[str, Any], path: str = "/chat/completions") -> list[Any]:
    """The decoded data of a stream's events; the closing mark as it is."""
    data = json.dumps({**body, "stream": True}).encode()
    with urlopen(Request(server.base_url + path, data), timeout=WAIT_S) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        lines = [line[6:].strip() for line in response if line.startswith(b"data: ")]
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


def refused(server: ScriptedServer, body: Any = QUESTION, path: str = "/chat/completions") -> HTTPError:
    with pytest.raises(HTTPError) as raised:
        post(server, body, path)
    raised.value.said = json.load(raised.value)["error"]
    raised.value.close()
    return raised.value


@pytest.fixture
def seven() -> Iterator[ScriptedServer]:
    with scripted_server("7") as server:
        yield server


def test_an_answer_is_a_chat_completion_with_usage(seven):
    answer = post(seven, {**QUESTION, "model": "m"})
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "m"
    assert answer["choices"][0]["message"]["content"] == "7"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"] == {"prompt_tokens": 6, "completion_tokens": 1, "total_tokens": 7}


def test_the_same_script_gives_the_same_bytes():
    bytes_of = []
    for _ in range(2):
        with scripted_server("7") as server:
            bytes_of.append(json.dumps(post(server)))
    assert bytes_of[0] == bytes_of[1]


def test_a_stream_says_the_same_in_pieces():
    text = " The answer\nis  7. "
    with scripted_server([text, Turn(refusal="I will not.")]) as server:
        said, refusal = (
            events(server, {**QUESTION, "stream_options": {"include_usage": True}}) for _ in range(2)
        )
    assert said[-1] == "[DONE]"
    assert said[-2]["usage"]["completion_tokens"] == 5
    assert said[-3]["choices"][0]["finish_reason"] == "stop"
    deltas = [chunk["choices"][0]["delta"] for chunk in said[:-2]]
    assert "".join(delta.get("content", "") for delta in deltas) == text
    assert len(deltas) > 4
    deltas = [chunk["choices"][0]["delta"] for chunk in refusal[:-2]]
    assert "".join(delta.get("refusal", "") for delta in deltas) == "I will not."


def test_a_stream_has_no_usage_unless_asked_for(seven):
    assert not any("usage" in chunk for chunk in events(seven, QUESTION)[:-1])


def test_tool_calls_have_ids_and_json_arguments():
    script = [[ToolCall("add", {"a": 3}), ToolCall("broken", "{", id="mine")]]
    with scripted_server(script) as server:
        choice = post(server)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    add, broken = choice["message"]["tool_calls"]
    assert add == {"id": "call_1_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 3}'}}
    assert (broken["id"], broken["function"]["arguments"]) == ("mine", "{")


def test_streamed_tool_calls_add_up():
    with scripted_server(Turn("Let me see.", calls=(ToolCall("add", {"a": 3, "b": 4}),))) as server:
        chunks = events(server, QUESTION)
    calls = [call for chunk in chunks[:-1] for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert calls[0]["function"]["name"] == "add"
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"a": 3, "b": 4}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_function_answers_what_it_was_shown():
    with scripted_server(lambda messages: messages[-1]["content"][::-1]) as server:
        assert (
            post(server, {"messages": [{"role": "user", "content": "abc"}]})["choices"][0]["message"][
                "content"
            ]
            == "cba"
        )


def test_responses_have_text_and_usage():
    with scripted_server(lambda messages: f"{messages[0]['role']}: {messages[1]['content']}") as server:
        answer = post(server, {"instructions": "Be brief.", "input": "Hi!"}, "/responses")
    assert answer["object"] == "response"
    assert answer["output"][0]["content"][0]["text"] == "system: Hi!"
    assert (answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]) == (5, 4)


def test_responses_show_earlier_calls_as_chat_messages():
    seen = []
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "3 + 4?"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "7"},
    ]
    with scripted_server(lambda messages: seen.extend(messages) or ToolCall("check", {"n": 7})) as server:
        answer = post(server, {"input": items}, "/responses")
    assert [message["role"] for message in seen] == ["user", "assistant", "tool"]
    assert seen[0]["content"] == "3 + 4?"
    assert seen[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": "{}"}
    assert (seen[2]["tool_call_id"], seen[2]["content"]) == ("c1", "7")
    call = answer["output"][0]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "check", '{"n": 7}')


@pytest.mark.parametrize(
    ("turn", "delta"),
    [
        (Turn("Two words"), "response.output_text.delta"),
        (Turn(refusal="Not this"), "response.refusal.delta"),
        (Turn(calls=(ToolCall("add", {"a": 3}),)), "response.function_call_arguments.delta"),
    ],
)
def test_streamed_responses_add_up_to_the_whole_one(turn, delta):
    with scripted_server(turn) as server:
        said = events(server, {"input": "Hi"}, "/responses")
    assert [event["sequence_number"] for event in said] == list(range(len(said)))
    assert (said[0]["type"], said[-1]["type"]) == ("response.created", "response.completed")
    pieces = "".join(event["delta"] for event in said if event["type"] == delta)
    assert pieces == (turn.text or turn.refusal or '{"a": 3}')
    item = next(event for event in said if event["type"] == "response.output_item.done")["item"]
    assert said[-1]["response"]["output"] == [item]


def test_embeddings_come_as_numbers_or_packed(seven):
    numbers = post(seven, {"input": ["a", "b"]}, "/embeddings")["data"]
    packed = post(seven, {"input": "b", "encoding_format": "base64"}, "/embeddings")["data"]
    assert [row["index"] for row in numbers] == [0, 1]
    unpacked = struct.unpack("<384f", base64.b64decode(packed[0]["embedding"]))
    assert unpacked == pytest.approx(numbers[1]["embedding"], abs=1e-6)


def test_models_are_listed():
    with scripted_server("7", model="tiny") as server:
        with urlopen(server.base_url + "/models") as response:
            assert [model["id"] for model in json.load(response)["data"]] == ["tiny"]
        with urlopen(server.base_url + "/models/any") as response:
            assert json.load(response)["id"] == "any"


@pytest.mark.parametrize(
    ("body", "path", "status", "message"),
    [
        (b"{", "/chat/completions", 400, "no JSON object"),
        (b"[]", "/chat/completions", 400, "no JSON object"),
        ({}, "/chat/completions", 400, '"messages"'),
        ({"messages": ["hi"]}, "/chat/completions", 400, '"messages"'),
        ({**QUESTION, "n": 2}, "/chat/completions", 400, "ask once for each choice"),
        ({}, "/responses", 400, '"input"'),
        ({"input": "x", "previous_response_id": "r"}, "/responses", 400, "send the whole input"),
        ({"input": [1]}, "/embeddings", 400, '"input"'),
        (QUESTION, "/elsewhere", 404, "nothing is served at /v1/elsewhere"),
    ],
)
def test_a_bad_request_is_told_what_is_missing(seven, body, path, status, message):
    error = refused(seven, body, path)
    assert error.code == status
    assert message in error.said["message"]


def test_the_end_of_the_script_is_no_error_that_clients_retry():
    with scripted_server(["7"]) as server:
        post(server)
        error = refused(server)
        assert error.code == 400
        assert "at its end" in error.said["message"]
        assert len(server.errors) == 1


def test_a_reply_function_that_fails_is_told_to_client_and_owner():
    with scripted_server(lambda messages: 1 / 0) as server:
        assert refused(server).said["message"] == "ZeroDivisionError: division by zero"
        assert server.errors == ["ZeroDivisionError: division by zero"]


def test_the_log_shows_what_was_sent_but_no_key(seven):
    post(seven, {**QUESTION, "temperature": 0, "seed": 3}, Authorization="Bearer sk-secret", Trace="t1")
    entry = seven.requests[0]
    assert (entry.body["temperature"], entry.body["seed"]) == (0, 3)
    assert (entry.path, entry.status, entry.complete) == ("/v1/chat/completions", 200, True)
    assert entry.headers["trace"] == "t1"
    assert "sk-secret" not in str(entry)
    assert entry.started_at <= entry.ended_at


def test_a_rate_limit_says_when_to_come_back():
    with scripted_server([Fault.rate_limited(2), Fault.server_error(503), "7"]) as server:
        limited, broken = refused(server), refused(server)
        assert (limited.code, limited.headers["Retry-After"]) == (429, "2")
        assert (broken.code, broken.headers["Retry-After"]) == (503, None)
        assert post(server)["choices"][0]["message"]["content"] == "7"
        assert [entry.status for entry in server.requests] == [429, 503, 200]
        assert server.tokens_out == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("after", [1, 40, 10**9])
def test_a_dropped_connection_ends_inside_the_body(stream, after):
    with scripted_server(Fault.dropped(after, "This is 7.")) as server:
        data = json.dumps({**QUESTION, "stream": stream}).encode()
        response = urlopen(Request(server.base_url + "/chat/completions", data), timeout=WAIT_S)
        with response, pytest.raises(http.client.IncompleteRead):
            response.read()
        assert (server.tokens_out, server.requests[0].complete) == (0, False)


def test_a_connection_can_be_dropped_before_the_first_header():
    with scripted_server(Fault.dropped(0)) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            post(server)
        assert server.requests[0].status is None


def test_garbage_is_no_json():
    with scripted_server(Fault.garbage()) as server, pytest.raises(json.JSONDecodeError):
        post(server)


def test_choices_can_be_empty():
    with scripted_server(Fault.empty_choices()) as server:
        assert post(server)["choices"] == []
        assert events(server, QUESTION)[0]["choices"] == []


def test_usage_can_be_wrong():
    with scripted_server(Turn("7", tokens_in=-5, tokens_out=10**9)) as server:
        assert post(server)["usage"]["prompt_tokens"] == -5
        assert server.tokens_out == 10**9


def test_who_left_during_a_stall_is_not_counted():
    arrived, left = threading.Event(), threading.Event()

    def stall(messages: Any) -> Fault | str:
        if arrived.is_set():
            return "7"
        arrived.set()
        assert left.wait(WAIT_S)  # the client leaves before the stall is over, however long that takes
        return Fault.stall(0.1)

    with scripted_server(stall) as server:
        port = urlsplit(server.base_url).port
        with socket.create_connection(("127.0.0.1", port)) as impatient:
            body = json.dumps(QUESTION).encode()
            impatient.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body))
            impatient.sendall(body)
            assert arrived.wait(WAIT_S)
        left.set()
        end = time.monotonic() + WAIT_S
        while server.requests[0].ended_at is None and time.monotonic() < end:
            time.sleep(0.01)
        post(server)
        assert [entry.complete for entry in server.requests] == [False, True]
        assert server.tokens_out == 1


def test_closing_ends_a_stall():
    arrived = threading.Event()

    def stall(messages: Any) -> Fault:
        arrived.set()
        return Fault.stall(60)

    with scripted_server(stall) as server, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(post, server)
        assert arrived.wait(WAIT_S)
        server.close()
        with pytest.raises(http.client.RemoteDisconnected):
            waiting.result(WAIT_S)


def test_a_connection_serves_many_requests(seven):
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(seven.base_url).port)
    took = []
    for _ in range(40):
        started = time.monotonic()
        connection.request("POST", "/v1/chat/completions", json.dumps(QUESTION))
        assert json.load(connection.getresponse())["usage"]["completion_tokens"] == 1
        took.append(time.monotonic() - started)
    connection.close()
    assert min(took[1:]) < 0.04, "40 ms for each but the first would be Nagle's algorithm at work"
    assert seven.tokens_out == 40


def test_three_hundred_callers_at_once_are_all_answered():
    together = threading.Barrier(300, timeout=WAIT_S)

    def answer(messages: Any) -> str:
        together.wait()  # nobody is answered before all of them have asked
        return messages[-1]["content"]

    with scripted_server(answer) as server:

        def ask(number: int) -> str:
            body = {"messages": [{"role": "user", "content": f"n{number}"}]}
            return post(server, body)["choices"][0]["message"]["content"]

        with ThreadPoolExecutor(300) as pool:
            answers = list(pool.map(ask, range(300)))
        assert answers == [f"n{number}" for number in range(300)]
        assert (server.tokens_in, server.tokens_out) == (300, 300)
        assert server.peak == 300


def test_one_caller_is_never_two_at_once(seven):
    for _ in range(50):
        post(seven)
    assert seven.peak == 1


def test_a_taken_port_is_named(seven):
    port = urlsplit(seven.base_url).port
    with pytest.raises(ModelError, match=f"cannot listen on port {port}"):
        scripted_server("7", port=port)

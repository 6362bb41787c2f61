"""One run in every wrapping that its spans come in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import counterpoint as cp
from counterpoint.trace import Trace

GOLDEN = Path(__file__).parents[1] / "golden"
DRAFT = "Built in 1871, the lighthouse is kept by two sisters who climb its stairs each night."


def golden(path: str) -> Any:
    return json.loads((GOLDEN / path).read_text("utf-8"))


def read(tmp_path: Path, content: Any) -> list[Trace]:
    """The traces of a document, or of lines where ``content`` is text."""
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "file").write_text(text, "utf-8")
    return list(cp.read(tmp_path / "file", on_error="raise"))


def shape(trace: Trace) -> list[tuple[str, str, int]]:
    return [(step.agent, step.text, len(step.heard)) for step in trace.steps]


# --- OTLP -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda document: [document],
        lambda document: {"batches": document["resourceSpans"]},
        lambda document: {"trace": document},
        lambda document: {
            "resourceSpans": [{"instrumentationLibrarySpans": document["resourceSpans"][0]["scopeSpans"]}]
        },
    ],
    ids=["list", "Tempo, version 1", "Tempo, version 2", "before scopes were called scopes"],
)
def test_otlp_comes_in_other_documents_too(tmp_path: Path, wrap: Callable[[Any], Any]) -> None:
    document = golden("otlp/delegation.genai_messages.json")
    (plain,), (wrapped,) = read(tmp_path, document), read(tmp_path, wrap(document))
    assert shape(wrapped) == shape(plain)


# --- the OpenTelemetry SDK ---------------------------------------------------------------------------


def test_printed_spans_come_indented_in_lines_and_in_a_list(tmp_path: Path) -> None:
    printed = (GOLDEN / "otel_sdk" / "graph.json").read_text("utf-8")
    spans = json.loads("[" + printed.replace("\n}\n{", "\n},\n{") + "]")
    lines = "\n".join(json.dumps(span) for span in spans)
    assert [shape(trace) for trace in read(tmp_path, lines)] == [
        shape(trace) for trace in read(tmp_path, printed)
    ]
    assert [shape(trace) for trace in read(tmp_path, spans)] == [
        shape(trace) for trace in read(tmp_path, printed)
    ]


# --- Phoenix ------------------------------------------------------------------------------------------


def test_spans_of_phoenix_come_as_an_answer_a_list_and_lines(tmp_path: Path) -> None:
    answer = golden("phoenix/spans.json")
    lines = "\n".join(json.dumps(span) for span in answer["data"])
    shapes = [[shape(trace) for trace in read(tmp_path, form)] for form in (answer, answer["data"], lines)]
    assert shapes[0] == shapes[1] == shapes[2]


# --- LangSmith ----------------------------------------------------------------------------------------


def run(id: str, parent: str | None, kind: str, at: int, **more: Any) -> dict[str, Any]:
    moment = f"2026-01-01T00:00:{at:02d}Z"
    return {
        "id": id,
        "trace_id": "r",
        "parent_run_id": parent,
        "run_type": kind,
        "start_time": moment,
        **more,
    }


def test_the_two_halves_of_a_run_in_batches_are_merged(tmp_path: Path) -> None:
    metadata = {"metadata": {"langgraph_node": "writer"}}
    begun = [
        run("r", None, "chain", 0, name="team", inputs={"messages": [{"role": "user", "content": "Write."}]}),
        run("n", "r", "chain", 1, name="writer", extra=metadata),
        run("m", "n", "llm", 2, name="model", inputs={"messages": [{"role": "user", "content": "Write."}]}),
    ]
    reply = {"generations": [[{"text": DRAFT, "message": {"type": "ai", "content": DRAFT}}]]}
    ended = [{"id": "m", "trace_id": "r", "end_time": "2026-01-01T00:00:03Z", "outputs": reply}]
    (trace,) = read(tmp_path, json.dumps({"post": begun}) + "\n" + json.dumps({"patch": ended}))
    assert shape(trace) == [("writer", DRAFT, 0)]
    assert trace.task == "Write."


def test_tokens_of_a_provider_without_usage_metadata_are_found(tmp_path: Path) -> None:
    outputs = {"generations": [[{"text": "Hi."}]], "llm_output": {"token_usage": {"prompt_tokens": 5}}}
    (trace,) = read(
        tmp_path, run("r", None, "llm", 0, name="model", inputs={"prompts": ["Hello?"]}, outputs=outputs)
    )
    (step,) = trace.steps
    assert (step.text, step.prompt, step.usage and step.usage.tokens_in) == ("Hi.", "Hello?", 5)


# --- MLflow -------------------------------------------------------------------------------------------


def test_traces_of_mlflow_2_differ_in_names_only(tmp_path: Path) -> None:
    new = golden("mlflow/debate.json")
    old_spans = [
        {
            "name": span["name"],
            "context": {"span_id": f"0x{number + 1:016x}", "trace_id": "0x5b"},
            "parent_id": None if not number else f"0x{(1 if number % 2 else number):016x}",
            "start_time": span["start_time_unix_nano"],
            "end_time": span["end_time_unix_nano"],
            "status_code": "OK",
            "attributes": span["attributes"],
        }
        for number, span in enumerate(new["data"]["spans"])
    ]
    old = {"info": {"request_id": "q1", "timestamp_ms": 1}, "data": {"spans": old_spans, "request": "{}"}}
    assert shape(read(tmp_path, old)[0]) == shape(read(tmp_path, new)[0])


# --- Langfuse -----------------------------------------------------------------------------------------


def test_observations_come_with_their_trace_in_an_answer_and_exported_in_snake_case(tmp_path: Path) -> None:
    whole = golden("langfuse/trace.json")
    answer = {"data": whole["observations"], "meta": {"page": 1}}
    names = {
        "traceId": "trace_id",
        "parentObservationId": "parent_observation_id",
        "startTime": "start_time",
        "endTime": "end_time",
        "usageDetails": "usage_details",
    }
    exported = "\n".join(
        json.dumps({names.get(key, key): value for key, value in each.items()})
        for each in whole["observations"]
    )
    shapes = [shape(read(tmp_path, form)[0]) for form in (whole, answer, exported)]
    assert shapes[0] == shapes[1] == shapes[2]
    assert read(tmp_path, whole)[0].labels["session.id"] == "s-3"


def test_langgraph_is_known_in_flat_metadata_of_phoenix(tmp_path: Path) -> None:
    flat = {"metadata.langgraph_node": "writer", "metadata.langgraph_step": "1", "output.value": "A draft."}
    item = {
        "name": "call",
        "span_kind": "CHAIN",
        "context": {"span_id": "01" * 8, "trace_id": "02" * 16},
        "start_time": "2026-01-01T00:00:00Z",
        "end_time": "2026-01-01T00:00:01Z",
        "attributes": flat,
    }
    (trace,) = read(tmp_path, [item])
    assert (trace.system, [step.agent for step in trace.steps]) == ("langgraph", ["writer"])

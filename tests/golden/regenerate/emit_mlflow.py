"""MLflow: three traced functions, each an agent that asks the model through OpenAI's client.

Written: the trace, as MLflow keeps it.
"""

import json
import sys
from pathlib import Path

from story import CRITIC, DRAFT, PLAN, PLANNER, TASK, VERDICT, WRITER

REQUIREMENTS = (
    "mlflow-skinny==3.17.2",
    "openai==3.57.0",
    "pandas==3.1.1",
    "sqlalchemy==2.1.9",
    "alembic==1.20.1",
)
LINES = {"planner": [PLAN], "writer": [DRAFT], "critic": [VERDICT]}


def main(out: Path) -> None:
    import mlflow
    import openai

    mlflow.set_tracking_uri(f"sqlite:///{Path.cwd()}/mlflow.db")
    mlflow.openai.autolog()
    client = openai.OpenAI()

    def speak(name: str, prompt: str, *texts: str) -> str:
        with mlflow.start_span(name, span_type="AGENT") as span:
            span.set_inputs({"texts": texts})
            messages = [
                {"role": "system", "content": prompt},
                *({"role": "user", "content": text} for text in texts),
            ]
            answer = client.chat.completions.create(model="scripted", messages=messages)
            span.set_outputs(answer.choices[0].message.content)
            return str(answer.choices[0].message.content)

    with mlflow.start_span("team", span_type="CHAIN") as span:
        span.set_inputs({"task": TASK})
        plan = speak("planner", PLANNER, TASK)
        draft = speak("writer", WRITER, TASK, plan)
        span.set_outputs(speak("critic", CRITIC, draft))
    trace = mlflow.get_trace(mlflow.get_last_active_trace_id(), flush=True)
    (out / "mlflow").mkdir()
    # MLflow's tags and metadata come in any order.
    text = json.dumps(trace.to_dict(), ensure_ascii=False, indent=1, sort_keys=True)
    (out / "mlflow" / "mlflow_chain.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

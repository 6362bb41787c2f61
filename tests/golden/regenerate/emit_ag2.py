"""AG2: a planner opens a chat with a writer, who looks up the year, and closes it.

Written: the ChatResult, and the runtime log.
"""

import json
import sys
from pathlib import Path
from typing import Any

from story import DRAFT, PLAN, VERDICT, WRITER, YEAR, Say

REQUIREMENTS = ("ag2[openai]==0.14.0",)
LINES = {
    "writer": [Say("", "look_up", {"subject": "lighthouse"}), DRAFT],
    "planner": [VERDICT],
}


def main(out: Path) -> None:
    import autogen
    from autogen import ConversableAgent, register_function

    configuration: Any = {"model": "scripted", "cache_seed": None, "price": [0, 0]}

    def ends(message: Any) -> bool:
        return "APPROVE" in (message.get("content") or "")

    options: Any = {"llm_config": configuration, "human_input_mode": "NEVER", "is_termination_msg": ends}
    prompt = "You are the planner. Plan, then object, or say APPROVE."
    planner = ConversableAgent("planner", system_message=prompt, **options)
    writer = ConversableAgent("writer", system_message=WRITER, **options)

    def look_up(subject: str) -> str:
        return YEAR

    register_function(look_up, caller=writer, executor=planner, description="What the parish register says.")
    (out / "ag2").mkdir()
    (out / "ag2_runtime_log").mkdir()
    log = out / "ag2_runtime_log" / "ag2_pair.jsonl"
    autogen.runtime_logging.start(logger_type="file", config={"filename": str(log)})
    result = planner.initiate_chat(writer, message=PLAN)
    autogen.runtime_logging.stop()
    text = json.dumps(vars(result), ensure_ascii=False, indent=1, default=str)
    (out / "ag2" / "ag2_pair.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Counterpoint evaluates how a team of LLM agents works together, not only whether the answer was right."""

"""How long a user waits before anything happens: importing the package, and the first page of help.

    python perf/start.py [--repeats 20]

Each is a new Python process, interpreter start included; the sides take turns and the median counts. Peers:
the bare interpreter, and networkx, the lightest of our dependencies that people import for themselves.
Exits with 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

SIDES: dict[str, tuple[list[str], float | None]] = {
    "python": (["-c", "pass"], None),
    "import networkx": (["-c", "import networkx"], None),
    "import counterpoint": (["-c", "import counterpoint"], 0.15),
    "counterpoint --help": (["-m", "counterpoint", "--help"], 0.4),
}
"""Name to the interpreter's arguments and the aim in seconds."""


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description="Start-up times.")
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    times: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(repeats):
        for name, (arguments, _aim) in SIDES.items():
            times[name].append(seconds(arguments))
    missed = 0
    for name, (_arguments, aim) in SIDES.items():
        median = statistics.median(times[name])
        missed += aim is not None and median > aim
        print(f"{name:20} {median * 1000:7.1f} ms" + (f"   aim {aim * 1000:.0f} ms" if aim else ""))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

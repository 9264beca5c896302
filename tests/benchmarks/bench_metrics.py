# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What it costs to read the metrics of 2, 16 and 64 copies and to sum them: the growth per copy must be flat.

Every copy is a stand-in engine of its own, read twice over HTTP with requests in between. A real engine's page is longer, so one of
the length that is given is parsed too. Each figure is the best of several rounds, in CPU time of the reader but for the HTTP column.
The last line is one JSON object; the exit status is 1 when a copy costs more than twice as much among 64 as among 2.

    bench_metrics.py [--copies 2,16,64] [--page-kb 200]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if "ansible_collections" not in sys.modules:
    sys.path.insert(0, str(HERE.parents[1] / ".collections"))

from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch, reading, span, total  # noqa: E402
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server  # noqa: E402

SERVE = ["serve", "/model", "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", "{port}"]
ENV = {"STANDIN_LOAD_SECONDS": "0.01", "STANDIN_TOKEN_SECONDS": "0"}
ROUNDS = 7
MOST_GROWTH = 2.0


def best(work: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    """The shortest of some rounds in seconds, and what the last one made."""
    times, made = [], None
    for _round in range(ROUNDS):
        begun = clock()
        made = work()
        times.append(clock() - begun)
    return min(times), made


def look(server: Server) -> dict[str, Any]:
    found = fetch.look("127.0.0.1", server.port, 10, "X-Vllm-Copy")
    assert found["reading"], found["reason"]
    return dict(found["reading"])


def long_page(server: Server, kilobytes: int) -> str:
    """The copy's page with as many series of HTTP handlers as make it that long."""
    page = server.get("/metrics").body.decode()
    row = 'http_request_duration_seconds_bucket{{handler="/v1/completions",le="{}",method="POST"}} 0.0\n'
    count = max(0, (kilobytes * 1024 - len(page)) // (len(row) + 4))
    return page + "".join(row.format(number) for number in range(count))


def measure(servers: list[Server], kilobytes: int) -> dict[str, float]:
    """The costs of so many copies, per copy in milliseconds."""
    count = len(servers)
    first = [look(server) for server in servers]
    for server in servers:
        assert server.post("/v1/completions", {"model": "tiny", "prompt": "one two", "max_tokens": 10}).status == 200
    http, second = best(lambda: [look(server) for server in servers], time.perf_counter)
    pages = [long_page(server, kilobytes) for server in servers]
    parsing, parsed = best(lambda: [reading.read(page) for page in pages])
    assert all(found["counters"]["generation_tokens"] == 10 for found in parsed)

    def summed() -> dict[str, Any]:
        pairs = enumerate(zip(first, second, strict=True))
        return total.total({str(n): {"now": after, "span": span.span(before, after)} for n, (before, after) in pairs})

    adding, whole = best(summed)
    assert whole["read"] == count
    assert whole["span"]["counters"]["generation_tokens"] == 10 * count
    per_copy = {"http_ms": http, "parse_ms": parsing, "sum_ms": adding}
    return {"copies": count, **{key: round(value * 1000 / count, 4) for key, value in per_copy.items()}}


def main() -> int:
    """Prints the table; 1 if the growth is not flat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--copies", default="2,16,64", help="how many, several numbers with commas")
    parser.add_argument("--page-kb", type=int, default=200, help="length of the page that is parsed, in KiB")
    options = parser.parse_args()
    sizes = sorted(int(number) for number in options.copies.split(","))
    print(
        f"per copy, in ms: {'HTTP, real time':>20} {f'parse {options.page_kb} KiB':>16} {'difference and sum':>20} {'all of it':>10}"
    )
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            logs = [Path(folder) / str(number) for number in range(size)]
            servers = [stack.enter_context(Server([*STAND_IN, *SERVE], log, ENV)) for log in logs]
            for server in servers:
                server.wait_ready(60)
            row = measure(servers, options.page_kb)
        row["cpu_ms"] = round(row["parse_ms"] + row["sum_ms"], 4)
        rows.append(row)
        print(
            f"{size:4} copies      {row['http_ms']:20.3f} {row['parse_ms']:16.3f} {row['sum_ms']:20.3f} {row['cpu_ms'] * size:10.1f}"
        )
    growth = rows[-1]["cpu_ms"] / rows[0]["cpu_ms"]
    print(
        f"\na copy among {sizes[-1]} costs {growth:.2f} times what it costs among {sizes[0]} (flat: at most {MOST_GROWTH:g})"
    )
    print(json.dumps({"bench": "metrics", "page_kib": options.page_kb, "rows": rows, "growth": round(growth, 3)}))
    return int(growth > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long clients go without an answer: `outage.py URL COMMAND...` runs the command under load; prints one JSON object.

A request of its own every 30 ms, whatever became of the earlier ones. The time without an answer is counted from when the latest request
was sent that had an answer, to the next answer: so it is rather too long than too short, also where this program gets its turns late.
"""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import threading
import time
import urllib.request

EVERY = 0.03
PATIENCE = 3.0
# Answers have come again for this long: it is over.
CALM = 1.5
LIMIT = 30.0


class Load:
    """Requests that do not wait for each other, and when each was answered."""

    def __init__(self, url: str) -> None:
        self.url = url
        # When each answer came, and when its request had been sent.
        self.answered: list[tuple[float, float]] = []
        self.failures: collections.Counter[str] = collections.Counter()
        self.running = threading.Event()
        self.senders: list[threading.Thread] = []

    def ask(self) -> None:
        """One request."""
        sent = time.monotonic()
        try:
            with urllib.request.urlopen(self.url, timeout=PATIENCE) as response:
                response.read()
            self.answered.append((time.monotonic(), sent))
        except OSError as error:
            self.failures[str(getattr(error, "reason", error))] += 1

    def send(self) -> None:
        """Requests at an even pace, until told to stop."""
        due = time.monotonic()
        while self.running.is_set():
            self.senders.append(threading.Thread(target=self.ask))
            self.senders[-1].start()
            due += EVERY
            time.sleep(max(0.0, due - time.monotonic()))  # the load

    def answers_for(self, seconds: float, since: float) -> bool:
        """Have answers come for this long without a gap as long as half of it?"""
        times = [since, *(at for at, _sent in sorted(self.answered) if at > since)]
        gaps = [at for before, at in zip(times, times[1:], strict=False) if at - before > seconds / 2]
        return times[-1] - (gaps[-1] if gaps else since) >= seconds and time.monotonic() - times[-1] < seconds / 2


def wait_calm(load: Load, since: float, seconds: float) -> bool:
    """Wait until answers come again; False when they do not."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if load.answers_for(seconds, since):
            return True
        time.sleep(0.05)
    return False


def without_answer(answered: list[tuple[float, float]], since: float) -> float:
    """The longest time without an answer that ended later than this."""
    longest, latest = 0.0, min((sent for _at, sent in answered), default=since)
    for at, sent in sorted(answered):
        if at > since:
            longest = max(longest, at - latest)
        latest = max(latest, sent)
    return longest


def main(url: str, command: list[str]) -> dict[str, object]:
    """Load, the command, load, and the figures."""
    load = Load(url)
    load.running.set()
    sender = threading.Thread(target=load.send)
    sender.start()
    try:
        before = wait_calm(load, time.monotonic(), 0.5)
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        # What was noticed only after the command had ended counts as well, so the calm begins no earlier.
        after = wait_calm(load, time.monotonic(), CALM)
    finally:
        load.running.clear()
        sender.join()
    for thread in load.senders:
        thread.join()
    return {
        "answered_before": before,
        "answered_after": after,
        "seconds_without_answer": round(without_answer(load.answered, began), 2),
        "slowest_answer": round(max((at - sent for at, sent in load.answered), default=0), 2),
        "requests": len(load.senders),
        "answered": len(load.answered),
        "failures": load.failures,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2:])))

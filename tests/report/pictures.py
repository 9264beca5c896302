# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes pictures of sample reports in a real browser: light and dark, desktop and telephone, and paper.

Usage: pictures.py FOLDER. Needs Chromium (`chromium` on the PATH). Finds what overflows its page at a telephone's width. A table
for people, then one JSON object; exit status 1 when something overflows. FOLDER gets the reports, `*.png`, and `*.pdf` as printed.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".collections"))

from ansible_collections.gb10.vllm.plugins.action.rollout_report import make  # noqa: E402
from ansible_collections.gb10.vllm.tests.unit.plugins.plugin_utils import report_samples as samples  # noqa: E402

DESKTOP, PHONE = 1100, 390
# Chromium makes no window narrower than 500, so a telephone is a frame in a page.
FRAME = """<!DOCTYPE html><body style="margin:0"><iframe style="border:0;width:{width}px;height:{height}px" srcdoc="{page}"></iframe>
<script>onload = () => {{
  const frame = document.querySelector("iframe").contentDocument;
  const shown = [...frame.querySelectorAll("main *")].filter(e => !e.closest("svg, .scroll, details:not([open])"));
  const wide = shown.filter(e => e.getBoundingClientRect().right > {width} + 1);
  document.body.dataset.wide = wide.map(e => e.tagName + "." + e.className).join(" ");
  document.body.dataset.scroll = frame.documentElement.scrollWidth;
  document.body.dataset.height = frame.documentElement.scrollHeight;
}};</script>"""


def reports() -> dict[str, str]:
    """Pages of every kind of rollout."""
    traces = {"spark1": samples.traces("spark1", 21, 118), "spark2": samples.traces("spark2", 18, 131)}
    proxies = {"proxy1": samples.counted()}
    many = [f"spark{number:02d}" for number in range(1, 65)]
    histories = {
        "good": samples.history(samples.switch(), earlier=samples.earlier()),
        "rolling": samples.history(samples.rolling(), earlier=samples.earlier()),
        "failed": samples.history(samples.failed(), earlier=samples.earlier()),
        "killed": samples.history(samples.killed()),
        "many": samples.history(samples.rolling(many)),
    }
    found = {}
    for name, history in histories.items():
        known = {} if name == "many" else traces
        options = {"history": history, "traces": known, "proxies": {} if name in ("rolling", "many") else proxies}
        _report, files, remark = make(options)
        if remark:
            sys.exit(remark)
        found[name] = files[".html"]
    return found


def chromium(*words: str) -> str:
    with tempfile.TemporaryDirectory() as profile:
        command = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--hide-scrollbars",
        ]
        command += [
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
        ]
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def measure(frame: Path) -> dict[str, Any]:
    """How high the page is at a telephone's width, how far it scrolls sideways, and what is too wide."""
    text = chromium("--dump-dom", frame.as_uri())
    body = re.search(r"<body[^>]*>", text)
    found = dict(re.findall(r'data-(\w+)="([^"]*)"', body[0] if body else ""))
    return {"scroll": int(found["scroll"]), "height": int(found["height"]), "wide": found["wide"].split()}


def framed(page: str, height: int) -> str:
    return FRAME.format(width=PHONE, height=height, page=html.escape(page))


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if not shutil.which("chromium"):
        sys.exit("chromium is not installed: apt-get install chromium")
    results = {}
    for name, page in reports().items():
        path, frame = folder / f"{name}.html", folder / f"{name}-phone.html"
        path.write_text(page)
        frame.write_text(framed(page, 800))
        results[name] = {"bytes": len(page.encode()), **measure(frame)}
        frame.write_text(framed(page, results[name]["height"]))
        for theme, words in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
            for view, source, width in (("desktop", path, DESKTOP), ("phone", frame, 500)):
                height = min(results[name]["height"], 6000 if view == "phone" else 3200)
                target = folder / f"{name}-{view}-{theme}.png"
                chromium(f"--window-size={width},{height}", f"--screenshot={target}", *words, source.as_uri())
        chromium("--no-pdf-header-footer", f"--print-to-pdf={folder / name}.pdf", path.as_uri())
        found = results[name]
        print(
            f"{name:8} {found['bytes']:>8} bytes  {found['scroll']} px at {PHONE}  too wide: {' '.join(found['wide']) or 'nothing'}"
        )
    print(json.dumps(results))
    return int(any(found["wide"] or found["scroll"] > PHONE for found in results.values()))


if __name__ == "__main__":
    sys.exit(main())

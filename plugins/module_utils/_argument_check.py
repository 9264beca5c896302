# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A script that lets an image's own vLLM judge the arguments of `vllm serve`, without starting anything.

Private to this collection: may change at any time. Pure: the text of a script, nothing is run here.

It is given to a Python inside the image, without a GPU, which it does not need and would take memory from:
`docker run --rm -i --network none --entrypoint python3 IMAGE - MODEL --option value ... < script`.
Its standard output is one line of JSON, {"ok": bool, "message": str}; the log of vLLM goes to standard error.
Only what the command line can tell is judged: names and values of options, not the files of the model.
"""

from __future__ import annotations

# Runs under the Python that has the package vllm. Status 3: this one has not.
_WITH_PACKAGE = r'''
import contextlib, importlib.util, io, json, os, sys

sys.path[:] = [folder for folder in sys.path if folder]  # a checkout named vllm in the working folder is not the package
if importlib.util.find_spec("vllm") is None:
    sys.exit(3)
answer = os.dup(1)
os.dup2(2, 1)  # vLLM logs to standard output
sys.argv = ["vllm", "serve", *sys.argv[1:]]


def known(what, name, modules, manager):
    """Parsers are looked up by name only after the start, which is too late."""
    for module in modules:
        try:
            names = list(getattr(importlib.import_module(module), manager).list_registered())
        except (ImportError, AttributeError):
            continue
        if name not in names:
            raise ValueError(f"argument {what}: unknown parser {name!r} (choose from {', '.join(sorted(names))})")
        return


def look(args):
    if getattr(args, "tool_call_parser", None) and not getattr(args, "tool_parser_plugin", None):
        places = ["vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers"]
        known("--tool-call-parser", args.tool_call_parser, places, "ToolParserManager")
    if getattr(args, "reasoning_parser", None) and not getattr(args, "reasoning_parser_plugin", None):
        known("--reasoning-parser", args.reasoning_parser, ["vllm.reasoning"], "ReasoningParserManager")
    if not 0 < getattr(args, "gpu_memory_utilization", 0.5) <= 1:
        raise ValueError(f"argument --gpu-memory-utilization: {args.gpu_memory_utilization} is not in (0, 1]")


def parse():
    from vllm import platforms

    if platforms.current_platform.is_unspecified():  # no GPU here: defaults need some device, options do not
        from vllm.platforms.cpu import CpuPlatform

        platforms.current_platform = CpuPlatform()
    import vllm.entrypoints.cli.main
    import vllm.entrypoints.cli.serve

    vllm.entrypoints.cli.serve.ServeSubcommand.cmd = staticmethod(look)
    vllm.entrypoints.cli.main.main()


ok, message, errors = True, "", io.StringIO()
try:
    with contextlib.redirect_stderr(errors):
        parse()
except SystemExit as end:
    ok, message = not end.code, errors.getvalue().rpartition("error: ")[2].strip()
except Exception as error:
    ok, message = False, f"{type(error).__name__}: {error}"
os.write(answer, (json.dumps({"ok": ok, "message": message}) + "\n").encode())
os._exit(0)
'''

# Runs under any Python of the image: finds the one that the command vllm runs with.
_SCRIPT = r'''
import json, os, re, shutil, subprocess, sys

WITH_PACKAGE = @@


def interpreters(path, depth=5):
    """The Pythons behind a command: from its first line, or from the line that a wrapper script hands over with."""
    try:
        with open(path, encoding="utf-8") as file:
            first, rest = file.readline(), file.read(4096)
    except (OSError, TypeError, UnicodeDecodeError):
        return
    words = first[2:].split() if first.startswith("#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    if words and "python" in os.path.basename(words[0]):
        yield shutil.which(words[0])
    elif words and depth:
        for target in re.findall(r"exec'?\s+[\"']?([^\s\"']+)", rest):
            if "python" in os.path.basename(target):
                yield shutil.which(target)
            else:
                yield from interpreters(shutil.which(target), depth - 1)


def check(arguments):
    command = shutil.which("vllm")
    for python in dict.fromkeys([*interpreters(command), sys.executable]):
        if python:
            done = subprocess.run([python, "-c", WITH_PACKAGE, *arguments], stdout=subprocess.PIPE, text=True)
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout.strip().splitlines()[-1]
            if done.returncode != 3:
                return json.dumps({"ok": False, "message": f"the check itself failed with status {done.returncode}"})
    if command is None:
        return json.dumps({"ok": False, "message": "there is neither a package nor a command vllm in this image"})
    # A vllm that is no Python package must be able to check its arguments by itself.
    done = subprocess.run([command, "--check-arguments", "serve", *arguments], stderr=subprocess.PIPE, text=True)
    message = done.stderr.strip().rpartition("\n")[2].rpartition("error: ")[2] if done.returncode else ""
    return json.dumps({"ok": done.returncode == 0, "message": message})


print(check(sys.argv[1:]), flush=True)
'''


def check_script() -> str:
    """The script, for the standard input of `python3 - MODEL --option value ...` inside the image."""
    return _SCRIPT.replace("@@", repr(_WITH_PACKAGE))

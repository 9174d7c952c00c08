#!/usr/bin/env python3
"""Runs the transcripts of README.md and of the guides, and compares what the commands print with what the pages show.

A block with the language `console` is a transcript. A line that begins with `$ ` is a command; lines that begin with `> ` continue it, and so does
the line after one that ends with a backslash. The other lines are what the command prints, on both of its outputs. In them `…` stands for any
text within the line (with the spaces after it, if there are two or more, so that columns can be aligned), and a line that is only `…` stands
for any number of lines.

A block whose language is followed by a file name, such as ```json schema.json, is written to that file before the next transcript runs.

Each page runs in one shell, in an empty folder that is also its HOME and that pages show as /home/ada. The folder has a copy of Examples/journal.
A command may end with an error only if the page shows it: with a line that begins with `tidemark: `, or with `$ echo $?` after it.
The port 8080 of the pages is replaced by one that is free. When the page is done, every process that it started is ended.

With --write, lines that differ are replaced in the pages, with `…` for times, durations and random identifiers. Read the result.
"""

import argparse
import os
import re
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SHOWN_HOME = "/home/ada"
SHOWN_PORT = "8080"
COMMAND_SECONDS = 120
# What the transcripts call beside the tool and what every system has.
PROGRAMS = ["bash", "curl", "gzip", "jq", "sqlite3"]


# Times, durations, random identifiers and the tokens of links.
VARYING = [
    r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", r"(?<= in )\d+\.\d(?= s\b)", r'(?<="seconds":)[0-9.]+',
    r"\b[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89abAB][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}\b", r"(?<=tidemark://share/)[\w-]+", r"(?<=/development/)[\w-]{32}\b",
]


class Command:
    """A command of a transcript, with the lines that the page shows below it."""

    def __init__(self, line, text):
        self.line = line
        self.text = text
        self.shown = []


def read_page(path):
    """Returns the files and commands of a page, in order: ("file", name, content) or ("command", Command)."""
    steps = []
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        fence = re.fullmatch(r"```(\w+)(?: (\S+))?", lines[at].rstrip())
        at += 1
        if not fence:
            continue
        begin = at
        while lines[at].rstrip() != "```":
            at += 1
        block = lines[begin:at]
        at += 1
        if fence[1] == "console":
            steps += [("command", command) for command in read_transcript(block, begin + 1)]
        elif fence[2]:
            steps.append(("file", fence[2], "\n".join(block) + "\n"))
    return steps


def read_transcript(block, first_line):
    commands = []
    continues = False
    for number, line in enumerate(block, first_line):
        if line.startswith("$ "):
            commands.append(Command(number, line[2:]))
            continues = line.endswith("\\")
        elif not commands:
            raise ValueError(f"line {number}: a transcript begins with a command")
        elif continues:
            commands[-1].text += "\n" + line
            continues = line.endswith("\\")
        elif line.startswith("> ") and not commands[-1].shown:
            commands[-1].text += "\n" + line[2:]
        else:
            commands[-1].shown.append(line.rstrip())
    return commands


def line_matches(shown, printed):
    pattern = ".*".join(re.escape(part) for part in re.split("…(?:  +)?", shown))
    return re.fullmatch(pattern, printed) is not None


def matches(shown, printed):
    """Whether the lines that a command printed are those that the page shows."""
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(matches(shown[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and line_matches(shown[0], printed[0]) and matches(shown[1:], printed[1:])


def rewritten(shown, printed):
    """Returns the lines for a page: those shown that still match, and what was printed in place of the others."""
    left = list(shown)
    lines = []
    for line in printed:
        kept = next((it for it in left if line_matches(it, line)), None)
        if kept is None:
            for pattern in VARYING:
                line = re.sub(pattern, "…", line)
        else:
            left = left[left.index(kept) + 1:]
        lines.append(line if kept is None else kept)
    return lines


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


class Shell:
    """One shell for a page. Variables, functions and background jobs last until the page is done."""

    def __init__(self, folder, programs, port):
        self.folder = folder
        self.port = port
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "TERM": "dumb", "COLUMNS": "80",
        }
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def run(self, text):
        """Returns the exit status and the lines that the command printed."""
        mark = f"--{secrets.token_hex(8)}--"
        script = self.folder.parent / "command.sh"
        script.write_text(text.replace(SHOWN_PORT, self.port) + "\n", encoding="utf-8")
        # `(exit …)` first, so that `echo $?` shows the status of the command before it.
        line = f"(exit ${{status:-0}}); . '{script}' </dev/null; status=$?; printf '%s %d\\n' {mark} $status\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        printed = b""
        deadline = time.monotonic() + COMMAND_SECONDS
        ended = None
        while ended is None:
            if not self.selector.select(max(0, deadline - time.monotonic())):
                raise TimeoutError(f"no end after {COMMAND_SECONDS} s; so far: {printed.decode(errors='replace')}")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                raise EOFError(f"the shell ended: {printed.decode(errors='replace')}")
            printed += piece
            ended = re.search(rb"(?s)^(.*)" + mark.encode() + rb" (\d+)\n", printed)
        output = ended[1].decode(errors="replace").replace(str(self.folder), SHOWN_HOME)
        output = re.sub(rf"(:|%3A){self.port}(?!\d)", rf"\g<1>{SHOWN_PORT}", output)
        lines = [line.rstrip() for line in output.split("\n")]
        return int(ended[2]), lines[:-1] if lines[-1] == "" else lines

    def end(self):
        """Ends the shell and the processes that it started: they are one session."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            time.sleep(0.5)
        self.process.wait()


def write_page(path, corrections):
    """Replaces the output of commands: a list of the command and its lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for command, output in reversed(corrections):
        begin = command.line + command.text.count("\n")
        lines[begin:begin + len(command.shown)] = output
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_page(path, programs, verbose, write):
    """Runs the transcripts of a page, and returns how many commands there were and how many differed."""
    name = path.relative_to(REPOSITORY)
    steps = read_page(path)
    commands = [step[1] for step in steps if step[0] == "command"]
    differing = 0
    corrections = []
    with tempfile.TemporaryDirectory(prefix="tidemark-guide-") as scratch:
        folder = Path(scratch).resolve() / "home"
        shutil.copytree(REPOSITORY / "Examples" / "journal", folder / "Examples" / "journal")
        shell = Shell(folder, programs, free_port())
        try:
            for step in steps:
                if step[0] == "file":
                    (folder / step[1]).write_text(step[2], encoding="utf-8")
                    continue
                command = step[1]
                try:
                    status, printed = shell.run(command.text)
                except (TimeoutError, EOFError) as error:
                    print(f"{name}:{command.line}: $ {command.text}\n  {error}")
                    return len(commands), differing + 1
                following = commands[commands.index(command) + 1:][:1]
                told = any(line.startswith("tidemark: ") for line in command.shown) or any(next.text == "echo $?" for next in following)
                if verbose:
                    print(f"{name}:{command.line}: $ {command.text}", *printed, sep="\n")
                if not matches(command.shown, printed):
                    differing += 1
                    corrections.append((command, rewritten(command.shown, printed)))
                    print(f"{name}:{command.line}: $ {command.text}\n  the page shows:")
                    print(*("    " + line for line in command.shown), "  the command printed:", sep="\n")
                    print(*("    " + line for line in printed), sep="\n")
                elif status != 0 and not told:
                    differing += 1
                    print(f"{name}:{command.line}: $ {command.text}\n  ended with {status}, which the page does not show")
        finally:
            shell.end()
    if write:
        write_page(path, corrections)
    return len(commands), differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemark", required=True, type=Path, help="the tool")
    parser.add_argument("--server", type=Path, help="the server; by default tidemark-server beside the tool")
    parser.add_argument("--write", action="store_true", help="replace what differs in the pages")
    parser.add_argument("--verbose", action="store_true", help="print each command and what it printed")
    parser.add_argument("pages", nargs="*", type=Path, help="pages; by default README.md and all guides")
    arguments = parser.parse_args()
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        parser.error(f"the transcripts need {', '.join(missing)}; install it")
    tidemark = arguments.tidemark.resolve(strict=True)
    server = (arguments.server or tidemark.with_name("tidemark-server")).resolve(strict=True)
    pages = [page.resolve() for page in arguments.pages]
    pages = pages or [REPOSITORY / "README.md", *sorted((REPOSITORY / "Documentation" / "Guides").glob("*.md"))]
    total = 0
    with tempfile.TemporaryDirectory(prefix="tidemark-guide-bin-") as programs:
        # The tool looks for the server beside itself, and follows links to find out where that is.
        place = os.symlink if server.parent == tidemark.parent else shutil.copy
        place(tidemark, Path(programs) / "tidemark")
        place(server, Path(programs) / "tidemark-server")
        for page in pages:
            commands, differing = run_page(page, programs, arguments.verbose, arguments.write)
            print(f"{page.relative_to(REPOSITORY)}: {commands} commands, {differing} differ")
            total += differing
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes Documentation/Reference/CommandLine.md from what the tool and the server say of their commands and options.

ArgumentParser prints all of it as JSON with --experimental-dump-help. With --check the page is not written: the exit code is 1, and the
differences are printed, if it is not what this program would write.
"""

import argparse
import difflib
import json
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "Reference" / "CommandLine.md"

HEAD = """<!-- Written by Documentation/generate-command-line.py (`make reference`). Change the help of the commands, not this page. -->

# The command line

For everybody who looks up a command or an option. It has what `tidemark help COMMAND` prints; the [guides](../README.md#guides) show what the commands are for.
[Exit codes](ExitCodes.md) and [JSON output](JSONOutput.md) have pages of their own, and so do [environment variables](Configuration.md).

- Every command has `--help` (`-h`) and `--version`. They are left out below.
- Every command of `tidemark` has `--json`.
- An option in brackets can be left out; `...` says that it can be repeated.
- `tidemark --generate-completion-script bash` (or `zsh`, `fish`) prints completions, and `tidemark manual` the manual page.
"""

TAIL = """
## See also

[Guides](../README.md#guides) · [exit codes](ExitCodes.md) · [JSON output](JSONOutput.md) · [configuration](Configuration.md)
"""


def dump(program):
    """Returns the root command of a program."""
    output = subprocess.run([program, "--experimental-dump-help"], check=True, capture_output=True, text=True).stdout
    return json.loads(output)["command"]


def subcommands(command):
    return [it for it in command.get("subcommands", []) if it.get("shouldDisplay", True) and it["commandName"] != "help"]


def arguments(command):
    """Returns the arguments that the page shows."""
    shown = [it for it in command.get("arguments", []) if it.get("shouldDisplay", True)]
    return [it for it in shown if it["valueName"] not in ("help", "version")]


def spelling(argument):
    """Returns an argument as one types it: <container>, --limit <n>, -y, --yes."""
    if argument["kind"] == "positional":
        return f"<{argument['valueName']}>"
    names = [("--" if it["kind"] == "long" else "-") + it["name"] for it in argument["names"]]
    value = f" <{argument['valueName']}>" if argument["kind"] == "option" else ""
    return ", ".join(names) + value


def usage(path, command):
    """Returns the line that shows how a command is called."""
    words = list(path)
    for argument in arguments(command):
        if argument["kind"] == "positional":
            word = f"<{argument['valueName']}>"
        else:
            preferred = argument["preferredName"]
            word = ("--" if preferred["kind"] == "long" else "-") + preferred["name"]
            word += f" <{argument['valueName']}>" if argument["kind"] == "option" else ""
        word += " ..." if argument["isRepeating"] else ""
        words.append(f"[{word}]" if argument["isOptional"] else word)
    return " ".join(words)


def prose(text):
    """Returns a text in which Markdown finds no marks of its own."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def cell(text):
    """Returns a text for a cell of a table."""
    return prose(text).replace("|", "\\|").replace("\n", " ")


def description(argument):
    text = argument.get("abstract", "")
    values = argument.get("allValues", [])
    default = argument.get("defaultValue")
    notes = []
    if values and not all(re.search(rf"\b{re.escape(value)}\b", text) for value in values):
        notes.append("values: " + ", ".join(values))
    if default is not None and argument["kind"] == "option" and "(default:" not in text:
        notes.append(f"default: {default}")
    return cell(text + (f" ({'; '.join(notes)})" if notes else ""))


def discussion(text):
    """Returns the prose and the examples of a command: what follows `Examples:` is a block."""
    before, _, rest = text.partition("Examples:\n")
    examples, _, after = rest.partition("\n\n")
    parts = [prose(before.strip())] if before.strip() else []
    if examples:
        parts.append("```sh\n" + "\n".join(re.sub("^  ", "", line) for line in examples.split("\n")).rstrip() + "\n```")
    if after.strip():
        parts.append(prose(after.strip()))
    return parts


def table(title, rows):
    """Returns the table of some arguments, or nothing if there are none."""
    lines = [f"| `{spelling(it)}` | {description(it)} |" for it in rows]
    return ["\n".join([f"| {title} | |", "|---|---|", *lines])] if lines else []


def section(path, command, level):
    """Returns the parts of the page that describe a command and those below it."""
    below = subcommands(command)
    parts = [f"{'#' * level} {' '.join(path)}", command.get("abstract", "")]
    if below:
        default = command.get("defaultSubcommand")
        if default:
            parts.append(f"Without a subcommand it does what `{' '.join(path)} {default}` does.")
        parts.append("| subcommand | |\n|---|---|\n" + "\n".join(
            f"| [`{it['commandName']}`](#{'-'.join([*path, it['commandName']])}) | {cell(it.get('abstract', ''))} |" for it in below))
    else:
        parts.append(f"```\n{usage(path, command)}\n```")
    parts += discussion(command.get("discussion", ""))
    shown = arguments(command)
    parts += table("argument", [it for it in shown if it["kind"] == "positional"])
    options = [it for it in shown if it["kind"] != "positional"]
    for title in dict.fromkeys(it.get("sectionTitle") for it in options):
        parts += table(title.lower() if title else "option", [it for it in options if it.get("sectionTitle") == title])
    for it in below:
        parts += section([*path, it["commandName"]], it, min(level + 1, 6))
    return [part for part in parts if part]


def page(tool, server):
    parts = []
    for program in (tool, server):
        root = dump(program)
        parts += section([root["commandName"]], root, 2)
    return HEAD + "\n" + "\n\n".join(parts) + "\n" + TAIL


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemark", required=True, help="the tool")
    parser.add_argument("--server", help="the server; by default tidemark-server beside the tool")
    parser.add_argument("--check", action="store_true", help="compare the page, and write nothing")
    options = parser.parse_args()
    server = options.server or str(Path(options.tidemark).with_name("tidemark-server"))
    text = page(options.tidemark, server)
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if written != text:
        sys.stdout.writelines(difflib.unified_diff(
            written.splitlines(keepends=True), text.splitlines(keepends=True), "CommandLine.md", "the commands' help"))
        sys.exit("Documentation/Reference/CommandLine.md differs from the help of the commands: run 'make reference'")


if __name__ == "__main__":
    main()

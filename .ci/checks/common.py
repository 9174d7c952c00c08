"""What the checks share: the files of the repository, source code without comments and texts, and how finds are reported."""

import json
import os
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
checks = pathlib.Path(__file__).resolve().parent


def files(*suffixes, under=()):
    """The paths of the repository's files, tracked or new, relative to its root, sorted. Ignored files are left out."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *under],
        cwd=root, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        paths = listing.stdout.split("\0")
    else:  # An exported tree has no repository.
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [it for it in folders if not it.startswith((".build", ".git"))]
            paths += [os.path.relpath(os.path.join(folder, name), root) for name in names]
        paths = [it for it in paths if not under or any(it == place or it.startswith(place.rstrip("/") + "/") for place in under)]
    return sorted(it for it in set(paths) if it and (not suffixes or it.endswith(suffixes)) and (root / it).is_file())


def read(path):
    return (root / path).read_text(encoding="utf-8")


class Finds:
    """Collects finds and ends the program: silently with 0, or with every find on standard error and 1."""

    def __init__(self, name):
        self.name, self.lines = name, []

    def add(self, path, line, text, remedy=""):
        found = f"{path}:{line}: {text}" + (f" {remedy}" if remedy else "")
        if found not in self.lines:
            self.lines.append(found)

    def end(self, remedy=""):
        if not self.lines:
            sys.exit(0)
        for line in self.lines:
            print(line, file=sys.stderr)
        print(f"{self.name}: {len(self.lines)} found." + (f" {remedy}" if remedy else ""), file=sys.stderr)
        sys.exit(1)


def allowed(name):
    """The lines of a committed list of this folder: fields between ` | `; lines that begin with # are comments. Returns (line number, fields)."""
    result = []
    for number, line in enumerate((checks / name).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            result.append((number, [field.strip() for field in line.split(" | ")]))
    return result


def load(name):
    return json.loads((checks / name).read_text(encoding="utf-8"))


def store(name, value):
    (checks / name).write_text(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def code(text, swift=True, keep_texts=False):
    """Source code with its comments as spaces, and with empty texts unless `keep_texts`; every line stays on its line and every other
    character in its column."""
    result, at, length = list(text), 0, len(text)

    def blank(first, end):
        for index in range(first, min(end, length)):
            if result[index] != "\n":
                result[index] = " "

    def text_end(at):
        """The end of the text that begins at `at`, of its content, and the length of its delimiter."""
        hashes = 0
        while text[at + hashes] == "#":
            hashes += 1
        quote = '"""' if swift and text.startswith('"""', at + hashes) else text[at + hashes]
        escape, close = "\\" + "#" * hashes, quote + "#" * hashes
        here = at + hashes + len(quote)
        while here < length:
            if text.startswith(close, here):
                return here + len(close), here, hashes + len(quote)
            if text.startswith(escape, here):
                here += len(escape)
                if swift and text.startswith("(", here):  # An interpolation, which may have texts of its own.
                    depth = 0
                    while here < length:
                        if text[here] == "(":
                            depth += 1
                        elif text[here] == ")":
                            depth -= 1
                            if depth == 0:
                                break
                        elif text[here] == '"':
                            here = text_end(here)[0]
                            continue
                        here += 1
                here += 1
            elif text[here] == "\n" and len(quote) == 1:
                return here, here, hashes + len(quote)
            else:
                here += 1
        return length, length, hashes + len(quote)

    while at < length:
        if text.startswith("//", at):
            end = text.find("\n", at)
            end = length if end < 0 else end
            blank(at, end)
            at = end
        elif text.startswith("/*", at):
            end, depth = at + 2, 1
            while end < length and depth > 0:
                if text.startswith("*/", end):
                    depth, end = depth - 1, end + 2
                elif swift and text.startswith("/*", end):
                    depth, end = depth + 1, end + 2
                else:
                    end += 1
            blank(at, end)
            at = end
        elif text[at] == '"' or (swift and text[at] == "#" and re.match(r'#+"', text[at:at + 8])):
            end, content_end, delimiter = text_end(at)
            if not keep_texts:
                blank(at + delimiter, content_end)
            at = end
        elif swift and text.startswith("#/", at):  # A regular expression with extended delimiters.
            end = text.find("/#", at + 2)
            end = length if end < 0 else end + 2
            if not keep_texts:
                blank(at + 2, end - 2)
            at = end
        elif swift and text[at] == "`":
            end = text.find("`", at + 1)
            line_end = text.find("\n", at + 1)
            at = end + 1 if 0 <= end and (line_end < 0 or end < line_end) else at + 1
        elif not swift and text[at] == "'":
            end = at + 1
            while end < length and text[end] not in "'\n":
                end += 2 if text[end] == "\\" else 1
            # A separator of digits, as in 1'000, is no character.
            at = at + 1 if at > 0 and text[at - 1].isalnum() and end - at > 4 else end + 1
        else:
            at += 1
    return "".join(result)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def body_end(clean, opening):
    """The offset of the brace that closes the one at `opening`, in code without comments and texts."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(clean, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(clean) - 1

"""Makes mutants of a line of Swift or C: each operator yields texts that differ from it in one place.

A line is a mutant's whole extent. Texts of string literals, comments, attributes and imports are left alone."""

import re

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"//.*$")


def masked(line):
    """The line with its strings and comments as underscores, as long as it was."""
    hide = lambda match: "_" * len(match[0])  # noqa: E731
    return COMMENT.sub(hide, STRING.sub(hide, line))


def replaced(line, pattern, text):
    """One result for each place outside of strings and comments at which a pattern is found."""
    for match in re.finditer(pattern, masked(line)):
        after = text(match) if callable(text) else text
        yield line[:match.start()] + after + line[match.end():]


def comparison(line):
    for before, afters in {"==": ["!="], "!=": ["=="], "<=": ["<"], ">=": [">"], "<": ["<="], ">": [">="]}.items():
        for after in afters:
            yield from replaced(line, rf"(?<= ){re.escape(before)}(?= )", after)


def connection(line):
    yield from replaced(line, r"(?<= )&&(?= )", "||")
    yield from replaced(line, r"(?<= )\|\|(?= )", "&&")


def condition(line):
    """A condition of one line, the other way round."""
    plain = masked(line)
    for pattern in (r"^(\s*guard )(?!let|case|var|#)([^{},]+)( else \{)", r"^(\s*(?:\} else )?if )(?!let|case|var|#|try|\()([^{},]+)( \{)",
                    r"^(\s*(?:\} else )?if \()(?!\()([^;{}]*[^;{}\s])(\) (?:\{|return|break|continue).*)$"):
        match = re.match(pattern, plain)
        if match:
            inner = line[match.start(2):match.end(2)]
            negated = f"!({inner})" if "try " not in inner and "await " not in inner else None
            if negated:
                yield line[:match.start(2)] + negated + line[match.end(2):]


def literal(line):
    yield from replaced(line, r"\btrue\b", "false")
    yield from replaced(line, r"\bfalse\b", "true")


def number(line):
    yield from replaced(line, r"(?<![\w.$#?])(\d[\d_]*)(?![\w.])", lambda match: str(int(match[0].replace("_", "")) + 1))


def arithmetic(line):
    yield from replaced(line, r"(?<=[\w)\]] )\+(?= [\w(])", "-")
    yield from replaced(line, r"(?<=[\w)\]] )-(?= [\w(])", "+")
    yield from replaced(line, r"\bmin\(", "max(")
    yield from replaced(line, r"\bmax\(", "min(")


def call(line):
    """A call for its effect alone, left out."""
    if re.match(r"^\s*(try |await |try await )?[\w.?!]+\([^{}]*\)\s*$", masked(line)) and not re.match(r"^\s*(super|self)\.init|^\s*(return|throw|yield)\b|^\s*init\(", line):
        if re.match(r"^\s*(try |await |try await )", line) or re.match(r"^\s*[a-z]\w*(\.\w+)+\(", line):
            yield re.match(r"^\s*", line)[0] + "do {}"


def sync(line):
    """What makes something durable, left out."""
    yield from replaced(line, r"\bfsync\([^()]*(?:\([^()]*\))*[^()]*\) (==) 0", lambda match: f"0 {match[1]} 0")
    yield from replaced(line, r"\bsyncfs\([^()]*\) == 0", "0 == 0")
    yield from replaced(line, r"\bdescriptor_sync\([^()]*\) != 0", "0 != 0")
    if re.match(r"^\s*try (?:[\w.]+(?:\([^{}]*\))?\.)?(?:synchronize|synchronizePlace|sync)\([^{}]*\)$", masked(line)):
        yield re.match(r"^\s*", line)[0] + "do {}"


def synchronous(line):
    if "PRAGMA synchronous = FULL" in line:
        yield line.replace("synchronous = FULL", "synchronous = OFF")


OPERATORS = {"comparison": comparison, "connection": connection, "condition": condition, "literal": literal, "number": number,
             "arithmetic": arithmetic, "call": call, "sync": sync, "synchronous": synchronous}
GENERAL = ["comparison", "connection", "condition", "literal", "number", "arithmetic", "call"]


def is_code(line):
    stripped = line.strip()
    return bool(stripped) and not re.match(r"//|\*|/\*|@|#|import |package import |public import |precondition|assert|fatalError|log\.|case \.|\"", stripped)


def mutants(line, names):
    """(operator, text) for each mutant of a line."""
    if not is_code(line):
        return
    for name in names:
        for text in OPERATORS[name](line):
            if text != line:
                yield name, text

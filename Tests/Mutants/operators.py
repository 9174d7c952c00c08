"""Makes mutants of a line of Swift or C. Each operator yields changes of the line in one place.

A mutant never goes beyond its line. String literals, comments, attributes and imports are not changed. For Swift, a change can also give a line with
both versions, between which the program chooses when it runs (`Mutant.isActive`, switches.py). Then many mutants are built together."""

import re

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"//.*$")


class Change:
    """A line with another text in one place."""

    def __init__(self, line, start, end, after, switched=None, infix=None):
        """`switched` returns, for a mutant's number, the text with both versions. `infix`: (precedence, type of the operands, expression before, after)."""
        self.line, self.start, self.end, self.after, self.switched, self.infix = line, start, end, after, switched, infix

    @property
    def text(self):
        return self.line[:self.start] + self.after + self.line[self.end:]

    def with_switch(self, number):
        """Returns the line with both versions, between which the mutant's number chooses, or `None` where there is no such line."""
        if self.switched is None:
            return None
        return self.line[:self.start] + self.switched(number) + self.line[self.end:]


def within_text(change):
    """Returns the same change for a string of several lines, in which an interpolation chooses the version."""
    before, after = change.line[change.start:change.end], change.after
    switched = None if '"' in before + after else lambda number: f'\\(Mutant.isActive({number}) ? "{after}" : "{before}")'
    return Change(change.line, change.start, change.end, after, switched)


def infix_name(number):
    """Returns the name of an infix operator for a mutant. No other code uses such a name."""
    return "<~>" + "".join("%&*+^~|-"[int(digit)] for digit in oct(number)[2:])


def masked(line):
    """Returns the line with strings and comments replaced by underscores of the same length."""
    hide = lambda match: "_" * len(match[0])  # noqa: E731
    return COMMENT.sub(hide, STRING.sub(hide, line))


def replaced(line, pattern, text, switched=None, infix=None):
    """Yields a change for each place outside of strings and comments where a pattern is found."""
    for match in re.finditer(pattern, masked(line)):
        after = text(match) if callable(text) else text
        yield Change(line, match.start(), match.end(), after, switched and (lambda number, match=match: switched(number, match)), infix)


def operator(line, before, after, precedence, operands, lazy=False):
    if re.search(r"\bfunc [^\w ]", line):
        return
    pattern = rf"(?<=[\w)\]] ){re.escape(before)}(?= [\w(])" if operands == "AdditiveArithmetic" else rf"(?<= ){re.escape(before)}(?= )"
    right = "b()" if lazy else "b"
    yield from replaced(line, pattern, after, lambda number, match: infix_name(number),
                        (precedence, operands, f"a {before} {right}", f"a {after} {right}"))


def comparison(line):
    for before, after in {"==": "!=", "!=": "==", "<=": "<", ">=": ">", "<": "<=", ">": ">="}.items():
        yield from operator(line, before, after, "ComparisonPrecedence", "Equatable" if before in ("==", "!=") else "Comparable")


def connection(line):
    yield from operator(line, "&&", "||", "LogicalConjunctionPrecedence", "Bool", lazy=True)
    yield from operator(line, "||", "&&", "LogicalDisjunctionPrecedence", "Bool", lazy=True)


def condition(line):
    """Negates a condition that is on one line."""
    plain = masked(line)
    for pattern in (r"^(\s*guard )(?!let|case|var|#)([^{},]+)( else \{)", r"^(\s*(?:\} else )?if )(?!let|case|var|#|try|\()([^{},]+)( \{)",
                    r"^(\s*(?:\} else )?if \()(?!\()([^;{}]*[^;{}\s])(\) (?:\{|return|break|continue).*)$"):
        match = re.match(pattern, plain)
        if match:
            inner = line[match.start(2):match.end(2)]
            if "try " not in inner and "await " not in inner:
                yield Change(line, match.start(2), match.end(2), f"!({inner})", lambda number, inner=inner: f"Mutant.flipped({number}, {inner})")


def literal(line):
    yield from replaced(line, r"\btrue\b", "false", lambda number, match: f"Mutant.flipped({number}, true)")
    yield from replaced(line, r"\bfalse\b", "true", lambda number, match: f"Mutant.flipped({number}, false)")


def number(line):
    yield from replaced(line, r"(?<![\w.$#?])(\d[\d_]*)(?![\w.])", lambda match: str(int(match[0].replace("_", "")) + 1),
                        lambda number, match: f"Mutant.number({number}, {match[0]})")


def arithmetic(line):
    yield from operator(line, "+", "-", "AdditionPrecedence", "AdditiveArithmetic")
    yield from operator(line, "-", "+", "AdditionPrecedence", "AdditiveArithmetic")
    yield from replaced(line, r"(?<!\.)\bmin\(", "max(", lambda number, match: f"Mutant.least({number}, ")
    yield from replaced(line, r"(?<!\.)\bmax\(", "min(", lambda number, match: f"Mutant.greatest({number}, ")


def whole(line, after="do {}"):
    """Returns a change that removes everything that the line does."""
    start = len(line) - len(line.lstrip())
    return Change(line, start, len(line), after, lambda number: f"if !Mutant.isActive({number}) {{ {line.strip()} }}")


def call(line):
    """Removes a call whose result is not used."""
    if re.match(r"^\s*(try |await |try await )?[\w.?!]+\([^{}]*\)\s*$", masked(line)) and not re.match(r"^\s*(super|self)\.init|^\s*(return|throw|yield)\b|^\s*init\(", line):
        if re.match(r"^\s*(try |await |try await )", line) or re.match(r"^\s*[a-z]\w*(\.\w+)+\(", line):
            yield whole(line)


def sync(line):
    """Removes a call that makes something durable."""
    yield from replaced(line, r"\bfsync\([^()]*(?:\([^()]*\))*[^()]*\) (==) 0", lambda match: f"0 {match[1]} 0",
                        lambda number, match: f"(Mutant.isActive({number}) || {line[match.start():match.end()]})")
    yield from replaced(line, r"\bDurableFile\.flush\([^()]*(?:\([^()]*\))*[^()]*\)", "true",
                        lambda number, match: f"(Mutant.isActive({number}) || {line[match.start():match.end()]})")
    yield from replaced(line, r"\bsyncfs\([^()]*\) == 0", "0 == 0")
    yield from replaced(line, r"\bdescriptor_sync\([^()]*\) != 0", "0 != 0")
    if re.match(r"^\s*try (?:[\w.]+(?:\([^{}]*\))?\.)?(?:synchronize|synchronizePlace|sync)\([^{}]*\)$", masked(line)):
        yield whole(line)


def synchronous(line):
    place = line.find("synchronous = FULL")
    if "PRAGMA synchronous = FULL" in line:
        yield Change(line, place, place + len("synchronous = FULL"), "synchronous = OFF",
                     lambda number: f'synchronous = \\(Mutant.isActive({number}) ? "OFF" : "FULL")')


OPERATORS = {"comparison": comparison, "connection": connection, "condition": condition, "literal": literal, "number": number,
             "arithmetic": arithmetic, "call": call, "sync": sync, "synchronous": synchronous}
GENERAL = ["comparison", "connection", "condition", "literal", "number", "arithmetic", "call"]


def is_code(line):
    stripped = line.strip()
    return bool(stripped) and not re.match(r"//|\*|/\*|@|#|import |package import |public import |precondition|assert|fatalError|log\.|case \.|\"", stripped)


def mutants(line, names):
    """Yields (operator, change) for each mutant of a line."""
    if not is_code(line):
        return
    for name in names:
        for change in OPERATORS[name](line):
            if change.text != line:
                yield name, change

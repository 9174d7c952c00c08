"""Checks a zone's history, and finds the smallest part of it that no order explains.

First each record is checked alone, with the requests and answers about it. Then all records are checked together, which adds batches, queries and
changes.
"""

import copy
import itertools
import time

from history import DELETIONS, shown_answer, shown_given, shown_value
from search import Undecided, find_failure


class Verdict:
    """The result of a check. `problem` describes what is wrong, if anything is; `is_undecided` says that the search was too large."""

    def __init__(self, operations, problem=None, is_undecided=False):
        self.operations, self.problem, self.is_undecided = operations, problem, is_undecided


def check(zone, most=100_000, seconds=60):
    """Checks a history. The search for a small part of it that fails takes about `seconds` at most."""
    operations = [
        operation for operation in zone.operations if operation.end is not None or operation.kind in ("modify", "access")]
    problem = find_confused_tags(operations) or find_strangers(operations)
    if problem:
        return Verdict(len(operations), f"zone {zone.name}: {problem}")
    names = sorted({name for operation in operations for name in names_of(operation)})
    try:
        for some in [[name] for name in names] + [names]:
            part = operations
            if some != names:
                part = [cut for cut in (restricted(operation, set(some)) for operation in operations) if cut]
            if fails(zone, part, most):
                some, part = fewest(zone, some, operations, part, most)
                named = some if len(some) < len(names) else None
                return Verdict(len(operations), describe(zone, named, smallest(zone, part, seconds), len(part)))
    except Undecided:
        return Verdict(len(operations), is_undecided=True)
    return Verdict(len(operations))


def fewest(zone, names, operations, part, most):
    """Returns two of the records, with the operations about them, if these alone fail already. Otherwise returns what was given."""
    for some in itertools.combinations(names, 2):
        smaller = [cut for cut in (restricted(operation, set(some)) for operation in operations) if cut]
        if len(names) > 2 and fails(zone, smaller, most):
            return list(some), smaller
    return names, part


# Tags


def find_confused_tags(operations):
    """Checks that a change tag stands for one value, and that a value has one tag."""
    values, tags = {}, {}
    for operation in operations:
        for name, value, tag in operation.tags():
            for known, key, other in [(values, tag, (name, value)), (tags, (name, value), tag)]:
                before, first = known.setdefault(key, (other, operation))
                if before != other:
                    return (f"the change tag of {name} = {value} and {before} are mixed up: {key}\n"
                            + lines([first, operation], operations[0].begin if operations else 0))
    return None


def find_strangers(operations):
    """Checks that each value that was read had been written to this record, in a request that began before the read was answered."""
    written = {}
    for operation in operations:
        if operation.kind == "modify":
            for do, name, _, value in operation.given["items"]:
                if value is not None:
                    written[name, value] = operation
    for operation in operations:
        for name, value in operation.seen():
            writer = written.get((name, value))
            if writer is None or writer.begin > operation.end:
                part = [operation] + ([writer] if writer else [])
                return f"{name} = {value} was read, and nobody had written it\n" + lines(part, operations[0].begin)
    return None


# Single records


def names_of(operation):
    if operation.kind == "modify":
        return [name for _, name, _, _ in operation.given["items"]]
    return list(operation.given.get("records", ()))


def restricted(operation, names):
    """Returns the part of an operation that is about some of the records, or `None` where there is none."""
    given, answer = dict(operation.given), operation.answer and dict(operation.answer)
    has_answer = answer is not None and "refused" not in answer
    if operation.kind == "modify":
        wanted = [place for place, item in enumerate(given["items"]) if item[1] in names]
        given["is_part"] = len(wanted) < len(given["items"])
        given["items"] = [given["items"][place] for place in wanted]
        if has_answer:
            answer["items"] = [answer["items"][place] for place in wanted]
        if not wanted:
            return None
    elif operation.kind == "lookup":
        given["records"] = [name for name in given["records"] if name in names]
        if has_answer:
            answer["records"] = {name: value for name, value in answer["records"].items() if name in names}
        if not given["records"]:
            return None
    elif operation.kind == "query" and has_answer:
        answer["records"] = {name: value for name, value in answer["records"].items() if name in names}
    elif operation.kind == "changes" and has_answer:
        # With a limit, a record can be missing from a page although it has changed.
        if given.get("limit") is not None:
            return None
        answer["changed"] = [change for change in answer["changed"] if change[0] in names]
    cut = copy.copy(operation)
    cut.given, cut.answer = given, answer
    return cut


# Operations without an answer


def with_effects(operations):
    """Returns the operations, changed so that a write without an answer counts as answered if its value was read, and no later than that read.

    The values of other writes without an answer were never seen, and are all replaced by 0. Equal writes make the search shorter.
    """
    readers, expected = {}, set()
    for operation in operations:
        if operation.kind == "modify":
            expected.update((item[1], item[2]) for item in operation.given["items"])
        if operation.end is not None:
            for seen in operation.seen() + operation.replaced():
                readers[seen] = min(operation.end, readers.get(seen, operation.end))
    made = []
    for operation in operations:
        if operation.kind == "modify" and operation.end is None:
            values = [(name, value) for _, name, _, value in operation.given["items"] if value is not None]
            ends = [readers[value] for value in values if value in readers]
            if ends:
                operation = copy.copy(operation)
                operation.end, operation.answer = min(ends), {"items": [{"done": True} for _ in operation.given["items"]]}
            elif not expected.intersection(values):
                operation = copy.copy(operation)
                operation.given = operation.given | {"items": [item[:3] + [item[3] and 0] for item in operation.given["items"]]}
        made.append(operation)
    return made


def fails(zone, operations, most=100_000):
    """Returns the answer that fits no order, or `None` where there is an order."""
    operations = with_effects(operations)
    # Writes that nobody has seen can nearly always be left undone, so the first search is without them.
    likely = [
        operation for operation in operations if operation.end is not None or operation.kind == "access" or operation.deletes]
    found = find_failure(zone.owner, zone.access, likely, most)
    if found and len(likely) < len(operations):
        found = find_failure(zone.owner, zone.access, operations, most)
    return found


# The smallest part


def smallest(zone, operations, seconds, most=3_000):
    """Returns operations that have no order, and of which none can be left out. After about `seconds` it returns those that are left."""
    end = time.monotonic() + seconds
    last = fails(zone, operations).operation

    def fail(some):
        try:
            return time.monotonic() < end and fails(zone, some, most) is not None
        except Undecided:
            return False

    # Operations that begin after the failing answer play no part. Answers that come after it are removed.
    begun = [operation for operation in operations if operation.begin <= last.end]
    operations = [
        weak for operation in begun
        for weak in ([operation] if operation.end is None or operation.end <= last.end else weakened(operation))]
    size = max(1, len(operations) // 2)
    while True:
        place, has_changed = 0, False
        while place < len(operations):
            some = operations[place:place + size]
            fewer = [weak for operation in some for weak in weakened(operation)]
            weaker = operations[:place] + fewer + operations[place + size:]
            if fewer != some and fail(weaker):
                has_changed = True
                operations = weaker
                place += len(fewer)
            else:
                place += size
        if size == 1 and not has_changed or time.monotonic() > end:
            break
        size = max(1, size // 2)
    for operation in list(operations):
        fewer = [other for other in operations if other is not operation]
        if operation.end is None and not matters(operation, fewer) and fail(fewer):
            operations = fewer
    return operations


def weakened(operation):
    """Returns operations that allow all orders that this one allows, and more. A read is left out, and a write becomes one without an answer, which
    may be done at any time or never."""
    if operation.reads:
        return []
    if operation.kind == "access":
        return [operation if operation.end is None else changed(operation)]
    forced = [["forceDelete" if do in DELETIONS else "forceUpdate", name, None, value] for do, name, _, value in operation.given["items"]]
    if operation.end is not None or forced != operation.given["items"]:
        return [changed(operation, items=forced)]
    return [operation] if len(forced) == 1 else [changed(operation, items=[item]) for item in forced]


def changed(operation, **given):
    other = copy.copy(operation)
    other.end, other.answer, other.given = None, None, operation.given | given
    return other


def matters(operation, others):
    """Whether an answer shows the effect of a write without an answer."""
    if operation.kind == "access":
        return any(
            other.account == operation.given["participant"] and ("refused" in other.answer or "ACCESS_DENIED" in str(other.answer))
            for other in others if other.end is not None)
    shown = {seen for other in others if other.end is not None for seen in other.seen() + other.replaced()} | {
        (name, None) for other in others if other.end is not None for name in absent(other)}
    return any((name, value) in shown for _, name, _, value in operation.given["items"])


def absent(operation):
    """Returns the names of the records that do not exist according to an answer."""
    if operation.kind == "modify":
        return [
            item[1] for item, outcome in zip(operation.given["items"], operation.answer.get("items", []))
            if outcome.get("error") == "NOT_FOUND" or item[0] == "create" and "done" in outcome]
    if operation.kind == "changes":
        return [name for name, value in operation.answer.get("changed", []) if value is None]
    return [name for name, value in operation.answer.get("records", {}).items() if value is None]


def lines(operations, zero):
    """Returns operations as lines, with milliseconds since the history began."""
    rows = []
    for operation in sorted(operations, key=lambda operation: operation.begin):
        end = f"{(operation.end - zero) / 1e6:10.1f}" if operation.end is not None else " " * 9 + "…"
        time = f"{(operation.begin - zero) / 1e6:10.1f} –{end} ms"
        rows.append((time, operation.client, shown_given(operation), shown_answer(operation)))
    widths = [max((len(row[place]) for row in rows), default=0) for place in (1, 2)]
    return "\n".join(f"  {row[0]}  {row[1]:{widths[0]}}  {row[2]:{min(widths[1], 60)}}  → {row[3]}" for row in rows)


def describe(zone, names, part, count):
    """Returns a description of a failure, with the part of the history that has no order."""
    zero = min(operation.begin for operation in zone.operations)
    of = f"record {', '.join(names)} of " if names else ""
    last = fails(zone, part)
    states = [shown_state(state) for state in last.states] if last else []
    more = " or …" if len(states) > 4 else ""
    return (f"{of}zone {zone.name} (owner {zone.owner}): {len(part)} of {count} operations can't have been done one after the "
            f"other, each between its begin and its answer\n{lines(part, zero)}"
            + (f"\n  What is shown there was written by\n{lines(writers, zero)}" if (writers := writers_of(zone, part)) else "")
            + (f"\n  Before the last answer the records could be {' or '.join(states[:4])}{more}." if states else ""))


def writers_of(zone, part):
    """Returns the operations outside of a part of a history that wrote values which the part shows."""
    shown = {seen for operation in part for seen in operation.seen()}
    there = {(operation.client, operation.begin) for operation in part}
    return [
        operation for operation in zone.operations
        if operation.kind == "modify" and (operation.client, operation.begin) not in there
        and any((name, value) in shown for _, name, _, value in operation.given["items"])]


def shown_state(state):
    records = ", ".join(f"{name}: {shown_value(value)}" for name, value in state.records)
    access = ", ".join(f"{account} may {may}" for account, may in state.access)
    return "{" + records + "}" + (f" where {access}" if access else "")

"""A model of a zone that does one operation after the other: records and their values, tokens of changes, and permissions of participants.

A state is three tuples, so that states can be compared and kept in sets:

- `records`: names and values (`None`: deleted), with the last changed record at the end;
- `tokens`: for each token that will still be used, how many records at the end of `records` a fetch from it would report;
- `access`: accounts and the permission of each.
"""

from history import DELETIONS, NONE, READ_ONLY, READ_WRITE


class State(tuple):
    """`(records, tokens, access)`."""

    __slots__ = ()

    @property
    def records(self):
        return self[0]

    @property
    def tokens(self):
        return self[1]

    @property
    def access(self):
        return self[2]


def first_state(access):
    return State(((), (), tuple(sorted(access.items()))))


def level(state, operation, owner):
    """Returns the permission of an operation's account."""
    if operation.account == owner:
        return READ_WRITE
    for account, may in state[2]:
        if account == operation.account:
            return may
    return NONE


def judge(do, now, expected, may):
    """Returns the code with which an item of a `modify` fails, or `None` if it is done."""
    if do == "forceDelete" and now is None:
        return None
    if do in ("update", "delete") and now is None:
        return "NOT_FOUND"
    if may == READ_ONLY:
        return "ACCESS_DENIED"
    if do == "create" and now is not None:
        return "CONFLICT"
    if do in ("update", "delete") and now != expected:
        return "CONFLICT"
    return None


class Model:
    """The steps of a zone.

    - `owner`: the account that may do everything.
    - `tokens`: the tokens that an operation of the history uses. Others are not kept in states.
    """

    def __init__(self, owner, tokens=frozenset()):
        self.owner, self.tokens = owner, tokens

    def step(self, state, operation):
        """Returns the state after an operation with this answer: the same object if nothing changes, or `None` if the answer is not possible. An
        operation without an answer is possible if all of it can be done."""
        kind = operation.kind
        if kind == "access":
            return self.change_access(state, operation)
        may, answer = level(state, operation, self.owner), operation.answer
        if may == NONE:
            return state if answer is not None and answer.get("refused") == "ZONE_NOT_FOUND" else None
        if answer is not None and "refused" in answer:
            return None
        if kind == "modify":
            return self.modify(state, operation, may)
        if kind == "lookup":
            values = dict(state[0])
            return state if all(values.get(name) == value for name, value in answer["records"].items()) else None
        if kind == "query":
            above, wanted = operation.given.get("above"), answer["records"]
            count = 0
            for name, value in state[0]:
                if value is None or (above is not None and value <= above):
                    continue
                if wanted.get(name) != value:
                    return None
                count += 1
            return state if count == len(wanted) else None
        return self.changes(state, operation)

    def modify(self, state, operation, may):
        items, values = operation.given["items"], dict(state[0])
        failures = [judge(do, values.get(name), expected, may) for do, name, expected, _ in items]
        # If this is a part of a batch, the failing item may be in the other part.
        has_failed = any(failures) or operation.given.get("is_part", False) and operation.reads
        if operation.answer is None:
            if has_failed:
                return None
        else:
            for (_, name, _, _), failure, outcome in zip(items, failures, operation.answer["items"]):
                if not has_failed:
                    if "done" not in outcome:
                        return None
                    continue
                if outcome.get("error") != (failure or "ATOMIC_ERROR"):
                    return None
                if failure == "CONFLICT" and "current" in outcome and outcome["current"] != values.get(name):
                    return None
        if has_failed:
            return state
        return self.write(state, items, values)

    def write(self, state, items, values):
        records, tokens = state[0], state[1]
        for do, name, _, value in items:
            if do in DELETIONS:
                if values.get(name) is None:
                    continue
                value = None
            place = next((place for place, (other, _) in enumerate(records) if other == name), None)
            if place is None:
                tokens = tuple((token, count + 1) for token, count in tokens)
                records += ((name, value),)
            else:
                behind = len(records) - place
                tokens = tuple((token, count if count >= behind else count + 1) for token, count in tokens)
                records = records[:place] + records[place + 1:] + ((name, value),)
        return state if records is state[0] else State((records, tokens, state[2]))

    def changes(self, state, operation):
        records, tokens, given, answer = state[0], dict(state[1]), operation.given, operation.answer
        since, limit, changed = given.get("since"), given.get("limit"), answer["changed"]
        if since is None:
            # A fetch without a token does not report deletions.
            told, items = (lambda value: value is not None), records
        elif since in tokens:
            told, items = (lambda value: True), records[len(records) - tokens[since]:]
        else:
            # The token is from an operation that is not in this history, so the beginning of the changes is unknown.
            values = dict(records)
            return state if all(name in values and values[name] == value for name, value in changed) else None
        page, left, more = [], 0, False
        for place, (name, value) in enumerate(items):
            if limit is not None and len(page) == limit:
                left, more = len(items) - place, True
                break
            if told(value):
                page.append([name, value])
        wanted = changed if limit is not None else sorted(changed, key=lambda change: change[0])
        if (page if limit is not None else sorted(page, key=lambda change: change[0])) != wanted or more != answer["more"]:
            return None
        token = answer["token"]
        if token in tokens:
            return state if tokens[token] == left else None
        if token not in self.tokens:
            return state
        return State((records, tuple(sorted(state[1] + ((token, left),))), state[2]))

    def change_access(self, state, operation):
        participant, may = operation.given["participant"], operation.given["level"]
        if dict(state[2]).get(participant, NONE) == may:
            return state
        others = [entry for entry in state[2] if entry[0] != participant]
        return State((state[0], state[1], tuple(sorted(others + [(participant, may)]))))

    @staticmethod
    def forget(state, token):
        """Removes a token that no later operation uses."""
        return State((state[0], tuple(entry for entry in state[1] if entry[0] != token), state[2]))

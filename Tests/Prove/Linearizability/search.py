"""Searches for an order in which all operations of a history can have been done one after the other, each between its beginning and its answer.

The search is Wing and Gong's with Lowe's memoisation, in the form that Lowe calls just in time (Testing for linearizability, 2017). It goes through
beginnings and answers in the order of time, and keeps the set of all configurations that are possible so far. A configuration is a state, together
with the running operations that are already done in it.

At an answer, only configurations remain in which the operation is done. To get there, other running operations may be done before it. If no
configuration remains, the history up to this answer has no order.

An operation without an answer keeps running for ever. Of two configurations with the same state, the one that has used fewer of these is kept,
because it can do all that the other can.
"""

from model import Model, first_state


class Undecided(Exception):
    """There are too many configurations."""


class Failure:
    """The operation whose answer fits no order, and the possible states before it."""

    def __init__(self, operation, states):
        self.operation, self.states = operation, states


class Configurations:
    """A set of configurations, without those that another one makes unnecessary."""

    def __init__(self, found=()):
        # For each state and set of answered operations that are done: the sets of unanswered operations that are done.
        self.known, self.count = {}, 0
        for state, done, used in found:
            self.add(state, done, used)

    def add(self, state, done, used):
        """Adds a configuration, and returns whether it was new and necessary."""
        sets = self.known.get((state, done))
        if sets is None:
            self.known[state, done] = [used]
        else:
            if any(other & used == other for other in sets):
                return False
            self.known[state, done] = [other for other in sets if other & used != used] + [used]
        self.count += 1
        return True

    def __iter__(self):
        for (state, done), sets in self.known.items():
            for used in sets:
                yield state, done, used

    def __bool__(self):
        return bool(self.known)


class Search:
    """The possible configurations up to a moment, and the running operations."""

    def __init__(self, owner, access, tokens, most):
        self.model, self.most = Model(owner, tokens), most
        self.configurations = Configurations([(first_state(access), 0, 0)])
        self.pending, self.free, self.bits = {}, [], 0

    def begin(self, operation):
        if self.free:
            bit = self.free.pop()
        else:
            bit = 1 << self.bits
            self.bits += 1
        self.pending[operation] = bit

    def answer(self, operation):
        """Advances to the answer of an operation, and returns whether it is possible."""
        found = self.just_in_time(operation)
        if found:
            self.free.append(self.pending.pop(operation))
            self.configurations = found
        return bool(found)

    def forget(self, token):
        self.configurations = Configurations((self.model.forget(state, token), done, used) for state, done, used in self.configurations)

    def just_in_time(self, operation):
        step, wanted = self.model.step, self.pending[operation]
        others = [(other, bit) for other, bit in self.pending.items() if bit != wanted]
        readers = [(other, bit) for other, bit in others if other.reads]
        writers = [(other, bit) for other, bit in others if other.end is not None]
        unanswered = [(other, bit, shape(other)) for other, bit in others if other.end is None]
        found, seen, waiting = Configurations(), Configurations(), list(self.configurations)
        while waiting:
            state, done, used = waiting.pop()
            if done & wanted:
                found.add(state, done ^ wanted, used)
                continue
            # A read whose answer fits is done at once, because waiting can't help.
            for other, bit in readers:
                if not done & bit and step(state, other) is state:
                    done |= bit
            if not seen.add(state, done, used):
                continue
            if seen.count > self.most:
                raise Undecided()
            after = step(state, operation)
            if after is not None:
                found.add(after, done, used)
                if after is state and operation.reads:
                    continue
            for other, bit in writers:
                if not done & bit:
                    after = step(state, other)
                    if after is not None:
                        waiting.append((after, done | bit, used))
            tried = set()
            for other, bit, what in unanswered:
                # Of operations with the same effect, one is enough.
                if used & bit or what in tried:
                    continue
                tried.add(what)
                after = step(state, other)
                # A write without an answer is left undone where it would change nothing.
                if after is not None and after is not state:
                    waiting.append((after, done, used | bit))
        return found


def shape(operation):
    """Returns the effect of an operation and its account, for comparison."""
    given = operation.given
    if operation.kind == "access":
        return given["participant"], given["level"]
    return operation.account, tuple(map(tuple, given["items"]))


def find_failure(owner, access, operations, most=100_000):
    """Returns the first answer that fits no order, or `None` where there is an order of all operations.

    - `most`: the number of configurations in one step beyond which ``Undecided`` is raised.
    """
    uses = {}
    for operation in operations:
        since = operation.given.get("since") if operation.kind == "changes" else None
        if since is not None and (since not in uses or uses[since].end < operation.end):
            uses[since] = operation
    last = {}
    for token, operation in uses.items():
        last.setdefault(operation, []).append(token)
    # If a beginning and an answer have the same time, the beginning is first, which allows more orders.
    events = sorted(
        [(operation.begin, 0, place, operation) for place, operation in enumerate(operations)]
        + [(operation.end, 1, place, operation) for place, operation in enumerate(operations) if operation.end is not None],
        key=lambda event: event[:3])
    search = Search(owner, access, frozenset(uses), most)
    for _, is_answer, _, operation in events:
        if not is_answer:
            search.begin(operation)
        elif search.answer(operation):
            for token in last.get(operation, ()):
                search.forget(token)
        else:
            return Failure(operation, sorted({state for state, _, _ in search.configurations}, key=repr))
    return None

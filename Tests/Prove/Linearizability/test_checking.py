#!/usr/bin/env python3
"""Tests of the checker: histories made by hand, and random ones against a checker that tries all orders."""

import itertools
import pathlib
import random
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import checking  # noqa: E402
from history import NONE, READ_ONLY, READ_WRITE, Operation, Zone  # noqa: E402
from model import Model, first_state  # noqa: E402


def done(count=1):
    return {"items": [{"done": True}] * count}


def write(name, value, begin, end, do="forceUpdate", expected=None, answer=None, account="anna"):
    answer = None if end is None else answer or done()
    return Operation(f"{account}-{begin}", account, "modify", {"items": [[do, name, expected, value]]}, begin, end, answer)


def failed(name, value, begin, end, do, code, expected=None, account="anna", **more):
    return write(name, value, begin, end, do, expected, {"items": [{"error": code, **more}]}, account)


def batch(begin, end, *items, answer=None):
    answer = None if end is None else answer or done(len(items))
    return Operation("anna-b", "anna", "modify", {"items": [list(item) for item in items]}, begin, end, answer)


def look(begin, end, account="anna", **records):
    return Operation(f"{account}-{begin}", account, "lookup", {"records": list(records)}, begin, end, {"records": records})


def query(begin, end, above=None, **records):
    return Operation("anna-q", "anna", "query", {"above": above}, begin, end, {"records": records})


def changes(begin, end, since, token, *changed, limit=None, more=False):
    return Operation("anna-c", "anna", "changes", {"since": since, "limit": limit}, begin, end,
                     {"changed": [list(change) for change in changed], "token": token, "more": more})


def let(participant, level, begin, end):
    return Operation("anna-a", "anna", "access", {"participant": participant, "level": level}, begin, end, None if end is None else {})


def refused(begin, end, account="ben", name="x"):
    return Operation(f"{account}-{begin}", account, "lookup", {"records": [name]}, begin, end, {"refused": "ZONE_NOT_FOUND"})


class HandMade(unittest.TestCase):
    def verdict(self, *operations, **access):
        return checking.check(Zone("z", "anna", access, operations).numbered())

    def passes(self, *operations, **access):
        verdict = self.verdict(*operations, **access)
        self.assertFalse(verdict.is_undecided)
        self.assertIsNone(verdict.problem, verdict.problem)

    def fails(self, *operations, says="", **access):
        verdict = self.verdict(*operations, **access)
        self.assertIsNotNone(verdict.problem)
        self.assertIn(says, verdict.problem)
        return verdict.problem

    def test_a_read_after_a_write_sees_it(self):
        self.passes(write("x", 1, 0, 1), look(2, 3, x=1))
        self.fails(write("x", 1, 0, 1), look(2, 3, x=None))

    def test_a_read_beside_a_write_sees_the_old_or_the_new(self):
        for value in (1, 2):
            self.passes(write("x", 1, 0, 1), write("x", 2, 2, 9), look(3, 4, x=value))

    def test_two_reads_beside_a_write_see_the_new_first_and_the_old_never_again(self):
        self.passes(write("x", 1, 0, 1), write("x", 2, 2, 9), look(3, 4, x=1), look(5, 6, x=2))
        self.fails(write("x", 1, 0, 1), write("x", 2, 2, 9), look(3, 4, x=2), look(5, 6, x=1), says="4 of 4")

    def test_a_stale_read_needs_three_operations(self):
        others = [write("y", number, number * 10, number * 10 + 5) for number in range(3, 20)]
        problem = self.fails(write("x", 1, 0, 1), write("x", 2, 2, 3), look(300, 301, x=1), *others, says="record x of zone z")
        self.assertIn("3 of 3 operations", problem)

    def test_a_write_without_an_answer_may_be_done_at_any_time_or_never(self):
        lost = write("x", 2, 2, None)
        self.passes(write("x", 1, 0, 1), lost, look(50, 51, x=1))
        self.passes(write("x", 1, 0, 1), lost, look(50, 51, x=1), look(60, 61, x=2))
        self.fails(write("x", 1, 0, 1), lost, look(50, 51, x=2), look(60, 61, x=1))

    def test_a_write_without_an_answer_that_nobody_has_seen_may_be_the_cause_of_a_conflict(self):
        self.passes(write("x", 1, 0, 1, "create"), write("x", 2, 2, None), failed("x", 3, 5, 6, "update", "CONFLICT", 1))
        self.fails(write("x", 1, 0, 1, "create"), failed("x", 3, 5, 6, "update", "CONFLICT", 1))

    def test_a_deletion_without_an_answer_may_be_done(self):
        self.passes(write("x", 1, 0, 1), write("x", None, 2, None, "forceDelete"), look(5, 6, x=1), look(7, 8, x=None))
        self.fails(write("x", 1, 0, 1), write("x", None, 2, None, "forceDelete"), look(5, 6, x=None), look(7, 8, x=1))

    def test_of_two_deletions_without_an_answer_the_one_is_used_that_is_not_needed_later(self):
        for first, second in [(2, 3), (3, 2)]:
            lost = [write("x", None, first, None, "forceDelete"), write("x", None, second, None, "delete", 1)]
            self.passes(write("x", 1, 0, 1), *lost, look(5, 6, x=None), write("x", 2, 7, 8), look(9, 10, x=None))
            gone = [look(5, 6, x=None), write("x", 2, 7, 8), look(9, 10, x=None), write("x", 3, 11, 12), look(13, 14, x=None)]
            self.fails(write("x", 1, 0, 1), *lost, *gone)

    def test_nothing_is_done_before_it_began(self):
        self.fails(look(0, 1, x=1), write("x", 1, 2, 3), says="nobody had written it")

    def test_of_two_updates_with_one_tag_one_is_done(self):
        first, second = write("x", 2, 2, 9, "update", 1), write("x", 3, 3, 8, "update", 1)
        self.fails(write("x", 1, 0, 1), first, second, says="3 of 3")
        conflict = failed("x", 3, 3, 8, "update", "CONFLICT", 1, current=2)
        self.passes(write("x", 1, 0, 1), first, conflict)
        self.fails(write("x", 1, 0, 1), first, failed("x", 3, 3, 8, "update", "CONFLICT", 1, current=1))

    def test_a_request_that_is_done_again_is_found_with_its_answer(self):
        twice = failed("x", 1, 0, 9, "create", "CONFLICT")
        twice.repeated = True
        problem = self.fails(twice, failed("x", 2, 4, 5, "create", "CONFLICT", current=1))
        self.assertIn("was written by", problem)
        self.assertIn("create x = 1, sent again until answered", problem)

    def test_codes_fit_what_is_there(self):
        created = write("x", 2, 2, 3, "create")
        self.passes(failed("x", 1, 0, 1, "update", "NOT_FOUND", 7), created, failed("x", 3, 4, 5, "create", "CONFLICT", current=2))
        self.fails(write("x", 2, 2, 3), failed("x", 1, 4, 5, "update", "NOT_FOUND", 2))
        self.fails(write("x", 2, 2, 3), write("x", 3, 4, 5, "create"))

    def test_a_deletion_of_nothing_beside_a_creation_may_be_before_or_after(self):
        nothing = write("x", None, 0, 9, "forceDelete")
        self.passes(nothing, write("x", 1, 1, 2, "create"), look(10, 11, x=1))
        self.passes(nothing, write("x", 1, 1, 2, "create"), look(10, 11, x=None))

    def test_a_batch_is_seen_whole(self):
        both = batch(2, 9, ("forceUpdate", "x", None, 11), ("forceUpdate", "y", None, 12))
        before = [write("x", 1, 0, 1), write("y", 2, 0, 1)]
        self.passes(*before, both, look(3, 4, x=1, y=2), look(5, 6, x=11, y=12))
        self.fails(*before, both, look(3, 4, x=11, y=2), says="zone z")
        self.fails(*before, both, look(3, 4, x=11), look(5, 6, y=2))
        lost = batch(2, None, ("forceUpdate", "x", None, 11), ("forceUpdate", "y", None, 12))
        self.fails(*before, lost, look(30, 40, x=11), look(50, 60, y=2))

    def test_a_failed_batch_has_no_effect(self):
        answer = {"items": [{"error": "ATOMIC_ERROR"}, {"error": "CONFLICT", "current": 2}]}
        both = batch(2, 5, ("forceUpdate", "x", None, 11), ("create", "y", None, 12), answer=answer)
        self.passes(write("y", 2, 0, 1), both, look(6, 7, x=None, y=2))
        self.fails(write("y", 2, 0, 1), both, look(6, 7, x=11, y=2))
        self.fails(both, look(6, 7, x=None, y=None))
        innocent = {"items": [{"error": "ATOMIC_ERROR"}, {"error": "ATOMIC_ERROR"}]}
        self.fails(batch(2, 5, ("forceUpdate", "x", None, 11), ("forceUpdate", "y", None, 12), answer=innocent))

    def test_queries_find_what_is_there(self):
        self.passes(write("x", 1, 0, 1), write("y", 5, 0, 1), query(2, 3, x=1, y=5), query(4, 5, above=3, y=5))
        self.fails(write("x", 1, 0, 1), write("y", 5, 0, 1), query(2, 3, x=1))
        self.fails(write("x", 1, 0, 1), query(2, 3, above=1, x=1))

    def test_changes_have_what_was_acknowledged_before_they_began(self):
        self.passes(write("x", 1, 0, 1), changes(2, 3, None, "t1", ("x", 1)), write("y", 2, 4, 5), changes(6, 7, "t1", "t2", ("y", 2)),
                    changes(8, 9, "t2", "t2"))
        self.fails(write("x", 1, 0, 1), changes(2, 3, None, "t1", ("x", 1)), write("y", 2, 4, 5), changes(6, 7, "t1", "t1"))
        self.fails(write("x", 1, 0, 1), changes(2, 3, None, "t1", ("x", 1)), changes(6, 7, "t1", "t2", ("x", 1)))

    def test_a_token_tells_a_deletion_and_the_beginning_does_not(self):
        start = [write("x", 1, 0, 1), changes(2, 3, None, "t1", ("x", 1)), write("x", None, 4, 5, "forceDelete")]
        self.passes(*start, changes(6, 7, "t1", "t2", ("x", None)), changes(8, 9, None, "t2"))
        self.fails(*start, changes(6, 7, "t1", "t2"))
        self.fails(*start, changes(6, 7, None, "t2", ("x", None)))

    def test_a_change_beside_a_fetch_is_told_by_it_or_by_the_next(self):
        for first, second in [([("x", 1)], []), ([], [("x", 1)])]:
            self.passes(write("x", 1, 0, 9), changes(1, 2, None, "t1", *first), changes(10, 11, "t1", "t2", *second))
        self.fails(write("x", 1, 0, 9), changes(1, 2, None, "t1"), changes(10, 11, "t1", "t2"), says="3 of 3")
        self.fails(write("x", 1, 0, 9), changes(1, 2, None, "t1", ("x", 1)), changes(10, 11, "t1", "t2", ("x", 1)))

    def test_pages_are_in_the_order_of_changes(self):
        writes = [write("x", 1, 0, 1), write("y", 2, 2, 3), write("z", 3, 4, 5), write("x", 4, 6, 7)]
        first = changes(8, 9, None, "t1", ("y", 2), ("z", 3), limit=2, more=True)
        self.passes(*writes, first, changes(10, 11, "t1", "t2", ("x", 4), limit=2))
        self.passes(*writes, first, write("y", 5, 10, 11), changes(12, 13, "t1", "t2", ("x", 4), ("y", 5), limit=2))
        self.fails(*writes, changes(8, 9, None, "t1", ("x", 4), ("y", 2), limit=2, more=True))
        self.fails(*writes, first, changes(10, 11, "t1", "t2", limit=2))
        self.fails(*writes, changes(8, 9, None, "t1", ("y", 2), ("z", 3), limit=2, more=False))

    def test_a_record_that_changes_twice_is_told_once(self):
        start = [write("y", 1, 0, 1), write("x", 2, 2, 3), changes(4, 5, None, "t1", ("x", 2), ("y", 1))]
        twice = [write("x", 3, 6, 7), write("x", 4, 8, 9)]
        self.passes(*start, *twice, changes(10, 11, "t1", "t2", ("x", 4)))
        self.fails(*start, *twice, changes(10, 11, "t1", "t2", ("x", 4), ("y", 1)))

    def test_one_token_stands_for_one_moment(self):
        again = [changes(0, 1, None, "t1"), write("x", 1, 2, 3), changes(4, 5, None, "t1", ("x", 1))]
        self.fails(*again, changes(6, 7, "t1", "t2", ("x", 1)))
        self.fails(changes(0, 1, None, "t1"), write("x", 1, 2, 3), changes(4, 5, None, "t1", ("x", 1)), changes(6, 7, "t1", "t2"))

    def test_no_write_counts_after_permission_was_taken(self):
        start = [write("x", 1, 0, 1)]
        self.passes(*start, let("ben", READ_ONLY, 2, 9), write("x", 2, 3, 8, account="ben"), ben=READ_WRITE)
        self.fails(*start, let("ben", READ_ONLY, 2, 3), write("x", 2, 4, 5, account="ben"), ben=READ_WRITE, says="2 of 3")
        denied = failed("x", 2, 4, 5, "forceUpdate", "ACCESS_DENIED", account="ben")
        self.passes(*start, let("ben", READ_ONLY, 2, 3), denied, ben=READ_WRITE)
        self.fails(*start, denied, ben=READ_WRITE)

    def test_no_read_shows_what_was_made_after_access_was_taken(self):
        start = [write("x", 1, 0, 1), let("ben", NONE, 2, 9), write("x", 2, 10, 11)]
        self.passes(*start, look(3, 20, "ben", x=1), ben=READ_ONLY)
        self.fails(*start, look(3, 20, "ben", x=2), ben=READ_ONLY)
        self.passes(*start, refused(12, 13), ben=READ_ONLY)
        self.fails(*start, look(12, 13, "ben", x=1), ben=READ_ONLY)
        self.fails(write("x", 1, 0, 1), refused(12, 13), ben=READ_ONLY)

    def test_a_change_of_permission_without_an_answer_may_be_done(self):
        lost = let("ben", NONE, 2, None)
        self.passes(write("x", 1, 0, 1), lost, look(5, 6, "ben", x=1), refused(7, 8), ben=READ_ONLY)
        self.fails(write("x", 1, 0, 1), lost, refused(5, 6), look(7, 8, "ben", x=1), ben=READ_ONLY)

    def test_a_write_of_a_participant_without_an_answer_is_not_done_after_permission_was_taken(self):
        lost = write("x", 2, 2, None, account="ben")
        start = [write("x", 1, 0, 1), lost, let("ben", READ_ONLY, 3, 9)]
        self.passes(*start, look(10, 11, x=2), ben=READ_WRITE)
        self.passes(*start, look(10, 11, x=1), look(12, 13, x=1), ben=READ_WRITE)
        self.fails(*start, look(10, 11, x=1), look(12, 13, x=2), ben=READ_WRITE)

    def test_a_tag_stands_for_one_value(self):
        answer = {"items": [{"done": True, "tag": "a"}]}
        tagged = [write("x", 1, 0, 1, answer=answer), write("x", 2, 2, 3, answer=answer)]
        self.fails(*tagged, says="mixed up")
        read = look(4, 5, x=1)
        read.answer["tags"] = {"x": "b"}
        self.fails(tagged[0], read, says="mixed up")

    def test_many_writes_without_an_answer_can_be_checked(self):
        lost = [write("x", number, number, None) for number in range(100, 160)]
        self.passes(write("x", 1, 0, 1), *lost, look(1000, 1001, x=1), look(1002, 1003, x=120))
        self.fails(write("x", 1, 0, 1), *lost, look(1000, 1001, x=120), look(1002, 1003, x=1))

    def test_a_history_that_was_written_is_read_as_it_was(self):
        operations = [write("x", 1, 0, 1), write("x", 2, 2, None), look(3, 4, x=None), changes(5, 6, None, "t")]
        zone = Zone("z", "anna", {"ben": READ_ONLY}, operations, 7).numbered()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "z.jsonl")
            zone.write(path)
            again = Zone.read(path)
            self.assertEqual([vars(operation) for operation in again.operations], [vars(operation) for operation in zone.operations])
            self.assertEqual((again.name, again.owner, again.access, again.seed), ("z", "anna", {"ben": READ_ONLY}, 7))


# Random histories


def any_order(zone):
    """Whether there is an order. Tries all of them."""
    model = Model(zone.owner, frozenset(operation.given["since"] for operation in zone.operations if operation.given.get("since")))

    def go_on(state, left):
        must = [operation for operation in left if operation.end is not None]
        if not must:
            return True
        first_end = min(operation.end for operation in must)
        for operation in left:
            if operation.begin > first_end:
                continue
            after = model.step(state, operation)
            if after is not None and go_on(after, [other for other in left if other is not operation]):
                return True
        return False

    return go_on(first_state(zone.access), zone.operations)


class RandomHistory:
    """A history of a zone that does one operation after the other, each between its beginning and its answer. Sometimes a fault then changes it."""

    def __init__(self, seed):
        self.drawn = random.Random(seed)
        self.model, self.values, self.tokens = Model("anna", frozenset(f"t{number}" for number in range(99))), itertools.count(1), []
        self.state, self.seen = first_state({"ben": READ_WRITE}), {}

    def make(self):
        operations = []
        for place in range(self.drawn.randint(3, 7)):
            moment = 10 * place + 5
            operation = self.answered(place, moment - self.drawn.randint(1, 25), moment + self.drawn.randint(0, 25))
            operations.append(operation)
        if self.drawn.random() < 0.7:
            self.alter(operations)
        return Zone("z", "anna", {"ben": READ_WRITE}, operations).numbered()

    def answered(self, place, begin, end):
        drawn, account = self.drawn, self.drawn.choice(["anna", "anna", "ben"])
        kind = drawn.choice(["modify", "modify", "modify", "lookup", "lookup", "query", "changes", "access"])
        operation = Operation(f"c{place}", account, kind, {}, begin, end)
        if kind == "access":
            operation.account, operation.answer = "anna", {}
            operation.given = {"participant": "ben", "level": drawn.choice([NONE, READ_ONLY, READ_WRITE])}
            self.state = self.model.step(self.state, operation)
        elif kind == "modify":
            names = drawn.sample(["x", "y"], drawn.choice([1, 1, 2]))
            operation.given = {"items": [self.item(name) for name in names]}
            operation.answer, after = self.outcome(operation)
            if drawn.random() < 0.3:
                operation.end = operation.answer = None
                after = drawn.choice([after, self.state])
            self.state = after
        else:
            self.read(operation)
        return operation

    def item(self, name):
        do = self.drawn.choice(["create", "update", "forceUpdate", "delete", "forceDelete"])
        expected = self.seen.get(name, -1) if do in ("update", "delete") else None
        value = None if do in ("delete", "forceDelete") else next(self.values)
        if value:
            self.seen[name] = value if self.drawn.random() < 0.7 else self.seen.get(name, -1)
        return [do, name, expected, value]

    def outcome(self, operation):
        """Returns the answer that fits, by trying all possible answers."""
        codes = [{"done": True}] + [{"error": code} for code in ("CONFLICT", "NOT_FOUND", "ACCESS_DENIED", "ATOMIC_ERROR")]
        answers = [{"items": list(items)} for items in itertools.product(codes, repeat=len(operation.given["items"]))]
        for answer in [{"refused": "ZONE_NOT_FOUND"}] + answers:
            operation.answer = answer
            after = self.model.step(self.state, operation)
            if after is not None:
                return answer, after
        raise AssertionError(operation.given)

    def read(self, operation):
        drawn, values = self.drawn, {name: value for name, value in self.state.records if value is not None}
        given = {"lookup": {"records": ["x", "y"]}, "query": {"above": None}, "changes": {"since": None, "limit": None}}
        operation.given = given[operation.kind]
        operation.answer = {"refused": "ZONE_NOT_FOUND"}
        if self.model.step(self.state, operation) is not None:
            return
        if operation.kind == "lookup":
            operation.answer = {"records": {name: values.get(name) for name in ("x", "y")}}
        elif operation.kind == "query":
            operation.answer = {"records": values}
        else:
            operation.account = "anna"
            since = drawn.choice([None, *self.tokens])
            limit = drawn.choice([None, None, 1])
            operation.given = {"since": since, "limit": limit}
            token = f"t{len(self.tokens)}"
            for count in range(3):
                for told in itertools.permutations([*self.state.records], count):
                    for more in (False, True):
                        operation.answer = {"changed": [list(change) for change in told], "token": token, "more": more}
                        after = self.model.step(self.state, operation)
                        if after is not None:
                            self.tokens.append(token)
                            self.state = after
                            return
            raise AssertionError(operation.given)

    def alter(self, operations):
        operation = self.drawn.choice(operations)
        answer = operation.answer
        if not answer or "refused" in answer:
            operation.begin, operation.end = operation.begin - 30, operation.end
            return
        if operation.kind in ("lookup", "query"):
            name = self.drawn.choice(["x", "y"])
            answer["records"][name] = self.drawn.randint(1, 6)
        elif operation.kind == "modify":
            answer["items"][0] = self.drawn.choice([{"done": True}, {"error": "CONFLICT"}, {"error": "NOT_FOUND"}])
            if len(answer["items"]) == 2 and answer["items"][0].get("done"):
                answer["items"][1] = {"done": True}
        elif operation.kind == "changes" and answer["changed"]:
            answer["changed"].pop()


class RandomHistories(unittest.TestCase):
    def test_the_search_and_all_orders_agree(self):
        orders = [0, 0]
        for seed in range(3000):
            zone = RandomHistory(seed).make()
            wanted = any_order(zone)
            orders[wanted] += 1
            self.assertEqual(checking.fails(zone, zone.operations) is None, wanted, f"seed {seed}\n{checking.lines(zone.operations, 0)}")
            if not wanted:
                part = checking.smallest(zone, zone.operations, 10)
                self.assertFalse(any_order(Zone("z", "anna", zone.access, part)), f"seed {seed}: the smallest part has an order")
        # A test in which one of the two results is rare would show little.
        self.assertGreater(min(orders), 400, orders)

    def test_what_is_wrong_with_one_record_is_wrong(self):
        for seed in range(2000):
            zone = RandomHistory(seed).make()
            if any_order(zone):
                verdict = checking.check(zone)
                self.assertIsNone(verdict.problem, f"seed {seed}: {verdict.problem}\n{checking.lines(zone.operations, 0)}")


if __name__ == "__main__":
    unittest.main()

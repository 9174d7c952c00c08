"""Operations on a zone as clients saw them, with the times between which they were done, and histories as files of JSON lines.

Each write has a value of its own, so that a read identifies the write that it saw. The requests and answers of operations:

- `modify`: `items`, `[do, record, expected, value]` each, where `expected` is the value whose change tag was sent. Answer: `items`,
  `{"done": true, "tag": …}` or `{"error": code, "current": value}` each.
- `lookup`: `records`. Answer: `records`, the value of each, `null` where there is none.
- `query`: records with values greater than `above`. Answer: `records`, the records that were found.
- `changes`: `since`, a token, and `limit`. Answer: `changed`, `[record, value]` each, `null` for a deletion; `token`; `more`.
- `access`: `participant`, `level`: `none`, `readOnly` or `readWrite`. Answer: `{}`.

`{"refused": code}` is the answer to a request that was refused as a whole. A write without an answer may be done at any time after it began, or never.
`tags` of an answer has the change tags of its records. The answer to a write that was sent more than once (`repeated`) says whether the write was
done, but not what the records are now.
"""

import dataclasses
import json

NONE, READ_ONLY, READ_WRITE = "none", "readOnly", "readWrite"
DELETIONS = ("delete", "forceDelete")


@dataclasses.dataclass(eq=False)
class Operation:
    """An operation. Its times are nanoseconds of one clock, and `end` is `None` if there was no answer."""

    client: str
    account: str
    kind: str
    given: dict
    begin: int
    end: int | None = None
    answer: dict | None = None
    repeated: bool = False
    number: int = 0

    @property
    def refused(self):
        return self.answer.get("refused") if self.answer else None

    @property
    def reads(self):
        """Whether the answer shows that the operation has changed nothing."""
        if self.kind == "access" or self.answer is None:
            return False
        return self.kind != "modify" or "refused" in self.answer or any("error" in outcome for outcome in self.answer["items"])

    @property
    def written(self):
        """The values that a `modify` writes."""
        return [value for do, _, _, value in self.given["items"] if do not in DELETIONS] if self.kind == "modify" else []

    @property
    def deletes(self):
        return self.kind == "modify" and any(do in DELETIONS for do, *_ in self.given["items"])

    def seen(self):
        """Returns the records and values that the answer shows, without deletions."""
        answer = self.answer or {}
        if self.kind in ("lookup", "query"):
            return [(name, value) for name, value in answer.get("records", {}).items() if value is not None]
        if self.kind == "changes":
            return [(name, value) for name, value in answer.get("changed", []) if value is not None]
        if self.kind == "modify":
            return [(item[1], outcome["current"]) for item, outcome in zip(self.given["items"], answer.get("items", []))
                    if outcome.get("current") is not None]
        return []

    def replaced(self):
        """Returns the records that were changed by a tag, each with the value that the tag stood for."""
        if self.kind != "modify" or self.end is None or self.reads:
            return []
        return [(name, expected) for _, name, expected, _ in self.given["items"] if expected is not None]

    def tags(self):
        """Returns the change tags in the answer, each with the record and the value that it stands for."""
        answer = self.answer or {}
        found = [(name, value, answer["tags"][name]) for name, value in self.seen() if name in answer.get("tags", {})]
        if self.kind == "modify":
            found += [(name, value, outcome["tag"]) for (_, name, _, value), outcome in zip(self.given["items"], answer.get("items", []))
                      if "tag" in outcome]
        return found


class Zone:
    """The history of a zone: its owner, its records, the participants' permissions at the beginning, and the operations."""

    def __init__(self, name, owner, access=None, operations=(), seed=None):
        self.name, self.owner, self.access, self.operations, self.seed = name, owner, dict(access or {}), list(operations), seed

    def numbered(self):
        """Sorts the operations by their beginning, numbers them, and returns the zone."""
        self.operations.sort(key=lambda operation: operation.begin)
        for number, operation in enumerate(self.operations, 1):
            operation.number = number
        return self

    def write(self, path):
        with open(path, "w") as file:
            file.write(json.dumps({"zone": self.name, "owner": self.owner, "access": self.access, "seed": self.seed}) + "\n")
            for operation in self.operations:
                row = dataclasses.asdict(operation)
                given = {name: value for name, value in row.items() if value is not None and value is not False}
                file.write(json.dumps(given) + "\n")

    @classmethod
    def read(cls, path):
        with open(path) as file:
            head = json.loads(file.readline())
            operations = [Operation(**json.loads(line)) for line in file if line.strip()]
        return cls(head["zone"], head["owner"], head["access"], operations, head.get("seed"))


def shown_value(value):
    return "deleted" if value is None else str(value)


def shown_given(operation):
    """Returns a request in one line."""
    given = operation.given
    if operation.kind == "modify":
        texts = []
        for do, name, expected, value in given["items"]:
            tag = f" (if {expected})" if expected is not None else ""
            texts.append(f"{do} {name}{tag}" + ("" if do in DELETIONS else f" = {value}"))
        return " and ".join(texts) + (", sent again until answered" if operation.repeated else "")
    if operation.kind == "lookup":
        return "look up " + ", ".join(given["records"])
    if operation.kind == "query":
        return f"query values above {given['above']}" if given.get("above") is not None else "query"
    if operation.kind == "changes":
        since = f"since …{given['since'][-8:]}" if given.get("since") else "from the beginning"
        return f"changes {since}" + (f", at most {given['limit']}" if given.get("limit") else "")
    return f"let {given['participant']} {given['level']}"


def shown_answer(operation):
    """Returns an answer in one line."""
    answer = operation.answer
    if answer is None:
        return "no answer"
    if "refused" in answer:
        return answer["refused"]
    if operation.kind == "modify":
        return ", ".join(
            "done" if outcome.get("done") else outcome["error"] + (f" (is {outcome['current']})" if "current" in outcome else "")
            for outcome in answer["items"])
    if operation.kind in ("lookup", "query"):
        records = answer["records"].items()
        return ", ".join(f"{name} = {value}" if value is not None else f"no {name}" for name, value in records) or "nothing"
    if operation.kind == "changes":
        changed = ", ".join(f"{name} = {value}" if value is not None else f"{name} deleted" for name, value in answer["changed"])
        return (changed or "nothing") + f"; token …{answer['token'][-8:]}" + (", more" if answer["more"] else "")
    return "done"

"""The requests of schemathesis: JSON with every content type, and often names of existing zones and records, so that not all answers are errors."""

import json
import random

import schemathesis

import patience

patience.install()

ZONES = ["schemathesis", "_defaultZone"]
RECORDS = ["first", "second", "third", "cloudkit.zoneshare"]
TYPES = ["Place", "Visit"]
FIELDS = ["name", "rank", "moment"]


@schemathesis.serializer("text/plain")
def text_serializer(context, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def named(value, drawn):
    """Sometimes replaces an invented name by an existing one."""
    if isinstance(value, list):
        return [named(one, drawn) for one in value]
    if not isinstance(value, dict):
        return value
    known = {"zoneName": ZONES, "recordName": RECORDS, "recordType": TYPES, "fieldName": FIELDS}
    made = {}
    for key, inner in value.items():
        if key in known and isinstance(inner, str) and drawn.random() < 0.8:
            made[key] = drawn.choice(known[key])
        else:
            made[key] = named(inner, drawn)
    return made


@schemathesis.hook
def map_body(context, body):
    # The choice depends on the invented name, so that a seed gives the same cases.
    return named(body, random.Random(repr(body))) if isinstance(body, (dict, list)) else body

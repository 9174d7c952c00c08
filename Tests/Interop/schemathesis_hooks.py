"""What schemathesis sends: JSON under every name, and often names of zones and records that are there, so that more than errors is answered."""

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
    """Now and then what is there in the place of what was made up."""
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
    # What is drawn depends on what was made up, so that a seed gives the same cases.
    return named(body, random.Random(repr(body))) if isinstance(body, (dict, list)) else body

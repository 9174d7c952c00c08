"""Fills a cloud's database with rows as the server writes them, by COPY: accounts with sessions, zones, and records with their digests.

The rows are copies of those that the server has written for one account, with other owners, names and numbers. A digest is made anew for
each, as `RowDigest.swift` makes it; before anything is filled, the digests of the server's own rows are made and compared.
"""

import base64
import ctypes
import ctypes.util
import hashlib
import hmac
import itertools
import json
import os
import struct
import subprocess
import time

from runner.measuring import Failure

DAY = 86_400_000_000
# Records of other rows than these would take more room than the benchmark is to have.
FIELDS_MAX = 500


class Digest128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def load_digest():
    name = ctypes.util.find_library("xxhash")
    if not name:
        raise Failure("libxxhash is not installed: apt-get install libxxhash0")
    function = ctypes.CDLL(name).XXH3_128bits
    function.restype, function.argtypes = Digest128, [ctypes.c_char_p, ctypes.c_size_t]
    order = struct.Struct(">QQ").pack

    def digest(data):
        found = function(data, len(data))
        return order(found.high, found.low)
    return digest


# A number, a text and bytes as `ByteOutput` and `RowDigest` write them.

def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(value):
    return b"\1" + varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value):
    return b"\2" + varint(len(value)) + value if value is not None else b"\0"


def data(value):
    return b"\3" + varint(len(value)) + value


def record_head(zone, changed, created, modified):
    return b"\1" + number(zone) + number(changed) + number(created) + number(modified) + number(0)


def zone_bytes(scope, state, made, changed, sharing, owner, name):
    return b"\2" + b"".join(map(number, (scope, state, made, changed, sharing))) + text(owner) + text(name)


# A row as COPY takes it in binary.

def cell(value):
    if value is None:
        return b"\xff\xff\xff\xff"
    if isinstance(value, bool):
        return b"\0\0\0\1" + (b"\1" if value else b"\0")
    if isinstance(value, int):
        return b"\0\0\0\x08" + struct.pack(">q", value)
    if isinstance(value, str):
        value = value.encode()
    return struct.pack(">I", len(value)) + value


def row(*values):
    return struct.pack(">H", len(values)) + b"".join(map(cell, values))


def name_of(index):
    """The name of a record by its number; they come in no order."""
    hexadecimal = hashlib.blake2b(index.to_bytes(8, "big"), digest_size=16).hexdigest()
    return f"{hexadecimal[:8]}-{hexadecimal[8:12]}-{hexadecimal[12:16]}-{hexadecimal[16:20]}-{hexadecimal[20:]}".encode()


class Filling:
    """Rows for one database, after one account has written records to a zone there."""

    def __init__(self, postgres, database, zone):
        self.postgres, self.database, self.digest = postgres, database, load_digest()
        read = self.read
        self.zone = read("SELECT container, owner, number, scope, name, state, made, changed, sharing, digest FROM tidemark_zones WHERE name = convert_to("
                         f"'{zone}', 'UTF8')")[0]
        rows = read("SELECT name, type, fields, changed, created, created_by, modified, modified_by, digest FROM tidemark_records WHERE NOT is_deleted AND "
                    f"zone = {self.zone['number']} ORDER BY id")
        self.check_digests(rows)
        self.templates = [it for it in rows if len(it["fields"]) <= FIELDS_MAX]
        if not self.templates:
            raise Failure("there is no record to be copied")
        self.container = self.zone["container"]
        # Of a record on average.
        self.field_bytes = sum(len(it["fields"]) for it in self.templates) // len(self.templates)
        self.name, = read(f"SELECT name, environment FROM tidemark_containers WHERE number = {self.container}")
        self.secret = read("SELECT secret FROM credential_state")[0]["secret"]
        self.account, = read("SELECT id, name, quota FROM accounts")
        self.writer, = read("SELECT began, nonce FROM tidemark_writers LIMIT 1")
        self.last_zone = read("SELECT max(number) AS number FROM tidemark_zones")[0]["number"]
        self.last_id = read("SELECT max(id) AS id FROM tidemark_records")[0]["id"]
        self.now = int(time.time() * 1e6)

    def read(self, query):
        """Returns rows as dictionaries. Binary values of the database are bytes."""
        found = self.postgres.sql(f"SELECT row_to_json(it) FROM ({query}) AS it", self.database)
        plain = lambda value: bytes.fromhex(value[2:]) if isinstance(value, str) and value.startswith("\\x") else value
        return [{name: plain(value) for name, value in json.loads(line).items()} for line in found.splitlines()]

    def check_digests(self, rows):
        zone = self.zone
        made = self.digest(zone_bytes(*(zone[name] for name in ("scope", "state", "made", "changed", "sharing", "owner", "name"))))
        if made != zone["digest"]:
            raise Failure("a zone has another digest than RowDigest.swift gave it: its form has changed, and filling.py is to follow")
        for it in rows[:10]:
            made = self.digest(record_head(zone["number"], it["changed"], it["created"], it["modified"]) + text(it["name"]) + self.tail(it, it["created_by"]))
            if made != it["digest"]:
                raise Failure("a record has another digest than RowDigest.swift gave it: its form has changed, and filling.py is to follow")

    @staticmethod
    def tail(template, owner):
        return text(template["type"]) + b"\0" + text(owner) + text(owner) + data(template["fields"])

    def add(self, owners, records):
        """Adds owners, each with a zone and so many records, and returns what requests of an owner need."""
        accounts = [self.make_account(index) for index in range(owners)]
        with Without(self, "tidemark_records"):
            self.copy("accounts", "id, email, phone, name, quota, status, discoverable", (
                row(it.id, f"{it.id}@example.org", None, json.dumps(self.account["name"]), self.account["quota"], "available", False) for it in accounts))
            self.copy("sessions", "id, account, container, environment, kind, began, kept, device, used, address", (
                row(it.session, it.id, self.name["name"], self.name["environment"], "device", self.now, self.now + 300 * DAY, "growth", self.now, "127.0.0.1")
                for it in accounts))
            self.copy("tidemark_owners", "container, owner, change", (row(self.container, it.owner, records + 1) for it in accounts))
            self.copy("tidemark_writers", "container, owner, began, nonce", (
                row(self.container, it.owner, self.writer["began"], self.writer["nonce"]) for it in accounts))
            self.copy("tidemark_usage", "container, owner, bytes", (row(self.container, it.owner, records * self.field_bytes) for it in accounts))
            self.copy("tidemark_zones", "container, owner, number, scope, name, state, made, changed, sharing, digest", map(self.zone_row, accounts, itertools.repeat(records + 1)))
            self.copy("tidemark_records", "container, owner, zone, name, id, type, fields, parent, changed, created, created_by, modified, modified_by, "
                      "is_deleted, digest", (it for account in accounts for it in self.record_rows(account, records)))
            for sequence, last in (("tidemark_zone_numbers", self.last_zone), (self.postgres.sql(
                    "SELECT pg_get_serial_sequence('tidemark_records', 'id')", self.database), self.last_id)):
                self.postgres.sql(f"SELECT setval('{sequence}', {last})", self.database)
        return accounts

    def make_account(self, index):
        self.last_zone += 1
        return Account(self, f"{index:08x}-0000-4000-8000-{os.urandom(6).hex()}", self.last_zone)

    def zone_row(self, account, changed):
        zone = self.zone
        made = self.digest(zone_bytes(zone["scope"], zone["state"], 1, changed, zone["sharing"], account.owner, zone["name"]))
        return row(self.container, account.owner, account.zone, zone["scope"], zone["name"], zone["state"], 1, changed, zone["sharing"], made)

    def record_rows(self, account, count):
        """Yields the records of an owner, in the order of their changes."""
        owner, digest, pack = account.owner, self.digest, struct.Struct(">q").pack
        begin = struct.pack(">H", 15) + cell(self.container) + cell(owner) + cell(account.zone)
        middles, tails = [], []
        for template in self.templates:
            middles.append(cell(template["type"]) + cell(template["fields"]) + cell(None))
            tails.append(self.tail(template, owner))
        moment = self.now - DAY
        end = cell(moment) + cell(owner) + cell(moment) + cell(owner) + cell(False) + b"\0\0\0\x10"
        zone, times = b"\1" + number(account.zone), number(moment) * 2 + number(0)
        kinds = len(self.templates)
        for index in range(count):
            self.last_id += 1
            name, kind = name_of(index), (index * 7 + account.zone) % kinds
            changed = index + 2
            made = digest(zone + number(changed) + times + text(name) + tails[kind])
            yield begin + b"\0\0\0\x24" + name + b"\0\0\0\x08" + pack(self.last_id) + middles[kind] + b"\0\0\0\x08" + pack(changed) + end + made

    def copy(self, table, columns, rows):
        """Adds rows by COPY, some thousand at once."""
        command = self.postgres.words("psql", "-h", "127.0.0.1", "-p", self.postgres.port, "-U", "tidemark", "-d", self.database, "-qX", "-v", "ON_ERROR_STOP=1",
                                      "-c", f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)")
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.stdin.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            rows = iter(rows)
            while some := list(itertools.islice(rows, 4000)):
                process.stdin.write(b"".join(some))
            process.stdin.write(b"\xff\xff")
        except BrokenPipeError:
            pass
        complaint = process.communicate()[1]
        if process.returncode != 0:
            raise Failure(f"COPY to {table}: {complaint.decode()[-500:]}")


class Account:
    """An account, and the token of its session, in the form of `CredentialStore`."""

    def __init__(self, filling, identifier, zone):
        self.id, self.zone, self.session = identifier, zone, os.urandom(16)
        self.owner = b"_" + hashlib.sha256(f"{identifier} {filling.name['name']}".encode()).hexdigest()[:32].encode()
        body = self.session + struct.pack(">qq", filling.now, filling.now + 200 * DAY)
        self.token = base64.urlsafe_b64encode(body + hmac.digest(filling.secret, b"session\0" + body, "sha256")).rstrip(b"=").decode()


class Without:
    """A table without its indexes and without durability, while it is filled. Then the indexes are made again, in their old order."""

    def __init__(self, filling, table):
        self.sql = lambda text: filling.postgres.sql(text, filling.database)
        self.table = table

    def __enter__(self):
        found = self.sql(f"""
            SELECT json_build_object('name', index.relname, 'definition', pg_get_indexdef(index.oid), 'constraint', it.contype)
            FROM pg_index JOIN pg_class AS index ON index.oid = indexrelid LEFT JOIN pg_constraint AS it ON it.conindid = index.oid
            WHERE indrelid = '{self.table}'::regclass ORDER BY index.oid""")
        self.indexes = [json.loads(line) for line in found.splitlines()]
        for index in self.indexes:
            self.sql(f"ALTER TABLE {self.table} DROP CONSTRAINT {index['name']}" if index["constraint"] else f"DROP INDEX {index['name']}")
        for setting in ("fsync", "full_page_writes"):
            self.sql(f"ALTER SYSTEM SET {setting} = off")
        self.sql("SELECT pg_reload_conf()")

    def __exit__(self, kind, error, trace):
        if kind is None:
            for index in self.indexes:
                self.sql(f"SET maintenance_work_mem = '1GB'; {index['definition']}")
                if index["constraint"]:
                    word = {"p": "PRIMARY KEY", "u": "UNIQUE"}[index["constraint"]]
                    self.sql(f"ALTER TABLE {self.table} ADD CONSTRAINT {index['name']} {word} USING INDEX {index['name']}")
            self.sql("VACUUM ANALYZE")
        self.sql("ALTER SYSTEM RESET ALL")
        self.sql("SELECT pg_reload_conf()")
        self.sql("CHECKPOINT")
        os.sync()

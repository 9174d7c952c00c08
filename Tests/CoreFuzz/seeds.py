#!/usr/bin/env python3
"""Writes what the fuzzers of archives, stores and texts begin with.

usage: seeds.py FOLDER      # makes FOLDER/archive, FOLDER/store, FOLDER/text"""

import io
import shutil
import sqlite3
import struct
import sys
import tempfile
import zipfile
from pathlib import Path


def archives():
    def made(entries, compression=zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", compression) as archive:
            for name, content in entries:
                archive.writestr(name, content)
        return file.getvalue()

    plain = made([("a.txt", "text"), ("folder/b.txt", "more text " * 40)])
    yield "plain", plain
    yield "stored", made([("a.txt", "text")], zipfile.ZIP_STORED)
    yield "named", made([("caf\u00e9/\u65e5.txt", "text")])
    yield "outside", made([("a.txt", "text"), ("../b.txt", "text")])
    yield "absolute", made([("/tmp/b.txt", "text")])
    yield "twice", made([("a", "text"), ("a/b", "text")])
    yield "folders", made([("a/", ""), ("a/./b//c", "text")])
    yield "cut", plain[:-30]
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    yield "link", made([(link, "/etc/passwd"), ("link/b", "text")])
    encrypted = bytearray(plain)
    encrypted[6] |= 1
    yield "encrypted", bytes(encrypted)
    yield "bomb", made([("zeros", bytes(300_000))])


def stores():
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "a.sqlite"
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA page_size = 512")
        connection.execute(
            'CREATE TABLE "Place" (_id INTEGER PRIMARY KEY, _key, _zone, _version, _tag, _base, _edited, _pending, _digest, caption,'
            " rating, height, notes, flag)")
        for number in range(6):
            connection.execute(
                'INSERT INTO "Place" VALUES (NULL, ?, 1, 1, ?, NULL, NULL, -1, ?, ?, ?, ?, ?, 1)',
                (bytes(range(16)) if number % 2 else f"place {number}", "tag", number * 12345678901, "a caption", number, number / 3,
                 b"bytes"))
        yield "database", b"\x01" + path.read_bytes()
        connection.execute("PRAGMA journal_mode = WAL")
        yield "log-database", b"\x01" + path.read_bytes()
        for number in range(3):
            connection.execute('UPDATE "Place" SET rating = rating + ?', (number + 1,))
        log, index = (Path(f"{path}{suffix}").read_bytes() for suffix in ("-wal", "-shm"))
        for name, pieces in {
            "log": (log, index), "log-damaged": (log[:700] + b"x" + log[701:], index), "log-cut": (log[:-300], index),
            "index-cut": (log, index[:136]), "index-damaged": (log, index[:20] + b"x" + index[21:]),
        }.items():
            size = len(pieces[0]) + len(pieces[1])
            split = len(pieces[0])
            assert split < size and split < 65536
            yield name, b"\x02" + struct.pack(">H", split) + pieces[0] + pieces[1]
        connection.close()
    finally:
        shutil.rmtree(folder)
    value = bytes([11 << 3 | 3]) + b"hello world" + bytes([8 << 3 | 1]) + struct.pack("<q", 42) + bytes([0, 16 << 3 | 5]) + bytes(range(16))
    yield "rows", b"\x00" + value * 6
    yield "rows-empty", b"\x00" + bytes([3, 5, 0, 1, 2] * 8)


def texts():
    for number, text in enumerate([
        "00112233-4455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-AABBCCDDEEFF", "1.5e-300", "-0", "1e400", "123456789012345678901",
        "2024-05-06T07:08:09.123456Z", "2024-02-30T00:00:00+14:00", "5/1/2024 13:04", "2024-05-06 07:08", "20240506",
        '{"latitude": 1.5, "longitude": -2}', '["a", "b\\n", "\\u00e9"]', "[1, 2.5, -3]", "true", "aGVsbG8=",
        "d41d8cd98f00b204e9800998ecf8427e-12-256", "imageThumbnail", "caf\u00e9", "a" * 255,
    ]):
        yield f"{number:02}", text.encode()


def main():
    target = Path(sys.argv[1])
    for kind, made in (("archive", archives), ("store", stores), ("text", texts)):
        (target / kind).mkdir(parents=True, exist_ok=True)
        for name, content in made():
            (target / kind / name).write_bytes(content)


main()

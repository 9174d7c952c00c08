"""Simulates a disk that loses its power: the state of files and folders afterwards, from a log of the calls that changed them.

The guarantees are those of POSIX. The data of a file are durable once a sync that began after the write has ended. A name is durable once its folder
was synced. syncfs makes everything before it durable. Any other change may have reached the disk or not, in any order and by sectors, but a rename is
there as a whole or not at all. A file without a durable name is lost.
"""

import collections
import os
import shutil
import struct

RECORD = struct.Struct("<IIQQQqIIQ")
WRITE, TRUNCATE, CREATE, MKDIR, LINK, RENAME, UNLINK, SYNC_BEGIN, SYNC_END, SYNC_ALL_BEGIN, SYNC_ALL_END, MAPPED, SENT = range(1, 14)
EXCHANGE = 2

# The fates of changes that were not durable. In all modes but the first two a seed draws.
MODES = ["dropped", "kept", "cut", "sectors", "names", "data", "lengths"]

Entry = collections.namedtuple("Entry", "entry flags inode folder other_folder offset name other data")


def read_log(path):
    """Returns the entries of a log, without an entry that was being appended when the process was killed."""
    data, at, found = path.read_bytes() if path.exists() else b"", 0, []
    while at + RECORD.size <= len(data):
        entry, flags, inode, folder, other_folder, offset, name_length, other_length, length = RECORD.unpack_from(data, at)
        at += RECORD.size
        if at + name_length + other_length + length > len(data):
            break
        name, at = data[at:at + name_length].decode(), at + name_length
        other, at = data[at:at + other_length].decode(), at + other_length
        found.append(Entry(entry, flags, inode, folder, other_folder, offset, name, other, data[at:at + length]))
        at += length
    return found


class File:
    """A file: its durable bytes, and later changes as (position, entry)."""

    def __init__(self, data=b""):
        self.data, self.pending = bytearray(data), []


class Folder:
    """A folder: its durable names."""

    def __init__(self):
        self.names = {}


def write(data, offset, new):
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    data[offset:offset + len(new)] = new


def cut(data, length):
    if length < len(data):
        del data[length:]
    else:
        data.extend(bytes(length - len(data)))


class Disk:
    """The files below a folder, as they are when the disk is made. `replay` applies a log to them, and `lose_power` returns what is left.

    `ignores` says by path and entry which syncs do nothing.
    """

    def __init__(self, root, ignores=None):
        self.objects, self.pending, self.position, self.begun, self.ignores = {}, [], 0, collections.defaultdict(list), ignores or (lambda *_: False)
        self.root = self.take(root)

    def take(self, folder):
        found = self.objects[os.stat(folder).st_ino] = Folder()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.names[entry.name] = self.take(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    inode = entry.inode()
                    if not isinstance(self.objects.get(inode), File):
                        with open(entry.path, "rb") as file:
                            self.objects[inode] = File(file.read())
                    found.names[entry.name] = self.objects[inode]
        return found

    def file(self, inode):
        found = self.objects.get(inode)
        if not isinstance(found, File):
            found = self.objects[inode] = File()
        return found

    def folder(self, inode):
        found = self.objects.get(inode)
        if not isinstance(found, Folder):
            found = self.objects[inode] = Folder()
        return found

    def replay(self, entries):
        for entry in entries:
            self.position += 1
            self.apply(entry)

    def apply(self, entry):
        kind = entry.entry
        if kind in (WRITE, MAPPED, TRUNCATE):
            self.file(entry.inode).pending.append((self.position, entry))
        elif kind in (CREATE, MKDIR, LINK):
            if kind != LINK:
                # A number can be that of a deleted file.
                self.objects[entry.inode] = File() if kind == CREATE else Folder()
            self.change_name([self.folder(entry.folder)], ("set", self.folder(entry.folder), entry.name, self.objects.get(entry.inode) or self.file(entry.inode)))
        elif kind == UNLINK:
            self.change_name([self.folder(entry.folder)], ("remove", self.folder(entry.folder), entry.name))
        elif kind == RENAME:
            folders = [self.folder(entry.folder), self.folder(entry.other_folder)]
            what = "exchange" if entry.flags & EXCHANGE else "move"
            self.change_name(folders, (what, folders[0], entry.name, folders[1], entry.other, self.objects.get(entry.inode) or self.file(entry.inode)))
        elif kind in (SYNC_BEGIN, SYNC_ALL_BEGIN):
            self.begun[kind, entry.inode].append(self.position)
        elif kind in (SYNC_END, SYNC_ALL_END):
            before = self.begun[kind - 1, entry.inode].pop(0)
            if not self.ignores(entry.name, kind == SYNC_ALL_END, isinstance(self.objects.get(entry.inode), Folder)):
                self.make_durable(None if kind == SYNC_ALL_END else self.objects.get(entry.inode), before)

    def change_name(self, folders, change):
        self.pending.append((self.position, folders, change))

    def make_durable(self, what, before):
        """Makes the changes before a position durable: those of a file, of a folder's names, or all if `what` is `None`."""
        for found in self.objects.values() if what is None else [what]:
            if isinstance(found, File):
                for position, entry in found.pending:
                    if position < before:
                        self.change(found.data, entry)
                found.pending = [each for each in found.pending if each[0] >= before]
        if what is None or isinstance(what, Folder):
            later = []
            for position, folders, change in self.pending:
                if position < before and (what is None or what in folders):
                    self.rename(change, lambda folder: folder.names)
                    # A moved file must not also appear at the place where it was created, even if that folder was not synced.
                    if change[0] == "move":
                        later = [each for each in later if self.placed(each[2]) != (id(change[1]), change[2])]
                else:
                    later.append((position, folders, change))
            self.pending = later

    @staticmethod
    def placed(change):
        """Returns the place where a change puts a file, or `None` if it puts none."""
        if change[0] == "set":
            return id(change[1]), change[2]
        return (id(change[3]), change[4]) if change[0] == "move" else None

    @staticmethod
    def change(data, entry):
        if entry.entry == TRUNCATE:
            cut(data, entry.offset)
        else:
            write(data, entry.offset, entry.data)

    @staticmethod
    def rename(change, names):
        what, folder, name = change[:3]
        if what == "set":
            names(folder)[name] = change[3]
        elif what == "remove":
            names(folder).pop(name, None)
        elif what == "move":
            if names(folder).get(name) is change[5]:
                del names(folder)[name]
            names(change[3])[change[4]] = change[5]
        else:
            one, other = names(folder).get(name), names(change[3]).get(change[4])
            names(folder)[name], names(change[3])[change[4]] = other, one

    # The end

    def lose_power(self, mode, drawn):
        """Returns the folder as it is found after the loss of power: a dictionary of names to bytes or further dictionaries."""
        chance, sector = drawn.choice([0.1, 0.5, 0.9]), drawn.choice([512, 4096])
        positions = [position for position, *_ in self.pending] + [position for found in self.objects.values() if isinstance(found, File) for position, _ in found.pending]
        end = drawn.choice(sorted(positions)) if positions else 0

        def has_name(position):
            return {"dropped": False, "data": False, "kept": True, "names": True, "lengths": True, "cut": position < end}.get(mode, drawn.random() < chance)

        changed = {}

        def names(folder):
            return changed.setdefault(id(folder), dict(folder.names))

        for position, _, change in self.pending:
            if has_name(position):
                self.rename(change, names)

        def content(file):
            data = bytearray(file.data)
            for position, entry in file.pending:
                if mode in ("kept", "data") or (mode == "cut" and position < end):
                    self.change(data, entry)
                elif mode == "cut" and position == end and entry.entry == WRITE:
                    # A part of the last write has reached the disk, up to some sector.
                    write(data, entry.offset, entry.data[:drawn.randrange(0, len(entry.data) + 1, min(sector, max(1, len(entry.data))))])
                elif mode == "lengths" and len(data) < (entry.offset if entry.entry == TRUNCATE else entry.offset + len(entry.data)):
                    cut(data, entry.offset if entry.entry == TRUNCATE else entry.offset + len(entry.data))
                elif mode == "sectors":
                    self.change_sectors(data, entry, sector, lambda: drawn.random() < chance)
            return bytes(data)

        def tree(folder):
            return {name: tree(found) if isinstance(found, Folder) else content(found) for name, found in sorted(names(folder).items()) if found is not None}

        return tree(self.root)

    def change_sectors(self, data, entry, sector, has_come):
        if entry.entry == TRUNCATE:
            if has_come():
                cut(data, entry.offset)
            return
        at = entry.offset
        while at < entry.offset + len(entry.data):
            end = min((at // sector + 1) * sector, entry.offset + len(entry.data))
            if has_come():
                write(data, at, entry.data[at - entry.offset:end - entry.offset])
            at = end


def build(tree, folder):
    """Writes a dictionary of names to bytes or further dictionaries as a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    for name, found in tree.items():
        if isinstance(found, dict):
            build(found, folder / name)
        else:
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600)
            with open(descriptor, "wb") as file:
                file.write(found)


def read(folder):
    """Returns a folder as a dictionary of names to bytes or further dictionaries."""
    return {path.name: read(path) if path.is_dir() else path.read_bytes() for path in sorted(folder.iterdir())}

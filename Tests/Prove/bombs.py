"""Makes sources that expand, nest, repeat or lie about their size, and harmless sources of the same kinds.

Each source is made in a folder of its own. A bomb is marked as long where it needs minutes or gigabytes.
"""

import struct
import zlib

MIB = 1 << 20


# Packed texts

def gzip(path, pieces):
    """Writes pieces of text, each given as (bytes, repetitions), as one gzip file."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    with open(path, "wb") as file:
        for piece, times in pieces:
            for _ in range(times):
                file.write(packer.compress(piece))
        file.write(packer.flush())
    return path


def zstd(path, byte, size):
    """Writes a frame of blocks, each of which repeats one byte for 128 KiB and takes four bytes itself."""
    block = 128 << 10
    count = size // block
    with open(path, "wb") as file:
        file.write(bytes.fromhex("28b52ffd") + bytes([0x00, 0x38]))
        for number in range(count):
            header = (block << 3) | (1 << 1) | (number == count - 1)
            file.write(header.to_bytes(3, "little") + byte)
    return path


def write(path, *pieces):
    with open(path, "wb") as file:
        for piece, times in pieces:
            for _ in range(times):
                file.write(piece)
    return path


# Zip archives, written by hand: Python's own refuses to lie

class Archive:
    def __init__(self, path):
        self.path, self.file, self.central, self.count = path, open(path, "wb"), [], 0

    def header(self, name, packed, size, crc, method, offset, is_local, extra=b""):
        common = struct.pack("<HHHHHIIIHH", 20, 0x800, method, 0, 0x58A1, crc, packed, size, len(name), len(extra))
        if is_local:
            return b"PK\3\4" + common + name + extra
        return b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, offset) + name + extra

    def add(self, name, content=b"", method=0, size=None, crc=None, extra=b""):
        """Adds an entry. `content` is written as it is; `size` and `crc` are what its headers claim."""
        name = name.encode()
        said = (name, len(content), len(content) if size is None else size, zlib.crc32(content) if crc is None else crc, method)
        offset = self.file.tell()
        self.file.write(self.header(*said, offset, True, extra) + content)
        self.list(*said, offset, extra)
        return (*said[1:], offset)

    def list(self, name, packed, size, crc, method, offset, extra=b""):
        self.central.append(self.header(name, packed, size, crc, method, offset, False, extra))
        self.count += 1

    def end(self):
        start, length = self.file.tell(), 0
        for entry in self.central:
            self.file.write(entry)
            length += len(entry)
        count = self.count
        if count > 0xFFFF:
            at = self.file.tell()
            self.file.write(b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, length, start))
            self.file.write(b"PK\6\7" + struct.pack("<IQI", 0, at, 1))
        self.file.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), length, start, 0))
        self.file.close()
        return self.path


def deflated(pieces):
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return b"".join(packer.compress(piece) for piece, times in pieces for _ in range(times)) + packer.flush()


def archive_of_one(path, pieces):
    archive, crc, size = Archive(path), 0, 0
    for piece, times in pieces:
        for _ in range(times):
            crc, size = zlib.crc32(piece, crc), size + len(piece)
    archive.add("rows.jsonl", deflated(pieces), 8, size, crc)
    return archive.end()


def nested(path, depth):
    """Makes an archive of archives: sixteen in each, and a large text in the innermost ones."""
    inner = path.with_suffix(".inner")
    content = None
    for level in range(depth):
        archive = Archive(inner)
        for number in range(16):
            if content is None:
                archive.add(f"{number}.jsonl", deflated([(b"\n" * MIB, 16)]), 8, 16 * MIB, zlib.crc32(b"\n" * (16 * MIB)))
            else:
                packed = deflated([(content, 1)])
                archive.add(f"{number}.zip", packed, 8, len(content), zlib.crc32(content))
        archive.end()
        content = inner.read_bytes()
    inner.rename(path)
    return path


def overlapping(path, entries):
    """Makes an archive in whose list all entries point at the same piece of the file."""
    archive = Archive(path)
    said = archive.add("0.jsonl", deflated([(b"\n" * MIB, 8)]), 8, 8 * MIB, zlib.crc32(b"\n" * (8 * MIB)))
    for number in range(1, entries):
        archive.list(f"{number}.txt".encode(), *said)
    return archive.end()


def many_entries(path, entries):
    archive = Archive(path)
    for number in range(entries):
        archive.add(f"{number}.txt")
    return archive.end()


def one_entry(path, name, content=b'{"id":"a"}\n', **lies):
    archive = Archive(path)
    archive.add(name, content, **lies)
    return archive.end()


# Pictures

def chunk(kind, data, length=None):
    return struct.pack(">I", len(data) if length is None else length) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, *chunks, depth=8, colour=2, interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) + chunk(b"IEND", b"")


def pixels(width, height, colours=3):
    packer = zlib.compressobj(1)
    row = bytes(1 + width * colours)
    return chunk(b"IDAT", b"".join(packer.compress(row) for _ in range(height)) + packer.flush())


def segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(width, height, *segments, frame=0xC0, scans=1):
    """Returns a picture whose header gives its size, and whose scans are almost empty."""
    tables = segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC4, b"\0" + b"\1" + b"\0" * 15 + b"\0") + segment(0xC4, b"\x10" + b"\1" + b"\0" * 15 + b"\0")
    size = segment(frame, struct.pack(">BHHB", 8, height, width, 3) + b"\1\x11\0\2\x11\0\3\x11\0")
    scan = segment(0xDA, b"\3\1\0\2\0\3\0" + (b"\0\0\0" if frame == 0xC2 else b"\0\x3f\0")) + b"\0" * 64
    return b"\xff\xd8" + b"".join(segments) + tables + size + scan * scans + b"\xff\xd9"


def exif(entries, next_folder=0, count=None):
    """Returns an EXIF block with entries (tag, type, count, value). Its folder gives the position of the next folder."""
    count = len(entries) if count is None else count
    return segment(0xE1, b"Exif\0\0" + b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", count)
                   + b"".join(struct.pack("<HHII", *entry) for entry in entries) + struct.pack("<I", next_folder))


def boxes(depth):
    """Returns HEIC boxes within boxes, each of which claims to reach to the end of the file."""
    return struct.pack(">I", 24) + b"ftypheic\0\0\0\0heicmif1" + (struct.pack(">I", 0) + b"meta\0\0\0\0") * depth


def tiff(next_folder, count):
    return b"II*\0" + struct.pack("<IH", 8, count) + struct.pack("<HHII", 256, 4, 1, 640) + struct.pack("<HHII", 257, 4, 1, 480) + struct.pack("<I", next_folder)


def photo(content, name="bomb.jpg"):
    def make(folder):
        (folder / "in").mkdir()
        write(folder / "in" / name, (content() if callable(content) else content, 1))
        (folder / "in" / "good.png").write_bytes(png(64, 64, pixels(64, 64)))
        return folder / "in"
    return make


def sparse(folder, name, size):
    with open(folder / name, "wb") as file:
        file.truncate(size)
    return folder / name


def sparse_asset(folder):
    sparse(folder, "sparse.bin", 160 * MIB)
    return write(folder / "rows.jsonl", (b'{"id":"a","image":"sparse.bin"}\n', 1))


def sparse_photos(folder):
    (folder / "in").mkdir()
    for number, name in enumerate(["sparse.jpg", "sparse.png", "sparse", "sparse.heic", "sparse.tif"]):
        sparse(folder / "in", name, 1 << (40 - number))
    return folder / "in"


# Each entry of the lists below: a name, the kind of harmless source to compare with, whether it is long, a function that makes it, and further
# options of the import.

def rows(number):
    return b'{"id":"r%d","caption":"Place %d","details":"%s","n":%d}\n' % (number, number, b"x" * 400, number)


def harmless_rows(path):
    return write(path, *((rows(number), 1) for number in range(20_000)))


def harmless_photos(folder):
    """Makes photos of a camera's size: 24 million pixels."""
    (folder / "in").mkdir()
    large = pixels(6000, 4000)
    for number in range(12):
        text = chunk(b"tEXt", b"Number\0%d" % number)
        content = png(6000, 4000, text, large) if number % 4 == 0 else png(1200, 900, text, pixels(1200, 900))
        (folder / "in" / f"{number}.png").write_bytes(content)
    return folder / "in"


def harmless_assets(folder):
    for number in range(8):
        (folder / f"{number}.bin").write_bytes(bytes([number]) * (6 * MIB))
    return write(folder / "rows.jsonl", *((b'{"id":"%d","image":"%d.bin"}\n' % (number, number), 1) for number in range(8)))


SCALED = ["--max-pixels", "512", "--thumbnails", "64"]
KINDS = {
    "rows": (lambda folder: harmless_rows(folder / "rows.jsonl"), []),
    "array": (lambda folder: write(folder / "rows.json", (b"[", 1), *((rows(number)[:-1] + b",\n", 1) for number in range(20_000)), (b'{"id":"z"}]', 1)), []),
    "table": (lambda folder: write(folder / "rows.csv", (b"id,caption,n\n", 1), *((b'r%d,"Place %d",%d\n' % (number, number, number), 1)
                                                                              for number in range(50_000))), []),
    "packed": (lambda folder: gzip(folder / "rows.jsonl.gz", [(rows(number), 1) for number in range(20_000)]), []),
    "packed table": (lambda folder: gzip(folder / "rows.csv.gz", [(b"id,caption\n", 1), *((b"r%d,place\n" % number, 1) for number in range(50_000))]), []),
    "archive": (lambda folder: archive_of_one(folder / "rows.zip", [(rows(number), 1) for number in range(20_000)]), []),
    "photos": (harmless_photos, []),
    "scaled": (harmless_photos, SCALED),
    "assets": (harmless_assets, ["--asset", "image"]),
}

BOMBS = [
    # Ratios
    ("gzip of line ends", "packed", True, lambda folder: gzip(folder / "b.jsonl.gz", [(b"\n" * MIB, 1100)])),
    ("gzip of one letter", "packed", False, lambda folder: gzip(folder / "b.jsonl.gz", [(b"x" * MIB, 1100)])),
    ("zstd of line ends", "packed", True, lambda folder: zstd(folder / "b.jsonl.zst", b"\n", 1100 * MIB)),
    ("zstd of one letter", "packed", False, lambda folder: zstd(folder / "b.jsonl.zst", b"x", 1100 * MIB)),
    ("gzip within gzip", "packed", False, lambda folder: gzip(folder / "b.jsonl.gz", [(gzip(folder / "i", [(b"\n" * MIB, 100)]).read_bytes(), 1)])),
    ("zip of one large text", "archive", True, lambda folder: archive_of_one(folder / "b.zip", [(b"\n" * MIB, 1100)])),
    ("zip of a line without end", "archive", False, lambda folder: archive_of_one(folder / "b.zip", [(b'{"id":"', 1), (b"x" * MIB, 120)])),
    ("zips within zips", "archive", False, lambda folder: nested(folder / "b.zip", 4)),
    ("zip whose entries overlap", "archive", True, lambda folder: overlapping(folder / "b.zip", 1000)),
    ("zip whose few entries overlap", "archive", False, lambda folder: overlapping(folder / "b.zip", 12)),
    ("zip of many entries", "archive", False, lambda folder: many_entries(folder / "b.zip", 20_000)),
    ("zip of a million entries", "archive", True, lambda folder: many_entries(folder / "b.zip", 1_000_001)),
    ("zip that says 4 GiB", "archive", False, lambda folder: one_entry(folder / "b.zip", "rows.jsonl", size=0xFFFFFFFE)),
    ("zip that says 2^62 bytes", "archive", False, lambda folder: one_entry(
        folder / "b.zip", "rows.jsonl", size=0xFFFFFFFF, extra=struct.pack("<HHQ", 1, 8, 1 << 62))),
    ("zip of a thousand folders in folders", "archive", False, lambda folder: one_entry(folder / "b.zip", "d/" * 1900 + "rows.jsonl")),
    # Texts
    ("a line without end", "packed", False, lambda folder: gzip(folder / "b.jsonl.gz", [(b'{"id":"a","c":"', 1), (b"x" * MIB, 120)])),
    ("an array's string without end", "packed", False, lambda folder: gzip(folder / "b.json.gz", [(b'[{"id":"a","c":"', 1), (b"x" * MIB, 120)])),
    ("an object without end", "packed", False, lambda folder: gzip(folder / "b.json.gz", [(b'{"rows":[{"id":"a"},\n{', 1), (b'"k":"v",\n' * 65536, 200)])),
    ("a key without end", "packed", False, lambda folder: gzip(folder / "b.jsonl.gz", [(b'{"', 1), (b"k" * MIB, 120)])),
    ("a cell without end", "packed table", True, lambda folder: gzip(folder / "b.csv.gz", [(b'id,c\na,"', 1), (b"x\n" * 524288, 120)])),
    ("a header without end", "packed table", False, lambda folder: gzip(folder / "b.csv.gz", [(b"id,", 1), (b"c," * 524288, 120)])),
    ("spaces without end", "packed", False, lambda folder: gzip(folder / "b.json.gz", [(b" " * MIB, 120), (b'{"id":"a"}', 1)])),
    ("lists in lists", "rows", False, lambda folder: write(folder / "b.jsonl", (b'{"id":"a","t":', 1), (b"[" * MIB, 7), (b"]" * MIB, 7), (b"}\n", 1))),
    ("objects in objects", "array", False, lambda folder: write(folder / "b.json", (b'[{"id":"a","t":', 1), (b'{"a":' * 65536, 24), (b"1", 1), (b"}" * 65536, 24),
                                                              (b"}]", 1))),
    ("nothing but brackets", "array", False, lambda folder: write(folder / "b.json", (b"[" * MIB, 40))),
    ("a row of a million members", "rows", False, lambda folder: write(folder / "b.jsonl", (b'{"id":"a"', 1), *((b',"f%x":1' % number, 1) for number in range(1_000_000)), (b"}\n", 1))),
    ("a list of millions", "rows", False, lambda folder: write(folder / "b.jsonl", (b'{"id":"a","t":[', 1), (b"1," * MIB, 7), (b"1]}\n", 1))),
    ("a table of a million columns", "table", False, lambda folder: write(folder / "b.csv", (b"id", 1), *((b",c%x" % number, 1) for number in range(1_000_000)), (b"\na,1\n", 1))),
    ("rows of a million cells", "table", False, lambda folder: write(folder / "b.csv", (b"id,c\n", 1), (b"," * MIB + b"\n", 12))),
    ("a field for each row", "rows", False, lambda folder: write(folder / "b.jsonl", *((b'{"id":"%d","f%d":%d}\n' % (number, number, number), 1) for number in range(20_000)))),
    ("numbers of a million digits", "rows", False, lambda folder: write(folder / "b.jsonl", (b'{"id":"a","n":' + b"9" * MIB + b"}\n", 8), (b'{"id":"a","n":1e' + b"9" * MIB + b"}\n", 4))),
    ("a sparse manifest", "rows", False, lambda folder: sparse(folder, "b.jsonl", 160 * MIB)),
    ("a large sparse manifest", "rows", True, lambda folder: sparse(folder, "b.csv", 32 << 30)),
    # Files
    ("a sparse asset", "assets", False, sparse_asset),
    ("sparse photos of a terabyte", "photos", False, sparse_photos),
    # Pictures
    ("a PNG of 2^31 pixels a side", "photos", False, photo(lambda: png(0x7FFFFFFF, 0x7FFFFFFF, pixels(4, 4)), "bomb.png")),
    ("the same, scaled", "scaled", False, photo(lambda: png(0x7FFFFFFF, 0x7FFFFFFF, pixels(4, 4)), "bomb.png")),
    ("a PNG that says 20,000 pixels a side", "scaled", False, photo(lambda: png(20_000, 20_000, pixels(20_000, 100, 1), colour=0), "bomb.png")),
    ("a PNG of 15,000 pixels a side", "scaled", True, photo(lambda: png(15_000, 15_000, pixels(15_000, 15_000, 1), colour=0), "bomb.png")),
    ("an interlaced PNG of 15,000 pixels a side", "scaled", True, photo(
        lambda: png(15_000, 15_000, pixels(15_000, 15_100, 1), colour=0, interlaced=1), "bomb.png")),
    ("a PNG whose profile expands", "scaled", False, photo(lambda: png(64, 64, chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(200 * MIB), 9)), pixels(64, 64)), "bomb.png")),
    ("a PNG whose texts expand", "scaled", False, photo(lambda: png(64, 64, *[chunk(b"zTXt", b"t\0\0" + zlib.compress(bytes(64 * MIB), 9))] * 8, pixels(64, 64)), "bomb.png")),
    ("a PNG whose chunk says 2 GiB", "photos", False, photo(lambda: png(64, 64, chunk(b"IDAT", b"x", 0x7FFFFFFF)), "bomb.png")),
    ("a JPEG of 65,500 pixels a side", "scaled", False, photo(jpeg(65500, 65500))),
    ("a progressive JPEG of 65,500 pixels a side", "scaled", False, photo(jpeg(65500, 65500, frame=0xC2))),
    ("a progressive JPEG of a thousand scans", "scaled", False, photo(jpeg(9000, 9000, frame=0xC2, scans=1000))),
    ("EXIF that leads to itself", "scaled", False, photo(jpeg(64, 64, exif([(0x8769, 4, 1, 8), (0x8825, 4, 1, 8), (0xA005, 4, 1, 8)], 8)))),
    ("EXIF of many entries", "scaled", False, photo(jpeg(64, 64, exif([(0x0112, 3, 1, 1)] * 5000, 8, 0xFFFF)))),
    ("EXIF of 2^32 components", "scaled", False, photo(jpeg(64, 64, exif([(0x9003, 2, 0xFFFFFFFF, 26), (0x0112, 12, 0x20000000, 8)])))),
    ("a TIFF that leads to itself", "photos", False, photo(tiff(8, 2), "bomb.tif")),
    ("a TIFF of 65,535 entries", "photos", False, photo(tiff(8, 0xFFFF), "bomb.tif")),
    ("HEIC boxes in boxes", "photos", False, photo(boxes(100_000), "bomb.heic")),
    ("a GIF of endless blocks", "photos", False, photo(b"GIF89a\1\0\1\0\0\0\0" + b"\x21\xfe\1\0\0" * MIB, "bomb.gif")),
]

# The memory, in kB, that tide_picture.h allows for a picture that has to be decoded as a whole.
LARGER = {"an interlaced PNG of 15,000 pixels a side": 512 << 10}

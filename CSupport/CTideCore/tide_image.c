// pread is POSIX, which -std=c17 alone hides.
#define _POSIX_C_SOURCE 200809L

#include "tide_image.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    window_size = 16 * 1024,
    // libpng cuts image data into chunks of 8 KiB: 2 GiB of them. A file of nothing but empty parts ends here too.
    part_limit = 256 * 1024,
    // GIF's are at most 255 bytes long: 4 GiB of them.
    gif_block_limit = 16 * 1024 * 1024,
    jpeg_tail_size = 64 * 1024,
    heic_meta_limit = 16 * 1024 * 1024,
    heic_extent_limit = 64,
    tiff_header_size = 8,
    tiff_directory_limit = 32,
    tiff_entry_limit = 4096,
    // Strips and tiles that are looked at, of all directories.
    tiff_strip_limit = 16 * 1024,
};

// Reading

/// The bytes, seen through a window where they are not in memory.
typedef struct source {
    tide_bytes bytes;
    tide_error *error;
    /// The name of the format, for messages.
    const char *name;
    /// What became of reading; after a failure nothing more is read.
    tide_status status;
    /// How much to read at once where less is asked for.
    size_t ahead;
    uint64_t window_offset;
    size_t window_length;
    uint8_t window[window_size];
} source;

static bool window_fill(source *from, uint64_t offset, size_t length) {
    uint64_t rest = from->bytes.size - offset;
    size_t wanted = length > from->ahead ? length : from->ahead;
    if (wanted > rest) wanted = (size_t)rest;
    from->window_offset = offset;
    from->window_length = 0;
    while (from->window_length < length) {
        size_t got = from->window_length;
        ssize_t count = pread(from->bytes.descriptor, from->window + got, wanted - got, (off_t)(offset + got));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            from->status = tide_error_errno(from->error, "read", "the image");
            return false;
        }
        if (count == 0) {
            from->status = tide_error_reject(
                from->error, TIDE_REJECT_ASSET_TRUNCATED,
                "the file ends at byte %" PRIu64 ", sooner than at its size of %" PRIu64, offset + got, from->bytes.size
            );
            return false;
        }
        from->window_length += (size_t)count;
    }
    return true;
}

/// Up to `window_size` bytes at `offset`, good until the next call; NULL past the end of the file or when reading fails.
static const uint8_t *source_at(source *from, uint64_t offset, size_t length) {
    if (from->status != TIDE_OK || offset > from->bytes.size || length > from->bytes.size - offset) return NULL;
    if (from->bytes.memory) return from->bytes.memory + offset;
    bool held = offset >= from->window_offset && offset - from->window_offset <= from->window_length
        && length <= from->window_length - (size_t)(offset - from->window_offset);
    if (!held && !window_fill(from, offset, length)) return NULL;
    return from->window + (offset - from->window_offset);
}

/// Refuses the file, unless reading has failed, for want of `what` at byte `offset`.
static tide_status image_broken(source *from, const char *what, uint64_t offset) {
    if (from->status != TIDE_OK) return from->status;
    return tide_error_reject(
        from->error, TIDE_REJECT_ASSET_TRUNCATED,
        "the %s file breaks off: %s is expected at byte %" PRIu64 ", and the file has %" PRIu64 " bytes",
        from->name, what, offset, from->bytes.size
    );
}

static uint32_t be16(const uint8_t *bytes) { return (uint32_t)bytes[0] << 8 | bytes[1]; }
static uint32_t be32(const uint8_t *bytes) { return be16(bytes) << 16 | be16(bytes + 2); }
static uint64_t be64(const uint8_t *bytes) { return (uint64_t)be32(bytes) << 32 | be32(bytes + 4); }
static uint32_t le16(const uint8_t *bytes) { return (uint32_t)bytes[1] << 8 | bytes[0]; }
static uint32_t le24(const uint8_t *bytes) { return (uint32_t)bytes[2] << 16 | le16(bytes); }
static uint32_t le32(const uint8_t *bytes) { return le16(bytes + 2) << 16 | le16(bytes); }
static uint32_t code(const char *name) { return be32((const uint8_t *)name); }

static bool bytes_begin_exif(const uint8_t *bytes) { return memcmp(bytes, "Exif\0", 6) == 0; }

/// Notes the TIFF block in the `length` bytes at `offset`, which lie in the file. The first one counts.
static void exif_note(source *from, tide_image *image, uint64_t offset, uint64_t length) {
    if (image->exif_length || length < tiff_header_size) return;
    const uint8_t *start = source_at(from, offset, tiff_header_size);
    // Some writers keep JPEG's prefix in containers that want the bare block.
    if (start && bytes_begin_exif(start)) {
        offset += 6;
        length -= 6;
        start = length < tiff_header_size ? NULL : source_at(from, offset, tiff_header_size);
    }
    if (!start || length > UINT32_MAX) return;
    if (memcmp(start, "II", 2) != 0 && memcmp(start, "MM", 2) != 0) return;
    image->exif_offset = offset;
    image->exif_length = (uint32_t)length;
}

// JPEG

static bool jpeg_end_lies(source *from, uint64_t start, uint64_t end) {
    while (end - start >= 2) {
        size_t length = end - start < window_size ? (size_t)(end - start) : window_size;
        const uint8_t *at = source_at(from, start, length);
        if (!at) return false;
        const uint8_t *last = at + length - 1;
        while (at < last && (at = memchr(at, 0xff, (size_t)(last - at)))) {
            if (at[1] == 0xd9) return true;
            at++;
        }
        start += length - 1;
    }
    return false;
}

static bool jpeg_marker_is_frame(uint8_t marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static tide_status jpeg_scan_read(source *from, uint64_t start) {
    uint64_t size = from->bytes.size;
    uint64_t tail = size - start > jpeg_tail_size ? size - jpeg_tail_size : start;
    from->ahead = window_size;
    if (jpeg_end_lies(from, tail, size) || jpeg_end_lies(from, start, tail > start ? tail + 1 : start)) return TIDE_OK;
    return image_broken(from, "an end-of-image marker", size);
}

static tide_status jpeg_read(source *from, tide_image *image) {
    uint64_t at = 2;
    bool framed = false;
    from->ahead = 256;
    for (uint32_t parts = 0; parts < part_limit; parts++) {
        const uint8_t *bytes = source_at(from, at, 2);
        if (!bytes || bytes[0] != 0xff) return image_broken(from, "a marker", at);
        uint8_t marker = bytes[1];
        if (marker == 0xff) {
            at++;
            continue;
        }
        if (marker == 0 || marker == 0xd8 || marker == 0xd9) return image_broken(from, "a segment", at);
        at += 2;
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) continue;

        bytes = source_at(from, at, 2);
        uint32_t length = bytes ? be16(bytes) : 0;
        if (length < 2) return image_broken(from, "the length of a segment", at);
        if (length > from->bytes.size - at) return image_broken(from, "the end of a segment", at + length);
        if (jpeg_marker_is_frame(marker) && !framed) {
            bytes = length < 8 ? NULL : source_at(from, at + 3, 4);
            if (!bytes) return image_broken(from, "a frame header", at);
            image->height = be16(bytes);
            image->width = be16(bytes + 2);
            framed = true;
        } else if (marker == 0xe1 && length >= 8) {
            bytes = source_at(from, at + 2, 6);
            if (bytes && bytes_begin_exif(bytes)) exif_note(from, image, at + 8, length - 8);
        } else if (marker == 0xda) {
            return framed ? jpeg_scan_read(from, at + length) : image_broken(from, "a frame header", at - 2);
        }
        at += length;
    }
    return image_broken(from, "a start of scan", at);
}

// PNG

static tide_status png_read(source *from, tide_image *image) {
    uint64_t at = 8;
    from->ahead = 64;
    for (uint32_t parts = 0; parts < part_limit; parts++) {
        const uint8_t *bytes = source_at(from, at, 8);
        if (!bytes) return image_broken(from, "a chunk", at);
        uint32_t length = be32(bytes), type = be32(bytes + 4);
        if (parts == 0 && (type != code("IHDR") || length != 13)) return image_broken(from, "an IHDR chunk", at);
        if (length > INT32_MAX) return image_broken(from, "a chunk of less than 2 GiB", at);
        uint64_t end = at + 12 + length;
        if (end > from->bytes.size) return image_broken(from, "the end of a chunk", end);
        if (parts == 0) {
            bytes = source_at(from, at + 8, 8);
            if (!bytes) return from->status;
            image->width = be32(bytes);
            image->height = be32(bytes + 4);
        } else if (type == code("eXIf")) {
            exif_note(from, image, at + 8, length);
        } else if (type == code("IEND")) {
            return TIDE_OK;
        }
        at = end;
    }
    return image_broken(from, "an IEND chunk", at);
}

// GIF

static uint32_t gif_table_size(uint8_t flags) { return flags & 0x80 ? 3u << ((flags & 7) + 1) : 0; }

static tide_status gif_read(source *from, tide_image *image) {
    const uint8_t *bytes = source_at(from, 6, 7);
    if (!bytes) return image_broken(from, "a logical screen", 6);
    image->width = le16(bytes);
    image->height = le16(bytes + 2);
    uint64_t at = 13 + gif_table_size(bytes[4]);
    from->ahead = window_size;
    bool within = false;
    for (uint32_t parts = 0; parts < gif_block_limit; parts++) {
        bytes = source_at(from, at, 1);
        if (!bytes) return image_broken(from, within ? "a sub-block" : "a block", at);
        if (within) {
            within = *bytes != 0;
            at += 1 + *bytes;
            continue;
        }
        switch (*bytes) {
        case 0x3b: return TIDE_OK;
        // Sloppy writers leave a terminator too many, and every viewer passes over it.
        case 0x00: at += 1; break;
        case 0x21:
            at += 2;
            within = true;
            break;
        case 0x2c:
            bytes = source_at(from, at, 10);
            if (!bytes) return image_broken(from, "an image descriptor", at);
            at += 11 + gif_table_size(bytes[9]);
            within = true;
            break;
        default: return image_broken(from, "a block", at);
        }
    }
    return image_broken(from, "a trailer", at);
}

// WebP

/// Reads the size of the picture from its first chunk, whose first 10 bytes (5 for VP8L) are at `bytes`.
static bool webp_size_read(uint32_t type, const uint8_t *bytes, tide_image *image) {
    if (type == code("VP8X")) {
        image->width = le24(bytes + 4) + 1;
        image->height = le24(bytes + 7) + 1;
        return true;
    }
    if (type == code("VP8L")) {
        uint32_t bits = le32(bytes + 1);
        image->width = (bits & 0x3fff) + 1;
        image->height = (bits >> 14 & 0x3fff) + 1;
        return bytes[0] == 0x2f;
    }
    image->width = le16(bytes + 6) & 0x3fff;
    image->height = le16(bytes + 8) & 0x3fff;
    return memcmp(bytes + 3, "\x9d\x01\x2a", 3) == 0;
}

static tide_status webp_read(source *from, tide_image *image) {
    from->ahead = 64;
    const uint8_t *bytes = source_at(from, 4, 4);
    if (!bytes) return image_broken(from, "the length of RIFF", 4);
    uint64_t end = 8 + (uint64_t)le32(bytes);
    if (end > from->bytes.size) return image_broken(from, "the end of RIFF", end);

    uint64_t at = 12;
    for (uint32_t parts = 0; parts < part_limit; parts++) {
        // Fewer bytes than a header takes are padding.
        if (parts > 0 && (at >= end || end - at < 8)) return TIDE_OK;
        bytes = end >= at + 8 ? source_at(from, at, 8) : NULL;
        if (!bytes) return image_broken(from, "a chunk", at);
        uint32_t type = be32(bytes), length = le32(bytes + 4);
        at += 8;
        if (length > end - at) return image_broken(from, "the end of a chunk", at + length);
        if (parts == 0) {
            bool known = type == code("VP8 ") || type == code("VP8L") || type == code("VP8X");
            uint32_t needed = type == code("VP8L") ? 5 : 10;
            bytes = known && length >= needed ? source_at(from, at, needed) : NULL;
            if (!bytes || !webp_size_read(type, bytes, image)) return image_broken(from, "a VP8, VP8L or VP8X header", at);
        } else if (type == code("EXIF")) {
            exif_note(from, image, at, length);
        }
        at += (uint64_t)length + (length & 1);
    }
    return image_broken(from, "the last chunk", at);
}

// HEIC

typedef struct box {
    uint32_t type;
    uint64_t body, end;
} box;

/// Reads the header of the box at `at`; false unless it lies before `end`.
static bool box_read(source *from, uint64_t at, uint64_t end, box *read) {
    const uint8_t *bytes = end - at >= 8 ? source_at(from, at, 8) : NULL;
    if (!bytes) return false;
    uint64_t size = be32(bytes), header = 8;
    read->type = be32(bytes + 4);
    if (size == 1) {
        bytes = end - at >= 16 ? source_at(from, at, 16) : NULL;
        if (!bytes) return false;
        size = be64(bytes + 8);
        header = 16;
    } else if (size == 0) {
        size = end - at;
    }
    if (size < header || size > end - at) return false;
    read->body = at + header;
    read->end = at + size;
    return true;
}

/// Big-endian fields one after the other. Past the end of its box it is broken and yields zeros.
typedef struct cursor {
    source *from;
    uint64_t at, end;
    bool broken;
} cursor;

static cursor cursor_create(source *from, const box *within) { return (cursor){from, within->body, within->end, false}; }

static uint64_t cursor_take(cursor *fields, uint32_t width) {
    const uint8_t *bytes = fields->end - fields->at >= width ? source_at(fields->from, fields->at, width) : NULL;
    if (!bytes) {
        fields->broken = true;
        return 0;
    }
    uint64_t value = 0;
    for (uint32_t i = 0; i < width; i++) value = value << 8 | bytes[i];
    fields->at += width;
    return value;
}

static bool heic_exif_find(source *from, const box *iinf, uint64_t *item) {
    cursor fields = cursor_create(from, iinf);
    uint64_t version = cursor_take(&fields, 4) >> 24;
    cursor_take(&fields, version == 0 ? 2 : 4);
    box infe;
    for (uint64_t at = fields.at; box_read(from, at, iinf->end, &infe); at = infe.end) {
        fields = cursor_create(from, &infe);
        version = cursor_take(&fields, 4) >> 24;
        if (infe.type != code("infe") || version < 2) continue;
        *item = cursor_take(&fields, version == 2 ? 2 : 4);
        cursor_take(&fields, 2);
        if (cursor_take(&fields, 4) == code("Exif") && !fields.broken) return true;
    }
    return false;
}

/// Checks that the data of each item lies in the file, and notes the EXIF data if there is an item of it.
static tide_status heic_locations_read(source *from, const box *iloc, const uint64_t *exif_item, tide_image *image) {
    uint64_t size = from->bytes.size;
    cursor fields = cursor_create(from, iloc);
    uint64_t version = cursor_take(&fields, 4) >> 24;
    uint32_t widths = (uint32_t)cursor_take(&fields, 2);
    uint32_t offset_width = widths >> 12, length_width = widths >> 8 & 15, base_width = widths >> 4 & 15;
    uint32_t index_width = version > 0 ? widths & 15 : 0;
    if ((offset_width | length_width | base_width | index_width) & 3 || version > 2 || offset_width > 8 || length_width > 8
        || base_width > 8 || index_width > 8) {
        return image_broken(from, "a table of item locations", iloc->body);
    }
    uint32_t id_width = version < 2 ? 2 : 4;
    uint64_t count = cursor_take(&fields, id_width);
    uint64_t exif_offset = 0, exif_length = 0;
    for (uint64_t i = 0; i < count && !fields.broken; i++) {
        uint64_t item = cursor_take(&fields, id_width);
        uint64_t method = version > 0 ? cursor_take(&fields, 2) & 15 : 0;
        uint64_t reference = cursor_take(&fields, 2);
        uint64_t base = cursor_take(&fields, base_width);
        uint64_t extents = cursor_take(&fields, 2);
        // Extents without fields take no room in the table, so their number is no bound.
        if (offset_width + length_width + index_width == 0) extents = 0;
        for (uint64_t j = 0; j < extents && !fields.broken; j++) {
            cursor_take(&fields, index_width);
            uint64_t offset = cursor_take(&fields, offset_width);
            uint64_t length = cursor_take(&fields, length_width);
            if (fields.broken || method != 0 || reference != 0) continue;
            if (base > size || offset > size - base) return image_broken(from, "the data of an item", base + offset);
            offset += base;
            if (length > size - offset) return image_broken(from, "the end of an item", offset + length);
            if (exif_item && item == *exif_item && extents == 1) {
                exif_offset = offset;
                exif_length = length;
            }
        }
    }
    if (fields.broken) return image_broken(from, "the location of an item", fields.at);

    const uint8_t *bytes = exif_length > 4 ? source_at(from, exif_offset, 4) : NULL;
    if (bytes && be32(bytes) < exif_length - 4) {
        uint64_t skipped = 4 + (uint64_t)be32(bytes);
        exif_note(from, image, exif_offset + skipped, exif_length - skipped);
    }
    return TIDE_OK;
}

typedef struct heic_extent {
    uint64_t property;
    uint32_t width, height;
} heic_extent;

/// Collects the sizes among the properties, each with its number, which counts from 1.
static uint32_t heic_extents_collect(source *from, const box *ipco, heic_extent extents[heic_extent_limit]) {
    uint32_t count = 0;
    uint64_t property = 0;
    box child;
    for (uint64_t at = ipco->body; count < heic_extent_limit && box_read(from, at, ipco->end, &child); at = child.end) {
        property++;
        if (child.type != code("ispe")) continue;
        cursor fields = cursor_create(from, &child);
        cursor_take(&fields, 4);
        uint32_t width = (uint32_t)cursor_take(&fields, 4), height = (uint32_t)cursor_take(&fields, 4);
        if (!fields.broken) extents[count++] = (heic_extent){property, width, height};
    }
    return count;
}

/// Finds the size that `ipma` gives to `item`; true when it speaks of the item at all.
static bool heic_size_find(
    source *from, const box *ipma, uint64_t item, const heic_extent *extents, uint32_t extent_count, tide_image *image
) {
    cursor fields = cursor_create(from, ipma);
    uint64_t head = cursor_take(&fields, 4);
    uint32_t id_width = head >> 24 == 0 ? 2 : 4, property_width = head & 1 ? 2 : 1;
    uint64_t property_mask = head & 1 ? 0x7fff : 0x7f;
    uint64_t count = cursor_take(&fields, 4);
    for (uint64_t i = 0; i < count && !fields.broken; i++) {
        bool sought = cursor_take(&fields, id_width) == item;
        uint64_t properties = cursor_take(&fields, 1);
        for (uint64_t j = 0; j < properties && !fields.broken; j++) {
            uint64_t property = cursor_take(&fields, property_width) & property_mask;
            for (uint32_t k = 0; sought && k < extent_count; k++) {
                if (extents[k].property != property) continue;
                image->width = extents[k].width;
                image->height = extents[k].height;
                return true;
            }
        }
        if (sought) return true;
    }
    return false;
}

static void heic_size_read(source *from, const box *iprp, uint64_t item, tide_image *image) {
    heic_extent extents[heic_extent_limit];
    uint32_t extent_count = 0;
    box child;
    for (uint64_t at = iprp->body; box_read(from, at, iprp->end, &child); at = child.end) {
        if (child.type == code("ipco") && !extent_count) extent_count = heic_extents_collect(from, &child, extents);
        if (child.type == code("ipma") && heic_size_find(from, &child, item, extents, extent_count, image)) return;
    }
}

static tide_status heic_meta_read(source *from, const box *meta, tide_image *image) {
    box child, pitm = {0}, iinf = {0}, iloc = {0}, iprp = {0};
    from->ahead = window_size;
    if (meta->end - meta->body < 4) return image_broken(from, "the head of a meta box", meta->body);
    for (uint64_t at = meta->body + 4; at < meta->end; at = child.end) {
        if (!box_read(from, at, meta->end, &child)) return image_broken(from, "a box within its meta box", at);
        if (child.type == code("pitm") && !pitm.end) pitm = child;
        if (child.type == code("iinf") && !iinf.end) iinf = child;
        if (child.type == code("iloc") && !iloc.end) iloc = child;
        if (child.type == code("iprp") && !iprp.end) iprp = child;
    }
    if (pitm.end && iprp.end) {
        cursor fields = cursor_create(from, &pitm);
        uint64_t version = cursor_take(&fields, 4) >> 24;
        uint64_t item = cursor_take(&fields, version == 0 ? 2 : 4);
        if (!fields.broken) heic_size_read(from, &iprp, item, image);
    }
    uint64_t exif_item = 0;
    bool exif_found = iinf.end && heic_exif_find(from, &iinf, &exif_item);
    return iloc.end ? heic_locations_read(from, &iloc, exif_found ? &exif_item : NULL, image) : TIDE_OK;
}

static tide_status heic_read(source *from, tide_image *image) {
    uint64_t size = from->bytes.size, at = 0;
    box child, meta = {0};
    from->ahead = 64;
    for (uint32_t parts = 0; at < size; parts++) {
        if (parts == part_limit) return image_broken(from, "the last box", at);
        if (!box_read(from, at, size, &child)) return image_broken(from, "a box that ends within the file", at);
        if (child.type == code("meta") && !meta.end) meta = child;
        at = child.end;
    }
    if (!meta.end) return image_broken(from, "a meta box", size);
    // No camera writes such a one; size and EXIF stay unknown.
    if (meta.end - meta.body > heic_meta_limit) return TIDE_OK;
    return heic_meta_read(from, &meta, image);
}

static bool brand_is_heic(const uint8_t *brand) {
    static const char brands[][5] = {
        "heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1", "avif", "avis",
    };
    for (size_t i = 0; i < sizeof brands / sizeof *brands; i++) {
        if (memcmp(brand, brands[i], 4) == 0) return true;
    }
    return false;
}

// TIFF

typedef struct tiff {
    source *from;
    bool is_big_endian;
    /// Directories that are still to be read, and how many were noted in all: a chain that runs in a circle ends there.
    uint64_t directories[tiff_directory_limit];
    uint32_t directory_count;
    uint32_t strips_left;
} tiff;

/// A tag's values: where they lie, and how many there are.
typedef struct tiff_values {
    uint64_t at;
    uint32_t count, width;
} tiff_values;

static uint32_t tiff16(const tiff *it, const uint8_t *bytes) { return it->is_big_endian ? be16(bytes) : le16(bytes); }
static uint32_t tiff32(const tiff *it, const uint8_t *bytes) { return it->is_big_endian ? be32(bytes) : le32(bytes); }

static bool tiff_value(const tiff *it, const tiff_values *values, uint32_t index, uint32_t *value) {
    const uint8_t *bytes =
        index < values->count ? source_at(it->from, values->at + (uint64_t)index * values->width, values->width) : NULL;
    if (!bytes) return false;
    *value = values->width == 2 ? tiff16(it, bytes) : tiff32(it, bytes);
    return true;
}

static void tiff_directory_note(tiff *it, uint64_t at) {
    if (at && it->directory_count < tiff_directory_limit) it->directories[it->directory_count++] = at;
}

/// Checks that the strips or tiles lie within the file.
static tide_status tiff_strips_check(tiff *it, const tiff_values *offsets, const tiff_values *lengths) {
    uint64_t size = it->from->bytes.size;
    uint32_t count = offsets->count < lengths->count ? offsets->count : lengths->count;
    if (count > it->strips_left) count = it->strips_left;
    it->strips_left -= count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset, length;
        if (!tiff_value(it, offsets, i, &offset)) return image_broken(it->from, "the place of a strip", offsets->at);
        if (!tiff_value(it, lengths, i, &length)) return image_broken(it->from, "the length of a strip", lengths->at);
        if ((uint64_t)offset + length > size) return image_broken(it->from, "the end of a strip", (uint64_t)offset + length);
    }
    return TIDE_OK;
}

static tide_status tiff_directory_read(tiff *it, uint64_t at, tide_image *image, bool *is_whole_picture) {
    const uint8_t *bytes = source_at(it->from, at, 2);
    if (!bytes) return image_broken(it->from, "a directory", at);
    uint32_t entries = tiff16(it, bytes), width = 0, height = 0, kind = 0;
    if (entries > tiff_entry_limit) return image_broken(it->from, "a directory of a sensible length", at);
    // Strips, then tiles: places and lengths.
    tiff_values parts[4] = {0};
    for (uint32_t i = 0; i < entries; i++) {
        uint64_t entry = at + 2 + (uint64_t)i * 12;
        if (!(bytes = source_at(it->from, entry, 12))) return image_broken(it->from, "an entry of a directory", entry);
        uint32_t tag = tiff16(it, bytes), type = tiff16(it, bytes + 2), count = tiff32(it, bytes + 4);
        // SHORT, LONG, and IFD, which is a LONG.
        if (type != 3 && type != 4 && type != 13) continue;
        tiff_values values = {entry + 8, count, type == 3 ? 2 : 4};
        if ((uint64_t)count * values.width > 4) values.at = tiff32(it, bytes + 8);
        uint32_t value = 0;
        switch (tag) {
        case 254: kind = tiff_value(it, &values, 0, &value) ? value : kind; break;
        case 256: width = tiff_value(it, &values, 0, &value) ? value : width; break;
        case 257: height = tiff_value(it, &values, 0, &value) ? value : height; break;
        case 273: parts[0] = values; break;
        case 279: parts[1] = values; break;
        case 324: parts[2] = values; break;
        case 325: parts[3] = values; break;
        case 330:
            for (uint32_t j = 0; j < count && tiff_value(it, &values, j, &value) && j < tiff_directory_limit; j++) {
                tiff_directory_note(it, value);
            }
            break;
        default: break;
        }
    }
    for (int i = 0; i < 4; i += 2) {
        tide_status status = tiff_strips_check(it, &parts[i], &parts[i + 1]);
        if (status) return status;
    }
    // The picture itself counts, not a smaller one of it; of several pages, the largest.
    bool is_whole = !(kind & 1), is_larger = (uint64_t)width * height > (uint64_t)image->width * image->height;
    if (width && height && (is_whole == *is_whole_picture ? is_larger : is_whole)) {
        image->width = width;
        image->height = height;
        *is_whole_picture = is_whole;
    }
    uint64_t next = at + 2 + (uint64_t)entries * 12;
    // Some writers leave out the last link.
    if ((bytes = source_at(it->from, next, 4))) tiff_directory_note(it, tiff32(it, bytes));
    return TIDE_OK;
}

static tide_status tiff_read(source *from, tide_image *image) {
    const uint8_t *head = source_at(from, 0, tiff_header_size);
    if (!head) return image_broken(from, "the header", 0);
    tiff it = {.from = from, .is_big_endian = head[0] == 'M', .strips_left = tiff_strip_limit};
    bool is_whole_picture = false;
    uint32_t first = tiff32(&it, head + 4);
    if (!first) return image_broken(from, "a directory", 4);
    tiff_directory_note(&it, first);
    for (uint32_t i = 0; i < it.directory_count; i++) {
        tide_status status = tiff_directory_read(&it, it.directories[i], image, &is_whole_picture);
        if (status) return status;
    }
    exif_note(from, image, 0, from->bytes.size);
    return TIDE_OK;
}

// All

static tide_media media_tell(const uint8_t *head, size_t length) {
    if (length >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0) return TIDE_MEDIA_JPEG;
    if (length >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0) return TIDE_MEDIA_PNG;
    if (length >= 6 && (memcmp(head, "GIF87a", 6) == 0 || memcmp(head, "GIF89a", 6) == 0)) return TIDE_MEDIA_GIF;
    if (length >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0) return TIDE_MEDIA_WEBP;
    if (length >= 12 && memcmp(head + 4, "ftyp", 4) == 0 && brand_is_heic(head + 8)) return TIDE_MEDIA_HEIC;
    if (length >= 4 && (memcmp(head, "II*\0", 4) == 0 || memcmp(head, "MM\0*", 4) == 0)) return TIDE_MEDIA_TIFF;
    return TIDE_MEDIA_UNKNOWN;
}

static tide_status image_read(source *from, tide_image *image) {
    switch (image->media) {
    case TIDE_MEDIA_UNKNOWN: return TIDE_OK;
    case TIDE_MEDIA_JPEG: from->name = "JPEG"; return jpeg_read(from, image);
    case TIDE_MEDIA_PNG: from->name = "PNG"; return png_read(from, image);
    case TIDE_MEDIA_GIF: from->name = "GIF"; return gif_read(from, image);
    case TIDE_MEDIA_WEBP: from->name = "WebP"; return webp_read(from, image);
    case TIDE_MEDIA_HEIC: from->name = "HEIC"; return heic_read(from, image);
    case TIDE_MEDIA_TIFF: from->name = "TIFF"; return tiff_read(from, image);
    }
    return TIDE_OK;
}

tide_status tide_image_probe(tide_bytes bytes, tide_image *image, tide_error *error) {
    *image = (tide_image){0};
    source from;
    from.bytes = bytes;
    from.error = error;
    from.name = "image";
    from.status = TIDE_OK;
    from.ahead = 256;
    from.window_offset = 0;
    from.window_length = 0;

    size_t length = bytes.size < 12 ? (size_t)bytes.size : 12;
    if (length == 0) return TIDE_OK;
    const uint8_t *head = source_at(&from, 0, length);
    if (!head) return from.status;
    image->media = media_tell(head, length);
    tide_status status = image_read(&from, image);
    // A failure to read what may be missing, such as EXIF, shows here only.
    return status == TIDE_OK ? from.status : status;
}

const char *tide_media_extension(tide_media media) {
    switch (media) {
    case TIDE_MEDIA_UNKNOWN: return "bin";
    case TIDE_MEDIA_JPEG: return "jpg";
    case TIDE_MEDIA_PNG: return "png";
    case TIDE_MEDIA_GIF: return "gif";
    case TIDE_MEDIA_WEBP: return "webp";
    case TIDE_MEDIA_HEIC: return "heic";
    case TIDE_MEDIA_TIFF: return "tif";
    }
    return "bin";
}

bool tide_media_claimed(const char *name, size_t length) {
    static const char extensions[][5] = {"jpg", "jpeg", "png", "gif", "webp", "heic", "heif", "avif", "tif", "tiff"};
    size_t dot = length;
    while (dot > 0 && name[dot - 1] != '.') dot--;
    for (size_t i = 0; dot > 0 && i < sizeof extensions / sizeof *extensions; i++) {
        size_t extension_length = strlen(extensions[i]), same = 0;
        if (length - dot != extension_length) continue;
        // ORing in the case bit makes only a letter's two cases equal to that letter.
        while (same < extension_length && (name[dot + same] | 0x20) == extensions[i][same]) same++;
        if (same == extension_length) return true;
    }
    return false;
}

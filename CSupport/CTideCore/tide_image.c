// pread is POSIX, which -std=c17 alone hides.
#define _POSIX_C_SOURCE 200809L

#include "tide_image_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    // A block of a GIF has at most 255 bytes: so many have 4 GiB.
    gif_block_limit = 16 * 1024 * 1024,
    jpeg_tail_size = 64 * 1024,
};

// Reading

static bool window_fill(tide_image_source *from, uint64_t offset, size_t length) {
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

const uint8_t *tide_image_at(tide_image_source *from, uint64_t offset, size_t length) {
    if (from->status != TIDE_OK || offset > from->bytes.size || length > from->bytes.size - offset) return NULL;
    if (from->bytes.memory) return from->bytes.memory + offset;
    bool held = offset >= from->window_offset && offset - from->window_offset <= from->window_length
        && length <= from->window_length - (size_t)(offset - from->window_offset);
    if (!held && !window_fill(from, offset, length)) return NULL;
    return from->window + (offset - from->window_offset);
}

tide_status tide_image_broken(tide_image_source *from, const char *what, uint64_t offset) {
    if (from->status != TIDE_OK) return from->status;
    return tide_error_reject(
        from->error, TIDE_REJECT_ASSET_TRUNCATED,
        "the %s file breaks off: %s is expected at byte %" PRIu64 ", and the file has %" PRIu64 " bytes",
        from->name, what, offset, from->bytes.size
    );
}

static bool bytes_begin_exif(const uint8_t *bytes) { return memcmp(bytes, "Exif\0", 6) == 0; }

void tide_image_note_exif(tide_image_source *from, tide_image *image, uint64_t offset, uint64_t length) {
    if (image->exif_length || length < tide_tiff_header_size) return;
    const uint8_t *start = tide_image_at(from, offset, tide_tiff_header_size);
    // Some writers keep JPEG's prefix in containers that need the bare block.
    if (start && bytes_begin_exif(start)) {
        offset += 6;
        length -= 6;
        start = length < tide_tiff_header_size ? NULL : tide_image_at(from, offset, tide_tiff_header_size);
    }
    if (!start || length > UINT32_MAX) return;
    if (memcmp(start, "II", 2) != 0 && memcmp(start, "MM", 2) != 0) return;
    image->exif_offset = offset;
    image->exif_length = (uint32_t)length;
}

// JPEG

static bool jpeg_end_lies(tide_image_source *from, uint64_t start, uint64_t end) {
    while (end - start >= 2) {
        size_t length = end - start < tide_image_window ? (size_t)(end - start) : tide_image_window;
        const uint8_t *at = tide_image_at(from, start, length);
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

static tide_status jpeg_scan_read(tide_image_source *from, uint64_t start) {
    uint64_t size = from->bytes.size;
    uint64_t tail = size - start > jpeg_tail_size ? size - jpeg_tail_size : start;
    from->ahead = tide_image_window;
    if (jpeg_end_lies(from, tail, size) || jpeg_end_lies(from, start, tail > start ? tail + 1 : start)) return TIDE_OK;
    return tide_image_broken(from, "an end-of-image marker", size);
}

static tide_status jpeg_read(tide_image_source *from, tide_image *image) {
    uint64_t at = 2;
    bool framed = false;
    from->ahead = 256;
    for (uint32_t parts = 0; parts < tide_image_part_limit; parts++) {
        const uint8_t *bytes = tide_image_at(from, at, 2);
        if (!bytes || bytes[0] != 0xff) return tide_image_broken(from, "a marker", at);
        uint8_t marker = bytes[1];
        if (marker == 0xff) {
            at++;
            continue;
        }
        if (marker == 0 || marker == 0xd8 || marker == 0xd9) return tide_image_broken(from, "a segment", at);
        at += 2;
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) continue;

        bytes = tide_image_at(from, at, 2);
        uint32_t length = bytes ? tide_be16(bytes) : 0;
        if (length < 2) return tide_image_broken(from, "the length of a segment", at);
        if (length > from->bytes.size - at) return tide_image_broken(from, "the end of a segment", at + length);
        if (jpeg_marker_is_frame(marker) && !framed) {
            bytes = length < 8 ? NULL : tide_image_at(from, at + 3, 4);
            if (!bytes) return tide_image_broken(from, "a frame header", at);
            image->height = tide_be16(bytes);
            image->width = tide_be16(bytes + 2);
            framed = true;
        } else if (marker == 0xe1 && length >= 8) {
            bytes = tide_image_at(from, at + 2, 6);
            if (bytes && bytes_begin_exif(bytes)) tide_image_note_exif(from, image, at + 8, length - 8);
        } else if (marker == 0xda) {
            return framed ? jpeg_scan_read(from, at + length) : tide_image_broken(from, "a frame header", at - 2);
        }
        at += length;
    }
    return tide_image_broken(from, "a start of scan", at);
}

// PNG

static tide_status png_read(tide_image_source *from, tide_image *image) {
    uint64_t at = 8;
    from->ahead = 64;
    for (uint32_t parts = 0; parts < tide_image_part_limit; parts++) {
        const uint8_t *bytes = tide_image_at(from, at, 8);
        if (!bytes) return tide_image_broken(from, "a chunk", at);
        uint32_t length = tide_be32(bytes), type = tide_be32(bytes + 4);
        if (parts == 0 && (type != tide_image_code("IHDR") || length != 13)) return tide_image_broken(from, "an IHDR chunk", at);
        if (length > INT32_MAX) return tide_image_broken(from, "a chunk of less than 2 GiB", at);
        uint64_t end = at + 12 + length;
        if (end > from->bytes.size) return tide_image_broken(from, "the end of a chunk", end);
        if (parts == 0) {
            bytes = tide_image_at(from, at + 8, 8);
            if (!bytes) return from->status;
            image->width = tide_be32(bytes);
            image->height = tide_be32(bytes + 4);
        } else if (type == tide_image_code("eXIf")) {
            tide_image_note_exif(from, image, at + 8, length);
        } else if (type == tide_image_code("IEND")) {
            return TIDE_OK;
        }
        at = end;
    }
    return tide_image_broken(from, "an IEND chunk", at);
}

// GIF

static uint32_t gif_table_size(uint8_t flags) { return flags & 0x80 ? 3u << ((flags & 7) + 1) : 0; }

static tide_status gif_read(tide_image_source *from, tide_image *image) {
    const uint8_t *bytes = tide_image_at(from, 6, 7);
    if (!bytes) return tide_image_broken(from, "a logical screen", 6);
    image->width = tide_le16(bytes);
    image->height = tide_le16(bytes + 2);
    uint64_t at = 13 + gif_table_size(bytes[4]);
    from->ahead = tide_image_window;
    bool within = false;
    for (uint32_t parts = 0; parts < gif_block_limit; parts++) {
        bytes = tide_image_at(from, at, 1);
        if (!bytes) return tide_image_broken(from, within ? "a sub-block" : "a block", at);
        if (within) {
            within = *bytes != 0;
            at += 1 + *bytes;
            continue;
        }
        switch (*bytes) {
        case 0x3b: return TIDE_OK;
        // Some writers leave a terminator too many, and every viewer ignores it.
        case 0x00: at += 1; break;
        case 0x21:
            at += 2;
            within = true;
            break;
        case 0x2c:
            bytes = tide_image_at(from, at, 10);
            if (!bytes) return tide_image_broken(from, "an image descriptor", at);
            at += 11 + gif_table_size(bytes[9]);
            within = true;
            break;
        default: return tide_image_broken(from, "a block", at);
        }
    }
    return tide_image_broken(from, "a trailer", at);
}

// WebP

/// Reads the size of the picture from its first chunk, whose first 10 bytes (5 for VP8L) are at `bytes`.
static bool webp_size_read(uint32_t type, const uint8_t *bytes, tide_image *image) {
    if (type == tide_image_code("VP8X")) {
        image->width = tide_le24(bytes + 4) + 1;
        image->height = tide_le24(bytes + 7) + 1;
        return true;
    }
    if (type == tide_image_code("VP8L")) {
        uint32_t bits = tide_le32(bytes + 1);
        image->width = (bits & 0x3fff) + 1;
        image->height = (bits >> 14 & 0x3fff) + 1;
        return bytes[0] == 0x2f;
    }
    image->width = tide_le16(bytes + 6) & 0x3fff;
    image->height = tide_le16(bytes + 8) & 0x3fff;
    return memcmp(bytes + 3, "\x9d\x01\x2a", 3) == 0;
}

static tide_status webp_read(tide_image_source *from, tide_image *image) {
    from->ahead = 64;
    const uint8_t *bytes = tide_image_at(from, 4, 4);
    if (!bytes) return tide_image_broken(from, "the length of RIFF", 4);
    uint64_t end = 8 + (uint64_t)tide_le32(bytes);
    if (end > from->bytes.size) return tide_image_broken(from, "the end of RIFF", end);

    uint64_t at = 12;
    for (uint32_t parts = 0; parts < tide_image_part_limit; parts++) {
        // A rest that is shorter than a header is padding.
        if (parts > 0 && (at >= end || end - at < 8)) return TIDE_OK;
        bytes = end >= at + 8 ? tide_image_at(from, at, 8) : NULL;
        if (!bytes) return tide_image_broken(from, "a chunk", at);
        uint32_t type = tide_be32(bytes), length = tide_le32(bytes + 4);
        at += 8;
        if (length > end - at) return tide_image_broken(from, "the end of a chunk", at + length);
        if (parts == 0) {
            bool known = type == tide_image_code("VP8 ") || type == tide_image_code("VP8L") || type == tide_image_code("VP8X");
            uint32_t needed = type == tide_image_code("VP8L") ? 5 : 10;
            bytes = known && length >= needed ? tide_image_at(from, at, needed) : NULL;
            if (!bytes || !webp_size_read(type, bytes, image)) return tide_image_broken(from, "a VP8, VP8L or VP8X header", at);
        } else if (type == tide_image_code("EXIF")) {
            tide_image_note_exif(from, image, at, length);
        }
        at += (uint64_t)length + (length & 1);
    }
    return tide_image_broken(from, "the last chunk", at);
}

// All

static tide_media media_tell(const uint8_t *head, size_t length) {
    if (length >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0) return TIDE_MEDIA_JPEG;
    if (length >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0) return TIDE_MEDIA_PNG;
    if (length >= 6 && (memcmp(head, "GIF87a", 6) == 0 || memcmp(head, "GIF89a", 6) == 0)) return TIDE_MEDIA_GIF;
    if (length >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0) return TIDE_MEDIA_WEBP;
    if (length >= 12 && memcmp(head + 4, "ftyp", 4) == 0 && tide_heic_is_brand(head + 8)) return TIDE_MEDIA_HEIC;
    if (length >= 4 && (memcmp(head, "II*\0", 4) == 0 || memcmp(head, "MM\0*", 4) == 0)) return TIDE_MEDIA_TIFF;
    return TIDE_MEDIA_UNKNOWN;
}

static tide_status image_read(tide_image_source *from, tide_image *image) {
    switch (image->media) {
    case TIDE_MEDIA_UNKNOWN: return TIDE_OK;
    case TIDE_MEDIA_JPEG: from->name = "JPEG"; return jpeg_read(from, image);
    case TIDE_MEDIA_PNG: from->name = "PNG"; return png_read(from, image);
    case TIDE_MEDIA_GIF: from->name = "GIF"; return gif_read(from, image);
    case TIDE_MEDIA_WEBP: from->name = "WebP"; return webp_read(from, image);
    case TIDE_MEDIA_HEIC: from->name = "HEIC"; return tide_heic_read(from, image);
    case TIDE_MEDIA_TIFF: from->name = "TIFF"; return tide_tiff_read(from, image);
    }
    return TIDE_OK;
}

tide_status tide_image_probe(tide_bytes bytes, tide_image *image, tide_error *error) {
    *image = (tide_image){0};
    tide_image_source from;
    from.bytes = bytes;
    from.error = error;
    from.name = "image";
    from.status = TIDE_OK;
    from.ahead = 256;
    from.window_offset = 0;
    from.window_length = 0;

    size_t length = bytes.size < 12 ? (size_t)bytes.size : 12;
    if (length == 0) return TIDE_OK;
    const uint8_t *head = tide_image_at(&from, 0, length);
    if (!head) return from.status;
    image->media = media_tell(head, length);
    tide_status status = image_read(&from, image);
    // A failure to read an optional part, such as EXIF, shows only in the source's status.
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

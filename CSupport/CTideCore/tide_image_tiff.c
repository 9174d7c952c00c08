#include "tide_image_layout.h"

enum {
    tiff_directory_limit = 32,
    tiff_entry_limit = 4096,
    // The most strips and tiles that are checked, in all directories together.
    tiff_strip_limit = 16 * 1024,
};

typedef struct tiff {
    tide_image_source *from;
    bool is_big_endian;
    /// The places of the directories that were found, and their number. Its limit also ends a chain that runs in a circle.
    uint64_t directories[tiff_directory_limit];
    uint32_t directory_count;
    uint32_t strips_left;
} tiff;

/// A tag's values: the place of the first, their number, and the bytes of each.
typedef struct tiff_values {
    uint64_t at;
    uint32_t count, width;
} tiff_values;

static uint32_t tiff16(const tiff *it, const uint8_t *bytes) { return it->is_big_endian ? tide_be16(bytes) : tide_le16(bytes); }
static uint32_t tiff32(const tiff *it, const uint8_t *bytes) { return it->is_big_endian ? tide_be32(bytes) : tide_le32(bytes); }

static bool tiff_value(const tiff *it, const tiff_values *values, uint32_t index, uint32_t *value) {
    const uint8_t *bytes =
        index < values->count ? tide_image_at(it->from, values->at + (uint64_t)index * values->width, values->width) : NULL;
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
        if (!tiff_value(it, offsets, i, &offset)) return tide_image_broken(it->from, "the place of a strip", offsets->at);
        if (!tiff_value(it, lengths, i, &length)) return tide_image_broken(it->from, "the length of a strip", lengths->at);
        if ((uint64_t)offset + length > size) return tide_image_broken(it->from, "the end of a strip", (uint64_t)offset + length);
    }
    return TIDE_OK;
}

static tide_status tiff_directory_read(tiff *it, uint64_t at, tide_image *image, bool *is_whole_picture) {
    const uint8_t *bytes = tide_image_at(it->from, at, 2);
    if (!bytes) return tide_image_broken(it->from, "a directory", at);
    uint32_t entries = tiff16(it, bytes), width = 0, height = 0, kind = 0;
    if (entries > tiff_entry_limit) return tide_image_broken(it->from, "a directory of a sensible length", at);
    // Strips, then tiles: places and lengths.
    tiff_values parts[4] = {0};
    for (uint32_t i = 0; i < entries; i++) {
        uint64_t entry = at + 2 + (uint64_t)i * 12;
        if (!(bytes = tide_image_at(it->from, entry, 12))) return tide_image_broken(it->from, "an entry of a directory", entry);
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
    // The size is that of the picture itself, not of a smaller copy in the file. Of several pages, the largest counts.
    bool is_whole = !(kind & 1), is_larger = (uint64_t)width * height > (uint64_t)image->width * image->height;
    if (width && height && (is_whole == *is_whole_picture ? is_larger : is_whole)) {
        image->width = width;
        image->height = height;
        *is_whole_picture = is_whole;
    }
    uint64_t next = at + 2 + (uint64_t)entries * 12;
    // Some writers leave out the last link.
    if ((bytes = tide_image_at(it->from, next, 4))) tiff_directory_note(it, tiff32(it, bytes));
    return TIDE_OK;
}

tide_status tide_tiff_read(tide_image_source *from, tide_image *image) {
    const uint8_t *head = tide_image_at(from, 0, tide_tiff_header_size);
    if (!head) return tide_image_broken(from, "the header", 0);
    tiff it = {.from = from, .is_big_endian = head[0] == 'M', .strips_left = tiff_strip_limit};
    bool is_whole_picture = false;
    uint32_t first = tiff32(&it, head + 4);
    if (!first) return tide_image_broken(from, "a directory", 4);
    tiff_directory_note(&it, first);
    for (uint32_t i = 0; i < it.directory_count; i++) {
        tide_status status = tiff_directory_read(&it, it.directories[i], image, &is_whole_picture);
        if (status) return status;
    }
    tide_image_note_exif(from, image, 0, from->bytes.size);
    return TIDE_OK;
}

#include "tide_image_layout.h"

#include <string.h>

enum {
    heic_meta_limit = 16 * 1024 * 1024,
    heic_extent_limit = 64,
};

typedef struct box {
    uint32_t type;
    uint64_t body, end;
} box;

/// Reads the header of the box at `at`; false unless it lies before `end`.
static bool box_read(tide_image_source *from, uint64_t at, uint64_t end, box *read) {
    const uint8_t *bytes = end - at >= 8 ? tide_image_at(from, at, 8) : NULL;
    if (!bytes) return false;
    uint64_t size = tide_be32(bytes), header = 8;
    read->type = tide_be32(bytes + 4);
    if (size == 1) {
        bytes = end - at >= 16 ? tide_image_at(from, at, 16) : NULL;
        if (!bytes) return false;
        size = tide_be64(bytes + 8);
        header = 16;
    } else if (size == 0) {
        size = end - at;
    }
    if (size < header || size > end - at) return false;
    read->body = at + header;
    read->end = at + size;
    return true;
}

/// Reads big-endian fields one after the other. Past the end of its box a cursor is broken and yields zeros.
typedef struct cursor {
    tide_image_source *from;
    uint64_t at, end;
    bool broken;
} cursor;

static cursor cursor_create(tide_image_source *from, const box *within) { return (cursor){from, within->body, within->end, false}; }

static uint64_t cursor_take(cursor *fields, uint32_t width) {
    const uint8_t *bytes = fields->end - fields->at >= width ? tide_image_at(fields->from, fields->at, width) : NULL;
    if (!bytes) {
        fields->broken = true;
        return 0;
    }
    uint64_t value = 0;
    for (uint32_t i = 0; i < width; i++) value = value << 8 | bytes[i];
    fields->at += width;
    return value;
}

static bool heic_exif_find(tide_image_source *from, const box *iinf, uint64_t *item) {
    cursor fields = cursor_create(from, iinf);
    uint64_t version = cursor_take(&fields, 4) >> 24;
    cursor_take(&fields, version == 0 ? 2 : 4);
    box infe;
    for (uint64_t at = fields.at; box_read(from, at, iinf->end, &infe); at = infe.end) {
        fields = cursor_create(from, &infe);
        version = cursor_take(&fields, 4) >> 24;
        if (infe.type != tide_image_code("infe") || version < 2) continue;
        *item = cursor_take(&fields, version == 2 ? 2 : 4);
        cursor_take(&fields, 2);
        if (cursor_take(&fields, 4) == tide_image_code("Exif") && !fields.broken) return true;
    }
    return false;
}

/// Checks that the data of each item lies in the file, and notes the EXIF data if there is an item of it.
static tide_status heic_locations_read(tide_image_source *from, const box *iloc, const uint64_t *exif_item, tide_image *image) {
    uint64_t size = from->bytes.size;
    cursor fields = cursor_create(from, iloc);
    uint64_t version = cursor_take(&fields, 4) >> 24;
    uint32_t widths = (uint32_t)cursor_take(&fields, 2);
    uint32_t offset_width = widths >> 12, length_width = widths >> 8 & 15, base_width = widths >> 4 & 15;
    uint32_t index_width = version > 0 ? widths & 15 : 0;
    if ((offset_width | length_width | base_width | index_width) & 3 || version > 2 || offset_width > 8 || length_width > 8
        || base_width > 8 || index_width > 8) {
        return tide_image_broken(from, "a table of item locations", iloc->body);
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
        // Extents without fields take no room in the table, so the table's size does not bound their number.
        if (offset_width + length_width + index_width == 0) extents = 0;
        for (uint64_t j = 0; j < extents && !fields.broken; j++) {
            cursor_take(&fields, index_width);
            uint64_t offset = cursor_take(&fields, offset_width);
            uint64_t length = cursor_take(&fields, length_width);
            if (fields.broken || method != 0 || reference != 0) continue;
            if (base > size || offset > size - base) return tide_image_broken(from, "the data of an item", base + offset);
            offset += base;
            if (length > size - offset) return tide_image_broken(from, "the end of an item", offset + length);
            if (exif_item && item == *exif_item && extents == 1) {
                exif_offset = offset;
                exif_length = length;
            }
        }
    }
    if (fields.broken) return tide_image_broken(from, "the location of an item", fields.at);

    const uint8_t *bytes = exif_length > 4 ? tide_image_at(from, exif_offset, 4) : NULL;
    if (bytes && tide_be32(bytes) < exif_length - 4) {
        uint64_t skipped = 4 + (uint64_t)tide_be32(bytes);
        tide_image_note_exif(from, image, exif_offset + skipped, exif_length - skipped);
    }
    return TIDE_OK;
}

typedef struct heic_extent {
    uint64_t property;
    uint32_t width, height;
} heic_extent;

/// Collects the sizes among the properties, each with the property's number, which counts from 1.
static uint32_t heic_extents_collect(tide_image_source *from, const box *ipco, heic_extent extents[heic_extent_limit]) {
    uint32_t count = 0;
    uint64_t property = 0;
    box child;
    for (uint64_t at = ipco->body; count < heic_extent_limit && box_read(from, at, ipco->end, &child); at = child.end) {
        property++;
        if (child.type != tide_image_code("ispe")) continue;
        cursor fields = cursor_create(from, &child);
        cursor_take(&fields, 4);
        uint32_t width = (uint32_t)cursor_take(&fields, 4), height = (uint32_t)cursor_take(&fields, 4);
        if (!fields.broken) extents[count++] = (heic_extent){property, width, height};
    }
    return count;
}

/// Finds the size that `ipma` gives to `item`. True if `ipma` lists the item, even without a size.
static bool heic_size_find(
    tide_image_source *from, const box *ipma, uint64_t item, const heic_extent *extents, uint32_t extent_count, tide_image *image
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

static void heic_size_read(tide_image_source *from, const box *iprp, uint64_t item, tide_image *image) {
    heic_extent extents[heic_extent_limit];
    uint32_t extent_count = 0;
    box child;
    for (uint64_t at = iprp->body; box_read(from, at, iprp->end, &child); at = child.end) {
        if (child.type == tide_image_code("ipco") && !extent_count) extent_count = heic_extents_collect(from, &child, extents);
        if (child.type == tide_image_code("ipma") && heic_size_find(from, &child, item, extents, extent_count, image)) return;
    }
}

static tide_status heic_meta_read(tide_image_source *from, const box *meta, tide_image *image) {
    box child, pitm = {0}, iinf = {0}, iloc = {0}, iprp = {0};
    from->ahead = tide_image_window;
    if (meta->end - meta->body < 4) return tide_image_broken(from, "the head of a meta box", meta->body);
    for (uint64_t at = meta->body + 4; at < meta->end; at = child.end) {
        if (!box_read(from, at, meta->end, &child)) return tide_image_broken(from, "a box within its meta box", at);
        if (child.type == tide_image_code("pitm") && !pitm.end) pitm = child;
        if (child.type == tide_image_code("iinf") && !iinf.end) iinf = child;
        if (child.type == tide_image_code("iloc") && !iloc.end) iloc = child;
        if (child.type == tide_image_code("iprp") && !iprp.end) iprp = child;
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

tide_status tide_heic_read(tide_image_source *from, tide_image *image) {
    uint64_t size = from->bytes.size, at = 0;
    box child, meta = {0};
    from->ahead = 64;
    for (uint32_t parts = 0; at < size; parts++) {
        if (parts == tide_image_part_limit) return tide_image_broken(from, "the last box", at);
        if (!box_read(from, at, size, &child)) return tide_image_broken(from, "a box that ends within the file", at);
        if (child.type == tide_image_code("meta") && !meta.end) meta = child;
        at = child.end;
    }
    if (!meta.end) return tide_image_broken(from, "a meta box", size);
    // No camera writes such a large meta box. Size and EXIF stay unknown.
    if (meta.end - meta.body > heic_meta_limit) return TIDE_OK;
    return heic_meta_read(from, &meta, image);
}

bool tide_heic_is_brand(const uint8_t *brand) {
    static const char brands[][5] = {
        "heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1", "avif", "avis",
    };
    for (size_t i = 0; i < sizeof brands / sizeof *brands; i++) {
        if (memcmp(brand, brands[i], 4) == 0) return true;
    }
    return false;
}

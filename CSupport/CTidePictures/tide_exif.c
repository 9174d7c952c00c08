#include "tide_exif.h"

#include <libexif/exif-data.h>
#include <stdlib.h>
#include <string.h>

#include "tide_calendar.h"

enum {
    prefix_size = 6,
    // The bytes of a block that libexif reads: offsets have 16 bits, and count the prefix.
    block_limit = 0xfffe - prefix_size,
    entry_size = 12,
    // The longest wanted value is a date. Anything much longer is none of the wanted values.
    component_limit = 64,
    // Neither EXIF nor libexif has such a tag, and libexif skips tags that it does not know.
    hidden_tag = 0xffff,
};

static const int64_t microseconds = 1000000;

// The block

/// A private copy of a block, of 8 bytes or more.
typedef struct tiff_block {
    uint8_t *bytes;
    uint32_t length;
    ExifByteOrder order;
    bool changed;
} tiff_block;

static bool tag_is_wanted(uint32_t tag) {
    switch (tag) {
    case EXIF_TAG_GPS_LATITUDE_REF:
    case EXIF_TAG_GPS_LATITUDE:
    case EXIF_TAG_GPS_LONGITUDE_REF:
    case EXIF_TAG_GPS_LONGITUDE:
    case EXIF_TAG_ORIENTATION:
    case EXIF_TAG_DATE_TIME:
    case EXIF_TAG_DATE_TIME_ORIGINAL:
    case EXIF_TAG_DATE_TIME_DIGITIZED:
    case EXIF_TAG_OFFSET_TIME:
    case EXIF_TAG_OFFSET_TIME_ORIGINAL:
    case EXIF_TAG_OFFSET_TIME_DIGITIZED:
    case EXIF_TAG_SUB_SEC_TIME:
    case EXIF_TAG_SUB_SEC_TIME_ORIGINAL:
    case EXIF_TAG_SUB_SEC_TIME_DIGITIZED: return true;
    default: return false;
    }
}

static uint32_t block_short(const tiff_block *it, uint32_t offset) { return exif_get_short(it->bytes + offset, it->order); }
static uint32_t block_long(const tiff_block *it, uint32_t offset) { return exif_get_long(it->bytes + offset, it->order); }

/// Hides the entries of the directory at `offset`, except the wanted ones. The first pointers to sub-directories stay too, if `exif` and
/// `gps` are given, which get their places. Returns the end of the entries, or 0 when there is no directory.
static uint32_t directory_trim(tiff_block *within, uint32_t offset, uint32_t *exif, uint32_t *gps) {
    if (offset > within->length - 2) return 0;
    uint32_t count = block_short(within, offset), room = (within->length - offset - 2) / entry_size;
    if (count > room) count = room;
    uint32_t at = offset + 2;
    for (; count > 0; count--, at += entry_size) {
        uint32_t tag = block_short(within, at);
        if (tag == hidden_tag) continue;
        uint32_t *pointer = tag == EXIF_TAG_EXIF_IFD_POINTER ? exif : tag == EXIF_TAG_GPS_INFO_IFD_POINTER ? gps : NULL;
        uint32_t place = pointer && *pointer == 0 ? block_long(within, at + 8) : 0;
        if (place > 0 && place < within->length) {
            *pointer = place;
            continue;
        }
        if (tag_is_wanted(tag) && block_long(within, at + 4) <= component_limit) continue;
        exif_set_short(within->bytes + at, within->order, hidden_tag);
        within->changed = true;
    }
    return at;
}

/// Hides all entries from libexif but the wanted ones; false when the block has no directory.
///
/// libexif follows each pointer to a sub-directory as long as that one stays empty, so a hostile block of pointers to directories
/// of unknown tags costs the product of their lengths: minutes for 64 KiB. It would read maker notes, too.
static bool block_trim(tiff_block *within) {
    uint32_t exif = 0, gps = 0;
    uint32_t end = directory_trim(within, block_long(within, 4), &exif, &gps);
    if (end == 0) return false;
    uint32_t thumbnail = end <= within->length - 4 ? block_long(within, end) : 0;
    if (thumbnail) directory_trim(within, thumbnail, NULL, NULL);
    if (exif) directory_trim(within, exif, NULL, NULL);
    if (gps) directory_trim(within, gps, NULL, NULL);
    return true;
}

// Memory

/// Whether libexif ran out of memory: it then leaves entries out without an error.
static _Thread_local bool memory_ran_out;

static void *memory_get(ExifLong size) {
    void *memory = calloc(1, size);
    memory_ran_out |= !memory;
    return memory;
}

static void *memory_resize(void *memory, ExifLong size) {
    void *moved = realloc(memory, size);
    memory_ran_out |= !moved;
    return moved;
}

static ExifData *data_create(void) {
    ExifMem *memory = exif_mem_new(memory_get, memory_resize, free);
    ExifData *data = memory ? exif_data_new_mem(memory) : NULL;
    if (memory) exif_mem_unref(memory);
    return data;
}

/// Reads a block. `*data` is NULL when it makes no sense.
static tide_status block_load(const uint8_t *bytes, size_t length, ExifData **data) {
    *data = NULL;
    if (length < 8) return TIDE_OK;
    if (length > block_limit) length = block_limit;
    bool intel = memcmp(bytes, "II", 2) == 0;
    if (!intel && memcmp(bytes, "MM", 2) != 0) return TIDE_OK;
    uint8_t *copy = malloc(prefix_size + length);
    if (!copy) return TIDE_NO_MEMORY;
    memcpy(copy, "Exif\0", prefix_size);
    memcpy(copy + prefix_size, bytes, length);

    tiff_block trimmed = {
        .bytes = copy + prefix_size,
        .length = (uint32_t)length,
        .order = intel ? EXIF_BYTE_ORDER_INTEL : EXIF_BYTE_ORDER_MOTOROLA,
    };
    bool readable = block_trim(&trimmed);
    // Where directories overlap, hiding an entry of one may uncover an entry of another. So only a block that needs no second change is safe.
    if (readable && trimmed.changed) {
        trimmed.changed = false;
        readable = block_trim(&trimmed) && !trimmed.changed;
    }
    memory_ran_out = false;
    ExifData *loaded = readable ? data_create() : NULL;
    if (loaded && !memory_ran_out) {
        exif_data_unset_option(loaded, EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
        exif_data_load_data(loaded, copy, (unsigned int)(prefix_size + length));
    }
    free(copy);
    if (memory_ran_out) {
        exif_data_unref(loaded);
        return TIDE_NO_MEMORY;
    }
    *data = loaded;
    return TIDE_OK;
}

// Time

typedef struct time_tags {
    ExifIfd directory;
    ExifTag time, fraction, offset;
} time_tags;

static ExifEntry *entry_get(ExifData *data, ExifIfd directory, ExifTag tag) {
    ExifEntry *entry = exif_content_get_entry(data->ifd[directory], tag);
    return entry && entry->data ? entry : NULL;
}

/// Whether only padding follows the first `used` bytes.
static bool entry_ends(const ExifEntry *entry, unsigned int used) {
    for (unsigned int i = used; i < entry->size && entry->data[i]; i++) {
        if (entry->data[i] != ' ') return false;
    }
    return true;
}

/// Reads digits where the pattern has '0'; each other character must be the pattern's and begins the next number.
static bool numbers_read(const uint8_t *text, const char *pattern, int32_t *numbers) {
    *numbers = 0;
    for (; *pattern; pattern++, text++) {
        if (*pattern != '0') {
            if (*text != (uint8_t)*pattern) return false;
            *++numbers = 0;
            continue;
        }
        if (*text < '0' || *text > '9') return false;
        *numbers = *numbers * 10 + (*text - '0');
    }
    return true;
}

static bool seconds_read(const ExifEntry *entry, int64_t *seconds) {
    int32_t n[6];
    if (!entry || entry->size < 19 || !entry_ends(entry, 19)) return false;
    if (!numbers_read(entry->data, "0000:00:00 00:00:00", n)) return false;
    if (n[0] < 1 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > tide_days_in_month(n[0], n[1])) return false;
    if (n[3] > 23 || n[4] > 59 || n[5] > 59) return false;
    *seconds = tide_days_from_civil(n[0], n[1], n[2]) * 86400 + n[3] * 3600 + n[4] * 60 + n[5];
    return true;
}

/// Reads the digits after the decimal point as microseconds; only six count. 0 for any other text.
static int64_t fraction_read(const ExifEntry *entry) {
    if (!entry) return 0;
    unsigned int used = 0;
    int64_t fraction = 0, unit = microseconds / 10;
    for (; used < entry->size && entry->data[used] >= '0' && entry->data[used] <= '9'; used++, unit /= 10) {
        fraction += (entry->data[used] - '0') * unit;
    }
    return entry_ends(entry, used) ? fraction : 0;
}

/// Seconds east of UTC; false when unknown, which counts as UTC.
static bool offset_read(const ExifEntry *entry, int32_t *offset) {
    int32_t n[2];
    *offset = 0;
    if (!entry || entry->size < 6 || !numbers_read(entry->data + 1, "00:00", n) || !entry_ends(entry, 6)) return false;
    int32_t seconds = n[0] * 3600 + n[1] * 60;
    // No place is farther than 14 hours from UTC.
    if (n[1] > 59 || seconds > 14 * 3600 || (entry->data[0] != '+' && entry->data[0] != '-')) return false;
    *offset = entry->data[0] == '+' ? seconds : -seconds;
    return true;
}

static bool time_read(ExifData *data, tide_exif *exif) {
    static const time_tags choices[] = {
        {EXIF_IFD_EXIF, EXIF_TAG_DATE_TIME_ORIGINAL, EXIF_TAG_SUB_SEC_TIME_ORIGINAL, EXIF_TAG_OFFSET_TIME_ORIGINAL},
        {EXIF_IFD_EXIF, EXIF_TAG_DATE_TIME_DIGITIZED, EXIF_TAG_SUB_SEC_TIME_DIGITIZED, EXIF_TAG_OFFSET_TIME_DIGITIZED},
        {EXIF_IFD_0, EXIF_TAG_DATE_TIME, EXIF_TAG_SUB_SEC_TIME, EXIF_TAG_OFFSET_TIME},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const time_tags *tags = &choices[i];
        int64_t seconds;
        if (!seconds_read(entry_get(data, tags->directory, tags->time), &seconds)) continue;
        // Fraction and offset are among EXIF's own tags, even if the time is among TIFF's.
        int32_t offset;
        bool has_offset = offset_read(entry_get(data, EXIF_IFD_EXIF, tags->offset), &offset);
        seconds -= offset;
        if (!tide_time_has_text(seconds * microseconds)) continue;
        exif->offset = offset;
        exif->has_offset = has_offset;
        exif->time = seconds * microseconds + fraction_read(entry_get(data, EXIF_IFD_EXIF, tags->fraction));
        return true;
    }
    return false;
}

// Position

static bool degrees_read(ExifData *data, ExifTag tag, ExifTag side_tag, const char *sides, double limit, double *degrees) {
    const ExifEntry *entry = entry_get(data, EXIF_IFD_GPS, tag), *side = entry_get(data, EXIF_IFD_GPS, side_tag);
    if (!entry || entry->format != EXIF_FORMAT_RATIONAL || entry->components != 3 || entry->size < 24) return false;
    if (!side || side->size < 1) return false;
    bool negative = side->data[0] == (uint8_t)sides[1];
    if (!negative && side->data[0] != (uint8_t)sides[0]) return false;

    double sum = 0, unit = 1;
    for (int i = 0; i < 3; i++, unit /= 60) {
        ExifRational part = exif_get_rational(entry->data + i * 8, exif_data_get_byte_order(data));
        if (part.denominator == 0) return false;
        double value = (double)part.numerator / part.denominator;
        // Rounding may make 60 of a value that is a little less.
        if (i > 0 && value > 60) return false;
        sum += value * unit;
    }
    if (sum > limit) return false;
    *degrees = negative && sum != 0 ? -sum : sum;
    return true;
}

// All

static uint8_t orientation_read(ExifData *data) {
    const ExifEntry *entry = entry_get(data, EXIF_IFD_0, EXIF_TAG_ORIENTATION);
    if (!entry || entry->format != EXIF_FORMAT_SHORT || entry->size < 2) return 1;
    ExifShort value = exif_get_short(entry->data, exif_data_get_byte_order(data));
    return value >= 1 && value <= 8 ? (uint8_t)value : 1;
}

tide_status tide_exif_read(const uint8_t *block, size_t length, tide_exif *exif) {
    *exif = (tide_exif){.orientation = 1};
    ExifData *data;
    tide_status status = block_load(block, length, &data);
    if (status || !data) return status;
    exif->has_time = time_read(data, exif);
    double latitude, longitude;
    if (degrees_read(data, EXIF_TAG_GPS_LATITUDE, EXIF_TAG_GPS_LATITUDE_REF, "NS", 90, &latitude)
        && degrees_read(data, EXIF_TAG_GPS_LONGITUDE, EXIF_TAG_GPS_LONGITUDE_REF, "EW", 180, &longitude)) {
        exif->has_position = true;
        exif->latitude = latitude;
        exif->longitude = longitude;
    }
    exif->orientation = orientation_read(data);
    exif_data_unref(data);
    return TIDE_OK;
}

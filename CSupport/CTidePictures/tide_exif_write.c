#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tide_exif.h"

enum {
    type_byte = 1,
    type_ascii = 2,
    type_long = 4,
    type_rational = 5,
    type_undefined = 7,
    entry_size = 12,
};

/// Writes a TIFF block in big-endian order. Values of more than 4 bytes are written behind the directories.
typedef struct writer {
    uint8_t *block;
    size_t entry, values;
} writer;

static void put_short(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put_long(uint8_t *at, uint32_t value) {
    put_short(at, value >> 16);
    put_short(at + 2, value & 0xffff);
}

static void directory_begin(writer *to, size_t at, uint32_t count) {
    put_short(to->block + at, count);
    to->entry = at + 2;
    // The place of the next directory: there is none.
    put_long(to->block + at + 2 + count * entry_size, 0);
}

static size_t directory_size(uint32_t count) { return 2 + count * entry_size + 4; }

static void entry_add(writer *to, uint32_t tag, uint32_t type, uint32_t count, const void *bytes, size_t length) {
    uint8_t *at = to->block + to->entry;
    put_short(at, tag);
    put_short(at + 2, type);
    put_long(at + 4, count);
    memset(at + 8, 0, 4);
    if (length <= 4) {
        memcpy(at + 8, bytes, length);
    } else {
        put_long(at + 8, (uint32_t)to->values);
        memcpy(to->block + to->values, bytes, length);
        // Values begin at even offsets.
        if (length & 1) to->block[to->values + length] = 0;
        to->values += length + (length & 1);
    }
    to->entry += entry_size;
}

static void pointer_add(writer *to, uint32_t tag, size_t offset) {
    uint8_t bytes[4];
    put_long(bytes, (uint32_t)offset);
    entry_add(to, tag, type_long, 1, bytes, sizeof bytes);
}

static void degrees_add(writer *to, uint32_t tag, double degrees) {
    // Seconds in ten-thousandths: 3 mm.
    uint64_t units = (uint64_t)llround(fabs(degrees) * 36000000);
    uint32_t parts[6] = {(uint32_t)(units / 36000000), 1, (uint32_t)(units / 600000 % 60), 1, (uint32_t)(units % 600000), 10000};
    uint8_t bytes[24];
    for (int i = 0; i < 6; i++) put_long(bytes + 4 * i, parts[i]);
    entry_add(to, tag, type_rational, 3, bytes, sizeof bytes);
}

/// The date of a day, counted from 1970-01-01.
static void civil_from_days(int64_t days, int *year, int *month, int *day) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * shifted + 2) / 5 + 1);
    *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = (int)(year_of_era + era * 400 + (*month <= 2));
}

static void time_add(writer *to, const tide_exif *exif, bool has_fraction) {
    int64_t local = exif->time + (int64_t)exif->offset * 1000000;
    int64_t fraction = ((local % 1000000) + 1000000) % 1000000, seconds = (local - fraction) / 1000000;
    int64_t clock = ((seconds % 86400) + 86400) % 86400;
    int year, month, day;
    civil_from_days((seconds - clock) / 86400, &year, &month, &day);
    char text[64];
    snprintf(
        text, sizeof text, "%04d:%02d:%02d %02d:%02d:%02d", year, month, day, (int)(clock / 3600), (int)(clock / 60 % 60), (int)(clock % 60));
    entry_add(to, 0x9003, type_ascii, 20, text, 20);
    if (exif->has_offset) {
        int minutes = exif->offset < 0 ? -exif->offset / 60 : exif->offset / 60;
        snprintf(text, sizeof text, "%c%02d:%02d", exif->offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
        entry_add(to, 0x9011, type_ascii, 7, text, 7);
    }
    if (has_fraction) {
        snprintf(text, sizeof text, "%06d", (int)fraction);
        entry_add(to, 0x9291, type_ascii, 7, text, 7);
    }
}

/// Whether there is a time whose local year has four digits, as the field does: the years 1 to 9999.
static bool has_writable_time(const tide_exif *exif) {
    int64_t local = exif->time + (int64_t)exif->offset * 1000000;
    return exif->has_time && local >= -62135596800000000 && local < 253402300800000000;
}

size_t tide_exif_write(const tide_exif *exif, uint8_t block[TIDE_EXIF_WRITE_SIZE]) {
    bool has_time = has_writable_time(exif);
    if (!has_time && !exif->has_position) return 0;
    bool has_fraction = has_time && exif->time % 1000000 != 0;
    uint32_t times = has_time ? 2 + exif->has_offset + has_fraction : 0, pointers = (uint32_t)has_time + exif->has_position;
    size_t main = 8, exif_at = main + directory_size(pointers), gps_at = exif_at + (times ? directory_size(times) : 0);
    writer to = {.block = block, .values = gps_at + (exif->has_position ? directory_size(5) : 0)};
    memcpy(block, "MM\0*\0\0\0\x08", 8);
    directory_begin(&to, main, pointers);
    if (has_time) pointer_add(&to, 0x8769, exif_at);
    if (exif->has_position) pointer_add(&to, 0x8825, gps_at);
    if (has_time) {
        directory_begin(&to, exif_at, times);
        // Entries are sorted by tag.
        entry_add(&to, 0x9000, type_undefined, 4, "0232", 4);
        time_add(&to, exif, has_fraction);
    }
    if (exif->has_position) {
        directory_begin(&to, gps_at, 5);
        entry_add(&to, 0, type_byte, 4, "\x02\x03\0\0", 4);
        entry_add(&to, 1, type_ascii, 2, exif->latitude < 0 ? "S" : "N", 2);
        degrees_add(&to, 2, exif->latitude);
        entry_add(&to, 3, type_ascii, 2, exif->longitude < 0 ? "W" : "E", 2);
        degrees_add(&to, 4, exif->longitude);
    }
    return to.values;
}

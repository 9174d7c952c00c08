/// Makes the data that the benchmarks read: a travel journal as JSON Lines and CSV, and its pictures.
///
/// Everything follows from the seed: the same arguments give the same bytes. Memory does not grow with the number of records.

#define _GNU_SOURCE
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: generate DIR --records N --pictures P [--seed S] [--changed K] [--bare]\n"
    "\n"
    "Writes to DIR:\n"
    "  records.jsonl                     N records, P of them with a picture\n"
    "  records-nopictures.jsonl          the same without their pictures\n"
    "  records.csv                       the same as records.jsonl, as CSV\n"
    "  pictures/ab/0123.jpg              P grey baseline JPEG files of 50 to 500 KB\n"
    "with --changed K also\n"
    "  records-changed.jsonl             records.jsonl with another caption in K rows\n"
    "  records-nopictures-changed.jsonl  the same without pictures\n"
    "with --bare nothing but the files without pictures.\n";

static _Noreturn void fail(const char *format, ...) {
    int code = errno;
    va_list arguments;
    va_start(arguments, format);
    fputs("generate: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (code != 0) fprintf(stderr, ": %s", strerror(code));
    fputc('\n', stderr);
    exit(1);
}

// MARK: - Buffered files

enum { OUTPUT_BYTES = 1 << 20, LINE_BYTES = 2 * (JOURNAL_DETAILS_BYTES + JOURNAL_CAPTION_BYTES) + 1024 };

typedef struct output {
    char *path;
    char *buffer;
    size_t length;
    int file;
} output;

static void output_open(output *output, const char *folder, const char *name) {
    output->length = 0;
    output->buffer = malloc(OUTPUT_BYTES);
    if (output->buffer == NULL || asprintf(&output->path, "%s/%s", folder, name) < 0) fail("no memory");
    output->file = open(output->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (output->file < 0) fail("%s", output->path);
}

static void write_all(int file, const char *path, const void *bytes, size_t length) {
    for (const char *next = bytes; length > 0;) {
        ssize_t written = write(file, next, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("%s", path);
        next += written;
        length -= (size_t)written;
    }
}

static void output_append(output *output, const char *bytes, size_t length) {
    if (output->length + length > OUTPUT_BYTES) {
        write_all(output->file, output->path, output->buffer, output->length);
        output->length = 0;
    }
    memcpy(output->buffer + output->length, bytes, length);
    output->length += length;
}

static void output_close(output *output) {
    write_all(output->file, output->path, output->buffer, output->length);
    if (close(output->file) != 0) fail("%s", output->path);
    free(output->buffer);
    free(output->path);
}

// MARK: - Values as text

static char *put(char *end, const char *bytes, size_t length) {
    memcpy(end, bytes, length);
    return end + length;
}

#define PUT(end, literal) put(end, literal, sizeof(literal) - 1)

static char *put_decimal(char *end, uint64_t value, int digits) {
    for (int place = digits - 1; place >= 0; place--) {
        end[place] = (char)('0' + value % 10);
        value /= 10;
    }
    return end + digits;
}

static char *put_uuid(char *end, const uint8_t id[16]) {
    for (int index = 0; index < 16; index++) {
        if (index == 4 || index == 6 || index == 8 || index == 10) *end++ = '-';
        *end++ = "0123456789abcdef"[id[index] >> 4];
        *end++ = "0123456789abcdef"[id[index] & 15];
    }
    return end;
}

static char *put_date(char *end, int64_t milliseconds) {
    // Days to a civil date, after Howard Hinnant.
    int64_t days = milliseconds / 86400000 + 719468;
    uint64_t of_day = (uint64_t)(milliseconds % 86400000);
    int64_t era = days / 146097, of_era = days - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    int64_t day = of_year - (153 * shifted + 2) / 5 + 1, month = shifted < 10 ? shifted + 3 : shifted - 9;
    end = put_decimal(end, (uint64_t)(year_of_era + era * 400 + (month <= 2)), 4);
    *end++ = '-';
    end = put_decimal(end, (uint64_t)month, 2);
    *end++ = '-';
    end = put_decimal(end, (uint64_t)day, 2);
    *end++ = 'T';
    end = put_decimal(end, of_day / 3600000, 2);
    *end++ = ':';
    end = put_decimal(end, of_day / 60000 % 60, 2);
    *end++ = ':';
    end = put_decimal(end, of_day / 1000 % 60, 2);
    *end++ = '.';
    end = put_decimal(end, of_day % 1000, 3);
    *end++ = 'Z';
    return end;
}

static char *put_tenths(char *end, int32_t tenths) {
    if (tenths < 0) *end++ = '-';
    uint32_t size = tenths < 0 ? 0u - (uint32_t)tenths : (uint32_t)tenths;
    int digits = size >= 100000 ? 5 : size >= 10000 ? 4 : size >= 1000 ? 3 : size >= 100 ? 2 : 1;
    end = put_decimal(end, size / 10, digits);
    *end++ = '.';
    return put_decimal(end, size % 10, 1);
}

/// Escapes quotes and line breaks, and writes é and à as \u00e9 and \u00e0; other characters stay UTF-8.
static char *put_json_escaped(char *end, const char *text, size_t length) {
    for (const char *next = text, *last = text + length; next < last; next++) {
        if (*next == '"') {
            end = PUT(end, "\\\"");
        } else if (*next == '\n') {
            end = PUT(end, "\\n");
        } else if (next + 1 < last && memcmp(next, "é", 2) == 0) {
            end = PUT(end, "\\u00e9");
            next++;
        } else if (next + 1 < last && memcmp(next, "à", 2) == 0) {
            end = PUT(end, "\\u00e0");
            next++;
        } else {
            *end++ = *next;
        }
    }
    return end;
}

static char *put_csv_text(char *end, const char *text, size_t length) {
    if (!memchr(text, ',', length) && !memchr(text, '"', length) && !memchr(text, '\n', length)) return put(end, text, length);
    *end++ = '"';
    for (const char *next = text; next < text + length; next++) {
        if (*next == '"') *end++ = '"';
        *end++ = *next;
    }
    *end++ = '"';
    return end;
}

// MARK: - Pictures

/// Collects bits into big-endian words and stuffs a zero after each byte FF, as JPEG asks.
typedef struct bit_writer {
    uint8_t *end;
    uint64_t pending;
    unsigned count;
} bit_writer;

static void bits_flush_word(bit_writer *bits, uint64_t word) {
    uint64_t inverted = ~word;
    if (((inverted - 0x0101010101010101u) & ~inverted & 0x8080808080808080u) == 0) {
        uint64_t big_endian = __builtin_bswap64(word);
        memcpy(bits->end, &big_endian, 8);
        bits->end += 8;
        return;
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        uint8_t byte = (uint8_t)(word >> shift);
        *bits->end++ = byte;
        if (byte == 0xff) *bits->end++ = 0;
    }
}

/// Appends the lowest `count` bits of `value`, at most 63; the others are zero.
static void bits_put(bit_writer *bits, uint64_t value, unsigned count) {
    if (bits->count + count < 64) {
        bits->pending = bits->pending << count | value;
        bits->count += count;
        return;
    }
    unsigned rest = bits->count + count - 64;
    bits_flush_word(bits, bits->pending << (count - rest) | value >> rest);
    bits->pending = value & ((UINT64_C(1) << rest) - 1);
    bits->count = rest;
}

static void bits_finish(bit_writer *bits) {
    while (bits->count % 8 != 0) bits_put(bits, 1, 1);
    while (bits->count > 0) {
        bits->count -= 8;
        uint8_t byte = (uint8_t)(bits->pending >> bits->count);
        *bits->end++ = byte;
        if (byte == 0xff) *bits->end++ = 0;
    }
}

enum {
    PICTURE_BYTES_MIN = 51000,
    PICTURE_BYTES_MAX = 498000,
    /// Room for the largest picture should every byte need stuffing.
    PICTURE_BYTES_ROOM = 2 * PICTURE_BYTES_MAX + 4096,
    /// One block: a DC code of 1 + 3 bits and 63 AC codes of 1 + 8 bits.
    BLOCK_BITS = 4 + 63 * 9,
    STREAM_PICTURE = 100,
};

/// Makes a valid grey baseline JPEG of noise, with an EXIF date, and returns its length.
///
/// The Huffman tables hold one code each (the single bit 0), so that random bits after each code are a valid coefficient.
static size_t make_picture(uint64_t seed, uint64_t picture, uint8_t *bytes) {
    static const uint8_t head[] = {
        0xff, 0xd8, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0,   // SOI, APP0
        0xff, 0xe1, 0, 84, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0,          // APP1, offsets from II
        2, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0,                                       // orientation 1
        0x69, 0x87, 4, 0, 1, 0, 0, 0, 38, 0, 0, 0, 0, 0, 0, 0,                             // the EXIF directory at 38
        1, 0, 0x03, 0x90, 2, 0, 20, 0, 0, 0, 56, 0, 0, 0, 0, 0, 0, 0,                      // DateTimeOriginal at 56
    };
    static const uint8_t tables[] = {
        0xff, 0xc4, 0, 20, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3,  // DHT, DC: 3 bits follow
        0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8,  // DHT, AC: no zeros, 8 bits follow
        0xff, 0xda, 0, 8, 1, 1, 0x00, 0, 63, 0,                                     // SOS
    };
    journal_random random = journal_random_make(seed, STREAM_PICTURE, picture);
    uint64_t target = PICTURE_BYTES_MIN + journal_random_below(&random, PICTURE_BYTES_MAX - PICTURE_BYTES_MIN);
    uint64_t blocks = target * 8 / BLOCK_BITS, columns = 1;
    while (columns * columns * 3 < blocks * 4) columns++;
    uint64_t rows = blocks / columns;

    uint8_t *end = bytes;
    memcpy(end, head, sizeof(head));
    end += sizeof(head);
    char date[64];
    snprintf(date, sizeof(date), "20%02u:%02u:%02u %02u:%02u:%02u", 10 + (unsigned)journal_random_below(&random, 15),
             1 + (unsigned)journal_random_below(&random, 12), 1 + (unsigned)journal_random_below(&random, 28),
             (unsigned)journal_random_below(&random, 24), (unsigned)journal_random_below(&random, 60),
             (unsigned)journal_random_below(&random, 60));
    memcpy(end, date, 20);
    end += 20;
    const uint8_t quantization[] = {0xff, 0xdb, 0, 67, 0};
    memcpy(end, quantization, sizeof(quantization));
    memset(end + sizeof(quantization), 1, 64);
    end += sizeof(quantization) + 64;
    const uint8_t frame[] = {0xff, 0xc0, 0, 11, 8, (uint8_t)(rows * 8 >> 8), (uint8_t)(rows * 8), (uint8_t)(columns * 8 >> 8),
                             (uint8_t)(columns * 8), 1, 1, 0x11, 0};
    memcpy(end, frame, sizeof(frame));
    end += sizeof(frame);
    memcpy(end, tables, sizeof(tables));
    end += sizeof(tables);

    bit_writer bits = {.end = end};
    int brightness = 0;
    for (uint64_t block = 0; block < rows * columns; block++) {
        // The upper half of the three-bit values is positive. The sign is turned where the sum would leave the scale.
        uint64_t draw = journal_random_next(&random), step = draw & 7;
        if (brightness > 500) step &= 3;
        if (brightness < -500) step |= 4;
        brightness += step >= 4 ? (int)step : (int)step - 7;
        bits_put(&bits, step, 4);
        for (int group = 0; group < 9; group++) {
            // Seven codes at once: in each nine bits the highest is the code, the others the coefficient.
            uint64_t mask = 0;
            for (int code = 0; code < 7; code++) mask = mask << 9 | 0xff;
            bits_put(&bits, journal_random_next(&random) & mask, 63);
        }
    }
    bits_finish(&bits);
    end = bits.end;
    *end++ = 0xff;
    *end++ = 0xd9;
    return (size_t)(end - bytes);
}

static void make_folder(const char *path) {
    if (mkdir(path, 0755) != 0 && errno != EEXIST) fail("%s", path);
    errno = 0;
}

static uint64_t write_pictures(const char *folder, uint64_t seed, uint64_t pictures) {
    char path[4096];
    uint64_t total = 0;
    uint8_t *bytes = malloc(PICTURE_BYTES_ROOM);
    if (bytes == NULL) fail("no memory");
    snprintf(path, sizeof(path), "%s/pictures", folder);
    make_folder(path);
    for (uint64_t picture = 0; picture < pictures; picture++) {
        char relative[JOURNAL_PATH_BYTES];
        journal_picture_path(seed, picture, relative);
        snprintf(path, sizeof(path), "%s/%s", folder, relative);
        size_t length = make_picture(seed, picture, bytes);
        int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (file < 0 && errno == ENOENT) {
            char *name = strrchr(path, '/');
            *name = 0;
            make_folder(path);
            *name = '/';
            file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        }
        if (file < 0) fail("%s", path);
        write_all(file, path, bytes, length);
        if (close(file) != 0) fail("%s", path);
        total += length;
    }
    free(bytes);
    return total;
}

// MARK: - Records

typedef struct line {
    char bytes[LINE_BYTES];
    size_t length;
} line;

typedef struct settings {
    const char *folder;
    uint64_t records, pictures, changed, seed;
    bool with_changed, bare;
} settings;

/// Writes one record as a line of JSON, with the given caption and, unless it is NULL, the path of its picture.
static void make_json(line *line, const journal_record *record, const journal_caption *caption, const char *picture) {
    char *end = line->bytes;
    end = PUT(end, "{\"id\":\"");
    end = put_uuid(end, record->id);
    end = PUT(end, "\",\"createdAt\":\"");
    end = put_date(end, record->created_at);
    end = PUT(end, "\",\"caption\":\"");
    end = put(end, caption->bytes, caption->length);
    end = PUT(end, "\",\"details\":\"");
    end = record->escaped ? put_json_escaped(end, record->details, record->details_length)
                          : put(end, record->details, record->details_length);
    end = PUT(end, "\",\"rating\":");
    end = put_decimal(end, (uint64_t)record->rating, 1);
    end = PUT(end, ",\"elevation\":");
    end = put_tenths(end, record->elevation);
    if (picture != NULL) {
        end = PUT(end, ",\"image\":\"");
        end = put(end, picture, strlen(picture));
        end = PUT(end, "\"");
    }
    end = PUT(end, "}\n");
    line->length = (size_t)(end - line->bytes);
}

static void make_csv(line *line, const journal_record *record, const char *picture) {
    char *end = put_uuid(line->bytes, record->id);
    *end++ = ',';
    end = put_date(end, record->created_at);
    *end++ = ',';
    end = put_csv_text(end, record->caption.bytes, record->caption.length);
    *end++ = ',';
    end = put_csv_text(end, record->details, record->details_length);
    *end++ = ',';
    end = put_decimal(end, (uint64_t)record->rating, 1);
    *end++ = ',';
    end = put_tenths(end, record->elevation);
    *end++ = ',';
    if (picture != NULL) end = put(end, picture, strlen(picture));
    *end++ = '\n';
    line->length = (size_t)(end - line->bytes);
}

enum { STREAM_CHANGED = 101 };

static void write_records(const settings *settings) {
    static journal_record record;
    static line line;
    output with_pictures, with_pictures_changed, plain, plain_changed, csv;
    bool all = !settings->bare, changes = settings->with_changed;
    output_open(&plain, settings->folder, "records-nopictures.jsonl");
    if (changes) output_open(&plain_changed, settings->folder, "records-nopictures-changed.jsonl");
    if (all) output_open(&with_pictures, settings->folder, "records.jsonl");
    if (all && changes) output_open(&with_pictures_changed, settings->folder, "records-changed.jsonl");
    if (all) {
        output_open(&csv, settings->folder, "records.csv");
        static const char header[] = "id,createdAt,caption,details,rating,elevation,image\n";
        output_append(&csv, header, sizeof(header) - 1);
    }

    // Knuth's selection sampling: each record is drawn with the chance that makes exactly `changed` of them in the end.
    journal_random selection = journal_random_make(settings->seed, STREAM_CHANGED, 0);
    uint64_t to_change = settings->changed;
    for (uint64_t index = 0; index < settings->records; index++) {
        journal_record_make(settings->seed, index, &record);
        int64_t picture = journal_picture_of(index, settings->records, settings->pictures);
        char path[JOURNAL_PATH_BYTES];
        if (picture >= 0) journal_picture_path(settings->seed, (uint64_t)picture, path);
        const char *image = picture >= 0 ? path : NULL;

        make_json(&line, &record, &record.caption, NULL);
        output_append(&plain, line.bytes, line.length);
        bool is_changed = changes && journal_random_below(&selection, settings->records - index) < to_change;
        if (changes && !is_changed) output_append(&plain_changed, line.bytes, line.length);
        if (all) {
            if (image != NULL) make_json(&line, &record, &record.caption, image);
            output_append(&with_pictures, line.bytes, line.length);
            if (changes && !is_changed) output_append(&with_pictures_changed, line.bytes, line.length);
            make_csv(&line, &record, image);
            output_append(&csv, line.bytes, line.length);
        }
        if (is_changed) {
            journal_caption caption;
            to_change--;
            journal_caption_change(settings->seed, index, &record, &caption);
            make_json(&line, &record, &caption, NULL);
            output_append(&plain_changed, line.bytes, line.length);
            if (all) make_json(&line, &record, &caption, image);
            if (all) output_append(&with_pictures_changed, line.bytes, line.length);
        }
    }
    output_close(&plain);
    if (changes) output_close(&plain_changed);
    if (all) output_close(&with_pictures);
    if (all && changes) output_close(&with_pictures_changed);
    if (all) output_close(&csv);
}

static uint64_t parse_count(const char *text, const char *option) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != 0 || end == text || *text == '-') {
        errno = 0;
        fail("--%s takes a whole number, not “%s”", option, text);
    }
    return value;
}

int main(int count, char **arguments) {
    static const struct option options[] = {
        {"records", required_argument, NULL, 'r'}, {"pictures", required_argument, NULL, 'p'},
        {"changed", required_argument, NULL, 'c'}, {"seed", required_argument, NULL, 's'},
        {"bare", no_argument, NULL, 'b'},          {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    settings settings = {.seed = 1};
    bool has_pictures = false;
    for (int option, index = 0; (option = getopt_long(count, arguments, "", options, &index)) != -1;) {
        switch (option) {
        case 'r': settings.records = parse_count(optarg, "records"); break;
        case 'p':
            settings.pictures = parse_count(optarg, "pictures");
            has_pictures = true;
            break;
        case 's': settings.seed = parse_count(optarg, "seed"); break;
        case 'c':
            settings.changed = parse_count(optarg, "changed");
            settings.with_changed = true;
            break;
        case 'b': settings.bare = true; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    errno = 0;
    if (optind + 1 != count || settings.records == 0 || !(has_pictures || settings.bare)) {
        fputs(usage, stderr);
        return 2;
    }
    if (settings.pictures > settings.records) fail("more pictures than records");
    if (settings.changed > settings.records) fail("more changed rows than records");
    if (settings.bare && settings.pictures > 0) fail("--bare leaves out the pictures: ask for none");
    settings.folder = arguments[optind];
    make_folder(settings.folder);
    write_records(&settings);
    if (!settings.bare) {
        uint64_t bytes = write_pictures(settings.folder, settings.seed, settings.pictures);
        printf("%" PRIu64 " records, %" PRIu64 " pictures of %" PRIu64 " bytes in all\n", settings.records, settings.pictures,
               bytes);
    } else {
        printf("%" PRIu64 " records\n", settings.records);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

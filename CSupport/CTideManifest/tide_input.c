#include "tide_input.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tide_archive_limits.h"

enum { block_size = 64 << 10 };

struct tide_input {
    int descriptor;
    /// The bytes that were read before the input was made, and how many of them were passed on.
    char *head;
    size_t head_length, head_at;
    struct archive *archive;
    bool archive_is_at_end;
    int read_error;
    uint64_t bytes_in, bytes_out;
    char compressed[block_size];
    /// (iconv_t)-1 where nothing is converted.
    iconv_t conversion;
    bool is_probed;
    /// Bytes of the smallest character of the encoding.
    size_t unit;
    const char *encoding;
    char text[block_size];
    size_t text_at, text_length;
    bool text_is_at_end;
};

// Telling

static bool begins(const char *head, size_t length, const char *magic, size_t magic_length) {
    return length >= magic_length && memcmp(head, magic, magic_length) == 0;
}

static bool is_compressed(const char *head, size_t length) {
    return begins(head, length, "\x1f\x8b", 2) || begins(head, length, "\x28\xb5\x2f\xfd", 4);
}

static bool is_zip(const char *head, size_t length) { return begins(head, length, "PK\x03\x04", 4); }

/// The encoding that a byte order mark tells, and the mark's length; NULL for UTF-8 and where there is no mark.
static const char *marked_encoding(const char *head, size_t length, size_t *mark) {
    *mark = 4;
    if (begins(head, length, "\xff\xfe\0\0", 4)) return "UTF-32LE";
    if (begins(head, length, "\0\0\xfe\xff", 4)) return "UTF-32BE";
    *mark = 2;
    if (begins(head, length, "\xff\xfe", 2)) return "UTF-16LE";
    if (begins(head, length, "\xfe\xff", 2)) return "UTF-16BE";
    *mark = 0;
    return NULL;
}

bool tide_input_is_needed(const char *head, size_t length, const char *encoding) {
    size_t mark;
    return encoding || is_compressed(head, length) || is_zip(head, length) || marked_encoding(head, length, &mark);
}

// Decompressing

static ssize_t raw_read(tide_input *input, char *buffer, size_t capacity) {
    if (input->head_at < input->head_length) {
        size_t rest = input->head_length - input->head_at, count = rest < capacity ? rest : capacity;
        memcpy(buffer, input->head + input->head_at, count);
        input->head_at += count;
        return (ssize_t)count;
    }
    for (;;) {
        ssize_t count = read(input->descriptor, buffer, capacity);
        if (count >= 0) return count;
        if (errno == EINTR) continue;
        input->read_error = errno;
        return -1;
    }
}

static la_ssize_t archive_fill(struct archive *archive, void *context, const void **buffer) {
    tide_input *input = context;
    ssize_t count = raw_read(input, input->compressed, sizeof input->compressed);
    if (count < 0) {
        archive_set_error(archive, input->read_error, "cannot be read");
        return -1;
    }
    input->bytes_in += (uint64_t)count;
    *buffer = input->compressed;
    return count;
}

static tide_status refuse_archive(tide_input *input, tide_error *error) {
    if (input->read_error) {
        errno = input->read_error;
        return tide_error_errno(error, "read", "the source");
    }
    if (archive_errno(input->archive) == ENOMEM) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    const char *reason = archive_error_string(input->archive);
    return tide_error_reject(
        error, TIDE_REJECT_MALFORMED, "the compressed data is damaged: %.200s", reason ? reason : "it ends too soon");
}

static tide_status archive_begin(tide_input *input, tide_error *error) {
    input->archive = archive_read_new();
    if (!input->archive) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    if (archive_read_support_filter_gzip(input->archive) != ARCHIVE_OK
        || archive_read_support_filter_zstd(input->archive) != ARCHIVE_OK
        || archive_read_support_format_raw(input->archive) != ARCHIVE_OK
        || archive_read_support_format_empty(input->archive) != ARCHIVE_OK) {
        if (archive_errno(input->archive) == ENOMEM) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        return tide_error_reject(error, TIDE_REJECT_MALFORMED, "this system's libarchive cannot decompress gzip or zstd");
    }
    errno = 0;
    if (archive_read_open(input->archive, input, NULL, archive_fill, NULL) != ARCHIVE_OK) {
        // libarchive gives no reason where it has no memory for its first filter, and none where a short source ends too soon.
        bool is_short_of_memory = errno == ENOMEM && !archive_errno(input->archive) && !input->read_error;
        return is_short_of_memory ? tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory") : refuse_archive(input, error);
    }
    struct archive_entry *entry;
    int result = archive_read_next_header(input->archive, &entry);
    if (result == ARCHIVE_EOF) {
        input->archive_is_at_end = true;
        return TIDE_OK;
    }
    // libarchive would read data that is too short to be recognised without decompressing it.
    if (archive_filter_code(input->archive, 0) == ARCHIVE_FILTER_NONE) return refuse_archive(input, error);
    return result == ARCHIVE_OK || result == ARCHIVE_WARN ? TIDE_OK : refuse_archive(input, error);
}

/// Reads bytes of the source, decompressed.
static tide_status bytes_read(tide_input *input, char *buffer, size_t capacity, size_t *count, tide_error *error) {
    *count = 0;
    if (!input->archive) {
        ssize_t got = raw_read(input, buffer, capacity);
        if (got < 0) return refuse_archive(input, error);
        *count = (size_t)got;
        return TIDE_OK;
    }
    if (input->archive_is_at_end) return TIDE_OK;
    la_ssize_t got;
    do got = archive_read_data(input->archive, buffer, capacity);
    while (got == ARCHIVE_RETRY);
    if (got < 0) return refuse_archive(input, error);
    input->archive_is_at_end = got == 0;
    input->bytes_out += (uint64_t)got;
    if (tide_archive_expands_too_far(input->bytes_in, input->bytes_out)) {
        return tide_error_reject(
            error, TIDE_REJECT_TOO_LONG,
            "the compressed data expands to more than %d times its size; if it is as it should be, decompress it first (zcat, "
            "zstdcat) and import '-'", tide_expansion_limit);
    }
    *count = (size_t)got;
    return TIDE_OK;
}

// Converting

static tide_status conversion_begin(tide_input *input, const char *encoding, tide_error *error) {
    // Names that people write, and the names that iconv knows.
    static const struct {
        const char *written, *known;
    } names[] = {{"latin-1", "ISO-8859-1"}, {"latin1", "ISO-8859-1"}, {"latin-9", "ISO-8859-15"}, {"utf8", "UTF-8"},
                 {"ansi", "WINDOWS-1252"}, {"utf16", "UTF-16"}, {"utf16le", "UTF-16LE"}, {"utf16be", "UTF-16BE"},
                 {"macroman", "MACINTOSH"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcasecmp(encoding, names[i].written) == 0) encoding = names[i].known;
    }
    // Without a byte order mark, the order is that of Windows.
    if (strcasecmp(encoding, "UTF-16") == 0) encoding = "UTF-16LE";
    if (strcasecmp(encoding, "UTF-32") == 0) encoding = "UTF-32LE";
    if (strcasecmp(encoding, "UTF-8") == 0) return TIDE_OK;
    input->unit = strncasecmp(encoding, "UTF-16", 6) == 0 ? 2 : strncasecmp(encoding, "UTF-32", 6) == 0 ? 4 : 1;
    // A name with '/' is refused: glibc takes a suffix such as //IGNORE as a request to drop characters.
    errno = 0;
    if (!strchr(encoding, '/')) input->conversion = iconv_open("UTF-8", encoding);
    if (input->conversion != (iconv_t)-1) return TIDE_OK;
    if (errno == ENOMEM) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    return tide_error_reject(
        error, TIDE_REJECT_INVALID_UTF8,
        "the encoding '%.60s' is not known; others are utf-8, latin-1, windows-1252, utf-16 and what 'iconv -l' lists", encoding);
}

/// Reads the first bytes, which may have a byte order mark, and begins the conversion.
static tide_status probe(tide_input *input, tide_error *error) {
    while (input->text_length < 4 && !input->text_is_at_end) {
        size_t count;
        tide_status status =
            bytes_read(input, input->text + input->text_length, sizeof input->text - input->text_length, &count, error);
        if (status) return status;
        input->text_length += count;
        input->text_is_at_end = count == 0;
    }
    size_t mark;
    const char *marked = marked_encoding(input->text, input->text_length, &mark);
    input->text_at = mark;
    if (marked) return conversion_begin(input, marked, error);
    return input->encoding ? conversion_begin(input, input->encoding, error) : TIDE_OK;
}

/// Converts the bytes that are there; false when they are too few for a character.
static bool convert(tide_input *input, char *buffer, size_t capacity, size_t *count) {
    char *in = input->text + input->text_at, *out = buffer;
    size_t in_left = input->text_length - input->text_at, out_left = capacity;
    while (in_left > 0 && out_left > 8) {
        if (iconv(input->conversion, &in, &in_left, &out, &out_left) != (size_t)-1 || errno == E2BIG) break;
        if (errno == EINVAL && !input->text_is_at_end) break;
        // UTF-8 never has this byte, so the row is refused later.
        *out++ = (char)0xff;
        out_left--;
        size_t skipped = in_left < input->unit ? in_left : input->unit;
        in += skipped;
        in_left -= skipped;
    }
    // Some encodings hold the last character back, because the next one may combine with it.
    if (in_left == 0 && input->text_is_at_end) iconv(input->conversion, NULL, NULL, &out, &out_left);
    input->text_at = input->text_length - in_left;
    *count = capacity - out_left;
    return *count > 0;
}

// All

tide_status tide_input_create(
    int descriptor, const char *head, size_t length, const char *encoding, tide_input **input, tide_error *error
) {
    *input = NULL;
    if (is_zip(head, length)) {
        return tide_error_reject(
            error, TIDE_REJECT_MALFORMED, "this is a zip archive; save it as a file and import that, or unpack it (unzip -p)");
    }
    tide_input *created = calloc(1, sizeof *created);
    if (!created) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    *created = (tide_input){.descriptor = descriptor, .conversion = (iconv_t)-1, .unit = 1, .head_length = length};
    created->encoding = encoding ? strdup(encoding) : NULL;
    created->head = malloc(length + 1);
    if (!created->head || (encoding && !created->encoding)) {
        tide_input_destroy(created);
        return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    memcpy(created->head, head, length);
    tide_status status = is_compressed(head, length) ? archive_begin(created, error) : TIDE_OK;
    if (!status) status = probe(created, error);
    if (status) {
        tide_input_destroy(created);
        return status;
    }
    *input = created;
    return TIDE_OK;
}

void tide_input_destroy(tide_input *input) {
    if (!input) return;
    if (input->archive) archive_read_free(input->archive);
    if (input->conversion != (iconv_t)-1) iconv_close(input->conversion);
    free(input->head);
    free((char *)input->encoding);
    free(input);
}

tide_status tide_input_read(tide_input *input, char *buffer, size_t capacity, size_t *count, tide_error *error) {
    *count = 0;
    size_t there = input->text_length - input->text_at;
    if (input->conversion == (iconv_t)-1) {
        if (there == 0) return input->text_is_at_end ? TIDE_OK : bytes_read(input, buffer, capacity, count, error);
        *count = there < capacity ? there : capacity;
        memcpy(buffer, input->text + input->text_at, *count);
        input->text_at += *count;
        return TIDE_OK;
    }
    while (!convert(input, buffer, capacity, count)) {
        if (input->text_is_at_end) return TIDE_OK;
        there = input->text_length - input->text_at;
        memmove(input->text, input->text + input->text_at, there);
        input->text_at = 0;
        input->text_length = there;
        size_t got;
        tide_status status = bytes_read(input, input->text + there, sizeof input->text - there, &got, error);
        if (status) return status;
        input->text_length += got;
        input->text_is_at_end = got == 0;
    }
    return TIDE_OK;
}

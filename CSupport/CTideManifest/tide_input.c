#include "tide_input.h"

#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tide_decompression.h"

enum { block_size = 64 << 10 };

struct tide_input {
    tide_decompression *source;
    /// (iconv_t)-1 where nothing is converted.
    iconv_t conversion;
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
    return encoding || tide_is_compressed(head, length) || is_zip(head, length) || marked_encoding(head, length, &mark);
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
            tide_decompression_read(input->source, input->text + input->text_length, sizeof input->text - input->text_length, &count, error);
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
    *created = (tide_input){.conversion = (iconv_t)-1, .unit = 1};
    created->encoding = encoding ? strdup(encoding) : NULL;
    tide_status status = !encoding || created->encoding ? tide_decompression_create(descriptor, head, length, &created->source, error)
                                                         : tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
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
    tide_decompression_destroy(input->source);
    if (input->conversion != (iconv_t)-1) iconv_close(input->conversion);
    free((char *)input->encoding);
    free(input);
}

tide_status tide_input_read(tide_input *input, char *buffer, size_t capacity, size_t *count, tide_error *error) {
    *count = 0;
    size_t there = input->text_length - input->text_at;
    if (input->conversion == (iconv_t)-1) {
        if (there == 0) return input->text_is_at_end ? TIDE_OK : tide_decompression_read(input->source, buffer, capacity, count, error);
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
        tide_status status = tide_decompression_read(input->source, input->text + there, sizeof input->text - there, &got, error);
        if (status) return status;
        input->text_length += got;
        input->text_is_at_end = got == 0;
    }
    return TIDE_OK;
}

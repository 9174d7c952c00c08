// Goal: the same rows come of a source however its bytes arrive: in pieces, compressed, in another encoding, or in two runs; and a source that
// can't be read, is damaged or is cut ends with an error that says so.
// Method: each source is cut into two reads at each of its bytes, and read on from behind each of its rows.

#include <errno.h>
#include <zlib.h>

#include "manifest_reading.h"

// Pieces

typedef struct sample {
    const char *text;
    size_t length;
    tide_manifest_options options;
} sample;

#define SAMPLE(text, ...) {text, sizeof text - 1, {.type_name = "T", __VA_ARGS__}}

static const sample samples[] = {
    SAMPLE("id,a,b\r\n1,\"x \"\"y\"\", z\r\nw\",5\r\n\r\n2,,\r\n3\r\n4,\"open\r\n5,\"a\"b,1\r\n6,\"q\"\r\n"),
    SAMPLE("\xef\xbb\xbf" "a\n'=1\n\n\"\"\"\"\r\n\"x\"", .format = TIDE_FORMAT_CSV),
    SAMPLE("a\n123456789\n\"12345678\n5\n", .row_limit = 8),
    SAMPLE("{\"id\":\"a\",\"n\":1}\n\n{\"id\":\"b\",\"l\":[1,2.5]}\r\nx\n{\"id\":\"c\"}", .format = TIDE_FORMAT_JSON_LINES),
    SAMPLE("{\"n\":1}\n{\"n\":123456789}\n{\"n\":2}\n", .row_limit = 10),
    SAMPLE(" [{\"s\":\"a]},\\\"{\"},\n{\"n\":2} {\"n\":3},,[1] ,\n] x\ny"),
    SAMPLE("[{\"n\":1},\n{\"n\":2"),
    SAMPLE("[{\"n\":1},\n"),
    SAMPLE("[{\"n\":12345},\n{\"n\":1}]", .row_limit = 8),
    SAMPLE("[{\"n\":12345}", .row_limit = 8),
    SAMPLE("[{\"n\":123456789", .row_limit = 8),
    SAMPLE("[ ]"),
    SAMPLE("     \r\n\t\n  {\"n\":1}"),
    SAMPLE("{\n \"n\": 1,\n \"s\": \"}\\\"\"\n}\nx {}\n{\"n\":\n2} {\"n\":3"),
    SAMPLE("{\"k\": [1], \"rows\": [\n {\"n\": 1},\n {\"n\": 2}],\n \"s\": \"[{\", \"more\": [ {\"n\": 3}]}\n"),
    SAMPLE("{\"rows\": [{\"n\": 1}, {\"n\": 2}]} x"),
    SAMPLE("{\"rows\": [{\"n\": 1}"),
    SAMPLE("{\"n\":1,\n{\"n\":2}\n"),
    SAMPLE(" \n\t"),
    SAMPLE("\xff\xfe" "a\0\n\0K\0\xf6\0l\0n\0\n\0\x3d\xd8\x00\xde\n\0\x00\xdc\n\0", .format = TIDE_FORMAT_CSV),
    SAMPLE("\xfe\xff\0a\0\n\0x\0\n\0"),
    SAMPLE("\xff\xfe\0\0a\0\0\0\n\0\0\0x\0\0\0\n\0\0\0"),
    SAMPLE("\0\0\xfe\xff\0\0\0a\0\0\0\n\0\0\0x\0\0\0\n\0\0\0"),
    SAMPLE("a\n\x80 K\xf6ln\n\x81\ny\n", .encoding = "windows-1252"),
    SAMPLE("a\n\xe9\n", .encoding = "Latin-1"),
    SAMPLE("a\n\xc3\xa9\n", .encoding = "UTF8"),
    SAMPLE("a\0\n\0x\0\n\0", .encoding = "utf-16"),
    SAMPLE("a\0\0\0\n\0\0\0x\0\0\0\n\0\0\0", .encoding = "utf-32"),
};

enum { sample_count = sizeof samples / sizeof *samples };

static tide_text sample_read(const sample *sample) {
    reading how = {.options = &sample->options};
    return source_read(source_of(sample->text, sample->length), &how);
}

/// Writes the lines of the rows and refusals of a reading, without their values and messages.
static tide_text outline(const char *text, size_t length) {
    tide_text out = {0};
    for (const char *at = text; at < text + length;) {
        const char *end = strchr(at, '\n');
        long number;
        if (sscanf(at, "%ld:", &number) == 1) tide_text_format(&out, "row %ld\n", number);
        else if (sscanf(at, "line %ld, ", &number) == 1) tide_text_format(&out, "refused %ld\n", number);
        else if (strncmp(at, "the end", 7) == 0) tide_text_format(&out, "the end\n");
        at = end + 1;
    }
    return out;
}

/// Wherever a source is cut into two reads, it is the same source.
static void test_two_reads(void) {
    for (int i = 0; i < sample_count; i++) {
        tide_text whole = sample_read(&samples[i]);
        check(strstr(whole.bytes, "the end\n"), "%d: %s", i, whole.bytes);
        for (size_t first = 1; first <= samples[i].length; first++) {
            reading how = {.options = &samples[i].options};
            tide_text found = source_read(source_of_parts(samples[i].text, samples[i].length, first, true), &how);
            if (samples[i].options.row_limit) {
                // The message about a row over the limit depends on how much of the row the reader has, so only lines are compared.
                tide_text expected_outline = outline(whole.bytes, whole.length), found_outline = outline(found.bytes, found.length);
                expect_text(__FILE__, __LINE__, found_outline.bytes, expected_outline.bytes);
                tide_text_free(&expected_outline);
                tide_text_free(&found_outline);
            } else {
                expect_text(__FILE__, __LINE__, found.bytes, whole.bytes);
            }
            tide_text_free(&found);
        }
        tide_text_free(&whole);
    }
}

/// Wherever reading fails, the reading ends with what the system says.
static void test_failing_reads(void) {
    char expected[100];
    snprintf(expected, sizeof expected, "status %d: cannot read the source: %s\n", TIDE_IO_ERROR, strerror(EAGAIN));
    for (int i = 0; i < sample_count; i++) {
        for (size_t first = 0; first <= samples[i].length; first++) {
            reading how = {.options = &samples[i].options, .row_limit = 1};
            tide_text found = source_read(source_of_parts(samples[i].text, samples[i].length, first, false), &how);
            // Batches that were full before are read.
            size_t length = strlen(expected);
            bool is_told = found.length >= length && strcmp(found.bytes + found.length - length, expected) == 0;
            if (!is_told) fprintf(stderr, "sample %d, whose reading fails behind %zu bytes:\n", i, first);
            expect_text(__FILE__, __LINE__, is_told ? expected : found.bytes, expected);
            tide_text_free(&found);
        }
    }
}

/// From behind each batch, another run reads the rest.
static void test_two_runs(void) {
    for (int i = 0; i < sample_count; i++) {
        tide_position positions[40];
        reading how = {.options = &samples[i].options, .row_limit = 1, .positions = positions};
        tide_text whole = source_read(source_of(samples[i].text, samples[i].length), &how);
        tide_text expected = outline(whole.bytes, whole.length);
        const char *rest = whole.bytes;
        for (uint32_t batch = 0; batch < how.position_count; batch++) {
            // Each batch begins with its types.
            rest = strstr(rest + 1, "types:");
            tide_text both = outline(whole.bytes, rest ? (size_t)(rest - whole.bytes) : whole.length - strlen("the end\n"));
            reading again = {.options = &samples[i].options, .row_limit = 1, .from = &positions[batch]};
            tide_text found = source_read(source_of(samples[i].text, samples[i].length), &again);
            tide_text second = outline(found.bytes, found.length);
            tide_text_append(&both, second.bytes, second.length);
            if (strcmp(both.bytes, expected.bytes) != 0) fprintf(stderr, "sample %d, in a second run from behind batch %u:\n", i, batch);
            expect_text(__FILE__, __LINE__, both.bytes, expected.bytes);
            tide_text_free(&both);
            tide_text_free(&second);
            tide_text_free(&found);
        }
        tide_text_free(&expected);
        tide_text_free(&whole);
    }
}

/// A source with other bytes before the position is another source, and a position of no reader changes nothing.
static void test_positions(void) {
    tide_position positions[40];
    reading first = {.row_limit = 1, .positions = positions};
    tide_text whole = source_read(source_of("[{\"n\":1},\n{\"n\":2}]", 18), &first);
    tide_text_free(&whole);
    const char *others[] = {"[{\"n\":3},\n{\"n\":2}]", "[{", ""};
    for (int i = 0; i < 3; i++) {
        reading how = {.from = &positions[0], .options = &(tide_manifest_options){.type_name = "T",
            .format = i == 2 ? TIDE_FORMAT_JSON_LINES : TIDE_FORMAT_AUTO}};
        tide_text found = source_read(source_of(others[i], strlen(others[i])), &how);
        expect_text(__FILE__, __LINE__, found.bytes,
                    "assetChanged: the source is not the one whose import was interrupted (it differs within its first 8 bytes); import it "
                    "without --resume\n");
        tide_text_free(&found);
    }
    tide_position odd = positions[0];
    odd.state = 100;
    reading how = {.from = &odd};
    // The state is that of the beginning, before the first element.
    tide_text found = source_read(source_of("[{\"n\":1},\n{\"n\":2}]", 18), &how);
    expect_text(__FILE__, __LINE__, found.bytes,
                "types: n int64\n2: n=2\nline 1, malformed: the row is empty <>\nthe end\n");
    tide_text_free(&found);
    odd.state = 0;
    found = source_read(source_of("[{\"n\":1},\n{\"n\":2}]", 18), &how);
    expect_text(__FILE__, __LINE__, found.bytes, "malformed: line 1: a JSON array begins with '['\n");
    tide_text_free(&found);
    // Where reading fails before the position, that is the error.
    how.from = &positions[1];
    found = source_read(source_of_parts("[{\"n\":1},\n{\"n\":2}]", 18, 5, false), &how);
    check(strstr(found.bytes, "cannot read the source"), "%s", found.bytes);
    tide_text_free(&found);
}

// Compression

static size_t gzip(const char *text, size_t length, uint8_t *out, size_t capacity) {
    z_stream stream = {.next_in = (Bytef *)text, .avail_in = (uInt)length, .next_out = out, .avail_out = (uInt)capacity};
    check(deflateInit2(&stream, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY) == Z_OK && deflate(&stream, Z_FINISH) == Z_STREAM_END, "gzip");
    size_t written = capacity - stream.avail_out;
    deflateEnd(&stream);
    return written;
}

static void expect_part(const void *bytes, size_t length, reading *how, const char *expected) {
    tide_text found = source_read(source_of(bytes, length), how);
    check(strstr(found.bytes, expected), "%zu bytes: %s", length, found.bytes);
    tide_text_free(&found);
}

static void test_gzip(void) {
    static const char text[] = "a,b\n1,x\n2,y\n", rows[] = "types: a int64, b string\n2: a=1 b='x'\n3: a=2 b='y'\nthe end\n";
    uint8_t packed[1000];
    reading how = {0};
    size_t length = gzip(text, sizeof text - 1, packed, sizeof packed);
    expect_part(packed, length, &how, rows);
    // Wherever it is cut, the reading ends with an error.
    for (size_t kept = 2; kept < length; kept++) expect_part(packed, kept, &how, "malformed: the compressed data is damaged: ");
    // Wherever reading fails, the error is the system's.
    for (size_t first = 0; first < length; first++) {
        tide_text found = source_read(source_of_parts((const char *)packed, length, first, false), &how);
        check(strstr(found.bytes, "cannot read the source"), "%zu bytes: %s", first, found.bytes);
        tide_text_free(&found);
    }
    // Each changed bit is an error, except in parts of the header that don't matter, such as the time: there the rows are the same.
    for (size_t bit = 16; bit < length * 8; bit++) {
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        tide_text found = source_read(source_of(packed, length), &how);
        check(strcmp(found.bytes, rows) == 0 || strstr(found.bytes, "malformed: the compressed data is damaged: "), "bit %zu: %s", bit, found.bytes);
        tide_text_free(&found);
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    // Zeros behind the text fill a block, and other bytes are damage.
    memset(packed + length, 0, 100);
    expect_part(packed, length + 100, &how, rows);
    packed[length + 50] = 'x';
    expect_part(packed, length + 100, &how, "malformed: the compressed data is damaged: incorrect header check");
    // Members one after the other are one text.
    size_t more = gzip("3,z\n", 4, packed + length, sizeof packed - length);
    expect_part(packed, length + more, &how, "3: a=2 b='y'\n4: a=3 b='z'\nthe end\n");
    length = gzip("", 0, packed, sizeof packed);
    expect_part(packed, length, &how, "types:\nthe end\n");
    // The decompressed text has a byte order mark, or the options name its encoding.
    length = gzip("\xff\xfe" "a\0\n\0\xf6\0\n\0", 10, packed, sizeof packed);
    expect_part(packed, length, &how, "2: a='ö'\n");
    length = gzip("a\n\xf6\n", 4, packed, sizeof packed);
    how.options = &(tide_manifest_options){.type_name = "T", .encoding = "latin-1"};
    expect_part(packed, length, &how, "2: a='ö'\n");
    int source = source_of(packed, length);
    tide_manifest *manifest;
    check(!tide_manifest_create(source, how.options, &manifest, NULL) && tide_manifest_is_converted(manifest), "a source that is converted");
    tide_manifest_destroy(manifest);
    close(source);
}

/// A few bytes that stand for over 1 GiB end the import. The source is made by hand: blocks of zstd, each of which repeats a letter.
static void test_expansion(void) {
    enum { block_count = 8200 };
    static uint8_t packed[6 + 4 * block_count] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0x38};
    for (int i = 0; i < block_count; i++) {
        uint32_t header = 131072 << 3 | 1 << 1 | (i == block_count - 1);
        uint8_t block[4] = {(uint8_t)header, (uint8_t)(header >> 8), (uint8_t)(header >> 16), 'x'};
        memcpy(packed + 6 + 4 * i, block, 4);
    }
    reading how = {.options = &(tide_manifest_options){.type_name = "T", .format = TIDE_FORMAT_JSON_LINES, .row_limit = 100}};
    tide_text found = source_read(source_of(packed, sizeof packed), &how);
    expect_text(__FILE__, __LINE__, found.bytes,
                "tooLong: the compressed data expands to more than 200 times its size; if it is as it should be, decompress it first (zcat, "
                "zstdcat) and import '-'\n");
    tide_text_free(&found);
    // A few of the blocks are a row that is too long.
    packed[6 + 4 * 20] |= 1;
    expect_part(packed, 6 + 4 * 21, &how, "tooLong: the row is longer than 100 bytes <65536 bytes…>\nthe end\n");
    expect_part(packed, 6 + 4 * 20, &how, "malformed: the compressed data is damaged: ");
    expect("PK\x03\x04 and more", "malformed: this is a zip archive; save it as a file and import that, or unpack it (unzip -p)\n");
}

// Encodings

static void test_encodings(void) {
    // A byte that the encoding does not have refuses its row only. In UTF-16, so does half of a pair, and half of a character at the end.
    expect("a\n\x81\n\x80\n", "types: a string\n3: a='€'\nline 2, invalidUTF8: the row is not valid UTF-8; --encoding names another <\xff\n>\n"
           "the end\n",
           .encoding = "ANSI");
    expect("a\n\xe9\xa4\n", "types: a string\n2: a='é€'\nthe end\n", .encoding = "latin-9");
    expect("a\n\x8e\n", "types: a string\n2: a='é'\nthe end\n", .encoding = "MacRoman");
    expect_bytes("\xff\xfe" "a\0\n\0\0\xd8\n\0x\0\n\0y",
                 "types: a string\n3: a='x'\nline 2, invalidUTF8: the row is not valid UTF-8; --encoding names another <\xff\n>\n"
                 "line 4, invalidUTF8: the row is not valid UTF-8; --encoding names another <\xff>\nthe end\n");
    expect_bytes("\0a\0\n\0x", "types: a string\n2: a='x'\nthe end\n", .encoding = "utf16be");
    expect_bytes("a\0\n\0x\0", "types: a string\n2: a='x'\nthe end\n", .encoding = "utf16le");
    // A byte order mark goes before the options.
    expect_bytes("\xfe\xff\0a\0\n\0x", "types: a string\n2: a='x'\nthe end\n", .encoding = "latin1");
    expect("\xff\xfe", "types:\nthe end\n");
    expect("", "types:\nthe end\n", .encoding = "latin-1");
    expect("a\nx\n", "types: a string\n2: a='x'\nthe end\n", .encoding = "utf-8");
    expect("a\nx\n",
           "invalidUTF8: the encoding 'klingon' is not known; others are utf-8, latin-1, windows-1252, utf-16 and what 'iconv -l' lists\n",
           .encoding = "klingon");
    // A suffix would make glibc drop characters.
    expect("a\nx\n",
           "invalidUTF8: the encoding 'ascii//IGNORE' is not known; others are utf-8, latin-1, windows-1252, utf-16 and what 'iconv -l' lists\n",
           .encoding = "ascii//IGNORE");
    // An encoding whose characters are of several bytes, over more than one buffer.
    enum { length = 300001 };
    static char text[length + 1] = "a\n\"";
    for (int i = 3; i < length - 2; i += 2) memcpy(text + i, "\x82\xa0", 2);
    memcpy(text + length - 2, "\"\n", 2);
    reading how = {.options = &(tide_manifest_options){.type_name = "T", .encoding = "SHIFT_JIS"}};
    tide_text found = source_read(source_of(text, length), &how);
    size_t count = 0;
    const char *first = strstr(found.bytes, "あ");
    for (const char *at = first; at && memcmp(at, "あ", 3) == 0; at += 3) count++;
    check(count == (length - 5) / 2 && strstr(found.bytes, "あ'\nthe end\n"), "%zu characters", count);
    tide_text_free(&found);
}

int main(void) {
    test_two_reads();
    test_failing_reads();
    test_two_runs();
    test_positions();
    test_gzip();
    test_expansion();
    test_encodings();
    return tests_end("manifest_input_test");
}

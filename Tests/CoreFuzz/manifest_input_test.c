// Goal: the same rows come of a source however its bytes arrive: in pieces, compressed, in another encoding, or in two runs; and a source that
// can't be read, is damaged or is cut ends with an error that says so.
// Method: each source is cut into two reads at each of its bytes, and read on from behind each of its rows.

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <iconv.h>

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
    SAMPLE("[ ]"),
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
                // How much of a row that is too long is seen depends on the reads, and so does what is said of it.
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
            for (uint32_t row_limit = 1; row_limit <= 2; row_limit++) {
                reading how = {.options = &samples[i].options, .row_limit = row_limit};
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

int main(void) {
    test_two_reads();
    test_failing_reads();
    test_two_runs();
    return tests_end("manifest_input_test");
}

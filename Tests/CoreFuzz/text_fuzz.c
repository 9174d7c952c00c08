// Fuzzes the readers of short texts: numbers, times, names of records, identifiers of assets and fields, and the values that people type.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide_blob.h"
#include "tide_calendar.h"
#include "tide_image.h"
#include "tide_manifest.h"
#include "tide_number.h"
#include "tide_text.h"

#define require(condition) ((condition) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #condition), abort()))

static void name_require(const char *text, size_t length) {
    uint8_t key[17];
    size_t encoded = tide_name_encode(text, length, key);
    if (encoded) {
        char name[36];
        // What is encoded comes back as it was.
        require(tide_name_decode(key, encoded, name) == length && memcmp(name, text, length) == 0);
    }
    char decoded[36];
    size_t count = tide_name_decode(text, length, decoded);
    if (count) require(tide_name_encode(decoded, count, key) == length && memcmp(key, text, length) == 0);
}

static void number_require(const char *text, size_t length) {
    double value, again;
    if (!tide_number_parse(text, length, &value)) return;
    require(tide_number_is_valid(text, length));
    if (value - value != 0) return;
    char printed[TIDE_NUMBER_SIZE];
    size_t count = tide_number_print(value, 17, printed);
    require(count < sizeof printed && tide_number_parse(printed, count, &again) && again == value);
}

static void time_require(const char *text, size_t length) {
    static const tide_zone_offset offsets[] = {{0, 3600}, {1711846800, 7200}, {1729990800, 3600}};
    int64_t time, same;
    bool is_local;
    for (int order = 0; order < 3; order++) {
        tide_time_rules rules = {.offsets = offsets, .offset_count = 3, .order = (tide_date_order)order};
        if (tide_time_read(text, length, &rules, &time, &is_local)) require(tide_time_has_text(time));
    }
    if (tide_time_parse(text, length, &time)) {
        require(tide_time_has_text(time));
        require(tide_time_read(text, length, &(tide_time_rules){0}, &same, &is_local) && same == time && !is_local);
    }
}

/// The values of one record, each by a field of another type.
static void values_read(const char *text, size_t length) {
    static const tide_known_field fields[] = {
        {"i", TIDE_TYPE_INT64, NULL},    {"d", TIDE_TYPE_DOUBLE, NULL},  {"t", TIDE_TYPE_TIMESTAMP, NULL},
        {"b", TIDE_TYPE_BYTES, NULL},    {"p", TIDE_TYPE_LOCATION, NULL}, {"r", TIDE_TYPE_REFERENCE, "T"},
        {"f", TIDE_TYPE_BOOLEAN, NULL},  {"l", TIDE_TYPE_STRING | TIDE_TYPE_LIST, NULL},
        {"n", TIDE_TYPE_DOUBLE | TIDE_TYPE_LIST, NULL}, {"s", TIDE_TYPE_STRING, NULL},
    };
    tide_manifest_options options = {.type_name = "T", .fields = fields, .field_count = 10, .names_have_type = true};
    for (uint32_t i = 0; i < 10; i++) {
        tide_batch *batch = NULL;
        require(tide_batch_create(10, 1 << 20, &batch) == TIDE_OK);
        tide_field_text value = {fields[i].name, text, length};
        tide_error error;
        tide_status status = tide_texts_read(&options, &value, 1, batch, &error);
        require(status == TIDE_OK || status == TIDE_REJECTED);
        tide_batch_destroy(batch);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length > 2000) return 0;
    // To the byte, and ended by NUL where a C string is asked for.
    char *text = malloc(length ? length : 1), *ended = malloc(length + 1);
    memcpy(text, bytes, length);
    memcpy(ended, bytes, length);
    ended[length] = 0;
    name_require(text, length);
    number_require(text, length);
    time_require(text, length);
    values_read(text, length);
    tide_identifier_is_valid(text, length);
    tide_identifiers_collide(text, length / 2, text + length / 2, length - length / 2);
    tide_text_may_need_composing(text, length);
    tide_media_claimed(text, length);
    tide_preview_is_field(text, length);
    if (tide_blob_id_is_valid(text, length)) require(tide_blob_verify("/nonexistent", ended, NULL) == TIDE_REJECTED);
    tide_blob_id_is_of_sha256(ended);
    tide_text json = {0};
    tide_text_json_string(&json, text, length);
    require(json.length >= length + 2);
    tide_text_clear(&json);
    tide_text_base64(&json, text, length);
    require(json.length == (length + 2) / 3 * 4 + 2);
    tide_text_free(&json);
    free(text);
    free(ended);
    return 0;
}

// What an input of the fuzzer of manifests says: its first and last byte choose the format and the options of the reader, and all behind the first
// is the source. The fuzzer and the harness that lets allocations fail read the same inputs.

#ifndef MANIFEST_INPUT_H
#define MANIFEST_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "tide_manifest.h"

static const tide_known_field manifest_input_fields[] = {
    {"i", TIDE_TYPE_INT64, NULL},
    {"d", TIDE_TYPE_DOUBLE, NULL},
    {"t", TIDE_TYPE_TIMESTAMP, NULL},
    {"b", TIDE_TYPE_BYTES, NULL},
    {"p", TIDE_TYPE_LOCATION, NULL},
    {"r", TIDE_TYPE_REFERENCE, "T"},
    {"a", TIDE_TYPE_ASSET, NULL},
    {"l", TIDE_TYPE_STRING | TIDE_TYPE_LIST, NULL},
    {"m", TIDE_TYPE_ASSET | TIDE_TYPE_LIST, NULL},
    {"n", TIDE_TYPE_TIMESTAMP | TIDE_TYPE_LIST, NULL},
};

enum { MANIFEST_INPUT_FIELD_COUNT = sizeof manifest_input_fields / sizeof *manifest_input_fields };

/// The options of an input of at least one byte. What they refer to stays.
static inline tide_manifest_options manifest_input_options(const uint8_t *data, size_t size) {
    static const tide_zone_offset offsets[] = {{0, 3600}, {1711846800, 7200}, {1729990800, 3600}};
    static const tide_mapping mapping = {"x y", "z"};
    // The last byte chooses what was added later, so that the corpus keeps its meaning.
    uint8_t choice = data[0], more = choice & 128 ? data[size - 1] : 0;
    return (tide_manifest_options){
        .format = (tide_format)(choice & 3), .type_name = "T", .name_field = choice & 4 ? "id" : NULL,
        .name_is_required = (choice & 12) == 12, .mappings = &mapping, .mapping_count = 1,
        .fields = manifest_input_fields, .field_count = choice & 16 ? MANIFEST_INPUT_FIELD_COUNT : 0, .row_limit = choice & 32 ? 64 : 0,
        .names_have_type = more & 1, .decimal_comma = more & 2, .delimiter = more & 4 ? ';' : 0,
        .nesting = (tide_nesting)((more >> 3 & 3) % 3), .encoding = more & 32 ? "windows-1252" : NULL,
        .times = {.offsets = offsets, .offset_count = more & 64 ? 3 : 0, .order = more & 128 ? TIDE_DATE_ORDER_MONTH_FIRST : TIDE_DATE_ORDER_NONE},
    };
}

/// The rows that a batch of an input has at most.
static inline uint32_t manifest_input_row_limit(const uint8_t *data) { return data[0] & 64 ? 3 : 1000; }

#endif

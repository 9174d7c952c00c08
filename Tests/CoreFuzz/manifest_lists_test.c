// Goal: times, lists and locations become what Documentation/Formats/manifest.md says, and anything else is refused with its reason.
// Method: single texts, and small sources whose rows and refusals are compared with the expected ones.

#include "manifest_reading.h"

#define FIELD(type) .fields = &(tide_known_field){"v", type, NULL}, .field_count = 1
#define LIST(type) FIELD(type | TIDE_TYPE_LIST)
#define LINES .format = TIDE_FORMAT_JSON_LINES

// Times

static const tide_zone_offset offsets[] = {{0, 3600}, {1711846800, 7200}, {1729990800, 3600}, {1743296400, 7200}};
static const tide_time_rules utc = {0}, berlin = {.offsets = offsets, .offset_count = 4},
                             day_first = {.order = TIDE_DATE_ORDER_DAY_FIRST}, month_first = {.order = TIDE_DATE_ORDER_MONTH_FIRST};

typedef struct instant {
    const char *text;
    const tide_time_rules *rules;
    /// Microseconds after 2024-05-01T00:00:00Z.
    int64_t after;
    bool is_local;
} instant;

static const int64_t may = 1714521600000000, second = 1000000, minute = 60000000, hour = 3600000000, day = 86400000000;

static void test_times(void) {
    static const instant instants[] = {
        {"2024-05-01T00:00:00Z", &utc, 0, false},
        {"2024-05-01t00:00:00z", &utc, 0, false},
        {"2024-05-01 12:30:59.123456789+02:30", &berlin, 10 * hour + 59 * second + 123456, false},
        {"2024-05-01T00:00:00.5-01:00", &utc, hour + second / 2, false},
        {"2024-04-30T23:59:60Z", &utc, 0, false},
        // Without an offset, the zone of the rules applies.
        {"2024-05-01", &utc, 0, true},
        {"2024-5-1T0:00", &utc, 0, true},
        {"2024/05/01 12:30", &utc, 12 * hour + 30 * minute, true},
        {"2024.05.02 00:00:01", &utc, day + second, true},
        {"1.5.2024", &utc, 0, true},
        {"01.05.2024, 12:30:00,25", &utc, 12 * hour + 30 * minute + second / 4, true},
        {"2024-05-01 00:00", &berlin, -2 * hour, true},
        {"2024-03-31 01:30", &berlin, -31 * day + 30 * minute, true},
        // One that is skipped is read with the offset before, and of one that is there twice it is the first.
        {"2024-03-31 02:30", &berlin, -31 * day + 90 * minute, true},
        {"2024-03-31 03:30", &berlin, -31 * day + 90 * minute, true},
        {"2024-10-27 02:30", &berlin, 179 * day + 30 * minute, true},
        {"2024-10-27 03:30", &berlin, 179 * day + 150 * minute, true},
        {"2025-05-01 00:00", &berlin, 365 * day - 2 * hour, true},
        // The order of day and month.
        {"1/5/2024", &day_first, 0, true},
        {"5/1/2024", &month_first, 0, true},
        {"05-01-2024 1:00 PM", &month_first, 13 * hour, true},
        {"1.5.2024", &month_first, 0, true},
        // Halves of the day.
        {"2024-05-01 12:00 AM", &utc, 0, true},
        {"2024-05-01 12:00am", &utc, 0, true},
        {"2024-05-01 12:00 pm", &utc, 12 * hour, true},
        {"2024-05-01 11:59:59 Pm +01", &utc, 23 * hour - second, false},
        // Offsets.
        {"2024-05-01 02:00Z", &utc, 2 * hour, false},
        {"2024-05-01 02:00 utc", &berlin, 2 * hour, false},
        {"2024-05-01 02:00 GMT", &berlin, 2 * hour, false},
        {"2024-05-01 02:00+02", &utc, 0, false},
        {"2024-05-01 02:00 -0230", &utc, 4 * hour + 30 * minute, false},
        {"2024-05-01 02:00 +02:00", &utc, 0, false},
        {"2024/05/01t02:00:00.5Z", &utc, 2 * hour + second / 2, false},
    };
    for (size_t i = 0; i < sizeof instants / sizeof *instants; i++) {
        const instant *it = &instants[i];
        int64_t time = 0;
        bool is_local;
        check(tide_time_read(it->text, strlen(it->text), it->rules, &time, &is_local), "%s", it->text);
        check(time - may == it->after && is_local == it->is_local, "%s: %lld", it->text, (long long)(time - may));
    }
    static const char *const none[] = {
        "", "2024", "2024--05-01", "2024-05-001", "2024-05-/1", "1.5.202", "2024-05", "20240501", "x024-05-01", "24-05-01", "1.5.24", "2024-05-01x",
        "2024-05-01T", "2024-05-01 ", "2024-05-01,12:30",
        "2024-05-01, T12:30", "2024-13-01", "2024-00-01", "2024-01-00", "2024-02-30", "2023-02-29", "2024-05-01.1", "2024-05/01", "2024-05-011",
        "2024_05_01",
        "2024-05-01 1:5", "2024-05-01 12-30", "2024-05-01 :30", "2024-05-01 24:00", "2024-05-01 12:60", "2024-05-01 12:30:61", "2024-05-01 12:30:5",
        "2024-05-01 12:30:00.", "2024-05-01 13:00 PM", "2024-05-01 0:30 AM", "2024-05-01 12:30 XM", "2024-05-01 12:30 A", "2024-05-01 12:30 +1",
        "2024-05-01 12:30 +01:", "2024-05-01 12:30 +01:5", "2024-05-01 12:30 +24:00", "2024-05-01 12:30 +01:60", "2024-05-01 12:30 +01000",
        "2024-05-01 12:30 XYZ",
        "2024-05-01 12:30 Z9", "1/5/2024", "1-5-2024", "2024-05-01T12:30:00.x", "2024-05-01T12:30:00+01:00:00", "0000-01-01T00:00:00+01:00",
        "0000-01-01 00:00 +01:00", "9999-12-31T23:59:60Z", "2024-05-01 12:30:00.0000000000000000000000000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        int64_t time;
        bool is_local;
        check(!tide_time_read(none[i], strlen(none[i]), &utc, &time, &is_local), "%s", none[i]);
    }
}

/// Reads a time with each of its bytes replaced by an `x`: it has none to spare.
static void test_strict_times(void) {
    static const char *const texts[] = {"2024-05-01T12:30:00Z", "2024-05-01T12:30:00.5+02:30"};
    int64_t time;
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(texts[i]);
        check(tide_time_parse(texts[i], length, &time), "%s", texts[i]);
        for (size_t at = 0; at < length; at++) {
            char text[40];
            strcpy(text, texts[i]);
            // Characters behind the digits, and before them.
            text[at] = 'x';
            check(!tide_time_parse(text, length, &time), "%s", text);
            text[at] = '!';
            check(!tide_time_parse(text, length, &time), "%s", text);
            if (at != 20) check(!tide_time_parse(texts[i], at, &time), "%zu of %s", at, texts[i]);
        }
    }
    static const char *const none[] = {
        "2024-00-01T12:30:00Z", "2024-13-01T12:30:00Z", "2024-05-00T12:30:00Z", "2024-05-32T12:30:00Z", "2024-05-01T24:30:00Z",
        "2024-05-01T12:60:00Z",
        "2024-05-01T12:30:61Z", "2024-05-01T12:30:00", "2024-05-01T12:30:00.", "2024-05-01T12:30:00.Z", "2024-05-01T12:30:00.5",
        "2024-05-01T12:30:00ZZ",
        "2024-05-01T12:30:00+24:00", "2024-05-01T12:30:00+01:60", "2024-05-01T12:30:00+0100", "2024-05-01T12:30:00*01:00",
        "2024-05-01T12:30:00+1x:00",
        "2024-05-01T12:30:00+01:x0",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) check(!tide_time_parse(none[i], strlen(none[i]), &time), "%s", none[i]);
}

static void test_times_of_rows(void) {
    expect("v\n1/5/2024\nsoon\n5\n",
           "types: v timestamp\n"
           "line 2, v, wrongType: the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024; --date-order dmy or mdy reads "
           "5/1/2024 <1/5/2024\n>\nline 3, v, wrongType: the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024 <soon\n"
           ">\nline 4, v, wrongType: the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024 <5\n>\nthe end\n",
           FIELD(TIDE_TYPE_TIMESTAMP), .format = TIDE_FORMAT_CSV);
    expect("v\n1/5/2024\n13/5/2024\n",
           "types: v timestamp\n2: v=1704412800000000\n"
           "line 3, v, wrongType: the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024 <13/5/2024\n>\nthe end\n",
           FIELD(TIDE_TYPE_TIMESTAMP), .format = TIDE_FORMAT_CSV, .times = month_first);
    expect("{\"v\":5}\n{\"v\":\"\"}\n{\"v\":\"/\"}\n{\"v\":\"2024-05-01\"}\n",
           "types: v timestamp\n4: v=1714521600000000\nline 1, v, wrongType: the field is a time; the row has an integer <{\"v\":5}>\n"
           "line 2, v, wrongType: the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024 <{\"v\":\"\"}>\n"
           "line 3, v, wrongType: the value is no time such as 2024-05-01T12:30:00Z, 2024-05-01 12:30 or 01.05.2024 <{\"v\":\"/\"}>\nthe end\n",
           FIELD(TIDE_TYPE_TIMESTAMP));
    // The fields in which a time without an offset has occurred are known, also those in lists.
    tide_manifest_options options = {.type_name = "T", .fields = (tide_known_field[]){{"z", TIDE_TYPE_TIMESTAMP, NULL},
        {"l", TIDE_TYPE_TIMESTAMP | TIDE_TYPE_LIST, NULL}}, .field_count = 2};
    static const char text[] = "{\"z\":\"2024-05-01T00:00:00Z\",\"new\":\"2024-05-01\",\"l\":[\"2024-05-01 12:30\"]}\n";
    int source = source_of(text, strlen(text));
    tide_manifest *manifest;
    tide_batch *batch;
    check(!tide_manifest_create(source, &options, &manifest, NULL) && !tide_batch_create(10, 1 << 20, &batch), "a manifest");
    check(tide_manifest_read(manifest, batch, NULL) == TIDE_END, "one row");
    const char *first = tide_manifest_local_time_field(manifest, 0), *then = tide_manifest_local_time_field(manifest, 1);
    check(first && then && !strcmp(first, "l") && !strcmp(then, "new") && !tide_manifest_local_time_field(manifest, 2), "%s, %s", first, then);
    tide_batch_destroy(batch);
    tide_manifest_destroy(manifest);
    close(source);
}

// Lists

static void test_lists(void) {
    expect("v\n\"[1, -2 ,3.0,true,false]\"\n[]\n[1.5]\n[1e16]\n[9223372036854775808]\n\"[\"\"x\"\"]\"\n[null]\nx\n{}\n\"[1] x\"\n\"[1] [2]\"\n[1\n"
           "\"[1,]\"\n[tru]\n\"\"\n",
           "types: v list<int64>\n2: v='[1,-2,3,1,0]'\n3: v='[]'\nline 4, v, wrongType: the list has an element that is no integer <[1.5]\n>\n"
           "line 5, v, wrongType: the list has an element that is no integer <[1e16]\n>\n"
           "line 6, v, outOfRange: the number 9223372036854775808 is beyond what 64 bits hold <[9223372036854775808]\n>\n"
           "line 7, v, wrongType: the list has an element that is no integer <\"[\"\"x\"\"]\"\n>\n"
           "line 8, v, wrongType: the list has an element that is no integer <[null]\n>\nline 9, v, wrongType: the value is not a list <x\n>\n"
           "line 10, v, wrongType: the value is not a list <{}\n>\nline 11, v, malformed: the row is not valid JSON <\"[1] x\"\n>\n"
           "line 12, v, malformed: there is text after the value <\"[1] [2]\"\n>\nline 13, v, malformed: the row is not valid JSON <[1\n>\n"
           "line 14, v, malformed: the row is not valid JSON <\"[1,]\"\n>\nline 15, v, malformed: the row is not valid JSON <[tru]\n>\n"
           "line 16, v, malformed: the row is empty <\"\"\n>\nthe end\n",
           LIST(TIDE_TYPE_INT64), .format = TIDE_FORMAT_CSV);
    expect("v\n\"[1, 2.5,-0.0,1e300,0.1]\"\n[9007199254740993]\n[9223372036854775807]\n[true]\n[1e400]\n",
           "types: v list<double>\n2: v='[1,2.5,0,1e+300,0.1]'\n"
           "line 3, v, wrongType: the list has an element that is no number that a double holds <[9007199254740993]\n>\n"
           "line 4, v, wrongType: the list has an element that is no number that a double holds <[9223372036854775807]\n>\n"
           "line 5, v, wrongType: the list has an element that is no number <[true]\n>\n"
           "line 6, v, outOfRange: the number 1e400 is beyond what 64 bits hold <[1e400]\n>\nthe end\n", LIST(TIDE_TYPE_DOUBLE),
           .format = TIDE_FORMAT_CSV);
    expect("{\"v\":[\"a\\\"\\n\",\"\\u00e9\"]}\n{\"v\":[\"\\q\"]}\n{\"v\":[\"\\u0000\"]}\n{\"v\":[[]]}\n{\"v\":[{}]}\n{\"v\":[1]}\n{\"v\":5}\n"
           "{\"v\":\"a\"}\n",
           "types: v list<string>\n1: v='[\"a\\\"\\n\",\"é\"]'\n"
           "line 2, v, malformed: a string has an escape that stands for no character <{\"v\":[\"\\q\"]}>\n"
           "line 3, v, malformed: a string holds the character NUL, which cannot be stored <{\"v\":[\"\\u0000\"]}>\n"
           "line 4, v, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"v\":[[]]}>\n"
           "line 5, v, tooDeep: a list holds strings, numbers or times, no lists or objects <{\"v\":[{}]}>\n"
           "line 6, v, wrongType: the list has an element that is no string <{\"v\":[1]}>\n"
           "line 7, v, wrongType: the field is a list; the row has an integer <{\"v\":5}>\n"
           "line 8, v, wrongType: the field is a list; the row has a string <{\"v\":\"a\"}>\nthe end\n",
           LIST(TIDE_TYPE_STRING));
    expect("{\"v\":[\"2024-05-01\",\"2024-05-01\"]}\n",
           "types: v list<timestamp>\n1: v='[1714521600000000,1714521600000000]'\nthe end\n", LIST(TIDE_TYPE_TIMESTAMP));
    expect("{\"v\":[\"2024-05-01\"]}\n{\"v\":[\"soon\"]}\n",
           "types: v list<timestamp>\n1: v='[1714521600000000]'\n"
           "line 2, v, wrongType: the list has an element that is no time <{\"v\":[\"soon\"]}>\nthe end\n", LIST(TIDE_TYPE_TIMESTAMP));
    expect("{\"v\":[1]}\n{\"v\":[\"a\"]}\n{\"v\":[]}\n",
           "types: v list<bytes>\n3: v='[]'\n"
           "line 1, v, wrongType: the list has an element that is no value that a list of bytes can be read from <{\"v\":[1]}>\n"
           "line 2, v, wrongType: the list has an element that is no value that a list of bytes can be read from <{\"v\":[\"a\"]}>\nthe end\n",
           LIST(TIDE_TYPE_BYTES));
    expect("{\"v\":[\"a\"]}\n{\"v\":[1]}\n",
           "types: v list<location>\n"
           "line 1, v, wrongType: the list has an element that is no value that a list of locations can be read from <{\"v\":[\"a\"]}>\n"
           "line 2, v, wrongType: the list has an element that is no value that a list of locations can be read from <{\"v\":[1]}>\nthe end\n",
           LIST(TIDE_TYPE_LOCATION));
#define ID "00000000000000000000000000000000-5"
    expect("{\"v\":[\"a.png\",\"b\"]}\n{\"v\":[\"asset:" ID "\",\"asset:" ID "\"]}\n{\"v\":[\"a\",\"asset:" ID "\"]}\n"
           "{\"v\":[\"asset:" ID "\",\"a\"]}\n"
           "{\"v\":[\"asset:x\"]}\n{\"v\":[\"\"]}\n{\"v\":[]}\n",
           "types: v list<asset>\n1: v=path 'a.png' path 'b'\n"
           "2: v=claim '[\"00000000000000000000000000000000-5\",\"00000000000000000000000000000000-5\"]'\n7: v='[]'\n"
           "line 3, v, wrongType: the list mixes paths and asset identifiers <{\"v\":[\"a\",\"asset:00000000000000000000000000000000-5\"]}>\n"
           "line 4, v, wrongType: the list mixes paths and asset identifiers <{\"v\":[\"asset:00000000000000000000000000000000-5\",\"a\"]}>\n"
           "line 5, v, wrongType: the list has an element that is no asset identifier <{\"v\":[\"asset:x\"]}>\n"
           "line 6, v, assetMissing: the list has an empty path <{\"v\":[\"\"]}>\nthe end\n", LIST(TIDE_TYPE_ASSET));
    // Lists that say nothing of the type of a field, because they are no lists of values.
    expect("{\"v\":[\"\\q\"]}\n{\"v\":[1e]}\n{\"v\":[tru]}\n{\"v\":[1 2]}\n{\"v\":[,]}\n{\"v\":[2.5]}\n",
           "types: v list<double>\n6: v='[2.5]'\nline 5, malformed: the row is not valid JSON <{\"v\":[,]}>\n"
           "line 1, v, wrongType: the list has an element that is no number <{\"v\":[\"\\q\"]}>\n"
           "line 2, v, malformed: '1e' is not valid JSON <{\"v\":[1e]}>\n"
           "line 3, v, wrongType: the list has an element that is no number <{\"v\":[tru]}>\n"
           "line 4, v, malformed: the row is not valid JSON <{\"v\":[1 2]}>\nthe end\n", LINES);
}

// Locations

static void test_locations(void) {
    expect("{\"v\":{\"latitude\":1,\"longitude\":-0.0}}\n"
           "{\"v\":{\"speed\":7,\"course\":6,\"verticalAccuracy\":5,\"horizontalAccuracy\":4,\"altitude\":3,\"longitude\":180,\"latitude\":-90}}\n"
           "{\"v\":{\"latitude\":0.1,\"longitude\":123.456789012345678}}\n",
           "types: v location\n1: v='{\"latitude\":1,\"longitude\":0}'\n"
           "2: v='{\"latitude\":-90,\"longitude\":180,\"altitude\":3,\"horizontalAccuracy\":4,\"verticalAccuracy\":5,\"course\":6,\"speed\":7}'\n"
           "3: v='{\"latitude\":0.1,\"longitude\":123.45678901234568}'\nthe end\n");
    expect("{\"v\":{\"latitude\":1}}\n{\"v\":{\"longitude\":1}}\n{\"v\":{\"latitude\":90.5,\"longitude\":0}}\n"
           "{\"v\":{\"latitude\":0,\"longitude\":-180.5}}\n"
           "{\"v\":{\"latitude\":1,\"latitude\":1,\"longitude\":2}}\n{\"v\":{\"latitude\":\"1\",\"longitude\":2}}\n"
           "{\"v\":{\"latitude\":1,\"longitude\":2,\"name\":3}}\n"
           "{\"v\":{\"latitude\":1 \"longitude\":2}}\n{\"v\":5}\n{\"v\":\"x\"}\n",
           "types: v location\nline 1, v, wrongType: a location needs latitude and longitude <{\"v\":{\"latitude\":1}}>\n"
           "line 2, v, wrongType: a location needs latitude and longitude <{\"v\":{\"longitude\":1}}>\n"
           "line 3, v, outOfRange: the position 90.5, 0 is not on Earth <{\"v\":{\"latitude\":90.5,\"longitude\":0}}>\n"
           "line 4, v, outOfRange: the position 0, -180.5 is not on Earth <{\"v\":{\"latitude\":0,\"longitude\":-180.5}}>\n"
           "line 5, v, duplicateKey: the location gives latitude twice <{\"v\":{\"latitude\":1,\"latitude\":1,\"longitude\":2}}>\n"
           "line 6, v, wrongType: the location's latitude is not a number <{\"v\":{\"latitude\":\"1\",\"longitude\":2}}>\n"
           "line 7, v, wrongType: a nested object can only be a location {\"latitude\": …, \"longitude\": …}; --nested flatten or --nested json "
           "imports others <{\"v\":{\"latitude\":1,\"longitude\":2,\"name\":3}}>\n"
           "line 8, v, malformed: the row is not valid JSON <{\"v\":{\"latitude\":1 \"longitude\":2}}>\n"
           "line 9, v, wrongType: the field is a location; the row has an integer <{\"v\":5}>\n"
           "line 10, v, wrongType: the field is a location; the row has a string <{\"v\":\"x\"}>\nthe end\n", FIELD(TIDE_TYPE_LOCATION), LINES);
    expect("v\n\"{\"\"latitude\"\":1,\"\"longitude\"\":2}\"\n[1]\n\"{\"\"latitude\"\":1,\"\"longitude\"\":2} {}\"\n\"\"\n",
           "types: v location\n2: v='{\"latitude\":1,\"longitude\":2}'\n"
           "line 3, v, wrongType: the value is no location {\"latitude\": …, \"longitude\": …} <[1]\n>\n"
           "line 4, v, malformed: there is text after the value <\"{\"\"latitude\"\":1,\"\"longitude\"\":2} {}\"\n>\n"
           "line 5, v, malformed: the row is empty <\"\"\n>\nthe end\n", FIELD(TIDE_TYPE_LOCATION), .format = TIDE_FORMAT_CSV);
}

int main(void) {
    test_times();
    test_strict_times();
    test_times_of_rows();
    test_lists();
    test_locations();
    return tests_end("manifest_lists_test");
}

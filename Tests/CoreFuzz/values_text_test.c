// Goal: names, numbers, days, texts and errors are written and read as the headers say, whatever the locale and whatever the bytes; the header of
// a database file is read without opening it.
// Method: tables of values at the borders of each rule, and what is written is read again.

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "tide_batch.h"
#include "tide_calendar.h"
#include "tide_header.h"
#include "tide_number.h"
#include "tide_text.h"

// Names

static void test_names_as_keys(void) {
    static const struct {
        const char *name;
        size_t length;
    } cases[] = {
        {"00112233-4455-6677-8899-aabbccddeeff", 16}, {"00112233-4455-6677-8899-AABBCCDDEEFF", 17}, {"00000000-0000-0000-0000-000000000000", 16},
        {"ffffffff-ffff-ffff-ffff-ffffffffffff", 16}, {"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", 17}, {"99999999-9999-9999-9999-99999999999f", 16},
        // Of mixed case, with other characters, with dashes elsewhere, and of other lengths.
        {"00112233-4455-6677-8899-aabbccddeefF", 0},  {"a0112233-4455-6677-8899-0000000000B0", 0},  {"00112233-4455-6677-8899-aabbccddeefg", 0},
        {"00112233-4455-6677-8899-aabbccddee/f", 0},  {"00112233-4455-6677-8899-aabbccddee:f", 0},  {"0011223@-4455-6677-8899-aabbccddeeff", 0},
        {"0011223G-4455-6677-8899-AABBCCDDEEFF", 0},  {"0011223`-4455-6677-8899-aabbccddeeff", 0},  {"001122334-455-6677-8899-aabbccddeeff", 0},
        {"00112233-44556-677-8899-aabbccddeeff", 0},  {"00112233-4455-66778-899-aabbccddeeff", 0},  {"00112233-4455-6677-88990aabbccddeeff", 0},
        {"00112233-4455-6677-8899-aabbccddeef", 0},   {"00112233-4455-6677-8899-aabbccddeefff", 0}, {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t key[17];
        char name[36];
        check(tide_name_encode(cases[i].name, strlen(cases[i].name), key) == cases[i].length, "%s", cases[i].name);
        if (!cases[i].length) continue;
        check((cases[i].length == 17) == (key[16] == 'U') || cases[i].length == 16, "%s", cases[i].name);
        check(tide_name_decode(key, cases[i].length, name) == 36 && memcmp(name, cases[i].name, 36) == 0, "%s: %.36s", cases[i].name, name);
    }
    char name[36];
    check(tide_name_decode("0123456789abcdefV", 17, name) == 0, "a key of 17 bytes with another end");
    for (size_t length = 0; length < 16; length++) check(tide_name_decode("0123456789abcdefU", length, name) == 0, "%zu", length);
    check(tide_name_decode("aaaaaaaaaaaaaaaaU", 17, name) == 0, "a key in upper case of a UUID that has no letter");
    check(tide_name_decode("aaaaaaaaaaaaaaaoU", 17, name) == 36, "a key in upper case whose last digit is a letter");
    check(tide_name_decode("\xa0" "aaaaaaaaaaaaaaaU", 17, name) == 36, "a key in upper case whose first digit is a letter");
    check(tide_name_decode("0123456789abcdefUU", 18, name) == 0, "a key of 18 bytes");
}

static void test_identifiers(void) {
    static const struct {
        const char *name;
        bool is_valid;
    } cases[] = {
        {"a", true},         {"Z", true},        {"z9_", true},      {"A0", true},      {"tide", true},     {"tides_", true},
        {"sqlite", true},    {"sqlitex_", true},  {"a__", true},      {"", false},        {"9a", false},     {"_a", false},
        {"a-b", false},      {"a b", false},      {"a@", false},      {"a[", false},      {"a`", false},     {"a{", false},
        {"a/", false},       {"a:", false},       {"\xc3\xa4", false},
        {"tide_", false},    {"tide_x", false},  {"TIDE_x", false},  {"Tide_", false},  {"sqlite_", false}, {"SQLite_stat", false}, {"a\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(tide_identifier_is_valid(cases[i].name, strlen(cases[i].name)) == cases[i].is_valid, "%s", cases[i].name);
    }
    char longest[257];
    memset(longest, 'a', 256);
    check(tide_identifier_is_valid(longest, 255) && !tide_identifier_is_valid(longest, 256), "the longest identifier");
    check(!tide_identifier_is_valid("a\0b", 3), "a NUL");
    check(tide_identifiers_collide("Name", 4, "name", 4) && tide_identifiers_collide("a_B", 3, "A_b", 3), "the case of letters");
    check(!tide_identifiers_collide("name", 4, "name", 4) && !tide_identifiers_collide("name", 4, "names", 5), "the same, and a longer one");
    check(!tide_identifiers_collide("name", 4, "Came", 4), "another name");
    check(!tide_text_may_need_composing("plain \xc3\xa9 \xcb\xbf", 12) && !tide_text_may_need_composing("", 0), "U+02FF is the last of its kind");
    check(tide_text_may_need_composing("e\xcc\x81", 3) && tide_text_may_need_composing("\xe1\xba\xbf", 3), "U+0301 and what is beyond");
}

// Numbers

#if defined(__linux__)

/// The decimal point of the locale that is pretended: few are installed everywhere.
static const char *decimal_point = ".";
static const char *const points[] = {".", ",", "\xd9\xab"};

int snprintf(char *text, size_t size, const char *format, ...) {
    char printed[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(printed, sizeof printed, format, arguments);
    va_end(arguments);
    char *point = strcmp(format, "%.*g") == 0 ? strchr(printed, '.') : NULL;
    size_t out = 0;
    for (const char *at = printed; *at; at++) {
        const char *piece = at == point ? decimal_point : at;
        size_t length = at == point ? strlen(decimal_point) : 1;
        for (size_t i = 0; i < length; i++, out++) {
            if (out + 1 < size) text[out] = piece[i];
        }
    }
    if (size) text[out < size ? out : size - 1] = 0;
    return (int)out;
}

#else

static const char *decimal_point;
static const char *const points[] = {"."};

#endif

static void test_numbers_written(void) {
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {
        {0.1, 17, "0.10000000000000001"}, {0.1, 15, "0.1"},       {1e300, 17, "1.0000000000000001e+300"}, {-1.5e-10, 3, "-1.5e-10"}, {0, 17, "0"},
        {-0.0, 17, "-0"},                 {100, 2, "1e+02"},      {1.25, 0, "1"},    {1.25, -7, "1"},     {0.1, 40, "0.10000000000000001"},
        {INFINITY, 17, "inf"},            {-INFINITY, 17, "-inf"}, {NAN, 17, "nan"}, {-2.2250738585072014e-308, 17, "-2.2250738585072014e-308"},
    };
    for (size_t p = 0; p < sizeof points / sizeof *points; p++) {
        decimal_point = points[p];
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char text[TIDE_NUMBER_SIZE];
            size_t length = tide_number_print(cases[i].value, cases[i].digits, text);
            check(strcmp(text, cases[i].text) == 0 && length == strlen(text), "%s, not %s", text, cases[i].text);
        }
        // Every double comes back.
        uint64_t bits = 1;
        for (int i = 0; i < 20000; i++) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            double value, again;
            memcpy(&value, &bits, sizeof value);
            if (!isfinite(value)) continue;
            char text[TIDE_NUMBER_SIZE];
            size_t length = tide_number_print(value, 17, text);
            check(tide_number_parse(text, length, &again) && memcmp(&again, &value, sizeof value) == 0, "%s", text);
        }
    }
    decimal_point = points[0];
}

static void test_numbers_read(void) {
    static const struct {
        const char *text;
        bool is_valid;
        double value;
    } cases[] = {
        {"0", true, 0},       {"-0", true, -0.0},      {"10", true, 10},      {"-1.50", true, -1.5},  {"1e2", true, 100},     {"1E+2", true, 100},
        {"12e-1", true, 1.2}, {"0.5e1", true, 5},      {"1e999", true, INFINITY}, {"-1e999", true, -INFINITY}, {"1e-999", true, 0}, {"", false, 0},
        {"-", false, 0},      {"+1", false, 0},        {"01", false, 0},      {"-01", false, 0},      {"1.", false, 0},       {".5", false, 0},
        {"1.e5", false, 0},   {"1e", false, 0},        {"1e+", false, 0},     {"1e-", false, 0},      {"1 ", false, 0},       {" 1", false, 0},
        {"1,5", false, 0},    {"0x10", false, 0},      {"inf", false, 0},     {"nan", false, 0},      {"1e5.5", false, 0},    {"1-", false, 0},
        {"1/", false, 0},     {"1:", false, 0},        {"--1", false, 0},     {"1.5.5", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = 7;
        size_t length = strlen(cases[i].text);
        check(tide_number_is_valid(cases[i].text, length) == cases[i].is_valid, "'%s'", cases[i].text);
        check(tide_number_parse(cases[i].text, length, &value) == cases[i].is_valid, "'%s'", cases[i].text);
        check(!cases[i].is_valid || memcmp(&value, &cases[i].value, sizeof value) == 0, "'%s': %g", cases[i].text, value);
    }
    check(tide_number_is_valid("1.5", 1) && !tide_number_is_valid("1.5", 2), "the length counts, not a NUL");
    char digits[TIDE_NUMBER_LONGEST + 1];
    memset(digits, '1', sizeof digits);
    double value;
    check(tide_number_parse(digits, TIDE_NUMBER_LONGEST, &value) && value == INFINITY, "the longest number");
    check(!tide_number_parse(digits, TIDE_NUMBER_LONGEST + 1, &value) && tide_number_is_valid(digits, sizeof digits), "a longer one");
}

// Days

static void test_days(void) {
    // Each day of 801 years, counted one by one.
    int64_t expected = tide_days_from_civil(1600, 1, 1);
    check(expected == -135140 && tide_days_from_civil(1970, 1, 1) == 0 && tide_days_from_civil(0, 1, 1) == -719528, "%lld", (long long)expected);
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (int year = 1600; year <= 2400; year++) {
        for (int month = 1; month <= 12; month++) {
            int days = lengths[month - 1] + (month == 2 && (year % 400 == 0 || (year % 4 == 0 && year % 100 != 0)));
            check(tide_days_in_month(year, month) == days, "%d-%d: %d", year, month, tide_days_in_month(year, month));
            for (int day = 1; day <= days; day++, expected++) {
                check(tide_days_from_civil(year, month, day) == expected, "%d-%d-%d", year, month, day);
            }
        }
    }
    check(tide_days_from_civil(-1, 12, 31) == -719529 && tide_days_from_civil(10000, 1, 1) == 2932897, "years beyond");
    check(tide_time_has_text(-62167219200000000) && !tide_time_has_text(-62167219200000001), "the year 0 begins");
    check(tide_time_has_text(253402300799999999) && !tide_time_has_text(253402300800000000), "the year 9999 ends");
    check(!tide_time_has_text(INT64_MIN) && !tide_time_has_text(INT64_MAX) && tide_time_has_text(0), "the ends of an int64");
}

// Texts

static void test_texts(void) {
    tide_text text = {0};
    tide_text_append(&text, NULL, 0);
    check(text.length == 0 && text.bytes && text.bytes[0] == 0, "an empty text has its NUL");
    tide_text_json_string(&text, "plain", 5);
    tide_text_json_string(&text, "\"\\\n\r\t\0\x1f\x7f\xc3\xa9", 10);
    tide_text_json_string(&text, "", 0);
    check(strcmp(text.bytes, "\"plain\"\"\\\"\\\\\\n\\u000d\\u0009\\u0000\\u001f\x7f\xc3\xa9\"\"\"") == 0, "%s", text.bytes);
    tide_text_clear(&text);
    static const char *const encoded[] = {"\"\"", "\"AA==\"", "\"AP8=\"", "\"AP8Q\"", "\"AP8Q+w==\"", "\"AP8Q+/8=\"", "\"AP8Q+//+\""};
    for (size_t length = 0; length <= 6; length++) {
        tide_text_clear(&text);
        tide_text_base64(&text, "\x00\xff\x10\xfb\xff\xfe", length);
        check(strcmp(text.bytes, encoded[length]) == 0 && text.length == strlen(encoded[length]), "%s, not %s", text.bytes, encoded[length]);
    }
    // It grows to what is needed at once, and by and by.
    tide_text_clear(&text);
    char long_text[3000];
    memset(long_text, 'x', sizeof long_text);
    tide_text_append(&text, long_text, sizeof long_text);
    for (int i = 0; i < 1000; i++) tide_text_format(&text, "%d,", i);
    check(text.length == 3000 + 3890 && !text.failed && text.bytes[text.length] == 0, "%zu", text.length);
    check(memcmp(text.bytes, long_text, 3000) == 0 && strcmp(text.bytes + text.length - 8, "998,999,") == 0, "%s", text.bytes + 3000);
    tide_text_free(&text);
    check(!text.bytes && text.length == 0 && text.capacity == 0, "a text that was freed");
    tide_text_format(&text, "%s", "again");
    check(strcmp(text.bytes, "again") == 0, "%s", text.bytes);
    tide_text_free(&text);

    // What finds no memory is dropped, with all that follows, until the text is cleared.
    char *kept = strdup("kept");
    text = (tide_text){.bytes = kept, .length = 4, .capacity = 5, .failed = true};
    tide_text_append(&text, "more", 4);
    tide_text_format(&text, "%d", 5);
    tide_text_json_string(&text, "more", 4);
    tide_text_base64(&text, "more", 4);
    check(text.failed && text.length == 4 && text.bytes == kept, "%s", text.bytes);
    tide_text_clear(&text);
    check(!text.failed && text.length == 0 && text.bytes == kept, "a text that was cleared");
    tide_text_free(&text);
}

// Errors

static void test_errors(void) {
    tide_error error = {.reject = TIDE_REJECT_DAMAGED};
    check(tide_error_set(&error, TIDE_BUSY, 5, "%s %d", "number", 7) == TIDE_BUSY, "%d", error.status);
    check(error.status == TIDE_BUSY && error.reject == TIDE_REJECT_NONE && error.system == 5, "%d", error.status);
    check(strcmp(error.message, "number 7") == 0, "%s", error.message);
    check(tide_error_reject(&error, TIDE_REJECT_RAGGED, "row %d", 3) == TIDE_REJECTED, "%d", error.status);
    check(error.status == TIDE_REJECTED && error.reject == TIDE_REJECT_RAGGED && error.system == 0, "%d", error.status);
    check(strcmp(error.message, "row 3") == 0, "%s", error.message);
    check(tide_error_set(NULL, TIDE_BUSY, 0, "nowhere") == TIDE_BUSY, "NULL");
    check(tide_error_reject(NULL, TIDE_REJECT_RAGGED, "nowhere") == TIDE_REJECTED, "NULL");
    static const int full[] = {ENOSPC, EDQUOT}, others[] = {EIO, ENOENT, EACCES};
    for (int i = 0; i < 5; i++) {
        int number = i < 2 ? full[i] : others[i - 2];
        char expected[200];
        sprintf(expected, "cannot write a/b: %s", strerror(number));
        errno = number;
        check(tide_error_errno(&error, "write", "a/b") == (i < 2 ? TIDE_DISK_FULL : TIDE_IO_ERROR) && error.system == number, "%d", error.system);
        check(strcmp(error.message, expected) == 0, "%s", error.message);
        errno = number;
        check(tide_error_errno(NULL, "write", "a/b") == (i < 2 ? TIDE_DISK_FULL : TIDE_IO_ERROR), "NULL");
    }
    char longer[700];
    memset(longer, 'x', sizeof longer);
    longer[699] = 0;
    tide_error_set(&error, TIDE_BUSY, 0, "%s", longer);
    check(strlen(error.message) == sizeof error.message - 1, "%zu", strlen(error.message));
}

/// The names are part of the format of the rejects file.
static void test_names_of_refusals(void) {
    static const char *const names[] = {
        "none", "invalidUTF8", "malformed", "notAnObject", "tooDeep", "tooLong", "duplicateKey", "badIdentifier", "missingName", "badName",
        "wrongType", "outOfRange", "ragged", "unknownField", "nameTaken", "tooManyFields", "damaged", "none", "none", "none",
        "assetMissing", "assetEmpty", "assetUnreadable", "assetTruncated", "assetNotAFile", "assetOutsideRoot", "assetChanged", "assetNotAnImage",
        "assetUnknown", "assetCollisions", "tooManyAssets", "pictureDamaged", "pictureTooLarge", "pictureUnsupported", "none", "none"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = tide_reject_name((tide_reject)i);
        check(strcmp(found, names[i]) == 0, "%zu: %s, not %s", i, found, names[i]);
    }
}

// The header of a database

static void test_header(void) {
    char folder[] = "/tmp/tidemark-header-XXXXXX", path[100], link[100];
    check(mkdtemp(folder), "%s", strerror(errno));
    sprintf(path, "%s/a.sqlite", folder), sprintf(link, "%s/link", folder);
    uint8_t header[TIDE_HEADER_SIZE], expected[150];
    tide_error error = {0};
    for (int i = 0; i < 150; i++) expected[i] = (uint8_t)(i + 1);
    static const size_t lengths[] = {150, 100, 99, 1, 0};
    for (int i = 0; i < 5; i++) {
        FILE *file = fopen(path, "wb");
        check(file && fwrite(expected, 1, lengths[i], file) == lengths[i] && fclose(file) == 0, "%s", strerror(errno));
        memset(header, 0xff, sizeof header);
        check(tide_header_read(path, header, &error) == TIDE_OK, "%s", error.message);
        for (size_t k = 0; k < sizeof header; k++) check(header[k] == (k < lengths[i] ? expected[k] : 0), "%zu of %zu", k, lengths[i]);
    }
    check(symlink(path, link) == 0, "%s", strerror(errno));
    const char *const others[] = {link, folder, "/tmp/tidemark-nowhere"};
    for (int i = 0; i < 3; i++) {
        memset(header, 0xff, sizeof header);
        check(tide_header_read(others[i], header, &error) == TIDE_IO_ERROR, "%s: %d", others[i], error.status);
        check(strstr(error.message, "cannot read") && strstr(error.message, others[i]) && error.system, "%s", error.message);
        for (size_t k = 0; k < sizeof header; k++) check(header[k] == 0, "%s: %zu", others[i], k);
    }
    // Whoever has taken SQLite's file layers away is told so.
    sqlite3_vfs *layers[16], *first = sqlite3_vfs_find(NULL);
    int count = 0;
    for (sqlite3_vfs *it = first; it && count < 16; it = sqlite3_vfs_find(NULL)) sqlite3_vfs_unregister(layers[count++] = it);
    check(tide_header_read(path, header, &error) == TIDE_SQLITE_ERROR && strcmp(error.message, "SQLite has no file layer") == 0, "%s", error.message);
    for (int i = 0; i < count; i++) sqlite3_vfs_register(layers[i], i == 0);
    check(tide_header_read(path, header, &error) == TIDE_OK && sqlite3_vfs_find(NULL) == first, "%s", error.message);
    // SQLite's own memory ends sooner or later, until there is enough.
    tide_status status = TIDE_NO_MEMORY;
    int limits = 0;
    for (; status == TIDE_NO_MEMORY && limits < 100000; limits += 8) {
        sqlite3_hard_heap_limit64(sqlite3_memory_used() + 1 + limits);
        status = tide_header_read(path, header, &error);
        sqlite3_hard_heap_limit64(0);
    }
    check(status == TIDE_OK && limits > 8, "%d: %s", limits, error.message);
    unlink(path), unlink(link), rmdir(folder);
}

int main(void) {
    test_names_as_keys();
    test_identifiers();
    test_numbers_written();
    test_numbers_read();
    test_days();
    test_texts();
    test_errors();
    test_names_of_refusals();
    test_header();
    puts("values_text_test: passed");
    return 0;
}

// Names of records as keys, and identifiers of fields.

#include <string.h>
#include <strings.h>

#include "tide_batch.h"

bool tide_text_may_need_composing(const char *text, size_t length) {
    // The first byte of U+0300, the first character that can be part of another one, is 0xCC.
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] >= 0xcc) return true;
    }
    return false;
}

static const uint8_t uuid_dashes[4] = {8, 13, 18, 23};

enum { digit_lower = 0x20, digit_upper = 0x40, digit_none = 0x80 };

/// The value of a hexadecimal digit, with a bit for the case of a letter; `digit_none` for any other character.
static uint8_t hex_digit(char c) {
    if (c >= '0' && c <= '9') return (uint8_t)(c - '0');
    if (c >= 'a' && c <= 'f') return (uint8_t)(c - 'a' + 10) | digit_lower;
    if (c >= 'A' && c <= 'F') return (uint8_t)(c - 'A' + 10) | digit_upper;
    return digit_none;
}

size_t tide_name_encode(const char *name, size_t length, uint8_t key[17]) {
    static const uint8_t places[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
    if (length != 36 || name[8] != '-' || name[13] != '-' || name[18] != '-' || name[23] != '-') return 0;
    uint8_t seen = 0;
    for (size_t i = 0; i < 16; i++) {
        uint8_t high = hex_digit(name[places[i]]), low = hex_digit(name[places[i] + 1]);
        seen |= high | low;
        key[i] = (uint8_t)(high << 4 | (low & 15));
    }
    if ((seen & digit_none) || ((seen & digit_lower) && (seen & digit_upper))) return 0;
    if (!(seen & digit_upper)) return 16;
    key[16] = 'U';
    return 17;
}

size_t tide_name_decode(const void *key, size_t length, char name[36]) {
    if (length != 16 && length != 17) return 0;
    const uint8_t *bytes = key;
    if (length == 17) {
        // A UUID of digits alone has no case: its key has 16 bytes.
        bool has_letter = false;
        for (size_t i = 0; i < 16; i++) has_letter |= bytes[i] >> 4 > 9 || (bytes[i] & 15) > 9;
        if (bytes[16] != 'U' || !has_letter) return 0;
    }
    const char *digits = length == 17 ? "0123456789ABCDEF" : "0123456789abcdef";
    size_t out = 0, dash = 0;
    for (size_t i = 0; i < 16; i++) {
        if (dash < 4 && out == uuid_dashes[dash]) {
            name[out++] = '-';
            dash++;
        }
        name[out++] = digits[bytes[i] >> 4];
        name[out++] = digits[bytes[i] & 15];
    }
    return out;
}

static bool has_prefix(const char *name, size_t length, const char *prefix) {
    size_t count = strlen(prefix);
    return length >= count && strncasecmp(name, prefix, count) == 0;
}

bool tide_identifier_is_valid(const char *name, size_t length) {
    if (length == 0 || length > 255) return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool other = (c >= '0' && c <= '9') || c == '_';
        if (!letter && !(i > 0 && other)) return false;
    }
    return !has_prefix(name, length, "sqlite_") && !has_prefix(name, length, "tide_");
}

bool tide_identifiers_collide(const char *one, size_t one_length, const char *other, size_t other_length) {
    return one_length == other_length && strncasecmp(one, other, one_length) == 0 && memcmp(one, other, one_length) != 0;
}

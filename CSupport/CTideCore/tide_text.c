#include "tide_text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(tide_text *text, size_t length) {
    if (text->failed) return false;
    size_t needed = text->length + length + 1;
    if (needed <= text->capacity) return true;
    size_t larger = text->capacity ? text->capacity : 256;
    while (larger < needed) larger *= 2;
    char *moved = realloc(text->bytes, larger);
    if (!moved) {
        text->failed = true;
        return false;
    }
    text->bytes = moved;
    text->capacity = larger;
    return true;
}

void tide_text_clear(tide_text *text) {
    text->length = 0;
    text->failed = false;
}

void tide_text_free(tide_text *text) {
    free(text->bytes);
    *text = (tide_text){0};
}

void tide_text_append(tide_text *text, const void *bytes, size_t length) {
    if (!reserve(text, length)) return;
    if (length) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void tide_text_format(tide_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void tide_text_json_string(tide_text *text, const char *bytes, size_t length) {
    tide_text_append(text, "\"", 1);
    size_t plain = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        tide_text_append(text, bytes + plain, i - plain);
        plain = i + 1;
        if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            tide_text_append(text, escaped, 2);
        } else if (c == '\n') {
            tide_text_append(text, "\\n", 2);
        } else {
            tide_text_format(text, "\\u%04x", c);
        }
    }
    tide_text_append(text, bytes + plain, length - plain);
    tide_text_append(text, "\"", 1);
}

void tide_text_base64(tide_text *text, const void *bytes, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = bytes;
    tide_text_append(text, "\"", 1);
    if (reserve(text, (length + 2) / 3 * 4)) {
        for (size_t i = 0; i < length; i += 3) {
            size_t rest = length - i;
            uint32_t group = (uint32_t)in[i] << 16 | (rest > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (rest > 2 ? in[i + 2] : 0);
            char *out = text->bytes + text->length;
            out[0] = digits[group >> 18];
            out[1] = digits[group >> 12 & 63];
            out[2] = rest > 1 ? digits[group >> 6 & 63] : '=';
            out[3] = rest > 2 ? digits[group & 63] : '=';
            text->length += 4;
        }
    }
    tide_text_append(text, "\"", 1);
}

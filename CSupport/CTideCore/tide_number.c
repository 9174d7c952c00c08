#include "tide_number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

static size_t digits_skip(const char *text, size_t length, size_t at) {
    while (at < length && text[at] >= '0' && text[at] <= '9') at++;
    return at;
}

bool tide_number_is_valid(const char *text, size_t length) {
    size_t first = length > 0 && text[0] == '-';
    size_t at = digits_skip(text, length, first);
    if (at == first || (text[first] == '0' && at > first + 1)) return false;
    if (at < length && text[at] == '.') {
        first = at + 1;
        at = digits_skip(text, length, first);
        if (at == first) return false;
    }
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        first = at + 1;
        if (first < length && (text[first] == '+' || text[first] == '-')) first++;
        at = digits_skip(text, length, first);
        if (at == first) return false;
    }
    return at == length;
}

bool tide_number_parse(const char *text, size_t length, double *value) {
    char copy[TIDE_NUMBER_LONGEST + 1];
    if (length >= sizeof copy || !tide_number_is_valid(text, length)) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    // This is cheap: the C locale is always loaded.
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale) return false;
    char *end;
    *value = strtod_l(copy, &end, locale);
    freelocale(locale);
    return end == copy + length;
}

size_t tide_number_print(double value, int digits, char text[TIDE_NUMBER_SIZE]) {
    char printed[64];
    int length = snprintf(printed, sizeof printed, "%.*g", digits < 1 ? 1 : digits > 17 ? 17 : digits, value);
    size_t out = 0;
    for (int i = 0; i < length && out + 1 < TIDE_NUMBER_SIZE; i++) {
        // The locale's decimal point may have several bytes. No other byte of a finite number is outside of this list.
        bool is_point = isfinite(value) && !strchr("0123456789+-e", printed[i]);
        if (is_point && out > 0 && text[out - 1] == '.') continue;
        text[out++] = is_point ? '.' : printed[i];
    }
    text[out] = 0;
    return out;
}

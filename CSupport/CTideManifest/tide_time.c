#include "tide_calendar.h"

#include "tide_manifest.h"

static bool digits(const char *text, int count, int *value) {
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *value = *value * 10 + (text[i] - '0');
    }
    return true;
}

bool tide_time_parse(const char *text, size_t length, int64_t *microseconds) {
    // 2024-05-01T12:30:00Z
    if (length < 20 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return false;
    if (text[10] != 'T' && text[10] != 't' && text[10] != ' ') return false;
    int year, month, day, hour, minute, second;
    if (!digits(text, 4, &year) || !digits(text + 5, 2, &month) || !digits(text + 8, 2, &day) || !digits(text + 11, 2, &hour) ||
        !digits(text + 14, 2, &minute) || !digits(text + 17, 2, &second)) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > tide_days_in_month(year, month)) return false;
    if (hour > 23 || minute > 59 || second > 60) return false;
    size_t at = 19;
    int64_t fraction = 0;
    if (text[at] == '.') {
        int64_t unit = 100000;
        size_t first = ++at;
        for (; at < length && text[at] >= '0' && text[at] <= '9'; at++, unit /= 10) fraction += unit * (text[at] - '0');
        if (at == first || at == length) return false;
    }
    int64_t offset = 0;
    if (text[at] == 'Z' || text[at] == 'z') {
        if (at + 1 != length) return false;
    } else {
        int hours, minutes;
        if ((text[at] != '+' && text[at] != '-') || at + 6 != length || text[at + 3] != ':' || !digits(text + at + 1, 2, &hours) ||
            !digits(text + at + 4, 2, &minutes) || hours > 23 || minutes > 59) {
            return false;
        }
        offset = (hours * 60 + minutes) * (text[at] == '-' ? -60 : 60);
    }
    int64_t seconds = tide_days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
    // The offset, or second 60, may lead out of the years that have four digits.
    if (!tide_time_has_text(seconds * 1000000)) return false;
    *microseconds = seconds * 1000000 + fraction;
    return true;
}

#include "tide_manifest.h"

static bool digits(const char *text, int count, int *value) {
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *value = *value * 10 + (text[i] - '0');
    }
    return true;
}

/// Days since 1970-01-01 of a day of the proleptic Gregorian calendar.
static int64_t days_from_civil(int64_t year, int month, int day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

bool tide_time_parse(const char *text, size_t length, int64_t *microseconds) {
    static const int month_days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    // 2024-05-01T12:30:00Z
    if (length < 20 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return false;
    if (text[10] != 'T' && text[10] != 't' && text[10] != ' ') return false;
    int year, month, day, hour, minute, second;
    if (!digits(text, 4, &year) || !digits(text + 5, 2, &month) || !digits(text + 8, 2, &day) || !digits(text + 11, 2, &hour) ||
        !digits(text + 14, 2, &minute) || !digits(text + 17, 2, &second)) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > month_days[month - 1]) return false;
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if ((month == 2 && day == 29 && !is_leap) || hour > 23 || minute > 59 || second > 60) return false;
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
    int64_t seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
    *microseconds = seconds * 1000000 + fraction;
    return true;
}

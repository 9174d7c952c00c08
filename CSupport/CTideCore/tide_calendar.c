#include "tide_calendar.h"

int64_t tide_days_from_civil(int64_t year, int month, int day) {
    // A year that begins in March has its leap day at the end.
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

int tide_days_in_month(int64_t year, int month) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && is_leap ? 29 : days[month - 1];
}

bool tide_time_has_text(int64_t microseconds) {
    // 0000-01-01T00:00:00Z and 10000-01-01T00:00:00Z.
    return microseconds >= -62167219200000000 && microseconds < 253402300800000000;
}

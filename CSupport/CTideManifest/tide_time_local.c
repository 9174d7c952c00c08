// Reads times as people and databases write them. A time without an offset is read in the rules' zone.

#include <strings.h>

#include "tide_manifest.h"
#include "tide_calendar.h"

typedef struct scan {
    const char *at, *end;
} scan;

static bool take(scan *it, char c) {
    if (it->at == it->end || *it->at != c) return false;
    it->at++;
    return true;
}

/// Reads a number of `least` to `most` digits and says how many there were.
static int take_digits(scan *it, int least, int most, int *value) {
    int count = 0;
    *value = 0;
    for (; it->at < it->end && count < most && *it->at >= '0' && *it->at <= '9'; it->at++, count++) {
        *value = *value * 10 + (*it->at - '0');
    }
    return count >= least ? count : 0;
}

static bool take_date(scan *it, tide_date_order order, int *year, int *month, int *day) {
    int first, second, third;
    int first_digits = take_digits(it, 1, 4, &first);
    if (!first_digits || it->at == it->end) return false;
    char separator = *it->at++;
    if (separator != '-' && separator != '.' && separator != '/') return false;
    if (!take_digits(it, 1, 2, &second) || !take(it, separator)) return false;
    int third_digits = take_digits(it, 1, 4, &third);
    if (first_digits == 4 && third_digits >= 1 && third_digits <= 2) {
        *year = first, *month = second, *day = third;
    } else if (first_digits <= 2 && third_digits == 4) {
        // Where points separate, the day comes first everywhere. With other separators, countries differ.
        bool month_first = separator != '.' && order == TIDE_DATE_ORDER_MONTH_FIRST;
        if (separator != '.' && order == TIDE_DATE_ORDER_NONE) return false;
        *year = third, *month = month_first ? first : second, *day = month_first ? second : first;
    } else {
        return false;
    }
    return *month >= 1 && *month <= 12 && *day >= 1 && *day <= tide_days_in_month(*year, *month);
}

static bool take_clock(scan *it, int64_t *seconds, int64_t *fraction) {
    int hour, minute, second = 0;
    if (!take_digits(it, 1, 2, &hour) || !take(it, ':') || take_digits(it, 2, 2, &minute) != 2) return false;
    if (take(it, ':')) {
        if (take_digits(it, 2, 2, &second) != 2) return false;
        if (it->at < it->end && (*it->at == '.' || *it->at == ',')) {
            it->at++;
            int64_t unit = 100000;
            const char *first = it->at;
            for (; it->at < it->end && *it->at >= '0' && *it->at <= '9'; it->at++, unit /= 10) *fraction += unit * (*it->at - '0');
            if (it->at == first) return false;
        }
    }
    scan half = *it;
    take(&half, ' ');
    if (half.end - half.at >= 2 && (half.at[1] | 0x20) == 'm' && ((half.at[0] | 0x20) == 'a' || (half.at[0] | 0x20) == 'p')) {
        if (hour < 1 || hour > 12) return false;
        hour = hour % 12 + ((half.at[0] | 0x20) == 'p' ? 12 : 0);
        it->at = half.at + 2;
    }
    if (hour > 23 || minute > 59 || second > 60) return false;
    *seconds = hour * 3600 + minute * 60 + second;
    return true;
}

/// Reads `Z`, `UTC`, `GMT`, `+hh`, `+hhmm` or `+hh:mm`. False when something else follows.
static bool take_offset(scan *it, int64_t *offset, bool *is_local) {
    *is_local = it->at == it->end;
    *offset = 0;
    if (*is_local) return true;
    take(it, ' ');
    size_t rest = (size_t)(it->end - it->at);
    if (rest == 1 && (*it->at | 0x20) == 'z') return true;
    if (rest == 3 && (strncasecmp(it->at, "UTC", 3) == 0 || strncasecmp(it->at, "GMT", 3) == 0)) return true;
    bool is_west = take(it, '-');
    int hours, minutes = 0;
    if ((!is_west && !take(it, '+')) || take_digits(it, 2, 2, &hours) != 2) return false;
    bool has_colon = take(it, ':');
    if ((has_colon || it->at < it->end) && take_digits(it, 2, 2, &minutes) != 2) return false;
    if (it->at < it->end || hours > 23 || minutes > 59) return false;
    *offset = (hours * 60 + minutes) * (is_west ? -60 : 60);
    return true;
}

/// The offset of a zone at a local time, in seconds.
static int64_t zone_offset(const tide_time_rules *rules, int64_t local) {
    if (rules->offset_count == 0) return 0;
    // Finds the first offset that still holds at the local time. Where clocks change, this is the offset before the change.
    uint32_t low = 0, high = rules->offset_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const tide_zone_offset *before = &rules->offsets[middle], *after = before + 1;
        int32_t larger = before->offset > after->offset ? before->offset : after->offset;
        if (local < after->since + larger) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return rules->offsets[low].offset;
}

bool tide_time_read(
    const char *text, size_t length, const tide_time_rules *rules, int64_t *microseconds, bool *is_local
) {
    *is_local = false;
    // The shortest is 1.5.2024, the longest has all digits of a fraction that anybody writes.
    if (length < 8 || length > 64 || text[0] < '0' || text[0] > '9') return false;
    if (tide_time_parse(text, length, microseconds)) return true;
    scan it = {text, text + length};
    int year, month, day;
    int64_t clock = 0, fraction = 0, offset = 0;
    if (!take_date(&it, rules->order, &year, &month, &day)) return false;
    if (it.at < it.end) {
        bool has_comma = take(&it, ',');
        bool has_separator = take(&it, ' ') || (!has_comma && (take(&it, 'T') || take(&it, 't')));
        if (!has_separator || !take_clock(&it, &clock, &fraction) || !take_offset(&it, &offset, is_local)) return false;
    } else {
        *is_local = true;
    }
    int64_t local = tide_days_from_civil(year, month, day) * 86400 + clock;
    int64_t seconds = local - (*is_local ? zone_offset(rules, local) : offset);
    if (!tide_time_has_text(seconds * 1000000)) return false;
    *microseconds = seconds * 1000000 + fraction;
    return true;
}

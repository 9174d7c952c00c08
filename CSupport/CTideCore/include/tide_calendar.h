/// Moments and days. Pure functions.

#ifndef TIDE_CALENDAR_H
#define TIDE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Returns the days since 1970-01-01 of a day of the proleptic Gregorian calendar, years from 0 on.
int64_t tide_days_from_civil(int64_t year, int month, int day);

/// Returns the days of a month; `month` is 1 to 12.
int tide_days_in_month(int64_t year, int month);

/// Whether a moment, in microseconds since 1970 UTC, lies in the years 0 to 9999. RFC 3339 cannot write others, so that they could not
/// be exported.
bool tide_time_has_text(int64_t microseconds);

#ifdef __cplusplus
}
#endif

#endif

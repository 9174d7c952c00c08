/// Numbers as JSON writes them, whatever the locale: `strtod` and `printf` take the decimal point from the locale, and the program around
/// our code may have set one with a comma.
///
/// Threads: any. Nothing is kept.

#ifndef TIDE_NUMBER_H
#define TIDE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

enum {
    /// Room for any number that is printed, and its NUL.
    TIDE_NUMBER_SIZE = 32,
    /// Characters of the longest number that is read.
    TIDE_NUMBER_LONGEST = 399,
};

/// Whether a text is a number by JSON's grammar.
bool tide_number_is_valid(const char *text, size_t length);

/// Reads a number by JSON's grammar as the nearest double: infinity when it is beyond the largest. False when the text is no number, or
/// longer than TIDE_NUMBER_LONGEST.
bool tide_number_parse(const char *text, size_t length, double *value);

/// Writes a double as `%.*g` does in the C locale, with a NUL behind it, and returns its length. `digits` is 1 to 17. Every double that is
/// written with 17 digits reads back as the same double.
size_t tide_number_print(double value, int digits, char text[_Nonnull TIDE_NUMBER_SIZE]);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

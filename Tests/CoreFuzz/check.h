// Ends a test whose condition does not hold, with the place, the condition and a text.

#ifndef CHECK_H
#define CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define check(condition, ...) ((condition) ? (void)0 : check_fail(__FILE__, __LINE__, #condition, __VA_ARGS__))

__attribute__((format(printf, 4, 5), noreturn))
static inline void check_fail(const char *file, int line, const char *condition, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: failed: %s (", file, line, condition);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, ")\n");
    va_end(arguments);
    exit(1);
}

#endif

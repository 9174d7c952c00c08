/// Whether text is UTF-8, by simdjson's validator.

#ifndef TIDE_UTF8_H
#define TIDE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C"
#endif
bool tide_utf8_is_valid(const char *text, size_t length);

#endif

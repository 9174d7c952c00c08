/// A growing text, for SQL and JSON that our C writes. A failed allocation sets `failed` and drops all later text, so that callers check
/// once at the end. Begin with `{0}`, end with `tide_text_free`.

#ifndef TIDE_TEXT_H
#define TIDE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// A text and its memory. `bytes` is NUL-terminated once something was appended.
typedef struct tide_text {
    char *TIDE_NULLABLE bytes;
    size_t length, capacity;
    bool failed;
} tide_text;

/// Empties a text and its `failed` mark, and keeps the memory.
void tide_text_clear(tide_text *text);
/// Frees the memory. The text is empty afterwards, and may be used again.
void tide_text_free(tide_text *text);
/// Appends bytes as they are.
void tide_text_append(tide_text *text, const void *TIDE_NULLABLE bytes, size_t length);
/// Appends text that is formatted as by `printf`.
void tide_text_format(tide_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/// A JSON string with its quotes; the bytes are UTF-8 and pass unchanged but for quotes, backslashes and control characters.
void tide_text_json_string(tide_text *text, const char *bytes, size_t length);
/// A JSON string that holds the bytes in Base64.
void tide_text_base64(tide_text *text, const void *TIDE_NULLABLE bytes, size_t length);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

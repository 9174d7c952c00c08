/// Status codes and error detail shared by every function of the core.
///
/// Rules: a function that can fail returns only a `tide_status`; results come through out-parameters. A function that takes a
/// `tide_error *` fills it on failure and leaves it alone on success; the pointer may be NULL. Nothing here allocates.

#ifndef TIDE_STATUS_H
#define TIDE_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__)
#define TIDE_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define TIDE_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#define TIDE_NULLABLE _Nullable
#else
#define TIDE_ASSUME_NONNULL_BEGIN
#define TIDE_ASSUME_NONNULL_END
#define TIDE_NULLABLE
#define _Nonnull
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// The outcome of a call.
typedef enum tide_status {
    TIDE_OK = 0,
    /// Memory ran out.
    TIDE_NO_MEMORY = 1,
    /// A system call failed; `tide_error.system` holds errno.
    TIDE_IO_ERROR = 2,
    /// The disk or the quota is full.
    TIDE_DISK_FULL = 3,
    /// Another process holds the lock and the time allowed has passed.
    TIDE_BUSY = 4,
    /// SQLite refused; `tide_error.system` holds its extended result code.
    TIDE_SQLITE_ERROR = 5,
    /// A file on disk breaks the rules of the format.
    TIDE_CORRUPT = 6,
    /// The caller broke a precondition.
    TIDE_MISUSE = 7,
    /// The item itself is refused; `tide_error.reject` says why. The store and the batch are unharmed.
    TIDE_REJECTED = 8,
    /// There is nothing more to read.
    TIDE_END = 9,
    /// The caller has cancelled the work.
    TIDE_CANCELLED = 10,
} tide_status;

/// Why a row, a field or a file is refused. The names are part of the rejects format (Documentation/Formats/rejects.md).
typedef enum tide_reject {
    TIDE_REJECT_NONE = 0,
    TIDE_REJECT_INVALID_UTF8 = 1,
    TIDE_REJECT_MALFORMED = 2,
    TIDE_REJECT_NOT_AN_OBJECT = 3,
    TIDE_REJECT_TOO_DEEP = 4,
    TIDE_REJECT_TOO_LONG = 5,
    TIDE_REJECT_DUPLICATE_KEY = 6,
    TIDE_REJECT_BAD_IDENTIFIER = 7,
    TIDE_REJECT_MISSING_NAME = 8,
    TIDE_REJECT_BAD_NAME = 9,
    TIDE_REJECT_WRONG_TYPE = 10,
    TIDE_REJECT_OUT_OF_RANGE = 11,
    TIDE_REJECT_RAGGED = 12,
    TIDE_REJECT_UNKNOWN_FIELD = 13,
    TIDE_REJECT_NAME_TAKEN = 14,
    TIDE_REJECT_TOO_MANY_FIELDS = 15,
    TIDE_REJECT_DAMAGED = 16,
    TIDE_REJECT_ASSET_MISSING = 20,
    TIDE_REJECT_ASSET_EMPTY = 21,
    TIDE_REJECT_ASSET_UNREADABLE = 22,
    TIDE_REJECT_ASSET_TRUNCATED = 23,
    TIDE_REJECT_ASSET_NOT_A_FILE = 24,
    TIDE_REJECT_ASSET_OUTSIDE_ROOT = 25,
    TIDE_REJECT_ASSET_CHANGED = 26,
    TIDE_REJECT_ASSET_NOT_AN_IMAGE = 27,
    TIDE_REJECT_ASSET_UNKNOWN = 28,
    TIDE_REJECT_ASSET_COLLISIONS = 29,
    TIDE_REJECT_TOO_MANY_ASSETS = 30,
    TIDE_REJECT_PICTURE_DAMAGED = 31,
    TIDE_REJECT_PICTURE_TOO_LARGE = 32,
    TIDE_REJECT_PICTURE_UNSUPPORTED = 33,
} tide_reject;

/// The detail of a failure, owned by the caller.
typedef struct tide_error {
    tide_status status;
    tide_reject reject;
    /// errno, or SQLite's extended result code, or 0.
    int32_t system;
    /// A sentence, NUL-terminated, without a final period; cut off when longer.
    char message[500];
} tide_error;

/// Fills `error` (if not NULL) and returns `status`, so that a failure takes a single statement.
tide_status tide_error_set(tide_error *TIDE_NULLABLE error, tide_status status, int32_t system, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/// Fills `error` with a refusal and returns TIDE_REJECTED.
tide_status tide_error_reject(tide_error *TIDE_NULLABLE error, tide_reject reject, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Fills `error` from errno (TIDE_DISK_FULL for ENOSPC and EDQUOT, else TIDE_IO_ERROR): "cannot WHAT PATH: strerror".
tide_status tide_error_errno(tide_error *TIDE_NULLABLE error, const char *what, const char *path);

/// The name of a refusal as the rejects file spells it ("invalidUTF8"); "none" for any other value. Static storage.
const char *tide_reject_name(tide_reject reject);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

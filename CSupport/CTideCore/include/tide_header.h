/// The first bytes of a database file, read without opening the database.
///
/// Why C: SQLite's file layer is a table of functions that Swift can't call.
/// Why not open(2) and read(2): POSIX locks belong to the process. Closing any descriptor of a file drops all locks that the process
/// has on it, those of a store that is open there among them. SQLite's file layer knows of these, and closes late.
/// Threads: any; nothing is kept.

#ifndef TIDE_HEADER_H
#define TIDE_HEADER_H

#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// Length of the header of a SQLite database.
#define TIDE_HEADER_SIZE 100

/// Reads the first TIDE_HEADER_SIZE bytes of a file into `header`; where it is shorter, the rest is zero. The file is opened for
/// reading only, no lock is taken, and a symbolic link in the place of the file is not followed. TIDE_IO_ERROR when it can't be read.
tide_status tide_header_read(const char *path, uint8_t *header, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

/// Unpacks a zip archive into a folder.
///
/// Rules: names are paths below the folder. A file whose name is absolute or has a part `..` ends the unpacking. Only regular files are
/// written, never through a link, never over another file; folders are made as files need them. Links, devices and the like are
/// skipped. An archive has at most 1,000,000 entries, and expands to at most 1 GiB or 200 times its size. Every input is hostile.
/// Threads: any; keeps nothing.

#ifndef TIDE_ARCHIVE_H
#define TIDE_ARCHIVE_H

#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// Unpacks a zip archive into the empty folder `folder`. `descriptor` stands at the archive's beginning; the caller closes both.
/// TIDE_REJECTED, with the reason, when the archive is damaged, encrypted or breaks the rules; files that were written until then stay.
tide_status tide_archive_unpack(int descriptor, int folder, uint64_t *files, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

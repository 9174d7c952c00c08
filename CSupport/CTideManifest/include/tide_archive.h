/// Unpacks a zip archive into a folder.
///
/// Rules: names are paths below the folder; one that is absolute or has a part `..` ends the unpacking. Only regular files are
/// written, never through a link, never over another file; folders are made as files need them. Links, devices and the like are
/// passed over. An archive has at most 1,000,000 entries, and expands to at most 1 GiB or 200 times its size. Every input is hostile.
/// Threads: any; keeps nothing.

#ifndef TIDE_ARCHIVE_H
#define TIDE_ARCHIVE_H

#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// Unpacks the zip archive that `descriptor` stands at the beginning of into the empty folder `folder`; both stay the caller's.
/// TIDE_REJECTED, with the reason, when it is damaged, encrypted or breaks the rules; what was written until then stays.
tide_status tide_archive_unpack(int descriptor, int folder, uint64_t *files, tide_error *TIDE_NULLABLE error);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

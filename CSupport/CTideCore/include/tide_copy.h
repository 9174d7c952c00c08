/// Copies blobs from one container's `assets/` into another's, verified; and exchanges a whole copy with the folder that is at its place.
///
/// A copy is hashed while it is made. If it does not match its identifier, it is removed again. Where the file system can share
/// blocks between files (FICLONE), it does, and the copy is read to be hashed. If the caller allows it, a blob on the same file
/// system gets a second name instead of a copy: blobs never change. Nothing is durable before `tide_copier_sync`.
///
/// No symbolic link below the two folders is followed. Threads: a copier belongs to one thread at a time; several may work on the
/// same folders, each with blobs of its own.
///
/// Why C: hashing and copying at the speed of the disk; ioctl, syncfs and renameat2.

#ifndef TIDE_COPY_H
#define TIDE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// A copier; made by `tide_copier_create`.
typedef struct tide_copier tide_copier;

/// `from` and `to` are folders of assets; `to` is made (mode 0700) if need be, and its parent must be there. With `may_link`, a
/// blob may get a second name. The caller ends the copier with `tide_copier_destroy`.
tide_status tide_copier_create(
    const char *from, const char *to, bool may_link, tide_copier *TIDE_NULLABLE *_Nonnull copier, tide_error *TIDE_NULLABLE error);
/// Frees a copier. NULL does nothing.
void tide_copier_destroy(tide_copier *TIDE_NULLABLE copier);

/// Copies a blob, unless the target has it already, whole. A damaged file at the target is replaced. A blob that gets a second name is
/// not read here. TIDE_REJECTED with the reason when the blob to be copied is missing or damaged.
tide_status tide_copier_copy(tide_copier *copier, const char *id, tide_error *TIDE_NULLABLE error);

/// Reads a copy again and compares it with its identifier; from the disk, if the system can drop its cache of the file. TIDE_REJECTED
/// with the reason when they differ. Only after `tide_copier_sync`.
tide_status tide_copier_verify(tide_copier *copier, const char *id, tide_error *TIDE_NULLABLE error);

/// Makes all copies durable, with their names, whichever copier has made them.
tide_status tide_copier_sync(tide_copier *copier, tide_error *TIDE_NULLABLE error);

/// Exchanges the names of two folders of one file system in one step. TIDE_MISUSE where the file system can't.
tide_status tide_folders_exchange(const char *one, const char *other, tide_error *TIDE_NULLABLE error);

/// Asks the system to drop its cache of a durable file, so that the next read comes from the disk.
void tide_file_forget(const char *path);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

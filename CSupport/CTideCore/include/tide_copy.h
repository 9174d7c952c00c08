/// Copies blobs from one container's `assets/` into another's, verified; and puts a whole copy in the place of what was there.
///
/// A copy is hashed while it is made and must be what its identifier says, or it is removed again. Where the file system can share
/// blocks between files (FICLONE), it does, and the copy is read to be hashed. If the caller allows it, a blob on the same file
/// system gets a second name instead of a copy: blobs never change. Nothing is durable before `tide_copier_sync`.
///
/// No symbolic link below the two folders is followed. Threads: a copier belongs to one thread at a time; several may work on the
/// same folders.
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

/// Copies one blob, unless the target has it already, whole. What stands there and is wrong is replaced. One that gets a second
/// name is not read here. TIDE_REJECTED with the reason when the blob to be copied is missing or damaged.
tide_status tide_copier_copy(tide_copier *copier, const char *id, tide_error *TIDE_NULLABLE error);

/// Reads a copy again, from the disk where the system can be asked to forget what it has in memory, and tells whether it is what
/// its identifier says. TIDE_REJECTED with the reason when it is not. Only after `tide_copier_sync`.
tide_status tide_copier_verify(tide_copier *copier, const char *id, tide_error *TIDE_NULLABLE error);

/// Makes all copies durable, with their names, whichever copier has made them.
tide_status tide_copier_sync(tide_copier *copier, tide_error *TIDE_NULLABLE error);

/// Exchanges the names of two folders of one file system in one step. TIDE_MISUSE where the file system can't.
tide_status tide_folders_exchange(const char *one, const char *other, tide_error *TIDE_NULLABLE error);

/// Asks the system to forget what it has in memory of a file that is durable, so that the next reading comes from the disk.
void tide_file_forget(const char *path);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

#ifndef TIDE_SHM_DESCRIPTORS_H
#define TIDE_SHM_DESCRIPTORS_H

#include <sys/types.h>

/// The process's own descriptors of -shm files.
///
/// Closing any descriptor of a file releases all the locks of fcntl(F_SETLK) that the process has on it, and SQLite's writers rely on those
/// (sqlite.org/howtocorrupt.html, 2.2). So a descriptor that is no longer used stays open, for the next reader of the file, until nothing
/// else in the process has the file open.
///
/// All functions may be called on any thread.

/// Opens a -shm file for reading, or returns a descriptor of it that is no longer used.
///
/// - Returns: 0, or errno; EINVAL where the path is no regular file.
int tide_shm_descriptor_open(const char *path, int *descriptor, dev_t *device, ino_t *inode);

/// Ends the use of a descriptor, with its OFD locks. Closes it, and others that are no longer used, unless the process has their files open
/// by other descriptors.
///
/// Complexity: O(n) in the descriptors of the process.
void tide_shm_descriptor_close(int descriptor);

#endif

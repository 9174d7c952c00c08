/// A SQLite VFS for reading a database that can't change it, whatever the process does.
///
/// Rules: every file of a database is opened for reading only and none is made. Calls that write, truncate, sync, delete or lock for
/// writing are refused here, before they reach the system. Temporary files, which are no part of a database, are left to the default VFS.
/// The wal-index (the -shm file) is mapped for reading only and attached to only while another process keeps it up.
/// Otherwise SQLite builds one of its own in memory from the log. A missing -wal or -shm is no error, and a log without frames that count
/// is an empty log.
/// Limits: the default VFS must be SQLite's for unix, or a VFS that passes on to it, since -wal and -shm are read past it.
/// Threads: any. Global state: the VFS is registered for the process, under a name of its own; and descriptors of
/// -shm files are kept open where closing them would release the locks of a writer in the same process.
///
/// Why C: a VFS is a table of C functions.

#ifndef TIDE_READER_VFS_H
#define TIDE_READER_VFS_H

#include <stdbool.h>

#include "tide_status.h"

#ifdef __cplusplus
extern "C" {
#endif

TIDE_ASSUME_NONNULL_BEGIN

/// The name for `vfs=` in a URI filename: "file:///path/to/private.sqlite?vfs=tide-readonly".
#define TIDE_READER_VFS_NAME "tide-readonly"

struct sqlite3;

/// Registers the VFS, if it is not. TIDE_SQLITE_ERROR when this SQLite has no default VFS.
///
/// While a connection through it reads, these results of SQLite mean that the read is void and may be begun again:
/// - SQLITE_BUSY_SNAPSHOT: there was no -shm file, so that no lock could keep writers away, and now there is one. Rows that were
///   read before are sound.
/// - SQLITE_READONLY_RECOVERY: the wal-index is torn, or was removed. Begin again on a new connection.
/// - SQLITE_READONLY_CANTINIT: the wal-index was just being started again.
tide_status tide_reader_vfs_register(tide_error *TIDE_NULLABLE error);

/// Prepares a connection that only reads: DEFENSIVE on; double-quoted strings, trusted schema and the checkpoint on closing off.
/// TIDE_SQLITE_ERROR when it is not a connection of this VFS: then SQLite did not take its name for a URI.
tide_status tide_reader_prepare(struct sqlite3 *connection, tide_error *TIDE_NULLABLE error);

/// Whether the results of the present read transaction are still valid, including disturbances that SQLite reports no error for.
bool tide_reader_is_undisturbed(struct sqlite3 *connection);

TIDE_ASSUME_NONNULL_END

#ifdef __cplusplus
}
#endif

#endif

/// The wal-index of a database (its -shm file) as a process that only reads may use it; part of tide_reader_vfs.
///
/// SQLite's own VFS maps the file for writing, makes it if it is missing, and starts it again when no other connection uses it. Asked for
/// `readonly_shm`, it does none of that, but then shares the descriptor that it opened for reading with every other connection of
/// the process, writers among them. So this is a separate implementation. It takes the same locks on the same bytes, as open file
/// description locks: these also exclude the writers of this process, and closing a descriptor does not release another one's locks.
///
/// The protocol, by the bytes of the file that are locked (SQLite's os_unix.c and wal.c):
///   120 WRITE, 121 CKPT, 122 RECOVER    never locked here, only looked at
///   123..127 READ(0)..READ(4)           locked shared while a read transaction lasts: what it relies on is not overwritten
///   128 the dead man's switch           locked shared by each connection that keeps the index up, and here only if there is one
///
/// Threads: an index belongs to one connection.

#ifndef TIDE_READER_INDEX_H
#define TIDE_READER_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// The state of the file of a wal-index, as this connection knows it.
typedef enum tide_wal_index_state {
    /// Not looked for yet.
    TIDE_WAL_INDEX_UNKNOWN = 0,
    /// There is no file.
    TIDE_WAL_INDEX_ABSENT,
    /// There is a file, and no connection keeps it up. A later writer respects this connection's locks on it.
    TIDE_WAL_INDEX_LEFT,
    /// Another connection keeps the file up. This connection now does so too, so that the file stays in use.
    TIDE_WAL_INDEX_LIVE,
} tide_wal_index_state;

typedef struct tide_wal_index {
    /// Owned.
    char *path;
    tide_wal_index_state state;
    /// -1 while no file is open. `device` and `inode` identify the open file.
    int descriptor;
    dev_t device;
    ino_t inode;
    /// The locks that SQLite believes to hold, a bit each. With ABSENT there is no file to lock.
    uint8_t held;
    /// True once SQLite got SQLITE_READONLY_CANTINIT for the index. Every later mapping then has to return SQLITE_READONLY.
    bool was_unreliable;
    /// How often SQLite has asked in vain for a lock to repair the index, since it last could read.
    unsigned fruitless;
    /// The mappings, in the order of the file, `mapping_size` bytes each.
    void **mappings;
    int mapping_count;
} tide_wal_index;

/// Begins with the index of the database at `database`; the caller ends it with `tide_wal_index_end`. SQLITE_NOMEM is possible.
int tide_wal_index_begin(tide_wal_index *index, const char *database);
/// Unmaps an index and releases its locks. It may be used again afterwards.
void tide_wal_index_release(tide_wal_index *index);
void tide_wal_index_end(tide_wal_index *index);

/// The state of a log, as its index has it.
typedef struct tide_wal_index_header {
    /// Frames that are committed, and those among them that are in the database.
    uint32_t committed, moved;
    /// The bytes that tell the index's log from others.
    unsigned char salt[8];
    /// Whether a connection keeps the index up.
    bool is_kept_up;
} tide_wal_index_header;

/// Looks at an index that was begun, without attaching to it. `*is_found` is false if there is no index, or it is not whole. Returns 0, or the
/// errno of what could not be read.
int tide_wal_index_peek(tide_wal_index *index, tide_wal_index_header *header, bool *is_found);

/// The methods xShmMap and xShmLock of a VFS.
int tide_wal_index_map(tide_wal_index *index, int region, int region_size, void volatile **out);
int tide_wal_index_lock(tide_wal_index *index, int offset, int count, int flags);

/// Whether nothing can have been written to the database since the index was last looked for: a writer would have made an index, or
/// respects the locks.
bool tide_wal_index_is_undisturbed(const tide_wal_index *index);

#endif

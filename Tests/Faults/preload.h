/// What the preloaded library (preload.c, calls.c) and the harnesses (preload.py) share: the state's layout and the log's.
///
/// The library counts the calls of a process that change files below a folder, lets one of them fail, and records all of them. It is told by
/// the environment:
///
/// - `PRELOAD_ROOT`: the folder, an absolute path without symbolic links. Nothing happens without it.
/// - `PRELOAD_STATE`: a file of `struct preload_state`, made by the harness; processes that share it count together.
/// - `PRELOAD_AT`: the number of the call that fails, from 1; 0 or nothing: none does.
/// - `PRELOAD_KIND`: `EIO`, `ENOSPC`, `EDQUOT`, `SHORT` (half is written, which a caller may go on from), `TORN` (half is written, then EIO)
///   `LIE` (a write that says that it is done, and is not) or `KILL` (the process ends there, by SIGKILL).
/// - `PRELOAD_STICKY`: with `1` all calls from then on fail; else that one only.
/// - `PRELOAD_CLASSES`: names of `preload_names`, separated by commas: what is counted. All but `read` if it is absent.
/// - `PRELOAD_SYNC`: with `skip`, what would make files durable does nothing, and says that it is done: quicker, and no power fails here.
/// - `PRELOAD_LOG`: a file to which each call is appended as a `struct preload_record` with its names and data.
///
/// No name of these functions is called by others: they take the places of the C library's.
#ifndef TIDEMARK_PRELOAD_H
#define TIDEMARK_PRELOAD_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// Kinds of calls, which are counted by themselves, too. The order is that of `preload_names` and of preload.py.
typedef enum {
    CALL_WRITE,
    CALL_SYNC,
    CALL_TRUNCATE,
    CALL_RENAME,
    CALL_OPEN,
    CALL_MMAP,
    CALL_COPY,
    CALL_LINK,
    CALL_UNLINK,
    CALL_MKDIR,
    CALL_MODE,
    CALL_READ,
    CALL_CLASSES,
} preload_class;

/// What the harness reads while a process runs, and after it was killed.
struct preload_state {
    uint64_t count;
    uint64_t counts[CALL_CLASSES];
    uint64_t failed;
    /// The first call that failed: its class, its function and its path.
    uint64_t failed_class;
    char call[32];
    char path[1024];
};

/// Entries of the log. `SENT` is output to a pipe or a socket: what others have been told by then.
enum preload_entry {
    ENTRY_WRITE = 1,
    ENTRY_TRUNCATE,
    ENTRY_CREATE,
    ENTRY_MKDIR,
    ENTRY_LINK,
    ENTRY_RENAME,
    ENTRY_UNLINK,
    ENTRY_SYNC_BEGIN,
    ENTRY_SYNC_END,
    ENTRY_SYNC_ALL_BEGIN,
    ENTRY_SYNC_ALL_END,
    ENTRY_MAPPED,
    ENTRY_SENT,
};

/// An entry of the log; `name_length` bytes of a name, `other_length` of another and `length` of data follow it.
///
/// A file is known by `inode`; a name by its folder's inode and its last part. `link` and `rename` have both folders.
struct preload_record {
    uint32_t entry;
    uint32_t flags;
    uint64_t inode;
    uint64_t folder;
    uint64_t other_folder;
    int64_t offset;
    uint32_t name_length;
    uint32_t other_length;
    uint64_t length;
};

enum { path_size = 4096 };

/// What preload.c has for calls.c. All of it is used while the lock is held.
extern pthread_mutex_t preload_lock;

/// Whether the library has been told a folder.
bool preload_is_on(void);

/// The path of an open file, if it is below the folder.
bool preload_path_of(int file, char path[static path_size]);

/// The absolute path of a name that is relative to `folder`, if it is below the folder that is watched.
bool preload_path_at(int folder, const char *name, char path[static path_size]);

/// Counts a call, and says whether it fails: 0, or the error; `*half` is set where half of it is to be done.
int preload_count(preload_class class, const char *call, const char *path, bool *half);

/// Whether a write that is done by half is not done at all, and says that it is.
bool preload_lies(void);

/// Whether syncs are left out.
bool preload_skips_sync(void);

bool preload_is_logged(void);

/// Appends an entry; names and data may be null.
void preload_log(struct preload_record record, const char *name, const char *other, const void *data);

/// The inode of an open file, or of a path without following its last link; 0 if there is none.
uint64_t preload_inode(int file);
uint64_t preload_inode_at(const char *path);

/// The inode of the folder of a path, and the path's last part.
uint64_t preload_folder(const char *path, const char **name);

/// Remembers a file that is mapped for writing, and forgets it; what was changed in mapped files is logged with the next entry.
void preload_map(void *address, size_t length, uint64_t inode, int64_t offset);
void preload_unmap(void *address, size_t length);

// What the functions in the C library's places share.

#define OWN __attribute__((visibility("default")))

static inline void lock(void) {
    if (preload_is_logged()) pthread_mutex_lock(&preload_lock);
}

static inline void unlock(void) {
    if (preload_is_logged()) pthread_mutex_unlock(&preload_lock);
}

static inline int failed(int error) {
    errno = error;
    return -1;
}

#endif

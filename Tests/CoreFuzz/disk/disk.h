/// A disk in memory, as a VFS of SQLite with the name "disk": calls can fail, and the power can be cut.
///
/// Calls that change a file are counted from 1: the creation, a write, a truncation, a sync, a deletion, room for the log's index. Reads are counted
/// apart. Temporary files are on no disk, and count nothing. A connection has a database for itself.

#ifndef DISK_H
#define DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// How a call fails.
typedef enum disk_fault {
    DISK_FAULT_NONE,
    /// An error of the disk.
    DISK_FAULT_IO,
    /// No room. A sync or a truncation that fails so is an error of the disk.
    DISK_FAULT_FULL,
    /// The first half of a write is done, and then the disk fails, or is full. Other calls fail as above.
    DISK_FAULT_HALF_IO,
    DISK_FAULT_HALF_FULL,
    /// A read fails.
    DISK_FAULT_READ,
} disk_fault;

/// What of the calls without a sync is on the disk after a power cut.
typedef enum disk_loss {
    /// Nothing.
    DISK_LOSS_ALL,
    /// All of it, as after a kill.
    DISK_LOSS_NONE,
    /// All before a random moment, and sectors of the write that was under way.
    DISK_LOSS_AFTER_MOMENT,
    /// Any sectors of 512, or 4,096, bytes; any other calls.
    DISK_LOSS_SECTORS_512,
    DISK_LOSS_SECTORS_4096,
    /// All lengths, with zeros for what was written behind a file's end, and nothing of the rest.
    DISK_LOSS_DATA,
    /// The later half of the calls without the earlier one.
    DISK_LOSS_EARLIER,
    DISK_LOSS_COUNT,
} disk_loss;

#define DISK_VFS_NAME "disk"

/// Makes the VFS known to SQLite. It is not the default.
void disk_register(void);
/// Removes all files, and the log of calls. No connection may be open.
void disk_clear(void);

/// The bytes of a file, as programs see them. They stay until the next call that changes the file.
uint8_t *disk_bytes(const char *name, size_t *length);

/// Begins to count calls. The log of what they do begins here, too: everything before is durable.
void disk_count(void);
/// The calls, or reads, since then.
int disk_calls(void);
int disk_reads(void);
/// Notes that something was acknowledged, in the log.
void disk_acknowledge(void);
/// Lets syncs report success and do nothing, as a disk that lies.
void disk_ignore_syncs(bool ignores);

/// Lets a call, or read, fail: that one, or also all later ones. `DISK_FAULT_NONE` ends it.
void disk_fail(disk_fault fault, int at, bool is_sticky);
/// Whether a call has failed since `disk_fail`.
bool disk_has_failed(void);

/// Puts the disk into the state before the calls since `disk_count`.
void disk_rewind(void);
/// Makes the files as a power cut before the call `at` (1 to `disk_calls() + 1`) may leave them. Calls of one log come in ascending order.
///
/// Returns how many times `disk_acknowledge` was called before that call.
int disk_cut(int at, disk_loss loss, uint64_t seed);

/// The next number of a generator, from 0 to `limit` - 1.
uint64_t random_below(uint64_t *state, uint64_t limit);

#endif

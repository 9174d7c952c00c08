#include "disk.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"

enum { file_limit = 8, region_limit = 64, region_size = 32768 };

typedef struct content {
    uint8_t *bytes;
    size_t length, capacity;
} content;

/// A file: as programs see it, as it was when the count began, and what of it is durable at the call that a cut has come to.
typedef struct state {
    content content;
    bool exists;
} state;

typedef struct file {
    char name[64];
    state now, before, durable;
} file;

typedef enum call_kind { CALL_CREATE, CALL_WRITE, CALL_TRUNCATE, CALL_SYNC, CALL_DELETE, CALL_INDEX, CALL_ACKNOWLEDGE } call_kind;

typedef struct call {
    call_kind kind;
    file *file;
    size_t offset, length;
    uint8_t *bytes;
    /// The number of the call; of an acknowledgement, that of the call before it.
    int number;
    /// Whether a sync has made it durable, where a cut has come so far.
    bool is_durable;
} call;

static file files[file_limit];
static uint8_t *regions[region_limit];
static struct {
    call *calls;
    size_t count, capacity;
} history;
static struct {
    int calls, reads;
    disk_fault fault;
    int at;
    bool is_sticky, has_failed, ignores_syncs;
    /// Whether the power was cut. What comes then is in no log.
    bool is_cut;
    /// How far `disk_cut` has come in the log.
    size_t reached;
    int acknowledged;
} disk;

uint64_t random_below(uint64_t *state, uint64_t limit) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % limit;
}

// Contents

static void content_resize(content *content, size_t length) {
    if (length > content->capacity) {
        content->capacity = length * 2;
        content->bytes = realloc(content->bytes, content->capacity);
        check(content->bytes != NULL, "out of memory");
    }
    if (length > content->length) memset(content->bytes + content->length, 0, length - content->length);
    content->length = length;
}

static void content_write(content *content, size_t offset, const void *bytes, size_t length) {
    if (offset + length > content->length) content_resize(content, offset + length);
    if (length) memcpy(content->bytes + offset, bytes, length);
}

static void state_copy(state *to, const state *from) {
    to->exists = from->exists;
    to->content.length = 0;
    content_write(&to->content, 0, from->content.bytes, from->content.length);
}

static void state_apply(state *state, const call *call) {
    switch (call->kind) {
    case CALL_CREATE: state->exists = true; break;
    case CALL_WRITE: content_write(&state->content, call->offset, call->bytes, call->length); break;
    case CALL_TRUNCATE: content_resize(&state->content, call->length); break;
    case CALL_DELETE: state->exists = false, state->content.length = 0; break;
    default: break;
    }
}

// Calls

/// Counts a call, and returns the fault that it has.
static disk_fault call_count(bool is_read) {
    int number = is_read ? ++disk.reads : ++disk.calls;
    if (disk.fault == DISK_FAULT_NONE || is_read != (disk.fault == DISK_FAULT_READ)) return DISK_FAULT_NONE;
    if (disk.is_sticky ? number < disk.at : number != disk.at) return DISK_FAULT_NONE;
    disk.has_failed = true;
    return disk.fault;
}

/// Does a call, and writes it into the log.
static void call_do(call_kind kind, file *file, size_t offset, size_t length, const void *bytes) {
    call call = {.kind = kind, .file = file, .offset = offset, .length = length, .bytes = (uint8_t *)bytes, .number = disk.calls};
    if (file) state_apply(&file->now, &call);
    if (disk.is_cut) return;
    if (history.count == history.capacity) {
        history.capacity = history.capacity * 2 + 64;
        history.calls = realloc(history.calls, history.capacity * sizeof *history.calls);
        check(history.calls != NULL, "out of memory");
    }
    if (length && bytes) {
        call.bytes = malloc(length);
        check(call.bytes != NULL, "out of memory");
        memcpy(call.bytes, bytes, length);
    }
    history.calls[history.count++] = call;
}

static void history_clear(void) {
    for (size_t i = 0; i < history.count; i++) free(history.calls[i].bytes);
    history.count = 0;
    disk.calls = disk.reads = disk.acknowledged = 0;
    disk.reached = 0;
    disk.is_cut = false;
}

static bool is_full(disk_fault fault) { return fault == DISK_FAULT_FULL || fault == DISK_FAULT_HALF_FULL; }

// Files of SQLite

typedef struct open_file {
    sqlite3_file base;
    /// NULL: a temporary file, whose content is `temporary`.
    file *file;
    content temporary;
} open_file;

static content *open_content(sqlite3_file *base) {
    open_file *open = (open_file *)base;
    return open->file ? &open->file->now.content : &open->temporary;
}

static file *file_find(const char *name, bool makes) {
    for (int i = 0; i < file_limit; i++) {
        if (strcmp(files[i].name, name) == 0) return &files[i];
    }
    for (int i = 0; i < file_limit && makes; i++) {
        if (files[i].name[0]) continue;
        snprintf(files[i].name, sizeof files[i].name, "%s", name);
        return &files[i];
    }
    check(!makes, "more than %d files", file_limit);
    return NULL;
}

static int disk_close(sqlite3_file *base) {
    free(((open_file *)base)->temporary.bytes);
    return SQLITE_OK;
}

static int disk_read(sqlite3_file *base, void *bytes, int count, sqlite3_int64 offset) {
    if (((open_file *)base)->file && call_count(true)) return SQLITE_IOERR_READ;
    const content *content = open_content(base);
    size_t length = (size_t)offset < content->length ? content->length - (size_t)offset : 0;
    if (length > (size_t)count) length = (size_t)count;
    if (length) memcpy(bytes, content->bytes + offset, length);
    memset((char *)bytes + length, 0, (size_t)count - length);
    return length == (size_t)count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int disk_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
    file *file = ((open_file *)base)->file;
    if (!file) {
        content_write(open_content(base), (size_t)offset, bytes, (size_t)count);
        return SQLITE_OK;
    }
    disk_fault fault = call_count(false);
    bool is_half = fault == DISK_FAULT_HALF_IO || fault == DISK_FAULT_HALF_FULL;
    if (!fault || is_half) call_do(CALL_WRITE, file, (size_t)offset, (size_t)count / (is_half ? 2 : 1), bytes);
    return !fault ? SQLITE_OK : is_full(fault) ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int disk_truncate(sqlite3_file *base, sqlite3_int64 size) {
    file *file = ((open_file *)base)->file;
    if (!file) {
        content_resize(open_content(base), (size_t)size);
        return SQLITE_OK;
    }
    if (call_count(false)) return SQLITE_IOERR_TRUNCATE;
    call_do(CALL_TRUNCATE, file, 0, (size_t)size, NULL);
    return SQLITE_OK;
}

static int disk_sync(sqlite3_file *base, int flags) {
    (void)flags;
    file *file = ((open_file *)base)->file;
    if (!file) return SQLITE_OK;
    if (call_count(false)) return SQLITE_IOERR_FSYNC;
    if (!disk.ignores_syncs) call_do(CALL_SYNC, file, 0, 0, NULL);
    return SQLITE_OK;
}

static int disk_size(sqlite3_file *base, sqlite3_int64 *size) {
    *size = (sqlite3_int64)open_content(base)->length;
    return SQLITE_OK;
}

static int disk_lock(sqlite3_file *base, int level) {
    (void)base, (void)level;
    return SQLITE_OK;
}

static int disk_is_reserved(sqlite3_file *base, int *is_reserved) {
    (void)base;
    *is_reserved = 0;
    return SQLITE_OK;
}

static int disk_control(sqlite3_file *base, int operation, void *argument) {
    (void)base;
    if (operation != SQLITE_FCNTL_PERSIST_WAL) return SQLITE_NOTFOUND;
    *(int *)argument = 1;
    return SQLITE_OK;
}

static int disk_sector_size(sqlite3_file *base) {
    (void)base;
    return 4096;
}

/// As the VFS of Unix: a write changes no byte beside it.
static int disk_characteristics(sqlite3_file *base) {
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int disk_index_map(sqlite3_file *base, int region, int size, int extends, void volatile **address) {
    (void)base;
    *address = NULL;
    check(region < region_limit && size == region_size, "region %d of %d bytes", region, size);
    if (!regions[region]) {
        if (!extends) return SQLITE_OK;
        disk_fault fault = call_count(false);
        if (fault) return is_full(fault) ? SQLITE_IOERR_SHMSIZE : SQLITE_IOERR_SHMMAP;
        call_do(CALL_INDEX, NULL, 0, 0, NULL);
        regions[region] = calloc(1, region_size);
        check(regions[region] != NULL, "out of memory");
    }
    *address = regions[region];
    return SQLITE_OK;
}

static int disk_index_lock(sqlite3_file *base, int offset, int count, int flags) {
    (void)base, (void)offset, (void)count, (void)flags;
    return SQLITE_OK;
}

static void disk_index_barrier(sqlite3_file *base) { (void)base; }

static int disk_index_unmap(sqlite3_file *base, int deletes) {
    (void)base, (void)deletes;
    // The only connection has gone, so nothing keeps the index up.
    for (int i = 0; i < region_limit; i++) {
        free(regions[i]);
        regions[i] = NULL;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, .xClose = disk_close, .xRead = disk_read, .xWrite = disk_write, .xTruncate = disk_truncate, .xSync = disk_sync,
    .xFileSize = disk_size, .xLock = disk_lock, .xUnlock = disk_lock, .xCheckReservedLock = disk_is_reserved, .xFileControl = disk_control,
    .xSectorSize = disk_sector_size, .xDeviceCharacteristics = disk_characteristics, .xShmMap = disk_index_map, .xShmLock = disk_index_lock,
    .xShmBarrier = disk_index_barrier, .xShmUnmap = disk_index_unmap,
};

// The file system

static int disk_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *base, int flags, int *out_flags) {
    (void)vfs;
    open_file *open = (open_file *)base;
    memset(open, 0, sizeof *open);
    if (name) {
        file *file = file_find(name, true);
        if (!file->now.exists) {
            if (!(flags & SQLITE_OPEN_CREATE)) return SQLITE_CANTOPEN;
            if (call_count(false)) return SQLITE_CANTOPEN;
            call_do(CALL_CREATE, file, 0, 0, NULL);
        }
        open->file = file;
    }
    if (out_flags) *out_flags = flags;
    open->base.pMethods = &methods;
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int syncs) {
    (void)vfs;
    file *file = file_find(name, false);
    if (!file || !file->now.exists) return SQLITE_IOERR_DELETE_NOENT;
    if (call_count(false)) return SQLITE_IOERR_DELETE;
    call_do(CALL_DELETE, file, 0, 0, NULL);
    if (syncs && !disk.ignores_syncs) call_do(CALL_SYNC, file, 0, 0, NULL);
    return SQLITE_OK;
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs, (void)flags;
    const file *file = file_find(name, false);
    *result = file && file->now.exists;
    return SQLITE_OK;
}

static int disk_path(sqlite3_vfs *vfs, const char *name, int size, char *path) {
    (void)vfs;
    sqlite3_snprintf(size, path, "%s", name);
    return SQLITE_OK;
}

static sqlite3_vfs vfs = {
    .iVersion = 1, .szOsFile = sizeof(open_file), .mxPathname = 60, .zName = DISK_VFS_NAME, .xOpen = disk_open, .xDelete = disk_delete,
    .xAccess = disk_access, .xFullPathname = disk_path,
};

void disk_register(void) {
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    vfs.xRandomness = usual->xRandomness, vfs.xSleep = usual->xSleep, vfs.xCurrentTime = usual->xCurrentTime;
    check(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK, "cannot register the VFS");
}

// Counts, faults and power cuts

void disk_clear(void) {
    for (int i = 0; i < file_limit; i++) {
        free(files[i].now.content.bytes), free(files[i].before.content.bytes), free(files[i].durable.content.bytes);
    }
    memset(files, 0, sizeof files);
    history_clear();
    free(history.calls);
    memset(&history, 0, sizeof history);
    memset(&disk, 0, sizeof disk);
}

uint8_t *disk_bytes(const char *name, size_t *length) {
    file *file = file_find(name, false);
    check(file && file->now.exists, "there is no %s", name);
    *length = file->now.content.length;
    return file->now.content.bytes;
}

void disk_count(void) {
    history_clear();
    for (int i = 0; i < file_limit; i++) {
        state_copy(&files[i].before, &files[i].now);
        state_copy(&files[i].durable, &files[i].now);
    }
}

int disk_calls(void) { return disk.calls; }

int disk_reads(void) { return disk.reads; }

void disk_acknowledge(void) { call_do(CALL_ACKNOWLEDGE, NULL, 0, 0, NULL); }

void disk_ignore_syncs(bool ignores) { disk.ignores_syncs = ignores; }

void disk_fail(disk_fault fault, int at, bool is_sticky) {
    disk.fault = fault, disk.at = at, disk.is_sticky = is_sticky, disk.has_failed = false;
}

bool disk_has_failed(void) { return disk.has_failed; }

void disk_rewind(void) {
    history_clear();
    for (int i = 0; i < file_limit; i++) {
        state_copy(&files[i].now, &files[i].before);
        state_copy(&files[i].durable, &files[i].before);
    }
}

/// Makes durable what comes before a sync of a file.
static void file_settle(file *file, size_t end) {
    for (size_t i = 0; i < end; i++) {
        call *call = &history.calls[i];
        if (call->file != file || call->is_durable) continue;
        state_apply(&file->durable, call);
        call->is_durable = true;
    }
}

/// Does a write by sectors, each of which is there or not.
static void write_sectors(state *state, const call *call, size_t sector, uint64_t *random) {
    size_t end = call->offset + call->length;
    for (size_t from = call->offset; from < end;) {
        size_t to = from / sector * sector + sector;
        if (to > end) to = end;
        if (random_below(random, 2)) content_write(&state->content, from, call->bytes + (from - call->offset), to - from);
        from = to;
    }
}

static void call_lose(const call *call, disk_loss loss, size_t place, size_t moment, size_t count, uint64_t *random) {
    state *state = &call->file->now;
    size_t sector = loss == DISK_LOSS_SECTORS_4096 ? 4096 : 512;
    switch (loss) {
    case DISK_LOSS_NONE: state_apply(state, call); break;
    case DISK_LOSS_AFTER_MOMENT:
        if (place < moment) state_apply(state, call);
        if (place == moment && call->kind == CALL_WRITE) write_sectors(state, call, sector, random);
        break;
    case DISK_LOSS_SECTORS_512:
    case DISK_LOSS_SECTORS_4096:
        if (call->kind == CALL_WRITE) write_sectors(state, call, sector, random);
        else if (random_below(random, 2)) state_apply(state, call);
        break;
    case DISK_LOSS_DATA:
        if (call->kind != CALL_WRITE) state_apply(state, call);
        else if (call->offset + call->length > state->content.length) content_resize(&state->content, call->offset + call->length);
        break;
    case DISK_LOSS_EARLIER:
        if (place >= count / 2) state_apply(state, call);
        break;
    default: break;
    }
}

int disk_cut(int at, disk_loss loss, uint64_t seed) {
    disk.is_cut = true;
    for (; disk.reached < history.count; disk.reached++) {
        const call *call = &history.calls[disk.reached];
        if (call->number >= at) break;
        if (call->kind == CALL_ACKNOWLEDGE) disk.acknowledged++;
        if (call->kind == CALL_SYNC) file_settle(call->file, disk.reached);
    }
    // The call that is under way may be done, or in part, or not at all.
    size_t end = disk.reached < history.count ? disk.reached + 1 : disk.reached, count = 0;
    for (int i = 0; i < file_limit; i++) state_copy(&files[i].now, &files[i].durable);
    for (size_t i = 0; i < end; i++) count += history.calls[i].file && !history.calls[i].is_durable;
    uint64_t random = seed;
    size_t moment = count ? random_below(&random, count) : 0, place = 0;
    for (size_t i = 0; i < end; i++) {
        const call *call = &history.calls[i];
        if (call->file && !call->is_durable) call_lose(call, loss, place++, moment, count, &random);
    }
    // A file that isn't there has no content.
    for (int i = 0; i < file_limit; i++) {
        if (!files[i].now.exists) files[i].now.content.length = 0;
    }
    return disk.acknowledged;
}

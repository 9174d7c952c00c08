#include "tide_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tide_archive_limits.h"

enum { path_limit = 4096, block_size = 64 << 10 };

typedef struct unpacking {
    struct archive *archive;
    int descriptor, folder;
    /// The errno of a read of the archive that failed.
    int read_error;
    uint64_t bytes_out;
    tide_error *error;
    char block[block_size];
} unpacking;

// libarchive's own callbacks lose the errno: its reader of zip says of a read that failed that the archive is cut.

static la_ssize_t archive_fill(struct archive *archive, void *context, const void **buffer) {
    unpacking *it = context;
    ssize_t count;
    do count = read(it->descriptor, it->block, sizeof it->block);
    while (count < 0 && errno == EINTR);
    if (count < 0) {
        it->read_error = errno;
        archive_set_error(archive, errno, "cannot be read");
    }
    *buffer = it->block;
    return count;
}

static la_int64_t archive_seek(struct archive *archive, void *context, la_int64_t offset, int whence) {
    unpacking *it = context;
    off_t at = lseek(it->descriptor, offset, whence);
    if (at >= 0) return at;
    it->read_error = errno;
    archive_set_error(archive, errno, "cannot be read");
    return ARCHIVE_FATAL;
}

static tide_status refuse(unpacking *it, const char *path) {
    int number = archive_errno(it->archive);
    const char *reason = archive_error_string(it->archive);
    if (number == ENOMEM) return tide_error_set(it->error, TIDE_NO_MEMORY, 0, "out of memory");
    if (it->read_error) {
        errno = it->read_error;
        return tide_error_errno(it->error, "read", "the archive");
    }
    return tide_error_reject(
        it->error, TIDE_REJECT_MALFORMED, "the zip archive is damaged%s%.300s: %.200s", path ? " at " : "", path ? path : "",
        reason ? reason : "it ends too soon");
}

/// Opens the folder of a path's file, and makes it if needed; `*name` is the file's name. -1 with `errno`.
static int parent_open(int folder, char *path, char **name) {
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    char *part = path;
    for (char *slash; at >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
        *slash = 0;
        if (*part && strcmp(part, ".") != 0) {
            int next = -1;
            if (mkdirat(at, part, 0700) == 0 || errno == EEXIST) {
                next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            }
            int number = errno;
            close(at);
            errno = number;
            at = next;
        }
        *slash = '/';
    }
    *name = part;
    return at;
}

static bool leads_out(const char *path) {
    if (*path == '/') return true;
    for (const char *part = path; part; part = strchr(part, '/'), part = part ? part + 1 : NULL) {
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2])) return true;
    }
    return false;
}

static tide_status content_write(unpacking *it, int file, const char *path) {
    char block[block_size];
    for (;;) {
        la_ssize_t count = archive_read_data(it->archive, block, sizeof block);
        if (count == ARCHIVE_RETRY) continue;
        if (count < 0) return refuse(it, path);
        if (count == 0) return TIDE_OK;
        it->bytes_out += (uint64_t)count;
        if (tide_archive_expands_too_far((uint64_t)archive_filter_bytes(it->archive, -1), it->bytes_out)) {
            return tide_error_reject(
                it->error, TIDE_REJECT_TOO_LONG,
                "the zip archive expands to more than %d times its size; if it is as it should be, unpack it first",
                tide_expansion_limit);
        }
        for (la_ssize_t at = 0; at < count;) {
            ssize_t written = write(file, block + at, (size_t)(count - at));
            if (written < 0 && errno != EINTR) return tide_error_errno(it->error, "write", "the unpacked files");
            if (written > 0) at += written;
        }
    }
}

static tide_status entry_unpack(unpacking *it, struct archive_entry *entry, uint64_t *files) {
    const char *name = archive_entry_pathname_utf8(entry);
    if (!name) name = archive_entry_pathname(entry);
    if (!name || strlen(name) >= path_limit) {
        return tide_error_reject(it->error, TIDE_REJECT_MALFORMED, "the zip archive has a file without a name that can be read");
    }
    char path[path_limit];
    strcpy(path, name);
    if (archive_entry_filetype(entry) != AE_IFREG) return TIDE_OK;
    if (leads_out(path)) {
        return tide_error_reject(
            it->error, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "the zip archive names a file outside of itself: %.300s", path);
    }
    if (archive_entry_is_encrypted(entry)) {
        return tide_error_reject(
            it->error, TIDE_REJECT_MALFORMED, "the zip archive is encrypted (%.300s); unpack it first", path);
    }
    char *last;
    int parent = parent_open(it->folder, path, &last);
    int file = parent < 0 || !*last ? -1 : openat(parent, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int number = errno;
    if (parent >= 0) close(parent);
    if (file < 0) {
        if (number == ENOSPC || number == EIO || number == EMFILE || number == EROFS || number == EACCES) {
            errno = number;
            return tide_error_errno(it->error, "write", "the unpacked files");
        }
        return tide_error_reject(
            it->error, TIDE_REJECT_MALFORMED, "the zip archive's file %.300s cannot be unpacked: %s", path,
            number == EEXIST ? "it is there twice" : strerror(number));
    }
    tide_status status = content_write(it, file, path);
    if (!status && archive_entry_mtime_is_set(entry)) {
        struct timespec time = {.tv_sec = archive_entry_mtime(entry)};
        // If the time can't be set, the file keeps the time of the unpacking.
        (void)futimens(file, (struct timespec[]){time, time});
    }
    if (close(file) != 0 && !status) status = tide_error_errno(it->error, "write", "the unpacked files");
    if (!status) ++*files;
    return status;
}

static uint64_t little_endian(const uint8_t *bytes, int count) {
    uint64_t value = 0;
    while (count-- > 0) value = value << 8 | bytes[count];
    return value;
}

/// Returns how many entries the directory of a zip archive has from a place on: as many as follow each other, and at most one more than an archive
/// may have. 0 where no directory is. -1 with `errno`.
static int64_t entries_count(int descriptor, uint64_t at, uint8_t *block) {
    enum { header_size = 46 };
    int64_t count = 0;
    uint64_t first = at;
    ssize_t filled = 0;
    while (count <= tide_archive_entry_limit && at <= INT64_MAX - block_size) {
        if (at + header_size > first + (uint64_t)filled) {
            first = at;
            do filled = pread(descriptor, block, block_size, (off_t)first);
            while (filled < 0 && errno == EINTR);
            if (filled < 0) return -1;
            if (filled < header_size) break;
        }
        const uint8_t *header = block + (at - first);
        if (memcmp(header, "PK\1\2", 4) != 0) break;
        count++;
        at += header_size + little_endian(header + 28, 2) + little_endian(header + 30, 2) + little_endian(header + 32, 2);
    }
    return count;
}

/// Refuses a zip archive whose directory has too many entries. libarchive reads the whole directory before the first entry.
///
/// libarchive looks for the directory's end in the last 16 KiB. It expects the directory just before its end, or where the end says.
static tide_status directory_check(int descriptor, off_t size, tide_error *error) {
    enum { end_size = 22, locator_size = 20, end64_size = 56, searched = 16 << 10 };
    uint8_t block[block_size];
    off_t begin = size > searched ? size - searched : 0;
    ssize_t count;
    do count = pread(descriptor, block, searched, begin);
    while (count < 0 && errno == EINTR);
    int64_t entries = count < 0 ? -1 : 0;
    for (ssize_t at = count - end_size; at >= 0; at--) {
        if (memcmp(block + at, "PK\5\6", 4) != 0) continue;
        uint64_t end = (uint64_t)(begin + at);
        uint64_t length = little_endian(block + at + 12, 4), offset = little_endian(block + at + 16, 4);
        uint8_t end64[end64_size];
        if (at >= locator_size && memcmp(block + at - locator_size, "PK\6\7", 4) == 0) {
            uint64_t place = little_endian(block + at - locator_size + 8, 8);
            if (place <= end && pread(descriptor, end64, end64_size, (off_t)place) == end64_size && memcmp(end64, "PK\6\6", 4) == 0) {
                end = place;
                length = little_endian(end64 + 40, 8);
                offset = little_endian(end64 + 48, 8);
            }
        }
        if (length <= end) entries = entries_count(descriptor, end - length, block);
        if (entries == 0) entries = entries_count(descriptor, offset, block);
        break;
    }
    if (entries < 0) return tide_error_errno(error, "read", "the archive");
    if (entries <= tide_archive_entry_limit) return TIDE_OK;
    return tide_error_reject(
        error, TIDE_REJECT_TOO_LONG, "the zip archive has more than %d entries; unpack it first", tide_archive_entry_limit);
}

static tide_status entries_unpack(int descriptor, int folder, uint64_t *files, tide_error *error) {
    unpacking it = {.archive = archive_read_new(), .descriptor = descriptor, .folder = folder, .error = error};
    *files = 0;
    if (!it.archive) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    struct stat source;
    if (fstat(descriptor, &source) != 0) source.st_mode = 0;
    tide_status status = S_ISREG(source.st_mode) ? directory_check(descriptor, source.st_size, error) : TIDE_OK;
    if (status) {
        archive_read_free(it.archive);
        return status;
    }
    // Without a callback for seeking, libarchive reads the archive from its beginning to its end.
    if (archive_read_support_format_zip(it.archive) != ARCHIVE_OK || archive_read_set_callback_data(it.archive, &it) != ARCHIVE_OK
        || archive_read_set_read_callback(it.archive, archive_fill) != ARCHIVE_OK
        || (S_ISREG(source.st_mode) && archive_read_set_seek_callback(it.archive, archive_seek) != ARCHIVE_OK)
        || archive_read_open1(it.archive) != ARCHIVE_OK) {
        // libarchive gives no reason if it has no memory for its first filter.
        bool has_reason = archive_errno(it.archive);
        status = has_reason ? refuse(&it, NULL) : tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    }
    for (uint32_t count = 0; !status; count++) {
        struct archive_entry *entry;
        int result = archive_read_next_header(it.archive, &entry);
        if (result == ARCHIVE_EOF) break;
        if (result == ARCHIVE_RETRY) continue;
        if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
            status = refuse(&it, NULL);
        } else if (count == tide_archive_entry_limit) {
            status = tide_error_reject(
                error, TIDE_REJECT_TOO_LONG, "the zip archive has more than %d entries; unpack it first", tide_archive_entry_limit);
        } else {
            status = entry_unpack(&it, entry, files);
        }
    }
    archive_read_free(it.archive);
    return status;
}

tide_status tide_archive_unpack(int descriptor, int folder, uint64_t *files, tide_error *error) {
    // libarchive decodes names by the thread's locale. In a program that sets none, that is C, which has ASCII alone.
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!utf8) utf8 = newlocale(LC_CTYPE_MASK, "en_US.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    tide_status status = entries_unpack(descriptor, folder, files, error);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    return status;
}

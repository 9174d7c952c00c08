// Goal: what other programs do to files and assets at the worst moment ends in a refusal, or in a store as if they had come before or after; and
// only what may not be durable is made durable.
// Method: another program's work is done just before a certain system call.

#include <stdio.h>

#if defined(__linux__) && __SIZEOF_LONG__ == 8

#include <time.h>

#include "system_faults.h"
#include "tide_copy.h"

enum { small = 70001, large = (4 << 20) + 5000 };

static uint8_t *bytes, *others;
static size_t length;
static char path[600], blob_id[TIDE_BLOB_ID_SIZE];

/// Runs `hook` just before the call of that number.
static void hook_begin(fault_call call, long at, void (*hook)(void)) {
    faults.hook = hook;
    faults_begin(call, at, fault_hook, 0);
}

static void hook_end(void) {
    check(faults_end(), "%s %ld was not called", fault_names[faults.call], faults.at);
    faults.hook = NULL;
}

static void id_set(void) {
    blobs dry = blobs_open(true);
    strcpy(blob_id, blob_of(dry, bytes, length).id);
    blobs_close(dry);
}

static void bytes_set(size_t new_length) {
    length = new_length;
    bytes = bytes_make(length, 1), others = bytes_make(length, 2);
    test_begin();
    id_set();
}

static void bytes_free(void) {
    test_end();
    free(bytes), free(others);
}

// Another process

static void content_put(const uint8_t *content) {
    mkdir(place("store/assets"), 0700);
    mkdir(place("store/assets/%.2s", blob_id), 0700);
    file_write(blob_place("store/assets", blob_id), content, length);
}

static void same_put(void) { content_put(bytes); }
static void other_put(void) { content_put(others); }
static void folder_put(void) { folder_make(place("store/assets/%.2s", blob_id)); }

/// Another process ingests the same content, or forges one, just before the blob gets its name.
static void test_names_taken(bool is_flag_lacking) {
    for (int is_other = 0; is_other < 2; is_other++) {
        bytes_set(is_other ? small : large);
        blobs it = blobs_open(false);
        hook_begin(call_renameat2, 1, is_other ? other_put : same_put);
        if (is_flag_lacking) faults.kind = fault_error, faults.number = ENOSYS;
        tide_blob blob = blob_of(it, bytes, length);
        hook_end();
        check(blob.is_new == is_other && strncmp(blob.id, blob_id, strlen(blob_id)) == 0, "%s", blob.id);
        check(strcmp(blob.id + strlen(blob_id), is_other ? "-1" : "") == 0, "%s", blob.id);
        check(file_is(blob_place("store/assets", blob.id), bytes, length), "%s", blob.id);
        check(file_is(blob_place("store/assets", blob_id), is_other ? others : bytes, length), "%s", blob_id);
        check(files_count(place("store/staging")) == 0, "staged files are left");
        blobs_close(it);
        bytes_free();
    }
}

static void file_forge(void) {
    struct stat status;
    check(stat(path, &status) == 0, "%s", path);
    file_write(path, others, length);
}

static void file_shorten(void) { check(truncate(path, (off_t)length - 1) == 0, "%s: %s", path, strerror(errno)); }

static void folder_make_assets(void) { folder_make(place("store/assets")); }
static void folder_make_staging(void) { folder_make(place("store/staging")); }

/// A folder that another process makes first is as good.
static void test_folders_taken(void) {
    bytes_set(small);
    for (int i = 0; i < 2; i++) {
        hook_begin(call_mkdirat, i + 1, i ? folder_make_staging : folder_make_assets);
        blobs it = blobs_open(false);
        hook_end();
        blobs_close(it);
        if (i == 0) check(rmdir(place("store/staging")) == 0, "%s", strerror(errno));
    }
    blobs it = blobs_open(false);
    hook_begin(call_mkdirat, 1, folder_put);
    check(blob_of(it, bytes, length).is_new, "a content");
    hook_end();
    blobs_close(it);
    bytes_free();
}

/// A blob that changes while it is compared is another content; a file that does so in a dry run is refused.
static void test_comparing(void) {
    for (int dry_run = 0; dry_run < 2; dry_run++) {
        bytes_set(large);
        // The byte that is missing is as the one before it.
        memset(bytes, 'x', length);
        id_set();
        content_put(bytes);
        strcpy(path, blob_place("store/assets", blob_id));
        blobs it = blobs_open(dry_run);
        hook_begin(call_pread, 5, file_shorten);
        tide_blob blob = blob_of(it, bytes, length);
        hook_end();
        check(blob.is_new && strcmp(blob.id + strlen(blob_id), "-1") == 0, "%s", blob.id);
        blobs_close(it);
        bytes_free();
    }
    bytes_set(large);
    content_put(bytes);
    strcpy(path, place("files/a"));
    file_write(path, bytes, length);
    blobs it = blobs_open(true);
    faults_count();
    check(!blob_of_file(it, "a").is_new, "a content that is there");
    faults_end();
    // The last read but one is of the blob's end, and the last of the file's.
    hook_begin(call_pread, faults.counts[call_pread], file_shorten);
    tide_blob blob;
    tide_error error = {0};
    tide_status status = tide_intake_file(it.worker, "a", &blob, NULL, NULL, &error);
    hook_end();
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "became shorter while it was compared with the asset");
    blobs_close(it);
    bytes_free();
}

// Files that are exchanged

static void file_to_fifo(void) { check(unlink(path) == 0 && mkfifo(path, 0600) == 0, "%s: %s", path, strerror(errno)); }
static void file_to_link(void) { check(unlink(path) == 0 && symlink("/etc/passwd", path) == 0, "%s: %s", path, strerror(errno)); }
static void file_to_nothing(void) { check(unlink(path) == 0, "%s: %s", path, strerror(errno)); }

static void file_to_folder(void) {
    check(unlink(path) == 0, "%s: %s", path, strerror(errno));
    folder_make(path);
}

static void folder_to_link(void) {
    check(rename(place("files/folder"), place("files/other")) == 0 && symlink("other", place("files/folder")) == 0, "%s", strerror(errno));
}

static void file_grow(void) { check(truncate(path, (off_t)length + 1) == 0, "%s: %s", path, strerror(errno)); }

/// A file that is exchanged between the look at it and its opening is not followed, not waited for, and refused.
static void test_exchanged_files(void) {
    static const struct {
        void (*hook)(void);
        fault_call call;
        long at;
        tide_reject reject;
        const char *message;
    } cases[] = {
        {file_to_fifo, call_openat, 2, TIDE_REJECT_ASSET_NOT_A_FILE, "'folder/a' is not a file"},
        {file_to_folder, call_openat, 2, TIDE_REJECT_ASSET_NOT_A_FILE, "'folder/a' is not a file"},
        {file_to_link, call_openat, 2, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'folder/a' goes through a symbolic link"},
        {file_to_nothing, call_openat, 2, TIDE_REJECT_ASSET_MISSING, "there is no file 'folder/a' in the folder of the assets"},
        {folder_to_link, call_openat, 1, TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'folder/a' goes through a symbolic link"},
        {file_shorten, call_pread, 1, TIDE_REJECT_ASSET_CHANGED, "'folder/a' changed while it was read"},
        {file_forge, call_pread, 1, TIDE_REJECT_ASSET_CHANGED, "'folder/a' changed while it was read"},
        {file_grow, call_pread, 1, TIDE_REJECT_ASSET_CHANGED, "'folder/a' changed while it was read"},
        // The last look at the file.
        {file_shorten, call_fstat, 2, TIDE_REJECT_ASSET_CHANGED, "'folder/a' changed while it was read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int is_large = 0; is_large < 2; is_large++) {
            bytes_set(is_large ? large : small);
            folder_make(place("files/folder"));
            strcpy(path, place("files/folder/a"));
            file_write(path, bytes, length);
            blobs it = blobs_open(false);
            tide_blob blob;
            tide_error error = {0};
            hook_begin(cases[i].call, cases[i].at, cases[i].hook);
            tide_status status = tide_intake_file(it.worker, "folder/a", &blob, NULL, NULL, &error);
            hook_end();
            check_refusal(status, error, cases[i].reject, cases[i].message);
            check(files_count(place("store")) == 0, "%d files", files_count(place("store")));
            blobs_close(it);
            bytes_free();
        }
    }
}

/// An asset that is damaged while it is verified, or copied, is not taken for a whole one.
static void test_damage_while_reading(void) {
    bytes_set(large);
    content_put(bytes);
    strcpy(path, blob_place("store/assets", blob_id));
    tide_error error = {0};
    hook_begin(call_pread, 1, file_shorten);
    tide_status status = tide_blob_verify(place("store/assets"), blob_id, &error);
    hook_end();
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "is not what its name says");
    content_put(bytes);
    tide_copier *copier;
    check(tide_copier_create(place("store/assets"), place("copies"), false, &copier, &error) == TIDE_OK, "%s", error.message);
    hook_begin(call_pread, 1, file_shorten);
    status = tide_copier_copy(copier, blob_id, &error);
    hook_end();
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "changed while it was read");
    // A clone is read as well.
    content_put(others);
    faults.clones = true;
    status = tide_copier_copy(copier, blob_id, &error);
    faults.clones = false;
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "its content is not what its name says");
    check(files_count(place("copies")) == 0, "%d files", files_count(place("copies")));
    tide_copier_destroy(copier);
    bytes_free();
}

/// Two folders can't be exchanged where the file system, or the system, has no such call.
static void test_exchange_lacking(void) {
    static const int numbers[] = {EINVAL, ENOSYS, ENOTSUP, EXDEV};
    bytes_set(small);
    for (int i = 0; i < 4; i++) {
        tide_error error = {0};
        faults_begin(call_renameat2, 1, fault_error, numbers[i]);
        tide_status status = tide_folders_exchange(place("files"), place("store"), &error);
        check(faults_end() && status == (i < 3 ? TIDE_MISUSE : TIDE_IO_ERROR) && error.system == numbers[i], "%d: %s", status, error.message);
        check(strstr(error.message, i < 3 ? "the file system can't exchange" : strerror(EXDEV)), "%s", error.message);
    }
    bytes_free();
}

// Durability and times

static long syncs_of(tide_blob_store *store, tide_status expected) {
    tide_error error = {0};
    check(tide_blob_store_sync(store, &error) == expected, "%s", error.message);
    return faults.counts[call_syncfs];
}

/// The file system is flushed once for all blobs that may not be durable, again after a failure, and not for those that are durable.
static void test_durability(void) {
    bytes_set(small);
    blobs it = blobs_open(false);
    faults_begin(call_syncfs, 1, fault_error, EDQUOT);
    check(syncs_of(it.store, TIDE_OK) == 0, "nothing to make durable");
    blob_of(it, bytes, length), blob_of(it, others, length);
    check(syncs_of(it.store, TIDE_DISK_FULL) == 1, "%ld", faults.counts[call_syncfs]);
    check(syncs_of(it.store, TIDE_OK) == 2 && syncs_of(it.store, TIDE_OK) == 2, "%ld", faults.counts[call_syncfs]);
    blobs_close(it);
    // Another process may not have made durable yet what it has put there just now; after two minutes it has.
    for (int is_old = 0; is_old < 2; is_old++) {
        for (int dry_run = 0; dry_run < 2; dry_run++) {
            it = blobs_open(dry_run);
            faults_count();
            faults.changed = is_old ? time(NULL) - 130 : 0;
            check(!blob_of(it, bytes, length).is_new, "a content that is there");
            check(syncs_of(it.store, TIDE_OK) == (!is_old && !dry_run), "%ld", faults.counts[call_syncfs]);
            faults_end();
            faults.changed = 0;
            blobs_close(it);
        }
    }
    bytes_free();
}

/// The time of a file has microseconds, and is limited to what a timestamp has.
static void test_times(void) {
    static const struct {
        time_t seconds;
        int64_t expected;
    } cases[] = {
        {1700000000, 1700000000999999},
        {-1700000000, -1699999999000001},
        {-62167219200, -62167219199000001},
        {-62167219201, -62167219200000000},
        {253402300799, 253402300799999999},
        {253402300800, 253402300799000000},
        {INT64_MAX / 4, 253402300799000000},
        {INT64_MIN / 4, -62167219200000000},
    };
    bytes_set(small);
    file_write(place("files/a"), bytes, length);
    blobs it = blobs_open(false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        faults.modified = cases[i].seconds;
        tide_blob blob = blob_of_file(it, "a");
        faults.modified = 0;
        check(blob.modified == cases[i].expected, "%lld: %lld", (long long)cases[i].seconds, (long long)blob.modified);
    }
    blobs_close(it);
    bytes_free();
}

int main(void) {
    test_names_taken(false);
    test_names_taken(true);
    test_folders_taken();
    test_comparing();
    test_exchanged_files();
    test_damage_while_reading();
    test_exchange_lacking();
    test_durability();
    test_times();
    puts("blob_races_test: passed");
    return 0;
}

#else

int main(void) {
    puts("blob_races_test: needs Linux");
    return 0;
}

#endif

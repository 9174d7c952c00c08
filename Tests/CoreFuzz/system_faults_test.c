// Goal: whichever system call fails while assets are ingested, verified or copied, the caller is told the system's reason, no part of an asset is
// left in its place, no staged file and no descriptor remains, and the next run works. A call that is interrupted, or that does half of its
// work, changes nothing.
// Method: each use runs once for each system call that it makes, which fails in each way that it can; the folders are examined afterwards.

#include <stdio.h>

#if defined(__linux__) && __SIZEOF_LONG__ == 8

#include "system_faults.h"
#include "tide_copy.h"
#include "tide_text.h"

enum { small = 70001, large = (4 << 20) + 5000 };

/// How a use has ended, and what it has yielded, whichever contents were there before.
typedef struct outcome {
    tide_status status;
    tide_error error;
    tide_text text;
} outcome;

static uint8_t *small_bytes, *large_bytes, *photo;
static size_t photo_length;

static bool is_right(const outcome *out) { return out->status == TIDE_OK; }

static void blob_add(outcome *out, const tide_blob *blob) {
    if (is_right(out)) tide_text_format(&out->text, "%s %llu %d\n", blob->id, (unsigned long long)blob->size, blob->image.media);
}

// Uses

/// Bytes and files of both kinds, and the EXIF data of a photo that is too large for the buffer.
static void ingest(outcome *out, bool dry_run, const tide_conversion *conversion) {
    tide_blob_store *store = NULL;
    tide_intake *worker = NULL;
    tide_blob blob;
    out->status = tide_blob_store_create(place("store"), dry_run, &store, &out->error);
    if (is_right(out)) out->status = tide_intake_create(store, place("files"), &worker, &out->error);
    if (is_right(out) && conversion) tide_intake_set_conversion(worker, *conversion);
    if (is_right(out)) out->status = tide_intake_bytes(worker, small_bytes, small, "bytes", &blob, &out->error);
    blob_add(out, &blob);
    if (is_right(out)) out->status = tide_intake_bytes(worker, large_bytes, large, "bytes", &blob, &out->error);
    blob_add(out, &blob);
    static const char *const names[] = {"folder/small", "photo.jpg"};
    for (int i = 0; i < 2 && is_right(out); i++) {
        uint8_t room[4096];
        tide_exif_block exif = {.bytes = room, .capacity = sizeof room};
        out->status = tide_intake_file(worker, names[i], &blob, NULL, i == 1 ? &exif : NULL, &out->error);
        blob_add(out, &blob);
        if (is_right(out)) tide_text_base64(&out->text, room, exif.length);
    }
    if (is_right(out)) out->status = tide_blob_store_sync(store, &out->error);
    tide_intake_destroy(worker);
    tide_blob_store_destroy(store);
}

static void ingest_use(outcome *out) { ingest(out, false, NULL); }
static void dry_use(outcome *out) { ingest(out, true, NULL); }

static tide_status convert(const void *context, tide_bytes bytes, const tide_image *image, tide_converted *converted, tide_error *error) {
    (void)context, (void)bytes, (void)image, (void)error;
    converted->bytes = malloc(sizeof "GIF89a\3\0\2\0\0\0\0;" - 1);
    converted->length = sizeof "GIF89a\3\0\2\0\0\0\0;" - 1;
    memcpy(converted->bytes, "GIF89a\3\0\2\0\0\0\0;", converted->length);
    return TIDE_OK;
}

static void conversion_use(outcome *out) { ingest(out, false, &(tide_conversion){.convert = convert}); }

static const char *id_of(const uint8_t *bytes, size_t length) {
    static char ids[2][TIDE_BLOB_ID_SIZE];
    char *id = ids[length == large];
    blobs dry = blobs_open(true);
    strcpy(id, blob_of(dry, bytes, length).id);
    blobs_close(dry);
    return id;
}

static char small_id[TIDE_BLOB_ID_SIZE], large_id[TIDE_BLOB_ID_SIZE];

static void verify_use(outcome *out) {
    out->status = tide_blob_verify(place("store/assets"), small_id, &out->error);
    if (is_right(out)) out->status = tide_blob_verify(place("store/assets"), large_id, &out->error);
}

/// Copies, finds the copies, and reads them again.
static void copy(outcome *out, bool may_link) {
    tide_copier *copier = NULL;
    const char *ids[] = {small_id, large_id};
    out->status = tide_copier_create(place("store/assets"), place("copies"), may_link, &copier, &out->error);
    for (int i = 0; i < 4 && is_right(out); i++) out->status = tide_copier_copy(copier, ids[i % 2], &out->error);
    if (is_right(out)) out->status = tide_copier_sync(copier, &out->error);
    for (int i = 0; i < 2 && is_right(out); i++) out->status = tide_copier_verify(copier, ids[i], &out->error);
    tide_copier_destroy(copier);
}

static void copy_use(outcome *out) { copy(out, false); }
static void link_use(outcome *out) { copy(out, true); }

static void clone_use(outcome *out) {
    faults.clones = true;
    copy(out, false);
    faults.clones = false;
}

/// Exchanges two folders twice.
static void exchange_use(outcome *out) {
    for (int i = 0; i < 2; i++) {
        if (is_right(out)) out->status = tide_folders_exchange(place("files"), place("store"), &out->error);
        if (out->status && i == 1) check(tide_folders_exchange(place("files"), place("store"), NULL) == TIDE_OK, "%s", strerror(errno));
    }
    tide_file_forget(place("files/photo.jpg"));
}

// Runs

/// The contents that are there before a use.
typedef enum before { nothing, contents, copies } before;

typedef struct use {
    const char *name;
    void (*run)(outcome *out);
    before before;
} use;

static void folders_make(before before) {
    test_begin();
    folder_make(place("files/folder"));
    file_write(place("files/folder/small"), small_bytes, small - 1);
    file_write(place("files/photo.jpg"), photo, photo_length);
    if (before == nothing) return;
    outcome out = {0};
    ingest_use(&out);
    if (before == copies && is_right(&out)) copy_use(&out);
    check(is_right(&out), "%s", out.error.message);
    tide_text_free(&out.text);
}

static int descriptors_count(void) {
    int count = 0;
    for (int i = 0; i < 200; i++) count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/// Checks that each file in a folder of assets is whole.
static void assets_check(const char *assets, const char *shown) {
    DIR *folder = opendir(assets);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        char inner[700];
        snprintf(inner, sizeof inner, "%s/%s", assets, entry->d_name);
        DIR *blobs = opendir(inner);
        for (struct dirent *blob; blobs && (blob = readdir(blobs));) {
            tide_error error = {0};
            if (blob->d_name[0] != '.') check(tide_blob_verify(assets, blob->d_name, &error) == TIDE_OK, "%s: %s", shown, error.message);
        }
        if (blobs) closedir(blobs);
    }
    if (folder) closedir(folder);
}

/// Removes the `-1` of the second content of a digest.
static void discriminators_remove(tide_text *text) {
    for (char *at = text->bytes; at && (at = strstr(at, "-1 "));) memmove(at, at + 2, strlen(at + 2) + 1);
}

/// Runs a use with one fault, and again without. Returns false when the use makes no such call.
static bool fault_run(const use *use, const char *expected, fault_call call, long at, fault_kind kind, int number) {
    char shown[200];
    snprintf(shown, sizeof shown, "%s: %s %ld, %s %s", use->name, fault_names[call], at,
             (const char *[]){"fails:", "is interrupted", "does half", "finds the end"}[kind], kind == fault_error ? strerror(number) : "");
    folders_make(use->before);
    int descriptors = descriptors_count();
    outcome out = {0};
    faults_begin(call, at, kind, number);
    use->run(&out);
    bool has_hit = faults_end();
    check(descriptors_count() == descriptors, "%s: %d descriptors, %d before", shown, descriptors_count(), descriptors);
    if (is_right(&out)) {
        // A blob that ends early is another content than the one that was to be ingested.
        if (kind == fault_end) discriminators_remove(&out.text);
        check(strcmp(out.text.bytes ? out.text.bytes : "", expected) == 0, "%s: it yields %s, not %s", shown, out.text.bytes, expected);
    } else {
        check(has_hit && out.error.status == out.status, "%s: %d, %s", shown, out.error.status, out.error.message);
        // Two folders can't be exchanged where the file system has no such call.
        bool is_lacking = out.status == TIDE_MISUSE && call == call_renameat2 && number == EINVAL;
        bool is_memory = out.status == TIDE_NO_MEMORY && call == call_memalign;
        if (kind == fault_error) check(is_lacking || is_memory || strstr(out.error.message, strerror(number)), "%s: %s", shown, out.error.message);
        check(kind == fault_error || kind == fault_end, "%s: %s", shown, out.error.message);
        if (kind == fault_end) check(out.status == TIDE_REJECTED, "%s: %d, %s", shown, out.status, out.error.message);
        // What refuses an asset is not what refuses the disk.
        if (call == call_write || call == call_syncfs) {
            check(out.status == (number == ENOSPC ? TIDE_DISK_FULL : TIDE_IO_ERROR), "%s: %d, %s", shown, out.status, out.error.message);
            check(out.error.system == number, "%s: %d", shown, out.error.system);
        }
        check(call != call_close || strstr(out.error.message, "write"), "%s: %s", shown, out.error.message);
    }
    if (call == call_write && kind == fault_error && has_hit) check(!is_right(&out), "%s: nobody was told", shown);
    if (call == call_syncfs && has_hit) check(!is_right(&out), "%s: nobody was told", shown);
    if (call != call_unlinkat) check(files_count(place("store/staging")) == 0, "%s: staged files are left", shown);
    assets_check(place("store/assets"), shown);
    assets_check(place("copies"), shown);
    outcome again = {0};
    use->run(&again);
    check(is_right(&again) && strcmp(again.text.bytes ? again.text.bytes : "", expected) == 0, "%s: then %s", shown, again.error.message);
    tide_text_free(&out.text);
    tide_text_free(&again.text);
    test_end();
    return has_hit;
}

static void test_use(const use *use) {
    folders_make(use->before);
    outcome out = {0};
    faults_count();
    use->run(&out);
    faults_end();
    long counts[call_count];
    memcpy(counts, faults.counts, sizeof counts);
    check(is_right(&out), "%s: %s", use->name, out.error.message);
    test_end();
    const char *expected = out.text.bytes ? out.text.bytes : "";
    long runs = 0;
    for (fault_call call = 0; call < call_count; call++) {
        for (long at = 1; at <= counts[call]; at++) {
            // Of many calls in loops, each eleventh is enough.
            if (at > 12 && at % 11 != 0 && at < counts[call] - 2) continue;
            bool has_hit = fault_run(use, expected, call, at, fault_error, EIO);
            runs++;
            // Of what a file system may lack, or a full disk refuses.
            bool is_lacking = call == call_openat || call == call_renameat2, adds = call == call_write || call == call_mkdirat;
            if (is_lacking || adds) has_hit &= fault_run(use, expected, call, at, fault_error, adds ? ENOSPC : EINVAL), runs++;
            if (call == call_pread || call == call_write) {
                has_hit &= fault_run(use, expected, call, at, fault_interruption, 0) && fault_run(use, expected, call, at, fault_half, 0);
                runs += 2;
            }
            if (call == call_pread) has_hit &= fault_run(use, expected, call, at, fault_end, 0), runs++;
            check(has_hit, "%s makes no %s %ld when it runs again", use->name, fault_names[call], at);
        }
    }
    printf("%s: %ld faults\n", use->name, runs);
    tide_text_free(&out.text);
}

int main(int count, char **arguments) {
    // Hundreds of runs write some 20 MB each.
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    small_bytes = bytes_make(small, 1), large_bytes = bytes_make(large, 2);
    // Bytes may follow a JPEG's end.
    photo_length = large + 77;
    photo = calloc(1, photo_length);
    FILE *file = fopen("corpus/image/exif.jpg", "rb");
    check(file && fread(photo, 1, 4096, file) > 100, "corpus/image/exif.jpg");
    fclose(file);
    test_begin();
    strcpy(small_id, id_of(small_bytes, small)), strcpy(large_id, id_of(large_bytes, large));
    test_end();
    static const use uses[] = {
        {"ingest", ingest_use, nothing},      {"ingest again", ingest_use, contents}, {"look", dry_use, nothing},
        {"look again", dry_use, contents},    {"convert", conversion_use, nothing},   {"verify", verify_use, contents},
        {"copy", copy_use, contents},         {"copy again", copy_use, copies},       {"link", link_use, contents},
        {"link again", link_use, copies},     {"clone", clone_use, contents},         {"exchange", exchange_use, contents},
    };
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        if (count < 2 || !strcmp(arguments[1], uses[i].name)) test_use(&uses[i]);
    }
    free(small_bytes), free(large_bytes), free(photo);
    puts("system_faults_test: passed");
    return 0;
}

#else

int main(void) {
    puts("system_faults_test: needs Linux");
    return 0;
}

#endif

// Goal: each content is in the store once, under the identifier that its bytes have, and verified against it; a dry run writes nothing; different
// contents with one digest are kept apart.
// Method: contents of both kinds, those held in memory and those streamed, as bytes and as files; the store's own files are compared
// with what went in.

#include "blob_fixture.h"

enum { large = (5 << 20) + 4321 };

/// An identifier is what XXH3-128 yields in its canonical order, as xxhsum prints it, and the size.
static void test_identifiers(void) {
    test_begin();
    blobs it = blobs_open(false);
    tide_blob blob = blob_of(it, "hello", 5);
    check(strcmp(blob.id, "b5e9c1ad071b3e7fc779cfaa5e523818-5") == 0, "%s", blob.id);
    static const struct {
        const char *id;
        bool is_valid, is_of_sha256;
    } cases[] = {
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5", true, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5-1", true, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-18446744073709551615-63", true, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5-256", true, true},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5-2567", true, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-256", true, false},
        {"B5e9c1ad071b3e7fc779cfaa5e523818-5", false, false},
        {"g5e9c1ad071b3e7fc779cfaa5e523818-5", false, false},
        {"/5e9c1ad071b3e7fc779cfaa5e523818-5", false, false},
        {":5e9c1ad071b3e7fc779cfaa5e523818-5", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e52381-55", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818--5", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5-", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5-1-1", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5/1", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-5a", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e52381855", false, false},
        {"b5e9c1ad071b3e7fc779cfaa5e523818-1111111111111111111111111111111", false, false},
        {"..", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(tide_blob_id_is_valid(cases[i].id, strlen(cases[i].id)) == cases[i].is_valid, "%s", cases[i].id);
        check(tide_blob_id_is_of_sha256(cases[i].id) == cases[i].is_of_sha256, "%s", cases[i].id);
    }
    check(strlen(cases[19].id) == TIDE_BLOB_ID_SIZE, "the shortest identifier that is too long");
    blobs_close(it);
    test_end();
}

/// A content is stored once, whichever way it comes, and nothing else is left in the container.
static void test_once(size_t length) {
    test_begin();
    uint8_t *bytes = bytes_make(length, length);
    file_write(place("files/a.bin"), bytes, length);
    struct timespec time = {.tv_sec = 1700000000, .tv_nsec = 123456789};
    check(utimensat(AT_FDCWD, place("files/a.bin"), (struct timespec[]){time, time}, 0) == 0, "%s", strerror(errno));
    blobs it = blobs_open(false);

    tide_blob file = blob_of_file(it, "a.bin"), other = blob_of(it, bytes, length), again = blob_of_file(it, "./a.bin");
    check(file.is_new && !other.is_new && !again.is_new, "%d %d %d", file.is_new, other.is_new, again.is_new);
    check(strcmp(file.id, other.id) == 0 && strcmp(file.id, again.id) == 0, "%s %s %s", file.id, other.id, again.id);
    check(file.size == length && other.size == length && file.source_size == length, "%llu", (unsigned long long)file.size);
    check(strcmp(file.source_id, file.id) == 0 && file.modified == 1700000000123456, "%lld", (long long)file.modified);
    check(!file.is_converted && !file.is_preview && file.image.media == TIDE_MEDIA_UNKNOWN, "%d", file.image.media);
    check(file_is(blob_place("store/assets", file.id), bytes, length), "%s", file.id);
    check(files_count(place("store")) == 1, "%d files", files_count(place("store")));

    tide_error error = {0};
    check(tide_blob_store_sync(it.store, &error) == TIDE_OK && tide_blob_store_sync(it.store, &error) == TIDE_OK, "%s", error.message);
    check(tide_blob_verify(place("store/assets"), file.id, &error) == TIDE_OK, "%s", error.message);
    blobs_close(it);
    // Another store of the same folder, as another process has it.
    it = blobs_open(false);
    check(!blob_of_file(it, "a.bin").is_new, "a content that was there before");
    // A content that differs in its last byte is another one.
    bytes[length - 1] ^= 1;
    tide_blob changed = blob_of(it, bytes, length);
    check(changed.is_new && strcmp(changed.id, file.id) != 0, "%s", changed.id);
    blobs_close(it);
    free(bytes);
    test_end();
}

static void test_dry_run(size_t length) {
    test_begin();
    uint8_t *bytes = bytes_make(length, length), *others = bytes_make(length, 99);
    file_write(place("files/a.bin"), bytes, length);
    // A container that is not there, one without assets, and one with another asset.
    for (int i = 0; i < 3; i++) {
        if (i == 0) check(rmdir(place("store")) == 0, "%s", strerror(errno));
        if (i == 1) folder_make(place("store"));
        if (i == 2) {
            blobs real = blobs_open(false);
            blob_of(real, others, length);
            blobs_close(real);
        }
        int before = files_count(place("store"));
        blobs it = blobs_open(true);
        tide_blob file = blob_of_file(it, "a.bin"), again = blob_of(it, bytes, length), other = blob_of(it, others, length);
        check(file.is_new && !again.is_new && other.is_new == (i < 2), "%d: %d %d %d", i, file.is_new, again.is_new, other.is_new);
        check(strcmp(file.id, again.id) == 0 && strcmp(file.id, other.id) != 0, "%s %s %s", file.id, again.id, other.id);
        check(tide_blob_store_sync(it.store, NULL) == TIDE_OK, "nothing to make durable");
        blobs_close(it);
        check(files_count(place("store")) == before, "%d files, %d before", files_count(place("store")), before);
        check(i > 0 || access(place("store"), F_OK) != 0, "the dry run has made a container");
        check(i != 1 || access(place("store/assets"), F_OK) != 0, "the dry run has made a folder");
    }
    // The identifier is that of a real run.
    blobs real = blobs_open(false), dry = blobs_open(true);
    tide_blob there = blob_of(real, bytes, length), found = blob_of_file(dry, "a.bin");
    check(strcmp(there.id, found.id) == 0 && !found.is_new, "%s %s", there.id, found.id);
    blobs_close(dry);
    blobs_close(real);
    free(bytes);
    free(others);
    test_end();
}

/// Contents of one digest are forged by files that have the name of a content, and its size.
static void test_collisions(size_t length, bool dry_run) {
    test_begin();
    uint8_t *bytes = bytes_make(length, length), *others = bytes_make(length, 5);
    blobs real = blobs_open(false);
    tide_blob blob = blob_of(real, bytes, length);
    blobs_close(real);
    char id[TIDE_BLOB_ID_SIZE];
    strcpy(id, blob.id);
    file_write(blob_place("store/assets", id), others, length);

    blobs it = blobs_open(dry_run);
    for (int i = 1; i < 64; i++) {
        blob = blob_of(it, bytes, length);
        char expected[TIDE_BLOB_ID_SIZE + 8];
        snprintf(expected, sizeof expected, "%s-%d", id, i);
        check(blob.is_new && strcmp(blob.id, expected) == 0, "%s, not %s", blob.id, expected);
        blob = blob_of(it, bytes, length);
        check(!blob.is_new && strcmp(blob.id, expected) == 0, "%s, not %s", blob.id, expected);
        check((access(blob_place("store/assets", expected), F_OK) == 0) == !dry_run, "%s", expected);
        // The store itself verifies such a content by its digest.
        check(dry_run || tide_blob_verify(place("store/assets"), expected, NULL) == TIDE_OK, "%s", expected);
        // A file of another size is another content, too.
        file_write(blob_place("store/assets", expected), others, i % 2 ? length : length - 1);
    }
    tide_error error = {0};
    tide_status status = tide_intake_bytes(it.worker, bytes, length, "bytes", &blob, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_COLLISIONS, "there are 64 different contents with this digest already");
    check(files_count(place("store")) == 64, "%d files", files_count(place("store")));
    blobs_close(it);
    free(bytes);
    free(others);
    test_end();
}

/// A pipe or a link at the place of a blob is never read, nor replaced.
static void test_other_things_in_place(void) {
    test_begin();
    blobs it = blobs_open(false);
    tide_blob blob = blob_of(it, "hello", 5);
    char id[TIDE_BLOB_ID_SIZE];
    strcpy(id, blob.id);
    const char *path = blob_place("store/assets", id);
    check(unlink(path) == 0 && mkfifo(path, 0600) == 0, "%s", strerror(errno));
    blob = blob_of(it, "hello", 5);
    check(blob.is_new && strcmp(blob.id + strlen(id), "-1") == 0, "%s", blob.id);
    tide_error error = {0};
    tide_status status = tide_blob_verify(place("store/assets"), id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_NOT_A_FILE, "is not a file");

    path = blob_place("store/assets", id);
    check(unlink(path) == 0 && symlink(place("files/a.bin"), path) == 0, "%s", strerror(errno));
    file_write(place("files/a.bin"), "hello", 5);
    check(tide_intake_bytes(it.worker, "hello", 5, "bytes", &blob, &error) == TIDE_IO_ERROR, "%s", error.message);
    check(strstr(error.message, "cannot open the asset") && strstr(error.message, strerror(ELOOP)), "%s", error.message);
    status = tide_blob_verify(place("store/assets"), id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_UNREADABLE, strerror(ELOOP));
    blobs_close(it);

    // Nor is a folder of blobs that is a link.
    folder_remove(place("store/assets/%.2s", id));
    folder_make(place("elsewhere"));
    check(symlink(place("elsewhere"), place("store/assets/%.2s", id)) == 0, "%s", strerror(errno));
    for (int dry_run = 0; dry_run < 2; dry_run++) {
        it = blobs_open(dry_run);
        check(tide_intake_bytes(it.worker, "hello", 5, "bytes", &blob, &error) == TIDE_IO_ERROR, "%s", error.message);
        check(strstr(error.message, "cannot open the folder of the asset"), "%s", error.message);
        blobs_close(it);
    }
    check(files_count(place("elsewhere")) == 0 && files_count(place("store/staging")) == 0, "files are left");
    test_end();
}

static void test_verification(void) {
    test_begin();
    uint8_t *bytes = bytes_make(large, 1);
    blobs it = blobs_open(false);
    tide_blob small = blob_of(it, "hello", 5), long_one = blob_of(it, bytes, large);
    blobs_close(it);
    const char *assets = place("store/assets");
    tide_error error = {0};
    check(tide_blob_verify(assets, small.id, &error) == TIDE_OK, "%s", error.message);
    check(tide_blob_verify(assets, long_one.id, &error) == TIDE_OK, "%s", error.message);

    // A descriptor stays open, and where it is.
    int descriptor = open(blob_place("store/assets", long_one.id), O_RDWR);
    check(lseek(descriptor, 7, SEEK_SET) == 7, "%s", strerror(errno));
    check(tide_blob_verify_file(descriptor, long_one.id, &error) == TIDE_OK && lseek(descriptor, 0, SEEK_CUR) == 7, "%s", error.message);
    check(pwrite(descriptor, "x", 1, large - 1) == 1, "%s", strerror(errno));
    tide_status status = tide_blob_verify_file(descriptor, long_one.id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "is not what its name says");
    status = tide_blob_verify(assets, long_one.id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "is not what its name says");
    check(ftruncate(descriptor, 17) == 0 && close(descriptor) == 0, "%s", strerror(errno));
    status = tide_blob_verify(assets, long_one.id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "has 17 bytes");
    check(unlink(blob_place("store/assets", long_one.id)) == 0, "%s", strerror(errno));
    status = tide_blob_verify(assets, long_one.id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_MISSING, "to have it back, import its source again");
    status = tide_blob_verify(place("nowhere"), small.id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_MISSING, small.id);
    status = tide_blob_verify(assets, "ffffffffffffffffffffffffffffffff-1", &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_MISSING, "ffffffffffffffffffffffffffffffff-1");
    status = tide_blob_verify(assets, "../../etc/passwd", &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_MISSING, "'../../etc/passwd' is no identifier");

    // A name whose digest goes on with other digits of a size, and one with a discriminator.
    char id[TIDE_BLOB_ID_SIZE + 4];
    strcpy(id, small.id);
    strcat(id, "0");
    descriptor = open(blob_place("store/assets", small.id), O_RDONLY);
    status = tide_blob_verify_file(descriptor, id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, id);
    strcpy(id + strlen(small.id), "-3");
    check(tide_blob_verify_file(descriptor, id, &error) == TIDE_OK, "%s", error.message);
    close(descriptor);
    free(bytes);
    test_end();
}

/// Folders that can't be made, or opened, end the creation of a store with the reason; a link is not followed.
static void test_creation(void) {
    test_begin();
    tide_blob_store *store;
    tide_error error = {0};
    check(tide_blob_store_create(place("nowhere"), false, &store, &error) == TIDE_IO_ERROR && !store, "%s", error.message);
    check(strstr(error.message, "cannot open the container") && strstr(error.message, strerror(ENOENT)), "%s", error.message);
    file_write(place("file"), "", 0);
    for (int dry_run = 0; dry_run < 2; dry_run++) {
        check(tide_blob_store_create(place("file"), dry_run, &store, &error) == TIDE_IO_ERROR && !store, "%s", error.message);
        check(strstr(error.message, strerror(ENOTDIR)), "%s", error.message);
    }
    folder_make(place("elsewhere"));
    static const char *const folders[] = {"assets", "staging"};
    for (int i = 0; i < 2; i++) {
        check(symlink(place("elsewhere"), place("store/%s", folders[i])) == 0, "%s", strerror(errno));
        check(tide_blob_store_create(place("store"), false, &store, &error) == TIDE_IO_ERROR && !store, "%s", folders[i]);
        check(strstr(error.message, "cannot open the folder") && strstr(error.message, folders[i]), "%s", error.message);
        unlink(place("store/%s", folders[i]));
    }
    file_write(place("store/staging"), "", 0);
    check(tide_blob_store_create(place("store"), false, &store, &error) == TIDE_IO_ERROR && !store, "a file for a folder");
    check(tide_blob_store_create(place("store"), true, &store, &error) == TIDE_OK, "%s", error.message);
    tide_intake *worker;
    check(tide_intake_create(store, place("nowhere"), &worker, &error) == TIDE_IO_ERROR && !worker, "%s", error.message);
    check(strstr(error.message, "cannot open the assets root"), "%s", error.message);
    // A link as the root itself is followed.
    check(symlink(place("files"), place("root")) == 0, "%s", strerror(errno));
    check(tide_intake_create(store, place("root"), &worker, &error) == TIDE_OK, "%s", error.message);
    file_write(place("files/a.bin"), "hello", 5);
    check(blob_of_file((blobs){store, worker}, "a.bin").is_new, "a file below a link");
    blobs_close((blobs){store, worker});
    tide_intake_destroy(NULL);
    tide_blob_store_destroy(NULL);
    test_end();
}

int main(void) {
    test_identifiers();
    // The borders of the buffer and of the blocks that are compared, and contents beyond.
    static const size_t lengths[] = {1, 4096, 128 << 10, (128 << 10) + 1, 4 << 20, (4 << 20) + 1, large, 6 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        test_once(lengths[i]);
        test_dry_run(lengths[i]);
    }
    test_collisions(300000, false);
    test_collisions(2, true);
    test_collisions(300000, true);
    test_other_things_in_place();
    test_verification();
    test_creation();
    puts("blob_test: passed");
    return 0;
}

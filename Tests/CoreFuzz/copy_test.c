// Goal: a copier copies what is whole, and nothing else; it replaces what is damaged at the target, gives a second name where it may, and tells a
// damaged copy from a whole one; folders are exchanged in one step.
// Method: folders of assets with each kind of damage; the files of both sides are compared afterwards.

#include "blob_fixture.h"
#include "tide_copy.h"

enum { small = 70001, large = (9 << 20) + 4321 };

static uint8_t *small_bytes, *large_bytes;
static char small_id[TIDE_BLOB_ID_SIZE], large_id[TIDE_BLOB_ID_SIZE];

static void assets_make(void) {
    test_begin();
    blobs it = blobs_open(false);
    strcpy(small_id, blob_of(it, small_bytes, small).id);
    strcpy(large_id, blob_of(it, large_bytes, large).id);
    blobs_close(it);
}

static tide_copier *copier_create(bool may_link) {
    tide_copier *copier;
    tide_error error = {0};
    check(tide_copier_create(place("store/assets"), place("copies"), may_link, &copier, &error) == TIDE_OK, "%s", error.message);
    return copier;
}

static ino_t number_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static void check_copies(bool are_links) {
    check(file_is(blob_place("copies", small_id), small_bytes, small), "%s", small_id);
    check(file_is(blob_place("copies", large_id), large_bytes, large), "%s", large_id);
    const char *ids[] = {small_id, large_id};
    for (int i = 0; i < 2; i++) {
        bool is_same = number_of(blob_place("copies", ids[i])) == number_of(blob_place("store/assets", ids[i]));
        check(is_same == are_links, "%s", ids[i]);
    }
    check(files_count(place("copies")) == 2, "%d files", files_count(place("copies")));
}

/// Copies, finds the copies, makes them durable, and reads them again.
static void test_copies(bool may_link) {
    assets_make();
    const char *ids[] = {small_id, large_id};
    for (int again = 0; again < 2; again++) {
        tide_copier *copier = copier_create(may_link);
        tide_error error = {0};
        ino_t before[2];
        for (int i = 0; i < 2; i++) {
            before[i] = number_of(blob_place("copies", ids[i]));
            check(tide_copier_copy(copier, ids[i], &error) == TIDE_OK, "%s", error.message);
        }
        check(tide_copier_sync(copier, &error) == TIDE_OK, "%s", error.message);
        for (int i = 0; i < 2; i++) {
            check(tide_copier_verify(copier, ids[i], &error) == TIDE_OK, "%s", error.message);
            check(again == (before[i] == number_of(blob_place("copies", ids[i]))), "a whole copy was replaced");
        }
        tide_copier_destroy(copier);
        check_copies(may_link);
    }
    struct stat status;
    check(stat(place("copies"), &status) == 0 && (status.st_mode & 0777) == 0700, "%o", status.st_mode);
    // A copier that may give second names finds copies; one that may not leaves names as they are.
    tide_copier *other = copier_create(!may_link);
    for (int i = 0; i < 2; i++) check(tide_copier_copy(other, ids[i], NULL) == TIDE_OK, "%s", ids[i]);
    tide_copier_destroy(other);
    check_copies(may_link);
    tide_copier_destroy(NULL);
    test_end();
}

/// The copier replaces a damaged file, a link or a pipe at the target, but not a folder.
static void test_damaged_targets(bool may_link) {
    assets_make();
    tide_copier *copier = copier_create(may_link);
    tide_error error = {0};
    check(tide_copier_copy(copier, large_id, &error) == TIDE_OK, "%s", error.message);
    folder_make(place("copies/%.2s", small_id));
    char path[600];
    strcpy(path, blob_place("copies", small_id));
    for (int damage = 0; damage < 5; damage++) {
        small_bytes[small - 1] ^= 1;
        if (damage == 0) file_write(path, small_bytes, small);
        small_bytes[small - 1] ^= 1;
        if (damage == 1) file_write(path, small_bytes, small - 1);
        if (damage == 2) file_write(path, "", 0);
        if (damage == 3) check(symlink(place("store/assets/%.2s/%s", small_id, small_id), path) == 0, "%s", strerror(errno));
        if (damage == 4) check(mkfifo(path, 0600) == 0, "%s", strerror(errno));
        check(tide_copier_copy(copier, small_id, &error) == TIDE_OK, "%d: %s", damage, error.message);
        check(file_is(path, small_bytes, small) && unlink(path) == 0, "%d: %s", damage, path);
    }
    folder_make(path);
    check(tide_copier_copy(copier, small_id, &error) == TIDE_IO_ERROR, "%s", error.message);
    check(strstr(error.message, "cannot replace the asset") && strstr(error.message, small_id), "%s", error.message);
    // A folder of the target that is a link is not followed.
    folder_remove(place("copies/%.2s", small_id));
    folder_make(place("elsewhere"));
    check(symlink(place("elsewhere"), place("copies/%.2s", small_id)) == 0, "%s", strerror(errno));
    check(tide_copier_copy(copier, small_id, &error) == TIDE_IO_ERROR && files_count(place("elsewhere")) == 0, "%s", error.message);
    check(strstr(error.message, "cannot make the folder of the asset"), "%s", error.message);
    tide_copier_destroy(copier);
    test_end();
}

/// The copier refuses a damaged blob of the source. A blob that gets a second name is not read.
static void test_damaged_sources(void) {
    assets_make();
    char path[600];
    strcpy(path, blob_place("store/assets", small_id));
    for (int damage = 0; damage < 6; damage++) {
        tide_copier *copier = copier_create(false);
        tide_error error = {0};
        tide_reject reject = damage < 2 ? TIDE_REJECT_ASSET_CHANGED : damage == 2 ? TIDE_REJECT_ASSET_MISSING : TIDE_REJECT_ASSET_NOT_A_FILE;
        const char *message = damage == 0 ? "is damaged: its content is not what its name says" : damage == 1 ? "is damaged: it has 70000 bytes"
                            : damage == 2 ? "is missing" : damage == 5 ? strerror(ELOOP) : "is not a file";
        if (damage == 5) reject = TIDE_REJECT_ASSET_UNREADABLE;
        small_bytes[7] ^= 1;
        if (damage == 0) file_write(path, small_bytes, small);
        small_bytes[7] ^= 1;
        if (damage == 1) file_write(path, small_bytes, small - 1);
        if (damage >= 2) check(remove(path) == 0, "%s", strerror(errno));
        if (damage == 3) folder_make(path);
        if (damage == 4) check(mkfifo(path, 0600) == 0, "%s", strerror(errno));
        if (damage == 5) check(symlink(place("store/assets"), path) == 0, "%s", strerror(errno));
        tide_status status = tide_copier_copy(copier, small_id, &error);
        check_refusal(status, error, reject, message);
        check(strstr(error.message, small_id), "%s", error.message);
        check(files_count(place("copies")) == 0, "%d: %d files", damage, files_count(place("copies")));
        if (damage == 2) file_write(path, "", 0);
        tide_copier_destroy(copier);
    }
    check(unlink(path) == 0, "%s", strerror(errno));
    small_bytes[7] ^= 1;
    file_write(path, small_bytes, small);
    small_bytes[7] ^= 1;
    tide_copier *copier = copier_create(true);
    tide_error error = {0};
    check(tide_copier_copy(copier, small_id, &error) == TIDE_OK, "%s", error.message);
    tide_status status = tide_copier_verify(copier, small_id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "is damaged: its content is not what its name says");
    tide_copier_destroy(copier);
    test_end();
}

static void test_verification(void) {
    assets_make();
    tide_copier *copier = copier_create(false);
    tide_error error = {0};
    tide_status status = tide_copier_verify(copier, small_id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_MISSING, small_id);
    check(tide_copier_copy(copier, small_id, &error) == TIDE_OK && tide_copier_copy(copier, large_id, &error) == TIDE_OK, "%s", error.message);
    // The copies are whole without their sources, too.
    check(unlink(blob_place("store/assets", small_id)) == 0, "%s", strerror(errno));
    check(tide_copier_verify(copier, small_id, &error) == TIDE_OK, "%s", error.message);
    int descriptor = open(blob_place("copies", large_id), O_WRONLY);
    check(pwrite(descriptor, "x", 1, large - 1) == 1, "%s", strerror(errno));
    status = tide_copier_verify(copier, large_id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "is damaged: its content is not what its name says");
    check(ftruncate(descriptor, large - 1) == 0 && close(descriptor) == 0, "%s", strerror(errno));
    status = tide_copier_verify(copier, large_id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "is damaged: it has");
    static const char *const names[] = {"", "../../etc/passwd", "b5e9c1ad071b3e7fc779cfaa5e523818"};
    for (int i = 0; i < 3; i++) {
        status = tide_copier_verify(copier, names[i], &error);
        check_refusal(status, error, TIDE_REJECT_ASSET_MISSING, "is no identifier of an asset");
        status = tide_copier_copy(copier, names[i], &error);
        check_refusal(status, error, TIDE_REJECT_ASSET_MISSING, "is no identifier of an asset");
    }
    tide_copier_destroy(copier);
    test_end();
}

/// Of a content that is named by its SHA-256, the size alone is compared here; of the second content of a digest, the digest.
static void test_other_identifiers(void) {
    assets_make();
    tide_copier *copier = copier_create(false);
    tide_error error = {0};
    static const char id[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e-5-256";
    folder_make(place("store/assets/2c"));
    file_write(place("store/assets/2c/%s", id), "hello", 5);
    check(tide_copier_copy(copier, id, &error) == TIDE_OK && tide_copier_verify(copier, id, &error) == TIDE_OK, "%s", error.message);
    file_write(place("copies/2c/%s", id), "other", 5);
    check(tide_copier_verify(copier, id, &error) == TIDE_OK, "%s", error.message);
    file_write(place("copies/2c/%s", id), "others", 6);
    tide_status status = tide_copier_verify(copier, id, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "it has 6 bytes");
    char second[TIDE_BLOB_ID_SIZE + 2];
    snprintf(second, sizeof second, "%s-1", small_id);
    check(link(blob_place("store/assets", small_id), blob_place("store/assets", second)) == 0, "%s", strerror(errno));
    check(tide_copier_copy(copier, second, &error) == TIDE_OK && tide_copier_verify(copier, second, &error) == TIDE_OK, "%s", error.message);
    tide_copier_destroy(copier);
    test_end();
}

static void test_creation(void) {
    assets_make();
    tide_copier *copier;
    tide_error error = {0};
    check(tide_copier_create(place("nowhere"), place("copies"), false, &copier, &error) == TIDE_IO_ERROR && !copier, "%s", error.message);
    check(strstr(error.message, "cannot open the folder") && strstr(error.message, "nowhere") && access(place("copies"), F_OK), "%s", error.message);
    check(tide_copier_create(place("store/assets"), place("nowhere/copies"), false, &copier, &error) == TIDE_IO_ERROR, "%s", error.message);
    check(strstr(error.message, "cannot make the folder"), "%s", error.message);
    // Neither folder may be a link.
    check(symlink(place("store/assets"), place("link")) == 0, "%s", strerror(errno));
    check(tide_copier_create(place("link"), place("copies"), false, &copier, &error) == TIDE_IO_ERROR && !copier, "%s", error.message);
    check(tide_copier_create(place("store/assets"), place("link"), false, &copier, &error) == TIDE_IO_ERROR && !copier, "%s", error.message);
    check(strstr(error.message, "cannot open the folder"), "%s", error.message);
    test_end();
}

static void test_exchange(void) {
    assets_make();
    file_write(place("files/a"), "a", 1);
    tide_error error = {0};
    check(tide_folders_exchange(place("files"), place("store"), &error) == TIDE_OK, "%s", error.message);
    check(file_is(place("store/a"), "a", 1) && files_count(place("files/assets")) == 2, "%d files", files_count(place("files")));
    check(tide_folders_exchange(place("files"), place("nowhere"), &error) == TIDE_IO_ERROR, "%s", error.message);
    check(strstr(error.message, "cannot put the copy in the place of") && strstr(error.message, "nowhere"), "%s", error.message);
    check(file_is(place("store/a"), "a", 1) && files_count(place("files/assets")) == 2, "%d files", files_count(place("files")));
    // It asks, and tells nothing.
    tide_file_forget(place("store/a"));
    tide_file_forget(place("nowhere"));
    check(file_is(place("store/a"), "a", 1), "a file that was forgotten");
    test_end();
}

int main(void) {
    small_bytes = bytes_make(small, 1), large_bytes = bytes_make(large, 2);
    for (int may_link = 0; may_link < 2; may_link++) {
        test_copies(may_link);
        test_damaged_targets(may_link);
    }
    test_damaged_sources();
    test_verification();
    test_other_identifiers();
    test_creation();
    test_exchange();
    free(small_bytes), free(large_bytes);
    puts("copy_test: passed");
    return 0;
}

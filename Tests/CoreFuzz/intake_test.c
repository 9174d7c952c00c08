// Goal: a file is ingested only if it lies below the root, is at rest and, as an image, whole; a batch names each file's blob in the place of its
// path, reads each file once, and refuses the rows whose files are at fault.
// Method: files of each kind; conversions that change the file behind the reader's back; batches that are compared cell by cell.

#include <sys/socket.h>
#include <sys/un.h>

#include "blob_fixture.h"

enum { large = (5 << 20) + 4321 };

static const uint8_t gif[] = "GIF89a\3\0\2\0\0\0\0;";

enum { gif_size = sizeof gif - 1, preview_size = 20 };

/// A GIF of that length, at least 20, with a comment of many parts.
static uint8_t *gif_make(size_t length) {
    uint8_t *bytes = malloc(length);
    memcpy(bytes, gif, gif_size - 1);
    size_t at = gif_size - 1;
    bytes[at++] = 0x21;
    bytes[at++] = 0xfe;
    while (length - at > 2) {
        size_t size = length - at - 3 < 255 ? length - at - 3 : 255;
        bytes[at++] = (uint8_t)size;
        memset(bytes + at, 'x', size);
        at += size;
    }
    if (length - at == 2) bytes[at++] = 0;
    bytes[at] = ';';
    return bytes;
}

// Files

static void test_files_at_fault(void) {
    test_begin();
    blobs it = blobs_open(false);
    file_write(place("files/file"), "hello", 5);
    file_write(place("files/empty"), "", 0);
    file_write(place("outside"), "hello", 5);
    folder_make(place("files/folder"));
    file_write(place("files/folder/file"), "other", 5);
    check(symlink("file", place("files/link")) == 0 && symlink("folder", place("files/way")) == 0, "%s", strerror(errno));
    check(mkfifo(place("files/fifo"), 0600) == 0, "%s", strerror(errno));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    check(strlen(place("files/socket")) < sizeof address.sun_path, "%s", place("files/socket"));
    strcpy(address.sun_path, place("files/socket"));
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    check(bind(listening, (struct sockaddr *)&address, sizeof address) == 0, "%s", strerror(errno));
    char overlong[300], deep[2000] = "";
    memset(overlong, 'x', 256);
    overlong[256] = 0;
    for (int i = 0; i < 300; i++) strcat(deep, "./");
    strcat(deep, "file");

    const struct {
        const char *path;
        tide_reject reject;
        const char *message;
    } cases[] = {
        {"", TIDE_REJECT_ASSET_MISSING, "the path of the asset is empty"},
        {"/etc/passwd", TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'/etc/passwd' is an absolute path; give it relative to the assets root"},
        {"../outside", TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'../outside' climbs with '..'"},
        {"folder/../file", TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'folder/../file' climbs with '..'"},
        {"folder/..", TIDE_REJECT_ASSET_OUTSIDE_ROOT, "climbs with '..'"},
        {"link", TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'link' is a symbolic link"},
        {"way/file", TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'way/file' goes through a symbolic link"},
        {"link/file", TIDE_REJECT_ASSET_OUTSIDE_ROOT, "'link/file' goes through a symbolic link"},
        {"folder", TIDE_REJECT_ASSET_NOT_A_FILE, "'folder' is not a file but a folder"},
        {"folder/", TIDE_REJECT_ASSET_NOT_A_FILE, "'folder/' is not a file but a folder"},
        {".", TIDE_REJECT_ASSET_NOT_A_FILE, "'.' is not a file but a folder"},
        {"fifo", TIDE_REJECT_ASSET_NOT_A_FILE, "'fifo' is not a file but a FIFO"},
        {"socket", TIDE_REJECT_ASSET_NOT_A_FILE, "'socket' is not a file but a socket"},
        {"file/", TIDE_REJECT_ASSET_MISSING, "there is no file 'file/' in the folder of the assets"},
        {"file/file", TIDE_REJECT_ASSET_MISSING, "there is no file 'file/file' in the folder of the assets"},
        {"missing", TIDE_REJECT_ASSET_MISSING, "there is no file 'missing' in the folder of the assets"},
        {"missing/file", TIDE_REJECT_ASSET_MISSING, "there is no file 'missing/file' in the folder of the assets"},
        {"folder/missing", TIDE_REJECT_ASSET_MISSING, "there is no file 'folder/missing' in the folder of the assets"},
        {overlong, TIDE_REJECT_ASSET_MISSING, "a part of the path is over 255 bytes long"},
        {"empty", TIDE_REJECT_ASSET_EMPTY, "'empty' is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tide_blob blob, preview;
        tide_error error = {0};
        tide_exif_block exif = {.length = 17};
        tide_status status = tide_intake_file(it.worker, cases[i].path, &blob, &preview, &exif, &error);
        check_refusal(status, error, cases[i].reject, cases[i].message);
        check(exif.length == 0 && !blob.id[0] && !preview.id[0], "%s", cases[i].path);
        check(tide_intake_file(it.worker, cases[i].path, &blob, NULL, NULL, NULL) == TIDE_REJECTED, "%s", cases[i].path);
    }
    static const char *const right[] = {"./file", ".//./file", "folder/./file", "folder//file"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) check(blob_of_file(it, right[i]).size == 5, "%s", right[i]);
    check(blob_of_file(it, deep).size == 5, "a path of many parts");
    check(files_count(place("store")) == 2, "%d files", files_count(place("store")));
    tide_intake *devices;
    check(tide_intake_create(it.store, "/dev", &devices, NULL) == TIDE_OK, "/dev");
    tide_blob blob;
    tide_error error = {0};
    tide_status status = tide_intake_file(devices, "null", &blob, NULL, NULL, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_NOT_A_FILE, "'null' is not a file but a device");
    status = tide_intake_bytes(it.worker, NULL, 0, "nothing", &blob, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_EMPTY, "'nothing' is empty");
    tide_intake_destroy(devices);
    close(listening);
    blobs_close(it);
    test_end();
}

/// Images are told by content; a name that claims one is held to it. A cut image is refused, as a file and as bytes.
static void test_images(size_t length) {
    test_begin();
    uint8_t *image = gif_make(length), *text = bytes_make(length, 3);
    file_write(place("files/whole.gif"), image, length);
    file_write(place("files/whole.txt"), image, length);
    file_write(place("files/cut.gif"), image, length - 1);
    file_write(place("files/cut.txt"), image, length - 1);
    file_write(place("files/text.JPEG"), text, length);
    file_write(place("files/text.txt"), text, length);
    blobs it = blobs_open(false);
    const struct {
        const char *name;
        tide_reject reject, reject_of_photos;
    } cases[] = {
        {"whole.gif", TIDE_REJECT_NONE, TIDE_REJECT_NONE},
        {"whole.txt", TIDE_REJECT_NONE, TIDE_REJECT_NONE},
        {"cut.gif", TIDE_REJECT_ASSET_TRUNCATED, TIDE_REJECT_ASSET_TRUNCATED},
        {"cut.txt", TIDE_REJECT_ASSET_TRUNCATED, TIDE_REJECT_ASSET_TRUNCATED},
        {"text.JPEG", TIDE_REJECT_ASSET_NOT_AN_IMAGE, TIDE_REJECT_ASSET_NOT_AN_IMAGE},
        {"text.txt", TIDE_REJECT_NONE, TIDE_REJECT_ASSET_NOT_AN_IMAGE},
    };
    int expected = 0;
    for (int photos = 1; photos >= 0; photos--) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            tide_blob blob;
            tide_error error = {0};
            tide_exif_block exif = {0};
            tide_reject reject = photos ? cases[i].reject_of_photos : cases[i].reject;
            tide_status status = tide_intake_file(it.worker, cases[i].name, &blob, NULL, photos ? &exif : NULL, &error);
            check(status == (reject ? TIDE_REJECTED : TIDE_OK) && error.reject == reject, "%s: %s", cases[i].name, error.message);
            check(!reject || strstr(error.message, cases[i].name), "%s", error.message);
            if (reject || i == 5) continue;
            check(blob.image.media == TIDE_MEDIA_GIF && blob.image.width == 3 && blob.image.height == 2, "%s", cases[i].name);
        }
        expected++;
        check(files_count(place("store")) == expected, "%d files", files_count(place("store")));
    }
    tide_blob blob;
    tide_error error = {0};
    tide_status status = tide_intake_bytes(it.worker, image, length - 1, "folder/cut", &blob, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_TRUNCATED, "'folder/cut' is not whole: the GIF file breaks off");
    status = tide_intake_bytes(it.worker, text, length, "folder.png/text", &blob, &error);
    check(status == TIDE_OK, "%s", error.message);
    status = tide_intake_bytes(it.worker, text, length, "folder/text.png", &blob, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_NOT_AN_IMAGE, "'folder/text.png' has the name of an image and the content of none");
    check(files_count(place("store/staging")) == 0, "staged files are left");
    blobs_close(it);
    free(image);
    free(text);
    test_end();
}

/// The block receives the beginning of the EXIF data, as much as there is room for.
static void test_exif(size_t padding) {
    test_begin();
    uint8_t photo[1000];
    FILE *file = fopen("corpus/image/exif.jpg", "rb");
    check(file, "corpus/image/exif.jpg: %s", strerror(errno));
    size_t length = fread(photo, 1, sizeof photo, file);
    fclose(file);
    // Bytes may follow a JPEG's end.
    uint8_t *padded = calloc(1, length + padding);
    memcpy(padded, photo, length);
    file_write(place("files/photo.jpg"), padded, length + padding);
    blobs it = blobs_open(false);
    static const size_t capacities[] = {4096, 10, 0};
    for (int i = 0; i < 3; i++) {
        uint8_t room[4096];
        tide_exif_block exif = {.bytes = room, .capacity = capacities[i]};
        tide_blob blob;
        tide_error error = {0};
        check(tide_intake_file(it.worker, "photo.jpg", &blob, NULL, &exif, &error) == TIDE_OK, "%s", error.message);
        check(blob.image.exif_length > 10, "%u", blob.image.exif_length);
        size_t expected = i == 0 ? blob.image.exif_length : capacities[i];
        check(exif.length == expected && memcmp(room, photo + blob.image.exif_offset, expected) == 0, "%zu, not %zu", exif.length, expected);
    }
    file_write(place("files/plain.gif"), gif, gif_size);
    uint8_t room[100];
    tide_exif_block exif = {.bytes = room, .capacity = 100, .length = 5};
    tide_blob blob;
    check(tide_intake_file(it.worker, "plain.gif", &blob, NULL, &exif, NULL) == TIDE_OK && exif.length == 0, "%zu", exif.length);
    blobs_close(it);
    free(padded);
    test_end();
}

// Conversions

typedef enum change { changes_nothing, grows, shrinks, is_touched, is_replaced } change;

/// What a conversion does with each image, and to its file.
typedef struct plan {
    tide_status status;
    tide_reject reject;
    bool converts, previews, is_large;
    change change;
    int calls;
} plan;

static tide_status convert(const void *context, tide_bytes bytes, const tide_image *image, tide_converted *converted, tide_error *error) {
    plan *it = (plan *)context;
    it->calls++;
    check(image->media == TIDE_MEDIA_GIF && !converted->bytes && !converted->preview, "%d", image->media);
    check((bytes.memory == NULL) == (bytes.size > 4 << 20), "%llu bytes", (unsigned long long)bytes.size);
    const char *path = place("files/a.gif");
    if (it->change == grows) check(truncate(path, (off_t)bytes.size + 1) == 0, "%s", strerror(errno));
    if (it->change == shrinks) check(truncate(path, (off_t)bytes.size / 2) == 0, "%s", strerror(errno));
    if (it->change == is_touched) {
        struct timespec time = {.tv_sec = 1700000000};
        check(utimensat(AT_FDCWD, path, (struct timespec[]){time, time}, 0) == 0, "%s", strerror(errno));
    }
    if (it->change == is_replaced) check(unlink(path) == 0, "%s", strerror(errno));
    if (it->status == TIDE_REJECTED) return tide_error_reject(error, it->reject, "the picture is none");
    if (it->status) return tide_error_set(error, it->status, 0, "the picture is none");
    if (it->converts) {
        converted->length = it->is_large ? large : gif_size;
        converted->bytes = it->is_large ? gif_make(large) : malloc(gif_size);
        if (!it->is_large) memcpy(converted->bytes, gif, gif_size);
    }
    if (it->previews) {
        converted->preview_length = preview_size;
        converted->preview = gif_make(preview_size);
    }
    return TIDE_OK;
}

static tide_status intake_converted(size_t length, bool dry_run, plan *it, tide_blob *blob, tide_blob *preview, tide_error *error) {
    uint8_t *image = gif_make(length);
    file_write(place("files/a.gif"), image, length);
    blobs store = blobs_open(dry_run);
    tide_intake_set_conversion(store.worker, (tide_conversion){.convert = convert, .context = it});
    *error = (tide_error){0};
    tide_status status = tide_intake_file(store.worker, "a.gif", blob, preview, NULL, error);
    check(files_count(place("store/staging")) == 0, "staged files are left");
    blobs_close(store);
    free(image);
    return status;
}

/// What a conversion yields is ingested in the place of the file, and its preview besides; the file's own identifier is told.
static void test_conversions(size_t length, bool dry_run) {
    test_begin();
    tide_blob blob, preview, plain;
    tide_error error;
    plan nothing = {0};
    check(intake_converted(length, dry_run, &nothing, &plain, &preview, &error) == TIDE_OK, "%s", error.message);
    check(nothing.calls == 1 && plain.size == length && !plain.is_converted && !preview.id[0], "%d calls", nothing.calls);
    check(strcmp(plain.id, plain.source_id) == 0, "%s", plain.id);

    for (int is_large = 0; is_large < 2; is_large++) {
        plan both = {.converts = true, .previews = true, .is_large = is_large};
        check(intake_converted(length, dry_run, &both, &blob, &preview, &error) == TIDE_OK, "%s", error.message);
        check(blob.is_converted && blob.is_new && blob.size == (is_large ? large : gif_size), "%llu", (unsigned long long)blob.size);
        check(blob.source_size == length && strcmp(blob.source_id, plain.id) == 0, "%s, not %s", blob.source_id, plain.id);
        check(blob.image.media == TIDE_MEDIA_GIF && blob.image.width == 3, "%u", blob.image.width);
        check(preview.is_preview && preview.size == preview_size && !preview.source_id[0], "%s", preview.source_id);
        check(dry_run || tide_blob_verify(place("store/assets"), preview.id, &error) == TIDE_OK, "%s", error.message);
        check(dry_run || tide_blob_verify(place("store/assets"), blob.id, &error) == TIDE_OK, "%s", error.message);
    }
    int count = files_count(place("store"));
    check(count == (dry_run ? 0 : 4), "%d files", count);
    // Without a place for it, a preview is not ingested.
    plan alone = {.previews = true};
    check(intake_converted(length, dry_run, &alone, &blob, NULL, &error) == TIDE_OK && !blob.is_converted, "%s", error.message);
    check(intake_converted(length, dry_run, &alone, &blob, &preview, &error) == TIDE_OK && preview.is_preview, "%s", error.message);
    check(strcmp(blob.id, plain.id) == 0 && strcmp(blob.source_id, plain.id) == 0, "%s", blob.source_id);

    plan refused = {.status = TIDE_REJECTED, .reject = TIDE_REJECT_PICTURE_DAMAGED};
    tide_status status = intake_converted(length, dry_run, &refused, &blob, &preview, &error);
    check_refusal(status, error, TIDE_REJECT_PICTURE_DAMAGED, "'a.gif': the picture is none");
    plan unread = {.status = TIDE_IO_ERROR};
    status = intake_converted(length, dry_run, &unread, &blob, &preview, &error);
    check_refusal(status, error, TIDE_REJECT_ASSET_UNREADABLE, "'a.gif' cannot be read: the picture is none");
    plan cancelled = {.status = TIDE_CANCELLED};
    check(intake_converted(length, dry_run, &cancelled, &blob, &preview, &error) == TIDE_CANCELLED, "%s", error.message);
    check(strcmp(error.message, "the picture is none") == 0, "%s", error.message);
    check(files_count(place("store")) == count, "%d files", files_count(place("store")));
    test_end();
}

/// A file that is not an image is not converted.
static void test_no_conversion(void) {
    test_begin();
    file_write(place("files/text"), "hello", 5);
    blobs it = blobs_open(false);
    plan plan = {.converts = true};
    tide_intake_set_conversion(it.worker, (tide_conversion){.convert = convert, .context = &plan});
    check(!blob_of_file(it, "text").is_converted && plan.calls == 0, "%d calls", plan.calls);
    tide_intake_set_conversion(it.worker, (tide_conversion){0});
    file_write(place("files/a.gif"), gif, gif_size);
    check(!blob_of_file(it, "a.gif").is_converted && plan.calls == 0, "%d calls", plan.calls);
    blobs_close(it);
    test_end();
}

/// A file that changes while it is read is refused, whatever becomes of it, and nothing of it is stored.
static void test_changes(size_t length) {
    for (int dry_run = 0; dry_run < 2; dry_run++) {
        for (change change = grows; change <= is_replaced; change++) {
            for (int converts = 0; converts < 2; converts++) {
                test_begin();
                tide_blob blob;
                tide_error error;
                plan plan = {.change = change, .converts = converts};
                tide_status status = intake_converted(length, dry_run, &plan, &blob, NULL, &error);
                check_refusal(status, error, TIDE_REJECT_ASSET_CHANGED, "'a.gif' changed while it was read; import it again when it is at rest");
                check(files_count(place("store")) == 0, "%d files", files_count(place("store")));
                test_end();
            }
        }
    }
}

int main(void) {
    test_files_at_fault();
    test_images(1000);
    test_images(large);
    test_exif(0);
    test_exif(large);
    for (int dry_run = 0; dry_run < 2; dry_run++) {
        test_conversions(1000, dry_run);
        test_conversions(large + 9, dry_run);
    }
    test_no_conversion();
    test_changes(1000);
    test_changes(large + 9);
    puts("intake_test: passed");
    return 0;
}

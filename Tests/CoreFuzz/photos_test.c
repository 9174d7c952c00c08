// Goal: a folder of photos becomes the records that Documentation/Formats/manifest.md describes, in "Photos": what is no photo is passed over, and
// what is named like a photo, or is one with a fault, is refused.
// Method: a folder with a file of each kind, and a conversion that makes previews of some.

#include <sys/stat.h>

#include "manifest_reading.h"
#include "tide_photo.h"

static char folder[] = "/tmp/tidemark-photos-XXXXXX";

static void file_write(const char *name, const void *bytes, size_t length) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    check(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0, "%s", path);
    struct timespec time = {.tv_sec = 1700000000};
    check(utimensat(AT_FDCWD, path, (struct timespec[]){time, time}, 0) == 0, "%s", path);
}

static const uint8_t gif[] = "GIF89a\3\0\2\0\0\0\0;", other_gif[] = "GIF89a\3\0\2\0\1\0\0;", gif_without_size[] = "GIF89a\0\0\0\0\0\0\0;";

enum { gif_size = sizeof gif - 1 };

static const char *const paths[] = {
    "sub/turned.jpg", "plain.gif", "a.b.gif", ".gif", "plain", "zero.gif", "empty.txt", "text.txt", "link.txt", "fifo", "empty.png", "text.jpg",
    "link.jpg", "missing.txt", "cut.gif"};

enum { path_count = sizeof paths / sizeof *paths };

static void files_write(void) {
    char path[300], sub[300];
    uint8_t jpeg[1000];
    // A JPEG of 800 by 600 pixels, whose EXIF has a time, a position and a rotation.
    FILE *file = fopen("corpus/image/exif.jpg", "rb");
    check(file, "corpus/image/exif.jpg");
    size_t length = fread(jpeg, 1, sizeof jpeg, file);
    fclose(file);
    snprintf(sub, sizeof sub, "%s/sub", folder);
    check(mkdir(sub, 0700) == 0, "%s", sub);
    snprintf(path, sizeof path, "%s/store", folder);
    check(mkdir(path, 0700) == 0, "%s", path);
    file_write("sub/turned.jpg", jpeg, length);
    for (int i = 1; i < 5; i++) file_write(paths[i], gif, gif_size);
    file_write("other.gif", other_gif, gif_size);
    file_write("zero.gif", gif_without_size, gif_size);
    file_write("empty.txt", "", 0);
    file_write("empty.png", "", 0);
    file_write("text.txt", "text", 4);
    file_write("text.jpg", "text", 4);
    file_write("cut.gif", gif, gif_size - 1);
    const char *const links[] = {"link.txt", "link.jpg"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, links[i]);
        check(symlink("plain.gif", path) == 0, "%s", path);
    }
    snprintf(path, sizeof path, "%s/fifo", folder);
    check(mkfifo(path, 0600) == 0, "%s", path);
}

/// Makes a preview of each JPEG, and turns it. A picture whose first colour is another ends the work.
static tide_status convert(const void *context, tide_bytes bytes, const tide_image *image, tide_converted *converted, tide_error *error) {
    (void)context;
    if (bytes.memory && bytes.size == gif_size && bytes.memory[10] == 1) {
        return tide_error_set(error, TIDE_CANCELLED, 0, "the caller has cancelled the work");
    }
    if (image->media != TIDE_MEDIA_JPEG) return TIDE_OK;
    converted->bytes = malloc(gif_size);
    converted->preview = malloc(gif_size);
    converted->length = converted->preview_length = gif_size;
    memcpy(converted->bytes, gif, gif_size);
    memcpy(converted->preview, gif_without_size, gif_size);
    return TIDE_OK;
}

typedef struct visits {
    int blobs, previews;
} visits;

static void visit(void *context, const tide_blob *blob) {
    visits *it = context;
    it->blobs += !blob->is_preview;
    it->previews += blob->is_preview;
}

static tide_status photos_read(
    const char *const *names, uint32_t count, bool has_previews, tide_batch *batch, bool *passed_over, visits *visited, tide_error *error
) {
    char path[300];
    tide_blob_store *store;
    tide_intake *workers[2];
    snprintf(path, sizeof path, "%s/store", folder);
    check(!tide_blob_store_create(path, false, &store, NULL), "a store");
    for (int i = 0; i < 2; i++) {
        check(!tide_intake_create(store, folder, &workers[i], NULL), "a worker");
        if (has_previews) tide_intake_set_conversion(workers[i], (tide_conversion){.convert = convert});
    }
    *visited = (visits){0};
    tide_status status = tide_photos_take_in(workers, 2, names, count, 10, "Photo", has_previews, batch, passed_over, visit, visited, error);
    for (int i = 0; i < 2; i++) tide_intake_destroy(workers[i]);
    tide_blob_store_destroy(store);
    return status;
}

/// Replaces the identifiers of blobs, which are long, by `blob`.
static tide_text without_blobs(const char *text) {
    tide_text out = {0};
    while (*text) {
        size_t length = strcspn(text, "'\n ");
        const char *end = text + length;
        if (*end == '\'' && length >= 34 && tide_blob_id_is_valid(text, length)) tide_text_append(&out, "blob", 4);
        else tide_text_append(&out, text, length);
        if (*end) tide_text_append(&out, end++, 1);
        text = end;
    }
    return out;
}

static void expect_photos(int line, bool has_previews, const char *expected) {
    bool passed_over[path_count];
    visits visited;
    tide_error error = {0};
    tide_batch *batch;
    check(!tide_batch_create(100, 1 << 20, &batch), "a batch");
    check(!photos_read(paths, path_count, has_previews, batch, passed_over, &visited, &error), "%s", error.message);
    tide_text found = {0};
    batch_write(&found, batch, false);
    tide_text shown = without_blobs(found.bytes);
    expect_text(__FILE__, line, shown.bytes, expected);
    for (uint32_t i = 0; i < path_count; i++) check(passed_over[i] == (i >= 6 && i <= 9), "%s", paths[i]);
    check(visited.blobs == 6 && visited.previews == has_previews, "%d blobs, %d previews", visited.blobs, visited.previews);
    tide_text_free(&found);
    tide_text_free(&shown);
    tide_batch_destroy(batch);
}

/// A photo's name is derived from its type, its path and its own content.
static void test_names(void) {
    const char *const names[] = {"plain.gif", "a.b.gif", "other.gif"};
    bool passed_over[3];
    visits visited;
    tide_batch *batch;
    char shown[3][37] = {{0}};
    check(!tide_batch_create(100, 1 << 20, &batch), "a batch");
    check(!photos_read(names, 3, false, batch, passed_over, &visited, NULL), "photos");
    for (uint32_t row = 0; row < 3; row++) {
        size_t length;
        bool is_blob;
        const char *key = tide_batch_row_key(batch, row, &length, &is_blob);
        char name[36], content[300];
        check(is_blob && tide_name_decode(key, length, name) == 36, "%zu", length);
        tide_cell image = tide_batch_cell(batch, row, 2);
        size_t used = (size_t)snprintf(content, sizeof content, "tidemark photo name 1%cPhoto%c%s%c%.*s", 0, 0, names[row], 0, (int)image.length,
                                       tide_batch_text(batch, image.offset));
        check(!tide_name_derive(content, used, shown[row]) && !memcmp(name, shown[row], 36), "%s", names[row]);
    }
    check(strcmp(shown[0], shown[1]) && strcmp(shown[0], shown[2]), "%s", shown[0]);
    tide_batch_destroy(batch);
}

/// A name that is no text is refused. Not every system allows such names, so there is no such file.
static void test_name_without_text(void) {
    const char *const name = "\xff.gif";
    bool passed_over;
    visits visited;
    tide_batch *batch;
    tide_text found = {0};
    check(!tide_batch_create(100, 1 << 20, &batch), "a batch");
    check(!photos_read(&name, 1, false, batch, &passed_over, &visited, NULL) && !passed_over, "photos");
    batch_write(&found, batch, false);
    check(strstr(found.bytes, "line 10, caption, invalidUTF8: the file's name is not valid UTF-8; give it another <\xff.gif>\n"), "%s", found.bytes);
    tide_text_free(&found);
    tide_batch_destroy(batch);
}

static void test_cancelling(void) {
    const char *const names[] = {"plain.gif", "other.gif"};
    bool passed_over[2];
    visits visited;
    tide_error error = {0};
    tide_batch *batch;
    check(!tide_batch_create(100, 1 << 20, &batch), "a batch");
    check(photos_read(names, 2, true, batch, passed_over, &visited, &error) == TIDE_CANCELLED, "%s", error.message);
    check(tide_batch_row_count(batch) == 0 && visited.blobs == 0 && !strcmp(error.message, "the caller has cancelled the work"), "%s", error.message);
    tide_batch_destroy(batch);
}

int main(void) {
    check(mkdtemp(folder), "%s", folder);
    files_write();
    expect_photos(__LINE__, false,
           "types: caption string, createdAt timestamp, image asset, width int64, height int64, position location\n"
           "10: caption='turned' createdAt=1717259415250000 image='blob' width=600 height=800 "
           "position='{\"latitude\":60.3970833333333,\"longitude\":5.32}'\n"
           "11: caption='plain' createdAt=1700000000000000 image='blob' width=3 height=2\n"
           "12: caption='a.b' createdAt=1700000000000000 image='blob' width=3 height=2\n"
           "13: caption='.gif' createdAt=1700000000000000 image='blob' width=3 height=2\n"
           "14: caption='plain' createdAt=1700000000000000 image='blob' width=3 height=2\n"
           "15: caption='zero' createdAt=1700000000000000 image='blob'\nline 20, image, assetEmpty: 'empty.png' is empty <empty.png>\n"
           "line 21, image, assetNotAnImage: 'text.jpg' has the name of an image and the content of none <text.jpg>\n"
           "line 22, image, assetOutsideRoot: 'link.jpg' is a symbolic link <link.jpg>\n"
           "line 23, image, assetMissing: there is no file 'missing.txt' in the folder of the assets <missing.txt>\n"
           "line 24, image, assetTruncated: 'cut.gif' is not whole: the GIF file breaks off: a block is expected at byte 13, and the file has 13 "
           "bytes <cut.gif>\n");
    expect_photos(__LINE__, true,
           "types: caption string, createdAt timestamp, image asset, width int64, height int64, position location, imageThumbnail asset\n"
           "10: caption='turned' createdAt=1717259415250000 image='blob' width=3 height=2 "
           "position='{\"latitude\":60.3970833333333,\"longitude\":5.32}' imageThumbnail='blob'\n"
           "11: caption='plain' createdAt=1700000000000000 image='blob' width=3 height=2 imageThumbnail=null\n"
           "12: caption='a.b' createdAt=1700000000000000 image='blob' width=3 height=2 imageThumbnail=null\n"
           "13: caption='.gif' createdAt=1700000000000000 image='blob' width=3 height=2 imageThumbnail=null\n"
           "14: caption='plain' createdAt=1700000000000000 image='blob' width=3 height=2 imageThumbnail=null\n"
           "15: caption='zero' createdAt=1700000000000000 image='blob' imageThumbnail=null\n"
           "line 20, image, assetEmpty: 'empty.png' is empty <empty.png>\n"
           "line 21, image, assetNotAnImage: 'text.jpg' has the name of an image and the content of none <text.jpg>\n"
           "line 22, image, assetOutsideRoot: 'link.jpg' is a symbolic link <link.jpg>\n"
           "line 23, image, assetMissing: there is no file 'missing.txt' in the folder of the assets <missing.txt>\n"
           "line 24, image, assetTruncated: 'cut.gif' is not whole: the GIF file breaks off: a block is expected at byte 13, and the file has 13 "
           "bytes <cut.gif>\n");
    test_names();
    test_name_without_text();
    test_cancelling();
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    check(system(command) == 0, "%s", command);
    return tests_end("photos_test");
}

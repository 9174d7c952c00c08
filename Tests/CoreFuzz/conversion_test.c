// Goal: what a conversion makes of a file is stored in its place, with its preview in a field beside it, and nothing of it is lost or leaked.
// Method: a conversion that tells what it was given, over batches whose rows have all that a row can have there.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "tide_batch.h"
#include "tide_blob.h"

static char folder[] = "/tmp/tidemark-conversion-XXXXXX";

enum { large_size = (4 << 20) + 1000 };

static const char gif_head[] = "GIF89a\1\0\1\0\0\0";

/// A GIF whose comment has the text, and is as long as asked.
static void image_write(const char *name, const char *text, size_t length) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    check(file, "%s", path);
    fwrite(gif_head, 1, 13, file);
    size_t written = 13;
    fputs("!\xfe", file);
    do {
        size_t part = strlen(text);
        fputc((int)part, file);
        fwrite(text, 1, part, file);
        written += part + 1;
    } while (written < length);
    fputc(0, file);
    fputc(';', file);
    fclose(file);
}

enum { made_size = 14 };

/// A GIF without a picture, in whose header the letter is.
static uint8_t *made_of(char letter, uint8_t kind) {
    uint8_t *made = malloc(made_size);
    memcpy(made, gif_head, 13);
    made[11] = (uint8_t)letter;
    made[12] = kind;
    made[13] = ';';
    return made;
}

static tide_status convert(const void *context, tide_bytes bytes, const tide_image *image, tide_converted *converted, tide_error *error) {
    check(image->media == TIDE_MEDIA_GIF, "%d", image->media);
    char head[20] = {0};
    if (bytes.memory) memcpy(head, bytes.memory + 16, 8);
    else check(pread(bytes.descriptor, head, 8, 16) == 8, "pread");
    if (strncmp(head, "refused", 7) == 0) return tide_error_reject(error, TIDE_REJECT_PICTURE_DAMAGED, "as asked");
    if (strncmp(head, "stop", 4) == 0) return tide_error_set(error, TIDE_CANCELLED, 0, "as asked");
    if (strncmp(head, "keep", 4) != 0) {
        converted->bytes = made_of(head[0], 0);
        converted->length = made_size;
    }
    if (context && strncmp(head, "bare", 4) != 0) {
        converted->preview = made_of(head[0], 1);
        converted->preview_length = made_size;
    }
    return TIDE_OK;
}

typedef struct found {
    tide_blob blobs[40];
    int count;
} found;

static void visit(void *context, const tide_blob *blob) {
    found *it = context;
    it->blobs[it->count++] = *blob;
}

static uint32_t row_add(tide_batch *batch) {
    uint32_t row;
    tide_span source;
    check(!tide_batch_text_add(batch, "row", 3, &source) && !tide_batch_row_add(batch, tide_batch_row_count(batch) + 1, source, &row), "row");
    return row;
}

static void cell_add(tide_batch *batch, const char *column_name, tide_kind kind, const char *text, size_t length) {
    uint32_t column;
    tide_span span = {0};
    check(!tide_batch_column(batch, column_name, strlen(column_name), &column, NULL), "column");
    tide_batch_column_set_type(batch, column, kind == TIDE_KIND_PATHS ? TIDE_TYPE_ASSET | TIDE_TYPE_LIST : TIDE_TYPE_ASSET);
    if (text) check(!tide_batch_text_add(batch, text, length, &span), "text");
    check(!tide_batch_row_set(batch, column, (tide_cell){.kind = kind, .offset = span.offset, .length = span.length}), "cell");
}

static void path_add(tide_batch *batch, const char *column, const char *path) { cell_add(batch, column, TIDE_KIND_PATH, path, strlen(path)); }

/// The text of a cell; "null" and "absent" for these kinds.
static const char *cell_text(tide_batch *batch, uint32_t row, const char *column_name, char text[200]) {
    for (uint32_t column = 0; column < tide_batch_column_count(batch); column++) {
        size_t length;
        if (strcmp(tide_batch_column_name(batch, column, &length), column_name) != 0) continue;
        tide_cell cell = tide_batch_cell(batch, row, column);
        if (cell.kind == TIDE_KIND_ABSENT) return "absent";
        if (cell.kind == TIDE_KIND_NULL) return "null";
        check(cell.kind == TIDE_KIND_TEXT, "%s of row %u: %d", column_name, row, cell.kind);
        snprintf(text, 200, "%.*s", (int)cell.length, tide_batch_text(batch, cell.offset));
        return text;
    }
    return "absent";
}

static const tide_blob *blob_of(const found *it, const char *id) {
    for (int i = 0; i < it->count; i++) {
        if (strcmp(it->blobs[i].id, id) == 0) return &it->blobs[i];
    }
    check(false, "no blob %s", id);
}

static void content_check(const char *id, char letter, uint8_t kind) {
    char path[300];
    uint8_t bytes[40];
    snprintf(path, sizeof path, "%s/store/assets/%.2s/%s", folder, id, id);
    FILE *file = fopen(path, "rb");
    check(file, "%s", path);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    check(length == made_size && bytes[11] == (uint8_t)letter && bytes[12] == kind, "%s: %c", id, bytes[11]);
}

static tide_batch *batch_make(void) {
    tide_batch *batch;
    check(!tide_batch_create(1000, 1 << 20, &batch), "batch");
    row_add(batch), path_add(batch, "image", "a.gif");
    row_add(batch), cell_add(batch, "image", TIDE_KIND_NULL, NULL, 0);
    row_add(batch), cell_add(batch, "images", TIDE_KIND_PATHS, "a.gif\0b.gif", 11);
    row_add(batch), path_add(batch, "image", "keep.gif");
    // A preview of its own, in a column that begins here.
    row_add(batch), path_add(batch, "image", "b.gif"), path_add(batch, "imageThumbnail", "bare.gif");
    row_add(batch), path_add(batch, "image", "bare.gif");
    row_add(batch), path_add(batch, "image", "text.txt");
    row_add(batch), path_add(batch, "image", "refused.gif");
    row_add(batch), path_add(batch, "image", "large.gif");
    row_add(batch), path_add(batch, "image", "a.gif");
    return batch;
}

static tide_intake *workers[2];

static tide_blob_store *store_open(bool dry_run, const void *context) {
    char path[100];
    snprintf(path, sizeof path, "%s/store", folder);
    tide_blob_store *store;
    check(!tide_blob_store_create(path, dry_run, &store, NULL), "store");
    for (int i = 0; i < 2; i++) {
        check(!tide_intake_create(store, folder, &workers[i], NULL), "intake");
        tide_intake_set_conversion(workers[i], (tide_conversion){.convert = convert, .context = context});
    }
    return store;
}

static void store_close(tide_blob_store *store) {
    for (int i = 0; i < 2; i++) tide_intake_destroy(workers[i]);
    tide_blob_store_destroy(store);
}

static void test_previews(bool dry_run) {
    tide_blob_store *store = store_open(dry_run, "with previews");
    tide_batch *batch = batch_make();
    found found = {0};
    tide_error error;
    check(!tide_intake_batch(workers, 2, batch, true, visit, &found, &error), "%s", error.message);
    char one[200], two[200];
    const char *id = cell_text(batch, 0, "image", one);
    const tide_blob *blob = blob_of(&found, id);
    check(blob->is_converted && !blob->is_preview && blob->size == made_size, "%llu", (unsigned long long)blob->size);
    check(blob->source_size == 26, "%llu", (unsigned long long)blob->source_size);
    size_t length = strlen(blob->source_id);
    check(strcmp(blob->source_id, id) != 0 && tide_blob_id_is_valid(blob->source_id, length), "%s", blob->source_id);
    if (!dry_run) content_check(id, 'a', 0);
    blob = blob_of(&found, cell_text(batch, 0, "imageThumbnail", two));
    check(blob->is_preview && !blob->is_converted && blob->source_size == 0, "preview");
    if (!dry_run) content_check(two, 'a', 1);
    check(!strcmp(cell_text(batch, 9, "image", two), one), "the same path twice");
    check(!strcmp(cell_text(batch, 1, "image", two), "null") && !strcmp(cell_text(batch, 1, "imageThumbnail", two), "null"), "null");
    check(strchr(cell_text(batch, 2, "images", two), ',') && !strcmp(cell_text(batch, 2, "imagesThumbnail", two), "absent"), "a list");
    check(!strcmp(cell_text(batch, 2, "imageThumbnail", two), "absent"), "a row without the field");
    blob = blob_of(&found, cell_text(batch, 3, "image", two));
    check(!blob->is_converted && !strcmp(blob->id, blob->source_id), "kept as it is");
    blob = blob_of(&found, cell_text(batch, 3, "imageThumbnail", two));
    check(blob->is_preview, "the preview of a file that is kept");
    blob = blob_of(&found, cell_text(batch, 4, "imageThumbnail", two));
    check(blob->is_converted && !blob->is_preview, "a preview of the source's own");
    check(!strcmp(cell_text(batch, 5, "imageThumbnail", two), "null"), "no preview was made");
    check(!strcmp(cell_text(batch, 6, "imageThumbnail", two), "null"), "no image");
    check(!blob_of(&found, cell_text(batch, 6, "image", two))->is_converted, "no image");
    check(!tide_batch_row_is_live(batch, 7) && tide_batch_rejection_count(batch) == 1, "refused");
    tide_rejection rejection = tide_batch_rejection(batch, 0);
    check(rejection.reject == TIDE_REJECT_PICTURE_DAMAGED, "%d", rejection.reject);
    check(strncmp(tide_batch_text(batch, rejection.message.offset), "'refused.gif': as asked", 23) == 0, "the reason");
    check(strncmp(tide_batch_text(batch, rejection.field.offset), "image", 5) == 0, "the field");
    blob = blob_of(&found, cell_text(batch, 8, "image", two));
    check(blob->is_converted && blob->source_size > large_size, "%llu", (unsigned long long)blob->source_size);
    check(!strcmp(cell_text(batch, 4, "imageThumbnailThumbnail", two), "absent"), "a preview of a preview");
    tide_batch_destroy(batch);
    store_close(store);
}

/// A source whose field of previews is a list keeps it.
static void test_list_of_previews(void) {
    tide_blob_store *store = store_open(false, "with previews");
    tide_batch *batch;
    check(!tide_batch_create(1000, 1 << 20, &batch), "batch");
    row_add(batch), path_add(batch, "image", "a.gif");
    row_add(batch), path_add(batch, "image", "b.gif"), cell_add(batch, "imageThumbnail", TIDE_KIND_PATHS, "a.gif\0b.gif", 11);
    found found = {0};
    tide_error error;
    check(!tide_intake_batch(workers, 2, batch, true, visit, &found, &error), "%s", error.message);
    char text[200];
    check(!strcmp(cell_text(batch, 0, "imageThumbnail", text), "absent"), "%s", text);
    check(cell_text(batch, 1, "imageThumbnail", text)[0] == '[', "%s", text);
    tide_batch_destroy(batch);
    store_close(store);
}

static void test_others(void) {
    // Without previews there are none, and the same file has the same identifier.
    tide_blob_store *store = store_open(false, NULL);
    tide_batch *batch = batch_make();
    found found = {0};
    tide_error error;
    check(!tide_intake_batch(workers, 2, batch, false, visit, &found, &error), "%s", error.message);
    char text[200];
    check(!strcmp(cell_text(batch, 0, "imageThumbnail", text), "absent"), "a preview");
    check(!blob_of(&found, cell_text(batch, 0, "image", text))->is_new, "the same again is new");
    tide_batch_destroy(batch);

    // A cancelled conversion ends all, and a file of its own has no previews where none are wanted.
    check(!tide_batch_create(1000, 1 << 20, &batch), "batch");
    row_add(batch), path_add(batch, "image", "stop.gif");
    check(tide_intake_batch(workers, 2, batch, true, visit, &found, &error) == TIDE_CANCELLED, "%s", error.message);
    tide_batch_destroy(batch);
    tide_blob blob;
    check(!tide_intake_file(workers[0], "a.gif", &blob, NULL, NULL, &error), "%s", error.message);
    check(blob.is_converted && blob.size == made_size, "%llu", (unsigned long long)blob.size);
    store_close(store);
}

/// Where a batch has all the fields that it may have, an asset is stored without its preview.
static void test_no_room_for_previews(void) {
    tide_blob_store *store = store_open(true, "with previews");
    tide_batch *batch;
    check(!tide_batch_create(1000, 1 << 20, &batch), "batch");
    row_add(batch), path_add(batch, "image", "a.gif");
    for (int i = 1; i < TIDE_BATCH_COLUMN_LIMIT; i++) {
        char name[20];
        uint32_t column;
        snprintf(name, sizeof name, "field%d", i);
        check(!tide_batch_column(batch, name, strlen(name), &column, NULL), "%s", name);
    }
    found found = {0};
    tide_error error = {0};
    check(!tide_intake_batch(workers, 2, batch, true, visit, &found, &error), "%s", error.message);
    char text[200];
    check(tide_batch_row_is_live(batch, 0) && blob_of(&found, cell_text(batch, 0, "image", text))->is_converted, "%s", text);
    check(tide_batch_column_count(batch) == TIDE_BATCH_COLUMN_LIMIT, "%u", tide_batch_column_count(batch));
    tide_batch_destroy(batch);
    store_close(store);
}

static uint8_t *file_load(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    check(file, "%s", path);
    uint8_t *bytes = malloc(2 * large_size);
    *length = fread(bytes, 1, 2 * large_size, file);
    fclose(file);
    return bytes;
}

/// A file that is over the size that is held in memory, and that no conversion changes, is stored to the byte.
static void test_large_file(void) {
    tide_blob_store *store = store_open(false, NULL);
    tide_blob blob;
    tide_error error = {0};
    check(!tide_intake_file(workers[0], "whole.gif", &blob, NULL, NULL, &error), "%s", error.message);
    check(!blob.is_converted && blob.is_new && blob.image.media == TIDE_MEDIA_GIF, "%d", blob.image.media);
    char path[300];
    size_t source_length, stored_length;
    snprintf(path, sizeof path, "%s/whole.gif", folder);
    uint8_t *source = file_load(path, &source_length);
    snprintf(path, sizeof path, "%s/store/assets/%.2s/%s", folder, blob.id, blob.id);
    uint8_t *stored = file_load(path, &stored_length);
    check(source_length > large_size && stored_length == source_length && blob.size == source_length, "%zu", stored_length);
    check(memcmp(source, stored, source_length) == 0, "other bytes");
    snprintf(path, sizeof path, "%s/store/assets", folder);
    check(!tide_blob_verify(path, blob.id, &error), "%s", error.message);
    // The same bytes in memory are the same content.
    tide_blob again;
    check(!tide_intake_bytes(workers[0], source, source_length, "whole.gif", &again, &error), "%s", error.message);
    check(strcmp(again.id, blob.id) == 0 && !again.is_new, "%s and %s", blob.id, again.id);
    free(source);
    free(stored);
    store_close(store);
}

int main(void) {
    check(mkdtemp(folder), "%s", folder);
    char path[100];
    snprintf(path, sizeof path, "%s/store", folder);
    check(mkdir(path, 0700) == 0, "%s", path);
    static const char *names[] = {"a", "b", "keep", "bare", "refused", "stop"};
    for (int i = 0; i < 6; i++) {
        char name[20], text[20];
        snprintf(name, sizeof name, "%s.gif", names[i]);
        snprintf(text, sizeof text, "%-8s", names[i]);
        image_write(name, text, 0);
    }
    image_write("large.gif", "large picture that is over the size that is held in memory, again and again and again", large_size);
    image_write("whole.gif", "keep this picture, which is over the size that is held in memory, again and again and again", large_size);
    FILE *file = fopen((snprintf(path, sizeof path, "%s/text.txt", folder), path), "wb");
    check(file && fputs("text", file) >= 0 && fclose(file) == 0, "text");
    test_previews(true);
    test_previews(false);
    test_list_of_previews();
    test_others();
    test_no_room_for_previews();
    test_large_file();
    snprintf(path, sizeof path, "rm -r %s", folder);
    check(system(path) == 0, "%s", path);
    puts("conversion_test: passed");
    return 0;
}

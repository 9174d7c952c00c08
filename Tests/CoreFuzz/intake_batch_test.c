// Goal: a batch names each file's blob in the place of its path, reads each file once, gives assets their previews, and refuses the rows whose
// files are at fault; all else in it stays.
// Method: batches that are compared cell by cell, and a visitor that counts; conversions that make previews, and that end the work.

#include "blob_fixture.h"
#include "tide_text.h"

static const uint8_t gif[] = "GIF89a\3\0\2\0\0\0\0;";

enum { gif_size = sizeof gif - 1, preview_size = gif_size + 1 };

// Batches

static tide_batch *batch_create(void) {
    tide_batch *batch;
    check(tide_batch_create(20000, 1 << 24, &batch) == TIDE_OK, "a batch");
    return batch;
}

static uint32_t row_add(tide_batch *batch) {
    uint32_t row;
    tide_span source;
    check(!tide_batch_text_add(batch, "row", 3, &source) && !tide_batch_row_add(batch, tide_batch_row_count(batch) + 1, source, &row), "a row");
    return row;
}

static uint32_t column_of(tide_batch *batch, const char *name, tide_type type) {
    uint32_t column;
    check(tide_batch_column(batch, name, strlen(name), &column, NULL) == TIDE_OK, "%s", name);
    if (type) tide_batch_column_set_type(batch, column, type);
    return column;
}

/// Sets a cell of the last row. Assets, and lists of them, have the type that their kind of cell asks for.
static void cell_add(tide_batch *batch, const char *name, tide_kind kind, const char *text, size_t length) {
    static const tide_type types[] = {[TIDE_KIND_NULL] = TIDE_TYPE_ASSET, [TIDE_KIND_TEXT] = TIDE_TYPE_STRING, [TIDE_KIND_PATH] = TIDE_TYPE_ASSET,
                                      [TIDE_KIND_PATHS] = TIDE_TYPE_ASSET | TIDE_TYPE_LIST, [TIDE_KIND_CLAIM] = TIDE_TYPE_ASSET};
    tide_span span = {0};
    uint32_t column = column_of(batch, name, types[kind]);
    check(!tide_batch_text_add(batch, text, length, &span), "text");
    check(!tide_batch_row_set(batch, column, (tide_cell){.kind = kind, .offset = span.offset, .length = span.length}), "%s", name);
}

static void path_add(tide_batch *batch, const char *name, const char *path) { cell_add(batch, name, TIDE_KIND_PATH, path, strlen(path)); }

/// What a cell holds: its text, "null" or "" (absent).
static const char *cell_text(const tide_batch *batch, uint32_t row, const char *name) {
    static char shown[4][300];
    static int next;
    char *text = shown[next++ % 4];
    size_t length;
    for (uint32_t column = 0; column < tide_batch_column_count(batch); column++) {
        if (strcmp(tide_batch_column_name(batch, column, &length), name) != 0) continue;
        tide_cell cell = tide_batch_cell(batch, row, column);
        if (cell.kind == TIDE_KIND_NULL) return "null";
        if (cell.kind == TIDE_KIND_ABSENT) return "";
        snprintf(text, sizeof *shown, "%s%.*s", cell.kind == TIDE_KIND_TEXT ? "" : "path ", (int)cell.length, tide_batch_text(batch, cell.offset));
        return text;
    }
    return "no column";
}

static void check_cell(const tide_batch *batch, uint32_t row, const char *name, const char *expected) {
    const char *found = cell_text(batch, row, name);
    check(strcmp(found, expected) == 0, "row %u, %s: '%s', not '%s'", row, name, found, expected);
}

static void check_rejection(const tide_batch *batch, uint32_t index, uint32_t row, const char *field, tide_reject reject, const char *message) {
    check(tide_batch_rejection_count(batch) > index, "%u refusals", tide_batch_rejection_count(batch));
    tide_rejection it = tide_batch_rejection(batch, index);
    check(it.row == row && it.reject == reject && !tide_batch_row_is_live(batch, row), "row %u: %s", it.row, tide_reject_name(it.reject));
    check(it.field.length == strlen(field) && !memcmp(tide_batch_text(batch, it.field.offset), field, it.field.length), "not %s", field);
    const char *text = tide_batch_text(batch, it.message.offset);
    check(it.message.length == strlen(message) && !memcmp(text, message, it.message.length), "%.*s", (int)it.message.length, text);
}

/// The blobs that were visited.
typedef struct visits {
    int blobs, new_blobs, previews, new_previews;
    tide_text ids;
} visits;

static void visit(void *context, const tide_blob *blob) {
    visits *it = context;
    if (blob->is_preview) it->previews++, it->new_previews += blob->is_new;
    else it->blobs++, it->new_blobs += blob->is_new;
    tide_text_format(&it->ids, "%s\n", blob->id);
}

static void batch_ingest(blobs it, tide_batch *batch, bool has_previews, int blobs, int new_blobs, int previews) {
    visits visited = {0};
    tide_error error = {0};
    check(tide_intake_batch(&it.worker, 1, batch, has_previews, visit, &visited, &error) == TIDE_OK, "%s", error.message);
    check(visited.blobs == blobs && visited.new_blobs == new_blobs, "%d blobs, %d new\n%s", visited.blobs, visited.new_blobs, visited.ids.bytes);
    check(visited.previews == previews, "%d previews\n%s", visited.previews, visited.ids.bytes);
    tide_text_free(&visited.ids);
}

// Tests

static void test_paths(void) {
    test_begin();
    file_write(place("files/a"), "a", 1);
    file_write(place("files/b"), "b", 1);
    file_write(place("files/same"), "a", 1);
    blobs it = blobs_open(false);
    char a[TIDE_BLOB_ID_SIZE], b[TIDE_BLOB_ID_SIZE], list[4 * TIDE_BLOB_ID_SIZE];
    blobs dry = blobs_open(true);
    strcpy(a, blob_of(dry, "a", 1).id);
    strcpy(b, blob_of(dry, "b", 1).id);
    blobs_close(dry);

    tide_batch *batch = batch_create();
    row_add(batch), path_add(batch, "one", "a"), cell_add(batch, "title", TIDE_KIND_TEXT, "a", 1);
    row_add(batch), cell_add(batch, "many", TIDE_KIND_PATHS, "a\0b\0a\0", 6);
    row_add(batch), cell_add(batch, "many", TIDE_KIND_PATHS, "b", 1), path_add(batch, "one", "same");
    row_add(batch), cell_add(batch, "many", TIDE_KIND_PATHS, "", 0), cell_add(batch, "one", TIDE_KIND_NULL, "", 0);
    row_add(batch), cell_add(batch, "one", TIDE_KIND_CLAIM, "a", 1);
    row_add(batch);
    // Each path's blob is visited once, and is new at most once.
    batch_ingest(it, batch, false, 3, 2, 0);
    check_cell(batch, 0, "one", a);
    check_cell(batch, 0, "title", "a");
    check_cell(batch, 0, "many", "");
    snprintf(list, sizeof list, "[\"%s\",\"%s\",\"%s\"]", a, b, a);
    check_cell(batch, 1, "many", list);
    snprintf(list, sizeof list, "[\"%s\"]", b);
    check_cell(batch, 2, "many", list);
    check_cell(batch, 2, "one", a);
    check_cell(batch, 3, "many", "[]");
    check_cell(batch, 3, "one", "null");
    check_cell(batch, 4, "one", "path a");
    check(tide_batch_rejection_count(batch) == 0 && tide_batch_column_count(batch) == 3, "%u refusals", tide_batch_rejection_count(batch));

    // Another batch of the run: the file is not read again, and its blob is visited again.
    file_write(place("files/a"), "other", 5);
    tide_batch_reset(batch);
    row_add(batch), path_add(batch, "one", "a");
    batch_ingest(it, batch, false, 1, 0, 0);
    check_cell(batch, 0, "one", a);
    tide_batch_destroy(batch);
    blobs_close(it);
    test_end();
}

static void test_rows_at_fault(void) {
    test_begin();
    file_write(place("files/a"), "a", 1);
    file_write(place("files/b"), "b", 1);
    blobs it = blobs_open(false);
    tide_batch *batch = batch_create();
    row_add(batch), path_add(batch, "one", "missing"), path_add(batch, "two", "a");
    row_add(batch), path_add(batch, "one", "a"), path_add(batch, "two", "missing");
    row_add(batch), cell_add(batch, "many", TIDE_KIND_PATHS, "a\0missing", 9);
    row_add(batch), path_add(batch, "one", "");
    row_add(batch), path_add(batch, "one", "b");
    check(tide_batch_row_reject(batch, 4, "one", 3, TIDE_REJECT_WRONG_TYPE, "a refusal") == TIDE_OK, "a refusal");
    row_add(batch), path_add(batch, "one", "a");
    // The file of a row that was refused before is not read.
    batch_ingest(it, batch, false, 1, 1, 0);
    static const char missing[] = "there is no file 'missing' in the folder of the assets";
    check_rejection(batch, 0, 4, "one", TIDE_REJECT_WRONG_TYPE, "a refusal");
    check_rejection(batch, 1, 0, "one", TIDE_REJECT_ASSET_MISSING, missing);
    check_rejection(batch, 2, 1, "two", TIDE_REJECT_ASSET_MISSING, missing);
    check_rejection(batch, 3, 2, "many", TIDE_REJECT_ASSET_MISSING, missing);
    check_rejection(batch, 4, 3, "one", TIDE_REJECT_ASSET_MISSING, "the path of the asset is empty");
    check(tide_batch_rejection_count(batch) == 5 && tide_batch_row_is_live(batch, 5), "%u refusals", tide_batch_rejection_count(batch));
    check(files_count(place("store")) == 1, "%d files", files_count(place("store")));
    tide_batch_destroy(batch);
    blobs_close(it);
    test_end();
}

/// A row may name 4,096 files. A batch may name more than a run remembers.
static void test_many_paths(void) {
    test_begin();
    file_write(place("files/a"), "a", 1);
    blobs it = blobs_open(false);
    tide_batch *batch = batch_create();
    static char many[2 * 4097 + 1];
    for (int i = 0; i < 4097; i++) many[2 * i] = 'a';
    row_add(batch), cell_add(batch, "many", TIDE_KIND_PATHS, many, 2 * 4096);
    row_add(batch), cell_add(batch, "many", TIDE_KIND_PATHS, many, 2 * 4097);
    row_add(batch), cell_add(batch, "many", TIDE_KIND_PATHS, many, 2 * 4095), path_add(batch, "one", "a");
    batch_ingest(it, batch, false, 1, 1, 0);
    check_rejection(batch, 0, 1, "", TIDE_REJECT_TOO_MANY_ASSETS, "the row names more than 4096 files");
    check(tide_batch_rejection_count(batch) == 1, "%u refusals", tide_batch_rejection_count(batch));
    size_t width = sizeof "\"b5e9c1ad071b3e7fc779cfaa5e523818-1\"" - 1;
    check(tide_batch_cell(batch, 0, 0).length == 4096 * (width + 1) + 1, "%u bytes", tide_batch_cell(batch, 0, 0).length);

    tide_batch_reset(batch);
    enum { count = 17000 };
    for (uint32_t i = 0; i < count; i++) {
        char path[20];
        snprintf(path, sizeof path, i == 16999 ? "a" : "m%u", i);
        row_add(batch), path_add(batch, "one", path);
    }
    batch_ingest(it, batch, false, 1, 0, 0);
    check(tide_batch_rejection_count(batch) == count - 1 && tide_batch_row_is_live(batch, count - 1), "%u", tide_batch_rejection_count(batch));
    for (uint32_t i = 0; i < count - 1; i++) {
        char message[100];
        snprintf(message, sizeof message, "there is no file 'm%u' in the folder of the assets", i);
        check_rejection(batch, i, i, "one", TIDE_REJECT_ASSET_MISSING, message);
    }
    tide_batch_destroy(batch);
    blobs_close(it);
    test_end();
}

/// Makes previews of files with an odd last byte but one, converts all, or ends the work.
static tide_status convert(const void *context, tide_bytes bytes, const tide_image *image, tide_converted *converted, tide_error *error) {
    const bool *is_cancelled = context;
    (void)image;
    if (*is_cancelled) return tide_error_set(error, TIDE_CANCELLED, 0, "the caller has cancelled the work");
    if (!(bytes.memory[11] & 1)) return TIDE_OK;
    converted->preview_length = preview_size;
    converted->preview = malloc(preview_size);
    memcpy(converted->preview, bytes.memory, gif_size - 1);
    memcpy(converted->preview + gif_size - 1, "\0;", 2);
    return TIDE_OK;
}

static void image_write(const char *name, char number) {
    uint8_t bytes[gif_size];
    memcpy(bytes, gif, gif_size);
    bytes[11] = (uint8_t)number;
    file_write(place("files/%s", name), bytes, gif_size);
}

static void test_previews(void) {
    test_begin();
    image_write("with", 1);
    image_write("without", 2);
    bool is_cancelled = false;
    blobs it = blobs_open(false);
    tide_intake_set_conversion(it.worker, (tide_conversion){.convert = convert, .context = &is_cancelled});
    tide_blob blob, preview;
    check(tide_intake_file(it.worker, "with", &blob, &preview, NULL, NULL) == TIDE_OK, "a preview");
    // A name of 246 bytes has room for the suffix, and one of 247 has none.
    char fits[247], long_name[248], previews[256];
    memset(fits, 'f', 246), memset(long_name, 'g', 247);
    fits[246] = long_name[247] = 0;
    snprintf(previews, sizeof previews, "%sThumbnail", fits);

    tide_batch *batch = batch_create();
    row_add(batch), path_add(batch, "image", "with"), path_add(batch, fits, "with"), path_add(batch, long_name, "with");
    row_add(batch), path_add(batch, "image", "without"), path_add(batch, "Thumbnail", "with"), path_add(batch, "imageThumbnailThumbnail", "with");
    row_add(batch), cell_add(batch, "image", TIDE_KIND_NULL, "", 0), cell_add(batch, "images", TIDE_KIND_PATHS, "with", 4);
    row_add(batch), path_add(batch, "image", "with"), path_add(batch, "imageThumbnail", "without");
    row_add(batch), path_add(batch, "image", "with"), cell_add(batch, "imageThumbnail", TIDE_KIND_NULL, "", 0);
    row_add(batch), path_add(batch, "text", "with"), cell_add(batch, "textThumbnail", TIDE_KIND_TEXT, "mine", 4);
    column_of(batch, "newThumbnail", TIDE_TYPE_UNKNOWN);
    row_add(batch), path_add(batch, "new", "with"), cell_add(batch, "title", TIDE_KIND_TEXT, "with", 4);
    row_add(batch), path_add(batch, "image", "missing");
    batch_ingest(it, batch, true, 2, 1, 1);
    check_cell(batch, 0, "image", blob.id);
    check_cell(batch, 0, "imageThumbnail", preview.id);
    check_cell(batch, 0, previews, preview.id);
    check_cell(batch, 0, long_name, blob.id);
    check_cell(batch, 1, "imageThumbnail", "null");
    check_cell(batch, 1, "ThumbnailThumbnail", preview.id);
    check_cell(batch, 1, "imageThumbnailThumbnail", blob.id);
    check_cell(batch, 1, "imageThumbnailThumbnailThumbnail", "no column");
    check_cell(batch, 2, "imageThumbnail", "null");
    check_cell(batch, 2, "imagesThumbnail", "no column");
    check_cell(batch, 3, "imageThumbnail", cell_text(batch, 1, "image"));
    check_cell(batch, 4, "imageThumbnail", "null");
    check_cell(batch, 5, "textThumbnail", "mine");
    check_cell(batch, 6, "newThumbnail", preview.id);
    check_cell(batch, 6, "titleThumbnail", "no column");
    check_cell(batch, 0, "newThumbnail", "");
    check(tide_batch_rejection_count(batch) == 1, "%u refusals", tide_batch_rejection_count(batch));
    check(tide_batch_column_type(batch, column_of(batch, "newThumbnail", TIDE_TYPE_UNKNOWN)) == TIDE_TYPE_ASSET, "the type of a column of previews");

    // Without a field that has room, an asset has no preview.
    tide_batch_reset(batch);
    for (int i = 1; i < TIDE_BATCH_COLUMN_LIMIT; i++) {
        char name[20];
        snprintf(name, sizeof name, "f%d", i);
        column_of(batch, name, TIDE_TYPE_STRING);
    }
    row_add(batch), path_add(batch, "image", "with");
    batch_ingest(it, batch, true, 1, 0, 1);
    check_cell(batch, 0, "image", blob.id);
    check(tide_batch_column_count(batch) == TIDE_BATCH_COLUMN_LIMIT && tide_batch_row_is_live(batch, 0), "%u", tide_batch_column_count(batch));

    // Without previews, no field is added.
    tide_batch_reset(batch);
    row_add(batch), path_add(batch, "image", "with");
    batch_ingest(it, batch, false, 1, 0, 1);
    check_cell(batch, 0, "imageThumbnail", "no column");

    // After work that was cancelled, the files are read again.
    image_write("with", 3);
    is_cancelled = true;
    tide_batch_reset(batch);
    row_add(batch), path_add(batch, "image", "with"), path_add(batch, "other", "without"), path_add(batch, "third", "./with");
    visits visited = {0};
    tide_error error = {0};
    check(tide_intake_batch(&it.worker, 1, batch, true, visit, &visited, &error) == TIDE_CANCELLED && visited.blobs == 0, "%s", error.message);
    check(strcmp(error.message, "the caller has cancelled the work") == 0, "%s", error.message);
    check_cell(batch, 0, "image", "path with");
    is_cancelled = false;
    batch_ingest(it, batch, true, 3, 1, 2);
    check(strcmp(cell_text(batch, 0, "image"), blob.id) != 0 && tide_batch_rejection_count(batch) == 0, "%s", blob.id);
    tide_batch_destroy(batch);
    blobs_close(it);
    test_end();
}

static void test_preview_names(void) {
    static const struct {
        const char *name;
        bool is_field;
    } cases[] = {
        {"imageThumbnail", true},  {"aThumbnail", true},       {"Thumbnail", false},
        {"imagethumbnail", false}, {"imageThumbnails", false}, {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(tide_preview_is_field(cases[i].name, strlen(cases[i].name)) == cases[i].is_field, "%s", cases[i].name);
    }
}

int main(void) {
    test_paths();
    test_rows_at_fault();
    test_many_paths();
    test_previews();
    test_preview_names();
    puts("intake_batch_test: passed");
    return 0;
}

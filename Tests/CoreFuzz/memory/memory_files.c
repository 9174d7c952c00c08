// Uses of what takes in files: blobs, conversions, copies, photos.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "tide_blob.h"
#include "tide_copy.h"
#include "tide_photo.h"
#include "tide_picture.h"

static const char gif_head[] = "GIF89a\1\0\1\0\0\0\0";

static void file_write(const char *name, const void *bytes, size_t length) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", shared_folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) harness_fail("cannot write %s", path);
}

static uint32_t row_add(outcome *out, tide_batch *batch, const char *name) {
    uint32_t row = 0;
    tide_span source;
    if (outcome_note(out, tide_batch_text_add(batch, "row", 3, &source))
        && outcome_note(out, tide_batch_row_add(batch, tide_batch_row_count(batch) + 1, source, &row)) && !out->status) {
        out->status = tide_batch_row_name(batch, row, name, strlen(name), &out->error);
    }
    return row;
}

static void cell_add(outcome *out, tide_batch *batch, const char *column_name, tide_kind kind, const char *text, size_t length) {
    uint32_t column;
    tide_span span = {0};
    if (out->status) return;
    out->status = tide_batch_column(batch, column_name, strlen(column_name), &column, &out->error);
    if (out->status) return;
    tide_batch_column_set_type(batch, column, kind == TIDE_KIND_PATHS ? TIDE_TYPE_ASSET | TIDE_TYPE_LIST : TIDE_TYPE_ASSET);
    if (outcome_note(out, tide_batch_text_add(batch, text, length, &span))) {
        outcome_note(out, tide_batch_row_set(batch, column, (tide_cell){.kind = kind, .offset = span.offset, .length = span.length}));
    }
}

static void visit(void *context, const tide_blob *blob) {
    outcome *out = context;
    outcome_add_text(out, blob->id);
    outcome_add_number(out, (int64_t)blob->size);
    outcome_add_number(out, blob->is_new << 2 | blob->is_converted << 1 | blob->is_preview);
}

static void batch_add(outcome *out, const tide_batch *batch) {
    for (uint32_t row = 0; row < tide_batch_row_count(batch); row++) {
        for (uint32_t column = 0; column < tide_batch_column_count(batch); column++) {
            tide_cell cell = tide_batch_cell(batch, row, column);
            outcome_add_number(out, cell.kind);
            if (cell.kind == TIDE_KIND_INTEGER) outcome_add_number(out, cell.integer);
            if (cell.kind >= TIDE_KIND_TEXT && cell.kind <= TIDE_KIND_CLAIM) {
                outcome_add(out, tide_batch_text(batch, cell.offset), cell.length);
            }
        }
    }
    for (uint32_t i = 0; i < tide_batch_rejection_count(batch); i++) {
        tide_rejection rejection = tide_batch_rejection(batch, i);
        outcome_add_number(out, rejection.reject);
        outcome_add(out, tide_batch_text(batch, rejection.message.offset), rejection.message.length);
    }
}

static const tide_picture_options scaled = {.max_pixel_size = 8, .thumbnail_pixel_size = 4, .quality = 80, .keeps_position = true};

/// Opens a store of blobs with a worker.
static tide_blob_store *store_open(outcome *out, bool dry_run, bool converts, tide_intake **worker) {
    tide_blob_store *store = NULL;
    out->status = tide_blob_store_create(work_folder, dry_run, &store, &out->error);
    if (!out->status) out->status = tide_intake_create(store, shared_folder, worker, &out->error);
    if (!out->status && converts) {
        tide_intake_set_conversion(*worker, (tide_conversion){.convert = tide_picture_convert, .context = &scaled});
    }
    return store;
}

static void batch_take_in(outcome *out, bool dry_run, bool converts) {
    // One worker: the sanitizer asks for memory itself as a thread begins.
    tide_intake *worker = NULL;
    tide_blob_store *store = store_open(out, dry_run, converts, &worker);
    tide_batch *batch = NULL;
    if (!out->status && outcome_note(out, tide_batch_create(100, 1 << 20, &batch))) {
        row_add(out, batch, "one"), cell_add(out, batch, "image", TIDE_KIND_PATH, "colours.jpg", 11);
        row_add(out, batch, "two"), cell_add(out, batch, "images", TIDE_KIND_PATHS, "a.gif\0b.gif", 11);
        row_add(out, batch, "three"), cell_add(out, batch, "image", TIDE_KIND_PATH, "missing.jpg", 11);
        row_add(out, batch, "four"), cell_add(out, batch, "image", TIDE_KIND_PATH, "cut.gif", 7);
        row_add(out, batch, "five"), cell_add(out, batch, "image", TIDE_KIND_PATH, "a.gif", 5);
    }
    if (!out->status) out->status = tide_intake_batch(&worker, 1, batch, converts, visit, out, &out->error);
    if (!out->status) out->status = tide_blob_store_sync(store, &out->error);
    if (!out->status) batch_add(out, batch);
    tide_batch_destroy(batch);
    tide_intake_destroy(worker);
    tide_blob_store_destroy(store);
}

static void batch_use(const use *use, outcome *out) { (void)use, batch_take_in(out, false, false); }
static void scaled_use(const use *use, outcome *out) { (void)use, batch_take_in(out, false, true); }
static void dry_use(const use *use, outcome *out) { (void)use, batch_take_in(out, true, true); }

static void blob_use(const use *use, outcome *out) {
    (void)use;
    tide_intake *worker = NULL;
    tide_blob_store *store = store_open(out, false, false, &worker);
    tide_blob bytes = {0}, file = {0};
    if (!out->status) out->status = tide_intake_bytes(worker, "some content", 12, "bytes", &bytes, &out->error);
    if (!out->status) visit(out, &bytes), out->status = tide_intake_bytes(worker, "some content", 12, "again", &bytes, &out->error);
    if (!out->status) out->status = tide_intake_file(worker, "large.bin", &file, NULL, NULL, &out->error);
    if (!out->status) visit(out, &file), out->status = tide_blob_store_sync(store, &out->error);
    char assets[250];
    snprintf(assets, sizeof assets, "%s/assets", work_folder);
    if (!out->status) out->status = tide_blob_verify(assets, bytes.id, &out->error);
    if (!out->status) out->status = tide_blob_verify(assets, file.id, &out->error);
    char copies[250];
    snprintf(copies, sizeof copies, "%s/copies", work_folder);
    tide_copier *copier = NULL;
    if (!out->status) out->status = tide_copier_create(assets, copies, false, &copier, &out->error);
    const char *ids[] = {bytes.id, file.id, bytes.id};
    for (int i = 0; i < 3 && !out->status; i++) out->status = tide_copier_copy(copier, ids[i], &out->error);
    if (!out->status) out->status = tide_copier_sync(copier, &out->error);
    for (int i = 0; i < 2 && !out->status; i++) out->status = tide_copier_verify(copier, ids[i], &out->error);
    if (!out->status) out->status = tide_folders_exchange(assets, copies, &out->error);
    tide_copier_destroy(copier);
    tide_intake_destroy(worker);
    tide_blob_store_destroy(store);
}

static void photos_take_in(outcome *out, bool converts) {
    tide_intake *worker = NULL;
    tide_blob_store *store = store_open(out, false, converts, &worker);
    const char *paths[] = {"exif.jpg", "cut.gif", "large.bin", "a.gif"};
    bool passed_over[4] = {false};
    tide_batch *batch = NULL;
    if (!out->status && outcome_note(out, tide_batch_create(100, 1 << 20, &batch))) {
        out->status = tide_photos_take_in(&worker, 1, paths, 4, 1, "Photo", converts, batch, passed_over, visit, out, &out->error);
    }
    if (!out->status) {
        batch_add(out, batch);
        outcome_add(out, passed_over, sizeof passed_over);
    }
    tide_batch_destroy(batch);
    tide_intake_destroy(worker);
    tide_blob_store_destroy(store);
}

static void photos_use(const use *use, outcome *out) { (void)use, photos_take_in(out, false); }
static void scaled_photos_use(const use *use, outcome *out) { (void)use, photos_take_in(out, true); }

/// Copies a file into the shared folder, less the fuzzer's first byte if it has one.
static void file_copy(const char *from, const char *name, size_t skipped) {
    uint8_t *bytes = malloc(1 << 20);
    FILE *file = fopen(from, "rb");
    if (!file) harness_fail("cannot read %s: %s", from, strerror(errno));
    size_t length = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    file_write(name, bytes + skipped, length - skipped);
    free(bytes);
}

size_t uses_of_files(use *uses, size_t capacity, const char *corpus, const char *pictures) {
    (void)capacity;
    char path[600];
    uint8_t gif[14];
    memcpy(gif, gif_head, 13);
    gif[13] = ';';
    file_write("a.gif", gif, 14);
    gif[11] = 1;
    file_write("b.gif", gif, 14);
    file_write("cut.gif", gif, 12);
    size_t large = (5 << 20) + 17;
    uint8_t *bytes = malloc(large);
    for (size_t i = 0; i < large; i++) bytes[i] = (uint8_t)(i * 7 + i / 251);
    file_write("large.bin", bytes, large);
    free(bytes);
    snprintf(path, sizeof path, "%s/progressive.jpg", pictures);
    file_copy(path, "colours.jpg", 1);
    snprintf(path, sizeof path, "%s/image/exif.jpg", corpus);
    file_copy(path, "exif.jpg", 0);
    static const use all[] = {
        {.name = "intake", .run = batch_use},      {.name = "intake-scaled", .run = scaled_use},
        {.name = "intake-dry", .run = dry_use}, {.name = "blobs", .run = blob_use},
        {.name = "photos", .run = photos_use},  {.name = "photos-scaled", .run = scaled_photos_use},
    };
    memcpy(uses, all, sizeof all);
    return sizeof all / sizeof *all;
}

// Uses of what reads: manifests, texts of fields, JSON, EXIF, pictures, archives, numbers.

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../manifest_input.h"
#include "memory.h"
#include "tide_archive.h"
#include "tide_exif.h"
#include "tide_image.h"
#include "tide_json_tape.h"
#include "tide_manifest.h"
#include "tide_number.h"
#include "tide_picture.h"

static int descriptor_of(const uint8_t *bytes, size_t length) {
    int descriptor = memfd_create("memory", 0);
    if (descriptor < 0 || write(descriptor, bytes, length) != (ssize_t)length || lseek(descriptor, 0, SEEK_SET) != 0) {
        harness_fail("cannot make a file: %s", strerror(errno));
    }
    return descriptor;
}

/// All that a writer would look at.
static void batch_add(outcome *out, const tide_batch *batch) {
    for (uint32_t row = 0; row < tide_batch_row_count(batch); row++) {
        size_t length;
        bool is_blob;
        const char *key = tide_batch_row_key(batch, row, &length, &is_blob);
        outcome_add(out, key, length);
        outcome_add_number(out, (int64_t)tide_batch_row_digest(batch, row));
        for (uint32_t column = 0; column < tide_batch_column_count(batch); column++) {
            tide_cell cell = tide_batch_cell(batch, row, column);
            outcome_add_number(out, cell.kind);
            if (cell.kind == TIDE_KIND_INTEGER) outcome_add_number(out, cell.integer);
            if (cell.kind == TIDE_KIND_REAL) outcome_add(out, &cell.real, sizeof cell.real);
            if (cell.kind >= TIDE_KIND_TEXT && cell.kind <= TIDE_KIND_CLAIM) {
                outcome_add(out, tide_batch_text(batch, cell.offset), cell.length);
            }
        }
    }
    for (uint32_t column = 0; column < tide_batch_column_count(batch); column++) {
        outcome_add_number(out, tide_batch_column_type(batch, column));
    }
    for (uint32_t i = 0; i < tide_batch_rejection_count(batch); i++) {
        tide_rejection rejection = tide_batch_rejection(batch, i);
        outcome_add_number(out, rejection.reject);
        outcome_add(out, tide_batch_text(batch, rejection.message.offset), rejection.message.length);
        outcome_add(out, tide_batch_text(batch, rejection.source.offset), rejection.source.length);
    }
}

// Manifests

/// Reads a manifest to its end; from a position on, if one is given. The position behind the first batch is noted in `first`.
static void manifest_read(const use *use, outcome *out, uint32_t row_limit, const tide_position *from, tide_position *first) {
    faults_pause();
    int source = descriptor_of(use->bytes + 1, use->length - 1);
    faults_resume();
    tide_manifest_options options = manifest_input_options(use->bytes, use->length);
    tide_manifest *manifest = NULL;
    tide_batch *batch = NULL;
    if (outcome_note(out, tide_batch_create(row_limit, 1 << 20, &batch))) {
        out->status = tide_manifest_create(source, &options, &manifest, &out->error);
    }
    if (!out->status && from) out->status = tide_manifest_resume(manifest, from, &out->error);
    bool is_first = true;
    while (!out->status) {
        tide_status status = tide_manifest_read(manifest, batch, &out->error);
        if (status != TIDE_END && status) out->status = status;
        if (out->status) break;
        tide_batch_digest(batch, 1);
        batch_add(out, batch);
        tide_position position = tide_manifest_position(manifest);
        outcome_add(out, position.digest, sizeof position.digest);
        outcome_add_number(out, (int64_t)position.offset);
        if (first && is_first) *first = position;
        is_first = false;
        tide_batch_reset(batch);
        if (status == TIDE_END) break;
    }
    if (!out->status) {
        const char *field;
        for (uint32_t i = 0; (field = tide_manifest_local_time_field(manifest, i)); i++) outcome_add_text(out, field);
        outcome_add_number(out, tide_manifest_mapping_occurred(manifest, 0));
    }
    // A source that is refused by itself is no failure of this use.
    if (out->status == TIDE_REJECTED) {
        outcome_add_number(out, out->error.reject);
        outcome_add_text(out, out->error.message);
        out->status = TIDE_OK;
    }
    tide_manifest_destroy(manifest);
    tide_batch_destroy(batch);
    close(source);
}

static void manifest_use(const use *use, outcome *out) { manifest_read(use, out, manifest_input_row_limit(use->bytes), NULL, NULL); }

static void manifest_resume_use(const use *use, outcome *out) {
    tide_position position = {0};
    manifest_read(use, out, 1, NULL, &position);
    // What is refused has no rest.
    bool is_refused = out->error.status == TIDE_REJECTED;
    if (!out->status && !is_refused) manifest_read(use, out, 1000, &position, NULL);
}

static void texts_use(const use *use, outcome *out) {
    (void)use;
    tide_manifest_options options = {.type_name = "T", .fields = manifest_input_fields, .field_count = MANIFEST_INPUT_FIELD_COUNT};
    const tide_field_text texts[] = {
        {"i", "42", 2}, {"d", "1.5", 3}, {"t", "2024-05-06T07:08:09Z", 20}, {"b", "aGVsbG8=", 8},
        {"p", "{\"latitude\": 1.5, \"longitude\": 2}", 33}, {"r", "home", 4}, {"a", "x.jpg", 5}, {"l", "[\"a\", \"b\"]", 10},
        {"free", "text", 4}, {"none", NULL, 0},
    };
    tide_batch *batch = NULL;
    if (outcome_note(out, tide_batch_create(10, 1 << 16, &batch))) {
        out->status = tide_texts_read(&options, texts, sizeof texts / sizeof *texts, batch, &out->error);
    }
    if (!out->status) {
        tide_batch_digest(batch, 7);
        batch_add(out, batch);
    }
    tide_batch_destroy(batch);
}

static void names_use(const use *use, outcome *out) {
    (void)use;
    char name[36];
    if (outcome_note(out, tide_name_derive("content", 7, name))) outcome_add(out, name, sizeof name);
}

// JSON

static uint32_t node_add(outcome *out, const tide_json_node *nodes, uint32_t index) {
    const tide_json_node *node = &nodes[index];
    outcome_add_number(out, node->kind);
    if (node->kind == TIDE_JSON_STRING || node->kind == TIDE_JSON_NAME) outcome_add(out, node->text, node->length);
    if (node->kind == TIDE_JSON_INTEGER) outcome_add_number(out, node->integer);
    if (node->kind == TIDE_JSON_NUMBER) outcome_add(out, &node->number, sizeof node->number);
    uint32_t child = index + 1;
    while (child < node->next) child = node_add(out, nodes, child);
    return node->next;
}

static void json_use(const use *use, outcome *out) {
    tide_json_tape *tape = NULL;
    tide_json_fault fault = tide_json_tape_create((const char *)use->bytes, use->length, 32, 10000, &tape);
    if (fault == TIDE_JSON_NO_MEMORY) outcome_note(out, TIDE_NO_MEMORY);
    outcome_add_number(out, fault);
    if (tape) node_add(out, tide_json_tape_root(tape), 0);
    tide_json_tape_destroy(tape);
}

// Images

static void exif_add(outcome *out, const tide_exif *exif) {
    outcome_add_number(out, exif->time);
    outcome_add(out, &exif->latitude, sizeof exif->latitude);
    outcome_add(out, &exif->longitude, sizeof exif->longitude);
    outcome_add_number(out, exif->offset);
    outcome_add_number(out, exif->has_time << 2 | exif->has_offset << 1 | exif->has_position);
    outcome_add_number(out, exif->orientation);
}

static void image_use(const use *use, outcome *out) {
    tide_image image;
    tide_bytes bytes = {.memory = use->bytes, .descriptor = -1, .size = use->length};
    tide_status status = tide_image_probe(bytes, &image, &out->error);
    if (status == TIDE_REJECTED) outcome_add_text(out, out->error.message);
    else if (!outcome_note(out, status)) return;
    outcome_add_number(out, image.media);
    outcome_add_number(out, (int64_t)image.width << 32 | image.height);
    if (!image.exif_length) return;
    tide_exif exif;
    if (!outcome_note(out, tide_exif_read(use->bytes + image.exif_offset, image.exif_length, &exif))) return;
    exif_add(out, &exif);
    uint8_t block[TIDE_EXIF_WRITE_SIZE];
    outcome_add(out, block, tide_exif_write(&exif, block));
}

static void picture_use(const use *use, outcome *out) {
    // The first byte is the fuzzer's.
    tide_bytes bytes = {.memory = use->bytes + 1, .descriptor = -1, .size = use->length - 1};
    for (int kind = 0; kind < 3 && !out->status; kind++) {
        tide_picture_options options = {
            .max_pixel_size = kind == 0 ? 7 : 0, .thumbnail_pixel_size = kind == 1 ? 0 : 5, .quality = 80, .keeps_position = true,
            .thumbnail_only = kind == 2};
        tide_picture picture;
        out->status = tide_picture_create(bytes, &options, &picture, &out->error);
        if (out->status == TIDE_REJECTED) {
            outcome_add_text(out, out->error.message);
            out->status = TIDE_OK;
        } else if (!out->status) {
            outcome_add(out, picture.image.bytes, picture.image.length);
            outcome_add(out, picture.thumbnail.bytes, picture.thumbnail.length);
            outcome_add_number(out, (int64_t)picture.width << 32 | picture.height);
            exif_add(out, &picture.exif);
            tide_picture_destroy(&picture);
        } else if (picture.image.bytes || picture.thumbnail.bytes) {
            harness_fail("a picture is there after a failure");
        }
    }
}

// Archives

static uint8_t *archive_bytes;
static size_t archive_length;

/// A zip archive of three files, one of which is compressed, and one has a name that is not ASCII.
static void archive_make(void) {
    if (archive_bytes) return;
    archive_bytes = malloc(1 << 16);
    struct archive *archive = archive_write_new();
    archive_write_set_format_zip(archive);
    archive_write_open_memory(archive, archive_bytes, 1 << 16, &archive_length);
    static const char *names[] = {"plain.txt", "folder/inner/text.txt", "folder/caf\xc3\xa9.txt"};
    for (int i = 0; i < 3; i++) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname_utf8(entry, names[i]);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0600);
        archive_entry_set_mtime(entry, 1700000000, 0);
        archive_entry_set_size(entry, 3000);
        archive_write_header(archive, entry);
        char text[3001];
        for (int at = 0; at < 3000; at++) text[at] = (char)('a' + at * (i + 1) % 23);
        archive_write_data(archive, text, 3000);
        archive_entry_free(entry);
    }
    archive_write_close(archive);
    archive_write_free(archive);
}

static void archive_use(const use *use, outcome *out) {
    (void)use;
    faults_pause();
    int source = descriptor_of(archive_bytes, archive_length);
    int folder = open(work_folder, O_RDONLY | O_DIRECTORY);
    faults_resume();
    uint64_t files;
    out->status = tide_archive_unpack(source, folder, &files, &out->error);
    close(source);
    if (!out->status) {
        outcome_add_number(out, (int64_t)files);
        static const char *names[] = {"plain.txt", "folder/inner/text.txt", "folder/caf\xc3\xa9.txt"};
        for (int i = 0; i < 3; i++) {
            uint8_t bytes[4000];
            int file = openat(folder, names[i], O_RDONLY);
            if (file < 0) harness_fail("%s is missing", names[i]);
            ssize_t length = read(file, bytes, sizeof bytes);
            outcome_add(out, bytes, (size_t)length);
            close(file);
        }
    }
    close(folder);
}

static void number_use(const use *use, outcome *out) {
    (void)use;
    double value = 0;
    outcome_add_number(out, tide_number_parse("-1.25e3", 7, &value));
    outcome_add(out, &value, sizeof value);
}

// All

static size_t uses_of_folder(use *uses, size_t capacity, const char *kind, const char *folder, void (*run)(const use *, outcome *)) {
    DIR *open_folder = opendir(folder);
    if (!open_folder) harness_fail("cannot read %s: %s", folder, strerror(errno));
    char names[100][100];
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(open_folder)) && count < 100;) {
        if (entry->d_name[0] != '.') snprintf(names[count++], 100, "%.99s", entry->d_name);
    }
    closedir(open_folder);
    qsort(names, count, sizeof *names, (int (*)(const void *, const void *))strcmp);
    size_t used = 0;
    for (size_t i = 0; i < count && used < capacity; i++) {
        char path[600], name[200];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        snprintf(name, sizeof name, "%s:%s", kind, names[i]);
        FILE *file = fopen(path, "rb");
        uint8_t *bytes = malloc(1 << 20);
        size_t length = file ? fread(bytes, 1, 1 << 20, file) : 0;
        if (file) fclose(file);
        uint8_t *exact = malloc(length ? length : 1);
        memcpy(exact, bytes, length);
        free(bytes);
        if (length > 1) uses[used++] = (use){.name = strdup(name), .run = run, .path = strdup(path), .bytes = exact, .length = length};
    }
    return used;
}

size_t uses_of_readers(use *uses, size_t capacity, const char *corpus, const char *pictures) {
    char folder[600];
    archive_make();
    // What libcrypto makes once for the process is its own, and leaks if it fails.
    char name[36];
    if (tide_name_derive("content", 7, name)) harness_fail("cannot derive a name");
    size_t count = 0;
    uses[count++] = (use){.name = "archive", .run = archive_use};
    uses[count++] = (use){.name = "texts", .run = texts_use};
    uses[count++] = (use){.name = "derived-name", .run = names_use};
    uses[count++] = (use){.name = "number", .run = number_use};
    snprintf(folder, sizeof folder, "%s/manifest", corpus);
    count += uses_of_folder(uses + count, capacity - count, "manifest", folder, manifest_use);
    size_t resumed = uses_of_folder(uses + count, capacity - count, "resumed", folder, manifest_resume_use);
    count += resumed;
    snprintf(folder, sizeof folder, "%s/json", corpus);
    count += uses_of_folder(uses + count, capacity - count, "json", folder, json_use);
    snprintf(folder, sizeof folder, "%s/image", corpus);
    count += uses_of_folder(uses + count, capacity - count, "image", folder, image_use);
    count += uses_of_folder(uses + count, capacity - count, "picture", pictures, picture_use);
    return count;
}

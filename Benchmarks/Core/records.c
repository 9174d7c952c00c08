/// Records without pictures, from memory through batches into a store: insert, the same again, the same with other captions.
///
/// The records are made, with names as the text that a manifest has, and their memory touched, before the clock starts. Filling
/// batches counts. The clock stops when everything is durable and the WAL is empty.

#include "store.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH = 36, BATCH_BYTES = 12 << 20 };

typedef struct source {
    floor_journal journal;
    char (*names)[NAME_LENGTH];
} source;

static source source_make(const floor_options *options, bool other_captions) {
    source made = {.journal = floor_journal_make(options, other_captions)};
    made.names = floor_allocate_touched(made.journal.count * NAME_LENGTH);
    for (uint64_t index = 0; index < made.journal.count; index++) {
        tide_name_decode(made.journal.rows[index].name, sizeof(made.journal.rows[index].name), made.names[index]);
    }
    return made;
}

static void source_free(source *source) {
    floor_journal_free(&source->journal);
    free(source->names);
}

static tide_cell text_cell(tide_batch *batch, const char *text, uint32_t length) {
    tide_span span;
    if (tide_batch_text_add(batch, text, length, &span) != TIDE_OK) floor_fail(0, "a batch can't hold its text");
    return (tide_cell){.kind = TIDE_KIND_TEXT, .length = span.length, .offset = span.offset};
}

static void add_row(tide_batch *batch, const source *source, uint64_t index) {
    const floor_row *row = &source->journal.rows[index];
    uint32_t place;
    tide_error error = {0};
    core_check(tide_batch_row_add(batch, index + 1, (tide_span){0}, &place), &error);
    core_check(tide_batch_row_name(batch, place, source->names[index], NAME_LENGTH, &error), &error);
    const tide_cell cells[CORE_FIELD_COUNT] = {
        // The store's times are in microseconds.
        {.kind = TIDE_KIND_INTEGER, .integer = row->created_at * 1000},
        text_cell(batch, row->caption, row->caption_length),
        text_cell(batch, row->details, row->details_length),
        {.kind = TIDE_KIND_INTEGER, .integer = row->rating},
        {.kind = TIDE_KIND_REAL, .real = row->elevation},
    };
    for (uint32_t column = 0; column < CORE_FIELD_COUNT; column++) {
        core_check(tide_batch_row_set(batch, column, cells[column]), &error);
    }
}

static uint64_t fill(tide_batch *batch, const source *source, uint64_t index) {
    tide_batch_reset(batch);
    for (uint32_t field = 0; field < CORE_FIELD_COUNT; field++) {
        const char *name = core_fields[field].name;
        uint32_t column;
        tide_error error;
        core_check(tide_batch_column(batch, name, strlen(name), &column, &error), &error);
        tide_batch_column_set_type(batch, column, core_fields[field].type);
    }
    while (index < source->journal.count && !tide_batch_is_full(batch)) add_row(batch, source, index++);
    return index;
}

static tide_counts write_all(core_store *store, const floor_options *options, const source *source) {
    tide_batch *batch;
    tide_counts counts = {0};
    if (tide_batch_create((uint32_t)options->batch, BATCH_BYTES, &batch) != TIDE_OK) floor_fail(0, "no memory for a batch");
    for (uint64_t index = 0; index < source->journal.count;) {
        index = fill(batch, source, index);
        core_store_write(store, batch, index == source->journal.count, &counts);
        if (tide_batch_rejection_count(batch) != 0) floor_fail(0, "the core refuses a record");
    }
    tide_batch_destroy(batch);
    return counts;
}

/// Opens a store that holds the journal, after filling it where it is fresh.
static void open_filled(core_store *store, const floor_options *options) {
    core_store_open(store, options);
    if (!store->is_fresh) return;
    source source = source_make(options, false);
    write_all(store, options, &source);
    core_store_checkpoint(store);
    source_free(&source);
}

/// Measures one way of writing all records, which must come out as `expected`.
static void measure(const char *name, core_store *store, const floor_options *options, bool other_captions, tide_counts expected) {
    source source = source_make(options, other_captions);
    double start = floor_clock();
    tide_counts counts = write_all(store, options, &source);
    core_store_checkpoint(store);
    double seconds = floor_clock() - start;
    bool same = counts.inserted == expected.inserted && counts.updated == expected.updated;
    if (!same || counts.unchanged != expected.unchanged) {
        floor_fail(0, "%s: %llu new, %llu updated, %llu unchanged", name, (unsigned long long)counts.inserted,
                   (unsigned long long)counts.updated, (unsigned long long)counts.unchanged);
    }
    core_store_close(store);
    floor_report(name, seconds, source.journal.count, source.journal.bytes);
    source_free(&source);
}

void core_insert(const floor_options *options) {
    core_store store;
    core_store_open(&store, options);
    if (!store.is_fresh) floor_fail(0, "%s is not a fresh database", options->path);
    core_store_checkpoint(&store);
    measure("insert", &store, options, false, (tide_counts){.inserted = options->records});
}

void core_unchanged(const floor_options *options) {
    core_store store;
    open_filled(&store, options);
    measure("unchanged", &store, options, false, (tide_counts){.unchanged = options->records});
}

void core_update_one_field(const floor_options *options) {
    core_store store;
    open_filled(&store, options);
    measure("update-one-field", &store, options, true, (tide_counts){.updated = options->records});
}

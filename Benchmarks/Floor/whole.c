/// The whole job in plain C: JSON Lines and pictures into a durable store, on two threads.
///
/// The reader parses, takes in the pictures of a batch, makes them durable with one `syncfs`, puts the batch in order of its
/// names; the writer inserts it with one row of history in one transaction. So no committed row names a picture that a power cut
/// could take. Batches go round in a ring, whose memory is used again.

#define _GNU_SOURCE
#include "database.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RING = 3, TEXT_BYTES_A_ROW = 1400, TEXT_BYTES_MIN = 1 << 20 };

typedef struct sort_key {
    uint64_t prefix;
    uint32_t row;
} sort_key;

typedef struct batch {
    floor_row *rows;
    sort_key *order;
    size_t count;
    char *texts;
    size_t text_length;
} batch;

typedef struct pipeline {
    const floor_options *options;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    batch ring[RING];
    size_t text_capacity;
    /// Batches handed over by the reader, and given back by the writer. Guarded by the mutex, as is `ended`.
    uint64_t filled, emptied;
    bool ended;
    // The reader's own from here on.
    int source;
    floor_place place;
    floor_buffer buffer;
    uint64_t pictures, bytes;
} pipeline;

// MARK: - Reader

static void wait_for_free_batch(pipeline *pipeline) {
    pthread_mutex_lock(&pipeline->mutex);
    while (pipeline->filled - pipeline->emptied == RING) pthread_cond_wait(&pipeline->moved, &pipeline->mutex);
    pthread_mutex_unlock(&pipeline->mutex);
    batch *batch = &pipeline->ring[pipeline->filled % RING];
    batch->count = batch->text_length = 0;
}

static int compare_keys(const void *first, const void *second) {
    uint64_t left = ((const sort_key *)first)->prefix, right = ((const sort_key *)second)->prefix;
    return (left > right) - (left < right);
}

/// Orders by the first eight bytes of the names: enough to visit the index's pages one after the other.
static void sort_batch(batch *batch) {
    for (size_t index = 0; index < batch->count; index++) {
        uint64_t prefix;
        memcpy(&prefix, batch->rows[index].name, sizeof(prefix));
        batch->order[index] = (sort_key){.prefix = __builtin_bswap64(prefix), .row = (uint32_t)index};
    }
    qsort(batch->order, batch->count, sizeof(sort_key), compare_keys);
}

static void take_in_pictures(pipeline *pipeline, batch *batch) {
    bool any = false;
    for (size_t index = 0; index < batch->count; index++) {
        floor_row *row = &batch->rows[index];
        if (row->image == NULL) continue;
        floor_read_file(pipeline->source, row->image, &pipeline->buffer);
        floor_hash_buffer(&pipeline->buffer, row->asset);
        row->asset_size = pipeline->buffer.length;
        floor_take_in(&pipeline->place, pipeline->pictures++, &pipeline->buffer, row->asset);
        pipeline->bytes += row->asset_size;
        any = true;
    }
    if (any) floor_place_synchronize(&pipeline->place);
}

static void hand_over(pipeline *pipeline) {
    batch *batch = &pipeline->ring[pipeline->filled % RING];
    if (batch->count == 0) return;
    sort_batch(batch);
    take_in_pictures(pipeline, batch);
    pthread_mutex_lock(&pipeline->mutex);
    pipeline->filled++;
    pthread_cond_signal(&pipeline->moved);
    pthread_mutex_unlock(&pipeline->mutex);
}

static char *keep_text(batch *batch, const char *text, size_t length) {
    char *kept = batch->texts + batch->text_length;
    memcpy(kept, text, length);
    batch->text_length += length;
    return kept;
}

static void receive_row(void *context, const floor_row *row) {
    pipeline *pipeline = context;
    batch *batch = &pipeline->ring[pipeline->filled % RING];
    size_t needed = (size_t)row->caption_length + row->details_length + row->image_length + 1;
    if (needed > pipeline->text_capacity) floor_fail(0, "a record of %zu bytes is too large", needed);
    if (batch->count == pipeline->options->batch || batch->text_length + needed > pipeline->text_capacity) {
        hand_over(pipeline);
        wait_for_free_batch(pipeline);
        batch = &pipeline->ring[pipeline->filled % RING];
    }
    floor_row *kept = &batch->rows[batch->count++];
    *kept = *row;
    kept->caption = keep_text(batch, row->caption, row->caption_length);
    kept->details = keep_text(batch, row->details, row->details_length);
    if (row->image != NULL) {
        kept->image = keep_text(batch, row->image, row->image_length);
        keep_text(batch, "", 1);
    }
}

static void *read_all(void *argument) {
    pipeline *pipeline = argument;
    wait_for_free_batch(pipeline);
    pipeline->bytes += floor_read_manifest(pipeline->options->source, receive_row, pipeline);
    hand_over(pipeline);
    pthread_mutex_lock(&pipeline->mutex);
    pipeline->ended = true;
    pthread_cond_signal(&pipeline->moved);
    pthread_mutex_unlock(&pipeline->mutex);
    return NULL;
}

// MARK: - Writer

/// Inserts a batch and the range of row ids that its history is, in one transaction.
static void write_batch(sqlite3 *database, sqlite3_stmt *insert, sqlite3_stmt *history, const batch *batch,
                        const floor_options *options) {
    database_execute(database, "BEGIN IMMEDIATE");
    int64_t first = 0, last = 0;
    for (size_t index = 0; index < batch->count; index++) {
        database_bind(database, insert, &batch->rows[options->sorted ? batch->order[index].row : index]);
        database_run(database, insert);
        last = sqlite3_last_insert_rowid(database);
        if (index == 0) first = last;
    }
    database_check(database, sqlite3_bind_int64(history, 1, first));
    database_check(database, sqlite3_bind_int64(history, 2, last));
    database_run(database, history);
    database_commit(database, options);
}

static uint64_t write_all(pipeline *pipeline, sqlite3 *database) {
    sqlite3_stmt *insert = database_prepare(database, database_insert);
    sqlite3_stmt *history = database_prepare(
        database, "INSERT INTO tide_history(at, author, kind, firstRow, lastRow) VALUES(unixepoch(), 'import', 'insert', ?, ?)");
    uint64_t rows = 0;
    for (;;) {
        pthread_mutex_lock(&pipeline->mutex);
        while (pipeline->filled == pipeline->emptied && !pipeline->ended) pthread_cond_wait(&pipeline->moved, &pipeline->mutex);
        bool finished = pipeline->filled == pipeline->emptied;
        pthread_mutex_unlock(&pipeline->mutex);
        if (finished) break;
        const batch *batch = &pipeline->ring[pipeline->emptied % RING];
        write_batch(database, insert, history, batch, pipeline->options);
        rows += batch->count;
        pthread_mutex_lock(&pipeline->mutex);
        pipeline->emptied++;
        pthread_cond_signal(&pipeline->moved);
        pthread_mutex_unlock(&pipeline->mutex);
    }
    sqlite3_finalize(insert);
    sqlite3_finalize(history);
    return rows;
}

void floor_whole(const floor_options *options) {
    double start = floor_clock();
    static pipeline pipeline = {.mutex = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    char path[4096];
    pipeline.options = options;
    pipeline.text_capacity = options->batch * TEXT_BYTES_A_ROW + TEXT_BYTES_MIN;
    for (int index = 0; index < RING; index++) {
        pipeline.ring[index].rows = floor_allocate(options->batch * sizeof(floor_row));
        pipeline.ring[index].order = floor_allocate(options->batch * sizeof(sort_key));
        pipeline.ring[index].texts = floor_allocate(pipeline.text_capacity);
    }
    pipeline.place = floor_place_open(options->path, options->direct);
    snprintf(path, sizeof(path), "%s", options->source);
    pipeline.source = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (pipeline.source < 0) floor_fail(errno, "%s", path);

    pthread_t reader;
    int code = pthread_create(&reader, NULL, read_all, &pipeline);
    if (code != 0) floor_fail(code, "pthread_create");
    snprintf(path, sizeof(path), "%s/private.sqlite", options->path);
    sqlite3 *database = database_open(options, path);
    database_execute(database, database_table);
    database_execute(database, "CREATE TABLE tide_history(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, author TEXT NOT NULL,"
                               " kind TEXT NOT NULL, firstRow INTEGER NOT NULL, lastRow INTEGER NOT NULL)");
    uint64_t rows = write_all(&pipeline, database);
    pthread_join(reader, NULL);
    database_checkpoint(database);
    database_check(database, sqlite3_close(database));
    floor_report("whole", floor_clock() - start, rows, pipeline.bytes);
}

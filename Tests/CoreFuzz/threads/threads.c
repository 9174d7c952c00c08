// Goal: what several threads may use at once is safe: a store of blobs, copies, the lock, readers beside a writer and checkpoints, pictures.
// Method: threads do the same at once under the thread sanitizer, which ends the program at the first race; what they have made is compared.

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "../blob_fixture.h"
#include "../picture_making.h"
#include "../store_fixture.h"
#include "tide_copy.h"
#include "tide_lock.h"
#include "tide_log.h"
#include "tide_picture.h"
#include "tide_reader_vfs.h"

enum { thread_count = 4 };

typedef struct work {
    void (*run)(void *context, int thread);
    void *context;
    int thread;
} work;

static void *work_run(void *context) {
    work *it = context;
    it->run(it->context, it->thread);
    return NULL;
}

/// Runs a function on several threads at once, each with its number.
static void together(void (*run)(void *context, int thread), void *context) {
    pthread_t threads[thread_count];
    work works[thread_count];
    for (int i = 0; i < thread_count; i++) {
        works[i] = (work){run, context, i};
        check(pthread_create(&threads[i], NULL, work_run, &works[i]) == 0, "a thread");
    }
    for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
}

// Blobs

enum { content_count = 60, large_content = 300000 };

typedef struct contents {
    tide_blob_store *store;
    char files[200];
    uint8_t *bytes[content_count];
    size_t lengths[content_count];
    char ids[content_count][TIDE_BLOB_ID_SIZE];
    atomic_int new_count, visited;
} contents;

/// Each thread has an intake of its own, and ingests all contents in an order of its own.
static void contents_ingest(void *context, int thread) {
    contents *it = context;
    tide_intake *intake;
    tide_error error;
    check(tide_intake_create(it->store, it->files, &intake, &error) == TIDE_OK, "%s", error.message);
    for (int i = 0; i < content_count; i++) {
        int content = (i * 7 + thread * 13) % content_count;
        tide_blob blob;
        check(tide_intake_bytes(intake, it->bytes[content], it->lengths[content], "bytes", &blob, &error) == TIDE_OK, "%s", error.message);
        if (blob.is_new) {
            atomic_fetch_add(&it->new_count, 1);
            snprintf(it->ids[content], sizeof it->ids[content], "%s", blob.id);
        }
        if (i % 9 == 0) check(tide_blob_store_sync(it->store, &error) == TIDE_OK, "%s", error.message);
    }
    tide_intake_destroy(intake);
}

static void blob_visit(void *context, const tide_blob *blob) {
    contents *it = context;
    (void)blob;
    atomic_fetch_add(&it->visited, 1);
}

/// A batch names files, which the workers of a pool read.
static void pool_ingest(contents *it) {
    tide_intake *workers[3];
    tide_error error;
    tide_batch *batch;
    for (int i = 0; i < 3; i++) check(tide_intake_create(it->store, it->files, &workers[i], &error) == TIDE_OK, "%s", error.message);
    check(tide_batch_create(1000, 1 << 20, &batch) == TIDE_OK, "a batch");
    for (int i = 0; i < 40; i++) {
        char name[20];
        uint32_t row, column;
        tide_span span;
        snprintf(name, sizeof name, "%d.bin", i % 25);
        file_write(place("files/%s", name), it->bytes[i % 25], it->lengths[i % 25] / 2);
        check(tide_batch_row_add(batch, (uint64_t)i + 1, (tide_span){0}, &row) == TIDE_OK, "a row");
        check(tide_batch_row_name(batch, row, name, strlen(name), &error) == TIDE_OK, "%s", error.message);
        check(tide_batch_column(batch, "photo", 5, &column, &error) == TIDE_OK, "%s", error.message);
        check(tide_batch_text_add(batch, name, strlen(name), &span) == TIDE_OK, "a text");
        tide_cell cell = {.kind = TIDE_KIND_PATH, .length = span.length};
        cell.offset = span.offset;
        check(tide_batch_row_set(batch, column, cell) == TIDE_OK, "a value");
    }
    check(tide_intake_batch(workers, 3, batch, false, blob_visit, it, &error) == TIDE_OK, "%s", error.message);
    check(tide_batch_live_count(batch) == 40 && atomic_load(&it->visited) == 25, "%d", atomic_load(&it->visited));
    tide_batch_destroy(batch);
    for (int i = 0; i < 3; i++) tide_intake_destroy(workers[i]);
}

/// A piece of work that fails from the 300th on.
static tide_status piece_run(void *context, uint32_t worker, uint32_t index, tide_error *error) {
    (void)worker;
    atomic_fetch_add((atomic_int *)context, 1);
    return index < 300 ? TIDE_OK : tide_error_set(error, TIDE_IO_ERROR, 5, "piece %u", index);
}

/// The pool of an intake ends with the error of a piece, and soon.
static void test_pool(void) {
    atomic_int done = 0;
    tide_error error;
    check(tide_intake_run(thread_count, 100000, piece_run, &done, &error) == TIDE_IO_ERROR, "%d pieces", atomic_load(&done));
    check(strncmp(error.message, "piece 3", 7) == 0 && atomic_load(&done) < 300 + 2 * thread_count, "%s, %d", error.message, atomic_load(&done));
}

typedef struct folders {
    char from[200], to[200];
    contents *contents;
} folders;

/// Each thread has a copier of its own, and copies its share of the contents.
static void contents_copy(void *context, int thread) {
    folders *it = context;
    tide_copier *copier;
    tide_error error;
    check(tide_copier_create(it->from, it->to, thread % 2, &copier, &error) == TIDE_OK, "%s", error.message);
    for (int i = thread; i < content_count; i += thread_count) {
        const char *id = it->contents->ids[i];
        check(tide_copier_copy(copier, id, &error) == TIDE_OK, "%s: %s", id, error.message);
    }
    check(tide_copier_sync(copier, &error) == TIDE_OK, "%s", error.message);
    tide_copier_destroy(copier);
}

static void test_blobs(void) {
    test_begin();
    contents it = {0};
    tide_error error;
    snprintf(it.files, sizeof it.files, "%s", place("files"));
    for (int i = 0; i < content_count; i++) {
        it.lengths[i] = i % 10 ? (size_t)i * 50 + 2 : large_content + (size_t)i;
        it.bytes[i] = bytes_make(it.lengths[i], (uint64_t)i + 1);
    }
    check(tide_blob_store_create(place("store"), false, &it.store, &error) == TIDE_OK, "%s", error.message);
    together(contents_ingest, &it);
    check(atomic_load(&it.new_count) == content_count, "%d contents are new", atomic_load(&it.new_count));
    folders folders = {.contents = &it};
    snprintf(folders.from, sizeof folders.from, "%s", place("store/assets"));
    snprintf(folders.to, sizeof folders.to, "%s", place("copy"));
    check(files_count(folders.from) == content_count, "%d files", files_count(folders.from));
    together(contents_copy, &folders);
    check(files_count(folders.to) == content_count, "%d copies", files_count(folders.to));
    for (int i = 0; i < content_count; i++) {
        check(tide_blob_verify(folders.to, it.ids[i], &error) == TIDE_OK, "%s: %s", it.ids[i], error.message);
    }
    pool_ingest(&it);
    tide_blob_store_destroy(it.store);
    for (int i = 0; i < content_count; i++) free(it.bytes[i]);
    test_end();
}

// A store

enum { commit_rows = 10, read_count = 40 };

typedef struct shared_store {
    store store;
    char lock[100];
    int commits;
    /// Reads that were done.
    atomic_int reads;
    atomic_bool is_over;
} shared_store;

static void lock_take(tide_lock *lock) {
    tide_error error;
    check(tide_lock_acquire(lock, false, 60000, &error) == TIDE_OK, "%s", error.message);
}

static void store_write(shared_store *it, tide_lock *lock) {
    while (it->commits < 60 || atomic_load(&it->reads) < read_count) {
        char text[2000];
        size_t length = 0;
        for (int row = 0; row < commit_rows; row++) {
            int number = it->commits * commit_rows + row;
            length += (size_t)snprintf(text + length, sizeof text - length, "place %d|caption='c %d|rating=#1\n", number, row);
        }
        lock_take(lock);
        store_execute(&it->store, "BEGIN IMMEDIATE");
        store_apply(&it->store, text);
        store_execute(&it->store, "COMMIT");
        tide_lock_release(lock);
        it->commits++;
    }
    atomic_store(&it->is_over, true);
}

static void store_checkpoint(shared_store *it, tide_lock *lock) {
    sqlite3 *connection;
    tide_error error;
    check(sqlite3_open(it->store.path, &connection) == SQLITE_OK && tide_connection_prepare(connection, &error) == TIDE_OK, "a connection");
    sqlite3_busy_timeout(connection, 60000);
    for (int i = 0; !atomic_load(&it->is_over); i++) {
        int32_t remaining;
        lock_take(lock);
        check(tide_connection_checkpoint(connection, i % 2, &remaining, &error) == TIDE_OK, "%s", error.message);
        tide_lock_release(lock);
        tide_log_state state;
        check(tide_log_examine(it->store.path, &state, &error) == TIDE_OK && !tide_log_has_loss(&state), "%s", error.message);
    }
    check(sqlite3_close(connection) == SQLITE_OK, "a statement is left");
}

/// Reads a number; `false` where the read has to begin again, on a new connection.
static bool store_count(const char *uri, int64_t *number) {
    sqlite3 *reader;
    tide_error error;
    sqlite3_stmt *statement = NULL;
    check(sqlite3_open_v2(uri, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(reader));
    check(tide_reader_prepare(reader, &error) == TIDE_OK, "%s", error.message);
    bool is_read = sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL) == SQLITE_OK
                   && sqlite3_prepare_v2(reader, "SELECT sum(rating) FROM \"Place\"", -1, &statement, NULL) == SQLITE_OK
                   && sqlite3_step(statement) == SQLITE_ROW;
    if (is_read) *number = sqlite3_column_int64(statement, 0);
    is_read = is_read && tide_reader_is_undisturbed(reader);
    sqlite3_finalize(statement);
    sqlite3_close(reader);
    return is_read;
}

static void store_read(shared_store *it) {
    char uri[150];
    snprintf(uri, sizeof uri, "file://%s?vfs=" TIDE_READER_VFS_NAME, it->store.path);
    int64_t last = 0;
    while (!atomic_load(&it->is_over)) {
        int64_t number = 0;
        if (!store_count(uri, &number)) continue;
        check(number % commit_rows == 0 && number >= last, "%lld rows after %lld", (long long)number, (long long)last);
        last = number;
        atomic_fetch_add(&it->reads, 1);
    }
}

/// A thread writes, another one moves the log into the database, and two read.
static void store_use(void *context, int thread) {
    shared_store *it = context;
    if (thread >= 2) {
        store_read(it);
        return;
    }
    tide_lock *lock;
    tide_error error;
    check(tide_lock_create(it->lock, &lock, &error) == TIDE_OK, "%s", error.message);
    if (thread) store_checkpoint(it, lock);
    else store_write(it, lock);
    tide_lock_destroy(lock);
}

static void test_store(void) {
    shared_store it = {0};
    tide_error error;
    store_open(&it.store, "WAL");
    store_execute(&it.store, "COMMIT");
    sqlite3_busy_timeout(it.store.connection, 60000);
    snprintf(it.lock, sizeof it.lock, "%s-lock", it.store.path);
    check(tide_reader_vfs_register(&error) == TIDE_OK, "%s", error.message);
    together(store_use, &it);
    char rows[20];
    snprintf(rows, sizeof rows, "%d\n", it.commits * commit_rows);
    expect_rows(&it.store, "SELECT count(*) FROM \"Place\"", rows);
    store_close(&it.store);
}

// The lock

typedef struct counter {
    char path[200];
    /// Reading and adding are apart, so that two threads that have the lock at once lose something.
    atomic_int value;
} counter;

static void counter_add(void *context, int thread) {
    counter *it = context;
    tide_lock *lock;
    tide_error error;
    (void)thread;
    check(tide_lock_create(it->path, &lock, &error) == TIDE_OK, "%s", error.message);
    for (int i = 0; i < 200; i++) {
        lock_take(lock);
        int value = atomic_load(&it->value);
        if (i % 50 == 0) usleep(100);
        atomic_store(&it->value, value + 1);
        tide_lock_release(lock);
    }
    tide_lock_destroy(lock);
}

static void test_lock(void) {
    test_begin();
    counter it = {0};
    snprintf(it.path, sizeof it.path, "%s", place("lock"));
    together(counter_add, &it);
    check(atomic_load(&it.value) == 200 * thread_count, "%d", atomic_load(&it.value));
    test_end();
}

// Pictures

typedef struct photos {
    buffer jpeg;
    int32_t stop;
    tide_picture made[thread_count];
} photos;

static void photos_make(void *context, int thread) {
    photos *it = context;
    tide_error error;
    tide_picture_options options = {.max_pixel_size = 200, .thumbnail_pixel_size = 64, .quality = 80};
    tide_bytes source = {it->jpeg.bytes, -1, it->jpeg.length};
    check(tide_picture_create(source, &options, &it->made[thread], &error) == TIDE_OK, "%s", error.message);
}

static void photos_stop(void *context, int thread) {
    photos *it = context;
    if (thread == 0) {
        tide_picture_stop(&it->stop, true);
        return;
    }
    tide_error error;
    tide_picture picture;
    tide_picture_options options = {.max_pixel_size = 200, .quality = 80, .stop = &it->stop};
    tide_status status = tide_picture_create((tide_bytes){it->jpeg.bytes, -1, it->jpeg.length}, &options, &picture, &error);
    check(status == TIDE_OK || status == TIDE_CANCELLED, "%s", error.message);
    tide_picture_destroy(&picture);
}

static void test_pictures(void) {
    photos it = {0};
    pixels source = pixels_make(600, 400, 3);
    for (size_t i = 0; i < 600 * 400 * 3; i++) source.bytes[i] = (uint8_t)(i * i >> 7);
    it.jpeg = jpeg_write(source, (jpeg_form){.quality = 90});
    together(photos_make, &it);
    for (int i = 0; i < thread_count; i++) {
        check(it.made[i].image.length == it.made[0].image.length
                  && memcmp(it.made[i].image.bytes, it.made[0].image.bytes, it.made[0].image.length) == 0, "picture %d differs", i);
    }
    for (int i = 0; i < thread_count; i++) tide_picture_destroy(&it.made[i]);
    together(photos_stop, &it);
    free(it.jpeg.bytes);
    free(source.bytes);
}

int main(void) {
    test_blobs();
    test_pool();
    test_lock();
    test_store();
    test_pictures();
    puts("threads_test: passed");
    return 0;
}

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "tide_blob_layout.h"

/// The result of ingesting a path. It is kept for the run, so that a file that many rows name is read once.
typedef struct path_outcome {
    uint64_t print;
    char *path;
    tide_status status;
    tide_reject reject;
    bool is_visited;
    /// The refusal's sentence, or NULL.
    char *message;
    tide_blob blob;
    /// Its identifier is empty if there is no preview.
    tide_blob preview;
} path_outcome;

struct tide_paths {
    path_outcome *outcomes;
    uint32_t count, capacity;
    uint32_t *slots;
    uint32_t slot_count;
    uint64_t seed;
};

enum {
    /// The most paths whose outcomes are remembered.
    path_limit = 16384,
    row_path_limit = 4096,
};

static void tide_paths_clear(tide_paths *paths) {
    for (uint32_t i = 0; i < paths->count; i++) {
        free(paths->outcomes[i].path);
        free(paths->outcomes[i].message);
    }
    paths->count = 0;
    if (paths->slots) memset(paths->slots, 0, paths->slot_count * sizeof *paths->slots);
}

void tide_paths_destroy(tide_paths *paths) {
    if (!paths) return;
    tide_paths_clear(paths);
    free(paths->outcomes);
    free(paths->slots);
    free(paths);
}

static bool tide_paths_grow(tide_paths *paths) {
    uint32_t larger = paths->slot_count ? paths->slot_count * 2 : 1024;
    uint32_t *slots = calloc(larger, sizeof *slots);
    path_outcome *outcomes = realloc(paths->outcomes, larger / 2 * sizeof *outcomes);
    if (outcomes) paths->outcomes = outcomes;
    if (!slots || !outcomes) {
        free(slots);
        return false;
    }
    for (uint32_t i = 0; i < paths->count; i++) {
        uint32_t at = (uint32_t)outcomes[i].print & (larger - 1);
        while (slots[at]) at = (at + 1) & (larger - 1);
        slots[at] = i + 1;
    }
    free(paths->slots);
    paths->slots = slots;
    paths->slot_count = larger;
    paths->capacity = larger / 2;
    return true;
}

/// Returns the index of a path's outcome, which is added if needed; UINT32_MAX when memory runs out.
static uint32_t tide_paths_place(tide_paths *paths, const char *path, size_t length) {
    uint64_t print = XXH3_64bits_withSeed(path, length, paths->seed);
    for (uint32_t at = (uint32_t)print; paths->slot_count; at++) {
        uint32_t slot = paths->slots[at & (paths->slot_count - 1)];
        if (!slot) break;
        const path_outcome *outcome = &paths->outcomes[slot - 1];
        if (outcome->print == print && strlen(outcome->path) == length && memcmp(outcome->path, path, length) == 0) return slot - 1;
    }
    if (paths->count == paths->capacity && !tide_paths_grow(paths)) return UINT32_MAX;
    char *copy = malloc(length + 1);
    if (!copy) return UINT32_MAX;
    memcpy(copy, path, length);
    copy[length] = 0;
    paths->outcomes[paths->count] = (path_outcome){.print = print, .path = copy, .status = TIDE_END};
    uint32_t at = (uint32_t)print & (paths->slot_count - 1);
    while (paths->slots[at]) at = (at + 1) & (paths->slot_count - 1);
    paths->slots[at] = paths->count + 1;
    return paths->count++;
}

typedef struct pool {
    tide_intake_task task;
    void *context;
    uint32_t count;
    atomic_uint next;
    atomic_bool has_failed;
    pthread_mutex_t mutex;
    tide_error failure;
} pool;

typedef struct pool_thread {
    pthread_t thread;
    bool is_started;
    uint32_t worker;
    pool *pool;
} pool_thread;

static void *pool_work(void *argument) {
    pool_thread *self = argument;
    pool *pool = self->pool;
    while (!atomic_load(&pool->has_failed)) {
        uint32_t index = atomic_fetch_add(&pool->next, 1);
        if (index >= pool->count) break;
        tide_error error = {0};
        tide_status status = pool->task(pool->context, self->worker, index, &error);
        if (status == TIDE_OK) continue;
        pthread_mutex_lock(&pool->mutex);
        if (!atomic_exchange(&pool->has_failed, true)) {
            pool->failure = error;
            pool->failure.status = status;
        }
        pthread_mutex_unlock(&pool->mutex);
    }
    return NULL;
}

tide_status tide_intake_run(uint32_t worker_count, uint32_t count, tide_intake_task task, void *context, tide_error *error) {
    enum { thread_limit = 16 };
    pool pool = {.task = task, .context = context, .count = count};
    pool_thread threads[thread_limit] = {0};
    if (worker_count > thread_limit) worker_count = thread_limit;
    if (worker_count > count) worker_count = count;
    pthread_mutex_init(&pool.mutex, NULL);
    for (uint32_t i = 0; i < worker_count; i++) {
        threads[i].worker = i;
        threads[i].pool = &pool;
        // The calling thread is the first worker. If a thread can't be started, the others do its work.
        if (i > 0) threads[i].is_started = pthread_create(&threads[i].thread, NULL, pool_work, &threads[i]) == 0;
    }
    if (worker_count > 0) pool_work(&threads[0]);
    for (uint32_t i = 1; i < worker_count; i++) {
        if (threads[i].is_started) pthread_join(threads[i].thread, NULL);
    }
    pthread_mutex_destroy(&pool.mutex);
    if (!atomic_load(&pool.has_failed)) return TIDE_OK;
    if (error) *error = pool.failure;
    return pool.failure.status;
}

typedef struct path_round {
    tide_intake *const *workers;
    tide_paths *paths;
    uint32_t first;
} path_round;

static tide_status path_take_in(void *context, uint32_t worker, uint32_t index, tide_error *error) {
    path_round *round = context;
    path_outcome *outcome = &round->paths->outcomes[round->first + index];
    outcome->status = tide_intake_file(round->workers[worker], outcome->path, &outcome->blob, &outcome->preview, NULL, error);
    if (outcome->status != TIDE_REJECTED) return outcome->status;
    outcome->reject = error->reject;
    outcome->message = strdup(error->message);
    return outcome->message ? TIDE_OK : tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
}

static tide_status paths_take_in(
    tide_intake *const *workers, uint32_t worker_count, tide_paths *paths, uint32_t first, tide_error *error
) {
    path_round round = {workers, paths, first};
    tide_status status = tide_intake_run(worker_count, paths->count - first, path_take_in, &round, error);
    // The outcomes of a failed round are forgotten: its paths were not all read.
    if (status) tide_paths_clear(paths);
    return status;
}

/// Returns the path at `*at` of a cell, and moves `*at` behind it; NULL at the end.
static const char *cell_next_path(const tide_batch *batch, tide_cell cell, uint32_t *at, size_t *length) {
    const char *text = tide_batch_text(batch, cell.offset);
    if (*at >= cell.length && !(cell.kind == TIDE_KIND_PATH && *at == 0)) return NULL;
    const char *path = text + *at;
    *length = cell.kind == TIDE_KIND_PATH ? cell.length : strnlen(path, cell.length - *at);
    *at += (uint32_t)*length + 1;
    return path;
}

static bool cell_is_path(tide_cell cell) { return cell.kind == TIDE_KIND_PATH || cell.kind == TIDE_KIND_PATHS; }

static tide_status cell_replace_paths(tide_batch *batch, uint32_t row, uint32_t column, tide_cell cell, tide_paths *paths) {
    size_t name_length;
    const char *name = tide_batch_column_name(batch, column, &name_length);
    tide_cell replaced = {.kind = TIDE_KIND_TEXT, .offset = 0, .length = 0};
    uint32_t path_count = 0;
    size_t length;
    for (uint32_t at = 0; cell_next_path(batch, cell, &at, &length);) path_count++;
    // Room for all at once, so that the list lies in one piece: quotes, comma and identifier each, and the brackets.
    char *out = tide_batch_text_reserve(batch, path_count * (TIDE_BLOB_ID_SIZE + 3) + 2);
    if (!out) return TIDE_NO_MEMORY;
    size_t used = 0;
    if (cell.kind == TIDE_KIND_PATHS) out[used++] = '[';
    for (uint32_t at = 0;;) {
        const char *path = cell_next_path(batch, cell, &at, &length);
        if (!path) break;
        uint32_t place = tide_paths_place(paths, path, length);
        if (place == UINT32_MAX) return TIDE_NO_MEMORY;
        const path_outcome *outcome = &paths->outcomes[place];
        if (outcome->status == TIDE_REJECTED) {
            return tide_batch_row_reject(batch, row, name, name_length, outcome->reject, outcome->message);
        }
        bool is_list = cell.kind == TIDE_KIND_PATHS;
        used += (size_t)sprintf(out + used, is_list ? (used > 1 ? ",\"%s\"" : "\"%s\"") : "%s", outcome->blob.id);
    }
    if (cell.kind == TIDE_KIND_PATHS) out[used++] = ']';
    tide_span span = tide_batch_text_commit(batch, used);
    replaced.offset = span.offset;
    replaced.length = span.length;
    tide_batch_cell_replace(batch, row, column, replaced);
    return TIDE_OK;
}

/// Runs `visit` for every path of a live row, and stops at the first that returns false.
static bool row_visit_paths(
    tide_batch *batch, uint32_t row, bool (*visit)(void *context, const char *path, size_t length), void *context
) {
    for (uint32_t column = 0; column < tide_batch_column_count(batch); column++) {
        tide_cell cell = tide_batch_cell(batch, row, column);
        if (!cell_is_path(cell)) continue;
        const char *path;
        size_t length;
        for (uint32_t at = 0; (path = cell_next_path(batch, cell, &at, &length));) {
            if (!visit(context, path, length)) return false;
        }
    }
    return true;
}

static bool path_count(void *context, const char *path, size_t length) {
    (void)path, (void)length;
    return ++*(uint32_t *)context <= row_path_limit;
}

static bool path_place(void *context, const char *path, size_t length) {
    return tide_paths_place(context, path, length) != UINT32_MAX;
}

/// Collects the paths of rows from `*row` on until there are enough for a round. `*row` becomes the first row of the next round.
static tide_status paths_gather(tide_batch *batch, tide_paths *paths, uint32_t *row) {
    uint32_t rows = tide_batch_row_count(batch);
    for (; *row < rows && paths->count < path_limit; ++*row) {
        if (!tide_batch_row_is_live(batch, *row)) continue;
        uint32_t count = 0;
        if (!row_visit_paths(batch, *row, path_count, &count)) {
            char message[80];
            snprintf(message, sizeof message, "the row names more than %d files", row_path_limit);
            tide_status status = tide_batch_row_reject(batch, *row, "", 0, TIDE_REJECT_TOO_MANY_ASSETS, message);
            if (status) return status;
        } else if (!row_visit_paths(batch, *row, path_place, paths)) {
            return TIDE_NO_MEMORY;
        }
    }
    return TIDE_OK;
}

typedef struct visit {
    tide_paths *paths;
    tide_blob_visitor visitor;
    void *context;
    bool has_previews;
} visit;

static bool path_visit(void *context, const char *path, size_t length) {
    visit *it = context;
    path_outcome *outcome = &it->paths->outcomes[tide_paths_place(it->paths, path, length)];
    if (outcome->is_visited || outcome->status) return true;
    outcome->is_visited = true;
    it->visitor(it->context, &outcome->blob);
    outcome->blob.is_new = false;
    if (outcome->preview.id[0]) it->visitor(it->context, &outcome->preview);
    outcome->preview.is_new = false;
    return true;
}

/// Finds the column for the previews of a column's assets, and adds it if needed. `*previews` is UINT32_MAX if there can be none: the
/// column has previews itself, its name leaves no room for the suffix, or the batch has a column of another type or no room for one.
static tide_status preview_column(tide_batch *batch, uint32_t column, uint32_t *previews) {
    enum { suffix_length = sizeof TIDE_PREVIEW_SUFFIX - 1 };
    char name[256 + suffix_length];
    size_t length;
    const char *text = tide_batch_column_name(batch, column, &length);
    *previews = UINT32_MAX;
    if (tide_preview_is_field(text, length) || length + suffix_length > 255) return TIDE_OK;
    memcpy(name, text, length);
    memcpy(name + length, TIDE_PREVIEW_SUFFIX, suffix_length);
    tide_status status = tide_batch_column(batch, name, length + suffix_length, previews, NULL);
    if (status == TIDE_REJECTED) *previews = UINT32_MAX;
    if (status) return status == TIDE_REJECTED ? TIDE_OK : status;
    tide_type type = tide_batch_column_type(batch, *previews);
    if (type == TIDE_TYPE_UNKNOWN) tide_batch_column_set_type(batch, *previews, TIDE_TYPE_ASSET);
    // The source has values of another type there, such as lists.
    else if (type != TIDE_TYPE_ASSET) *previews = UINT32_MAX;
    return TIDE_OK;
}

bool tide_preview_is_field(const char *name, size_t length) {
    enum { suffix_length = sizeof TIDE_PREVIEW_SUFFIX - 1 };
    return length > suffix_length && memcmp(name + length - suffix_length, TIDE_PREVIEW_SUFFIX, suffix_length) == 0;
}

/// Gives a row the previews of its assets, before their paths are replaced.
static tide_status row_set_previews(tide_batch *batch, uint32_t row, tide_paths *paths) {
    // Columns that `preview_column` adds come behind these.
    uint32_t columns = tide_batch_column_count(batch);
    for (uint32_t column = 0; column < columns; column++) {
        tide_cell cell = tide_batch_cell(batch, row, column), preview = {.kind = TIDE_KIND_NULL};
        if (tide_batch_column_type(batch, column) != TIDE_TYPE_ASSET) continue;
        if (cell.kind != TIDE_KIND_PATH && cell.kind != TIDE_KIND_NULL) continue;
        uint32_t previews;
        tide_status status = preview_column(batch, column, &previews);
        if (status) return status;
        if (previews == UINT32_MAX || tide_batch_cell(batch, row, previews).kind != TIDE_KIND_ABSENT) continue;
        if (cell.kind == TIDE_KIND_PATH) {
            uint32_t place = tide_paths_place(paths, tide_batch_text(batch, cell.offset), cell.length);
            if (place == UINT32_MAX) return TIDE_NO_MEMORY;
            const char *id = paths->outcomes[place].preview.id;
            tide_span span;
            if (id[0] && tide_batch_text_add(batch, id, strlen(id), &span)) return TIDE_NO_MEMORY;
            if (id[0]) preview = (tide_cell){.kind = TIDE_KIND_TEXT, .offset = span.offset, .length = span.length};
        }
        if (tide_batch_cell_set(batch, row, previews, preview)) return TIDE_NO_MEMORY;
    }
    return TIDE_OK;
}

/// Puts the identifiers of blobs in the place of a row's paths, or refuses the row.
static tide_status row_replace_paths(tide_batch *batch, uint32_t row, visit *visit) {
    if (!tide_batch_row_is_live(batch, row)) return TIDE_OK;
    row_visit_paths(batch, row, path_visit, visit);
    if (visit->has_previews) {
        tide_status status = row_set_previews(batch, row, visit->paths);
        if (status) return status;
    }
    for (uint32_t column = 0; column < tide_batch_column_count(batch) && tide_batch_row_is_live(batch, row); column++) {
        tide_cell cell = tide_batch_cell(batch, row, column);
        tide_status status = cell_is_path(cell) ? cell_replace_paths(batch, row, column, cell, visit->paths) : TIDE_OK;
        if (status) return status;
    }
    return TIDE_OK;
}

tide_status tide_intake_batch(
    tide_intake *const *workers, uint32_t worker_count, tide_batch *batch, bool has_previews, tide_blob_visitor visitor,
    void *context, tide_error *error
) {
    tide_paths *paths = workers[0]->paths;
    if (!paths) {
        paths = workers[0]->paths = calloc(1, sizeof *paths);
        if (!paths) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        paths->seed = (uint64_t)(uintptr_t)paths ^ (uint64_t)time(NULL) << 20;
    }
    for (uint32_t i = 0; i < paths->count; i++) paths->outcomes[i].is_visited = false;
    visit visit = {paths, visitor, context, has_previews};
    uint32_t row = 0, rows = tide_batch_row_count(batch);
    while (row < rows) {
        if (paths->count >= path_limit) tide_paths_clear(paths);
        uint32_t first_row = row, first_path = paths->count;
        if (paths_gather(batch, paths, &row)) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        tide_status status = paths_take_in(workers, worker_count, paths, first_path, error);
        if (status) return status;
        for (uint32_t i = first_row; i < row; i++) {
            if (row_replace_paths(batch, i, &visit)) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
        }
    }
    return TIDE_OK;
}

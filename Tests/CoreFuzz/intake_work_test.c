// Goal: work is handed out once for each index, on no more threads than asked for, and ends at the first failure.
// Method: work that notes who does it; the first pieces wait for each other, so that they overlap.

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "check.h"
#include "tide_blob.h"

/// No thread can be started.
static bool has_no_threads;

#if defined(__linux__)

typedef int thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
thread_create __interceptor_pthread_create __attribute__((weak));

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    if (has_no_threads) return EAGAIN;
    // The sanitizer's, where there is one.
    thread_create *real = __interceptor_pthread_create;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, start, argument);
}

#endif

typedef struct work {
    atomic_uint done[1000];
    atomic_bool is_busy[16];
    atomic_uint highest, calls, arrived;
    /// So many first calls wait for each other.
    uint32_t meeting;
    uint32_t failing;
    pthread_t caller;
    atomic_bool was_caller;
} work;

static tide_status work_do(void *context, uint32_t worker, uint32_t index, tide_error *error) {
    work *it = context;
    check(worker < 16 && !atomic_exchange(&it->is_busy[worker], true), "worker %u has two calls at once", worker);
    atomic_fetch_add(&it->done[index], 1);
    if (index < it->meeting) {
        atomic_fetch_add(&it->arrived, 1);
        while (atomic_load(&it->arrived) < it->meeting) sched_yield();
    }
    atomic_fetch_add(&it->calls, 1);
    if (worker > atomic_load(&it->highest)) atomic_store(&it->highest, worker);
    if (pthread_equal(pthread_self(), it->caller)) atomic_store(&it->was_caller, true);
    check(error->status == TIDE_OK && !error->message[0], "%s", error->message);
    atomic_store(&it->is_busy[worker], false);
    if (index < it->failing) return TIDE_OK;
    return tide_error_set(error, TIDE_CANCELLED, (int32_t)index, "index %u", index);
}

static void test_work(void) {
    static const struct {
        uint32_t workers, count;
    } cases[] = {{0, 0}, {1, 0}, {1, 1}, {1, 1000}, {2, 1000}, {16, 1000}, {40, 1000}, {16, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t workers = cases[i].workers, count = cases[i].count;
        work *it = calloc(1, sizeof *it);
        it->failing = UINT32_MAX;
        it->caller = pthread_self();
        it->meeting = workers < 16 ? workers : 16;
        if (it->meeting > count) it->meeting = count;
        tide_error error = {0};
        check(tide_intake_run(workers, count, work_do, it, &error) == TIDE_OK && error.status == TIDE_OK, "%s", error.message);
        for (uint32_t k = 0; k < 1000; k++) check(it->done[k] == (k < count), "%u of %u: %u", k, count, it->done[k]);
        check(it->highest < (workers ? workers : 1), "worker %u of %u", it->highest, workers);
        check(count == 0 || it->highest + 1 >= it->meeting, "worker %u of %u", it->highest, workers);
        check(workers != 1 || count == 0 || it->was_caller, "the caller's thread has no work");
        free(it);
    }
    // Nothing is handed out after a failure: each worker ends at most the call that it is in.
    for (uint32_t workers = 1; workers <= 16; workers += 5) {
        work *it = calloc(1, sizeof *it);
        it->failing = 10;
        it->caller = pthread_self();
        tide_error error = {0};
        check(tide_intake_run(workers, 1000, work_do, it, &error) == TIDE_CANCELLED && error.status == TIDE_CANCELLED, "%d", error.status);
        check(error.system >= 10 && strncmp(error.message, "index ", 6) == 0, "%s", error.message);
        check(it->calls >= 11 && it->calls < 10 + 2 * workers, "%u calls of %u workers", it->calls, workers);
        // All fail at once, and one failure is told.
        it->failing = 0;
        it->meeting = workers;
        atomic_store(&it->arrived, 0);
        check(tide_intake_run(workers, 1000, work_do, it, &error) == TIDE_CANCELLED && error.system < (int32_t)workers, "%d", error.system);
        atomic_store(&it->arrived, workers);
        check(tide_intake_run(workers, 1000, work_do, it, NULL) == TIDE_CANCELLED, "no place for the error");
        free(it);
    }
    // Where no thread can be started, the caller's does all the work.
    work *it = calloc(1, sizeof *it);
    it->failing = UINT32_MAX;
    it->caller = pthread_self();
    has_no_threads = true;
    check(tide_intake_run(4, 1000, work_do, it, NULL) == TIDE_OK && it->calls == 1000, "%u calls", it->calls);
    has_no_threads = false;
    free(it);
}

int main(void) {
    test_work();
    puts("intake_work_test: passed");
    return 0;
}

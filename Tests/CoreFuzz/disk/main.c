// A store on a disk in memory: each call that changes a file fails, and some reads; the power is cut before each call, with each kind of loss.
//
// After a fault, the step that met it says so, and is there as a whole or not at all; the steps from there on yield what they yield without a fault.
// After a cut, all steps that were acknowledged are there, the next is there as a whole or not at all, and the rest can follow. The controls are a
// store whose commits are not synced, and a disk that does not sync: both must be found out. Then the store's file is damaged.
//
// Options: --seed N; --rounds N, with as many seeds from there on.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "damage.h"
#include "disk.h"
#include "store.h"

/// The digests of the store before each step, and after the last.
static uint64_t digests[STORE_STEPS + 1];
static uint64_t seed;
static struct {
    uint64_t faults, told, undone, cuts, refused, reported, harmless;
} totals;

static store *open_whole(const char *what) {
    tide_error error;
    store *store = store_open(false, &error);
    check(store != NULL, "%s: the store can't be opened: %s", what, error.message);
    return store;
}

/// Does the steps from one on, and compares each.
static void go_on(store *store, int step, const char *what) {
    for (; step < STORE_STEPS; step++) {
        tide_error error;
        check(store_step(store, step, seed, &error) == TIDE_OK, "%s: step %d fails later: %s", what, step, error.message);
    }
    check(store_digest(store, what) == digests[STORE_STEPS], "%s: what follows differs", what);
}

/// Does all steps without a fault, as a model for the other runs.
static void model_make(bool is_normal, bool ignores_syncs) {
    store_make();
    disk_count();
    disk_ignore_syncs(ignores_syncs);
    tide_error error;
    store *store = store_open(is_normal, &error);
    check(store != NULL, "%s", error.message);
    for (int step = 0; step < STORE_STEPS; step++) {
        // Reading changes no file, so the calls are those of the runs below.
        digests[step] = store_digest(store, "the model");
        check(store_step(store, step, seed, &error) == TIDE_OK, "step %d: %s", step, error.message);
        disk_acknowledge();
    }
    digests[STORE_STEPS] = store_digest(store, "the model");
    store_close(store);
}

/// Lets a call, or read, fail.
static void fault_run(disk_fault fault, int at, bool is_sticky) {
    char what[100];
    snprintf(what, sizeof what, "seed %" PRIu64 ", fault %d%s at %d", seed, fault, is_sticky ? " for ever" : "", at);
    disk_rewind();
    disk_fail(fault, at, is_sticky);
    tide_error error = {0};
    tide_status status = TIDE_OK;
    int step = 0;
    store *store = store_open(false, &error);
    if (store) {
        while (step < STORE_STEPS && !(status = store_step(store, step, seed, &error))) step++;
    } else {
        status = error.status;
    }
    bool has_failed = disk_has_failed();
    disk_fail(DISK_FAULT_NONE, 0, false);
    if (status) {
        check(has_failed, "%s: step %d fails without a fault: %s", what, step, error.message);
        check(status == TIDE_IO_ERROR || status == TIDE_DISK_FULL, "%s: step %d fails with %d: %s", what, step, status, error.message);
        check(error.message[0] != 0, "%s: nothing is told", what);
        totals.told++;
    }
    totals.faults += has_failed;
    // The program goes on with the connection, or ends, and another one opens the store.
    bool ends = !store || at % 2;
    if (store && ends) store_close(store);
    if (ends) store = open_whole(what);
    uint64_t digest = store_digest(store, what);
    if (status && step < STORE_STEPS && digest != digests[step]) {
        check(ends && digest == digests[step + 1], "%s: step %d is there in part", what, step);
        totals.undone++;
        step++;
    } else {
        check(digest == digests[step], "%s: a step before %d is lost", what, step);
    }
    if (at % 3 == 0) go_on(store, step, what);
    store_close(store);
}

/// Cuts the power before a call, and returns whether the store is as it was promised. Without `is_promised` that is only looked at.
static bool cut_run(int at, disk_loss loss, bool is_promised) {
    char what[100];
    snprintf(what, sizeof what, "seed %" PRIu64 ", cut at %d, loss %d", seed, at, loss);
    int acknowledged = disk_cut(at, loss, seed * 1000003 + (uint64_t)at * DISK_LOSS_COUNT + loss);
    totals.cuts++;
    store *store = open_whole(what);
    uint64_t digest = store_digest(store, what);
    int step = acknowledged;
    if (digest != digests[step] && step < STORE_STEPS && digest == digests[step + 1]) step++;
    bool is_kept = digest == digests[step];
    check(is_kept || !is_promised, "%s: %d steps were acknowledged", what, acknowledged);
    if (is_kept && is_promised && at % 8 == 0) go_on(store, step, what);
    store_close(store);
    return is_kept;
}

static void round_run(void) {
    model_make(false, false);
    int calls = disk_calls(), reads = disk_reads();
    static const disk_fault faults[] = {DISK_FAULT_IO, DISK_FAULT_FULL, DISK_FAULT_HALF_IO, DISK_FAULT_HALF_FULL};
    uint64_t before = totals.cuts;
    for (int at = 1; at <= calls + 1; at++) {
        for (disk_loss loss = 0; loss < DISK_LOSS_COUNT; loss++) cut_run(at, loss, true);
    }
    uint64_t cuts = totals.cuts - before, faults_before = totals.faults;
    for (int at = 1; at <= calls; at++) {
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            fault_run(faults[i], at, false);
            fault_run(faults[i], at, true);
        }
    }
    uint64_t random = seed;
    for (int at = 1; at <= reads; at += 1 + (int)random_below(&random, 5)) fault_run(DISK_FAULT_READ, at, random_below(&random, 2));
    // What follows the model's last step moves the whole log into the file of the store.
    model_make(false, false);
    tide_error error;
    store *store = open_whole("the model");
    check(store_step(store, STORE_TRUNCATION, seed, &error) == TIDE_OK, "%s", error.message);
    store_close(store);
    damage_counts damages = damage_run(seed, 2500);
    totals.refused += (uint64_t)damages.refused, totals.reported += (uint64_t)damages.reported;
    totals.harmless += (uint64_t)damages.harmless;
    printf("seed %" PRIu64 ": %d calls, %d reads, %" PRIu64 " power cuts, %" PRIu64 " faults, 2500 damages\n", seed, calls, reads, cuts,
           totals.faults - faults_before);
}

/// Counts the power cuts that a store without its syncs does not survive.
static int control_run(bool is_normal, bool ignores_syncs) {
    model_make(is_normal, ignores_syncs);
    int calls = disk_calls(), losses = 0;
    for (int at = 1; at <= calls + 1; at += 9) losses += !cut_run(at, DISK_LOSS_ALL, false);
    return losses;
}

int main(int argc, char **argv) {
    uint64_t first = 1, rounds = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) first = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--rounds") == 0) rounds = strtoull(argv[i + 1], NULL, 10);
    }
    // Prints the result of each seed as it ends, also into a pipe.
    setvbuf(stdout, NULL, _IOLBF, 0);
    disk_register();
    for (seed = first; seed < first + rounds; seed++) round_run();
    printf("disk_test: %" PRIu64 " power cuts, %" PRIu64 " faults, %" PRIu64 " of them told, %" PRIu64 " done all the same\n", totals.cuts,
           totals.faults, totals.told, totals.undone);
    printf("disk_test: %" PRIu64 " damages of the store's file: %" PRIu64 " of the database's structure, %" PRIu64 " of rows, all told; %" PRIu64
           " where nothing reads\n", totals.refused + totals.reported + totals.harmless, totals.refused, totals.reported, totals.harmless);
    seed = first;
    int normal = control_run(true, false), lying = control_run(false, true);
    check(normal > 0 && lying > 0, "a control was not found out");
    printf("disk_test: commits that are not synced lose something at %d cuts, a disk that does not sync at %d, of every ninth call\n", normal, lying);
    disk_clear();
    return 0;
}

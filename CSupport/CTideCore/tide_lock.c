#include "tide_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct tide_lock {
    int descriptor;
    char path[];
};

tide_status tide_lock_create(const char *path, tide_lock **lock, tide_error *error) {
    *lock = NULL;
    tide_lock *created = malloc(sizeof *created + strlen(path) + 1);
    if (!created) return tide_error_set(error, TIDE_NO_MEMORY, 0, "out of memory");
    strcpy(created->path, path);
    created->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (created->descriptor < 0) {
        tide_status status = tide_error_errno(error, "open the lock file", path);
        free(created);
        return status;
    }
    *lock = created;
    return TIDE_OK;
}

void tide_lock_destroy(tide_lock *lock) {
    if (!lock) return;
    close(lock->descriptor);
    free(lock);
}

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

tide_status tide_lock_acquire(tide_lock *lock, bool shared, uint32_t timeout_ms, tide_error *error) {
    int64_t deadline = now_ms() + timeout_ms;
    int64_t pause_us = 100;
    while (flock(lock->descriptor, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return tide_error_errno(error, "lock", lock->path);
        if (now_ms() >= deadline) {
            return tide_error_set(
                error, TIDE_BUSY, 0, "another process has held %s for over %u ms; try again when it is done", lock->path,
                timeout_ms);
        }
        struct timespec pause = {0, (long)(pause_us * 1000)};
        nanosleep(&pause, NULL);
        if (pause_us < 5000) pause_us *= 2;
    }
    return TIDE_OK;
}

void tide_lock_release(tide_lock *lock) {
    while (flock(lock->descriptor, LOCK_UN) != 0 && errno == EINTR) {
    }
}

bool tide_lock_is_in_place(const tide_lock *lock) {
    struct stat opened, there;
    return fstat(lock->descriptor, &opened) == 0 && stat(lock->path, &there) == 0 && opened.st_dev == there.st_dev
        && opened.st_ino == there.st_ino;
}

// Tells the thread sanitizer of what the libraries of the toolchain do, which are not built with it. On Linux, this library is loaded before them.
// Without it, the sanitizer would report correct code.
//
// - `Synchronization.Mutex`. A lock that is free is taken by code that the sanitizer sees. Where a thread has to wait, the library takes and
//   releases the lock.
// - Continuations. Where one is resumed before its task has come to wait for it, the task goes on at once, with what the other thread has passed.
//   One that is resumed in the very moment in which its task begins to wait may still be reported; such a report does not come again.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

// Programs without the sanitizer, which tests start, do not have these.
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

// Mutexes

SWIFT void lock_slowly(uint32_t state, SELF) __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
SWIFT void unlock_slowly(SELF) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");

SWIFT void lock_slowly(uint32_t state, SELF) {
    static SWIFT void (*next)(uint32_t, SELF);
    if (!next) next = dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
    next(state, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT void unlock_slowly(SELF) {
    static SWIFT void (*next)(SELF);
    if (!next) next = dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
    if (__tsan_release) __tsan_release(self);
    next(self);
}

// Continuations

extern void *swift_task_getCurrent(void) __attribute__((weak));
SWIFT void swift_continuation_resume(void *task);
SWIFT void swift_continuation_throwingResume(void *task);
SWIFT void swift_continuation_throwingResumeWithError(void *task, void *error);
__attribute__((swiftasynccall)) void swift_continuation_await(void *context);

SWIFT void swift_continuation_resume(void *task) {
    static SWIFT void (*next)(void *);
    if (!next) next = dlsym(RTLD_NEXT, "swift_continuation_resume");
    if (__tsan_release) __tsan_release(task);
    next(task);
}

SWIFT void swift_continuation_throwingResume(void *task) {
    static SWIFT void (*next)(void *);
    if (!next) next = dlsym(RTLD_NEXT, "swift_continuation_throwingResume");
    if (__tsan_release) __tsan_release(task);
    next(task);
}

SWIFT void swift_continuation_throwingResumeWithError(void *task, void *error) {
    static SWIFT void (*next)(void *, void *);
    if (!next) next = dlsym(RTLD_NEXT, "swift_continuation_throwingResumeWithError");
    if (__tsan_release) __tsan_release(task);
    next(task, error);
}

__attribute__((swiftasynccall)) void swift_continuation_await(void *context) {
    static __attribute__((swiftasynccall)) void (*next)(void *);
    if (!next) next = dlsym(RTLD_NEXT, "swift_continuation_await");
    if (__tsan_acquire) __tsan_acquire(swift_task_getCurrent());
    __attribute__((musttail)) return next(context);
}

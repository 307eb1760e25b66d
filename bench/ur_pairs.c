// Allocates and frees device memory through two functions of the Unified Runtime's interface, over and over.
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int32_t (*allocate_t)(void *context, void *device, const void *descriptor, void *pool, size_t size, void **out);
typedef int32_t (*free_t)(void *context, void *block);

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// Nanoseconds of this thread, or -1 if an allocation failed.
int64_t ur_pairs(allocate_t allocate, free_t release, void *context, void *device, size_t size, size_t count) {
    int64_t begun = now();
    for (size_t n = 0; n < count; n++) {
        void *block = NULL;
        if (allocate(context, device, NULL, NULL, size, &block) != 0 || block == NULL || release(context, block) != 0)
            return -1;
    }
    return now() - begun;
}

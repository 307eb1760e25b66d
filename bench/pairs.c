/* Allocates and frees in a loop, through functions given by address, and answers with the nanoseconds of processor
 * time that this thread spent: what others do on the machine is left out of it as far as can be. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef void *allocate_function(size_t bytes, void *queue);
typedef void free_function(void *block, void *queue);

static int64_t spent(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* -1 where an allocation fails. */
int64_t pairs(allocate_function *allocate, free_function *release, void *queue, size_t bytes, size_t count) {
    int64_t begun = spent();
    for (size_t i = 0; i < count; i++) {
        void *block = allocate(bytes, queue);
        if (block == NULL)
            return -1;
        release(block, queue);
    }
    return spent() - begun;
}

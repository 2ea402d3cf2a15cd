// Shifts the calendar clock of the process that it is loaded into. It asks the kernel directly: a library that looks up
// the original function at its start (libfaketime) runs before the allocator of the binary is ready, and crashes it.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long offset;

__attribute__((constructor)) static void read_offset(void) {
    const char *text = getenv("CHAOS_CLOCK_OFFSET_SECONDS");
    offset = text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) {
        time->tv_sec += offset;
    }
    return (int)result;
}

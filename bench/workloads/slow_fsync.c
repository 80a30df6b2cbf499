/* Makes every fsync and fdatasync of a server take SLOW_FSYNC_US microseconds longer (2000 unless told): it stands for a
 * network disk. Preloaded with `scripts/servers start … --preload=LIBRARY`. Needs nothing of the C library but syscall(2). */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for_the_disk(void)
{
    const char *text = getenv("SLOW_FSYNC_US");
    long microseconds = text ? atol(text) : 2000;
    struct timespec time = { microseconds / 1000000, microseconds % 1000000 * 1000 };
    nanosleep(&time, 0);
}

int fsync(int file)
{
    wait_for_the_disk();
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    wait_for_the_disk();
    return (int)syscall(SYS_fdatasync, file);
}

/* Stands for a network disk: makes a server's fsync and fdatasync FSYNC_US microseconds longer, and its reads of pages READ_US; both are set when it is
 * compiled. Preloaded with `scripts/servers start … --preload=LIBRARY`. Needs nothing of the C library but syscall(2). */
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* A page of InnoDB, and what is larger. */
#define PAGE_BYTES 4096

static void wait_for_the_disk(long microseconds)
{
    struct timespec time = { microseconds / 1000000, microseconds % 1000000 * 1000 };
    if (microseconds)
        nanosleep(&time, 0);
}

int fsync(int file)
{
    wait_for_the_disk(FSYNC_US);
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    wait_for_the_disk(FSYNC_US);
    return (int)syscall(SYS_fdatasync, file);
}

static ssize_t read_at(int file, void *bytes, size_t count, off_t offset)
{
    if (count >= PAGE_BYTES)
        wait_for_the_disk(READ_US);
    return syscall(SYS_pread64, file, bytes, count, offset);
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset)
{
    return read_at(file, bytes, count, offset);
}

ssize_t pread64(int file, void *bytes, size_t count, off_t offset)
{
    return read_at(file, bytes, count, offset);
}

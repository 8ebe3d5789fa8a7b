/* Preloaded into a session: counts its calls below some folders, and at one of them it dies.

   What is asked comes in the environment:
     FAULT_UNDER    folders, parted by colons; a call counts when its path lies below one of them
     FAULT_STATE    a file of the counters, shared by all processes of the session
     FAULT_LOG      takes a line for each call that counts: number, process, kind, path
     FAULT_KINDS    the kinds that are counted, parted by commas
     FAULT_AT       the number of the call that goes wrong, from 1; without it none does
     FAULT_ERRNO    the error of that call; without it the process is killed
     FAULT_LASTING  1: every later call that counts goes wrong as well

   A process is killed before the call is made, so to try every call is to stop between each pair.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct state {
    unsigned long count;
    unsigned long fired;
};

static struct state *state;
static const char *under, *kinds;
static unsigned long at;
static int error_number, lasting, log_descriptor = -1;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_STATE"), *word;
    under = getenv("FAULT_UNDER");
    kinds = getenv("FAULT_KINDS");
    if (!path || !under || !kinds) return;
    int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) return;
    void *shared = mmap(0, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (shared == MAP_FAILED) return;
    if ((word = getenv("FAULT_LOG")))
        log_descriptor = syscall(SYS_openat, AT_FDCWD, word, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if ((word = getenv("FAULT_AT"))) at = strtoul(word, 0, 10);
    if ((word = getenv("FAULT_ERRNO"))) error_number = atoi(word);
    if ((word = getenv("FAULT_LASTING"))) lasting = atoi(word);
    state = shared;
}

static int is_named(const char *list, const char *word, char separator) {
    size_t length = strlen(word);
    for (const char *found = list; found; found = strchr(found, separator)) {
        if (*found == separator) found++;
        if (!strncmp(found, word, length) && (!found[length] || found[length] == separator))
            return 1;
    }
    return 0;
}

static int is_under(const char *path) {
    for (const char *folder = under; folder && *folder;) {
        const char *end = strchrnul(folder, ':');
        size_t length = end - folder;
        if (!strncmp(path, folder, length) && (!path[length] || path[length] == '/')) return 1;
        folder = *end ? end + 1 : end;
    }
    return 0;
}

static void path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

/* Whether this call goes wrong; errno is then set. */
static int fails(const char *kind, const char *path) {
    int before = errno;
    if (!is_named(kinds, kind, ',')) return 0;
    unsigned long number = __atomic_add_fetch(&state->count, 1, __ATOMIC_SEQ_CST);
    if (log_descriptor >= 0) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%lu %d %s %s\n", number, getpid(), kind, path);
        syscall(SYS_write, log_descriptor, line, length);
    }
    errno = before;
    if (!at || number < at || (number > at && !lasting)) return 0;
    __atomic_add_fetch(&state->fired, 1, __ATOMIC_SEQ_CST);
    if (!error_number) syscall(SYS_kill, getpid(), SIGKILL);
    errno = error_number;
    return 1;
}

static int fails_at(const char *kind, int folder, const char *path) {
    char full[2 * PATH_MAX + 2];
    if (!state) return 0;
    if (*path == '/') {
        snprintf(full, sizeof full, "%s", path);
    } else {
        if (folder == AT_FDCWD) {
            if (!getcwd(full, PATH_MAX)) return 0;
        } else {
            path_of(folder, full);
        }
        size_t length = strlen(full);
        snprintf(full + length, sizeof full - length, "/%s", path);
    }
    return is_under(full) ? fails(kind, full) : 0;
}

static int fails_on(const char *kind, int descriptor) {
    char path[PATH_MAX];
    if (!state) return 0;
    path_of(descriptor, path);
    return is_under(path) ? fails(kind, path) : 0;
}

#define REAL(result, name, ...)                          \
    static result (*real)(__VA_ARGS__);                  \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define MODE                                             \
    mode_t mode = 0;                                     \
    if (flags & (O_CREAT | O_TMPFILE)) {                 \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode = va_arg(rest, mode_t);                     \
        va_end(rest);                                    \
    }

#define OPEN(name)                                       \
    int name(const char *path, int flags, ...) {         \
        REAL(int, name, const char *, int, ...);         \
        MODE                                             \
        const char *kind = flags & O_CREAT ? "create" : "open"; \
        return fails_at(kind, AT_FDCWD, path) ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                     \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, name, int, const char *, int, ...);    \
        MODE                                             \
        const char *kind = flags & O_CREAT ? "create" : "open"; \
        return fails_at(kind, folder, path) ? -1 : real(folder, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int descriptor, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    return fails_on("write", descriptor) ? -1 : real(descriptor, data, size);
}

int fsync(int descriptor) {
    REAL(int, fsync, int);
    return fails_on("fsync", descriptor) ? -1 : real(descriptor);
}

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    return fails_at("rename", AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat(int from_folder, const char *from, int folder, const char *to) {
    REAL(int, renameat, int, const char *, int, const char *);
    return fails_at("rename", folder, to) ? -1 : real(from_folder, from, folder, to);
}

int link(const char *from, const char *to) {
    REAL(int, link, const char *, const char *);
    return fails_at("link", AT_FDCWD, to) ? -1 : real(from, to);
}

int symlink(const char *target, const char *path) {
    REAL(int, symlink, const char *, const char *);
    return fails_at("link", AT_FDCWD, path) ? -1 : real(target, path);
}

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    return fails_at("unlink", AT_FDCWD, path) ? -1 : real(path);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    return fails_at("unlink", folder, path) ? -1 : real(folder, path, flags);
}

int rmdir(const char *path) {
    REAL(int, rmdir, const char *);
    return fails_at("unlink", AT_FDCWD, path) ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir, const char *, mode_t);
    return fails_at("mkdir", AT_FDCWD, path) ? -1 : real(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(int, mkdirat, int, const char *, mode_t);
    return fails_at("mkdir", folder, path) ? -1 : real(folder, path, mode);
}

pid_t fork(void) {
    REAL(pid_t, fork, void);
    return state && fails("fork", "") ? -1 : real();
}

/* A frame that a child has left is none to return to, so what would share one gets its own. */
pid_t vfork(void) {
    return fork();
}

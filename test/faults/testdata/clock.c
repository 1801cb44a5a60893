/*
 * A clock for one process that tests may set, loaded before the C library (LD_PRELOAD). The file that FAULTS_CLOCK
 * names holds three 64-bit numbers: how many microseconds the clock is ahead, by how many millionths it goes too fast,
 * and since when, in microseconds of the real clock. Only the time of day is changed, never the monotonic clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAULTS_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *p = mmap(NULL, 24, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		shift = p;
}

/* How far ahead the clock is at a real instant, in nanoseconds. */
static int64_t ahead(int64_t real)
{
	if (!shift)
		return 0;
	return shift[0] * 1000 + (real / 1000 - shift[2]) / 1000 * shift[1];
}

static int64_t now(void)
{
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	int64_t real = t.tv_sec * 1000000000LL + t.tv_nsec;
	return real + ahead(real);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
		return syscall(SYS_clock_gettime, id, t);
	int64_t n = now();
	t->tv_sec = n / 1000000000LL;
	t->tv_nsec = n % 1000000000LL;
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	(void)zone;
	int64_t n = now();
	t->tv_sec = n / 1000000000LL;
	t->tv_usec = n % 1000000000LL / 1000;
	return 0;
}

time_t time(time_t *t)
{
	time_t n = now() / 1000000000LL;
	if (t)
		*t = n;
	return n;
}

/*
 * The kernel knows nothing of our clock: waits until an instant of it are made waits until the real one. Instants of the
 * monotonic clock, which are small, stay, and so do those that mean for ever, which MySQL says with the largest number.
 */
int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict until)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	if (!real)
		real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	if (until->tv_sec < 1000000000LL || until->tv_sec > 10000000000LL)
		return real(c, m, until);
	struct timespec r;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &r);
	int64_t d = ahead(r.tv_sec * 1000000000LL + r.tv_nsec);
	int64_t n = until->tv_sec * 1000000000LL + until->tv_nsec - d;
	struct timespec moved = { n / 1000000000LL, n % 1000000000LL };
	return real(c, m, &moved);
}

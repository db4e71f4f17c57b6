/* What this machine's memory, caches, sockets and scheduler allow at best: the limits for any
 * collective library here. Bandwidths are payload: bytes of the array per second, all threads
 * together (a copy moves twice, c=a+b three times that through memory). Best of many runs.
 * `ceilings probe` measures the cache line only; `ceilings memory` prints memory as JSON lines. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static void pin(int cpu) { cpu_set_t s; CPU_ZERO(&s); CPU_SET(cpu, &s); sched_setaffinity(0, sizeof s, &s); }
static void *shared(size_t n) { return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); }

/* ---- memory ---- */
typedef void kernel(float *restrict c, float *restrict a, float *restrict b, size_t n);
static void k_memcpy(float *restrict c, float *restrict a, float *restrict b, size_t n) { (void)b; memcpy(c, a, n * 4); }
static void k_movsb(float *restrict c, float *restrict a, float *restrict b, size_t n)
{
    size_t bytes = n * 4; (void)b;
    __asm__ volatile("rep movsb" : "+D"(c), "+S"(a), "+c"(bytes) :: "memory");
}
#define LOOP(name, step, body) static void name(float *restrict c, float *restrict a, float *restrict b, size_t n) \
    { (void)a; (void)b; (void)c; for (size_t i = 0; i < n; i += step) { body; } _mm_sfence(); }
#define L2(p) _mm256_load_ps(p)
LOOP(k_copy2,    8,  _mm256_store_ps(c + i, L2(a + i)))
LOOP(k_copy2nt,  8,  _mm256_stream_ps(c + i, L2(a + i)))
LOOP(k_acc2,     8,  _mm256_store_ps(a + i, _mm256_add_ps(L2(a + i), L2(b + i))))
LOOP(k_add2,     8,  _mm256_store_ps(c + i, _mm256_add_ps(L2(a + i), L2(b + i))))
#ifdef __AVX512F__
#define L5(p) _mm512_load_ps(p)
LOOP(k_copy5,    16, _mm512_store_ps(c + i, L5(a + i)))
LOOP(k_copy5nt,  16, _mm512_stream_ps(c + i, L5(a + i)))
LOOP(k_acc5,     16, _mm512_store_ps(a + i, _mm512_add_ps(L5(a + i), L5(b + i))))
LOOP(k_add5,     16, _mm512_store_ps(c + i, _mm512_add_ps(L5(a + i), L5(b + i))))
LOOP(k_add5nt,   16, _mm512_stream_ps(c + i, _mm512_add_ps(L5(a + i), L5(b + i))))
#endif
static const struct { const char *name; kernel *fn; int moves; /* arrays that go through memory */ } kernels[] = {
    { "c=a     memcpy", k_memcpy, 2 }, { "c=a     rep movsb", k_movsb, 2 },
    { "c=a     avx2", k_copy2, 2 },    { "c=a     avx2 nt", k_copy2nt, 2 },
    { "a+=b    avx2", k_acc2, 3 },     { "c=a+b   avx2", k_add2, 3 },
#ifdef __AVX512F__
    { "c=a     avx512", k_copy5, 2 },  { "c=a     avx512 nt", k_copy5nt, 2 },
    { "a+=b    avx512", k_acc5, 3 },   { "c=a+b   avx512", k_add5, 3 }, { "c=a+b   avx512 nt", k_add5nt, 3 },
#endif
};
enum { NK = sizeof kernels / sizeof *kernels, REPS = 7, NS = 5 };
static const size_t mem_sizes[NS] = { 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20 };
static pthread_barrier_t bar;
enum how { SPIN, YIELD, FUTEX };
struct job { int cpu, threads, huge; size_t n; double best[NK]; };

static void *mem_thread(void *arg)
{
    struct job *j = arg;
    float *p[3];
    pin(j->cpu);
    for (int i = 0; i < 3; i++) {
        p[i] = aligned_alloc(2 << 20, (j->n + (2 << 20) - 1) >> 21 << 21);
        madvise(p[i], j->n, j->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        memset(p[i], 0, j->n);
    }
    size_t calls = (64 << 20) / j->n;
    if (!calls) calls = 1;
    for (int k = 0; k < NK; k++)
        for (int r = 0; r < REPS; r++) {
            pthread_barrier_wait(&bar);
            double t = now();
            for (size_t i = 0; i < calls; i++) kernels[k].fn(p[0], p[1], p[2], j->n / 4);
            pthread_barrier_wait(&bar);
            double bw = (double)j->n * calls * j->threads / (now() - t) / 1e9;
            if (bw > j->best[k]) j->best[k] = bw;
        }
    for (int i = 0; i < 3; i++) free(p[i]);
    return NULL;
}
static double latency(const char *name, enum how how, int same_core);
/* link: the cache line's ns before and after each measurement, which tell the state of the cores. */
static void measure_memory(int huge, double res[NS][2][NK], double link[NS][2][2])
{
    for (int s = 0; s < NS; s++)
        for (int threads = 1; threads <= 2; threads++) {
            link[s][threads - 1][0] = latency(NULL, SPIN, 0) * 1e9;
            struct job j[2] = { { 0 } };
            pthread_t t[2];
            pthread_barrier_init(&bar, NULL, threads);
            for (int i = 0; i < threads; i++) {
                j[i].cpu = i; j[i].threads = threads; j[i].huge = huge; j[i].n = mem_sizes[s];
                pthread_create(&t[i], NULL, mem_thread, &j[i]);
            }
            for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
            memcpy(res[s][threads - 1], j[0].best, sizeof j[0].best);
            link[s][threads - 1][1] = latency(NULL, SPIN, 0) * 1e9;
        }
}
static void memory_json(void)
{
    double res[NS][2][NK], link[NS][2][2];
    measure_memory(0, res, link);
    for (int s = 0; s < NS; s++) for (int t = 0; t < 2; t++) for (int k = 0; k < NK; k++)
        printf("{\"ceiling\":\"%s%s\",\"kernel\":\"%s\",\"bytes\":%zu,\"threads\":%d,\"payload_GBps\":%.2f,\"moved_GBps\":%.2f,\"link_ns\":[%.0f,%.0f]}\n",
               kernels[k].moves == 2 ? "copy" : "add", strstr(kernels[k].name, " nt") ? " nt" : "", kernels[k].name, mem_sizes[s], t + 1, res[s][t][k], res[s][t][k] * kernels[k].moves,
               link[s][t][0], link[s][t][1]);
}
static void memory(int huge)
{
    double res[NS][2][NK], link[NS][2][2];
    measure_memory(huge, res, link);
    printf("memory, %s pages, payload GB/s         1 thread                                  2 threads (sum)\n%-20s",
           huge ? "2 MiB" : "4 KiB", "");
    for (int t = 0; t < 2; t++) printf("   64KiB    1MiB   16MiB   64MiB  256MiB ");
    for (int k = 0; k < NK; k++) {
        printf("\n%-20s", kernels[k].name);
        for (int t = 0; t < 2; t++, printf(" ")) for (int s = 0; s < NS; s++) printf("%8.1f", res[s][t][k]);
    }
    printf("\n");
}

/* ---- latency between two threads or processes ---- */
static struct { _Alignas(128) atomic_int v; } *line;
static void wait_for(atomic_int *p, int old, enum how how)
{
    while (atomic_load_explicit(p, memory_order_acquire) == old) {
        if (how == YIELD) sched_yield();
        else if (how == FUTEX) syscall(SYS_futex, p, FUTEX_WAIT, old, NULL, NULL, 0);
    }
}
static void set(atomic_int *p, int v, enum how how)
{
    atomic_store_explicit(p, v, memory_order_release);
    if (how == FUTEX) syscall(SYS_futex, p, FUTEX_WAKE, 1, NULL, NULL, 0);
}
static double latency(const char *name, enum how how, int same_core)
{
    int n = how == SPIN ? 20000 : 10000;
    double best = 1e9, all[9];
    for (int rep = 0; rep < 9; rep++) {
        line[0].v = line[1].v = 0;
        pid_t child = fork();
        pin(child || same_core ? 0 : 1);
        double t = now();
        for (int i = 0; i < n; i++) {
            if (child) { set(&line[0].v, i + 1, how); wait_for(&line[1].v, i, how); }
            else { wait_for(&line[0].v, i, how); set(&line[1].v, i + 1, how); }
        }
        if (!child) _exit(0);
        all[rep] = (now() - t) / n / 2;
        if (all[rep] < best) best = all[rep];
        waitpid(child, NULL, 0);
    }
    if (name) printf("%-52s %8.3f us one way\n", name, best * 1e6);
    return best;
}
static void where(const char *what) /* bench.c tells why */
{
    double ns = latency(NULL, SPIN, 0) * 1e9;
    printf("\n[%s; the cores are %s: %.0f ns]\n", what, ns < 120 ? "near" : "far", ns);
}

/* ---- sockets ---- */
static void socket_pair(int tcp, int fd[2])
{
    if (!tcp) { socketpair(AF_UNIX, SOCK_STREAM, 0, fd); return; }
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    bind(l, (void *)&a, len); listen(l, 1); getsockname(l, (void *)&a, &len);
    fd[0] = socket(AF_INET, SOCK_STREAM, 0);
    connect(fd[0], (void *)&a, len);
    fd[1] = accept(l, NULL, NULL);
    close(l);
    for (int i = 0; i < 2; i++) setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}
static void xfer(int fd, char *buf, size_t n, int out, int flags)
{
    while (n) {
        ssize_t k = out ? send(fd, buf, n, flags) : recv(fd, buf, n, flags);
        if (k > 0) { buf += k; n -= k; }
    }
}
static void sockets(const char *name, int tcp)
{
    enum { N = 20000 };
    static const size_t sizes[] = { 65536, 1 << 20 };
    char *buf = shared(1 << 20);
    for (int flags = 0; flags <= MSG_DONTWAIT; flags += MSG_DONTWAIT) {
        double best = 1e9;
        for (int rep = 0; rep < 5; rep++) {
            int fd[2]; char c = 0;
            socket_pair(tcp, fd);
            pid_t child = fork();
            pin(child ? 0 : 1);
            double t = now();
            for (int i = 0; i < N; i++) {
                xfer(fd[!child], &c, 1, !!child, flags);
                xfer(fd[!child], &c, 1, !child, flags);
            }
            if (!child) _exit(0);
            if ((t = (now() - t) / N) < best) best = t;
            waitpid(child, NULL, 0); close(fd[0]); close(fd[1]);
        }
        printf("%-16s 1 B round trip, %-18s %8.2f us\n", name, flags ? "busy polling" : "blocking", best * 1e6);
    }
    for (int s = 0; s < 2; s++) {
        double best = 0;
        for (int rep = 0; rep < 5; rep++) {
            int fd[2], n = (1 << 30) / sizes[s]; char c = 0;
            socket_pair(tcp, fd);
            pid_t child = fork();
            pin(child ? 0 : 1);
            char *mine = malloc(sizes[s]);
            memset(mine, 1, sizes[s]);
            double t = now();
            for (int i = 0; i < n; i++) xfer(fd[!child], mine, sizes[s], !!child, 0);
            xfer(fd[!child], &c, 1, !child, 0);
            if (!child) _exit(0);
            double bw = (double)sizes[s] * n / (now() - t) / 1e9;
            if (bw > best) best = bw;
            free(mine);
            waitpid(child, NULL, 0); close(fd[0]); close(fd[1]);
        }
        printf("%-16s one way, %4zu KiB writes         %8.2f GB/s\n", name, sizes[s] >> 10, best);
    }
    munmap(buf, 1 << 20);
}

/* ---- single copy between processes: process_vm_readv ("CMA") ---- */
static void cma(size_t n, int both)
{
    double best = 0;
    struct { atomic_int go, done; char *addr; } *c = shared(4096);
    char *there = malloc(n), *here = malloc(n);
    memset(there, 1, n); memset(here, 1, n);
    int calls = (256 << 20) / n;
    pid_t parent = getpid(), child = fork();
    pin(child ? 0 : 1);
    if (!child) memset(there, 2, n), memset(here, 2, n); /* own pages */
    for (int rep = 0; rep < 5; rep++) {
        atomic_fetch_add(&c->go, 1);
        while (c->go < 2 * (rep + 1)) ;
        double t = now();
        struct iovec l = { here, n }, r = { there, n };
        for (int i = 0; i < calls && (child || both); i++)
            if (process_vm_readv(child ? child : parent, &l, 1, &r, 1, 0) != (ssize_t)n) { perror("process_vm_readv"); exit(1); }
        atomic_fetch_add(&c->done, 1);
        while (c->done < 2 * (rep + 1)) ;
        double bw = (double)n * calls * (both ? 2 : 1) / (now() - t) / 1e9;
        if (bw > best) best = bw;
    }
    if (!child) _exit(0);
    waitpid(child, NULL, 0);
    printf("process_vm_readv %6zu KiB, %-26s %8.2f GB/s\n", n >> 10, both ? "both ways at once (sum)" : "one way", best);
    free(there); free(here); munmap(c, 4096);
}

int main(int argc, char **argv)
{
    line = shared(4096);
    setbuf(stdout, NULL);
    if (argc > 1 && !strcmp(argv[1], "probe")) { latency("cache line, two cores, spinning", SPIN, 0); return 0; }
    if (argc > 1 && !strcmp(argv[1], "memory")) { memory_json(); return 0; }
    for (int huge = 0; huge < 2; huge++) { where("memory"); memory(huge); }
    where("waiting");
    latency("cache line, two cores, spinning", SPIN, 0);
    latency("futex sleep and wake, two cores", FUTEX, 0);
    latency("futex sleep and wake, same core", FUTEX, 1);
    latency("sched_yield hand-over, same core", YIELD, 1);
    where("sockets");
    sockets("AF_UNIX stream", 0);
    where("sockets");
    sockets("TCP loopback", 1);
    where("process_vm_readv");
    for (size_t n = 64 << 10; n <= 16 << 20; n <<= 4) for (int both = 0; both < 2; both++) cma(n, both);
    where("end");
    return 0;
}

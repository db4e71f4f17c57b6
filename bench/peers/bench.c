/* nccl-tests style benchmark of one CPU collective library: one JSON line per message size.
 *
 * Timing: all ranks meet at a barrier in shared memory (the same for every library), each runs
 * the collective -k times and takes the mean; the slowest rank's figure is one sample. What
 * reading the clock costs is taken off each (clock_ns), since it differs between languages.
 * Printed are the median, minimum and mean of -n samples.
 *
 * A virtual machine's two cores may be moved by the host, every few seconds, between two cores
 * that share a cache ("near") and two that do not ("far"), which changes everything by up to 4x.
 * So the cache line's one-way latency between cores 0 and 1 is measured before and after each
 * size and printed as link_ns, with the number of other processes then running as others, and
 * -m near (or far) waits for that state and a quiet machine, and repeats the size when it was
 * lost meanwhile. */
#define _GNU_SOURCE
#include "bench.h"
#include <fcntl.h>
#include <immintrin.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAXRANKS 64
static const char *const coll_names[NCOLL] = { "all_reduce", "all_gather", "reduce_scatter",
    "broadcast", "reduce", "alltoall", "sendrecv" };
static const char *const type_names[NTYPE] = { "float", "int32", "double", "half", "bf16" };
static const size_t esizes[NTYPE] = { 4, 4, 8, 2, 2 };

/* ---- sums ---- */
#define ADD(name, T) static void name(void *o, const void *a, const void *b, size_t n) { \
    T *po = o; const T *pa = a, *pb = b; \
    _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) po[i] = pa[i] + pb[i]; }
ADD(add_f32, float) ADD(add_i32, int32_t) ADD(add_f64, double)

static void add_f16(void *o, const void *a, const void *b, size_t n)
{
    uint16_t *po = o; const uint16_t *pa = a, *pb = b;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(pa + i)));
        __m256 y = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(pb + i)));
        _mm_storeu_si128((__m128i *)(po + i), _mm256_cvtps_ph(_mm256_add_ps(x, y), 0));
    }
    for (; i < n; i++) po[i] = _cvtss_sh(_cvtsh_ss(pa[i]) + _cvtsh_ss(pb[i]), 0);
}
static float bf16_to_f32(uint16_t v) { uint32_t u = (uint32_t)v << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t f32_to_bf16(float f) { uint32_t u; memcpy(&u, &f, 4); return (u + 0x7fff + ((u >> 16) & 1)) >> 16; }
static void add_bf16(void *o, const void *a, const void *b, size_t n)
{
    uint16_t *po = o; const uint16_t *pa = a, *pb = b;
    _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++)
        po[i] = f32_to_bf16(bf16_to_f32(pa[i]) + bf16_to_f32(pb[i]));
}
const add_fn add_fns[NTYPE] = { add_f32, add_i32, add_f64, add_f16, add_bf16 };

/* ---- test data: small whole numbers, so that every type's sums are exact ---- */
static int value(int rank, size_t i) { return (int)((i * 7 + (size_t)rank * 3) % 13); }
static int sum_of(int size, size_t i) { int s = 0; for (int r = 0; r < size; r++) s += value(r, i); return s; }
static void put(enum type t, void *buf, size_t i, int v)
{
    switch (t) {
    case F32: ((float *)buf)[i] = v; break;
    case I32: ((int32_t *)buf)[i] = v; break;
    case F64: ((double *)buf)[i] = v; break;
    case F16: ((uint16_t *)buf)[i] = _cvtss_sh(v, 0); break;
    default:  ((uint16_t *)buf)[i] = f32_to_bf16(v);
    }
}
static int get(enum type t, const void *buf, size_t i)
{
    switch (t) {
    case F32: return ((const float *)buf)[i];
    case I32: return ((const int32_t *)buf)[i];
    case F64: return ((const double *)buf)[i];
    case F16: return _cvtsh_ss(((const uint16_t *)buf)[i]);
    default:  return bf16_to_f32(((const uint16_t *)buf)[i]);
    }
}
static void fill(struct op *op)
{
    if (op->inplace && op->coll == ALL_GATHER) {
        memset(op->recv, 0x55, op->count * op->esize);
        for (size_t i = 0; i < op->chunk; i++) put(op->type, op->recv, op->rank * op->chunk + i, value(op->rank, i));
        return;
    }
    if (!op->inplace) memset(op->recv, 0x55, op->count * op->esize);
    for (size_t i = 0; i < op->count; i++) put(op->type, (void *)op->send, i, value(op->rank, i));
}
static long wrong(const struct op *op)
{
    long bad = 0;
    size_t n = op->coll == REDUCE_SCATTER ? op->chunk : op->count;
    int left = (op->rank + op->size - 1) % op->size;
    if (op->coll == REDUCE && op->rank) return 0;
    if (op->coll == BROADCAST && !op->rank) return 0;
    for (size_t i = 0; i < n; i++) {
        int want = 0;
        switch (op->coll) {
        case REDUCE_SCATTER: want = sum_of(op->size, op->rank * op->chunk + i); break;
        case ALL_GATHER: want = value(i / op->chunk, i % op->chunk); break;
        case BROADCAST:  want = value(0, i); break;
        case ALLTOALL:   want = value(i / op->chunk, op->rank * op->chunk + i % op->chunk); break;
        case SENDRECV:   want = value(left, i); break;
        default:         want = sum_of(op->size, i);
        }
        bad += get(op->type, op->result, i) != want;
    }
    return bad;
}

static int by_value(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }

/* ---- meeting point of the ranks, outside the library under test ---- */
static struct ctl {
    atomic_int arrived, turn, stop, unsupported, probed;
    double t[MAXRANKS];
    struct state { double ns; int others; } state;
    long bad[MAXRANKS];
    struct { _Alignas(128) atomic_int v; } ping[2];
} *ctl;
static int rank, size, cores;

/* With a core for each rank, spins. With fewer, sleeps, so that a rank that is done leaves its
 * core to those that are not. */
static void barrier(void)
{
    int turn = atomic_load(&ctl->turn);
    if (atomic_fetch_add(&ctl->arrived, 1) == size - 1) {
        atomic_store(&ctl->arrived, 0);
        atomic_store(&ctl->turn, turn + 1);
        return;
    }
    for (int i = 1; atomic_load(&ctl->turn) == turn; i++) {
        if (size <= cores) {
            if (i % 64 == 0) be_poll();
            if (i % 1000 == 0) sched_yield(); else _mm_pause();
        } else {
            be_poll();
            sched_yield();
        }
    }
}
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static double clock_cost(void) /* seconds that two readings in a row lie apart: the median */
{
    enum { N = 1001 };
    static double apart[N];
    for (int i = 0; i < N; i++) { double t = now(); apart[i] = now() - t; }
    qsort(apart, N, sizeof *apart, by_value);
    return apart[N / 2];
}

enum { NEAR_NS = 120, PROBES = 1000 };
static int running(void) /* threads that run or could, on the whole machine */
{
    int n = 0;
    FILE *f = fopen("/proc/loadavg", "r");
    if (f && fscanf(f, "%*f %*f %*f %d", &n) != 1) n = 0;
    if (f) fclose(f);
    return n;
}
/* The state of the machine, measured by ranks 0 and 1 while the others sleep. */
static struct state probe(void)
{
    static int epoch;
    cpu_set_t old, one;
    epoch++;
    barrier();
    if (size < 2 || cores < 2) return (struct state) { 0, 0 };
    if (rank < 2) {
        sched_getaffinity(0, sizeof old, &old);
        CPU_ZERO(&one);
        CPU_SET(rank, &one);
        sched_setaffinity(0, sizeof one, &one);
        double best = 1;
        for (int rep = 0; rep < 3; rep++) {
            double t = now();
            for (int i = 0; i < PROBES; i++) {
                int v = ((epoch * 3) + rep) * PROBES + i;
                if (!rank) atomic_store(&ctl->ping[0].v, v);
                while (atomic_load(&ctl->ping[rank ? 0 : 1].v) != v) ;
                if (rank) atomic_store(&ctl->ping[1].v, v);
            }
            t = (now() - t) / PROBES / 2;
            if (t < best) best = t;
        }
        sched_setaffinity(0, sizeof old, &old);
        if (!rank) {
            int least = 1000, mine = 2; /* rank 1 waits at the barrier; the others sleep */
            for (int i = 0; i < 5; i++, usleep(300)) { int n = running(); if (n < least) least = n; }
            ctl->state = (struct state) { best * 1e9, least > mine ? least - mine : 0 };
            ctl->probed = epoch;
        }
    } else while (ctl->probed != epoch) usleep(2000);
    barrier();
    return ctl->state;
}
static int in_state(const char *want, struct state s)
{
    return !want || (!s.others && (*want == 'n' ? s.ns < NEAR_NS : s.ns >= NEAR_NS));
}

static size_t parse_size(const char **s)
{
    char *end;
    size_t v = strtoull(*s, &end, 10);
    switch (*end) {
    case 'G': case 'g': v <<= 10; /* fall through */
    case 'M': case 'm': v <<= 10; /* fall through */
    case 'K': case 'k': v <<= 10; end++;
    }
    *s = end;
    return v;
}
static int lookup(const char *const *names, int n, const char *s)
{
    for (int i = 0; i < n; i++) if (!strcmp(names[i], s)) return i;
    fprintf(stderr, "unknown name '%s'\n", s);
    exit(2);
}
static void usage(void)
{
    fprintf(stderr, "options: -C collective (all_reduce)  -d float|int32|double|half|bf16  -i 0|1 in place\n"
        "  -b min  -e max  -f factor   or   -s 8,1K,1M list of sizes\n"
        "  -n samples (100)  -w warm-up (5)  -k calls per sample (1)  -t seconds per size (1)\n"
        "  -c check  -p pin rank r to core r%%cores  -H huge pages  -A algorithm  -L label\n"
        "  -m near|far  time only while the cores are so and quiet, waiting up to -W seconds (20)\n");
    exit(2);
}

int main(int argc, char **argv)
{
    struct op op = { .algo = "" };
    const char *label = "", *list = NULL, *want = NULL, *s;
    size_t min = 8, max = 64 << 20, factor = 2, sizes[128];
    int n = 100, warm = 5, k = 1, check = 0, pin = 0, huge = 0, nsizes = 0, c;
    double limit = 1, patience = 20;

    while ((c = getopt(argc, argv, "C:d:i:b:e:f:s:n:w:k:t:cpHA:L:m:W:h")) != -1) {
        s = optarg;
        switch (c) {
        case 'C': op.coll = lookup(coll_names, NCOLL, optarg); break;
        case 'd': op.type = lookup(type_names, NTYPE, optarg); break;
        case 'i': op.inplace = atoi(optarg); break;
        case 'b': min = parse_size(&s); break;
        case 'e': max = parse_size(&s); break;
        case 'f': factor = atoi(optarg); break;
        case 's': list = optarg; break;
        case 'n': n = atoi(optarg); break;
        case 'w': warm = atoi(optarg); break;
        case 'k': k = atoi(optarg); break;
        case 't': limit = atof(optarg); break;
        case 'c': check = 1; break;
        case 'p': pin = 1; break;
        case 'H': huge = 1; break;
        case 'A': op.algo = optarg; break;
        case 'L': label = optarg; break;
        case 'm': want = optarg; break;
        case 'W': patience = atof(optarg); break;
        default: usage();
        }
    }
    if (factor < 2 || n < 1 || k < 1) usage();
    if (list) {
        max = 0;
        for (s = list; *s && nsizes < 128; s += *s == ',') {
            sizes[nsizes] = parse_size(&s);
            if (sizes[nsizes] > max) max = sizes[nsizes];
            nsizes++;
        }
    } else for (size_t b = min; b <= max && nsizes < 128; b *= factor) sizes[nsizes++] = b;

    const char *path = getenv("BENCH_SHM");
    if (!path) { fprintf(stderr, "set BENCH_SHM to the path of a new file for all ranks\n"); return 2; }
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *ctl)) { perror(path); return 2; }
    ctl = mmap(NULL, sizeof *ctl, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *early = getenv("BENCH_RANK") ? getenv("BENCH_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    if (!early) early = getenv("PMI_RANK");
    if (pin && early) { /* before be_init, so that the library's threads inherit it */
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(early) % cores, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    be_init(&argc, &argv, &rank, &size);
    if (size > MAXRANKS) { fprintf(stderr, "at most %d ranks\n", MAXRANKS); return 2; }

    void *buf[2];
    for (int i = 0; i < 2; i++) {
        if (posix_memalign(&buf[i], huge ? 2 << 20 : 4096, max + 64)) return 2;
        if (huge) madvise(buf[i], max, MADV_HUGEPAGE);
        memset(buf[i], 0, max + 64);
    }
    op.rank = rank; op.size = size; op.esize = esizes[op.type];
    double *sample = malloc(sizeof(double) * n), clock = clock_cost();

    for (int z = 0; z < nsizes; z++) {
        op.chunk = sizes[z] / op.esize / size;
        op.count = op.coll == ALL_REDUCE || op.coll == BROADCAST || op.coll == REDUCE || op.coll == SENDRECV
                 ? sizes[z] / op.esize : op.chunk * size;
        if (!op.count) continue;
        size_t bytes = op.count * op.esize;
        op.recv = buf[1];
        op.result = op.recv;
        op.send = op.inplace ? buf[1] : buf[0];
        if (op.inplace && op.coll == ALL_GATHER) op.send = (char *)buf[1] + rank * op.chunk * op.esize;
        if (!be_prepare(&op)) ctl->unsupported = 1;
        barrier();
        if (ctl->unsupported) {
            if (!rank) fprintf(stderr, "%s: no %s%s here\n", be_name, coll_names[op.coll], op.inplace ? " in place" : "");
            break;
        }
        if (check) {
            fill(&op);
            barrier();
            be_run(&op);
            ctl->bad[rank] = wrong(&op);
        }
        if (op.inplace) memset(op.recv, 0, bytes); /* sums in place must not overflow */
        int got, waits = patience * 20;
        struct state before, after;
        do {
            while (!in_state(want, before = probe()) && waits-- > 0) usleep(50000);
            if (!rank) ctl->stop = 0;
            barrier();
            got = 0;
            double begin = now();
            for (int i = -warm; i < n; i++) {
                barrier();
                if (ctl->stop) break;
                double t = now();
                for (int j = 0; j < k; j++) be_run(&op);
                ctl->t[rank] = (now() - t - clock) / k;
                barrier();
                if (rank) continue;
                double worst = 0;
                for (int r = 0; r < size; r++) if (ctl->t[r] > worst) worst = ctl->t[r];
                if (i >= 0) sample[got++] = worst;
                if (got && now() - begin > limit) ctl->stop = 1;
            }
            after = probe();
        } while (!in_state(want, after) && waits-- > 0);
        if (rank) continue;

        long bad = 0;
        double mean = 0, nr = size;
        for (int r = 0; r < size; r++) bad += ctl->bad[r];
        for (int i = 0; i < got; i++) mean += sample[i] / got;
        qsort(sample, got, sizeof *sample, by_value);
        double med = sample[got / 2];
        double bus = op.coll == ALL_REDUCE ? 2 * (nr - 1) / nr
                   : op.coll == ALL_GATHER || op.coll == REDUCE_SCATTER || op.coll == ALLTOALL ? (nr - 1) / nr : 1;
        char err[32] = "null";
        if (check) snprintf(err, sizeof err, "%ld", bad);
        printf("{\"lib\":\"%s\",\"cfg\":\"%s\",\"coll\":\"%s\",\"type\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"inplace\":%d,"
               "\"calls\":%d,\"samples\":%d,\"link_ns\":[%.0f,%.0f],\"others\":[%d,%d],\"clock_ns\":%.0f,\"time_us\":%.3f,\"min_us\":%.3f,\"mean_us\":%.3f,"
               "\"algbw_GBps\":%.4f,\"busbw_GBps\":%.4f,\"wrong\":%s}\n",
               be_name, label, coll_names[op.coll], type_names[op.type], size, bytes, op.inplace, k, got, before.ns, after.ns, before.others, after.others, clock * 1e9,
               med * 1e6, sample[0] * 1e6, mean * 1e6, bytes / med / 1e9, bytes / med / 1e9 * bus, err);
        fflush(stdout);
    }
    be_fini();
    if (!rank) unlink(path);
    return 0;
}

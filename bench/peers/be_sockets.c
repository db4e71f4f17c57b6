/* No library: two ranks and one plain TCP socket, for what the kernel alone takes. BENCH_RANK, BENCH_SIZE; rank 0 listens on
 * BENCH_ADDRESS and leaves its port in BENCH_SHM.store.
 * -A: longest send and receive in bytes, by default 120 KiB. */
#include "bench.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

const char *be_name = "sockets";
static int fd;
static size_t slice;
static char *room; /* for what is to be added */

static void fail(const char *what) { perror(what); exit(1); }

void be_init(int *argc, char ***argv, int *rank, int *size)
{
    (void)argc, (void)argv;
    *rank = atoi(getenv("BENCH_RANK"));
    *size = atoi(getenv("BENCH_SIZE"));
    char folder[512], file[600], partial[600];
    snprintf(folder, sizeof folder, "%s.store", getenv("BENCH_SHM"));
    snprintf(file, sizeof file, "%s/port", folder);
    snprintf(partial, sizeof partial, "%s/port.partial", folder);
    mkdir(folder, 0700);
    struct sockaddr_in address = { .sin_family = AF_INET };
    if (inet_pton(AF_INET, getenv("BENCH_ADDRESS"), &address.sin_addr) != 1) fail("BENCH_ADDRESS");
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (*rank == 0) {
        socklen_t length = sizeof address;
        if (bind(fd, (void *)&address, length) || listen(fd, 1) || getsockname(fd, (void *)&address, &length)) fail("listen");
        FILE *port = fopen(partial, "w");
        if (!port || fprintf(port, "%d\n", ntohs(address.sin_port)) < 0 || fclose(port) || rename(partial, file)) fail(file);
        int connection = accept(fd, NULL, NULL);
        if (connection < 0) fail("accept");
        close(fd);
        fd = connection;
    } else {
        FILE *port;
        int number = 0;
        while (!(port = fopen(file, "r"))) usleep(1000);
        if (fscanf(port, "%d", &number) != 1) fail(file);
        fclose(port);
        address.sin_port = htons(number);
        if (connect(fd, (void *)&address, sizeof address)) fail("connect");
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, O_NONBLOCK);
}

int be_prepare(struct op *op)
{
    slice = *op->algo ? strtoul(op->algo, NULL, 10) : 120 * 1024;
    room = realloc(room, op->count * op->esize);
    return op->size == 2 && !op->inplace && op->coll != BROADCAST && op->coll != REDUCE && op->coll != REDUCE_SCATTER;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Bytes moved; 0 when the kernel takes or has none. */
static size_t moved(ssize_t result)
{
    if (result > 0) return result;
    if (result < 0 && errno == EAGAIN) return 0;
    fail("peer");
    return 0;
}

/* Sends and receives `bytes` bytes. */
static void swap(const char *out, char *in, size_t bytes)
{
    for (size_t sent = 0, got = 0; sent < bytes || got < bytes;) {
        if (sent < bytes) sent += moved(send(fd, out + sent, least(slice, bytes - sent), MSG_NOSIGNAL));
        if (got < bytes) got += moved(recv(fd, in + got, least(slice, bytes - got), 0));
    }
}

/* Each rank adds one half, and sends each slice of sums as soon as it is complete. */
static void all_reduce(struct op *op)
{
    const char *send_ = op->send;
    char *recv_ = op->recv;
    size_t half = op->count / 2 * op->esize, all = op->count * op->esize;
    size_t mine = op->rank ? half : 0, my_bytes = op->rank ? all - half : half;
    size_t theirs = op->rank ? 0 : half, their_bytes = all - my_bytes;
    size_t sent = 0, got = 0, added = 0;
    while (sent < all || got < all) {
        /* First the other rank's half, then this one's sums. */
        size_t ready = least(slice, sent < their_bytes ? their_bytes - sent : their_bytes + added - sent);
        const char *from = sent < their_bytes ? send_ + theirs + sent : recv_ + mine + sent - their_bytes;
        if (ready) sent += moved(send(fd, from, ready, MSG_NOSIGNAL));
        if (got == all) continue;
        int adds = got < my_bytes;
        size_t wanted = least(slice, adds ? my_bytes - got : all - got);
        got += moved(recv(fd, adds ? room + got : recv_ + theirs + got - my_bytes, wanted, 0));
        size_t whole = (least(got, my_bytes) - added) / op->esize;
        if (whole) add_fns[op->type](recv_ + mine + added, send_ + mine + added, room + added, whole);
        added += whole * op->esize;
    }
}

void be_run(struct op *op)
{
    size_t all = op->count * op->esize, part = op->chunk * op->esize;
    const char *in = op->send;
    char *out = op->recv;
    size_t own = op->rank * part, other = part - own;
    switch (op->coll) {
    case ALL_REDUCE: all_reduce(op); break;
    case ALL_GATHER: swap(in, out + other, part); memcpy(out + own, in, part); break;
    case ALLTOALL:   swap(in + other, out + other, part); memcpy(out + own, in + own, part); break;
    default:         swap(in, out, all);
    }
}

void be_poll(void) {}
void be_fini(void) { close(fd); }

// Messages between two ranks of MPI, for suite `messages`: prints a line of JSON a row, the least of the rounds in microseconds.
//     messages ROUNDS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 64, MOST_BYTES = 1 << 20 };

static int rank;
static char *mine, *theirs;
static MPI_Win window;

static void ping_pong(int bytes) {
  if (rank == 0) {
    MPI_Send(mine, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(theirs, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(theirs, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(mine, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

static void both_ways(int bytes) {
  MPI_Sendrecv(mine, bytes, MPI_BYTE, 1 - rank, 0, theirs, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void group(int bytes) {
  MPI_Request requests[2];
  MPI_Irecv(theirs, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(mine, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void stream(int bytes) {
  static MPI_Request requests[IN_FLIGHT];
  for (int i = 0; i < IN_FLIGHT; i++) {
    if (rank == 0) MPI_Isend(mine + i * bytes, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
    else MPI_Irecv(theirs + i * bytes, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(IN_FLIGHT, requests, MPI_STATUSES_IGNORE);
}

static void put(int bytes) {
  if (rank != 0) return;
  MPI_Put(mine, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
  MPI_Win_flush(1, window);
}

static void accumulate(int bytes) {
  if (rank != 0) return;
  MPI_Accumulate(mine, bytes / 4, MPI_INT, 1, 0, bytes / 4, MPI_INT, MPI_SUM, window);
  MPI_Win_flush(1, window);
}

static void fetch_and_op(int bytes) {
  (void)bytes;
  if (rank != 0) return;
  MPI_Fetch_and_op(mine, theirs, MPI_INT, 1, 0, MPI_SUM, window);
  MPI_Win_flush(1, window);
}

static void compare_and_swap(int bytes) {
  (void)bytes;
  if (rank != 0) return;
  MPI_Compare_and_swap(mine, mine, theirs, MPI_INT, 1, 0, window);
  MPI_Win_flush(1, window);
}

/** Calls of a round: some milliseconds, so that another process disturbs few rounds. */
static int calls_of(int bytes) { return bytes <= 1024 ? 2000 : bytes <= 32768 ? 500 : 50; }

static void measure(const char *what, void (*call)(int), int bytes, double messages, int rounds) {
  const int calls = strcmp(what, "rate") == 0 ? 50 : calls_of(bytes);
  double least = 1e9;
  for (int round = 0; round < rounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; i++) call(bytes);
    const double us = (MPI_Wtime() - begin) * 1e6 / calls / messages;
    if (us < least) least = us;
  }
  if (rank == 0) printf("{\"messages\":\"%s\",\"bytes\":%d,\"us\":%.4f}\n", what, bytes, least);
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 20;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  mine = calloc(MOST_BYTES, 1);
  theirs = calloc(MOST_BYTES, 1);
  void *board;
  MPI_Win_allocate(MOST_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &board, &window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  const int sizes[] = {8, 1 << 10, 32 << 10, 1 << 20};
  for (int i = 0; i < 4; i++) {
    measure("ping-pong", ping_pong, sizes[i], 2, rounds);
    measure("both ways", both_ways, sizes[i], 1, rounds);
    measure("group", group, sizes[i], 1, rounds);
    measure("put", put, sizes[i], 1, rounds);
  }
  measure("rate", stream, 8, IN_FLIGHT, rounds);
  measure("accumulate", accumulate, 8, 1, rounds);
  measure("fetchAndOp", fetch_and_op, 4, 1, rounds);
  measure("compareAndSwap", compare_and_swap, 4, 1, rounds);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
}

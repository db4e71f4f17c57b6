// Kernels with known results, for `npm run ptx -- --clang`.
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define BARRIER __syncthreads()

kernel void saxpy(float a, global const float *x, global float *y, int n) {
  int i = BLOCK * THREADS + THREAD;
  if (i < n) y[i] = a * x[i] + y[i];
}

// Sum of a block's part, in memory that its threads share.
kernel void sum(global const float *x, global float *sums, uint n) {
  local float part[64];
  uint i = BLOCK * THREADS + THREAD;
  part[THREAD] = i < n ? x[i] : 0.0f;
  BARRIER;
  for (uint half_ = THREADS / 2; half_ > 0; half_ /= 2) {
    if (THREAD < half_) part[THREAD] += part[THREAD + half_];
    BARRIER;
  }
  if (THREAD == 0) sums[BLOCK] = part[0];
}

kernel void transpose(global const ushort *from, global ushort *to, int size) {
  local ushort tile[8][9];
  int row = THREAD / 8, column = THREAD % 8;
  int tiles = size / 8;
  int x = BLOCK % tiles * 8, y = BLOCK / tiles * 8;
  tile[row][column] = from[(y + row) * size + x + column];
  BARRIER;
  to[(x + row) * size + y + column] = tile[column][row];
}

kernel void histogram(global const uchar *values, global uint *counts, global int *least, uint n) {
  for (uint i = BLOCK * THREADS + THREAD; i < n; i += THREADS * 4) {
    __atomic_fetch_add(&counts[values[i] >> 5], 1, __ATOMIC_RELAXED);
    if (__atomic_fetch_min(least, (int)values[i] - 100, __ATOMIC_RELAXED) < -100) counts[8] = 1;
  }
}

// Numbers of every kind.
kernel void mixed(global const int *a, global const long *b, global const double *c, global long *out, int n) {
  int i = BLOCK * THREADS + THREAD;
  if (i >= n) return;
  long x = b[i] / 7 + b[i] % 5;
  x ^= ((ulong)b[i] >> 3) + (b[i] << 2);
  x += a[i] / 3 - a[i] % 11 + (a[i] >> 2);
  x += a[i] > 0 ? (long)(c[i] * 3.5) : -(long)(char)a[i];
  x += (long)((float)a[i] / 8.0f);
  out[i] = x;
}

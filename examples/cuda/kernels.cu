// Kernels of train.mjs. A thread has a weight; the last one of `backward` has the loss. kernels.ptx was made by nvcc 13.0, with a lower
// .version, which older drivers take: nvcc -ptx -arch=sm_75 kernels.cu
#define N_HIDDEN 8
#define N_WEIGHTS (4 * N_HIDDEN + 1)

/** Output of a hidden unit: weights of x and y, its bias, and its weight in the output. */
__device__ float hidden(const float *unit, float2 at) {
  return fmaxf(unit[0] * at.x + unit[1] * at.y + unit[2], 0);
}

/** Gradients of the squared error over all points (x, y, target), then the error itself. */
extern "C" __global__ void backward(const float *weights, float *gradients, const float *points, unsigned count) {
  unsigned weight = threadIdx.x, unit = weight / 4;
  if (weight > N_WEIGHTS) return;
  float sum = 0;
  #pragma unroll 1
  for (unsigned i = 0; i < count; i++) {
    float2 at = {points[3 * i], points[3 * i + 1]};
    float output = weights[N_WEIGHTS - 1];
    #pragma unroll 1
    for (unsigned j = 0; j < N_HIDDEN; j++) output += weights[4 * j + 3] * hidden(weights + 4 * j, at);
    float error = output - points[3 * i + 2];
    float value = hidden(weights + 4 * (unit % N_HIDDEN), at);
    float back = value > 0 ? error * weights[4 * (unit % N_HIDDEN) + 3] : 0;
    switch (weight < N_WEIGHTS - 1 ? weight % 4 : weight) {
      case 0: sum += back * at.x; break;
      case 1: sum += back * at.y; break;
      case 2: sum += back; break;
      case 3: sum += error * value; break;
      case N_WEIGHTS: sum += error * error; break;
      default: sum += error;
    }
  }
  gradients[weight] = sum;
}

extern "C" __global__ void step(float *weights, const float *gradients, float rate) {
  if (threadIdx.x < N_WEIGHTS) weights[threadIdx.x] -= rate * gradients[threadIdx.x];
}

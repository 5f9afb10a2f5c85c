/* Runs kernels on the CPU, one thread of a block after the other. Threads that wait at a barrier are contexts. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define DEVICE static inline __attribute__((unused))
#define KERNEL(THREADS) static void kernel(const Arguments a)
#define SHARED static
#define ALIGNED(N) __attribute__((aligned(N)))
#define UNROLL
#define UNROLL_FEW
#define THREAD ((i64)emulated.thread)
#define BLOCK ((i64)emulated.block)
#define BLOCKS ((i64)emulated.blocks)
#define BARRIER() wait_for_all()

static struct {
  unsigned thread, threads;
  long long block, blocks;
  ucontext_t main, *contexts;
  char *stacks;
  unsigned char *is_done;
  const void *arguments;
  unsigned long long exchanged[1024];
} emulated;

DEVICE unsigned f32_bits(float x) { unsigned bits; memcpy(&bits, &x, sizeof bits); return bits; }
DEVICE float of_f32_bits(unsigned bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
DEVICE unsigned long long f64_bits(double x) { unsigned long long bits; memcpy(&bits, &x, sizeof bits); return bits; }
DEVICE double of_f64_bits(unsigned long long bits) { double x; memcpy(&x, &bits, sizeof x); return x; }

/* Lets the other threads of the block run until they wait, too. */
DEVICE void wait_for_all(void) { swapcontext(&emulated.contexts[emulated.thread], &emulated.main); }

/* The number of the thread whose index differs by a mask. */
DEVICE unsigned long long of_lane(unsigned long long bits, unsigned mask) {
  emulated.exchanged[emulated.thread] = bits;
  wait_for_all();
  bits = emulated.exchanged[emulated.thread ^ mask];
  wait_for_all();
  return bits;
}
#define OF_LANE(T, X, MASK) T##_of_lane(X, MASK)
#define LANE(T, C) DEVICE C T##_of_lane(C x, unsigned mask) { return (C)of_lane((unsigned long long)x, mask); }
LANE(i8, signed char) LANE(i16, short) LANE(i32, int) LANE(i64, long long)
LANE(u8, unsigned char) LANE(u16, unsigned short) LANE(u32, unsigned) LANE(u64, unsigned long long)
DEVICE float f32_of_lane(float x, unsigned mask) { return of_f32_bits((unsigned)of_lane(f32_bits(x), mask)); }
DEVICE double f64_of_lane(double x, unsigned mask) { return of_f64_bits(of_lane(f64_bits(x), mask)); }

enum { STACK = 1 << 16 };

static void run_thread(void);

/* Runs all blocks. Returns 0, or 1 if there is no memory. */
int emulate(const void *arguments, long long blocks, unsigned threads) {
  emulated.arguments = arguments;
  emulated.blocks = blocks;
  emulated.threads = threads;
  emulated.contexts = calloc(threads, sizeof(ucontext_t));
  emulated.is_done = calloc(threads, 1);
  emulated.stacks = malloc((size_t)threads * STACK);
  int is_refused = !emulated.contexts || !emulated.is_done || !emulated.stacks;
  for (emulated.block = 0; !is_refused && emulated.block < blocks; emulated.block++) {
    for (unsigned t = 0; t < threads; t++) {
      ucontext_t *context = &emulated.contexts[t];
      getcontext(context);
      context->uc_stack.ss_sp = emulated.stacks + (size_t)t * STACK;
      context->uc_stack.ss_size = STACK;
      context->uc_link = &emulated.main;
      makecontext(context, run_thread, 0);
      emulated.is_done[t] = 0;
    }
    for (unsigned left = threads; left > 0;) {
      for (unsigned t = 0; t < threads; t++) {
        if (emulated.is_done[t]) continue;
        emulated.thread = t;
        swapcontext(&emulated.main, &emulated.contexts[t]);
        left -= emulated.is_done[t];
      }
    }
  }
  free(emulated.contexts);
  free(emulated.is_done);
  free(emulated.stacks);
  return is_refused;
}

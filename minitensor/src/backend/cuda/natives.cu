/* Kernels of ops whose definitions are loops of the CPU. T is the type of elements. */
#define EACH(I, COUNT) for (i64 I = BLOCK * 256 + THREAD; I < (COUNT); I += BLOCKS * 256)

/* An index as one from the start. If it is out of range, that is noted, and it is 0. */
DEVICE i64 wrapped(i64 index, i64 size, u64 *status) { return position(index < 0 ? index + size : index, size, status); }

/* Adds to an element that several threads may change. */
#ifdef __CUDACC__
DEVICE void add_f32(f32 *to, f32 x) { atomicAdd(to, x); }
DEVICE void add_f64(f64 *to, f64 x) { atomicAdd(to, x); }
DEVICE void add_i32(i32 *to, i32 x) { atomicAdd(to, x); }
DEVICE void add_u32(u32 *to, u32 x) { atomicAdd(to, x); }
DEVICE void add_i64(i64 *to, i64 x) { atomicAdd((u64 *)to, (u64)x); }
DEVICE void add_u64(u64 *to, u64 x) { atomicAdd(to, x); }
#else
#define ADDITION(N) DEVICE void add_##N(N *to, N x) { *to = N##_add(*to, x); }
ADDITION(f32) ADDITION(f64) ADDITION(i32) ADDITION(u32) ADDITION(i64) ADDITION(u64)
#endif
#define JOINED(A, B) A##B
#define NAMED(A, B) JOINED(A, B)
#define ADD NAMED(add_, T)

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

/* Unsigned integers that sort as numbers do: -0 as 0, and NaN above all others. */
#define RANK_OF_FLOAT(N, U, BITS)                                                                                       \
  DEVICE u64 rank_##N(N x) {                                                                                             \
    U bits = N##_bits(x + 0);                                                                                            \
    return x != x ? (u64)(U)-1 : (u64)(U)(bits ^ ((U)0 - (bits >> (BITS - 1)) | (U)1 << (BITS - 1)));                      \
  }
RANK_OF_FLOAT(f32, u32, 32) RANK_OF_FLOAT(f64, u64, 64)
DEVICE u64 rank_f16(f16 x) { return rank_f32(widened_f16(x.bits)); }
DEVICE u64 rank_bf16(bf16 x) { return rank_f32(widened_bf16(x.bits)); }
#define RANK(N) DEVICE u64 rank_##N(N x) { return (u64)(i64)x ^ 1ull << 63; }
RANK(i8) RANK(i16) RANK(i32) RANK(i64)
#define RANK_OF_UNSIGNED(N) DEVICE u64 rank_##N(N x) { return x; }
RANK_OF_UNSIGNED(u8) RANK_OF_UNSIGNED(u16) RANK_OF_UNSIGNED(u32) RANK_OF_UNSIGNED(u64)
DEVICE u64 rank_truth(truth x) { return x.byte != 0; }

/* A random word of a block (Philox 4x32-10; Salmon et al., 2011), as on the CPU. */
DEVICE u64 random_word(u64 seed, u64 counter, i64 which) {
  u32 a = (u32)counter, b = (u32)(counter >> 32), c = 0, d = 0, k = (u32)seed, l = (u32)(seed >> 32);
  UNROLL for (int round = 0; round < 10; round++) {
    const u64 p = (u64)a * 0xd2511f53u, q = (u64)c * 0xcd9e8d57u;
    a = (u32)(q >> 32) ^ b ^ k, c = (u32)(p >> 32) ^ d ^ l, b = (u32)q, d = (u32)p;
    k += 0x9e3779b9u, l += 0xbb67ae85u;
  }
  return which == 0 ? (u64)a << 32 | b : (u64)c << 32 | d;
}
DEVICE f32 uniform_f32(u64 word) { return (f32)(i32)(word >> 40) * (1.0f / (1u << 24)); }
DEVICE f16 uniform_f16(u64 word) { return f32_to_f16((f32)(i32)(word >> 53) * (1.0f / (1u << 11))); }
DEVICE bf16 uniform_bf16(u64 word) { return f32_to_bf16((f32)(i32)(word >> 56) * (1.0f / (1u << 8))); }
DEVICE f64 uniform_f64(u64 word) { return (f64)(word >> 11) * (1.0 / (1ull << 53)); }

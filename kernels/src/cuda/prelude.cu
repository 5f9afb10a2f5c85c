/* Definitions of kernels, in the C that CUDA and C compilers share. */
#ifdef __CUDACC__
#define DEVICE static __device__ __forceinline__
#define KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Arguments a)
#define SHARED __shared__
#define ALIGNED(N) __align__(N)
#define UNROLL _Pragma("unroll")
#define UNROLL_FEW _Pragma("unroll 4")
#define THREAD ((i64)threadIdx.x)
#define BLOCK ((i64)blockIdx.x)
#define BLOCKS ((i64)gridDim.x)
#define BARRIER() __syncthreads()
#define OF_LANE(T, X, MASK) __shfl_xor_sync(0xffffffffu, X, MASK)
#define f32_bits(X) __float_as_uint(X)
#define of_f32_bits(X) __uint_as_float(X)
#define f64_bits(X) ((u64)__double_as_longlong(X))
#define of_f64_bits(X) __longlong_as_double((i64)(X))
#endif
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
/* Numbers in memory. */
typedef struct { u16 bits; } f16;
typedef struct { u16 bits; } bf16;
typedef struct { u8 byte; } truth;

DEVICE i64 least(i64 a, i64 b) { return a < b ? a : b; }

/* Half floats, as on the CPU: to the nearest, ties to even. */
#ifdef __CUDACC__
DEVICE f32 widened_f16(u16 bits) { f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
DEVICE u16 narrowed_f16(f32 x) { u16 bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits; }
#else
DEVICE f32 widened_f16(u16 bits) {
  u32 magnitude = bits & 0x7fffu;
  u32 finite = f32_bits(of_f32_bits(magnitude << 13) * of_f32_bits((127u + 112u) << 23));
  u32 whole = magnitude < 0x7c00u ? finite : 0x7f800000u | magnitude << 13;
  return of_f32_bits(whole | (u32)(bits & 0x8000u) << 16);
}
DEVICE u16 narrowed_f16(f32 x) {
  u32 bits = f32_bits(x), magnitude = bits & 0x7fffffffu;
  u32 special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  u32 subnormal = f32_bits(of_f32_bits(magnitude) + 0.5f) - (126u << 23);
  u32 normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  u32 finite = magnitude < 113u << 23 ? subnormal : normal;
  return (u16)((magnitude < 143u << 23 ? finite : special) | (bits >> 16 & 0x8000u));
}
#endif
DEVICE f32 widened_bf16(u16 bits) { return of_f32_bits((u32)bits << 16); }
DEVICE u16 narrowed_bf16(f32 x) {
  u32 bits = f32_bits(x);
  return (u16)(x == x ? (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 : bits >> 16 | 0x40u);
}
/* A double as a float that rounds to the same half float: rounded to odd. */
DEVICE f32 to_odd(f64 x) {
  f32 near = (f32)x;
  f64 a = near < 0 ? -(f64)near : (f64)near, b = x < 0 ? -x : x;
  u32 bits = f32_bits(near) - (a > b ? 1u : 0u);
  return (f64)near == x || x != x ? near : of_f32_bits(bits | 1u);
}

/* Conversions of numbers, as in Rust: a float saturates to an integer, NaN becomes 0, and an integer wraps. */
#define SATURATE(T, LOW, HIGH)                                                                                          \
  DEVICE T f64_to_##T(f64 x) { return x != x ? 0 : x <= (f64)(LOW) ? (T)(LOW) : x >= (f64)(HIGH) ? (T)(HIGH) : (T)x; }    \
  DEVICE T f32_to_##T(f32 x) { return f64_to_##T((f64)x); }
SATURATE(i8, -128, 127)
SATURATE(i16, -32768, 32767)
SATURATE(i32, -2147483647 - 1, 2147483647)
SATURATE(i64, -9223372036854775807ll - 1, 9223372036854775807ll)
SATURATE(u8, 0, 255)
SATURATE(u16, 0, 65535)
SATURATE(u32, 0, 4294967295u)
SATURATE(u64, 0, 18446744073709551615ull)
#define CAST(A, B) DEVICE B A##_to_##B(A x) { return (B)x; }
#define CASTS(A) CAST(A, i8) CAST(A, i16) CAST(A, i32) CAST(A, i64) CAST(A, u8) CAST(A, u16) CAST(A, u32) CAST(A, u64)
#define TO_FLOAT(A) CAST(A, f32) CAST(A, f64)
#define TO_TRUTH(A) DEVICE truth A##_to_truth(A x) { truth t = {(u8)(x != 0)}; return t; }
#define TO_HALF(A, NARROW)                                                                                             \
  DEVICE f16 A##_to_f16(A x) { f16 half = {narrowed_f16(NARROW(x))}; return half; }                                       \
  DEVICE bf16 A##_to_bf16(A x) { bf16 half = {narrowed_bf16(NARROW(x))}; return half; }
#define ALL(A, NARROW) TO_FLOAT(A) TO_TRUTH(A) TO_HALF(A, NARROW)
ALL(f32, (f32)) ALL(f64, to_odd)
CASTS(i8) CASTS(i16) CASTS(i32) CASTS(i64) CASTS(u8) CASTS(u16) CASTS(u32) CASTS(u64)
ALL(i8, (f32)) ALL(i16, (f32)) ALL(i32, to_odd) ALL(u8, (f32)) ALL(u16, (f32)) ALL(u32, to_odd)
/* A double does not represent all of these, but the CPU rounds them twice, too. */
ALL(i64, to_odd) ALL(u64, to_odd)
#define TRUTH_TO(B) DEVICE B truth_to_##B(truth x) { return (B)(x.byte != 0); }
TRUTH_TO(i8) TRUTH_TO(i16) TRUTH_TO(i32) TRUTH_TO(i64) TRUTH_TO(u8) TRUTH_TO(u16) TRUTH_TO(u32) TRUTH_TO(u64)
TRUTH_TO(f32) TRUTH_TO(f64)
DEVICE truth truth_to_truth(truth x) { truth t = {(u8)(x.byte != 0)}; return t; }
#define HALF_TO(A, B) DEVICE B A##_to_##B(A x) { return f32_to_##B(widened_##A(x.bits)); }
#define HALF(A)                                                                                                        \
  HALF_TO(A, i8) HALF_TO(A, i16) HALF_TO(A, i32) HALF_TO(A, i64) HALF_TO(A, u8) HALF_TO(A, u16) HALF_TO(A, u32)           \
  HALF_TO(A, u64) HALF_TO(A, f32) HALF_TO(A, f64) HALF_TO(A, truth)
HALF(f16) HALF(bf16)
HALF_TO(f16, bf16) HALF_TO(bf16, f16)
DEVICE f16 f16_to_f16(f16 x) { return x; }
DEVICE bf16 bf16_to_bf16(bf16 x) { return x; }
DEVICE f16 truth_to_f16(truth x) { return f32_to_f16(truth_to_f32(x)); }
DEVICE bf16 truth_to_bf16(truth x) { return f32_to_bf16(truth_to_f32(x)); }
/* Truth values of programs are ints. */
DEVICE truth int_to_truth(int x) { truth t = {(u8)(x != 0)}; return t; }
DEVICE int truth_to_int(truth x) { return x.byte != 0; }

/* Integers wrap. A shift by the width or more is 0, or -1 for a negative number that is shifted right. */
#define INTEGER(T, U, BITS, SIGNED)                                                                                     \
  DEVICE T T##_add(T a, T b) { return (T)((U)a + (U)b); }                                                                 \
  DEVICE T T##_subtract(T a, T b) { return (T)((U)a - (U)b); }                                                            \
  DEVICE T T##_multiply(T a, T b) { return (T)((u64)(U)a * (u64)(U)b); }                                                  \
  DEVICE T T##_negative(T a) { return (T)((U)0 - (U)a); }                                                                 \
  DEVICE T T##_square(T a) { return T##_multiply(a, a); }                                                                 \
  DEVICE T T##_conj(T a) { return a; }                                                                                    \
  DEVICE T T##_chain(T a, T b) { return T##_multiply(a, b); }                                                             \
  DEVICE T T##_power(T a, u64 n) {                                                                                        \
    T result = 1;                                                                                                         \
    for (; n; n >>= 1, a = T##_multiply(a, a)) if (n & 1) result = T##_multiply(result, a);                                  \
    return result;                                                                                                        \
  }                                                                                                                       \
  DEVICE T T##_powi(T a, i64 n) {                                                                                         \
    if (n >= 0) return T##_power(a, (u64)n);                                                                              \
    if (a == 1) return 1;                                                                                                 \
    return SIGNED && a == (T)-1 ? (n & 1 ? a : 1) : 0;                                                                    \
  }                                                                                                                       \
  DEVICE T T##_pow(T a, T b) { return SIGNED && b < 0 ? T##_powi(a, (i64)b) : T##_power(a, (u64)b); }                     \
  DEVICE int T##_equal(T a, T b) { return a == b; }                                                                       \
  DEVICE int T##_truthy(T a) { return a != 0; }                                                                           \
  DEVICE int T##_less(T a, T b) { return a < b; }                                                                         \
  DEVICE int T##_less_equal(T a, T b) { return a <= b; }                                                                  \
  DEVICE int T##_isnan(T a) { return 0; }                                                                                 \
  DEVICE int T##_isinf(T a) { return 0; }                                                                                 \
  DEVICE int T##_signbit(T a) { return SIGNED && a < 0; }                                                                 \
  DEVICE T T##_maximum(T a, T b) { return a > b ? a : b; }                                                                \
  DEVICE T T##_minimum(T a, T b) { return a < b ? a : b; }                                                                \
  DEVICE T T##_abs(T a) { return SIGNED && a < 0 ? T##_negative(a) : a; }                                                 \
  DEVICE T T##_sign(T a) { return (T)((a > 0) - (SIGNED && a < 0)); }                                                     \
  DEVICE T T##_floor(T a) { return a; }                                                                                   \
  DEVICE T T##_ceil(T a) { return a; }                                                                                    \
  DEVICE T T##_round(T a) { return a; }                                                                                   \
  DEVICE T T##_trunc(T a) { return a; }                                                                                   \
  DEVICE T T##_remainder(T a, T b) {                                                                                      \
    if (b == 0 || (SIGNED && b == (T)-1)) return 0;                                                                       \
    T rest = (T)(a % b);                                                                                                  \
    return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;                                                     \
  }                                                                                                                       \
  DEVICE T T##_floor_divide(T a, T b) {                                                                                   \
    if (b == 0) return 0;                                                                                                 \
    if (SIGNED && b == (T)-1) return T##_negative(a);                                                                     \
    T whole = (T)(a / b);                                                                                                 \
    return (T)(a % b) != 0 && (a < 0) != (b < 0) ? (T)(whole - 1) : whole;                                                \
  }                                                                                                                       \
  DEVICE T T##_bitwise_and(T a, T b) { return (T)(a & b); }                                                               \
  DEVICE T T##_bitwise_or(T a, T b) { return (T)(a | b); }                                                                \
  DEVICE T T##_bitwise_xor(T a, T b) { return (T)(a ^ b); }                                                               \
  DEVICE T T##_bitwise_invert(T a) { return (T)~a; }                                                                      \
  DEVICE T T##_left_shift(T a, T b) { return (u64)b >= BITS ? 0 : (T)((U)a << (int)b); }                                  \
  DEVICE T T##_right_shift(T a, T b) {                                                                                    \
    return (u64)b >= BITS ? (SIGNED && a < 0 ? (T)-1 : 0) : (T)(a >> (int)b);                                             \
  }
INTEGER(i8, u8, 8, 1) INTEGER(i16, u16, 16, 1) INTEGER(i32, u32, 32, 1) INTEGER(i64, u64, 64, 1)
INTEGER(u8, u8, 8, 0) INTEGER(u16, u16, 16, 0) INTEGER(u32, u32, 32, 0) INTEGER(u64, u64, 64, 0)

#define int_to_i8 i32_to_i8
#define int_to_i16 i32_to_i16
#define int_to_i32 i32_to_i32
#define int_to_i64 i32_to_i64
#define int_to_u8 i32_to_u8
#define int_to_u16 i32_to_u16
#define int_to_u32 i32_to_u32
#define int_to_u64 i32_to_u64
#define int_to_f32 i32_to_f32
#define int_to_f64 i32_to_f64
#define int_to_f16 i32_to_f16
#define int_to_bf16 i32_to_bf16

/* A position in a row. If it is out of range, that is noted, and it is 0. */
DEVICE i64 position(i64 index, i64 count, u64 *status) {
  if (index >= 0 && index < count) return index;
  *status = 1;
  return 0;
}

/* Floats: the larger and the smaller number, NaN if either is NaN. */
#define FLOAT(T)                                                                                                        \
  DEVICE T T##_add(T a, T b) { return a + b; }                                                                            \
  DEVICE T T##_multiply(T a, T b) { return a * b; }                                                                       \
  DEVICE T T##_maximum(T a, T b) { return (b < a) | (a != a) ? a : b; }                                                      \
  DEVICE T T##_minimum(T a, T b) { return (a < b) | (a != a) ? a : b; }
FLOAT(f32) FLOAT(f64)

/* Numbers that are read and written by one instruction. */
#define VECTOR(T, COUNT) typedef struct ALIGNED(COUNT * sizeof(T)) { T at[COUNT]; } T##x##COUNT;
#define VECTORS(T) VECTOR(T, 1) VECTOR(T, 2) VECTOR(T, 4) VECTOR(T, 8) VECTOR(T, 16)
VECTORS(i8) VECTORS(i16) VECTORS(i32) VECTORS(u8) VECTORS(u16) VECTORS(u32) VECTORS(f32) VECTORS(f16) VECTORS(bf16)
VECTORS(truth) VECTORS(i64) VECTORS(u64) VECTORS(f64)

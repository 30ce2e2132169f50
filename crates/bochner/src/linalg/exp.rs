//! Exponentials of whole slices.
//!
//! Every lane goes through the same operations with and without vector instructions: bits do not depend on the processor
//! nor on a value's place in the slice.

use super::sincos::horner;
use crate::scalar::Real;

/// `out[j] = exp(factor · values[j] - shift)`, the exponent rounded once: within about one unit in the last place of the
/// exponential of that exponent.
///
/// Exponents beyond the range give infinity or 0, results below the smallest normal number are rounded to subnormal ones,
/// NaN stays NaN.
///
/// # Panics
/// If the slices differ in length.
pub fn exp<R: Real>(values: &[R], factor: R, shift: R, out: &mut [R]) {
    struct Job<'a, R> {
        values: &'a [R],
        factor: R,
        shift: R,
        out: &'a mut [R],
    }
    impl<R: Real> pulp::NullaryFnOnce for Job<'_, R> {
        type Output = ();
        #[inline(always)]
        fn call(self) {
            for (out, value) in self.out.iter_mut().zip(self.values) {
                *out = R::exp_lane(num_traits::Float::mul_add(self.factor, *value, -self.shift));
            }
        }
    }
    assert!(values.len() == out.len(), "one exponential for every value");
    pulp::Arch::new().dispatch(Job { values, factor, shift, out });
}

/// `values[j] = exp(factor · values[j] - shift)`, as [`exp`].
pub fn exp_in_place<R: Real>(values: &mut [R], factor: R, shift: R) {
    struct Job<'a, R> {
        values: &'a mut [R],
        factor: R,
        shift: R,
    }
    impl<R: Real> pulp::NullaryFnOnce for Job<'_, R> {
        type Output = ();
        #[inline(always)]
        fn call(self) {
            for value in self.values {
                *value = R::exp_lane(num_traits::Float::mul_add(self.factor, *value, -self.shift));
            }
        }
    }
    pulp::Arch::new().dispatch(Job { values, factor, shift });
}

/// Largest of the numbers; minus infinity where there is none.
pub fn maximum<R: Real>(values: &[R]) -> R {
    struct Job<'a, R>(&'a [R]);
    impl<R: Real> pulp::NullaryFnOnce for Job<'_, R> {
        type Output = R;
        #[inline(always)]
        fn call(self) -> R {
            let larger = |a: R, b: R| if b > a { b } else { a };
            let mut most = [R::neg_infinity(); 32];
            let chunks = self.0.chunks_exact(32);
            let tail = chunks.remainder().iter().fold(R::neg_infinity(), |a, &b| larger(a, b));
            for chunk in chunks {
                for (most, &value) in most.iter_mut().zip(chunk) {
                    *most = larger(*most, value);
                }
            }
            most.iter().fold(tail, |a, &b| larger(a, b))
        }
    }
    pulp::Arch::new().dispatch(Job(values))
}

/// The part of the exponential that depends on the number type.
pub trait Exp: Sized {
    /// `exp(x)`.
    fn exp_lane(x: Self) -> Self;
}

/// `exp(x) = 2ᵏ exp(r)` with `k` the integer nearest to `x/ln 2`: two parts of `ln 2` give `r` to its own rounding, and
/// `exp r = 1 + r + r² Q(r)` with `Q` interpolated at Chebyshev nodes of `[-0.3469, 0.3469]`, computed with 50 digits.
///
/// `2ᵏ` is applied in two halves, since `k` exceeds the exponents of the type at both ends of the range; the halves come
/// from unsigned shifts, which every vector instruction set has.
macro_rules! exponential {
    ($t:ident, $bits:ident, $magic:expr, $low:expr, $high:expr, $ln2_hi:expr, $ln2_lo:expr, $q:expr) => {
        impl Exp for $t {
            #[inline(always)]
            fn exp_lane(x: $t) -> $t {
                const MAGIC: $t = $magic;
                const MANTISSA: u32 = $t::MANTISSA_DIGITS - 1;
                const BIAS: $bits = $t::MAX_EXP as $bits - 1;
                // An even number that makes every k positive.
                const OFFSET: $bits = 4096;
                // Comparisons that let NaN through, as one instruction each.
                let x = if x < $low { $low } else { x };
                let x = if x > $high { $high } else { x };
                // Adding 1.5 · 2^(mantissa bits) rounds to an integer and leaves it in the last bits.
                let shifted = x.mul_add(std::$t::consts::LOG2_E, MAGIC);
                let k = shifted - MAGIC;
                let r = (-k).mul_add($ln2_lo, (-k).mul_add($ln2_hi, x));
                let p = (r * r).mul_add(horner(r, $q), r) + 1.0;
                let k = shifted.to_bits().wrapping_sub(MAGIC.to_bits()).wrapping_add(OFFSET);
                let half = k >> 1;
                let power = |k: $bits| $t::from_bits(k.wrapping_add(BIAS).wrapping_sub(OFFSET / 2) << MANTISSA);
                p * power(half) * power(k.wrapping_sub(half))
            }
        }
    };
}

// Below the lower limit half the smallest subnormal number is not reached; above the upper one everything overflows.
exponential!(
    f32,
    u32,
    12_582_912.0,
    -104.5,
    89.0,
    std::f32::consts::LN_2,
    -1.904_654_2e-9,
    [0.5, 0.166_665_76, 0.041_666_552, 0.008_363_233, 0.001_392_625]
);
exponential!(
    f64,
    u64,
    6_755_399_441_055_744.0,
    -746.0,
    710.0,
    std::f64::consts::LN_2,
    2.319_046_813_846_299_6e-17,
    [
        0.500_000_000_000_000_1,
        0.166_666_666_666_666_69,
        0.041_666_666_666_623_824,
        0.008_333_333_333_330_039,
        0.001_388_888_891_736_708_1,
        0.000_198_412_698_631_715_57,
        2.480_152_105_786_820_4e-5,
        2.755_726_827_690_569_6e-6,
        2.762_020_159_103_154_7e-7,
        2.510_047_250_569_499_6e-8
    ]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Role, Seed, Stream};

    /// Exponents over the whole range of the type, tiny ones of both signs, and multiples of half of ln 2.
    fn exponents<R: Real>(low: f64, high: f64) -> Vec<R> {
        let mut draw = Stream::new(Seed::new(4), Role::Noise, 0);
        let mut list: Vec<R> = (0..200_003).map(|_| R::from_f64(low + (high - low) * draw.uniform())).collect();
        list.extend((0..20_000).map(|i| {
            let size = 1e-12 * 1e12f64.powf(draw.uniform());
            R::from_f64(if i % 2 == 0 { size } else { -size })
        }));
        let steps = (2.0 * low / std::f64::consts::LN_2) as i32..(2.0 * high / std::f64::consts::LN_2) as i32;
        list.extend(steps.map(|k| R::from_f64(f64::from(k) * 0.5 * std::f64::consts::LN_2)));
        list
    }

    fn evaluate<R: Real>(x: &[R]) -> Vec<R> {
        let mut out = vec![R::nan(); x.len()];
        exp(x, R::ONE, R::ZERO, &mut out);
        out
    }

    #[test]
    fn single_precision_is_within_about_a_last_place() {
        let x = exponents::<f32>(-87.0, 88.7);
        let mut worst = 0.0f64;
        for (x, found) in x.iter().zip(evaluate(&x)) {
            let exact = libm::exp(f64::from(*x));
            let place = f64::from(f32::from_bits((exact as f32).to_bits() + 1) - exact as f32);
            worst = worst.max((f64::from(found) - exact).abs() / place);
        }
        // In [1/√2, 1] a half for the last sum, a quarter each for r and for the sum before it, a sixth for the polynomial.
        assert!(worst < 1.2, "{worst} units in the last place");
    }

    #[test]
    fn double_precision_is_within_about_a_last_place() {
        let x = exponents::<f64>(-708.0, 709.7);
        let mut worst = 0.0f64;
        for (x, found) in x.iter().zip(evaluate(&x)) {
            // libm itself is within one place.
            let exact = libm::exp(*x);
            worst = worst.max((found - exact).abs() / (f64::from_bits(exact.to_bits() + 1) - exact));
        }
        assert!(worst <= 2.0, "{worst} units in the last place");
    }

    #[test]
    fn values_at_the_ends_of_the_range_are_right() {
        let x = [-f32::INFINITY, -104.5, -103.9, -103.0, -95.0, -0.0, 0.0, 88.72, 88.73, 1e30, f32::INFINITY];
        for (x, found) in x.iter().zip(evaluate(&x)) {
            let exact = libm::exp(f64::from(*x));
            // One step of the subnormal numbers.
            let tolerance = if exact < 1e-38 { 1.5e-45 } else { exact * 1.2e-7 };
            assert!(
                (f64::from(found) - exact).abs() <= tolerance || f64::from(found) == f64::from(exact as f32),
                "{x}"
            );
        }
        let x = [-f64::INFINITY, -1e300, -745.2, -745.0, -720.0, 0.0, 709.78, 709.79, 1e300];
        for (x, found) in x.iter().zip(evaluate(&x)) {
            let exact = libm::exp(*x);
            let tolerance = if exact < 1e-307 { 5e-324 } else { exact * 3e-16 };
            assert!((found - exact).abs() <= tolerance || found == exact, "{x}: {found} {exact}");
        }
        assert!(evaluate(&[f32::NAN])[0].is_nan() && evaluate(&[f64::NAN])[0].is_nan());
        assert_eq!((evaluate(&[0.0f32])[0], evaluate(&[0.0f64])[0]), (1.0, 1.0));
    }

    fn check_portable<R: Real>(low: f64, high: f64) {
        let x = exponents::<R>(low, high);
        let found = evaluate(&x);
        for (x, found) in x.iter().zip(&found) {
            assert_eq!(Real::to_f64(*found).to_bits(), Real::to_f64(R::exp_lane(*x)).to_bits(), "{x}");
        }
        for start in [1, 3, 7, 31] {
            assert_eq!(evaluate(&x[start..start + 90]), found[start..start + 90]);
        }
        let (factor, shift) = (R::from_f64(0.37), R::from_f64(1.25));
        let mut out = vec![R::ZERO; 100];
        exp(&x[..100], factor, shift, &mut out);
        let mut again = x[..100].to_vec();
        exp_in_place(&mut again, factor, shift);
        assert_eq!(out, again);
        for (out, x) in out.iter().zip(&x) {
            assert_eq!(*out, R::exp_lane(num_traits::Float::mul_add(factor, *x, -shift)));
        }
    }

    #[test]
    fn vector_and_portable_paths_agree_in_every_bit() {
        check_portable::<f32>(-110.0, 95.0);
        check_portable::<f64>(-760.0, 720.0);
    }

    #[test]
    fn the_maximum_is_that_of_a_plain_scan() {
        let x = exponents::<f32>(-100.0, 90.0);
        for n in [1, 2, 31, 32, 33, 64, 1000] {
            for at in [0, 17] {
                let part = &x[at..at + n];
                assert_eq!(maximum(part), part.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            }
        }
        assert_eq!(maximum::<f64>(&[]), f64::NEG_INFINITY);
    }
}

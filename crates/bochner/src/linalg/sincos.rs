//! Cosines and sines of whole slices, written in pairs.
//!
//! One pass reads a projected value, multiplies it by its frequency's factor, adds an offset where there is one and writes
//! what the feature map needs. Every lane goes through the same operations in the same order with and without vector
//! instructions, so bits do not depend on the processor nor on a value's place in the slice.

use crate::scalar::{Real, Scalar};

/// What turns a projected value into a phase: one factor for all of them, or one for each.
#[derive(Debug, Clone, Copy)]
pub enum Factor<'a, R> {
    /// The same factor for every value.
    Same(R),
    /// Value `j` has factor `j`.
    Each(&'a [R]),
}

impl<'a, R: Real> Factor<'a, R> {
    /// The factors of values `range`.
    pub fn range(self, range: std::ops::Range<usize>) -> Factor<'a, R> {
        match self {
            Factor::Same(factor) => Factor::Same(factor),
            Factor::Each(factors) => Factor::Each(&factors[range]),
        }
    }
}

/// Values handled between two looks at the phases' sizes.
const CHUNK: usize = 64;

/// `cos[j] = scale · cos(factorⱼ projected[j])` and `sin[j]` alike.
///
/// # Panics
/// If the slices differ in length.
pub fn cos_sin<R: Real>(projected: &[R], factor: Factor<'_, R>, scale: R, cos: &mut [R], sin: &mut [R]) {
    let n = projected.len();
    assert!(cos.len() == n && sin.len() == n, "one cosine and one sine for every projected value");
    run(projected, factor, None, Pairs { cos, sin, scale });
}

/// `out[j] = scale · cos(factorⱼ projected[j] + offsets[j])`.
///
/// # Panics
/// If the slices differ in length.
pub fn cos_offset<R: Real>(projected: &[R], factor: Factor<'_, R>, offsets: &[R], scale: R, out: &mut [R]) {
    let n = projected.len();
    assert!(offsets.len() == n && out.len() == n, "one offset and one cosine for every projected value");
    run(projected, factor, Some(offsets), Cosines { out, scale });
}

/// `out[j] = scale · sin(factorⱼ projected[j] + offsets[j])`.
///
/// # Panics
/// If the slices differ in length.
pub fn sin_offset<R: Real>(projected: &[R], factor: Factor<'_, R>, offsets: &[R], scale: R, out: &mut [R]) {
    let n = projected.len();
    assert!(offsets.len() == n && out.len() == n, "one offset and one sine for every projected value");
    run(projected, factor, Some(offsets), Sines(Cosines { out, scale }));
}

/// `out[j] = scale · exp(i factorⱼ projected[j])`.
///
/// # Panics
/// If the slices differ in length.
pub fn cis<R: Real>(projected: &[R], factor: Factor<'_, R>, scale: R, out: &mut [R::Complex]) {
    assert!(out.len() == projected.len(), "one complex number for every projected value");
    run(projected, factor, None, Points { out, scale });
}

/// Where cosines and sines go.
trait Sink<R> {
    /// Writes those of values `at..at + cos.len()`; `cos.len()` is [`CHUNK`] but for the last call.
    fn write(&mut self, at: usize, cos: &[R], sin: &[R]);
}

struct Pairs<'a, R> {
    cos: &'a mut [R],
    sin: &'a mut [R],
    scale: R,
}

impl<R: Real> Sink<R> for Pairs<'_, R> {
    #[inline(always)]
    fn write(&mut self, at: usize, cos: &[R], sin: &[R]) {
        for (to, from) in self.cos[at..][..cos.len()].iter_mut().zip(cos) {
            *to = self.scale * *from;
        }
        for (to, from) in self.sin[at..][..sin.len()].iter_mut().zip(sin) {
            *to = self.scale * *from;
        }
    }
}

struct Cosines<'a, R> {
    out: &'a mut [R],
    scale: R,
}

impl<R: Real> Sink<R> for Cosines<'_, R> {
    #[inline(always)]
    fn write(&mut self, at: usize, cos: &[R], _sin: &[R]) {
        for (to, from) in self.out[at..][..cos.len()].iter_mut().zip(cos) {
            *to = self.scale * *from;
        }
    }
}

struct Sines<'a, R>(Cosines<'a, R>);

impl<R: Real> Sink<R> for Sines<'_, R> {
    #[inline(always)]
    fn write(&mut self, at: usize, _cos: &[R], sin: &[R]) {
        self.0.write(at, sin, &[]);
    }
}

struct Points<'a, R: Real> {
    out: &'a mut [R::Complex],
    scale: R,
}

impl<R: Real> Sink<R> for Points<'_, R> {
    #[inline(always)]
    fn write(&mut self, at: usize, cos: &[R], sin: &[R]) {
        for (to, (c, s)) in self.out[at..][..cos.len()].iter_mut().zip(cos.iter().zip(sin)) {
            *to = R::Complex::from_parts(self.scale * *c, self.scale * *s);
        }
    }
}

fn run<R: Real>(projected: &[R], factor: Factor<'_, R>, offsets: Option<&[R]>, sink: impl Sink<R>) {
    struct Job<'a, R, S> {
        projected: &'a [R],
        factor: Factor<'a, R>,
        offsets: Option<&'a [R]>,
        sink: S,
    }
    impl<R: Real, S: Sink<R>> pulp::NullaryFnOnce for Job<'_, R, S> {
        type Output = ();
        #[inline(always)]
        fn call(self) {
            chunks(self.projected, self.factor, self.offsets, self.sink);
        }
    }
    if let Factor::Each(f) = factor {
        assert!(f.len() == projected.len(), "one factor for every projected value");
    }
    pulp::Arch::new().dispatch(Job { projected, factor, offsets, sink });
}

#[inline(always)]
fn chunks<R: Real>(projected: &[R], factor: Factor<'_, R>, offsets: Option<&[R]>, mut sink: impl Sink<R>) {
    let (mut phases, mut cos, mut sin) = ([R::ZERO; CHUNK], [R::ZERO; CHUNK], [R::ZERO; CHUNK]);
    for at in (0..projected.len()).step_by(CHUNK) {
        let range = at..(at + CHUNK).min(projected.len());
        let len = range.len();
        match factor {
            Factor::Same(factor) => {
                for (phase, value) in phases.iter_mut().zip(&projected[range.clone()]) {
                    *phase = factor * *value;
                }
            }
            Factor::Each(factors) => {
                for ((phase, value), f) in phases.iter_mut().zip(&projected[range.clone()]).zip(&factors[range.clone()])
                {
                    *phase = *f * *value;
                }
            }
        }
        if let Some(offsets) = offsets {
            for (phase, offset) in phases.iter_mut().zip(&offsets[range]) {
                *phase += *offset;
            }
        }
        lanes(&phases, &mut cos, &mut sin);
        sink.write(at, &cos[..len], &sin[..len]);
    }
}

#[inline(always)]
fn lanes<R: Real>(phases: &[R; CHUNK], cos: &mut [R; CHUNK], sin: &mut [R; CHUNK]) {
    let mut seen = R::Quadrant::default();
    for j in 0..CHUNK {
        let (s, c, q) = R::sin_cos_reduced(phases[j]);
        (sin[j], cos[j]) = (s, c);
        seen = seen | q;
    }
    if R::out_of_range(seen) {
        for j in 0..CHUNK {
            if R::out_of_range(R::sin_cos_reduced(phases[j]).2) {
                let (s, c) = libm::sincos(phases[j].to_f64());
                (sin[j], cos[j]) = (R::from_f64(s), R::from_f64(c));
            }
        }
    }
}

/// Sine and cosine by Cody–Waite reduction and polynomials on `[-π/4, π/4]`.
///
/// With fused multiplication the first subtraction `x - k hi` is exact (its result is a multiple of `x`'s and the product's
/// last place and below 1), so two parts of π/2 give the reduced phase to its own rounding. The polynomials interpolate at
/// Chebyshev nodes, computed with 40 digits: `sin r = r + r³ P(r²)`, `cos r = 1 - r²/2 + r⁴ Q(r²)`.
macro_rules! sin_cos {
    ($t:ident, $bits:ident, $magic:expr, $range:expr, $hi:expr, $lo:expr, $sin:expr, $cos:expr) => {
        type Quadrant = $bits;

        #[inline(always)]
        fn sin_cos_reduced(x: $t) -> ($t, $t, $bits) {
            const MAGIC: $t = $magic;
            const SIGN: $bits = 1 << ($bits::BITS - 1);
            // Adding 1.5 · 2^(mantissa bits) rounds to an integer and leaves it in the last bits.
            let shifted = x.mul_add(std::$t::consts::FRAC_2_PI, MAGIC);
            let quadrant = shifted.to_bits();
            let k = shifted - MAGIC;
            let r = (-k).mul_add($lo, (-k).mul_add($hi, x));
            let z = r * r;
            let sin = (r * z).mul_add(horner(z, $sin), r);
            let cos = horner(z, $cos);
            let swap = (quadrant & 1).wrapping_neg();
            let (s, c) = (sin.to_bits(), cos.to_bits());
            let exchanged = (s ^ c) & swap;
            let upper = quadrant << ($bits::BITS - 2);
            let s = (s ^ exchanged) ^ (upper & SIGN);
            let c = (c ^ exchanged) ^ (upper.wrapping_add(1 << ($bits::BITS - 2)) & SIGN);
            ($t::from_bits(s), $t::from_bits(c), quadrant.wrapping_sub(MAGIC.to_bits() - (1 << $range)))
        }

        #[inline(always)]
        fn out_of_range(seen: $bits) -> bool {
            seen >> ($range + 1) != 0
        }
    };
}

#[inline(always)]
pub(super) fn horner<R: Real, const N: usize>(z: R, coefficients: [R; N]) -> R {
    let mut value = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        value = num_traits::Float::mul_add(value, z, coefficients[i]);
    }
    value
}

/// The part of the sine and cosine that depends on the number type.
pub trait SinCos: Sized {
    /// The multiple of π/2 that was taken off, plus a constant that makes every usable one a small unsigned integer.
    type Quadrant: Copy + Default + std::ops::BitOr<Output = Self::Quadrant>;
    /// Sine and cosine, and the quadrant; where that is out of range the two are unspecified.
    fn sin_cos_reduced(x: Self) -> (Self, Self, Self::Quadrant);
    /// Whether any of the quadrants joined with `|` was too large (or the phase not finite), so that libm must help.
    fn out_of_range(seen: Self::Quadrant) -> bool;
}

impl SinCos for f32 {
    // |k| ≤ 2^20, phases to 1.6e6: there the rounded factor 2/π may miss the nearest k by 0.04 and |r| reach 0.852, up to
    // where the polynomials are within 2e-8 (sine) and 2e-9 (cosine).
    sin_cos!(
        f32,
        u32,
        12_582_912.0,
        20,
        1.570_796_4,
        -4.371_139e-8,
        [-0.166_666_63, 0.008_332_524, -0.000_195_434_27],
        [1.0, -0.5, 0.041_666_664, -0.001_388_808, 2.450_337_7e-5]
    );
}

impl SinCos for f64 {
    // |k| ≤ 2^30: the third part of π/2, which is left out, stays below 2e-24; polynomial errors are 1.4e-17 and 7.1e-19.
    sin_cos!(
        f64,
        u64,
        6_755_399_441_055_744.0,
        30,
        std::f64::consts::FRAC_PI_2,
        6.123_233_995_736_766e-17,
        [
            -0.166_666_666_666_666_66,
            0.008_333_333_333_330_946,
            -0.000_198_412_698_367_539,
            2.755_731_610_012_833_6e-6,
            -2.505_113_133_984_814_3e-8,
            1.591_809_290_511_490_7e-10
        ],
        [
            1.0,
            -0.5,
            0.041_666_666_666_666_664,
            -0.001_388_888_888_888_739_5,
            2.480_158_729_876_276_5e-5,
            -2.755_731_727_021_332e-7,
            2.087_614_595_238_452_5e-9,
            -1.138_260_966_040_836_5e-11
        ]
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Role, Seed, Stream};
    use num_complex::Complex;

    /// Phases of every size: both signs, log-uniform from 1e-6 to `largest`, and the worst places of the reduction.
    fn phases<R: Real>(largest: f64) -> Vec<R> {
        let mut draw = Stream::new(Seed::new(3), Role::Offset, 0);
        let mut phases: Vec<R> = (0..100_003)
            .map(|i| {
                let size = 1e-6 * (largest / 1e-6).powf(draw.uniform());
                R::from_f64(if i % 2 == 0 { size } else { -size })
            })
            .collect();
        phases.extend((0..20_000).map(|k| R::from_f64(f64::from(k) * std::f64::consts::FRAC_PI_4)));
        phases
    }

    fn evaluate<R: Real>(phases: &[R]) -> (Vec<R>, Vec<R>) {
        let (mut c, mut s) = (vec![R::ZERO; phases.len()], vec![R::ZERO; phases.len()]);
        cos_sin(phases, Factor::Same(R::ONE), R::ONE, &mut c, &mut s);
        (c, s)
    }

    #[test]
    fn single_precision_is_within_a_last_place_of_one_up_to_a_million() {
        let x = phases::<f32>(1.04e6);
        let (c, s) = evaluate(&x);
        for (x, (c, s)) in x.iter().zip(c.iter().zip(&s)) {
            let (exact_s, exact_c) = libm::sincos(f64::from(*x));
            assert!((f64::from(*c) - exact_c).abs() < 1.2e-7, "cos {x}: {c} against {exact_c}");
            assert!((f64::from(*s) - exact_s).abs() < 1.2e-7, "sin {x}: {s} against {exact_s}");
        }
    }

    #[test]
    fn double_precision_is_within_about_a_last_place() {
        let x = phases::<f64>(1e9);
        let (c, s) = evaluate(&x);
        let mut worst = 0.0f64;
        for (x, (c, s)) in x.iter().zip(c.iter().zip(&s)) {
            let (exact_s, exact_c) = libm::sincos(*x);
            for (found, exact) in [(*c, exact_c), (*s, exact_s)] {
                // libm itself is within one place. Next to a zero of the function the error is absolute: 2e-24.
                worst = worst.max((found - exact).abs() / (exact.abs().max(1e-6) * f64::EPSILON));
            }
        }
        assert!(worst < 1.6, "{worst} relative places");
    }

    #[test]
    fn huge_and_non_finite_phases_follow_libm() {
        let x = [3e8f32, -2e20, 1.0, f32::INFINITY, f32::NAN, 1.7e6];
        let (c, s) = evaluate(&x);
        for i in [0, 1, 5] {
            let (exact_s, exact_c) = libm::sincos(f64::from(x[i]));
            assert_eq!((c[i], s[i]), (exact_c as f32, exact_s as f32));
        }
        assert!((c[2] - 1f32.cos()).abs() < 1e-7);
        assert!(c[3].is_nan() && c[4].is_nan());
    }

    fn check_portable<R: Real>() {
        let x = phases::<R>(1e6);
        let (c, s) = evaluate(&x);
        let portable: Vec<_> = x.iter().map(|&x| R::sin_cos_reduced(x)).collect();
        for i in 0..x.len() {
            assert_eq!((s[i].to_f64().to_bits(), c[i].to_f64().to_bits()), {
                let (s, c, _) = portable[i];
                (s.to_f64().to_bits(), c.to_f64().to_bits())
            });
        }
    }

    #[test]
    fn vector_and_portable_paths_agree_in_every_bit() {
        check_portable::<f32>();
        check_portable::<f64>();
    }

    #[test]
    fn position_in_the_slice_does_not_change_bits() {
        let x = phases::<f32>(1e7);
        let (c, s) = evaluate(&x);
        for start in [1, 7, 63, 64, 65, 99_990] {
            let (c2, s2) = evaluate(&x[start..start + 150]);
            assert_eq!((&c[start..start + 150], &s[start..start + 150]), (&c2[..], &s2[..]));
        }
    }

    #[test]
    fn factors_offsets_and_scales_enter_as_written() {
        let x = phases::<f64>(30.0);
        let n = 131;
        let factors: Vec<f64> = (0..n).map(|i| 0.1 + 0.01 * i as f64).collect();
        let offsets: Vec<f64> = (0..n).map(|i| 0.05 * i as f64).collect();
        let (mut c, mut s, mut o) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut z = vec![Complex::new(0.0, 0.0); n];
        cos_sin(&x[..n], Factor::Each(&factors), 0.5, &mut c, &mut s);
        cos_offset(&x[..n], Factor::Each(&factors), &offsets, 2.0, &mut o);
        cis(&x[..n], Factor::Each(&factors), 0.5, &mut z);
        for j in 0..n {
            let phase = factors[j] * x[j];
            assert!((c[j] - 0.5 * phase.cos()).abs() < 1e-15 && (s[j] - 0.5 * phase.sin()).abs() < 1e-15);
            assert!((o[j] - 2.0 * (phase + offsets[j]).cos()).abs() < 1e-15);
            assert_eq!((z[j].re, z[j].im), (c[j], s[j]));
        }
        cos_offset(&x[..n], Factor::Same(0.25), &offsets, 2.0, &mut o);
        assert!((o[9] - 2.0 * (0.25 * x[9] + offsets[9]).cos()).abs() < 1e-15);
    }
}

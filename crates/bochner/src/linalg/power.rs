//! Moduli of complex slices raised to a power.
//!
//! Every lane goes through the same operations in the same order with and without vector instructions, so bits do not
//! depend on the processor nor on a value's place in the slice.

use super::vectors::{Instructions, VectorKernel, Vectors};
use crate::scalar::Real;

/// Numbers handled at once: what fits the registers and a few cache lines.
const CHUNK: usize = 64;

/// Rows of at least this many bytes are written past the caches: they would not stay there until someone reads them.
const STREAM_FROM: usize = 1 << 18;

/// The power `I^(m/2)` of an intensity `I ≥ 0`, by the cheapest way that is exact to rounding.
///
/// ```
/// use bochner::linalg::Power;
/// let mut values = [0.0, 1.0, 4.0];
/// Power::of_modulus(3.0).raise(1.0, &mut values);
/// assert_eq!(values, [0.0, 1.0, 8.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Power {
    /// `Iˢ`: even `m = 2s`.
    Whole(u32),
    /// `Iˢ √I`: odd `m = 2s + 1`.
    Root(u32),
    /// `I^a` for every other `a = m/2`, by a logarithm and an exponential.
    Any(f64),
}

impl Power {
    /// What turns the intensity `|z|²` into `|z|^m`, for `m > 0`.
    pub fn of_modulus(m: f64) -> Self {
        // Beyond 16 products rounding of the chain is no better than that of the logarithm.
        if m.fract() != 0.0 || m > 32.0 {
            Power::Any(0.5 * m)
        } else if m % 2.0 == 0.0 {
            Power::Whole(m as u32 / 2)
        } else {
            Power::Root(m as u32 / 2)
        }
    }

    /// `values[j] = scale · values[j]^(m/2)` for values that are not negative.
    pub fn raise<R: Real>(self, scale: R, values: &mut [R]) {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            move || {
                let (chunks, rest) = values.as_chunks_mut::<CHUNK>();
                for chunk in chunks {
                    lanes(self, scale, chunk);
                }
                let mut chunk = [R::ZERO; CHUNK];
                chunk[..rest.len()].copy_from_slice(rest);
                lanes(self, scale, &mut chunk);
                rest.copy_from_slice(&chunk[..rest.len()]);
            },
        );
    }
}

/// Moduli of rows that come in pieces.
pub(crate) struct Moduli<R> {
    power: Power,
    scale: R,
    past_caches: bool,
}

impl<R: Real> Moduli<R> {
    /// For rows of `len` numbers.
    pub(crate) fn new(power: Power, scale: R, len: usize) -> Self {
        Moduli { power, scale, past_caches: len * size_of::<R>() >= STREAM_FROM }
    }

    /// `out[j] = scale · (re[j]² + im[j]²)^(m/2)` for a piece. Other threads see it after [`finish`](Self::finish).
    pub(crate) fn write(&self, re: &[R], im: &[R], out: &mut [R]) {
        R::dispatch(Piece { moduli: self, re, im, out });
    }

    /// Once, after the last piece: a fence for each would wait for memory.
    pub(crate) fn finish(self) {
        if self.past_caches {
            Instructions::detect().fence();
        }
    }
}

struct Piece<'a, R> {
    moduli: &'a Moduli<R>,
    re: &'a [R],
    im: &'a [R],
    out: &'a mut [R],
}

impl<R: Real> VectorKernel<R> for Piece<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, vectors: S) {
        let Piece { moduli: &Moduli { power, scale, past_caches }, re, im, out } = self;
        // Streams write whole cache lines: a large array of the system begins 16 bytes into one.
        let first = if past_caches { out.as_ptr().align_offset(64).min(CHUNK).min(out.len()) } else { 0 };
        let (head, out) = out.split_at_mut(first);
        few(power, scale, &re[..first], &im[..first], head);
        let (re, im) = (&re[first..], &im[first..]);
        let mut chunk = [R::ZERO; CHUNK];
        let (re, re_rest) = re.as_chunks::<CHUNK>();
        let (im, im_rest) = im.as_chunks::<CHUNK>();
        let (out, out_rest) = out.as_chunks_mut::<CHUNK>();
        for ((re, im), out) in re.iter().zip(im).zip(out) {
            for j in 0..CHUNK {
                chunk[j] = num_traits::Float::mul_add(re[j], re[j], im[j] * im[j]);
            }
            lanes(power, scale, &mut chunk);
            if past_caches {
                vectors.stream(out, &chunk);
            } else {
                *out = chunk;
            }
        }
        few(power, scale, re_rest, im_rest, out_rest);
    }
}

/// At most a chunk of moduli.
#[inline(always)]
fn few<R: Real>(power: Power, scale: R, re: &[R], im: &[R], out: &mut [R]) {
    let mut chunk = [R::ZERO; CHUNK];
    for (o, (re, im)) in chunk.iter_mut().zip(re.iter().zip(im)) {
        *o = num_traits::Float::mul_add(*re, *re, *im * *im);
    }
    lanes(power, scale, &mut chunk);
    out.copy_from_slice(&chunk[..out.len()]);
}

#[inline(always)]
fn lanes<R: Real>(power: Power, scale: R, x: &mut [R; CHUNK]) {
    match power {
        Power::Whole(1) => x.iter_mut().for_each(|x| *x *= scale),
        Power::Whole(s) => {
            let base = *x;
            *x = [scale; CHUNK];
            multiply(x, base, s);
        }
        Power::Root(s) => {
            let base = *x;
            x.iter_mut().for_each(|x| *x = scale * num_traits::Float::sqrt(*x));
            multiply(x, base, s);
        }
        Power::Any(a) => {
            for x in x.iter_mut() {
                // In double precision for either type: rounded once, and a logarithm's error times `a` stays small.
                *x = scale * R::from_f64(power_of(Real::to_f64(*x), a));
            }
        }
    }
}

/// `x · baseˢ` by repeated squaring.
#[inline(always)]
fn multiply<R: Real>(x: &mut [R; CHUNK], mut base: [R; CHUNK], mut s: u32) {
    while s > 0 {
        if s & 1 == 1 {
            x.iter_mut().zip(&base).for_each(|(x, b)| *x *= *b);
        }
        s >>= 1;
        if s > 0 {
            base.iter_mut().for_each(|b| *b *= *b);
        }
    }
}

/// `x^a` for `x ≥ 0`, `a > 0`: within a few units in the last place while `a ≤ 8`, `a/2` of them beyond.
///
/// With `x = 2ᵉ f`, `f` in `[√½, √2)`: `x^a = 2^(ae + a log₂ f)`. The fused product `ae − k`, `k` the nearest integer to the
/// exponent, is exact to rounding, so large and small `x` cost no accuracy. The logarithm is `2 artanh((f−1)/(f+1))`, the
/// exponential a Taylor polynomial; both series end below 1e-18.
#[inline(always)]
fn power_of(x: f64, a: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ROOT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    const TWO_52: f64 = (1u64 << 52) as f64;
    const TWO_54: f64 = (1u64 << 54) as f64;
    // Adding 1.5 · 2⁵² rounds to an integer.
    const MAGIC: f64 = 1.5 * TWO_52;
    let tiny = x < f64::MIN_POSITIVE;
    let normal = if tiny { x * TWO_54 } else { x };
    let shifted = normal.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - ROOT_HALF);
    // An integer below 2⁵² or-ed into the mantissa of 2⁵² is that integer plus 2⁵².
    let biased = f64::from_bits((shifted >> 52) | 0x4330_0000_0000_0000) - (TWO_52 + 1023.0);
    let e = if tiny { biased - 54.0 } else { biased };
    let f = f64::from_bits((shifted & MANTISSA) + ROOT_HALF) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut series = ODD_RECIPROCALS[9];
    for c in ODD_RECIPROCALS[..9].iter().rev() {
        series = series.mul_add(z, *c);
    }
    let log = 2.0 * s.mul_add(z * series, s) * std::f64::consts::LOG2_E;
    // Far beyond the range of exponents the result is 0 or infinite whatever the number is.
    let k = a.mul_add(e, a * log).clamp(-2200.0, 2200.0) + MAGIC - MAGIC;
    let r = a.mul_add(e, -k) + a * log;
    let t = r.clamp(-1.0, 1.0) * std::f64::consts::LN_2;
    let mut exponential = TAYLOR[14];
    for c in TAYLOR[..14].iter().rev() {
        exponential = exponential.mul_add(t, *c);
    }
    // In two steps: 2ᵏ alone may leave the range where the product does not.
    let half = 0.5 * k + MAGIC - MAGIC;
    let value = exponential * two_to(half) * two_to(k - half);
    let value = if x == 0.0 { 0.0 } else { value };
    if x < f64::INFINITY { value } else { x }
}

/// `1/3, 1/5, …`: `artanh s = s + s³/3 + s⁵/5 + …`.
const ODD_RECIPROCALS: [f64; 10] = {
    let mut c = [0.0; 10];
    let mut i = 0;
    while i < 10 {
        c[i] = 1.0 / (2 * i + 3) as f64;
        i += 1;
    }
    c
};

/// `1/k!`.
const TAYLOR: [f64; 15] = {
    let (mut c, mut factorial, mut i) = ([1.0; 15], 1.0, 1);
    while i < 15 {
        factorial *= i as f64;
        c[i] = 1.0 / factorial;
        i += 1;
    }
    c
};

/// `2ᵏ` for a whole `|k| ≤ 1100`, cut off at the ends of the range of normal numbers.
#[inline(always)]
fn two_to(k: f64) -> f64 {
    const MAGIC: f64 = 1.5 * (1u64 << 52) as f64;
    let biased = (k.clamp(-1023.0, 1024.0) + 1023.0 + MAGIC).to_bits();
    // The last bits of the sum are the integer: shifted to the exponent's place they are the number.
    f64::from_bits(biased << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Role, Seed, Stream};

    fn moduli<R: Real>(power: Power, re: &[R], im: &[R], scale: R, out: &mut [R]) {
        let moduli = Moduli::new(power, scale, out.len());
        moduli.write(re, im, out);
        moduli.finish();
    }

    /// Log-uniform over `10^±decades`, zero and one included.
    fn intensities<R: Real>(decades: f64, count: usize) -> Vec<R> {
        let mut draw = Stream::new(Seed::new(4), Role::Noise, 1);
        let mut values: Vec<R> =
            (0..count).map(|_| R::from_f64(libm::pow(10.0, decades * (2.0 * draw.uniform() - 1.0)))).collect();
        values.extend([R::ZERO, R::ONE]);
        values
    }

    fn worst(a: f64, decades: f64) -> f64 {
        let x = intensities::<f64>(decades, 5000);
        let mut y = x.clone();
        Power::Any(a).raise(1.0, &mut y);
        x.iter()
            .zip(&y)
            .map(|(&x, &y)| {
                let exact = libm::pow(x, a);
                if exact == 0.0 { y.abs() } else { (y - exact).abs() / (exact * f64::EPSILON) }
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn real_powers_follow_libm() {
        for (a, decades, places) in [
            (0.25, 150.0, 2.0),
            (0.5, 150.0, 2.0),
            (0.85, 150.0, 3.0),
            (1.0, 150.0, 3.0),
            (2.3, 100.0, 6.0),
            (7.9, 30.0, 10.0),
            (1e-3, 150.0, 2.0),
        ] {
            let found = worst(a, decades);
            assert!(found < places, "a = {a}: {found} units in the last place");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_reached_without_fuss() {
        let mut x = [0.0, f64::MIN_POSITIVE / 1024.0, f64::MAX, 1e200, 1e-200, f64::INFINITY];
        Power::Any(1.3).raise(1.0, &mut x);
        assert_eq!((x[0], x[2], x[5]), (0.0, f64::INFINITY, f64::INFINITY));
        let exact = [libm::pow(f64::MIN_POSITIVE / 1024.0, 1.3), libm::pow(1e200, 1.3), libm::pow(1e-200, 1.3)];
        for (x, exact) in [x[1], x[3], x[4]].iter().zip(exact) {
            assert!((x - exact).abs() <= 4.0 * f64::EPSILON * exact, "{x} {exact}");
        }
        let mut x = [1e-300, 1e300, 0.5];
        Power::Any(40.5).raise(1.0, &mut x);
        assert_eq!((x[0], x[1]), (0.0, f64::INFINITY));
    }

    #[test]
    fn whole_and_half_powers_are_products_and_roots() {
        let x = intensities::<f32>(3.0, 200);
        for m in 1..=9 {
            let mut y = x.clone();
            Power::of_modulus(f64::from(m)).raise(1.0, &mut y);
            for (x, y) in x.iter().zip(&y) {
                let exact = libm::pow(f64::from(*x), 0.5 * f64::from(m));
                assert!((f64::from(*y) - exact).abs() <= 6.0 * f64::from(f32::EPSILON) * exact, "m = {m}: {x} {y}");
            }
        }
        assert_eq!(Power::of_modulus(2.0), Power::Whole(1));
        assert_eq!(Power::of_modulus(1.0), Power::Root(0));
        assert_eq!(Power::of_modulus(1.7), Power::Any(0.85));
        assert_eq!(Power::of_modulus(33.0), Power::Any(16.5));
    }

    #[test]
    fn vector_and_portable_paths_agree_in_every_bit() {
        fn check<R: Real>(m: f64) {
            let (re, im) = (intensities::<R>(5.0, 300), intensities::<R>(4.0, 300));
            let (power, scale) = (Power::of_modulus(m), R::from_f64(0.3));
            let (mut fast, mut plain) = (vec![R::ZERO; 302], vec![R::ZERO; 302]);
            moduli(power, &re, &im, scale, &mut fast);
            R::portable(Piece { moduli: &Moduli::new(power, scale, 302), re: &re, im: &im, out: &mut plain });
            assert_eq!(fast, plain, "m = {m}");
            // One by one: a value's place does not matter; and intensities first, then the power, are the same.
            for j in [0, 63, 64, 200, 301] {
                let mut one = [R::ZERO];
                moduli(power, &re[j..=j], &im[j..=j], scale, &mut one);
                assert_eq!(one[0], fast[j]);
                moduli(Power::Whole(1), &re[j..=j], &im[j..=j], R::ONE, &mut one);
                power.raise(scale, &mut one);
                assert_eq!(one[0], fast[j]);
            }
        }
        for m in [0.5, 1.0, 1.7, 2.0, 3.0, 4.0] {
            check::<f32>(m);
            check::<f64>(m);
        }
    }

    #[test]
    fn long_rows_are_written_whole() {
        let n = (STREAM_FROM / 4) + 37;
        let ones = vec![1.0f32; n];
        for offset in 0..9 {
            let mut out = vec![0.0; n + offset];
            moduli(Power::Whole(2), &ones, &ones, 0.5, &mut out[offset..]);
            assert!(out[offset..].iter().all(|&v| v == 2.0) && out[..offset].iter().all(|&v| v == 0.0));
            out.fill(0.0);
            let moduli = Moduli::new(Power::Whole(2), 0.5, n);
            out[offset..].chunks_mut(1000).for_each(|out| moduli.write(&ones[..out.len()], &ones[..out.len()], out));
            moduli.finish();
            assert!(out[offset..].iter().all(|&v| v == 2.0) && out[..offset].iter().all(|&v| v == 0.0));
        }
    }
}

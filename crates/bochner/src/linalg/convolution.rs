//! Circular convolutions of real signals.

use super::fft::{ComplexFft, RealFft};
use crate::scalar::Real;
use num_complex::Complex;
use std::sync::Arc;

/// Signals no longer than this are transformed as they are: below, halving them costs more than it saves.
const UNDIVIDED: usize = 256;

/// Circular convolution of real signals of one length `n`: transform each, multiply, transform back.
///
/// A signal is a polynomial modulo `xⁿ − 1 = (x^{n/2} − 1)(x^{n/2} + 1)`. The first factor is the same problem of half the
/// length. Modulo the second, `x^{n/4}` is a square root of −1 up to a rotation: the quarters of the signal become the
/// real and imaginary parts of `n/4` complex numbers, and the product of such numbers is a circular convolution again, after
/// coordinate `j` is turned by `e^{2πij/n}`. So all work is complex transforms of lengths `n/4, n/8, …` and plain loops; what
/// cannot be divided further is left to [`RealFft`]. (Nussbaumer 1982, chapter 2; the rotation is the right-angle convolution
/// of Crandall and Fagin 1994.)
///
/// With `n` = 10,240 in `f32` a transform takes 11 µs, against 15 µs forward and 19 µs back for [`RealFft`], which spends
/// half its time on separating frequencies.
#[derive(Debug, Clone)]
pub struct Convolution<R> {
    len: usize,
    steps: Arc<[Step<R>]>,
    rest: RealFft<R>,
}

/// One halving of a signal of length `4 · turn.len()`.
#[derive(Debug)]
struct Step<R> {
    fft: ComplexFft<R>,
    /// `e^{2πij/n}`.
    turn: Vec<Complex<R>>,
    /// `2 e^{−2πij/n}`: the 2 is the weight of this half where the halves are put together.
    turn_back: Vec<Complex<R>>,
}

impl<R: Real> Convolution<R> {
    /// Plans convolutions of length `len`.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn new(len: usize) -> Self {
        let mut steps = Vec::new();
        let mut rest = len;
        while rest.is_multiple_of(4) && rest > UNDIVIDED {
            let turn = |sign: f64, factor: f64| {
                let angle = move |j: usize| libm::sincos(sign * std::f64::consts::TAU * j as f64 / rest as f64);
                (0..rest / 4).map(move |j| {
                    let (sin, cos) = angle(j);
                    Complex::new(R::from_f64(factor * cos), R::from_f64(factor * sin))
                })
            };
            steps.push(Step {
                fft: ComplexFft::new(rest / 4),
                turn: turn(1.0, 1.0).collect(),
                turn_back: turn(-1.0, 2.0).collect(),
            });
            rest /= 2;
        }
        Convolution { len, steps: steps.into(), rest: RealFft::new(rest) }
    }

    /// Length of a signal.
    pub fn signal_len(&self) -> usize {
        self.len
    }

    /// Length of a spectrum: an opaque list of numbers that are multiplied one by one.
    pub fn spectrum_len(&self) -> usize {
        self.steps.iter().map(|step| step.turn.len()).sum::<usize>() + self.rest.spectrum_len()
    }

    /// Complex numbers of scratch that either direction needs at most.
    pub fn scratch_len(&self) -> usize {
        self.steps.iter().map(|step| step.fft.scratch_len()).fold(self.rest.scratch_len(), usize::max)
    }

    /// Writes the spectrum of `signal`, whose numbers are lost.
    ///
    /// # Panics
    /// If a slice has another length than announced.
    pub fn forward(&self, signal: &mut [R], mut spectrum: &mut [Complex<R>], scratch: &mut [Complex<R>]) {
        assert_eq!((signal.len(), spectrum.len()), (self.len, self.spectrum_len()));
        let mut n = self.len;
        for step in self.steps.iter() {
            let (part, later) = spectrum.split_at_mut(n / 4);
            pulp::Arch::new().dispatch(Fold { signal: &mut signal[..n], turn: &step.turn, part });
            step.fft.forward(part, &mut scratch[..step.fft.scratch_len()]);
            (spectrum, n) = (later, n / 2);
        }
        self.rest.forward(&mut signal[..n], spectrum, scratch);
    }

    /// Writes `n` times the signal of `spectrum`, whose numbers are lost.
    ///
    /// # Panics
    /// If a slice has another length than announced.
    pub fn inverse(&self, spectrum: &mut [Complex<R>], signal: &mut [R], scratch: &mut [Complex<R>]) {
        assert_eq!((signal.len(), spectrum.len()), (self.len, self.spectrum_len()));
        let (mut n, mut end) = (self.rest.signal_len(), spectrum.len() - self.rest.spectrum_len());
        self.rest.inverse(&mut spectrum[end..], &mut signal[..n], scratch);
        for step in self.steps.iter().rev() {
            n *= 2;
            let part = &mut spectrum[end - n / 4..end];
            end -= n / 4;
            step.fft.inverse(part, &mut scratch[..step.fft.scratch_len()]);
            pulp::Arch::new().dispatch(Unfold { signal: &mut signal[..n], turn_back: &step.turn_back, part });
        }
    }
}

/// Numbers handled together. Copied to arrays of their own they need no proof that slices do not overlap, which the
/// compiler cannot find for six of them: 3 µs instead of 9 for a signal of 10,240.
const LANES: usize = 8;

fn quarters<R>(signal: &mut [R]) -> [&mut [R]; 4] {
    let (low, high) = signal.split_at_mut(signal.len() / 2);
    let quarter = low.len() / 2;
    let ((a, b), (c, d)) = (low.split_at_mut(quarter), high.split_at_mut(quarter));
    [a, b, c, d]
}

#[inline(always)]
fn load<T: Copy>(from: &[T]) -> [T; LANES] {
    from[..LANES].try_into().expect("the slice has this length")
}

/// `signal` modulo `x^{n/2} − 1` into its first half, modulo `x^{n/2} + 1` turned into `part`.
struct Fold<'a, R> {
    signal: &'a mut [R],
    turn: &'a [Complex<R>],
    part: &'a mut [Complex<R>],
}

impl<R: Real> pulp::WithSimd for Fold<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let [a, b, c, d] = quarters(self.signal);
        let (turn, part) = (&self.turn[..a.len()], &mut self.part[..a.len()]);
        let whole = a.len() / LANES * LANES;
        for j in (0..whole).step_by(LANES) {
            let (a8, b8, c8, d8, w8) = (load(&a[j..]), load(&b[j..]), load(&c[j..]), load(&d[j..]), load(&turn[j..]));
            let (mut sum_a, mut sum_b) = ([R::ZERO; LANES], [R::ZERO; LANES]);
            let mut z8 = [Complex::new(R::ZERO, R::ZERO); LANES];
            for l in 0..LANES {
                let (re, im) = (a8[l] - c8[l], b8[l] - d8[l]);
                sum_a[l] = a8[l] + c8[l];
                sum_b[l] = b8[l] + d8[l];
                z8[l] = product(Complex::new(re, im), w8[l]);
            }
            a[j..][..LANES].copy_from_slice(&sum_a);
            b[j..][..LANES].copy_from_slice(&sum_b);
            part[j..][..LANES].copy_from_slice(&z8);
        }
        for j in whole..a.len() {
            part[j] = product(Complex::new(a[j] - c[j], b[j] - d[j]), turn[j]);
            (a[j], b[j]) = (a[j] + c[j], b[j] + d[j]);
        }
    }
}

#[inline(always)]
fn product<R: Real>(z: Complex<R>, w: Complex<R>) -> Complex<R> {
    Complex::new(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re)
}

/// The inverse of [`Fold`], up to a factor of 2.
struct Unfold<'a, R> {
    signal: &'a mut [R],
    turn_back: &'a [Complex<R>],
    part: &'a [Complex<R>],
}

impl<R: Real> pulp::WithSimd for Unfold<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let [a, b, c, d] = quarters(self.signal);
        let (turn, part) = (&self.turn_back[..a.len()], &self.part[..a.len()]);
        let whole = a.len() / LANES * LANES;
        for j in (0..whole).step_by(LANES) {
            let (a8, b8, w8, z8) = (load(&a[j..]), load(&b[j..]), load(&turn[j..]), load(&part[j..]));
            let mut sums = [[R::ZERO; LANES]; 4];
            for l in 0..LANES {
                let z = product(z8[l], w8[l]);
                sums[0][l] = a8[l] + z.re;
                sums[1][l] = b8[l] + z.im;
                sums[2][l] = a8[l] - z.re;
                sums[3][l] = b8[l] - z.im;
            }
            for (quarter, sum) in [&mut *a, &mut *b, &mut *c, &mut *d].into_iter().zip(&sums) {
                quarter[j..][..LANES].copy_from_slice(sum);
            }
        }
        for j in whole..a.len() {
            let z = product(part[j], turn[j]);
            (c[j], d[j]) = (a[j] - z.re, b[j] - z.im);
            (a[j], b[j]) = (a[j] + z.re, b[j] + z.im);
        }
    }
}

/// Multiplies spectra number by number: `target[k] *= factor[k]`.
pub fn multiply_spectra<R: Real>(target: &mut [Complex<R>], factor: &[Complex<R>]) {
    struct Multiply<'a, R>(&'a mut [Complex<R>], &'a [Complex<R>]);
    impl<R: Real> pulp::WithSimd for Multiply<'_, R> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _simd: S) {
            for (t, f) in self.0.iter_mut().zip(self.1) {
                *t = product(*t, *f);
            }
        }
    }
    pulp::Arch::new().dispatch(Multiply(target, factor));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths with no, one and many halvings, odd, twice odd, one.
    const LENGTHS: [usize; 16] = [1, 2, 3, 4, 5, 6, 8, 97, 256, 257, 258, 260, 264, 320, 1000, 2048];

    fn signal<R: Real>(n: usize, phase: f64) -> Vec<R> {
        (0..n).map(|j| R::from_f64((j as f64 * 1.3 + phase).sin())).collect()
    }

    fn convolve<R: Real>(signals: &[Vec<R>]) -> Vec<R> {
        let n = signals[0].len();
        let plan = Convolution::<R>::new(n);
        let nan = Complex::new(R::nan(), R::nan());
        let mut scratch = vec![nan; plan.scratch_len()];
        let mut product = vec![Complex::new(R::ONE, R::ZERO); plan.spectrum_len()];
        let mut spectrum = vec![nan; plan.spectrum_len()];
        for signal in signals {
            plan.forward(&mut signal.clone(), &mut spectrum, &mut scratch);
            multiply_spectra(&mut product, &spectrum);
        }
        let mut out = vec![R::nan(); n];
        plan.inverse(&mut product, &mut out, &mut scratch);
        out.iter().map(|&v| v / R::from_f64(n as f64)).collect()
    }

    fn defining_sum(a: &[f64], b: &[f64]) -> Vec<f64> {
        let n = a.len();
        (0..n).map(|k| (0..n).map(|j| a[j] * b[(k + n - j) % n]).sum()).collect()
    }

    #[test]
    fn products_of_spectra_are_circular_convolutions() {
        for n in LENGTHS {
            let (a, b, c) = (signal::<f64>(n, 0.1), signal::<f64>(n, 0.7), signal::<f64>(n, 2.0));
            let expected = defining_sum(&defining_sum(&a, &b), &c);
            let found = convolve(&[a, b, c]);
            let tolerance = 1e-14 * (n * n) as f64;
            assert!(found.iter().zip(&expected).all(|(f, e)| (f - e).abs() <= tolerance), "length {n}");
        }
    }

    #[test]
    fn one_signal_comes_back_as_it_was() {
        for n in LENGTHS {
            let a = signal::<f32>(n, 0.3);
            let found = convolve(std::slice::from_ref(&a));
            assert!(found.iter().zip(&a).all(|(f, e)| (f - e).abs() < 2e-6), "length {n}");
        }
    }

    #[test]
    fn a_shifted_impulse_shifts() {
        for n in LENGTHS {
            let a = signal::<f64>(n, 0.3);
            for shift in [0, 1, n / 3, n - 1] {
                let mut impulse = vec![0.0; n];
                impulse[shift % n] = 1.0;
                let found = convolve(&[a.clone(), impulse]);
                assert!((0..n).all(|k| (found[(k + shift) % n] - a[k]).abs() < 1e-13), "length {n}, shift {shift}");
            }
        }
    }
}

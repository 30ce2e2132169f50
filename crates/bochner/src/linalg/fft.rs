//! The door to rustfft: planned Fourier transforms of any length.
//!
//! Plans are shared: cloning one copies a pointer. Scratch comes from the caller, so that a tile of rows allocates once.

use super::Kernels;
use num_complex::Complex;
use realfft::{ComplexToReal, RealToComplex};
use rustfft::{Fft, FftNum};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Fourier transforms of real signals of one length `n`, to and from their `⌊n/2⌋ + 1` non-negative frequencies.
///
/// Forward `Fₖ = Σⱼ xⱼ e^{−2πijk/n}`; inverse without the factor `1/n`.
///
/// ```
/// use bochner::{Complex, linalg::RealFft};
/// let fft = RealFft::<f64>::new(3);
/// let mut spectrum = vec![Complex::ZERO; fft.spectrum_len()];
/// let mut scratch = vec![Complex::ZERO; fft.scratch_len()];
/// fft.forward(&mut [1.0, 2.0, 3.0], &mut spectrum, &mut scratch);
/// assert_eq!(spectrum[0].re, 6.0);
/// ```
#[derive(Clone)]
pub struct RealFft<R> {
    forward: Arc<dyn RealToComplex<R>>,
    inverse: Arc<dyn ComplexToReal<R>>,
}

impl<R: Kernels> RealFft<R> {
    /// Plans both directions.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn new(len: usize) -> Self {
        R::plan_real(len)
    }
}

impl<R> RealFft<R> {
    /// Length of a signal.
    pub fn signal_len(&self) -> usize {
        self.forward.len()
    }

    /// Length of a spectrum.
    pub fn spectrum_len(&self) -> usize {
        self.forward.len() / 2 + 1
    }

    /// Complex numbers of scratch that either direction needs at most.
    pub fn scratch_len(&self) -> usize {
        self.forward.get_scratch_len().max(self.inverse.get_scratch_len())
    }

    /// Writes the spectrum of `signal`, whose numbers are lost.
    ///
    /// # Panics
    /// If a slice has another length than announced.
    pub fn forward(&self, signal: &mut [R], spectrum: &mut [Complex<R>], scratch: &mut [Complex<R>]) {
        self.forward
            .process_with_scratch(signal, spectrum, &mut scratch[..self.forward.get_scratch_len()])
            .expect("slices have the planned lengths");
    }

    /// Writes `n` times the signal of `spectrum`, whose numbers are lost.
    ///
    /// # Panics
    /// If a slice has another length than announced.
    pub fn inverse(&self, spectrum: &mut [Complex<R>], signal: &mut [R], scratch: &mut [Complex<R>]) {
        assert_eq!((spectrum.len(), signal.len()), (self.spectrum_len(), self.signal_len()));
        // The only other error is an imaginary part at a frequency that has none, which is then ignored, as it should be:
        // rounding leaves one there in products of spectra.
        let _ = self.inverse.process_with_scratch(spectrum, signal, &mut scratch[..self.inverse.get_scratch_len()]);
    }
}

impl<R> Debug for RealFft<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealFft").field("len", &self.signal_len()).finish()
    }
}

/// One direction of a complex transform, in place, without naming rustfft's traits.
trait Pass<R>: Send + Sync {
    fn run(&self, data: &mut [Complex<R>], scratch: &mut [Complex<R>]);
    fn scratch_len(&self) -> usize;
}

impl<R: FftNum> Pass<R> for Arc<dyn Fft<R>> {
    fn run(&self, data: &mut [Complex<R>], scratch: &mut [Complex<R>]) {
        self.process_with_scratch(data, scratch);
    }

    fn scratch_len(&self) -> usize {
        self.get_inplace_scratch_len()
    }
}

/// Fourier transforms of complex signals of one length `n`, in place.
///
/// Forward `Fₖ = Σⱼ zⱼ e^{−2πijk/n}`; inverse without the factor `1/n`.
#[derive(Clone)]
pub struct ComplexFft<R> {
    len: usize,
    forward: Arc<dyn Pass<R>>,
    inverse: Arc<dyn Pass<R>>,
}

impl<R: Kernels> ComplexFft<R> {
    /// Plans both directions.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn new(len: usize) -> Self {
        R::plan_complex(len)
    }
}

impl<R> ComplexFft<R> {
    /// Length of a signal and of its spectrum.
    pub fn signal_len(&self) -> usize {
        self.len
    }

    /// Complex numbers of scratch that either direction needs at most.
    pub fn scratch_len(&self) -> usize {
        self.forward.scratch_len().max(self.inverse.scratch_len())
    }

    /// Replaces a signal by its spectrum.
    ///
    /// # Panics
    /// If a slice has another length than announced.
    pub fn forward(&self, data: &mut [Complex<R>], scratch: &mut [Complex<R>]) {
        // rustfft would take several signals at once, or complain about a part of one by itself.
        assert_eq!(data.len(), self.len);
        self.forward.run(data, scratch);
    }

    /// Replaces a spectrum by `n` times its signal.
    ///
    /// # Panics
    /// If a slice has another length than announced.
    pub fn inverse(&self, data: &mut [Complex<R>], scratch: &mut [Complex<R>]) {
        assert_eq!(data.len(), self.len);
        self.inverse.run(data, scratch);
    }
}

impl<R> Debug for ComplexFft<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComplexFft").field("len", &self.len).finish()
    }
}

/// Number types with planned transforms; part of [`Kernels`].
pub trait Transforms: Sized {
    /// See [`RealFft::new`].
    fn plan_real(len: usize) -> RealFft<Self>;
    /// See [`ComplexFft::new`].
    fn plan_complex(len: usize) -> ComplexFft<Self>;
}

macro_rules! transforms {
    ($($t:ty),*) => {$(
        impl Transforms for $t {
            fn plan_real(len: usize) -> RealFft<Self> {
                assert!(len > 0, "a transform has at least one point");
                let (forward, inverse) = <$t as bochner_backend::Transforms>::plan_real(len);
                RealFft { forward, inverse }
            }

            fn plan_complex(len: usize) -> ComplexFft<Self> {
                assert!(len > 0, "a transform has at least one point");
                let (forward, inverse) = <$t as bochner_backend::Transforms>::plan_complex(len);
                ComplexFft { len, forward: Arc::new(forward), inverse: Arc::new(inverse) }
            }
        }
    )*};
}
transforms!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    fn signal(n: usize) -> Vec<Complex<f64>> {
        (0..n).map(|j| Complex::new((j as f64 * 1.7).sin(), (j as f64 * 0.9 + 1.0).cos())).collect()
    }

    fn dft(z: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let n = z.len();
        let wave = |j: usize, k: usize| Complex::cis(-TAU * ((j * k) % n) as f64 / n as f64);
        (0..n).map(|k| (0..n).map(|j| z[j] * wave(j, k)).sum()).collect()
    }

    #[test]
    fn transforms_of_every_small_length_are_the_defining_sums() {
        for n in (1..40).chain([64, 97, 160]) {
            let z = signal(n);
            let tolerance = 1e-13 * n as f64;
            let fft = ComplexFft::<f64>::new(n);
            let mut scratch = vec![Complex::new(f64::NAN, f64::NAN); fft.scratch_len()];
            let mut found = z.clone();
            fft.forward(&mut found, &mut scratch);
            assert!(found.iter().zip(dft(&z)).all(|(f, e)| (f - e).norm() < tolerance), "complex, length {n}");
            fft.inverse(&mut found, &mut scratch);
            assert!(found.iter().zip(&z).all(|(f, e)| (f - e * n as f64).norm() < tolerance), "complex, length {n}");

            let real: Vec<Complex<f64>> = z.iter().map(|z| Complex::new(z.re, 0.0)).collect();
            let fft = RealFft::<f64>::new(n);
            let mut scratch = vec![Complex::new(f64::NAN, f64::NAN); fft.scratch_len()];
            let mut found: Vec<f64> = z.iter().map(|z| z.re).collect();
            let mut spectrum = vec![Complex::new(f64::NAN, f64::NAN); fft.spectrum_len()];
            fft.forward(&mut found, &mut spectrum, &mut scratch);
            assert!(spectrum.iter().zip(dft(&real)).all(|(f, e)| (f - e).norm() < tolerance), "real, length {n}");
            fft.inverse(&mut spectrum, &mut found, &mut scratch);
            assert!(found.iter().zip(&z).all(|(f, e)| (f - e.re * n as f64).abs() < tolerance), "real, length {n}");
        }
    }
}

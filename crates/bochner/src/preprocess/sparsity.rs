use crate::error::{Error, Result, check_count, check_dim};
use crate::linalg::ComplexFft;
use crate::parallel::Parallel;
use crate::scalar::Real;
use ndarray::ArrayView2;
use num_complex::Complex;
use serde::{Deserialize, Serialize};

/// An orthonormal basis in which signals may be sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The coordinates themselves.
    Identity,
    /// Haar's wavelets.
    Haar,
    /// Daubechies' wavelets of four coefficients (two vanishing moments), periodic.
    Daubechies4,
    /// Cosines: the DCT-II of unit norm.
    Dct,
}

/// A signal's shape: a line of numbers, or an image row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// A line of numbers.
    Line,
    /// An image of this height and width; transformed along columns and rows, level by level for wavelets.
    Image {
        /// Number of lines.
        height: usize,
        /// Numbers per line.
        width: usize,
    },
}

/// An orthonormal transform of signals of one shape: `|Tx| = |x|`.
///
/// Wavelets halve a side as long as it is even (for four coefficients, and at least 4), so that any length has a
/// transform without padding; an odd length has none of them and stays as it is.
///
/// # References
/// Daubechies 1992, section 6.4 (coefficients); Mallat 2009, section 7.7 (images).
///
/// ```
/// use bochner::preprocess::{Basis, Shape, SparseTransform};
/// let transform = SparseTransform::new(Basis::Haar, Shape::Line, 4)?;
/// let mut signal = [1.0, 1.0, 5.0, 5.0];
/// transform.apply(&mut signal);
/// // The mean, one coarse difference, no fine ones.
/// assert!(signal.iter().zip([6.0, -4.0, 0.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-12));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SparseTransform {
    basis: Basis,
    height: usize,
    width: usize,
    /// Cosine transforms along a line and along a column.
    cosines: Option<(Dct, Dct)>,
}

/// Transforms some numbers in place, with room for as many.
type Step<'a> = dyn Fn(&mut [f64], &mut [f64]) + 'a;

impl SparseTransform {
    /// A transform of signals of `len` numbers.
    ///
    /// # Errors
    /// No numbers, or an image of another size.
    pub fn new(basis: Basis, shape: Shape, len: usize) -> Result<Self> {
        check_count("length of a signal", len)?;
        let (height, width) = match shape {
            Shape::Line => (1, len),
            Shape::Image { height, width } => {
                check_count("height", height)?;
                check_count("width", width)?;
                check_dim("length of a signal", height.saturating_mul(width), len)?;
                (height, width)
            }
        };
        let cosines = (basis == Basis::Dct).then(|| (Dct::new(width), Dct::new(height)));
        Ok(SparseTransform { basis, height, width, cosines })
    }

    /// Numbers of a signal.
    pub fn dim(&self) -> usize {
        self.height * self.width
    }

    /// Transforms a signal in place.
    ///
    /// # Panics
    /// If the signal has another length.
    pub fn apply(&self, signal: &mut [f64]) {
        assert_eq!(signal.len(), self.dim(), "a signal has the length the transform was made for");
        let mut line = vec![0.0; 2 * self.height.max(self.width)];
        match (&self.cosines, self.basis) {
            (Some((along, across)), _) => {
                let whole = (self.height, self.width);
                self.along(signal, whole, &|values, _| along.apply(values), &mut line);
                if self.height > 1 {
                    self.across(signal, whole, &|values, _| across.apply(values), &mut line);
                }
            }
            (None, Basis::Haar) => self.wavelets(signal, 2, &haar, &mut line),
            (None, Basis::Daubechies4) => self.wavelets(signal, 4, &daubechies, &mut line),
            (None, _) => {}
        }
    }

    /// Halves the coarse corner until a side is odd or shorter than the wavelet.
    fn wavelets(&self, signal: &mut [f64], shortest: usize, step: &Step<'_>, line: &mut [f64]) {
        let halves = |side: usize| side >= shortest && side.is_multiple_of(2);
        let (mut height, mut width) = (self.height, self.width);
        loop {
            let (down, right) = (self.height > 1 && halves(height), halves(width));
            // An image whose sides part ways would be transformed along one of them only: it stops with the first.
            if !right || self.height > 1 && !down {
                return;
            }
            self.along(signal, (height, width), step, line);
            if down {
                self.across(signal, (height, width), step, line);
                height /= 2;
            }
            width /= 2;
        }
    }

    /// Transforms the first `width` numbers of the first `height` lines.
    fn along(&self, signal: &mut [f64], (height, width): (usize, usize), step: &Step<'_>, scratch: &mut [f64]) {
        for line in signal.chunks_exact_mut(self.width).take(height) {
            step(&mut line[..width], &mut scratch[..width]);
        }
    }

    /// Transforms the first `height` numbers of the first `width` columns.
    fn across(&self, signal: &mut [f64], (height, width): (usize, usize), step: &Step<'_>, scratch: &mut [f64]) {
        let (column, rest) = scratch.split_at_mut(height);
        for j in 0..width {
            (0..height).for_each(|i| column[i] = signal[i * self.width + j]);
            step(column, &mut rest[..height]);
            (0..height).for_each(|i| signal[i * self.width + j] = column[i]);
        }
    }
}

/// One level of Haar's transform: sums, then differences.
fn haar(values: &mut [f64], scratch: &mut [f64]) {
    let half = values.len() / 2;
    let root = std::f64::consts::FRAC_1_SQRT_2;
    for k in 0..half {
        let (a, b) = (values[2 * k], values[2 * k + 1]);
        (scratch[k], scratch[half + k]) = (root * (a + b), root * (a - b));
    }
    values.copy_from_slice(scratch);
}

/// One level of Daubechies' transform of four coefficients, around the end.
fn daubechies(values: &mut [f64], scratch: &mut [f64]) {
    let (n, half) = (values.len(), values.len() / 2);
    let (root3, unit) = (3f64.sqrt(), 4.0 * std::f64::consts::SQRT_2);
    let low = [(1.0 + root3) / unit, (3.0 + root3) / unit, (3.0 - root3) / unit, (1.0 - root3) / unit];
    for k in 0..half {
        let (mut smooth, mut detail) = (0.0, 0.0);
        for (j, coefficient) in low.iter().enumerate() {
            let value = values[(2 * k + j) % n];
            smooth += coefficient * value;
            // The quadrature mirror: coefficients backwards with alternating signs.
            detail += if j % 2 == 0 { low[3 - j] } else { -low[3 - j] } * value;
        }
        (scratch[k], scratch[half + k]) = (smooth, detail);
    }
    values.copy_from_slice(scratch);
}

/// The DCT-II of unit norm, by one Fourier transform of the same length (Makhoul 1980).
#[derive(Debug, Clone)]
struct Dct {
    fft: ComplexFft<f64>,
    /// `e^{-iπk/2n}` times the norm.
    twiddles: Vec<Complex<f64>>,
}

impl Dct {
    fn new(len: usize) -> Self {
        let n = len as f64;
        let twiddles = (0..len)
            .map(|k| {
                let norm = if k == 0 { (1.0 / n).sqrt() } else { (2.0 / n).sqrt() };
                let angle = -std::f64::consts::PI * k as f64 / (2.0 * n);
                Complex::new(norm * libm::cos(angle), norm * libm::sin(angle))
            })
            .collect();
        Dct { fft: ComplexFft::new(len), twiddles }
    }

    fn apply(&self, values: &mut [f64]) {
        let n = values.len();
        // Even places forwards, then odd ones backwards.
        let from = |k: usize| if 2 * k < n { 2 * k } else { 2 * (n - k) - 1 };
        let mut data: Vec<Complex<f64>> = (0..n).map(|k| Complex::new(values[from(k)], 0.0)).collect();
        let mut scratch = vec![Complex::ZERO; self.fft.scratch_len()];
        self.fft.forward(&mut data, &mut scratch);
        for ((value, z), twiddle) in values.iter_mut().zip(&data).zip(&self.twiddles) {
            *value = (z * twiddle).re;
        }
    }
}

/// How sparse signals are in a basis: the fewest coefficients that hold a share of the energy, over rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sparsity {
    /// Mean over rows.
    pub mean: f64,
    /// Median over rows, the lower one of two.
    pub median: usize,
    /// 95 % of the rows need no more.
    pub most: usize,
    /// The row that needs most.
    pub worst: usize,
}

/// The number `k` of coefficients that hold the share `energy` of `|x|²`, for every row; rows of zeros need none.
///
/// # Errors
/// No rows, a share outside of (0, 1], a transform of another length, NaN or infinities.
pub fn sparsity_at_energy<R: Real>(
    rows: ArrayView2<'_, R>,
    transform: &SparseTransform,
    energy: f64,
) -> Result<Sparsity> {
    check_count("number of rows", rows.nrows())?;
    check_dim("number of columns of rows", transform.dim(), rows.ncols())?;
    if !(energy > 0.0 && energy <= 1.0) {
        return Err(Error::parameter("energy", "a share above 0 and at most 1", energy));
    }
    crate::rows::check_finite("rows", rows, 0)?;
    let mut counts: Vec<usize> = (0..rows.nrows()).in_parallel().map_init(Vec::new, |signal: &mut Vec<f64>, i| {
        signal.clear();
        signal.extend(rows.row(i).iter().map(|&v| Real::to_f64(v)));
        transform.apply(signal);
        signal.iter_mut().for_each(|v| *v *= *v);
        signal.sort_unstable_by(|a, b| b.total_cmp(a));
        // Smallest first, so that a share of 1 is reached where only zeros are left out.
        let total: f64 = signal.iter().rev().sum();
        let (mut left, mut kept) = (0.0, signal.len());
        while kept > 0 && left + signal[kept - 1] <= (1.0 - energy) * total {
            left += signal[kept - 1];
            kept -= 1;
        }
        kept
    });
    counts.sort_unstable();
    let n = counts.len();
    Ok(Sparsity {
        mean: counts.iter().sum::<usize>() as f64 / n as f64,
        median: counts[(n - 1) / 2],
        most: counts[(n * 95).div_ceil(100).max(1) - 1],
        worst: counts[n - 1],
    })
}

use super::Measured;
use crate::error::{Error, Result, check_count, check_positive};
use crate::feature::{Directions, OperatorSpec};
use crate::kernel::OperatorKernel;
use crate::random::Seed;
use ndarray::{Array4, ArrayView2, s};
use std::time::Instant;

/// Numbers of the exact blocks at most: rows beyond it are left out evenly.
const MOST_NUMBERS: usize = 1 << 23;

/// Rows whose variances are summed at a time.
const SLAB: usize = 64;

/// Sample rows with the exact blocks of an operator-valued kernel.
///
/// ```
/// use bochner::{feature::OperatorSpec, kernel::OperatorKernel, plan::FieldSample};
/// let rows = ndarray::Array2::from_shape_fn((40, 2), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 5.0);
/// let kernel = OperatorKernel::curl_free(1.0)?;
/// let sample = FieldSample::new(&kernel, rows.view())?;
/// let features = sample.features(0.05)?;
/// let spec = OperatorSpec { n_components: features, ..sample.candidates().remove(0).1 };
/// assert!(sample.predict(&spec)? <= 0.05);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug)]
pub struct FieldSample<'a> {
    kernel: OperatorKernel,
    rows: ArrayView2<'a, f64>,
    exact: Array4<f64>,
    norm_sq: f64,
}

impl<'a> FieldSample<'a> {
    /// Evaluates the kernel on all pairs of rows, or of some of them where blocks of all would take more than 64 MB.
    ///
    /// # Errors
    /// Fewer than two rows, and kernel values that are all zero or not all finite.
    pub fn new(kernel: &OperatorKernel, rows: ArrayView2<'a, f64>) -> Result<Self> {
        check_count("number of columns of rows", rows.ncols())?;
        let most = ((MOST_NUMBERS as f64).sqrt() / kernel.output_dim(rows.ncols()) as f64).max(2.0) as usize;
        let rows = rows.slice_move(s![..;rows.nrows().div_ceil(most).max(1), ..]);
        if rows.nrows() < 2 {
            return Err(Error::parameter("rows", "at least 2", rows.nrows()));
        }
        let exact = kernel.matrix(rows, rows)?;
        let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
        if norm_sq == 0.0 || !norm_sq.is_finite() {
            let found = if norm_sq == 0.0 { "all are 0" } else { "some are beyond the range of f64" };
            return Err(Error::parameter("rows", "rows with finite kernel values that are not all 0", found));
        }
        Ok(FieldSample { kernel: kernel.clone(), rows, exact, norm_sq })
    }

    /// The rows that are compared.
    pub fn rows(&self) -> ArrayView2<'a, f64> {
        self.rows
    }

    /// Ways to draw the frequencies, under the names tables show; the number of features is to be replaced.
    pub fn candidates(&self) -> Vec<(&'static str, OperatorSpec)> {
        [
            ("Fourier, dense", Directions::Gaussian),
            ("Fourier, orthogonal", Directions::Orthogonal),
            ("Fourier, SORF", Directions::Sorf),
        ]
        .map(|(name, projection)| (name, OperatorSpec { projection, ..OperatorSpec::new(self.kernel.clone()) }))
        .to_vec()
    }

    /// The relative Frobenius error `(E‖K̂ - K‖²)^(1/2)/‖K‖` of all blocks, from the trace of their matrix variance.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for frequencies that are not independent, whose matrix variance has no closed form here.
    pub fn predict(&self, spec: &OperatorSpec) -> Result<f64> {
        if spec.projection != Directions::Gaussian {
            let reason = "the matrix variance is known for independent frequencies".into();
            return Err(Error::Unsupported { what: "projection", reason });
        }
        let mut sum = 0.0;
        for start in (0..self.rows.nrows()).step_by(SLAB) {
            let some = self.rows.slice(s![start..(start + SLAB).min(self.rows.nrows()), ..]);
            let variance = spec.variance(some, self.rows)?;
            sum += (0..variance.dim().2).map(|a| variance.slice(s![.., .., a, a]).sum()).sum::<f64>();
        }
        Ok((sum / self.norm_sq).sqrt())
    }

    /// The fewest cosines and sines whose predicted error is at most `error`: variances fall like one over their number.
    ///
    /// # Errors
    /// An error that is not positive.
    pub fn features(&self, error: f64) -> Result<usize> {
        check_positive("error", error)?;
        let one = OperatorSpec { n_components: 2, ..self.candidates().remove(0).1 };
        // Rounding must not make it one too few.
        Ok(2 * ((self.predict(&one)? / error).powi(2) * (1.0 + 1e-12)).ceil().max(1.0) as usize)
    }

    /// Draws features `draws` times and measures; `tick` is called after every draw and may end the work.
    ///
    /// # Errors
    /// What drawing and `tick` report.
    pub fn measure(
        &self,
        spec: &OperatorSpec,
        draws: usize,
        seed: Seed,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<Measured> {
        check_count("draws", draws)?;
        let (mut errors, mut times) = (Vec::with_capacity(draws), Vec::with_capacity(draws));
        for draw in 0..draws {
            let drawn = OperatorSpec { seed: seed.child(draw as u64).number(), ..spec.clone() };
            let features = drawn.build::<f64>(self.rows.ncols())?;
            let start = Instant::now();
            features.map().transform(self.rows)?;
            times.push(start.elapsed().as_secs_f64());
            let estimate = features.estimate(self.rows, self.rows)?;
            let squares: f64 = estimate.iter().zip(&self.exact).map(|(a, b)| (a - b).powi(2)).sum();
            errors.push((squares / self.norm_sq).sqrt());
            tick()?;
        }
        times.sort_by(f64::total_cmp);
        Ok(Measured { seconds: times[draws / 2], errors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Any, Gaussian, OutputMatrix};
    use crate::linalg::TileMut;
    use crate::random::{Role, fill_normals};
    use ndarray::{Array2, array};

    fn rows(n: usize, d: usize) -> Array2<f64> {
        let mut values = vec![0.0; n * d];
        fill_normals(Seed::new(11), Role::Noise, 0, 0, TileMut::new(&mut values, n, d));
        Array2::from_shape_vec((n, d), values).unwrap()
    }

    fn kernels() -> Vec<OperatorKernel> {
        let outputs = OutputMatrix::new(array![[2.0, 0.5], [0.5, 1.0]].view()).unwrap();
        vec![
            OperatorKernel::curl_free(1.5).unwrap(),
            OperatorKernel::div_free(1.5).unwrap(),
            OperatorKernel::helmholtz(1.5, 0.3).unwrap(),
            OperatorKernel::decomposable(Any::from(Gaussian::new(1.5).unwrap()), outputs).unwrap(),
        ]
    }

    #[test]
    fn draws_have_the_error_that_was_predicted() {
        // The squared error of a draw is an average over pairs that share their frequencies: its spread is taken from the
        // draws themselves, and six standard errors of their mean are allowed.
        let rows = rows(30, 3);
        for kernel in kernels() {
            let sample = FieldSample::new(&kernel, rows.view()).unwrap();
            let spec = OperatorSpec { n_components: 128, ..sample.candidates().remove(0).1 };
            let measured = sample.measure(&spec, 60, Seed::new(3), || Ok(())).unwrap();
            let squares: Vec<f64> = measured.errors.iter().map(|e| e * e).collect();
            let mean = squares.iter().sum::<f64>() / 60.0;
            let spread = (squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 59.0 / 60.0).sqrt();
            let predicted = sample.predict(&spec).unwrap().powi(2);
            assert!((mean - predicted).abs() < 6.0 * spread, "{kernel:?}: {mean} ± {spread}, {predicted}");
        }
    }

    #[test]
    fn the_number_of_features_is_the_smallest_that_reaches_the_error() {
        let rows = rows(25, 2);
        for kernel in kernels() {
            let sample = FieldSample::new(&kernel, rows.view()).unwrap();
            let features = sample.features(0.07).unwrap();
            let at = |n_components| {
                sample.predict(&OperatorSpec { n_components, ..sample.candidates().remove(0).1 }).unwrap()
            };
            assert!(at(features) <= 0.07 && at(features - 2) > 0.07, "{features}");
        }
    }

    #[test]
    fn large_samples_are_thinned_and_what_is_not_known_is_said() {
        let rows = rows(400, 30);
        let kernel = OperatorKernel::curl_free(5.0).unwrap();
        let sample = FieldSample::new(&kernel, rows.view()).unwrap();
        assert!(sample.rows().nrows() < 400 && sample.exact.len() <= MOST_NUMBERS);
        assert!(matches!(sample.predict(&sample.candidates()[1].1), Err(Error::Unsupported { .. })));
        assert!(sample.features(0.0).is_err());
        assert!(FieldSample::new(&kernel, rows.slice(s![..1, ..])).is_err());
    }
}

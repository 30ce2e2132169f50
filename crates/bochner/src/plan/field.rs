use super::{Candidate, Measured, PlanSample, Reach, Request, Sample, add_products, map_bytes, measure, slabs};
use crate::error::{Error, Result, check_count, check_positive};
use crate::feature::{Directions, OperatorSpec, Spec};
use crate::kernel::OperatorKernel;
use crate::linalg::Tile;
use crate::metrics::FrobeniusError;
use crate::random::Seed;
use crate::variance::operator;
use ndarray::{Array2, Array4, ArrayView2, s};

/// Numbers of the exact blocks at most: rows beyond it are left out evenly.
const MOST_NUMBERS: usize = 1 << 23;

/// Sample rows with the exact blocks of an operator-valued kernel.
///
/// Of a decomposable kernel `k(x - z) A` and its estimate the same `A` is a factor, so that their relative error is that of
/// the scalar kernel, whichever way frequencies are drawn. Of the kernels of fields the matrix variance is known for
/// independent frequencies.
///
/// ```
/// use bochner::plan::{FieldSample, Request, plan};
/// let rows = ndarray::Array2::from_shape_fn((40, 2), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 5.0);
/// let sample = FieldSample::new(&bochner::kernel::OperatorKernel::curl_free(1.0)?, rows.view())?;
/// let plan = plan(&sample, &Request { error: 0.05, ..Request::default() }, |_| Ok(()))?;
/// assert_eq!((plan.choices.len(), plan.choices[0].features), (1, sample.features(0.05)?));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug)]
pub struct FieldSample<'a> {
    kernel: OperatorKernel,
    values: Values<'a>,
}

#[derive(Debug)]
enum Values<'a> {
    /// `k`, where all blocks are multiples of one matrix.
    Scalar(Sample<'a>),
    Blocks(Blocks<'a>),
}

#[derive(Debug)]
struct Blocks<'a> {
    rows: ArrayView2<'a, f64>,
    single: Array2<f32>,
    exact: Array4<f64>,
    /// The relative error that one frequency leaves.
    one_frequency: f64,
}

impl<'a> FieldSample<'a> {
    /// Evaluates the kernel on all pairs of rows, or of some of them where blocks of all would take more than 64 MB.
    ///
    /// # Errors
    /// Fewer than two rows, and kernel values that are all zero or not all finite.
    pub fn new(kernel: &OperatorKernel, rows: ArrayView2<'a, f64>) -> Result<Self> {
        let values = match kernel.decomposed() {
            Some((base, outputs)) => {
                if outputs.norm() == 0.0 {
                    return Err(Error::parameter("output matrix", "a matrix that is not 0", "zeros"));
                }
                Values::Scalar(Sample::new(base, rows)?)
            }
            None => Values::Blocks(Blocks::new(kernel, rows)?),
        };
        Ok(FieldSample { kernel: kernel.clone(), values })
    }

    /// The fewest cosines and sines of independent frequencies whose expected error is at most `error`: variances fall like
    /// one over their number.
    ///
    /// # Errors
    /// An error that is not positive.
    pub fn features(&self, error: f64) -> Result<usize> {
        check_positive("error", error)?;
        let candidate = self.candidates()?.remove(0);
        let one = self.expected(&self.sized(&candidate, 2, Seed::new(0))?)?.0;
        // Rounding must not make it one too few.
        let frequencies = ((one / error).powi(2) * (1.0 + 1e-12)).ceil().max(1.0) as usize;
        Ok(frequencies.saturating_mul(2))
    }
}

impl<'a> Blocks<'a> {
    fn new(kernel: &OperatorKernel, rows: ArrayView2<'a, f64>) -> Result<Self> {
        check_count("number of columns of rows", rows.ncols())?;
        let most = ((MOST_NUMBERS as f64).sqrt() / kernel.output_dim(rows.ncols()) as f64).max(2.0) as usize;
        let rows = rows.slice_move(s![..;rows.nrows().div_ceil(most).max(1), ..]);
        if rows.nrows() < 2 {
            return Err(Error::parameter("rows", "at least 2", rows.nrows()));
        }
        let exact = kernel.matrix(rows, rows)?;
        let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
        // Blocks are 0 where those of rows with themselves are: of other pairs rounding may leave something.
        let own = |i: usize| exact.slice(s![i, i, .., ..]).iter().any(|k| *k != 0.0);
        let is_zero = !(0..rows.nrows()).any(own);
        if is_zero || !norm_sq.is_finite() {
            let found = if is_zero { "all are 0" } else { "some are beyond the range of f64" };
            return Err(Error::parameter("rows", "rows with finite kernel values that are not all 0", found));
        }
        let mut variance = 0.0;
        for range in slabs(rows.nrows()) {
            let some = rows.slice(s![range.clone(), ..]);
            let mut add = |others: ArrayView2<'_, f64>, times: f64| {
                let blocks = operator(kernel, 1, some, others)?;
                let trace = (0..blocks.dim().2).map(|a| blocks.slice(s![.., .., a, a]).sum()).sum::<f64>();
                variance += times * trace;
                Ok::<_, Error>(())
            };
            add(some, 1.0)?;
            if range.start > 0 {
                add(rows.slice(s![..range.start, ..]), 2.0)?;
            }
        }
        let one_frequency = (variance / norm_sq).sqrt();
        Ok(Blocks { rows, single: rows.mapv(|v| v as f32), exact, one_frequency })
    }

    /// From the trace of the matrix variance.
    fn expected(&self, spec: &OperatorSpec) -> Result<(f64, bool)> {
        if spec.projection != Directions::Gaussian {
            let reason = "the error of matrices is known in advance for independent frequencies only".into();
            return Err(Error::Unsupported { what: "projection", reason });
        }
        Ok((self.one_frequency / (spec.fourier()?.frequencies()? as f64).sqrt(), true))
    }

    fn measured(
        &self,
        spec: &OperatorSpec,
        draws: usize,
        seed: Seed,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Measured> {
        let draw = |seed| {
            let features = OperatorSpec { seed, ..spec.clone() }.build::<f32>(self.rows.ncols())?;
            Ok((features.map().clone(), features))
        };
        measure(self.single.view(), "length_scale", draws, seed, tick, draw, |features, drawn| {
            let (n, columns, p) = (features.rows(), features.cols(), drawn.output_dim());
            let weights = drawn.spread().outer_products(columns);
            let (mut error, mut scaled) = (FrobeniusError::default(), vec![0.0f32; n * columns]);
            // Entry (a, b) of all blocks is one product of features, of which one side has the entries of A(ω) as factors.
            for (a, b) in (0..p).flat_map(|a| (a..p).map(move |b| (a, b))) {
                let weights: Vec<f32> = weights.column(a * p + b).iter().map(|w| *w as f32).collect();
                for (i, to) in scaled.chunks_mut(columns).enumerate() {
                    let from = features.row(i).iter().zip(&weights);
                    to.iter_mut().zip(from).for_each(|(to, (feature, weight))| *to = feature * weight);
                }
                let exact = self.exact.slice(s![.., .., a, b]);
                let times = if a == b { 1 } else { 2 };
                add_products(&mut error, exact, Tile::new(&scaled, n, columns), features, times)?;
            }
            Ok(error.value())
        })
    }
}

/// The scalar features underneath.
fn scalar(candidate: &Candidate<OperatorSpec>) -> Result<Candidate> {
    let spec = candidate.spec.fourier()?.into();
    Ok(Candidate { name: candidate.name.clone(), spec, factor: candidate.factor })
}

impl PlanSample for FieldSample<'_> {
    type Spec = OperatorSpec;

    fn rows(&self) -> ArrayView2<'_, f64> {
        match &self.values {
            Values::Scalar(sample) => sample.rows,
            Values::Blocks(blocks) => blocks.rows,
        }
    }

    fn parameters(&self) -> &'static str {
        "length_scale"
    }

    fn candidates(&self) -> Result<Vec<Candidate<OperatorSpec>>> {
        let base = OperatorSpec::new(self.kernel.clone());
        let named = |&(name, projection): &(&str, _)| Candidate {
            name: name.into(),
            spec: OperatorSpec { projection, ..base.clone() },
            factor: 1.0,
        };
        Ok(base.fourier()?.ways().iter().map(named).collect())
    }

    fn sized(
        &self,
        candidate: &Candidate<OperatorSpec>,
        features: usize,
        seed: Seed,
    ) -> Result<Candidate<OperatorSpec>> {
        let spec = OperatorSpec { n_components: features, seed: seed.number(), ..candidate.spec.clone() };
        Ok(Candidate { spec, ..candidate.clone() })
    }

    fn expected(&self, candidate: &Candidate<OperatorSpec>) -> Result<(f64, bool)> {
        match &self.values {
            Values::Scalar(sample) => sample.expected(&scalar(candidate)?),
            Values::Blocks(blocks) => blocks.expected(&candidate.spec),
        }
    }

    fn measured(
        &self,
        candidate: &Candidate<OperatorSpec>,
        draws: usize,
        seed: Seed,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Measured> {
        match &self.values {
            Values::Scalar(sample) => sample.measured(&scalar(candidate)?, draws, seed, tick),
            Values::Blocks(blocks) => blocks.measured(&candidate.spec, draws, seed, tick),
        }
    }

    fn reach(&self, candidate: &Candidate<OperatorSpec>, request: &Request) -> Result<Reach<OperatorSpec>> {
        let (features, expected, closed_form) = match &self.values {
            Values::Scalar(sample) => {
                let reach = sample.reach(&scalar(candidate)?, request)?;
                (reach.features, reach.expected, reach.closed_form)
            }
            Values::Blocks(_) => {
                let features = self.features(request.error)?.min(request.most_features);
                let (expected, closed_form) =
                    self.expected(&self.sized(candidate, features, Seed::new(request.seed))?)?;
                (features, expected, closed_form)
            }
        };
        let spec = self.sized(candidate, features, Seed::new(request.seed))?.spec;
        Ok(Reach { spec, features, expected, closed_form })
    }

    fn map(&self, spec: &OperatorSpec) -> Result<Spec> {
        Ok(spec.fourier()?.into())
    }

    /// With the frequencies that blocks of fields are made of, in double precision.
    fn map_bytes(&self, spec: &OperatorSpec) -> Result<u64> {
        let map = self.map(spec)?;
        let (frequencies, dim) = (map.n_components() as u64 / 2, self.rows().ncols());
        let kept = match &self.values {
            Values::Scalar(_) => 0,
            Values::Blocks(_) => frequencies * 8 * (dim as u64 + 2),
        };
        Ok(map_bytes(&map, dim) + kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{AnyKernel, Gaussian, Laplacian, OutputMatrix};
    use crate::linalg::TileMut;
    use crate::plan::plan;
    use crate::random::{Role, fill_normals};
    use ndarray::array;

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
            OperatorKernel::decomposable(AnyKernel::from(Gaussian::new(1.5).unwrap()), outputs).unwrap(),
        ]
    }

    #[test]
    fn draws_have_the_error_that_was_predicted() {
        // The squared error of a draw is an average over pairs that share their frequencies: its spread is taken from the
        // draws themselves, and six standard errors of their mean are allowed.
        let rows = rows(30, 3);
        for kernel in kernels() {
            let sample = FieldSample::new(&kernel, rows.view()).unwrap();
            let dense = sample.sized(&sample.candidates().unwrap()[0], 128, Seed::new(0)).unwrap();
            let measured = sample.measured(&dense, 60, Seed::new(3), &mut || Ok(())).unwrap();
            let squares: Vec<f64> = measured.errors.iter().map(|e| e * e).collect();
            let mean = squares.iter().sum::<f64>() / 60.0;
            let spread = (squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 59.0 / 60.0).sqrt();
            let predicted = sample.expected(&dense).unwrap().0.powi(2);
            assert!((mean - predicted).abs() < 6.0 * spread, "{kernel:?}: {mean} ± {spread}, {predicted}");
        }
    }

    #[test]
    fn measured_errors_are_those_of_all_blocks() {
        // Three slabs, the last one shorter.
        let rows = rows(137, 3);
        for kernel in kernels() {
            let sample = FieldSample::new(&kernel, rows.view()).unwrap();
            let exact = kernel.matrix(rows.view(), rows.view()).unwrap();
            let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
            for candidate in sample.candidates().unwrap() {
                let candidate = sample.sized(&candidate, 32, Seed::new(0)).unwrap();
                let measured = sample.measured(&candidate, 1, Seed::new(2), &mut || Ok(())).unwrap().errors[0];
                let spec = OperatorSpec { seed: Seed::new(2).child(0).number(), ..candidate.spec };
                let estimate = spec.build::<f64>(3).unwrap().estimate(rows.view(), rows.view()).unwrap();
                let squares: f64 = estimate.iter().zip(&exact).map(|(a, b)| (a - b).powi(2)).sum();
                // Products of single precision.
                let plain = (squares / norm_sq).sqrt();
                assert!((measured / plain - 1.0).abs() < 1e-4, "{}: {measured}, {plain}", candidate.name);
            }
        }
    }

    #[test]
    fn expected_errors_are_the_traces_of_the_matrix_variance() {
        let rows = rows(137, 2);
        for kernel in kernels() {
            let sample = FieldSample::new(&kernel, rows.view()).unwrap();
            let dense = sample.sized(&sample.candidates().unwrap()[0], 20, Seed::new(0)).unwrap();
            let blocks = dense.spec.variance(rows.view(), rows.view()).unwrap();
            let trace: f64 = (0..2).map(|a| blocks.slice(s![.., .., a, a]).sum()).sum();
            let norm_sq: f64 = kernel.matrix(rows.view(), rows.view()).unwrap().iter().map(|k| k * k).sum();
            let (expected, closed_form) = sample.expected(&dense).unwrap();
            assert!(closed_form && (expected / (trace / norm_sq).sqrt() - 1.0).abs() < 1e-12, "{kernel:?}");
        }
    }

    #[test]
    fn the_number_of_features_is_the_smallest_that_reaches_the_error() {
        let rows = rows(25, 2);
        for kernel in kernels() {
            let sample = FieldSample::new(&kernel, rows.view()).unwrap();
            let features = sample.features(0.07).unwrap();
            let dense = sample.candidates().unwrap().remove(0);
            let at = |n| sample.expected(&sample.sized(&dense, n, Seed::new(0)).unwrap()).unwrap().0;
            assert!(at(features) <= 0.07 && at(features - 2) > 0.07, "{features}");
            assert_eq!(sample.features(1e-200).unwrap(), usize::MAX, "more than there are numbers for");
        }
    }

    #[test]
    fn plans_of_fields_have_independent_frequencies_and_those_of_related_outputs_all() {
        let rows = rows(40, 4);
        for kernel in kernels() {
            let sample = FieldSample::new(&kernel, rows.view()).unwrap();
            let request = Request { error: 0.1, draws: 2, ..Request::default() };
            let found = plan(&sample, &request, |_| Ok(())).unwrap();
            let names: Vec<&str> = found.shortfalls.iter().map(|s| s.name.as_str()).collect();
            match kernel.decomposed() {
                Some(_) => {
                    let all: Vec<&str> = found.choices.iter().map(|c| c.name.as_str()).chain(names).collect();
                    let known = ["Fourier, dense", "Fourier, orthogonal", "Fourier, SORF"];
                    assert!(all.len() == 3 && known.iter().all(|name| all.contains(name)), "{all:?}");
                    // Nothing is known of Hadamard chains of four columns.
                    assert!(found.shortfalls.iter().all(|s| s.error.is_none() && s.reason.contains("Hadamard")));
                    assert!(found.choices.iter().all(|c| c.predicted <= 0.1) && found.choices.len() == 2);
                }
                None => {
                    assert_eq!(names, ["Fourier, orthogonal", "Fourier, SORF"]);
                    assert!(found.shortfalls.iter().all(|s| s.error.is_none() && s.reason.contains("independent")));
                    // Cosines and sines of single precision; frequencies also in double precision, two numbers for each.
                    let choice = &found.choices[0];
                    let frequencies = choice.features as u64 / 2;
                    assert_eq!(choice.features, sample.features(0.1).unwrap());
                    assert_eq!(choice.map_bytes, frequencies * (4 * 4 + 8 * (4 + 2)));
                    assert_eq!(choice.feature_bytes, 40 * 4 * choice.features as u64);
                }
            }
            assert_eq!(found.verified.unwrap().errors.len(), 2);
            let few = plan(&sample, &Request { most_features: 8, ..request }, |_| Ok(())).unwrap();
            assert!(few.choices.is_empty() && few.shortfalls[0].reason.contains("with 8 features"));
        }
    }

    #[test]
    fn large_samples_are_thinned_and_what_is_not_known_is_said() {
        let rows = rows(400, 30);
        let kernel = OperatorKernel::curl_free(5.0).unwrap();
        let sample = FieldSample::new(&kernel, rows.view()).unwrap();
        assert!(sample.rows().nrows() < 400 && sample.rows().nrows().pow(2) * 900 <= MOST_NUMBERS);
        assert!(matches!(sample.expected(&sample.candidates().unwrap()[1]), Err(Error::Unsupported { .. })));
        assert!(sample.features(0.0).is_err());
        assert!(FieldSample::new(&kernel, rows.slice(s![..1, ..])).is_err());
        assert!(FieldSample::new(&OperatorKernel::div_free(1.0).unwrap(), rows.slice(s![.., ..1])).is_err(), "all 0");
    }

    #[test]
    fn outputs_without_values_are_refused_and_coordinates_have_one_way_to_be_drawn() {
        let rows = rows(10, 2);
        let decomposable = |matrix: Array2<f64>| {
            let base = AnyKernel::from(Laplacian::new(1.0, 1).unwrap());
            OperatorKernel::decomposable(base, OutputMatrix::new(matrix.view()).unwrap()).unwrap()
        };
        assert!(FieldSample::new(&decomposable(array![[0.0]]), rows.view()).is_err());
        let sample = decomposable(array![[1.0]]);
        assert_eq!(FieldSample::new(&sample, rows.view()).unwrap().candidates().unwrap().len(), 1);
    }
}

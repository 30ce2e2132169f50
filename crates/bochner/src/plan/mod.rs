//! Which map and how many features: decided from variances on a sample of the rows, before a model is trained.

mod field;
mod trial;

pub use crate::feature::Candidate;
pub use field::FieldSample;
#[doc(hidden)] // its name up to version 0.1
pub use trial::PlanSample as Trial;
pub use trial::{PlanSample, Reach};

use crate::error::{Error, Result, check_count, check_positive};
use crate::feature::{Describe, Directions, DynMap, FeatureMap, SketchKind, Spec};
use crate::kernel::{AnyKernel, kernel_matrix};
use crate::linalg::gemm::matmul_nt;
use crate::linalg::{Tile, TileMut};
use crate::metrics::FrobeniusError;
use crate::parameter::MOST_FEATURES;
use crate::random::Seed;
use ndarray::{Array2, ArrayView2, s};
use std::ops::Range;
use std::time::Instant;

/// Rows on which the number of features is searched; the full sample has the last word.
const SEARCH_ROWS: usize = 300;
/// Bytes of features that a timing may make.
const TIMING_BYTES: usize = 1 << 26;
/// Slabs of rows between which pairs are taken once: five eighths of the work of all pairs.
const SLABS: usize = 4;
/// Rows of a slab at least.
const SLAB_ROWS: usize = 64;
/// Seconds a timing takes at least.
const TIMING_SECONDS: f64 = 0.03;

/// Sample rows with their exact kernel matrix.
#[derive(Debug)]
pub struct Sample<'a> {
    kernel: AnyKernel,
    rows: ArrayView2<'a, f64>,
    single: Array2<f32>,
    exact: Array2<f64>,
    norm_sq: f64,
    /// Parameters of the kernel, for sentences about what has become too large.
    parameters: &'static str,
}

impl<'a> Sample<'a> {
    /// Evaluates the kernel on all pairs of rows.
    ///
    /// # Errors
    /// Fewer than two rows, no columns, and kernel values that are all zero or not all finite.
    pub fn new(kernel: &AnyKernel, rows: ArrayView2<'a, f64>) -> Result<Self> {
        if rows.nrows() < 2 {
            return Err(Error::parameter("rows", "at least 2", rows.nrows()));
        }
        check_count("number of columns of rows", rows.ncols())?;
        let parameters = parameters(kernel);
        let beyond = || {
            let expected = "such that kernel values of the rows are finite";
            Error::parameter(parameters, expected, "some beyond the range of f64")
        };
        let exact = kernel_matrix(kernel, rows, rows).map_err(|error| match error {
            Error::TooLarge { .. } => beyond(),
            other => other,
        })?;
        let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
        if !norm_sq.is_finite() {
            return Err(beyond());
        }
        if norm_sq == 0.0 {
            return Err(Error::parameter("rows", "rows with finite kernel values that are not all 0", "all are 0"));
        }
        let single = rows.mapv(|v| v as f32);
        Ok(Sample { kernel: kernel.clone(), rows, single, exact, norm_sq, parameters })
    }

    /// The same rows with the kernel over a constant ([`Candidate::factor`]); relative errors stay what they are.
    pub fn over(&self, factor: f64) -> Self {
        Sample {
            kernel: self.kernel.clone(),
            rows: self.rows,
            single: self.single.clone(),
            exact: &self.exact / factor,
            norm_sq: self.norm_sq / (factor * factor),
            parameters: self.parameters,
        }
    }

    /// The rows.
    pub fn rows(&self) -> ArrayView2<'a, f64> {
        self.rows
    }

    /// The relative Frobenius error `(E‖K̂ - K‖²)^(1/2)/‖K‖` that is expected of a map, and whether it is a closed form.
    ///
    /// # Errors
    /// Parameters out of range, and maps about which nothing is known.
    pub fn predict(&self, spec: &Spec) -> Result<(f64, bool)> {
        let (mut sum, mut closed_form) = (0.0, true);
        for range in slabs(self.rows.nrows()) {
            let rows = self.rows.slice(s![range.clone(), ..]);
            let mut add = |others: ArrayView2<'_, f64>, times: f64| {
                let prediction = spec.prediction(rows, others)?;
                sum += times * prediction.squared_error();
                closed_form &= prediction.closed_form;
                Ok::<_, Error>(())
            };
            add(rows, 1.0)?;
            if range.start > 0 {
                add(self.rows.slice(s![..range.start, ..]), 2.0)?;
            }
        }
        let error = (sum / self.norm_sq).sqrt();
        if !error.is_finite() {
            return Err(beyond_range("predicted error", "doubles", self.parameters));
        }
        Ok((error, closed_form))
    }

    /// Draws a map `draws` times and measures; `tick` is called after every draw and may end the work.
    ///
    /// # Errors
    /// What drawing and `tick` report.
    pub fn measure(
        &self,
        spec: &Spec,
        draws: usize,
        seed: Seed,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<Measured> {
        let spec = spec.resolve(self.rows)?;
        let draw = |seed| spec.redrawn(spec.n_components(), seed).build::<f32>(self.rows.ncols()).map(|map| (map, ()));
        measure(self.single.view(), self.parameters, draws, seed, &mut tick, draw, |features, ()| {
            let mut error = FrobeniusError::default();
            add_products(&mut error, self.exact.view(), features, features, 1)?;
            Ok(error.value())
        })
    }
}

/// Rows in slabs: both orders of a pair have the same error, so that a slab meets itself and the rows before it.
fn slabs(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let step = rows.div_ceil(SLABS).max(SLAB_ROWS);
    (0..rows).step_by(step).map(move |start| start..(start + step).min(rows))
}

/// Draws that tell no more about a map, and take as much time each as the first.
const MOST_DRAWS: usize = 10_000;

fn check_draws(draws: usize) -> Result<()> {
    if draws <= MOST_DRAWS {
        return Ok(());
    }
    Err(Error::parameter("draws", format!("at most {MOST_DRAWS}"), draws))
}

/// Draws maps, times them on `rows` and asks `error_of` about their features; `draw` makes a map of a seed, and what else
/// `error_of` must know.
fn measure<T>(
    rows: ArrayView2<'_, f32>,
    parameters: &'static str,
    draws: usize,
    seed: Seed,
    tick: &mut dyn FnMut() -> Result<()>,
    draw: impl Fn(u64) -> Result<(DynMap<f32>, T)>,
    error_of: impl Fn(Tile<'_, f32>, T) -> Result<f64>,
) -> Result<Measured> {
    check_count("draws", draws)?;
    check_draws(draws)?;
    let (mut errors, mut times) = (Vec::with_capacity(draws), Vec::with_capacity(draws));
    for number in 0..draws {
        let (map, more) = draw(seed.child(number as u64).number())?;
        let mut features = map.room_for(rows.nrows())?;
        times.push(transform(map.as_ref(), rows, &mut features, parameters)?);
        let (n, columns) = features.dim();
        errors.push(error_of(Tile::new(features.as_slice().expect("fresh arrays are contiguous"), n, columns), more)?);
        tick()?;
    }
    times.sort_by(f64::total_cmp);
    Ok(Measured { seconds: times[draws / 2], errors })
}

/// Adds what the products of `left` and `right` miss of a symmetric matrix, so many times.
fn add_products(
    error: &mut FrobeniusError,
    exact: ArrayView2<'_, f64>,
    left: Tile<'_, f32>,
    right: Tile<'_, f32>,
    times: usize,
) -> Result<()> {
    for range in slabs(exact.nrows()) {
        let mut estimate = Array2::from_elem((range.len(), range.end), 0.0f32);
        let out = estimate.as_slice_mut().expect("fresh arrays are contiguous");
        let out = TileMut::new(out, range.len(), range.end);
        matmul_nt(left.rows_in(range.clone()), right.rows_in(0..range.end), out)?;
        let exact = exact.slice(s![range.clone(), ..range.end]);
        let (before, own) = (s![.., ..range.start], s![.., range.start..]);
        for _ in 0..times {
            error.add(exact.slice(own), estimate.slice(own))?;
            for _ in 0..2 {
                error.add(exact.slice(before), estimate.slice(before))?;
            }
        }
    }
    Ok(())
}

impl PlanSample for Sample<'_> {
    type Spec = Spec;

    fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows
    }

    fn parameters(&self) -> &'static str {
        self.parameters
    }

    fn candidates(&self) -> Result<Vec<Candidate>> {
        Spec::candidates(&self.kernel, self.rows)
    }

    fn sized(&self, candidate: &Candidate, features: usize, seed: Seed) -> Result<Candidate> {
        let spec = candidate.spec.redrawn(features, seed.number()).resolve(self.rows)?;
        Ok(Candidate { spec, ..candidate.clone() })
    }

    fn expected(&self, candidate: &Candidate) -> Result<(f64, bool)> {
        let (error, closed_form) = self.predict(&candidate.spec)?;
        Ok((candidate.factor * error, closed_form))
    }

    fn measured(
        &self,
        candidate: &Candidate,
        draws: usize,
        seed: Seed,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Measured> {
        self.over(candidate.factor).measure(&candidate.spec, draws, seed, tick)
    }

    fn reach(&self, candidate: &Candidate, request: &Request) -> Result<Reach<Spec>> {
        let at = |sample: &Sample<'_>, features: usize| {
            let sized = sample.sized(candidate, features, Seed::new(request.seed))?;
            let (expected, closed_form) = sample.expected(&sized)?;
            Ok::<_, Error>(Reach { spec: sized.spec, features, expected, closed_form })
        };
        // Every so-many-th row: files are often sorted.
        let step = self.rows.nrows().div_ceil(SEARCH_ROWS).max(1);
        let few = Sample::new(&self.kernel, self.rows.slice(s![..;step, ..]))?;
        let most = request.most_features;
        let limit = at(&few, most)?;
        if limit.expected > request.error {
            return Ok(limit);
        }
        let mut features = smallest(request, |features| Ok(at(&few, features)?.expected))?;
        for _ in 0..8 {
            let found = at(self, features)?;
            if found.expected <= request.error || features == most {
                return Ok(found);
            }
            let ratio = found.expected / request.error;
            features = ((features as f64 * ratio.powi(2) * 1.01).ceil() as usize).clamp(features + 1, most);
        }
        at(self, most)
    }

    fn map(&self, spec: &Spec) -> Result<Spec> {
        Ok(spec.clone())
    }
}

/// The parameters that decide how large a kernel's values and features become.
fn parameters(kernel: &AnyKernel) -> &'static str {
    match kernel {
        AnyKernel::Matern(_) => "nu and length_scale",
        AnyKernel::Polynomial(_) => "degree, gamma and coef0",
        AnyKernel::Spherical(_) => "degree and a",
        AnyKernel::Optical(_) => "exponent and bias",
        _ if kernel.entry().parameter("length_scale").is_ok() => "length_scale",
        _ => "parameters",
    }
}

fn beyond_range(what: &'static str, precision: &str, parameters: &str) -> Error {
    let reason = format!("beyond the range of {precision} on these rows; change {parameters} of the kernel");
    Error::Unsupported { what, reason }
}

/// Writes features, and the seconds it took; refuses those whose inner products are not all finite: none is larger than the
/// squared length of a row.
fn transform(
    map: &dyn FeatureMap<Real = f32, Output = f32>,
    rows: ArrayView2<'_, f32>,
    out: &mut Array2<f32>,
    parameters: &'static str,
) -> Result<f64> {
    let beyond = || beyond_range("features", "single precision", parameters);
    let start = Instant::now();
    map.transform_into(rows, out.view_mut()).map_err(|error| match error {
        Error::TooLarge { .. } => beyond(),
        other => other,
    })?;
    let seconds = start.elapsed().as_secs_f64();
    if out.rows().into_iter().all(|row| row.dot(&row).is_finite()) { Ok(seconds) } else { Err(beyond()) }
}

/// Errors and times of several draws of one map.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Relative Frobenius error of every draw.
    pub errors: Vec<f64>,
    /// Median seconds to transform the sample.
    pub seconds: f64,
}

impl Measured {
    /// Mean error.
    pub fn mean(&self) -> f64 {
        self.errors.iter().sum::<f64>() / self.errors.len() as f64
    }

    /// Root mean square error: what [`Sample::predict`] predicts.
    pub fn root_mean_square(&self) -> f64 {
        (self.errors.iter().map(|e| e * e).sum::<f64>() / self.errors.len() as f64).sqrt()
    }

    /// Standard deviation of the error over draws; 0 for a single one.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.errors.iter().map(|e| (e - mean).powi(2)).sum();
        (squares / (self.errors.len() as f64 - 1.0).max(1.0)).sqrt()
    }
}

/// What is asked of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Relative Frobenius error to reach.
    pub error: f64,
    /// Rows that will be transformed.
    pub total_rows: usize,
    /// Most features a map may have.
    pub most_features: usize,
    /// Draws by which the winner is verified; 0 for none.
    pub draws: usize,
    /// Where draws start.
    pub seed: u64,
}

impl Default for Request {
    fn default() -> Self {
        Request { error: 0.1, total_rows: 0, most_features: 1 << 17, draws: 5, seed: 0 }
    }
}

/// A map that reaches the error, with the number of features it takes.
#[derive(Debug, Clone)]
pub struct Choice<S = Spec> {
    /// Name for people.
    pub name: String,
    /// The map with its number of features.
    pub spec: S,
    /// That number.
    pub features: usize,
    /// The constant by which the kernel is the one the map estimates; a penalty absorbs it.
    pub factor: f64,
    /// The error predicted on the sample.
    pub predicted: f64,
    /// Whether the prediction is a closed form; a leading-order figure otherwise.
    pub closed_form: bool,
    /// Seconds to transform all rows, from a short measurement.
    pub seconds: f64,
    /// Bytes the map's weights take, about.
    pub map_bytes: u64,
    /// Bytes of the features of all rows, where they are kept.
    pub feature_bytes: u64,
}

/// A map that does not get there.
#[derive(Debug, Clone)]
pub struct Shortfall {
    /// Name for people.
    pub name: String,
    /// The error that it reaches with all features allowed; `None` for one of which nothing is known on these rows.
    pub error: Option<f64>,
    /// Why, in words.
    pub reason: String,
}

/// The maps that reach an error, fastest first.
#[derive(Debug, Clone)]
pub struct Plan<S = Spec> {
    /// Those that do.
    pub choices: Vec<Choice<S>>,
    /// Those that do not.
    pub shortfalls: Vec<Shortfall>,
    /// What draws of the first choice gave.
    pub verified: Option<Measured>,
}

/// Ranks the maps that estimate a kernel by the time they take to reach an error on rows like those of the sample.
///
/// The error of every map follows from closed-form variances and biases (leading-order figures for structured maps), so
/// nothing is drawn but for timing and for the verification of the winner. `tick` hears what is being done.
///
/// # Errors
/// Parameters out of range, features beyond the range of single precision whatever the map, and what `tick` reports.
///
/// ```
/// use bochner::kernel::{AnyKernel, Gaussian};
/// use bochner::plan::{Request, Sample, plan};
/// let rows = ndarray::Array2::from_shape_fn((40, 8), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 11.0);
/// let sample = Sample::new(&AnyKernel::from(Gaussian::new(1.0)?), rows.view())?;
/// let plan = plan(&sample, &Request { error: 0.05, ..Request::default() }, |_| Ok(()))?;
/// assert!(plan.choices.iter().all(|choice| choice.predicted <= 0.05));
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn plan<T: PlanSample>(
    sample: &T,
    request: &Request,
    mut tick: impl FnMut(&str) -> Result<()>,
) -> Result<Plan<T::Spec>> {
    check_positive("error", request.error)?;
    check_count("most_features", request.most_features)?;
    check_draws(request.draws)?;
    let request = &Request { most_features: request.most_features.min(MOST_FEATURES), ..*request };
    let rows = sample.rows();
    let (single, total_rows) = (rows.mapv(|v| v as f32), request.total_rows.max(rows.nrows()));
    let mut plan = Plan { choices: Vec::new(), shortfalls: Vec::new(), verified: None };
    let mut refused = Vec::new();
    for candidate in sample.candidates()? {
        tick(&candidate.name)?;
        match sample.reach(&candidate, request) {
            Ok(Reach { spec, features, expected, closed_form }) if expected <= request.error => {
                let map = sample.map(&spec)?.build::<f32>(rows.ncols())?;
                let seconds = match seconds_per_row(&*map, single.view(), sample.parameters()) {
                    Err(error @ Error::Unsupported { .. }) => {
                        let reason = error.to_string();
                        plan.shortfalls.push(Shortfall { name: candidate.name, reason, error: None });
                        refused.push(error);
                        continue;
                    }
                    seconds => seconds?,
                };
                plan.choices.push(Choice {
                    name: candidate.name,
                    features,
                    seconds: total_rows as f64 * seconds,
                    map_bytes: sample.map_bytes(&spec)?,
                    feature_bytes: 4 * (total_rows as u64).saturating_mul(map.output_dim() as u64),
                    spec,
                    factor: candidate.factor,
                    predicted: expected,
                    closed_form,
                });
            }
            Ok(Reach { expected, .. }) => plan.shortfalls.push(Shortfall {
                name: candidate.name,
                error: Some(expected),
                reason: format!("{:.2} % with {} features", 100.0 * expected, request.most_features),
            }),
            Err(error @ (Error::Unsupported { .. } | Error::Parameter { .. })) => {
                plan.shortfalls.push(Shortfall { name: candidate.name, error: None, reason: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    // More features would help none of them, or none of which anything is known.
    if plan.choices.is_empty() && plan.shortfalls.iter().all(|s| s.error.is_none()) && !refused.is_empty() {
        return Err(refused.swap_remove(0));
    }
    plan.choices.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    if let Some(first) = plan.choices.first().filter(|_| request.draws > 0) {
        let what = format!("verifying {}", first.name);
        let winner = Candidate { name: first.name.clone(), spec: first.spec.clone(), factor: first.factor };
        let verified = sample.measured(&winner, request.draws, Seed::new(request.seed), &mut || tick(&what))?;
        plan.verified = Some(verified);
    }
    Ok(plan)
}

/// The smallest budget, to about one percent, whose error is at most the one asked for; that of all features is.
fn smallest(request: &Request, error_of: impl Fn(usize) -> Result<f64>) -> Result<usize> {
    let (mut low, mut high) = (1, request.most_features);
    let mut guess = request.most_features.min(64);
    let mut probed = false;
    while high - low > (high / 128).max(1) {
        let error = if guess < 4 { f64::INFINITY } else { error_of(guess)? };
        if error <= request.error {
            high = guess
        } else {
            low = guess
        }
        // Variances fall like 1/D: that is the next guess, kept inside the bracket.
        let ratio = (error / request.error).powi(2);
        let next =
            if ratio.is_finite() { (guess as f64 * ratio * 1.005).ceil() as usize } else { low + (high - low) / 2 };
        // As good as there: what is just below decides. Once only, since an error that hardly falls would be followed for long.
        let below = high - (high / 128).max(1);
        let probe = !probed && guess == high && next >= high && below > low;
        probed = probe;
        guess = match next {
            _ if probe => below,
            next if next > low && next < high => next,
            _ => low + (high - low) / 2,
        };
    }
    Ok(high)
}

/// Seconds per row, from as many passes over some rows as a short time allows.
fn seconds_per_row(
    map: &dyn FeatureMap<Real = f32, Output = f32>,
    rows: ArrayView2<'_, f32>,
    parameters: &'static str,
) -> Result<f64> {
    let count = (TIMING_BYTES / (4 * map.output_dim())).clamp(1, rows.nrows());
    let rows = rows.slice(s![..count, ..]);
    let mut out = map.room_for(count)?;
    transform(map, rows, &mut out, parameters)?;
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    while start.elapsed().as_secs_f64() < TIMING_SECONDS {
        best = best.min(transform(map, rows, &mut out, parameters)?);
    }
    Ok(best / count as f64)
}

/// Bytes of weights in single precision: signs are bits, structured maps keep an index per feature and factor.
fn map_bytes(spec: &Spec, input_dim: usize) -> u64 {
    let (columns, dim) = (spec.n_components() as u64, input_dim as u64);
    if let Spec::Fourier(fourier) = spec {
        let structured = matches!(fourier.directions(input_dim), Ok(Directions::Sorf));
        return columns / 2 * 4 * if structured { 1 } else { dim };
    }
    if let Spec::Polynomial(sketch) = spec {
        return u64::from(sketch.degree)
            * match sketch.sketch {
                SketchKind::TensorSrht => columns * 4,
                SketchKind::TensorSketch => dim * 8,
                SketchKind::Rademacher => columns * dim / 8,
                SketchKind::Gaussian => columns * dim * 4,
            };
    }
    columns * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, Matern, Polynomial};
    use crate::metrics::relative_frobenius_error;
    use crate::random::{Role, fill_normals};

    fn rows(n: usize, d: usize) -> Array2<f64> {
        let mut values = vec![0.0; n * d];
        fill_normals(Seed::new(11), Role::Noise, 0, 0, TileMut::new(&mut values, n, d));
        Array2::from_shape_vec((n, d), values).unwrap() / (d as f64).sqrt()
    }

    #[test]
    fn every_choice_is_the_smallest_budget_that_reaches_the_error() {
        let rows = rows(60, 16);
        for kernel in
            [AnyKernel::from(Gaussian::new(1.0).unwrap()), AnyKernel::from(Polynomial::new(3, 1.0, 1.0).unwrap())]
        {
            let request = Request { error: 0.06, draws: 0, ..Request::default() };
            let sample = Sample::new(&kernel, rows.view()).unwrap();
            let plan = plan(&sample, &request, |_| Ok(())).unwrap();
            assert!(
                plan.choices.len() + plan.shortfalls.len() == Spec::candidates(&kernel, rows.view()).unwrap().len()
            );
            assert!(plan.choices.len() > 2, "{:?}", plan.shortfalls);
            for choice in plan.choices {
                assert!(choice.predicted <= 0.06);
                // A tenth fewer: allocations over degrees jump, and so does their error.
                let fewer =
                    choice.spec.redrawn(choice.spec.n_components() * 9 / 10 - 2, 0).resolve(rows.view()).unwrap();
                let error = sample.predict(&fewer).unwrap().0;
                assert!(error > 0.06, "{}: {error} with {} features", choice.name, fewer.n_components());
            }
        }
    }

    #[test]
    fn draws_of_every_choice_have_the_error_that_was_predicted() {
        // The squared error of a draw is an average over 1,770 pairs, far from independent ones: its spread is taken from
        // the draws themselves, and six standard errors of their mean are allowed.
        let rows = rows(60, 16);
        for kernel in
            [AnyKernel::from(Gaussian::new(1.0).unwrap()), AnyKernel::from(Polynomial::new(3, 1.0, 1.0).unwrap())]
        {
            let request = Request { error: 0.1, draws: 0, ..Request::default() };
            let sample = Sample::new(&kernel, rows.view()).unwrap();
            for choice in plan(&sample, &request, |_| Ok(())).unwrap().choices {
                let measured = sample.measure(&choice.spec, 40, Seed::new(3), || Ok(())).unwrap();
                let squares: Vec<f64> = measured.errors.iter().map(|e| e * e).collect();
                let mean = squares.iter().sum::<f64>() / 40.0;
                let spread = (squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 39.0 / 40.0).sqrt();
                // Leading-order figures are promised to 15 % of the error.
                let slack = if choice.closed_form { 0.0 } else { 0.3 * mean };
                let gap = (mean - choice.predicted.powi(2)).abs();
                assert!(gap < 6.0 * spread + slack, "{}: {mean} ± {spread}, {}", choice.name, choice.predicted.powi(2));
            }
        }
    }

    #[test]
    fn errors_of_a_sample_are_those_of_all_of_its_pairs() {
        // Three slabs, the last one shorter.
        let rows = rows(2 * SLAB_ROWS + 9, 6);
        let kernel = AnyKernel::from(Gaussian::new(0.8).unwrap());
        let sample = Sample::new(&kernel, rows.view()).unwrap();
        assert_eq!(slabs(rows.nrows()).map(|range| range.len()).collect::<Vec<_>>(), [64, 64, 9]);
        for candidate in Spec::candidates(&kernel, rows.view()).unwrap() {
            let spec = candidate.spec.redrawn(48, 5).resolve(rows.view()).unwrap();
            let all = spec.prediction(rows.view(), rows.view()).unwrap();
            let (error, closed_form) = sample.predict(&spec).unwrap();
            assert!((error / (all.squared_error() / sample.norm_sq).sqrt() - 1.0).abs() < 1e-12, "{}", candidate.name);
            assert_eq!(closed_form, all.closed_form);
            let measured = sample.measure(&spec, 1, Seed::new(2), || Ok(())).unwrap().errors[0];
            let map = spec.redrawn(48, Seed::new(2).child(0).number()).build::<f32>(6).unwrap();
            let features = map.transform(sample.single.view()).unwrap().mapv(f64::from);
            let plain = relative_frobenius_error(sample.exact.view(), features.dot(&features.t()).view()).unwrap();
            // Products of single precision.
            assert!((measured / plain - 1.0).abs() < 1e-4, "{}: {measured} {plain}", candidate.name);
        }
    }

    #[test]
    fn spherical_features_join_where_rows_have_length_one() {
        let kernel = AnyKernel::from(Polynomial::new(3, 1.0, 1.0).unwrap());
        let mut rows = rows(60, 16);
        let spherical = |rows: &Array2<f64>| -> Vec<Candidate> {
            let all = Spec::candidates(&kernel, rows.view()).unwrap();
            all.into_iter().filter(|c| matches!(c.spec, Spec::Spherical(_))).collect()
        };
        assert!(spherical(&rows).is_empty());
        for mut row in rows.rows_mut() {
            let norm = row.dot(&row).sqrt();
            row /= norm;
        }
        let found = spherical(&rows);
        assert_eq!(found.len(), 3);
        let sample = Sample::new(&kernel, rows.view()).unwrap();
        for candidate in found {
            // The estimated kernel times the factor is the one asked for: (1 + 1)³ = 8 at distance 0.
            assert_eq!(candidate.factor, 8.0);
            let own = kernel_matrix(&*candidate.spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
            assert!(relative_frobenius_error(sample.over(8.0).exact.view(), own.view()).unwrap() < 1e-14);
        }
    }

    #[test]
    fn a_budget_is_found_in_a_handful_of_steps_where_variances_fall_like_its_inverse() {
        let rows = rows(40, 6);
        let kernel = AnyKernel::from(Gaussian::new(1.0).unwrap());
        let sample = Sample::new(&kernel, rows.view()).unwrap();
        let spec = &Spec::candidates(&kernel, rows.view()).unwrap()[0].spec;
        let request = Request { error: 0.02, ..Request::default() };
        let steps = std::cell::Cell::new(0);
        let error_of = |features: usize| {
            steps.set(steps.get() + 1);
            Ok::<_, Error>(sample.predict(&spec.redrawn(features, 0).resolve(rows.view())?)?.0)
        };
        let found = smallest(&request, error_of).unwrap();
        let error = |features: usize| sample.predict(&spec.redrawn(features, 0)).unwrap().0;
        assert!(error(found) <= 0.02 && error(found * 63 / 64) > 0.02, "{found}");
        assert!(steps.get() <= 5, "{} steps", steps.get());
    }

    #[test]
    fn what_cannot_be_reached_is_said_with_the_error_that_can() {
        let rows = rows(30, 5);
        let kernel = AnyKernel::from(Gaussian::new(1.0).unwrap());
        let request = Request { error: 1e-3, most_features: 64, ..Request::default() };
        let sample = Sample::new(&kernel, rows.view()).unwrap();
        let plan = plan(&sample, &request, |_| Ok(())).unwrap();
        assert!(plan.choices.is_empty() && plan.verified.is_none());
        assert!(plan.shortfalls.iter().all(|s| s.reason.contains("with 64 features")), "{:?}", plan.shortfalls);
    }

    #[test]
    fn what_is_not_finite_is_refused_with_the_parameters_of_the_kernel() {
        let rows = rows(40, 4) * 3.0;
        let all = |kernel: AnyKernel| {
            let list = Spec::candidates(&kernel, rows.view()).unwrap();
            let sample = Sample::new(&kernel, rows.view()).unwrap();
            let plan = plan(&sample, &Request::default(), |_| Ok(()));
            if let Ok(plan) = &plan {
                assert_eq!(plan.choices.len() + plan.shortfalls.len(), list.len());
                assert!(plan.choices.iter().all(|choice| choice.predicted.is_finite()), "{plan:?}");
                assert!(
                    plan.shortfalls.iter().all(|s| !s.reason.contains("NaN") && !s.reason.contains("inf")),
                    "{plan:?}"
                );
            }
            let measured = list.iter().map(|c| sample.measure(&c.spec.redrawn(64, 0), 2, Seed::new(1), || Ok(())));
            let (good, bad): (Vec<_>, Vec<_>) = measured.partition(Result::is_ok);
            assert!(good.into_iter().all(|m| m.unwrap().errors.iter().all(|e| e.is_finite())));
            (plan.err().map(|e| e.to_string()), bad.into_iter().map(|e| e.unwrap_err().to_string()).collect::<Vec<_>>())
        };
        let (plan, told) = all(AnyKernel::from(Matern::new(0.01, 1.0).unwrap()));
        assert_eq!((plan.as_ref(), told.len()), (told.first(), 3), "no map has features");
        let expected = "features: beyond the range of single precision on these rows; change nu and length_scale";
        assert!(told.iter().all(|t| t.starts_with(expected)), "{told:?}");
        let (plan, told) = all(AnyKernel::from(Polynomial::new(60, 1.0, 1.0).unwrap()));
        assert!(plan.is_none() && told.iter().any(|t| t.contains("change degree, gamma and coef0")), "{told:?}");
        let huge = AnyKernel::from(Polynomial::new(400, 10.0, 10.0).unwrap());
        let told = Sample::new(&huge, rows.view()).unwrap_err().to_string();
        assert!(told.starts_with("degree, gamma and coef0 must be such that kernel values"), "{told}");
        let constant = AnyKernel::from(Polynomial::new(0, 1.0, 1.0).unwrap());
        assert_eq!(
            Spec::candidates(&constant, rows.view()).unwrap_err().to_string(),
            "degree must be at least 1, got 0"
        );
    }

    #[test]
    fn bad_requests_are_refused() {
        let kernel = AnyKernel::from(Gaussian::new(1.0).unwrap());
        let rows = rows(4, 2);
        let sample = Sample::new(&kernel, rows.view()).unwrap();
        for request in [
            Request { error: 0.0, ..Request::default() },
            Request { error: f64::NAN, ..Request::default() },
            Request { most_features: 0, ..Request::default() },
        ] {
            assert!(plan(&sample, &request, |_| Ok(())).is_err());
        }
        assert!(Sample::new(&kernel, rows.slice(s![..1, ..])).is_err());
        let polynomial = AnyKernel::from(Polynomial::new(1, 1.0, 0.0).unwrap());
        assert!(Sample::new(&polynomial, Array2::zeros((3, 2)).view()).is_err());
    }
}

use super::evidence::exact::Exact;
use super::evidence::hunt::{Bounds, Found, Hunt, Objective};
use super::evidence::inlet::Inlet;
use super::evidence::problem::{Head, Problem};
use super::lbfgs::Lbfgs;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{Describe, DynComplexMap, DynMap, FourierKernel, MaclaurinKernel, Spec};
use crate::kernel::{self, AnyKernel};
use crate::model::dirichlet::Dirichlet;
pub use crate::model::kinds::LengthScaleSearch as Scales;
use crate::preprocess::LengthScale;
use crate::random::{Role, Seed, Stream};
use ndarray::{Array2, ArrayView2, Axis, s};

/// Hyperparameters of a Gaussian process on features by maximum marginal likelihood.
///
/// Whatever acts on the rows of a map is searched for: length scales (one, one for each input, or a full linear metric),
/// gamma and coef0 of polynomial sketches, the bias of optical features; and both variances. The map is drawn once, at unit
/// scale, so that the likelihood is a smooth function; its gradient is exact, by one pullback of
/// `2κs²(α(Fᴴα)ᴴ - Σ⁻¹F)` with `Σ = s²FFᴴ + τ²W⁻¹` and `α = Σ⁻¹z`. Parameters of the kernel that stay are named in
/// [`Tuned::fixed`].
///
/// The search has several starts: what is given, length scales of several median distances, per-input scales from a linear
/// model and from the slopes of the process itself. At each the likeliest variances are found from eigenvalues; the likeliest
/// starts go on by L-BFGS, on more and more rows and features. The best point on the last level is returned.
///
/// # References
/// Rasmussen and Williams 2006, §5.4.1 (gradient); thesis, section 5.5 (marginal likelihood of subsets of rows).
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceSearch {
    /// Which length scales.
    pub scales: Scales,
    /// Rows used at most, drawn at random.
    pub rows: usize,
    /// Features used at most: maps with more are drawn with so many for the search.
    pub features: usize,
    /// Multiplications of one evaluation at most: with more, fewer rows and features are used.
    pub operations: f64,
    /// How the search runs; all evaluations count, those on few rows too.
    pub lbfgs: Lbfgs,
    /// Whether targets are divided by their standard deviations, as in
    /// [`GpRegressor::with_normalized_targets`](crate::model::GpRegressor::with_normalized_targets).
    pub normalised: bool,
    /// Whether features are complex, where the map has a complex form.
    pub complex: bool,
    /// Smoothnesses of a Matérn kernel among which the likeliest is taken; the given one where there are none.
    pub smoothness: Vec<f64>,
    /// Least and greatest noise variance.
    pub noise_bounds: (f64, f64),
    /// Least and greatest signal variance.
    pub signal_bounds: (f64, f64),
}

impl Default for EvidenceSearch {
    fn default() -> Self {
        EvidenceSearch {
            scales: Scales::Common,
            rows: 2000,
            features: 1024,
            operations: 1e10,
            lbfgs: Lbfgs { max_evaluations: 120, gradient_tolerance: 1e-5, decrease_tolerance: 5e-5, memory: 10 },
            normalised: true,
            complex: false,
            smoothness: Vec::new(),
            noise_bounds: (1e-6, 1e3),
            signal_bounds: (1e-5, 1e5),
        }
    }
}

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Evaluations done, this one included.
    pub evaluations: usize,
    /// Log marginal likelihood of the standardised targets of this evaluation, of as many rows as it used.
    pub log_marginal_likelihood: f64,
}

/// Where a search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The description of the map with the hyperparameters found.
    pub spec: Spec,
    /// Signal variance.
    pub signal_variance: f64,
    /// Noise variance.
    pub noise_variance: f64,
    /// Log marginal likelihood of the standardised targets of the rows used.
    pub log_marginal_likelihood: f64,
    /// Evaluations of likelihood and gradient.
    pub evaluations: usize,
    /// Whether a tolerance ended the search, not the number of evaluations.
    pub converged: bool,
    /// Names of the hyperparameters that were searched for.
    pub searched: Vec<String>,
    /// Names of the hyperparameters of the kernel that stayed as they were.
    pub fixed: Vec<String>,
}

/// Where a search for the hyperparameters of an exact process ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ExactTuned {
    /// The kernel with the hyperparameters found.
    pub kernel: AnyKernel,
    /// What divides rows before they meet it.
    pub length_scale: LengthScale,
    /// Signal variance.
    pub signal_variance: f64,
    /// Noise variance.
    pub noise_variance: f64,
    /// Log marginal likelihood of the standardised targets of the rows used.
    pub log_marginal_likelihood: f64,
    /// Evaluations of likelihood and gradient.
    pub evaluations: usize,
    /// Whether a tolerance ended the search, not the number of evaluations.
    pub converged: bool,
    /// Names of the hyperparameters that were searched for.
    pub searched: Vec<String>,
    /// Names of the hyperparameters of the kernel that stayed as they were.
    pub fixed: Vec<String>,
}

/// A map drawn at unit scale.
enum Drawn {
    Real(DynMap<f64>),
    Complex(DynComplexMap<f64>),
}

/// What is common to all searches over rows: those rows, in the order in which levels take them, and what they must fit.
pub(crate) struct Sample {
    pub(crate) rows: Array2<f64>,
    pub(crate) heads: Vec<Head>,
    pub(crate) noisy: bool,
}

impl Sample {
    /// Mean square of all targets: a signal variance to begin with.
    fn mean_square(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0usize);
        for head in &self.heads {
            sum += head.targets.iter().map(|z| z * z).sum::<f64>();
            count += head.targets.len();
        }
        if sum > 0.0 { sum / count as f64 } else { 1.0 }
    }
}

/// Numbers of at most `most` rows, in the order in which levels take them.
pub(crate) fn chosen(rows: usize, most: usize) -> Vec<usize> {
    let drawn = Stream::new(Seed::new(0), Role::Split, 0).distinct(rows as u64, most.min(rows));
    drawn.into_iter().map(|i| i as usize).collect()
}

/// Targets about their means, over their standard deviations where they are to be normalised.
pub(crate) fn standardised(targets: ArrayView2<'_, f64>, normalised: bool) -> Array2<f64> {
    let mut out = targets.to_owned();
    for mut column in out.columns_mut() {
        // About the first one: targets that are all the same have exactly that mean.
        let first = column[0];
        let mean = first + column.iter().map(|y| y - first).sum::<f64>() / column.len() as f64;
        column.mapv_inplace(|y| y - mean);
        let variance = column.iter().map(|y| y * y).sum::<f64>() / column.len() as f64;
        if normalised && variance > 0.0 {
            column.mapv_inplace(|y| y / variance.sqrt());
        }
    }
    out
}

impl EvidenceSearch {
    /// Searches from the hyperparameters of `spec` and the given variances, and from elsewhere; `watch` is told about every
    /// evaluation and may stop the search.
    ///
    /// # Errors
    /// Rows and targets that do not fit, a description with an unresolved length scale, length scales that the map does not
    /// have, those of `watch`.
    pub fn run(
        &self,
        spec: &Spec,
        signal_variance: f64,
        noise_variance: f64,
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Tuned> {
        let sample = self.regression(rows, targets)?;
        self.run_sample(spec, (signal_variance, noise_variance), &sample, watch)
    }

    /// Rows and targets of a regression, as many as are used.
    fn regression(&self, rows: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<Sample> {
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        crate::rows::check_finite("targets", targets, 0)?;
        if rows.nrows() == 0 || targets.ncols() == 0 {
            return Err(Error::parameter("rows", "at least one row with a target", "none"));
        }
        check_count("number of rows to search on", self.rows)?;
        let chosen = chosen(rows.nrows(), self.rows);
        let targets = standardised(targets.select(Axis(0), &chosen).view(), self.normalised);
        let heads = vec![Head { targets, weights: None }];
        Ok(Sample { rows: rows.select(Axis(0), &chosen), heads, noisy: true })
    }

    /// Rows and transformed labels of a classification, one regression for each class.
    fn classification(&self, alpha: f64, rows: ArrayView2<'_, f64>, labels: &[usize]) -> Result<Sample> {
        check_dim("number of labels", rows.nrows(), labels.len())?;
        check_count("number of rows", rows.nrows())?;
        check_count("number of rows to search on", self.rows)?;
        let dirichlet = Dirichlet::new(alpha)?;
        let chosen = chosen(rows.nrows(), self.rows);
        let classes = labels.iter().max().map_or(1, |label| label + 1);
        let mut heads = Vec::new();
        for class in 0..classes {
            let hits: Vec<bool> = chosen.iter().map(|&i| labels[i] == class).collect();
            let share = hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64;
            // A class without a row among those used says nothing.
            if share == 0.0 {
                continue;
            }
            let mean = dirichlet.mean(share);
            let target = |&hit: &bool| if hit { dirichlet.hit - mean } else { dirichlet.miss - mean };
            let weight = |&hit: &bool| 1.0 / if hit { dirichlet.hit_noise } else { dirichlet.miss_noise };
            heads.push(Head {
                targets: Array2::from_shape_vec((hits.len(), 1), hits.iter().map(target).collect())
                    .expect("one column"),
                weights: Some(hits.iter().map(weight).collect()),
            });
        }
        Ok(Sample { rows: rows.select(Axis(0), &chosen), heads, noisy: false })
    }

    /// The same for a [`GpClassifier`](crate::model::GpClassifier): the evidence of the transformed labels, summed over classes,
    /// with one signal variance for all of them. Labels are numbers of classes.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_classes(
        &self,
        spec: &Spec,
        alpha: f64,
        signal_variance: Option<f64>,
        rows: ArrayView2<'_, f64>,
        labels: &[usize],
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Tuned> {
        let sample = self.classification(alpha, rows, labels)?;
        self.run_sample(spec, (signal_variance.unwrap_or(sample.mean_square()), 1.0), &sample, watch)
    }

    /// The same for an [`ExactGpRegressor`](crate::model::exact::ExactGpRegressor) of rows that `length_scale` divides.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_exact(
        &self,
        kernel: &AnyKernel,
        length_scale: &LengthScale,
        variances: (f64, f64),
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<ExactTuned> {
        self.exactly(kernel, length_scale, variances, &self.regression(rows, targets)?, watch)
    }

    /// The same for an [`ExactGpClassifier`](crate::model::exact::ExactGpClassifier).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_exact_classes(
        &self,
        kernel: &AnyKernel,
        length_scale: &LengthScale,
        (alpha, signal_variance): (f64, Option<f64>),
        rows: ArrayView2<'_, f64>,
        labels: &[usize],
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<ExactTuned> {
        let sample = self.classification(alpha, rows, labels)?;
        let given = (signal_variance.unwrap_or(sample.mean_square()), 1.0);
        self.exactly(kernel, length_scale, given, &sample, watch)
    }

    fn exactly(
        &self,
        kernel: &AnyKernel,
        length_scale: &LengthScale,
        given: (f64, f64),
        sample: &Sample,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<ExactTuned> {
        check_positive("signal variance", given.0)?;
        check_positive("noise variance", given.1)?;
        crate::rows::check_finite("rows", sample.rows.view(), 0)?;
        let kernels: Vec<AnyKernel> = match kernel {
            AnyKernel::Matern(k) if !self.smoothness.is_empty() => {
                let smooth = |&nu: &f64| Ok(kernel::Matern::new(nu, k.length_scale())?.into());
                self.smoothness.iter().map(smooth).collect::<Result<_>>()?
            }
            _ => vec![kernel.clone()],
        };
        let mut evaluations = 0;
        let mut best: Option<ExactTuned> = None;
        for kernel in &kernels {
            let before = evaluations;
            let inlet = Inlet::of_kernel(kernel, sample.rows.ncols(), length_scale, self.scales)?;
            let n = sample.rows.nrows();
            // Rows of a level are half of those of the next one.
            let sizes: Vec<usize> =
                [4, 2, 1].into_iter().map(|part| n / part).filter(|m| *m >= 200 || *m == n).collect();
            let mut levels = Vec::new();
            for rows in sizes {
                let base = inlet.base(sample.rows.slice(s![..rows, ..]))?;
                let heads = sample.heads.iter().map(|head| head.first(rows)).collect();
                levels.push(Exact { inlet: &inlet, base, heads, noisy: sample.noisy });
            }
            let levels: Vec<&dyn Objective> = levels.iter().map(|level| level as &dyn Objective).collect();
            let found = self.hunt(&levels, given, &mut |step| {
                evaluations = before + step.evaluations;
                watch(Step { evaluations, ..step })
            })?;
            evaluations = before + found.evaluations;
            let free = inlet.free();
            let (mut searched, mut fixed) = inlet.names();
            if kernels.len() > 1 {
                fixed.retain(|name| name != "nu");
                searched.push("nu".into());
            }
            searched.push("signal".into());
            if sample.noisy {
                searched.push("noise".into());
            }
            let (kernel, length_scale) = inlet.put_kernel(&found.point)?;
            if best.as_ref().is_none_or(|best| found.value > best.log_marginal_likelihood) {
                best = Some(ExactTuned {
                    kernel,
                    length_scale,
                    signal_variance: found.point[free].exp(),
                    noise_variance: if sample.noisy { found.point[free + 1].exp() } else { 1.0 },
                    log_marginal_likelihood: found.value,
                    evaluations: found.evaluations,
                    converged: found.converged,
                    searched,
                    fixed,
                });
            }
        }
        let best = best.expect("at least one kernel");
        Ok(ExactTuned { evaluations, ..best })
    }

    /// The search on rows and targets that were chosen.
    pub(crate) fn run_sample(
        &self,
        spec: &Spec,
        given: (f64, f64),
        sample: &Sample,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Tuned> {
        check_positive("signal variance", given.0)?;
        check_positive("noise variance", given.1)?;
        crate::rows::check_finite("rows", sample.rows.view(), 0)?;
        for (low, high) in [self.signal_bounds, self.noise_bounds] {
            check_positive("bounds", low)?;
            check_positive("bounds", high)?;
        }
        let mut specs = vec![spec.clone()];
        if let (Spec::Fourier(fourier), false) = (spec, self.smoothness.is_empty())
            && fourier.kernel == FourierKernel::Matern
        {
            let smooth = |&nu: &f64| spec.with("nu", nu.into());
            specs = self.smoothness.iter().map(smooth).collect::<Result<_>>()?;
        }
        let chooses = specs.len() > 1;
        let mut evaluations = 0;
        let mut best: Option<Tuned> = None;
        for spec in &specs {
            let before = evaluations;
            let mut tuned = self.run_one(spec, given, sample, &mut |step| {
                evaluations = before + step.evaluations;
                watch(Step { evaluations, ..step })
            })?;
            evaluations = before + tuned.evaluations;
            if chooses {
                tuned.fixed.retain(|name| name != "nu");
                tuned.searched.insert(tuned.searched.len() - 1 - usize::from(sample.noisy), "nu".into());
            }
            if best.as_ref().is_none_or(|best| tuned.log_marginal_likelihood > best.log_marginal_likelihood) {
                best = Some(tuned);
            }
        }
        let best = best.expect("at least one description");
        Ok(Tuned { evaluations, ..best })
    }

    fn run_one(
        &self,
        spec: &Spec,
        given: (f64, f64),
        sample: &Sample,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Tuned> {
        let tuned = self.once(spec, given, sample, watch)?;
        // Degrees of Maclaurin features share columns as the length scale asks for: with another one they do otherwise.
        let Spec::Maclaurin(found) = &tuned.spec else { return Ok(tuned) };
        if tuned.spec == *spec || found.kernel == MaclaurinKernel::Polynomial || found.resolved.is_none() {
            return Ok(tuned);
        }
        let again = tuned.spec.resolve(sample.rows.view())?;
        let given = (tuned.signal_variance, tuned.noise_variance);
        let before = tuned.evaluations;
        let second = self
            .once(&again, given, sample, &mut |step| watch(Step { evaluations: before + step.evaluations, ..step }))?;
        let resolved = second.spec.resolve(sample.rows.view())?;
        Ok(Tuned { spec: resolved, evaluations: before + second.evaluations, ..second })
    }

    fn once(
        &self,
        spec: &Spec,
        given: (f64, f64),
        sample: &Sample,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Tuned> {
        let (n, inputs) = sample.rows.dim();
        let mut drawn = Vec::new();
        for (rows, features) in self.levels(n, spec.n_components(), sample) {
            let small = if features < spec.n_components() {
                let mut small = spec.redrawn(features, seed_of(spec));
                if let Spec::Maclaurin(small) = &mut small {
                    small.resolved = None;
                }
                small.resolve(sample.rows.view())?
            } else {
                spec.clone()
            };
            let inlet = Inlet::new(&small, inputs, self.scales)?;
            let map = if self.complex {
                Drawn::Complex(inlet.unit()?.build_complex::<f64>(inlet.unit_dim())?)
            } else {
                Drawn::Real(inlet.unit()?.build::<f64>(inlet.unit_dim())?)
            };
            drawn.push((rows, inlet, map));
        }
        // Maps without a pullback have their variances searched for, and nothing else.
        let pulls = |(_, inlet, map): &(usize, Inlet, Drawn)| match map {
            Drawn::Real(map) => inlet.check_map(map),
            Drawn::Complex(map) => inlet.check_map(map),
        };
        if let Err(Error::Unsupported { .. }) = drawn.iter().try_for_each(pulls) {
            return EvidenceSearch { scales: Scales::Fixed, ..self.clone() }.once(spec, given, sample, watch);
        }
        let mut levels: Vec<Box<dyn Objective + '_>> = Vec::new();
        for (rows, inlet, map) in &drawn {
            let base = inlet.base(sample.rows.slice(s![..*rows, ..]))?;
            let heads = sample.heads.iter().map(|head| head.first(*rows)).collect();
            let noisy = sample.noisy;
            levels.push(match map {
                Drawn::Real(map) => Box::new(Problem { map: &**map, inlet, base, heads, noisy }),
                Drawn::Complex(map) => Box::new(Problem { map: &**map, inlet, base, heads, noisy }),
            });
        }
        let levels: Vec<&dyn Objective> = levels.iter().map(|level| &**level).collect();
        let found = self.hunt(&levels, given, watch)?;
        let inlet = &drawn.last().expect("at least one level").1;
        let free = inlet.free();
        let (mut searched, fixed) = inlet.names();
        searched.push("signal".into());
        if sample.noisy {
            searched.push("noise".into());
        }
        Ok(Tuned {
            spec: inlet.put(spec, &found.point)?,
            signal_variance: found.point[free].exp(),
            noise_variance: if sample.noisy { found.point[free + 1].exp() } else { 1.0 },
            log_marginal_likelihood: found.value,
            evaluations: found.evaluations,
            converged: found.converged,
            searched,
            fixed,
        })
    }

    /// Searches levels of rising cost.
    pub(crate) fn hunt(
        &self,
        levels: &[&dyn Objective],
        given: (f64, f64),
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Found> {
        let mut evaluations = 0;
        let mut told = |log_marginal_likelihood: f64| {
            evaluations += 1;
            watch(Step { evaluations, log_marginal_likelihood })
        };
        let bounds = Bounds { signal: self.signal_bounds, noise: self.noise_bounds };
        Hunt { lbfgs: self.lbfgs, bounds, told: &mut told, evaluations: 0 }.run(levels, given)
    }

    /// Rows and features of the levels, fewest first.
    fn levels(&self, rows: usize, features: usize, sample: &Sample) -> Vec<(usize, usize)> {
        let (mut n, mut dim) = (rows, features.min(self.features));
        let heads = sample.heads.len() as f64;
        // Gram matrix and factor, and two solves for all rows, with the smaller side of the features.
        let cost = |n: usize, dim: usize| 3.0 * heads * (n * dim) as f64 * n.min(dim) as f64;
        while cost(n, dim) > self.operations && (n > 200 || dim > 64) {
            if n > 2 * dim { n = (n / 2).max(200) } else { dim = (dim / 2).max(64) }
        }
        let mut levels = vec![(n, dim)];
        for _ in 0..2 {
            let (n, dim) = levels[0];
            if n.min(dim) < 200 || n * dim < 200_000 {
                break;
            }
            levels.insert(0, (n / 2, dim / 2));
        }
        levels
    }
}

/// The seed of a description.
fn seed_of(spec: &Spec) -> u64 {
    match spec.get("seed") {
        Some(crate::parameter::Value::Whole(seed)) => seed,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::{Directions, FourierSpec, PolynomialSpec};

    fn data(n: usize, d: usize) -> (Array2<f64>, Array2<f64>) {
        let mut normals = vec![0.0f64; n * (d + 2)];
        Stream::new(Seed::new(4), Role::Split, 1).normals_from(0, &mut normals);
        let rows: Array2<f64> = Array2::from_shape_fn((n, d), |(i, j)| normals[i * (d + 2) + j]);
        let targets = Array2::from_shape_fn((n, 2), |(i, k)| {
            3.0 + (k as f64 + 1.0) * (1.3 * rows[[i, 0]]).sin() + 0.2 * normals[i * (d + 2) + d + k]
        });
        (rows, targets)
    }

    #[test]
    fn a_search_finds_the_scale_of_a_wave_and_the_noise() {
        let (rows, targets) = data(400, 2);
        let spec = FourierSpec {
            n_components: 100,
            projection: Directions::Orthogonal,
            length_scale: 0.2.into(),
            seed: 1,
            ..FourierSpec::default()
        };
        let search = EvidenceSearch { scales: Scales::PerInput, ..EvidenceSearch::default() };
        let mut seen = Vec::new();
        let mut watch = |step: Step| {
            seen.push(step.log_marginal_likelihood);
            Ok(())
        };
        let column = targets.slice(s![.., ..1]);
        let tuned = search.run(&spec.clone().into(), 1.0, 0.5, rows.view(), column, &mut watch).unwrap();
        assert_eq!(seen.len(), tuned.evaluations);
        assert!(tuned.converged && tuned.log_marginal_likelihood > seen[0] + 100.0, "{tuned:?}");
        assert_eq!((tuned.searched.join(" "), tuned.fixed.len()), ("length_scale signal noise".into(), 0));
        let Spec::Fourier(FourierSpec { length_scale: LengthScale::PerInput(scales), .. }) = &tuned.spec else {
            panic!("{tuned:?}")
        };
        // The second input does not matter: its length scale grows; the noise variance was 0.04 of a variance near 0.5.
        assert!(scales[1] > 3.0 * scales[0], "{scales:?}");
        let variance = column.var(0.0);
        let noise = tuned.noise_variance * variance;
        assert!((noise / 0.04 - 1.0).abs() < 0.4, "{noise}");
        // No other point of the search was better.
        assert!(seen.iter().all(|value| *value <= tuned.log_marginal_likelihood + 1e-9));
    }

    #[test]
    fn a_start_without_slope_does_not_end_the_search() {
        // At a length scale of a fiftieth no row of ten inputs resembles another: noise alone is a stationary point.
        let (rows, targets) = data(300, 10);
        let column = targets.slice(s![.., ..1]);
        let spec = |scale: f64| -> Spec {
            FourierSpec { n_components: 100, length_scale: scale.into(), seed: 1, ..FourierSpec::default() }.into()
        };
        for scales in [Scales::Common, Scales::PerInput] {
            let search = EvidenceSearch { scales, ..EvidenceSearch::default() };
            let from = |scale: f64| search.run(&spec(scale), 1.0, 0.1, rows.view(), column, &mut |_| Ok(())).unwrap();
            let (near, far) = (from(2.0), from(0.02));
            // To the tolerance of the searches, 1e-7 relative per step, on a log likelihood of hundreds.
            let (value, other) = (near.log_marginal_likelihood, far.log_marginal_likelihood);
            assert!((value - other).abs() < 0.5, "{scales:?}: {value} from near, {other} from far");
            assert!(far.evaluations <= search.lbfgs.max_evaluations);
        }
        // Without one to spare it begins where it was told to.
        let few =
            EvidenceSearch { lbfgs: Lbfgs { max_evaluations: 1, ..Lbfgs::default() }, ..EvidenceSearch::default() };
        let told = few.run(&spec(0.02), 1.0, 0.1, rows.view(), column, &mut |_| Ok(())).unwrap();
        assert_eq!((told.spec, told.evaluations), (spec(0.02), 1));
    }

    #[test]
    fn a_product_of_two_of_many_inputs_is_found_whatever_their_units() {
        let (mut rows, _) = data(500, 10);
        let (_, noise) = data(500, 1);
        let target = |(row, e): (ndarray::ArrayView1<'_, f64>, &f64)| (2.0 * row[3]).sin() * row[7] + 0.1 * (e - 3.0);
        let targets: Vec<f64> = rows.rows().into_iter().zip(noise.column(0)).map(target).collect();
        let targets = Array2::from_shape_vec((500, 1), targets).unwrap();
        let units: Vec<f64> = (0..10).map(|j| 10f64.powi(j % 5 - 2)).collect();
        rows.columns_mut().into_iter().zip(&units).for_each(|(mut column, unit)| column.mapv_inplace(|v| v * unit));
        let search = EvidenceSearch { scales: Scales::PerInput, ..EvidenceSearch::default() };
        // From length scales that are too short for some columns, too long for others, and from the median distance.
        for scale in [LengthScale::Same(0.01), LengthScale::Same(100.0), LengthScale::Median] {
            let spec = FourierSpec { n_components: 128, length_scale: scale, seed: 1, ..FourierSpec::default() };
            let spec = Spec::from(spec).resolve(rows.view()).unwrap();
            let tuned = search.run(&spec, 1.0, 0.1, rows.view(), targets.view(), &mut |_| Ok(())).unwrap();
            let Spec::Fourier(FourierSpec { length_scale: LengthScale::PerInput(scales), .. }) = &tuned.spec else {
                panic!("{tuned:?}")
            };
            let scales: Vec<f64> = scales.iter().zip(&units).map(|(scale, unit)| scale / unit).collect();
            let others = (0..10).filter(|j| *j != 3 && *j != 7).map(|j| scales[j]).fold(f64::INFINITY, f64::min);
            assert!(scales[3].max(scales[7]) < 0.5 * others, "{scales:?}");
            assert!(tuned.noise_variance < 0.3, "{tuned:?}");
        }
    }

    #[test]
    fn polynomials_get_their_gamma_and_a_search_can_be_stopped() {
        let (rows, targets) = data(120, 3);
        let spec = Spec::from(PolynomialSpec { n_components: 30, coef0: 1.0, ..PolynomialSpec::default() });
        let search = EvidenceSearch::default();
        let tuned = search.run(&spec, 1.0, 1.0, rows.view(), targets.view(), &mut |_| Ok(())).unwrap();
        assert_eq!(tuned.searched, ["gamma", "coef0", "signal", "noise"]);
        assert_eq!(tuned.fixed, ["degree"]);
        assert!(tuned.noise_variance < 1.0 && tuned.spec != spec);
        let stopped = search.run(&spec, 1.0, 1.0, rows.view(), targets.view(), &mut |_| Err(Error::Interrupted));
        assert!(matches!(stopped, Err(Error::Interrupted)));
        let few = EvidenceSearch { rows: 50, ..search };
        let other = few.run(&spec, 1.0, 1.0, rows.view(), targets.view(), &mut |_| Ok(())).unwrap();
        assert!(other.log_marginal_likelihood > tuned.log_marginal_likelihood);
        assert!(few.run(&spec, 0.0, 1.0, rows.view(), targets.view(), &mut |_| Ok(())).is_err());
    }
}

use super::lbfgs::Lbfgs;
use crate::accumulate::Gram;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{Describe, FeatureMap, FourierSpec, Spec};
use crate::linalg::field::Field;
use crate::linalg::gemm::matmul_nn;
use crate::linalg::{Tile, TileMut};
use crate::model::evidence::{Evidence, Standard, conjugate_columns};
pub use crate::model::kinds::LengthScaleSearch as Scales;
use crate::parallel::Parallel;
use crate::preprocess::LengthScale;
use crate::random::{Role, Seed, Stream};
use crate::scalar::Scalar;
use crate::variance::Form;
use ndarray::{Array2, ArrayView2, Axis, s};

/// Hyperparameters of a [`GpRegressor`](crate::model::GpRegressor) by maximum marginal likelihood.
///
/// The logarithms of the length scales, of the signal variance and of the noise variance go uphill by L-BFGS. The map is
/// drawn once: the random draws are the same in every evaluation, so that the likelihood is a smooth function, and its
/// gradient is exact. With `Σ = s²FFᴴ + τ²W⁻¹`, `α = Σ⁻¹z` and `B = ρFᴴWF + I`,
/// `d ln p = ½ tr((ααᴴ - Σ⁻¹) dΣ)`, and in terms of features `(ααᴴ - Σ⁻¹)F = α(B⁻¹c)ᴴ/τ² - WFB⁻¹/τ²`: two passes over
/// the rows per evaluation and no matrix larger than `D × D`.
///
/// Length scales are searched for Fourier features, which are differentiable in them; for all other maps they stay, and
/// both variances are searched. The search begins at the given length scales times a power of ten, from a thousandth to a
/// thousand, whichever is likeliest with the given variances: from far too short or too long ones there is no slope to follow.
///
/// # References
/// Rasmussen and Williams 2006, §5.4.1 (gradient); thesis, section 5.5 (marginal likelihood of subsets of rows).
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceSearch {
    /// Which length scales.
    pub scales: Scales,
    /// Rows used at most, drawn at random.
    pub rows: usize,
    /// How the search runs.
    pub lbfgs: Lbfgs,
    /// Whether targets are divided by their standard deviations, as in
    /// [`GpRegressor::with_normalized_targets`](crate::model::GpRegressor::with_normalized_targets).
    pub normalised: bool,
    /// Whether features are complex, where the map has a complex form.
    pub complex: bool,
    /// Least and greatest noise variance.
    pub noise_bounds: (f64, f64),
    /// Least and greatest signal variance.
    pub signal_bounds: (f64, f64),
}

impl Default for EvidenceSearch {
    fn default() -> Self {
        EvidenceSearch {
            scales: Scales::Common,
            rows: 5000,
            lbfgs: Lbfgs { max_evaluations: 60, gradient_tolerance: 1e-5, decrease_tolerance: 1e-7, memory: 10 },
            normalised: true,
            complex: false,
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
    /// Log marginal likelihood of the standardised targets of this evaluation.
    pub log_marginal_likelihood: f64,
}

/// Where a search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The description of the map with the length scales found.
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
}

/// Length scales may move by this factor to either side of their start.
const RANGE: f64 = 1e3;

/// Factors of the given length scales at one of which a search begins: where they are far too short no row resembles another,
/// all gradients vanish, and the best that can be found nearby is noise alone.
const STARTS: [f64; 7] = [1.0, 1e-3, 1e-2, 1e-1, 1e1, 1e2, 1e3];

/// Rows whose sensitivities are held at once.
const PIECE: usize = 512;

/// How features depend on phases `pⱼ = ωⱼᵀx`.
enum Slope {
    /// All cosines, then all sines.
    Pairs,
    /// `exp(ip)`.
    Complex,
    /// `√(2/M) cos(p + b)`.
    Offset(Vec<f64>),
}

struct Phases {
    slope: Slope,
    /// At length scale 1.
    frequencies: Array2<f64>,
}

/// Rows and a map drawn at unit length scale.
struct Problem<'a, T: Scalar<Real = f64>> {
    map: &'a dyn FeatureMap<Real = f64, Output = T>,
    phases: Option<Phases>,
    rows: Array2<f64>,
    targets: Array2<f64>,
    normalised: bool,
    /// Length scales of the description.
    start: Vec<f64>,
    scales: Scales,
}

/// What is known at one point of a search.
struct At<T: Scalar<Real = f64>> {
    /// In length scales.
    rows: Array2<f64>,
    signal: f64,
    noise: f64,
    /// Means and units of the targets.
    means: Vec<f64>,
    units: Vec<f64>,
    evidence: Evidence<T>,
}

impl<T: Scalar<Real = f64> + Field<Wide = T>> Problem<'_, T> {
    /// The evidence at a point: logarithms of length scales, of the signal variance and of the noise variance.
    fn at(&self, point: &[f64]) -> Result<At<T>> {
        let (scales, variances) = point.split_at(point.len() - 2);
        let (signal, noise) = (variances[0].exp(), variances[1].exp());
        let all: Vec<f64> = match self.scales {
            Scales::Fixed => self.start.clone(),
            Scales::Common => self.start.iter().map(|s| s * scales[0].exp()).collect(),
            Scales::PerInput => self.start.iter().zip(scales).map(|(s, log)| s * log.exp()).collect(),
        };
        let rows = &self.rows / &ndarray::aview1(&all);
        let mut gram = Gram::<T>::new(self.map.output_dim(), self.targets.ncols())?;
        let block = crate::rows::RowBlock { rows: rows.view(), targets: self.targets.view(), weights: None };
        gram.push_rows(self.map, block)?;
        let standard = Standard::new(gram.finish(), self.normalised)?;
        let (means, units) = (standard.means.clone(), standard.scales.clone());
        Ok(At { rows, signal, noise, means, units, evidence: standard.evidence(signal, noise)? })
    }

    /// Log likelihood of the standardised targets and its gradient.
    fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let at = self.at(point)?;
        let mut gradient = Vec::with_capacity(point.len());
        if let Some(phases) = self.phases.as_ref().filter(|_| self.scales != Scales::Fixed) {
            let slopes = self.scale_gradient(phases, &at)?;
            match self.scales {
                Scales::PerInput => gradient.extend(slopes),
                _ => gradient.push(slopes.iter().sum()),
            }
        }
        gradient.extend(at.evidence.gradient());
        Ok((at.evidence.log_likelihood(), gradient))
    }

    /// Derivatives in the logarithms of the length scales.
    fn scale_gradient(&self, phases: &Phases, at: &At<T>) -> Result<Vec<f64>> {
        let At { rows, evidence, means, units, .. } = at;
        let (signal, noise) = (at.signal, at.noise);
        let (count, inputs) = phases.frequencies.dim();
        let (dim, outputs) = evidence.solved.dim();
        let ratio = signal / noise;
        let mut sums = Array2::<f64>::zeros((count, inputs));
        for start in (0..rows.nrows()).step_by(PIECE) {
            let range = start..(start + PIECE).min(rows.nrows());
            let piece = rows.slice(s![range.clone(), ..]);
            let n = range.len();
            // Columns conj(fᵢ) and B⁻¹conj(fᵢ).
            let conjugates = conjugate_columns(self.map, piece)?;
            let mut solved = conjugates.clone();
            let window = TileMut::new(solved.as_slice_mut().expect("standard layout"), dim, n);
            evidence.factor.solve_in_place(window)?;
            // conj(αᵢ) = (zᵢ - conj(fᵢᵀu))/τ², u = ρB⁻¹c.
            let mut weights = Array2::from_elem((n, outputs), T::ZERO);
            for (column, b) in conjugates.rows().into_iter().zip(evidence.solved.rows()) {
                for i in 0..n {
                    for k in 0..outputs {
                        weights[[i, k]] -= column[i] * b[k].conj().scale(ratio);
                    }
                }
            }
            for i in 0..n {
                for k in 0..outputs {
                    let z = (self.targets[[start + i, k]] - means[k]) / units[k];
                    weights[[i, k]] = (weights[[i, k]] + T::from_parts(z, 0.0)).scale(1.0 / noise);
                }
            }
            // conj of row i of (ααᴴ - Σ⁻¹)F, times τ²; overwrites what was solved.
            for (mut column, b) in solved.rows_mut().into_iter().zip(evidence.solved.rows()) {
                for i in 0..n {
                    let mut value = -column[i].scale(outputs as f64);
                    for k in 0..outputs {
                        value += weights[[i, k]] * b[k];
                    }
                    column[i] = value;
                }
            }
            let slopes = self.phase_slopes(phases, piece, &conjugates, &solved);
            let sides = piece.as_standard_layout();
            let mut product = vec![0.0; count * inputs];
            matmul_nn(
                Tile::new(slopes.as_slice().expect("standard layout"), count, n),
                Tile::new(sides.as_slice().expect("standard layout"), n, inputs),
                TileMut::new(&mut product, count, inputs),
            )?;
            sums.iter_mut().zip(product).for_each(|(sum, value)| *sum += value);
        }
        let size = -2.0 * Evidence::<T>::KAPPA * signal / noise;
        let each = |a: usize| size * sums.column(a).dot(&phases.frequencies.column(a));
        Ok((0..inputs).map(each).collect())
    }

    /// `Re Σ conj(MF)ᵢⱼ ∂φᵢⱼ/∂pᵢ`: one row per phase, one column per row of data.
    fn phase_slopes(
        &self,
        phases: &Phases,
        rows: ArrayView2<'_, f64>,
        conjugates: &Array2<T>,
        sensitivities: &Array2<T>,
    ) -> Array2<f64> {
        let count = phases.frequencies.nrows();
        let mut slopes = Array2::<f64>::zeros((count, rows.nrows()));
        slopes.axis_iter_mut(Axis(0)).enumerate().in_parallel().for_each(|(j, mut slopes)| {
            for (i, to) in slopes.iter_mut().enumerate() {
                let (feature, sensitivity) = (conjugates[[j, i]].conj(), sensitivities[[j, i]]);
                *to = match &phases.slope {
                    Slope::Pairs => {
                        let (sine, other) = (conjugates[[count + j, i]].conj(), sensitivities[[count + j, i]]);
                        (feature * other - sine * sensitivity).re()
                    }
                    Slope::Complex => -(feature * sensitivity).im(),
                    Slope::Offset(offsets) => {
                        let phase = rows.row(i).dot(&phases.frequencies.row(j)) + offsets[j];
                        -(2.0 / count as f64).sqrt() * phase.sin() * sensitivity.re()
                    }
                };
            }
        });
        slopes
    }
}

fn phases(spec: &FourierSpec, input_dim: usize) -> Result<Phases> {
    let frequencies = spec.frequency_vectors(input_dim)?;
    let offset = |j| Stream::new(Seed::new(spec.seed), Role::Offset, j as u64).uniform() * std::f64::consts::TAU;
    let slope = match spec.form {
        Form::Offset => Slope::Offset((0..frequencies.nrows()).map(offset).collect()),
        // The real form of complex features is that of pairs.
        Form::CosSin | Form::Complex => Slope::Pairs,
    };
    Ok(Phases { slope, frequencies })
}

impl EvidenceSearch {
    /// Searches near the length scales of `spec` and the given variances; `watch` is told about every evaluation and may
    /// stop the search.
    ///
    /// # Errors
    /// Rows and targets that do not fit, a description with an unresolved length scale, those of `watch`.
    pub fn run(
        &self,
        spec: &Spec,
        signal_variance: f64,
        noise_variance: f64,
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Tuned> {
        check_positive("signal variance", signal_variance)?;
        check_positive("noise variance", noise_variance)?;
        check_count("number of rows to search on", self.rows)?;
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        crate::rows::check_finite("rows", rows, 0)?;
        crate::rows::check_finite("targets", targets, 0)?;
        if rows.nrows() == 0 || targets.ncols() == 0 {
            return Err(Error::parameter("rows", "at least one row with a target", "none"));
        }
        let (rows, targets) = if rows.nrows() > self.rows {
            let drawn = Stream::new(Seed::new(0), Role::Split, 0).distinct(rows.nrows() as u64, self.rows);
            let mut chosen: Vec<usize> = drawn.into_iter().map(|i| i as usize).collect();
            chosen.sort_unstable();
            (rows.select(Axis(0), &chosen), targets.select(Axis(0), &chosen))
        } else {
            (rows.to_owned(), targets.to_owned())
        };
        let inputs = rows.ncols();
        let (scales, start, unit) = match spec {
            Spec::Fourier(spec) => {
                spec.length_scale.check(inputs)?;
                let start = match &spec.length_scale {
                    LengthScale::PerInput(scales) => scales.clone(),
                    LengthScale::Same(scale) => vec![*scale; inputs],
                    LengthScale::Median => unreachable!("checked above"),
                };
                let unit = FourierSpec { length_scale: 1.0.into(), ..spec.clone() };
                (self.scales, start, Spec::from(unit))
            }
            other => (Scales::Fixed, vec![1.0; inputs], other.clone()),
        };
        let phases = match &unit {
            Spec::Fourier(spec) => Some(phases(spec, inputs)?),
            _ => None,
        };
        let best = if self.complex {
            let map = unit.build_complex::<f64>(inputs)?;
            let phases = phases.map(|phases| Phases { slope: Slope::Complex, ..phases });
            let normalised = self.normalised;
            let problem = Problem { map: &*map, phases, rows, targets, normalised, start: start.clone(), scales };
            self.search(&problem, signal_variance, noise_variance, watch)?
        } else {
            let map = unit.build::<f64>(inputs)?;
            let normalised = self.normalised;
            let problem = Problem { map: &*map, phases, rows, targets, normalised, start: start.clone(), scales };
            self.search(&problem, signal_variance, noise_variance, watch)?
        };
        let (logs, variances) = best.point.split_at(best.point.len() - 2);
        let spec = match (spec, scales) {
            (Spec::Fourier(spec), Scales::Common) => {
                let scale = logs[0].exp();
                let length_scale = match &spec.length_scale {
                    LengthScale::PerInput(scales) => LengthScale::PerInput(scales.iter().map(|s| s * scale).collect()),
                    _ => LengthScale::Same(start.first().copied().unwrap_or(1.0) * scale),
                };
                FourierSpec { length_scale, ..spec.clone() }.into()
            }
            (Spec::Fourier(spec), Scales::PerInput) => {
                let scales = start.iter().zip(logs).map(|(s, log)| s * log.exp()).collect();
                FourierSpec { length_scale: LengthScale::PerInput(scales), ..spec.clone() }.into()
            }
            (other, _) => other.clone(),
        };
        Ok(Tuned {
            spec,
            signal_variance: variances[0].exp(),
            noise_variance: variances[1].exp(),
            log_marginal_likelihood: -best.value,
            evaluations: best.evaluations,
            converged: best.converged,
        })
    }

    fn search<T: Scalar<Real = f64> + Field<Wide = T>>(
        &self,
        problem: &Problem<'_, T>,
        signal: f64,
        noise: f64,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<super::Minimum> {
        let free = match problem.scales {
            Scales::Fixed => 0,
            Scales::Common => 1,
            Scales::PerInput => problem.start.len(),
        };
        let (mut start, mut bounds) = (vec![0.0; free], vec![(-RANGE.ln(), RANGE.ln()); free]);
        for (variance, (low, high)) in [(signal, self.signal_bounds), (noise, self.noise_bounds)] {
            check_positive("bounds", low)?;
            check_positive("bounds", high)?;
            start.push(variance.ln());
            bounds.push((low.ln(), high.ln()));
        }
        // Per observation, so that tolerances mean the same for any number of rows.
        let size = problem.targets.len() as f64;
        let mut evaluations = 0;
        let mut told = |value: f64| {
            evaluations += 1;
            watch(Step { evaluations, log_marginal_likelihood: value })
        };
        let mut lbfgs = self.lbfgs;
        let mut tried = 0;
        // A search of few evaluations has none to spare for a better start.
        if free > 0 && lbfgs.max_evaluations > 2 * STARTS.len() {
            let (mut best, mut likeliest) = (f64::NEG_INFINITY, 0.0);
            for factor in STARTS.map(f64::ln) {
                start[..free].fill(factor);
                let value = match problem.at(&start) {
                    Ok(at) => at.evidence.log_likelihood(),
                    Err(Error::NotPositiveDefinite { .. }) => f64::NEG_INFINITY,
                    Err(error) => return Err(error),
                };
                told(value)?;
                tried += 1;
                if value > best {
                    (best, likeliest) = (value, factor);
                }
            }
            start[..free].fill(likeliest);
            bounds[..free].fill((likeliest - RANGE.ln(), likeliest + RANGE.ln()));
            lbfgs.max_evaluations -= tried;
        }
        let mut objective = |point: &[f64]| {
            let (value, gradient) = problem.evaluate(point)?;
            told(value)?;
            Ok((-value / size, gradient.into_iter().map(|g| -g / size).collect()))
        };
        let mut found = lbfgs.minimize(&mut objective, &start, &bounds)?;
        found.evaluations += tried;
        found.value *= size;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::{Directions, FourierKernel, PolynomialSpec};

    fn data(n: usize, d: usize) -> (Array2<f64>, Array2<f64>) {
        let mut normals = vec![0.0f64; n * (d + 2)];
        Stream::new(Seed::new(4), Role::Split, 1).normals_from(0, &mut normals);
        let rows: Array2<f64> = Array2::from_shape_fn((n, d), |(i, j)| normals[i * (d + 2) + j]);
        let targets = Array2::from_shape_fn((n, 2), |(i, k)| {
            3.0 + (k as f64 + 1.0) * (1.3 * rows[[i, 0]]).sin() + 0.2 * normals[i * (d + 2) + d + k]
        });
        (rows, targets)
    }

    fn check_gradient<T: Scalar<Real = f64> + Field<Wide = T>>(problem: &Problem<'_, T>, point: &[f64]) {
        let (value, gradient) = problem.evaluate(point).unwrap();
        for (i, slope) in gradient.iter().enumerate() {
            // The central difference of five points: its error is h⁴ times a fifth derivative, and ε|value|/h.
            // Heavy-tailed spectra have phases of hundreds, whose fifth derivatives need a small step.
            let h = 1e-5;
            let at = |steps: f64| {
                let mut moved = point.to_vec();
                moved[i] += steps * h;
                problem.evaluate(&moved).unwrap().0
            };
            let difference = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h);
            let allowed = 1e-7 * (1.0 + value.abs());
            assert!((difference - slope).abs() < allowed, "parameter {i}: {slope} against {difference}");
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (rows, targets) = data(90, 3);
        for (form, kernel, complex) in [
            (Form::CosSin, FourierKernel::Gaussian, false),
            (Form::Offset, FourierKernel::Matern, false),
            (Form::Complex, FourierKernel::Gaussian, true),
            (Form::Complex, FourierKernel::Laplacian, false),
        ] {
            let spec = FourierSpec { n_components: 40, form, kernel, seed: 3, ..FourierSpec::default() };
            for (scales, free) in [(Scales::Fixed, 0), (Scales::Common, 1), (Scales::PerInput, 3)] {
                let point: Vec<f64> = [0.3, -0.2, 0.1].into_iter().take(free).chain([0.4, -2.0]).collect();
                let mut phases = phases(&spec, 3).unwrap();
                let (rows, targets, start) = (rows.clone(), targets.clone(), vec![1.5; 3]);
                if complex {
                    let map = spec.build_complex::<f64>(3).unwrap();
                    phases.slope = Slope::Complex;
                    let phases = Some(phases);
                    check_gradient(
                        &Problem { map: &*map, phases, rows, targets, normalised: true, start, scales },
                        &point,
                    );
                } else {
                    let map = spec.build::<f64>(3).unwrap();
                    let phases = Some(phases);
                    check_gradient(
                        &Problem { map: &*map, phases, rows, targets, normalised: false, start, scales },
                        &point,
                    );
                }
            }
        }
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
    fn maps_without_length_scales_get_variances_and_a_search_can_be_stopped() {
        let (rows, targets) = data(120, 3);
        let spec = Spec::from(PolynomialSpec { n_components: 30, coef0: 1.0, ..PolynomialSpec::default() });
        let search = EvidenceSearch::default();
        let tuned = search.run(&spec, 1.0, 1.0, rows.view(), targets.view(), &mut |_| Ok(())).unwrap();
        assert_eq!(tuned.spec, spec);
        assert!(tuned.noise_variance < 1.0);
        let stopped = search.run(&spec, 1.0, 1.0, rows.view(), targets.view(), &mut |_| Err(Error::Interrupted));
        assert!(matches!(stopped, Err(Error::Interrupted)));
        let few = EvidenceSearch { rows: 50, ..search };
        let other = few.run(&spec, 1.0, 1.0, rows.view(), targets.view(), &mut |_| Ok(())).unwrap();
        assert!(other.log_marginal_likelihood > tuned.log_marginal_likelihood);
        assert!(few.run(&spec, 0.0, 1.0, rows.view(), targets.view(), &mut |_| Ok(())).is_err());
    }
}

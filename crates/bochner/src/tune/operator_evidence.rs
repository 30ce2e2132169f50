use super::evidence::problem::Head;
use super::evidence_search::{EvidenceSearch, Sample, Scales, Step, chosen};
use super::lbfgs::Lbfgs;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{Describe, DynMap, FeatureMap, FourierSpec, OperatorSpec, Spec, Spread};
use crate::kernel::{AnyKernel, FieldKernel, Gaussian, Laplacian, Matern, OperatorKernel};
use crate::linalg::gemm::matmul_nn;
use crate::linalg::{Eigen, Lower, Tile, TileMut, Workspace};
use crate::model::evidence::Standard;
use crate::model::spectrum::{Spectrum, Variances, likeliest};
use crate::preprocess::{LengthScale, median_distance};
use crate::random::Seed;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

/// Hyperparameters of an [`OperatorGp`](crate::model::OperatorGp) by maximum marginal likelihood: length scales, the share of the
/// curl-free part of a Helmholtz kernel, signal and noise.
///
/// The scalar features are drawn once, at unit scale, so that the likelihood is a smooth function of all of them. Its gradient
/// is exact: with `N` the normal matrix of the parameters, `c` their right-hand side, `B = ρN + I` and `t = B⁻¹c` it is
/// `⟨S, dN⟩ + (ρ/τ²)tᵀdc` with `S = -ρ/2 (B⁻¹ + (ρ/τ²)ttᵀ)`; of `N` and `c` as sums of the features one pullback leads to the
/// length scales, and the derivatives of `B(ω)` do the rest.
///
/// The search has several starts: the length scale that is given and several median distances, and for Helmholtz kernels shares
/// of 0.1, 0.5 and 0.9. At each the likeliest variances are found from eigenvalues; the likeliest starts go on by L-BFGS with few
/// rows and features, and the best of them with all. A decomposable kernel is searched for as a scalar one of the targets in the
/// basis of the eigenvectors of its matrix.
///
/// ```
/// use bochner::feature::OperatorSpec;
/// use bochner::kernel::OperatorKernel;
/// use bochner::tune::OperatorEvidence;
/// use ndarray::Array2;
/// let rows = Array2::from_shape_fn((80, 2), |(i, j)| ((i * (37 + 11 * j)) as f64 * 0.7).sin());
/// let flow = Array2::from_shape_fn((80, 2), |(i, j)| if j == 0 { -rows[[i, 1]] } else { rows[[i, 0]] });
/// let spec = OperatorSpec { n_components: 64, ..OperatorSpec::new(OperatorKernel::helmholtz(0.3, 0.5)?) };
/// let found = OperatorEvidence::default().run(&spec, 1.0, 0.1, rows.view(), flow.view(), &mut |_| Ok(()))?;
/// assert!(found.kernel.as_field().unwrap().curl_free_share() < 0.2); // it only turns
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorEvidence {
    /// Which length scales.
    pub scales: Scales,
    /// Rows used at most, drawn at random.
    pub rows: usize,
    /// Features used at most.
    pub features: usize,
    /// How the search runs; all evaluations count, those on few rows too.
    pub lbfgs: Lbfgs,
    /// Whether targets are normalised, as in
    /// [`OperatorGp::with_normalized_targets`](crate::model::OperatorGp::with_normalized_targets).
    pub normalised: bool,
    /// Least and greatest noise variance, in units of the mean square of the targets.
    pub noise_bounds: (f64, f64),
    /// Least and greatest variance of the process, in the same units, about.
    pub signal_bounds: (f64, f64),
}

impl Default for OperatorEvidence {
    fn default() -> Self {
        let scalar = EvidenceSearch::default();
        OperatorEvidence {
            scales: Scales::Common,
            rows: scalar.rows,
            features: 512,
            lbfgs: scalar.lbfgs,
            normalised: true,
            noise_bounds: scalar.noise_bounds,
            signal_bounds: scalar.signal_bounds,
        }
    }
}

/// Where a search for the hyperparameters of a process of several outputs ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorTuned {
    /// The kernel with the hyperparameters found.
    pub kernel: OperatorKernel,
    /// Signal variance.
    pub signal_variance: f64,
    /// Noise variance.
    pub noise_variance: f64,
    /// Log marginal likelihood of the targets of the rows used, in the units of the search.
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

/// Median distances of rows over length scales that are tried.
const DISTANCES: [f64; 5] = [3.0, 1.0, 0.5, 0.2, 0.07];

/// Shares of the curl-free part that are tried.
const SHARES: [f64; 3] = [0.1, 0.5, 0.9];

/// Rows and features with which starts are compared.
const FEW: (usize, usize) = (500, 128);

/// Starts that climb with few rows, and evaluations of each.
const CLIMBERS: (usize, usize) = (3, 25);

/// Largest logit of a share: one in four hundred of the field is of the other kind.
const MOST_LOGIT: f64 = 6.0;

/// Rows, targets and scalar features of a field at unit scale.
struct Problem<'a> {
    field: &'a FieldKernel,
    map: DynMap<f64>,
    /// Frequencies at unit scale, one row each.
    unit: Array2<f64>,
    rows: Array2<f64>,
    targets: Array2<f64>,
    scales: Scales,
}

/// Hyperparameters at a point of the search.
struct Place {
    /// One length scale for each input.
    scales: Vec<f64>,
    share: f64,
    /// Of the process with frequencies in units of the mean length scale.
    signal: f64,
    noise: f64,
}

fn tile(array: &Array2<f64>) -> Tile<'_, f64> {
    Tile::new(array.as_slice().expect("standard layout"), array.nrows(), array.ncols())
}

/// `a b`.
fn product(a: &Array2<f64>, b: &Array2<f64>) -> Result<Array2<f64>> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    let (rows, cols) = out.dim();
    matmul_nn(tile(a), tile(b), TileMut::new(out.as_slice_mut().expect("fresh"), rows, cols))?;
    Ok(out)
}

/// The geometric mean.
fn mean_scale(scales: &[f64]) -> f64 {
    (scales.iter().map(|scale| scale.ln()).sum::<f64>() / scales.len().max(1) as f64).exp()
}

impl Problem<'_> {
    fn inputs(&self) -> usize {
        self.rows.ncols()
    }

    /// Length scales that move.
    fn moving(&self) -> usize {
        match self.scales {
            Scales::Fixed => 0,
            Scales::PerInput => self.inputs(),
            _ => 1,
        }
    }

    /// Whether both parts are there, so that their share is searched for.
    fn mixes(&self) -> bool {
        self.field.curl_free > 0.0 && self.field.div_free > 0.0
    }

    /// The given length scales, one for each input.
    fn given(&self) -> Vec<f64> {
        self.field.at(self.inputs()).precisions.iter().map(|s| s.sqrt().recip()).collect()
    }

    fn place(&self, point: &[f64]) -> Place {
        let (moving, given) = (self.moving(), self.given());
        let scales = match self.scales {
            Scales::Fixed => given,
            Scales::PerInput => point[..moving].iter().map(|v| v.exp()).collect(),
            // A list keeps its proportions.
            _ => given.iter().map(|scale| scale / mean_scale(&given) * point[0].exp()).collect(),
        };
        let share = if self.mixes() { 1.0 / (1.0 + (-point[moving]).exp()) } else { self.field.curl_free };
        let rest = moving + usize::from(self.mixes());
        Place { scales, share, signal: point[rest].exp(), noise: point[rest + 1].exp() }
    }

    fn point(&self, scales: &[f64], share: f64, variances: (f64, f64)) -> Vec<f64> {
        let mut point: Vec<f64> = match self.scales {
            Scales::Fixed => Vec::new(),
            Scales::PerInput => scales.iter().map(|scale| scale.ln()).collect(),
            _ => vec![mean_scale(scales).ln()],
        };
        if self.mixes() {
            point.push((share / (1.0 - share)).ln().clamp(-MOST_LOGIT, MOST_LOGIT));
        }
        point.extend([variances.0.ln(), variances.1.ln()]);
        point
    }

    /// Frequencies in units of the mean length scale.
    fn frequencies(&self, place: &Place) -> Array2<f64> {
        let mean = mean_scale(&place.scales);
        &self.unit * &place.scales.iter().map(|scale| mean / scale).collect::<Array1<f64>>()
    }

    fn spread(&self, place: &Place, frequencies: Array2<f64>) -> Spread {
        Spread::field(frequencies, place.share.sqrt(), (1.0 - place.share).max(0.0).sqrt())
    }

    /// Rows over length scales, and their scalar features.
    fn features(&self, place: &Place) -> Result<(Array2<f64>, Array2<f64>)> {
        let moved = &self.rows / &ndarray::aview1(&place.scales);
        let features = self.map.transform(moved.view())?;
        Ok((moved, features))
    }

    /// Sums over features and targets, of which everything else follows.
    fn sums(&self, features: &Array2<f64>) -> Result<(Lower<f64>, Array2<f64>)> {
        let mut gram = Lower::zeros(features.ncols())?;
        gram.add_gram(tile(features), &mut Workspace::new());
        Ok((gram, features.t().dot(&self.targets)))
    }

    fn numbers(&self) -> f64 {
        self.targets.len() as f64
    }

    /// What the evidence is as a function of the variances alone, at its best.
    fn variances(&self, point: &[f64], search: &OperatorEvidence) -> Result<Variances> {
        let place = self.place(point);
        let (_, features) = self.features(&place)?;
        let (gram, cross) = self.sums(&features)?;
        let spread = self.spread(&place, self.frequencies(&place));
        let eigen = Eigen::new(spread.normal(&gram)?)?;
        let right = spread.gather(cross.view());
        let largest = eigen.values().last().copied().unwrap_or(0.0);
        let vectors = eigen.vectors();
        let square = |(j, value): (usize, &f64)| {
            let along: f64 = vectors.row(j).iter().zip(right.column(0)).map(|(v, c)| v * c).sum();
            if *value > 1e-12 * largest { along * along / value } else { 0.0 }
        };
        let squares: Vec<f64> = eigen.values().iter().enumerate().map(square).collect();
        let total: f64 = self.targets.iter().map(|z| z * z).sum();
        let spectrum = Spectrum {
            rest: (total - squares.iter().sum::<f64>()).max(0.0),
            values: eigen.values().iter().map(|v| v.max(0.0)).collect(),
            squares,
            share: 1.0,
            rows: self.numbers(),
            outputs: 1.0,
            kappa: 0.5,
            log_weights: 0.0,
        };
        Ok(likeliest(&[spectrum], true, search.signal_bounds, search.noise_bounds))
    }

    /// Log likelihood and its gradient in the coordinates of a point.
    fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let place = self.place(point);
        let (moved, features) = self.features(&place)?;
        let (gram, cross) = self.sums(&features)?;
        let frequencies = self.frequencies(&place);
        let spread = self.spread(&place, frequencies.clone());
        let right = spread.gather(cross.view());
        let total: f64 = self.targets.iter().map(|z| z * z).sum();
        let standard = Standard::of_search(spread.normal(&gram)?, right.clone(), vec![total], self.numbers(), 0.0);
        let evidence = standard.evidence(place.signal, place.noise)?;
        let value = evidence.log_likelihood();
        let (noise, theta) = (evidence.noise, &evidence.solved);
        let (ratio, order) = (place.signal / noise, theta.nrows());
        let mut inverse = Array2::<f64>::eye(order);
        evidence.factor.solve_in_place(TileMut::new(inverse.as_slice_mut().expect("fresh"), order, order))?;
        let trace: f64 = inverse.diag().sum();
        let (t, c) = (theta.column(0), right.column(0));
        let length: f64 = t.dot(&t);
        let in_signal = 0.5 * (ratio * length / noise - (order as f64 - trace));
        let misfit = (total - ratio * c.dot(&t)) / noise;
        let in_noise = 0.5 * (misfit - self.numbers()) - in_signal;
        let mut gradient = vec![0.0; self.moving() + usize::from(self.mixes())];
        if !gradient.is_empty() {
            // S = -ρ/2 (B⁻¹ + (ρ/τ²)ttᵀ), in the memory of the inverse.
            let mut slope = inverse;
            for (i, mut row) in slope.rows_mut().into_iter().enumerate() {
                let along = ratio / noise * t[i];
                row.iter_mut().zip(t).for_each(|(v, t)| *v = -0.5 * ratio * (*v + along * t));
            }
            let right_slope = theta.mapv(|t| ratio / noise * t);
            let slopes = (&slope, &right_slope);
            let own = (&moved, &features);
            self.add_slopes(&place, own, (&gram, &cross), (&spread, &frequencies), slopes, &mut gradient)?;
        }
        gradient.extend([in_signal, in_noise]);
        Ok((value, gradient))
    }

    /// What the slopes in the normal matrix and in its right-hand side say about length scales and share.
    fn add_slopes(
        &self,
        place: &Place,
        (moved, features): (&Array2<f64>, &Array2<f64>),
        (gram, cross): (&Lower<f64>, &Array2<f64>),
        (spread, frequencies): (&Spread, &Array2<f64>),
        (slope, right): (&Array2<f64>, &Array2<f64>),
        gradient: &mut [f64],
    ) -> Result<()> {
        let (dim, inner, p) = (features.ncols(), spread.inner(), spread.outputs());
        let roots = spread.blocks(dim);
        // Row (j, q) of this is B_jᵀ's row q; block (j, k) of N is g_jk B_jᵀB_k.
        let mut in_gram = Array2::<f64>::zeros((dim, dim));
        let mut in_roots = Array2::<f64>::zeros((dim * inner, p));
        let mut mixed = vec![0.0; p];
        for j in 0..dim {
            for a in 0..inner {
                let row = slope.row(j * inner + a);
                let row = row.to_slice().expect("standard layout");
                let own = roots.row(j * inner + a);
                for k in 0..dim {
                    let g = if k <= j { gram.row(j)[k] } else { gram.row(k)[j] };
                    // Σ_r S_{ja,kr} B_k[·, r].
                    mixed.iter_mut().for_each(|v| *v = 0.0);
                    for (r, s) in row[k * inner..(k + 1) * inner].iter().enumerate() {
                        for (to, root) in mixed.iter_mut().zip(roots.row(k * inner + r)) {
                            *to += s * root;
                        }
                    }
                    let mut sum = 0.0;
                    for (b, mixed) in mixed.iter().enumerate() {
                        sum += own[b] * mixed;
                        in_roots[[j * inner + a, b]] += 2.0 * g * mixed;
                    }
                    in_gram[[j, k]] += sum;
                }
                for b in 0..p {
                    in_roots[[j * inner + a, b]] += cross[[j, b]] * right[[j * inner + a, 0]];
                }
            }
        }
        let moving = self.moving();
        if moving > 0 {
            let mut cotangents = product(features, &in_gram)?;
            let coefficients = spread.scatter(right.view());
            let along = self.targets.dot(&coefficients.t());
            cotangents.zip_mut_with(&along, |to, from| *to = 2.0 * *to + from);
            let pulled = self.map.pullback(moved.view(), cotangents.view())?;
            for (pulled, moved) in pulled.rows().into_iter().zip(moved.rows()) {
                for (b, (pulled, moved)) in pulled.iter().zip(moved).enumerate() {
                    gradient[b.min(moving - 1)] -= pulled * moved;
                }
            }
        }
        self.add_root_slopes(place, frequencies, &in_roots, inner, gradient);
        Ok(())
    }

    /// What the slopes in `B(ω)ᵀ` say about length scales and share.
    fn add_root_slopes(
        &self,
        place: &Place,
        frequencies: &Array2<f64>,
        in_roots: &Array2<f64>,
        inner: usize,
        gradient: &mut [f64],
    ) {
        let (m, d) = frequencies.dim();
        let (along, across) = (place.share.sqrt(), (1.0 - place.share).max(0.0).sqrt());
        let moving = self.moving();
        for j in 0..in_roots.nrows() / inner.max(1) {
            let w = frequencies.row(j % m);
            let length = w.dot(&w).sqrt();
            if length == 0.0 {
                continue;
            }
            let slopes = in_roots.slice(s![j * inner..(j + 1) * inner, ..]);
            // ⟨E, I⟩, Eω + Eᵀω and ωᵀEω.
            let (mut trace, mut both, mut quadratic) = (0.0, vec![0.0; d], 0.0);
            if inner == d {
                for (q, row) in slopes.rows().into_iter().enumerate() {
                    trace += row[q];
                    for (a, value) in row.iter().enumerate() {
                        both[q] += value * w[a];
                        both[a] += value * w[q];
                        quadratic += value * w[a] * w[q];
                    }
                }
            }
            if self.mixes() {
                let outer = quadratic / length;
                let slope =
                    0.5 * along * (1.0 - place.share) * outer - 0.5 * across * place.share * (length * trace - outer);
                gradient[moving] += slope;
            }
            if self.scales != Scales::PerInput {
                continue;
            }
            // In units of the mean length scale a frequency moves against its own, and with a share of all.
            let in_frequency: Vec<f64> = (0..d)
                .map(|b| {
                    if inner != d {
                        return along * slopes[[0, b]];
                    }
                    let unit = w[b] / length;
                    across * unit * trace + (along - across) * (both[b] / length - quadratic * unit / (length * length))
                })
                .collect();
            let all: f64 = in_frequency.iter().zip(w).map(|(slope, w)| slope * w).sum();
            for (b, slope) in in_frequency.iter().enumerate() {
                gradient[b] += all / d as f64 - slope * w[b];
            }
        }
    }
}

impl OperatorEvidence {
    /// Searches from the hyperparameters of `spec` and the given variances, and from elsewhere; `watch` is told about every
    /// evaluation and may stop the search.
    ///
    /// # Errors
    /// Rows and targets that do not fit, a full linear metric, one length scale for each input of a decomposable kernel, those
    /// of `watch`.
    pub fn run(
        &self,
        spec: &OperatorSpec,
        signal_variance: f64,
        noise_variance: f64,
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<OperatorTuned> {
        check_positive("signal variance", signal_variance)?;
        check_positive("noise variance", noise_variance)?;
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        check_dim("number of target columns", spec.kernel.output_dim(rows.ncols()), targets.ncols())?;
        check_count("number of rows", rows.nrows())?;
        check_count("number of rows to search on", self.rows)?;
        crate::rows::check_finite("rows", rows, 0)?;
        crate::rows::check_finite("targets", targets, 0)?;
        spec.kernel.check_inputs(rows.ncols())?;
        if self.scales == Scales::Metric {
            let reason = "a field has one length scale, or one for each input; a metric is for scalar kernels".into();
            return Err(Error::Unsupported { what: "length_scales \"metric\"", reason });
        }
        let chosen = chosen(rows.nrows(), self.rows);
        let (rows, targets) = (rows.select(Axis(0), &chosen), targets.select(Axis(0), &chosen));
        let mut targets = targets;
        if self.normalised {
            let means = targets.mean_axis(Axis(0)).expect("at least one row");
            targets -= &means;
        }
        let mean_square = targets.iter().map(|z| z * z).sum::<f64>() / targets.len() as f64;
        let unit = if mean_square > 0.0 { mean_square } else { 1.0 };
        targets.mapv_inplace(|z| z / unit.sqrt());
        // Variances of normalised targets are in these units already.
        let given = if self.normalised { 1.0 } else { 1.0 / unit };
        let variances = (signal_variance * given, noise_variance * given);
        let mut tuned = match spec.kernel.as_field() {
            Some(field) => self.field(spec, field, variances, &rows, &targets, watch)?,
            None => self.decomposable(spec, variances, rows, &targets, watch)?,
        };
        tuned.signal_variance /= given;
        tuned.noise_variance /= given;
        Ok(tuned)
    }

    /// A scalar kernel for the targets along each eigenvector of the output matrix.
    fn decomposable(
        &self,
        spec: &OperatorSpec,
        variances: (f64, f64),
        rows: Array2<f64>,
        targets: &Array2<f64>,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<OperatorTuned> {
        let (base, outputs) = spec.kernel.decomposed().expect("a kernel is a field or decomposable");
        if self.scales == Scales::PerInput {
            let reason =
                "a decomposable kernel has one length scale; the kernels of fields take one for each input".into();
            return Err(Error::Unsupported { what: "length_scales \"per_input\"", reason });
        }
        let mut heads = Vec::new();
        for (value, vector) in outputs.values().iter().zip(outputs.vectors().rows()) {
            if *value > 0.0 {
                // A process times √a in noise is the process in noise of variance 1/a.
                let along = targets.dot(&vector).mapv(|z| z / value.sqrt()).insert_axis(Axis(1));
                heads.push(Head { targets: along, weights: Some(vec![*value; rows.nrows()]) });
            }
        }
        if heads.is_empty() {
            return Err(Error::parameter("A", "a matrix that is not 0", "zeros"));
        }
        let search = EvidenceSearch {
            scales: self.scales,
            rows: self.rows,
            features: self.features,
            lbfgs: self.lbfgs,
            noise_bounds: self.noise_bounds,
            signal_bounds: self.signal_bounds,
            ..EvidenceSearch::default()
        };
        let sample = Sample { rows, heads, noisy: true };
        let found = search.run_sample(&spec.fourier()?.into(), variances, &sample, watch)?;
        let scale = match &found.spec {
            Spec::Fourier(FourierSpec { length_scale: LengthScale::Same(scale), .. }) => *scale,
            _ => base_scale(base),
        };
        let base = match base {
            AnyKernel::Matern(base) => Matern::new(base.nu(), scale)?.into(),
            AnyKernel::Laplacian(base) => Laplacian::new(scale, base.norm())?.into(),
            _ => Gaussian::new(scale)?.into(),
        };
        Ok(OperatorTuned {
            kernel: OperatorKernel::decomposable(base, outputs.clone())?,
            signal_variance: found.signal_variance,
            noise_variance: found.noise_variance,
            log_marginal_likelihood: found.log_marginal_likelihood,
            evaluations: found.evaluations,
            converged: found.converged,
            searched: found.searched,
            fixed: found.fixed.into_iter().chain(["A".to_owned()]).collect(),
        })
    }

    /// Scalar features at unit scale of at most so many rows, and at most so many of them.
    fn problem<'a>(
        &self,
        spec: &OperatorSpec,
        field: &'a FieldKernel,
        (rows, targets): (&Array2<f64>, &Array2<f64>),
        (most_rows, most_features): (usize, usize),
    ) -> Result<Problem<'a>> {
        let features = spec.n_components.min(most_features);
        let fourier = FourierSpec { n_components: features, length_scale: LengthScale::Same(1.0), ..spec.fourier()? };
        let n = rows.nrows().min(most_rows);
        Ok(Problem {
            field,
            map: fourier.build::<f64>(rows.ncols())?,
            unit: fourier.frequency_vectors(rows.ncols())?,
            rows: rows.slice(s![..n, ..]).to_owned(),
            targets: targets.slice(s![..n, ..]).to_owned(),
            scales: self.scales,
        })
    }

    fn field(
        &self,
        spec: &OperatorSpec,
        field: &FieldKernel,
        given: (f64, f64),
        rows: &Array2<f64>,
        targets: &Array2<f64>,
        watch: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<OperatorTuned> {
        let all = self.problem(spec, field, (rows, targets), (self.rows, self.features))?;
        let few = self.problem(spec, field, (rows, targets), FEW)?;
        let most = self.lbfgs.max_evaluations.max(1);
        let mut evaluations = 0;
        let mut told = |value: f64| {
            evaluations += 1;
            watch(Step { evaluations, log_marginal_likelihood: value })
        };
        let mut used = 0;
        let own = all.given();
        let share = field.curl_free;
        // Variances are those of the process with frequencies in units of the mean length scale.
        let first = all.point(&own, share, (given.0 / mean_scale(&own).powi(2), given.1));
        let mut starts = vec![(own.clone(), share)];
        let median = median_distance(rows.view(), Seed::new(0), 500).ok();
        if let (Some(median), true) = (median, all.moving() > 0) {
            starts.extend(DISTANCES.map(|distance| {
                // A list keeps its proportions.
                let mean = mean_scale(&own);
                (own.iter().map(|scale| scale / mean * median / distance).collect(), share)
            }));
        }
        if all.mixes() {
            starts = starts.iter().flat_map(|(scales, _)| SHARES.map(|share| (scales.clone(), share))).collect();
            starts.insert(0, (own.clone(), share));
        }
        // Few evaluations are for the point that is given.
        let mut screened: Vec<(Vec<f64>, f64)> = Vec::new();
        if most > 2 * starts.len() {
            for (scales, share) in &starts {
                let point = few.point(scales, *share, (1.0, 1.0));
                let found = match few.variances(&point, self) {
                    Err(Error::NotPositiveDefinite { .. }) => continue,
                    found => found?,
                };
                used += 1;
                told(found.value)?;
                if found.value.is_finite() {
                    screened.push((few.point(scales, *share, (found.signal, found.noise)), found.value));
                }
            }
        }
        screened.sort_by(|a, b| b.1.total_cmp(&a.1));
        screened.truncate(CLIMBERS.0);
        let bounds = self.bounds(&all, median);
        let mut climb = |problem: &Problem<'_>, start: &[f64], most: usize| {
            let size = problem.numbers();
            let start: Vec<f64> = start.iter().zip(&bounds).map(|(v, (low, high))| v.clamp(*low, *high)).collect();
            let mut objective = |point: &[f64]| {
                let (value, gradient) = problem.evaluate(point)?;
                told(value)?;
                Ok((-value / size, gradient.into_iter().map(|g| -g / size).collect()))
            };
            let lbfgs = Lbfgs { max_evaluations: most.max(1), ..self.lbfgs };
            let found = lbfgs.minimize(&mut objective, &start, &bounds)?;
            Ok::<_, Error>((found.point, -found.value * size, found.evaluations, found.converged))
        };
        let same = few.rows.nrows() == all.rows.nrows() && few.unit.nrows() == all.unit.nrows();
        let mut best = (first, f64::NEG_INFINITY);
        for (start, _) in &screened {
            let left = most.saturating_sub(used);
            if !same && left <= CLIMBERS.1 {
                break;
            }
            let allowed = if same { left / screened.len() } else { CLIMBERS.1.min(left / 2) };
            let (point, value, count, _) = climb(&few, start, allowed)?;
            used += count;
            if value > best.1 {
                best = (point, value);
            }
        }
        let (point, value, count, converged) = climb(&all, &best.0, most.saturating_sub(used).max(1))?;
        used += count;
        let place = all.place(&point);
        let mean = mean_scale(&place.scales);
        let length_scale = match (&field.length_scale, self.scales) {
            (kept, Scales::Fixed) => kept.clone(),
            (LengthScale::Same(_), Scales::Common) => LengthScale::Same(mean),
            _ => LengthScale::PerInput(place.scales),
        };
        let kernel = FieldKernel { length_scale, curl_free: place.share, div_free: 1.0 - place.share, ..field.clone() };
        let (mut searched, mut fixed) = (Vec::new(), Vec::new());
        let scales = if self.scales == Scales::Fixed { &mut fixed } else { &mut searched };
        scales.push("length_scale".to_owned());
        if all.mixes() {
            searched.push("curl_free".to_owned());
        }
        if field.nu.is_some() {
            fixed.push("nu".to_owned());
        }
        searched.extend(["signal".to_owned(), "noise".to_owned()]);
        Ok(OperatorTuned {
            kernel: kernel.build()?,
            signal_variance: place.signal * mean * mean,
            noise_variance: place.noise,
            log_marginal_likelihood: value,
            evaluations: used,
            converged,
            searched,
            fixed,
        })
    }

    fn bounds(&self, problem: &Problem<'_>, median: Option<f64>) -> Vec<(f64, f64)> {
        let unit = median.unwrap_or(1.0);
        let mut bounds = vec![((1e-3 * unit).ln(), (1e3 * unit).ln()); problem.moving()];
        if problem.mixes() {
            bounds.push((-MOST_LOGIT, MOST_LOGIT));
        }
        let variance = |(low, high): (f64, f64)| (low.ln(), high.ln());
        bounds.extend([variance(self.signal_bounds), variance(self.noise_bounds)]);
        bounds
    }
}

fn base_scale(base: &AnyKernel) -> f64 {
    match base {
        AnyKernel::Gaussian(base) => base.length_scale(),
        AnyKernel::Matern(base) => base.length_scale(),
        AnyKernel::Laplacian(base) => base.length_scale(),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fit, OperatorGp};
    use crate::random::{Role, Stream};

    fn data(n: usize, d: usize) -> (Array2<f64>, Array2<f64>) {
        let mut normals = vec![0.0f64; 2 * n * d];
        Stream::new(Seed::new(8), Role::Split, 1).normals_from(0, &mut normals);
        let rows = Array2::from_shape_fn((n, d), |(i, j)| normals[i * d + j]);
        let targets = Array2::from_shape_fn((n, d), |(i, j)| {
            let turned = rows[[i, (j + 1) % d]];
            let sign = if j == 0 { -1.0 } else { 1.0 };
            sign * turned.sin() + 0.1 * normals[n * d + i * d + j]
        });
        (rows, targets)
    }

    fn spec(field: FieldKernel, n_components: usize) -> OperatorSpec {
        OperatorSpec { n_components, seed: 5, ..OperatorSpec::new(field.build().unwrap()) }
    }

    #[test]
    fn the_gradient_is_that_of_differences_for_every_kernel() {
        for d in [2, 3] {
            let (rows, targets) = data(30, d);
            for share in [0.0, 1.0, 0.3] {
                for nu in [None, Some(2.5)] {
                    for scales in [Scales::Common, Scales::PerInput, Scales::Fixed] {
                        let search = OperatorEvidence { scales, ..OperatorEvidence::default() };
                        let given = LengthScale::PerInput([0.8, 1.3, 1.0][..d].to_vec());
                        let field = FieldKernel { nu, ..FieldKernel::new(share).with_length_scale(given) };
                        let spec = spec(field.clone(), 24);
                        let problem = search.problem(&spec, &field, (&rows, &targets), (30, 24)).unwrap();
                        let point = problem.point(&[0.7, 1.2, 1.1][..d], 0.35, (0.8, 0.05));
                        let (_, gradient) = problem.evaluate(&point).unwrap();
                        assert_eq!(gradient.len(), point.len());
                        // Central differences of a value of size 100: h² times third derivatives, and 1e-14/h of rounding.
                        let h = 1e-5;
                        for (k, slope) in gradient.iter().enumerate() {
                            let at = |step: f64| {
                                let mut moved = point.clone();
                                moved[k] += step;
                                problem.evaluate(&moved).unwrap().0
                            };
                            let expected = (at(h) - at(-h)) / (2.0 * h);
                            let tolerance = 1e-5 * (1.0 + expected.abs());
                            assert!(
                                (slope - expected).abs() < tolerance,
                                "{share} {nu:?} {scales:?} {k}: {slope} {expected}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_evidence_of_the_search_is_that_of_the_model() {
        let (rows, targets) = data(40, 2);
        let field = FieldKernel::new(0.3).with_length_scale([0.8, 1.3]);
        let spec = spec(field.clone(), 20);
        let search = OperatorEvidence { scales: Scales::PerInput, ..OperatorEvidence::default() };
        let problem = search.problem(&spec, &field, (&rows, &targets), (40, 20)).unwrap();
        let mean = mean_scale(&[0.8, 1.3]);
        let (value, _) = problem.evaluate(&problem.point(&[0.8, 1.3], 0.3, (0.7 / mean.powi(2), 0.2))).unwrap();
        let model = OperatorGp::new(spec.build::<f64>(2).unwrap(), 0.2).unwrap();
        let model = model.with_signal_variance(0.7).unwrap().with_normalized_targets(false);
        let expected = model.fit(rows.view(), targets.view()).unwrap().log_marginal_likelihood();
        assert!((value - expected).abs() < 1e-9 * expected.abs(), "{value} {expected}");
    }

    #[test]
    fn a_search_finds_noise_and_kind_of_a_flow_and_can_be_stopped() {
        let (rows, targets) = data(250, 2);
        let start = spec(FieldKernel::new(0.5).with_length_scale(0.1), 128);
        let search = OperatorEvidence::default();
        let mut seen = Vec::new();
        let mut watch = |step: Step| {
            seen.push(step.evaluations);
            Ok(())
        };
        let found = search.run(&start, 1.0, 0.5, rows.view(), targets.view(), &mut watch).unwrap();
        assert_eq!(seen.last(), Some(&found.evaluations));
        let field = found.kernel.as_field().unwrap();
        // The field (-sin y, sin x) has no sources: 500 numbers with noise of variance 0.01, of targets with a variance of about 0.44.
        assert!(field.curl_free < 0.1, "{found:?}");
        let noise = found.noise_variance * targets.var_axis(Axis(0), 0.0).mean().unwrap();
        assert!((noise / 0.01 - 1.0).abs() < 0.35, "{noise}");
        assert_eq!(found.searched, ["length_scale", "curl_free", "signal", "noise"]);
        let stopped = search.run(&start, 1.0, 0.5, rows.view(), targets.view(), &mut |_| Err(Error::Interrupted));
        assert!(matches!(stopped, Err(Error::Interrupted)));
        let metric = OperatorEvidence { scales: Scales::Metric, ..search };
        assert!(metric.run(&start, 1.0, 0.5, rows.view(), targets.view(), &mut |_| Ok(())).is_err());
    }
}

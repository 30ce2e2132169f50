use super::evidence::level;
use super::exact::{Gathered, gather};
use super::gp_regression::LengthScaleSearch;
use super::kinds::{Answers, Load, ModelEntry, Penalty, load, regresses};
use super::request::{Asked, Basis, Describing, FitAny, Needs};
use super::{Fit, Fitted, Predict};
use crate::accumulate::{Gram, Moments};
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{
    Describe, Description, DynMap, FeatureMap, MAX_DEGREE, MaclaurinKernel, MaclaurinSpec, SketchKind, Spec,
};
use crate::interrupt;
use crate::linalg::{Cholesky, Lower, TileMut};
use crate::parallel::Parallel;
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored, Tensor, malformed, triangle};
use crate::preprocess::LengthScale;
use crate::random::{Role, Seed, Stream};
use crate::rows::{RowSource, check_finite};
use crate::solve::factorise;
use crate::variance::Weights;
use crate::words::count;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, s};

/// Rows whose features are held at once.
const BLOCK: usize = 256;

/// Gaussian process regression with localised Maclaurin features: for the Gaussian kernel with short length scales.
///
/// Truncated series vanish far from their origin, and the posterior with them. The kernel does not change when all rows
/// are shifted: so rows are clustered, the features are taken around every centroid `c`, `A_c = Φ(X−c)ᵀΦ(X−c)/s² + I` is
/// factorised for each, and a new row is predicted around its nearest centroid. At a centroid itself `k(c, ·)` is exact.
/// Away from it features are shorter than the kernel says, `|φ(x)|² < 1`: the missing prior variance `σ²(1 - |φ(x)|²)` belongs
/// to the predictive variance. A row beyond the threshold of all centroids is a centre of its own: it is predicted by the
/// process of the training rows nearest to it, 256 at most, with the kernel itself.
///
/// Centroids are the mean of the rows, then repeatedly the row farthest from all centroids, while it is at least a
/// threshold away (farthest-point clustering; thesis 5.5, algorithm 7).
///
/// # Cost
/// `O(N_c N D²)` for `N_c` centroids, and `N_c D²/2` doubles of memory besides the rows.
///
/// ```
/// use bochner::feature::MaclaurinSpec;
/// use bochner::model::{Fit, LocalGp};
/// use ndarray::Array2;
/// let x = Array2::from_shape_fn((60, 1), |(i, _)| i as f64 / 5.0 - 6.0);
/// let y = x.mapv(|v: f64| (2.0 * v).sin());
/// let weights = bochner::variance::Weights::Real;
/// let spec = MaclaurinSpec { n_components: 12, length_scale: 0.6.into(), weights, ..MaclaurinSpec::default() };
/// let model = LocalGp::new(spec, 0.01)?.with_threshold(0.5)?.fit(x.view(), y.view())?;
/// let (mean, variance) = model.predict_with_variance(ndarray::array![[4.03]].view())?;
/// assert!((mean[[0, 0]] - (8.06f64).sin()).abs() < 0.1 && variance[0] < 0.01);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LocalGp {
    spec: MaclaurinSpec,
    noise_variance: f64,
    signal_variance: f64,
    threshold: f64,
    max_clusters: Option<usize>,
    level: Option<Seed>,
    published: bool,
}

impl LocalGp {
    /// Regression with the Gaussian kernel of `spec`, noise variance `s²`, kernel variance 1 and a threshold of two
    /// length scales.
    ///
    /// # Errors
    /// A kernel that is not Gaussian, or a noise variance that is not positive.
    pub fn new(spec: MaclaurinSpec, noise_variance: f64) -> Result<Self> {
        check_positive("noise_variance", noise_variance)?;
        if spec.kernel != MaclaurinKernel::Gaussian {
            return Err(Error::Unsupported {
                what: "kernel of a local Gaussian process",
                reason: "only the Gaussian kernel stays the same when all rows are shifted".into(),
            });
        }
        Ok(LocalGp {
            spec,
            noise_variance,
            signal_variance: 1.0,
            threshold: 2.0,
            max_clusters: None,
            level: None,
            published: false,
        })
    }

    /// With kernel variance `σ² = k(x, x)`.
    ///
    /// # Errors
    /// A variance that is not positive.
    pub fn with_signal_variance(mut self, signal_variance: f64) -> Result<Self> {
        check_positive("signal_variance", signal_variance)?;
        self.signal_variance = signal_variance;
        Ok(self)
    }

    /// With centroids until no row is `threshold` length scales away from all of them; infinity means one centroid.
    ///
    /// # Errors
    /// A threshold that is not positive.
    pub fn with_threshold(mut self, threshold: f64) -> Result<Self> {
        if threshold.is_nan() || threshold <= 0.0 {
            return Err(Error::parameter("threshold", "a positive number", threshold));
        }
        self.threshold = threshold;
        Ok(self)
    }

    /// With at most this many centroids.
    ///
    /// # Errors
    /// None at all.
    pub fn with_max_clusters(mut self, most: impl Into<Option<usize>>) -> Result<Self> {
        self.max_clusters = most.into();
        self.max_clusters.map_or(Ok(()), |most| check_count("max_clusters", most))?;
        Ok(self)
    }

    /// With both variances multiplied by the factor at which a fifth of the rows, drawn with this seed and held out, is
    /// likeliest; or as they are.
    ///
    /// A marginal likelihood would be that of one centre, where targets far away count as noise.
    #[must_use]
    pub fn with_likeliest_level(mut self, seed: Option<Seed>) -> Self {
        self.level = seed;
        self
    }

    /// As in the thesis, algorithm 7: without the missing prior variance, and with the features of the nearest centroid for rows
    /// beyond the threshold too.
    #[must_use]
    pub fn as_published(mut self) -> Self {
        self.published = true;
        self
    }

    /// The process at the level that is likeliest for rows that are held out.
    fn levelled(
        &self,
        seed: Seed,
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        context: &mut Context<'_>,
    ) -> Result<LocalGp> {
        let n = rows.nrows();
        let order: Vec<usize> =
            Stream::new(seed, Role::Split, 1).permutation(n).into_iter().map(|i| i as usize).collect();
        let (held_out, rest) = order.split_at(n / 5);
        if held_out.is_empty() || rest.len() < 2 {
            return Ok(self.clone());
        }
        let part = |numbers: &[usize]| (rows.select(Axis(0), numbers), targets.select(Axis(0), numbers));
        let (near, known) = part(rest);
        let model = self.solve(near.view(), known.view(), context)?;
        let (new, truth) = part(held_out);
        let (mean, variance) = model.predict_with_variance(new.view())?;
        let deviations = (&truth - &mean).mapv(|e| e * e)
            / (variance.mapv(|v| v.max(0.0)) + self.noise_variance).insert_axis(Axis(1));
        let square = truth.mapv(|t| t * t).mean().unwrap_or(1.0);
        let factor = level(deviations.mean().unwrap_or(1.0), square);
        let (noise_variance, signal_variance) = (factor * self.noise_variance, factor * self.signal_variance);
        Ok(LocalGp { noise_variance, signal_variance, ..self.clone() })
    }

    /// The journal records the process around every centroid.
    fn solve(
        &self,
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        context: &mut Context<'_>,
    ) -> Result<LocalGpModel> {
        check_targets(rows, targets)?;
        let (map, spec, centroids) = self.around(rows)?;
        let bytes = Lower::<f64>::bytes(map.output_dim()).saturating_mul(centroids.nrows() as u64);
        let remedy = "a larger threshold makes fewer centroids, fewer features make smaller factors";
        context.check_budget("factors of the centroids", bytes, remedy)?;
        interrupt::expect(Some(centroids.nrows() * (rows.nrows() + map.output_dim())));
        let mut journal = context.journal();
        let locals = centroids
            .axis_iter(Axis(0))
            .map(|centroid| {
                interrupt::check()?;
                if let Some(journal) = &mut journal
                    && let Some(entry) = journal.recall()?
                {
                    return Local::from_entry(&entry, map.output_dim(), targets.ncols());
                }
                let local = Local::new(self.moments(&map, rows, targets, centroid)?, self.noise_variance)?;
                if let Some(journal) = &mut journal {
                    journal.record(local.to_entry().view())?;
                }
                Ok(local)
            })
            .collect::<Result<Vec<_>>>()?;
        let (noise_variance, signal_variance) = (self.noise_variance, self.signal_variance);
        let beyond = (self.threshold.is_finite() && !self.published)
            .then(|| (self.threshold, rows.to_owned(), targets.to_owned()));
        let model = LocalGpModel::from_parts(map, spec, centroids, locals, (noise_variance, signal_variance), beyond)?;
        Ok(LocalGpModel { published: self.published, ..model })
    }

    /// Mean squared error, over rows and targets of `held_out`, of the process with each noise variance fitted to `train`.
    ///
    /// Sums over rows do not depend on the noise: they are taken once for all. Rows of `held_out` see the noise variances
    /// only; `self` has the rest.
    ///
    /// # Errors
    /// As [`fit`](Fit::fit), and a noise variance that is not positive.
    pub fn validate(
        &self,
        noise_variances: &[f64],
        train: (ArrayView2<'_, f64>, ArrayView2<'_, f64>),
        held_out: (ArrayView2<'_, f64>, ArrayView2<'_, f64>),
    ) -> Result<Vec<f64>> {
        noise_variances.iter().try_for_each(|&noise| check_positive("noise_variance", noise))?;
        let ((rows, targets), (new, truth)) = (train, held_out);
        check_targets(rows, targets)?;
        check_targets(new, truth)?;
        check_dim("number of target columns that are held out", targets.ncols(), truth.ncols())?;
        check_dim("number of columns of rows that are held out", rows.ncols(), new.ncols())?;
        let (map, spec, centroids) = self.around(rows)?;
        let mut losses = vec![0.0; noise_variances.len()];
        let members = nearest(new, centroids.view(), &spec.length_scale);
        for (members, centroid) in members.iter().zip(centroids.axis_iter(Axis(0))).filter(|(m, _)| !m.is_empty()) {
            interrupt::check()?;
            let moments = self.moments(&map, rows, targets, centroid)?;
            let features = self.features(&map, new.select(Axis(0), members).view(), centroid)?;
            let truth = truth.select(Axis(0), members);
            for (loss, &noise) in losses.iter_mut().zip(noise_variances) {
                let local = Local::new(moments.clone(), noise)?;
                *loss += (features.dot(&local.coefficients) - &truth).iter().map(|e| e * e).sum::<f64>();
            }
        }
        Ok(losses.iter().map(|loss| loss / truth.len().max(1) as f64).collect())
    }

    /// Features and their description, the same around every centroid, and the centroids.
    fn around(&self, rows: ArrayView2<'_, f64>) -> Result<(DynMap<f64>, MaclaurinSpec, Array2<f64>)> {
        let mut spec = MaclaurinSpec { center: true, ..self.spec.clone() }.resolve(rows)?;
        let resolved = spec.resolved.as_mut().expect("just resolved");
        // Around every centroid the same sketches: rows are shifted before they meet the map.
        let mean = resolved.centre.take().unwrap_or_else(|| vec![0.0; rows.ncols()]);
        spec.center = false;
        let map = spec.build::<f64>(rows.ncols())?;
        let most = self.max_clusters.unwrap_or(usize::MAX).min(rows.nrows());
        let centroids = farthest_points(rows, &mean, &spec.length_scale, self.threshold, most);
        interrupt::check()?;
        Ok((map, spec, centroids))
    }

    fn features(
        &self,
        map: &DynMap<f64>,
        rows: ArrayView2<'_, f64>,
        centroid: ArrayView1<'_, f64>,
    ) -> Result<Array2<f64>> {
        Ok(map.transform((&rows - &centroid).view())? * self.signal_variance.sqrt())
    }

    fn moments(
        &self,
        map: &DynMap<f64>,
        rows: ArrayView2<'_, f64>,
        targets: ArrayView2<'_, f64>,
        centroid: ArrayView1<'_, f64>,
    ) -> Result<Moments<f64>> {
        let mut gram = Gram::<f64>::new(map.output_dim(), targets.ncols())?;
        for (rows, targets) in rows.axis_chunks_iter(Axis(0), BLOCK).zip(targets.axis_chunks_iter(Axis(0), BLOCK)) {
            let first = gram.count() as usize;
            let features = self.features(map, rows, centroid).map_err(|error| error.rows_from(first))?;
            gram.push(features.view(), targets, None)?;
            interrupt::advance(rows.nrows());
        }
        gram.finish().about_zero()
    }
}

fn check_targets(rows: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<()> {
    check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
    check_count("number of target columns", targets.ncols())?;
    check_finite("targets", targets, 0)
}

impl Fit for LocalGp {
    type Real = f64;
    type Model = LocalGpModel;

    /// Collects the rows, since every centroid looks at all of them. Weights are not supported.
    fn fit_stream(&self, source: &mut dyn RowSource<f64>, context: &mut Context<'_>) -> Result<LocalGpModel> {
        context.fit(source, |source, context| {
            let Gathered { rows, targets, .. } = gather(source, context, Some("local Gaussian processes have none"))?;
            match self.level {
                Some(seed) => self.levelled(seed, rows.view(), targets.view(), context)?.solve(
                    rows.view(),
                    targets.view(),
                    context,
                ),
                None => self.solve(rows.view(), targets.view(), context),
            }
        })
    }
}

/// Squared distance in length scales.
fn distance_sq(x: ArrayView1<'_, f64>, y: ArrayView1<'_, f64>, scale: &LengthScale) -> f64 {
    match scale {
        LengthScale::PerInput(scales) => {
            x.iter().zip(y).zip(scales).map(|((a, b), s)| ((a - b) / s) * ((a - b) / s)).sum()
        }
        LengthScale::Same(scale) => x.iter().zip(y).map(|(a, b)| ((a - b) / scale) * ((a - b) / scale)).sum(),
        LengthScale::Metric(matrix) => {
            let along = |l: &Vec<f64>| x.iter().zip(y).zip(l).map(|((a, b), l)| (a - b) * l).sum::<f64>();
            matrix.iter().map(|l| along(l) * along(l)).sum()
        }
        LengthScale::Median => f64::NAN,
    }
}

/// The mean, then repeatedly the row with the largest distance to its nearest centroid (the first of equals).
fn farthest_points(
    rows: ArrayView2<'_, f64>,
    mean: &[f64],
    scale: &LengthScale,
    threshold: f64,
    most: usize,
) -> Array2<f64> {
    let mut centroids = mean.to_vec();
    let mut newest = Array1::from(mean.to_vec());
    let mut nearest = vec![f64::INFINITY; rows.nrows()];
    loop {
        for (nearest, row) in nearest.iter_mut().zip(rows.axis_iter(Axis(0))) {
            *nearest = nearest.min(distance_sq(row, newest.view(), scale));
        }
        let (farthest, distance) =
            nearest.iter().enumerate().fold((0, -1.0), |best, (i, &d)| if d > best.1 { (i, d) } else { best });
        let enough = centroids.len() >= most.max(1) * mean.len() || interrupt::raised();
        if distance.sqrt() < threshold || distance <= 0.0 || enough {
            break;
        }
        newest = rows.row(farthest).to_owned();
        centroids.extend(newest.iter().copied());
    }
    Array2::from_shape_vec((centroids.len() / mean.len(), mean.len()), centroids).expect("whole rows")
}

/// Numbers of the rows that have each centroid as their nearest, the first of equals.
fn nearest(rows: ArrayView2<'_, f64>, centroids: ArrayView2<'_, f64>, scale: &LengthScale) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); centroids.nrows()];
    for (i, row) in rows.axis_iter(Axis(0)).enumerate() {
        let distances = centroids.axis_iter(Axis(0)).map(|c| distance_sq(row, c, scale));
        let best = distances.enumerate().fold((0, f64::INFINITY), |b, (c, d)| if d < b.1 { (c, d) } else { b });
        members[best.0].push(i);
    }
    members
}

/// What was learned around one centroid.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    pub(crate) factor: Cholesky<f64>,
    /// `A_c⁻¹ Φᵀy/s²`, one column per target.
    pub(crate) coefficients: Array2<f64>,
}

impl Local {
    /// The process with this noise variance `s²`: the factor of `ΦᵀΦ/s² + I` and what follows from it.
    fn new(moments: Moments<f64>, noise_variance: f64) -> Result<Self> {
        let (mut matrix, mut coefficients) = (moments.gram, moments.cross);
        for i in 0..matrix.order() {
            matrix.row_mut(i).iter_mut().for_each(|v| *v /= noise_variance);
        }
        matrix.add_to_diagonal(1.0);
        let (factor, _, _) = factorise(matrix)?;
        coefficients.mapv_inplace(|v| v / noise_variance);
        let (d, k) = coefficients.dim();
        factor.solve_in_place(TileMut::new(coefficients.as_slice_mut().expect("standard layout"), d, k))?;
        Ok(Local { factor, coefficients })
    }

    /// As a journal keeps it: the rows of the factor, the norm of its matrix, the coefficients.
    fn to_entry(&self) -> Array2<f64> {
        let factor = (0..self.factor.order()).flat_map(|i| self.factor.factor().row(i)).copied();
        let values: Vec<f64> =
            factor.chain([self.factor.norm_one()]).chain(self.coefficients.iter().copied()).collect();
        Array2::from_shape_vec((values.len(), 1), values).expect("one column")
    }

    /// The inverse of [`to_entry`](Self::to_entry).
    fn from_entry(entry: &Array2<f64>, dim: usize, targets: usize) -> Result<Self> {
        check_dim("number of recorded values", dim * (dim + 1) / 2 + 1 + dim * targets, entry.len())?;
        let mut values = entry.iter().copied();
        let mut factor = Lower::zeros(dim)?;
        for i in 0..dim {
            factor.row_mut(i).iter_mut().zip(&mut values).for_each(|(to, from)| *to = from);
        }
        let factor = Cholesky::from_factor(factor, values.next().unwrap_or(f64::NAN))?;
        let coefficients = Array2::from_shape_vec((dim, targets), values.collect()).expect("as many as were checked");
        Ok(Local { factor, coefficients })
    }
}

/// A fitted [`LocalGp`].
#[derive(Debug, Clone)]
pub struct LocalGpModel {
    map: DynMap<f64>,
    spec: MaclaurinSpec,
    centroids: Array2<f64>,
    locals: Vec<Local>,
    noise_variance: f64,
    signal_variance: f64,
    beyond: Option<Beyond>,
    published: bool,
}

/// The threshold, in length scales, beyond which rows are centres of their own, and the rows and targets of the fit; files of
/// earlier versions have none.
type Beyond = (f64, Array2<f64>, Array2<f64>);

/// Training rows that a row beyond the threshold is predicted from, at most.
const NEAREST: usize = 256;

/// Length scales beyond which rows have nothing to do with each other: the kernel is below the precision.
const REACH: f64 = 8.5;

impl LocalGpModel {
    pub(crate) fn from_parts(
        map: DynMap<f64>,
        spec: MaclaurinSpec,
        centroids: Array2<f64>,
        locals: Vec<Local>,
        (noise_variance, signal_variance): (f64, f64),
        beyond: Option<Beyond>,
    ) -> Result<Self> {
        check_dim("number of columns of the centroids", map.input_dim(), centroids.ncols())?;
        check_dim("number of centroids", centroids.nrows(), locals.len())?;
        check_count("number of centroids", locals.len())?;
        check_positive("noise_variance", noise_variance)?;
        check_positive("signal_variance", signal_variance)?;
        for local in &locals {
            check_dim("order of a factor", map.output_dim(), local.factor.order())?;
            check_dim("number of coefficients", map.output_dim(), local.coefficients.nrows())?;
            check_dim("number of targets", locals[0].coefficients.ncols(), local.coefficients.ncols())?;
        }
        spec.length_scale.check(map.input_dim())?;
        if let Some((_, rows, targets)) = &beyond {
            check_dim("number of columns of the rows", map.input_dim(), rows.ncols())?;
            check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
            check_dim("number of targets", locals[0].coefficients.ncols(), targets.ncols())?;
        }
        let published = false;
        Ok(LocalGpModel { map, spec, centroids, locals, noise_variance, signal_variance, beyond, published })
    }

    /// The resolved description of the features.
    pub fn spec(&self) -> &MaclaurinSpec {
        &self.spec
    }

    /// The centroids, the mean of the rows first.
    pub fn centroids(&self) -> ArrayView2<'_, f64> {
        self.centroids.view()
    }

    /// `s²`.
    pub fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// `σ²`.
    pub fn signal_variance(&self) -> f64 {
        self.signal_variance
    }

    pub(crate) fn map(&self) -> &DynMap<f64> {
        &self.map
    }

    pub(crate) fn locals(&self) -> &[Local] {
        &self.locals
    }

    /// Predictive mean of every target and predictive variance of the function, which all targets share.
    ///
    /// The variance of an observation adds the noise variance.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn predict_with_variance(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Array1<f64>)> {
        let mut mean = Array2::zeros((rows.nrows(), self.output_dim()));
        let mut variance = Array1::zeros(rows.nrows());
        self.visit(rows, |indices, features, local| {
            let (n, d) = features.dim();
            let mut transposed = features.t().as_standard_layout().into_owned();
            let window = TileMut::new(transposed.as_slice_mut().expect("standard layout"), d, n);
            local.factor.solve_factor_in_place(window)?;
            for (column, &i) in indices.iter().enumerate() {
                let own = features.row(column);
                let missing = if self.published { 0.0 } else { (self.signal_variance - own.dot(&own)).max(0.0) };
                variance[i] = transposed.column(column).iter().map(|v| v * v).sum::<f64>() + missing;
                write_mean(own, local, mean.row_mut(i));
            }
            Ok(())
        })?;
        self.for_each_far(rows, |i, own, spread| {
            mean.row_mut(i).iter_mut().zip(own).for_each(|(to, value)| *to = *value);
            variance[i] = spread;
        })?;
        check_finite("predictions", mean.view(), 0)?;
        check_finite("variances", variance.view().insert_axis(Axis(1)), 0)?;
        Ok((mean, variance))
    }

    /// Numbers of the rows beyond the threshold of all centroids.
    fn far(&self, rows: ArrayView2<'_, f64>) -> Vec<usize> {
        let Some((threshold, ..)) = &self.beyond else { return Vec::new() };
        let scale = &self.spec.length_scale;
        let is_far = |row: ArrayView1<'_, f64>| {
            let near = |c: ArrayView1<'_, f64>| distance_sq(row, c, scale) <= threshold * threshold;
            !self.centroids.axis_iter(Axis(0)).any(near)
        };
        (0..rows.nrows()).filter(|&i| is_far(rows.row(i))).collect()
    }

    /// Mean and variance of a row from the training rows nearest to it.
    fn at_its_own_centre(&self, row: ArrayView1<'_, f64>) -> Result<(Vec<f64>, f64)> {
        let Some((_, rows, targets)) = &self.beyond else {
            return Ok((vec![0.0; self.output_dim()], self.signal_variance));
        };
        let (scale, signal) = (&self.spec.length_scale, self.signal_variance);
        let distances = rows.axis_iter(Axis(0)).map(|x| distance_sq(row, x, scale));
        let mut near: Vec<(f64, usize)> = distances.enumerate().map(|(i, d)| (d, i)).collect();
        if near.len() > NEAREST {
            near.select_nth_unstable_by(NEAREST, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            near.truncate(NEAREST);
        }
        if !near.iter().any(|(d, _)| *d <= REACH * REACH) {
            return Ok((vec![0.0; targets.ncols()], signal));
        }
        near.sort_unstable_by_key(|(_, i)| *i);
        let n = near.len();
        let mut matrix = Lower::zeros(n)?;
        for (i, (_, first)) in near.iter().enumerate() {
            for (entry, (_, second)) in matrix.row_mut(i).iter_mut().zip(&near) {
                *entry = signal * libm::exp(-0.5 * distance_sq(rows.row(*first), rows.row(*second), scale));
            }
        }
        matrix.add_to_diagonal(self.noise_variance);
        let (factor, _, _) = factorise(matrix)?;
        let mut weights: Vec<f64> = near.iter().map(|(d, _)| signal * libm::exp(-0.5 * d)).collect();
        factor.solve_factor_in_place(TileMut::new(&mut weights, n, 1))?;
        let explained: f64 = weights.iter().map(|w| w * w).sum();
        factor.solve_adjoint_in_place(TileMut::new(&mut weights, n, 1))?;
        let mut mean = vec![0.0; targets.ncols()];
        for (weight, (_, i)) in weights.iter().zip(&near) {
            mean.iter_mut().zip(targets.row(*i)).for_each(|(to, y)| *to += weight * y);
        }
        Ok((mean, (signal - explained).max(0.0)))
    }

    /// Hands means and variances of the rows beyond the threshold to `visit`, with their numbers.
    fn for_each_far(&self, rows: ArrayView2<'_, f64>, mut visit: impl FnMut(usize, &[f64], f64)) -> Result<()> {
        let far = self.far(rows);
        let found = far.iter().in_parallel().map(|&i| self.at_its_own_centre(rows.row(i)));
        for (i, found) in far.iter().zip(found) {
            let (mean, variance) = found?;
            visit(*i, &mean, variance);
        }
        Ok(())
    }

    /// Hands rows with the same nearest centroid to `visit`, in blocks: their numbers and features around it.
    fn visit(
        &self,
        rows: ArrayView2<'_, f64>,
        mut visit: impl FnMut(&[usize], ArrayView2<'_, f64>, &Local) -> Result<()>,
    ) -> Result<()> {
        check_dim("number of columns of rows", self.input_dim(), rows.ncols())?;
        check_finite("rows", rows, 0)?;
        let members = nearest(rows, self.centroids.view(), &self.spec.length_scale);
        let weight = self.signal_variance.sqrt();
        for ((members, local), centroid) in members.iter().zip(&self.locals).zip(self.centroids.axis_iter(Axis(0))) {
            for chunk in members.chunks(BLOCK) {
                let mut near = rows.select(Axis(0), chunk);
                near -= &centroid;
                let features =
                    self.map.transform(near.view()).map_err(|error| error.with_rows(|row| chunk[row]))? * weight;
                visit(chunk, features.view(), local)?;
            }
        }
        Ok(())
    }
}

fn write_mean(features: ArrayView1<'_, f64>, local: &Local, mut out: ndarray::ArrayViewMut1<'_, f64>) {
    for (to, coefficients) in out.iter_mut().zip(local.coefficients.axis_iter(Axis(1))) {
        *to = features.iter().zip(coefficients).map(|(f, c)| f * c).sum();
    }
}

impl Predict for LocalGpModel {
    type Real = f64;

    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.locals[0].coefficients.ncols()
    }

    /// Predictive means.
    fn predict_into(&self, rows: ArrayView2<'_, f64>, mut out: ArrayViewMut2<'_, f64>) -> Result<()> {
        check_dim("number of rows of the output", rows.nrows(), out.nrows())?;
        check_dim("number of columns of the output", self.output_dim(), out.ncols())?;
        self.visit(rows, |indices, features, local| {
            for (row, &i) in indices.iter().enumerate() {
                write_mean(features.row(row), local, out.slice_mut(s![i, ..]));
            }
            Ok(())
        })?;
        self.for_each_far(rows, |i, own, _| {
            out.row_mut(i).iter_mut().zip(own).for_each(|(to, value)| *to = *value);
        })?;
        check_finite("predictions", out.view(), 0)
    }
}

description! {
    /// Parameters of Gaussian-process regression around many centroids.
    pub struct LocalGpSpec {
        /// Budget of features around each centroid. Time grows with its square and with the number of centroids.
        n_components: usize = 256, Domain::FEATURES, Size;
        /// Length scale of the kernel.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel;
        /// Variance of the noise of the targets.
        noise: f64 = 0.01, Domain::POSITIVE, Fit;
        /// Variance of the function: the kernel's value at distance 0.
        signal_variance: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Rows become centroids until none is this many length scales away from all of them; none, or infinity, means a
        /// single centroid, the mean.
        threshold: Option<f64> = Some(2.0), Domain::Optional(&Domain::POSITIVE), Fit;
        /// Most centroids.
        max_clusters: Option<usize> = None, Domain::Optional(&Domain::COUNT), Size;
        /// Whether the mean of the targets is subtracted before the fit and added to predictions.
        normalize_y: bool = false, Domain::Flag, Fit;
        /// Random directions.
        sketch: SketchKind = SketchKind::TensorSrht, Domain::Word(SketchKind::CHOICES), Draw;
        /// Complex or real directions.
        weights: Weights = Weights::Ctr, Domain::Word(Weights::CHOICES.split_at(2).0), Draw;
        /// Largest degree of the series.
        max_degree: u32 = 10, Domain::Whole(1, MAX_DEGREE as u64), Size;
        /// Whether to choose length scale, signal and noise by the marginal likelihood of the exact process, with exact gradients.
        optimizer: Option<String> = None, Domain::Optional(&Domain::Only("lbfgs")), Fit;
        /// Whether the search scales all length scales by one factor, finds one for each column or a full linear metric, or keeps
        /// them.
        length_scales: LengthScaleSearch = LengthScaleSearch::Common, Domain::Word(LengthScaleSearch::CHOICES), Fit;
        /// Rows used in the search, drawn at random.
        max_rows: usize = 1000, Domain::COUNT, Size;
        /// Evaluations of the likelihood in the search.
        max_iter: usize = 120, Domain::COUNT, Size;
    }
    besides {}
}

const KIND: &str = "local_gp";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    KIND,
    "Gaussian process regression around many centres",
    "A Gaussian process with features around the nearest of many centres, for numbers that change over short \
     distances.",
    "local-gp",
    LocalGpSpec::PARAMETERS,
    load::<LocalGpModel, LocalGpModel>,
    Describing::InDouble(describe),
)
.answering(Answers::DEVIATIONS)
.on(Needs::Nothing)
.penalized(Penalty::RIDGE);

/// A penalty is the ratio of both variances.
fn describe(asked: &Asked<'_, f64>) -> Result<Box<dyn FitAny<f64>>> {
    let spec: LocalGpSpec = asked.spec()?;
    let features = match asked.on {
        Basis::Described(Description::Map(Spec::Maclaurin(features))) => features.clone(),
        Basis::Nothing => MaclaurinSpec {
            n_components: spec.n_components,
            length_scale: spec.length_scale,
            sketch: spec.sketch,
            weights: spec.weights,
            max_degree: spec.max_degree,
            seed: asked.seed().number(),
            ..Default::default()
        },
        _ => {
            let reason = "a local process has Maclaurin features".into();
            return Err(Error::Unsupported { what: "--map", reason });
        }
    };
    let (signal, noise) = asked.penalty().map_or((spec.signal_variance, spec.noise), |penalty| (1.0, penalty));
    let process = LocalGp::new(features, noise)?
        .with_signal_variance(signal)?
        .with_threshold(spec.threshold.unwrap_or(f64::INFINITY))?
        .with_max_clusters(spec.max_clusters)?;
    Ok(Box::new(process.with_likeliest_level(asked.penalty().map(|_| asked.seed()))))
}

impl Fitted for LocalGpModel {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn description(&self) -> Option<Description> {
        Some(Description::Map(self.spec().clone().into()))
    }

    regresses!(Predict::predict);

    fn variances(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Vec<f64>)> {
        let (mean, variance) = self.predict_with_variance(rows)?;
        let all = variance.insert_axis(Axis(1)).broadcast(mean.dim()).map(|v| v.to_owned());
        Ok((all.expect("one variance per row"), vec![self.noise_variance(); self.output_dim()]))
    }

    fn sentences(&self) -> Vec<String> {
        let count = count(self.centroids().nrows());
        vec![format!("a process of its own around each of {count} centres; a row is predicted by the nearest")]
    }

    fn to_stored(&self) -> Result<Stored> {
        let norms: Vec<f64> = self.locals().iter().map(|local| local.factor.norm_one()).collect();
        let mut header = Header::of_map(KIND, self.map())?;
        header.insert("noise_variance", &self.noise_variance())?;
        header.insert("signal_variance", &self.signal_variance())?;
        header.insert("norms", &norms)?;
        header.insert("published", &self.published)?;
        header.insert("threshold", &self.beyond.as_ref().map(|(threshold, ..)| *threshold))?;
        let (count, dim) = (self.locals().len(), self.locals()[0].factor.order());
        let rows = |local: &Local| (0..dim).flat_map(|i| local.factor.factor().row(i).to_vec()).collect::<Vec<f64>>();
        let factors: Vec<f64> = self.locals().iter().flat_map(rows).collect();
        let coefficients: Vec<f64> =
            self.locals().iter().flat_map(|local| local.coefficients.iter().copied().collect::<Vec<_>>()).collect();
        let centroids = self.centroids();
        let stored = Stored::new(header)
            .with("centroids", Tensor::of(vec![count, self.input_dim()], centroids.iter().copied())?)
            .with("coefficients", Tensor::of(vec![count * dim, self.output_dim()], coefficients)?)
            .with("factors", Tensor::of(vec![count, dim * (dim + 1) / 2], factors)?);
        Ok(match &self.beyond {
            Some((_, rows, targets)) => stored
                .with("rows", super::exact::matrix(rows.view())?)
                .with("targets", super::exact::matrix(targets.view())?),
            None => stored,
        })
    }
}

impl Load for LocalGpModel {
    fn load(stored: &Stored) -> Result<Self> {
        let Description::Map(Spec::Maclaurin(spec)) = stored.header.description()?.clone() else {
            return Err(malformed("a local Gaussian process has Maclaurin features"));
        };
        let (noise, signal) = (stored.header.part("noise_variance")?, stored.header.part("signal_variance")?);
        let norms: Vec<f64> = stored.header.part("norms")?;
        let map: DynMap<f64> = stored.draw()?;
        let dim = map.output_dim();
        let centroids: Array2<f64> = stored.matrix("centroids")?;
        let coefficients: Array2<f64> = stored.matrix("coefficients")?;
        let factors: Array2<f64> = stored.matrix("factors")?;
        let count = centroids.nrows();
        check_dim("number of factors", count, factors.nrows())?;
        check_dim("number of norms", count, norms.len())?;
        check_dim("number of values of a factor", dim * (dim + 1) / 2, factors.ncols())?;
        check_dim("number of coefficients", count.saturating_mul(dim), coefficients.nrows())?;
        let local = |(c, norm): (usize, f64)| {
            let factor = triangle(dim, &factors.row(c).to_vec())?;
            let coefficients = coefficients.slice(s![c * dim..(c + 1) * dim, ..]).to_owned();
            Ok(Local { factor: Cholesky::from_factor(factor, norm)?, coefficients })
        };
        let locals = norms.into_iter().enumerate().map(local).collect::<Result<Vec<_>>>()?;
        // Files of earlier versions have no rows.
        let beyond = match stored.header.part::<Option<f64>>("threshold")? {
            Some(threshold) => Some((threshold, stored.matrix("rows")?, stored.matrix("targets")?)),
            None => None,
        };
        // Files of 0.1.0 say nothing, and answer as they did.
        let published = stored.header.part::<Option<bool>>("published")?.unwrap_or(true);
        let model = LocalGpModel::from_parts(map, spec, centroids, locals, (noise, signal), beyond)?;
        Ok(LocalGpModel { published, ..model })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, kernel_matrix};
    use crate::metrics::gaussian_kl;
    use crate::rows::InMemory;

    /// Mean and variance of the exact posterior.
    fn exact(
        x: ArrayView2<'_, f64>,
        y: ArrayView2<'_, f64>,
        new: ArrayView2<'_, f64>,
        (scale, signal, noise): (f64, f64, f64),
    ) -> (Vec<f64>, Vec<f64>) {
        let kernel = Gaussian::new(scale).unwrap();
        let n = x.nrows();
        let mut k = kernel_matrix(&kernel, x, x).unwrap() * signal;
        (0..n).for_each(|i| k[[i, i]] += noise);
        let factor = Cholesky::new(Lower::from_square(k.as_slice().unwrap(), n).unwrap()).unwrap();
        let cross = kernel_matrix(&kernel, x, new).unwrap() * signal;
        let mut alpha = y.to_owned();
        factor.solve_in_place(TileMut::new(alpha.as_slice_mut().unwrap(), n, 1)).unwrap();
        let mut half = cross.clone();
        factor.solve_factor_in_place(TileMut::new(half.as_slice_mut().unwrap(), n, new.nrows())).unwrap();
        let mean = cross.t().dot(&alpha).column(0).to_vec();
        let variance = half.axis_iter(Axis(1)).map(|c| (signal - c.dot(&c)).max(0.0)).collect();
        (mean, variance)
    }

    /// `sin(ax)/x` with noise on `[-π, π]`, as in thesis 5.3.3 and 5.5.
    fn sinc(frequency: f64, noise: f64) -> (Array2<f64>, Array2<f64>) {
        let x = Array2::from_shape_fn((100, 1), |(i, _)| -3.0 + 6.0 * (i as f64 + 0.5) / 100.0);
        let mut draw = Stream::new(Seed::new(5), Role::Noise, 0);
        let y = x.mapv(|v: f64| (frequency * v).sin() / v + noise.sqrt() * draw.normal());
        (x, y)
    }

    fn plain() -> MaclaurinSpec {
        MaclaurinSpec {
            n_components: 10,
            weights: Weights::Real,
            sketch: SketchKind::Rademacher,
            ..MaclaurinSpec::default()
        }
    }

    #[test]
    fn localised_features_restore_the_posterior_of_the_sinc_example() {
        // Hyperparameters near those of the largest likelihood for frequency 5: a length scale of half a unit.
        let (scale, signal, noise) = (0.45, 3.0, 0.01);
        let (x, y) = sinc(5.0, noise);
        // Where there are rows.
        let new = Array2::from_shape_fn((121, 1), |(i, _)| -3.0 + 0.05 * i as f64);
        let (mean, variance) = exact(x.view(), y.view(), new.view(), (scale, signal, noise));
        let kl = |threshold: f64| {
            // Degrees 0 to 13 on both sides. With ten degrees the ratio is 5.8, with twenty 18: a numpy version of the
            // algorithm, exact in one dimension, gives the same figures.
            let spec = MaclaurinSpec { length_scale: scale.into(), n_components: 14, max_degree: 13, ..plain() };
            let gp = LocalGp::new(spec, noise).unwrap().with_signal_variance(signal).unwrap().as_published();
            let model = gp.with_threshold(threshold).unwrap().fit(x.view(), y.view()).unwrap();
            let (m, v) = model.predict_with_variance(new.view()).unwrap();
            let v = v.mapv(|v| v.max(1e-12)).insert_axis(Axis(1));
            let exact = |values: &[f64]| Array2::from_shape_vec((values.len(), 1), values.to_vec()).unwrap();
            let (mean, variance) = (exact(&mean), exact(&variance));
            let kl = gaussian_kl(m.view(), v.view(), mean.view(), variance.view()).unwrap();
            (model.centroids().nrows(), kl)
        };
        let (one, global) = kl(f64::INFINITY);
        let (many, local) = kl(0.1);
        assert!(one == 1 && many > 10);
        println!("KL to the exact posterior: {global} with one centroid, {local} with {many}");
        assert!(local * 10.0 <= global, "{local} with {many} centroids against {global}");
    }

    #[test]
    fn far_from_all_rows_the_prior_comes_back() {
        // Rows on [-3, 3], a length scale of 0.6, signal 4: near x = 5 the exact process knows little, at x = 8 nothing.
        let (scale, signal, noise) = (0.6, 4.0, 0.01);
        let (x, y) = sinc(5.0, noise);
        let spec = MaclaurinSpec { length_scale: scale.into(), n_components: 11, max_degree: 10, ..plain() };
        let gp = LocalGp::new(spec, noise).unwrap().with_signal_variance(signal).unwrap();
        let new = ndarray::array![[5.0], [8.0], [-40.0], [3.9]];
        let (mean, variance) = exact(x.view(), y.view(), new.view(), (scale, signal, noise));
        let model = gp.clone().fit(x.view(), y.view()).unwrap();
        let again = LocalGpModel::load(&Stored::from_bytes(&model.to_bytes().unwrap()).unwrap()).unwrap();
        for model in [model, again] {
            let (m, v) = model.predict_with_variance(new.view()).unwrap();
            for i in 0..3 {
                assert!((v[i].sqrt() - variance[i].sqrt()).abs() < 1e-3, "{} {}", v[i], variance[i]);
                assert!((m[[i, 0]] - mean[i]).abs() < 1e-3, "{} {}", m[[i, 0]], mean[i]);
            }
            assert!((v[1].sqrt() - 2.0).abs() < 1e-9 && m[[1, 0]].abs() < 1e-6, "{m} {v}");
            assert_eq!(m, model.predict(new.view()).unwrap());
        }
        // A single centre has no threshold; the missing prior variance is there all the same.
        let one = gp.with_threshold(f64::INFINITY).unwrap().fit(x.view(), y.view()).unwrap();
        let (_, v) = one.predict_with_variance(new.view()).unwrap();
        assert!((v[1].sqrt() - 2.0).abs() < 1e-6 && (v[2].sqrt() - 2.0).abs() < 1e-6, "{v}");
    }

    #[test]
    fn centroids_reproduce_the_prior_and_cover_all_rows() {
        let (x, y) = sinc(2.0, 0.01);
        let spec = MaclaurinSpec { length_scale: 0.5.into(), ..plain() };
        let gp = LocalGp::new(spec, 0.01).unwrap().with_signal_variance(2.5).unwrap();
        let model = gp.fit(x.view(), y.view()).unwrap();
        let features = model.map.transform(Array2::zeros((1, 1)).view()).unwrap();
        assert!((features.iter().map(|v| v * v).sum::<f64>() * 2.5 - 2.5).abs() < 1e-12);
        // Every row is nearer than two length scales to a centroid.
        for row in x.axis_iter(Axis(0)) {
            let near = model.centroids().iter().map(|c| (c - row[0]).abs()).fold(f64::INFINITY, f64::min);
            assert!(near < 1.0);
        }
    }

    #[test]
    fn one_centroid_is_ridge_regression_on_centred_features() {
        let (x, y) = sinc(2.0, 0.01);
        let spec = MaclaurinSpec { length_scale: 1.0.into(), ..plain() };
        // Without a threshold no row is a centre of its own.
        let gp = LocalGp::new(spec.clone(), 0.1).unwrap().with_threshold(f64::INFINITY).unwrap();
        let model = gp.fit(x.view(), y.view()).unwrap();
        let map = spec.resolve(x.view()).unwrap().build::<f64>(1).unwrap();
        let ridge = crate::model::Ridge::new(map, 0.1).unwrap().with_intercept(false);
        let ridge = ridge.fit(x.view(), y.view()).unwrap();
        let (a, b) = (model.predict(x.view()).unwrap(), ridge.predict(x.view()).unwrap());
        assert!((&a - &b).iter().all(|e| e.abs() < 1e-8));
        assert_eq!(a, model.predict_with_variance(x.view()).unwrap().0);
    }

    #[test]
    fn losses_from_shared_sums_are_those_of_separate_fits() {
        let (x, y) = sinc(3.0, 0.01);
        let (new, truth) = (x.slice(s![..;3, ..]), y.slice(s![..;3, ..]));
        let (rows, targets) = (x.slice(s![1..;3, ..]), y.slice(s![1..;3, ..]));
        let spec = MaclaurinSpec { length_scale: 0.5.into(), ..plain() };
        let noises = [1.0, 0.1, 0.01];
        let gp = |noise| LocalGp::new(spec.clone(), noise).unwrap().with_signal_variance(2.0).unwrap();
        let losses = gp(7.0).validate(&noises, (rows, targets), (new, truth)).unwrap();
        for (loss, noise) in losses.iter().zip(noises) {
            let model = gp(noise).fit(rows, targets).unwrap();
            assert!(model.centroids().nrows() > 1);
            let separate = (model.predict(new).unwrap() - truth).mapv(|e| e * e).mean().unwrap();
            assert!((loss - separate).abs() < 1e-10 * separate, "{loss} {separate}");
        }
        assert!(gp(1.0).validate(&[0.0], (rows, targets), (new, truth)).is_err());
        assert!(gp(1.0).validate(&noises, (rows, targets), (new, targets.slice(s![..5, ..]))).is_err());
    }

    #[test]
    fn ties_take_the_first_row_and_equal_rows_one_centroid() {
        let rows = ndarray::array![[1.0], [-1.0], [1.0], [-1.0]];
        let found = farthest_points(rows.view(), &[0.0], &LengthScale::Same(1.0), 0.5, 10);
        assert_eq!(found, ndarray::array![[0.0], [1.0], [-1.0]]);
        let same = farthest_points(Array2::ones((5, 1)).view(), &[1.0], &LengthScale::Same(1.0), 1e-300, 10);
        assert_eq!(same.nrows(), 1);
    }

    #[test]
    fn bad_parameters_are_named() {
        let exponential = MaclaurinSpec { kernel: MaclaurinKernel::Exponential, ..plain() };
        assert!(LocalGp::new(exponential, 0.1).is_err());
        assert!(LocalGp::new(plain(), 0.0).is_err());
        let gp = LocalGp::new(plain(), 0.1).unwrap();
        assert!(gp.clone().with_threshold(0.0).is_err() && gp.clone().with_max_clusters(0).is_err());
        let (x, y) = sinc(2.0, 0.01);
        let mut context = Context::default().with_memory_budget(1700).unwrap(); // enough for the rows
        let short = gp.fit_stream(&mut InMemory::new(x.view(), y.view()).unwrap(), &mut context).unwrap_err();
        assert!(short.to_string().contains("larger threshold"), "{short}");
        assert!(gp.fit(x.view(), y.slice(s![..5, ..])).is_err());
    }

    #[test]
    fn a_local_process_survives_a_file() {
        let x = Array2::from_shape_fn((40, 2), |(i, j)| ((i * (j + 3)) as f64 * 0.37).sin() * 2.0);
        let y = x.map_axis(ndarray::Axis(1), |row| row[0] * row[1]).insert_axis(ndarray::Axis(1));
        let spec = MaclaurinSpec { n_components: 33, length_scale: 0.8.into(), ..Default::default() };
        let model = LocalGp::new(spec, 0.05).unwrap().fit(x.view(), y.view()).unwrap();
        let stored = Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let again = LocalGpModel::load(&stored).unwrap();
        let (expected, found) =
            (model.predict_with_variance(x.view()).unwrap(), again.predict_with_variance(x.view()).unwrap());
        assert_eq!(expected, found);
        let mut damaged = stored.clone();
        damaged.header.extra["noise_variance"] = serde_json::Value::Null;
        assert!(LocalGpModel::load(&damaged).is_err());
    }
}

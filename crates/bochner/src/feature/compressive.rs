use super::scales::divided;
use super::{Describe, Directions, DynComplexMap, DynMap, FeatureMap, FourierSpec, Projected, ScaledProjection};
use crate::error::{Error, Result, check_count};
use crate::feature::DrawCost;
use crate::feature::spec::Candidate;
use crate::kernel::AnyKernel;
use crate::kernel::{self, Compression, Compressive, Kernel, Scaled};
use crate::parameter::{Domain, description, words};
use crate::preprocess::LengthScale;
use crate::projection::{Entries, Orthoprojector, Sampling, Srht};
use crate::random::Seed;
use crate::scalar::{Real, Scalar};
use crate::variance::{self, Form, Kind, Weights, map_pairs, orthoprojected_dot};
use ndarray::{Array2, ArrayView2};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

words! {
    /// The matrix `P` that compresses rows: `m` orthogonal directions, `E|Px|² = |x|²`.
    pub enum Orthoprojection {
        /// Orthonormalised normals: a uniformly random row space, and all closed forms.
        Gaussian = "gaussian",
        /// Orthonormalised signs.
        Sign = "sign",
        /// Coordinates of a randomised Hadamard transform: `O(d log d)` per row, nothing but signs stored.
        Srht = "srht",
    }
}

/// Runs the body with `$p` the projection and `$scale` what makes it an orthoprojector.
macro_rules! with_projector {
    ($kind:expr, $seed:expr, $d:expr, $m:expr, |$p:ident, $scale:ident| $body:expr) => {{
        let (seed, d, m) = (Seed::new($seed), $d, $m);
        let $scale = 1.0 / (m as f64).sqrt();
        match $kind {
            Orthoprojection::Gaussian => {
                let $p = Orthoprojector::<R>::new(seed, d, m, Entries::Gaussian)?;
                $body
            }
            Orthoprojection::Sign => {
                let $p = Orthoprojector::<R>::new(seed, d, m, Entries::Sign)?;
                $body
            }
            Orthoprojection::Srht => {
                let $p = Srht::<R, R>::new(seed, d, m, Sampling::Upsampled)?;
                $body
            }
        }
    }};
}

/// `m`, at most the `d` directions there are: with all of them a row is only turned.
fn measurements(name: &'static str, asked: usize, input_dim: usize) -> Result<usize> {
    check_count("number of columns of rows", input_dim)?;
    check_count(name, asked)?;
    Ok(asked.min(input_dim))
}

description! {
    /// Description of an orthoprojection `x ↦ Px`, with `P Pᵀ = (d/m) I`, as a sketch of the inner product.
    ///
    /// Its outputs are compressed measurements: they can be stored and used in place of the rows, by any map
    /// (Chang et al. 2016, section 3).
    ///
    /// ```
    /// use bochner::feature::{Describe, FeatureMap, OrthoProjectionSpec};
    /// let spec = OrthoProjectionSpec { n_components: 3, ..Default::default() };
    /// let map = spec.build::<f64>(10)?;
    /// assert_eq!((map.input_dim(), map.output_dim()), (10, 3));
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct OrthoProjectionSpec {
        /// Budget of measurements per row; no more are made than rows have columns, and all of them only turn a row.
        n_components: usize = 64, Domain::FEATURES, Size;
        /// What the directions are made from: orthonormalised normals, orthonormalised signs, or coordinates of a randomised
        /// Hadamard transform, which is fast in high dimensions.
        orthoprojector: Orthoprojection = Orthoprojection::Gaussian, Domain::Word(Orthoprojection::CHOICES), Draw;
    }
    map "ortho_projection" for [], "compressed measurements":
        "Projections of rows on random orthogonal directions, which keep inner products on average.";
}

impl OrthoProjectionSpec {
    fn outputs(&self, input_dim: usize) -> Result<usize> {
        measurements("n_components", self.n_components, input_dim)
    }
}

impl Describe for OrthoProjectionSpec {
    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let outputs = self.n_components.min(input_dim);
        match self.orthoprojector {
            Orthoprojection::Srht => DrawCost::listed(input_dim),
            _ => DrawCost::orthogonal(outputs, input_dim),
        }
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        with_projector!(self.orthoprojector, self.seed, input_dim, self.outputs(input_dim)?, |p, scale| {
            Ok(Arc::new(ScaledProjection::new(p, scale)?))
        })
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(kernel::Polynomial::new(1, 1.0, 0.0)?))
    }

    /// Closed forms for uniform row spaces ([`orthoprojected_dot`]) and for Hadamard coordinates.
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (d, m) = (x.ncols(), self.outputs(x.ncols())?);
        match self.orthoprojector {
            Orthoprojection::Gaussian => self.variance_iid(x, y),
            Orthoprojection::Srht => {
                let sketch = variance::Sketch::new(Kind::SrhtUpsampled, Weights::Real, 1, m, d)?;
                map_pairs(x, y, |stats| sketch.variance(stats))
            }
            Orthoprojection::Sign => Err(no_closed_form("orthonormalised signs")),
        }
    }

    /// The variance of a uniformly random row space: exact for normals, a figure to compare with for the others.
    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (d, m) = (x.ncols(), self.outputs(x.ncols())?);
        map_pairs(x, y, |stats| orthoprojected_dot(stats, d, m))
    }
}

fn no_closed_form(of: &str) -> Error {
    Error::Unsupported {
        what: "variance",
        reason: format!(
            "{of} have no closed form; that of a uniformly random row space with independent frequencies \
             (variance_iid, or orthoprojector \"gaussian\" with projection \"gaussian\") is the figure to compare with"
        ),
    }
}

description! {
    /// Description of compressive Fourier features: rows are compressed to `m` measurements by one orthoprojector, of which
    /// Fourier features of the Gaussian kernel are taken.
    ///
    /// # Estimate
    /// The limit is not the Gaussian kernel of the rows but its expectation over `P`, [`Compressive`], which
    /// [`kernel`](Describe::kernel) gives; the variance keeps a part that more frequencies do not reduce
    /// ([`variance::compressive`]). Closed forms hold for the Gaussian orthoprojector, a uniformly random row space; signs and
    /// Hadamard coordinates come close to it for rows that are not sparse.
    ///
    /// # Cost
    /// `O(dm + mM)` per row instead of `O(dM)`.
    ///
    /// # References
    /// Chang, Sankaranarayanan and Kumar 2016.
    ///
    /// ```
    /// use bochner::feature::{CompressiveSpec, Describe, FeatureMap};
    /// let spec = CompressiveSpec { n_components: 64, compressed_dim: 5, ..Default::default() };
    /// let rows = ndarray::Array2::<f64>::from_shape_fn((4, 20), |(i, j)| ((i * 20 + j) as f64).sin());
    /// let features = spec.build(20)?.transform(rows.view())?;
    /// // Measurements can be stored in place of the rows.
    /// let measurements = spec.measurements().build(20)?.transform(rows.view())?;
    /// assert_eq!(features, spec.fourier().build(5)?.transform(measurements.view())?);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct CompressiveSpec {
        /// Budget of output columns; one fewer is used where they come in pairs and the budget is odd.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// Budget of measurements per row; no more are made than rows have columns.
        compressed_dim: usize = 64, Domain::COUNT, Kernel;
        /// What the directions of the measurements are made from: orthonormalised normals, orthonormalised signs, or coordinates
        /// of a randomised Hadamard transform, which is fast in high dimensions.
        orthoprojector: Orthoprojection = Orthoprojection::Gaussian, Domain::Word(Orthoprojection::CHOICES), Draw;
        /// Distance over which the kernel falls off, one for all columns or one for each, by which rows are divided before they
        /// are compressed; `median` takes the median distance between rows. Rows of numbers are a matrix by which rows are
        /// multiplied.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel;
        /// How frequencies are drawn.
        projection: Directions = Directions::Gaussian, Domain::Word(Directions::CHOICES), Draw;
        /// Pairs of cosine and sine, a cosine with a random offset, or complex exponentials (complex output).
        form: Form = Form::CosSin, Domain::Word(Form::CHOICES), Draw;
    }
    map "compressive" for ["compressive"], "compressive features":
        "Fourier features of rows that an orthoprojector has compressed.";
}

/// Label of the seed's child from which frequencies are drawn; the orthoprojector has the seed itself.
const FREQUENCIES: u64 = 1;

impl CompressiveSpec {
    /// The first step, with the same seed: rows to measurements, which can be stored in place of the rows. Where columns have
    /// length scales of their own, rows are divided by them before.
    pub fn measurements(&self) -> OrthoProjectionSpec {
        OrthoProjectionSpec { n_components: self.compressed_dim, orthoprojector: self.orthoprojector, seed: self.seed }
    }

    /// The second step: Fourier features of measurements.
    pub fn fourier(&self) -> FourierSpec {
        let length_scale = match &self.length_scale {
            LengthScale::PerInput(_) | LengthScale::Metric(_) => LengthScale::Same(1.0),
            common => common.clone(),
        };
        FourierSpec {
            n_components: self.n_components,
            length_scale,
            projection: self.projection,
            form: self.form,
            seed: Seed::new(self.seed).child(FREQUENCIES).number(),
            ..FourierSpec::default()
        }
    }

    /// A map of measurements as one of rows.
    fn behind_projector<R: Real, O: Scalar<Real = R>>(
        &self,
        input_dim: usize,
        map: impl FnOnce(usize) -> Result<Arc<dyn FeatureMap<Real = R, Output = O>>>,
    ) -> Result<Arc<dyn FeatureMap<Real = R, Output = O>>> {
        let m = self.dim(input_dim)?;
        // A common length scale is that of the second step.
        divided(&self.length_scale, input_dim, |_| {
            let map = map(m)?;
            with_projector!(self.orthoprojector, self.seed, input_dim, m, |p, scale| {
                Ok(Arc::new(Projected::new(p, scale, map)?))
            })
        })
    }

    /// Measurements per row of length `input_dim`.
    fn dim(&self, input_dim: usize) -> Result<usize> {
        measurements("compressed_dim", self.compressed_dim, input_dim)
    }
}

impl Describe for CompressiveSpec {
    fn candidates(kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        let AnyKernel::Compressive(k) = kernel else { return Ok(Vec::new()) };
        let (compressed_dim, length_scale) = (k.output_dim(), LengthScale::Same(k.length_scale()));
        let base = CompressiveSpec { compressed_dim, length_scale, ..CompressiveSpec::default() };
        let ways = [
            ("compressive", Orthoprojection::Gaussian),
            ("compressive, signs", Orthoprojection::Sign),
            ("compressive, SRHT", Orthoprojection::Srht),
        ];
        let named = |(name, orthoprojector)| Candidate::new(name, CompressiveSpec { orthoprojector, ..base.clone() });
        Ok(ways.map(named).into())
    }

    fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        let length_scale = self.length_scale.resolve(sample, Seed::new(self.seed))?;
        Ok(CompressiveSpec { length_scale, ..self.settle(sample.ncols())? })
    }

    fn settle(&self, input_dim: usize) -> Result<Self> {
        let projection = self.fourier().directions(self.dim(input_dim)?)?;
        Ok(CompressiveSpec { projection, ..self.clone() })
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let measured = self.compressed_dim.min(input_dim);
        self.measurements().draw_cost(input_dim).and(self.fourier().draw_cost(measured))
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        self.behind_projector(input_dim, |m| self.fourier().draw::<R>(m))
    }

    fn draw_complex<R: Real>(&self, input_dim: usize) -> Result<DynComplexMap<R>> {
        self.behind_projector(input_dim, |m| self.fourier().draw_complex::<R>(m))
    }

    /// The limit kernel of a uniformly random row space; see the notes on the estimate.
    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        check_count("compressed_dim", self.compressed_dim)?;
        Scaled::by(&self.length_scale, |scale| {
            crate::error::check_positive("length_scale", scale)?;
            Ok(Arc::new(Limit { measurements: self.compressed_dim, scale, kernel: OnceLock::new() }))
        })
    }

    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        if self.orthoprojector != Orthoprojection::Gaussian {
            return Err(no_closed_form("orthonormalised signs and Hadamard coordinates"));
        }
        if self.fourier().directions(self.dim(x.ncols())?)? != Directions::Gaussian {
            return Err(no_closed_form("dependent frequencies of compressed rows"));
        }
        self.variance_iid(x, y)
    }

    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let kernel = limit(x.ncols(), self.dim(x.ncols())?, 1.0)?;
        let (x, y) = (self.length_scale.divide(x)?, self.length_scale.divide(y)?);
        variance::compressive_matrix(self.form, &kernel, self.fourier().frequencies()?, x.view(), y.view())
    }
}

fn limit(input_dim: usize, measurements: usize, scale: f64) -> Result<Compressive> {
    Compressive::new(Compression::Orthoprojector, input_dim, measurements.min(input_dim), scale)
}

/// [`Compressive`] for rows of whatever length comes first.
#[derive(Debug)]
struct Limit {
    measurements: usize,
    scale: f64,
    kernel: OnceLock<Option<Compressive>>,
}

impl Kernel for Limit {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        let make = || limit(x.len(), self.measurements, self.scale).ok();
        let mut value = [kernel::distance_sq(x, y)];
        match self.kernel.get_or_init(make) {
            Some(kernel) if kernel.input_dim() == x.len() => kernel.map_distances_sq(&mut value),
            _ => make().is_some_and(|kernel| kernel.map_distances_sq(&mut value)),
        };
        value[0]
    }
}

/// How far a projection is from an isometry: `|P(x - y)|²/|x - y|²` over pairs of rows and seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distortion {
    /// Mean of the ratio; 1 for every orthoprojection.
    pub mean: f64,
    /// Standard deviation of the ratio.
    pub deviation: f64,
    /// Largest `|ratio - 1|`.
    pub worst: f64,
}

/// Measures the distortion of differences of consecutive rows under `measurements` directions, one draw per seed.
///
/// Rows that equal their predecessor say nothing and are left out. For normals the squared deviation is
/// [`variance::orthoprojected_norm`].
///
/// # Errors
/// No measurements, no two different rows, NaN or infinities.
pub fn distortion(
    orthoprojector: Orthoprojection,
    measurements: usize,
    rows: ArrayView2<'_, f64>,
    seeds: Range<u64>,
) -> Result<Distortion> {
    check_count("number of seeds", seeds.end.saturating_sub(seeds.start) as usize)?;
    crate::rows::check_finite("rows", rows, 0)?;
    let norm_sq = |row: ndarray::ArrayView1<'_, f64>| row.dot(&row);
    let mut differences = Array2::zeros((rows.nrows().saturating_sub(1), rows.ncols()));
    for (i, mut row) in differences.rows_mut().into_iter().enumerate() {
        row.assign(&(&rows.row(i + 1) - &rows.row(i)));
        let norm = norm_sq(row.view()).sqrt();
        if norm > 0.0 {
            row /= norm;
        }
    }
    let kept: Vec<usize> = (0..differences.nrows()).filter(|&i| norm_sq(differences.row(i)) > 0.5).collect();
    check_count("number of rows that differ from the one before", kept.len())?;
    let units = differences.select(ndarray::Axis(0), &kept);
    let (mut count, mut sum, mut squares, mut worst) = (0.0, 0.0, 0.0, 0.0f64);
    for seed in seeds {
        let spec = OrthoProjectionSpec { n_components: measurements, orthoprojector, seed };
        for row in spec.build::<f64>(rows.ncols())?.transform(units.view())?.rows() {
            let off = norm_sq(row) - 1.0;
            (count, sum, squares, worst) = (count + 1.0, sum + off, squares + off * off, worst.max(off.abs()));
        }
    }
    let mean: f64 = sum / count;
    Ok(Distortion { mean: 1.0 + mean, deviation: (squares / count - mean * mean).max(0.0).sqrt(), worst })
}

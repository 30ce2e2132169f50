//! Spherical features: cosines and sines for polynomial kernels of unit rows.

mod radial;

pub use radial::{Bias, RadialDensity, RadialFit};

use super::{Describe, Directions, DynMap, FeatureMap, Fourier, Frequencies, Piece, Prediction};
use crate::error::{Error, Result, check_count};
use crate::feature::DrawCost;
use crate::feature::MAX_DEGREE;
use crate::feature::spec::Candidate;
use crate::kernel::AnyKernel;
use crate::kernel::{self, Kernel, Normalized, kernel_matrix, normalize};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::parameter::{Domain, description};
use crate::projection::{Cotangents, Given, HadamardChain, Orthogonal, Projection};
use crate::random::{Role, Seed, Stream};
use crate::scalar::{Real, Scalar};
use crate::variance::{Form, fourier_matrix, paired};
use ndarray::{Array2, ArrayView1, ArrayView2, Zip};
use radial::Covariance;
use std::sync::Arc;

/// Rows divided by their lengths, then a map. Zero rows have no direction and are refused.
#[derive(Debug, Clone)]
pub struct UnitRows<M> {
    map: M,
}

impl<M: FeatureMap> UnitRows<M> {
    /// `map` of the rows' directions.
    pub fn new(map: M) -> Self {
        UnitRows { map }
    }

    /// The map behind it.
    pub fn map(&self) -> &M {
        &self.map
    }
}

impl<M: FeatureMap> FeatureMap for UnitRows<M> {
    type Real = M::Real;
    type Output = M::Output;

    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.map.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, M::Real>, out: TileMut<'_, M::Output>, work: &mut Workspace<M::Real>) {
        let (n, d) = (rows.rows(), rows.cols());
        let mut unit = work.take(n * d);
        for i in 0..n {
            normalize(rows.row(i), &mut unit[i * d..][..d]);
        }
        self.map.map_tile(Tile::new(&unit, n, d), out, work);
        work.give(unit);
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, M::Real>,
        from: Cotangents<'_, M::Real>,
        mut out: TileMut<'_, M::Real>,
        work: &mut Workspace<M::Real>,
    ) {
        let (n, d) = (rows.rows(), rows.cols());
        let (mut unit, mut pulled) = (work.take(n * d), work.take(n * d));
        for (i, unit) in unit.chunks_exact_mut(d).enumerate() {
            normalize(rows.row(i), unit);
        }
        pulled.fill(M::Real::ZERO);
        self.map.pull_tile(Tile::new(&unit, n, d), from, TileMut::new(&mut pulled, n, d), work);
        for (i, (unit, pulled)) in unit.chunks_exact(d).zip(pulled.chunks_exact(d)).enumerate() {
            // Along the row nothing changes.
            let product = |a: &[M::Real], b: &[M::Real]| -> f64 {
                a.iter().zip(b).map(|(a, b)| Real::to_f64(*a) * Real::to_f64(*b)).sum()
            };
            let (along, length) = (product(unit, pulled), product(unit, rows.row(i)));
            let numbers = unit.iter().zip(pulled).map(|(v, g)| (Real::to_f64(*g) - along * Real::to_f64(*v)) / length);
            out.row_mut(i).iter_mut().zip(numbers).for_each(|(o, v)| *o += M::Real::from_f64(v));
        }
        work.give(unit);
        work.give(pulled);
    }

    fn check_pullback(&self) -> Result<()> {
        self.map.check_pullback()
    }

    fn check_tile(&self, rows: Tile<'_, M::Real>) -> Result<()> {
        let zero = |i: &usize| rows.row(*i).iter().all(num_traits::Zero::is_zero);
        match (0..rows.rows()).find(zero) {
            Some(row) => Err(Error::Row { row, reason: "is zero and has no direction".into() }),
            None => Ok(()),
        }
    }

    fn tile_rows(&self) -> usize {
        self.map.tile_rows()
    }

    fn operations(&self) -> u64 {
        self.map.operations()
    }

    fn pieces(&self) -> Result<Piece<M::Real>> {
        Ok(Piece::chain([Piece::new("unit"), self.map.pieces()?]))
    }
}

description! {
    /// Description of spherical features of the kernel `(1 - |x - y|²/A²)ᵖ` of rows divided by their lengths.
    ///
    /// Every function `∫ Λ_d(r|x - y|) ρ(r) dr` with a density `ρ` of radii has Fourier features: frequencies of uniform
    /// direction and of length drawn from `ρ`. The density is fitted to the kernel over distances from 0 to 2 ([`RadialFit`]).
    ///
    /// # Estimate
    /// Biased by what no density can represent, for any number of features: [`bias`](Self::bias) says how much. Around its own
    /// mean `k̂` the estimate of `M` independent frequencies varies by `(½ + ½k̂(2z) - k̂(z)²)/M` at distance `z`. Kernels with
    /// `A` near `√2` are nearly homogeneous polynomials, which have no such features; sketches have
    /// ([`PolynomialSpec`](super::PolynomialSpec)).
    ///
    /// # Cost
    /// That of [`Fourier`]; the fit takes some hundredths of a second per map.
    ///
    /// # References
    /// Pennington, Yu and Kumar 2015; thesis 2.2.4 with errata T1 and T2 (constant of the radial density, basis in high
    /// dimensions); `docs/mathematics/spherical_features.md`.
    ///
    /// ```
    /// use bochner::feature::{Describe, SphericalSpec};
    /// let spec = SphericalSpec { n_components: 4096, degree: 7, ..SphericalSpec::default() };
    /// assert!(spec.bias(3)?.sup < 0.03);
    /// let features = spec.build::<f64>(3)?.transform(ndarray::array![[2.0, 0.0, 0.0], [0.3, 0.4, 0.0]].view())?;
    /// let estimate = features.row(0).dot(&features.row(1));
    /// assert!((estimate - 0.8f64.powi(7)).abs() < 0.1);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct SphericalSpec {
        /// Budget of output columns; one fewer is used if it is odd.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// Exponent of `(1 - |x - y|^2/a^2)^degree`, at most 64.
        degree: u32 = 3, Domain::Whole(0, MAX_DEGREE as u64), Kernel;
        /// Width of the kernel, at least the root of 2. Near that it is a homogeneous polynomial, which such features cannot
        /// represent well (polynomial sketches can).
        a: f64 = 2.0, Domain::Real(std::f64::consts::SQRT_2, f64::INFINITY), Kernel;
        /// How directions are drawn.
        projection: Directions = Directions::Auto, Domain::Word(Directions::CHOICES), Draw;
        /// How the density of radii is found: weights on a grid of radii by non-negative least squares, or the clipped mixture of
        /// normals of the paper.
        #[serde(alias = "fit")]
        radial_fit: RadialFit = RadialFit::Convex, Domain::Word(RadialFit::CHOICES), Draw;
    }
    map "spherical" for ["spherical"], "spherical features":
        "Fourier features of polynomial kernels of rows divided by their lengths.";
}

/// Label of the seed's child from which radii are drawn.
const RADII: u64 = 1;

impl SphericalSpec {
    /// Number of frequencies `M`.
    ///
    /// # Errors
    /// A budget without room for one.
    pub fn frequencies(&self) -> Result<usize> {
        match self.n_components {
            0 | 1 => {
                Err(Error::parameter("n_components", "at least 2 for pairs of cosine and sine", self.n_components))
            }
            n => Ok(n / 2),
        }
    }

    fn unit_kernel(&self) -> Result<kernel::Spherical> {
        if self.degree > super::MAX_DEGREE {
            return Err(Error::parameter("degree", "at most 64", self.degree));
        }
        kernel::Spherical::new(self.degree, self.a)
    }

    /// The fitted distribution of radii for rows of length `input_dim`.
    ///
    /// Hadamard chains have directions in the padded dimension, and a density of their own.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn radial_density(&self, input_dim: usize) -> Result<RadialDensity> {
        check_count("number of columns of rows", input_dim)?;
        let dim = match self.projection.choose(input_dim, self.frequencies()?) {
            Directions::Sorf => input_dim.checked_next_power_of_two().unwrap_or(input_dim),
            _ => input_dim,
        };
        RadialDensity::fit(&self.unit_kernel()?, dim, self.radial_fit)
    }

    /// How far the mean of the estimate is from the kernel for rows of length `input_dim`: what no number of features
    /// takes away. (Hadamard chains are not exactly uniform and add about `1/d'` of their own.)
    ///
    /// # Errors
    /// As [`radial_density`](Self::radial_density).
    pub fn bias(&self, input_dim: usize) -> Result<Bias> {
        Ok(self.radial_density(input_dim)?.bias())
    }

    /// Variance with orthogonal directions in blocks of `block`.
    fn variance_in_blocks(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>, block: usize) -> Result<Array2<f64>> {
        let mut variance = self.variance_iid(x, y)?;
        let density = self.radial_density(x.ncols())?;
        let pairs = paired(block, self.frequencies()?);
        let covariance = kernel_matrix(&Covariance(&density), unit_rows(x).view(), unit_rows(y).view())?;
        Zip::from(&mut variance).and(&covariance).for_each(|v, c| *v = (*v + pairs * c).max(0.0));
        Ok(variance)
    }
}

fn finish<R: Real, P: Projection<Real = R, Output = R> + 'static>(frequencies: Frequencies<P>) -> Result<DynMap<R>> {
    Ok(Arc::new(UnitRows::new(Fourier::cos_sin(frequencies))))
}

/// Rows divided by their lengths.
fn unit_rows(rows: ArrayView2<'_, f64>) -> Array2<f64> {
    let mut out = rows.as_standard_layout().into_owned();
    for mut row in out.rows_mut() {
        let copy = row.to_vec();
        normalize(&copy, row.as_slice_mut().expect("rows of a standard layout"));
    }
    out
}

/// Distance from 1 up to which rows count as rows of length 1.
const UNIT: f64 = 1e-6;

impl Describe for SphericalSpec {
    /// On unit rows `(γ⟨x, y⟩ + ν)ᵖ` is `(γ + ν)ᵖ` times the spherical kernel with `a² = 2(γ + ν)/γ`. Homogeneous kernels
    /// (`A = √2`) have no density of radii worth trying.
    fn candidates(kernel: &AnyKernel, rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        let unit = |row: ArrayView1<'_, f64>| (row.dot(&row) - 1.0).abs() <= UNIT;
        let (degree, a, factor) = match kernel {
            AnyKernel::Spherical(k) => (k.degree(), k.a(), 1.0),
            AnyKernel::Polynomial(k) if k.coef0() > 0.0 && rows.rows().into_iter().all(unit) => {
                let sum = k.gamma() + k.coef0();
                (k.degree(), (2.0 * sum / k.gamma()).sqrt(), sum.powi(k.degree() as i32))
            }
            _ => return Ok(Vec::new()),
        };
        let ways =
            [("dense", Directions::Gaussian), ("orthogonal", Directions::Orthogonal), ("SORF", Directions::Sorf)];
        let named = |(name, projection)| Candidate {
            name: format!("spherical, {name}"),
            spec: SphericalSpec { degree, a, projection, ..SphericalSpec::default() }.into(),
            factor,
        };
        Ok(ways.map(named).into())
    }

    fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        self.settle(sample.ncols())
    }

    fn settle(&self, input_dim: usize) -> Result<Self> {
        Ok(SphericalSpec { projection: self.projection.choose(input_dim, self.frequencies()?), ..self.clone() })
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let count = self.n_components / 2;
        self.projection.choose(input_dim, count.max(1)).draw_cost(count, input_dim).and(DrawCost::listed(count))
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        let (seed, m) = (Seed::new(self.seed), self.frequencies()?);
        let density = self.radial_density(input_dim)?;
        let radius = |j: usize| density.sample(&mut Stream::new(seed.child(RADII), Role::Radius, j as u64));
        match self.projection.choose(input_dim, m) {
            Directions::Sorf => {
                let chain = HadamardChain::<R>::new(seed, input_dim, m)?;
                let length = (chain.padded_dim() as f64).sqrt();
                let radii = (0..m).map(|j| radius(j) / length).collect();
                finish(Frequencies::new(chain).with_radii(radii)?)
            }
            Directions::Orthogonal => {
                finish(Frequencies::new(Orthogonal::<R>::with_lengths(seed, input_dim, m, radius)?))
            }
            Directions::Gaussian | Directions::Auto => {
                finish(Frequencies::new(Given::<R>::given(input_dim, m, |j, row| {
                    let mut draw = Stream::new(seed, Role::Direction, j as u64);
                    let mut norm = 0.0;
                    while norm == 0.0 {
                        row.fill_with(|| draw.normal());
                        norm = row.iter().map(|w| w * w).sum::<f64>().sqrt();
                    }
                    let length = radius(j) / norm;
                    row.iter_mut().for_each(|w| *w *= length);
                })?))
            }
        }
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Normalized::new(self.unit_kernel()?)))
    }

    /// Variance of the estimate around its own mean, which is the kernel but for [`bias`](SphericalSpec::bias).
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        match self.projection.choose(x.ncols(), self.frequencies()?) {
            Directions::Gaussian | Directions::Auto => self.variance_iid(x, y),
            Directions::Orthogonal => self.variance_in_blocks(x, y, x.ncols()),
            Directions::Sorf => Err(Error::Unsupported {
                what: "variance",
                reason:
                    "Hadamard chains have no closed form; that of independent directions (variance_iid, or projection \
                         \"gaussian\") is the figure to compare with"
                        .into(),
            }),
        }
    }

    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let density = self.radial_density(x.ncols())?;
        fourier_matrix(Form::CosSin, &density, self.frequencies()?, unit_rows(x).view(), unit_rows(y).view())
    }

    /// Hadamard chains are taken for uniformly random orthogonal directions in the padded dimension.
    fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
        let (closed_form, variance) = match self.projection.choose(x.ncols(), self.frequencies()?) {
            Directions::Sorf => {
                Directions::check_chain(x.ncols())?;
                (false, self.variance_in_blocks(x, y, x.ncols().next_power_of_two())?)
            }
            _ => (true, self.variance(x, y)?),
        };
        let density = self.radial_density(x.ncols())?;
        let (u, v) = (unit_rows(x), unit_rows(y));
        let mean = kernel_matrix(&density, u.view(), v.view())?;
        let bias = mean - kernel_matrix(&self.unit_kernel()?, u.view(), v.view())?;
        Ok(Prediction { bias: Some(bias), variance, closed_form })
    }
}

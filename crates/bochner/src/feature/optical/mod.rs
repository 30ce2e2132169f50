//! Optical features: moduli of complex random projections, as a light-scattering processor measures them.
//!
//! The way of a row: an [`Encoding`] makes it binary (or nothing does), a bias coordinate is appended, a [`Device`]
//! returns intensities `|Ux|²`, and their power `m/2` is the feature. The [`Simulator`] computes intensities from any
//! complex projection and reads them through a [`Camera`], if it has one.

mod device;
mod encoding;
mod spec;

pub use device::{Camera, Device, DynProjection, Recovered, Simulator};
pub use encoding::{Encoding, choose_threshold};
pub use spec::{OpticalProjection, OpticalSpec};

use super::{FeatureMap, Lift, Piece};
use crate::error::{Error, Result, check_dim, check_positive};
use crate::linalg::gemm::matmul_nt;
use crate::linalg::{Power, Tile, TileMut, Workspace};
use crate::projection::{Cotangents, Parts, Projection, panels, wide};
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2};

/// Optical random features `φ(x) = D^{-1/2} |Ux|^m` for every real `m > 0`.
///
/// `U` is a complex projection with unit variance; `|Ux|²` comes from a [`Device`].
///
/// # Estimate
/// With complex normal `U` unbiased for the optical kernel `k_m` ([`crate::kernel::Optical`]), such as
/// `|x|²|y|² + ⟨x, y⟩²` for `m = 2`; variance `(k_{2m} − k_m²)/D` ([`crate::variance::optical`]). A Hadamard chain in
/// place of `U` is biased by about `1/d'`: [`OpticalSpec`] corrects most of it, `docs/mathematics/optical.md` measures the
/// rest. A camera adds its own errors.
///
/// # Cost
/// That of the projection and a few operations per feature. Intensities are raised to their power while in cache: a
/// product for even `m`, a root for odd ones, a logarithm and an exponential in between.
///
/// # References
/// Saade et al. 2016 (`m = 1`); Ohana et al. 2020, section 2 (even `m`); thesis 6.2.
///
/// ```
/// use bochner::feature::{FeatureMap, OpticalFeatures};
/// use bochner::projection::DenseGaussian;
/// use bochner::{Complex, random::Seed};
/// let map = OpticalFeatures::new(DenseGaussian::<f64, Complex<f64>>::new(Seed::new(7), 2, 20_000)?, 2.0)?;
/// let z = map.transform(ndarray::array![[1.0, 2.0], [3.0, 0.0]].view())?;
/// let estimate = z.row(0).dot(&z.row(1));
/// assert!((estimate / 54.0 - 1.0).abs() < 0.1);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OpticalFeatures<D: Device> {
    device: D,
    exponent: f64,
    weight: f64,
    encoding: Option<Encoding>,
    lift: Lift,
    input_dim: usize,
}

/// The name of [`OpticalFeatures`] up to version 0.1.
#[deprecated(since = "0.2.0", note = "there is a kernel of this name: `OpticalFeatures`")]
pub type Optical<D> = OpticalFeatures<D>;

impl<R: Real, P: Projection<Real = R, Output = R::Complex>> OpticalFeatures<Simulator<P>> {
    /// Features `|Ux|^exponent / √D` of the projection `U`, without noise or camera.
    ///
    /// # Errors
    /// An exponent that is not a positive finite number.
    pub fn new(projection: P, exponent: f64) -> Result<Self> {
        OpticalFeatures::over(Simulator::new(projection), exponent)
    }
}

impl<D: Device> OpticalFeatures<D> {
    /// Features `I^(exponent/2) / √D` of the intensities `I` of a device.
    ///
    /// # Errors
    /// An exponent that is not a positive finite number.
    pub fn over(device: D, exponent: f64) -> Result<Self> {
        check_positive("exponent", exponent)?;
        let input_dim = device.input_dim();
        Ok(OpticalFeatures { device, exponent, weight: 1.0, encoding: None, lift: Lift::IDENTITY, input_dim })
    }

    /// The same features with the coordinate `√bias` appended to every (encoded) row: the device's last input is that
    /// coordinate.
    ///
    /// # Errors
    /// A negative bias, or a device without room for the coordinate.
    pub fn with_bias(self, bias: f64) -> Result<Self> {
        crate::error::check_non_negative("bias", bias)?;
        OpticalFeatures { lift: Lift::new(1.0, bias)?, ..self }.settle()
    }

    /// The same features of encoded rows.
    ///
    /// # Errors
    /// An encoding out of range, or one that does not fill the device's inputs.
    pub fn with_encoding(self, encoding: Encoding) -> Result<Self> {
        OpticalFeatures { encoding: Some(encoding), ..self }.settle()
    }

    /// All features times `weight`: a correction of the projection's moments.
    pub(crate) fn with_weight(self, weight: f64) -> Self {
        OpticalFeatures { weight, ..self }
    }

    fn settle(mut self) -> Result<Self> {
        self.encoding.as_ref().map_or(Ok(()), Encoding::check_bits)?;
        let planes = self.encoding.as_ref().map_or(1, Encoding::planes);
        let encoded = self.device.input_dim() - usize::from(self.lift.bias > 0.0);
        self.input_dim = encoded / planes;
        if encoded == 0 || !encoded.is_multiple_of(planes) {
            return Err(Error::Dimension {
                what: "number of inputs of the device",
                expected: self.lift.output_dim(planes * self.input_dim.max(1)),
                found: self.device.input_dim(),
            });
        }
        if let Some(encoding) = &self.encoding {
            encoding.check(self.input_dim)?;
        }
        Ok(self)
    }

    /// `m`.
    pub fn exponent(&self) -> f64 {
        self.exponent
    }

    /// Where intensities come from.
    pub fn device(&self) -> &D {
        &self.device
    }
}

impl<D: Device> FeatureMap for OpticalFeatures<D> {
    type Real = D::Real;
    type Output = D::Real;

    fn input_dim(&self) -> usize {
        self.input_dim
    }

    fn output_dim(&self) -> usize {
        self.device.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, D::Real>, mut out: TileMut<'_, D::Real>, work: &mut Workspace<D::Real>) {
        let (n, total) = (rows.rows(), self.output_dim());
        let power = Power::of_modulus(self.exponent);
        let scale = D::Real::from_f64(self.weight / (total as f64).sqrt());
        let planes = self.encoding.as_ref().map_or(1, Encoding::planes);
        let (d, lifted) = (planes * rows.cols(), self.device.input_dim());
        let mut encoded = work.take(if self.encoding.is_some() { n * d } else { 0 });
        let mut raised = work.take(if lifted > d { n * lifted } else { 0 });
        let rows = match &self.encoding {
            None => rows,
            Some(encoding) => {
                for (i, to) in encoded.chunks_exact_mut(d).enumerate() {
                    encoding.encode(rows.row(i), to);
                }
                Tile::new(&encoded, n, d)
            }
        };
        let rows = if lifted > d {
            self.lift.lift_into(rows, 1.0, &mut raised);
            Tile::new(&raised, n, lifted)
        } else {
            rows
        };
        for columns in panels(total, wide::<D::Real>(self.device.panel())) {
            self.device.powers(rows, columns.clone(), power, scale, out.columns_mut(columns), work);
        }
        work.give(encoded);
        work.give(raised);
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, D::Real>,
        from: Cotangents<'_, D::Real>,
        out: TileMut<'_, D::Real>,
        work: &mut Workspace<D::Real>,
    ) {
        let Some(projection) = self.device.projection() else { return };
        let (n, total, lifted) = (rows.rows(), self.output_dim(), self.device.input_dim());
        let scale = D::Real::from_f64(self.weight * self.exponent / (total as f64).sqrt());
        let mut raised = work.take(n * lifted);
        self.lift.lift_into(rows, 1.0, &mut raised);
        let rows = Tile::new(&raised, n, lifted);
        let panel = wide::<D::Real>(self.device.panel()).min(total);
        let (mut re, mut im) = (work.take(n * panel), work.take(n * panel));
        self.lift.pull_into(out, work, |mut out, work| {
            for columns in panels(total, panel) {
                let m = columns.len();
                let parts = Parts::new(TileMut::new(&mut re, n, m), TileMut::new(&mut im, n, m));
                projection.project_tile_split(rows, columns.clone(), parts, work);
                for i in 0..n {
                    let (re, im) = (&mut re[i * m..][..m], &mut im[i * m..][..m]);
                    slopes(self.exponent, scale, &from.re.row(i)[columns.clone()], re, im);
                }
                let parts = Cotangents::new(Tile::new(&re, n, m), Tile::new(&im, n, m));
                projection.pull_tile(parts, columns, out.reborrow(), work);
            }
        });
        [raised, re, im].into_iter().for_each(|buffer| work.give(buffer));
    }

    fn check_pullback(&self) -> Result<()> {
        let reason = if self.encoding.is_some() {
            "features of encoded rows are steps: their derivative is 0 almost everywhere"
        } else if self.device.projection().is_none() {
            "readings of this device are steps, or its projection is not known"
        } else {
            return Ok(());
        };
        Err(Error::Unsupported { what: "pullback", reason: reason.into() })
    }

    fn pieces(&self) -> Result<Piece<D::Real>> {
        let (None, Some(projection)) = (&self.encoding, self.device.projection()) else {
            return Err(Error::Unsupported {
                what: "pieces of a map",
                reason: "features of encoded rows and readings of a camera are steps, which only the map itself makes"
                    .into(),
            });
        };
        let moduli = Piece::new("moduli").projection(projection)?.number("exponent", self.exponent);
        let scale = self.weight / (self.output_dim() as f64).sqrt();
        Ok(self.lift.piece(moduli.number("scale", scale)))
    }

    fn tile_rows(&self) -> usize {
        tile_rows::<D::Real>(self.device.panel(), self.output_dim()).max(self.device.shared_rows())
    }
}

/// Replaces `z` by `scale · u |z|^(m-2) z`, which is 0 where `z` is.
fn slopes<R: Real>(exponent: f64, scale: R, cotangents: &[R], re: &mut [R], im: &mut [R]) {
    let half = R::from_f64(0.5 * exponent - 1.0);
    for ((re, im), u) in re.iter_mut().zip(im).zip(cotangents) {
        let intensity = *re * *re + *im * *im;
        let power = if exponent == 2.0 {
            R::ONE
        } else if intensity == R::ZERO {
            R::ZERO
        } else if exponent == 1.0 {
            R::ONE / num_traits::Float::sqrt(intensity)
        } else if exponent == 4.0 {
            intensity
        } else {
            num_traits::Float::powf(intensity, half)
        };
        let factor = scale * *u * power;
        (*re, *im) = (factor * *re, factor * *im);
    }
}

/// Rows whose two parts of one panel fit into half of a second-level cache of half a megabyte.
fn tile_rows<R: Real>(panel: usize, output_dim: usize) -> usize {
    let columns = wide::<R>(panel).clamp(1, output_dim.max(1));
    ((1 << 17) / (size_of::<R>() * columns)).clamp(1, 64)
}

/// Optical features of exponent 2 with the squared norm appended: their estimate of `⟨x, y⟩²`.
///
/// `|Ux|²/√D` has the kernel `|x|²|y|² + ⟨x, y⟩²`. With the coordinate `i|x|²` appended and no conjugation the first
/// term goes away; in real arithmetic the last coordinate `|x|²` counts with a minus sign, which
/// [`estimate`](Self::estimate) does. Not an inner product of features, so linear models take the plain features.
///
/// # Estimate
/// Unbiased for `⟨x, y⟩²` (rows lifted by the bias, if any); the subtracted term is exact, so the variance is that of the
/// optical features. Source: thesis 6.2, where the appended value must be the squared norm.
#[derive(Debug, Clone)]
pub struct DotSquare<D: Device> {
    features: OpticalFeatures<D>,
}

impl<D: Device> DotSquare<D> {
    /// The corrected form of `features`.
    ///
    /// # Errors
    /// Features of another exponent than 2.
    pub fn new(features: OpticalFeatures<D>) -> Result<Self> {
        if features.exponent != 2.0 {
            return Err(Error::parameter("exponent", "2 for an estimate of the squared product", features.exponent));
        }
        Ok(DotSquare { features })
    }

    /// Estimates of `⟨xᵢ, yⱼ⟩²` from the features of both.
    ///
    /// # Errors
    /// Features with another number of columns than this map's.
    pub fn estimate(&self, x: ArrayView2<'_, D::Real>, y: ArrayView2<'_, D::Real>) -> Result<Array2<D::Real>> {
        let total = self.output_dim();
        check_dim("number of columns of x", total, x.ncols())?;
        check_dim("number of columns of y", total, y.ncols())?;
        let (x, y) = (x.as_standard_layout(), y.as_standard_layout());
        let (n, m) = (x.nrows(), y.nrows());
        let mut out = vec![<D::Real as Scalar>::ZERO; n * m];
        let x = Tile::new(x.as_slice().expect("standard layout"), n, total);
        let y = Tile::new(y.as_slice().expect("standard layout"), m, total);
        matmul_nt(x.columns(0..total - 1), y.columns(0..total - 1), TileMut::new(&mut out, n, m))?;
        for (i, out) in out.chunks_exact_mut(m.max(1)).enumerate() {
            for (j, out) in out.iter_mut().enumerate() {
                *out -= x.row(i)[total - 1] * y.row(j)[total - 1];
            }
        }
        Ok(Array2::from_shape_vec((n, m), out).expect("n times m numbers"))
    }
}

impl<D: Device> FeatureMap for DotSquare<D> {
    type Real = D::Real;
    type Output = D::Real;

    fn input_dim(&self) -> usize {
        self.features.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.features.output_dim() + 1
    }

    fn map_tile(&self, rows: Tile<'_, D::Real>, out: TileMut<'_, D::Real>, work: &mut Workspace<D::Real>) {
        let (features, mut norms) = out.split_columns_at(self.features.output_dim());
        self.features.map_tile(rows, features, work);
        let planes = self.features.encoding.as_ref().map_or(1, Encoding::planes);
        let mut encoded = work.take(planes * rows.cols());
        for i in 0..rows.rows() {
            let row = match &self.features.encoding {
                None => rows.row(i),
                Some(encoding) => {
                    encoding.encode(rows.row(i), &mut encoded);
                    &encoded
                }
            };
            // Summed in double precision: it is subtracted from an average that is about as large.
            let sum: f64 = row.iter().map(|v| Real::to_f64(*v) * Real::to_f64(*v)).sum();
            norms.row_mut(i)[0] = D::Real::from_f64(sum + self.features.lift.bias * self.features.lift.bias);
        }
        work.give(encoded);
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, D::Real>,
        from: Cotangents<'_, D::Real>,
        mut out: TileMut<'_, D::Real>,
        work: &mut Workspace<D::Real>,
    ) {
        let m = self.features.output_dim();
        self.features.pull_tile(rows, Cotangents::real(from.re.columns(0..m)), out.reborrow(), work);
        for i in 0..rows.rows() {
            let slope = from.re.row(i)[m] + from.re.row(i)[m];
            out.row_mut(i).iter_mut().zip(rows.row(i)).for_each(|(o, x)| *o += slope * *x);
        }
    }

    fn check_pullback(&self) -> Result<()> {
        self.features.check_pullback()
    }

    fn tile_rows(&self) -> usize {
        self.features.tile_rows()
    }
}

use super::{Camera, Encoding, OpticalFeatures, Simulator};
use crate::error::{Error, Result, check_count, check_non_negative, check_positive};
use crate::feature::DrawCost;
use crate::feature::spec::{Candidate, unit_pattern};
use crate::feature::{Describe, DynMap};
use crate::kernel::AnyKernel;
use crate::kernel::{self, Kernel};
use crate::parameter::{Domain, Value, description, words};
use crate::projection::{DenseGaussian, HadamardChain, MatrixFree, Projection};
use crate::random::Seed;
use crate::scalar::Real;
use crate::special::ln_gamma;
use crate::variance::optical_matrix;
use ndarray::{Array2, ArrayView2, s};
use std::sync::Arc;

words! {
    /// How rows are projected.
    pub enum OpticalProjection {
        /// The fastest of the others that is as accurate: see [`OpticalProjection::choose`].
        Auto = "auto",
        /// Complex normals, stored.
        Dense = "dense",
        /// The same complex normals, made again for every block of rows: the same bits, and no memory.
        MatrixFree = "matrix_free",
        /// A complex Hadamard chain: `O(log d)` per feature, biased by about `1/d'`.
        Structured = "structured",
    }
}

/// Complex weights that are stored rather than made again, at most: 1 GiB in single precision.
const MOST_STORED: f64 = (1u64 << 27) as f64;

impl OpticalProjection {
    /// What `Auto` stands for with `count` features of exponent `exponent` in dimension `input_dim`; the others stand for
    /// themselves.
    ///
    /// A Hadamard chain is chosen where it is faster than a product and its bias cannot be seen: its relative bias, as
    /// derived and measured in `docs/mathematics/optical.md`, is below `c_m/d'` with `c_m = m²/4 + m/8` and `d'` the padded
    /// dimension. The relative variance of an estimate is at least `(Γ(m+1)²/Γ(m/2+1)⁴ − 1)/D`, its value for orthogonal
    /// rows. The squared bias stays below a tenth of the variance while
    /// `10 c_m² D ≤ d'² (Γ(m+1)²/Γ(m/2+1)⁴ − 1)`, which is the rule.
    ///
    /// Otherwise weights are normal: stored up to 2²⁷ of them, made on the way beyond. Both give the same bits.
    pub fn choose(self, input_dim: usize, count: usize, exponent: f64) -> OpticalProjection {
        if self != OpticalProjection::Auto {
            return self;
        }
        let padded = input_dim.checked_next_power_of_two().unwrap_or(usize::MAX) as f64;
        let (d, m) = (input_dim as f64, count as f64);
        // A product takes 2 D d multiplications, the chain 4 d' log d' additions for every block, at a quarter of the speed.
        let outputs = (m / padded).ceil() * padded;
        let faster = m * d > 4.0 * outputs * padded.log2().max(1.0);
        let bias = 0.25 * exponent * exponent + 0.125 * exponent;
        let variance = libm::expm1(2.0 * ln_gamma(exponent + 1.0) - 4.0 * ln_gamma(0.5 * exponent + 1.0));
        if faster && 10.0 * bias * bias * m <= padded * padded * variance {
            OpticalProjection::Structured
        } else if m * d <= MOST_STORED {
            OpticalProjection::Dense
        } else {
            OpticalProjection::MatrixFree
        }
    }
}

description! {
    /// Description of optical features, with the parameters and defaults of the Python class `OpticalFeatures`.
    ///
    /// ```
    /// use bochner::feature::{Describe, FeatureMap, OpticalSpec};
    /// let spec = OpticalSpec { n_components: 256, exponent: 1.0, binarize: Some(0.5), ..OpticalSpec::default() };
    /// let map = spec.build::<f32>(10)?;
    /// assert_eq!((map.input_dim(), map.output_dim()), (10, 256));
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct OpticalSpec {
        /// Number of output columns.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// Any positive number; 2 is intensity.
        exponent: f64 = 2.0, Domain::POSITIVE, Kernel;
        /// Stored normal weights; the same weights made again for every block of rows (the same features, no memory); or Hadamard
        /// transforms, which are far faster and biased by about one over the number of columns. `auto` takes transforms only
        /// where that bias hides below the sampling error.
        projection: OpticalProjection = OpticalProjection::Auto, Domain::Word(OpticalProjection::CHOICES), Draw;
        /// Threshold: values above it become 1, all others 0. Rows stay as they are without one.
        binarize: Option<f64> = None, Domain::Optional(&Domain::FINITE), Kernel;
        /// Square of a constant coordinate appended to all (encoded) rows.
        bias: f64 = 0.0, Domain::NON_NEGATIVE, Kernel;
        /// Bits of the camera, from 1 to 24; intensities are not rounded without them. The gain sends a high quantile of the
        /// intensities of rows to the highest grey level, and brighter pixels saturate.
        camera_bits: Option<u32> = None, Domain::Optional(&Domain::Whole(1, 24)), Draw;
        /// Standard deviation of the camera's read noise: in grey levels with `camera_bits`, in units of intensity without. It
        /// belongs to a row's values, so a row always reads the same.
        noise: f64 = 0.0, Domain::NON_NEGATIVE, Draw;
        /// Another binary code in place of `binarize`: the digits of a value's level (`bit_planes`), or as many ones as there are
        /// thresholds below it (`thermometer`). Ranges are those of the columns.
        encoding: Option<Encoding> = None, Domain::Optional(&Domain::Parts), Kernel;
        /// Grey levels per unit of intensity; found from rows where it is not given and there are bits.
        gain: Option<f64> = None, Domain::Optional(&Domain::POSITIVE), Draw;
        /// The quantile of intensities that becomes the highest grey level, where the gain is found from rows.
        quantile: f64 = 0.999, Domain::Above(0.0, 1.0), Draw;
    }
    map "optical" for ["optical"], "optical features":
        "Moduli of complex random projections, as an optical processing unit computes them.";
}

/// Rows and pixels a camera is calibrated on, at most: a million intensities place a quantile of 0.999 within 0.1%.
const CALIBRATION: [usize; 2] = [256, 4096];

impl OpticalSpec {
    fn check(&self) -> Result<()> {
        check_count("n_components", self.n_components)?;
        check_positive("exponent", self.exponent)?;
        check_non_negative("bias", self.bias)?;
        check_non_negative("noise", self.noise)?;
        if self.binarize.is_some() && self.encoding.is_some() {
            return Err(Error::Unsupported {
                what: "encoding",
                reason: "a threshold (binarize) and another encoding exclude each other; give one of them".into(),
            });
        }
        self.encoding().map_or(Ok(()), |encoding| encoding.check_bits())?;
        if !(self.quantile > 0.0 && self.quantile <= 1.0) {
            return Err(Error::parameter("quantile", "above 0 and at most 1", self.quantile));
        }
        if self.gain.is_some() && self.camera_bits.is_none() {
            return Err(Error::Unsupported {
                what: "gain",
                reason: "without camera_bits nothing is rounded, and a gain has no effect".into(),
            });
        }
        if let Some(bits) = self.camera_bits {
            Camera::new(bits, self.gain.unwrap_or(1.0))?;
        }
        Ok(())
    }

    /// The encoding of rows, where they are encoded.
    fn encoding(&self) -> Option<Encoding> {
        self.binarize.map(|threshold| Encoding::Threshold { threshold }).or_else(|| self.encoding.clone())
    }

    /// Length of a row as the device sees it.
    fn device_dim(&self, input_dim: usize) -> Result<usize> {
        check_count("number of columns of rows", input_dim)?;
        let planes = self.encoding().map_or(1, |encoding| encoding.planes());
        let dim = input_dim.checked_mul(planes).and_then(|d| d.checked_add(usize::from(self.bias > 0.0)));
        dim.ok_or_else(|| Error::parameter("number of columns of rows", "small enough to address", input_dim))
    }

    /// The projection that will be used for rows of length `input_dim`.
    ///
    /// # Errors
    /// Parameters out of range.
    pub fn projection(&self, input_dim: usize) -> Result<OpticalProjection> {
        self.check()?;
        Ok(self.projection.choose(self.device_dim(input_dim)?, self.n_components, self.exponent))
    }

    fn camera(&self) -> Result<Camera> {
        let camera = match (self.camera_bits, self.gain) {
            (None, _) => Camera::ideal(),
            (Some(bits), Some(gain)) => Camera::new(bits, gain)?,
            (Some(_), None) => {
                return Err(Error::Unsupported {
                    what: "camera_bits",
                    reason: "the gain is to be found from rows; resolve the description first, or give a gain".into(),
                });
            }
        };
        camera.with_noise(self.noise, Seed::new(self.seed))
    }

    fn finish<R: Real, P: Projection<Real = R, Output = R::Complex> + 'static>(
        &self,
        projection: P,
        weight: f64,
    ) -> Result<DynMap<R>> {
        let device = Simulator::new(projection).with_camera(self.camera()?);
        let mut map = OpticalFeatures::over(device, self.exponent)?.with_weight(weight);
        if self.bias > 0.0 {
            map = map.with_bias(self.bias)?;
        }
        if let Some(encoding) = self.encoding() {
            map = map.with_encoding(encoding)?;
        }
        Ok(Arc::new(map))
    }

    /// The gain of a camera of `bits` bits for rows like these.
    fn calibrate(&self, bits: u32, sample: ArrayView2<'_, f64>) -> Result<f64> {
        check_count("number of rows", sample.nrows())?;
        // The first directions of a large map are the map of that many: intensities of all pixels follow one law.
        let pixels = self.n_components.min(CALIBRATION[1]);
        let light = OpticalSpec {
            n_components: pixels,
            exponent: 2.0,
            projection: self.projection(sample.ncols())?,
            camera_bits: None,
            gain: None,
            noise: 0.0,
            ..self.clone()
        };
        let step = sample.nrows().div_ceil(CALIBRATION[0]);
        let map = light.build::<f64>(sample.ncols())?;
        let features = map.transform(sample.slice(s![..;step as isize, ..]))?;
        let unit = (pixels as f64).sqrt();
        let intensities: Vec<f64> = features.iter().map(|v| v * unit).collect();
        Ok(Camera::calibrated(bits, self.quantile, &intensities)?.gain())
    }

    fn encoded(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        match self.encoding() {
            None => Ok(rows.to_owned()),
            Some(encoding) => {
                encoding.check(rows.ncols())?;
                Ok(encoding.encode_rows(rows))
            }
        }
    }
}

/// What features of directions with the fixed length `√d'` are multiplied by: `(Γ(d' + m)/(Γ(d') d'^m))^½`.
///
/// The squared length of a complex normal direction is a gamma variable of shape `d'` and independent of its
/// orientation, so with a uniform orientation the estimate would be unbiased.
fn radius_correction(padded_dim: usize, exponent: f64) -> f64 {
    let d = padded_dim as f64;
    libm::exp(0.5 * (ln_gamma(d + exponent) - ln_gamma(d) - exponent * libm::log(d)))
}

/// The kernel of encoded rows.
#[derive(Debug)]
struct Encoded {
    kernel: kernel::Optical,
    encoding: Encoding,
}

impl Kernel for Encoded {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        let encode = |row: &[f64]| {
            let mut bits = vec![0.0; self.encoding.planes() * row.len()];
            self.encoding.encode(row, &mut bits);
            bits
        };
        self.kernel.evaluate(&encode(x), &encode(y))
    }

    fn of_products(&self, _: f64, _: f64, _: f64) -> Option<f64> {
        None
    }
}

impl Describe for OpticalSpec {
    const LOWER_DEGREES: &'static [(&'static str, Value)] = &[("bias", Value::Real(1.0))];

    fn candidates(kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        let AnyKernel::Optical(k) = kernel else { return Ok(Vec::new()) };
        let (exponent, bias) = (k.exponent(), k.bias());
        let named = |projection: OpticalProjection| {
            let spec = OpticalSpec { exponent, bias, projection, ..OpticalSpec::default() };
            Candidate::new(format!("optical, {}", projection.name()), spec)
        };
        Ok([OpticalProjection::Dense, OpticalProjection::Structured].map(named).into())
    }

    fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        let encoding = self.encoding.as_ref().map(|encoding| encoding.resolve(sample)).transpose()?;
        let mut spec = OpticalSpec { encoding, ..self.clone() }.settle(sample.ncols())?;
        if let (Some(bits), None) = (spec.camera_bits, spec.gain) {
            spec.gain = Some(spec.calibrate(bits, sample)?);
        }
        Ok(spec)
    }

    fn settle(&self, input_dim: usize) -> Result<Self> {
        Ok(OpticalSpec { projection: self.projection(input_dim)?, ..self.clone() })
    }

    /// Within the range of the encoding, where there is one.
    fn probe(&self, input_dim: usize) -> Vec<f64> {
        let mut row = unit_pattern(input_dim);
        if let Some(encoding) = self.encoding() {
            row.iter_mut().enumerate().for_each(|(j, value)| *value = encoding.at(j, *value));
        }
        row
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let (Ok(dim), Ok(projection)) = (self.device_dim(input_dim), self.projection(input_dim)) else {
            // The draw says what is wrong.
            return DrawCost::default();
        };
        match projection {
            OpticalProjection::Structured => DrawCost::listed(self.n_components.max(dim)),
            // Made again for every block of rows.
            OpticalProjection::MatrixFree => {
                let made = DrawCost::stored(self.n_components, dim).times(2);
                DrawCost { numbers: DrawCost::listed(dim).numbers, ..made }
            }
            OpticalProjection::Dense | OpticalProjection::Auto => DrawCost::stored(self.n_components, dim).times(2),
        }
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        let projection = self.projection(input_dim)?;
        let (dim, count, seed) = (self.device_dim(input_dim)?, self.n_components, Seed::new(self.seed));
        match projection {
            OpticalProjection::Structured => {
                let chain = HadamardChain::<R, R::Complex>::new(seed, dim, count)?;
                let weight = radius_correction(chain.padded_dim(), self.exponent);
                self.finish(chain, weight)
            }
            OpticalProjection::MatrixFree => self.finish(MatrixFree::<R, R::Complex>::new(seed, dim, count)?, 1.0),
            OpticalProjection::Dense | OpticalProjection::Auto => {
                self.finish(DenseGaussian::<R, R::Complex>::new(seed, dim, count)?, 1.0)
            }
        }
    }

    /// The kernel of the light itself: what the features would estimate without noise and camera.
    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        self.check()?;
        let kernel = kernel::Optical::new(self.exponent, self.bias)?;
        Ok(match self.encoding() {
            None => Arc::new(kernel),
            Some(encoding) => Arc::new(Encoded { kernel, encoding }),
        })
    }

    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let what = "variance";
        if self.projection(x.ncols())? == OpticalProjection::Structured {
            let reason = "Hadamard chains have no closed form, and a bias of about 1/d'; that of normal weights \
                          (variance_iid, or projection \"dense\") is the figure to compare with";
            return Err(Error::Unsupported { what, reason: reason.into() });
        }
        if self.camera_bits.is_some() || self.noise > 0.0 {
            let reason = "what a camera rounds, cuts off and adds has no closed form; that of the light itself \
                          (variance_iid, or no camera_bits and noise) is the figure to compare with";
            return Err(Error::Unsupported { what, reason: reason.into() });
        }
        self.variance_iid(x, y)
    }

    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.check()?;
        let kernel = kernel::Optical::new(self.exponent, self.bias)?;
        optical_matrix(&kernel, self.n_components, self.encoded(x)?.view(), self.encoded(y)?.view())
    }
}

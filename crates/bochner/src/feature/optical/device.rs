use crate::error::{Error, Result, check_count, check_non_negative, check_positive};
use crate::linalg::{Moduli, Power, Tile, TileMut, Workspace};
use crate::projection::{Cotangents, Projection};
use crate::random::{Role, Seed, Stream};
use crate::scalar::{Real, Scalar};
use std::fmt::Debug;
use std::ops::Range;

/// A complex projection of any kind.
pub type DynProjection<'a, R> = dyn Projection<Real = R, Output = <R as Real>::Complex> + 'a;

/// What shows rows to a scattering medium and returns the light behind it: intensities `|Ux|²`, a pixel per direction.
///
/// The boundary at which hardware could be plugged in; [`Simulator`] is the implementation here. Rows are binary where
/// an [`Encoding`](super::Encoding) made them so, and the bias coordinate comes last.
///
/// The contract of the library holds for devices too: intensities are finite, not negative, and the same for the same
/// row. Hardware whose readings differ from one exposure to the next cannot promise equal bits, and says so.
pub trait Device: Debug + Send + Sync {
    /// Precision.
    type Real: Real;

    /// Length of a row.
    fn input_dim(&self) -> usize;

    /// Number of pixels.
    fn output_dim(&self) -> usize;

    /// Pixels come in panels of this many; see [`Projection::panel`].
    fn panel(&self) -> usize {
        self.output_dim().max(1)
    }

    /// Rows that should share one call; see [`Projection::shared_rows`].
    fn shared_rows(&self) -> usize {
        1
    }

    /// Writes the intensities of pixels `pixels` for every row (`rows.rows()` × `pixels.len()`).
    ///
    /// `pixels.start` is a multiple of [`panel`](Self::panel); `pixels.end` is one too, or `output_dim`.
    fn expose(
        &self,
        rows: Tile<'_, Self::Real>,
        pixels: Range<usize>,
        out: TileMut<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    );

    /// The projection `U` itself, where intensities are the smooth function `|Ux|²` of a row and `U` is known; pullbacks need it.
    fn projection(&self) -> Option<&DynProjection<'_, Self::Real>> {
        None
    }

    /// Writes `scale · I^(m/2)` for the intensities `I`; overridden where they need not be written first.
    fn powers(
        &self,
        rows: Tile<'_, Self::Real>,
        pixels: Range<usize>,
        power: Power,
        scale: Self::Real,
        mut out: TileMut<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    ) {
        self.expose(rows, pixels, out.reborrow(), work);
        for i in 0..out.rows() {
            power.raise(scale, out.row_mut(i));
        }
    }
}

/// A camera: read noise, gain, rounding to `b` bits and saturation.
///
/// A pixel reads `n = min(2ᵇ − 1, max(0, ⌊g I + σξ + ½⌋))` and stands for the intensity `n/g`; `ξ` is standard normal, so
/// `σ` is the read noise in grey levels. Without bits nothing is rounded or cut off above, `g` is 1, and `σ` is in units of
/// intensity.
///
/// # Noise and bits
/// `ξ` of pixel `j` is normal `j` of the stream whose index is a hash of the row's numbers (signed zeros are one number, and
/// single precision is widened first). Features thus depend neither on blocks nor on a row's place, and a row that is
/// measured twice gives the same reading twice: averaging over repeated rows removes no noise, another seed does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Camera {
    bits: Option<u32>,
    gain: f64,
    noise: f64,
    seed: Seed,
}

impl Camera {
    /// A camera that reads intensities as they are.
    pub fn ideal() -> Self {
        Camera { bits: None, gain: 1.0, noise: 0.0, seed: Seed::new(0) }
    }

    /// A camera of `bits` bits and gain `gain`.
    ///
    /// # Errors
    /// A number of bits that is not from 1 to 24 (the integers of single precision), or a gain that is not positive.
    pub fn new(bits: u32, gain: f64) -> Result<Self> {
        if !(1..=24).contains(&bits) {
            return Err(Error::parameter("camera_bits", "from 1 to 24", bits));
        }
        check_positive("gain", gain)?;
        Ok(Camera { bits: Some(bits), gain, ..Camera::ideal() })
    }

    /// A camera whose gain sends the given quantile of `intensities` to its highest level.
    ///
    /// The quantile is the smallest intensity with at least that share of them at or below it. Where it is 0, as for rows of
    /// zeros, there is nothing to adjust to and the gain is 1.
    ///
    /// # Errors
    /// No intensities or one that is not finite, a quantile that is not in `(0, 1]`, bits out of range.
    pub fn calibrated(bits: u32, quantile: f64, intensities: &[f64]) -> Result<Self> {
        check_count("number of intensities", intensities.len())?;
        if !(quantile > 0.0 && quantile <= 1.0) {
            return Err(Error::parameter("quantile", "above 0 and at most 1", quantile));
        }
        if let Some(i) = intensities.iter().position(|v| !v.is_finite()) {
            return Err(Error::NonFinite { what: "intensities", row: 0, column: i });
        }
        let mut sorted = intensities.to_vec();
        let rank = ((quantile * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
        let (_, level, _) = sorted.select_nth_unstable_by(rank - 1, f64::total_cmp);
        let camera = Camera::new(bits, 1.0)?;
        let gain = camera.levels() / *level;
        Ok(if gain.is_finite() && gain > 0.0 { Camera { gain, ..camera } } else { camera })
    }

    /// The same camera with normal read noise of standard deviation `noise`, drawn from `seed`.
    ///
    /// # Errors
    /// A negative or infinite deviation.
    pub fn with_noise(self, noise: f64, seed: Seed) -> Result<Self> {
        check_non_negative("noise", noise)?;
        Ok(Camera { noise, seed, ..self })
    }

    /// `g`.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// Whether intensities come out as they went in.
    pub fn is_ideal(&self) -> bool {
        self.bits.is_none() && self.noise == 0.0
    }

    /// `2ᵇ − 1`.
    fn levels(&self) -> f64 {
        self.bits.map_or(f64::INFINITY, |bits| f64::from((1u32 << bits) - 1))
    }

    /// Reads the intensities of pixels `first..` of a row with hash `row`, in place.
    fn read<R: Real>(&self, row: u64, first: usize, intensities: &mut [R], work: &mut Workspace<R>) {
        let noisy = self.noise > 0.0;
        let mut noise = work.take(if noisy { intensities.len() } else { 0 });
        if noisy {
            Stream::new(self.seed, Role::Noise, row).normals_from(first, &mut noise);
        }
        let (gain, deviation, levels) = (R::from_f64(self.gain), R::from_f64(self.noise), R::from_f64(self.levels()));
        let noise_here = noisy.then_some((deviation, noise.as_slice()));
        let levels = self.bits.is_some().then_some(levels);
        pulp::Arch::new().dispatch(Exposure { gain, noise: noise_here, levels, intensities });
        work.give(noise);
    }
}

/// Intensities as a camera reads them, in place.
struct Exposure<'a, R> {
    gain: R,
    /// Standard deviation and normals of the read noise.
    noise: Option<(R, &'a [R])>,
    /// The largest level of a camera that counts.
    levels: Option<R>,
    intensities: &'a mut [R],
}

impl<R: Real> pulp::NullaryFnOnce for Exposure<'_, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Exposure { gain, noise, levels, intensities } = self;
        match noise {
            Some((deviation, noise)) => {
                intensities.iter_mut().zip(noise).for_each(|(v, n)| *v = gain * *v + deviation * *n);
            }
            None => intensities.iter_mut().for_each(|v| *v *= gain),
        }
        let half = R::from_f64(0.5);
        let clip = |v: R| if v > R::ZERO { v } else { R::ZERO };
        match levels {
            Some(levels) => {
                for v in intensities.iter_mut() {
                    let level = clip(num_traits::Float::floor(*v + half));
                    *v = if level < levels { level } else { levels };
                }
                // One division each: the reciprocal of the gain would be rounded before it is used.
                intensities.iter_mut().for_each(|v| *v = *v / gain);
            }
            None => intensities.iter_mut().for_each(|v| *v = clip(*v)),
        }
    }
}

/// A hash of a row's numbers: the index of its noise.
fn hash<R: Real>(row: &[R]) -> u64 {
    // Four strands, so that long rows do not wait for one chain of products; each number is mixed with its place.
    let mut strands = [0x243f_6a88_85a3_08d3u64, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];
    for (j, v) in row.iter().enumerate() {
        // In single precision, so that a row has the same noise in both.
        let v = Real::to_f64(*v) as f32;
        let bits = if v == 0.0 { 0 } else { u64::from(v.to_bits()) };
        let s = &mut strands[j % 4];
        *s = (*s ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    strands.iter().fold(row.len() as u64, |h, &s| Seed::new(h).child(s).number())
}

/// Intensities `|Ux|²` of a complex projection, read by a camera.
#[derive(Debug, Clone)]
pub struct Simulator<P> {
    projection: P,
    camera: Camera,
}

impl<R: Real, P: Projection<Real = R, Output = R::Complex>> Simulator<P> {
    /// Intensities as they are.
    pub fn new(projection: P) -> Self {
        Simulator { projection, camera: Camera::ideal() }
    }

    /// The same light, read by `camera`.
    pub fn with_camera(self, camera: Camera) -> Self {
        Simulator { camera, ..self }
    }

    /// `U`.
    pub fn projection(&self) -> &P {
        &self.projection
    }

    /// The camera.
    pub fn camera(&self) -> &Camera {
        &self.camera
    }

    /// Real and imaginary parts of some pixels to `power`.
    fn light(
        &self,
        rows: Tile<'_, R>,
        pixels: Range<usize>,
        (power, scale): (Power, R),
        mut out: TileMut<'_, R>,
        work: &mut Workspace<R>,
    ) {
        let moduli = Moduli::new(power, scale, pixels.len());
        self.projection.project_parts(rows, pixels, work, &mut |i, first, re, im| {
            moduli.write(re, im, &mut out.row_mut(i)[first..][..re.len()]);
        });
        moduli.finish();
    }
}

impl<R: Real, P: Projection<Real = R, Output = R::Complex>> Device for Simulator<P> {
    type Real = R;

    fn input_dim(&self) -> usize {
        self.projection.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.projection.output_dim()
    }

    fn panel(&self) -> usize {
        self.projection.panel().max(1)
    }

    fn shared_rows(&self) -> usize {
        self.projection.shared_rows()
    }

    fn projection(&self) -> Option<&DynProjection<'_, R>> {
        if self.camera.is_ideal() { Some(&self.projection) } else { None }
    }

    fn expose(&self, rows: Tile<'_, R>, pixels: Range<usize>, mut out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let first = pixels.start;
        self.light(rows, pixels, (Power::Whole(1), R::ONE), out.reborrow(), work);
        if !self.camera.is_ideal() {
            for i in 0..rows.rows() {
                let row = if self.camera.noise > 0.0 { hash(rows.row(i)) } else { 0 };
                self.camera.read(row, first, out.row_mut(i), work);
            }
        }
    }

    fn powers(
        &self,
        rows: Tile<'_, R>,
        pixels: Range<usize>,
        power: Power,
        scale: R,
        mut out: TileMut<'_, R>,
        work: &mut Workspace<R>,
    ) {
        if self.camera.is_ideal() {
            return self.light(rows, pixels, (power, scale), out, work);
        }
        self.expose(rows, pixels, out.reborrow(), work);
        for i in 0..out.rows() {
            power.raise(scale, out.row_mut(i));
        }
    }
}

/// The linear mode: a real random projection recovered from intensities.
///
/// The device's last inputs are references. For a row `x`, with the references on and off and with them alone,
/// `|U(x, 1)|² − |U(x, 0)|² − |U(0, 1)|² = 2 Re(c̄ Ux)` with the reference light `c = U(0, 1)`. Divided by `√2 |c|` this is
/// `Wx` for a real `W` of standard normals, independent of the reference light, since complex normals have no preferred
/// phase. Differences cancel: what a camera rounds off is multiplied by about `1/|c|`.
///
/// A pixel whose reference light reads 0 gives 0.
///
/// # References
/// Thesis 6.1 describes the device; phase from a reference beam is interferometry's oldest trick.
#[derive(Debug, Clone)]
pub struct Recovered<D: Device> {
    device: D,
    references: usize,
    /// `|c|²`.
    light: Vec<D::Real>,
    /// `1/(√2 |c|)`.
    factors: Vec<D::Real>,
}

impl<D: Device> Recovered<D> {
    /// The projection of rows that leave the last `references` inputs of the device free.
    ///
    /// More references make `|c|` larger, which helps against rounding until the sum saturates.
    ///
    /// # Errors
    /// No references, or none of the inputs left.
    pub fn new(device: D, references: usize) -> Result<Self> {
        check_count("references", references)?;
        if references >= device.input_dim() {
            return Err(Error::parameter("references", "fewer than the inputs of the device", references));
        }
        let mut row = vec![D::Real::ZERO; device.input_dim()];
        let free = row.len() - references;
        row[free..].fill(D::Real::ONE);
        let mut light = vec![D::Real::ZERO; device.output_dim()];
        let (width, pixels) = (row.len(), light.len());
        device.expose(Tile::new(&row, 1, width), 0..pixels, TileMut::new(&mut light, 1, pixels), &mut Workspace::new());
        let factor = |light: &D::Real| {
            let light = Real::to_f64(*light);
            D::Real::from_f64(if light > 0.0 { 1.0 / (2.0 * light).sqrt() } else { 0.0 })
        };
        let factors = light.iter().map(factor).collect();
        Ok(Recovered { device, references, light, factors })
    }
}

impl<D: Device> Projection for Recovered<D> {
    type Real = D::Real;
    type Output = D::Real;

    fn input_dim(&self) -> usize {
        self.device.input_dim() - self.references
    }

    fn output_dim(&self) -> usize {
        self.device.output_dim()
    }

    fn panel(&self) -> usize {
        self.device.panel()
    }

    fn shared_rows(&self) -> usize {
        self.device.shared_rows()
    }

    fn project_tile(
        &self,
        rows: Tile<'_, D::Real>,
        columns: Range<usize>,
        mut out: TileMut<'_, D::Real>,
        work: &mut Workspace<D::Real>,
    ) {
        let (n, d, all, m) = (rows.rows(), rows.cols(), self.device.input_dim(), columns.len());
        let mut shown = work.take(2 * n * all);
        for i in 0..n {
            for (row, reference) in [(i, D::Real::ONE), (n + i, D::Real::ZERO)] {
                let shown = &mut shown[row * all..][..all];
                shown[..d].copy_from_slice(rows.row(i));
                shown[d..].fill(reference);
            }
        }
        // Both exposures in one call: where weights are made on the way, they are made once.
        let mut seen = work.take(2 * n * m);
        self.device.expose(Tile::new(&shown, 2 * n, all), columns.clone(), TileMut::new(&mut seen, 2 * n, m), work);
        let (on, off) = seen.split_at(n * m);
        let (light, factors) = (&self.light[columns.clone()], &self.factors[columns]);
        for i in 0..n {
            let (on, off) = (&on[i * m..][..m], &off[i * m..][..m]);
            for (j, o) in out.row_mut(i).iter_mut().enumerate() {
                *o = (on[j] - off[j] - light[j]) * factors[j];
            }
        }
        work.give(shown);
        work.give(seen);
    }

    fn pull_tile(
        &self,
        from: Cotangents<'_, D::Real>,
        columns: Range<usize>,
        mut out: TileMut<'_, D::Real>,
        work: &mut Workspace<D::Real>,
    ) {
        // Row j of W is what the j-th unit row is projected to: a device can be asked for nothing else.
        let (d, m) = (out.cols(), columns.len());
        let (mut unit, mut weights) = (work.take(d), work.take(m));
        unit.fill(D::Real::ZERO);
        for j in 0..d {
            unit[j] = D::Real::ONE;
            self.project_tile(Tile::new(&unit, 1, d), columns.clone(), TileMut::new(&mut weights, 1, m), work);
            unit[j] = D::Real::ZERO;
            for i in 0..out.rows() {
                let products = from.re.row(i).iter().zip(&weights).map(|(u, w)| *u * *w);
                out.row_mut(i)[j] += products.fold(D::Real::ZERO, |sum, v| sum + v);
            }
        }
        work.give(unit);
        work.give(weights);
    }
}

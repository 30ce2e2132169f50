//! Fourier features whose frequencies and amplitudes were learned from rows with targets.

use super::fourier::slopes::slopes;
use super::fourier::{FourierSpec, Frequencies, WaveSlopes};
use super::{Describe, Directions, DrawCost, DynMap, FeatureMap, Piece, Prediction};
use crate::error::{Error, Result, check_dim};
use crate::kernel::Kernel;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::parameter::{Domain, description};
use crate::projection::{Cotangents, Given, Parts};
use crate::scalar::Real;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::sync::Arc;

description! {
    /// Description of learned Fourier features, with the parameters and defaults of the Python class `LearnedFourierFeatures`.
    ///
    /// [`tune::LearnFourier`](crate::tune::LearnFourier) finds [`Learned`] from rows with targets. Until then the map is where
    /// learning begins: Fourier features of the Gaussian kernel with length scale 1.
    ///
    /// ```
    /// use bochner::feature::{Describe, FeatureMap, Learned, LearnedFourierSpec};
    /// use ndarray::array;
    /// let learned = Learned::new(array![[1.0, 0.0], [0.5, 2.0]].view(), &[0.8, 0.6])?;
    /// let map = LearnedFourierSpec::from(learned).build::<f64>(2)?;
    /// let features = map.transform(array![[0.3, 0.4]].view())?;
    /// assert!((features[[0, 0]] - 0.8 * 0.3f64.cos()).abs() < 1e-7); // all cosines, then all sines
    /// assert!((features[[0, 3]] - 0.6 * 0.95f64.sin()).abs() < 1e-7);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct LearnedFourierSpec {
        /// Budget of output columns; one fewer is used where it is odd.
        n_components: usize = 2048, Domain::FEATURES, Size;
        /// Frequencies that are learned one by one, at most; the others are drawn from the learned kernel.
        n_learned: usize = 512, Domain::Whole(0, 1 << 20), Size;
        /// Steps of learning, at most, after those for the scales of the columns.
        max_iter: usize = 150, Domain::Whole(0, 1 << 20), Size;
    }
    map "learned_fourier" for [], "learned Fourier features":
        "Cosines and sines of projections on frequencies that were learned from the targets.";
    besides {
        /// What was learned; files keep it.
        #[serde(skip_serializing_if = "Option::is_none")]
        learned: Option<Learned> = None;
    }
}

impl From<Learned> for LearnedFourierSpec {
    fn from(learned: Learned) -> Self {
        let n_components = 2 * learned.len();
        LearnedFourierSpec { n_components, learned: Some(learned), ..LearnedFourierSpec::default() }
    }
}

impl LearnedFourierSpec {
    /// Where learning begins.
    fn start(&self) -> FourierSpec {
        let LearnedFourierSpec { n_components, seed, .. } = *self;
        FourierSpec { n_components, seed, projection: Directions::Gaussian, ..FourierSpec::default() }
    }
}

/// Frequencies and amplitudes: `φ(x) = (aⱼ cos ωⱼᵀx)ⱼ, then (aⱼ sin ωⱼᵀx)ⱼ`, with the kernel `Σ aⱼ² cos ωⱼᵀ(x - y)`.
///
/// Kept in single precision, in files as text of base 64: what a model is fitted on is what its file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Learned {
    columns: usize,
    #[serde(serialize_with = "numbers")]
    frequencies: Arc<[f32]>,
    #[serde(serialize_with = "numbers")]
    amplitudes: Arc<[f32]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    columns: usize,
    #[serde(deserialize_with = "read_numbers")]
    frequencies: Arc<[f32]>,
    #[serde(deserialize_with = "read_numbers")]
    amplitudes: Arc<[f32]>,
}

fn numbers<S: Serializer>(values: &Arc<[f32]>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
}

fn read_numbers<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Arc<[f32]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = BASE64_STANDARD.decode(text).map_err(|e| D::Error::custom(format!("learned numbers: {e}")))?;
    let (values, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(D::Error::custom("learned numbers: the last one is cut"));
    }
    Ok(values.iter().map(|v| f32::from_le_bytes(*v)).collect())
}

impl TryFrom<Written> for Learned {
    type Error = Error;

    fn try_from(Written { columns, frequencies, amplitudes }: Written) -> Result<Self> {
        let count = amplitudes.len();
        if columns == 0 || count == 0 {
            return Err(Error::parameter("frequencies", "at least one frequency of one column", "none"));
        }
        let expected = columns.saturating_mul(count);
        check_dim("number of learned frequencies times columns", expected, frequencies.len())?;
        if !frequencies.iter().chain(&*amplitudes).all(|v| v.is_finite()) {
            return Err(Error::parameter("frequencies", "finite numbers", "a NaN or an infinity"));
        }
        Ok(Learned { columns, frequencies, amplitudes })
    }
}

impl Learned {
    /// One frequency a row, with their amplitudes.
    ///
    /// # Errors
    /// No frequencies, another number of amplitudes, and numbers that are not finite in single precision.
    pub fn new(frequencies: ArrayView2<'_, f64>, amplitudes: &[f64]) -> Result<Self> {
        check_dim("number of amplitudes", frequencies.nrows(), amplitudes.len())?;
        Written {
            columns: frequencies.ncols(),
            frequencies: frequencies.iter().map(|v| *v as f32).collect(),
            amplitudes: amplitudes.iter().map(|v| *v as f32).collect(),
        }
        .try_into()
    }

    /// The frequencies of several, one after the other: the features of all of them.
    ///
    /// # Errors
    /// None, or different numbers of columns.
    pub fn joined(parts: &[Learned]) -> Result<Self> {
        let columns = parts.first().map_or(0, |part| part.columns);
        parts.iter().try_for_each(|part| check_dim("number of columns", columns, part.columns))?;
        Written {
            columns,
            frequencies: parts.iter().flat_map(|part| part.frequencies.iter().copied()).collect(),
            amplitudes: parts.iter().flat_map(|part| part.amplitudes.iter().copied()).collect(),
        }
        .try_into()
    }

    /// Number of frequencies; there are twice as many features.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.amplitudes.len()
    }

    /// The frequencies, one a row.
    pub fn frequencies(&self) -> Array2<f64> {
        Array2::from_shape_fn((self.len(), self.columns), |(j, k)| self.frequencies[j * self.columns + k].into())
    }

    /// Their amplitudes.
    pub fn amplitudes(&self) -> Vec<f64> {
        self.amplitudes.iter().map(|a| f64::from(*a)).collect()
    }

    fn draw<R: Real>(&self) -> Result<LearnedFourier<R>> {
        let d = self.columns;
        let given = Given::<R>::given(d, self.len(), |j, row| {
            row.iter_mut().zip(&self.frequencies[j * d..][..d]).for_each(|(to, from)| *to = f64::from(*from));
        })?;
        let amplitudes = self.amplitudes.iter().map(|a| R::from_f64(f64::from(*a))).collect();
        Ok(LearnedFourier { frequencies: Frequencies::new(given), amplitudes })
    }
}

impl Kernel for Learned {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        let wave = |(frequency, a): (&[f32], &f32)| {
            let phase: f64 = frequency.iter().zip(x.iter().zip(y)).map(|(w, (x, y))| f64::from(*w) * (x - y)).sum();
            f64::from(*a).powi(2) * libm::cos(phase)
        };
        self.frequencies.chunks_exact(self.columns).zip(&*self.amplitudes).map(wave).sum()
    }
}

/// The map of [`Learned`] frequencies.
#[derive(Debug, Clone)]
struct LearnedFourier<R: Real> {
    frequencies: Frequencies<Given<R>>,
    amplitudes: Arc<[R]>,
}

impl<R: Real> FeatureMap for LearnedFourier<R> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        crate::projection::Projection::input_dim(self.frequencies.projection())
    }

    fn output_dim(&self) -> usize {
        2 * self.frequencies.len()
    }

    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let m = self.frequencies.len();
        let (cos, sin) = out.reborrow().split_columns_at(m);
        self.frequencies.cos_sin(rows, R::ONE, Parts::new(cos, sin), work);
        for i in 0..rows.rows() {
            for half in out.row_mut(i).chunks_exact_mut(m) {
                half.iter_mut().zip(&*self.amplitudes).for_each(|(v, a)| *v *= *a);
            }
        }
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (n, m) = (rows.rows(), self.frequencies.len());
        let mut scaled = work.take(2 * n * m);
        for (i, row) in scaled.chunks_exact_mut(2 * m).enumerate() {
            for (half, own) in row.chunks_exact_mut(m).zip(from.re.row(i).chunks_exact(m)) {
                half.iter_mut().zip(own.iter().zip(&*self.amplitudes)).for_each(|(to, (u, a))| *to = *u * *a);
            }
        }
        let all = Tile::new(&scaled, n, 2 * m);
        let parts = Cotangents::new(all.columns(0..m), all.columns(m..2 * m));
        self.frequencies.pull_cos_sin(rows, R::ONE, parts, out, work);
        work.give(scaled);
    }

    fn pull_parameters(&self, rows: ArrayView2<'_, R>, cotangents: ArrayView2<'_, R>) -> Result<WaveSlopes> {
        let amplitude = |j: usize| Real::to_f64(self.amplitudes[j]);
        slopes(self.frequencies.len(), &amplitude, &|rows| Ok((self.transform(rows)?, None)), rows, cotangents)
    }

    fn tile_rows(&self) -> usize {
        self.frequencies.tile_rows()
    }

    fn pieces(&self) -> Result<Piece<R>> {
        let waves = self.frequencies.waves(1.0).vector("amplitudes", self.amplitudes.iter().copied());
        Ok(Piece::chain([waves, Piece::new("side_by_side")]))
    }

    fn operations(&self) -> u64 {
        let d = self.input_dim() as u64;
        (self.frequencies.len() as u64).saturating_mul(d + 40)
    }
}

impl Describe for LearnedFourierSpec {
    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        let Some(learned) = &self.learned else { return self.start().draw(input_dim) };
        check_dim("number of columns", learned.columns, input_dim)?;
        // What was learned is what counts: a budget of another size is one that a file lies about.
        check_dim("number of learned features", 2 * learned.len(), self.n_components / 2 * 2)?;
        Ok(Arc::new(learned.draw::<R>()?))
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        DrawCost::stored(self.n_components, input_dim)
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        match &self.learned {
            Some(learned) => Ok(Arc::new(learned.clone())),
            None => self.start().kernel(),
        }
    }

    /// Learned frequencies are not drawn: their kernel is what their features have for inner products.
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        match &self.learned {
            Some(learned) => {
                check_dim("number of columns", learned.columns, x.len_of(Axis(1)))?;
                check_dim("number of columns", learned.columns, y.len_of(Axis(1)))?;
                Ok(Array2::zeros((x.nrows(), y.nrows())))
            }
            None => self.start().variance(x, y),
        }
    }

    fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
        Ok(Prediction { bias: None, variance: self.variance(x, y)?, closed_form: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::kernel_matrix;
    use ndarray::array;

    fn learned() -> Learned {
        let frequencies = Array2::from_shape_fn((7, 3), |(j, k)| (1.0 + 3.0 * j as f64 + 5.0 * k as f64).sin() * 2.0);
        Learned::new(frequencies.view(), &[0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.4]).unwrap()
    }

    #[test]
    fn the_kernel_is_that_of_the_features() {
        let spec = LearnedFourierSpec::from(learned());
        let x = Array2::from_shape_fn((5, 3), |(i, k)| (i as f64 - k as f64) * 0.4);
        let z = spec.build::<f64>(3).unwrap().transform(x.view()).unwrap();
        let exact = kernel_matrix(&*spec.kernel().unwrap(), x.view(), x.view()).unwrap();
        // Fourteen products of numbers below 1.
        assert!((z.dot(&z.t()) - exact).iter().all(|e| e.abs() < 14.0 * 8.0 * f64::EPSILON));
        assert!(spec.variance(x.view(), x.view()).unwrap().iter().all(|v| *v == 0.0));
    }

    #[test]
    fn what_was_learned_survives_a_file_to_the_bit_and_lies_do_not() {
        let spec = LearnedFourierSpec::from(learned());
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<LearnedFourierSpec>(&text).unwrap(), spec);
        for (from, to) in [("\"columns\":3", "\"columns\":4"), ("\"columns\":3", "\"columns\":0"), ("AAA", "A!A")] {
            assert!(text.contains(from), "{text}");
            assert!(serde_json::from_str::<LearnedFourierSpec>(&text.replacen(from, to, 1)).is_err(), "{to}");
        }
        assert!(LearnedFourierSpec { n_components: 1024, ..spec.clone() }.build::<f32>(3).is_err());
        assert!(spec.build::<f32>(2).is_err());
        assert!(Learned::new(array![[f64::NAN]].view(), &[1.0]).is_err());
        assert!(Learned::new(array![[1.0], [2.0]].view(), &[1.0]).is_err());
    }

    #[test]
    fn joined_frequencies_have_the_features_of_all() {
        let one = learned();
        let two = Learned::joined(&[one.clone(), one.clone()]).unwrap();
        assert_eq!(two.len(), 14);
        let (x, y) = ([0.3, 0.1, -2.0], [1.0, 0.0, 0.5]);
        let [single, double] = [one.evaluate(&x, &y), two.evaluate(&x, &y)];
        assert!((double - 2.0 * single).abs() < 1e-14);
        assert!(Learned::joined(&[]).is_err());
    }
}

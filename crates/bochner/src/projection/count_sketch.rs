use super::{Cotangents, Projection};
use crate::error::{Error, Result, check_count, check_dim};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::memory::{bytes, need};
use crate::random::{Role, Seed, Stream, fourth_root};
use crate::scalar::{Real, Scalar};
use std::ops::Range;
use std::sync::Arc;

/// Every input coordinate is added, with a random sign, to one random output coordinate.
///
/// With a hash `h: [d] → [D]` and signs `s` in `{1, −1}`, or `{1, i, −1, −i}` for complex output,
/// `c(x)ₖ = Σ_{j: h(j) = k} s(j) xⱼ`, all draws independent. [`sketch_into`](Self::sketch_into) gives `c(x)` itself; as a
/// [`Projection`] it is multiplied by `√D`, so that it keeps the contract of that trait.
///
/// # Estimate
/// `⟨c(x), c(y)⟩` is unbiased for `⟨x, y⟩`; its variance is that of a [`TensorSketch`](crate::feature::TensorSketch) of
/// degree 1, [`variance::tensor_sketch`](crate::variance::tensor_sketch).
///
/// # Cost
/// One addition per non-zero input coordinate.
///
/// # References
/// Charikar, Chen and Farach-Colton 2002; Weinberger et al. 2009 (feature hashing).
///
/// ```
/// use bochner::projection::CountSketch;
/// use bochner::random::Seed;
/// let sketch = CountSketch::<f64>::new(100, 8, Seed::new(7))?;
/// let mut counts = [0.0; 8];
/// sketch.add_entries([(40, 2.5)], &mut counts);
/// assert_eq!(counts[sketch.hashes()[40] as usize], 2.5 * sketch.signs()[40]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CountSketch<O> {
    hashes: Arc<[u32]>,
    signs: Arc<[O]>,
    output_dim: usize,
}

impl<O: Scalar> CountSketch<O> {
    /// Draws hash and signs. The draws of the first coordinates do not depend on how many follow.
    ///
    /// # Errors
    /// A dimension of 0, or more than `2³² − 1` output coordinates.
    pub fn new(input_dim: usize, output_dim: usize, seed: Seed) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_count("output_dim", output_dim)?;
        let Ok(bound) = u32::try_from(output_dim) else {
            return Err(Error::parameter("output_dim", "less than 2^32", output_dim));
        };
        let needed = bytes::<(u32, O)>(&[input_dim]).saturating_mul(2);
        need("hashes of a count sketch", needed, |_| "take rows with fewer columns".into())?;
        let mut draw = Stream::new(seed, Role::Hash, 0);
        let hashes = (0..input_dim).map(|_| draw.below(u64::from(bound)) as u32).collect();
        let mut draw = Stream::new(seed, Role::Sign, 0);
        let codes_per_word = if O::IS_COMPLEX { 32 } else { 64 };
        let mut words = vec![0; input_dim.div_ceil(codes_per_word)];
        if O::IS_COMPLEX {
            draw.fill_fourth_roots(&mut words);
        } else {
            draw.fill_sign_bits(&mut words);
        }
        let signs = (0..input_dim)
            .map(|j| {
                let (word, place) = (words[j / codes_per_word], j % codes_per_word);
                // A real sign is a fourth root without its imaginary bit.
                let code = if O::IS_COMPLEX { word >> (2 * place) } else { (word >> place & 1) << 1 };
                let sign = fourth_root::<O::Real>(code);
                O::from_parts(sign.re, sign.im)
            })
            .collect();
        Ok(CountSketch { hashes, signs, output_dim })
    }

    /// The sketch with a given hash and given signs.
    ///
    /// # Errors
    /// No coordinates, lists of different lengths, hashes that are not below `output_dim`.
    pub fn from_parts(hashes: Vec<u32>, signs: Vec<O>, output_dim: usize) -> Result<Self> {
        check_count("number of hashes", hashes.len())?;
        check_dim("number of signs", hashes.len(), signs.len())?;
        if let Some(hash) = hashes.iter().find(|&&h| h as usize >= output_dim) {
            return Err(Error::parameter("hashes", "less than output_dim", hash));
        }
        Ok(CountSketch { hashes: hashes.into(), signs: signs.into(), output_dim })
    }

    /// Output coordinate of every input coordinate.
    pub fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// Sign of every input coordinate.
    pub fn signs(&self) -> &[O] {
        &self.signs
    }

    /// `c(x)`, without the factor `√D` of the projection.
    ///
    /// # Panics
    /// If `out` does not have the sketch's output dimension.
    pub fn sketch_into(&self, row: &[O::Real], out: &mut [O]) {
        assert_eq!(out.len(), self.output_dim, "the output of a count sketch has its output dimension");
        out.fill(O::ZERO);
        self.for_each(row, |hash, value| out[hash] += value);
    }

    /// Hands the output coordinate and the signed value of every input coordinate to `add`.
    #[inline]
    pub(crate) fn for_each(&self, row: &[O::Real], mut add: impl FnMut(usize, O)) {
        for ((value, &hash), sign) in row.iter().zip(&*self.hashes).zip(&*self.signs) {
            add(hash as usize, sign.scale(*value));
        }
    }

    /// Adds `Re(conj(s(j)) u_h(j))` to every coordinate `j`; `fetch` gives both parts of the cotangent of an output.
    #[inline]
    pub(crate) fn pull_row(&self, out: &mut [O::Real], fetch: impl Fn(usize) -> (O::Real, O::Real)) {
        for ((out, &hash), sign) in out.iter_mut().zip(&*self.hashes).zip(&*self.signs) {
            let (re, im) = fetch(hash as usize);
            *out += sign.re() * re + sign.im() * im;
        }
    }

    /// Adds the sketch of a sparse row, given as (index, value) pairs, to `out`. Indices past the input are ignored.
    ///
    /// # Panics
    /// If `out` does not have the sketch's output dimension.
    pub fn add_entries(&self, entries: impl IntoIterator<Item = (usize, O::Real)>, out: &mut [O]) {
        assert_eq!(out.len(), self.output_dim, "the output of a count sketch has its output dimension");
        for (index, value) in entries {
            if let (Some(&hash), Some(sign)) = (self.hashes.get(index), self.signs.get(index)) {
                out[hash as usize] += sign.scale(value);
            }
        }
    }
}

impl<O: Scalar> Projection for CountSketch<O> {
    type Real = O::Real;
    type Output = O;

    fn input_dim(&self) -> usize {
        self.hashes.len()
    }

    fn output_dim(&self) -> usize {
        self.output_dim
    }

    fn project_tile(
        &self,
        rows: Tile<'_, O::Real>,
        columns: Range<usize>,
        mut out: TileMut<'_, O>,
        _work: &mut Workspace<O::Real>,
    ) {
        let scale = O::Real::from_f64((self.output_dim as f64).sqrt());
        for i in 0..rows.rows() {
            let out = out.row_mut(i);
            out.fill(O::ZERO);
            self.for_each(rows.row(i), |hash, value| {
                // Columns before the range wrap to large numbers: outside in both directions.
                if let Some(out) = out.get_mut(hash.wrapping_sub(columns.start)) {
                    *out += value;
                }
            });
            out.iter_mut().for_each(|o| *o = o.scale(scale));
        }
    }

    fn pull_tile(
        &self,
        from: Cotangents<'_, O::Real>,
        columns: Range<usize>,
        mut out: TileMut<'_, O::Real>,
        _work: &mut Workspace<O::Real>,
    ) {
        let scale = O::Real::from_f64((self.output_dim as f64).sqrt());
        for i in 0..from.re.rows() {
            let re = from.re.row(i);
            let im = if O::IS_COMPLEX { from.im.row(i) } else { &[] };
            self.pull_row(out.row_mut(i), |hash| {
                let at = hash.wrapping_sub(columns.start);
                let part = |part: &[O::Real]| part.get(at).map_or(O::Real::ZERO, |v| scale * *v);
                (part(re), part(im))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_quantile;
    use crate::variance::{PairStats, Weights, tensor_sketch, tensor_sketch_pseudo};
    use num_complex::Complex;

    const ALPHA: f64 = 1e-6;

    fn project<O: Scalar>(sketch: &CountSketch<O>, rows: &[O::Real]) -> Vec<O> {
        let (d, m) = (sketch.input_dim(), sketch.output_dim());
        let n = rows.len() / d;
        let mut out = vec![O::ZERO; n * m];
        sketch.project_tile(Tile::new(rows, n, d), 0..m, TileMut::new(&mut out, n, m), &mut Workspace::new());
        out
    }

    #[test]
    fn hashes_and_signs_are_the_draws_of_their_roles() {
        let seed = Seed::new(3);
        let sketch = CountSketch::<Complex<f32>>::new(200, 7, seed).unwrap();
        let mut hash = Stream::new(seed, Role::Hash, 0);
        assert!(sketch.hashes().iter().all(|&h| u64::from(h) == hash.below(7)));
        let mut words = [0; 7];
        Stream::new(seed, Role::Sign, 0).words_from(0, &mut words);
        for j in 0..200 {
            let power = Complex::i().powu((words[j / 32] >> (2 * (j % 32)) & 3) as u32);
            assert_eq!(sketch.signs()[j], power);
        }
        let real = CountSketch::<f64>::new(130, 7, seed).unwrap();
        for j in 0..130 {
            assert_eq!(real.signs()[j], if words[j / 64] >> (j % 64) & 1 == 0 { 1.0 } else { -1.0 });
        }
        // The first coordinates do not depend on how many follow.
        assert_eq!(CountSketch::<f64>::new(60, 7, seed).unwrap().hashes(), &real.hashes()[..60]);
    }

    #[test]
    fn dense_and_sparse_rows_have_the_same_sketch() {
        let sketch = CountSketch::<f64>::new(50, 9, Seed::new(1)).unwrap();
        let mut row = vec![0.0; 50];
        let entries = [(3, 1.5), (17, -2.0), (49, 0.25)];
        entries.iter().for_each(|&(j, v)| row[j] = v);
        let (mut dense, mut sparse) = (vec![f64::NAN; 9], vec![0.0; 9]);
        sketch.sketch_into(&row, &mut dense);
        sketch.add_entries(entries, &mut sparse);
        assert_eq!(dense, sparse);
    }

    #[test]
    fn the_projection_is_the_sketch_times_the_root_of_its_dimension() {
        let sketch = CountSketch::<Complex<f64>>::new(30, 16, Seed::new(2)).unwrap();
        let rows: Vec<f64> = (0..60).map(|i| f64::from(i).sin()).collect();
        let projected = project(&sketch, &rows);
        let mut raw = vec![Complex::ZERO; 16];
        for i in 0..2 {
            sketch.sketch_into(&rows[i * 30..][..30], &mut raw);
            for (p, r) in projected[i * 16..][..16].iter().zip(&raw) {
                assert_eq!(*p, r * 4.0);
            }
        }
    }

    #[test]
    fn any_columns_can_be_asked_for() {
        let sketch = CountSketch::<f32>::new(40, 10, Seed::new(5)).unwrap();
        let row: Vec<f32> = (0..40).map(|i| i as f32).collect();
        let all = project(&sketch, &row);
        for range in [0..10, 0..3, 3..7, 9..10] {
            let mut part = vec![f32::NAN; range.len()];
            let tile = TileMut::new(&mut part, 1, range.len());
            sketch.project_tile(Tile::new(&row, 1, 40), range.clone(), tile, &mut Workspace::new());
            assert_eq!(part, all[range]);
        }
    }

    #[test]
    fn rows_of_one_entry_keep_their_length() {
        for d in 0..20 {
            let sketch = CountSketch::<Complex<f64>>::new(20, 3, Seed::new(9)).unwrap();
            let mut row = vec![0.0; 20];
            row[d] = 3.0;
            let mut out = vec![Complex::ZERO; 3];
            sketch.sketch_into(&row, &mut out);
            assert_eq!(out.iter().map(|z| z.norm_sqr()).sum::<f64>(), 9.0);
        }
    }

    #[test]
    fn count_sketches_preserve_inner_products_with_their_closed_form_variance() {
        let (d, seeds) = (12, 4000u64);
        let x: Vec<f64> = (0..d).map(|i| ((3 * i + 1) as f64).sin()).collect();
        let y: Vec<f64> = (0..d).map(|i| ((2 * i + 5) as f64).cos()).collect();
        let rows = [x.clone(), y.clone()].concat();
        let stats = [PairStats::new(&x, &y)];
        // Six means and six variances, two-sided.
        let z = normal_quantile(1.0 - ALPHA / 24.0);
        for m in [31, 32] {
            let (mut real, mut complex) = (Vec::new(), Vec::new());
            for seed in 0..seeds {
                let out = project(&CountSketch::<f64>::new(d, m, Seed::new(seed)).unwrap(), &rows);
                real.push((0..m).map(|k| out[k] * out[m + k]).sum::<f64>() / m as f64);
                let out = project(&CountSketch::<Complex<f64>>::new(d, m, Seed::new(seed)).unwrap(), &rows);
                complex.push((0..m).map(|k| out[k] * out[m + k].conj()).sum::<Complex<f64>>() / m as f64);
            }
            let check = |sample: &[f64], exact: f64, variance: f64| {
                let n = sample.len() as f64;
                let mean = sample.iter().sum::<f64>() / n;
                assert!((mean - exact).abs() <= z * (variance / n).sqrt(), "mean {mean} instead of {exact}");
                // Kurtosis enters through the sample: the estimate is a polynomial in signs, not quite normal.
                let spread: Vec<f64> = sample.iter().map(|k| (k - exact).powi(2)).collect();
                let found = spread.iter().sum::<f64>() / n;
                let fourth = spread.iter().map(|s| (s - variance).powi(2)).sum::<f64>() / n;
                assert!((found - variance).abs() <= z * (fourth / n).sqrt(), "variance {found} instead of {variance}");
            };
            check(&real, stats[0].dot, tensor_sketch(&stats, Weights::Real, m));
            // Real and imaginary parts have variances (Var ± PVar)/2.
            let (var, pvar) = (tensor_sketch(&stats, Weights::Complex, m), tensor_sketch_pseudo(&stats, m));
            check(&complex.iter().map(|k| k.re).collect::<Vec<_>>(), stats[0].dot, (var + pvar) / 2.0);
            check(&complex.iter().map(|k| k.im).collect::<Vec<_>>(), 0.0, (var - pvar) / 2.0);
        }
    }

    #[test]
    fn impossible_dimensions_are_refused() {
        assert!(CountSketch::<f32>::new(0, 5, Seed::new(0)).is_err());
        assert!(CountSketch::<f32>::new(5, 0, Seed::new(0)).is_err());
        assert!(CountSketch::<f32>::new(5, 1 << 32, Seed::new(0)).is_err());
        assert!(CountSketch::from_parts(vec![0, 3], vec![1.0f32, 1.0], 3).is_err());
        assert!(CountSketch::from_parts(vec![0, 2], vec![1.0f32], 3).is_err());
        assert!(CountSketch::from_parts(vec![0, 2], vec![1.0f32, -1.0], 3).is_ok());
    }
}

//! Attention in time and memory linear in the length of the sequence.
//!
//! Exact attention weighs the value of every key by `exp(⟨q, k⟩/√d)`. Features of the exponential kernel make the weight an
//! inner product `φ(q)·φ(k)`, so that sums over keys are taken once for all queries: `O(L d M)` instead of `O(L² d)`.

use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::FeatureMap;
use crate::interrupt;
use crate::linalg::gemm::{Dense, matmul_nn, matmul_nt, product};
use crate::linalg::{Tile, TileMut, Workspace, exp_in_place, maximum};
use crate::parallel::Parallel;
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

/// Queries whose exact weights are held at once.
const EXACT_ROWS: usize = 256;

/// Keys and queries of one task of linear attention, at least.
const TILE_ROWS: usize = 128;

/// Tiles whose sums are held at once.
const GROUP: usize = 32;

/// Shapes and numbers that make sense together.
fn check<R: Real>(q: ArrayView2<'_, R>, k: ArrayView2<'_, R>, v: ArrayView2<'_, R>, causal: bool) -> Result<()> {
    check_count("number of columns of q", q.ncols())?;
    check_count("number of rows of k", k.nrows())?;
    check_dim("number of columns of k", q.ncols(), k.ncols())?;
    check_dim("number of rows of v", k.nrows(), v.nrows())?;
    if causal {
        check_dim("number of rows of k for causal attention", q.nrows(), k.nrows())?;
    }
    check_finite("q", q, 0)?;
    check_finite("k", k, 0)?;
    check_finite("v", v, 0)
}

/// Exact attention: row `i` is the mean of the rows of `v` with weights proportional to `exp(⟨qᵢ, kⱼ⟩/√d)`, over all `j` or,
/// if `causal`, over `j ≤ i`.
///
/// The reference for [`linear_attention`]: `O(L² d)` time; memory for 256 rows of weights.
///
/// # Errors
/// Shapes that do not fit; NaN or infinities.
///
/// ```
/// use bochner::attention::softmax_attention;
/// use ndarray::array;
/// let (q, k, v) = (array![[0.0, 0.0]], array![[1.0, 2.0], [3.0, 4.0]], array![[1.0], [2.0]]);
/// assert_eq!(softmax_attention(q.view(), k.view(), v.view(), false)?, array![[1.5]]);
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn softmax_attention<R: Real>(
    q: ArrayView2<'_, R>,
    k: ArrayView2<'_, R>,
    v: ArrayView2<'_, R>,
    causal: bool,
) -> Result<Array2<R>> {
    check(q, k, v, causal)?;
    let (d, width) = (q.ncols(), v.ncols());
    let mut out = Array2::from_elem((q.nrows(), width), R::ZERO);
    let (q, k, v) = (q.as_standard_layout(), k.as_standard_layout(), v.as_standard_layout());
    let keys = Tile::new(k.as_slice().expect("standard layout"), k.nrows(), d);
    let values = Tile::new(v.as_slice().expect("standard layout"), v.nrows(), width);
    let factor = R::from_f64(1.0 / (d as f64).sqrt());
    let mut weights = vec![R::ZERO; EXACT_ROWS.min(q.nrows()) * k.nrows()];
    for (block, mut out) in out.axis_chunks_iter_mut(Axis(0), EXACT_ROWS).enumerate() {
        interrupt::check()?;
        let (first, n) = (block * EXACT_ROWS, out.nrows());
        // No query of a causal block sees a key behind the block.
        let seen = if causal { first + n } else { k.nrows() };
        let queries = q.slice(s![first..first + n, ..]);
        let queries = Tile::new(queries.to_slice().expect("rows of a standard layout"), n, d);
        matmul_nt(queries, keys.rows_in(0..seen), TileMut::new(&mut weights[..n * seen], n, seen))?;
        weights[..n * seen].chunks_mut(seen).enumerate().in_parallel().for_each(|(i, row)| {
            let (visible, hidden) = row.split_at_mut(if causal { first + i + 1 } else { seen });
            let most = factor * maximum(visible);
            exp_in_place(visible, factor, most);
            let sum: f64 = visible.iter().map(|w| Real::to_f64(*w)).sum();
            visible.iter_mut().for_each(|w| *w = R::from_f64(Real::to_f64(*w) / sum));
            hidden.fill(R::ZERO);
        });
        if width > 0 {
            let out = TileMut::new(out.as_slice_mut().expect("whole rows"), n, width);
            matmul_nn(Tile::new(&weights[..n * seen], n, seen), values.rows_in(0..seen), out)?;
        }
    }
    Ok(out)
}

/// Sums over some keys: `Σ e^(-exponent) φ(kⱼ) (vⱼ, 1)ᵀ`, and the plain sum of values for queries that see none of them.
#[derive(Clone)]
struct Sums<R> {
    /// One row for every column of the values, and one for the constant.
    features: Vec<R>,
    exponent: f64,
    values: Vec<f64>,
    count: usize,
}

impl<R: Real> Sums<R> {
    fn none(features: usize, width: usize) -> Self {
        Sums { features: vec![R::ZERO; features], exponent: f64::NEG_INFINITY, values: vec![0.0; width], count: 0 }
    }

    fn add(&mut self, other: &Sums<R>) {
        let most = self.exponent.max(other.exponent);
        let factor = |exponent: f64| R::from_f64(if exponent == most { 1.0 } else { libm::exp(exponent - most) });
        let (mine, theirs) = (factor(self.exponent), factor(other.exponent));
        for (a, b) in self.features.iter_mut().zip(&other.features) {
            *a = mine * *a + theirs * *b;
        }
        self.exponent = most;
        self.values.iter_mut().zip(&other.values).for_each(|(a, b)| *a += *b);
        self.count += other.count;
    }
}

/// Keys of a tile with their features and sums.
struct Keys<R> {
    features: Vec<R>,
    exponents: Vec<f64>,
    /// Values, and a column of ones.
    values: Vec<R>,
    sums: Sums<R>,
}

/// What all tiles share.
struct Attention<'a, R: Real> {
    map: &'a dyn FeatureMap<Real = R, Output = R>,
    /// `d^(-1/4)`.
    scale: R,
    width: usize,
}

impl<R: Real> Attention<'_, R> {
    /// Features of a tile of rows, divided by the exponentials of the returned exponents.
    fn features(
        &self,
        name: &'static str,
        first: usize,
        rows: ArrayView2<'_, R>,
        work: &mut Workspace<R>,
    ) -> Result<(Vec<R>, Vec<f64>)> {
        let ((n, d), m) = (rows.dim(), self.map.output_dim());
        let mut scaled = work.take(n * d);
        scaled.iter_mut().zip(rows.iter()).for_each(|(to, from)| *to = self.scale * *from);
        let tile = Tile::new(&scaled, n, d);
        self.map.check_tile(tile).map_err(|error| match error.rows_from(first) {
            Error::Row { row, reason } => Error::Row { row, reason: format!("of {name} {reason}") },
            other => other,
        })?;
        let (mut features, mut exponents) = (work.take(n * m), vec![0.0; n]);
        self.map.map_tile_scaled(tile, TileMut::new(&mut features, n, m), &mut exponents, work);
        work.give(scaled);
        Ok((features, exponents))
    }

    fn keys(
        &self,
        first: usize,
        k: ArrayView2<'_, R>,
        v: ArrayView2<'_, R>,
        work: &mut Workspace<R>,
    ) -> Result<Keys<R>> {
        let (n, m, width) = (k.nrows(), self.map.output_dim(), self.width + 1);
        let (features, exponents) = self.features("k", first, k, work)?;
        let mut values = work.take(n * width);
        for (row, v) in values.chunks_exact_mut(width).zip(v.rows()) {
            row.iter_mut().zip(v.iter()).for_each(|(to, from)| *to = *from);
            row[width - 1] = R::ONE;
        }
        let mut sums = Sums::none(width * m, self.width);
        sums.exponent = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        sums.count = n;
        for row in values.chunks_exact(width) {
            sums.values.iter_mut().zip(row).for_each(|(sum, v)| *sum += Real::to_f64(*v));
        }
        // Keys are weighted through their values, which are fewer than their features.
        let mut turned = work.take(width * n);
        for (i, (row, exponent)) in values.chunks_exact(width).zip(&exponents).enumerate() {
            let weight = R::from_f64(libm::exp(exponent - sums.exponent));
            (0..width).for_each(|c| turned[c * n + i] = weight * row[c]);
        }
        let right = Dense::Plain(Tile::new(&features, n, m));
        let out = TileMut::new(&mut sums.features, width, m);
        product(Tile::new(&turned, width, n), &right, 0..m, [out], work);
        work.give(turned);
        Ok(Keys { features, exponents, values, sums })
    }

    /// Writes the outputs of a tile of queries that see `before` and, where given, the keys of their own tile up to
    /// themselves.
    fn queries(
        &self,
        first: usize,
        q: ArrayView2<'_, R>,
        before: &Sums<R>,
        own: Option<&Keys<R>>,
        mut out: ArrayViewMut2<'_, R>,
        work: &mut Workspace<R>,
    ) -> Result<()> {
        let (n, m, width) = (q.nrows(), self.map.output_dim(), self.width + 1);
        // A query's exponent is the same above and below the line.
        let (features, _) = self.features("q", first, q, work)?;
        let rows = Tile::new(&features, n, m);
        let mut sums = work.take(n * width);
        let right = Dense::Transposed(Tile::new(&before.features, width, m));
        product(rows, &right, 0..width, [TileMut::new(&mut sums, n, width)], work);
        if let Some(keys) = own {
            let mut weights = work.take(n * n);
            let right = Dense::Transposed(Tile::new(&keys.features, n, m));
            product(rows, &right, 0..n, [TileMut::new(&mut weights, n, n)], work);
            // e^(exponentⱼ - most) for the keys seen so far: the largest of them, not of the tile, so that early queries
            // keep their digits. It changes rarely.
            let (mut most, mut factors) = (f64::NEG_INFINITY, work.take(n));
            for (i, row) in weights.chunks_exact_mut(n).enumerate() {
                let larger = most.max(before.exponent).max(keys.exponents[i]);
                let from = if larger > most { 0 } else { i };
                most = larger;
                for j in from..=i {
                    factors[j] = R::from_f64(libm::exp(keys.exponents[j] - most));
                }
                row[..=i].iter_mut().zip(&factors).for_each(|(w, f)| *w *= *f);
                row[i + 1..].fill(R::ZERO);
                let earlier = R::from_f64(libm::exp(before.exponent - most));
                sums[i * width..][..width].iter_mut().for_each(|s| *s *= earlier);
            }
            let mut near = work.take(n * width);
            let right = Dense::Plain(Tile::new(&keys.values, n, width));
            product(Tile::new(&weights, n, n), &right, 0..width, [TileMut::new(&mut near, n, width)], work);
            sums.iter_mut().zip(&near).for_each(|(s, t)| *s += *t);
            [weights, factors, near].into_iter().for_each(|buffer| work.give(buffer));
        }
        for (i, mut out) in out.rows_mut().into_iter().enumerate() {
            let (above, below) = sums[i * width..][..width].split_at(width - 1);
            let below = below[0];
            if below >= R::min_positive_value() && below.is_finite() {
                out.iter_mut().zip(above).for_each(|(o, a)| *o = *a / below);
            } else if below == R::ZERO || (below > R::ZERO && below.is_finite()) {
                // Every weight is below the smallest number: nothing tells the keys apart.
                let seen = |c: usize| -> f64 {
                    own.map_or(0.0, |keys| (0..=i).map(|j| Real::to_f64(keys.values[j * width + c])).sum())
                };
                let count = (before.count + if own.is_some() { i + 1 } else { 0 }) as f64;
                for (c, o) in out.iter_mut().enumerate() {
                    *o = R::from_f64((before.values[c] + seen(c)) / count);
                }
            } else {
                return Err(Error::Row {
                    row: first + i,
                    reason: format!(
                        "of q has weights that add up to {:.1e}; only positive features give positive sums, others \
                         need more of them",
                        Real::to_f64(below)
                    ),
                });
            }
        }
        work.give(sums);
        work.give(features);
        Ok(())
    }
}

/// Attention through features: row `i` is the mean of the rows of `v` with weights proportional to
/// `⟨φ(qᵢ/d^¼), φ(kⱼ/d^¼)⟩`, over all `j` or, if `causal`, over `j ≤ i`.
///
/// With features of `exp(⟨x, y⟩)` ([`PositiveSpec`](crate::feature::PositiveSpec), or any other map of this kernel) it
/// estimates [`softmax_attention`]. Positive features make every output a mean of values. With other features a sum of
/// weights may come out zero or negative: an error names the query.
///
/// # Range
/// Common factors cancel between numerator and denominator, so features come without them
/// ([`map_tile_scaled`](FeatureMap::map_tile_scaled)): the largest exponent of every query is subtracted, and for keys the
/// largest one of those seen so far. Where all weights of a query are below the smallest number of the type, they are
/// taken as equal. (A constant added to every feature would do, too, but 10⁻⁶ per feature weighs as much as the largest
/// key once there are a million keys.)
///
/// # Cost
/// `O(L M (d + w))` time for values of width `w`; memory for 32 tiles of keys beside the output.
///
/// # Errors
/// Shapes that do not fit; NaN or infinities; rows the map refuses; sums of weights that are not positive.
///
/// ```
/// use bochner::attention::{linear_attention, softmax_attention};
/// use bochner::feature::{Describe, PositiveSpec};
/// use ndarray::Array2;
/// let wave = |step: f64| Array2::from_shape_fn((50, 4), |(i, j)| (step * i as f64 + j as f64).sin());
/// let (q, k, v) = (wave(0.1), wave(0.2), wave(0.3));
/// let map = PositiveSpec { n_components: 4096, ..Default::default() }.build::<f64>(4)?;
/// let exact = softmax_attention(q.view(), k.view(), v.view(), true)?;
/// let found = linear_attention(q.view(), k.view(), v.view(), &*map, true)?;
/// assert!((&found - &exact).mapv(f64::abs).mean().unwrap() < 0.05);
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn linear_attention<R: Real>(
    q: ArrayView2<'_, R>,
    k: ArrayView2<'_, R>,
    v: ArrayView2<'_, R>,
    map: &dyn FeatureMap<Real = R, Output = R>,
    causal: bool,
) -> Result<Array2<R>> {
    check(q, k, v, causal)?;
    check_dim("number of columns of q", map.input_dim(), q.ncols())?;
    let (m, width) = (map.output_dim(), v.ncols());
    let job = Attention { map, scale: R::from_f64(1.0 / (q.ncols() as f64).sqrt().sqrt()), width };
    let mut out = Array2::from_elem((q.nrows(), width), R::ZERO);
    // Sums of a tile take as much memory as its features when it has as many rows as the values have columns. A function
    // of shapes alone: bits do not depend on threads.
    let tile = TILE_ROWS.max(width.next_multiple_of(64)).max(map.tile_rows());
    let mut seen = Sums::none((width + 1) * m, width);
    let starts: Vec<usize> = (0..k.nrows()).step_by(tile).collect();
    for group in starts.chunks(GROUP) {
        interrupt::check()?;
        let rows = |first: usize| first..(first + tile).min(k.nrows());
        let keys = group.iter().in_parallel().map_init(Workspace::new, |work, &first| {
            let range = rows(first);
            job.keys(first, k.slice(s![range.clone(), ..]), v.slice(s![range, ..]), work)
        });
        let keys = keys.into_iter().collect::<Result<Vec<_>>>()?;
        let mut before = Vec::with_capacity(if causal { keys.len() } else { 0 });
        for keys in &keys {
            if causal {
                before.push(seen.clone());
            }
            seen.add(&keys.sums);
        }
        if causal {
            let range = group[0]..rows(group[group.len() - 1]).end;
            let mut out = out.slice_mut(s![range, ..]);
            let tiles = out.axis_chunks_iter_mut(Axis(0), tile).zip(group).zip(keys.iter().zip(&before));
            tiles.in_parallel().try_for_each_init(Workspace::new, |work, ((out, &first), (keys, before))| {
                job.queries(first, q.slice(s![rows(first), ..]), before, Some(keys), out, work)
            })?;
        }
    }
    if !causal {
        let tiles = out.axis_chunks_iter_mut(Axis(0), tile).enumerate();
        tiles.in_parallel().try_for_each_init(Workspace::new, |work, (i, out)| {
            let range = i * tile..i * tile + out.nrows();
            job.queries(i * tile, q.slice(s![range, ..]), &seen, None, out, work)
        })?;
    }
    Ok(out)
}

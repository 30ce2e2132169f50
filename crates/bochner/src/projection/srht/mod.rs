//! Subsampled randomised Hadamard transforms.

mod kernel;

use super::{Cotangents, Parts, Projection};
use crate::error::{Error, Result, check_count};
use crate::linalg::hadamard::LONGEST;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::memory::{bytes, need};
use crate::parameter::words;
use crate::random::{Role, Seed, Stream};
use crate::scalar::Scalar;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

words! {
    /// Which coordinates of the transform become outputs; `d'` is the padded input dimension.
    pub enum Sampling {
        /// One vector of signs; the coordinates `0..d'`, repeated until they suffice, in random order. The cheapest, and equal
        /// in law to stacking for at most `d'` outputs.
        Upsampled = "upsampled",
        /// Fresh signs and a fresh permutation for every block of `d'` outputs.
        Stacked = "stacked",
        /// One vector of signs; the factors of a product see distinct tuples of coordinates, drawn from all `d'ᵖ` of them
        /// (Ahle et al. 2020); with repetition where there are fewer tuples than outputs.
        Tuple = "tuple",
    }
}

/// Largest number of outputs.
const MOST_OUTPUTS: usize = 1 << 28;

/// Subsampled randomised Hadamard transform: coordinates of `H(z ∘ x)`.
///
/// `x` is padded with zeros to the next power of two `d'`, `z` are random signs (±1, or fourth roots of one for complex
/// output) and `H` is the Walsh–Hadamard matrix of order `d'`, unnormalised. Every direction has entries of modulus 1, so
/// `E[w wᴴ] = I`. Products of independent factors are TensorSRHT, the sketch of polynomial kernels; several factors are
/// drawn together by [`factors`](Self::factors).
///
/// # Estimate
/// Exact (`⟨Wx, Wy⟩/D = ⟨x, y⟩`) for stacked and upsampled outputs if `D` is a multiple of `d'`. Variances in
/// [`crate::variance`]; they depend on `d'`, not on `d`.
///
/// # Cost
/// `O(d' log d' + D)` per row and factor; stacked `O(D log d')`. Memory `O(d)` bits and `4D` bytes.
///
/// # References
/// Ailon and Chazelle 2009; Tropp 2011; thesis 2.2.3 and 3.5 (products, complex signs).
///
/// ```
/// use bochner::linalg::{Tile, TileMut, Workspace};
/// use bochner::projection::{Projection, Sampling, Srht};
/// use bochner::random::Seed;
/// let map = Srht::<f32, f32>::new(Seed::new(1), 3, 8, Sampling::Upsampled)?;
/// let mut out = [0.0; 8];
/// map.project_tile(Tile::new(&[1.0, 2.0, 3.0], 1, 3), 0..8, TileMut::new(&mut out, 1, 8), &mut Workspace::new());
/// assert_eq!(out.iter().map(|u| u * u).sum::<f32>() / 8.0, 1.0 + 4.0 + 9.0);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Srht<R, O> {
    input_dim: usize,
    padded: usize,
    output_dim: usize,
    sampling: Sampling,
    /// Consecutive outputs that share their signs.
    block: usize,
    /// Signs block by block, each beginning with a new word; 64 to a word, or 32 fourth roots of one.
    signs: Arc<[u64]>,
    /// The coordinate behind every output, less than `padded`, times the numbers per coordinate in the tables of
    /// [`kernel`]: eight, or sixteen for complex output. Seven zeros follow, so that every output begins a group of eight.
    offsets: Arc<[u32]>,
    numbers: PhantomData<fn() -> (R, O)>,
}

impl<O: Scalar> Srht<O::Real, O> {
    /// One projection.
    ///
    /// # Errors
    /// Dimensions that are zero or beyond reach.
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize, sampling: Sampling) -> Result<Self> {
        let padded = check(input_dim, output_dim)?;
        let blocks = output_dim.div_ceil(padded);
        let indices: Vec<u32> = match sampling {
            Sampling::Stacked => {
                let draw = |b| Stream::new(seed, Role::Index, b as u64).permutation(padded);
                (0..blocks).flat_map(draw).take(output_dim).collect()
            }
            Sampling::Upsampled => {
                let mut indices: Vec<u32> = (0..blocks).flat_map(|_| 0..padded as u32).collect();
                Stream::new(seed, Role::Index, 0).shuffle(&mut indices);
                indices.truncate(output_dim);
                indices
            }
            Sampling::Tuple => {
                let mut indices = tuples(seed, &[padded], output_dim);
                indices.pop().unwrap_or_default()
            }
        };
        Ok(Self::with_indices(seed, input_dim, padded, sampling, indices))
    }

    /// The independent factors of a product sketch; factor `i` sees rows of length `input_dims[i]`.
    ///
    /// # Errors
    /// No factors, or dimensions that are zero or beyond reach.
    pub fn factors(seed: Seed, input_dims: &[usize], output_dim: usize, sampling: Sampling) -> Result<Vec<Self>> {
        check_count("degree", input_dims.len())?;
        if sampling == Sampling::Tuple {
            return Self::tuple_factors(seed, input_dims, output_dim);
        }
        let draw = |(i, &dim)| Self::new(seed.child(i as u64), dim, output_dim, sampling);
        input_dims.iter().enumerate().map(draw).collect()
    }

    /// Factors whose coordinates are drawn together: the tuples of coordinates behind the outputs are distinct, unless
    /// there are fewer than `output_dim` of them; then they are independent.
    ///
    /// # Errors
    /// As [`factors`](Self::factors).
    pub fn tuple_factors(seed: Seed, input_dims: &[usize], output_dim: usize) -> Result<Vec<Self>> {
        check_count("degree", input_dims.len())?;
        let padded = input_dims.iter().map(|&dim| check(dim, output_dim)).collect::<Result<Vec<_>>>()?;
        let indices = tuples(seed, &padded, output_dim);
        let factor =
            |(i, indices)| Self::with_indices(seed.child(i as u64), input_dims[i], padded[i], Sampling::Tuple, indices);
        Ok(indices.into_iter().enumerate().map(factor).collect())
    }

    fn with_indices(seed: Seed, input_dim: usize, padded: usize, sampling: Sampling, indices: Vec<u32>) -> Self {
        let output_dim = indices.len();
        let block = if sampling == Sampling::Stacked { padded } else { output_dim };
        let words = Self::words(input_dim);
        let mut signs = vec![0; output_dim.div_ceil(block) * words];
        for (b, signs) in signs.chunks_exact_mut(words).enumerate() {
            Stream::new(seed, Role::Sign, b as u64).fill_sign_bits(signs);
        }
        let offset = |index| {
            assert!((index as usize) < padded, "coordinates are drawn below {padded}");
            index * if O::IS_COMPLEX { 16 } else { 8 }
        };
        let (signs, offsets) = (signs.into(), indices.into_iter().chain([0; 7]).map(offset).collect());
        Srht { input_dim, padded, output_dim, sampling, block, signs, offsets, numbers: PhantomData }
    }

    /// Words of signs per block; padding needs none.
    fn words(input_dim: usize) -> usize {
        input_dim.div_ceil(if O::IS_COMPLEX { 32 } else { 64 })
    }

    /// Length of a padded row, on which variances depend.
    pub fn padded_dim(&self) -> usize {
        self.padded
    }

    /// How coordinates were chosen.
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }
}

/// The padded dimension of a valid pair of dimensions.
fn check(input_dim: usize, output_dim: usize) -> Result<usize> {
    check_count("input_dim", input_dim)?;
    check_count("output_dim", output_dim)?;
    if input_dim > LONGEST {
        return Err(Error::parameter("input_dim", "at most 2^26 for a Hadamard transform", input_dim));
    }
    if output_dim > MOST_OUTPUTS {
        return Err(Error::parameter("output_dim", "at most 2^28 for a Hadamard transform", output_dim));
    }
    let padded = input_dim.next_power_of_two();
    // Indices, offsets and the copies on their way; signs of every block.
    let (words, blocks) = (padded.div_ceil(32), output_dim.div_ceil(padded));
    let needed = bytes::<[u32; 4]>(&[output_dim.max(padded)]).saturating_add(bytes::<u64>(&[words, blocks]));
    need("indices of a Hadamard transform", needed, |_| "ask for fewer outputs".into())?;
    Ok(padded)
}

/// `count` tuples with entry `i` below `bounds[i]` (powers of two), as one list per entry.
fn tuples(seed: Seed, bounds: &[usize], count: usize) -> Vec<Vec<u32>> {
    let mut draw = Stream::new(seed, Role::Index, 0);
    let bits = bounds.iter().map(|bound| bound.trailing_zeros()).sum::<u32>();
    let mut lists = vec![Vec::with_capacity(count); bounds.len()];
    let mut push = |mut code: u128| {
        for (list, bound) in lists.iter_mut().zip(bounds) {
            list.push((code & (*bound as u128 - 1)) as u32);
            code >>= bound.trailing_zeros();
        }
    };
    if bits < 64 && count as u64 <= 1 << bits {
        draw.distinct(1 << bits, count).into_iter().for_each(|code| push(code.into()));
    } else if bits < 64 {
        (0..count).for_each(|_| push(draw.next_u64().into()));
    } else if bits < 128 {
        let mut seen = HashSet::with_capacity(count);
        while seen.len() < count {
            let code = u128::from(draw.next_u64()) | u128::from(draw.next_u64()) << 64;
            let code = code & ((1 << bits) - 1);
            if seen.insert(code) {
                push(code);
            }
        }
    } else {
        // Among 2²⁸ tuples out of 2¹²⁸ two are equal with probability 2⁻⁷³: not worth remembering them.
        for _ in 0..count {
            for (list, bound) in lists.iter_mut().zip(bounds) {
                list.push(draw.below(*bound as u64) as u32);
            }
        }
    }
    lists
}

impl<O: Scalar> Projection for Srht<O::Real, O> {
    type Real = O::Real;
    type Output = O;

    dims!();

    fn panel(&self) -> usize {
        self.block
    }

    fn operations(&self) -> u64 {
        // A transform per block of outputs, its additions at a quarter of the speed of products, and a place to look up per
        // output; twice that for complex signs.
        let parts = if O::IS_COMPLEX { 2 } else { 1 };
        let transforms = self.output_dim.div_ceil(self.block.max(1)) as u64;
        let additions = self.padded as u64 * u64::from(self.padded.ilog2());
        parts * (4 * transforms * additions + 8 * self.output_dim as u64)
    }

    fn project_tile(
        &self,
        rows: Tile<'_, O::Real>,
        columns: Range<usize>,
        out: TileMut<'_, O>,
        work: &mut Workspace<O::Real>,
    ) {
        kernel::product(std::slice::from_ref(self), &[rows], columns, out, work);
    }

    fn project_tile_split(
        &self,
        rows: Tile<'_, O::Real>,
        columns: Range<usize>,
        out: Parts<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        kernel::product(std::slice::from_ref(self), &[rows], columns, out, work);
    }

    fn pull_tile(
        &self,
        from: Cotangents<'_, O::Real>,
        columns: Range<usize>,
        out: TileMut<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        kernel::pull(self, from, columns, out, work);
    }

    fn product_tile(factors: &[Self], rows: &[Tile<'_, O::Real>], out: TileMut<'_, O>, work: &mut Workspace<O::Real>) {
        kernel::product(factors, rows, 0..out.cols(), out, work);
    }

    fn product_tile_split(
        factors: &[Self],
        rows: &[Tile<'_, O::Real>],
        out: Parts<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        kernel::product(factors, rows, 0..out.re.cols(), out, work);
    }
}

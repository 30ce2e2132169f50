//! Complex chains of rows that are a few times as long as the first-level cache: three sweeps through the second-level cache
//! instead of one for every few stages of every transform.
//!
//! A row is cut into 2 to 16 *blocks* of half a first-level cache. Stages inside blocks and across blocks commute, so that
//! the stages across blocks of all three transforms after the first round can be done together, one pack of every block at a time:
//!
//! 1. per block: the first round, `D₂`, and the stages of the second transform inside the block;
//! 2. per place in the blocks: the other stages of that transform, `D₁` with its turns, and the stages across blocks of the
//!    last transforms, of real and imaginary parts;
//! 3. per block: the stages of the last transforms inside it. Both parts of the block are then in cache, and are handed out.

use super::{ROUNDS, first_piece, long_scale};
use crate::linalg::hadamard::{BLOCK_BYTES, radix, row, row_of_pieces};
use crate::linalg::vectors::{SLACK, VectorKernel, Vectors, aligned};
use crate::scalar::Real;

/// Bytes between blocks: without them the same places of all blocks would share a set of the first-level cache.
const GAP_BYTES: usize = 64;

/// Most blocks: as many as there are registers.
const MOST_BLOCKS: usize = 16;

/// Numbers of a block.
const fn block<R>() -> usize {
    BLOCK_BYTES / size_of::<R>()
}

/// Numbers from one block to the next.
const fn stride<R>() -> usize {
    (BLOCK_BYTES + GAP_BYTES) / size_of::<R>()
}

/// Whether rows of this padded length are handled here.
pub(super) fn takes<R: Real>(dim: usize) -> bool {
    (2..=MOST_BLOCKS).contains(&(dim / block::<R>()))
}

/// Numbers of [`Chain::buffer`].
pub(super) fn buffer_len<R: Real>(dim: usize) -> usize {
    2 * (dim / block::<R>()) * stride::<R>() + SLACK
}

/// One row through one block of the chain.
pub(super) struct Chain<'a, R> {
    pub(super) row: &'a [R],
    /// The padded dimension.
    pub(super) dim: usize,
    /// How many of the outputs are wanted.
    pub(super) used: usize,
    /// `D₃`, `D₂`, `D₁`.
    pub(super) signs: [&'a [u64]; ROUNDS],
    /// Where `D₁` is turned by a right angle.
    pub(super) turns: &'a [u64],
    /// [`buffer_len`] numbers.
    pub(super) buffer: &'a mut [R],
    /// Gets the place of the first of some outputs, their real and their imaginary parts.
    pub(super) visit: &'a mut dyn FnMut(usize, &[R], &[R]),
}

impl<R: Real> VectorKernel<R> for Chain<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, s: S) {
        let Chain { row: from, dim, used, signs: [d3, d2, d1], turns, buffer, visit } = self;
        let (block, stride) = (block::<R>(), stride::<R>());
        let blocks = dim / block;
        let (re, im) = aligned(buffer)[..2 * blocks * stride].split_at_mut(blocks * stride);
        let scale = s.splat(long_scale(dim));
        for (b, re) in re.chunks_exact_mut(stride).enumerate() {
            row_of_pieces(
                s,
                &mut re[..block],
                #[inline(always)]
                |one, piece, at| first_piece(s, one, from, scale, [d3, d2], piece, b * block + at),
            );
        }
        match blocks {
            16 => across::<R, S, 16>(s, [d1, turns], re, im),
            8 => across::<R, S, 8>(s, [d1, turns], re, im),
            4 => across::<R, S, 4>(s, [d1, turns], re, im),
            _ => across::<R, S, 2>(s, [d1, turns], re, im),
        }
        let parts = re.chunks_exact_mut(stride).zip(im.chunks_exact_mut(stride));
        for (first, (re, im)) in (0..used).step_by(block).zip(parts) {
            let (re, im) = (&mut re[..block], &mut im[..block]);
            row(s, im);
            row(s, re);
            let here = block.min(used - first);
            visit(first, &re[..here], &im[..here]);
        }
    }
}

/// The second sweep, for `N` blocks.
#[inline(always)]
fn across<R: Real, S: Vectors<R>, const N: usize>(s: S, [d1, turns]: [&[u64]; 2], re: &mut [R], im: &mut [R]) {
    let (packs, stride, per_word) = (block::<R>() / R::WIDTH, stride::<R>() / R::WIDTH, 64 / R::WIDTH);
    // Lengths known to the compiler: all places below are in bounds.
    let (re, im) = (&mut R::packs_mut(re)[..N * stride], &mut R::packs_mut(im)[..N * stride]);
    let words = packs / per_word;
    let (d1, turns) = (&d1[..N * words], &turns[..N * words]);
    let mut column = [re[0]; N];
    let mut turned = column;
    for j in 0..packs {
        let (word, pack) = (j / per_word, j % per_word);
        radix::<R, S, N>(
            s,
            None,
            #[inline(always)]
            |b| s.load(&re[b * stride + j]),
            #[inline(always)]
            |b, v| s.store(&mut column[b], v),
        );
        for b in 0..N {
            let v = s.flip(s.load(&column[b]), d1[b * words + word], pack);
            // A turned sign is ±i: its product is imaginary, the others are real.
            let [straight, across] = s.sort(v, turns[b * words + word], pack);
            s.store(&mut column[b], straight);
            s.store(&mut turned[b], across);
        }
        radix::<R, S, N>(
            s,
            None,
            #[inline(always)]
            |b| s.load(&turned[b]),
            #[inline(always)]
            |b, v| s.store(&mut im[b * stride + j], v),
        );
        radix::<R, S, N>(
            s,
            None,
            #[inline(always)]
            |b| s.load(&column[b]),
            #[inline(always)]
            |b, v| s.store(&mut re[b * stride + j], v),
        );
    }
}

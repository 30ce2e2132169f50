//! Draws as functions of (seed, role, index): order and threads have nothing to decide.
//!
//! A [`Stream`] is one ChaCha8 sequence: its key is the seed and the [`Role`], its stream number the index. Any normal,
//! sign or permutation is reached directly, without producing what comes before it.

mod chacha;
mod normal;
mod stream;
#[cfg(test)]
mod tests;

pub use stream::{Stream, fill_normals, fourth_root};

/// Where all draws of a map start from.
///
/// ```
/// use bochner::random::Seed;
/// let seed = Seed::new(7);
/// assert_ne!(seed.child(0), seed.child(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Seed(u64);

impl Seed {
    /// The seed with this number.
    pub const fn new(number: u64) -> Self {
        Seed(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The seed of part `label` of a composed map (a factor, a degree, a block), unrelated to its siblings.
    pub const fn child(self, label: u64) -> Seed {
        // Two rounds of SplitMix64: a bijection of the label for every seed, so siblings never collide.
        Seed(mix(mix(self.0).wrapping_add(mix(label.wrapping_add(0x9e37_79b9_7f4a_7c15)))))
    }
}

const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a draw is for. The numbers are part of every saved model: append, never renumber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Role {
    /// Entries of a direction (a row of a projection).
    Direction = 1,
    /// Random signs, real or in `{1, -1, i, -i}`.
    Sign = 2,
    /// Permutations and sampled indices.
    Index = 3,
    /// Lengths of directions.
    Radius = 4,
    /// Phases of offset features.
    Offset = 5,
    /// Hash functions of count sketches.
    Hash = 6,
    /// Degrees of random Maclaurin features.
    Degree = 7,
    /// Splits, folds and subsamples of rows.
    Split = 8,
    /// Measurement noise.
    Noise = 9,
    /// Posterior and predictive samples.
    Posterior = 10,
    /// Order of visits in stochastic solvers.
    Order = 11,
}

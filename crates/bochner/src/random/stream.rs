use super::chacha::{self, LANES, WORDS};
use super::normal;
use super::{Role, Seed};
use crate::linalg::TileMut;
use crate::scalar::Real;
use num_complex::Complex;
use std::collections::HashSet;

/// Words of 64 bits in a block, and in the eight blocks that are computed together.
const BLOCK: usize = WORDS / 2;
const BATCH: usize = BLOCK * LANES;

/// A positioned sequence of draws: ChaCha8 with key (seed, role) and stream number `index`.
///
/// Draws without a position (`uniform`, `below`, `gamma`, …) take the next 64-bit words of the sequence, as many as they
/// need. Draws with a position ([`normals_from`](Self::normals_from), [`words_from`](Self::words_from)) read the same words
/// by their number, and move nothing: a stream serves one or the other.
///
/// ```
/// use bochner::random::{Role, Seed, Stream};
/// let stream = Stream::new(Seed::new(7), Role::Direction, 3);
/// let (mut all, mut some) = ([0.0f64; 100], [0.0f64; 10]);
/// stream.normals_from(0, &mut all);
/// stream.normals_from(42, &mut some);
/// assert_eq!(all[42..52], some);
/// ```
#[derive(Clone)]
pub struct Stream {
    key: [u32; 8],
    index: u64,
    /// Words `position − position mod 64 ..` of the sequence, valid unless `position` is at their beginning.
    buffer: [u64; BATCH],
    position: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("key", &self.key)
            .field("index", &self.index)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

fn key(seed: Seed, role: Role) -> [u32; 8] {
    let (seed, role) = (seed.number(), role as u64);
    [seed as u32, (seed >> 32) as u32, role as u32, (role >> 32) as u32, 0, 0, 0, 0]
}

/// Words `64 number ..` of a sequence.
fn batch(key: &[u32; 8], index: u64, number: u64, out: &mut [u64; BATCH]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            let counter = std::array::from_fn(|l| (number * LANES as u64).wrapping_add(l as u64));
            let words = chacha::blocks(key, &counter, &[index; LANES]);
            for l in 0..LANES {
                for w in 0..BLOCK {
                    out[l * BLOCK + w] = u64::from(words[2 * w][l]) | u64::from(words[2 * w + 1][l]) << 32;
                }
            }
        },
    );
}

/// Standard normals in the shape of a tile: row `i` holds normals `first..` of the stream with index `first_index + i`.
///
/// What [`Stream::normals_from`] gives row by row; one call for a whole tile keeps all vector lanes busy however short its
/// rows are, so that a projection can draw its directions where it needs them and store none.
///
/// ```
/// use bochner::linalg::TileMut;
/// use bochner::random::{Role, Seed, Stream, fill_normals};
/// let (mut tile, mut row) = ([0.0f32; 3 * 20], [0.0f32; 20]);
/// fill_normals(Seed::new(7), Role::Direction, 5, 40, TileMut::new(&mut tile, 3, 20));
/// Stream::new(Seed::new(7), Role::Direction, 6).normals_from(40, &mut row);
/// assert_eq!(tile[20..40], row);
/// ```
pub fn fill_normals<R: Real>(seed: Seed, role: Role, first_index: u64, first: u64, out: TileMut<'_, R>) {
    normal::fill(&key(seed, role), first_index, first, out);
}

/// The fourth root of one with code `code mod 4`: `i` to that power. Bit 0 says imaginary, bit 1 says minus.
///
/// ```
/// use bochner::{Complex, random::fourth_root};
/// assert_eq!(fourth_root::<f64>(3), Complex::new(0.0, -1.0));
/// ```
pub fn fourth_root<R: Real>(code: u64) -> Complex<R> {
    let value = if code & 2 == 0 { R::ONE } else { -R::ONE };
    if code & 1 == 0 { Complex::new(value, R::ZERO) } else { Complex::new(R::ZERO, value) }
}

impl Stream {
    /// The sequence of `index` under `seed` and `role`, at its beginning.
    pub fn new(seed: Seed, role: Role, index: u64) -> Self {
        Stream { key: key(seed, role), index, buffer: [0; BATCH], position: 0 }
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let offset = (self.position % BATCH as u64) as usize;
        if offset == 0 {
            batch(&self.key, self.index, self.position / BATCH as u64, &mut self.buffer);
        }
        self.position += 1;
        self.buffer[offset]
    }

    fn next_halves(&mut self) -> (u32, u32) {
        let word = self.next_u64();
        (word as u32, (word >> 32) as u32)
    }

    /// Words of 64 bits number `first..first + out.len()` of this sequence; its position is not moved.
    pub fn words_from(&self, first: u64, mut out: &mut [u64]) {
        let mut words = [0; BATCH];
        let (mut number, mut skip) = (first / BATCH as u64, (first % BATCH as u64) as usize);
        while !out.is_empty() {
            batch(&self.key, self.index, number, &mut words);
            let (now, later) = out.split_at_mut(out.len().min(BATCH - skip));
            now.copy_from_slice(&words[skip..][..now.len()]);
            (out, number, skip) = (later, number + 1, 0);
        }
    }

    /// Standard normals number `first..first + out.len()` of this sequence; its position is not moved.
    ///
    /// Normal `j` comes from block `j / 8` by the method of Box and Muller 1958: words 0..4 of the block give radii, words
    /// 4..8 angles, cosines become normals 0..4 and sines normals 4..8. Computed in `f64` to a few units of the last
    /// place, rounded once to `R`; none is larger than `√(106 ln 2)`, about 8.57.
    pub fn normals_from<R: Real>(&self, first: usize, out: &mut [R]) {
        let cols = out.len();
        normal::fill(&self.key, self.index, first as u64, TileMut::new(out, 1, cols));
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (0.5f64).powi(53)
    }

    /// Uniform in `0..bound`, without bias.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing lies below 0");
        // Lemire 2019: multiply, keep the high half, reject the few low halves that would make some values likelier.
        // The threshold is below the bound, so its division is seldom needed.
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            let low = wide as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Standard normal from the next two words: the cosine half of a Box–Muller pair.
    ///
    /// For many of them [`normals_from`](Self::normals_from) is far faster.
    pub fn normal(&mut self) -> f64 {
        let (low, high) = self.next_halves();
        let radius = (2.0 * normal::minus_log(low, high)).sqrt();
        let (low, high) = self.next_halves();
        radius * normal::turn(low, high).0
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        let (low, high) = self.next_halves();
        normal::minus_log(low, high)
    }

    /// Cauchy with median 0 and scale 1: the tangent of a uniform angle. Finite.
    pub fn cauchy(&mut self) -> f64 {
        let (low, high) = self.next_halves();
        // The last bit used is set: no multiple of a quarter turn, where the tangent would be 0 or infinite.
        let (cos, sin) = normal::turn(low | 1 << 11, high);
        sin / cos
    }

    /// Gamma with the given shape and scale 1 (Marsaglia and Tsang 2000).
    ///
    /// Shapes below 1 use `Γ(a) = Γ(a + 1) U^{1/a}`; below about 0.01 results reach 0 in `f64`.
    ///
    /// # Panics
    /// If `shape` is not a positive finite number.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        assert!(shape > 0.0 && shape.is_finite(), "a gamma distribution has a positive finite shape, not {shape}");
        if shape < 1.0 {
            let larger = self.gamma(shape + 1.0);
            return larger * libm::exp(-self.exponential() / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            // The word is taken in every round, so that a round is always three words.
            let level = -self.exponential();
            if root > 0.0 {
                let v = root * root * root;
                if level < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
                    return d * v;
                }
            }
        }
    }

    /// Chi-square with `df` degrees of freedom, not necessarily a whole number.
    ///
    /// # Panics
    /// If `df` is not a positive finite number.
    pub fn chi_square(&mut self, df: f64) -> f64 {
        2.0 * self.gamma(0.5 * df)
    }

    /// Chi with `df` degrees of freedom: the length of a standard normal vector of that dimension.
    ///
    /// # Panics
    /// If `df` is not a positive finite number.
    pub fn chi(&mut self, df: f64) -> f64 {
        self.chi_square(df).sqrt()
    }

    /// Random signs as bits, 64 to a word: a set bit means minus.
    pub fn fill_sign_bits(&mut self, out: &mut [u64]) {
        for word in out {
            *word = self.next_u64();
        }
    }

    /// Uniform draws from `{1, i, −1, −i}` as codes of two bits, 32 to a word, lowest first; see [`fourth_root`].
    pub fn fill_fourth_roots(&mut self, out: &mut [u64]) {
        for word in out {
            *word = self.next_u64();
        }
    }

    /// A uniform permutation of `0..n` (Fisher–Yates).
    ///
    /// # Panics
    /// If `n` exceeds `2³²`.
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        assert!(n as u64 <= 1 << 32, "permutations of more than 2^32 indices are not supported");
        let mut order: Vec<u32> = (0..n).map(|i| i as u32).collect();
        self.shuffle(&mut order);
        order
    }

    /// Puts `items` into uniform random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// `k` different numbers from `0..n`, every ordered choice equally likely (Floyd's algorithm, then a shuffle).
    ///
    /// Time and memory grow with `k` alone: `n` may be the number of all index tuples of a tensor.
    ///
    /// # Panics
    /// If `k` exceeds `n`.
    pub fn distinct(&mut self, n: u64, k: usize) -> Vec<u64> {
        assert!(k as u64 <= n, "{k} different numbers do not fit below {n}");
        let mut chosen = Vec::with_capacity(k);
        let mut seen = HashSet::with_capacity(k);
        for last in n - k as u64..n {
            // `last` was never offered before, so it is free where the draw is not.
            let draw = self.below(last + 1);
            let pick = if seen.insert(draw) { draw } else { last };
            seen.insert(pick);
            chosen.push(pick);
        }
        self.shuffle(&mut chosen);
        chosen
    }
}

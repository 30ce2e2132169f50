use super::{Role, Seed};
use crate::scalar::Real;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A positioned sequence of draws: ChaCha8 with key (seed, role) and stream number `index`.
#[derive(Debug, Clone)]
pub struct Stream {
    source: ChaCha8Rng,
}

/// Normals made from one ChaCha block of 64 bytes: four Box–Muller pairs.
const NORMALS_PER_BLOCK: usize = 8;

impl Stream {
    /// The sequence of `index` under `seed` and `role`, at its beginning.
    pub fn new(seed: Seed, role: Role, index: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.number().to_le_bytes());
        key[8..16].copy_from_slice(&(role as u64).to_le_bytes());
        let mut source = ChaCha8Rng::from_seed(key);
        source.set_stream(index);
        Stream { source }
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.source.next_u64()
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
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Standard normals number `first..first + out.len()` of this sequence.
    ///
    /// The position of the stream does not matter and is not moved: normal `j` comes from ChaCha block `j / 8`.
    pub fn normals_from<R: Real>(&self, first: usize, out: &mut [R]) {
        let mut source = self.source.clone();
        let mut block = [0.0; NORMALS_PER_BLOCK];
        let mut done = 0;
        while done < out.len() {
            let (index, skip) = ((first + done) / NORMALS_PER_BLOCK, (first + done) % NORMALS_PER_BLOCK);
            source.set_word_pos(16 * index as u128);
            box_muller(&std::array::from_fn(|_| source.next_u64()), &mut block);
            let count = (NORMALS_PER_BLOCK - skip).min(out.len() - done);
            for (o, b) in out[done..done + count].iter_mut().zip(&block[skip..]) {
                *o = R::from_f64(*b);
            }
            done += count;
        }
    }

    /// Random signs as bits, 64 to a word: a set bit means minus.
    pub fn fill_sign_bits(&mut self, out: &mut [u64]) {
        for word in out {
            *word = self.next_u64();
        }
    }

    /// A uniform permutation of `0..n` (Fisher–Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        self.shuffle(&mut order);
        order
    }

    /// Puts `items` into uniform random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// Words 0..4 give radii, words 4..8 angles; cosines become normals 0..4, sines normals 4..8.
fn box_muller(words: &[u64; 8], out: &mut [f64; NORMALS_PER_BLOCK]) {
    for i in 0..4 {
        let u = ((words[i] >> 11) + 1) as f64 * (0.5f64).powi(53);
        let angle = (words[i + 4] >> 11) as f64 * (0.5f64).powi(53) * std::f64::consts::TAU;
        let radius = (-2.0 * libm::log(u)).sqrt();
        let (sin, cos) = libm::sincos(angle);
        out[i] = radius * cos;
        out[i + 4] = radius * sin;
    }
}

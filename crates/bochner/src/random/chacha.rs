//! ChaCha8 (Bernstein 2008), eight blocks side by side.
//!
//! The layout of the state is the original one: four constants, eight words of key, a 64-bit block counter, a 64-bit
//! stream number.

/// Blocks computed together: one per lane of a 256-bit register.
pub(super) const LANES: usize = 8;

/// Words of 32 bits in a block.
pub(super) const WORDS: usize = 16;

/// Word `w` of block `l` is `[w][l]`.
pub(super) type Blocks = [[u32; LANES]; WORDS];

const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

#[inline(always)]
fn quarter_round(x: &mut [u32; WORDS], a: usize, b: usize, c: usize, d: usize) {
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(16);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(12);
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(8);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(7);
}

#[inline(always)]
fn double_round(x: &mut [u32; WORDS]) {
    quarter_round(x, 0, 4, 8, 12);
    quarter_round(x, 1, 5, 9, 13);
    quarter_round(x, 2, 6, 10, 14);
    quarter_round(x, 3, 7, 11, 15);
    quarter_round(x, 0, 5, 10, 15);
    quarter_round(x, 1, 6, 11, 12);
    quarter_round(x, 2, 7, 8, 13);
    quarter_round(x, 3, 4, 9, 14);
}

/// Eight blocks under one key: block `counter[l]` of stream `stream[l]` in lane `l`.
// The loop over lanes is the outer one and its body has no loop: in this form the compiler turns it into one pass of
// vector instructions (a state of lane arrays came out half scalar and three times slower).
#[inline(always)]
pub(super) fn blocks(key: &[u32; 8], counter: &[u64; LANES], stream: &[u64; LANES]) -> Blocks {
    let low = |words: &[u64; LANES]| words.map(|w| w as u32);
    let high = |words: &[u64; LANES]| words.map(|w| (w >> 32) as u32);
    let (c0, c1, s0, s1) = (low(counter), high(counter), low(stream), high(stream));
    let mut out = [[0; LANES]; WORDS];
    for l in 0..LANES {
        let mut start = [0; WORDS];
        start[..4].copy_from_slice(&CONSTANTS);
        start[4..12].copy_from_slice(key);
        start[12..].copy_from_slice(&[c0[l], c1[l], s0[l], s1[l]]);
        let mut x = start;
        double_round(&mut x);
        double_round(&mut x);
        double_round(&mut x);
        double_round(&mut x);
        for w in 0..WORDS {
            out[w][l] = x[w].wrapping_add(start[w]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng, SeedableRng};

    #[test]
    fn lanes_hold_the_blocks_of_an_independent_implementation() {
        let mut key_bytes = [0u8; 32];
        for (i, b) in key_bytes.iter_mut().enumerate() {
            *b = (i * 37 + 11) as u8;
        }
        let key = std::array::from_fn(|i| u32::from_le_bytes(key_bytes[4 * i..][..4].try_into().unwrap()));
        let counter = [0, 1, 2, u64::from(u32::MAX), 1 << 32, u64::MAX >> 5, 77, 1 << 40];
        let stream = [0, 0, u64::MAX, 3, 1 << 32, 5, u64::from(u32::MAX), 9];
        let found = blocks(&key, &counter, &stream);
        for l in 0..LANES {
            let mut source = ChaCha8Rng::from_seed(key_bytes);
            source.set_stream(stream[l]);
            source.set_word_pos(16 * u128::from(counter[l]));
            for w in 0..WORDS {
                assert_eq!(found[w][l], source.next_u32(), "word {w} of lane {l}");
            }
        }
    }
}

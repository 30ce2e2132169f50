//! Standard normals by the method of Box and Muller 1958, from elementary functions of our own.
//!
//! Everything is computed in `f64` by additions, products, one quotient and one root: operations that every processor
//! rounds alike. There is no branch and no fused product, so vector and scalar code give the same bits.

use super::chacha::{self, Blocks, LANES};
use crate::linalg::TileMut;
use crate::scalar::Real;

/// Normals made from one block of 64 bytes: four pairs.
pub(super) const PER_BLOCK: usize = 8;

/// `2⁵³`: a word's upper 53 bits are all that is used of it.
const TWO_53: f64 = (1u64 << 53) as f64;

/// `−ln u` for `u = (⌊w/2¹¹⌋ + 1)/2⁵³` in `(0, 1]`, from the two halves of the 64-bit word `w`; within 1 ulp.
///
/// With `u = 2ᵉm`, `m` in `[√½, √2)`, `f = m − 1` and `s = f/(2 + f)`: `ln m = 2 artanh s = f − (f²/2 − s(f²/2 + R))`,
/// where `R = 2s²/3 + 2s⁴/5 + …` is a polynomial in `s²` that interpolates at Chebyshev nodes.
#[inline(always)]
pub(super) fn minus_log(low: u32, high: u32) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    // Bits of a number a little below √½: subtracted from those of a number, they move the ends of the binades there.
    const ROOT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    // ln 2 = LN2_HIGH + LN2_LOW, where LN2_HIGH has 32 bits: its product with an exponent is exact.
    const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Signed conversions are vector instructions and unsigned ones are not: hence 2³¹ is taken off and given back.
    let steps = f64::from((high ^ 0x8000_0000) as i32) * (1u64 << 21) as f64
        + (f64::from((low >> 11) as i32) + (TWO_53 / 2.0 + 1.0));
    let shifted = steps.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - ROOT_HALF);
    // An integer below 2⁵² or-ed into the mantissa of 2⁵² is that integer plus 2⁵².
    let e = f64::from_bits((shifted >> 52) | 0x4330_0000_0000_0000) - (TWO_53 / 2.0 + 1023.0 + 53.0);
    let f = f64::from_bits((shifted & MANTISSA) + ROOT_HALF) - 1.0;
    let s = f / (2.0 + f);
    let half_square = 0.5 * f * f;
    let z = s * s;
    let z2 = z * z;
    // Grouped by powers of z² (Estrin): 285 million normals a second and thread against 265 with Horner's scheme.
    let r = z
        * (((0.666_666_666_666_667 + z * 0.399_999_999_998_994_44)
            + z2 * (0.285_714_286_260_032_7 + z * 0.222_222_111_302_598_78))
            + z2 * z2 * ((0.181_828_894_556_749_47 + z * 0.153_317_106_182_107_73) + z2 * 0.146_165_854_248_886_23));
    (half_square - (s * (half_square + r) + e * LN2_LOW) - f) - e * LN2_HIGH
}

/// `(cos 2πt, sin 2πt)` for `t = ⌊w/2¹¹⌋/2⁵³`, from the two halves of the 64-bit word `w`; within 2 ulp, zeros exact.
///
/// The nearest multiple of a quarter turn is split off in integers, without error; what remains is `πy/4` with `|y| ≤ 1`.
#[inline(always)]
pub(super) fn turn(low: u32, high: u32) -> (f64, f64) {
    const SIGN: u32 = 0x8000_0000;
    // The upper two bits of `t` count quarter turns; a full turn wraps to none.
    let t = high.wrapping_add(1 << 29);
    let y = f64::from((t & 0x3fff_ffff) as i32 - (1 << 29)) * (1.0 / (1u64 << 29) as f64)
        + f64::from((low >> 11) as i32) * (1.0 / (1u64 << 50) as f64);
    let z = y * y;
    let z2 = z * z;
    let z4 = z2 * z2;
    // Interpolated at Chebyshev nodes in z (tools/golden/polynomials.py). The leading coefficient is added last: added to
    // its neighbour first, it would cost another ulp.
    let sin = y
        * (std::f64::consts::FRAC_PI_4
            + z * (((-0.080_745_512_188_280_77 + z * 0.002_490_394_570_192_007_3)
                + z2 * (-3.657_620_417_386_099_5e-5 + z * 3.133_616_535_431_528e-7))
                + z4 * (-1.757_179_175_280_034_4e-9 + z * 6.887_482_140_092_197_5e-12)));
    let cos = 1.0
        + z * (((-0.308_425_137_534_042_44 + z * 0.015_854_344_243_815_488)
            + z2 * (-0.000_325_991_886_927_199_6 + z * 3.590_860_447_448_612e-6))
            + z4 * ((-2.461_136_623_830_974_4e-8 + z * 1.150_067_970_094_049_6e-10) + z2 * -3.863_156_948_832_656e-13));
    let swap = i64::from(((t << 1) as i32) >> 31) as u64 & (sin.to_bits() ^ cos.to_bits());
    let cos_sign = u64::from(t.wrapping_add(1 << 30) & SIGN) << 32;
    let sin_sign = u64::from(t & SIGN) << 32;
    (f64::from_bits(cos.to_bits() ^ swap ^ cos_sign), f64::from_bits(sin.to_bits() ^ swap ^ sin_sign))
}

/// The normals of eight blocks, one block after the other.
///
/// Words 0..4 (of 64 bits) of a block are radii, words 4..8 angles; cosines become normals 0..4, sines normals 4..8.
#[inline(always)]
fn box_muller<R: Real>(words: &Blocks, out: &mut [R; PER_BLOCK * LANES]) {
    let mut lanes = [[R::ZERO; LANES]; PER_BLOCK];
    for i in 0..PER_BLOCK / 2 {
        let (radius, angle) = (&words[2 * i..][..2], &words[PER_BLOCK + 2 * i..][..2]);
        let (mut first, mut second) = ([R::ZERO; LANES], [R::ZERO; LANES]);
        for l in 0..LANES {
            let r = (2.0 * minus_log(radius[0][l], radius[1][l])).sqrt();
            let (cos, sin) = turn(angle[0][l], angle[1][l]);
            first[l] = R::from_f64(r * cos);
            second[l] = R::from_f64(r * sin);
        }
        lanes[i] = first;
        lanes[i + PER_BLOCK / 2] = second;
    }
    for l in 0..LANES {
        for i in 0..PER_BLOCK {
            out[l * PER_BLOCK + i] = lanes[i][l];
        }
    }
}

/// Normals `first..first + out.cols()` of streams `stream..stream + out.rows()`, one stream to a row.
///
/// Blocks are taken eight at a time along the rows and on into the next row, so that short rows fill the lanes too.
pub(super) fn fill<R: Real>(key: &[u32; 8], stream: u64, first: u64, out: TileMut<'_, R>) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || fill_inline(key, stream, first, out),
    );
}

#[inline(always)]
pub(super) fn fill_inline<R: Real>(key: &[u32; 8], stream: u64, first: u64, mut out: TileMut<'_, R>) {
    let (rows, cols) = (out.rows(), out.cols());
    if rows == 0 || cols == 0 {
        return;
    }
    let (first_block, skip) = (first / PER_BLOCK as u64, (first % PER_BLOCK as u64) as usize);
    let blocks_per_row = (skip + cols).div_ceil(PER_BLOCK);
    let mut batch = [R::ZERO; PER_BLOCK * LANES];
    let (mut row, mut block) = (0, 0);
    while row < rows {
        let start = block * PER_BLOCK;
        if start >= skip && start + PER_BLOCK * LANES <= skip + cols {
            let counter = std::array::from_fn(|l| first_block.wrapping_add((block + l) as u64));
            let words = chacha::blocks(key, &counter, &[stream.wrapping_add(row as u64); LANES]);
            let target = &mut out.row_mut(row)[start - skip..][..PER_BLOCK * LANES];
            box_muller(&words, target.try_into().expect("the slice has this length"));
            block += LANES;
            if block == blocks_per_row {
                (row, block) = (row + 1, 0);
            }
            continue;
        }
        // Lanes past the last row repeat work that is thrown away.
        let mut places = [(row, block); LANES];
        let mut lanes = 0;
        while lanes < LANES && row < rows {
            places[lanes] = (row, block);
            lanes += 1;
            block += 1;
            if block == blocks_per_row {
                (row, block) = (row + 1, 0);
            }
        }
        let counter = places.map(|(_, b)| first_block.wrapping_add(b as u64));
        let streams = places.map(|(r, _)| stream.wrapping_add(r as u64));
        box_muller(&chacha::blocks(key, &counter, &streams), &mut batch);
        for (l, (r, b)) in places[..lanes].iter().enumerate() {
            let from = (b * PER_BLOCK).max(skip);
            let to = ((b + 1) * PER_BLOCK).min(skip + cols);
            let values = &batch[l * PER_BLOCK..][from - b * PER_BLOCK..to - b * PER_BLOCK];
            out.row_mut(*r)[from - skip..to - skip].copy_from_slice(values);
        }
    }
}

use super::PairStats;
use super::moments::non_negative;
use super::sketch::{Part, Weights};

/// Variance of a TensorSketch of `∏ᵢ ⟨xᵢ, yᵢ⟩` with a different pair of vectors per factor (multimodal pooling).
///
/// With `T = ∏tᵢ`, `B = ∏(tᵢ+bᵢ)`, `C = ∏(tᵢ+aᵢ)`, `G = ∏(tᵢ+aᵢ+bᵢ)` and fully independent hashes and signs:
/// real `(B+C−2T)/D + gcd(2,D)/D² (G−B−C+T)`, complex `(B−T)/D`, CtR `(B+C−2T)/2D`.
pub fn tensor_sketch(factors: &[PairStats], weights: Weights, draws: usize) -> f64 {
    let of = |part| moment(factors.iter(), draws, part);
    non_negative(match weights {
        Weights::Real => of(Part::Real),
        Weights::Complex => of(Part::Variance),
        Weights::Ctr => 0.5 * (of(Part::Variance) + of(Part::Pseudo)),
    })
}

/// Pseudo-variance `(C−T)/D` of the complex TensorSketch of `∏ᵢ ⟨xᵢ, yᵢ⟩`.
pub fn tensor_sketch_pseudo(factors: &[PairStats], draws: usize) -> f64 {
    moment(factors.iter(), draws, Part::Pseudo)
}

/// Carries `T`, `B−T`, `C−T` and `G−B−C+T` from factor to factor: no difference of large products is ever taken.
#[inline(always)]
pub(super) fn moment<'a>(factors: impl Iterator<Item = &'a PairStats>, draws: usize, part: Part) -> f64 {
    let (mut product, mut b_part, mut c_part, mut mixed) = (1.0, 0.0, 0.0, 0.0);
    for f in factors {
        mixed = mixed * (f.t + f.a + f.b) + b_part * f.a + c_part * f.b;
        b_part = b_part * (f.t + f.b) + product * f.b;
        c_part = c_part * (f.t + f.a) + product * f.a;
        product *= f.t;
    }
    let d = draws as f64;
    match part {
        Part::Real => ((b_part + c_part) + mixed * (if draws.is_multiple_of(2) { 2.0 } else { 1.0 }) / d) / d,
        Part::Variance => b_part / d,
        Part::Pseudo => c_part / d,
    }
}

use super::PairStats;

/// Expected second-order statistics of a pair of random vectors `(u, v)`: what one stage of a composed sketch hands to
/// the next.
///
/// For a sketch built from independent stages (a tree of product sketches, an up-projection followed by a
/// down-projection) the variance at the root follows from these three numbers alone, because every stage is linear in
/// them given independent children: thesis 3.1 and 3.5 give `E[⟨u, v⟩²]` of one stage, and the other two come from the
/// same fourth moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairMoments {
    /// `E[⟨u, v⟩²]`.
    pub t: f64,
    /// `E[|u|² |v|²]`.
    pub n: f64,
    /// `E[Σⱼ uⱼ² vⱼ²]`.
    pub s: f64,
}

/// The real projection inside a stage, as far as fourth moments go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Independent standard normal entries.
    Gaussian,
    /// Independent random signs.
    Rademacher,
    /// Randomised Hadamard transform with every position used equally often (upsampled; stacked for `D ≤ d'`), on
    /// inputs padded to `padded_dim`.
    Srht {
        /// Input dimension after padding.
        padded_dim: usize,
    },
}

impl From<PairStats> for PairMoments {
    fn from(stats: PairStats) -> Self {
        PairMoments { t: stats.t, n: stats.n, s: stats.s }
    }
}

impl Stage {
    /// `E[⟨w, u⟩² ⟨w, v⟩²]` for one direction.
    fn mu2(self, input: PairMoments) -> f64 {
        match self {
            Stage::Gaussian => input.n + 2.0 * input.t,
            Stage::Rademacher | Stage::Srht { .. } => input.n + 2.0 * (input.t - input.s),
        }
    }

    /// Expectation of a product over two distinct directions, from the one (`whole`) over all pairs of directions:
    /// independent directions leave it alone, a shuffled list of `n` Hadamard rows takes the diagonal out.
    fn distinct(self, whole: f64, mu2: f64, output_dim: usize) -> f64 {
        match self {
            Stage::Gaussian | Stage::Rademacher => whole,
            Stage::Srht { padded_dim } => {
                let n = (output_dim.div_ceil(padded_dim) * padded_dim) as f64;
                if n > 1.0 { (n * whole - mu2) / (n - 1.0) } else { whole }
            }
        }
    }

    /// PairMoments of `D^{-1/2} (W₁u₁) ∘ … ∘ (W_k u_k)` from those of independent `(uᵢ, vᵢ)`.
    ///
    /// With `μ = ∏ E[⟨w, uᵢ⟩²⟨w, vᵢ⟩²]`: `t' = μ/D + (1 - 1/D) ∏ t̃ᵢ`, `n' = μ/D + (1 - 1/D) ∏ ñᵢ`, `s' = μ/D`, where the
    /// tilde takes the mean over distinct directions.
    pub fn product(self, factors: &[PairMoments], output_dim: usize) -> PairMoments {
        mixed_product(&factors.iter().map(|&moments| (self, moments)).collect::<Vec<_>>(), output_dim)
    }

    /// PairMoments at the root of a balanced tree of degree-2 stages over `degree` leaves
    /// ([`TreeSketch`](crate::feature::TreeSketch)).
    ///
    /// `inner` is the stage that sees sketched vectors (length `output_dim`), `self` the one that sees leaves.
    pub fn tree(self, inner: Stage, leaf: PairMoments, degree: u32, output_dim: usize) -> PairMoments {
        if degree <= 1 {
            return leaf;
        }
        let left = self.tree(inner, leaf, degree.div_ceil(2), output_dim);
        let right = self.tree(inner, leaf, degree / 2, output_dim);
        // The two projections of a node may see vectors of different lengths: each factor has its own stage.
        let stage = |leaves: u32| if leaves == 1 { self } else { inner };
        mixed_product(&[(stage(degree.div_ceil(2)), left), (stage(degree / 2), right)], output_dim)
    }
}

/// [`Stage::product`] for factors of different kinds.
pub fn mixed_product(factors: &[(Stage, PairMoments)], output_dim: usize) -> PairMoments {
    let rest = 1.0 - 1.0 / output_dim as f64;
    let (mut mu, mut t, mut n) = (1.0, 1.0, 1.0);
    for &(stage, factor) in factors {
        let mu2 = stage.mu2(factor);
        mu *= mu2;
        t *= stage.distinct(factor.t, mu2, output_dim);
        n *= stage.distinct(factor.n, mu2, output_dim);
    }
    let s = mu / output_dim as f64;
    PairMoments { t: s + rest * t, n: s + rest * n, s }
}

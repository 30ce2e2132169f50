//! The evidence as a function of both variances alone: the eigenvalues once, then as many operations as there are of them.

/// Eigenvalues of `FᴴF`, and what of the targets lies along each.
#[derive(Debug, Clone)]
pub(crate) struct Spectrum {
    pub(crate) values: Vec<f64>,
    /// Squares of the targets along the eigenvectors of `FFᴴ`, summed over targets.
    pub(crate) squares: Vec<f64>,
    /// Squares of the targets outside their span.
    pub(crate) rest: f64,
    /// How often an eigenvalue counts: half where every one is listed twice.
    pub(crate) share: f64,
    pub(crate) rows: f64,
    pub(crate) outputs: f64,
    /// One half for real normal laws, 1 for complex ones.
    pub(crate) kappa: f64,
    pub(crate) log_weights: f64,
}

impl Spectrum {
    /// `τ² zᴴΣ⁻¹z` for `ρ = s²/τ²`.
    fn misfit(&self, ratio: f64) -> f64 {
        let along = self.values.iter().zip(&self.squares).map(|(value, square)| square / (1.0 + ratio * value));
        self.rest + along.sum::<f64>()
    }

    fn log_likelihood(&self, signal: f64, noise: f64) -> f64 {
        let ratio = signal / noise;
        let turn = if self.kappa == 1.0 { std::f64::consts::PI } else { std::f64::consts::TAU };
        let volume: f64 = self.values.iter().map(|value| libm::log1p(ratio * value)).sum::<f64>() * self.share;
        let volume = volume + self.rows * (noise.ln() + turn.ln()) - self.log_weights;
        -self.kappa * (self.misfit(ratio) / noise + self.outputs * volume)
    }
}

/// Where the evidence is largest, and how large it is there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Variances {
    pub(crate) signal: f64,
    pub(crate) noise: f64,
    pub(crate) value: f64,
}

/// Logarithms of the ratio of the variances that are tried first, a factor of e apart.
const RATIOS: std::ops::RangeInclusive<i32> = -14..=28;

/// Halvings of the last interval: a relative precision of about 1e-6.
const STEPS: usize = 30;

/// Both variances at which the evidence of all heads together is largest; the noise variance stays 1 where it is not noisy.
pub(crate) fn likeliest(
    spectra: &[Spectrum],
    noisy: bool,
    signal_bounds: (f64, f64),
    noise_bounds: (f64, f64),
) -> Variances {
    let size: f64 = spectra.iter().map(|s| s.rows * s.outputs).sum();
    let at = |log_ratio: f64| -> Variances {
        let ratio = log_ratio.exp();
        let noise = if noisy {
            // For a fixed ratio the best noise variance is known.
            let misfit: f64 = spectra.iter().map(|s| s.misfit(ratio)).sum();
            (misfit / size).clamp(noise_bounds.0, noise_bounds.1)
        } else {
            1.0
        };
        let signal = (ratio * noise).clamp(signal_bounds.0, signal_bounds.1);
        let value = spectra.iter().map(|s| s.log_likelihood(signal, noise)).sum();
        Variances { signal, noise, value }
    };
    peak(&at, RATIOS)
}

/// The largest value of a function of a logarithm: on a grid of whole numbers first, then by golden sections.
fn peak(at: &dyn Fn(f64) -> Variances, grid: std::ops::RangeInclusive<i32>) -> Variances {
    let (first, last) = (f64::from(*grid.start()), f64::from(*grid.end()));
    let (mut best, mut place) = (at(first), first);
    let better = |new: &Variances, old: &Variances| new.value > old.value || old.value.is_nan();
    for log in grid.skip(1).map(f64::from) {
        let here = at(log);
        if better(&here, &best) {
            (best, place) = (here, log);
        }
    }
    let golden = 0.618_033_988_749_895;
    let (mut low, mut high) = ((place - 1.0).max(first), (place + 1.0).min(last));
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut left, mut right) = (at(a), at(b));
    for _ in 0..STEPS {
        if left.value > right.value {
            (high, b, right) = (b, a, left);
            a = high - golden * (high - low);
            left = at(a);
        } else {
            (low, a, left) = (a, b, right);
            b = low + golden * (high - low);
            right = at(b);
        }
    }
    for found in [left, right] {
        if better(&found, &best) {
            best = found;
        }
    }
    best
}

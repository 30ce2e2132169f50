//! Classification as regression on transformed labels, and probabilities from normal latents.

use crate::error::{Error, Result, check_positive};
use crate::parallel::Parallel;
use crate::parameter::{Domain, Value};
use crate::random::{Role, Seed, Stream};
use ndarray::{Array2, ArrayView2, Axis};

/// Labels as targets with noise of their own: with `y` 1 for the class and 0 for the others and `α > 0`, the log of a
/// gamma variable of shape `y + α` is close to normal with variance `ln(1/(y + α) + 1)` and mean `ln(y + α)` less half of
/// it (Milios et al. 2018, §3.2; thesis, appendix B.3.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dirichlet {
    /// Target of rows of the class.
    pub(crate) hit: f64,
    /// Target of the others.
    pub(crate) miss: f64,
    /// Noise variance of rows of the class.
    pub(crate) hit_noise: f64,
    /// Noise variance of the others.
    pub(crate) miss_noise: f64,
}

impl Dirichlet {
    pub(crate) fn new(alpha: f64) -> Result<Self> {
        check_positive("alpha", alpha)?;
        let noise = |y: f64| libm::log1p(1.0 / (y + alpha));
        let target = |y: f64| libm::log(y + alpha) - 0.5 * noise(y);
        Ok(Dirichlet { hit: target(1.0), miss: target(0.0), hit_noise: noise(1.0), miss_noise: noise(0.0) })
    }

    /// Mean of the targets where a share `p` of the rows is of the class.
    pub(crate) fn mean(&self, p: f64) -> f64 {
        p * self.hit + (1.0 - p) * self.miss
    }

    /// Variance of the targets, 1 where all are equal.
    pub(crate) fn variance(&self, p: f64) -> f64 {
        let variance = p * (1.0 - p) * (self.hit - self.miss).powi(2);
        if variance > 0.0 { variance } else { 1.0 }
    }
}

/// How probabilities are estimated from latents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Sampling {
    pub(crate) samples: usize,
    pub(crate) seed: u64,
}

impl Sampling {
    /// How many draws there may be: the error of a million of them is below 0.001, and every one takes time at every row.
    pub(crate) const DRAWS: Domain = Domain::Whole(1, 1 << 20);

    pub(crate) fn new(samples: usize, seed: Seed) -> Result<Self> {
        let sampling = Sampling { samples, seed: seed.number() };
        sampling.check().map(|()| sampling)
    }

    /// Refuses a number of draws outside its domain.
    pub(crate) fn check(&self) -> Result<()> {
        if Self::DRAWS.contains(&Value::from(self.samples)) {
            return Ok(());
        }
        Err(Error::parameter("number of samples", Self::DRAWS.to_string(), self.samples))
    }

    /// Mean softmax of independent normal latents with these means and variances, one column per class.
    ///
    /// Draws come in pairs `±ε`, the same for all rows: a row's probabilities do not depend on its neighbours, and
    /// classes with equal latents have equal probabilities up to the draws of the pair.
    pub(crate) fn probabilities(&self, means: ArrayView2<'_, f64>, variances: ArrayView2<'_, f64>) -> Array2<f64> {
        let (n, classes) = means.dim();
        let pairs = self.samples.div_ceil(2);
        let mut draws = vec![0.0f64; pairs * classes];
        for (sample, draws) in draws.chunks_mut(classes.max(1)).enumerate() {
            Stream::new(Seed::new(self.seed), Role::Posterior, sample as u64).normals_from(0, draws);
        }
        let mut out = Array2::zeros((n, classes));
        out.axis_iter_mut(Axis(0)).enumerate().in_parallel().for_each_init(
            || vec![0.0f64; classes],
            |latents, (i, mut out)| {
                let deviations: Vec<f64> = variances.row(i).iter().map(|v| v.max(0.0).sqrt()).collect();
                for draws in draws.chunks(classes) {
                    for sign in [1.0, -1.0] {
                        let mut largest = f64::NEG_INFINITY;
                        for (c, latent) in latents.iter_mut().enumerate() {
                            *latent = means[[i, c]] + sign * deviations[c] * draws[c];
                            largest = largest.max(*latent);
                        }
                        let mut sum = 0.0;
                        for latent in latents.iter_mut() {
                            *latent = (*latent - largest).exp();
                            sum += *latent;
                        }
                        out.iter_mut().zip(latents.iter()).for_each(|(to, latent)| *to += latent / sum);
                    }
                }
                out.mapv_inplace(|v| v / (2 * pairs) as f64);
            },
        );
        out
    }
}

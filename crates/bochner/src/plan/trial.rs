use super::{Candidate, Measured, Request, map_bytes};
use crate::error::Result;
use crate::feature::Spec;
use crate::random::Seed;
use ndarray::ArrayView2;

/// Sample rows with the exact values of a kernel, on which features of it are compared before one is chosen: numbers
/// ([`Sample`](super::Sample)) or matrices ([`FieldSample`](super::FieldSample)).
pub trait PlanSample {
    /// How features are described.
    type Spec: Clone;

    /// The rows on which errors are predicted and measured.
    fn rows(&self) -> ArrayView2<'_, f64>;

    /// Parameters of the kernel, for sentences about what has become too large.
    fn parameters(&self) -> &'static str;

    /// Every way to make features of the kernel; number and seed are to be replaced ([`sized`](Self::sized)).
    ///
    /// # Errors
    /// A kernel without features.
    fn candidates(&self) -> Result<Vec<Candidate<Self::Spec>>>;

    /// A candidate with so many features, with what it takes from the rows.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) for candidates that do not suit the rows; numbers out of range.
    fn sized(&self, candidate: &Candidate<Self::Spec>, features: usize, seed: Seed) -> Result<Candidate<Self::Spec>>;

    /// The relative Frobenius error `(E‖K̂ - K‖²)^(1/2)/‖K‖` that is expected, and whether it is a closed form.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) where nothing is known; parameters out of range.
    fn expected(&self, candidate: &Candidate<Self::Spec>) -> Result<(f64, bool)>;

    /// Draws features `draws` times and measures; `tick` is called after every draw and may end the work.
    ///
    /// # Errors
    /// What drawing and `tick` report.
    fn measured(
        &self,
        candidate: &Candidate<Self::Spec>,
        draws: usize,
        seed: Seed,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Measured>;

    /// The fewest features, to about one percent, whose expected error is at most the one asked for; if none reach it, all
    /// that are allowed, with the error they leave.
    ///
    /// # Errors
    /// As [`expected`](Self::expected).
    fn reach(&self, candidate: &Candidate<Self::Spec>, request: &Request) -> Result<Reach<Self::Spec>>;

    /// The map of rows to numbers that takes the time.
    ///
    /// # Errors
    /// Parameters out of range.
    fn map(&self, spec: &Self::Spec) -> Result<Spec>;

    /// Bytes that weights take, about.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    fn map_bytes(&self, spec: &Self::Spec) -> Result<u64> {
        Ok(map_bytes(&self.map(spec)?, self.rows().ncols()))
    }
}

/// How near a candidate comes to an error, and with how many features.
#[derive(Debug, Clone)]
pub struct Reach<S> {
    /// The features.
    pub spec: S,
    /// Their number.
    pub features: usize,
    /// The error that is expected of them.
    pub expected: f64,
    /// Whether that is a closed form; a leading-order figure otherwise.
    pub closed_form: bool,
}

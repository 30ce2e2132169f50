//! Choosing hyperparameters: by the marginal likelihood of a Gaussian process, or by held-out rows.
//!
//! | question | answer |
//! |---|---|
//! | length scales, signal and noise of a Gaussian process | [`EvidenceSearch`]: L-BFGS on exact gradients |
//! | the same of a process of several outputs, and the share of its curl-free part | [`OperatorEvidence`] |
//! | map and penalty of ridge regression | [`Search`] over a [`grid`] or [`random`] candidates: held-out rows or folds |
//! | frequencies of Fourier features | [`LearnFourier`]: the gradient of held-out error |
//! | in which directions rows differ | [`MetricSearch`]: average outer product of gradients |
//! | smooth function with bounds | [`Lbfgs`] |
//!
//! The optimiser is our own hundred lines: an evaluation is a pass over rows that may be interrupted or fail with this
//! crate's error, steps into indefinite matrices must shrink instead of ending the search, and logarithms of length scales
//! need bounds.

pub(crate) mod evidence;
mod evidence_search;
mod flow;
mod lbfgs;
mod learned;
mod metric;
mod operator_evidence;
mod search;

pub use evidence_search::{EvidenceSearch, ExactTuned, Scales, Step, Tuned};
pub use lbfgs::{Lbfgs, Minimum};
pub use learned::{Balanced, LearnFourier, LearnedMap, LearningStep, MOST_TRIED};
pub use metric::{LearnedMetric, MetricForm, MetricSearch};
pub use operator_evidence::{OperatorEvidence, OperatorTuned};
pub use search::{Range, Search, SearchProgress, Split, Task, Trial, Trials, grid, random};

//! The catalogue: every map, kernel and model of the library with its name, parameters, defaults and words.
//!
//! Doors read what exists here and nowhere else. A new map is listed by one line in `feature/spec.rs`, a kernel by one in
//! `kernel/any.rs`, a model by one in `model/kinds.rs`.
//!
//! ```
//! use bochner::catalogue;
//! let fourier = catalogue::maps().find(|map| map.name == "fourier").unwrap();
//! let nu = fourier.parameter("nu")?;
//! assert_eq!((nu.default(), nu.domain.to_string()), (1.5.into(), "a positive finite number".into()));
//! # Ok::<(), bochner::Error>(())
//! ```

use crate::feature::Spec;
use crate::kernel::{AnyKernel, OperatorKernel};
pub use crate::model::{Answers, ModelEntry, Task};
pub use crate::parameter::{Choice, Domain, Entry, Parameter, Role, Value};

/// Kinds of feature maps.
pub fn maps() -> impl Iterator<Item = &'static Entry> {
    Spec::KINDS.iter().map(|(entry, _)| entry)
}

/// Kernels whose values are numbers.
pub fn kernels() -> impl Iterator<Item = &'static Entry> {
    AnyKernel::KINDS.iter()
}

/// Kernels whose values are matrices.
pub fn operator_kernels() -> impl Iterator<Item = &'static Entry> {
    OperatorKernel::KINDS.iter()
}

/// Kinds of models.
///
/// ```
/// use bochner::catalogue;
/// let sure: Vec<&str> = catalogue::models().filter(|model| model.answers.deviations).map(|model| model.entry.name).collect();
/// assert_eq!(sure, ["gp_regressor", "local_gp", "exact_gp_regressor"]);
/// ```
pub fn models() -> impl Iterator<Item = &'static ModelEntry> {
    crate::model::kinds::KINDS.iter()
}

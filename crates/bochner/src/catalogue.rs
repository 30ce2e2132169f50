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
pub use crate::parameter::{Choice, Domain, Entry, Parameter, Role, Value};
use serde_json::json;

/// Kinds of feature maps.
pub fn maps() -> impl Iterator<Item = &'static Entry> {
    Spec::KINDS.iter().map(|(entry, _)| entry)
}

/// All of it as JSON: `maps` with the `kernels` they estimate, `kernels` and `operator_kernels`.
///
/// ```
/// let all = bochner::catalogue::to_json();
/// assert_eq!(all["maps"][0]["name"], "fourier");
/// assert_eq!(all["kernels"][0]["parameters"][0]["domain"]["above"][0], 0.0);
/// ```
pub fn to_json() -> serde_json::Value {
    let map = |(entry, kernels): &(Entry, &[&str])| {
        let mut described = json!(entry);
        described["kernels"] = json!(kernels);
        described
    };
    json!({
        "maps": Spec::KINDS.iter().map(map).collect::<Vec<_>>(),
        "kernels": AnyKernel::KINDS,
        "operator_kernels": OperatorKernel::KINDS,
    })
}

/// Kernels whose values are numbers.
pub fn kernels() -> impl Iterator<Item = &'static Entry> {
    AnyKernel::KINDS.iter()
}

/// Kernels whose values are matrices.
pub fn operator_kernels() -> impl Iterator<Item = &'static Entry> {
    OperatorKernel::KINDS.iter()
}

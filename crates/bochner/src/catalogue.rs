//! The catalogue: every map, kernel and model of the library with its name, parameters, defaults and words.
//!
//! Doors read what exists here and nowhere else. A new map is listed by one line in `feature/mod.rs`, a kernel by one in
//! `kernel/mod.rs`, a model by one in `model/mod.rs`.
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
pub use crate::model::{Answers, ModelEntry, Needs, Penalty, Task};
pub use crate::parameter::{Domain, Entry, Parameter, Purpose, Sort, Value, Word};
use serde_json::json;

/// Kinds of feature maps.
pub fn maps() -> impl Iterator<Item = &'static Entry> {
    Spec::KINDS.iter().map(|(entry, _)| entry)
}

/// All of it as JSON: `maps` with the `kernels` they estimate, `kernels`, `operator_kernels`, and `models` with what they are
/// called by `--model` and what they learn.
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
    let model = |kind: &ModelEntry| {
        let mut described = json!(kind.entry);
        described["option"] = json!(kind.option);
        described["task"] = json!(kind.task);
        described["sums"] = json!(kind.has_sums());
        described
    };
    json!({
        "maps": Spec::KINDS.iter().map(map).collect::<Vec<_>>(),
        "kernels": AnyKernel::KINDS,
        "operator_kernels": OperatorKernel::KINDS,
        "models": models().map(model).collect::<Vec<_>>(),
        "deviations": { "with_noise": WITH_NOISE, "without_noise": WITHOUT_NOISE },
    })
}

/// Of what standard deviations are where noise is in them: the end of a sentence at every door.
pub const WITH_NOISE: &str = "of new observations, noise included";

/// Of what standard deviations are where noise is left out.
pub const WITHOUT_NOISE: &str = "of the function behind the observations, noise left out";

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
/// assert_eq!(sure, ["gp_regressor", "local_gp", "operator_gp", "exact_gp_regressor"]);
/// ```
pub fn models() -> impl Iterator<Item = &'static ModelEntry> {
    crate::model::KINDS.iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::Describe;

    #[test]
    fn maps_are_listed_under_the_names_that_files_write() {
        for entry in maps() {
            let spec = Spec::named(entry.name).unwrap();
            assert_eq!(spec.get("map"), Some(entry.name.into()));
            assert_eq!(spec.entry().name, entry.name);
            spec.check().unwrap();
            assert!(spec.in_words().starts_with(entry.title), "{}", spec.in_words());
            for parameter in entry.parameters {
                assert_eq!(spec.get(parameter.name).unwrap(), parameter.default(), "{}.{}", entry.name, parameter.name);
                assert!(
                    parameter.about().ends_with(['.', ')']) && parameter.about().len() > 8,
                    "{}",
                    parameter.about()
                );
            }
        }
    }

    #[test]
    fn every_kernel_has_a_map_that_estimates_it_with_the_same_parameters() {
        for entry in kernels() {
            let kernel = AnyKernel::named(entry.name, 3, &[]).unwrap();
            assert_eq!(kernel.entry().name, entry.name);
            let mut spec = Spec::for_kernel(entry.name).unwrap();
            for parameter in entry.parameters {
                spec = spec.with(parameter.name, parameter.default()).unwrap();
            }
            let exact = spec.build::<f64>(3).and_then(|_| spec.kernel()).unwrap();
            let (x, y) = ([0.6, 0.0, 0.8], [0.0, 1.0, 0.0]);
            let (found, expected) = (exact.evaluate(&x, &y), crate::kernel::Kernel::evaluate(&kernel, &x, &y));
            assert!((found - expected).abs() < 1e-12, "{}: {found} {expected}", entry.name);
            let rows = ndarray::array![x, y];
            assert!(!Spec::candidates(&kernel, rows.view()).unwrap().is_empty(), "{}", entry.name);
        }
        let unknown = Spec::for_kernel("wavelet").unwrap_err().to_string();
        assert!(kernels().all(|kernel| unknown.contains(kernel.name)), "{unknown}");
    }

    #[test]
    fn values_outside_of_their_domain_are_told_with_it() {
        let spec = Spec::named("fourier").unwrap();
        let told = |name: &str, value: Value| spec.with(name, value).unwrap_err().to_string();
        assert_eq!(
            told("n_components", 0u64.into()),
            "n_components must be a whole number from 1 to 1073741824, got 0"
        );
        assert_eq!(told("kernel", "tanh".into()), "kernel must be one of gaussian, laplacian, matern, got tanh");
        let lost = told("degree", 3u64.into());
        assert!(lost.contains("Fourier features have no parameter degree; theirs are n_components, kernel"), "{lost}");
    }
}

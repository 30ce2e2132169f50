use super::{Describe, FeatureMap, FourierSpec, OperatorSpec, Spec};
use crate::error::{Error, Result};
use crate::kernel::{AnyKernel, OperatorKernel};
use crate::parameter::Value;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// What a model is made of besides what it has learned, as files write it: a map, features of an operator-valued kernel, or
/// an exact kernel.
///
/// ```
/// use bochner::feature::Description;
/// let description: Description = serde_json::from_str(r#"{"map": "fourier", "length_scale": 0.5}"#).unwrap();
/// assert_eq!(description.in_words(), "Fourier features (Gaussian kernel)");
/// assert_eq!(description.length_scale(), Some(0.5));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Description {
    /// Rows become features.
    Map(Spec),
    /// Rows become features of a kernel whose values are matrices.
    Operator(OperatorSpec),
    /// Rows stay rows, and are compared with others.
    Kernel(AnyKernel),
    /// The same with matrices as values.
    OperatorKernel(OperatorKernel),
}

macro_rules! from {
    ($($variant:ident($type:ty),)*) => {$(
        impl From<$type> for Description {
            fn from(described: $type) -> Self {
                Description::$variant(described)
            }
        }
    )*};
}
from! {
    Map(Spec),
    Operator(OperatorSpec),
    Kernel(AnyKernel),
    OperatorKernel(OperatorKernel),
}

/// By the names that are there, so that complaints are about what was meant.
impl<'de> Deserialize<'de> for Description {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        use serde_json::{Value, from_value};
        let value = Value::deserialize(deserializer)?;
        let has_map = value.get("map").is_some();
        let read = match value.get("kernel") {
            _ if has_map => from_value(value).map(Description::Map),
            Some(Value::Object(_)) => from_value(value).map(Description::Operator),
            Some(Value::String(name)) if OperatorKernel::entry_named(name).is_ok() => {
                from_value(value).map(Description::OperatorKernel)
            }
            _ => from_value(value).map(Description::Kernel),
        };
        read.map_err(|error| D::Error::custom(format!("the description of its map or kernel cannot be read: {error}")))
    }
}

fn needed(what: &str) -> Error {
    Error::Unsupported { what: "map", reason: format!("{what} is needed here") }
}

impl Description {
    /// The map, of a model that has one.
    ///
    /// # Errors
    /// An exact kernel, which has none, and a scalar kernel without Fourier features.
    pub fn spec(&self) -> Result<Spec> {
        match self {
            Description::Map(spec) => Ok(spec.clone()),
            Description::Operator(spec) => Ok(spec.fourier()?.into()),
            Description::Kernel(_) | Description::OperatorKernel(_) => Err(Error::Unsupported {
                what: "features",
                reason: "an exact kernel machine compares rows and has none".into(),
            }),
        }
    }

    /// The features of an operator-valued kernel.
    ///
    /// # Errors
    /// Anything else.
    pub fn operator(&self) -> Result<&OperatorSpec> {
        match self {
            Description::Operator(spec) => Ok(spec),
            _ => Err(needed("an operator-valued kernel")),
        }
    }

    /// The exact kernel.
    ///
    /// # Errors
    /// Anything else.
    pub fn kernel(&self) -> Result<&AnyKernel> {
        match self {
            Description::Kernel(kernel) => Ok(kernel),
            _ => Err(needed("an exact kernel")),
        }
    }

    /// Number of features of a row, where rows become features.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn features(&self, input_dim: usize) -> Result<Option<usize>> {
        match self {
            Description::Kernel(_) | Description::OperatorKernel(_) => Ok(None),
            // Which degrees get how many columns is decided when the rows are known; how many there are is not.
            Description::Map(Spec::Maclaurin(spec)) if spec.resolved.is_none() => Ok(Some(spec.n_components)),
            other => Ok(Some(other.spec()?.build::<f32>(input_dim)?.output_dim())),
        }
    }

    /// The same without the numbers that were learned, of which there are thousands: for people and reports.
    pub fn without_learned(&self) -> Description {
        match self {
            Description::Map(Spec::LearnedFourier(spec)) => {
                Description::Map(super::LearnedFourierSpec { learned: None, ..spec.clone() }.into())
            }
            other => other.clone(),
        }
    }

    /// The length scale, where there is one for all columns.
    pub fn length_scale(&self) -> Option<f64> {
        fn find(value: &Value) -> Option<f64> {
            let Value::Parts(parts) = value else { return None };
            let own = parts.get("length_scale").and_then(Value::number);
            own.or_else(|| ["kernel", "base"].iter().find_map(|name| find(parts.get(*name)?)))
        }
        find(&Value::of(self))
    }

    /// `Fourier features (Gaussian kernel, orthogonal)`, `none: the exact Matern kernel (nu 2.5)`: the kind of map or kernel
    /// and every parameter that its values depend on, but for the length scale.
    pub fn in_words(&self) -> String {
        match self {
            Description::Map(spec) => spec.in_words(),
            Description::Operator(spec) => {
                let details = spec.kernel.parts_in_words();
                format!("operator-valued {} ({})", FourierSpec::ENTRY.title, details.join(", "))
            }
            Description::OperatorKernel(kernel) => {
                let mut details = kernel.parts_in_words();
                let name = details.remove(0);
                format!("none: the exact {name}{}", in_brackets(&details))
            }
            Description::Kernel(kernel) => {
                let details = in_brackets(&kernel.numbers_in_words());
                format!("none: the exact {} kernel{details}", kernel.entry().title)
            }
        }
    }
}

fn in_brackets(details: &[String]) -> String {
    if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, Matern, OutputMatrix};

    #[test]
    fn descriptions_of_all_sorts_survive_a_file_and_have_words() {
        let matrix = OutputMatrix::identity(2).unwrap();
        let matern = AnyKernel::from(Matern::new(2.5, 0.7).unwrap());
        let related = OperatorKernel::decomposable(matern.clone(), matrix).unwrap();
        let cases: [(Description, &str); 6] = [
            (
                Spec::from(FourierSpec { length_scale: 0.7.into(), ..Default::default() }).into(),
                "Fourier features (Gaussian kernel)",
            ),
            (
                OperatorSpec::new(OperatorKernel::curl_free(0.7).unwrap()).into(),
                "operator-valued Fourier features (curl-free kernel)",
            ),
            (
                OperatorSpec::new(related.clone()).into(),
                "operator-valued Fourier features (decomposable kernel, Matern base, nu 2.5)",
            ),
            (related.into(), "none: the exact decomposable kernel (Matern base, nu 2.5)"),
            (OperatorKernel::helmholtz(0.7, 0.3).unwrap().into(), "none: the exact Helmholtz kernel (30 % curl-free)"),
            (matern.into(), "none: the exact Matern kernel (nu 2.5)"),
        ];
        for (description, words) in cases {
            let text = serde_json::to_string(&description).unwrap();
            assert_eq!(serde_json::from_str::<Description>(&text).unwrap(), description);
            assert_eq!((description.in_words().as_str(), description.length_scale()), (words, Some(0.7)));
        }
        let gaussian = Description::from(AnyKernel::from(Gaussian::new(2.0).unwrap()));
        assert_eq!(gaussian.features(3).unwrap(), None);
        let unknown = serde_json::from_str::<Description>(r#"{"map": "fourier", "colour": 1}"#).unwrap_err();
        assert!(unknown.to_string().contains("unknown field `colour`"), "{unknown}");
    }
}

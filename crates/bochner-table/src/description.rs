//! What a model is made of besides what it has learned: a map, features of an operator-valued kernel, or an exact kernel.

use crate::failure::{Failure, Outcome};
use bochner::feature::{Describe, FeatureMap, FourierKernel, MaclaurinKernel, OperatorSpec, Spec};
use bochner::kernel::{AnyKernel, OperatorKernel, OutputMatrix};
use bochner::words;
use bochner::{Error, Result};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// As model files and checkpoints write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl Description {
    pub(crate) fn to_value(&self) -> Result<Value> {
        serde_json::to_value(self).map_err(|e| Error::Format { what: "description", detail: e.to_string() })
    }

    /// The map, of a model that has one.
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
    pub fn operator(&self) -> Result<&OperatorSpec> {
        match self {
            Description::Operator(spec) => Ok(spec),
            _ => Err(Error::Unsupported { what: "map", reason: "an operator-valued kernel is needed here".into() }),
        }
    }

    /// The exact kernel.
    pub fn kernel(&self) -> Result<&AnyKernel> {
        match self {
            Description::Kernel(kernel) => Ok(kernel),
            _ => Err(Error::Unsupported { what: "map", reason: "an exact kernel is needed here".into() }),
        }
    }

    /// Number of features of a row, where rows become features.
    pub fn features(&self, input_dim: usize) -> Result<Option<usize>> {
        match self {
            Description::Kernel(_) | Description::OperatorKernel(_) => Ok(None),
            // Which degrees get how many columns is decided when the rows are known; how many there are is not.
            Description::Map(Spec::Maclaurin(spec)) if spec.resolved.is_none() => Ok(Some(spec.n_components)),
            other => Ok(Some(other.spec()?.build::<f32>(input_dim)?.output_dim())),
        }
    }

    pub fn length_scale(&self) -> Option<f64> {
        let value = self.to_value().ok()?;
        let base = &value["kernel"]["base"];
        [&value, &value["kernel"], base].into_iter().find_map(|v| v.get("length_scale")?.as_f64())
    }

    /// `fourier features (gaussian kernel, orthogonal)`: the kind of map and every parameter that its kernel depends on, but
    /// for the length scale.
    pub fn in_words(&self) -> String {
        let value = self.to_value().unwrap_or_default();
        match self {
            Description::Map(spec) => {
                let parameters = match spec {
                    Spec::Fourier(spec) => match spec.kernel {
                        FourierKernel::Matern => &["nu"][..],
                        FourierKernel::Laplacian => &["norm"],
                        FourierKernel::Gaussian => &[],
                    },
                    Spec::Maclaurin(spec) if spec.kernel == MaclaurinKernel::Polynomial => POLYNOMIAL,
                    Spec::Polynomial(_) => POLYNOMIAL,
                    Spec::Optical(_) => &["exponent", "bias"],
                    Spec::Spherical(_) => &["degree", "a"],
                    Spec::Compressive(_) => &["compressed_dim"],
                    _ => &[],
                };
                let kernel = word(&value, "kernel").map(|k| format!("{k} kernel"));
                let drawn = ["sketch", "projection", "orthoprojector"].map(|key| word(&value, key));
                let details =
                    joined(kernel.into_iter().chain(named(&value, parameters)).chain(drawn.into_iter().flatten()));
                let name = word(&value, "map").unwrap_or_default();
                if details.is_empty() { format!("{name} features") } else { format!("{name} features ({details})") }
            }
            Description::Operator(_) => {
                let kernel = &value["kernel"];
                let details = joined(std::iter::once(operator_in_words(kernel)).chain(base_in_words(kernel)));
                format!("operator-valued fourier features ({details})")
            }
            Description::OperatorKernel(_) => {
                let base = base_in_words(&value).map_or(String::new(), |base| format!(" ({base})"));
                format!("none: the exact {}{base}", operator_in_words(&value))
            }
            Description::Kernel(_) => {
                let details = joined(named(&value, KERNEL_PARAMETERS));
                let of = if details.is_empty() { details } else { format!(" ({details})") };
                format!("none: the exact {} kernel{of}", word(&value, "kernel").unwrap_or_default())
            }
        }
    }
}

/// Parameters of `(gamma x·y + coef0)^degree`.
const POLYNOMIAL: &[&str] = &["degree", "gamma", "coef0"];
/// Parameters of exact kernels, each of which has some of them.
const KERNEL_PARAMETERS: &[&str] = &["degree", "gamma", "coef0", "nu", "norm", "exponent", "bias", "a"];

/// A name as people write it.
fn word(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(|w| w.replace('_', " "))
}

/// `degree 3`, and so on for those parameters that are there.
fn named(value: &Value, parameters: &[&str]) -> Vec<String> {
    let said = |key: &&str| {
        // Round numbers as they were given: 1, not 1.0.
        let number = value[*key].as_f64()?;
        let short = Some(number.to_string()).filter(|text| text.len() <= 6);
        Some(format!("{} {}", key.replace('_', " "), short.unwrap_or_else(|| words::significant(number, 4))))
    };
    parameters.iter().filter_map(said).collect()
}

fn joined(details: impl IntoIterator<Item = String>) -> String {
    details.into_iter().collect::<Vec<_>>().join(", ")
}

/// The scalar kernel of a decomposable one.
fn base_in_words(kernel: &Value) -> Option<String> {
    let base = &kernel["base"];
    let name = word(base, "kernel").map(|k| format!("{k} base"))?;
    Some(joined(std::iter::once(name).chain(named(base, KERNEL_PARAMETERS))))
}

/// An operator-valued kernel as files write it.
pub(crate) fn operator_in_words(kernel: &Value) -> String {
    match kernel["kernel"].as_str() {
        Some("div_free") => "divergence-free kernel".to_owned(),
        Some("curl_free") => "curl-free kernel".to_owned(),
        Some("helmholtz") => {
            let share = kernel["curl_free"].as_f64().unwrap_or(0.0);
            format!("Helmholtz kernel, {:.0} % curl-free", 100.0 * share)
        }
        other => format!("{} kernel", other.unwrap_or("operator-valued")),
    }
}

/// The description in a JSON object; unknown names and wrong values are told in a sentence that names their option.
pub(crate) fn spec_from(map: Map<String, Value>) -> Outcome<Spec> {
    serde_json::from_value(Value::Object(map.clone())).map_err(|error| {
        let name = map.get("map").and_then(Value::as_str).unwrap_or_default();
        let alone = |key: &str| {
            let pair = [("map", Value::from(name)), (key, map[key].clone())];
            let object = pair.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            serde_json::from_value::<Spec>(Value::Object(object)).err()
        };
        let blamed = map.keys().filter(|key| *key != "map").find_map(|key| Some((key, alone(key)?)));
        let Some((key, why)) = blamed else { return Failure::Usage(format!("--map {name}: {error}")) };
        let why = why.to_string();
        let value = map[key].as_str().map_or_else(|| map[key].to_string(), str::to_owned);
        Failure::Usage(match key.as_str() {
            "kernel" if why.starts_with("unknown field") => {
                format!("--kernel {value}: {name} features have a kernel of their own; leave --kernel or --map out")
            }
            "length_scale" if why.starts_with("unknown field") => {
                format!("--length-scale {value}: {name} features have no length scale")
            }
            "length_scale" => format!("--length-scale {value}: {name} features have one positive number"),
            "kernel" => format!("--kernel {value}: {why}"),
            "n_components" => format!("--features {value}: {why}"),
            other => format!("--set {other}={value}: {why}"),
        })
    })
}

/// Names of operator-valued kernels on the command line, and as files write them.
const OPERATORS: [(&str, &str); 5] = [
    ("decomposable", "decomposable"),
    ("curl_free", "curl_free"),
    ("divergence_free", "div_free"),
    ("div_free", "div_free"),
    ("helmholtz", "helmholtz"),
];

/// The name in files of an operator-valued kernel, if `name` is one.
pub fn operator_name(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_");
    OPERATORS.iter().find(|(known, _)| *known == name).map(|(_, written)| *written)
}

/// Parameters of an operator-valued kernel beside its length scale, by its name in files.
pub fn operator_parameters(name: &str) -> &'static [&'static str] {
    match name {
        "helmholtz" => &["curl_free"],
        "decomposable" => &["base", "nu", "norm", "matrix"],
        _ => &[],
    }
}

/// An operator-valued kernel as the command line describes it, without its number of features and its length scale.
#[derive(Debug, Clone)]
pub struct OperatorRequest {
    name: &'static str,
    /// Share of the curl-free part of a Helmholtz kernel.
    curl_free: f64,
    /// Scalar kernel of a decomposable one.
    base: Map<String, Value>,
    /// How outputs of a decomposable kernel are related.
    matrix: OutputMatrix,
    rest: Map<String, Value>,
}

impl OperatorRequest {
    /// From `--kernel` and `--set`; `covariance` is the output matrix where none is given.
    pub fn new(map: &Map<String, Value>, covariance: impl FnOnce() -> Result<Array2<f64>>) -> Outcome<Self> {
        let mut map = map.clone();
        map.remove("length_scale");
        if map.remove("map").is_some_and(|name| name != "fourier") {
            return Err(Failure::Usage("operator-valued kernels have Fourier features: leave --map out".into()));
        }
        let name = match map.remove("kernel") {
            None => "decomposable",
            Some(name) => operator_name(name.as_str().unwrap_or_default()).ok_or_else(|| {
                let known = "decomposable, curl_free, divergence_free, helmholtz";
                Failure::Usage(format!("--kernel {name} is not an operator-valued kernel; these are {known}"))
            })?,
        };
        let wrong = |what: &str, expected: &str| Failure::Usage(format!("--set {what}: expected {expected}"));
        let curl_free = match map.remove("curl_free") {
            Some(value) if name == "helmholtz" => {
                let share = value.as_f64().filter(|share| (0.0..=1.0).contains(share));
                share.ok_or_else(|| wrong("curl_free", "a share from 0 to 1"))?
            }
            Some(_) => return Err(wrong("curl_free", "--kernel helmholtz beside it")),
            None => 0.5,
        };
        let (mut base, mut matrix) = (Map::new(), OutputMatrix::identity(1)?);
        if name == "decomposable" {
            base.insert("kernel".into(), map.remove("base").unwrap_or_else(|| "gaussian".into()));
            for key in ["nu", "norm"] {
                if let Some(value) = map.remove(key) {
                    base.insert(key.into(), value);
                }
            }
            matrix = match map.remove("matrix") {
                Some(Value::String(word)) if word == "identity" => OutputMatrix::identity(covariance()?.nrows())?,
                Some(value) => {
                    serde_json::from_value(value).map_err(|e| wrong("matrix", &format!("rows of numbers ({e})")))?
                }
                None => OutputMatrix::new(covariance()?.view())?,
            };
        }
        Ok(OperatorRequest { name, curl_free, base, matrix, rest: map })
    }

    /// Whether rows and outputs are vectors of the same space, so that columns cannot be scaled apart.
    pub fn is_field(&self) -> bool {
        self.name != "decomposable"
    }

    /// Numbers of which each feature has one coefficient.
    pub fn blocks(&self, input_dim: usize) -> usize {
        if matches!(self.name, "div_free" | "helmholtz") { input_dim } else { 1 }
    }

    /// The kernel, for every way to draw features of it.
    pub fn kernel(&self, length_scale: f64) -> Outcome<OperatorKernel> {
        Ok(match self.name {
            "curl_free" => OperatorKernel::curl_free(length_scale)?,
            "div_free" => OperatorKernel::div_free(length_scale)?,
            "helmholtz" => OperatorKernel::helmholtz(length_scale, self.curl_free)?,
            _ => {
                let mut base = self.base.clone();
                base.insert("length_scale".into(), length_scale.into());
                let defaults: &[(&str, Value)] = match base["kernel"].as_str() {
                    Some("matern") => &[("nu", Value::from(1.5))],
                    Some("laplacian") => &[("norm", Value::from(2))],
                    _ => &[],
                };
                for (name, value) in defaults {
                    base.entry(*name).or_insert_with(|| value.clone());
                }
                let base: AnyKernel = serde_json::from_value(Value::Object(base))
                    .map_err(|e| Failure::Usage(format!("--set base: this kernel cannot be described: {e}")))?;
                OperatorKernel::decomposable(base, self.matrix.clone())?
            }
        })
    }

    /// The features.
    pub fn spec(&self, features: usize, length_scale: f64) -> Outcome<OperatorSpec> {
        let kernel = self.kernel(length_scale)?;
        let mut rest = self.rest.clone();
        rest.insert("n_components".into(), features.into());
        rest.insert("kernel".into(), serde_json::to_value(kernel).map_err(|e| Failure::Failed(e.to_string()))?);
        serde_json::from_value(Value::Object(rest))
            .map_err(|e| Failure::Usage(format!("this kernel cannot be described: {e}")))
    }

    /// Mean of `K(x, x)` over outputs: the unit of penalties.
    pub fn size(&self, input_dim: usize, length_scale: f64) -> Outcome<f64> {
        let origin = vec![0.0; input_dim];
        let value = self.kernel(length_scale)?.evaluate(&origin, &origin)?;
        let size = value.diag().mean().unwrap_or(1.0);
        Ok(if size > 0.0 && size.is_finite() { size } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(pairs: &[(&str, Value)]) -> Outcome<OperatorRequest> {
        let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        OperatorRequest::new(&map, || Ok(ndarray::array![[2.0, 1.0], [1.0, 2.0]]))
    }

    #[test]
    fn kernels_of_fields_and_of_related_outputs_survive_a_checkpoint() {
        for pairs in [
            &[("kernel", Value::from("curl_free"))][..],
            &[("kernel", "divergence-free".into())],
            &[("kernel", "helmholtz".into()), ("curl_free", 0.25.into())],
            &[("kernel", "decomposable".into()), ("base", "matern".into()), ("nu", 2.5.into())],
            &[("matrix", serde_json::json!([[1.0, 0.0], [0.0, 3.0]])), ("base", "laplacian".into())],
        ] {
            let description = Description::Operator(request(pairs).unwrap().spec(64, 0.7).unwrap());
            let text = serde_json::to_string(&description).unwrap();
            assert_eq!(serde_json::from_str::<Description>(&text).unwrap(), description);
            assert_eq!(description.length_scale(), Some(0.7), "{text}");
            assert_eq!(description.features(2).unwrap(), Some(64));
        }
        let kernel = Description::Kernel(bochner::kernel::Gaussian::new(2.0).unwrap().into());
        let text = serde_json::to_string(&kernel).unwrap();
        assert_eq!(serde_json::from_str::<Description>(&text).unwrap(), kernel);
        assert_eq!(kernel.length_scale(), Some(2.0));
    }

    #[test]
    fn what_does_not_belong_to_a_kernel_is_named() {
        for (pairs, part) in [
            (&[("kernel", Value::from("gaussian"))][..], "is not an operator-valued kernel"),
            (&[("kernel", "curl_free".into()), ("curl_free", 0.5.into())], "--kernel helmholtz"),
            (&[("kernel", "helmholtz".into()), ("curl_free", 1.5.into())], "from 0 to 1"),
            (&[("matrix", "wide".into())], "--set matrix"),
            (&[("map", "polynomial".into())], "leave --map out"),
        ] {
            let message = request(pairs).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let unknown = request(&[("kernel", "curl_free".into()), ("colour", 1.into())]).unwrap();
        assert!(unknown.spec(8, 1.0).unwrap_err().to_string().contains("unknown field `colour`"));
        let tanh = request(&[("base", "tanh".into())]).unwrap();
        assert!(tanh.spec(8, 1.0).unwrap_err().to_string().contains("--set base"));
    }
}

//! A feature map by words: its name, the parameters most people set, and any other by its name.

use crate::description::operator_name;
use crate::failure::{Failure, Outcome};
use serde_json::{Map, Value};

/// Which map turns rows into features, in the words of the user.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct MapRequest {
    /// Kind of map.
    pub map: Option<String>,
    /// Number of features.
    pub features: Option<usize>,
    /// Name of the kernel.
    pub kernel: Option<String>,
    /// A number, a list with one for each column, or `median`.
    pub length_scale: Option<String>,
    /// Other parameters, each as `NAME=VALUE`.
    pub set: Vec<String>,
}

/// Maps by name; their parameters are those of the Python classes.
const MAPS: [&str; 8] =
    ["fourier", "maclaurin", "polynomial", "positive", "optical", "spherical", "compressive", "ortho_projection"];

/// Kernels and the maps made for them, and whether the map has others too.
const KERNELS: [(&str, &str, bool); 6] = [
    ("gaussian", "fourier", true),
    ("laplacian", "fourier", true),
    ("matern", "fourier", true),
    ("polynomial", "polynomial", false),
    ("exponential", "positive", false),
    ("optical", "optical", false),
];

impl MapRequest {
    /// The map, and the kernel where the map has to be told.
    fn names(&self) -> Outcome<(&str, Option<&str>)> {
        let kernel = match (&self.map, self.kernel()) {
            (Some(map), kernel) => {
                let known = MAPS.iter().find(|known| **known == map.replace('-', "_"));
                let unknown = || format!("--map {map}: there is no such map; these are {}", MAPS.join(", "));
                return Ok((known.ok_or_else(|| Failure::Usage(unknown()))?, kernel));
            }
            (None, None) => return Ok(("fourier", None)),
            (None, Some(kernel)) => kernel,
        };
        if let Some((_, map, several)) = KERNELS.iter().find(|(name, ..)| *name == kernel) {
            return Ok((map, several.then_some(kernel)));
        }
        if operator_name(kernel).is_some() {
            return Ok(("fourier", Some(kernel)));
        }
        let known = KERNELS.map(|(name, ..)| name).join(", ");
        Err(Failure::Usage(format!(
            "--kernel {kernel}: there is no such kernel; these are {known} and, for several targets that are one function, \
             curl_free, divergence_free, helmholtz, decomposable"
        )))
    }

    /// The kernel asked for.
    pub fn kernel(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// Whether the map is for the program to choose: nothing was said that only one map understands.
    pub(crate) fn any_map(&self) -> bool {
        self.map.is_none() && matches!(self.kernel(), None | Some("gaussian")) && self.set.is_empty()
    }

    /// Refuses what a machine that compares rows by an exact kernel has no use for.
    pub(crate) fn check_exact(&self) -> Outcome {
        if let Some(kernel) = self.kernel().filter(|k| !["gaussian", "laplacian", "matern"].contains(k)) {
            return Err(Failure::Usage(format!(
                "--kernel {kernel}: --model kernel-svm has gaussian, laplacian and matern"
            )));
        }
        match self.map.as_deref() {
            None | Some("fourier") => Ok(()),
            Some(map) => Err(Failure::Usage(format!(
                "--map {map}: --model kernel-svm compares rows by a kernel and has no map; leave --map out"
            ))),
        }
    }

    /// Refuses kernels whose values are numbers, where those with matrices as values are needed.
    pub(crate) fn check_operator(&self) -> Outcome {
        match self.kernel().filter(|kernel| operator_name(kernel).is_none()) {
            None => Ok(()),
            Some(kernel) => Err(Failure::Usage(format!(
                "--kernel {kernel} is not an operator-valued kernel; these are decomposable, curl_free, divergence_free, \
                 helmholtz"
            ))),
        }
    }

    /// Refuses a parameter that has been given before, by its own option or by another `--set`: one of the two would be
    /// ignored.
    fn check_once(&self, name: &str, pair: &str, seed: u64, before: &[String]) -> Outcome {
        let given = match name {
            "length_scale" => self.length_scale.as_ref().map(|scale| format!("--length-scale {scale}")),
            "kernel" => self.kernel.as_ref().map(|kernel| format!("--kernel {kernel}")),
            "seed" => (seed != 0).then(|| format!("--seed {seed}")),
            _ => None,
        };
        let given = given.or_else(|| before.iter().any(|known| known == name).then(|| format!("another --set {name}")));
        match given {
            None => Ok(()),
            Some(other) => Err(Failure::Usage(format!("--set {pair} and {other} set the same; leave one of them out"))),
        }
    }

    /// The description as far as it was given; the number of features is for the caller.
    pub fn describe(&self, seed: u64) -> Outcome<Map<String, Value>> {
        let mut map = Map::new();
        let (name, kernel) = self.names()?;
        map.insert("map".into(), name.into());
        map.insert("seed".into(), seed.into());
        if let Some(kernel) = kernel {
            map.insert("kernel".into(), kernel.into());
        }
        // Of centred rows, even functions and polynomials without lower degrees learn no slope.
        let constants: &[(&str, Value)] = match (&self.map, name) {
            (None, "polynomial") => &[("degree", Value::from(3)), ("coef0", Value::from(1.0))],
            (None, "optical") => &[("bias", Value::from(1.0))],
            _ => &[],
        };
        map.extend(constants.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        if let Some(scale) = &self.length_scale {
            map.insert("length_scale".into(), length_scale(scale)?);
        }
        let mut before = Vec::new();
        for ((name, value), pair) in settings(&self.set)?.into_iter().zip(&self.set) {
            self.check_once(&name, pair, seed, &before)?;
            before.push(name.clone());
            if ["map", "n_components"].contains(&name.as_str()) {
                return Err(Failure::Usage(format!("--set {name}: this one is --map or --features")));
            }
            map.insert(name, value);
        }
        if map.get("degree").is_some_and(|degree| degree.as_f64() == Some(0.0)) {
            return Err(Failure::Usage("--set degree=0: the degree must be 1 or more".into()));
        }
        Ok(map)
    }
}

/// What `--set` says.
pub fn settings(set: &[String]) -> Outcome<Vec<(String, Value)>> {
    let read = |pair: &String| match pair.split_once('=') {
        Some((name, text)) => Ok((name.to_owned(), value(text))),
        None => Err(Failure::Usage(format!("--set takes NAME=VALUE, got {pair:?}"))),
    };
    set.iter().map(read).collect()
}

/// A positive number, a list of them, or `median`.
fn length_scale(text: &str) -> Outcome<Value> {
    let positive = |v: &Value| v.as_f64().is_some_and(|v| v > 0.0 && v.is_finite());
    let value = value(text);
    let good = match &value {
        Value::Array(scales) => !scales.is_empty() && scales.iter().all(positive),
        Value::String(word) => word == "median",
        number => positive(number),
    };
    let expected = "a positive number, a list with one for each column as in [0.5,2], or median";
    if good { Ok(value) } else { Err(Failure::Usage(format!("--length-scale {text}: expected {expected}"))) }
}

/// A number, a list or a truth value where it reads like one, else a word.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(map: Option<&str>, kernel: Option<&str>) -> Outcome<Map<String, Value>> {
        let (map, kernel) = (map.map(str::to_owned), kernel.map(str::to_owned));
        MapRequest { map, features: None, kernel, length_scale: None, set: Vec::new() }.describe(0)
    }

    #[test]
    fn every_kernel_has_a_map_that_can_be_described() {
        for (kernel, ..) in KERNELS {
            let map = described(None, Some(kernel)).unwrap();
            assert!(crate::description::spec_from(map).is_ok(), "{kernel}");
        }
        assert_eq!(described(None, None).unwrap()["map"], "fourier");
        assert_eq!(described(Some("maclaurin"), Some("gaussian")).unwrap()["map"], "maclaurin");
        assert_eq!(described(None, Some("curl-free")).unwrap()["kernel"], "curl-free");
    }

    #[test]
    fn a_parameter_is_set_once() {
        let told = |scale: Option<&str>, kernel: Option<&str>, seed: u64, set: &[&str]| {
            let (kernel, length_scale) = (kernel.map(str::to_owned), scale.map(str::to_owned));
            let set = set.iter().map(|pair| (*pair).to_owned()).collect();
            let described = MapRequest { map: None, features: None, kernel, length_scale, set }.describe(seed);
            described.map_or_else(|failure| failure.to_string(), |_| String::new())
        };
        let expected = "--set length_scale=3 and --length-scale 2 set the same; leave one of them out";
        assert_eq!(told(Some("2"), None, 0, &["length_scale=3"]), expected);
        assert!(told(None, Some("gaussian"), 0, &["kernel=matern"]).contains("and --kernel gaussian"));
        assert!(told(None, None, 7, &["seed=3"]).contains("and --seed 7"));
        assert!(told(None, None, 0, &["nu=3", "nu=2"]).contains("--set nu=2 and another --set nu"));
        assert_eq!(told(None, Some("matern"), 0, &["length_scale=3", "nu=2"]), "");
        assert_eq!(told(None, Some("polynomial"), 7, &["degree=2"]), "");
        assert!(told(None, Some("polynomial"), 0, &["degree=0"]).contains("must be 1 or more"));
    }

    #[test]
    fn an_unknown_kernel_is_answered_with_all_there_are() {
        let told = described(None, Some("nothing")).unwrap_err().to_string();
        let known = KERNELS.iter().map(|k| k.0).chain(["curl_free", "divergence_free", "helmholtz", "decomposable"]);
        known.for_each(|name| assert!(told.contains(name), "{told}"));
    }
}

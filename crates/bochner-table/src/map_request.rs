//! A map or a kernel by words: its name, the parameters most people set, and any other by its name. What there is, and what
//! it may be, the [`bochner::catalogue`] knows.
//!
//! ```
//! use bochner_table::map_request::settings;
//! let set = settings(&["degree=3".into()])?;
//! assert_eq!((set[0].0.as_str(), set[0].1.number()), ("degree", Some(3.0)));
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::pipeline::Preparation;
use bochner::catalogue::{self, Domain, Entry, Value};
use bochner::feature::{Directions, OperatorSpec, Spec};
use bochner::kernel::{AnyKernel, OperatorKernel};
use bochner::{Error, Result};
use ndarray::Array2;

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

/// A map as far as it was asked for: all but its number of features and, where nobody says, its length scale.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) spec: Spec,
    /// The length scale asked for.
    pub(crate) scale: Option<Value>,
}

/// What is wrong with an option, in a sentence that begins with it.
pub(crate) fn blamed(option: impl std::fmt::Display) -> impl FnOnce(Error) -> Failure {
    move |error| match error {
        Error::Unsupported { reason, .. } => Failure::Usage(format!("{option}: {reason}")),
        other => Failure::Usage(format!("{option}: {other}")),
    }
}

/// Settings as the catalogue takes them.
pub(crate) fn borrowed(given: &[(String, Value)]) -> Vec<(&str, Value)> {
    given.iter().map(|(name, value)| (name.as_str(), value.clone())).collect()
}

/// Names of kernels, those with matrices as values last.
pub fn kernel_names() -> impl Iterator<Item = &'static str> {
    catalogue::kernels().chain(catalogue::operator_kernels()).map(|entry| entry.name)
}

/// What the catalogue says of a kernel of either sort.
///
/// # Errors
/// No such kernel, with all there are.
pub fn kernel_entry(name: &str) -> Outcome<&'static Entry> {
    let known = AnyKernel::entry_named(name).or_else(|_| OperatorKernel::entry_named(name));
    known.map_err(|_| {
        let known = kernel_names().collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("--kernel {name}: there is no such kernel; these are {known}"))
    })
}

/// Whether the values of a kernel are matrices.
pub(crate) fn is_operator(kernel: &str) -> bool {
    OperatorKernel::entry_named(kernel).is_ok()
}

impl MapRequest {
    /// The kind of map, with the kernel where it has to be told.
    fn kind(&self) -> Outcome<Spec> {
        let Some(map) = &self.map else {
            let kernel = self.kernel.as_deref().unwrap_or("gaussian");
            return Ok(Spec::for_kernel(kernel_entry(kernel)?.name)?);
        };
        let spec = Spec::named(map).map_err(|_| {
            let known = catalogue::maps().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
            Failure::Usage(format!("--map {map}: there is no such map; these are {known}"))
        })?;
        let Some(kernel) = &self.kernel else { return Ok(spec) };
        let name = kernel_entry(kernel)?.name;
        if spec.entry().parameter("kernel").is_ok() {
            return spec.with("kernel", name.into()).map_err(blamed(format!("--kernel {kernel}")));
        }
        if Spec::KINDS.iter().any(|(entry, kernels)| entry.name == spec.entry().name && kernels.contains(&name)) {
            return Ok(spec);
        }
        Err(Failure::Usage(format!(
            "--kernel {kernel}: {} have a kernel of their own; leave --kernel or --map out",
            spec.entry().title
        )))
    }

    /// The operator-valued kernel asked for.
    pub(crate) fn operator_kernel(&self) -> Option<&str> {
        self.kernel.as_deref().filter(|kernel| is_operator(kernel))
    }

    /// Whether nothing was said of map and kernel.
    pub(crate) fn is_free(&self) -> bool {
        self.map.is_none() && self.kernel.is_none() && self.length_scale.is_none() && self.set.is_empty()
    }

    /// Whether the map is for the program to choose: nothing was said that only one map understands.
    pub(crate) fn any_map(&self) -> bool {
        self.map.is_none() && matches!(self.kernel.as_deref(), None | Some("gaussian")) && self.set.is_empty()
    }

    /// What is done to rows first, with what the kernel asks for: spherical features are ones of rows of length one.
    pub(crate) fn preparation(&self, asked: Preparation) -> Outcome<Preparation> {
        match (self.map.as_deref(), self.kernel.as_deref()) {
            (_, Some("spherical")) => asked.of_sphere(),
            (Some("spherical"), _) if asked == Preparation::Auto => Ok(Preparation::Unit),
            _ => Ok(asked),
        }
    }

    /// Refuses what a machine that compares rows by an exact kernel has no use for.
    pub(crate) fn check_exact(&self) -> Outcome {
        let known = Spec::for_kernel("gaussian")?.entry().parameter("kernel")?.domain.words();
        if let Some(kernel) = self.kernel.as_deref().filter(|kernel| !known.contains(kernel)) {
            let known = known.join(", ");
            return Err(Failure::Usage(format!("--kernel {kernel}: --model kernel-svm has {known}")));
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
        match self.kernel.as_deref().filter(|kernel| !is_operator(kernel)) {
            None => Ok(()),
            Some(kernel) => {
                let known: Vec<&str> = catalogue::operator_kernels().map(|entry| entry.name).collect();
                let known = known.join(", ");
                let message = format!("--kernel {kernel} is not an operator-valued kernel; these are {known}");
                Err(Failure::Usage(message))
            }
        }
    }

    /// What `--set` says; a parameter that has been given before, by its own option or by another `--set`, is refused: one of
    /// the two would be ignored.
    fn settings(&self, seed: u64) -> Outcome<Vec<(String, Value)>> {
        let settings = settings(&self.set)?;
        for (at, ((name, _), pair)) in settings.iter().zip(&self.set).enumerate() {
            let given = match name.as_str() {
                "map" | "n_components" => {
                    return Err(Failure::Usage(format!("--set {name}: this one is --map or --features")));
                }
                "length_scale" => self.length_scale.as_ref().map(|scale| format!("--length-scale {scale}")),
                "kernel" => self.kernel.as_ref().map(|kernel| format!("--kernel {kernel}")),
                "seed" => (seed != 0).then(|| format!("--seed {seed}")),
                _ => None,
            };
            let before = settings[..at].iter().any(|(known, _)| known == name);
            if let Some(other) = given.or_else(|| before.then(|| format!("another --set {name}"))) {
                let message = format!("--set {pair} and {other} set the same; leave one of them out");
                return Err(Failure::Usage(message));
            }
        }
        Ok(settings)
    }

    /// Refuses what no map can be made of, before any row is read.
    ///
    /// # Errors
    /// Maps, kernels and parameters that are not there, and values that they cannot have.
    pub fn check(&self, seed: u64) -> Outcome {
        match self.operator_kernel() {
            Some(_) => self.check_operator(),
            None => self.describe(seed).map(drop),
        }
    }

    /// The description as far as it was given; the number of features is for the caller.
    pub(crate) fn describe(&self, seed: u64) -> Outcome<Described> {
        let mut spec = self.kind()?.with("seed", seed.into())?;
        let mut scale = self.length_scale.as_deref().map(Value::parse);
        let mut set = |name: &str, value: &Value, option: String| -> Outcome {
            spec = spec.with(name, value.clone()).map_err(blamed(option))?;
            Ok(())
        };
        for ((name, value), pair) in self.settings(seed)?.iter().zip(&self.set) {
            set(name, value, format!("--set {pair}"))?;
            if name == "length_scale" {
                scale = Some(value.clone());
            }
        }
        if spec.get("degree").and_then(|degree| degree.number()) == Some(0.0) {
            return Err(Failure::Usage("--set degree=0: the degree must be 1 or more".into()));
        }
        if let (Some(value), Some(text)) = (&scale, &self.length_scale) {
            let title = spec.entry().title;
            if spec.entry().parameter("length_scale").is_err() {
                return Err(Failure::Usage(format!("--length-scale {text}: {title} have no length scale")));
            }
            // Those that know numbers only are given the number.
            if *value != Value::from("median") {
                spec = spec.with("length_scale", value.clone()).map_err(blamed(format!("--length-scale {text}")))?;
            }
        }
        Ok(Described { spec, scale })
    }

    /// The length scale asked for, of an operator-valued kernel.
    pub(crate) fn length_scale_of_operator(&self) -> Outcome<Option<Value>> {
        let set = self.set.iter().find_map(|pair| pair.strip_prefix("length_scale="));
        let Some(text) = self.length_scale.as_deref().or(set) else { return Ok(None) };
        let value = Value::parse(text);
        Domain::ONE_LENGTH_SCALE.contains(&value).then_some(Some(value)).ok_or_else(|| {
            let error = Error::parameter("length_scale", Domain::ONE_LENGTH_SCALE.to_string(), text);
            blamed(format!("--length-scale {text}"))(error)
        })
    }

    /// The same map with [lower degrees](bochner::feature::Spec::lower_degrees), to be tried too where only its kernel was
    /// named and none of their parameters set.
    pub(crate) fn with_lower_degrees(&self, spec: &Spec) -> Result<Option<Spec>> {
        let parameters = spec.lower_degrees();
        let set = |name: &str| self.set.iter().any(|pair| pair.split_once('=').is_some_and(|(known, _)| known == name));
        if self.map.is_some() || parameters.is_empty() || parameters.iter().any(|(name, _)| set(name)) {
            return Ok(None);
        }
        parameters.iter().try_fold(spec.clone(), |spec, (name, value)| spec.with(name, value.clone())).map(Some)
    }

    /// The operator-valued kernel, decomposable where nobody names one; `covariance` says how outputs are related where no
    /// matrix is given.
    pub(crate) fn operator(
        &self,
        seed: u64,
        covariance: impl FnOnce() -> Result<Array2<f64>>,
    ) -> Outcome<OperatorRequest> {
        if self.map.as_deref().is_some_and(|name| name != "fourier") {
            return Err(Failure::Usage("operator-valued kernels have Fourier features: leave --map out".into()));
        }
        self.check_operator()?;
        let mut features = Spec::for_kernel("gaussian")?.with("seed", seed.into())?;
        let (drawn, own): (Vec<_>, Vec<_>) =
            self.settings(seed)?.into_iter().partition(|(name, _)| ["projection", "seed"].contains(&name.as_str()));
        for (name, value) in drawn {
            features = features.with(&name, value.clone()).map_err(blamed(format!("--set {name}={value}")))?;
        }
        let mut request = OperatorRequest::new(self.kernel.as_deref().unwrap_or("decomposable"), own, covariance)?;
        if let Spec::Fourier(spec) = features {
            (request.projection, request.seed) = (spec.projection, spec.seed);
        }
        Ok(request)
    }
}

/// What `--set` says.
///
/// # Errors
/// What is not `NAME=VALUE`.
pub fn settings(set: &[String]) -> Outcome<Vec<(String, Value)>> {
    let read = |pair: &String| match pair.split_once('=') {
        Some((name, text)) => Ok((name.to_owned(), Value::parse(text))),
        None => Err(Failure::Usage(format!("--set takes NAME=VALUE, got {pair:?}"))),
    };
    set.iter().map(read).collect()
}

/// Refuses parameters that a kernel does not have, and values outside of their domains. Options other than `--set` are named
/// as they were given.
pub(crate) fn check_parameters(entry: &Entry, given: &[(String, Value)], option: impl Fn(&str) -> String) -> Outcome {
    for (name, value) in given {
        let Ok(parameter) = entry.parameter(name) else {
            let (this, has) = (entry.name, |entry: &&&Entry| entry.parameter(name).is_ok());
            let all: Vec<&Entry> = catalogue::kernels().chain(catalogue::operator_kernels()).collect();
            let others: Vec<&str> = all.iter().filter(has).map(|entry| entry.name).collect();
            return Err(Failure::Usage(if others.is_empty() {
                let known: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
                format!("{}: the parameters of --kernel {this} are {}", option(name), known.join(", "))
            } else {
                let others = others.join(", ");
                format!("{} goes with --kernel {others}; the kernel is {this}", option(name))
            }));
        };
        parameter.check(value).map_err(blamed(option(name)))?;
    }
    Ok(())
}

/// An operator-valued kernel without its number of features and its length scale.
#[derive(Debug, Clone)]
pub struct OperatorRequest {
    entry: &'static Entry,
    given: Vec<(String, Value)>,
    /// How outputs of a decomposable kernel are related where no matrix is given.
    related: Array2<f64>,
    projection: Directions,
    seed: u64,
}

impl OperatorRequest {
    /// From its name and parameters; `covariance` is the output matrix where none is given.
    ///
    /// # Errors
    /// No such kernel or parameter, and values outside of their domains.
    pub fn new(
        kernel: &str,
        given: Vec<(String, Value)>,
        covariance: impl FnOnce() -> Result<Array2<f64>>,
    ) -> Outcome<Self> {
        let entry = OperatorKernel::entry_named(kernel).map_err(blamed(format!("--kernel {kernel}")))?;
        check_parameters(entry, &given, |name| format!("--set {name}"))?;
        let known = given.iter().any(|(name, value)| name == "matrix" && matches!(value, Value::List(_)));
        let related = if known || is_field(entry) { Array2::eye(1) } else { covariance()? };
        let request = OperatorRequest { entry, given, related, projection: Directions::Auto, seed: 0 };
        request.kernel(1.0)?;
        Ok(request)
    }

    /// Whether rows and outputs are vectors of the same space, so that columns cannot be scaled apart.
    pub fn is_field(&self) -> bool {
        is_field(self.entry)
    }

    /// Numbers of which each feature has one coefficient.
    pub(crate) fn blocks(&self, input_dim: usize) -> usize {
        let spec = self.spec(2, 1.0).and_then(|spec| Ok(spec.build::<f32>(input_dim)?));
        spec.map_or(1, |features| features.spread().inner())
    }

    /// The kernel, for every way to draw features of it.
    ///
    /// # Errors
    /// A length scale that is not positive, and parameters that do not go together.
    pub fn kernel(&self, length_scale: f64) -> Outcome<OperatorKernel> {
        let mut given = borrowed(&self.given);
        given.push(("length_scale", length_scale.into()));
        OperatorKernel::named(self.entry.name, &given, || Ok(self.related.clone()))
            .map_err(blamed(format!("--kernel {}", self.entry.name)))
    }

    /// The features.
    pub(crate) fn spec(&self, features: usize, length_scale: f64) -> Outcome<OperatorSpec> {
        let kernel = self.kernel(length_scale)?;
        Ok(OperatorSpec { kernel, n_components: features, projection: self.projection, seed: self.seed })
    }

    /// Mean of `K(x, x)` over outputs: the unit of penalties.
    pub(crate) fn size(&self, input_dim: usize, length_scale: f64) -> Outcome<f64> {
        let origin = vec![0.0; input_dim];
        let value = self.kernel(length_scale)?.evaluate(&origin, &origin)?;
        let size = value.diag().mean().unwrap_or(1.0);
        Ok(if size > 0.0 && size.is_finite() { size } else { 1.0 })
    }
}

/// Whether a kernel is one of vector fields: those with a matrix of outputs are not.
pub(crate) fn is_field(entry: &Entry) -> bool {
    is_operator(entry.name) && entry.parameter("matrix").is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner::feature::Description;

    fn asked(map: Option<&str>, kernel: Option<&str>, scale: Option<&str>, set: &[&str]) -> MapRequest {
        MapRequest {
            map: map.map(str::to_owned),
            features: None,
            kernel: kernel.map(str::to_owned),
            length_scale: scale.map(str::to_owned),
            set: set.iter().map(|pair| (*pair).to_owned()).collect(),
        }
    }

    #[test]
    fn every_kernel_has_a_map_that_can_be_described() {
        let described = |map, kernel| asked(map, kernel, None, &[]).describe(0).unwrap().spec.entry().name;
        for kernel in catalogue::kernels() {
            asked(None, Some(kernel.name), None, &[]).describe(0).unwrap();
        }
        assert_eq!(described(None, None), "fourier");
        assert_eq!(described(Some("maclaurin"), Some("gaussian")), "maclaurin");
        assert_eq!(described(Some("ortho-projection"), None), "ortho_projection");
        assert_eq!(described(Some("polynomial"), Some("polynomial")), "polynomial");
    }

    #[test]
    fn a_parameter_is_set_once() {
        let told = |scale: Option<&str>, kernel: Option<&str>, seed: u64, set: &[&str]| {
            let described = asked(None, kernel, scale, set).describe(seed);
            described.map_or_else(|failure| failure.to_string(), |_| String::new())
        };
        let expected = "--set length_scale=3 and --length-scale 2 set the same; leave one of them out";
        assert_eq!(told(Some("2"), None, 0, &["length_scale=3"]), expected);
        assert!(told(None, Some("gaussian"), 0, &["kernel=matern"]).contains("and --kernel gaussian"));
        assert!(told(None, None, 7, &["seed=3"]).contains("and --seed 7"));
        assert!(told(None, None, 0, &["nu=3", "nu=2"]).contains("--set nu=2 and another --set nu"));
        assert_eq!(told(None, Some("matern"), 0, &["length_scale=3", "nu=2"]), "");
        assert_eq!(told(None, Some("polynomial"), 7, &["degree=2"]), "");
        assert_eq!(told(Some("median"), Some("exponential"), 7, &[]), "");
        let zero = told(None, Some("polynomial"), 0, &["degree=0"]);
        assert!(zero.contains("must be 1 or more"), "{zero}");
    }

    #[test]
    fn an_unknown_kernel_is_answered_with_all_there_are() {
        let told = asked(None, Some("nothing"), None, &[]).describe(0).unwrap_err().to_string();
        kernel_names().for_each(|name| assert!(told.contains(name), "{told}"));
    }

    fn operator(kernel: Option<&str>, set: &[&str]) -> Outcome<OperatorRequest> {
        asked(None, kernel, None, set).operator(0, || Ok(ndarray::array![[2.0, 1.0], [1.0, 2.0]]))
    }

    #[test]
    fn kernels_of_fields_and_of_related_outputs_survive_a_checkpoint() {
        for (kernel, set) in [
            (Some("curl_free"), &[][..]),
            (Some("divergence-free"), &["projection=sorf"]),
            (Some("helmholtz"), &["curl_free=0.25"]),
            (Some("decomposable"), &["base=matern", "nu=2.5"]),
            (None, &["matrix=[[1,0],[0,3]]", "base=laplacian"]),
        ] {
            let description = Description::Operator(operator(kernel, set).unwrap().spec(64, 0.7).unwrap());
            let text = serde_json::to_string(&description).unwrap();
            assert_eq!(serde_json::from_str::<Description>(&text).unwrap(), description);
            assert_eq!(description.length_scale(), Some(0.7), "{text}");
            assert_eq!(description.features(2).unwrap(), Some(64));
        }
    }

    #[test]
    fn what_does_not_belong_to_a_kernel_is_named() {
        for (kernel, set, part) in [
            (Some("gaussian"), &[][..], "is not an operator-valued kernel"),
            (Some("curl_free"), &["curl_free=0.5"], "--set curl_free goes with --kernel helmholtz"),
            (Some("helmholtz"), &["curl_free=1.5"], "from 0 to 1"),
            (None, &["matrix=wide"], "--set matrix"),
            (Some("curl_free"), &["colour=1"], "--set colour: the parameters of --kernel curl_free are length_scale"),
            (None, &["base=tanh"], "--set base"),
        ] {
            let message = operator(kernel, set).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let sketch = asked(Some("polynomial"), None, None, &[]).operator(0, || Ok(Array2::eye(1)));
        assert!(sketch.unwrap_err().to_string().contains("leave --map out"));
    }
}

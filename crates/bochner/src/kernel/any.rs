use super::{DotProductKernel, Kernel, SpectralKernel};
use crate::error::{Error, Result};
use crate::parameter::{Entry, Purpose, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! any {
    ($($kernel:ident),*) => {
        /// Any scalar kernel of the library, as stored in model files and named by all doors.
        ///
        /// ```
        /// use bochner::kernel::{AnyKernel, Gaussian};
        /// let kernel = AnyKernel::from(Gaussian::new(2.0)?);
        /// let text = serde_json::to_string(&kernel).unwrap();
        /// assert_eq!(text, r#"{"kernel":"gaussian","length_scale":2.0}"#);
        /// assert_eq!(serde_json::from_str::<AnyKernel>(&text).unwrap(), kernel);
        /// # Ok::<(), bochner::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kernel", rename_all = "snake_case")]
        #[non_exhaustive]
        #[allow(missing_docs)] // each variant is the kernel of its name
        pub enum AnyKernel {
            $($kernel(super::$kernel),)*
        }

        macro_rules! each {
            ($self:expr, $name:ident => $value:expr) => {
                match $self {
                    $(AnyKernel::$kernel($name) => $value,)*
                }
            };
        }

        $(impl From<super::$kernel> for AnyKernel {
            fn from(kernel: super::$kernel) -> Self {
                AnyKernel::$kernel(kernel)
            }
        })*

        impl AnyKernel {
            /// All scalar kernels.
            pub const KINDS: &'static [Entry] = &[$(super::$kernel::ENTRY,)*];
        }
    };
}
kernels!(any);

impl AnyKernel {
    /// What the catalogue says of the scalar kernel of this name.
    ///
    /// # Errors
    /// No such kernel, with all there are.
    pub fn entry_named(name: &str) -> Result<&'static Entry> {
        Entry::named(Self::KINDS.iter(), "kernel", name)
    }

    /// The kernel of this name for rows of length `input_dim`, with defaults for all that is not given.
    ///
    /// # Errors
    /// No such kernel or parameter, or a value outside its domain: told with what there is.
    ///
    /// ```
    /// use bochner::kernel::{AnyKernel, Matern};
    /// let kernel = AnyKernel::named("matern", 3, &[("nu", 2.5.into())])?;
    /// assert_eq!(kernel, Matern::new(2.5, 1.0)?.into());
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub fn named(name: &str, input_dim: usize, given: &[(&str, Value)]) -> Result<AnyKernel> {
        let entry = Self::entry_named(name)?;
        for (name, value) in given {
            entry.parameter(name)?.check(value)?;
        }
        let mut parts: BTreeMap<String, Value> =
            entry.parameters.iter().map(|parameter| (parameter.name.to_owned(), parameter.default())).collect();
        parts.extend(given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        if let Some(compressed) = parts.remove("compressed_dim").and_then(|dim| dim.number()) {
            parts.insert("compression".into(), "orthoprojector".into());
            parts.insert("input_dim".into(), input_dim.into());
            parts.insert("output_dim".into(), (compressed as usize).min(input_dim).into());
        }
        parts.insert("kernel".into(), entry.name.into());
        let written = serde_json::to_value(parts).and_then(serde_json::from_value);
        written.map_err(|error| Error::Format { what: "description of a kernel", detail: error.to_string() })
    }

    /// What the catalogue says of this kernel.
    pub fn entry(&self) -> &'static Entry {
        let name = Value::of(self);
        let name = match &name {
            Value::Parts(parts) => parts.get("kernel").map(ToString::to_string),
            _ => None,
        };
        Self::entry_named(&name.unwrap_or_default()).expect("every kernel is listed under the name it is written by")
    }

    /// `Matern kernel, nu 2.5, length scale 0.7`: the kernel and all its numbers.
    pub fn in_words(&self) -> String {
        let mut words = vec![format!("{} kernel", self.entry().title)];
        words.extend(self.numbers_in_words());
        let written = Value::of(self);
        if let Value::Parts(parts) = &written
            && let Some(scale) = parts.get("length_scale").and_then(Value::number)
        {
            words.push(format!("length scale {}", crate::words::significant(scale, 4)));
        }
        words.join(", ")
    }

    /// `nu 2.5`, and so on for every number but the length scale.
    pub(crate) fn numbers_in_words(&self) -> Vec<String> {
        let Value::Parts(parts) = Value::of(self) else { return Vec::new() };
        let said = self.entry().parameters.iter().filter(|p| p.purpose == Purpose::Kernel && p.name != "length_scale");
        said.filter_map(|p| {
            // A compressive kernel is written with both of its dimensions.
            let written = if p.name == "compressed_dim" { "output_dim" } else { p.name };
            let value = parts.get(written).filter(|value| value.number().is_some())?;
            Some(format!("{} {}", p.name.replace('_', " "), value.short()))
        })
        .collect()
    }

    /// The kernel as one with Fourier features from random radii, where it is one.
    pub fn spectral(&self) -> Option<Box<dyn SpectralKernel>> {
        match self {
            AnyKernel::Gaussian(kernel) => Some(Box::new(*kernel)),
            AnyKernel::Matern(kernel) => Some(Box::new(kernel.clone())),
            AnyKernel::Laplacian(kernel) => kernel.matern().map(|kernel| Box::new(kernel) as Box<dyn SpectralKernel>),
            _ => None,
        }
    }

    /// The kernel as a power series in the inner product, where it is one; [`Spherical`](super::Spherical) is one on unit rows.
    pub fn dot_product(&self) -> Option<Box<dyn DotProductKernel>> {
        match self {
            AnyKernel::Polynomial(kernel) => Some(Box::new(*kernel)),
            AnyKernel::Exponential(kernel) => Some(Box::new(*kernel)),
            AnyKernel::Spherical(kernel) => Some(Box::new(kernel.polynomial())),
            _ => None,
        }
    }
}

impl Kernel for AnyKernel {
    fn description(&self) -> Option<AnyKernel> {
        Some(self.clone())
    }
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        each!(self, kernel => kernel.evaluate(x, y))
    }
    fn of_products(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> Option<f64> {
        each!(self, kernel => kernel.of_products(dot, x_norm_sq, y_norm_sq))
    }
    fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
        each!(self, kernel => kernel.of_distance_sq(distance_sq))
    }
    fn map_products(&self, dots: &mut [f64], x_norm_sq: f64, y_norms_sq: &[f64]) -> bool {
        each!(self, kernel => kernel.map_products(dots, x_norm_sq, y_norms_sq))
    }
    fn map_distances_sq(&self, distances_sq: &mut [f64]) -> bool {
        each!(self, kernel => kernel.map_distances_sq(distances_sq))
    }
}

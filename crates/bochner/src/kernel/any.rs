use super::{Compressive, Exponential, Gaussian, Kernel, Laplacian, Matern, Optical, Polynomial, Spherical};
use serde::{Deserialize, Serialize};

/// Any scalar kernel of the library, as stored in model files and named by Python and the command line.
///
/// ```
/// use bochner::kernel::{Any, Gaussian};
/// let kernel = Any::from(Gaussian::new(2.0)?);
/// let text = serde_json::to_string(&kernel).unwrap();
/// assert_eq!(text, r#"{"kernel":"gaussian","length_scale":2.0}"#);
/// assert_eq!(serde_json::from_str::<Any>(&text).unwrap(), kernel);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kernel", rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs)] // each variant is the kernel of its name
pub enum Any {
    Polynomial(Polynomial),
    Exponential(Exponential),
    Gaussian(Gaussian),
    Matern(Matern),
    Laplacian(Laplacian),
    Optical(Optical),
    Spherical(Spherical),
    Compressive(Compressive),
}

macro_rules! each {
    ($self:expr, $kernel:ident => $value:expr) => {
        match $self {
            Any::Polynomial($kernel) => $value,
            Any::Exponential($kernel) => $value,
            Any::Gaussian($kernel) => $value,
            Any::Matern($kernel) => $value,
            Any::Laplacian($kernel) => $value,
            Any::Optical($kernel) => $value,
            Any::Spherical($kernel) => $value,
            Any::Compressive($kernel) => $value,
        }
    };
}

impl Kernel for Any {
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

macro_rules! from {
    ($($kernel:ident),*) => {$(
        impl From<$kernel> for Any {
            fn from(kernel: $kernel) -> Self {
                Any::$kernel(kernel)
            }
        }
    )*};
}
from!(Polynomial, Exponential, Gaussian, Matern, Laplacian, Optical, Spherical, Compressive);

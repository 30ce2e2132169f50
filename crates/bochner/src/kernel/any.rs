use super::{
    Compressive, DotProductKernel, Exponential, Gaussian, Kernel, Laplacian, Matern, Optical, Polynomial,
    SpectralKernel, Spherical,
};
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

impl Any {
    /// The kernel as one with Fourier features from random radii, where it is one.
    pub fn spectral(&self) -> Option<Box<dyn SpectralKernel>> {
        match self {
            Any::Gaussian(kernel) => Some(Box::new(*kernel)),
            Any::Matern(kernel) => Some(Box::new(kernel.clone())),
            Any::Laplacian(kernel) => kernel.matern().map(|kernel| Box::new(kernel) as Box<dyn SpectralKernel>),
            _ => None,
        }
    }

    /// The kernel as a power series in the inner product, where it is one; [`Spherical`] is one on unit rows.
    pub fn dot_product(&self) -> Option<Box<dyn DotProductKernel>> {
        match self {
            Any::Polynomial(kernel) => Some(Box::new(*kernel)),
            Any::Exponential(kernel) => Some(Box::new(*kernel)),
            Any::Spherical(kernel) => Some(Box::new(kernel.polynomial())),
            _ => None,
        }
    }
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

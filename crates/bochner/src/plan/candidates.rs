use crate::error::{Error, Result};
use crate::feature::{
    AllocationRule, CompressiveSpec, Directions, FourierKernel, FourierSpec, MaclaurinKernel, MaclaurinSpec,
    OpticalProjection, OpticalSpec, Orthoprojection, PolynomialSpec, PositiveSpec, SketchKind, Spec, SphericalSpec,
    Statistics, Structure,
};
use crate::kernel::Any;
use crate::preprocess::LengthScale;
use crate::variance::{Softmax, Weights};
use ndarray::{ArrayView1, ArrayView2};

/// A map that estimates a kernel, under the name tables show.
#[derive(Debug, Clone)]
pub struct Candidate<S = Spec> {
    /// Name for people.
    pub name: String,
    /// The map; its budget and seed are to be replaced ([`Trial::sized`](super::Trial::sized)).
    pub spec: S,
    /// The constant by which the kernel is the one the map estimates: 1 but for spherical features, whose kernel is 1 at
    /// distance 0.
    pub factor: f64,
}

impl Candidate {
    fn new(name: &str, spec: impl Into<Spec>) -> Self {
        Candidate { name: name.into(), spec: spec.into(), factor: 1.0 }
    }
}

/// Degree from which a tree of sketches is worth a try.
const TREE_DEGREE: u32 = 4;

/// Distance from 1 up to which rows count as rows of length 1.
const UNIT: f64 = 1e-6;

/// Every map of the library that estimates `kernel` on rows like `rows`: spherical features join the polynomial sketches
/// where all rows have length 1.
///
/// # Errors
/// A polynomial of degree 0, which is the same for all rows.
///
/// ```
/// use bochner::kernel::{Any, Gaussian};
/// let rows = ndarray::array![[0.6, 0.8], [1.0, 0.0]];
/// let list = bochner::plan::candidates(&Any::from(Gaussian::new(1.0)?), rows.view())?;
/// assert!(list.iter().any(|c| c.name == "Fourier, SORF"));
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn candidates(kernel: &Any, rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
    Ok(match kernel {
        Any::Gaussian(k) => {
            let length_scale = LengthScale::Same(k.length_scale());
            let mut list = fourier(FourierSpec { length_scale: length_scale.clone(), ..FourierSpec::default() });
            list.extend(maclaurin(MaclaurinSpec { length_scale, ..MaclaurinSpec::default() }));
            list
        }
        Any::Matern(k) => fourier(FourierSpec {
            kernel: FourierKernel::Matern,
            nu: k.nu(),
            length_scale: LengthScale::Same(k.length_scale()),
            ..FourierSpec::default()
        }),
        Any::Laplacian(k) => fourier(FourierSpec {
            kernel: FourierKernel::Laplacian,
            norm: k.norm(),
            length_scale: LengthScale::Same(k.length_scale()),
            ..FourierSpec::default()
        }),
        Any::Exponential(k) => {
            let length_scale = k.length_scale();
            let mut list: Vec<Candidate> = [
                ("positive", Softmax::Positive),
                ("hyperbolic", Softmax::Hyperbolic),
                ("trigonometric", Softmax::Trigonometric),
            ]
            .into_iter()
            .map(|(name, kind)| Candidate::new(name, PositiveSpec { length_scale, kind, ..PositiveSpec::default() }))
            .collect();
            list.extend(maclaurin(MaclaurinSpec {
                kernel: MaclaurinKernel::Exponential,
                length_scale: LengthScale::Same(length_scale),
                ..MaclaurinSpec::default()
            }));
            list
        }
        Any::Polynomial(k) => {
            let (degree, gamma, coef0) = (k.degree(), k.gamma(), k.coef0());
            if degree == 0 {
                return Err(Error::parameter("degree", "at least 1", degree));
            }
            let mut list = polynomial(PolynomialSpec { degree, gamma, coef0, ..PolynomialSpec::default() });
            list.extend(maclaurin(MaclaurinSpec {
                kernel: MaclaurinKernel::Polynomial,
                degree,
                gamma,
                coef0,
                ..MaclaurinSpec::default()
            }));
            // Homogeneous kernels (A = √2) have no density of radii worth trying.
            let unit = |row: ArrayView1<'_, f64>| (row.dot(&row) - 1.0).abs() <= UNIT;
            if coef0 > 0.0 && rows.rows().into_iter().all(unit) {
                let sum = gamma + coef0;
                list.extend(spherical(degree, (2.0 * sum / gamma).sqrt(), sum.powi(degree as i32)));
            }
            list
        }
        Any::Spherical(k) => spherical(k.degree(), k.a(), 1.0),
        Any::Optical(k) => {
            [("optical, dense", OpticalProjection::Dense), ("optical, structured", OpticalProjection::Structured)]
                .into_iter()
                .map(|(name, projection)| {
                    let (exponent, bias) = (k.exponent(), k.bias());
                    Candidate::new(name, OpticalSpec { exponent, bias, projection, ..OpticalSpec::default() })
                })
                .collect()
        }
        Any::Compressive(k) => {
            let base = CompressiveSpec {
                compressed_dim: k.output_dim(),
                length_scale: LengthScale::Same(k.length_scale()),
                ..CompressiveSpec::default()
            };
            [
                ("compressive", Orthoprojection::Gaussian),
                ("compressive, signs", Orthoprojection::Sign),
                ("compressive, SRHT", Orthoprojection::Srht),
            ]
            .into_iter()
            .map(|(name, orthoprojector)| Candidate::new(name, CompressiveSpec { orthoprojector, ..base.clone() }))
            .collect()
        }
    })
}

/// `factor (1 - |x - y|²/a²)ᵖ`; on unit rows `(γ⟨x, y⟩ + ν)ᵖ` is one with `a² = 2(γ + ν)/γ` and `factor = (γ + ν)ᵖ`.
fn spherical(degree: u32, a: f64, factor: f64) -> Vec<Candidate> {
    [("dense", Directions::Gaussian), ("orthogonal", Directions::Orthogonal), ("SORF", Directions::Sorf)]
        .into_iter()
        .map(|(name, projection)| Candidate {
            name: format!("spherical, {name}"),
            spec: SphericalSpec { degree, a, projection, ..SphericalSpec::default() }.into(),
            factor,
        })
        .collect()
}

/// Degrees with columns for the least error, found from pairs of rows or from moments, and degrees drawn at random.
fn maclaurin(base: MaclaurinSpec) -> Vec<Candidate> {
    vec![
        Candidate::new("Maclaurin, CtR", base.clone()),
        Candidate::new("Maclaurin, real", MaclaurinSpec { weights: Weights::Real, ..base.clone() }),
        Candidate::new("Maclaurin, one pass", MaclaurinSpec { statistics: Statistics::OnePass, ..base.clone() }),
        Candidate::new(
            "Maclaurin, random",
            MaclaurinSpec {
                allocation: AllocationRule::Random,
                sketch: SketchKind::Rademacher,
                weights: Weights::Real,
                ..base
            },
        ),
    ]
}

fn fourier(base: FourierSpec) -> Vec<Candidate> {
    let named = |&(name, projection): &_| Candidate::new(name, FourierSpec { projection, ..base.clone() });
    frequencies(&base).iter().map(named).collect()
}

/// Ways to draw the frequencies of a kernel.
pub(super) fn frequencies(base: &FourierSpec) -> &'static [(&'static str, Directions)] {
    let coordinatewise = base.kernel == FourierKernel::Laplacian && base.norm == 1;
    match coordinatewise {
        true => &[("Fourier", Directions::Gaussian)],
        false => &[
            ("Fourier, dense", Directions::Gaussian),
            ("Fourier, orthogonal", Directions::Orthogonal),
            ("Fourier, SORF", Directions::Sorf),
        ],
    }
}

fn polynomial(base: PolynomialSpec) -> Vec<Candidate> {
    use {SketchKind as S, Weights as W};
    let mut list: Vec<Candidate> = [
        ("TensorSRHT, CtR", S::TensorSrht, W::Ctr),
        ("TensorSRHT, real", S::TensorSrht, W::Real),
        ("TensorSketch", S::TensorSketch, W::Real),
        ("Rademacher, CtR", S::Rademacher, W::Ctr),
        ("Rademacher, real", S::Rademacher, W::Real),
        ("Gaussian, real", S::Gaussian, W::Real),
    ]
    .into_iter()
    .map(|(name, sketch, weights)| Candidate::new(name, PolynomialSpec { sketch, weights, ..base.clone() }))
    .collect();
    if base.degree >= TREE_DEGREE {
        let spec = PolynomialSpec { structure: Structure::Tree, weights: W::Real, ..base };
        list.push(Candidate::new("tree of TensorSRHT", spec));
    }
    list
}

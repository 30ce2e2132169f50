use crate::error::{Error, Result};
use crate::feature::{Directions, FourierKernel, FourierSpec, PolynomialSpec, SketchKind, Spec, Structure};
use crate::kernel::Any;
use crate::preprocess::LengthScale;
use crate::variance::Weights;

/// A map that estimates a kernel, under the name tables show.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Name for people.
    pub name: String,
    /// The map; its budget and seed are to be replaced ([`Spec::redrawn`]).
    pub spec: Spec,
}

impl Candidate {
    fn new(name: &str, spec: impl Into<Spec>) -> Self {
        Candidate { name: name.into(), spec: spec.into() }
    }
}

/// Degree from which a tree of sketches is worth a try.
const TREE_DEGREE: u32 = 4;

/// Every map of the library that estimates `kernel`.
///
/// # Errors
/// Kernels without random features.
///
/// ```
/// use bochner::kernel::{Any, Gaussian};
/// let list = bochner::plan::candidates(&Any::from(Gaussian::new(1.0)?))?;
/// assert!(list.iter().any(|c| c.name == "Fourier, SORF"));
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn candidates(kernel: &Any) -> Result<Vec<Candidate>> {
    Ok(match kernel {
        Any::Gaussian(k) => fourier(FourierSpec { length_scale: k.length_scale().into(), ..FourierSpec::default() }),
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
        Any::Polynomial(k) => polynomial(PolynomialSpec {
            degree: k.degree(),
            gamma: k.gamma(),
            coef0: k.coef0(),
            ..PolynomialSpec::default()
        }),
        _ => {
            let reason = "no map of this library estimates it directly".into();
            return Err(Error::Unsupported { what: "random features of this kernel", reason });
        }
    })
}

fn fourier(base: FourierSpec) -> Vec<Candidate> {
    let coordinatewise = base.kernel == FourierKernel::Laplacian && base.norm == 1;
    let forms: &[(&str, Directions)] = if coordinatewise {
        &[("Fourier", Directions::Gaussian)]
    } else {
        &[
            ("Fourier, dense", Directions::Gaussian),
            ("Fourier, orthogonal", Directions::Orthogonal),
            ("Fourier, SORF", Directions::Sorf),
        ]
    };
    forms.iter().map(|&(name, projection)| Candidate::new(name, FourierSpec { projection, ..base.clone() })).collect()
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

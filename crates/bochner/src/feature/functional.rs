//! Linear functionals of functions with operator-valued features: values, derivatives, potentials.

use super::{FeatureMap, OperatorFeatures};
use crate::error::{Error, Result};
use crate::kernel::AnyKernel;
use crate::scalar::Real;
use ndarray::{Array1, Array2};

/// What is asked of a field: all of them are linear in its parameters, so that a process knows means and variances of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldQuantity {
    /// The outputs themselves.
    Values,
    /// Derivatives of all outputs by all inputs, those of the first output first.
    Jacobian,
    /// `Σ ∂fₐ/∂xₐ`.
    Divergence,
    /// `∂f₂/∂x₁ - ∂f₁/∂x₂` in two dimensions; the three components of the curl in three.
    Vorticity,
    /// The potential whose gradient the curl-free part is, up to a constant.
    Potential,
    /// In two dimensions the function `ψ` with `(-∂ψ/∂x₂, ∂ψ/∂x₁)` the divergence-free part, up to a constant.
    StreamFunction,
}

impl FieldQuantity {
    fn name(self) -> &'static str {
        match self {
            FieldQuantity::Values => "values",
            FieldQuantity::Jacobian => "jacobian",
            FieldQuantity::Divergence => "divergence",
            FieldQuantity::Vorticity => "vorticity",
            FieldQuantity::Potential => "potential",
            FieldQuantity::StreamFunction => "stream function",
        }
    }

    /// Output, input and sign of the derivatives that are added up in each component.
    pub(crate) fn terms(self, outputs: usize, inputs: usize) -> Result<Vec<Vec<(usize, usize, f64)>>> {
        let unsupported = |reason: String| Err(Error::Unsupported { what: self.name(), reason });
        if self != FieldQuantity::Jacobian && outputs != inputs {
            let reason =
                format!("a field has as many outputs as inputs; there are {outputs} outputs of {inputs} inputs");
            return unsupported(reason);
        }
        let rotation = |a: usize, b: usize| vec![(b, a, 1.0), (a, b, -1.0)];
        Ok(match self {
            FieldQuantity::Divergence => vec![(0..inputs).map(|a| (a, a, 1.0)).collect()],
            FieldQuantity::Vorticity if inputs == 2 => vec![rotation(0, 1)],
            FieldQuantity::Vorticity if inputs == 3 => vec![rotation(1, 2), rotation(2, 0), rotation(0, 1)],
            FieldQuantity::Vorticity => return unsupported(format!("it is for 2 or 3 inputs; there are {inputs}")),
            _ => (0..outputs).flat_map(|a| (0..inputs).map(move |b| vec![(a, b, 1.0)])).collect(),
        })
    }
}

/// Scalar features as a functional sees them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Cosines and sines.
    Own,
    /// Their derivatives by the phase: minus sines, and cosines.
    Turned,
}

/// A quantity as weights of parameters.
///
/// Component `c` at a row is `Σ_q mix_q[c, ·] weightsᵀ (φ ∘ θ_q)`. The parameters of a field are one set `θ`, with a weight for each
/// component; those of a decomposable kernel are one set for each eigenvector of its matrix, and weights are about inputs.
#[derive(Debug, Clone)]
pub(crate) struct Functional {
    phase: Phase,
    weights: Array2<f64>,
    mixes: Vec<Array2<f64>>,
    /// Parameters of each scalar feature in one set.
    each: usize,
    width: usize,
}

impl<R: Real> OperatorFeatures<R> {
    /// A quantity as weights of parameters.
    pub(crate) fn functional(&self, quantity: FieldQuantity) -> Result<Functional> {
        let (p, d, dim) = (self.output_dim(), self.input_dim(), self.map().output_dim());
        let kernel = &self.spec().kernel;
        let unsupported = |reason: &str| Err(Error::Unsupported { what: quantity.name(), reason: reason.to_owned() });
        let derived = match quantity {
            FieldQuantity::Values => {
                return Ok(match kernel.decomposed() {
                    Some((_, outputs)) => {
                        let mixes = columns_of(&outputs.root());
                        let weights = Array2::ones((dim, 1));
                        Functional { phase: Phase::Own, weights, mixes, each: 1, width: p }
                    }
                    None => {
                        let (weights, each) = (self.spread().blocks(dim), self.spread().inner());
                        Functional { phase: Phase::Own, weights, mixes: vec![Array2::eye(p)], each, width: p }
                    }
                });
            }
            FieldQuantity::Potential | FieldQuantity::StreamFunction => false,
            _ => true,
        };
        let rough = match (kernel.as_field(), kernel.decomposed()) {
            (Some(field), _) => field.nu().is_some_and(|nu| nu <= 2.0),
            (_, Some((AnyKernel::Matern(base), _))) => base.nu() <= 1.0,
            (_, Some((AnyKernel::Laplacian(_), _))) => true,
            _ => false,
        };
        if derived && rough {
            return unsupported("the functions of this kernel are too rough to have derivatives; a larger nu has them");
        }
        let frequencies = self.frequencies()?;
        let m = frequencies.nrows();
        if derived {
            let terms = quantity.terms(p, d)?;
            let width = terms.len();
            return Ok(match kernel.decomposed() {
                Some((_, outputs)) => {
                    let root = outputs.root();
                    let weights = Array2::from_shape_fn((dim, d), |(j, b)| frequencies[[j % m, b]]);
                    let mix = |q: usize| {
                        let mut mix = Array2::zeros((width, d));
                        for (c, (a, b, sign)) in
                            terms.iter().enumerate().flat_map(|(c, t)| t.iter().map(move |t| (c, *t)))
                        {
                            mix[[c, b]] += sign * root[[a, q]];
                        }
                        mix
                    };
                    let mixes = (0..root.ncols()).map(mix).collect();
                    Functional { phase: Phase::Turned, weights, mixes, each: 1, width }
                }
                None => {
                    let (blocks, each) = (self.spread().blocks(dim), self.spread().inner());
                    let weights = Array2::from_shape_fn((blocks.nrows(), width), |(e, c)| {
                        let w = frequencies.row((e / each) % m);
                        terms[c].iter().map(|&(a, b, sign)| sign * blocks[[e, a]] * w[b]).sum()
                    });
                    Functional { phase: Phase::Turned, weights, mixes: vec![Array2::eye(width)], each, width }
                }
            });
        }
        let Some(field) = kernel.as_field() else {
            return unsupported(
                "outputs of a decomposable kernel have none; curl-free, divergence-free and Helmholtz kernels have",
            );
        };
        let each = self.spread().inner();
        let share = if quantity == FieldQuantity::Potential { field.curl_free } else { field.div_free };
        if share == 0.0 {
            return unsupported("this kernel leaves that part of the field out; a Helmholtz kernel has both");
        }
        if quantity == FieldQuantity::StreamFunction && d != 2 {
            return unsupported("it is for 2 inputs");
        }
        // Integrals by the phase are derivatives with the other sign.
        let weights = Array2::from_shape_fn((dim * each, 1), |(e, _)| {
            let w = frequencies.row((e / each) % m);
            let length = w.dot(&w).sqrt();
            if each == 1 {
                return -share.sqrt();
            }
            let along = match (quantity, e % each) {
                (FieldQuantity::Potential, q) => w[q],
                (_, 0) => -w[1],
                _ => w[0],
            };
            if length > 0.0 { -share.sqrt() * along / length } else { 0.0 }
        });
        Ok(Functional { phase: Phase::Turned, weights, mixes: vec![Array2::eye(1)], each, width: 1 })
    }
}

/// Columns of a matrix, each a matrix of one column.
fn columns_of(matrix: &Array2<f64>) -> Vec<Array2<f64>> {
    matrix.columns().into_iter().map(|column| column.to_owned().insert_axis(ndarray::Axis(1))).collect()
}

impl Functional {
    /// Number of components.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Number of columns of weights.
    pub(crate) fn inner_width(&self) -> usize {
        self.weights.ncols()
    }

    /// How the columns of weights make components, for the set of parameters of this number.
    pub(crate) fn mix(&self, set: usize) -> &Array2<f64> {
        &self.mixes[set]
    }

    /// Scalar features of rows as the weights take them.
    pub(crate) fn turned(&self, scalar: &Array2<f64>) -> Array2<f64> {
        if self.phase == Phase::Own {
            return scalar.clone();
        }
        let m = scalar.ncols() / 2;
        Array2::from_shape_fn(scalar.dim(), |(i, j)| if j < m { -scalar[[i, j + m]] } else { scalar[[i, j - m]] })
    }

    /// One column for every row and column of weights, a row per parameter of a set.
    pub(crate) fn columns(&self, turned: &Array2<f64>) -> Array2<f64> {
        let (inner, n) = (self.inner_width(), turned.nrows());
        let mut out = Array2::zeros((self.weights.nrows(), n * inner));
        for (e, mut to) in out.rows_mut().into_iter().enumerate() {
            let (features, weights) = (turned.column(e / self.each), self.weights.row(e));
            for (i, feature) in features.iter().enumerate() {
                for (s, weight) in weights.iter().enumerate() {
                    to[i * inner + s] = feature * weight;
                }
            }
        }
        out
    }

    /// Coefficients of the turned scalar features, one column per component, of parameters of which every scalar feature has
    /// `inner`.
    pub(crate) fn coefficients(&self, inner: usize, theta: &Array1<f64>) -> Array2<f64> {
        let mut out = Array2::zeros((self.weights.nrows() / self.each, self.width));
        for (set, mix) in self.mixes.iter().enumerate() {
            for e in 0..self.weights.nrows() {
                // A set of a decomposable kernel has every inner-th parameter.
                let value = theta[if self.each == inner { e } else { e * inner + set }];
                let components = mix.dot(&self.weights.row(e));
                out.row_mut(e / self.each).scaled_add(value, &components);
            }
        }
        out
    }
}

use super::product_sketch::DynSketch;
use super::{
    Compact, ComplexToReal, Constant, Describe, DynComplexMap, DynMap, FeatureMap, Lift, MAX_DEGREE, ProductSketch,
    TensorSketch, TreeSketch,
};
use crate::error::{Error, Result, check_count};
use crate::feature::DrawCost;
use crate::feature::spec::Candidate;
use crate::kernel::AnyKernel;
use crate::kernel::{self, Kernel};
use crate::parameter::{Domain, Value, description, words};
use crate::projection::{DenseGaussian, Projection, Rademacher, Sampling, Srht};
use crate::random::Seed;
use crate::scalar::{Real, Scalar};
use crate::variance::{self, Kind, PairMoments, Stage, Weights, map_pairs};
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

words! {
    /// Which random directions a polynomial sketch is made of.
    pub enum SketchKind {
        /// Randomised Hadamard directions: TensorSRHT.
        TensorSrht = "tensor_srht",
        /// Independent signs.
        Rademacher = "rademacher",
        /// Independent normals.
        Gaussian = "gaussian",
        /// Convolved count sketches.
        TensorSketch = "tensor_sketch",
    }
}

impl SketchKind {
    /// Draws the sketch of `(γ⟨x, y⟩ + ν)ᵖ` on rows of length `input_dim`; factor `i` is that of `seed.child(i)`.
    pub(super) fn draw<O: Scalar>(
        self,
        srht: Sampling,
        seed: Seed,
        degree: u32,
        draws: usize,
        lift: Lift,
        input_dim: usize,
    ) -> Result<DynSketch<O>> {
        fn product<P: Projection + 'static>(factors: Vec<P>, lift: Lift, dim: usize) -> Result<DynSketch<P::Output>> {
            Ok(Arc::new(ProductSketch::new(factors)?.with_lift(lift, dim)?))
        }
        let dim = lift.output_dim(input_dim);
        let seeds = (0..degree).map(|i| seed.child(u64::from(i)));
        match self {
            SketchKind::TensorSrht => {
                let factors = Srht::<O::Real, O>::factors(seed, &vec![dim; degree as usize], draws, srht)?;
                product(factors, lift, input_dim)
            }
            SketchKind::Rademacher => {
                let factors = seeds.map(|seed| Rademacher::<O::Real, O>::new(seed, dim, draws));
                product(factors.collect::<Result<_>>()?, lift, input_dim)
            }
            SketchKind::Gaussian => {
                let factors = seeds.map(|seed| DenseGaussian::<O::Real, O>::new(seed, dim, draws));
                product(factors.collect::<Result<_>>()?, lift, input_dim)
            }
            SketchKind::TensorSketch => {
                Ok(Arc::new(TensorSketch::<O>::draw(dim, degree, draws, seed)?.with_lift(lift, input_dim)?))
            }
        }
    }

    /// What it costs to draw `count` products of `degree` factors for rows of length `dim`.
    pub(super) fn draw_cost(self, degree: u32, count: usize, dim: usize) -> DrawCost {
        let factor = match self {
            SketchKind::TensorSrht => DrawCost::listed(count.max(dim)),
            SketchKind::Rademacher => DrawCost::stored(count.div_ceil(32), dim),
            SketchKind::Gaussian => DrawCost::stored(count, dim),
            SketchKind::TensorSketch => DrawCost::listed(dim),
        };
        // Spectra of a convolution are as long as the features.
        let convolved = if self == SketchKind::TensorSketch { DrawCost::listed(count) } else { DrawCost::default() };
        factor.times(degree.into()).and(convolved)
    }

    /// How the draws depend on each other, for their variance.
    pub(super) fn law(self, srht: Sampling) -> Kind {
        match (self, srht) {
            (SketchKind::Rademacher, _) => Kind::Rademacher,
            (SketchKind::Gaussian, _) => Kind::Gaussian,
            (SketchKind::TensorSketch, _) => Kind::TensorSketch,
            (SketchKind::TensorSrht, Sampling::Stacked) => Kind::SrhtStacked,
            (SketchKind::TensorSrht, Sampling::Upsampled) => Kind::SrhtUpsampled,
            (SketchKind::TensorSrht, Sampling::Tuple) => Kind::SrhtTuple { replacement: false },
        }
    }
}

words! {
    /// How the degree-1 pieces are put together.
    pub enum Structure {
        /// One product over all factors.
        Flat = "flat",
        /// A balanced tree of products of two ([`TreeSketch`]): for high degrees.
        Tree = "tree",
        /// A flat sketch several times as wide, projected down ([`Compact`]).
        Compact = "compact",
    }
}

/// How many times wider than its output a compact sketch is before it is projected down.
const EXPANSION: usize = 4;

description! {
    /// Description of a sketch of the polynomial kernel `(γ⟨x, y⟩ + ν)ᵖ`.
    ///
    /// ```
    /// use bochner::feature::{Describe, FeatureMap, PolynomialSpec};
    /// let spec = PolynomialSpec { n_components: 256, degree: 3, ..PolynomialSpec::default() };
    /// let map = spec.build::<f64>(10)?;
    /// assert_eq!((map.input_dim(), map.output_dim()), (10, 256));
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct PolynomialSpec {
        /// Budget of output columns; one fewer is used where they come in pairs and the budget is odd.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// Exponent of `(gamma x.y + coef0)^degree`, at most 64.
        degree: u32 = 2, Domain::Whole(0, MAX_DEGREE as u64), Kernel;
        /// Factor of the inner product; 0 only beside a constant.
        gamma: f64 = 1.0, Domain::NON_NEGATIVE, Kernel;
        /// Constant inside the power.
        coef0: f64 = 0.0, Domain::NON_NEGATIVE, Kernel;
        /// Random directions of the projections: randomised Hadamard ones, which are fast and usually vary least, independent
        /// signs or independent normals; or convolved count sketches.
        sketch: SketchKind = SketchKind::TensorSrht, Domain::Word(SketchKind::CHOICES), Draw;
        /// Real directions, or complex ones, which usually vary less: `ctr` has the real and the imaginary parts of complex
        /// features as columns, `complex` the complex features themselves (complex output).
        weights: Weights = Weights::Ctr, Domain::Word(Weights::CHOICES), Draw;
        /// How coordinates are sampled for the sketch `tensor_srht`: from one transform of the row per factor, from a fresh
        /// transform for every block of columns, or as distinct tuples over the factors (Ahle et al. 2020).
        srht: Sampling = Sampling::Upsampled, Domain::Word(Sampling::CHOICES), Draw, only for sketch = ["tensor_srht"];
        /// One product over all factors; a balanced tree of products of two, for high degrees; or a flat sketch several times as
        /// wide, projected down. Trees and compact sketches need the weights `real`.
        structure: Structure = Structure::Flat, Domain::Word(Structure::CHOICES), Draw;
    }
    map "polynomial" for ["polynomial"], "polynomial sketches":
        "Products of random projections, whose inner products estimate the polynomial kernel.";
}

impl PolynomialSpec {
    fn check(&self) -> Result<Lift> {
        check_count("n_components", self.n_components)?;
        if self.degree > MAX_DEGREE {
            return Err(Error::parameter("degree", "at most 64", self.degree));
        }
        if self.weights == Weights::Ctr && self.n_components < 2 && self.degree > 0 {
            return Err(Error::parameter("n_components", "at least 2 for weights=\"ctr\"", self.n_components));
        }
        if self.structure != Structure::Flat && self.weights != Weights::Real {
            return Err(Error::Unsupported {
                what: "structure",
                reason: "trees and compact sketches are made of real sketches; use weights=\"real\"".into(),
            });
        }
        if self.structure == Structure::Tree && self.sketch == SketchKind::TensorSketch {
            return Err(Error::Unsupported {
                what: "structure",
                reason: "a tree is made of product sketches; use tensor_srht, rademacher or gaussian".into(),
            });
        }
        if self.structure == Structure::Tree && self.degree < 2 {
            return Err(Error::parameter("degree", "at least 2 for structure=\"tree\"", self.degree));
        }
        Lift::new(self.gamma, self.coef0)
    }

    /// Number of draws: complex ones for complex and CtR maps.
    pub fn draws(&self) -> usize {
        if self.weights == Weights::Ctr { self.n_components / 2 } else { self.n_components }
    }

    fn flat<O: Scalar>(&self, lift: Lift, input_dim: usize, draws: usize) -> Result<DynSketch<O>> {
        self.sketch.draw(self.srht, Seed::new(self.seed), self.degree, draws, lift, input_dim)
    }

    fn tree<R: Real>(&self, lift: Lift, input_dim: usize) -> Result<DynMap<R>> {
        let (seed, draws, degree) = (Seed::new(self.seed), self.n_components, self.degree);
        Ok(match self.sketch {
            SketchKind::TensorSrht => Arc::new(TreeSketch::new(degree, lift, input_dim, |label, dim| {
                Srht::<R, R>::new(seed.child(label), dim, draws, Sampling::Upsampled)
            })?),
            SketchKind::Rademacher => Arc::new(TreeSketch::new(degree, lift, input_dim, |label, dim| {
                Rademacher::<R, R>::new(seed.child(label), dim, draws)
            })?),
            _ => Arc::new(TreeSketch::new(degree, lift, input_dim, |label, dim| {
                DenseGaussian::<R, R>::new(seed.child(label), dim, draws)
            })?),
        })
    }

    /// The stage that stands for this sketch's projection on vectors of length `dim`.
    fn stage(&self, dim: usize) -> Stage {
        match self.sketch {
            SketchKind::Gaussian => Stage::Gaussian,
            SketchKind::Rademacher => Stage::Rademacher,
            _ => Stage::Srht { padded_dim: dim.next_power_of_two() },
        }
    }
}

/// Degree from which a tree of sketches is worth a try.
const TREE_DEGREE: u32 = 4;

impl Describe for PolynomialSpec {
    const LOWER_DEGREES: &'static [(&'static str, Value)] = &[("degree", Value::Whole(3)), ("coef0", Value::Real(1.0))];

    fn candidates(kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        use {SketchKind as S, Weights as W};
        let AnyKernel::Polynomial(k) = kernel else { return Ok(Vec::new()) };
        let (degree, gamma, coef0) = (k.degree(), k.gamma(), k.coef0());
        if degree == 0 {
            return Err(Error::parameter("degree", "at least 1", degree));
        }
        let base = PolynomialSpec { degree, gamma, coef0, ..PolynomialSpec::default() };
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
        if degree >= TREE_DEGREE {
            let spec = PolynomialSpec { structure: Structure::Tree, weights: W::Real, ..base };
            list.push(Candidate::new("tree of TensorSRHT", spec));
        }
        Ok(list)
    }

    fn draw_cost(&self, input_dim: usize) -> DrawCost {
        let (count, dim) = (self.n_components, input_dim.saturating_add(1));
        match self.structure {
            Structure::Flat => self.sketch.draw_cost(self.degree, count, dim),
            // Products of a tree are projected again, as rows of their own.
            Structure::Tree => self.sketch.draw_cost(self.degree.saturating_mul(2), count, dim.max(count)),
            Structure::Compact => {
                let wide = EXPANSION.saturating_mul(count);
                self.sketch.draw_cost(self.degree, wide, dim).and(DrawCost::listed(wide))
            }
        }
    }

    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        let lift = self.check()?;
        check_count("number of columns of rows", input_dim)?;
        if self.degree == 0 {
            return Ok(Arc::new(Constant::new(input_dim, 1.0)?));
        }
        match (self.structure, self.weights) {
            (Structure::Tree, _) => self.tree(lift, input_dim),
            (Structure::Compact, _) => {
                let wide = self.flat::<R>(lift, input_dim, EXPANSION * self.n_components)?;
                let seed = Seed::new(self.seed).child(u64::from(MAX_DEGREE));
                let down = Srht::<R, R>::new(seed, wide.output_dim(), self.n_components, Sampling::Upsampled)?;
                Ok(Arc::new(Compact::new(wide, down)?))
            }
            (Structure::Flat, Weights::Real) => Ok(self.flat::<R>(lift, input_dim, self.draws())?),
            (Structure::Flat, Weights::Ctr) => {
                Ok(Arc::new(ComplexToReal::new(self.flat::<R::Complex>(lift, input_dim, self.draws())?)))
            }
            (Structure::Flat, Weights::Complex) => Err(Error::Unsupported {
                what: "real output",
                reason: "weights=\"complex\" has complex features; weights=\"ctr\" makes them real".into(),
            }),
        }
    }

    fn draw_complex<R: Real>(&self, input_dim: usize) -> Result<DynComplexMap<R>> {
        let lift = self.check()?;
        check_count("number of columns of rows", input_dim)?;
        if self.weights != Weights::Complex {
            return Err(Error::parameter("weights", "\"complex\" for complex output", format!("{:?}", self.weights)));
        }
        check_count("degree of a complex sketch", self.degree as usize)?;
        Ok(self.flat::<R::Complex>(lift, input_dim, self.draws())?)
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(kernel::Polynomial::new(self.degree, self.gamma, self.coef0)?))
    }

    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let lift = self.check()?;
        let (gamma, coef0) = (self.gamma, self.coef0);
        let dim = lift.output_dim(x.ncols());
        match self.structure {
            Structure::Flat => {
                let law = self.sketch.law(self.srht);
                let sketch = variance::Sketch::new(law, self.weights, self.degree, self.draws(), dim)?;
                map_pairs(x, y, |stats| sketch.variance(&stats.affine(gamma, coef0)))
            }
            Structure::Tree => {
                let (leaf, inner) = (self.stage(dim), self.stage(self.n_components));
                map_pairs(x, y, |stats| {
                    let stats = stats.affine(gamma, coef0);
                    let root = leaf.tree(inner, PairMoments::from(stats), self.degree, self.n_components);
                    (root.t - stats.t.powi(self.degree as i32)).max(0.0)
                })
            }
            Structure::Compact => {
                if self.sketch == SketchKind::TensorSketch || self.srht != Sampling::Upsampled {
                    return Err(Error::Unsupported {
                        what: "variance of a compact sketch",
                        reason: "closed forms exist for rademacher, gaussian and upsampled tensor_srht".into(),
                    });
                }
                let width = EXPANSION * self.n_components;
                let (up, down) = (self.stage(dim), Stage::Srht { padded_dim: width.next_power_of_two() });
                map_pairs(x, y, |stats| {
                    let stats = stats.affine(gamma, coef0);
                    let wide = up.product(&vec![PairMoments::from(stats); self.degree as usize], width);
                    (down.product(&[wide], self.n_components).t - stats.t.powi(self.degree as i32)).max(0.0)
                })
            }
        }
    }
}

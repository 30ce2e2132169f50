use super::FeatureMap;
use crate::error::{Error, Result, check_count, check_dim, check_non_negative};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::{Parts, Projection, in_parts};
use crate::scalar::{Real, Scalar};
use std::sync::Arc;

/// Largest degree a sketch accepts: beyond it even unit-norm products leave the range of `f64`.
pub const MAX_DEGREE: u32 = 64;

/// A sketch of a product of inner products, each of which may be of rows of its own. Shapes are known to fit.
pub(super) trait FactorSketch: FeatureMap {
    /// Factor `i` sees `rows[i]`.
    fn sketch(&self, rows: &[Tile<'_, Self::Real>], out: TileMut<'_, Self::Output>, work: &mut Workspace<Self::Real>);

    fn sketch_split(
        &self,
        rows: &[Tile<'_, Self::Real>],
        out: Parts<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    ) {
        in_parts(out, work, |out, work| self.sketch(rows, out, work));
    }
}

/// Any of them.
pub(super) type DynSketch<O> = Arc<dyn FactorSketch<Real = <O as Scalar>::Real, Output = O>>;

/// Refuses factors of a sketch whose outputs cannot be multiplied.
pub(super) fn check_factors<P: Projection>(factors: &[P]) -> Result<()> {
    check_count("degree", factors.len())?;
    if factors.len() > MAX_DEGREE as usize {
        return Err(Error::parameter("degree", "at most 64", factors.len()));
    }
    let dims = factors.iter().map(Projection::output_dim);
    dims.into_iter().try_for_each(|dim| check_dim("output dimension of a factor", factors[0].output_dim(), dim))
}

/// Refuses factors that see rows of other lengths than `dim`.
pub(super) fn check_inputs<P: Projection>(factors: &[P], dim: usize) -> Result<()> {
    factors.iter().try_for_each(|factor| check_dim("input dimension of a factor", dim, factor.input_dim()))
}

/// Refuses rows and windows that do not fit the factors of a sketch.
pub(super) fn check_shapes<P: Projection>(
    factors: &[P],
    rows: &[Tile<'_, P::Real>],
    out: &TileMut<'_, P::Output>,
) -> Result<()> {
    check_dim("number of row sets", factors.len(), rows.len())?;
    check_dim("number of columns of the output", factors[0].output_dim(), out.cols())?;
    for (factor, rows) in factors.iter().zip(rows) {
        check_dim("number of columns of rows", factor.input_dim(), rows.cols())?;
        check_dim("number of rows", out.rows(), rows.rows())?;
    }
    Ok(())
}

/// Element-wise product of `p` independent projections: the sketch of `(γ⟨x, y⟩ + ν)ᵖ`.
///
/// With directions `w₁ₗ, …, w_pₗ` and the lifted row `x̃ = (√γ x, √ν)`,
/// `φ(x)ₗ = D^{-1/2} ∏ᵢ ⟨wᵢₗ, x̃⟩` for `l ≤ D`. A Hadamard projection makes it
/// TensorSRHT, a dense one the Gaussian or Rademacher sketch; the projection's number type makes it real or complex.
///
/// # Estimate
/// Unbiased; variance, pseudo-variance and CtR variance in [`crate::variance`].
///
/// # Cost
/// `p` projections and `p - 1` products per feature.
///
/// # References
/// Kar and Karnick 2012 (real); thesis 3.1 to 3.5 (complex, TensorSRHT).
#[derive(Debug, Clone)]
pub struct ProductSketch<P> {
    factors: Vec<P>,
    input_dim: usize,
    lift: Lift,
}

/// `x ↦ (√γ x, √ν)`; the last coordinate exists only for `ν > 0`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lift {
    pub(super) scale: f64,
    pub(super) bias: f64,
}

impl Lift {
    /// `x ↦ x`.
    pub(super) const IDENTITY: Lift = Lift { scale: 1.0, bias: 0.0 };

    /// The lift of `(γ⟨x, y⟩ + ν)ᵖ`.
    ///
    /// # Errors
    /// Negative or infinite parameters.
    pub fn new(gamma: f64, coef0: f64) -> Result<Self> {
        check_non_negative("gamma", gamma)?;
        check_non_negative("coef0", coef0)?;
        if gamma == 0.0 && coef0 == 0.0 {
            return Err(Error::parameter("gamma", "positive where coef0 is 0 (the kernel is 0 otherwise)", gamma));
        }
        Ok(Lift { scale: gamma.sqrt(), bias: coef0.sqrt() })
    }

    /// Length of a lifted row.
    pub fn output_dim(&self, input_dim: usize) -> usize {
        input_dim + usize::from(self.bias > 0.0)
    }

    /// Whether rows come out as they went in.
    fn is_identity(&self) -> bool {
        self.scale == 1.0 && self.bias == 0.0
    }

    /// Writes `factor · (√γ x, √ν)` for every row.
    pub(crate) fn lift_into<R: Real>(&self, rows: Tile<'_, R>, factor: f64, out: &mut [R]) {
        let (d, m) = (rows.cols(), self.output_dim(rows.cols()));
        let scale = R::from_f64(self.scale * factor);
        for i in 0..rows.rows() {
            let out = &mut out[i * m..][..m];
            for (o, x) in out.iter_mut().zip(rows.row(i)) {
                *o = scale * *x;
            }
            if m > d {
                out[d] = R::from_f64(self.bias * factor);
            }
        }
    }
}

impl<P: Projection> ProductSketch<P> {
    /// The sketch of `⟨x, y⟩ᵖ` with one projection per factor.
    ///
    /// # Errors
    /// No factors, more than [`MAX_DEGREE`], or dimensions that differ.
    pub fn new(factors: Vec<P>) -> Result<Self> {
        check_inputs(&factors, factors.first().map_or(0, Projection::input_dim))?;
        Self::multimodal(factors)
    }

    /// The sketch of `∏ᵢ ⟨xᵢ, yᵢ⟩` for factors that see different rows, of different lengths.
    ///
    /// As a [`FeatureMap`] it takes the rows of all modalities side by side when their lengths differ.
    ///
    /// # Errors
    /// No factors, more than [`MAX_DEGREE`], or output dimensions that differ.
    pub fn multimodal(factors: Vec<P>) -> Result<Self> {
        check_factors(&factors)?;
        let input_dim = factors[0].input_dim();
        Ok(ProductSketch { factors, input_dim, lift: Lift::IDENTITY })
    }

    /// The sketch of `(γ⟨x, y⟩ + ν)ᵖ` on rows of length `input_dim`; the factors see lifted rows.
    ///
    /// # Errors
    /// Factors that were not drawn for lifted rows of this length.
    pub fn with_lift(mut self, lift: Lift, input_dim: usize) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_inputs(&self.factors, lift.output_dim(input_dim))?;
        self.lift = lift;
        self.input_dim = input_dim;
        Ok(self)
    }

    /// The projections, one per factor.
    pub fn factors(&self) -> &[P] {
        &self.factors
    }

    /// `D^{-1/2}`.
    fn scale(&self) -> f64 {
        1.0 / (self.factors[0].output_dim() as f64).sqrt()
    }

    /// Sketches `⊗ᵢ rows[i]`: factor `i` sees `rows[i]`, which need not have the length of the others.
    ///
    /// # Errors
    /// Shapes that do not fit the factors.
    pub fn sketch_factors(
        &self,
        rows: &[Tile<'_, P::Real>],
        out: TileMut<'_, P::Output>,
        work: &mut Workspace<P::Real>,
    ) -> Result<()> {
        check_shapes(&self.factors, rows, &out)?;
        if out.rows() > 0 {
            self.sketch(rows, out, work);
        }
        Ok(())
    }

    /// Hands `rows` on with the first factor's rows multiplied by `D^{-1/2}`: there the scale costs d products per row
    /// instead of D.
    fn scaled_product(
        &self,
        rows: &[Tile<'_, P::Real>],
        work: &mut Workspace<P::Real>,
        product: impl FnOnce(&[Tile<'_, P::Real>], &mut Workspace<P::Real>),
    ) {
        let (n, d) = (rows[0].rows(), rows[0].cols());
        let mut first = work.take(n * d);
        Lift::IDENTITY.lift_into(rows[0], self.scale(), &mut first);
        let mut scaled = rows.to_vec();
        scaled[0] = Tile::new(&first, n, d);
        product(&scaled, work);
        work.give(first);
    }

    /// Lifts the rows of a tile and hands the factors' rows on.
    fn lifted_product(
        &self,
        rows: Tile<'_, P::Real>,
        work: &mut Workspace<P::Real>,
        product: impl FnOnce(&[Tile<'_, P::Real>], &mut Workspace<P::Real>),
    ) {
        let (n, m) = (rows.rows(), self.lift.output_dim(rows.cols()));
        let mut lifted = None;
        let others = if self.lift.is_identity() {
            rows
        } else {
            let mut buffer = work.take(n * m);
            self.lift.lift_into(rows, 1.0, &mut buffer);
            Tile::new(&*lifted.insert(buffer), n, m)
        };
        self.scaled_product(&vec![others; self.factors.len()], work, product);
        if let Some(buffer) = lifted {
            work.give(buffer);
        }
    }
}

impl<P: Projection> FeatureMap for ProductSketch<P> {
    type Real = P::Real;
    type Output = P::Output;

    fn input_dim(&self) -> usize {
        self.input_dim
    }

    fn output_dim(&self) -> usize {
        self.factors[0].output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, P::Real>, out: TileMut<'_, P::Output>, work: &mut Workspace<P::Real>) {
        self.lifted_product(rows, work, |rows, work| P::product_tile(&self.factors, rows, out, work));
    }

    fn map_tile_split(&self, rows: Tile<'_, P::Real>, out: Parts<'_, P::Real>, work: &mut Workspace<P::Real>) {
        self.lifted_product(rows, work, |rows, work| P::product_tile_split(&self.factors, rows, out, work));
    }

    fn tile_rows(&self) -> usize {
        self.factors[0].shared_rows().max(64)
    }

    fn operations(&self) -> u64 {
        self.factors.iter().map(Projection::operations).sum()
    }
}

impl<P: Projection> FactorSketch for ProductSketch<P> {
    fn sketch(&self, rows: &[Tile<'_, P::Real>], out: TileMut<'_, P::Output>, work: &mut Workspace<P::Real>) {
        self.scaled_product(rows, work, |rows, work| P::product_tile(&self.factors, rows, out, work));
    }

    fn sketch_split(&self, rows: &[Tile<'_, P::Real>], out: Parts<'_, P::Real>, work: &mut Workspace<P::Real>) {
        self.scaled_product(rows, work, |rows, work| P::product_tile_split(&self.factors, rows, out, work));
    }
}

use super::{FeatureMap, Piece};
use crate::error::{Error, Result, check_count, check_dim, check_non_negative};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::{Cotangents, Parts, Projection, add_scaled, in_parts, panels};
use crate::scalar::{Real, Scalar};
use std::ops::Range;
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

    /// Adds the pullback to what each factor sees.
    fn pull(
        &self,
        rows: &[Tile<'_, Self::Real>],
        cotangents: Cotangents<'_, Self::Real>,
        out: Pulled<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    );
}

/// Where the pullback of factor `i` goes.
pub(super) enum Pulled<'a, R> {
    /// All factors see the same rows.
    Shared(TileMut<'a, R>),
    /// Each its own.
    Each(Vec<TileMut<'a, R>>),
}

impl<R> Pulled<'_, R> {
    pub(super) fn of(&mut self, factor: usize) -> TileMut<'_, R> {
        match self {
            Pulled::Shared(out) => out.reborrow(),
            Pulled::Each(outs) => outs[factor].reborrow(),
        }
    }

    /// Rows `range` of all.
    fn rows_mut(&mut self, range: Range<usize>) -> Pulled<'_, R> {
        match self {
            Pulled::Shared(out) => Pulled::Shared(out.rows_mut(range)),
            Pulled::Each(outs) => Pulled::Each(outs.iter_mut().map(|out| out.rows_mut(range.clone())).collect()),
        }
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

/// `a` times `b`, or times its conjugate, number by number; real numbers have no imaginary parts.
fn multiply<R: Real>(re: &mut [R], im: &mut [R], other_re: &[R], other_im: &[R], conjugate: bool) {
    if im.is_empty() {
        re.iter_mut().zip(other_re).for_each(|(a, c)| *a *= *c);
        return;
    }
    let sign = if conjugate { -R::ONE } else { R::ONE };
    for ((re, im), (c, d)) in re.iter_mut().zip(im).zip(other_re.iter().zip(other_im)) {
        let (a, b, d) = (*re, *im, sign * *d);
        (*re, *im) = (a * *c - b * d, a * d + b * *c);
    }
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

impl Lift {
    /// What happens to rows before `sketch` sees them, and the sketch.
    pub(super) fn piece<R: Real>(&self, sketch: Piece<R>) -> Piece<R> {
        if self.is_identity() {
            return sketch;
        }
        let lift = Piece::new("lift").number("scale", self.scale);
        Piece::chain([if self.bias > 0.0 { lift.number("bias", self.bias) } else { lift }, sketch])
    }

    /// Runs `pull` on a window of lifted rows and adds `√γ` times what it has added there to `out`.
    pub(super) fn pull_into<R: Real>(
        &self,
        mut out: TileMut<'_, R>,
        work: &mut Workspace<R>,
        pull: impl FnOnce(TileMut<'_, R>, &mut Workspace<R>),
    ) {
        if self.is_identity() {
            return pull(out, work);
        }
        let (n, d, m) = (out.rows(), out.cols(), self.output_dim(out.cols()));
        let mut lifted = work.take(n * m);
        lifted.fill(R::ZERO);
        pull(TileMut::new(&mut lifted, n, m), work);
        add_scaled(Tile::new(&lifted, n, m).columns(0..d), R::from_f64(self.scale), &mut out);
        work.give(lifted);
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

    /// The sketch of what its factors see.
    pub(super) fn piece(&self) -> Result<Piece<P::Real>> {
        let factors =
            self.factors.iter().map(|factor| Piece::new("linear").projection(factor)).collect::<Result<_>>()?;
        Ok(Piece::new("product").number("scale", self.scale()).pieces("factors", factors))
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

    /// Adds the pullback of some columns: with the factors' outputs `aₖ`, the cotangent of `aᵢ` is `conj(∏_{k≠i} aₖ) u`.
    fn pull_panel(
        &self,
        rows: &[Tile<'_, P::Real>],
        cotangents: Cotangents<'_, P::Real>,
        columns: Range<usize>,
        mut out: Pulled<'_, P::Real>,
        work: &mut Workspace<P::Real>,
    ) {
        let complex = P::Output::IS_COMPLEX;
        let (n, m, p) = (rows[0].rows(), columns.len(), self.factors.len());
        let size = n * m;
        let im_size = if complex { size } else { 0 };
        let im_rows = if complex { n } else { 0 };
        let (mut re, mut im) = (work.take(p * size), work.take(p * im_size));
        for (i, (factor, rows)) in self.factors.iter().zip(rows).enumerate() {
            let window = TileMut::new(&mut im[i * im_size..][..im_size], im_rows, m);
            let parts = Parts::new(TileMut::new(&mut re[i * size..][..size], n, m), window);
            factor.project_tile_split(*rows, columns.clone(), parts, work);
        }
        // From the left: `before` is `conj(a₁ … aᵢ₋₁) u`. What stands right of a factor is multiplied up beforehand.
        let (mut before_re, mut before_im) = (work.take(size), work.take(im_size));
        let scale = P::Real::from_f64(self.scale());
        for i in 0..n {
            let to = before_re[i * m..][..m].iter_mut().zip(cotangents.re.row(i));
            to.for_each(|(to, u)| *to = scale * *u);
            if complex {
                let to = before_im[i * m..][..m].iter_mut().zip(cotangents.im.row(i));
                to.for_each(|(to, u)| *to = scale * *u);
            }
        }
        let (mut after_re, mut after_im) = (work.take((p - 1) * size), work.take((p - 1) * im_size));
        for i in (1..p).rev() {
            // aᵢ … a_p, in place i - 1.
            let ((to, next), (to_im, next_im)) = (after_re.split_at_mut(i * size), after_im.split_at_mut(i * im_size));
            let (to, to_im) = (&mut to[(i - 1) * size..], &mut to_im[(i - 1) * im_size..]);
            to.copy_from_slice(&re[i * size..][..size]);
            to_im.copy_from_slice(&im[i * im_size..][..im_size]);
            if i + 1 < p {
                multiply(to, to_im, &next[..size], &next_im[..im_size], false);
            }
        }
        for (i, factor) in self.factors.iter().enumerate() {
            let (own_re, own_im) = (&mut re[i * size..][..size], &mut im[i * im_size..][..im_size]);
            // The factor's outputs are needed once more, for those to the right; then their place is free.
            let mut next = (work.take(0), work.take(0));
            if i + 1 < p {
                next = (work.take(size), work.take(im_size));
                next.0.copy_from_slice(&before_re);
                next.1.copy_from_slice(&before_im);
                multiply(&mut next.0, &mut next.1, own_re, own_im, true);
                let (after, after_im) = (&after_re[i * size..][..size], &after_im[i * im_size..][..im_size]);
                multiply(&mut before_re, &mut before_im, after, after_im, true);
            }
            let parts = Cotangents::new(Tile::new(&before_re, n, m), Tile::new(&before_im, im_rows, m));
            factor.pull_tile(parts, columns.clone(), out.of(i), work);
            if i + 1 < p {
                work.give(std::mem::replace(&mut before_re, next.0));
                work.give(std::mem::replace(&mut before_im, next.1));
            } else {
                work.give(next.0);
                work.give(next.1);
            }
        }
        [re, im, before_re, before_im, after_re, after_im].into_iter().for_each(|buffer| work.give(buffer));
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

    fn pull_tile(
        &self,
        rows: Tile<'_, P::Real>,
        from: Cotangents<'_, P::Real>,
        out: TileMut<'_, P::Real>,
        work: &mut Workspace<P::Real>,
    ) {
        let (n, m) = (rows.rows(), self.lift.output_dim(rows.cols()));
        let mut lifted = work.take(n * m);
        self.lift.lift_into(rows, 1.0, &mut lifted);
        let tiles = vec![Tile::new(&lifted, n, m); self.factors.len()];
        self.lift.pull_into(out, work, |out, work| self.pull(&tiles, from, Pulled::Shared(out), work));
        work.give(lifted);
    }

    fn tile_rows(&self) -> usize {
        self.factors[0].shared_rows().max(64)
    }

    fn operations(&self) -> u64 {
        self.factors.iter().map(Projection::operations).sum()
    }

    fn pieces(&self) -> Result<Piece<P::Real>> {
        Ok(self.lift.piece(self.piece()?))
    }
}

impl<P: Projection> FactorSketch for ProductSketch<P> {
    fn sketch(&self, rows: &[Tile<'_, P::Real>], out: TileMut<'_, P::Output>, work: &mut Workspace<P::Real>) {
        self.scaled_product(rows, work, |rows, work| P::product_tile(&self.factors, rows, out, work));
    }

    fn sketch_split(&self, rows: &[Tile<'_, P::Real>], out: Parts<'_, P::Real>, work: &mut Workspace<P::Real>) {
        self.scaled_product(rows, work, |rows, work| P::product_tile_split(&self.factors, rows, out, work));
    }

    fn pull(
        &self,
        rows: &[Tile<'_, P::Real>],
        cotangents: Cotangents<'_, P::Real>,
        mut out: Pulled<'_, P::Real>,
        work: &mut Workspace<P::Real>,
    ) {
        let parts = 1 + usize::from(P::Output::IS_COMPLEX);
        let first = &self.factors[0];
        let widest = first.panel().min(first.output_dim());
        // As many rows at a time as leave the factors' outputs in the second-level cache.
        let step = ((1 << 16) / (parts * (self.factors.len() + 2) * widest)).next_multiple_of(8);
        let step = step.max(first.shared_rows());
        for start in (0..rows[0].rows()).step_by(step) {
            let range = start..(start + step).min(rows[0].rows());
            let rows: Vec<_> = rows.iter().map(|rows| rows.rows_in(range.clone())).collect();
            for columns in panels(first.output_dim(), first.panel()) {
                let cotangents = cotangents.rows_in(range.clone()).columns(columns.clone());
                self.pull_panel(&rows, cotangents, columns, out.rows_mut(range.clone()), work);
            }
        }
    }
}

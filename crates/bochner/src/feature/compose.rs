use super::{FeatureMap, Piece, WaveSlopes};
use crate::error::{Error, Result, check_dim};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::{Cotangents, Parts, Projection, add_scaled, panels};
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2};

/// Real and imaginary parts of a complex map side by side: all real parts, then all imaginary parts (CtR).
///
/// Its inner products are the real parts of the inner products of the complex map:
/// `Var_CtR = (Var + PVar)/2` for every unbiased complex estimate of a real kernel.
#[derive(Debug, Clone)]
pub struct ComplexToReal<M> {
    inner: M,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R::Complex>> ComplexToReal<M> {
    /// The real form of `inner`, with twice as many features.
    pub fn new(inner: M) -> Self {
        ComplexToReal { inner }
    }

    /// The complex map.
    pub fn inner(&self) -> &M {
        &self.inner
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R::Complex>> FeatureMap for ComplexToReal<M> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.inner.input_dim()
    }

    fn output_dim(&self) -> usize {
        2 * self.inner.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (re, im) = out.split_columns_at(self.inner.output_dim());
        self.inner.map_tile_split(rows, Parts::new(re, im), work);
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let m = self.inner.output_dim();
        let parts = Cotangents::new(from.re.columns(0..m), from.re.columns(m..2 * m));
        self.inner.pull_tile(rows, parts, out, work);
    }

    fn pull_parameters(&self, rows: ArrayView2<'_, R>, cotangents: ArrayView2<'_, R>) -> Result<WaveSlopes> {
        let m = self.inner.output_dim();
        check_dim("number of columns of cotangents", 2 * m, cotangents.ncols())?;
        let cotangent = |(i, j)| R::Complex::from_parts(cotangents[[i, j]], cotangents[[i, m + j]]);
        self.inner.pull_parameters(rows, Array2::from_shape_fn((cotangents.nrows(), m), cotangent).view())
    }

    fn check_pullback(&self) -> Result<()> {
        self.inner.check_pullback()
    }

    fn check_tile(&self, rows: Tile<'_, R>) -> Result<()> {
        self.inner.check_tile(rows)
    }

    fn tile_rows(&self) -> usize {
        self.inner.tile_rows()
    }

    fn operations(&self) -> u64 {
        self.inner.operations()
    }

    fn pieces(&self) -> Result<Piece<R>> {
        Ok(Piece::chain([self.inner.pieces()?, Piece::new("side_by_side")]))
    }
}

/// Several maps side by side, each with a weight on its features: the sum of their kernels times the squared weights.
#[derive(Debug, Clone)]
pub struct Concat<M> {
    parts: Vec<(f64, M)>,
    output_dim: usize,
}

impl<M: FeatureMap> Concat<M> {
    /// Maps with the weights on their features.
    ///
    /// # Errors
    /// No parts, different input dimensions, or weights that are not finite.
    pub fn new(parts: Vec<(f64, M)>) -> Result<Self> {
        let Some((_, first)) = parts.first() else {
            return Err(Error::parameter("parts", "at least one map", "none"));
        };
        for (weight, part) in &parts {
            check_dim("input dimension of a part", first.input_dim(), part.input_dim())?;
            if !weight.is_finite() {
                return Err(Error::parameter("weight", "a finite number", weight));
            }
        }
        let output_dim = parts.iter().map(|(_, part)| part.output_dim()).sum();
        Ok(Concat { parts, output_dim })
    }

    /// The weighted parts.
    pub fn parts(&self) -> &[(f64, M)] {
        &self.parts
    }
}

fn scale_tile<T: Scalar>(out: &mut TileMut<'_, T>, weight: f64) {
    if weight == 1.0 {
        return;
    }
    let weight = T::Real::from_f64(weight);
    for i in 0..out.rows() {
        for value in out.row_mut(i) {
            *value = value.scale(weight);
        }
    }
}

impl<M: FeatureMap> FeatureMap for Concat<M> {
    type Real = M::Real;
    type Output = M::Output;

    fn input_dim(&self) -> usize {
        self.parts[0].1.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.output_dim
    }

    fn map_tile(&self, rows: Tile<'_, M::Real>, mut out: TileMut<'_, M::Output>, work: &mut Workspace<M::Real>) {
        let mut start = 0;
        for (weight, part) in &self.parts {
            let end = start + part.output_dim();
            let mut window = out.columns_mut(start..end);
            part.map_tile(rows, window.reborrow(), work);
            scale_tile(&mut window, *weight);
            start = end;
        }
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, M::Real>,
        from: Cotangents<'_, M::Real>,
        mut out: TileMut<'_, M::Real>,
        work: &mut Workspace<M::Real>,
    ) {
        let (n, d) = (rows.rows(), rows.cols());
        let mut own = work.take(n * d);
        let mut start = 0;
        for (weight, part) in &self.parts {
            let end = start + part.output_dim();
            own.fill(M::Real::ZERO);
            part.pull_tile(rows, from.columns(start..end), TileMut::new(&mut own, n, d), work);
            add_scaled(Tile::new(&own, n, d), M::Real::from_f64(*weight), &mut out);
            start = end;
        }
        work.give(own);
    }

    fn check_pullback(&self) -> Result<()> {
        self.parts.iter().try_for_each(|(_, part)| part.check_pullback())
    }

    fn check_tile(&self, rows: Tile<'_, M::Real>) -> Result<()> {
        self.parts.iter().try_for_each(|(_, part)| part.check_tile(rows))
    }

    fn tile_rows(&self) -> usize {
        self.parts.iter().map(|(_, part)| part.tile_rows()).max().unwrap_or(64)
    }

    fn pieces(&self) -> Result<Piece<M::Real>> {
        let pieces = self.parts.iter().map(|(_, part)| part.pieces()).collect::<Result<_>>()?;
        let weights = self.parts.iter().map(|(weight, _)| M::Real::from_f64(*weight));
        Ok(Piece::new("concat").vector("amplitudes", weights).pieces("pieces", pieces))
    }
}

/// Projected rows as features: `x ↦ scale · Wx`.
///
/// With `scale = m^{-1/2}` inner products of the outputs estimate `⟨x, y⟩`: a linear map that may be applied once, stored,
/// and reused in place of the rows.
#[derive(Debug, Clone)]
pub struct ScaledProjection<P> {
    projection: P,
    scale: f64,
}

/// The name of [`ScaledProjection`] up to version 0.1.
#[deprecated(since = "0.2.0", note = "what a plan measures has this name: `ScaledProjection`")]
pub type Measured<P> = ScaledProjection<P>;

impl<R: Real, P: Projection<Real = R, Output = R>> ScaledProjection<P> {
    /// `scale · projection(x)`.
    ///
    /// # Errors
    /// A scale that is not positive.
    pub fn new(projection: P, scale: f64) -> Result<Self> {
        crate::error::check_positive("scale", scale)?;
        Ok(ScaledProjection { projection, scale })
    }

    /// The projection.
    pub fn projection(&self) -> &P {
        &self.projection
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> FeatureMap for ScaledProjection<P> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.projection.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.projection.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R>, work: &mut Workspace<R>) {
        for columns in panels(self.output_dim(), self.projection.panel()) {
            self.projection.project_tile(rows, columns.clone(), out.columns_mut(columns), work);
        }
        scale_tile(&mut out, self.scale);
    }

    fn pull_tile(&self, _rows: Tile<'_, R>, from: Cotangents<'_, R>, mut out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (n, d) = (out.rows(), out.cols());
        let mut own = work.take(n * d);
        own.fill(R::ZERO);
        for columns in panels(self.output_dim(), self.projection.panel()) {
            let here = from.columns(columns.clone());
            self.projection.pull_tile(here, columns, TileMut::new(&mut own, n, d), work);
        }
        add_scaled(Tile::new(&own, n, d), R::from_f64(self.scale), &mut out);
        work.give(own);
    }

    fn tile_rows(&self) -> usize {
        self.projection.shared_rows().max(64)
    }

    fn pieces(&self) -> Result<Piece<R>> {
        let factors = vec![Piece::new("linear").projection(&self.projection)?];
        Ok(Piece::new("product").number("scale", self.scale).pieces("factors", factors))
    }
}

/// Runs `then` on the features that `first` makes of a tile.
fn with_features<M: FeatureMap>(
    first: &M,
    rows: Tile<'_, M::Real>,
    work: &mut Workspace<M::Real>,
    then: impl FnOnce(Tile<'_, M::Output>, &mut Workspace<M::Real>),
) {
    let (n, m) = (rows.rows(), first.output_dim());
    let mut middle = M::Output::lend(work, n * m);
    first.map_tile(rows, TileMut::new(&mut middle, n, m), work);
    then(Tile::new(&middle, n, m), work);
    M::Output::give_back(work, middle);
}

/// A real projection, then a map of the projected rows: compressive features.
#[derive(Debug, Clone)]
pub struct Projected<P, M> {
    first: ScaledProjection<P>,
    map: M,
}

impl<R: Real, P: Projection<Real = R, Output = R>, M: FeatureMap<Real = R>> Projected<P, M> {
    /// `map` applied to `scale · projection(x)`.
    ///
    /// # Errors
    /// Dimensions that do not fit, or a scale that is not positive.
    pub fn new(projection: P, scale: f64, map: M) -> Result<Self> {
        check_dim("input dimension of the map", projection.output_dim(), map.input_dim())?;
        Ok(Projected { first: ScaledProjection::new(projection, scale)?, map })
    }

    /// The projection.
    pub fn projection(&self) -> &P {
        &self.first.projection
    }

    /// The map behind it.
    pub fn map(&self) -> &M {
        &self.map
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>, M: FeatureMap<Real = R>> FeatureMap for Projected<P, M> {
    type Real = R;
    type Output = M::Output;

    fn input_dim(&self) -> usize {
        self.first.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.map.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, R>, out: TileMut<'_, M::Output>, work: &mut Workspace<R>) {
        with_features(&self.first, rows, work, |middle, work| self.map.map_tile(middle, out, work));
    }

    fn map_tile_split(&self, rows: Tile<'_, R>, out: Parts<'_, R>, work: &mut Workspace<R>) {
        with_features(&self.first, rows, work, |middle, work| self.map.map_tile_split(middle, out, work));
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        with_features(&self.first, rows, work, |middle, work| {
            let (n, m) = (middle.rows(), middle.cols());
            let mut pulled = work.take(n * m);
            pulled.fill(R::ZERO);
            self.map.pull_tile(middle, from, TileMut::new(&mut pulled, n, m), work);
            self.first.pull_tile(rows, Cotangents::real(Tile::new(&pulled, n, m)), out, work);
            work.give(pulled);
        });
    }

    fn check_pullback(&self) -> Result<()> {
        self.map.check_pullback()
    }

    fn tile_rows(&self) -> usize {
        self.map.tile_rows().max(self.first.projection.shared_rows())
    }

    fn operations(&self) -> u64 {
        self.first.projection.operations() + self.map.operations()
    }

    fn pieces(&self) -> Result<Piece<R>> {
        Ok(Piece::chain([self.first.pieces()?, self.map.pieces()?]))
    }
}

/// A map, then a real projection of its features: up to many cheap features, down to few compact ones.
///
/// `φ'(x) = D^{-1/2} W φ(x)`. Both steps are unbiased, so their composition is; the down-projection adds the variance of
/// a degree-1 sketch of the features (Hamid et al. 2014). Costs the map at its own width but keeps `D` columns.
#[derive(Debug, Clone)]
pub struct Compact<M, P> {
    map: M,
    second: ScaledProjection<P>,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>, P: Projection<Real = R, Output = R>> Compact<M, P> {
    /// `projection` applied to the features of `map`.
    ///
    /// # Errors
    /// Dimensions that do not fit.
    pub fn new(map: M, projection: P) -> Result<Self> {
        check_dim("input dimension of the projection", map.output_dim(), projection.input_dim())?;
        let scale = 1.0 / (projection.output_dim() as f64).sqrt();
        Ok(Compact { map, second: ScaledProjection::new(projection, scale)? })
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>, P: Projection<Real = R, Output = R>> FeatureMap for Compact<M, P> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.second.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        with_features(&self.map, rows, work, |middle, work| self.second.map_tile(middle, out, work));
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (n, m) = (rows.rows(), self.map.output_dim());
        let mut middle = work.take(n * m);
        middle.fill(R::ZERO);
        // What is projected is linear: where does not matter.
        self.second.pull_tile(rows, from, TileMut::new(&mut middle, n, m), work);
        self.map.pull_tile(rows, Cotangents::real(Tile::new(&middle, n, m)), out, work);
        work.give(middle);
    }

    fn check_pullback(&self) -> Result<()> {
        self.map.check_pullback()
    }

    fn check_tile(&self, rows: Tile<'_, R>) -> Result<()> {
        self.map.check_tile(rows)
    }

    fn tile_rows(&self) -> usize {
        self.map.tile_rows()
    }

    fn pieces(&self) -> Result<Piece<R>> {
        Ok(Piece::chain([self.map.pieces()?, self.second.pieces()?]))
    }
}

/// The constant map `x ↦ (c)`: the exact feature of a constant kernel `c²`.
#[derive(Debug, Clone)]
pub struct Constant<R> {
    input_dim: usize,
    value: R,
}

impl<R: Real> Constant<R> {
    /// One feature of value `value` for rows of length `input_dim`.
    ///
    /// # Errors
    /// Rows of length 0, or a value that is not finite.
    pub fn new(input_dim: usize, value: f64) -> Result<Self> {
        crate::error::check_count("input_dim", input_dim)?;
        if !value.is_finite() {
            return Err(Error::parameter("value", "a finite number", value));
        }
        Ok(Constant { input_dim, value: R::from_f64(value) })
    }
}

impl<R: Real> FeatureMap for Constant<R> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.input_dim
    }

    fn output_dim(&self) -> usize {
        1
    }

    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R>, _work: &mut Workspace<R>) {
        for i in 0..rows.rows() {
            out.row_mut(i)[0] = self.value;
        }
    }

    fn pull_tile(&self, _: Tile<'_, R>, _: Cotangents<'_, R>, _: TileMut<'_, R>, _: &mut Workspace<R>) {}

    fn pieces(&self) -> Result<Piece<R>> {
        Ok(Piece::new("constant").number("value", Real::to_f64(self.value)))
    }
}

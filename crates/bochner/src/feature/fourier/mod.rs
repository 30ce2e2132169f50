//! Fourier features: cosines and sines of random projections.

pub(crate) mod slopes;
mod spec;

pub use slopes::WaveSlopes;
pub use spec::{Directions, FourierKernel, FourierSpec};

use super::scales::RowScales;
use super::{FeatureMap, Piece};
use crate::error::{Error, Result, check_dim};
use crate::linalg::{Factor, Tile, TileMut, Workspace, cis, cos_offset, cos_sin, sin_offset};
use crate::preprocess::LengthScale;
use crate::projection::{Cotangents, Parts, Projection, panels, wide};
use crate::random::{Role, Seed, Stream};
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

/// Frequencies `ωⱼ = rⱼ wⱼ / ℓ`: directions of a projection times radii, over length scales.
///
/// With Gaussian directions and radius 1 they are the spectrum of the Gaussian kernel; one random radius per frequency
/// gives its scale mixtures (Matérn: `√(2ν/χ²₂ᵥ)`). A length scale per input divides the rows; a single one joins the
/// radii, so that a drawn projection serves every length scale ([`with_length_scale`](Self::with_length_scale) shares it).
#[derive(Debug)]
pub struct Frequencies<P: Projection> {
    projection: Arc<P>,
    radii: Option<Arc<[f64]>>,
    length_scale: LengthScale,
    factors: Factors<P::Real>,
    scales: RowScales<P::Real>,
}

#[derive(Debug, Clone)]
enum Factors<R> {
    Same(R),
    Each(Arc<[R]>),
}

impl<P: Projection> Clone for Frequencies<P> {
    fn clone(&self) -> Self {
        Frequencies {
            projection: self.projection.clone(),
            radii: self.radii.clone(),
            length_scale: self.length_scale.clone(),
            factors: self.factors.clone(),
            scales: self.scales.clone(),
        }
    }
}

impl<P: Projection> From<P> for Frequencies<P> {
    /// Radius and length scale 1.
    fn from(projection: P) -> Self {
        Frequencies {
            projection: Arc::new(projection),
            radii: None,
            length_scale: LengthScale::Same(1.0),
            factors: Factors::Same(<P::Real as Scalar>::ONE),
            scales: RowScales::Common,
        }
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> Frequencies<P> {
    /// Directions of `projection` with radius and length scale 1.
    pub fn new(projection: P) -> Self {
        projection.into()
    }

    /// The same directions with radii `rⱼ`.
    ///
    /// # Errors
    /// Not one radius per direction, or one that is negative or not finite.
    pub fn with_radii(mut self, radii: Vec<f64>) -> Result<Self> {
        check_dim("number of radii", self.len(), radii.len())?;
        if let Some(radius) = radii.iter().find(|r| !(r.is_finite() && **r >= 0.0)) {
            return Err(Error::parameter("radius", "a non-negative finite number", radius));
        }
        self.radii = Some(radii.into());
        self.settle()
    }

    /// The same directions and radii for another length scale; the projection is shared, not drawn again.
    ///
    /// # Errors
    /// A length scale that is not positive, a list of another length than the rows, an unresolved median.
    pub fn with_length_scale(mut self, length_scale: LengthScale) -> Result<Self> {
        length_scale.check(self.projection.input_dim())?;
        self.length_scale = length_scale;
        self.settle()
    }

    /// Number of frequencies.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.projection.output_dim()
    }

    /// The projection.
    pub fn projection(&self) -> &P {
        &self.projection
    }

    /// The radii, where they are not all 1.
    pub fn radii(&self) -> Option<&[f64]> {
        self.radii.as_deref()
    }

    /// What divides the rows.
    pub fn length_scale(&self) -> &LengthScale {
        &self.length_scale
    }

    /// The frequencies `ωⱼ` themselves, one row each: what the projection makes of unit vectors.
    pub fn vectors(&self) -> Array2<f64> {
        let d = self.projection.input_dim();
        let mut unit = vec![R::ZERO; d * d];
        unit.iter_mut().step_by(d + 1).for_each(|v| *v = R::ONE);
        let mut out = Array2::zeros((self.len(), d));
        self.for_each_row(Tile::new(&unit, d, d), &mut Workspace::new(), &mut |i, columns, projected, factor| {
            for (k, (j, value)) in columns.zip(projected).enumerate() {
                let factor = match factor {
                    Factor::Same(factor) => factor,
                    Factor::Each(factors) => factors[k],
                };
                out[[j, i]] = Real::to_f64(*value) * Real::to_f64(factor);
            }
        });
        out
    }

    /// `scale` times the complex exponentials of all phases.
    pub(super) fn waves(&self, scale: f64) -> Piece<R> {
        Piece::new("waves").directions("weights", &self.vectors()).number("scale", scale)
    }

    fn settle(mut self) -> Result<Self> {
        let common = match &self.length_scale {
            LengthScale::Same(scale) => *scale,
            _ => 1.0,
        };
        let factor = |radius: f64| R::from_f64(radius / common);
        self.factors = match &self.radii {
            None => Factors::Same(factor(1.0)),
            Some(radii) => Factors::Each(radii.iter().map(|&r| factor(r)).collect()),
        };
        self.scales = RowScales::of(&self.length_scale);
        Ok(self)
    }

    fn factor(&self) -> Factor<'_, R> {
        match &self.factors {
            Factors::Same(factor) => Factor::Same(*factor),
            Factors::Each(factors) => Factor::Each(factors),
        }
    }

    /// Hands `wⱼᵀ(x/ℓ)` to `visit`, row by row within a panel of columns: row, columns, values, factors of the values.
    pub(super) fn for_each_row(
        &self,
        rows: Tile<'_, R>,
        work: &mut Workspace<R>,
        visit: &mut dyn FnMut(usize, std::ops::Range<usize>, &[R], Factor<'_, R>),
    ) {
        self.scales.with(rows, work, |rows, work| {
            self.by_panels(
                rows,
                work,
                &mut |i, columns, projected, factor| visit(i, columns, projected, factor),
                |_, _, _| (),
            );
        });
    }

    /// Adds pullbacks to `out`: `visit` replaces `wⱼᵀ(x/ℓ)` by the derivative in it.
    pub(super) fn pull_rows(
        &self,
        rows: Tile<'_, R>,
        mut out: TileMut<'_, R>,
        work: &mut Workspace<R>,
        visit: &mut dyn FnMut(usize, std::ops::Range<usize>, &mut [R], Factor<'_, R>),
    ) {
        let (n, d) = (rows.rows(), rows.cols());
        self.scales.with(rows, work, |rows, work| {
            let apart = !self.scales.is_common();
            let mut own = work.take(if apart { n * d } else { 0 });
            own.fill(R::ZERO);
            self.by_panels(rows, work, visit, |derivatives, columns, work| {
                let out = if apart { TileMut::new(&mut own, n, d) } else { out.reborrow() };
                self.projection.pull_tile(Cotangents::real(derivatives), columns, out, work);
            });
            if apart {
                self.scales.add_pulled(&own, &mut out);
            }
            work.give(own);
        });
    }

    /// Projects a panel of columns, hands it to `visit` row by row, and then as a whole to `finish`.
    fn by_panels(
        &self,
        rows: Tile<'_, R>,
        work: &mut Workspace<R>,
        visit: &mut dyn FnMut(usize, std::ops::Range<usize>, &mut [R], Factor<'_, R>),
        mut finish: impl FnMut(Tile<'_, R>, std::ops::Range<usize>, &mut Workspace<R>),
    ) {
        let n = rows.rows();
        let panel = wide::<R>(self.projection.panel()).min(self.len());
        let mut buffer = work.take(n * panel);
        for columns in panels(self.len(), panel) {
            let m = columns.len();
            self.projection.project_tile(rows, columns.clone(), TileMut::new(&mut buffer, n, m), work);
            for i in 0..n {
                visit(i, columns.clone(), &mut buffer[i * m..][..m], self.factor().range(columns.clone()));
            }
            finish(Tile::new(&buffer, n, m), columns, work);
        }
        work.give(buffer);
    }

    /// Adds the pullback of `scale` times cosines and sines of all phases.
    pub(super) fn pull_cos_sin(
        &self,
        rows: Tile<'_, R>,
        scale: R,
        cotangents: Cotangents<'_, R>,
        out: TileMut<'_, R>,
        work: &mut Workspace<R>,
    ) {
        let mut waves = work.take(2 * self.len());
        self.pull_rows(rows, out, work, &mut |i, columns, values, factor| {
            let m = columns.len();
            let (cos, sin) = waves[..2 * m].split_at_mut(m);
            cos_sin(values, factor, scale, cos, sin);
            let (in_cos, in_sin) = (&cotangents.re.row(i)[columns.clone()], &cotangents.im.row(i)[columns]);
            for j in 0..m {
                values[j] = cos[j] * in_sin[j] - sin[j] * in_cos[j];
            }
            times(values, factor);
        });
        work.give(waves);
    }

    /// Writes `scale` times the cosines and sines of all phases.
    pub(super) fn cos_sin(&self, rows: Tile<'_, R>, scale: R, mut out: Parts<'_, R>, work: &mut Workspace<R>) {
        self.for_each_row(rows, work, &mut |i, columns, projected, factor| {
            let (cos, sin) = (&mut out.re.row_mut(i)[columns.clone()], &mut out.im.row_mut(i)[columns]);
            cos_sin(projected, factor, scale, cos, sin);
        });
    }

    /// Rows whose projections onto one panel fit into a quarter of a second-level cache of half a megabyte, or as many as
    /// the projection asks for.
    pub(super) fn tile_rows(&self) -> usize {
        let fit = (1 << 17) / (size_of::<R>() * wide::<R>(self.projection.panel()).clamp(1, self.len().max(1)));
        fit.clamp(16, 64).max(self.projection.shared_rows())
    }
}

/// Multiplies derivatives in phases by what turns projected values into phases.
fn times<R: Real>(values: &mut [R], factor: Factor<'_, R>) {
    match factor {
        Factor::Same(factor) => values.iter_mut().for_each(|v| *v *= factor),
        Factor::Each(factors) => values.iter_mut().zip(factors).for_each(|(v, factor)| *v *= *factor),
    }
}

/// Random Fourier features with real output: cosine–sine pairs, or cosines with a random offset.
///
/// With frequencies `ω₁, …, ω_M` from the spectrum of a shift-invariant kernel,
///
/// - pairs: `φ(x) = M^(-1/2) (cos ωⱼᵀx)ⱼ, then (sin ωⱼᵀx)ⱼ`, so `2M` features;
/// - offset: `φ(x) = √(2/M) (cos(ωⱼᵀx + bⱼ))ⱼ` with independent `bⱼ` uniform on `[0, 2π)`.
///
/// # Estimate
/// Unbiased for `k(x - y)` with i.i.d. or Haar-orthogonal frequencies. At `τ = x - y` and with i.i.d. frequencies the
/// variance is `(1 + k(2τ) - 2k(τ)²)/2M` for pairs and `(1 + k(2τ)/2 - k(τ)²)/M` for offsets
/// ([`crate::variance`]). Pairs give `k̂(x, x) = 1` exactly, and less variance per feature
/// wherever `k(2τ) ≤ 2k(τ)²`, which holds for the Gaussian kernel everywhere.
///
/// # Cost
/// That of the projection, and about twenty vector operations per eight pairs. The cosines are taken while the projected
/// panel is in cache.
///
/// # References
/// Rahimi and Recht 2007, §3; Sutherland and Schneider 2015, §2 (variances of both forms).
#[derive(Debug)]
pub struct Fourier<P: Projection> {
    frequencies: Frequencies<P>,
    /// Offsets of the offset form; pairs have none.
    offsets: Option<Arc<[P::Real]>>,
    scale: P::Real,
}

impl<P: Projection> Clone for Fourier<P> {
    fn clone(&self) -> Self {
        Fourier { frequencies: self.frequencies.clone(), offsets: self.offsets.clone(), scale: self.scale }
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> Fourier<P> {
    /// All cosines, then all sines: two features per frequency.
    pub fn cos_sin(frequencies: Frequencies<P>) -> Self {
        let scale = R::from_f64(1.0 / (frequencies.len() as f64).sqrt());
        Fourier { frequencies, offsets: None, scale }
    }

    /// Cosines with an offset: one feature per frequency.
    ///
    /// Offset `j` is drawn from (`seed`, [`Role::Offset`], `j`). One offset shared by all features would leave an error
    /// that no number of features removes.
    pub fn offset(frequencies: Frequencies<P>, seed: Seed) -> Self {
        let m = frequencies.len();
        let offset = |j| R::from_f64(Stream::new(seed, Role::Offset, j as u64).uniform() * std::f64::consts::TAU);
        let scale = R::from_f64((2.0 / m as f64).sqrt());
        Fourier { frequencies, offsets: Some((0..m).map(offset).collect()), scale }
    }

    /// The frequencies.
    pub fn frequencies(&self) -> &Frequencies<P> {
        &self.frequencies
    }

    /// The same map for another length scale; nothing is drawn again.
    ///
    /// # Errors
    /// As [`Frequencies::with_length_scale`].
    pub fn with_length_scale(self, length_scale: LengthScale) -> Result<Self> {
        Ok(Fourier { frequencies: self.frequencies.with_length_scale(length_scale)?, ..self })
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> FeatureMap for Fourier<P> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.frequencies.projection.input_dim()
    }

    fn output_dim(&self) -> usize {
        if self.offsets.is_some() { self.frequencies.len() } else { 2 * self.frequencies.len() }
    }

    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R>, work: &mut Workspace<R>) {
        match &self.offsets {
            None => {
                let (cos, sin) = out.split_columns_at(self.frequencies.len());
                self.frequencies.cos_sin(rows, self.scale, Parts::new(cos, sin), work);
            }
            Some(offsets) => self.frequencies.for_each_row(rows, work, &mut |i, columns, projected, factor| {
                let offsets = &offsets[columns.clone()];
                cos_offset(projected, factor, offsets, self.scale, &mut out.row_mut(i)[columns]);
            }),
        }
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let m = self.frequencies.len();
        let Some(offsets) = &self.offsets else {
            let parts = Cotangents::new(from.re.columns(0..m), from.re.columns(m..2 * m));
            return self.frequencies.pull_cos_sin(rows, self.scale, parts, out, work);
        };
        let mut sines = work.take(m);
        self.frequencies.pull_rows(rows, out, work, &mut |i, columns, values, factor| {
            let (offsets, sines) = (&offsets[columns.clone()], &mut sines[..columns.len()]);
            sin_offset(values, factor, offsets, self.scale, sines);
            let incoming = &from.re.row(i)[columns];
            values.iter_mut().zip(sines.iter().zip(incoming)).for_each(|(v, (sin, u))| *v = -*sin * *u);
            times(values, factor);
        });
        work.give(sines);
    }

    fn pull_parameters(&self, rows: ArrayView2<'_, R>, cotangents: ArrayView2<'_, R>) -> Result<WaveSlopes> {
        let ahead = self.offsets.as_ref().map(|offsets| {
            let quarter = R::from_f64(std::f64::consts::FRAC_PI_2);
            Fourier { offsets: Some(offsets.iter().map(|b| *b - quarter).collect()), ..self.clone() }
        });
        let waves = |rows: ArrayView2<'_, R>| -> Result<_> {
            let sines = ahead.as_ref().map(|ahead| ahead.transform(rows)).transpose()?;
            Ok((self.transform(rows)?, sines))
        };
        slopes::slopes(self.frequencies.len(), &|_| Real::to_f64(self.scale), &waves, rows, cotangents)
    }

    fn tile_rows(&self) -> usize {
        self.frequencies.tile_rows()
    }

    fn pieces(&self) -> Result<Piece<R>> {
        let m = self.frequencies.len() as f64;
        Ok(match &self.offsets {
            None => Piece::chain([self.frequencies.waves(1.0 / m.sqrt()), Piece::new("side_by_side")]),
            Some(offsets) => Piece::new("cosines")
                .directions("weights", &self.frequencies.vectors())
                .vector("offsets", offsets.iter().copied())
                .number("scale", (2.0 / m).sqrt()),
        })
    }

    fn operations(&self) -> u64 {
        self.frequencies.projection.operations() + 20 * self.output_dim() as u64
    }
}

/// Random Fourier features with complex output: `φ(x) = M^(-1/2) (exp(i ωⱼᵀx))ⱼ`.
///
/// # Estimate
/// Unbiased like [`Fourier`]; variance `(1 - k(τ)²)/M`, pseudo-variance `(k(2τ) - k(τ)²)/M` with i.i.d. frequencies. Its
/// real form ([`ComplexToReal`](super::ComplexToReal)) is the map of cosine–sine pairs, bit for bit.
#[derive(Debug)]
pub struct ComplexFourier<P: Projection> {
    frequencies: Frequencies<P>,
    scale: P::Real,
}

impl<P: Projection> Clone for ComplexFourier<P> {
    fn clone(&self) -> Self {
        ComplexFourier { frequencies: self.frequencies.clone(), scale: self.scale }
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> ComplexFourier<P> {
    /// One complex feature per frequency.
    pub fn new(frequencies: Frequencies<P>) -> Self {
        let scale = R::from_f64(1.0 / (frequencies.len() as f64).sqrt());
        ComplexFourier { frequencies, scale }
    }

    /// The frequencies.
    pub fn frequencies(&self) -> &Frequencies<P> {
        &self.frequencies
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> FeatureMap for ComplexFourier<P> {
    type Real = R;
    type Output = R::Complex;

    fn input_dim(&self) -> usize {
        self.frequencies.projection.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.frequencies.len()
    }

    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R::Complex>, work: &mut Workspace<R>) {
        self.frequencies.for_each_row(rows, work, &mut |i, columns, projected, factor| {
            cis(projected, factor, self.scale, &mut out.row_mut(i)[columns]);
        });
    }

    fn map_tile_split(&self, rows: Tile<'_, R>, out: Parts<'_, R>, work: &mut Workspace<R>) {
        self.frequencies.cos_sin(rows, self.scale, out, work);
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        self.frequencies.pull_cos_sin(rows, self.scale, from, out, work);
    }

    fn pieces(&self) -> Result<Piece<R>> {
        Ok(self.frequencies.waves(1.0 / (self.frequencies.len() as f64).sqrt()))
    }

    fn pull_parameters(&self, rows: ArrayView2<'_, R>, cotangents: ArrayView2<'_, R::Complex>) -> Result<WaveSlopes> {
        let (n, m) = cotangents.dim();
        let parts = Array2::from_shape_fn((n, 2 * m), |(i, j)| {
            if j < m { cotangents[[i, j]].re() } else { cotangents[[i, j - m]].im() }
        });
        let scale = self.scale;
        let pairs = Fourier { frequencies: self.frequencies.clone(), offsets: None, scale };
        pairs.pull_parameters(rows, parts.view())
    }

    fn tile_rows(&self) -> usize {
        self.frequencies.tile_rows()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::ComplexToReal;
    use ndarray::array;
    use std::ops::Range;

    /// The plainest projection: normal directions, multiplied one by one, in panels of five.
    #[derive(Debug)]
    struct Plain {
        weights: Array2<f64>,
    }

    impl Plain {
        fn new(seed: u64, input_dim: usize, count: usize) -> Self {
            let mut weights = Array2::zeros((count, input_dim));
            for (j, mut row) in weights.rows_mut().into_iter().enumerate() {
                let direction = Stream::new(Seed::new(seed), Role::Direction, j as u64);
                direction.normals_from(0, row.as_slice_mut().expect("row-major"));
            }
            Plain { weights }
        }
    }

    impl Projection for Plain {
        type Real = f64;
        type Output = f64;

        fn input_dim(&self) -> usize {
            self.weights.ncols()
        }

        fn output_dim(&self) -> usize {
            self.weights.nrows()
        }

        fn panel(&self) -> usize {
            5
        }

        fn project_tile(
            &self,
            rows: Tile<'_, f64>,
            columns: Range<usize>,
            mut out: TileMut<'_, f64>,
            _: &mut Workspace<f64>,
        ) {
            for i in 0..rows.rows() {
                for (to, j) in out.row_mut(i).iter_mut().zip(columns.clone()) {
                    *to = self.weights.row(j).iter().zip(rows.row(i)).map(|(w, x)| w * x).sum();
                }
            }
        }

        fn pull_tile(
            &self,
            from: Cotangents<'_, f64>,
            columns: Range<usize>,
            mut out: TileMut<'_, f64>,
            _: &mut Workspace<f64>,
        ) {
            for i in 0..out.rows() {
                for (u, j) in from.re.row(i).iter().zip(columns.clone()) {
                    out.row_mut(i).iter_mut().zip(self.weights.row(j)).for_each(|(o, w)| *o += u * w);
                }
            }
        }
    }

    fn rows(n: usize, d: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |(i, j)| ((3 * i + 7 * j) as f64).sin())
    }

    #[test]
    fn features_are_cosines_and_sines_of_the_phases() {
        let (x, m) = (rows(3, 4), 12);
        let weights = Plain::new(1, 4, m).weights;
        let radii: Vec<f64> = (0..m).map(|j| 0.5 + 0.1 * j as f64).collect();
        let frequencies = Frequencies::new(Plain::new(1, 4, m)).with_radii(radii.clone()).unwrap();
        let frequencies = frequencies.with_length_scale(LengthScale::Same(0.7)).unwrap();
        let phases = x.dot(&weights.t()) * ndarray::aview1(&radii) / 0.7;
        let pairs = Fourier::cos_sin(frequencies.clone()).transform(x.view()).unwrap();
        let offset = Fourier::offset(frequencies.clone(), Seed::new(9));
        let b: Vec<f64> = (0..m as u64)
            .map(|j| Stream::new(Seed::new(9), Role::Offset, j).uniform() * std::f64::consts::TAU)
            .collect();
        let cosines = offset.transform(x.view()).unwrap();
        for i in 0..3 {
            for j in 0..m {
                let phase: f64 = phases[[i, j]];
                assert!((pairs[[i, j]] - phase.cos() / 12f64.sqrt()).abs() < 1e-14);
                assert!((pairs[[i, m + j]] - phase.sin() / 12f64.sqrt()).abs() < 1e-14);
                assert!((cosines[[i, j]] - (phase + b[j]).cos() / 6f64.sqrt()).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn the_real_form_of_complex_features_is_the_map_of_pairs() {
        let frequencies = Frequencies::new(Plain::new(2, 3, 13));
        let x = rows(9, 3);
        let pairs = Fourier::cos_sin(frequencies.clone()).transform(x.view()).unwrap();
        let complex = ComplexFourier::new(frequencies);
        assert_eq!(ComplexToReal::new(complex.clone()).transform(x.view()).unwrap(), pairs);
        let z = complex.transform(x.view()).unwrap();
        for i in 0..9 {
            for j in 0..13 {
                assert_eq!((z[[i, j]].re, z[[i, j]].im), (pairs[[i, j]], pairs[[i, 13 + j]]));
            }
        }
    }

    #[test]
    fn the_matrix_of_frequencies_gives_the_phases() {
        let frequencies = Frequencies::new(Plain::new(6, 3, 7)).with_radii((0..7).map(f64::from).collect()).unwrap();
        let frequencies = frequencies.with_length_scale(LengthScale::PerInput(vec![0.5, 2.0, 3.0])).unwrap();
        let (x, matrix) = (rows(4, 3), frequencies.vectors());
        let features = Fourier::cos_sin(frequencies).transform(x.view()).unwrap() * 7f64.sqrt();
        for ((i, j), phase) in x.dot(&matrix.t()).indexed_iter() {
            assert!(
                (features[[i, j]] - phase.cos()).abs() < 1e-14 && (features[[i, 7 + j]] - phase.sin()).abs() < 1e-14
            );
        }
    }

    #[test]
    fn length_scales_divide_rows_and_share_the_projection() {
        let map = Fourier::cos_sin(Frequencies::new(Plain::new(3, 2, 8)));
        let x = rows(5, 2);
        let scales = vec![0.25, 4.0];
        let divided = &x / &ndarray::aview1(&scales);
        let stretched = map.clone().with_length_scale(LengthScale::PerInput(scales)).unwrap();
        // Reciprocals of powers of two are exact, so nothing is rounded differently.
        assert_eq!(stretched.transform(x.view()).unwrap(), map.transform(divided.view()).unwrap());
        assert!(Arc::ptr_eq(&stretched.frequencies.projection, &map.frequencies.projection));
        let back = stretched.with_length_scale(LengthScale::Same(1.0)).unwrap();
        assert_eq!(back.transform(x.view()).unwrap(), map.transform(x.view()).unwrap());
    }

    #[test]
    fn pairs_have_unit_norm_whatever_the_row() {
        let map = Fourier::cos_sin(Frequencies::new(Plain::new(4, 3, 500)));
        for size in [0.0, 1e-300, 1e-6, 1.0, 1e3, 1e12] {
            let z = map.transform((rows(4, 3) * size).view()).unwrap();
            for row in z.rows() {
                assert!((row.dot(&row) - 1.0).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let frequencies = || Frequencies::new(Plain::new(5, 2, 4));
        assert!(frequencies().with_radii(vec![1.0; 3]).is_err());
        assert!(frequencies().with_radii(vec![1.0, 1.0, f64::NAN, 1.0]).is_err());
        assert!(frequencies().with_radii(vec![1.0, -1.0, 1.0, 1.0]).is_err());
        assert!(frequencies().with_length_scale(LengthScale::Same(-1.0)).is_err());
        assert!(frequencies().with_length_scale(LengthScale::PerInput(vec![1.0; 3])).is_err());
        assert!(frequencies().with_length_scale(LengthScale::Median).is_err());
        let map = Fourier::cos_sin(frequencies());
        assert!(map.transform(array![[1.0, f64::INFINITY]].view()).is_err());
        assert!(map.transform(array![[1.0]].view()).is_err());
    }

    #[test]
    fn slopes_in_parameters_agree_with_finite_differences() {
        let (x, m) = (rows(6, 3), 4);
        let weights = Array2::from_shape_fn((6, 2 * m), |(i, j)| ((5 * i + 3 * j) as f64).cos());
        let frequencies = |moved: (usize, usize, f64)| {
            let mut plain = Plain::new(8, 3, m);
            // Over length scales of the columns.
            let scales = [0.5, 2.0, 3.0];
            plain.weights[[moved.0, moved.1]] += moved.2 * scales[moved.1];
            Frequencies::new(plain).with_length_scale(LengthScale::PerInput(scales.to_vec())).unwrap()
        };
        let offset = |frequencies: Frequencies<Plain>, (j, step): (usize, f64)| {
            let mut map = Fourier::offset(frequencies, Seed::new(3));
            let mut offsets = map.offsets.unwrap().to_vec();
            offsets[j] += step;
            map.offsets = Some(offsets.into());
            map
        };
        // The central difference of four points: h⁴ times a fifth derivative of waves, and rounding over h.
        let h = 1e-3;
        let slope = |at: &dyn Fn(f64) -> f64| (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let value = |map: Fourier<Plain>| {
            let z = map.transform(x.view()).unwrap();
            let weights = weights.slice(ndarray::s![.., ..z.ncols()]);
            (&z * &weights).sum()
        };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-8 * (1.0 + a.abs()), "{a} {b}");
        for pairs in [true, false] {
            let make = |frequencies: Frequencies<Plain>| {
                if pairs { Fourier::cos_sin(frequencies) } else { offset(frequencies, (0, 0.0)) }
            };
            let map = make(frequencies((0, 0, 0.0)));
            let weights = weights.slice(ndarray::s![.., ..map.output_dim()]);
            let found = map.pull_parameters(x.view(), weights).unwrap();
            for j in 0..m {
                for k in 0..3 {
                    close(found.frequencies[[j, k]], slope(&|step| value(make(frequencies((j, k, step))))));
                }
                if !pairs {
                    close(found.offsets[j], slope(&|step| value(offset(frequencies((0, 0, 0.0)), (j, step)))));
                }
            }
            assert_eq!(found.offsets.len(), if pairs { 0 } else { m });
            // Features are linear in their amplitudes.
            let total: f64 = found.amplitudes.iter().map(|a| a * map.scale).sum();
            close(total, value(map));
        }
        let complex = ComplexFourier::new(frequencies((0, 0, 0.0)));
        let cotangents =
            Array2::from_shape_fn((6, m), |(i, j)| num_complex::Complex::new(weights[[i, j]], weights[[i, m + j]]));
        let of_pairs = Fourier::cos_sin(frequencies((0, 0, 0.0))).pull_parameters(x.view(), weights.view()).unwrap();
        assert_eq!(complex.pull_parameters(x.view(), cotangents.view()).unwrap(), of_pairs);
        assert!(complex.pull_parameters(x.view(), cotangents.slice(ndarray::s![..5, ..])).is_err());
        assert!(
            Fourier::cos_sin(frequencies((0, 0, 0.0)))
                .pull_parameters(x.view(), weights.slice(ndarray::s![.., ..3]))
                .is_err()
        );
    }
}

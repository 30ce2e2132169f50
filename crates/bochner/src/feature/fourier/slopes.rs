//! Derivatives in what waves are made of: frequencies, amplitudes, offsets.

use crate::error::{Result, check_dim};
use crate::interrupt;
use crate::linalg::gemm::matmul_nn;
use crate::linalg::{Tile, TileMut};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, Axis, s};

/// Derivatives of a function of Fourier features in their parameters, summed over rows.
///
/// Features are `aⱼ cos(ωⱼᵀx + bⱼ)` and, for pairs and complex exponentials, `aⱼ sin ωⱼᵀx`.
#[derive(Debug, Clone, PartialEq)]
pub struct WaveSlopes {
    /// In the frequencies `ωⱼ`, one a row, in units of rows as the map takes them: length scales are part of them.
    pub frequencies: Array2<f64>,
    /// In the amplitudes `aⱼ`.
    pub amplitudes: Vec<f64>,
    /// In the offsets `bⱼ`, where there are any.
    pub offsets: Vec<f64>,
}

/// Derivatives in the phases of one row of pairs, and products of features and their derivatives added to `products`: the
/// derivatives in the logarithms of the amplitudes.
pub(crate) fn of_pairs<R: Real>(waves: &[R], incoming: &[R], phases: &mut [R], products: &mut [R]) {
    let m = phases.len();
    let ((cos, sin), (in_cos, in_sin)) = (waves.split_at(m), incoming.split_at(m));
    for j in 0..m {
        phases[j] = in_sin[j] * cos[j] - in_cos[j] * sin[j];
        products[j] += in_cos[j] * cos[j] + in_sin[j] * sin[j];
    }
}

/// Rows whose features are kept at once.
const PIECE: usize = 1024;

/// Features of a piece of rows, and the same a quarter turn ahead.
type Turned<'a, R> = &'a dyn Fn(ArrayView2<'_, R>) -> Result<(Array2<R>, Option<Array2<R>>)>;

/// Slopes from `waves`, which gives pairs, or cosines with an offset and their sines; `amplitude` are those of the features.
pub(crate) fn slopes<R: Real>(
    count: usize,
    amplitude: &dyn Fn(usize) -> f64,
    waves: Turned<'_, R>,
    rows: ArrayView2<'_, R>,
    cotangents: ArrayView2<'_, R>,
) -> Result<WaveSlopes> {
    check_dim("number of rows of cotangents", rows.nrows(), cotangents.nrows())?;
    crate::rows::check_finite("cotangents", cotangents, 0)?;
    let mut found = WaveSlopes {
        frequencies: Array2::zeros((count, rows.ncols())),
        amplitudes: vec![0.0; count],
        offsets: Vec::new(),
    };
    let mut wide = 0;
    for first in (0..rows.nrows()).step_by(PIECE) {
        interrupt::check()?;
        let range = s![first..(first + PIECE).min(rows.nrows()), ..];
        let piece = rows.slice(range);
        let (features, ahead) = waves(piece)?;
        check_dim("number of columns of cotangents", features.ncols(), cotangents.ncols())?;
        wide = features.ncols();
        let mut phases = Array2::from_elem((piece.nrows(), count), R::ZERO);
        let mut products = vec![R::ZERO; count];
        let incoming = cotangents.slice(range).as_standard_layout().into_owned();
        for (i, (mut phases, incoming)) in phases.rows_mut().into_iter().zip(incoming.rows()).enumerate() {
            let (phases, incoming) = (phases.as_slice_mut().expect("a row"), incoming.to_slice().expect("a row"));
            let features = features.row(i);
            match &ahead {
                None => of_pairs(features.to_slice().expect("a row"), incoming, phases, &mut products),
                Some(sines) => {
                    for (j, (v, u)) in features.iter().zip(incoming).enumerate() {
                        phases[j] = -sines[[i, j]] * *u;
                        products[j] += *v * *u;
                    }
                }
            }
        }
        let (n, d) = piece.dim();
        let (turned, own) = (phases.t().as_standard_layout().into_owned(), piece.as_standard_layout());
        let mut product = Array2::from_elem((count, d), R::ZERO);
        matmul_nn(
            Tile::new(turned.as_slice().expect("standard layout"), count, n),
            Tile::new(own.as_slice().expect("standard layout"), n, d),
            TileMut::new(product.as_slice_mut().expect("standard layout"), count, d),
        )?;
        found.frequencies.zip_mut_with(&product, |to, v| *to += Real::to_f64(*v));
        found.amplitudes.iter_mut().zip(&products).for_each(|(to, v)| *to += Real::to_f64(*v));
        if ahead.is_some() {
            found.offsets.resize(count, 0.0);
            let sums = phases.sum_axis(Axis(0));
            found.offsets.iter_mut().zip(&sums).for_each(|(to, v)| *to += Real::to_f64(*v));
        }
    }
    if wide == 0 {
        waves(rows)?;
    }
    for (j, slope) in found.amplitudes.iter_mut().enumerate() {
        // Without amplitude there is nothing to divide by: the slope is that of a wave that is not there.
        *slope = if amplitude(j) == 0.0 { 0.0 } else { *slope / amplitude(j) };
    }
    Ok(found)
}

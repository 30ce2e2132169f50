//! A plain stored projection, until the packed ones of the projection room take its place.

use crate::error::{Result, check_count};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::Projection;
use crate::scalar::Real;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Stored<R> {
    input_dim: usize,
    weights: Vec<R>,
}

impl<R: Real> Stored<R> {
    pub(super) fn new(input_dim: usize, count: usize, draw: impl Fn(usize, &mut [R])) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_count("output_dim", count)?;
        let mut weights = vec![R::ZERO; input_dim * count];
        for (j, direction) in weights.chunks_exact_mut(input_dim).enumerate() {
            draw(j, direction);
        }
        Ok(Stored { input_dim, weights })
    }
}

impl<R: Real> Projection for Stored<R> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.input_dim
    }

    fn output_dim(&self) -> usize {
        self.weights.len() / self.input_dim
    }

    fn panel(&self) -> usize {
        256
    }

    fn project_tile(&self, rows: Tile<'_, R>, columns: Range<usize>, mut out: TileMut<'_, R>, _: &mut Workspace<R>) {
        for i in 0..rows.rows() {
            for (to, j) in out.row_mut(i).iter_mut().zip(columns.clone()) {
                let mut sums = [R::ZERO; 8];
                let direction = &self.weights[j * self.input_dim..][..self.input_dim];
                for (w, x) in direction.chunks(8).zip(rows.row(i).chunks(8)) {
                    for (s, (w, x)) in sums.iter_mut().zip(w.iter().zip(x)) {
                        *s += *w * *x;
                    }
                }
                *to = sums.iter().copied().sum();
            }
        }
    }
}

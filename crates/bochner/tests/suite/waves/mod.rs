//! Small maps and data for tests of models.
#![allow(dead_code, unreachable_pub)] // every test file takes what it needs

use bochner::feature::{Cotangents, FeatureMap};
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::Real;
use ndarray::{Array1, Array2, ArrayView2};
use std::marker::PhantomData;

/// The rows themselves.
#[derive(Debug, Clone)]
pub struct Columns<R>(pub usize, pub PhantomData<R>);

pub fn columns<R>(dim: usize) -> Columns<R> {
    Columns(dim, PhantomData)
}

impl<R: Real> FeatureMap for Columns<R> {
    type Real = R;
    type Output = R;
    fn input_dim(&self) -> usize {
        self.0
    }
    fn output_dim(&self) -> usize {
        self.0
    }
    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R>, _: &mut Workspace<R>) {
        for i in 0..rows.rows() {
            out.row_mut(i).copy_from_slice(rows.row(i));
        }
    }
    fn pull_tile(&self, _: Tile<'_, R>, from: Cotangents<'_, R>, mut out: TileMut<'_, R>, _: &mut Workspace<R>) {
        for i in 0..out.rows() {
            out.row_mut(i).iter_mut().zip(from.re.row(i)).for_each(|(o, u)| *o += *u);
        }
    }
}

/// `cos(wⱼ·x + j)`.
#[derive(Debug, Clone)]
pub struct Waves<R> {
    weights: Array2<R>,
}

pub fn waves<R: Real>(input_dim: usize, output_dim: usize) -> Waves<R> {
    Waves { weights: normals(output_dim, input_dim, 1) }
}

impl<R: Real> FeatureMap for Waves<R> {
    type Real = R;
    type Output = R;
    fn input_dim(&self) -> usize {
        self.weights.ncols()
    }
    fn output_dim(&self) -> usize {
        self.weights.nrows()
    }
    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R>, _: &mut Workspace<R>) {
        for i in 0..rows.rows() {
            for (j, (to, w)) in out.row_mut(i).iter_mut().zip(self.weights.rows()).enumerate() {
                let dot = w.iter().zip(rows.row(i)).fold(R::from_f64(j as f64), |s, (&w, &x)| s + w * x);
                *to = dot.cos();
            }
        }
    }
    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, mut out: TileMut<'_, R>, _: &mut Workspace<R>) {
        for i in 0..rows.rows() {
            for (j, (u, w)) in from.re.row(i).iter().zip(self.weights.rows()).enumerate() {
                let dot = w.iter().zip(rows.row(i)).fold(R::from_f64(j as f64), |s, (&w, &x)| s + w * x);
                out.row_mut(i).iter_mut().zip(w).for_each(|(o, w)| *o -= dot.sin() * *u * *w);
            }
        }
    }
}

pub fn normals<R: Real>(rows: usize, cols: usize, seed: u64) -> Array2<R> {
    let mut values = vec![R::from_f64(0.0); rows * cols];
    Stream::new(Seed::new(seed), Role::Split, 0).normals_from(0, &mut values);
    Array2::from_shape_vec((rows, cols), values).unwrap()
}

/// Rows, targets and weights between 0.5 and 2.
pub fn data<R: Real>(rows: usize, dim: usize, targets: usize) -> (Array2<R>, Array2<R>, Array1<R>) {
    let x = normals::<R>(rows, dim, 2);
    let mut y = normals::<R>(rows, targets, 3);
    for (mut y, x) in y.rows_mut().into_iter().zip(x.rows()) {
        for (j, y) in y.iter_mut().enumerate() {
            *y = *y * R::from_f64(0.1) + (x[0] * R::from_f64(1.0 + j as f64)).sin() + R::from_f64(3.0);
        }
    }
    let w = Array1::from_shape_fn(rows, |i| R::from_f64(0.5 + 0.25 * (i % 7) as f64));
    (x, y, w)
}

/// Panics where two matrices differ by more than `tolerance` somewhere.
pub fn close(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>, tolerance: f64) {
    assert_eq!(a.dim(), b.dim());
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= tolerance, "differ by {worst:e}, allowed {tolerance:e}");
}

/// Rows and targets that other software was given too (`tools/golden`).
pub fn twelve() -> (Array2<f64>, Array2<f64>) {
    let x = Array2::from_shape_fn((12, 3), |(i, j)| match j {
        0 => (i as f64 + 1.0).sin(),
        1 => (2.0 * i as f64).cos(),
        _ => (i % 5) as f64 / 4.0,
    });
    let y = Array2::from_shape_fn((12, 2), |(i, j)| match j {
        0 => (i as f64 + 1.0).sqrt(),
        _ => (i % 3) as f64 - 1.0,
    });
    (x, y)
}

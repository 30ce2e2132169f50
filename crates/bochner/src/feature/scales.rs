//! Rows divided by length scales of their columns, or times a metric, before they meet a map at unit scale.

use super::{FeatureMap, Piece};
use crate::error::Result;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::preprocess::LengthScale;
use crate::projection::{Cotangents, Parts};
use crate::scalar::{Real, Scalar};
use ndarray::Array2;
use std::sync::Arc;

/// Length scales that differ between columns; a common one is left to whoever projects the rows.
#[derive(Debug, Clone)]
pub(super) enum RowScales<R> {
    /// Rows stay as they are.
    Common,
    /// Reciprocals, one for each column.
    Each(Arc<[R]>),
    /// A metric, row after row.
    Metric(Arc<[R]>),
}

impl<R: Real> RowScales<R> {
    pub(super) fn of(length_scale: &LengthScale) -> Self {
        match length_scale {
            LengthScale::PerInput(scales) => RowScales::Each(scales.iter().map(|s| R::from_f64(1.0 / s)).collect()),
            LengthScale::Metric(matrix) => {
                RowScales::Metric(matrix.iter().flatten().map(|v| R::from_f64(*v)).collect())
            }
            LengthScale::Same(_) | LengthScale::Median => RowScales::Common,
        }
    }

    pub(super) fn is_common(&self) -> bool {
        matches!(self, RowScales::Common)
    }

    /// Runs `then` on the scaled rows.
    pub(super) fn with(
        &self,
        rows: Tile<'_, R>,
        work: &mut Workspace<R>,
        then: impl FnOnce(Tile<'_, R>, &mut Workspace<R>),
    ) {
        let (n, d) = (rows.rows(), rows.cols());
        if self.is_common() {
            return then(rows, work);
        }
        let mut scaled = work.take(n * d);
        match self {
            RowScales::Common => {}
            RowScales::Each(inverse) => {
                for i in 0..n {
                    for ((to, from), inverse) in scaled[i * d..][..d].iter_mut().zip(rows.row(i)).zip(&**inverse) {
                        *to = *from * *inverse;
                    }
                }
            }
            RowScales::Metric(metric) => {
                for i in 0..n {
                    for (to, row) in scaled[i * d..][..d].iter_mut().zip(metric.chunks_exact(d)) {
                        *to = rows.row(i).iter().zip(row).fold(R::ZERO, |sum, (x, l)| sum + *x * *l);
                    }
                }
            }
        }
        then(Tile::new(&scaled, n, d), work);
        work.give(scaled);
    }

    /// Adds the pullback of a pullback `own` to the scaled rows.
    pub(super) fn add_pulled(&self, own: &[R], out: &mut TileMut<'_, R>) {
        let d = out.cols();
        match self {
            RowScales::Common => {
                for (i, own) in own.chunks_exact(d).enumerate() {
                    out.row_mut(i).iter_mut().zip(own).for_each(|(o, v)| *o += *v);
                }
            }
            RowScales::Each(inverse) => {
                for (i, own) in own.chunks_exact(d).enumerate() {
                    let numbers = own.iter().zip(&**inverse);
                    out.row_mut(i).iter_mut().zip(numbers).for_each(|(o, (v, inverse))| *o += *v * *inverse);
                }
            }
            RowScales::Metric(metric) => {
                for (i, own) in own.chunks_exact(d).enumerate() {
                    for (v, row) in own.iter().zip(metric.chunks_exact(d)) {
                        out.row_mut(i).iter_mut().zip(row).for_each(|(o, l)| *o += *v * *l);
                    }
                }
            }
        }
    }
}

/// A map of rows that were scaled.
#[derive(Debug)]
struct Divided<R, M> {
    scales: RowScales<R>,
    map: M,
}

/// The map that `at` makes of a common length scale, or that of length scale 1 behind rows with scales of their own.
pub(super) fn divided<R: Real, O: Scalar<Real = R>>(
    length_scale: &LengthScale,
    input_dim: usize,
    at: impl FnOnce(f64) -> Result<Arc<dyn FeatureMap<Real = R, Output = O>>>,
) -> Result<Arc<dyn FeatureMap<Real = R, Output = O>>> {
    length_scale.check(input_dim)?;
    match length_scale {
        LengthScale::Same(scale) => at(*scale),
        _ => Ok(Arc::new(Divided { scales: RowScales::of(length_scale), map: at(1.0)? })),
    }
}

impl<R: Real, M: FeatureMap<Real = R>> FeatureMap for Divided<R, M> {
    type Real = R;
    type Output = M::Output;

    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.map.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, R>, out: TileMut<'_, M::Output>, work: &mut Workspace<R>) {
        self.scales.with(rows, work, |rows, work| self.map.map_tile(rows, out, work));
    }

    fn map_tile_split(&self, rows: Tile<'_, R>, out: Parts<'_, R>, work: &mut Workspace<R>) {
        self.scales.with(rows, work, |rows, work| self.map.map_tile_split(rows, out, work));
    }

    fn map_tile_scaled(
        &self,
        rows: Tile<'_, R>,
        out: TileMut<'_, M::Output>,
        exponents: &mut [f64],
        work: &mut Workspace<R>,
    ) {
        self.scales.with(rows, work, |rows, work| self.map.map_tile_scaled(rows, out, exponents, work));
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, R>,
        cotangents: Cotangents<'_, R>,
        mut out: TileMut<'_, R>,
        work: &mut Workspace<R>,
    ) {
        self.scales.with(rows, work, |rows, work| {
            let (n, d) = (rows.rows(), rows.cols());
            let mut own = work.take(n * d);
            own.fill(R::ZERO);
            self.map.pull_tile(rows, cotangents, TileMut::new(&mut own, n, d), work);
            self.scales.add_pulled(&own, &mut out);
            work.give(own);
        });
    }

    fn check_pullback(&self) -> Result<()> {
        self.map.check_pullback()
    }

    fn check_tile(&self, rows: Tile<'_, R>) -> Result<()> {
        let mut found = Ok(());
        self.scales.with(rows, &mut Workspace::new(), |rows, _| found = self.map.check_tile(rows));
        found
    }

    fn pieces(&self) -> Result<Piece<R>> {
        let affine = Piece::new("affine");
        let scaled = match &self.scales {
            RowScales::Common => Piece::new("identity"),
            RowScales::Each(inverse) => affine.vector("factors", inverse.iter().copied()),
            RowScales::Metric(metric) => {
                let d = self.input_dim();
                let entry = |(i, j): (usize, usize)| Real::to_f64(metric[i * d + j]);
                affine.directions("weights", &Array2::from_shape_fn((d, d), entry))
            }
        };
        Ok(Piece::chain([scaled, self.map.pieces()?]))
    }

    fn tile_rows(&self) -> usize {
        self.map.tile_rows()
    }

    fn operations(&self) -> u64 {
        let d = self.input_dim() as u64;
        self.map.operations() + if matches!(self.scales, RowScales::Metric(_)) { d * d } else { d }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::{CompressiveSpec, Describe, PositiveSpec, Spec};
    use crate::kernel::kernel_matrix;
    use crate::variance::Softmax;

    #[test]
    fn scales_of_columns_and_metrics_act_on_rows_before_anything_else() {
        let rows = Array2::from_shape_fn((6, 3), |(i, j)| 0.3 * ((3 * i + 5 * j) as f64).sin());
        // Powers of two: nothing is rounded differently.
        let scales = vec![0.5, 2.0, 1.0];
        let metric = vec![vec![0.0, 2.0, 0.0], vec![1.0, 0.0, 0.0], vec![0.0, 0.0, 0.5]];
        let positive = |kind| PositiveSpec { n_components: 20, kind, ..PositiveSpec::default() };
        let compressive = CompressiveSpec { n_components: 20, compressed_dim: 2, ..Default::default() };
        let specs: Vec<Spec> = vec![
            positive(Softmax::Positive).into(),
            positive(Softmax::Hyperbolic).into(),
            positive(Softmax::Trigonometric).into(),
            compressive.into(),
        ];
        for spec in specs {
            for scale in [LengthScale::PerInput(scales.clone()), LengthScale::Metric(metric.clone())] {
                let of_rows = match spec.clone() {
                    Spec::Positive(s) => Spec::from(PositiveSpec { length_scale: scale.clone(), ..s }),
                    Spec::Compressive(s) => CompressiveSpec { length_scale: scale.clone(), ..s }.into(),
                    other => other,
                };
                let moved = scale.divide(rows.view()).unwrap();
                let (map, unit) = (of_rows.build::<f64>(3).unwrap(), spec.build::<f64>(3).unwrap());
                assert_eq!(map.transform(rows.view()).unwrap(), unit.transform(moved.view()).unwrap());
                let (n, d) = (rows.nrows(), map.output_dim());
                let (mut first, mut second) = (vec![0.0; n * d], vec![0.0; n * d]);
                let (mut exponents, mut others) = (vec![0.0; n], vec![0.0; n]);
                let work = &mut Workspace::new();
                let tile = |rows: &Array2<f64>| rows.as_slice().unwrap().to_vec();
                let (x, y) = (tile(&rows), tile(&moved));
                map.map_tile_scaled(Tile::new(&x, n, 3), TileMut::new(&mut first, n, d), &mut exponents, work);
                unit.map_tile_scaled(Tile::new(&y, n, 3), TileMut::new(&mut second, n, d), &mut others, work);
                assert_eq!((first, exponents), (second, others));
                let (kernel, of_unit) = (of_rows.kernel().unwrap(), spec.kernel().unwrap());
                let exact = kernel_matrix(&*kernel, rows.view(), rows.view()).unwrap();
                let expected = kernel_matrix(&*of_unit, moved.view(), moved.view()).unwrap();
                // The same numbers in another order of sums.
                assert!((&exact - &expected).iter().all(|e| e.abs() < 1e-13));
                assert_eq!(
                    of_rows.variance_iid(rows.view(), rows.view()).unwrap(),
                    spec.variance_iid(moved.view(), moved.view()).unwrap()
                );
                assert!(of_rows.build::<f64>(4).is_err());
            }
        }
    }

    #[test]
    fn rows_that_scales_make_too_large_are_refused() {
        let spec = PositiveSpec {
            n_components: 20,
            kind: Softmax::Trigonometric,
            length_scale: LengthScale::PerInput(vec![1e-3, 1.0]),
            ..PositiveSpec::default()
        };
        let map = Spec::from(spec).build::<f64>(2).unwrap();
        assert!(map.transform(ndarray::array![[0.01, 0.0]].view()).is_ok());
        assert!(map.transform(ndarray::array![[0.1, 0.0]].view()).unwrap_err().to_string().contains("overflows"));
    }
}

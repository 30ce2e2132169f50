//! Rows, targets and weights as a source of blocks.

use crate::arrays::{Precision, Rows, Table, Vector, View};
use crate::features::{Drawn, Map};
use bochner::Result;
use bochner::rows::{RowBlock, RowSource};
use bochner::scalar::Real;
use ndarray::{Array2, ArrayView1, ArrayView2, s};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::OnceLock;

/// Rows between two looks for signals; accumulators collect as many anyway.
const BLOCK_ROWS: usize = 1024;

/// A precision that maps are drawn in and models fitted.
pub(crate) trait Modelled: Precision {
    /// Where a map keeps its weights of this precision.
    fn place(map: &Map) -> &OnceLock<Drawn<Self>>;
    fn table<'a, 'py>(rows: &'a Rows<'py>) -> Option<&'a Table<'py, Self>>;
    fn vector<'a, 'py>(vector: &'a Vector<'py>) -> Option<&'a PyReadonlyArray1<'py, Self>>;
}

macro_rules! modelled {
    ($real:ident, $variant:ident, $place:ident) => {
        impl Modelled for $real {
            fn place(map: &Map) -> &OnceLock<Drawn<$real>> {
                &map.$place
            }
            fn table<'a, 'py>(rows: &'a Rows<'py>) -> Option<&'a Table<'py, $real>> {
                if let Rows::$variant(table) = rows { Some(table) } else { None }
            }
            fn vector<'a, 'py>(vector: &'a Vector<'py>) -> Option<&'a PyReadonlyArray1<'py, $real>> {
                if let Vector::$variant(vector) = vector { Some(vector) } else { None }
            }
        }
    };
}
modelled!(f32, Single, single);
modelled!(f64, Double, double);

impl Rows<'_> {
    /// The rows in a precision that others have; `what` are all of them.
    pub(crate) fn alike<R: Modelled>(&self, what: &str) -> PyResult<View<'_, R>> {
        let table = R::table(self).ok_or_else(|| PyTypeError::new_err(format!("{what} must have one dtype")))?;
        table.view()
    }
}

/// Rows, targets and weights in one precision; a source of blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'a, R> {
    rows: View<'a, R>,
    targets: ArrayView2<'a, R>,
    weights: Option<ArrayView1<'a, R>>,
}

impl<'a, R: Modelled> Data<'a, R> {
    pub(crate) fn new(rows: View<'a, R>, targets: &'a Rows<'_>, weights: Option<&'a Vector<'_>>) -> PyResult<Self> {
        let one_precision = || PyTypeError::new_err("rows, targets and weights must be arrays of one dtype");
        let targets = match R::table(targets) {
            Some(Table::Dense(targets)) => targets.as_array(),
            _ => return Err(one_precision()),
        };
        let weights = match weights {
            Some(weights) => Some(R::vector(weights).ok_or_else(one_precision)?.as_array()),
            None => None,
        };
        if targets.nrows() != rows.nrows() || weights.is_some_and(|weights| weights.len() != rows.nrows()) {
            return Err(PyValueError::new_err("rows, targets and weights must be of one length"));
        }
        Ok(Data { rows, targets, weights })
    }

    /// Rows and targets in double precision.
    pub(crate) fn wide(&self) -> Result<(Array2<f64>, Array2<f64>)> {
        Ok((self.rows.wide()?, self.targets.mapv(Real::to_f64)))
    }
}

impl<R: Precision> RowSource<R> for Data<'_, R> {
    fn input_dim(&self) -> usize {
        self.rows.ncols()
    }

    fn target_dim(&self) -> usize {
        self.targets.ncols()
    }

    fn len_hint(&self) -> Option<usize> {
        Some(self.rows.nrows())
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let n = self.rows.nrows();
        let step = BLOCK_ROWS.min(self.rows.most_rows());
        let mut buffer = Vec::new();
        for start in (0..n).step_by(step) {
            let window = start..(start + step).min(n);
            visit(RowBlock {
                rows: self.rows.rows(window.clone(), &mut buffer)?,
                targets: self.targets.slice(s![window.clone(), ..]),
                weights: self.weights.as_ref().map(|weights| weights.slice(s![window])),
            })?;
        }
        Ok(())
    }
}

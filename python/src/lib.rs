//! Conversion only: numpy arrays in, core types inside, numpy arrays out.

use pyo3::prelude::*;

#[pymodule]
fn _bochner(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}

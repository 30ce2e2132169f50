//! Conversion only: numpy arrays in, core types inside, numpy arrays out.

mod arrays;
mod detached;
mod errors;
mod features;
mod kernels;

use pyo3::prelude::*;

#[pymodule]
fn _bochner(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    module.add_class::<features::Map>()?;
    kernels::register(module)
}

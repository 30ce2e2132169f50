//! Conversion only: numpy arrays in, core types inside, numpy arrays out.

mod arrays;
mod attention;
mod catalogue;
mod data;
mod detached;
mod errors;
mod features;
mod files;
mod fit;
mod kernels;
mod metrics;
mod models;
mod operator;
mod planner;
mod search;
mod sums;

use pyo3::prelude::*;

#[pymodule]
fn _bochner(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(catalogue::catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::check, module)?)?;
    errors::register(module)?;
    files::register(module)?;
    module.add_class::<features::Map>()?;
    fit::register(module)?;
    module.add_class::<sums::Sums>()?;
    module.add_class::<kernels::PyKernel>()?;
    operator::register(module)?;
    attention::register(module)?;
    planner::register(module)?;
    search::register(module)?;
    metrics::register(module)
}

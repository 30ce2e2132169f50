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
mod learn;
mod metrics;
mod models;
mod operator;
mod planner;
mod search;
mod stats;
mod stream;
mod sums;
mod uncertainty;

#[pyo3::pymodule]
mod _bochner {
    #[pymodule_export]
    use crate::attention::attention;
    #[pymodule_export]
    use crate::catalogue::{catalogue, check};
    #[pymodule_export]
    use crate::errors::{BusyError, NonFiniteError, NotConvergedError, NotPositiveDefiniteError};
    #[pymodule_export]
    use crate::features::Map;
    #[pymodule_export]
    use crate::files::prepare;
    #[pymodule_export]
    use crate::kernels::PyKernel;
    #[pymodule_export]
    use crate::learn::{class_sets, fit_table, interval_ends, learn_fourier, targets_of};
    #[pymodule_export]
    use crate::metrics::{gaussian_kl, mean_negative_log_likelihood, mmd2, relative_frobenius_error};
    #[pymodule_export]
    use crate::operator::{PyOperatorKernel, PyOperatorMap, py_graph_outputs, py_lagged_rows, py_simplex_codes};
    #[pymodule_export]
    use crate::planner::plan;
    #[pymodule_export]
    use crate::stats::{
        Drift, PairSums, SampleSums, differing_columns, independence, pooled_scale, two_sample, two_sample_exact,
    };
    #[pymodule_export]
    use crate::stream::{FileRows, fit_batches};
    #[pymodule_export]
    use crate::sums::Sums;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::fit::register(module)?;
        crate::search::register(module)?;
        crate::uncertainty::register(module)
    }
}

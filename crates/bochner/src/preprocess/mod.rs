//! Rows in, rows out: length scales, centring, unit norm.
//!
//! | step | does | for |
//! |---|---|---|
//! | [`LengthScale`] | divides rows, one number or one per input; [`median_distance`] chooses it | shift-invariant kernels |
//! | [`Standardize`], [`Center`] | mean 0 and, for the former, variance 1 per column | regression, Gaussian processes |
//! | [`Views`] | robust numbers and ranks, mean 0 and variance 1 | learned maps on tables |
//! | [`UnitNorm`] | `x/\|x\|` | polynomial and spherical kernels |
//! | [`Binarize`] | 1 above a threshold, 0 below | optical features, whose modulator shows two states |
//! | [`Metric`] | a matrix times the row | metrics learned from targets |
//! | [`ShiftNonNegative`] | subtracts column minima | polynomial sketches, whose variance falls for `x, y ≥ 0` |
//!
//! [`sparsity_at_energy`] measures how sparse rows are in a basis of wavelets or cosines.
//!
//! What a step learned from training rows ([`ColumnStatistics`], in one pass) is part of its value, so [`Preprocess`] can be
//! stored in a model file and does the same to new rows.

mod length_scale;
mod median;
mod sparsity;
mod statistics;
mod step;
mod views;

pub use length_scale::LengthScale;
pub use median::median_distance;
pub use sparsity::{Basis, Shape, SparseTransform, Sparsity, sparsity_at_energy};
pub use statistics::ColumnStatistics;
pub use step::{Binarize, Center, Metric, Preprocess, ShiftNonNegative, Standardize, UnitNorm};
pub use views::Views;

//! How good an estimate, a prediction or a sample is.
//!
//! | question | measure |
//! |---|---|
//! | is the kernel matrix right? | [`relative_frobenius_error`], [`FrobeniusError`] |
//! | is the posterior right? | [`gaussian_kl`] |
//! | are predictions right? | [`rmse`], [`normalized_mse`], [`r2`], [`error_rate`] |
//! | are probabilities honest? | [`mean_negative_log_likelihood`], [`class_negative_log_likelihood`], [`expected_calibration_error`] |
//! | are two samples alike? | [`mmd2`], [`mmd2_from_features`], [`kid`] |
//!
//! ```
//! use bochner::metrics::{error_rate, rmse};
//! assert_eq!(error_rate(&["a", "b"], &["a", "c"])?, 0.5);
//! assert_eq!(rmse(ndarray::array![[1.0], [2.0]].view(), ndarray::array![[1.0], [4.0]].view())?, 2f64.sqrt());
//! # Ok::<(), bochner::Error>(())
//! ```

mod discrepancy;
mod frobenius;
mod prediction;

pub use discrepancy::{FeatureSums, Kid, kid, mmd2, mmd2_from_features};
pub use frobenius::{FrobeniusError, relative_frobenius_error};
pub use prediction::{
    class_negative_log_likelihood, error_rate, expected_calibration_error, gaussian_kl, mean_negative_log_likelihood,
    normalized_mse, r2, rmse,
};

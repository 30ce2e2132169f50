//! Finite numbers in, finite numbers out, or an error that names the row.

use crate::determinism::maps;
use crate::waves::{columns, normals, waves};
use bochner::feature::{Describe, FeatureMap, OpticalSpec, PolynomialSpec, Spec};
use bochner::kernel::{Gaussian, Polynomial, kernel_matrix};
use bochner::model::exact::KernelRidge;
use bochner::model::{Fit, GpRegressor, Predict, Ridge};
use bochner::scalar::Real;
use bochner::solve::{ConjugateGradients, Solver, StochasticGradient};
use bochner::{Context, Error};
use ndarray::Array2;
use std::sync::Arc;

/// A hundred rows, one of which has a number that hardly has a square.
fn rows<R: Real>(dim: usize) -> (Array2<R>, usize, usize) {
    let mut rows = normals::<R>(100, dim, 8);
    let (row, column) = (67, dim / 2);
    rows[[row, column]] = if R::NAME == "f32" { R::from_f64(-1e37) } else { R::from_f64(-1e300) };
    (rows, row, column)
}

fn finite_or_refused<R: Real>(spec: &Spec) -> bool {
    let (rows, row, column) = rows::<R>(6);
    let map = spec.build::<R>(6).unwrap();
    match map.transform(rows.view()) {
        Ok(features) => {
            assert!(features.iter().all(|v| v.is_finite()), "{spec:?}");
            false
        }
        Err(Error::TooLarge { row: found, column: place, value, .. }) => {
            assert_eq!((found, place, value < 0.0), (row, column, true), "{spec:?}");
            true
        }
        // Maps that know a bound of their own say which.
        Err(Error::Row { row: found, reason }) => {
            assert!(found == row && reason.contains("beyond which"), "{spec:?}: {reason}");
            true
        }
        Err(error) => panic!("{spec:?}: {error}"),
    }
}

#[test]
fn rows_that_are_too_large_for_a_map_are_refused_with_row_and_column() {
    for spec in maps() {
        finite_or_refused::<f32>(&spec);
        finite_or_refused::<f64>(&spec);
    }
    let polynomial = PolynomialSpec { n_components: 16, degree: 2, ..Default::default() };
    let optical = OpticalSpec { n_components: 16, ..Default::default() };
    for spec in [Spec::from(polynomial), Spec::from(optical)] {
        assert!(finite_or_refused::<f32>(&spec) && finite_or_refused::<f64>(&spec), "{spec:?}");
    }
}

#[test]
fn kernels_of_rows_that_are_too_large_are_refused_by_row() {
    let (x, row, column) = rows::<f64>(3);
    let kernel = Polynomial::new(2, 1.0, 1.0).unwrap();
    let small = normals::<f64>(5, 3, 1);
    let Err(Error::TooLarge { row: found, column: place, .. }) = kernel_matrix(&kernel, x.view(), small.view()) else {
        panic!("squares of 1e300 are no numbers")
    };
    assert_eq!((found, place), (row, column));
    let error = kernel_matrix(&kernel, small.view(), x.view()).unwrap_err().to_string();
    assert!(error.contains(&format!("row {row}")) && error.contains(&format!("column {column}")), "{error}");
    // A value that is a number in double precision only.
    let single = ndarray::array![[1.0f32, 2.0], [1e15, 0.0]];
    let error = kernel_matrix(&Polynomial::homogeneous(3), single.view(), single.view()).unwrap_err().to_string();
    assert!(error.contains("row 1 has the value 1.0e15 in column 0"), "{error}");
    // Far away, a Gaussian is 0.
    let gaussian = kernel_matrix(&Gaussian::new(1.0).unwrap(), x.view(), small.view()).unwrap();
    assert!(gaussian.row(row).iter().all(|&v| v == 0.0));
    let ridge = KernelRidge::new(Arc::new(kernel), 0.1).unwrap();
    let model = ridge.fit(small.view(), small.view()).unwrap();
    assert!(matches!(model.predict(x.view()), Err(Error::TooLarge { row: 67, .. })));
    assert!(ridge.fit(x.view(), x.view()).is_err());
}

#[test]
fn predictions_that_are_no_numbers_are_refused_by_row() {
    let (x, y) = (normals::<f32>(50, 3, 1), normals::<f32>(50, 1, 2).mapv(|v| 1e20 * v));
    let model = Ridge::new(columns::<f32>(3), 0.1).unwrap().fit(x.view(), y.view()).unwrap();
    let mut new = normals::<f32>(200, 3, 3);
    new.row_mut(130).fill(1e30);
    let error = model.predict(new.view()).unwrap_err();
    assert!(matches!(error, Error::NonFinite { what: "predictions", row: 130, .. }), "{error}");
    let process = GpRegressor::new(columns::<f32>(3), 0.1).unwrap().fit(x.view(), x.view()).unwrap();
    let error = process.predict_with_variance(new.view()).unwrap_err();
    assert!(matches!(error, Error::NonFinite { what: "variances", row: 130, .. }), "{error}");
}

#[test]
fn penalties_of_any_size_are_fitted_or_refused_without_infinities() {
    let (x, y) = (normals::<f64>(60, 3, 1), normals::<f64>(60, 1, 2));
    let solvers = [
        Solver::Auto,
        Solver::Cholesky,
        Solver::Dual,
        Solver::ConjugateGradients(ConjugateGradients::default()),
        Solver::StochasticGradient(StochasticGradient::default()),
    ];
    for penalty in [0.0, 1e-320, 1e-300, 1e150, 1e155, 1e300, 1e308, f64::MAX] {
        for solver in solvers {
            let ridge = Ridge::new(waves::<f64>(3, 20), penalty).unwrap().with_solver(solver);
            let source = &mut bochner::rows::InMemory::new(x.view(), y.view()).unwrap();
            match ridge.fit_stream(source, &mut Context::default()) {
                Ok(model) => assert!(model.predict(x.view()).unwrap().iter().all(|v| v.is_finite())),
                Err(error) => {
                    let text = error.to_string().to_lowercase();
                    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
                    assert!(!words.contains(&"inf") && !words.contains(&"nan"), "{penalty:e} {solver:?}: {error}");
                }
            }
        }
    }
    let ridge = Ridge::new(waves::<f64>(3, 20), 1e300).unwrap().with_solver(Solver::Cholesky);
    let model = ridge.fit(x.view(), y.view()).unwrap();
    // Nothing is left of the coefficients, and all of the mean.
    let mean = y.mean().unwrap();
    assert!(model.predict(x.view()).unwrap().iter().all(|v| (v - mean).abs() < 1e-14));
}

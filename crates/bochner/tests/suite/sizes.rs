//! Requests that no machine can meet are errors with the bytes they need, before anything is made.

use bochner::Error;
use bochner::accumulate::Gram;
use bochner::feature::{Describe, Directions, FourierSpec, MaclaurinSpec, OpticalProjection, OpticalSpec, Spec};
use bochner::kernel::{Gaussian, kernel_matrix};
use bochner::linalg::Lower;
use bochner::rows::simplex_codes;
use ndarray::{Array2, ArrayView2};
use std::time::{Duration, Instant};

/// Many rows in the memory of one.
fn many(row: &[f64], rows: usize) -> ArrayView2<'_, f64> {
    let strides = ndarray::ShapeBuilder::strides((rows, row.len()), (0, 1));
    ArrayView2::from_shape(strides, row).unwrap()
}

fn needed<T: std::fmt::Debug>(what: &str, asked: impl FnOnce() -> bochner::Result<T>) -> String {
    let start = Instant::now();
    let error = asked().unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(1), "{what} took {:?}", start.elapsed());
    assert!(matches!(error, Error::Memory { needed, available, .. } if needed > available), "{what}: {error}");
    error.to_string()
}

#[test]
fn features_of_too_many_rows_say_how_many_fit() {
    let spec = FourierSpec { n_components: 100_000, projection: Directions::Sorf, ..FourierSpec::default() };
    let map = spec.build::<f64>(2).unwrap();
    // 24 TB.
    let told = needed("features", || map.transform(many(&[0.5, 1.0], 30_000_000)));
    assert!(
        told.contains("30,000,000 x 100,000") && told.contains("24") && told.contains("blocks of at most"),
        "{told}"
    );
}

#[test]
fn kernels_and_sums_of_too_many_rows_are_memory_errors() {
    let rows = [0.5, 1.0];
    let rows = many(&rows, 10_000_000);
    needed("a kernel", || kernel_matrix(&Gaussian::new(1.0).unwrap(), rows, rows));
    needed("a triangle", || Lower::<f64>::zeros(10_000_000));
    needed("a triangle beyond counting", || Lower::<f64>::zeros(usize::MAX));
    needed("sums", || Gram::<f64>::new(10_000_000, 1));
    needed("codes", || simplex_codes(1 << 40));
}

#[test]
fn absurd_numbers_of_features_are_refused_for_every_map() {
    let rows = Array2::from_shape_fn((20, 3), |(i, j)| ((i * (j + 2)) as f64).sin());
    for (entry, _) in Spec::KINDS {
        for n_components in [1 << 31, 1 << 34, 1 << 40, 1 << 53, 1 << 62, usize::MAX] {
            let start = Instant::now();
            let spec = Spec::named(entry.name).unwrap().redrawn(n_components, 1);
            let error = spec.resolve(rows.view()).and_then(|spec| spec.build::<f32>(3)).unwrap_err();
            assert!(error.to_string().contains("n_components"), "{}: {error}", entry.name);
            assert!(start.elapsed() < Duration::from_secs(1), "{}: {:?}", entry.name, start.elapsed());
        }
    }
    let endless = MaclaurinSpec { n_components: 1 << 40, ..MaclaurinSpec::default() };
    assert!(Spec::from(endless).resolve(rows.view()).is_err());
    let free =
        OpticalSpec { n_components: 1 << 62, projection: OpticalProjection::MatrixFree, ..OpticalSpec::default() };
    assert!(free.build::<f64>(3).is_err());
}

#[test]
fn a_draw_that_does_not_fit_is_refused_before_it_begins() {
    let wide = FourierSpec { n_components: 1 << 30, projection: Directions::Gaussian, ..FourierSpec::default() };
    let told = needed("a draw", || wide.build::<f64>(100_000));
    assert!(
        told.contains("Fourier features with 1,073,741,824 columns") && told.contains("columns would fit"),
        "{told}"
    );
}

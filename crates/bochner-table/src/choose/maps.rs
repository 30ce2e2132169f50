//! Maps of the Gaussian kernel, ranked by the error that the planner predicts for them.

use super::RATE;
use bochner::Result;
use bochner::feature::{Describe, Directions, FourierKernel, SketchKind, Spec};
use bochner::kernel::{AnyKernel, Gaussian};
use bochner::plan::Sample;
use bochner::variance::Weights;
use ndarray::{ArrayView2, s};

/// Rows whose pairs decide: errors of kernel matrices of more differ by a percent or so.
const RANKED_ROWS: usize = 300;
/// Errors that differ by less are close, and operations decide.
const CLOSE: f64 = 1.05;
/// Operations on each pair of rows besides those on their columns, about: variances of ten degrees.
const PER_PAIR: f64 = 500.0;

/// A map with the error that is expected of it.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    /// As `bochner plan` calls it.
    pub(super) name: String,
    /// With another length scale and number of features to be asked for.
    pub(super) spec: Spec,
    /// Relative Frobenius error of the kernel matrix.
    pub(super) error: f64,
    /// Of drawing it and of transforming all rows.
    operations: f64,
}

/// Seconds that [`rank`] takes on rows of `columns` columns.
pub(super) fn seconds(columns: usize) -> f64 {
    // Seven candidates, of which those that allocate degrees look at pairs twice.
    12.0 * (RANKED_ROWS * RANKED_ROWS) as f64 * (columns as f64 + PER_PAIR) / RATE
}

/// The maps of the Gaussian kernel at a length scale with so many features, best first; `seconds` bounds what drawing one and
/// transforming `total_rows` rows may take.
///
/// A map about which the planner knows nothing on these rows is left out.
pub(super) fn rank(
    length_scale: f64,
    sample: ArrayView2<'_, f64>,
    features: usize,
    seed: u64,
    total_rows: usize,
    seconds: f64,
) -> Result<Vec<Ranked>> {
    let kernel = AnyKernel::from(Gaussian::new(length_scale)?);
    // Every so-many-th row: files are often sorted.
    let step = sample.nrows().div_ceil(RANKED_ROWS).max(1);
    let rows = sample.slice(s![..;step, ..]);
    let sample = Sample::new(&kernel, rows)?;
    let mut ranked = Vec::new();
    for candidate in Spec::candidates(&kernel, rows)? {
        let Ok(spec) = candidate.spec.redrawn(features, seed).resolve(rows) else { continue };
        let operations = operations(&spec, rows.ncols(), total_rows);
        let Ok((error, _)) = sample.predict(&spec) else { continue };
        if error.is_finite() && operations <= seconds * RATE {
            let spec = candidate.spec.redrawn(features, seed);
            ranked.push(Ranked { name: candidate.name, spec, error, operations });
        }
    }
    ranked.sort_by(|a, b| a.error.total_cmp(&b.error));
    let close = ranked.iter().take_while(|r| r.error <= CLOSE * ranked[0].error).count();
    ranked[..close].sort_by(|a, b| a.operations.total_cmp(&b.operations));
    Ok(ranked)
}

/// The planner's name of the Fourier features of a Gaussian kernel.
pub(super) fn name_of(spec: &Spec) -> Option<&'static str> {
    let Spec::Fourier(spec) = spec else { return None };
    match spec.projection {
        _ if spec.kernel != FourierKernel::Gaussian => None,
        Directions::Gaussian => Some("Fourier, dense"),
        Directions::Orthogonal => Some("Fourier, orthogonal"),
        Directions::Sorf => Some("Fourier, SORF"),
        Directions::Auto => None,
    }
}

/// Multiplications, about, of drawing a map and of transforming `rows` rows of `columns` columns.
fn operations(spec: &Spec, columns: usize, rows: usize) -> f64 {
    let (d, n) = (columns as f64, rows as f64);
    let padded = columns.next_power_of_two() as f64;
    // A Hadamard chain makes a block of `padded` directions at a time; see `Directions::choose`.
    let chains = |directions: f64| (directions / padded).ceil() * 4.0 * padded * padded.log2().max(1.0);
    match spec {
        Spec::Fourier(spec) => {
            let m = spec.n_components as f64 / 2.0;
            match spec.projection {
                Directions::Sorf => n * chains(m),
                Directions::Orthogonal => n * m * d + m * d * d,
                Directions::Gaussian | Directions::Auto => n * m * d,
            }
        }
        Spec::Maclaurin(spec) => {
            let allocation = spec.resolved.as_ref();
            let complex = allocation.map_or(spec.weights, |a| a.weights) != Weights::Real;
            let each = |degree: usize, columns: f64| {
                let factors = degree as f64 * if complex { 2.0 } else { 1.0 };
                let draws = if complex { columns / 2.0 } else { columns };
                n * factors * if spec.sketch == SketchKind::TensorSrht { chains(draws) } else { draws * d }
            };
            match allocation.map(|a| &a.columns[..]).filter(|columns| !columns.is_empty()) {
                Some(columns) => columns.iter().enumerate().map(|(degree, c)| each(degree, *c as f64)).sum(),
                // Degrees by chance: one on average, and the columns of the high ones cost more.
                None => each(2, spec.n_components as f64),
            }
        }
        other => n * other.n_components() as f64 * d,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner::feature::FeatureMap;
    use ndarray::Array2;

    fn rows(n: usize, d: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |(i, j)| ((i * 7 + j * 31 + i * i * (j + 1)) % 101) as f64 / 50.0 - 1.0)
    }

    #[test]
    fn smooth_kernels_in_few_dimensions_have_maclaurin_features_and_rough_ones_fourier_features() {
        let rows = rows(200, 4);
        let first = |scale: f64| rank(scale, rows.view(), 256, 3, 200, 1.0).unwrap().remove(0).name;
        assert!(first(4.0).starts_with("Maclaurin"), "{}", first(4.0));
        assert!(first(0.1).starts_with("Fourier"), "{}", first(0.1));
    }

    #[test]
    fn every_ranked_map_is_drawn_again_from_its_description() {
        let rows = rows(120, 5);
        let ranked = rank(1.0, rows.view(), 64, 9, 120, 1.0).unwrap();
        assert!(ranked.len() >= 6, "{ranked:?}");
        for Ranked { name, spec, .. } in ranked {
            let spec = spec.with("length_scale", 1.0.into()).unwrap().resolve(rows.view()).unwrap();
            let text = serde_json::to_string(&spec).unwrap();
            let again: Spec = serde_json::from_str(&text).unwrap();
            let features =
                |spec: &Spec| spec.build::<f32>(5).unwrap().transform(rows.mapv(|v| v as f32).view()).unwrap();
            assert_eq!(features(&spec), features(&again), "{name}");
        }
    }

    #[test]
    fn what_takes_too_long_is_not_ranked() {
        let rows = rows(50, 40);
        let ranked = rank(3.0, rows.view(), 256, 0, 1_000_000, 0.12).unwrap();
        assert!(ranked.iter().any(|r| r.name == "Fourier, SORF"), "{ranked:?}");
        assert!(ranked.iter().all(|r| r.operations <= 0.12 * RATE));
        assert!(ranked.iter().all(|r| r.name != "Maclaurin, random"), "{ranked:?}");
    }
}

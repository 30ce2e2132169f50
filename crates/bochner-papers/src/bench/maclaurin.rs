//! Allocations of Maclaurin features: against numpy's products of all pairs, and against each other.

use super::timing::seconds;
use super::{Bar, Bench, Line, Measure};
use bochner::feature::{Describe, FeatureMap, MaclaurinSpec, Statistics};
use bochner::linalg::TileMut;
use bochner::random::{Role, Seed, fill_normals};
use bochner::words::count;
use bochner_table::failure::Outcome;
use ndarray::Array2;

const DIM: usize = 1024;

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let (n, width) = if bench.full { (5000, 10_240) } else { (2000, 4096) };
    let mut rows = vec![0.0f32; n * DIM];
    fill_normals(Seed::new(1), Role::Noise, 0, 0, TileMut::new(&mut rows, n, DIM));
    let rows = Array2::from_shape_vec((n, DIM), rows).expect("n times d numbers");
    // The median distance between such rows, known without looking for it.
    let spec = MaclaurinSpec {
        n_components: width,
        length_scale: (2.0 * DIM as f64).sqrt().into(),
        ..MaclaurinSpec::default()
    };
    let time = |statistics| {
        bench.progress.at(format!("{statistics:?} allocation").into())?;
        let spec = MaclaurinSpec { statistics, ..spec.clone() };
        let mut failure = None;
        let time = seconds(0.5, || failure = spec.resolve_single(rows.view()).err());
        failure.map_or(Ok(time), |e| Err(bochner_table::failure::Failure::from(e)))
    };
    let pairwise = time(Statistics::Pairwise)?;
    let one_pass = time(Statistics::OnePass)?;
    bench.progress.at("features".into())?;
    let map = spec.resolve_single(rows.view())?.build::<f32>(DIM)?;
    let mut out = Array2::zeros((n, map.output_dim()));
    let mut failure = None;
    let transform = seconds(0.5, || failure = map.transform_into(rows.view(), out.view_mut()).err());
    if let Some(error) = failure {
        return Err(error.into());
    }
    let size = format!("{} x {DIM} f32, budget {}", count(n), count(width));
    let mut lines =
        vec![Line::time("allocation from one pass", one_pass, "allocation from all pairs", pairwise, Bar::AtMost(0.1))];
    match bench.peers {
        Some(peers) => {
            bench.progress.at("numpy's products of all pairs".into())?;
            for (name, theirs) in peers.time("all_pairs", &[n.to_string(), DIM.to_string()])? {
                let case = format!("allocation from all pairs, {size}");
                lines.push(Line::time(case, pairwise, &name, theirs, Bar::AtMost(2.0)));
            }
        }
        None => lines.push(Line::alone(format!("allocation from all pairs, {size}"), Measure::Seconds(pairwise))),
    }
    lines.push(Line::alone("features of the same rows", Measure::Seconds(transform)));
    Ok(lines)
}

//! Allocations of Maclaurin features: against numpy's products of all pairs, and against each other.

use super::*;
use bochner::feature::{MaclaurinSpec, Statistics};

const DIM: usize = 1024;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let (n, n_components) = bench.size((5000, 10_240), (2000, 4096));
    let rows = normals::<f32>(n, DIM, 1);
    // The median distance between such rows, known without looking for it.
    let length_scale = (2.0 * DIM as f64).sqrt().into();
    let spec = MaclaurinSpec { n_components, length_scale, ..MaclaurinSpec::default() };
    let time = |statistics| {
        bench.at(format!("{statistics:?} allocation"))?;
        let spec = MaclaurinSpec { statistics, ..spec.clone() };
        attempt(0.5, || spec.resolve_single(rows.view()))
    };
    let pairwise = time(Statistics::Pairwise)?;
    let one_pass = time(Statistics::OnePass)?;
    bench.at("features")?;
    let map = spec.resolve_single(rows.view())?.build::<f32>(DIM)?;
    let mut out = Array2::zeros((n, map.output_dim()));
    let transform = attempt(0.5, || map.transform_into(rows.view(), out.view_mut()))?;
    let reference = "allocation from all pairs";
    bench.line(Line::time("allocation from one pass", one_pass, reference, pairwise, Bar::AtMost(0.1)))?;
    let case = format!("allocation from all pairs, {} x {DIM} f32, budget {}", count(n), count(n_components));
    let peer = bench.peer("numpy's products of all pairs", "all_pairs", &[&n, &DIM])?;
    bench.lines(beside(&peer, Line::alone(&case, Cell::duration(pairwise)), |name, theirs| {
        Line::time(&case, pairwise, name, theirs, Bar::AtMost(2.0))
    }))?;
    bench.line(Line::alone("features of the same rows", Cell::duration(transform)))?;
    Ok(())
}

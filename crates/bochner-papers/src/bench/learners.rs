//! Models: ridge, conjugate gradients, Gaussian processes, exact kernel ridge, growth with rows.

use super::growth::{Drawn, peak_memory};
use super::{Bar, Bench, Line, Measure};
use bochner::feature::{Describe, Directions, DynMap, FeatureMap, FourierSpec};
use bochner::kernel::Gaussian;
use bochner::model::exact::{ExactSolver, KernelRidge};
use bochner::model::{Fit, GpClassifier, GpRegressor, Ridge, RidgeClassifier};
use bochner::rows::{InMemory, RowBlock, RowSource};
use bochner::solve::{ConjugateGradients, Preconditioner, Solver};
use bochner::words::count;
use bochner_table::failure::Outcome;
use ndarray::Array2;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

const CLASSES: usize = 10;

/// Rows of [`Drawn`] with the number of a class as target.
struct Labelled(Drawn);

impl RowSource<f32> for Labelled {
    fn input_dim(&self) -> usize {
        self.0.input_dim()
    }

    fn target_dim(&self) -> usize {
        1
    }

    fn len_hint(&self) -> Option<usize> {
        self.0.len_hint()
    }

    fn for_each_block(
        &mut self,
        visit: &mut dyn FnMut(RowBlock<'_, f32>) -> bochner::Result<()>,
    ) -> bochner::Result<()> {
        self.0.for_each_block(&mut |block| {
            // Tenths of the turn of a random angle: classes of equal size that features can tell apart.
            let labels = Array2::from_shape_fn((block.rows.nrows(), 1), |(i, _)| {
                let turn = f64::from(block.rows[[i, 0]]).atan2(f64::from(block.rows[[i, 1]])) / std::f64::consts::TAU;
                (((turn + 0.5) * CLASSES as f64) as usize).min(CLASSES - 1) as f32
            });
            visit(RowBlock { targets: labels.view(), ..block })
        })
    }
}

fn map(features: usize) -> Outcome<DynMap<f32>> {
    let projection = Directions::Sorf;
    let spec = FourierSpec { n_components: features, length_scale: 8.0.into(), projection, ..Default::default() };
    Ok(spec.build::<f32>(super::growth::DIM)?)
}

/// Starts the count of the largest memory afresh, where the system lets us.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn timed<T>(work: impl FnOnce() -> bochner::Result<T>) -> Outcome<f64> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed().as_secs_f64())
}

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    ridge(bench, &mut lines)?;
    conjugate_gradients(bench, &mut lines)?;
    processes(bench, &mut lines)?;
    growth(bench, &mut lines)?;
    exact(bench, &mut lines)?;
    Ok(lines)
}

fn ridge(bench: &Bench<'_>, lines: &mut Vec<Line>) -> Outcome<()> {
    let (rows, features) = if bench.full { (60_000, 8192) } else { (8192, 1024) };
    let case = format!("ridge classifier, {} x {} f32, 10 outputs", count(rows), count(features));
    bench.progress.at(case.clone().into())?;
    let ridge = Ridge::new(map(features)?, 1.0)?.with_solver(Solver::Cholesky);
    let classifier = RidgeClassifier::new(ridge).with_classes(CLASSES)?;
    forget_peak();
    let ours = timed(|| classifier.fit_stream(&mut Labelled(Drawn { rows }), &mut bochner::Context::default()))?;
    let peak = peak_memory();
    match bench.peers {
        Some(peers) => {
            bench.progress.at("numpy and scipy".into())?;
            for (name, theirs) in peers.time("ridge", &[rows.to_string(), features.to_string()])? {
                lines.push(Line::time(&case, ours, &name, theirs, Bar::AtMost(1.25)));
            }
        }
        None => lines.push(Line::alone(&case, Measure::Seconds(ours))),
    }
    if let Some(peak) = peak {
        // A square of the size of the features in f32: what the peers hold besides the features.
        let allowed = 4.0 * (features * features) as f64 + 300e6;
        let name = "Gram in f32 + 300 MB";
        lines.push(Line::speed(format!("{case}: peak memory"), peak, name, allowed, "B", Bar::AtMost(1.0)));
    }
    Ok(())
}

fn conjugate_gradients(bench: &Bench<'_>, lines: &mut Vec<Line>) -> Outcome<()> {
    let (rows, features) = if bench.full { (60_000, 100_000) } else { (8192, 10_000) };
    let case = format!("conjugate gradients, {} x {} f32, 10 outputs", count(rows), count(features));
    bench.progress.at(case.clone().into())?;
    let map = map(features)?;
    let mut block = Array2::from_elem((1024, features), 0.0f32);
    let generate = timed(|| {
        Drawn { rows }.for_each_block(&mut |rows| {
            for start in (0..rows.rows.nrows()).step_by(1024) {
                let end = (start + 1024).min(rows.rows.nrows());
                let out = block.slice_mut(ndarray::s![..end - start, ..]);
                map.transform_into(rows.rows.slice(ndarray::s![start..end, ..]), out)?;
            }
            Ok(())
        })
    })?;
    drop(block);
    let options =
        ConjugateGradients { tolerance: Some(1e-12), max_iterations: 3, preconditioner: Preconditioner::None };
    let ridge = Ridge::new(map, 1.0)?.with_solver(Solver::ConjugateGradients(options));
    let classifier = RidgeClassifier::new(ridge).with_classes(CLASSES)?;
    // A step is a pass: from the end of one to the end of the next, vectors included.
    let ends: Arc<Mutex<Vec<Instant>>> = Arc::default();
    forget_peak();
    let list = ends.clone();
    let mut context = bochner::Context::default().with_progress(move |at| {
        if at.done > 0 && at.done.is_multiple_of(rows) {
            list.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        }
    });
    match classifier.fit_stream(&mut Labelled(Drawn { rows }), &mut context) {
        Ok(_) | Err(bochner::Error::NotConverged { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
    let steps: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    let mut sorted = steps;
    sorted.sort_by(f64::total_cmp);
    if let Some(step) = sorted.get(sorted.len() / 2) {
        lines.push(Line::time(format!("{case}: one step"), *step, "one pass of features", generate, Bar::AtMost(2.5)));
    }
    if let Some(peak) = peak_memory() {
        lines.push(Line::speed(format!("{case}: peak memory"), peak, "20 GB", 20e9, "B", Bar::AtMost(1.0)));
    }
    Ok(())
}

fn processes(bench: &Bench<'_>, lines: &mut Vec<Line>) -> Outcome<()> {
    let (rows, features) = if bench.full { (60_000, 2048) } else { (8192, 512) };
    let case = format!("Gaussian-process classification, 10 classes, {} x {} f32", count(rows), count(features));
    bench.progress.at(case.clone().into())?;
    let regression = GpRegressor::new(map(features)?, 0.1)?;
    let classification = GpClassifier::new(map(features)?, 0.01)?.with_classes(CLASSES)?;
    // Once each to warm up on few rows, then in turn.
    regression.fit_stream(&mut Drawn { rows: 1024 }, &mut bochner::Context::default())?;
    let single = timed(|| regression.fit_stream(&mut Drawn { rows }, &mut bochner::Context::default()))?;
    let many = timed(|| classification.fit_stream(&mut Labelled(Drawn { rows }), &mut bochner::Context::default()))?;
    lines.push(Line::time(case, many, "regression of the same size", single, Bar::AtMost(3.5)));
    Ok(())
}

fn growth(bench: &Bench<'_>, lines: &mut Vec<Line>) -> Outcome<()> {
    let (few, many) = if bench.full { (100_000, 1_000_000) } else { (10_000, 100_000) };
    let process = GpRegressor::new(map(512)?, 0.1)?;
    let mut figures = Vec::new();
    for rows in [few, many] {
        bench.progress.at(format!("Gaussian-process regression on {} rows", count(rows)).into())?;
        forget_peak();
        figures.push((
            timed(|| process.fit_stream(&mut Drawn { rows }, &mut bochner::Context::default()))?,
            peak_memory(),
        ));
    }
    let case = format!("Gaussian-process regression, D = 512, {} rows", count(many));
    lines.push(Line::time(
        format!("{case}: time"),
        figures[1].0,
        "ten times a tenth",
        10.0 * figures[0].0,
        Bar::AtMost(1.1),
    ));
    if let (Some(memory), Some(more)) = (figures[0].1, figures[1].1) {
        lines.push(Line::speed(format!("{case}: peak memory"), more, "a tenth", memory, "B", Bar::AtMost(1.05)));
    }
    Ok(())
}

fn exact(bench: &Bench<'_>, lines: &mut Vec<Line>) -> Outcome<()> {
    let rows = if bench.full { 60_000 } else { 4096 };
    let case = format!("exact kernel ridge by conjugate gradients, {} rows", count(rows));
    bench.progress.at(case.clone().into())?;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    Drawn { rows }.for_each_block(&mut |block| {
        x.extend(block.rows.iter().map(|v| f64::from(*v)));
        y.extend(block.targets.iter().map(|v| f64::from(*v)));
        Ok(())
    })?;
    let x = Array2::from_shape_vec((rows, super::growth::DIM), x).expect("rows times d numbers");
    let y = Array2::from_shape_vec((rows, 1), y).expect("one number per row");
    let options = ConjugateGradients { tolerance: Some(1e-4), ..ConjugateGradients::default() };
    let ridge =
        KernelRidge::new(Arc::new(Gaussian::new(8.0)?), 1.0)?.with_solver(ExactSolver::ConjugateGradients(options));
    let mut context = bochner::Context::default().with_memory_budget(9_000_000_000)?;
    forget_peak();
    let seconds = timed(|| ridge.fit_stream(&mut InMemory::new(x.view(), y.view())?, &mut context))?;
    lines.push(Line::alone(format!("{case}: time"), Measure::Seconds(seconds)));
    if let Some(peak) = peak_memory() {
        lines.push(Line::speed(format!("{case}: peak memory"), peak, "20 GB", 20e9, "B", Bar::AtMost(1.0)));
    }
    Ok(())
}

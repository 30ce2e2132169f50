//! Models: ridge, conjugate gradients, Gaussian processes, exact kernel ridge, growth with rows.

use super::growth::{DIM, Drawn, map};
use super::*;
use bochner::kernel::Gaussian;
use bochner::model::exact::{ExactSolver, KernelRidge};
use bochner::model::{GpClassifier, GpRegressor, RidgeClassifier};
use bochner::rows::InMemory;
use bochner::solve::{ConjugateGradients, Preconditioner, Solver};
use std::sync::{Arc, Mutex, PoisonError};

const CLASSES: usize = 10;

/// Rows of [`Drawn`] with the number of a class as target.
struct Labeled(Drawn);

impl RowSource<f32> for Labeled {
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

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    ridge(bench)?;
    conjugate_gradients(bench)?;
    processes(bench)?;
    growth(bench)?;
    exact(bench)?;
    Ok(())
}

fn ridge(bench: &Bench<'_>) -> Outcome {
    let (rows, features) = bench.size((60_000, 8192), (8192, 1024));
    let case = format!("ridge classifier, {} x {} f32, 10 outputs", count(rows), count(features));
    bench.at(&case)?;
    let ridge = Ridge::new(map(features)?, 1.0)?.with_solver(Solver::Cholesky);
    let classifier = RidgeClassifier::new(ridge).with_classes(CLASSES)?;
    forget_peak();
    let ours = once(|| classifier.fit_stream(&mut Labeled(Drawn { rows }), &mut Context::default()))?;
    // A square of the size of the features in f32: what the peers hold besides the features.
    let allowed = 4.0 * (features * features) as f64 + 300e6;
    let memory = Line::memory(&case, peak_memory(), "Gram in f32 + 300 MB", Some(allowed), 1.0);
    let peer = bench.peer("numpy and scipy", "ridge", &[&rows, &features])?;
    bench.lines(beside(&peer, Line::alone(&case, Cell::duration(ours)), |name, theirs| {
        Line::time(&case, ours, name, theirs, Bar::AtMost(1.25))
    }))?;
    bench.lines(memory)?;
    Ok(())
}

fn conjugate_gradients(bench: &Bench<'_>) -> Outcome {
    let (rows, features) = bench.size((60_000, 100_000), (8192, 10_000));
    let case = format!("conjugate gradients, {} x {} f32, 10 outputs", count(rows), count(features));
    bench.at(&case)?;
    let map = map(features)?;
    let mut block = Array2::from_elem((1024, features), 0.0f32);
    let generate = once(|| {
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
    let mut context = Context::default().with_progress(move |at| {
        if at.done > 0 && at.done.is_multiple_of(rows) {
            list.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        }
    });
    match classifier.fit_stream(&mut Labeled(Drawn { rows }), &mut context) {
        Ok(_) | Err(bochner::Error::NotConverged { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
    let mut steps: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    steps.sort_by(f64::total_cmp);
    if let Some(step) = steps.get(steps.len() / 2) {
        bench.line(Line::time(
            format!("{case}: one step"),
            *step,
            "one pass of features",
            generate,
            Bar::AtMost(2.5),
        ))?;
    }
    bench.lines(Line::memory(&case, peak_memory(), "20 GB", Some(20e9), 1.0))?;
    Ok(())
}

fn processes(bench: &Bench<'_>) -> Outcome {
    let (rows, features) = bench.size((60_000, 2048), (8192, 512));
    let case = format!("Gaussian-process classification, 10 classes, {} x {} f32", count(rows), count(features));
    bench.at(&case)?;
    let regression = GpRegressor::new(map(features)?, 0.1)?;
    let classification = GpClassifier::new(map(features)?, 0.01)?.with_classes(CLASSES)?;
    // Once each to warm up on few rows, then in turn.
    regression.fit_stream(&mut Drawn { rows: 1024 }, &mut Context::default())?;
    let single = once(|| regression.fit_stream(&mut Drawn { rows }, &mut Context::default()))?;
    let many = once(|| classification.fit_stream(&mut Labeled(Drawn { rows }), &mut Context::default()))?;
    bench.line(Line::time(case, many, "regression of the same size", single, Bar::AtMost(3.5)))?;
    Ok(())
}

fn growth(bench: &Bench<'_>) -> Outcome {
    let (few, many) = bench.size((100_000, 1_000_000), (10_000, 100_000));
    let process = GpRegressor::new(map(512)?, 0.1)?;
    let mut figures = Vec::new();
    for rows in [few, many] {
        bench.at(format!("Gaussian-process regression on {} rows", count(rows)))?;
        forget_peak();
        let time = once(|| process.fit_stream(&mut Drawn { rows }, &mut Context::default()))?;
        figures.push((time, peak_memory()));
    }
    let [(short, memory), (long, more)] = figures[..] else { return Ok(()) };
    let case = format!("Gaussian-process regression, D = 512, {} rows", count(many));
    bench.line(Line::time(format!("{case}: time"), long, "ten times a tenth", 10.0 * short, Bar::AtMost(1.1)))?;
    bench.lines(Line::memory(&case, more, "a tenth", memory, 1.05))?;
    Ok(())
}

fn exact(bench: &Bench<'_>) -> Outcome {
    let rows = bench.size(60_000, 4096);
    let case = format!("exact kernel ridge by conjugate gradients, {} rows", count(rows));
    bench.at(&case)?;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    Drawn { rows }.for_each_block(&mut |block| {
        x.extend(block.rows.iter().map(|v| f64::from(*v)));
        y.extend(block.targets.iter().map(|v| f64::from(*v)));
        Ok(())
    })?;
    let x = Array2::from_shape_vec((rows, DIM), x).expect("rows times d numbers");
    let y = Array2::from_shape_vec((rows, 1), y).expect("one number per row");
    let options = ConjugateGradients { tolerance: Some(1e-4), ..ConjugateGradients::default() };
    let ridge =
        KernelRidge::new(Arc::new(Gaussian::new(8.0)?), 1.0)?.with_solver(ExactSolver::ConjugateGradients(options));
    let mut context = Context::default().with_memory_budget(9_000_000_000)?;
    forget_peak();
    let seconds = once(|| ridge.fit_stream(&mut InMemory::new(x.view(), y.view())?, &mut context))?;
    bench.line(Line::alone(format!("{case}: time"), Cell::duration(seconds)))?;
    bench.lines(Line::memory(&case, peak_memory(), "20 GB", Some(20e9), 1.0))?;
    Ok(())
}

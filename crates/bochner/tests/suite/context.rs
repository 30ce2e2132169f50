//! Long work that is stopped, and what it tells on its way.

use bochner::context::Progress;
use bochner::feature::{Describe, DynMap, FourierSpec, MaclaurinSpec, OperatorSpec};
use bochner::kernel::{Gaussian, OperatorKernel};
use bochner::model::exact::{ExactGpClassifier, ExactGpRegressor, ExactSolver, KernelRidge};
use bochner::model::{
    ExactOperatorRidge, Fit, GpClassifier, GpRegressor, KernelSvm, LocalGp, OperatorRidge, OperatorRidgeClassifier,
    OperatorSolver, Ridge, RidgeClassifier, SviClassifier, Svm,
};
use bochner::rows::{Coding, InMemory, RowBlock, RowSource};
use bochner::solve::{ConjugateGradients, Preconditioner, Solver, StochasticGradient};
use bochner::{Context, Error, Result};
use ndarray::Array2;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const ROWS: usize = 120;
const BLOCK: usize = 25;

/// Rows with targets, that raise a flag after so many blocks of all passes.
struct Stopping<'a> {
    source: InMemory<'a, f64>,
    stop: Arc<AtomicBool>,
    after: usize,
    delivered: usize,
}

impl RowSource<f64> for Stopping<'_> {
    fn input_dim(&self) -> usize {
        self.source.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.source.target_dim()
    }

    fn len_hint(&self) -> Option<usize> {
        self.source.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, f64>) -> Result<()>) -> Result<()> {
        let Stopping { source, stop, after, delivered } = self;
        source.for_each_block(&mut |block| {
            *delivered += 1;
            if delivered == after {
                stop.store(true, Ordering::Relaxed);
            }
            visit(block)
        })
    }
}

/// What is fitted: the columns of targets it takes, bytes of memory, and the fit.
struct Job<'a> {
    name: &'static str,
    targets: &'a Array2<f64>,
    bytes: Option<u64>,
    fit: Box<dyn Fn(&mut dyn RowSource<f64>, &mut Context<'_>) -> Result<()> + 'a>,
}

impl Job<'_> {
    fn context(&self) -> Context<'static> {
        let context = Context::default();
        match self.bytes {
            Some(bytes) => context.with_memory_budget(bytes).unwrap(),
            None => context,
        }
    }
}

struct Data {
    rows: Array2<f64>,
    values: Array2<f64>,
    field: Array2<f64>,
    labels: Array2<f64>,
}

fn data() -> Data {
    let rows = Array2::from_shape_fn((ROWS, 2), |(i, j)| (0.37 * (i * (j + 2) + j) as f64).sin() * 2.0);
    let values = Array2::from_shape_fn((ROWS, 1), |(i, _)| (rows[[i, 0]] * rows[[i, 1]]).sin());
    let field = Array2::from_shape_fn((ROWS, 2), |(i, j)| rows[[i, 1 - j]].sin());
    let labels = Array2::from_shape_fn((ROWS, 1), |(i, _)| (2.5 * rows[[i, 0]] + rows[[i, 1]]).rem_euclid(3.0).floor());
    Data { rows, values, field, labels }
}

fn jobs(data: &Data) -> Vec<Job<'_>> {
    let map: DynMap<f64> =
        FourierSpec { n_components: 24, length_scale: 0.8.into(), ..Default::default() }.build::<f64>(2).unwrap();
    let kernel = Arc::new(Gaussian::new(0.8).unwrap());
    let field = OperatorKernel::div_free(0.9).unwrap();
    let features = OperatorSpec { n_components: 12, ..OperatorSpec::new(field.clone()) }.build::<f64>(2).unwrap();
    let related = OperatorSpec { n_components: 12, ..OperatorSpec::new(field.clone()) }.build::<f64>(2).unwrap();
    let cg = ConjugateGradients { preconditioner: Preconditioner::None, ..ConjugateGradients::default() };
    let sgd = StochasticGradient { passes: 4, rank: 4 };
    let spec = MaclaurinSpec { n_components: 20, length_scale: 0.8.into(), ..Default::default() };
    let mut jobs = Vec::new();
    fn add<'a, F: Fit<Real = f64> + 'a>(
        jobs: &mut Vec<Job<'a>>,
        name: &'static str,
        targets: &'a Array2<f64>,
        bytes: Option<u64>,
        fit: F,
    ) {
        let fit = move |source: &mut dyn RowSource<f64>, context: &mut Context<'_>| {
            fit.fit_stream(source, context).map(|_| ())
        };
        jobs.push(Job { name, targets, bytes, fit: Box::new(fit) });
    }
    let ridge = |solver| Ridge::new(map.clone(), 0.05).unwrap().with_solver(solver);
    for (name, solver, bytes) in [
        ("ridge by Cholesky", Solver::Cholesky, None),
        ("ridge in dual form", Solver::Dual, None),
        ("ridge by conjugate gradients", Solver::ConjugateGradients(cg), None),
        ("ridge by stochastic gradients", Solver::StochasticGradient(sgd), None),
        ("ridge on features that are kept", Solver::ConjugateGradients(cg), Some(1 << 30)),
    ] {
        add(&mut jobs, name, &data.values, bytes, ridge(solver));
    }
    add(&mut jobs, "classes by ridge", &data.labels, None, RidgeClassifier::new(ridge(Solver::Auto)));
    add(&mut jobs, "Gaussian process", &data.values, None, GpRegressor::new(map.clone(), 0.1).unwrap());
    add(&mut jobs, "classes by Gaussian process", &data.labels, None, GpClassifier::new(map.clone(), 0.1).unwrap());
    let svi = SviClassifier::new(map.clone(), 4.0).unwrap().with_passes(3).unwrap();
    add(&mut jobs, "variational inference", &data.labels, None, svi);
    let svm = Svm::new(map.clone(), 10.0).unwrap().with_max_epochs(40).unwrap();
    add(&mut jobs, "machines in memory", &data.labels, None, svm.clone());
    add(&mut jobs, "machines in blocks", &data.labels, Some(1), svm);
    let operator = |solver| OperatorRidge::new(features.clone(), 0.05).unwrap().with_solver(solver).unwrap();
    for (name, solver, bytes) in [
        ("field by Cholesky", OperatorSolver::Cholesky, None),
        ("field by conjugate gradients", OperatorSolver::ConjugateGradients(cg), None),
        ("field by conjugate gradients on rows", OperatorSolver::ConjugateGradients(cg), Some(1)),
        ("field by stochastic gradients", OperatorSolver::StochasticGradient(sgd), None),
    ] {
        add(&mut jobs, name, &data.field, bytes, operator(solver));
    }
    let coded = OperatorRidge::new(related, 0.05).unwrap();
    add(&mut jobs, "classes by field", &data.labels, None, OperatorRidgeClassifier::new(coded, Coding::Simplex));
    let exact = KernelRidge::new(kernel.clone(), 0.1).unwrap();
    add(&mut jobs, "kernel ridge", &data.values, None, exact.clone());
    let iterated = exact.with_solver(ExactSolver::ConjugateGradients(cg));
    add(&mut jobs, "kernel ridge by conjugate gradients", &data.values, None, iterated);
    add(&mut jobs, "exact process", &data.values, None, ExactGpRegressor::new(kernel.clone(), 0.1).unwrap());
    add(&mut jobs, "classes by exact process", &data.labels, None, ExactGpClassifier::new(kernel, 0.1).unwrap());
    let exact = ExactOperatorRidge::new(field, 0.1).unwrap();
    add(&mut jobs, "exact field", &data.field, None, exact.clone());
    add(&mut jobs, "exact field by conjugate gradients", &data.field, None, exact.with_conjugate_gradients(cg));
    let machine = KernelSvm::new(Gaussian::new(1.0).unwrap(), 100.0).unwrap();
    add(&mut jobs, "kernel machines", &data.labels, None, machine);
    add(&mut jobs, "local processes", &data.values, None, LocalGp::new(spec, 0.1).unwrap());
    jobs
}

#[test]
fn a_fit_that_is_stopped_says_so_and_reads_no_further() {
    let data = data();
    for job in jobs(&data) {
        let name = job.name;
        for after in [1, 2, 5, 7, 11, 16] {
            let stop = Arc::new(AtomicBool::new(false));
            let source = InMemory::new(data.rows.view(), job.targets.view()).unwrap().with_block_rows(BLOCK).unwrap();
            let mut source = Stopping { source, stop: stop.clone(), after, delivered: 0 };
            let outcome = (job.fit)(&mut source, &mut job.context().with_stop(stop));
            if source.delivered < after {
                outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
                continue;
            }
            assert!(matches!(outcome, Err(Error::Interrupted)), "{name}, stopped at block {after}: {outcome:?}");
            assert_eq!(source.delivered, after, "{name} reads on");
        }
    }
}

#[test]
fn a_fit_is_stopped_wherever_it_is() {
    let data = data();
    for job in jobs(&data) {
        // Told of so many steps, the listener raises the flag: between rows that are read, made, multiplied or factorised.
        for after in [1, 3, 8, 20] {
            let stop = Arc::new(AtomicBool::new(false));
            let told = Arc::new(Mutex::new(0));
            let (flag, count) = (stop.clone(), told.clone());
            let mut context = job.context().with_stop(stop).with_progress(move |_| {
                let mut count = count.lock().unwrap();
                *count += 1;
                if *count == after {
                    flag.store(true, Ordering::Relaxed);
                }
            });
            let mut source =
                InMemory::new(data.rows.view(), job.targets.view()).unwrap().with_block_rows(BLOCK).unwrap();
            let outcome = (job.fit)(&mut source, &mut context);
            let told = *told.lock().unwrap();
            // At the end, where it is told that all is done, nothing is left to be stopped.
            assert!(told <= after || outcome.is_ok(), "{}: told {told} times, of {after}", job.name);
            let stopped = matches!(outcome, Err(Error::Interrupted));
            assert!(stopped || outcome.is_ok() && told <= after, "{}: {outcome:?}", job.name);
        }
    }
}

#[test]
fn progress_has_one_total_and_reaches_it() {
    let data = data();
    for job in jobs(&data) {
        let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
        let list = told.clone();
        let mut context = job.context().with_progress(move |at| list.lock().unwrap().push(at));
        let mut source = InMemory::new(data.rows.view(), job.targets.view()).unwrap().with_block_rows(BLOCK).unwrap();
        (job.fit)(&mut source, &mut context).unwrap();
        let told = told.lock().unwrap();
        assert!(told.len() > 2, "{}: {told:?}", job.name);
        assert!(told.iter().all(|at| at.total == told[0].total), "{}: {told:?}", job.name);
        assert!(told.windows(2).all(|pair| pair[0].done < pair[1].done), "{}: {told:?}", job.name);
        let last = told[told.len() - 1];
        match last.total {
            Some(total) => assert_eq!(last.done, total, "{}", job.name),
            None => assert_eq!(job.name, "kernel machines"),
        }
    }
}

#[test]
fn contexts_serve_one_fit_after_another_and_stop_inside_others() {
    let data = data();
    let ridge = Ridge::new(crate::waves::columns::<f64>(2), 1.0).unwrap().with_solver(Solver::Cholesky);
    let source = || InMemory::new(data.rows.view(), data.values.view()).unwrap().with_block_rows(100).unwrap();
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let list = told.clone();
    let mut context = Context::default().with_progress(move |at| list.lock().unwrap().push(at));
    for _ in 0..2 {
        ridge.fit_stream(&mut source(), &mut context).unwrap();
        let done: Vec<usize> = told.lock().unwrap().drain(..).map(|at| at.done).collect();
        // Rows in two blocks, and the factor of two features.
        assert_eq!(done, [0, 100, 120, 122]);
    }
    let mut blocks = 0;
    context
        .read(&mut source(), &mut |_| {
            blocks += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(blocks, 2);
    assert_eq!(told.lock().unwrap().last(), Some(&Progress { done: 120, total: Some(120) }));
    // A fit without a flag of its own has that of the job it is part of.
    let stop = Arc::new(AtomicBool::new(true));
    let outer = Context::default().with_stop(stop);
    assert!(matches!(outer.run(|| Ok(ridge.fit(data.rows.view(), data.values.view()))), Err(Error::Interrupted)));
    let apart = || Context::default().with_stop(Arc::default());
    let inner = |inside: &mut bool| {
        *inside = ridge.fit_stream(&mut source(), &mut apart()).is_ok();
        Ok(())
    };
    let mut finished = false;
    assert!(outer.run(|| inner(&mut finished)).is_err() && finished);
}

/// Something that only a source can know.
#[derive(Debug, thiserror::Error)]
#[error("the tape is torn")]
struct Torn;

struct Tape;

impl RowSource<f64> for Tape {
    fn input_dim(&self) -> usize {
        2
    }

    fn target_dim(&self) -> usize {
        1
    }

    fn for_each_block(&mut self, _: &mut dyn FnMut(RowBlock<'_, f64>) -> Result<()>) -> Result<()> {
        Err(Error::Source(Box::new(Torn)))
    }
}

#[test]
fn what_a_source_fails_of_comes_back() {
    let ridge = Ridge::new(crate::waves::columns::<f64>(2), 1.0).unwrap();
    let error = ridge.fit_stream(&mut Tape, &mut Context::default()).unwrap_err();
    assert_eq!(error.to_string(), "the tape is torn");
    let Error::Source(inner) = error else { panic!("{error}") };
    assert!(inner.is::<Torn>());
}

/// Rows of which there are others in every later pass than in the first.
struct Changing<'a> {
    first: InMemory<'a, f64>,
    later: InMemory<'a, f64>,
    passes: usize,
}

impl RowSource<f64> for Changing<'_> {
    fn input_dim(&self) -> usize {
        self.first.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.first.target_dim()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, f64>) -> Result<()>) -> Result<()> {
        self.passes += 1;
        if self.passes == 1 { &mut self.first } else { &mut self.later }.for_each_block(visit)
    }
}

#[test]
fn the_second_pass_has_as_many_rows_as_the_first() {
    let data = data();
    let mut several = 0;
    for job in jobs(&data) {
        let part = |n: usize| {
            let part = ndarray::s![..n, ..];
            InMemory::new(data.rows.slice(part), job.targets.slice(part)).unwrap().with_block_rows(BLOCK).unwrap()
        };
        for (first, later) in [(ROWS, ROWS - 40), (ROWS - 40, ROWS), (ROWS, ROWS - 1)] {
            let mut source = Changing { first: part(first), later: part(later), passes: 0 };
            let outcome = (job.fit)(&mut source, &mut job.context());
            if source.passes == 1 {
                outcome.unwrap();
                continue;
            }
            several += 1;
            let error = outcome.expect_err(job.name).to_string();
            let told = format!("{first} rows in the first pass, ");
            assert!(error.starts_with("the source changed") && error.contains(&told), "{}: {error}", job.name);
        }
    }
    assert!(several >= 20, "{several} fits read their rows more than once");
}

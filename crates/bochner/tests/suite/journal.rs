//! Fits that are broken off and taken up again.

use bochner::context::Journal;
use bochner::feature::{Describe, FourierSpec, MaclaurinSpec, OperatorSpec};
use bochner::kernel::{Gaussian, OperatorKernel};
use bochner::model::{Fit, KernelSvm, LocalGp, OperatorRidge, OperatorSolver, Predict, Ridge, SviClassifier, Svm};
use bochner::rows::InMemory;
use bochner::solve::{ConjugateGradients, Preconditioner, Solver, StochasticGradient};
use bochner::{Context, Error, Result};
use ndarray::{Array2, ArrayView2};
use std::collections::VecDeque;

/// A journal in memory; the run is broken off when it has made `left` entries.
#[derive(Debug, Default)]
struct Breaking {
    recorded: Vec<Array2<f64>>,
    recalled: VecDeque<Array2<f64>>,
    left: usize,
    /// Whether a state replaces what was recorded before it.
    forgets: bool,
}

impl Breaking {
    fn resumed(&mut self, left: usize) {
        (self.recalled, self.left) = (self.recorded.clone().into(), left);
    }

    fn count(&mut self) -> Result<()> {
        self.left = self.left.checked_sub(1).ok_or(Error::Interrupted)?;
        Ok(())
    }
}

impl Journal for Breaking {
    fn recall(&mut self) -> Result<Option<Array2<f64>>> {
        Ok(self.recalled.pop_front())
    }

    fn record(&mut self, entry: ArrayView2<'_, f64>) -> Result<()> {
        self.count()?;
        self.recorded.push(entry.to_owned());
        Ok(())
    }

    fn keep(&mut self, state: ArrayView2<'_, f64>) -> Result<()> {
        self.count()?;
        if self.forgets {
            self.recorded.clear();
        }
        self.recorded.push(state.to_owned());
        Ok(())
    }
}

/// A fit and what it predicts.
type Run<'a> = Box<dyn Fn(&mut dyn Journal) -> Result<Array2<f64>> + 'a>;

/// Predictions of a fit, broken off after every `every` entries and resumed until it ends; and how often it was.
fn broken(fit: &Run<'_>, every: usize, forgets: bool) -> (Array2<f64>, usize) {
    let mut journal = Breaking { forgets, ..Breaking::default() };
    for breaks in 0..1000 {
        journal.resumed(every);
        match fit(&mut journal) {
            Err(Error::Interrupted) => {}
            ended => return (ended.unwrap(), breaks),
        }
    }
    panic!("a run makes no progress");
}

fn rows() -> Array2<f64> {
    Array2::from_shape_fn((300, 2), |(i, j)| (0.37 * (i * (j + 2) + j) as f64).sin() * 2.0)
}

fn fitted<F: Fit<Real = f64>>(fit: &F, targets: &Array2<f64>, mut context: Context<'_>) -> Result<F::Model> {
    fit.fit_stream(&mut InMemory::new(rows().view(), targets.view())?, &mut context)
}

#[test]
fn fits_that_are_broken_off_and_resumed_end_with_the_same_bits() {
    let x = rows();
    let y = x.map_axis(ndarray::Axis(1), |r| (r[0] * r[1]).sin()).insert_axis(ndarray::Axis(1));
    let classes = x.map_axis(ndarray::Axis(1), |r| f64::from(u8::from(r[0] > 0.3))).insert_axis(ndarray::Axis(1));
    let field = Array2::from_shape_fn((300, 2), |(i, j)| x[[i, 1 - j]].sin());
    let map = FourierSpec { n_components: 24, length_scale: 0.8.into(), ..Default::default() }.build::<f64>(2).unwrap();
    let ridge = |solver| Ridge::new(map.clone(), 0.01).unwrap().with_solver(solver);
    let sgd = StochasticGradient { passes: 5, rank: 4 };
    // Without a preconditioner it takes steps enough to be broken off.
    let cg = ConjugateGradients { preconditioner: Preconditioner::None, ..ConjugateGradients::default() };
    let kernel = OperatorKernel::div_free(0.9).unwrap();
    let features = OperatorSpec { n_components: 12, ..OperatorSpec::new(kernel) }.build::<f64>(2).unwrap();
    // In no memory at all rows are read in every pass.
    let operator = |solver| OperatorRidge::new(features.clone(), 0.05)?.with_solver(solver);
    let svi = SviClassifier::new(map.clone(), 4.0).unwrap().with_passes(6).unwrap();
    let spec = MaclaurinSpec { n_components: 20, length_scale: 0.8.into(), ..Default::default() };
    let local = LocalGp::new(spec, 0.1).unwrap();
    let by_ridge = |solver: Solver, journal: &mut dyn Journal| {
        fitted(&ridge(solver), &y, Context::default().with_journal(journal))?.predict(x.view())
    };
    // Three classes in stripes, which few steps do not tell apart.
    let labels = Array2::from_shape_fn((300, 1), |(i, _)| (2.5 * x[[i, 0]] + x[[i, 1]]).rem_euclid(3.0).floor());
    let svm = Svm::new(map.clone(), 10.0).unwrap().with_max_epochs(25).unwrap();
    let kernel_svm = KernelSvm::new(Gaussian::new(1.0).unwrap(), 1000.0).unwrap().with_max_steps(1500).unwrap();
    let by_svm = |context: Context<'_>| {
        let model = fitted(&svm, &labels, context)?;
        let mut values = Array2::zeros((300, 3));
        model.decide_into(x.view(), values.view_mut())?;
        Ok(values)
    };
    let by_operator = |solver: OperatorSolver, journal: &mut dyn Journal| {
        let context = Context::default().with_memory_budget(1)?.with_journal(journal);
        fitted(&operator(solver)?, &field, context)?.predict(x.view())
    };
    let fits: [(&str, Run<'_>); 9] = [
        ("conjugate gradients", Box::new(|j| by_ridge(Solver::ConjugateGradients(cg), j))),
        ("stochastic gradients", Box::new(|j| by_ridge(Solver::StochasticGradient(sgd), j))),
        ("tied stochastic gradients", Box::new(|j| by_operator(OperatorSolver::StochasticGradient(sgd), j))),
        ("tied conjugate gradients", Box::new(|j| by_operator(OperatorSolver::ConjugateGradients(cg), j))),
        (
            "variational inference",
            Box::new(|j| fitted(&svi, &classes, Context::default().with_journal(j))?.probabilities(x.view())),
        ),
        ("machines in memory", Box::new(|j| by_svm(Context::default().with_journal(j)))),
        ("machines in blocks", Box::new(|j| by_svm(Context::default().with_memory_budget(1)?.with_journal(j)))),
        (
            "kernel machines",
            Box::new(|j| fitted(&kernel_svm, &labels, Context::default().with_journal(j))?.decide(x.view())),
        ),
        ("local processes", Box::new(|j| fitted(&local, &y, Context::default().with_journal(j))?.predict(x.view()))),
    ];
    for (name, fit) in &fits {
        let (peace, breaks) = broken(fit, usize::MAX, false);
        assert_eq!(breaks, 0);
        for (every, forgets) in [(1, false), (2, false), (1, true), (3, true)] {
            let (found, breaks) = broken(fit, every, forgets);
            assert!(breaks > 0, "{name} was not broken off");
            assert_eq!(found, peace, "{name}, broken off after every {every} entries");
        }
    }
}

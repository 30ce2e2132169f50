//! How well a model does on rows it has not seen, and how sure that is.
//!
//! One measure of errors in numbers, wherever they are told: the mean squared error over the variance of the targets, both of the
//! same rows. It is `1 - R²`; 1 is what always answering with the mean reaches. The loss of a choice is the same measure of the
//! rows that judge it, and of the codes of classes where there are classes ([`loss_in_words`]).
//!
//! ```
//! use bochner_table::score::smallest;
//! assert_eq!(smallest(&[0.3, f64::NAN, 0.1, 0.1]), 2);
//! ```

use bochner::catalogue::Task;
use bochner::random::{Role, Seed, Stream};
use bochner::words;
use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure with its standard error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// `accuracy`, `R²`, `root mean squared error`.
    pub name: String,
    /// What was measured.
    pub value: f64,
    /// How far it would be off on other rows, about.
    pub standard_error: f64,
    /// What guessing without looking at the row would reach.
    pub baseline: Option<f64>,
    /// What a linear model of the same columns reaches on the same rows, where one was fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear: Option<f64>,
}

/// What the loss of a choice is, for people.
pub fn loss_in_words(task: Task) -> &'static str {
    match task {
        Task::Regression => "mean squared error over variance (1 - R²)",
        Task::Classification => "mean squared error of class codes over their variance",
    }
}

/// What guessing without looking at the row answers, for people.
pub fn guess_in_words(task: Task) -> &'static str {
    match task {
        Task::Regression => "the mean",
        Task::Classification => "the commonest class",
    }
}

impl Figure {
    const ACCURACY: &'static str = "accuracy";
    const R2: &'static str = "R²";

    fn task(&self) -> Task {
        if self.name == Self::ACCURACY { Task::Classification } else { Task::Regression }
    }

    /// Says that the model is no better than guessing, or not by two standard errors, if that is so.
    pub fn doubt(&self) -> Option<String> {
        let guess = match self.task() {
            Task::Classification => self.baseline?,
            Task::Regression => self.name.starts_with(Self::R2).then_some(0.0)?,
        };
        let better = self.value - guess;
        let how = match better <= 0.0 {
            true => "no better than",
            false if better < 2.0 * self.standard_error => "not clearly better than",
            false => return None,
        };
        let of = self.name.strip_prefix(Self::R2).unwrap_or_default();
        Some(format!("The model is {how} always answering with {}{of}.", guess_in_words(self.task())))
    }
    /// The figure with its error, and what guessing would reach.
    pub fn in_words(&self) -> String {
        let share = self.task() == Task::Classification;
        let number = |v: f64, digits: usize| match share {
            true => format!("{:.1} %", 100.0 * v),
            false => words::significant(v, digits),
        };
        let guess = guess_in_words(self.task());
        let guessed = self.baseline.map(|b| format!("always {guess}: {}", number(b, 4)));
        let linear = self.linear.map(|l| format!("a linear model: {}", number(l, 4)));
        let others: Vec<String> = guessed.into_iter().chain(linear).collect();
        let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join("; ")) };
        format!("{} {} ± {}{others}", self.name, number(self.value, 4), number(self.standard_error, 2))
    }
}

/// What a model says to rows with known answers.
#[derive(Debug)]
pub struct Compared {
    /// What the model learns.
    pub task: Task,
    /// Numbers of classes, or targets in their own units.
    pub truth: Array2<f64>,
    /// The same, predicted.
    pub predicted: Array2<f64>,
}

/// The first of the largest.
pub fn winner(row: ArrayView1<'_, f64>) -> usize {
    row.iter().enumerate().fold(0, |best, (i, v)| if *v > row[best] { i } else { best })
}

/// The first of the smallest losses; what is not a number is none.
pub fn smallest(losses: &[f64]) -> usize {
    let or_infinite = |loss: f64| if loss.is_nan() { f64::INFINITY } else { loss };
    (0..losses.len()).fold(0, |best, k| if or_infinite(losses[k]) < or_infinite(losses[best]) { k } else { best })
}

/// How a model compares with a linear one on the rows of the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// By how much a row's loss is smaller in the mean, as a share of the linear model's: squared errors over the variance of each
    /// target, or wrong classes.
    pub gain: f64,
    /// The difference of errors, which are not squared, over its standard error, row by row.
    pub z: f64,
}

/// Differences of means that chance explains in one case of twenty are below so many standard errors.
const CLEAR: f64 = 2.0;

impl Against {
    /// What it says about the model.
    pub fn in_words(&self) -> String {
        let share = words::significant(100.0 * self.gain.abs(), 2);
        match self.z {
            z if z > CLEAR => {
                format!("It is clearly better than a linear model, whose losses are {share} % smaller with it.")
            }
            z if z < -CLEAR => {
                "A linear model is clearly better: columns and targets may be related by straight lines.".into()
            }
            _ => "It is not clearly better than a linear model, which is simpler.".to_owned(),
        }
    }
}

const RESAMPLES: usize = 200;

impl Compared {
    /// The figures for this task: accuracy with its binomial error, or R² and root mean squared errors with bootstrap ones.
    pub fn figures(&self, seed: Seed, names: &[String]) -> Vec<Figure> {
        match self.task {
            _ if self.truth.is_empty() => Vec::new(),
            Task::Classification => vec![self.accuracy()],
            Task::Regression => {
                let targets = names.iter().enumerate().take(self.truth.ncols());
                targets.flat_map(|(j, name)| self.errors(j, name, seed)).collect()
            }
        }
    }

    /// How it compares with what a linear model predicts for the same rows.
    pub(crate) fn against(&self, linear: &Compared) -> Option<Against> {
        let n = self.truth.nrows();
        let units: Vec<f64> =
            self.truth.columns().into_iter().map(|t| Spread::of(t.iter().copied()).variance()).collect();
        let loss = |predicted: &Array2<f64>, i: usize| match self.task {
            Task::Classification => f64::from(u8::from(predicted[[i, 0]] != self.truth[[i, 0]])),
            Task::Regression => {
                let square =
                    |k: usize| (predicted[[i, k]] - self.truth[[i, k]]).powi(2) / units[k].max(f64::MIN_POSITIVE);
                (0..self.truth.ncols()).map(square).sum::<f64>()
            }
        };
        let (mut difference, mut mine, mut theirs) = (Spread::default(), 0.0, 0.0);
        for i in 0..n {
            let (own, other) = (loss(&self.predicted, i), loss(&linear.predicted, i));
            // Of squares a few rows would decide: their roots are compared.
            difference.push(other.sqrt() - own.sqrt());
            mine += own;
            theirs += other;
        }
        let error = (difference.squares / (n as f64 - 1.0).max(1.0) / n as f64).sqrt();
        (n > 1).then(|| Against {
            gain: if theirs > 0.0 { 1.0 - mine / theirs } else { 0.0 },
            z: if error > 0.0 { difference.mean / error } else { 0.0 },
        })
    }

    fn accuracy(&self) -> Figure {
        let n = self.truth.nrows() as f64;
        let right = self.truth.iter().zip(&self.predicted).filter(|(a, b)| a == b).count() as f64;
        // Agresti and Coull: two successes and two failures more, so that 100 % right is not 0 % unsure.
        let shrunk = (right + 2.0) / (n + 4.0);
        let mut counts = BTreeMap::<u64, usize>::new();
        self.truth.iter().for_each(|c| *counts.entry(*c as u64).or_default() += 1);
        let most = counts.values().max().copied().unwrap_or(0) as f64 / n;
        let standard_error = (shrunk * (1.0 - shrunk) / (n + 4.0)).sqrt();
        Figure { name: Figure::ACCURACY.into(), value: right / n, standard_error, baseline: Some(most), linear: None }
    }

    /// R², where the target is not constant, and the root mean squared error.
    fn errors(&self, column: usize, name: &str, seed: Seed) -> impl Iterator<Item = Figure> {
        let (n, truth, predicted) = (self.truth.nrows(), self.truth.column(column), self.predicted.column(column));
        let of = if self.truth.ncols() == 1 { String::new() } else { format!(" of {name}") };
        let both = |indices: &mut dyn Iterator<Item = usize>| errors(truth, predicted, indices);
        let (r2, rmse) = both(&mut (0..n));
        let mut draw = Stream::new(seed, Role::Split, 3);
        let resampled: Vec<(f64, f64)> = (0..RESAMPLES)
            .map(|_| both(&mut (0..n).map(|_| draw.below(n as u64) as usize)))
            .filter(|(r2, _)| r2.is_finite())
            .collect();
        let figure = |what: &str, value: f64, error: fn(&(f64, f64)) -> f64, baseline: Option<f64>| {
            let standard_error = deviation(resampled.iter().map(error));
            Figure { name: format!("{what}{of}"), value, standard_error, baseline, linear: None }
        };
        let share = r2.is_finite().then(|| figure(Figure::R2, r2, |p| p.0, None));
        let spread = Spread::of(truth.iter().copied()).variance().sqrt();
        let root = figure("root mean squared error", rmse, |p| p.1, Some(spread));
        share.into_iter().chain([root])
    }
}

/// `R²` and root mean squared error of some rows.
fn errors(
    truth: ArrayView1<'_, f64>,
    predicted: ArrayView1<'_, f64>,
    indices: &mut dyn Iterator<Item = usize>,
) -> (f64, f64) {
    let (mut spread, mut residual) = (Spread::default(), 0.0);
    for i in indices {
        spread.push(truth[i]);
        residual += (truth[i] - predicted[i]).powi(2);
    }
    let r2 = if spread.squares > 0.0 { 1.0 - residual / spread.squares } else { f64::NAN };
    (r2, (residual / spread.count).sqrt())
}

/// The standard deviation of what some rows are a sample of.
fn deviation(values: impl Iterator<Item = f64>) -> f64 {
    let spread = Spread::of(values);
    if spread.count > 1.0 { (spread.squares / (spread.count - 1.0)).sqrt() } else { 0.0 }
}

/// Numbers around their mean, one after the other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        values.fold(Spread::default(), |mut spread, value| {
            spread.push(value);
            spread
        })
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.count += 1.0;
        let step = value - self.mean;
        self.mean += step / self.count;
        self.squares += step * (value - self.mean);
    }

    /// The mean squared error of who always answers with the mean of these numbers.
    pub(crate) fn variance(&self) -> f64 {
        if self.count > 0.0 { self.squares / self.count } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_comes_with_its_binomial_error_and_the_share_of_the_largest_class() {
        let truth = Array2::from_shape_fn((100, 1), |(i, _)| if i < 70 { 0.0 } else { 1.0 });
        let predicted = Array2::from_shape_fn((100, 1), |(i, _)| if i < 90 { truth[[i, 0]] } else { 0.0 });
        let figures = Compared { task: Task::Classification, truth, predicted }.figures(Seed::new(1), &[]);
        assert_eq!((figures[0].value, figures[0].baseline), (0.9, Some(0.7)));
        assert!((figures[0].standard_error - 0.03).abs() < 0.004, "{}", figures[0].standard_error);
    }

    /// Once it was: the error of the mean was divided by one row less than R² was, and 1 - (error / error of the mean)² another
    /// number.
    #[test]
    fn r2_and_the_error_of_the_mean_are_one_measure() {
        let truth = Array2::from_shape_fn((7, 1), |(i, _)| (i * i) as f64);
        let predicted = truth.mapv(|v| v + if v > 20.0 { 3.0 } else { -1.0 });
        let figures = Compared { task: Task::Regression, truth, predicted }.figures(Seed::new(1), &["y".to_owned()]);
        let share = (figures[1].value / figures[1].baseline.unwrap()).powi(2);
        assert!((figures[0].value - (1.0 - share)).abs() < 1e-14);
    }

    #[test]
    fn a_linear_model_is_compared_row_by_row() {
        let truth = Array2::from_shape_fn((100, 1), |(i, _)| i as f64);
        let off = |by: &dyn Fn(usize) -> f64| {
            let predicted = Array2::from_shape_fn((100, 1), |(i, _)| truth[[i, 0]] + by(i));
            Compared { task: Task::Regression, truth: truth.clone(), predicted }
        };
        let (good, bad) = (off(&|i| if i % 2 == 0 { 1.0 } else { -1.0 }), off(&|i| if i % 4 < 2 { 2.0 } else { -3.0 }));
        let found = good.against(&bad).unwrap();
        // Squares 1 against 4 and 9 in turn: 5.5/6.5 less. Errors 1 against 2 and 3: the difference 1.5 has the deviation
        // 0.5 √(100/99).
        assert!((found.gain - 5.5 / 6.5).abs() < 1e-12);
        assert!((found.z - 1.5 / 0.5 * 99f64.sqrt()).abs() < 1e-9, "{}", found.z);
        assert!(found.in_words().contains("clearly better than a linear model"));
        assert!(bad.against(&good).unwrap().in_words().starts_with("A linear model is clearly better"));
        assert!(good.against(&good).unwrap().in_words().contains("not clearly better"));
    }

    #[test]
    fn guesses_are_doubted_and_what_beats_them_is_not() {
        let figure = |name: &str, value, baseline| Figure {
            name: name.into(),
            value,
            standard_error: 0.02,
            baseline,
            linear: None,
        };
        let said = |figure: Figure| figure.doubt().unwrap_or_default();
        let mean = "The model is no better than always answering with the mean of u.";
        assert_eq!(said(figure("R² of u", -0.1, None)), mean);
        let class = "The model is not clearly better than always answering with the commonest class.";
        assert_eq!(said(figure("accuracy", 0.73, Some(0.7))), class);
        assert_eq!(said(figure("accuracy", 0.75, Some(0.7))), "");
        assert_eq!(said(figure("R²", 0.05, None)), "");
        assert_eq!(said(figure("root mean squared error", 3.0, Some(2.0))), "");
    }

    #[test]
    fn the_bootstrap_error_of_a_mean_square_is_that_of_theory() {
        // Errors ±1 and 0 in turn: squares have mean 2/3 and variance 2/9; the delta method gives the root's error.
        let n = 3000;
        let truth = Array2::from_shape_fn((n, 1), |(i, _)| (i % 7) as f64);
        let predicted = Array2::from_shape_fn((n, 1), |(i, _)| truth[[i, 0]] + (i % 3) as f64 - 1.0);
        let names = ["y".to_owned()];
        let figures = Compared { task: Task::Regression, truth, predicted }.figures(Seed::new(1), &names);
        let rmse = (2.0f64 / 3.0).sqrt();
        assert!((figures[1].value - rmse).abs() < 1e-12);
        let expected = (2.0f64 / 9.0 / n as f64).sqrt() / (2.0 * rmse);
        // The standard deviation of 200 resamples has a relative error of 5 %: four and a half of them.
        assert!((figures[1].standard_error / expected - 1.0).abs() < 0.23, "{} {expected}", figures[1].standard_error);
        // Variance of 0, …, 6 is 4.
        assert!((figures[0].value - (1.0 - rmse * rmse / 4.0)).abs() < 1e-3);
    }
}

use crate::accumulate::Gram;
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_non_negative};
use crate::feature::{Describe, DynMap, Spec};
use crate::interrupt;
use crate::model::{Ridge, RidgeModel, class_losses, squared_losses};
use crate::random::{Role, Seed, Stream};
use crate::rows::{Coded, Coding, Counted, RowBlock, RowSource, count_classes};
use crate::scalar::Real;
use ndarray::Axis;
use serde_json::Value;
use std::fmt;

/// Which rows are held out to judge by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Split {
    /// This share of the rows, drawn at random.
    HeldOut(f64),
    /// Every row once, in this many parts.
    Folds(usize),
}

/// What the targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Numbers: losses are mean squared errors.
    Regression,
    /// Labels `0, 1, …` in a single column: losses are shares of wrong classes.
    Classification,
}

/// Search over descriptions of maps and penalties of ridge regression, judged on held-out rows.
///
/// For every description features are computed twice: once for the Gram matrices of all parts of the rows, and once for
/// predictions. The matrix without a part is the sum of the others, so that folds cost no more products than a single fit,
/// and all penalties share them. Memory: one Gram matrix per part and one more.
///
/// A row's part depends on its number and the seed alone, so sources of any length can be searched.
///
/// ```
/// use bochner::feature::FourierSpec;
/// use bochner::tune::{Search, Split, Task, grid};
/// use bochner::rows::InMemory;
/// use ndarray::Array2;
/// let rows = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 20.0);
/// let targets = rows.mapv(f64::sin);
/// let base = FourierSpec { n_components: 40, ..FourierSpec::default() }.into();
/// let candidates = grid(&base, &[("length_scale", vec![0.01.into(), 1.0.into()])])?;
/// let search = Search { penalties: vec![1e-3, 1e3], ..Search::new(Task::Regression, Split::Folds(4)) };
/// let mut source = InMemory::new(rows.view(), targets.view())?;
/// let trials = search.run(&candidates, &mut source, &mut |_| Ok(()))?;
/// assert_eq!((trials.trials.len(), trials.best().penalty), (4, 1e-3));
/// assert_eq!(trials.best().spec, candidates[1]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What the targets are.
    pub task: Task,
    /// Which rows are held out.
    pub split: Split,
    /// Penalties, tried with every description.
    pub penalties: Vec<f64>,
    /// With or without a constant that is not penalised.
    pub intercept: bool,
    /// What the split is drawn from.
    pub seed: Seed,
}

/// One description and one penalty, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The description of the map.
    pub spec: Spec,
    /// The penalty.
    pub penalty: f64,
    /// The loss of each held-out part.
    pub losses: Vec<f64>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// All trials: descriptions in the order given, penalties in order for each.
    pub trials: Vec<Trial>,
    /// Index of the smallest mean loss, the first of equals.
    pub best: usize,
}

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchProgress {
    /// Descriptions done.
    pub done: usize,
    /// Descriptions in all.
    pub total: usize,
    /// The smallest mean loss so far.
    pub best_loss: f64,
}

impl Trial {
    /// Mean of the losses.
    pub fn mean(&self) -> f64 {
        self.losses.iter().sum::<f64>() / self.losses.len() as f64
    }

    /// Standard error of the mean; 0 for a single part.
    pub fn standard_error(&self) -> f64 {
        let n = self.losses.len() as f64;
        if n < 2.0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()
    }
}

impl Trials {
    /// The trial with the smallest mean loss.
    pub fn best(&self) -> &Trial {
        &self.trials[self.best]
    }

    /// Names of the parameters in which descriptions differ, and their values for one of them.
    fn differing(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let fields = |trial: &Trial| match serde_json::to_value(&trial.spec) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let all: Vec<_> = self.trials.iter().map(fields).collect();
        let mut names: Vec<String> = all.iter().flat_map(|fields| fields.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names.retain(|name| all.iter().any(|fields| fields.get(name) != all[0].get(name)));
        let shown = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let values = all.iter().map(|fields| names.iter().map(|name| shown(fields.get(name))).collect()).collect();
        (names, values)
    }

    /// The table as comma-separated values: the parameters that differ, penalty, mean loss, its standard error.
    pub fn to_csv(&self) -> String {
        let quoted = |text: &String| match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.clone(),
        };
        let (names, values) = self.differing();
        let mut lines = vec![
            names.iter().map(String::as_str).chain(["penalty", "loss", "standard_error"]).collect::<Vec<_>>().join(","),
        ];
        for (trial, values) in self.trials.iter().zip(values) {
            let numbers = [trial.penalty, trial.mean(), trial.standard_error()].map(|v| v.to_string());
            lines.push(values.iter().map(quoted).chain(numbers).collect::<Vec<_>>().join(","));
        }
        lines.join("\n") + "\n"
    }
}

impl fmt::Display for Trials {
    /// The table in columns, best first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (names, values) = self.differing();
        let mut table =
            vec![names.iter().cloned().chain(["penalty", "loss", "±"].map(String::from)).collect::<Vec<_>>()];
        let mut order: Vec<usize> = (0..self.trials.len()).collect();
        order.sort_by(|&a, &b| self.trials[a].mean().total_cmp(&self.trials[b].mean()));
        for k in order {
            let trial = &self.trials[k];
            let numbers = [
                format!("{:e}", trial.penalty),
                format!("{:.4e}", trial.mean()),
                format!("{:.1e}", trial.standard_error()),
            ];
            table.push(values[k].iter().cloned().chain(numbers).collect());
        }
        let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
        for row in table {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// The description with some of its parameters replaced.
fn replaced(base: &Spec, changes: &[(&str, Value)]) -> Result<Spec> {
    let failed = |e: serde_json::Error| Error::Format { what: "description of a map", detail: e.to_string() };
    let mut value = serde_json::to_value(base).map_err(failed)?;
    for (name, change) in changes {
        match value.get_mut(*name) {
            Some(place) if *name != "map" => *place = change.clone(),
            _ => {
                let detail = format!("the map has no parameter `{name}`");
                return Err(Error::Format { what: "description of a map", detail });
            }
        }
    }
    serde_json::from_value(value).map_err(failed)
}

/// All combinations of values of parameters, the last parameter changing fastest.
///
/// # Errors
/// Parameters the map does not have, values they cannot take, or none.
pub fn grid(base: &Spec, axes: &[(&str, Vec<Value>)]) -> Result<Vec<Spec>> {
    let mut found = vec![Vec::new()];
    for (name, values) in axes {
        check_count("number of values of a parameter", values.len())?;
        found = found
            .into_iter()
            .flat_map(|changes: Vec<(&str, Value)>| {
                values.iter().map(move |value| {
                    let mut changes = changes.clone();
                    changes.push((*name, value.clone()));
                    changes
                })
            })
            .collect();
    }
    found.iter().map(|changes| replaced(base, changes)).collect()
}

/// Values a random search draws from.
#[derive(Debug, Clone, PartialEq)]
pub enum Range {
    /// One of these.
    Choice(Vec<Value>),
    /// Uniform between two numbers.
    Uniform(f64, f64),
    /// A number whose logarithm is uniform between those of two positive ones.
    LogUniform(f64, f64),
}

/// Descriptions with parameters drawn at random; description `i` depends on the seed and `i` alone.
///
/// # Errors
/// Parameters the map does not have, values they cannot take, empty ranges.
pub fn random(base: &Spec, ranges: &[(&str, Range)], count: usize, seed: Seed) -> Result<Vec<Spec>> {
    check_count("number of candidates", count)?;
    let draw = |i: usize| {
        let mut stream = Stream::new(seed, Role::Split, i as u64);
        let changes = ranges.iter().map(|(name, range)| {
            let between = |low: f64, high: f64, u: f64| match low.is_finite() && high.is_finite() && low <= high {
                true => Ok(low + u * (high - low)),
                false => Err(Error::parameter(
                    "range",
                    "two finite numbers, the smaller one first",
                    format!("({low}, {high})"),
                )),
            };
            let value = match range {
                Range::Choice(values) => {
                    check_count("number of values of a parameter", values.len())?;
                    values[stream.below(values.len() as u64) as usize].clone()
                }
                Range::Uniform(low, high) => between(*low, *high, stream.uniform())?.into(),
                Range::LogUniform(low, high) => {
                    crate::error::check_positive("range", *low)?;
                    between(low.ln(), high.ln(), stream.uniform())?.exp().into()
                }
            };
            Ok((*name, value))
        });
        replaced(base, &changes.collect::<Result<Vec<_>>>()?)
    };
    (0..count).map(draw).collect()
}

/// One part of the rows of a source.
struct Part<'a, R> {
    source: &'a mut dyn RowSource<R>,
    split: Split,
    seed: Seed,
    part: usize,
}

impl<R: Real> RowSource<R> for Part<'_, R> {
    fn input_dim(&self) -> usize {
        self.source.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.source.target_dim()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let stream = Stream::new(self.seed, Role::Split, u64::MAX);
        let (split, part) = (self.split, self.part);
        let mut first = 0;
        let mut words = Vec::new();
        self.source.for_each_block(&mut |block| {
            words.resize(block.rows.nrows(), 0);
            stream.words_from(first, &mut words);
            first += words.len() as u64;
            interrupt::check()?;
            let of = |word: u64| match split {
                Split::Folds(folds) => (word % folds as u64) as usize,
                Split::HeldOut(share) => usize::from((word >> 11) as f64 * 0.5f64.powi(53) < share),
            };
            let chosen: Vec<usize> = (0..words.len()).filter(|&i| of(words[i]) == part).collect();
            let weights = block.weights.map(|weights| weights.select(Axis(0), &chosen));
            visit(RowBlock {
                rows: block.rows.select(Axis(0), &chosen).view(),
                targets: block.targets.select(Axis(0), &chosen).view(),
                weights: weights.as_ref().map(|weights| weights.view()),
            })
        })
    }
}

impl Search {
    /// A search with penalties from 1e-4 to 1e4, an intercept and seed 0.
    pub fn new(task: Task, split: Split) -> Self {
        let penalties = (-4..=4).map(|e| 10f64.powi(e)).collect();
        Search { task, split, penalties, intercept: true, seed: Seed::new(0) }
    }

    /// Judges every description with every penalty. `watch` is told after every description and may stop the search.
    ///
    /// # Errors
    /// Those of drawing, fitting and predicting; no candidates; a split that leaves a part without rows; those of `watch`.
    pub fn run<R: Real>(
        &self,
        candidates: &[Spec],
        source: &mut dyn RowSource<R>,
        watch: &mut dyn FnMut(SearchProgress) -> Result<()>,
    ) -> Result<Trials> {
        let source = &mut Counted::new(source);
        check_count("number of candidates", candidates.len())?;
        check_count("number of penalties", self.penalties.len())?;
        self.penalties.iter().try_for_each(|&penalty| check_non_negative("penalty", penalty))?;
        let (parts, judged) = match self.split {
            Split::Folds(folds) if folds >= 2 => (folds, 0..folds),
            Split::HeldOut(share) if share > 0.0 && share < 1.0 => (2, 1..2),
            split => {
                let expected = "a share between 0 and 1, or at least 2 folds";
                return Err(Error::parameter("split", expected, format!("{split:?}")));
            }
        };
        let classes = match self.task {
            Task::Classification => Some(count_classes(source)?),
            Task::Regression => None,
        };
        let mut trials: Vec<Trial> = Vec::new();
        let mut best = 0;
        for (done, spec) in candidates.iter().enumerate() {
            let losses = self.judge(spec, source, classes, parts, judged.clone())?;
            for (k, &penalty) in self.penalties.iter().enumerate() {
                let losses = losses.iter().map(|part| part[k]).collect();
                trials.push(Trial { spec: spec.clone(), penalty, losses });
                if trials[trials.len() - 1].mean() < trials[best].mean() {
                    best = trials.len() - 1;
                }
            }
            let best_loss = trials[best].mean();
            watch(SearchProgress { done: done + 1, total: candidates.len(), best_loss })?;
        }
        Ok(Trials { trials, best })
    }

    /// Losses of every penalty on every judged part.
    fn judge<R: Real>(
        &self,
        spec: &Spec,
        source: &mut dyn RowSource<R>,
        classes: Option<usize>,
        parts: usize,
        judged: std::ops::Range<usize>,
    ) -> Result<Vec<Vec<f64>>> {
        let map: DynMap<R> = spec.build(source.input_dim())?;
        let ridge = Ridge::new(map.clone(), 0.0)?.with_intercept(self.intercept);
        let outputs = classes.unwrap_or(source.target_dim());
        let (split, seed) = (self.split, self.seed);
        // The part that is only held out needs no sums.
        let fitted = if judged.start > 0 { 1 } else { parts };
        let mut grams: Vec<Gram<R>> = Vec::with_capacity(fitted);
        for part in 0..fitted {
            let mut gram = ridge.accumulator(outputs, &Context::default())?;
            let mut rows = Part { source, split, seed, part };
            let mut push = |block: RowBlock<'_, R>| gram.push_rows(&map, block);
            match classes {
                Some(classes) => Coded::new(&mut rows, classes, Coding::OneAgainstRest)?.for_each_block(&mut push)?,
                None => rows.for_each_block(&mut push)?,
            }
            if gram.count() == 0 {
                return Err(Error::parameter("rows", "enough that no part of the split is empty", "an empty part"));
            }
            grams.push(gram);
        }
        let mut all = Vec::new();
        for part in judged {
            let mut others = (0..fitted).filter(|other| *other != part);
            let first = others.next().expect("at least two parts");
            let mut train = grams[first].clone();
            others.try_for_each(|other| train.merge(&grams[other]))?;
            let models: Vec<RidgeModel<DynMap<R>>> =
                ridge.fit_path_moments(&self.penalties, train.finish(), &Context::default())?;
            let mut rows = Part { source, split, seed, part };
            all.push(match classes {
                Some(classes) => class_losses(&models, &mut rows, classes)?,
                None => squared_losses(&models, &mut rows)?,
            });
        }
        check_dim("number of judged parts", if fitted == 1 { 1 } else { parts }, all.len())?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::FourierSpec;
    use crate::model::Fit;
    use crate::rows::InMemory;
    use ndarray::Array2;

    fn data(n: usize) -> (Array2<f64>, Array2<f64>) {
        let mut normals = vec![0.0f64; 3 * n];
        Stream::new(Seed::new(2), Role::Noise, 0).normals_from(0, &mut normals);
        let rows: Array2<f64> = Array2::from_shape_fn((n, 2), |(i, j)| normals[3 * i + j]);
        let targets = Array2::from_shape_fn((n, 1), |(i, _)| (2.0 * rows[[i, 0]]).sin() + 0.1 * normals[3 * i + 2]);
        (rows, targets)
    }

    fn base() -> Spec {
        FourierSpec { n_components: 30, seed: 4, ..FourierSpec::default() }.into()
    }

    #[test]
    fn losses_are_those_of_fits_without_the_part() {
        let (rows, targets) = data(300);
        let search = Search { penalties: vec![0.01, 10.0], ..Search::new(Task::Regression, Split::Folds(3)) };
        let mut source = InMemory::new(rows.view(), targets.view()).unwrap().with_block_rows(77).unwrap();
        let trials = search.run(&[base()], &mut source, &mut |_| Ok(())).unwrap();
        let map = base().build::<f64>(2).unwrap();
        let mut seen = 0;
        for part in 0..3 {
            let (mut train, mut test) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
            for other in 0..3 {
                let to = if other == part { &mut test } else { &mut train };
                let mut source = InMemory::new(rows.view(), targets.view()).unwrap();
                let mut rows = Part { source: &mut source, split: search.split, seed: search.seed, part: other };
                rows.for_each_block(&mut |block| {
                    to.0.extend(block.rows.iter().copied());
                    to.1.extend(block.targets.iter().copied());
                    Ok(())
                })
                .unwrap();
            }
            let shaped = |data: (Vec<f64>, Vec<f64>)| {
                let n = data.1.len();
                (Array2::from_shape_vec((n, 2), data.0).unwrap(), Array2::from_shape_vec((n, 1), data.1).unwrap())
            };
            let ((x, y), (new, truth)) = (shaped(train), shaped(test));
            seen += truth.len();
            for (trial, penalty) in trials.trials.iter().zip([0.01, 10.0]) {
                let ridge = Ridge::new(map.clone(), penalty).unwrap();
                let model = ridge.fit(x.view(), y.view()).unwrap();
                let found = crate::model::Predict::predict(&model, new.view()).unwrap();
                let loss = (&found - &truth).mapv(|e| e * e).mean().unwrap();
                assert!((trial.losses[part] - loss).abs() < 1e-9, "{} {loss}", trial.losses[part]);
            }
        }
        assert_eq!(seen, 300);
        assert_eq!(trials.best, 0);
    }

    #[test]
    fn tables_name_what_differs_and_the_best_comes_first() {
        let (rows, targets) = data(200);
        let candidates = grid(&base(), &[("length_scale", vec![0.001.into(), 1.0.into()])]).unwrap();
        let search = Search { penalties: vec![0.1], ..Search::new(Task::Regression, Split::HeldOut(0.3)) };
        let mut seen = Vec::new();
        let mut source = InMemory::new(rows.view(), targets.view()).unwrap();
        let trials = search
            .run(&candidates, &mut source, &mut |at| {
                seen.push((at.done, at.total));
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, [(1, 2), (2, 2)]);
        assert_eq!(trials.best, 1);
        let table = trials.to_csv();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!((lines[0], lines.len()), ("length_scale,penalty,loss,standard_error", 3));
        assert!(lines[1].starts_with("0.001,0.1,"), "{table}");
        assert!(trials.to_string().lines().nth(1).unwrap().trim_start().starts_with("1.0"), "{trials}");
        let stopped = search.run(&candidates, &mut source, &mut |_| Err(Error::Interrupted));
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }

    #[test]
    fn classes_are_judged_by_wrong_labels() {
        let (rows, targets) = data(300);
        let labels = targets.mapv(|y| f64::from(u8::from(y > 0.0)));
        let search = Search { penalties: vec![0.1, 1e6], ..Search::new(Task::Classification, Split::Folds(4)) };
        let mut source = InMemory::new(rows.view(), labels.view()).unwrap();
        let trials = search.run(&[base()], &mut source, &mut |_| Ok(())).unwrap();
        assert!(trials.best().mean() < 0.15, "{trials}");
        assert!(trials.trials.iter().all(|trial| trial.losses.len() == 4 && trial.standard_error() > 0.0));
    }

    #[test]
    fn random_candidates_lie_in_their_ranges_and_wrong_ones_are_refused() {
        let ranges = [
            ("length_scale", Range::LogUniform(0.1, 10.0)),
            ("kernel", Range::Choice(vec!["gaussian".into(), "matern".into()])),
        ];
        let found = random(&base(), &ranges, 50, Seed::new(1)).unwrap();
        assert_eq!(found[..10], random(&base(), &ranges, 10, Seed::new(1)).unwrap());
        let mut kernels = Vec::new();
        for spec in &found {
            let value = serde_json::to_value(spec).unwrap();
            let scale = value["length_scale"].as_f64().unwrap();
            assert!((0.1..=10.0).contains(&scale));
            kernels.push(value["kernel"].as_str().unwrap().to_owned());
        }
        assert!(kernels.contains(&"gaussian".to_owned()) && kernels.contains(&"matern".to_owned()));
        assert!(grid(&base(), &[("degree", vec![2.into()])]).is_err());
        assert!(grid(&base(), &[("length_scale", vec![])]).is_err());
        assert!(grid(&base(), &[("kernel", vec!["square".into()])]).is_err());
        assert!(random(&base(), &[("length_scale", Range::Uniform(2.0, 1.0))], 1, Seed::new(1)).is_err());
        let (rows, targets) = data(20);
        let mut source = InMemory::new(rows.view(), targets.view()).unwrap();
        for split in [Split::Folds(1), Split::HeldOut(1.0), Split::HeldOut(f64::NAN)] {
            assert!(Search::new(Task::Regression, split).run(&[base()], &mut source, &mut |_| Ok(())).is_err());
        }
    }
}

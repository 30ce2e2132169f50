//! From the cells of a file to the rows of a model: columns, steps, classes. Stored in the model and done again to new rows.
//!
//! ```
//! use bochner_table::pipeline::Preparation;
//! assert_eq!(Preparation::Auto.of_sphere()?, Preparation::Unit);
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, Watch};
use crate::read::{Column, Data, Kind, Missing, Schema};
use crate::target::TargetScale;
use bochner::catalogue::Task;
use bochner::persist::Label;
use bochner::preprocess::{
    Binarize, Center, ColumnStatistics, Preprocess, ShiftNonNegative, Standardize, UnitNorm, Views,
};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{RowBlock, RowSource};
use bochner::scalar::Real;
use bochner::words;
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// What is done to rows first: one list for all commands, so that `plan` and `compare` answer for the rows of `fit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Preparation {
    /// Scale columns of a table; only centre bytes of images and columns of zeros and ones
    Auto,
    /// Nothing
    None,
    /// Subtract the mean of every column
    #[cfg_attr(feature = "clap", value(aliases = ["centre", "centred", "centered"]))]
    Center,
    /// Subtract the mean of every column and divide by its standard deviation
    #[cfg_attr(feature = "clap", value(aliases = ["standardise", "standardize", "standardised", "standardized"]))]
    Scale,
    /// Scale every row to length one
    #[cfg_attr(feature = "clap", value(alias = "unit-norm"))]
    Unit,
    /// One above the threshold of --threshold, zero below
    #[cfg_attr(feature = "clap", value(alias = "binarise"))]
    Binarize,
    /// Shift every column to begin at zero, then scale every row to length one
    NonNegative,
}

impl Preparation {
    /// What rows of a vector field may go through without becoming another kind of field.
    pub fn of_field(self) -> Outcome<Self> {
        match self {
            Preparation::Auto => Ok(Preparation::Center),
            Preparation::None | Preparation::Center => Ok(self),
            _ => Err(Failure::Usage(
                "--preprocess: a field without curl or divergence has some after its columns are scaled apart; use center \
                 or none"
                    .into(),
            )),
        }
    }

    /// What makes rows ones of length one.
    pub fn of_sphere(self) -> Outcome<Self> {
        match self {
            Preparation::Auto => Ok(Preparation::Unit),
            Preparation::Unit | Preparation::NonNegative => Ok(self),
            _ => Err(Failure::Usage(
                "--preprocess: the spherical kernel is one of rows of length one; use unit or non-negative".into(),
            )),
        }
    }
}

/// Refuses targets that are no vectors in the space of the rows.
pub fn check_field(data: &Data) -> Outcome {
    let (inputs, targets) = (data.schema().input_dim(), data.schema().targets.len());
    if inputs == targets {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "a vector field has as many targets as columns to learn from, not {} (--target) and {} (--columns chooses some)",
        words::things(targets, "target"),
        words::things(inputs, "column")
    )))
}

/// Refuses targets that are words.
pub fn check_numbers(data: &Data) -> Outcome {
    let words = data.schema().targets.iter().find_map(|column| match &column.kind {
        Kind::Words { values, .. } => Some((&column.name, values)),
        Kind::Number { .. } | Kind::Time { .. } => None,
    });
    let Some((name, values)) = words else { return Ok(()) };
    let advice = match values.iter().all(|v| v.parse::<f64>().is_ok()) {
        true => "; they are numbers without --categories, and without zeros at their beginning",
        false => "",
    };
    let file = &data.input().name;
    Err(Failure::Usage(format!("{file}: {name} holds words, which a regression cannot predict{advice}")))
}

/// Everything between a file and a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// The columns of the file.
    pub schema: Schema,
    /// What was done to empty cells in training.
    pub missing: Missing,
    /// What is done to rows, in this order.
    pub steps: Vec<Preprocess>,
    /// What columns become after them, where there are other ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub views: Option<Views>,
    /// For a regression: one per target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetScale>,
    /// For a classification: the numbers that stand for the classes in the file, in increasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<f64>,
}

impl Pipeline {
    /// Rows as the model wants them.
    ///
    /// # Errors
    /// Rows of another length than those of the file.
    pub fn prepared(&self, mut rows: Array2<f64>) -> Result<Array2<f64>> {
        self.steps.iter().try_for_each(|step| step.apply(rows.view_mut()))?;
        self.views.as_ref().map_or(Ok(rows.clone()), |views| views.apply(rows.view()))
    }

    /// Columns of the rows that the model sees.
    pub fn output_dim(&self) -> usize {
        self.views.as_ref().map_or(self.schema.input_dim(), Views::output_dim)
    }

    /// Sees columns in another way, in place of all steps.
    pub(crate) fn see(&mut self, views: Views) {
        self.steps.clear();
        self.views = Some(views);
    }

    /// Means of the columns in training, where the first step keeps them.
    pub fn means(&self) -> Option<&[f64]> {
        let means = match self.steps.first()? {
            Preprocess::Center(step) => step.mean(),
            Preprocess::Standardize(step) => step.mean(),
            _ => return None,
        };
        Some(means).filter(|means| means.len() == self.schema.input_dim())
    }

    /// One scale for all targets: those of a vector field must not be stretched apart.
    pub(crate) fn share_target_scale(&mut self) {
        let squares: f64 = self.targets.iter().map(|t| t.scale * t.scale).sum();
        let scale = (squares / self.targets.len().max(1) as f64).sqrt();
        self.targets.iter_mut().for_each(|t| t.scale = scale);
    }

    /// Learns the logarithms of targets, of which these are a sample.
    pub(crate) fn take_logarithms(&mut self, targets: ArrayView2<'_, f64>) -> Result<()> {
        let scales = targets.columns().into_iter().map(|column| TargetScale::logarithm(&column.to_vec()));
        self.targets = scales.collect::<Result<_>>()?;
        Ok(())
    }

    /// Lets predictions have the mean of their targets, on rows that the model was not fitted to.
    pub(crate) fn smear(&mut self, truth: ArrayView2<'_, f64>, predicted: ArrayView2<'_, f64>) {
        let columns = truth.columns().into_iter().zip(predicted.columns());
        for (scale, (truth, predicted)) in self.targets.iter_mut().zip(columns) {
            scale.smear(truth.iter().copied(), predicted.iter().copied());
        }
    }

    /// Whether the logarithm of a target is learned.
    pub(crate) fn has_logarithms(&self) -> bool {
        self.targets.iter().any(|scale| scale.log.is_some())
    }

    /// The number of the class that `value` stands for.
    pub(crate) fn class_of(&self, value: f64) -> Option<usize> {
        self.labels.binary_search_by(|label| label.total_cmp(&value)).ok()
    }

    /// A target as the model learns it: in units of its spread, or the number of its class.
    fn target(&self, column: usize, value: f64) -> Result<f64> {
        match self.targets.get(column) {
            Some(scale) => Ok(scale.learned(value)),
            None if self.labels.is_empty() => Ok(value),
            None => {
                let unknown = || Error::parameter("labels", "those the model was trained on", value);
                self.class_of(value).map(|class| class as f64).ok_or_else(unknown)
            }
        }
    }

    /// Names of the classes, in the order of their numbers: words, or numbers as they are.
    pub fn class_names(&self) -> Vec<Label> {
        let words = match self.schema.targets.first().map(|c| &c.kind) {
            Some(Kind::Words { values, .. }) => Some(values),
            _ => None,
        };
        let name = |&label: &f64| match words.and_then(|w| w.get(label as usize)) {
            Some(word) => word.as_str().into(),
            None if label.fract() == 0.0 && label.abs() < 9e15 => (label as i64).into(),
            None => label.into(),
        };
        self.labels.iter().map(name).collect()
    }

    /// Sentences for people.
    pub fn in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let categories = self.schema.inputs.iter().filter(|c| matches!(c.kind, Kind::Words { .. })).count();
        if categories > 0 {
            words.push(match categories {
                1 => "one column of categories becomes columns of zeros and ones".to_owned(),
                n => format!("{n} columns of categories become columns of zeros and ones"),
            });
        }
        let times = self.schema.inputs.iter().filter(|c| matches!(c.kind, Kind::Time { .. })).count();
        match times {
            0 => {}
            1 => words.push("one column of dates or times becomes columns of its parts".to_owned()),
            n => words.push(format!("{n} columns of dates or times become columns of their parts")),
        }
        let marked =
            |c: &&Column| matches!(c.kind, Kind::Number { marked: true, .. } | Kind::Time { marked: true, .. });
        let marked = self.schema.inputs.iter().filter(marked).count();
        match self.missing {
            Missing::Mark if marked > 0 => {
                words.push("empty cells get their column's median and a one in a column of their own".into());
            }
            Missing::Mark => {}
            Missing::Mean => words.push("empty cells get their column's mean".into()),
            Missing::Median => words.push("empty cells get their column's median".into()),
            Missing::Zero => words.push("empty cells become zero".into()),
            Missing::Drop => words.push("rows with empty cells were left out in training".into()),
            Missing::Refuse => {}
        }
        for step in &self.steps {
            words.push(match step {
                Preprocess::Center(_) => "column means are subtracted".into(),
                Preprocess::Standardize(step) => {
                    let untouched = step.scale().iter().filter(|s| **s == 1.0).count();
                    let tail = match untouched {
                        0 => String::new(),
                        1 => " (one column that is constant or of zeros and ones is not divided)".into(),
                        n => format!(" ({n} constant columns or columns of zeros and ones are not divided)"),
                    };
                    format!("column means are subtracted, and columns divided by their standard deviations{tail}")
                }
                Preprocess::UnitNorm(_) => "rows are scaled to length one".into(),
                Preprocess::ShiftNonNegative(_) => "column minima are subtracted".into(),
                Preprocess::Binarize(step) => {
                    format!("numbers above {} become 1, the others 0", step.threshold())
                }
                Preprocess::Metric(step) => {
                    format!("rows are multiplied by a learned matrix of {0} by {0}", step.matrix().len())
                }
                other => format!("{other:?}"),
            });
        }
        if let Some(views) = &self.views {
            let ranks = match views.of_ranks() {
                0 => String::new(),
                1 => "; one skewed column has its ranks beside it".into(),
                n => format!("; {n} skewed columns have their ranks beside them"),
            };
            words.push(format!("columns are centered at their medians, scaled and clipped smoothly{ranks}"));
        }
        if self.has_logarithms() {
            words.push("the logarithm of the target is learned, and predictions are mapped back".into());
        }
        words
    }
}

/// Correlations of columns of targets, which is what their covariances become after scaling; a constant column has none.
pub fn correlations(targets: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
    let mut scaled = targets.to_owned();
    for mut column in scaled.columns_mut() {
        let mean = column.mean().unwrap_or(0.0);
        let deviation = column.std(0.0);
        column.mapv_inplace(|v| if deviation > 0.0 { (v - mean) / deviation } else { 0.0 });
    }
    let rows = Array2::<f64>::zeros((scaled.nrows(), 1));
    bochner::model::target_covariance(&mut bochner::rows::InMemory::new(rows.view(), scaled.view())?)
}

/// What one pass over the rows finds out.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) rows: usize,
    pub(crate) columns: ColumnStatistics,
    pub(crate) targets: ColumnStatistics,
    /// Columns that hold zeros and ones only.
    binary: Vec<bool>,
    /// For every target the one value it has in all rows, if it has only one.
    only: Vec<Option<f64>>,
    /// Different values of the only target and how often they occur, unless there are too many or some are not whole numbers.
    distinct: Option<BTreeMap<i64, usize>>,
    pub(crate) sample: Sample,
}

/// Rows drawn from all rows with equal chances, in random order.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) rows: Array2<f64>,
    pub(crate) targets: Array2<f64>,
    /// Numbers of the rows in the file.
    pub(crate) numbers: Vec<usize>,
}

/// Classes a target may have.
const MOST_CLASSES: usize = 10_000;
/// Whole numbers that are taken for classes if nobody says what they are.
const FEW_CLASSES: usize = 30;
/// Rows of a sample: enough to choose parameters on.
pub const SAMPLE_ROWS: usize = 20_000;

/// Reads all rows once.
pub(crate) fn scan(data: &Data, seed: Seed, sample_bytes: u64, watch: &dyn Watch) -> Outcome<Scan> {
    let progress = watch.reading(data.input(), "looking at the rows")?;
    let mut source = data.same_rows();
    let (d, t) = (source.input_dim(), source.target_dim());
    let most = ((sample_bytes / (8 * (d + t) as u64)) as usize).clamp(100, SAMPLE_ROWS);
    let mut scan = Scan {
        rows: 0,
        columns: ColumnStatistics::new(d),
        targets: ColumnStatistics::new(t),
        binary: vec![true; d],
        only: Vec::new(),
        distinct: (t == 1).then(BTreeMap::new),
        sample: Sample { rows: Array2::zeros((0, d)), targets: Array2::zeros((0, t)), numbers: Vec::new() },
    };
    let (mut rows, mut targets): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut draw = Stream::new(seed, Role::Split, 1);
    source.for_each_block(&mut |block| {
        scan.columns.push(block.rows)?;
        scan.targets.push(block.targets)?;
        for (row, target) in block.rows.rows().into_iter().zip(block.targets.rows()) {
            for (binary, v) in scan.binary.iter_mut().zip(row) {
                *binary &= *v == 0.0 || *v == 1.0;
            }
            if let (Some(values), Some(&value)) = (&mut scan.distinct, target.first()) {
                if value.fract() == 0.0 && value.abs() < 1e15 && values.len() <= MOST_CLASSES {
                    *values.entry(value as i64).or_insert(0) += 1;
                } else {
                    scan.distinct = None;
                }
            }
            if scan.rows == 0 {
                scan.only = target.iter().map(|v| Some(*v)).collect();
            }
            for (only, v) in scan.only.iter_mut().zip(target) {
                *only = only.filter(|one| one == v);
            }
            let number = scan.rows;
            scan.rows += 1;
            if number < most {
                rows.extend(row);
                targets.extend(target);
                scan.sample.numbers.push(number);
            } else {
                let place = draw.below(number as u64 + 1) as usize;
                if place < most {
                    rows[place * d..][..d].iter_mut().zip(row).for_each(|(k, v)| *k = *v);
                    targets[place * t..][..t].iter_mut().zip(target).for_each(|(k, v)| *k = *v);
                    scan.sample.numbers[place] = number;
                }
            }
        }
        progress.read().map_err(stopped)
    })?;
    let n = scan.sample.numbers.len();
    let order = Stream::new(seed, Role::Split, 2).permutation(n);
    let order: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
    let shuffled = |flat: Vec<f64>, columns: usize| match Array2::from_shape_vec((n, columns), flat) {
        Ok(rows) => Ok(rows.select(Axis(0), &order)),
        Err(broken) => Err(Failure::Failed(broken.to_string())),
    };
    scan.sample.rows = shuffled(rows, d)?;
    scan.sample.targets = shuffled(targets, t)?;
    scan.sample.numbers = order.iter().map(|&i| scan.sample.numbers[i]).collect();
    Ok(scan)
}

/// A failure on its way through the core, which knows its own errors only.
pub(crate) fn stopped(failure: Failure) -> Error {
    match failure {
        Failure::Interrupted => Error::Interrupted,
        Failure::ClosedPipe => Error::Io(std::io::ErrorKind::BrokenPipe.into()),
        other => Error::Io(std::io::Error::other(other.to_string())),
    }
}

impl Scan {
    /// Refuses a single row.
    pub(crate) fn check_rows(&self, data: &Data) -> Outcome {
        if self.rows > 1 {
            return Ok(());
        }
        let (file, rows) = (&data.input().name, self.rows);
        Err(Failure::Failed(format!("{file}: expected at least 2 rows to learn from, found {rows}")))
    }

    /// Refuses a target with one value only; a vector field may have components that do not change, but not all of them.
    pub(crate) fn check_targets(&self, data: &Data, field: bool) -> Outcome {
        let mut only = self.only.iter().zip(&data.schema().targets).filter(|(only, _)| only.is_some());
        let (Some((Some(value), column)), true) = (only.next(), !field || self.only.iter().all(Option::is_some)) else {
            return Ok(());
        };
        let value = match &column.kind {
            Kind::Words { values, .. } => values.get(*value as usize).map_or(String::new(), |word| format!("{word:?}")),
            Kind::Number { .. } | Kind::Time { .. } => value.to_string(),
        };
        let (file, name, rows) = (&data.input().name, &column.name, words::count(self.rows));
        Err(Failure::Failed(format!(
            "{file}: the target {name} has the one value {value} in all {rows} rows: nothing to learn"
        )))
    }

    /// What the targets are: classes if they are words or few whole numbers, unless these are degrees of something.
    pub(crate) fn recognise(&self, data: &Data) -> (Task, String) {
        let targets = &data.schema().targets;
        if targets.len() > 1 {
            return (Task::Regression, format!("there are {} targets", targets.len()));
        }
        match (&targets[0].kind, &self.distinct) {
            (Kind::Words { values, .. }, _) => {
                (Task::Classification, format!("{} holds {} different words", targets[0].name, values.len()))
            }
            (_, Some(values)) if values.len() <= FEW_CLASSES && 5 * values.len() <= self.rows => {
                let (count, name) = (values.len(), &targets[0].name);
                match degrees(name, values) {
                    Some(why) => (Task::Regression, why),
                    None => (Task::Classification, format!("{name} holds {count} different whole numbers")),
                }
            }
            _ => (Task::Regression, format!("{} holds numbers", targets[0].name)),
        }
    }

    /// Learns steps and targets from all rows.
    pub(crate) fn pipeline(
        &self,
        data: &Data,
        missing: Missing,
        preparation: Preparation,
        threshold: f64,
        task: Task,
    ) -> Outcome<Pipeline> {
        let schema = data.schema().clone();
        let file = &data.input().name;
        let steps = self.steps(data, preparation, threshold)?;
        let mut pipeline = Pipeline { schema, missing, steps, views: None, targets: Vec::new(), labels: Vec::new() };
        match task {
            Task::Regression => {
                check_numbers(data)?;
                // Vector fields may have constant components.
                let scale = |j: usize| {
                    let deviation = self.targets.variance(j).sqrt();
                    if deviation > 1e-12 * self.targets.mean()[j].abs() { deviation } else { 1.0 }
                };
                pipeline.targets = (0..self.targets.mean().len())
                    .map(|j| TargetScale::plain(self.targets.mean()[j], scale(j)))
                    .collect();
            }
            Task::Classification => {
                let Some(values) = &self.distinct else {
                    return Err(Failure::Usage(match data.schema().targets.len() {
                        1 => format!(
                            "{file}: {} holds numbers that are not whole, or more than {MOST_CLASSES} different ones: no classes",
                            data.schema().targets[0].name
                        ),
                        n => format!("a classification has one target, not {n}"),
                    }));
                };
                // As a class, a number has to come back as it was written.
                if let Some(fault) = data.code_among_targets() {
                    return Err(Failure::Failed(fault.to_string()));
                }
                pipeline.labels = values.keys().map(|&v| v as f64).collect();
            }
        }
        Ok(pipeline)
    }

    /// The steps of a preparation, with what they learn from all rows.
    pub(crate) fn steps(&self, data: &Data, preparation: Preparation, threshold: f64) -> Outcome<Vec<Preprocess>> {
        Ok(match preparation {
            Preparation::Auto => self.automatic(data)?,
            Preparation::None => Vec::new(),
            Preparation::Center => vec![Center::fit(&self.columns)?.into()],
            Preparation::Scale => vec![Standardize::fit(&self.columns)?.into()],
            Preparation::Unit => vec![UnitNorm::default().into()],
            Preparation::Binarize => vec![Binarize::new(threshold)?.into()],
            Preparation::NonNegative => {
                vec![ShiftNonNegative::fit(&self.columns)?.into(), UnitNorm::default().into()]
            }
        })
    }

    fn automatic(&self, data: &Data) -> Outcome<Vec<Preprocess>> {
        let deviation = |j: usize| self.columns.variance(j).sqrt();
        let mut deviations: Vec<f64> = (0..self.binary.len()).map(deviation).filter(|s| *s > 0.0).collect();
        deviations.sort_by(f64::total_cmp);
        let alike = |factor: f64| match (deviations.first(), deviations.last()) {
            (Some(first), Some(last)) => *last <= factor * *first,
            _ => true,
        };
        // Columns of an array whose spreads are alike share their unit: dividing would blow up the quiet ones.
        if data.same_units() || (!data.is_table() && alike(10.0)) || self.binary.iter().all(|b| *b) {
            return Ok(vec![Center::fit(&self.columns)?.into()]);
        }
        let full = Standardize::fit(&self.columns)?;
        // Two different categories are then at the squared distance 2, the mean of that of two standardised numbers.
        let scale = full.scale().iter().zip(&self.binary).map(|(s, binary)| if *binary { 1.0 } else { *s });
        Ok(vec![Standardize::new(full.mean().to_vec(), scale.collect())?.into()])
    }
}

/// Why whole numbers are degrees of something, such as marks, and no classes, if they are: more than a handful that follow each
/// other, which the name says or which lie around their middle.
fn degrees(name: &str, values: &BTreeMap<i64, usize>) -> Option<String> {
    /// Fewer can as well be classes.
    const FEWEST: usize = 6;
    const DEGREES: [&str; 12] =
        ["quality", "rating", "score", "grade", "mark", "stars", "points", "rank", "level", "count", "age", "rings"];
    const CLASSES: [&str; 7] = ["class", "label", "type", "kind", "category", "digit", "species"];
    let (first, last, count) = (*values.keys().next()?, *values.keys().next_back()?, values.len());
    // One in ten may be missing.
    if count < FEWEST || last.abs_diff(first) as usize + 1 > count + count / 10 {
        return None;
    }
    let name_says = |list: &[&str]| {
        let lower = name.to_lowercase();
        let mut words = lower.split(|c: char| !c.is_alphanumeric());
        words.any(|word| list.iter().any(|known| word == *known || word.strip_suffix('s') == Some(known)))
    };
    if name_says(&CLASSES) {
        return None;
    }
    let held = format!("{name} holds {count} whole numbers from {first} to {last}");
    if name_says(&DEGREES) {
        return Some(format!(
            "{held}, and its name says that they are degrees, not classes; --task classification takes them as such"
        ));
    }
    let counts: Vec<f64> = values.values().map(|n| *n as f64).collect();
    let (at, most) = counts.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    // Up to the most frequent one and down again, but for chance: a difference of counts has a variance of their sum.
    let rises = |pair: &[f64]| pair[0] <= pair[1] + 2.0 * (pair[0] + pair[1]).sqrt();
    let falls = |pair: &[f64]| pair[1] <= pair[0] + 2.0 * (pair[0] + pair[1]).sqrt();
    let peaked = counts[..=at].windows(2).all(rises) && counts[at..].windows(2).all(falls);
    let rare = |end: Option<&f64>| end.is_some_and(|n| 4.0 * n <= *most);
    let around = (0 < at && at + 1 < count && peaked && rare(counts.first()) && rare(counts.last()))
        .then(|| values.keys().nth(at))
        .flatten()?;
    Some(format!("{held} that lie around {around}: degrees, not classes; --task classification takes them as such"))
}

/// The rows of a file as a model sees them.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    pub(crate) data: &'a Data,
    pub(crate) pipeline: &'a Pipeline,
    /// Rows left out, in increasing order.
    pub(crate) left_out: &'a [usize],
    /// Rows passed over at the beginning, of those that are not left out.
    pub(crate) skip: usize,
    /// Rows that are not left out.
    pub(crate) total: usize,
    /// Looked at after every block.
    pub(crate) progress: &'a dyn Progress,
}

impl<R: Real> RowSource<R> for Prepared<'_> {
    fn input_dim(&self) -> usize {
        self.pipeline.output_dim()
    }

    fn target_dim(&self) -> usize {
        self.data.schema().targets.len()
    }

    fn len_hint(&self) -> Option<usize> {
        Some(self.total - self.skip)
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let (mut number, mut passed, mut left_out) = (0, 0, self.left_out);
        self.data.same_rows().for_each_block(&mut |block| {
            let mut kept = Vec::with_capacity(block.rows.nrows());
            for i in 0..block.rows.nrows() {
                if left_out.first() == Some(&(number + i)) {
                    left_out = &left_out[1..];
                } else if passed < self.skip {
                    passed += 1;
                } else {
                    kept.push(i);
                }
            }
            number += block.rows.nrows();
            if !kept.is_empty() {
                let targets = block.targets.select(Axis(0), &kept);
                let Part { rows, targets } =
                    Part::new(self.pipeline, block.rows.select(Axis(0), &kept), targets.view())?;
                visit(RowBlock { rows: rows.view(), targets: targets.view(), weights: None })?;
            }
            self.progress.read().map_err(stopped)
        })
    }
}

/// Rows in memory as a model sees them.
#[derive(Debug, Clone)]
pub(crate) struct Part<R> {
    pub(crate) rows: Array2<R>,
    /// Numbers of classes, or standardised targets.
    pub(crate) targets: Array2<R>,
}

impl<R: Real> Part<R> {
    pub(crate) fn new(pipeline: &Pipeline, rows: Array2<f64>, targets: ArrayView2<'_, f64>) -> Result<Self> {
        let rows = pipeline.prepared(rows)?;
        let mut prepared = Array2::from_elem(targets.dim(), R::ZERO);
        for (j, (mut to, from)) in prepared.columns_mut().into_iter().zip(targets.columns()).enumerate() {
            for (to, from) in to.iter_mut().zip(from) {
                *to = R::from_f64(pipeline.target(j, *from)?);
            }
        }
        Ok(Part { rows: rows.mapv(R::from_f64), targets: prepared })
    }

    /// Rows `range` of a sample.
    pub(crate) fn of(pipeline: &Pipeline, sample: &Sample, range: Range<usize>) -> Result<Self> {
        let rows = sample.rows.slice(s![range.clone(), ..]).to_owned();
        Part::new(pipeline, rows, sample.targets.slice(s![range, ..]))
    }

    /// Some of the rows.
    pub(crate) fn select(&self, numbers: &[usize]) -> Self {
        Part { rows: self.rows.select(Axis(0), numbers), targets: self.targets.select(Axis(0), numbers) }
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn degrees_are_told_from_classes() {
        let degrees = |name: &str, first: i64, counts: &[usize]| {
            super::degrees(name, &counts.iter().enumerate().map(|(i, n)| (first + i as i64, *n)).collect())
        };
        // Quality of red and of white wine; ages of abalones by their rings are such too.
        assert!(degrees("q", 3, &[10, 53, 681, 638, 199, 18]).is_some_and(|why| why.contains("around 5")));
        assert!(degrees("q", 3, &[20, 163, 1457, 2198, 880, 175, 5]).is_some());
        // Digits, kinds of forest, and what its name calls a class.
        assert_eq!(degrees("y", 0, &[5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]), None);
        assert_eq!(degrees("y", 1, &[211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510]), None);
        assert_eq!(degrees("wine_class", 3, &[10, 53, 681, 638, 199, 18]), None);
        assert!(degrees("Overall Rating", 1, &[9; 10]).is_some_and(|why| why.contains("its name says")));
        // Too few, or with holes.
        assert_eq!(degrees("quality", 1, &[3, 9, 20, 9, 3]), None);
        assert_eq!(super::degrees("quality", &[1, 2, 4, 8, 16, 32].map(|v| (v, 9)).into()), None);
    }
}

//! Data sets as the experiments see them: whole, in memory, with their official split.

use crate::known;
use bochner::preprocess::{Center, ColumnStatistics, Preprocess, ShiftNonNegative, Standardize, UnitNorm};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{InMemory, RowSource};
use bochner::scalar::Real;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::read::{Data, Input, Missing, Options, Selection};
use ndarray::{Array2, ArrayView2, Axis};
use std::path::{Path, PathBuf};

/// The folder with the data sets.
#[derive(Debug)]
pub(crate) struct Library {
    folder: Option<PathBuf>,
}

/// Rows with labels or targets.
#[derive(Debug, Clone)]
pub(crate) struct Part<R = f32> {
    pub(crate) rows: Array2<R>,
    /// One column per target; class numbers for classification.
    pub(crate) targets: Array2<R>,
}

/// Rows in double precision, as exact models read them.
pub(crate) type Rows = Part<f64>;

impl<R: Real + Into<f64>> Part<R> {
    /// Targets as class numbers.
    pub(crate) fn classes(&self) -> Vec<usize> {
        self.targets.column(0).iter().map(|&c| c.into() as usize).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.nrows()
    }

    /// The rows with these numbers.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        Part { rows: self.rows.select(Axis(0), rows), targets: self.targets.select(Axis(0), rows) }
    }

    /// At most `count` rows, drawn without repetition.
    pub(crate) fn sample(&self, count: usize, seed: u64) -> Self {
        self.select(&permutation(self.len(), seed)[..count.min(self.len())])
    }

    /// The first `count` rows, and the others.
    pub(crate) fn cut(&self, count: usize) -> (Self, Self) {
        let order: Vec<usize> = (0..self.len()).collect();
        let (first, others) = order.split_at(count.min(order.len()));
        (self.select(first), self.select(others))
    }

    /// The first `count` rows.
    pub(crate) fn first(&self, count: usize) -> Self {
        self.select(&(0..count.min(self.len())).collect::<Vec<_>>())
    }

    /// The rows, to be read as often as wanted.
    pub(crate) fn source(&self) -> Outcome<InMemory<'_, R>> {
        Ok(InMemory::new(self.rows.view(), self.targets.view())?)
    }
}

impl Part {
    /// Adds the rows of another part of the data set of that name.
    fn add(&mut self, more: Part, name: &str) -> Outcome {
        let failed = |e| Failure::Failed(format!("{name}: {e}"));
        self.rows.append(Axis(0), more.rows.view()).map_err(failed)?;
        self.targets.append(Axis(0), more.targets.view()).map_err(failed)
    }

    /// The same rows in double precision.
    pub(crate) fn double(&self) -> Rows {
        Part { rows: double(self.rows.view()), targets: double(self.targets.view()) }
    }
}

/// The first `count` of some rows that were drawn, and the others.
fn parted(all: &Part, count: usize, seed: u64) -> (Part, Part) {
    all.sample(all.len(), seed).cut(count)
}

/// `0..n` in random order.
pub(super) fn permutation(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let mut draw = Stream::new(Seed::new(seed), Role::Split, 0);
    for i in (1..n).rev() {
        order.swap(i, draw.below(i as u64 + 1) as usize);
    }
    order
}

impl Library {
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        Library { folder: known::folder(folder) }
    }

    /// Where `file` of the data set `name` is.
    fn path(&self, name: &str, file: &str) -> Outcome<PathBuf> {
        let want = format!("{name}/{file}");
        let Some(folder) = &self.folder else {
            return Err(Failure::Failed(format!(
                "this experiment wants {want}: put it into a folder and name that folder with --data or BOCHNER_DATA"
            )));
        };
        let path = folder.join(&want);
        if path.is_file() {
            return Ok(path);
        }
        Err(Failure::Failed(format!(
            "this experiment wants {want}, which is not in {}; bochner data list says what is known about it",
            folder.display()
        )))
    }

    /// Whether a data set, or a file of one, is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.join(name).exists())
    }

    /// Image sets in the IDX format, pixels 0 to 255: training and test part.
    pub(crate) fn images(&self, name: &str) -> Outcome<(Part, Part)> {
        let part = |stem: &str| {
            let images = self.path(name, &format!("{stem}-images-idx3-ubyte.gz"))?;
            let labels = self.path(name, &format!("{stem}-labels-idx1-ubyte.gz"))?;
            read(&images, Some(&labels), &Selection::default(), Missing::Refuse)
        };
        Ok((part("train")?, part("t10k")?))
    }

    /// An archive with arrays `X` and `y`.
    pub(crate) fn arrays(&self, name: &str, file: &str) -> Outcome<Part> {
        read(&self.path(name, file)?, None, &Selection::default(), Missing::Refuse)
    }

    /// An array of an archive by its name, rows by columns; further axes are columns too.
    pub(crate) fn array(&self, name: &str, file: &str, array: &str) -> Outcome<Array2<f32>> {
        let selection = Selection { array: Some(array.into()), ..Selection::default() };
        Ok(read(&self.path(name, file)?, None, &selection, Missing::Refuse)?.rows)
    }

    /// An array of small whole numbers and the units of its columns.
    pub(crate) fn scaled_array(&self, name: &str, file: &str, (array, scale): (&str, &str)) -> Outcome<Array2<f32>> {
        let (numbers, units) = (self.array(name, file, array)?, self.array(name, file, scale)?);
        if units.len() != numbers.ncols() {
            let (units, columns) = (units.len(), numbers.ncols());
            return Err(Failure::Failed(format!(
                "{name}/{file}: {scale} has {units} numbers for {columns} columns of {array}"
            )));
        }
        Ok(numbers * &units.flatten())
    }

    /// CIFAR-10: the training batches that are there, and the test rows.
    pub(crate) fn cifar10(&self) -> Outcome<(Part, Part)> {
        const NAME: &str = "cifar10";
        let mut train = self.arrays(NAME, "train_batch1.npz")?;
        for file in
            (2..=5).map(|batch| format!("train_batch{batch}.npz")).filter(|file| self.has(&format!("{NAME}/{file}")))
        {
            train.add(self.arrays(NAME, &file)?, NAME)?;
        }
        Ok((train, self.arrays(NAME, "test.npz")?))
    }

    /// Training and test part of a data set with one target: the official parts, or a tenth of the rows for testing.
    ///
    /// Targets of sets for classification become class numbers from 0 on.
    pub(crate) fn split(&self, name: &str, seed: u64) -> Outcome<(Part, Part)> {
        let read = |file: &str, drop: &[&str]| {
            let selection = Selection {
                targets: vec!["-1".into()],
                drop: drop.iter().map(|&column| column.into()).collect(),
                ..Selection::default()
            };
            // Markers that a camera does not see are empty cells.
            read(&self.path(name, file)?, None, &selection, Missing::Zero)
        };
        let halved = |all: Part| parted(&all, all.len() - all.len() / 10, seed);
        Ok(match name {
            "mnist" | "fashion-mnist" => self.images(name)?,
            "cifar10" => self.cifar10()?,
            "cod_rna" => (classes(read("train.csv.gz", &[])?), classes(read("test.csv.gz", &[])?)),
            "letter" => {
                let mut all = read("train.csv.gz", &[])?;
                all.add(read("test.csv.gz", &[])?, name)?;
                halved(all)
            }
            "magic" => halved(classes(read("data.csv.gz", &[])?)),
            "covertype" => halved(classes(read("data_subset.csv.gz", &[])?)),
            "mocap" => halved(classes(read("data_subset.csv.gz", &["User"])?)),
            "naval" => {
                let all = self.table(name, "data.csv.gz", 2)?;
                halved(Part { targets: all.targets.slice(ndarray::s![.., ..1]).to_owned(), ..all })
            }
            _ => halved(read("data.csv.gz", &[])?),
        })
    }

    /// A table whose last `targets` columns are targets.
    pub(crate) fn table(&self, name: &str, file: &str, targets: usize) -> Outcome<Part> {
        let path = self.path(name, file)?;
        let all = read(&path, None, &Selection::default(), Missing::Refuse)?;
        let columns = all.rows.ncols();
        if columns <= targets {
            return Err(Failure::Failed(format!("{}: {columns} columns leave no inputs", path.display())));
        }
        let (rows, targets) = all.rows.view().split_at(Axis(1), columns - targets);
        Ok(Part { rows: rows.to_owned(), targets: targets.to_owned() })
    }
}

fn read(path: &Path, labels: Option<&Path>, selection: &Selection, missing: Missing) -> Outcome<Part> {
    let labels = labels.map(Input::open).transpose()?;
    let data = Data::open(Input::open(path)?, labels, selection, &Options { missing, ..Options::default() })?;
    let (mut rows, mut targets, mut count) = (Vec::new(), Vec::new(), 0);
    let (dim, mut outputs) = (data.schema().input_dim(), 0);
    data.rows::<f32>().for_each_block(&mut |block| {
        rows.extend(block.rows.iter());
        targets.extend(block.targets.iter());
        outputs = block.targets.ncols();
        count += block.rows.nrows();
        Ok(())
    })?;
    let shaped = |values: Vec<f32>, columns| {
        Array2::from_shape_vec((count, columns), values)
            .map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))
    };
    Ok(Part { rows: shaped(rows, dim)?, targets: shaped(targets, outputs)? })
}

/// Rows in double precision.
pub(crate) fn double(rows: ArrayView2<'_, f32>) -> Array2<f64> {
    rows.mapv(f64::from)
}

/// The same rows with targets numbered from 0 on, in the order of their values.
fn classes(part: Part) -> Part {
    let mut values: Vec<f32> = part.targets.iter().copied().collect();
    values.sort_by(f32::total_cmp);
    values.dedup();
    let number = |target: f32| values.partition_point(|v| *v < target) as f32;
    Part { targets: part.targets.mapv(number), rows: part.rows }
}

/// What is done to rows before a kernel sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// Nothing.
    Raw,
    /// Column minima subtracted.
    NonNegative,
    /// Column means subtracted.
    Centered,
    /// Column means subtracted, and columns divided by their standard deviations.
    Standardized,
}

impl Prepared {
    /// The steps, learned from training rows; `unit` divides rows by their lengths in the end.
    fn fit(self, rows: ArrayView2<'_, f64>, unit: bool) -> Outcome<Vec<Preprocess>> {
        let mut seen = ColumnStatistics::new(rows.ncols());
        seen.push(rows)?;
        let first = match self {
            Prepared::Raw => None,
            Prepared::NonNegative => Some(ShiftNonNegative::fit(&seen)?.into()),
            Prepared::Centered => Some(Center::fit(&seen)?.into()),
            Prepared::Standardized => Some(Standardize::fit(&seen)?.into()),
        };
        Ok(first.into_iter().chain(unit.then(|| UnitNorm::default().into())).collect())
    }

    /// Training and test rows after steps that the training rows taught.
    pub(crate) fn both(self, train: &Part, test: &Part, unit: bool) -> Outcome<(Rows, Rows)> {
        let steps = self.fit(double(train.rows.view()).view(), unit)?;
        let ready = |part: &Part| -> Outcome<Rows> {
            Ok(Part { rows: apply(&steps, part.rows.view())?, targets: double(part.targets.view()) })
        };
        Ok((ready(train)?, ready(test)?))
    }

    /// Rows of length 1, prepared by what they themselves tell.
    pub(crate) fn unit(self, rows: ArrayView2<'_, f32>) -> Outcome<Array2<f64>> {
        apply(&self.fit(double(rows).view(), true)?, rows)
    }
}

/// The rows of a part in double precision, after these steps.
fn apply(steps: &[Preprocess], rows: ArrayView2<'_, f32>) -> Outcome<Array2<f64>> {
    let mut rows = double(rows);
    for step in steps {
        step.apply(rows.view_mut())?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn classes_are_numbered_in_the_order_of_their_values() {
        let part = Part { rows: Array2::zeros((4, 1)), targets: array![[7.0], [-1.0], [7.0], [2.0]] };
        assert_eq!(classes(part).targets, array![[2.0], [0.0], [2.0], [1.0]]);
    }

    #[test]
    fn parts_share_no_row_and_leave_none_out() {
        let all = Part {
            rows: Array2::from_shape_fn((30, 1), |(i, _)| i as f32),
            targets: Array2::from_shape_fn((30, 1), |(i, _)| i as f32),
        };
        let (a, b) = parted(&all, 27, 5);
        let mut rows: Vec<f32> = a.rows.iter().chain(&b.rows).copied().collect();
        rows.sort_by(f32::total_cmp);
        assert_eq!((a.rows.nrows(), rows), (27, (0..30).map(|i| i as f32).collect()));
        assert_eq!(a.rows, a.targets);
    }
}

//! Data sets as the experiments see them: whole, in memory, with their official split.

use crate::failure::{Failure, Outcome};
use crate::known;
use crate::read::{Data, Input, Options, Selection};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::RowSource;
use ndarray::{Array2, ArrayView2, Axis};
use std::path::{Path, PathBuf};

/// The folder with the data sets.
#[derive(Debug)]
pub(crate) struct Library {
    folder: Option<PathBuf>,
}

/// Rows with labels or targets.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) rows: Array2<f32>,
    /// One column per target; class numbers for classification.
    pub(crate) targets: Array2<f32>,
}

impl Part {
    /// Targets as class numbers.
    pub(crate) fn classes(&self) -> Vec<usize> {
        self.targets.column(0).iter().map(|&c| c as usize).collect()
    }

    /// The rows with these numbers.
    pub(crate) fn select(&self, rows: &[usize]) -> Part {
        Part { rows: self.rows.select(Axis(0), rows), targets: self.targets.select(Axis(0), rows) }
    }

    /// At most `count` rows, drawn without repetition.
    pub(crate) fn sample(&self, count: usize, seed: u64) -> Part {
        self.select(&permutation(self.rows.nrows(), seed)[..count.min(self.rows.nrows())])
    }
}

/// `0..n` in random order.
pub(crate) fn permutation(n: usize, seed: u64) -> Vec<usize> {
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

    /// Whether the data set is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.join(name).is_dir())
    }

    /// Image sets in the IDX format, pixels 0 to 255: training and test part.
    pub(crate) fn images(&self, name: &str) -> Outcome<(Part, Part)> {
        let part = |stem: &str| {
            let images = self.path(name, &format!("{stem}-images-idx3-ubyte.gz"))?;
            let labels = self.path(name, &format!("{stem}-labels-idx1-ubyte.gz"))?;
            read(&images, Some(&labels), &Selection::default())
        };
        Ok((part("train")?, part("t10k")?))
    }

    /// Whether a file of the data set is there.
    pub(crate) fn has_file(&self, name: &str, file: &str) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.join(name).join(file).is_file())
    }

    /// An archive with arrays `X` and `y`.
    pub(crate) fn arrays(&self, name: &str, file: &str) -> Outcome<Part> {
        read(&self.path(name, file)?, None, &Selection::default())
    }

    /// A table whose last `targets` columns are targets.
    pub(crate) fn table(&self, name: &str, file: &str, targets: usize) -> Outcome<Part> {
        let path = self.path(name, file)?;
        let all = read(&path, None, &Selection::default())?;
        let columns = all.rows.ncols();
        if columns <= targets {
            return Err(Failure::Failed(format!("{}: {columns} columns leave no inputs", path.display())));
        }
        let (rows, targets) = all.rows.view().split_at(Axis(1), columns - targets);
        Ok(Part { rows: rows.to_owned(), targets: targets.to_owned() })
    }
}

fn read(path: &Path, labels: Option<&Path>, selection: &Selection) -> Outcome<Part> {
    let labels = labels.map(Input::open).transpose()?;
    let data = Data::open(Input::open(path)?, labels, selection, &Options::default())?;
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

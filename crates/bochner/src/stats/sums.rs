use crate::error::{Result, check_dim};
use crate::feature::FeatureMap;
use crate::memory::filled;
use crate::parallel::Parallel;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};

/// Most blocks of one size: as many are enough for a test to lose nothing that could be seen.
const BLOCKS: usize = 512;

/// Blocks of the smaller sample from which a test may take blocks of twice as many rows.
const FEWEST: usize = 128;

/// Rows kept as they are, to say which columns differ.
const KEPT: usize = 256;

/// Numbers of features that are added up on one thread.
const TOGETHER: usize = 1 << 17;

/// Columns of features that one thread adds up.
const COLUMNS: usize = 128;

/// Bytes of features made at once.
const PIECE_BYTES: usize = 4 << 20;

/// Sums of features over some rows.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Block {
    pub(super) sums: Vec<f64>,
    /// `Σ|φ|²`.
    pub(super) squares: f64,
    pub(super) rows: u64,
}

impl Block {
    pub(super) fn empty(dim: usize) -> Self {
        Block { sums: vec![0.0; dim], squares: 0.0, rows: 0 }
    }

    pub(super) fn add(&mut self, other: &Block) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a += b);
        self.squares += other.squares;
        self.rows += other.rows;
    }

    fn and(mut self, other: &Block) -> Self {
        self.add(other);
        self
    }
}

/// Sums of the features of one sample, in blocks: all that [`TwoSampleTest`](super::TwoSampleTest) needs of it.
///
/// The first 512 rows are blocks of their own, the next 1,024 make 512 blocks of two rows, and so on: memory is a few hundred
/// sums for every doubling of the rows, and samples of any two sizes have blocks of the same size, which a test may exchange. How
/// rows are cut into calls changes nothing, not even bits. Sums of parts of a sample [merge](Self::merge).
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::stats::SampleSums;
/// use ndarray::{Array2, s};
/// let map = FourierSpec { n_components: 64, ..FourierSpec::default() }.build::<f64>(2)?;
/// let rows = Array2::from_shape_fn((300, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.37).sin());
/// let (mut whole, mut parts) = (SampleSums::new(64, 2), SampleSums::new(64, 2));
/// whole.push_rows(&map, rows.view())?;
/// parts.push_rows(&map, rows.slice(s![..7, ..]))?;
/// parts.push_rows(&map, rows.slice(s![7.., ..]))?;
/// assert_eq!(whole, parts);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SampleSums {
    dim: usize,
    /// Block `i` of level `k` holds `2^k` rows.
    levels: Vec<Vec<Block>>,
    /// Blocks of merged sums that wait for another of their size.
    odd: Vec<Option<Block>>,
    /// The block that is being filled.
    open: Block,
    open_squares: Vec<f64>,
    /// Rows that a test leaves where they are.
    rest: Block,
    /// `Σ φⱼ²` for every feature, of all rows but those of the open block.
    squares: Vec<f64>,
    kept: Vec<f64>,
    input_dim: usize,
}

impl SampleSums {
    /// No rows yet, of so many features of rows of length `input_dim`.
    pub fn new(features: usize, input_dim: usize) -> Self {
        SampleSums {
            dim: features,
            levels: vec![Vec::new()],
            odd: Vec::new(),
            open: Block::empty(features),
            open_squares: vec![0.0; features],
            rest: Block::empty(features),
            squares: vec![0.0; features],
            kept: Vec::new(),
            input_dim,
        }
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of columns of a row.
    pub fn input_dim(&self) -> usize {
        self.input_dim
    }

    /// Rows so far.
    pub fn count(&self) -> u64 {
        self.blocks().map(|block| block.rows).sum()
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.levels.iter().flatten().chain(self.odd.iter().flatten()).chain([&self.open, &self.rest])
    }

    /// The sum of all features.
    pub(super) fn total(&self) -> Block {
        self.blocks().fold(Block::empty(self.dim), |sum, block| sum.and(block))
    }

    /// `Σ φⱼ²` for every feature.
    pub(super) fn feature_squares(&self) -> Vec<f64> {
        self.squares.iter().zip(&self.open_squares).map(|(a, b)| a + b).collect()
    }

    /// The first rows, as they came.
    pub(super) fn kept(&self) -> ArrayView2<'_, f64> {
        let rows = self.kept.len() / self.input_dim.max(1);
        ArrayView2::from_shape((rows, self.input_dim), &self.kept[..rows * self.input_dim]).expect("whole rows")
    }

    /// Adds rows by their features.
    ///
    /// # Errors
    /// As [`FeatureMap::transform_into`], and a map with another number of features.
    pub fn push_rows<R: Real>(
        &mut self,
        map: &(impl FeatureMap<Real = R, Output = R> + ?Sized),
        rows: ArrayView2<'_, R>,
    ) -> Result<()> {
        self.read(map, rows, &mut |sums, features| sums.push(features))
    }

    /// Adds rows that no test will exchange with rows of another sample: those from which a length scale was chosen, where it
    /// was not chosen from all of them.
    ///
    /// # Errors
    /// As [`push_rows`](Self::push_rows).
    pub fn push_fixed_rows<R: Real>(
        &mut self,
        map: &(impl FeatureMap<Real = R, Output = R> + ?Sized),
        rows: ArrayView2<'_, R>,
    ) -> Result<()> {
        self.read(map, rows, &mut |sums, features| {
            let (mut block, mut squares) = (std::mem::replace(&mut sums.rest, Block::empty(0)), vec![0.0; sums.dim]);
            add_up(features, &mut block, &mut squares);
            block.squares += squares.iter().sum::<f64>();
            sums.squares.iter_mut().zip(squares).for_each(|(a, b)| *a += b);
            sums.rest = block;
        })
    }

    fn read<R: Real>(
        &mut self,
        map: &(impl FeatureMap<Real = R, Output = R> + ?Sized),
        rows: ArrayView2<'_, R>,
        add: &mut dyn FnMut(&mut Self, ArrayView2<'_, R>),
    ) -> Result<()> {
        check_dim("number of features", self.dim, map.output_dim())?;
        let piece = (PIECE_BYTES / (self.dim.max(1) * size_of::<R>())).clamp(64, 1 << 14).min(rows.nrows().max(1));
        let mut features = map.room_for(piece)?;
        let mut first = 0;
        for rows in rows.axis_chunks_iter(Axis(0), piece) {
            let mut features = features.slice_mut(s![..rows.nrows(), ..]);
            map.transform_into(rows, features.view_mut()).map_err(|error| error.rows_from(first))?;
            add(self, features.view());
            let wanted = KEPT.saturating_sub(self.kept.len() / self.input_dim.max(1)).min(rows.nrows());
            self.kept.extend(rows.slice(s![..wanted, ..]).iter().map(|v| Real::to_f64(*v)));
            first += rows.nrows();
        }
        Ok(())
    }

    fn push<R: Real>(&mut self, features: ArrayView2<'_, R>) {
        let mut start = 0;
        while start < features.nrows() {
            let size = 1u64 << self.level();
            let end = (start + (size - self.open.rows) as usize).min(features.nrows());
            let mut squares = std::mem::take(&mut self.open_squares);
            add_up(features.slice(s![start..end, ..]), &mut self.open, &mut squares);
            self.open_squares = squares;
            if self.open.rows == size {
                let mut full = std::mem::replace(&mut self.open, Block::empty(self.dim));
                full.squares = self.open_squares.iter().sum();
                self.squares.iter_mut().zip(&mut self.open_squares).for_each(|(a, b)| *a += std::mem::take(b));
                let level = self.level();
                self.levels[level].push(full);
            }
            start = end;
        }
        self.open.squares = self.open_squares.iter().sum();
    }

    /// The first level that has room.
    fn level(&mut self) -> usize {
        let found = self.levels.iter().position(|blocks| blocks.len() < BLOCKS);
        found.unwrap_or_else(|| {
            self.levels.push(Vec::new());
            self.levels.len() - 1
        })
    }

    /// Adds the rows of another part of the sample.
    ///
    /// # Errors
    /// Another number of features or of columns.
    pub fn merge(&mut self, other: &SampleSums) -> Result<()> {
        check_dim("number of features", self.dim, other.dim)?;
        check_dim("number of columns of rows", self.input_dim, other.input_dim)?;
        for (level, block) in other.levels.iter().enumerate().flat_map(|(k, blocks)| blocks.iter().map(move |b| (k, b)))
        {
            self.put(level, block.clone());
        }
        for (level, block) in other.odd.iter().enumerate() {
            block.iter().for_each(|block| self.put(level, block.clone()));
        }
        // Blocks that are not full have no size of their own.
        self.rest.add(&other.open);
        self.rest.add(&other.rest);
        let squares = other.feature_squares();
        self.squares.iter_mut().zip(squares).for_each(|(a, b)| *a += b);
        let room = (KEPT * self.input_dim).saturating_sub(self.kept.len()).min(other.kept.len());
        self.kept.extend_from_slice(&other.kept[..room]);
        Ok(())
    }

    /// Adds a block of `2^level` rows: where there are enough of them, two become one.
    fn put(&mut self, level: usize, block: Block) {
        let missing = (level + 1).saturating_sub(self.levels.len());
        self.levels.extend(std::iter::repeat_n(Vec::new(), missing));
        self.odd.resize(self.odd.len().max(level + 1), None);
        // The block that is being filled has its size from the first level with room, which may grow but not shrink.
        if self.levels[level].len() < BLOCKS {
            self.levels[level].push(block);
        } else if let Some(waiting) = self.odd[level].take() {
            self.put(level + 1, waiting.and(&block));
        } else {
            self.odd[level] = Some(block);
        }
    }

    fn at(&self, level: usize) -> impl Iterator<Item = &Block> {
        self.levels.get(level).into_iter().flatten().chain(self.odd.get(level).into_iter().flatten())
    }

    /// The largest blocks.
    fn top(&self) -> usize {
        (0..self.levels.len().max(self.odd.len())).rev().find(|&k| self.at(k).next().is_some()).unwrap_or(0)
    }

    /// Blocks of `2^level` rows, and the sum of all other rows.
    fn units(&self, level: usize) -> (Vec<Block>, Block) {
        let mut rest = self.open.clone().and(&self.rest);
        let mut units: Vec<Block> = Vec::new();
        for k in 0..=level {
            let pairs = units.chunks_exact(2);
            pairs.remainder().iter().for_each(|block| rest.add(block));
            units = pairs.map(|pair| pair[0].clone().and(&pair[1])).collect();
            units.extend(self.at(k).cloned());
        }
        (level + 1..self.levels.len().max(self.odd.len())).flat_map(|k| self.at(k)).for_each(|block| rest.add(block));
        (units, rest)
    }

    fn count_units(&self, level: usize) -> usize {
        (0..=level).fold(0, |count, k| count / 2 + self.at(k).count())
    }
}

fn add_up<R: Real>(features: ArrayView2<'_, R>, block: &mut Block, squares: &mut [f64]) {
    let add = |first: usize, sums: &mut [f64], squares: &mut [f64]| {
        for row in features.rows() {
            let row = row.to_slice().expect("features are made row by row");
            for ((sum, square), &z) in sums.iter_mut().zip(squares.iter_mut()).zip(&row[first..]) {
                let z = Real::to_f64(z);
                *sum += z;
                *square += z * z;
            }
        }
    };
    block.rows += features.nrows() as u64;
    if features.len() < TOGETHER {
        return add(0, &mut block.sums, squares);
    }
    let parts = block.sums.chunks_mut(COLUMNS).zip(squares.chunks_mut(COLUMNS)).enumerate();
    parts.in_parallel().for_each(|(i, (sums, squares))| add(i * COLUMNS, sums, squares));
}

/// Blocks of one size of two samples, which may change places where both samples are of one distribution; and the sums of
/// all other rows, which stay.
#[derive(Debug)]
pub(super) struct Units {
    pub(super) x: Vec<Block>,
    pub(super) y: Vec<Block>,
    pub(super) fixed_x: Block,
    pub(super) fixed_y: Block,
    pub(super) rows: u64,
}

impl Units {
    pub(super) fn of(x: &SampleSums, y: &SampleSums) -> Self {
        let (small, large) = if x.count() <= y.count() { (x, y) } else { (y, x) };
        let mut level = small.top();
        // Rows of the larger sample in blocks that are larger still stay where they are; the fewer do, the better.
        while large.top() > level && small.count_units(level + 1) >= FEWEST {
            level += 1;
        }
        let ((x, fixed_x), (y, fixed_y)) = (x.units(level), y.units(level));
        Units { x, y, fixed_x, fixed_y, rows: 1 << level }
    }

    /// The sums of all of them, one in a row: those of x, those of y, what stays in x, what stays in y.
    pub(super) fn stacked(&self) -> Result<Array2<f64>> {
        let shape = (self.x.len() + self.y.len() + 2, self.fixed_x.sums.len());
        let mut out = filled("sums of blocks", shape, 0.0, |_| "ask for fewer features".into())?;
        for (mut row, block) in out.rows_mut().into_iter().zip(self.all()) {
            row.assign(&ArrayView1::from(&block.sums));
        }
        Ok(out)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Block> {
        self.x.iter().chain(&self.y).chain([&self.fixed_x, &self.fixed_y])
    }
}

use super::rounding::{PIECE, Rounded, Rounding, Share};
use super::{Means, Preconditioner, Solution, check_solution, check_totals};
use crate::accumulate::{BLOCK, Collector, Gathered, Moves, Origin, Step, Totals, add_adjoint_times};
use crate::context::Journal;
use crate::error::{Error, Result, check_dim};
use crate::feature::FeatureMap;
use crate::interrupt;
use crate::linalg::field::Window;
use crate::linalg::gemm::thin::MOST_COLUMNS;
use crate::linalg::{Tile, TileMut};
use crate::parallel::{self, Parallel};
use crate::rows::RowSource;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, s};

/// A symmetric, positive semi-definite matrix known by what it does to vectors.
pub trait Operator {
    /// Number of rows.
    fn dim(&self) -> usize;

    /// The product with the columns of `v`.
    ///
    /// # Errors
    /// Those of whatever the product is computed from.
    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>>;

    /// What features that were rounded say of the matrix, where they were on the way; only the first call gets it.
    ///
    /// # Errors
    /// Memory that cannot be had.
    fn take_rounded(&mut self) -> Result<Option<Rounded>> {
        Ok(None)
    }
}

/// The last state that an earlier run has kept.
pub(crate) fn last_state(journal: &mut dyn Journal) -> Result<Option<Array2<f64>>> {
    let mut last = None;
    while let Some(state) = journal.recall()? {
        last = Some(state);
    }
    Ok(last)
}

/// Matrices of as many columns and some numbers as one matrix: what a journal keeps of an iteration.
pub(crate) fn packed(matrices: &[&Array2<f64>], numbers: &[f64]) -> Array2<f64> {
    let columns = matrices[0].ncols();
    let values = matrices.iter().flat_map(|m| m.iter()).copied();
    let numbers = numbers.iter().flat_map(|v| std::iter::repeat_n(*v, columns));
    let values: Vec<f64> = values.chain(numbers).collect();
    Array2::from_shape_vec((values.len() / columns.max(1), columns), values).expect("whole rows")
}

/// The inverse of [`packed`], for matrices whose shapes are right already.
pub(crate) fn unpack(state: &Array2<f64>, matrices: &mut [&mut Array2<f64>], numbers: &mut [f64]) -> Result<()> {
    let rows = matrices.iter().map(|m| m.nrows()).sum::<usize>() + numbers.len();
    check_dim("number of rows of a recorded state", rows, state.nrows())?;
    check_dim("number of columns of a recorded state", matrices[0].ncols(), state.ncols())?;
    let mut values = state.iter().copied();
    for matrix in matrices {
        matrix.iter_mut().zip(&mut values).for_each(|(to, from)| *to = from);
    }
    let first = rows - numbers.len();
    for (k, to) in numbers.iter_mut().enumerate() {
        *to = state.row(first + k).first().copied().unwrap_or(0.0);
    }
    Ok(())
}

/// An operator whose products are recorded where there is a journal, or recalled where they were.
pub(crate) struct Journalled<'a> {
    pub(crate) operator: &'a mut dyn Operator,
    pub(crate) journal: Option<&'a mut dyn Journal>,
}

impl Operator for Journalled<'_> {
    fn dim(&self) -> usize {
        self.operator.dim()
    }

    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let Some(journal) = &mut self.journal else { return self.operator.apply(v) };
        if let Some(product) = journal.recall()? {
            check_dim("number of rows of a recorded product", v.nrows(), product.nrows())?;
            check_dim("number of columns of a recorded product", v.ncols(), product.ncols())?;
            return Ok(product);
        }
        let product = self.operator.apply(v)?;
        journal.record(product.view())?;
        Ok(product)
    }

    fn take_rounded(&mut self) -> Result<Option<Rounded>> {
        self.operator.take_rounded()
    }
}

/// The normal equations of a source: products with `FᵀWF` (centred where an intercept is asked for), for which features
/// are computed again in every pass, or kept where they fit.
pub(crate) struct Normal<'a, R: Real, M> {
    map: &'a M,
    source: &'a mut dyn RowSource<R>,
    collector: Collector<R>,
    kept: Option<Vec<Kept<R>>>,
    rounding: Option<Rounding>,
    pub(super) totals: Totals,
    /// What the equations are about.
    point: Means,
    /// The same, less the origin of the collected rows.
    pub(super) means: Means,
    /// `FᵀWY`, centred.
    pub(super) rhs: Array2<f64>,
    /// Diagonal of the operator; zeros where features are rounded.
    pub(super) diagonal: Vec<f64>,
}

/// Bytes of features that are read twice by a product, about: the third-level cache holds them beside the sums.
const PART_BYTES: usize = 12 << 20;

/// Rows of such a part: where it has so many, a multiple of the rows of a chain of products, so that bits do not depend on
/// where blocks end.
fn part_rows<R: Real>(dim: usize) -> usize {
    let rows = PART_BYTES / (dim * size_of::<R>()).max(1);
    if rows >= PIECE { rows / PIECE * PIECE } else { rows.next_multiple_of(32) }
}

/// Rows of blocks that every thread gets two tiles of: features are still in a cache when they are read.
fn small_block(part_rows: usize) -> usize {
    let rows = (128 * parallel::threads()).next_multiple_of(PIECE);
    if part_rows >= PIECE { rows.min(BLOCK) } else { BLOCK }
}

struct Kept<R> {
    features: Vec<R>,
    sides: Vec<R>,
}

impl<'a, R: Real, M: FeatureMap<Real = R, Output = R>> Normal<'a, R, M> {
    /// Reads the source once: means, right-hand sides, diagonal, and for [`Preconditioner::Rounded`] the Gram matrix of
    /// rounded features. Features that take less than `keep` bytes in all are kept for the passes to come; where they take
    /// less than that only if rounded, they are kept rounded for [`Preconditioner::Nystrom`].
    pub(crate) fn new(
        map: &'a M,
        source: &'a mut dyn RowSource<R>,
        intercept: bool,
        keep: u64,
        preconditioner: Preconditioner,
    ) -> Result<Self> {
        let (dim, outputs) = (map.output_dim(), source.target_dim());
        check_dim("number of input columns", map.input_dim(), source.input_dim())?;
        if outputs == 0 {
            return Err(Error::parameter("targets", "at least one column", "none"));
        }
        /// Columns per task whose squares are summed.
        const DIAGONAL: usize = 512;
        let rows = source.len_hint();
        let share = match (preconditioner, rows) {
            (Preconditioner::Rounded, _) => Some(Rounding::share(rows, dim)),
            (Preconditioner::Nystrom(_), Some(rows)) => {
                let kept = (rows as u64).saturating_mul(((dim + outputs + 1) * size_of::<R>()) as u64);
                (kept > keep && Rounding::bytes_of_rows(rows, dim, outputs) <= keep).then_some(Share::None)
            }
            _ => None,
        };
        let mut rounding = share.map(|share| Rounding::new(share, intercept));
        let block = if rounding.is_some() { small_block(part_rows::<R>(dim)) } else { BLOCK };
        let moves = if intercept { Moves::Both } else { Moves::Targets };
        let mut collector = Collector::in_blocks(dim, outputs, block)?.moving(moves);
        let mut totals = Totals::zeros(outputs);
        // Right-hand sides, then sums of the features.
        let mut products = vec![0.0; dim * (outputs + 1)];
        let mut diagonal = vec![0.0; dim];
        let mut kept = (keep > 0 && share != Some(Share::None)).then(Vec::new);
        let mut room = keep;
        let mut full = |block: Gathered<'_, R>| {
            let columns = outputs + 1;
            add_adjoint_times(block, &mut products);
            // Nobody asks for it where the whole matrix is made.
            let wanted = if rounding.is_some() { &mut [][..] } else { &mut diagonal[..] };
            wanted.chunks_mut(DIAGONAL).enumerate().in_parallel().for_each(|(index, sums)| {
                let features = block.features.columns(index * DIAGONAL..index * DIAGONAL + sums.len());
                for i in 0..features.rows() {
                    for (sum, value) in sums.iter_mut().zip(features.row(i)) {
                        *sum += Real::to_f64(*value) * Real::to_f64(*value);
                    }
                }
            });
            if let Some(rounding) = &mut rounding {
                rounding.add(block.features, &roots(block.sides))?;
            }
            let bytes = (block.features.rows() * (dim + columns) * size_of::<R>()) as u64;
            if let Some(blocks) = kept.as_mut().filter(|_| bytes <= room) {
                room -= bytes;
                let copy = |tile: Tile<'_, R>| (0..tile.rows()).flat_map(|i| tile.row(i)).copied().collect();
                blocks.push(Kept { features: copy(block.features), sides: copy(block.sides) });
            } else {
                kept = None;
            }
            Ok(())
        };
        source.for_each_block(&mut |block| {
            let each = &mut |weight, row: ndarray::ArrayView1<'_, R>| totals.add_row(weight, row);
            collector.push_rows(map, block, each, &mut full)
        })?;
        collector.finish(&mut full)?;
        check_totals(&totals)?;
        if !diagonal.iter().chain(&products).all(|v| v.is_finite()) {
            return Err(Error::overflow());
        }
        let products = Array2::from_shape_vec((dim, outputs + 1), products).expect("a row per feature");
        let (mut cross, sums) = (products.slice(s![.., ..outputs]).to_owned(), products.column(outputs).to_vec());
        let (origin, targets) = collector.origin().map_or_else(Default::default, Origin::widened);
        totals.move_to(&targets);
        let total = totals.weight_sum;
        let point = match intercept {
            true => {
                let means = origin.iter().zip(&sums).map(|(origin, sum)| origin + sum / total).collect();
                Means { features: means, targets: totals.means() }
            }
            false => Means::zeros(dim, outputs),
        };
        let step = Step::between((&origin, &targets), (&point.features, &point.targets));
        step.change_cross(&mut cross, &sums, &totals);
        for ((value, sum), step) in diagonal.iter_mut().zip(&sums).zip(&step.features) {
            *value = (*value - step * (2.0 * sum - total * step)).max(0.0);
        }
        let means = Means { features: step.features, targets: step.targets };
        Ok(Normal { map, source, collector, kept, rounding, totals, point, means, rhs: cross, diagonal })
    }

    /// Right-hand sides and diagonal.
    pub(crate) fn system(&self) -> (Array2<f64>, Vec<f64>) {
        (self.rhs.clone(), self.diagonal.clone())
    }

    /// Coefficients with the intercept that belongs to them.
    pub(crate) fn solution(&self, coefficients: Array2<f64>) -> Result<Solution> {
        let intercept = self.point.intercept(&coefficients);
        check_solution(Solution { coefficients, intercept })
    }

    /// Hands out all rows in blocks, from memory or by computing them again.
    pub(super) fn for_each(&mut self, full: &mut dyn FnMut(Gathered<'_, R>) -> Result<()>) -> Result<()> {
        let (dim, columns) = (self.collector.dim(), self.collector.outputs() + 1);
        if let Some(kept) = &self.kept {
            return kept.iter().try_for_each(|block| {
                let rows = block.features.len() / dim;
                full(Gathered {
                    features: Tile::new(&block.features, rows, dim),
                    sides: Tile::new(&block.sides, rows, columns),
                })?;
                interrupt::advance(rows);
                interrupt::check()
            });
        }
        let (map, collector) = (self.map, &mut self.collector);
        collector.restart();
        self.source.for_each_block(&mut |block| collector.push_rows(map, block, &mut |_, _| (), full))?;
        collector.finish(full)?;
        if collector.count() != self.totals.count {
            let (first, now) = (self.totals.count, collector.count());
            return Err(Error::Format {
                what: "rows",
                detail: format!("the source delivered {first} rows at first and {now} rows when read again"),
            });
        }
        Ok(())
    }
}

/// Numbers in precision `R`, with zero columns up to a multiple of 4: products then round alike for any number of columns.
pub(super) fn padded<R: Real>(v: ArrayView2<'_, f64>) -> (Vec<R>, usize) {
    let width = v.ncols().next_multiple_of(4);
    let mut values = vec![R::ZERO; v.nrows() * width];
    for (to, from) in values.chunks_mut(width).zip(v.rows()) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = R::from_f64(*from));
    }
    (values, width)
}

/// `features · v - √w · shift`, summed in double precision: what a linear function says about the rows of a block.
pub(super) fn evaluate<R: Real>(features: Tile<'_, R>, v: Tile<'_, R>, roots: &[R], shift: &[f64]) -> Vec<R> {
    // Rows per task.
    const STRIP: usize = 64;
    let width = v.cols();
    let mut out = vec![R::ZERO; features.rows() * width];
    out.chunks_mut(STRIP * width).enumerate().in_parallel().for_each_init(
        || (Vec::new(), Vec::new()),
        |(scratch, wide), (index, out)| {
            let rows = out.len() / width;
            wide.clear();
            wide.resize(rows * width, 0.0);
            let left = features.rows_in(index * STRIP..index * STRIP + rows);
            R::add_product(TileMut::new(wide, rows, width), Window::from(left), v.into(), scratch);
            for (i, (to, from)) in out.chunks_mut(width).zip(wide.chunks(width)).enumerate() {
                let root = Real::to_f64(roots[index * STRIP + i]);
                for (j, (to, from)) in to.iter_mut().zip(from).enumerate() {
                    *to = R::from_f64(from - root * shift.get(j).copied().unwrap_or(0.0));
                }
            }
        },
    );
    out
}

/// The square roots of the weights of rows, from their sides.
pub(super) fn roots<R: Real>(sides: Tile<'_, R>) -> Vec<R> {
    let last = sides.cols() - 1;
    (0..sides.rows()).map(|i| sides.row(i)[last]).collect()
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Operator for Normal<'_, R, M> {
    fn dim(&self) -> usize {
        self.map.output_dim()
    }

    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (dim, cols) = v.dim();
        check_dim("number of rows of the vectors", self.dim(), dim)?;
        let (values, width) = padded::<R>(v);
        let tile = Tile::new(&values, dim, width);
        let shift = self.means.of(v);
        let mut sums = vec![0.0; dim * width];
        let mut remainder = vec![0.0; width];
        // Many columns have sums that are longer than the features: those are better read twice than the sums more often.
        let part_rows = if width <= MOST_COLUMNS { part_rows::<R>(dim) } else { usize::MAX };
        self.for_each(&mut |block| {
            for start in (0..block.features.rows()).step_by(part_rows) {
                let rows = start..start.saturating_add(part_rows).min(block.features.rows());
                let features = block.features.rows_in(rows.clone());
                let roots = roots(block.sides.rows_in(rows));
                let images = evaluate(features, tile, &roots, &shift);
                let sides = Tile::new(&images, roots.len(), width);
                for (i, root) in roots.iter().enumerate() {
                    for (sum, value) in remainder.iter_mut().zip(sides.row(i)) {
                        *sum += Real::to_f64(*root) * Real::to_f64(*value);
                    }
                }
                add_adjoint_times(Gathered { features, sides }, &mut sums);
            }
            Ok(())
        })?;
        let mut out = Array2::from_shape_fn((dim, cols), |(i, j)| sums[i * width + j]);
        // Zero but for rounding; without it the operator would not be quite symmetric.
        for (mut out, mean) in out.rows_mut().into_iter().zip(&self.means.features) {
            out.iter_mut().zip(&remainder).for_each(|(value, sum)| *value -= mean * sum);
        }
        Ok(out)
    }

    fn take_rounded(&mut self) -> Result<Option<Rounded>> {
        // About the means of the rounded features: about those of the others it would not be positive.
        self.rounding.take().map_or(Ok(None), |rounding| rounding.finish(self.totals.weight_sum))
    }
}

use super::{Cotangents, Parts, Projection, Sink, add_scaled, panels};
use crate::error::{Error, Result, check_count};
use crate::linalg::gemm::{Packed, Panels, product};
use crate::linalg::{Tile, TileMut, Workspace, orthonormal_rows};
use crate::memory::zeros;
use crate::parallel::{self, Parallel};
use crate::random::{Role, Seed, Stream, fill_normals};
use crate::scalar::{Real, Scalar};
use std::f64::consts::FRAC_1_SQRT_2;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Bytes of a row of columns made before whatever follows reads them: 64 such rows stay in the second-level cache.
const PANEL_BYTES: usize = 2048;

/// Directions that are drawn and used by one task, where a projection shares its work among threads.
const TASK_DIRECTIONS: usize = 128;

/// Products below which such sharing costs more than it brings.
const PARALLEL_FROM: usize = 1 << 22;

/// A projection by a matrix product; `W` says where the weights come from.
///
/// One product serves stored weights, signs expanded from bits and normals drawn on the way, so that equal weights give
/// equal bits.
#[derive(Debug, Clone)]
pub struct Dense<R, O, W> {
    input_dim: usize,
    output_dim: usize,
    weights: Arc<W>,
    numbers: PhantomData<fn() -> (R, O)>,
}

/// Independent standard normal entries, stored: `w ~ N(0, I)`, or `(g + ih)/√2` for complex outputs.
///
/// Entry `i` of direction `j` is normal `i` of stream `j` (complex: of streams `2j` and `2j + 1`), so the first directions
/// of a large projection are the directions of a small one.
pub type DenseGaussian<R, O = R> = Dense<R, O, Stored<R, Normals>>;

/// The name of [`DenseGaussian`] up to version 0.1.
#[deprecated(since = "0.2.0", note = "there is a kernel of this name: `DenseGaussian`")]
pub type Gaussian<R, O = R> = DenseGaussian<R, O>;

/// The weights of [`DenseGaussian`] with nothing stored: drawn again for every block of rows, bit for bit.
///
/// Memory is constant in both dimensions. Drawing a weight takes as long as some 200 products in `f32` and half as many
/// in `f64`, so hundreds of rows should share it: [`shared_rows`](Projection::shared_rows) says so to the maps over it. A
/// call from outside a thread pool (a block of rows that is one tile) shares its directions among the threads.
pub type MatrixFree<R, O = R> = Dense<R, O, Normals>;

/// Independent signs `±1`, or `{1, -1, i, -i}` for complex outputs; stored as bits.
///
/// The product multiplies by `±1`, which is an addition with the sign flipped; bits become numbers in cache, one panel at
/// a time.
pub type Rademacher<R, O = R> = Dense<R, O, Signs>;

/// Directions given one by one, stored.
pub type Given<R> = Dense<R, R, Stored<R, Rows>>;

/// Haar-orthogonal blocks of `d` directions with independent `χ_d` lengths: each direction is standard normal, the
/// directions of a block are orthogonal (Yu et al. 2016).
pub type Orthogonal<R> = Dense<R, R, Stored<R, Rows>>;

/// Where weights come from.
pub trait Weights<R: Real>: Debug + Send + Sync {
    /// Rows that should share one call.
    fn shared_rows(&self) -> usize {
        1
    }

    /// Writes columns `columns` of the projected rows; real weights leave `im` alone.
    fn project(&self, rows: Tile<'_, R>, columns: Range<usize>, out: Parts<'_, R>, work: &mut Workspace<R>);

    /// Adds the transpose; see [`Projection::pull_tile`].
    fn pull(&self, cotangents: Cotangents<'_, R>, columns: Range<usize>, out: TileMut<'_, R>, work: &mut Workspace<R>);
}

/// The transpose as a right factor: row `parts · j + part` is part `part` of direction `j`, so that both parts of a direction
/// are drawn together.
struct Transposed<'a, S>(&'a S);

impl<S: Source> Transposed<'_, S> {
    fn parts(&self) -> usize {
        1 + usize::from(self.0.is_complex())
    }
}

impl<R: Real, S: Source> Panels<R, 1> for Transposed<'_, S> {
    fn depth(&self) -> usize {
        self.parts() * self.0.shape().1
    }

    fn columns(&self) -> usize {
        self.0.shape().0
    }

    fn write(&self, panel: usize, wanted: Range<usize>, out: &mut [R]) {
        let (width, parts) = (R::PANEL, self.parts());
        let inputs = panel * width..((panel + 1) * width).min(self.0.shape().0);
        // Sources draw whole panels of directions.
        let mut block = vec![R::ZERO; parts * inputs.len() * width];
        let mut first = wanted.start / parts / width * width;
        out.fill(R::ZERO);
        while parts * first < wanted.end {
            self.0.write(first, width, inputs.clone(), &mut block);
            for (part, block) in block.chunks_exact(inputs.len() * width).enumerate() {
                for k in 0..width {
                    let row = parts * (first + k) + part;
                    if wanted.contains(&row) {
                        let to = &mut out[(row - wanted.start) * width..][..inputs.len()];
                        to.iter_mut().zip(block.iter().skip(k).step_by(width)).for_each(|(o, v)| *o = *v);
                    }
                }
            }
            first += width;
        }
    }
}

/// Some rows of a right factor.
struct Rest<'a, S> {
    all: &'a S,
    depths: Range<usize>,
}

impl<R: Real, S: Panels<R, 1>> Panels<R, 1> for Rest<'_, S> {
    fn depth(&self) -> usize {
        self.depths.len()
    }

    fn columns(&self) -> usize {
        self.all.columns()
    }

    fn is_stored(&self) -> bool {
        self.all.is_stored()
    }

    fn stored(&self, panel: usize, part: usize, depths: Range<usize>) -> &[R] {
        self.all.stored(panel, part, depths.start + self.depths.start..depths.end + self.depths.start)
    }

    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [R]) {
        self.all.write(panel, depths.start + self.depths.start..depths.end + self.depths.start, out);
    }
}

/// Adds one product with a transpose; parts of complex cotangents meet its rows side by side.
fn pull_with<R: Real>(
    right: &impl Panels<R, 1>,
    cotangents: Cotangents<'_, R>,
    mut out: TileMut<'_, R>,
    work: &mut Workspace<R>,
) {
    let (n, m, d) = (cotangents.re.rows(), cotangents.re.cols(), out.cols());
    let mut sums = work.take(n * d);
    let mut both = Vec::new();
    let left = if cotangents.im.rows() == 0 {
        cotangents.re
    } else {
        both = work.take(2 * n * m);
        for (i, both) in both.chunks_exact_mut(2 * m).enumerate() {
            let parts = cotangents.re.row(i).iter().zip(cotangents.im.row(i));
            both.as_chunks_mut::<2>().0.iter_mut().zip(parts).for_each(|(to, (re, im))| *to = [*re, *im]);
        }
        Tile::new(&both, n, 2 * m)
    };
    product(left, right, 0..d, [TileMut::new(&mut sums, n, d)], work);
    add_scaled(Tile::new(&sums, n, d), R::ONE, &mut out);
    work.give(sums);
    if !both.is_empty() {
        work.give(both);
    }
}

/// A source of weights written panel by panel.
pub trait Source: Debug + Send + Sync {
    /// Length and number of directions.
    fn shape(&self) -> (usize, usize);
    /// Whether directions are complex.
    fn is_complex(&self) -> bool;
    /// Writes entries `depths` of directions `first..`, `width` of them side by side, part after part; past the last
    /// direction zeros.
    fn write<R: Real>(&self, first: usize, width: usize, depths: Range<usize>, out: &mut [R]);
}

/// A [`Source`] as the right factor of a product.
struct OnTheWay<'a, S>(&'a S);

impl<R: Real, S: Source, const P: usize> Panels<R, P> for OnTheWay<'_, S> {
    fn depth(&self) -> usize {
        self.0.shape().0
    }

    fn columns(&self) -> usize {
        self.0.shape().1
    }

    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [R]) {
        self.0.write(panel * R::PANEL, R::PANEL, depths, out);
    }
}

/// One product with weights that are made on the way.
fn project_on_the_way<R: Real, S: Source>(
    source: &S,
    rows: Tile<'_, R>,
    columns: Range<usize>,
    out: Parts<'_, R>,
    work: &mut Workspace<R>,
) {
    if source.is_complex() {
        product::<R, _, 2>(rows, &OnTheWay(source), columns, [out.re, out.im], work);
    } else {
        product::<R, _, 1>(rows, &OnTheWay(source), columns, [out.re], work);
    }
}

impl<R: Real> Weights<R> for Normals {
    fn shared_rows(&self) -> usize {
        1024
    }

    fn project(&self, rows: Tile<'_, R>, columns: Range<usize>, mut out: Parts<'_, R>, work: &mut Workspace<R>) {
        let products = (rows.rows() * self.depth).saturating_mul(columns.len());
        // Inside a pool the caller's tiles occupy the threads, unless there is one only; a wait here could also pick up
        // another of those tiles, with all its buffers.
        if products < PARALLEL_FROM || (parallel::is_inside() && !work.is_alone()) {
            return project_on_the_way(self, rows, columns, out, work);
        }
        let mut tasks = Vec::new();
        for first in columns.clone().step_by(TASK_DIRECTIONS) {
            let piece = first..(first + TASK_DIRECTIONS).min(columns.end);
            let window;
            (window, out) = out.split_columns_at(piece.len());
            tasks.push((piece, window));
        }
        tasks.in_parallel().for_each_init(Workspace::new, |work, (piece, out)| {
            project_on_the_way(self, rows, piece, out, work);
        });
    }

    fn pull(&self, cotangents: Cotangents<'_, R>, columns: Range<usize>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let parts = 1 + usize::from(self.is_complex());
        let depths = parts * columns.start..parts * columns.end;
        pull_with(&Rest { all: &Transposed(self), depths }, cotangents, out, work);
    }
}

impl<R: Real> Weights<R> for Signs {
    /// As many rows as a product takes at a time: bits become numbers once for all of them.
    fn shared_rows(&self) -> usize {
        96
    }

    fn project(&self, rows: Tile<'_, R>, columns: Range<usize>, out: Parts<'_, R>, work: &mut Workspace<R>) {
        project_on_the_way(self, rows, columns, out, work);
    }

    fn pull(&self, cotangents: Cotangents<'_, R>, columns: Range<usize>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let parts = 1 + usize::from(self.is_complex());
        let depths = parts * columns.start..parts * columns.end;
        pull_with(&Rest { all: &Transposed(self), depths }, cotangents, out, work);
    }
}

/// Weights of a [`Source`], written once and kept in the order of the product.
#[derive(Debug, Clone)]
pub struct Stored<R, S> {
    numbers: Numbers<R>,
    /// The transpose, which only pullbacks need: made with the first one, and shared by copies of the projection.
    transposed: OnceLock<Option<Packed<R, 1>>>,
    source: PhantomData<fn() -> S>,
}

#[derive(Debug, Clone)]
enum Numbers<R> {
    Real(Packed<R, 1>),
    Complex(Packed<R, 2>),
}

impl<R> Numbers<R> {
    fn parts(&self) -> usize {
        match self {
            Numbers::Real(_) => 1,
            Numbers::Complex(_) => 2,
        }
    }
}

/// The transpose of what is stored, as [`Transposed`].
impl<R: Real> Panels<R, 1> for Numbers<R> {
    fn depth(&self) -> usize {
        match self {
            Numbers::Real(packed) => packed.columns(),
            Numbers::Complex(packed) => 2 * packed.columns(),
        }
    }

    fn columns(&self) -> usize {
        match self {
            Numbers::Real(packed) => packed.depth(),
            Numbers::Complex(packed) => packed.depth(),
        }
    }

    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [R]) {
        let inputs = panel * R::PANEL..((panel + 1) * R::PANEL).min(self.columns());
        for (row, out) in depths.zip(out.chunks_exact_mut(R::PANEL)) {
            let (direction, part) = (row / self.parts(), row % self.parts());
            let stored = match self {
                Numbers::Real(packed) => packed.stored(direction / R::PANEL, part, inputs.clone()),
                Numbers::Complex(packed) => packed.stored(direction / R::PANEL, part, inputs.clone()),
            };
            let entries = stored.iter().skip(direction % R::PANEL).step_by(R::PANEL);
            out[inputs.len()..].fill(R::ZERO);
            out.iter_mut().zip(entries).for_each(|(o, v)| *o = *v);
        }
    }
}

impl<R: Real, S: Source> Stored<R, S> {
    fn new(source: &S) -> Result<Self> {
        let panels = OnTheWay(source);
        let numbers = match source.is_complex() {
            true => Numbers::Complex(Packed::new(&panels)?),
            false => Numbers::Real(Packed::new(&panels)?),
        };
        Ok(Stored { numbers, transposed: OnceLock::new(), source: PhantomData })
    }
}

impl<R: Real, S: Source> Weights<R> for Stored<R, S> {
    fn project(&self, rows: Tile<'_, R>, columns: Range<usize>, out: Parts<'_, R>, work: &mut Workspace<R>) {
        match &self.numbers {
            Numbers::Real(packed) => product(rows, packed, columns, [out.re], work),
            Numbers::Complex(packed) => product(rows, packed, columns, [out.re, out.im], work),
        }
    }

    fn pull(&self, cotangents: Cotangents<'_, R>, columns: Range<usize>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let parts = self.numbers.parts();
        let depths = parts * columns.start..parts * columns.end;
        // Without memory for a second copy the first one is turned on the way.
        match self.transposed.get_or_init(|| Packed::new(&self.numbers).ok()) {
            Some(all) => pull_with(&Rest { all, depths }, cotangents, out, work),
            None => pull_with(&Rest { all: &self.numbers, depths }, cotangents, out, work),
        }
    }
}

impl<R: Real, O: Scalar<Real = R>, W: Weights<R>> Dense<R, O, W> {
    fn with_weights(input_dim: usize, output_dim: usize, weights: W) -> Self {
        Dense { input_dim, output_dim, weights: Arc::new(weights), numbers: PhantomData }
    }

    /// Writes `∏ᵢ Wᵢx` panel by panel.
    ///
    /// Factors meet in contiguous buffers: rows of a wide output share a few sets of the cache.
    fn product(factors: &[Self], rows: &[Tile<'_, R>], mut out: impl Sink<R>, work: &mut Workspace<R>) {
        let (Some((first, others)), Some((first_rows, other_rows))) = (factors.split_first(), rows.split_first())
        else {
            return;
        };
        let n = first_rows.rows();
        let most = n * first.panel().min(first.output_dim);
        let mut buffers: [Vec<R>; 4] =
            std::array::from_fn(|i| work.take(if i % 2 == 0 || O::IS_COMPLEX { most } else { 0 }));
        for columns in panels(first.output_dim, first.panel()) {
            let m = columns.len();
            let [re, im, other_re, other_im] = &mut buffers;
            let mut project = |factor: &Self, rows, re: &mut Vec<R>, im: &mut Vec<R>| {
                let window =
                    |buffer| if O::IS_COMPLEX { TileMut::new(buffer, n, m) } else { TileMut::new(&mut [], 0, 0) };
                let out = Parts::new(TileMut::new(re, n, m), window(im));
                factor.weights.project(rows, columns.clone(), out, work);
            };
            project(first, *first_rows, re, im);
            for (factor, rows) in others.iter().zip(other_rows) {
                project(factor, *rows, other_re, other_im);
                multiply(&mut re[..n * m], im, &other_re[..n * m], other_im);
            }
            for i in 0..n {
                let im = if O::IS_COMPLEX { &im[i * m..][..m] } else { &[] };
                out.write(i, columns.start, &re[i * m..][..m], im);
            }
        }
        buffers.into_iter().for_each(|buffer| work.give(buffer));
    }
}

/// `re + i im` times `other_re + i other_im`, number by number; real numbers have no imaginary parts.
#[inline(always)]
fn multiply<R: Real>(re: &mut [R], im: &mut [R], other_re: &[R], other_im: &[R]) {
    if im.is_empty() {
        re.iter_mut().zip(other_re).for_each(|(a, c)| *a *= *c);
    } else {
        let (n, im) = (re.len(), &mut im[..re.len()]);
        let (other_re, other_im) = (&other_re[..n], &other_im[..n]);
        for k in 0..n {
            let (a, b, c, d) = (re[k], im[k], other_re[k], other_im[k]);
            re[k] = a * c - b * d;
            im[k] = a * d + b * c;
        }
    }
}

fn check_dims(input_dim: usize, output_dim: usize) -> Result<()> {
    check_count("input_dim", input_dim)?;
    check_count("output_dim", output_dim)
}

impl<R: Real, O: Scalar<Real = R>, W: Weights<R>> Projection for Dense<R, O, W> {
    type Real = R;
    type Output = O;

    dims!();

    fn panel(&self) -> usize {
        PANEL_BYTES / size_of::<R>()
    }

    fn shared_rows(&self) -> usize {
        self.weights.shared_rows()
    }

    fn project_tile(&self, rows: Tile<'_, R>, columns: Range<usize>, out: TileMut<'_, O>, work: &mut Workspace<R>) {
        match O::as_real(out) {
            Ok(out) => self.weights.project(rows, columns, Parts::real(out), work),
            Err(mut out) => {
                let (n, m) = (rows.rows(), columns.len());
                let (mut re, mut im) = (work.take(n * m), work.take(n * m));
                let parts = Parts::new(TileMut::new(&mut re, n, m), TileMut::new(&mut im, n, m));
                self.weights.project(rows, columns, parts, work);
                for i in 0..n {
                    out.write(i, 0, &re[i * m..][..m], &im[i * m..][..m]);
                }
                work.give(re);
                work.give(im);
            }
        }
    }

    fn project_tile_split(&self, rows: Tile<'_, R>, columns: Range<usize>, out: Parts<'_, R>, work: &mut Workspace<R>) {
        self.weights.project(rows, columns, out, work);
    }

    fn pull_tile(&self, from: Cotangents<'_, R>, columns: Range<usize>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        self.weights.pull(from, columns, out, work);
    }

    fn product_tile(factors: &[Self], rows: &[Tile<'_, R>], mut out: TileMut<'_, O>, work: &mut Workspace<R>) {
        if let ([factor], [rows]) = (factors, rows) {
            for columns in panels(factor.output_dim, factor.panel()) {
                factor.project_tile(*rows, columns.clone(), out.columns_mut(columns), work);
            }
            return;
        }
        Self::product(factors, rows, out, work);
    }

    fn product_tile_split(factors: &[Self], rows: &[Tile<'_, R>], out: Parts<'_, R>, work: &mut Workspace<R>) {
        Self::product(factors, rows, out, work);
    }
}

/// Standard normal weights as functions of the seed.
#[derive(Debug, Clone)]
pub struct Normals {
    seed: Seed,
    depth: usize,
    directions: usize,
    is_complex: bool,
}

impl Normals {
    fn new<O: Scalar>(seed: Seed, depth: usize, directions: usize) -> Result<Self> {
        check_dims(depth, directions)?;
        Ok(Normals { seed, depth, directions, is_complex: O::IS_COMPLEX })
    }
}

impl Source for Normals {
    fn shape(&self) -> (usize, usize) {
        (self.depth, self.directions)
    }

    fn is_complex(&self) -> bool {
        self.is_complex
    }

    fn write<R: Real>(&self, first: usize, width: usize, depths: Range<usize>, out: &mut [R]) {
        let parts = 1 + usize::from(self.is_complex);
        let (count, len) = (width.min(self.directions - first), depths.len());
        // A line of eight more than the draws: columns of powers of two would meet in a few sets of the cache.
        let stride = len + 8;
        let mut draws = vec![0.0; parts * count * stride];
        let tile = TileMut::with_stride(&mut draws, parts * count, len, stride);
        fill_normals(self.seed, Role::Direction, (parts * first) as u64, depths.start as u64, tile);
        // Scaled before rounding: a weight is rounded once, in either precision.
        let scale = if self.is_complex { FRAC_1_SQRT_2 } else { 1.0 };
        for (part, out) in out.chunks_exact_mut(len * width).enumerate() {
            for (p, row) in out.chunks_exact_mut(width).enumerate() {
                for (k, weight) in row[..count].iter_mut().enumerate() {
                    *weight = R::from_f64(scale * draws[(parts * k + part) * stride + p]);
                }
                row[count..].fill(R::ZERO);
            }
        }
    }
}

impl<R: Real, O: Scalar<Real = R>> DenseGaussian<R, O> {
    /// Draws and stores the weights.
    ///
    /// # Errors
    /// A dimension of 0, or weights that do not fit in memory ([`MatrixFree`] needs none).
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize) -> Result<Self> {
        let normals = Normals::new::<O>(seed, input_dim, output_dim)?;
        Ok(Dense::with_weights(input_dim, output_dim, Stored::new(&normals)?))
    }
}

impl<R: Real, O: Scalar<Real = R>> MatrixFree<R, O> {
    /// Remembers the seed.
    ///
    /// # Errors
    /// A dimension of 0.
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize) -> Result<Self> {
        let normals = Normals::new::<O>(seed, input_dim, output_dim)?;
        Ok(Dense::with_weights(input_dim, output_dim, normals))
    }
}

/// Signs as bits, 64 directions to a word.
#[derive(Debug, Clone)]
pub struct Signs {
    depth: usize,
    directions: usize,
    /// Word `g · depth + i`: bit `k` is set where entry `i` of direction `64 g + k` is negative.
    minus: Vec<u64>,
    /// The same for entries turned by a right angle; empty for real signs.
    turned: Vec<u64>,
}

impl Signs {
    fn new(seed: Seed, depth: usize, directions: usize, turn_probability: Option<f64>) -> Result<Self> {
        let words = directions.div_ceil(64).checked_mul(depth);
        let draw = |part: u64| -> Result<Vec<u64>> {
            let mut bits: Vec<u64> = zeros("random signs", words, "ask for fewer directions")?;
            for (group, words) in bits.chunks_exact_mut(depth).enumerate() {
                Stream::new(seed, Role::Sign, 2 * group as u64 + part).fill_sign_bits(words);
            }
            Ok(bits)
        };
        let turned = match turn_probability {
            None => Vec::new(),
            Some(0.5) => draw(1)?,
            Some(probability) => {
                let mut bits: Vec<u64> = zeros("random turns", words, "ask for fewer directions")?;
                for (group, words) in bits.chunks_exact_mut(depth).enumerate() {
                    let mut draw = Stream::new(seed, Role::Sign, 2 * group as u64 + 1);
                    for word in words {
                        *word = (0..64).fold(0, |w, k| w | u64::from(draw.uniform() < probability) << k);
                    }
                }
                bits
            }
        };
        Ok(Signs { depth, directions, minus: draw(0)?, turned })
    }
}

/// Writes one panel of `NR` directions.
struct Expand<'a, R, const NR: usize> {
    signs: &'a Signs,
    first: usize,
    depths: Range<usize>,
    out: &'a mut [R],
}

impl<R: Real, const NR: usize> pulp::NullaryFnOnce for Expand<'_, R, NR> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        expand::<R, NR>(self.signs, self.first, self.depths, self.out);
    }
}

/// A loop of known length over bits in one register becomes vector code.
#[inline(always)]
fn expand<R: Real, const NR: usize>(signs: &Signs, first: usize, depths: Range<usize>, out: &mut [R]) {
    let start = first / 64 * signs.depth;
    let shift = first % 64;
    let sign = |bits: u32, k: usize| if bits >> k & 1 == 1 { -R::ONE } else { R::ONE };
    let (rows, _) = out.as_chunks_mut::<NR>();
    let (re, im) = rows.split_at_mut(depths.len());
    let words = start + depths.start..start + depths.end;
    if signs.turned.is_empty() {
        for (row, word) in re.iter_mut().zip(&signs.minus[words]) {
            let minus = (word >> shift) as u32;
            for k in 0..NR {
                row[k] = sign(minus, k);
            }
        }
    } else {
        let bits = signs.minus[words.clone()].iter().zip(&signs.turned[words]);
        for ((re, im), (minus, turned)) in re.iter_mut().zip(im).zip(bits) {
            let (minus, turned) = ((minus >> shift) as u32, (turned >> shift) as u32);
            for k in 0..NR {
                let (sign, turned) = (sign(minus, k), turned >> k & 1 == 1);
                re[k] = if turned { R::ZERO } else { sign };
                im[k] = if turned { sign } else { R::ZERO };
            }
        }
    }
    let count = NR.min(signs.directions - first);
    if count < NR {
        rows.iter_mut().for_each(|row| row[count..].fill(R::ZERO));
    }
}

impl Source for Signs {
    fn shape(&self) -> (usize, usize) {
        (self.depth, self.directions)
    }

    fn is_complex(&self) -> bool {
        !self.turned.is_empty()
    }

    fn write<R: Real>(&self, first: usize, width: usize, depths: Range<usize>, out: &mut [R]) {
        // Panels start at multiples of their width, a divisor of 64: a panel never straddles two words.
        let arch = pulp::Arch::new();
        match width {
            8 => arch.dispatch(Expand::<R, 8> { signs: self, first, depths, out }),
            _ => arch.dispatch(Expand::<R, 16> { signs: self, first, depths, out }),
        }
    }
}

impl<R: Real, O: Scalar<Real = R>> Rademacher<R, O> {
    /// Draws the signs; complex ones are uniform on `{1, -1, i, -i}`.
    ///
    /// # Errors
    /// A dimension of 0, or bits that do not fit in memory.
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize) -> Result<Self> {
        check_dims(input_dim, output_dim)?;
        let signs = Signs::new(seed, input_dim, output_dim, O::IS_COMPLEX.then_some(0.5))?;
        Ok(Dense::with_weights(input_dim, output_dim, signs))
    }

    /// Complex signs that are real (`±1`) with probability `q` and imaginary (`±i`) otherwise (thesis 3.3).
    ///
    /// # Errors
    /// As [`new`](Self::new); a real output type, or `q` outside `[0, 1]`.
    pub fn with_real_probability(seed: Seed, q: f64, input_dim: usize, output_dim: usize) -> Result<Self> {
        check_dims(input_dim, output_dim)?;
        if !(0.0..=1.0).contains(&q) {
            return Err(Error::parameter("q", "between 0 and 1", q));
        }
        if !O::IS_COMPLEX {
            return Err(Error::Unsupported { what: "q", reason: "real weights have q = 1".into() });
        }
        let signs = Signs::new(seed, input_dim, output_dim, Some(1.0 - q))?;
        Ok(Dense::with_weights(input_dim, output_dim, signs))
    }
}

/// Directions given row by row.
#[derive(Debug, Clone)]
pub struct Rows {
    depth: usize,
    rows: Vec<f64>,
}

impl Source for Rows {
    fn shape(&self) -> (usize, usize) {
        (self.depth, self.rows.len() / self.depth)
    }

    fn is_complex(&self) -> bool {
        false
    }

    fn write<R: Real>(&self, first: usize, width: usize, depths: Range<usize>, out: &mut [R]) {
        let count = width.min(self.shape().1 - first);
        for (p, i) in depths.enumerate() {
            for k in 0..width {
                let value = if k < count { self.rows[(first + k) * self.depth + i] } else { 0.0 };
                out[p * width + k] = R::from_f64(value);
            }
        }
    }
}

/// Draws `count` orthonormal rows: those of a random matrix, made orthonormal; dependent ones are drawn again.
fn orthonormal(seed: Seed, dim: usize, count: usize, signs: bool, rows: &mut [f64]) -> Result<()> {
    // Sign matrices of small order are singular often; a hundred failures in a row mean something else is wrong.
    for attempt in 0..100 {
        let seed = if attempt == 0 { seed } else { seed.child(attempt) };
        for (j, row) in rows.chunks_exact_mut(dim).enumerate() {
            let mut draw = Stream::new(seed, Role::Direction, j as u64);
            if signs {
                row.iter_mut().for_each(|w| *w = if draw.next_u64() >> 63 == 1 { -1.0 } else { 1.0 });
            } else {
                draw.normals_from(0, row);
            }
        }
        if orthonormal_rows(rows, count, dim) > 1e-10 {
            return Ok(());
        }
    }
    Err(Error::Unsupported { what: "orthogonal directions", reason: "a hundred draws in a row were singular".into() })
}

impl<R: Real> Given<R> {
    /// Direction `j` is what `draw(j, …)` writes.
    ///
    /// # Errors
    /// A dimension of 0, or weights that do not fit in memory.
    pub fn given(input_dim: usize, output_dim: usize, draw: impl Fn(usize, &mut [f64])) -> Result<Self> {
        check_dims(input_dim, output_dim)?;
        let mut rows: Vec<f64> =
            zeros("stored directions", output_dim.checked_mul(input_dim), "ask for fewer of them")?;
        rows.chunks_exact_mut(input_dim).enumerate().for_each(|(j, row)| draw(j, row));
        Ok(Dense::with_weights(input_dim, output_dim, Stored::new(&Rows { depth: input_dim, rows })?))
    }
}

impl<R: Real> Orthogonal<R> {
    /// Draws blocks of orthogonal directions, each direction standard normal on its own.
    ///
    /// # Errors
    /// A dimension of 0, or weights that do not fit in memory.
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize) -> Result<Self> {
        Self::with_lengths(seed, input_dim, output_dim, |j| {
            Stream::new(seed, Role::Radius, j as u64).chi(input_dim as f64)
        })
    }

    /// Orthogonal directions of given lengths.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_lengths(
        seed: Seed,
        input_dim: usize,
        output_dim: usize,
        length: impl Fn(usize) -> f64 + Sync,
    ) -> Result<Self> {
        check_dims(input_dim, output_dim)?;
        let d = input_dim;
        let mut rows: Vec<f64> = zeros("orthogonal directions", output_dim.checked_mul(d), "use a Hadamard chain")?;
        rows.chunks_mut(d * d).enumerate().in_parallel().try_for_each(|(block, rows)| {
            let count = rows.len() / d;
            orthonormal(seed.child(block as u64), d, count, false, rows)?;
            for (k, row) in rows.chunks_exact_mut(d).enumerate() {
                let length = length(block * d + k);
                row.iter_mut().for_each(|w| *w *= length);
            }
            Ok::<_, Error>(())
        })?;
        Ok(Dense::with_weights(d, output_dim, Stored::new(&Rows { depth: d, rows })?))
    }
}

/// The entries an orthoprojector is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entries {
    /// Normals: the row space is uniformly distributed.
    #[default]
    Gaussian,
    /// Signs.
    Sign,
}

/// `m ≤ d` orthogonal directions of length `√d`: a random orthoprojector.
///
/// As a [`Projection`] its directions have the length of normal ones. The matrix `P` of compressive sensing, with
/// `P Pᵀ = (d/m) I` and `E|Px|² = |x|²`, is this projection times [`scale`](Self::scale) `= m^{-1/2}`.
///
/// # References
/// Chang et al. 2016, section 3; relative variance of `|Px|²` is `2(d - m)/(m(d + 2))` for normal entries.
#[derive(Debug, Clone)]
pub struct Orthoprojector<R>(Dense<R, R, Stored<R, Rows>>);

impl<R: Real> Orthoprojector<R> {
    /// Draws `output_dim` orthogonal directions in `input_dim` dimensions.
    ///
    /// # Errors
    /// A dimension of 0, or more directions than dimensions.
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize, entries: Entries) -> Result<Self> {
        check_dims(input_dim, output_dim)?;
        if output_dim > input_dim {
            return Err(Error::parameter("output_dim", "at most the number of input columns", output_dim));
        }
        let mut rows: Vec<f64> =
            zeros("orthogonal directions", output_dim.checked_mul(input_dim), "project to fewer dimensions")?;
        orthonormal(seed, input_dim, output_dim, entries == Entries::Sign, &mut rows)?;
        let length = (input_dim as f64).sqrt();
        rows.iter_mut().for_each(|w| *w *= length);
        let weights = Stored::new(&Rows { depth: input_dim, rows })?;
        Ok(Orthoprojector(Dense::with_weights(input_dim, output_dim, weights)))
    }

    /// `m^{-1/2}`: what makes the projection an orthoprojector `P`.
    pub fn scale(&self) -> f64 {
        1.0 / (self.0.output_dim as f64).sqrt()
    }
}

impl<R: Real> Projection for Orthoprojector<R> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.0.input_dim
    }

    fn output_dim(&self) -> usize {
        self.0.output_dim
    }

    fn panel(&self) -> usize {
        self.0.panel()
    }

    fn project_tile(&self, rows: Tile<'_, R>, columns: Range<usize>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        self.0.project_tile(rows, columns, out, work);
    }

    fn pull_tile(&self, from: Cotangents<'_, R>, columns: Range<usize>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        self.0.pull_tile(from, columns, out, work);
    }
}

#[cfg(test)]
mod tests;

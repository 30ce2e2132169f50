//! Are two files alike, are columns of a file independent of others? Tests by features, in one pass over the rows.
//!
//! ```
//! use bochner_table::{progress::Unwatched, read::{Data, Input, Options, Selection}, stats};
//! let file = |shift: usize| {
//!     let rows: String = (0..200).map(|i| format!("{},{}\n", (i * 7) % 31 + shift, ["oak", "ash"][i % 2])).collect();
//!     Input::from_bytes("trees.csv", format!("age,wood\n{rows}").into_bytes())
//! };
//! let open = |shift| Data::open(file(shift), None, &Selection::default(), &Options::default());
//! let (x, y) = stats::same_columns(open(0)?, open(9)?, &Options::default())?;
//! let found = stats::two_samples(&x, &y, &stats::Request::default(), &Unwatched)?;
//! assert!(found.estimate.pvalue < 0.01 && found.columns[0].0 == "age");
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::map_request::{Described, MapRequest};
use crate::pipeline;
use crate::progress::Watch;
use crate::read::{Column, Data, Kind, Options, Schema};
use bochner::catalogue::Value;
use bochner::feature::{Describe, DynMap, FeatureMap, Spec};
use bochner::rows::RowSource;
use bochner::stats::{Estimate, IndependenceTest, PairSums, SampleSums, TwoSampleTest, pooled_scale};
use bochner::{Error, words};
use ndarray::{Array2, ArrayView2, Axis, s};

/// Rows that are looked at before length scales are chosen.
const HEAD: usize = 4096;

/// Of a longer file, so many.
const FIRST: usize = 512;

/// Up to so many rows all pairs of sides are permuted, and features cost little.
const FEW: usize = 1024;

/// Features of a sample, and of either side of many rows.
const FEATURES: usize = 1024;
const SIDE_FEATURES: usize = 64;

/// What is asked of a test.
#[derive(Debug, Clone)]
pub struct Request {
    /// The kernel, by its features.
    pub map: MapRequest,
    /// Random permutations.
    pub permutations: usize,
    /// Coverage of the interval.
    pub coverage: f64,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for Request {
    fn default() -> Self {
        let TwoSampleTest { permutations, coverage, seed, .. } = TwoSampleTest::default();
        Request { map: MapRequest::default(), permutations, coverage, seed }
    }
}

/// What a test of files has found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Statistic, p-value, interval, variances.
    pub estimate: Estimate,
    /// Columns of two files by the part they take in their difference, largest first; none where it is not known.
    pub columns: Vec<(String, f64)>,
    /// The features, in words.
    pub map: String,
}

/// Reads two files alike: words of either have a column of their own in both, and gaps are filled in with the same number.
///
/// # Errors
/// If the files have different columns, or columns of different kinds.
pub fn same_columns(x: Data, y: Data, options: &Options) -> Outcome<(Data, Data)> {
    if x.schema() == y.schema() {
        return Ok((x, y));
    }
    let names = (x.input().name.clone(), y.input().name.clone());
    let lacking = |schema: &Schema, column: &Column| schema.inputs.iter().all(|other| other.name != column.name);
    for (own, other, (name, other_name)) in [(&x, &y, (&names.0, &names.1)), (&y, &x, (&names.1, &names.0))] {
        if let Some(column) = own.schema().inputs.iter().find(|column| lacking(other.schema(), column)) {
            let (column, advice) = (&column.name, "--columns and --drop choose those that both have");
            return Err(Failure::Usage(format!(
                "{name} has a column {column}, which is not in {other_name}; {advice}"
            )));
        }
    }
    let joined = x.schema().inputs.iter().map(|column| {
        let other = y.schema().inputs.iter().find(|other| other.name == column.name).unwrap_or(column);
        let kind = joined(&column.kind, &other.kind).ok_or_else(|| {
            let (name, kinds) = (&column.name, (in_words(&column.kind), in_words(&other.kind)));
            Failure::Usage(format!(
                "column {name} holds {} in {} and {} in {}; --categories {name} reads words in both, --drop leaves it out",
                kinds.0, names.0, kinds.1, names.1
            ))
        })?;
        Ok(Column { kind, ..column.clone() })
    });
    let schema = Schema { inputs: joined.collect::<Outcome<_>>()?, targets: Vec::new() };
    let again = |data: &Data| Data::open_with(data.input().clone(), None, &schema, false, options);
    Ok((again(&x)?, again(&y)?))
}

/// A kind that holds the cells of both.
fn joined(a: &Kind, b: &Kind) -> Option<Kind> {
    let between = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => Some(0.5 * (a + b)),
        (a, b) => a.or(b),
    };
    Some(match (a, b) {
        (
            Kind::Number { fill: own, marked, writing },
            Kind::Number { fill: other, marked: other_marked, writing: other_writing },
        ) if writing == other_writing => {
            Kind::Number { fill: between(*own, *other), marked: *marked || *other_marked, writing: writing.clone() }
        }
        (Kind::Words { values, shared }, Kind::Words { values: others, shared: other_shared }) => {
            let mut all: Vec<String> = values.iter().chain(others).cloned().collect();
            all.sort();
            all.dedup();
            Kind::Words { values: all, shared: *shared.max(other_shared) }
        }
        (
            Kind::Time { parts, day_first, clock, fill: own, marked },
            Kind::Time { parts: others, day_first: other_days, clock: other_clock, fill: other, marked: other_marked },
        ) if day_first == other_days && clock == other_clock => Kind::Time {
            parts: if parts.len() >= others.len() { parts.clone() } else { others.clone() },
            day_first: *day_first,
            clock: *clock,
            fill: between(*own, *other),
            marked: *marked || *other_marked,
        },
        _ => return None,
    })
}

fn in_words(kind: &Kind) -> &'static str {
    match kind {
        Kind::Number { writing: None, .. } => "numbers",
        Kind::Number { .. } => "numbers written in a way of their own",
        Kind::Words { .. } => "words",
        Kind::Time { clock: true, .. } => "times of day",
        Kind::Time { .. } => "dates",
    }
}

/// The first rows of a file, and whether there are no others.
fn head(data: &Data, most: usize) -> Outcome<(Array2<f64>, bool)> {
    let columns = data.schema().input_dim();
    let (mut rows, mut full) = (Vec::new(), false);
    let read = data.rows::<f64>().for_each_block(&mut |block| {
        let room = most - rows.len() / columns.max(1);
        rows.extend(block.rows.slice(s![..room.min(block.rows.nrows()), ..]));
        full = block.rows.nrows() > room;
        if full { Err(Error::Interrupted) } else { Ok(()) }
    });
    match read {
        Err(_) if full => {}
        read => read?,
    }
    let shape = (rows.len() / columns.max(1), columns);
    Ok((Array2::from_shape_vec(shape, rows).map_err(|e| Failure::Failed(e.to_string()))?, !full))
}

impl Request {
    fn spec(&self, features: usize, lengths: &[f64], seed: Option<u64>) -> Outcome<Spec> {
        if let Some(kernel) = self.map.operator_kernel() {
            return Err(Failure::Usage(format!("--kernel {kernel} relates targets of a model; tests have none")));
        }
        let Described { mut spec, scale } = self.map.describe(self.seed)?;
        spec = spec.with("n_components", self.map.features.unwrap_or(features).into())?;
        if let Some(seed) = seed {
            spec = spec.with("seed", seed.into())?;
        }
        if scale.as_ref().is_none_or(|scale| *scale == Value::from("median")) {
            // One for every column where the map takes several, or one for all; some maps have none.
            let list = Value::List(lengths.iter().map(|length| (*length).into()).collect());
            let one = (lengths.iter().map(|length| length * length).sum::<f64>() / lengths.len().max(1) as f64).sqrt();
            let scaled = spec.with("length_scale", list).or_else(|_| spec.with("length_scale", one.into()));
            spec = scaled.unwrap_or(spec);
        }
        Ok(spec)
    }
}

/// Rows in units of these lengths, for maps that have no length scale of their own.
fn measured(rows: ArrayView2<'_, f64>, spec: &Spec, lengths: &[f64]) -> Array2<f64> {
    let mut rows = rows.to_owned();
    if spec.entry().parameter("length_scale").is_err() {
        rows.columns_mut().into_iter().zip(lengths).for_each(|(mut column, length)| column /= *length);
    }
    rows
}

fn too_few(data: &Data, rows: u64, least: u64) -> Outcome {
    match rows < least {
        true => {
            let (name, found) = (&data.input().name, words::things(rows as usize, "row"));
            Err(Failure::Failed(format!("{name}: a test needs at least {least} rows, found {found}")))
        }
        false => Ok(()),
    }
}

/// Whether the rows of two files are of one distribution.
///
/// # Errors
/// If rows cannot be read or are too few, if a map does not suit them, or if the user asked to stop.
pub fn two_samples(x: &Data, y: &Data, request: &Request, watch: &dyn Watch) -> Outcome<Found> {
    let ((head_x, whole_x), (head_y, whole_y)) = (head(x, HEAD)?, head(y, HEAD)?);
    too_few(x, head_x.nrows() as u64, 2)?;
    too_few(y, head_y.nrows() as u64, 2)?;
    let scale = pooled_scale(head_x.view(), head_y.view(), (whole_x, whole_y), true, request.seed)?;
    let spec = request.spec(FEATURES, &scale.lengths, None)?;
    let map = spec.build::<f64>(head_x.ncols())?;
    drop((head_x, head_y));
    let gathered = |data: &Data, fixed: usize| -> Outcome<SampleSums> {
        let mut sums = SampleSums::new(map.output_dim(), map.input_dim());
        let progress = watch.reading(data.input(), "comparing")?;
        data.rows::<f64>().for_each_block(&mut |block| {
            let first = sums.count() as usize;
            let here = fixed.saturating_sub(first).min(block.rows.nrows());
            let rows = measured(block.rows, &spec, &scale.lengths);
            let (stay, free) = rows.view().split_at(Axis(0), here);
            if here > 0 {
                sums.push_fixed_rows(&map, stay).map_err(|error| error.rows_from(first))?;
            }
            sums.push_rows(&map, free).map_err(|error| error.rows_from(first + here))?;
            progress.read().map_err(pipeline::stopped)
        })?;
        Ok(sums)
    };
    let (sums_x, sums_y) = (gathered(x, scale.fixed.0)?, gathered(y, scale.fixed.1)?);
    let test = TwoSampleTest { permutations: request.permutations, coverage: request.coverage, seed: request.seed };
    let estimate = test.run(&sums_x, &sums_y)?;
    let shares = match test.columns(&map, &sums_x, &sums_y) {
        Err(Error::Unsupported { .. }) => Vec::new(),
        shares => shares?,
    };
    // Words have several columns of numbers.
    let mut columns: Vec<(String, f64)> = Vec::new();
    for (name, share) in x.schema().input_sources().zip(shares) {
        match columns.last_mut().filter(|(last, _)| last == name) {
            Some((_, sum)) => *sum += share,
            None => columns.push((name.to_owned(), share)),
        }
    }
    columns.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(Found { estimate, columns, map: spec.in_words() })
}

/// Whether the first `left` columns of the rows of a file are independent of the others.
///
/// # Errors
/// As [`two_samples`], and if one of the sides has no columns.
pub fn two_sides(data: &Data, left: usize, request: &Request, watch: &dyn Watch) -> Outcome<Found> {
    let schema = data.schema();
    let width: usize = schema.inputs.iter().take(left).map(Column::width).sum();
    if width == 0 || width == schema.input_dim() {
        return Err(Failure::Usage("--x and --y must each name a column".into()));
    }
    let (head, whole) = head(data, HEAD)?;
    too_few(data, head.nrows() as u64, 8)?;
    let rows = head.slice(s![..if whole { head.nrows() } else { FIRST }, ..]);
    let few = whole && rows.nrows() <= FEW;
    let map = |side: ArrayView2<'_, f64>, seed: u64| -> Outcome<(DynMap<f64>, Spec, Vec<f64>)> {
        let scale = pooled_scale(side, side.slice(s![..0, ..]), (true, true), true, request.seed)?;
        let spec = request.spec(if few { FEATURES } else { SIDE_FEATURES }, &scale.lengths, Some(seed))?;
        Ok((spec.build::<f64>(side.ncols())?, spec, scale.lengths))
    };
    // Features of both sides are drawn independently.
    let seeds = [bochner::random::Seed::new(request.seed).child(0), bochner::random::Seed::new(request.seed).child(1)];
    let (map_x, spec, lengths_x) = map(rows.slice(s![.., ..width]), seeds[0].number())?;
    let (map_y, spec_y, lengths_y) = map(rows.slice(s![.., width..]), seeds[1].number())?;
    let mut sums = PairSums::new(map_x.output_dim(), map_y.output_dim());
    let progress = watch.reading(data.input(), "comparing")?;
    data.rows::<f64>().for_each_block(&mut |block| {
        let first = sums.count() as usize;
        let (x, y) = block.rows.split_at(Axis(1), width);
        let (x, y) = (measured(x, &spec, &lengths_x), measured(y, &spec_y, &lengths_y));
        sums.push_rows((&map_x, x.view()), (&map_y, y.view())).map_err(|error| error.rows_from(first))?;
        progress.read().map_err(pipeline::stopped)
    })?;
    drop(progress);
    let test = IndependenceTest { permutations: request.permutations, coverage: request.coverage, seed: request.seed };
    Ok(Found { estimate: test.run(&sums)?, columns: Vec::new(), map: spec.in_words() })
}

//! Benchmarks: each times a kernel of this library and a reference in the same run, and compares the ratio with a bar.
//!
//! A new one is a file with a function and one line in [`ALL`].

pub(crate) mod energy;
mod gram;
mod growth;
mod hadamard;
mod learners;
mod maclaurin;
mod normals;
mod operator;
pub(crate) mod optical;
mod peers;
mod projection;
mod read;
mod reference;
mod sketches;
mod svm;
mod timing;

pub use peers::Peers;

use bochner::Context;
use bochner::feature::{Describe, Directions, DynMap, FeatureMap, FourierSpec};
use bochner::linalg::{Tile, TileMut};
use bochner::model::{Fit, Ridge};
use bochner::random::{Role, Seed, fill_normals};
use bochner::rows::{RowBlock, RowSource};
use bochner::scalar::Real;
use bochner::words::{self, count};
use bochner_report::table::{Cell, Show, Table, Tone};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::progress::Progress;
use ndarray::{Array2, ArrayView2};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::hint::black_box;
use std::time::Instant;
use timing::{Scratch, attempt, forget_peak, normals, once, peak_memory, seconds};

/// A benchmark and its name on the command line.
#[derive(Debug)]
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    run: fn(&Bench<'_>) -> Outcome<Vec<Line>>,
}

impl Benchmark {
    const fn new(name: &'static str, about: &'static str, run: fn(&Bench<'_>) -> Outcome<Vec<Line>>) -> Self {
        Benchmark { name, about, run }
    }

    pub fn run(&self, bench: &Bench<'_>) -> Outcome<Vec<Line>> {
        let mut lines = (self.run)(bench)?;
        lines.retain(|line| !bench.bars || line.bar != Bar::None);
        Ok(lines)
    }
}

pub const ALL: &[Benchmark] = &[
    Benchmark::new(
        "hadamard",
        "Walsh–Hadamard transforms, against the core's rate of additions and a copy",
        hadamard::run,
    ),
    Benchmark::new("gram", "Gram matrices of feature blocks, against numpy's x.T @ x", gram::run),
    Benchmark::new("normals", "standard normals from counters, against numpy's Philox", normals::run),
    Benchmark::new(
        "projection",
        "dense projections and Fourier features, against numpy and RBFSampler",
        projection::run,
    ),
    Benchmark::new(
        "sketches",
        "polynomial sketches, against filling their output, PolynomialCountSketch and numpy",
        sketches::run,
    ),
    Benchmark::new(
        "learners",
        "ridge, conjugate gradients, Gaussian processes and exact kernel ridge, against numpy and each other",
        learners::run,
    ),
    Benchmark::new("maclaurin", "allocations of Maclaurin features, against numpy's X @ X.T", maclaurin::run),
    Benchmark::new("svm", "compressive features and linear support vector machines, against scikit-learn", svm::run),
    Benchmark::new("growth", "a streamed fit on n and 2 n rows: time and memory", growth::run),
    Benchmark::new(
        "operator",
        "operator-valued features, against exact regression, fewer rows and scalar ridge",
        operator::run,
    ),
    Benchmark::new(
        "optical",
        "optical features: time, memory and energy, beside a GPU and an optical device",
        optical::run,
    ),
    Benchmark::new(
        "optical-memory",
        "a million optical features of 100,000 inputs without stored weights (ten minutes at full size)",
        optical::memory,
    ),
    Benchmark::new("read", "CSV, NPY and IDX files in blocks, against the raw bytes and pandas", read::run),
];

/// What a benchmark may use.
#[derive(Debug)]
pub struct Bench<'a> {
    pub progress: &'a dyn Progress,
    pub peers: Option<&'a Peers>,
    /// Full sizes, or small ones that take seconds.
    pub full: bool,
    /// Only what has a bar.
    pub bars: bool,
}

impl Bench<'_> {
    /// The full size or the small one.
    fn size<T>(&self, full: T, small: T) -> T {
        if self.full { full } else { small }
    }

    /// Tells what is done now.
    fn at(&self, what: impl Into<String>) -> Outcome {
        self.progress.at(what.into().into())
    }

    /// The seconds that a script of the peers prints, told as `what`; nothing where there are no peers.
    fn peer(&self, what: &str, script: &str, arguments: &[&dyn Display]) -> Outcome<BTreeMap<String, f64>> {
        let Some(peers) = self.peers else { return Ok(BTreeMap::new()) };
        self.at(what)?;
        peers.time(script, &arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
    }
}

/// A line for every time of a peer, or one alone where there are none.
fn beside(times: &BTreeMap<String, f64>, alone: Line, line: impl Fn(&str, f64) -> Line) -> Vec<Line> {
    match times.is_empty() {
        true => vec![alone],
        false => times.iter().map(|(name, seconds)| line(name, *seconds)).collect(),
    }
}

/// Of a rate: what it counts, by the second or not.
type Unit = &'static str;

/// What is being compared: times (smaller is better) or rates (larger is better).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    Seconds(f64),
    /// Per second, in this unit.
    Rate(f64, Unit),
    /// In place of a value.
    Words(&'static str),
}

impl Measure {
    fn cell(self) -> Cell {
        match self {
            Measure::Seconds(s) => Cell::duration(s),
            Measure::Rate(r, unit) => Cell::text(words::rate(r, unit)),
            Measure::Words(words) => Cell::text(words),
        }
    }
}

/// A bar on our value divided by the reference's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    AtLeast(f64),
    AtMost(f64),
    None,
}

/// One comparison.
#[derive(Debug, Clone)]
pub struct Line {
    pub case: String,
    pub ours: Measure,
    pub reference: String,
    pub theirs: Option<Measure>,
    /// How the ratio reads: our rate over theirs, or our time over theirs.
    pub ratio: Option<f64>,
    pub bar: Bar,
}

impl Line {
    fn ratio(
        case: String,
        ours: f64,
        reference: &str,
        theirs: f64,
        bar: Bar,
        measure: impl Fn(f64) -> Measure,
    ) -> Self {
        let (reference, ratio) = (reference.to_owned(), Some(ours / theirs));
        Line { case, ours: measure(ours), reference, theirs: Some(measure(theirs)), ratio, bar }
    }

    /// Our rate divided by the reference's: higher is better.
    pub fn speed(case: impl Into<String>, ours: f64, reference: &str, theirs: f64, unit: Unit, bar: Bar) -> Self {
        Line::ratio(case.into(), ours, reference, theirs, bar, |rate| Measure::Rate(rate, unit))
    }

    /// Our time divided by the reference's: lower is better.
    pub fn time(case: impl Into<String>, ours: f64, reference: &str, theirs: f64, bar: Bar) -> Self {
        Line::ratio(case.into(), ours, reference, theirs, bar, Measure::Seconds)
    }

    /// The most memory this process has held, beside what it may hold; nothing where the system does not say.
    fn memory(case: &str, reference: &str, allowed: Option<f64>, bar: f64) -> Option<Self> {
        Line::memories(case, peak_memory(), reference, allowed, bar)
    }

    fn memories(case: &str, ours: Option<f64>, reference: &str, theirs: Option<f64>, bar: f64) -> Option<Self> {
        Some(Line::speed(format!("{case}: peak memory"), ours?, reference, theirs?, "B", Bar::AtMost(bar)))
    }

    /// A value without a reference.
    pub fn alone(case: impl Into<String>, ours: Measure) -> Self {
        Line { case: case.into(), ours, reference: String::new(), theirs: None, ratio: None, bar: Bar::None }
    }

    fn verdict(&self) -> Option<bool> {
        match (self.bar, self.ratio) {
            (Bar::AtLeast(bar), Some(ratio)) => Some(ratio >= bar),
            (Bar::AtMost(bar), Some(ratio)) => Some(ratio <= bar),
            _ => None,
        }
    }
}

pub fn empty_table() -> Table {
    Table::new("")
        .words("benchmark", "benchmark")
        .words("case", "case")
        .numbers("ours", "bochner")
        .words("reference", "reference")
        .numbers("theirs", "reference's")
        .column("ratio", "ratio", Show::Number(3))
        .numbers("bar", "bar")
        .words("met", "")
}

pub fn add_lines(table: &mut Table, name: &str, lines: &[Line]) {
    table.start_group();
    for line in lines {
        let (verdict, tone) = match line.verdict() {
            Some(true) => ("met", Tone::Good),
            Some(false) => ("missed", Tone::Bad),
            None => ("", Tone::Plain),
        };
        let bar = match line.bar {
            Bar::AtLeast(bar) => Cell::text(format!("≥ {bar}")),
            Bar::AtMost(bar) => Cell::text(format!("≤ {bar}")),
            Bar::None => Cell::missing(""),
        };
        let (theirs, met) = (line.theirs.map(Measure::cell), Cell::text(verdict).toned(tone));
        table.add(&[&name, &line.case, &line.ours.cell(), &line.reference, &theirs, &line.ratio, &bar, &met]);
    }
}

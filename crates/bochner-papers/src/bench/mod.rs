//! Benchmarks: each times a kernel of this library and a reference in the same run, and compares the ratio with a bar.
//!
//! A new one is a file with a function, one line in `RUNNERS` and one in `data/benchmarks.json`, which says what is timed.

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
mod pullback;
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
use bochner::parallel::Parallel;
use bochner::random::{Role, Seed, fill_normals};
use bochner::rows::{RowBlock, RowSource};
use bochner::scalar::Real;
use bochner::words::{self, count};
use bochner_report::table::{Cell, Show, Table, Tone};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::progress::Progress;
use ndarray::{Array2, ArrayView2};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;
use timing::{Scratch, attempt, forget_peak, normals, once, peak_memory, seconds};

/// A benchmark and its name on the command line.
#[derive(Debug, Deserialize)]
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
}

/// The benchmarks by name.
const RUNNERS: [(&str, fn(&Bench<'_>) -> Outcome); 14] = [
    ("hadamard", hadamard::run),
    ("gram", gram::run),
    ("normals", normals::run),
    ("projection", projection::run),
    ("sketches", sketches::run),
    ("pullback", pullback::run),
    ("learners", learners::run),
    ("maclaurin", maclaurin::run),
    ("svm", svm::run),
    ("growth", growth::run),
    ("operator", operator::run),
    ("optical", optical::run),
    ("optical-memory", optical::memory),
    ("read", read::run),
];

/// All benchmarks.
pub fn all() -> &'static [Benchmark] {
    static ALL: LazyLock<Vec<Benchmark>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../../data/benchmarks.json")).expect("the embedded list is read by a test")
    });
    &ALL
}

impl Benchmark {
    /// Measures line by line, and tells each.
    pub fn run(&self, bench: &Bench<'_>) -> Outcome {
        let known = RUNNERS.iter().find(|(name, _)| *name == self.name);
        let (_, run) = known.ok_or_else(|| Failure::Failed(format!("nothing runs {}", self.name)))?;
        run(bench)
    }
}

/// What a benchmark may use.
#[expect(missing_debug_implementations, reason = "a function cannot be shown")]
pub struct Bench<'a> {
    /// Hears of every line as soon as it is measured.
    pub told: &'a dyn Fn(Line) -> Outcome,
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

    /// Tells a line that was measured.
    fn line(&self, line: Line) -> Outcome {
        self.lines([line])
    }

    /// Tells lines that were measured together.
    fn lines(&self, lines: impl IntoIterator<Item = Line>) -> Outcome {
        lines.into_iter().filter(|line| !self.bars || line.bar != Bar::None).try_for_each(|line| (self.told)(line))
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

/// What a rate or an amount counts.
type Unit = &'static str;

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
    pub ours: Cell,
    pub reference: String,
    pub theirs: Option<Cell>,
    /// How the ratio reads: our rate over theirs, or our time over theirs.
    pub ratio: Option<f64>,
    pub bar: Bar,
}

impl Line {
    fn ratio(case: String, reference: &str, [ours, theirs]: [f64; 2], bar: Bar, cell: impl Fn(f64) -> Cell) -> Self {
        let (reference, ratio) = (reference.to_owned(), Some(ours / theirs));
        Line { case, ours: cell(ours), reference, theirs: Some(cell(theirs)), ratio, bar }
    }

    /// Our rate divided by the reference's: higher is better.
    pub fn speed(case: impl Into<String>, ours: f64, reference: &str, theirs: f64, unit: Unit, bar: Bar) -> Self {
        Line::ratio(case.into(), reference, [ours, theirs], bar, |rate| Cell::text(words::rate(rate, unit)))
    }

    /// Our time divided by the reference's: lower is better.
    pub fn time(case: impl Into<String>, ours: f64, reference: &str, theirs: f64, bar: Bar) -> Self {
        Line::ratio(case.into(), reference, [ours, theirs], bar, Cell::duration)
    }

    /// The most memory this process has held, beside another peak or what it may hold; nothing where one is not known.
    fn memory(case: &str, ours: Option<f64>, reference: &str, theirs: Option<f64>, bar: f64) -> Option<Self> {
        Some(Line::speed(format!("{case}: peak memory"), ours?, reference, theirs?, "B", Bar::AtMost(bar)))
    }

    /// A value without a reference.
    pub fn alone(case: impl Into<String>, ours: Cell) -> Self {
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

/// The table of all lines, wide enough for most of them before they are known.
pub fn empty_table() -> Table {
    Table::new("")
        .with_widths(&[10, 46, 11, 26, 11, 6, 7, 6])
        .words("benchmark", "benchmark")
        .words("case", "case")
        .numbers("ours", "bochner")
        .words("reference", "reference")
        .numbers("theirs", "reference's")
        .column("ratio", "ratio", Show::Number(3))
        .numbers("bar", "bar")
        .words("met", "")
}

pub fn add_line(table: &mut Table, name: &str, line: &Line) {
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
    let met = Cell::text(verdict).toned(tone);
    table.add(&[&name, &line.case, &line.ours, &line.reference, &line.theirs, &line.ratio, &bar, &met]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_says_what_it_times() {
        assert!(all().iter().map(|b| b.name).eq(RUNNERS.iter().map(|(name, _)| *name)));
        assert!(all().iter().all(|b| !b.about.is_empty()));
    }
}

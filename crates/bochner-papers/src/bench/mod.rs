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

use bochner::words;
use bochner_report::table::{Cell, Table, Tone};
use bochner_table::failure::Outcome;
use bochner_table::progress::Progress;

/// A benchmark and its name on the command line.
#[derive(Debug)]
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    run: fn(&Bench<'_>) -> Outcome<Vec<Line>>,
}

pub const ALL: &[Benchmark] = &[
    Benchmark {
        name: "hadamard",
        about: "Walsh–Hadamard transforms, against the core's rate of additions and a copy",
        run: hadamard::run,
    },
    Benchmark { name: "gram", about: "Gram matrices of feature blocks, against numpy's x.T @ x", run: gram::run },
    Benchmark { name: "normals", about: "standard normals from counters, against numpy's Philox", run: normals::run },
    Benchmark {
        name: "projection",
        about: "dense projections and Fourier features, against numpy and RBFSampler",
        run: projection::run,
    },
    Benchmark {
        name: "sketches",
        about: "polynomial sketches, against filling their output, PolynomialCountSketch and numpy",
        run: sketches::run,
    },
    Benchmark {
        name: "learners",
        about: "ridge, conjugate gradients, Gaussian processes and exact kernel ridge, against numpy and each other",
        run: learners::run,
    },
    Benchmark {
        name: "maclaurin",
        about: "allocations of Maclaurin features, against numpy's X @ X.T",
        run: maclaurin::run,
    },
    Benchmark {
        name: "svm",
        about: "compressive features and linear support vector machines, against scikit-learn",
        run: svm::run,
    },
    Benchmark { name: "growth", about: "a streamed fit on n and 2 n rows: time and memory", run: growth::run },
    Benchmark {
        name: "operator",
        about: "operator-valued features, against exact regression, fewer rows and scalar ridge",
        run: operator::run,
    },
    Benchmark {
        name: "optical",
        about: "optical features: time, memory and energy, beside a GPU and an optical device",
        run: optical::run,
    },
    Benchmark {
        name: "optical-memory",
        about: "a million optical features of 100,000 inputs without stored weights (ten minutes at full size)",
        run: optical::memory,
    },
    Benchmark {
        name: "read",
        about: "CSV, NPY and IDX files in blocks, against the raw bytes and pandas",
        run: read::run,
    },
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

/// What is being compared: times (smaller is better) or rates (larger is better).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    Seconds(f64),
    /// Per second, in this unit.
    Rate(f64, &'static str),
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
    /// Our rate divided by the reference's: higher is better.
    pub fn speed(
        case: impl Into<String>,
        ours: f64,
        reference: &str,
        theirs: f64,
        unit: &'static str,
        bar: Bar,
    ) -> Self {
        Line {
            case: case.into(),
            ours: Measure::Rate(ours, unit),
            reference: reference.into(),
            theirs: Some(Measure::Rate(theirs, unit)),
            ratio: Some(ours / theirs),
            bar,
        }
    }

    /// Our time divided by the reference's: lower is better.
    pub fn time(case: impl Into<String>, ours: f64, reference: &str, theirs: f64, bar: Bar) -> Self {
        Line {
            case: case.into(),
            ours: Measure::Seconds(ours),
            reference: reference.into(),
            theirs: Some(Measure::Seconds(theirs)),
            ratio: Some(ours / theirs),
            bar,
        }
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

impl Benchmark {
    pub fn run(&self, bench: &Bench<'_>) -> Outcome<Vec<Line>> {
        let mut lines = (self.run)(bench)?;
        lines.retain(|line| !bench.bars || line.bar != Bar::None);
        Ok(lines)
    }
}

pub fn empty_table() -> Table {
    Table::new("")
        .words("benchmark", "benchmark")
        .words("case", "case")
        .numbers("ours", "bochner")
        .words("reference", "reference")
        .numbers("theirs", "reference's")
        .numbers("ratio", "ratio")
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
        table.push(vec![
            Cell::text(name),
            Cell::text(line.case.clone()),
            line.ours.cell(),
            Cell::text(line.reference.clone()),
            line.theirs.map_or(Cell::missing("–"), Measure::cell),
            line.ratio.map_or(Cell::missing("–"), |r| Cell::number(r, 3)),
            bar,
            Cell::text(verdict).toned(tone),
        ]);
    }
}

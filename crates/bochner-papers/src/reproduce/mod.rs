//! The papers' experiments: one file each, one line in the list below; what they show and need stands in
//! `data/experiments.json`, what the papers report in `data/published.json`.
//!
//! An experiment asks `Run` for data, takes numbers through `Run::values` (which remembers them, so that an interrupted
//! run goes on where it stopped), and returns `Findings`: tables that set the paper's numbers beside ours, plots, remarks.

mod attention;
mod cache;
mod classify;
mod compressive;
mod ctr_gp;
mod data;
mod gp;
mod kid;
mod maclaurin_gp;
mod maclaurin_kernel;
mod maclaurin_local;
mod optical_fashion_mnist;
mod optical_time;
mod optical_transfer;
mod orff;
mod orff_convergence;
mod orff_mnist;
mod orff_vectorfield;
pub mod published;
mod sketch_time;
mod svi_time;
mod variance_ratios;

use bochner::feature::{Describe, Directions, FeatureMap, FourierSpec, MaclaurinSpec, OperatorSpec};
use bochner::feature::{PolynomialSpec, SketchKind, Spec};
use bochner::kernel::{AnyKernel, Gaussian, OperatorKernel, OutputMatrix, Polynomial, kernel_matrix};
use bochner::metrics::{error_rate, relative_frobenius_error};
use bochner::model::{Fit, Predict};
use bochner::plan::Sample;
use bochner::preprocess::{LengthScale, median_distance};
use bochner::random::{Role, Seed, Stream};
use bochner::variance::Weights;
use bochner::{Context, words};
use bochner_report::Report;
use bochner_report::plot::{Axis, Kind, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Entry, Format, Show, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::interrupt;
use bochner_table::output;
use bochner_table::progress::{Progress, Watch};
use bochner_table::score::{smallest, winner};
use cache::Cache;
use data::{Library, Part, Prepared, Rows, double};
use ndarray::{Array2, ArrayView2, Axis as Side};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

/// An experiment of one of the papers.
#[derive(Debug, Deserialize)]
pub struct Experiment {
    pub name: &'static str,
    /// What it shows, in one line.
    pub what: &'static str,
    /// Paper and figure or table.
    pub source: &'static str,
    /// Data sets it wants, by name; those it can do without come after.
    pub needs: Vec<&'static str>,
    /// Expected minutes of a full run on two cores.
    pub minutes: f64,
}

/// The experiments by name.
const RUNNERS: [(&str, fn(&Run<'_>) -> Outcome<Findings>); 17] = [
    ("attention", attention::run),
    ("compressive-cifar10", compressive::cifar10),
    ("compressive-mnist", compressive::mnist),
    ("ctr-gp", ctr_gp::run),
    ("kid", kid::run),
    ("maclaurin-gp", maclaurin_gp::run),
    ("maclaurin-kernel", maclaurin_kernel::run),
    ("maclaurin-local", maclaurin_local::run),
    ("optical-fashion-mnist", optical_fashion_mnist::run),
    ("optical-time", optical_time::run),
    ("optical-transfer", optical_transfer::run),
    ("orff-convergence", orff_convergence::run),
    ("orff-mnist", orff_mnist::run),
    ("orff-vectorfield", orff_vectorfield::run),
    ("sketch-time", sketch_time::run),
    ("svi-time", svi_time::run),
    ("variance-ratios", variance_ratios::run),
];

const CTR: &str = "TensorSRHT, CtR";
const REAL: &str = "TensorSRHT, real";
const TENSOR_SKETCH: &str = "TensorSketch";

/// A sketch of products of inputs by the name that tables show.
type Sketch = (&'static str, SketchKind, Weights);

/// The sketches that chapter 4 of the thesis compares most.
const SKETCHES: [Sketch; 3] = [
    (CTR, SketchKind::TensorSrht, Weights::Ctr),
    (REAL, SketchKind::TensorSrht, Weights::Real),
    (TENSOR_SKETCH, SketchKind::TensorSketch, Weights::Real),
];

/// All experiments.
pub fn experiments() -> &'static [Experiment] {
    static ALL: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../../data/experiments.json")).expect("the embedded list is read by a test")
    });
    &ALL
}

/// The experiment of that name.
pub fn find(name: &str) -> Outcome<&'static Experiment> {
    experiments().iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<&str> = experiments().iter().map(|e| e.name).collect();
        Failure::Usage(format!("there is no experiment called {name:?}; there are {}", names.join(", ")))
    })
}

/// What an experiment works with.
pub(crate) struct Run<'a> {
    /// Whether a meaningful result in under two minutes is wanted instead of all of it.
    pub(crate) quick: bool,
    /// Whether draws and sizes are to be those of the paper, however long they take.
    paper: bool,
    /// Draws of everything random, where an experiment has no number of its own.
    pub(crate) seeds: usize,
    /// Draws that were asked for.
    asked: Option<usize>,
    /// Where draws start.
    pub(crate) seed: u64,
    pub(crate) data: Library,
    experiment: &'a str,
    cache: &'a Cache,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    /// One of two sizes.
    pub(crate) fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// One of three sizes: the last one is the paper's, for runs that shall take as long as it takes.
    pub(crate) fn sized<T>(&self, quick: T, full: T, paper: T) -> T {
        if self.paper { paper } else { self.choose(quick, full) }
    }

    /// Draws of everything random: as many as were asked for, or one of three numbers.
    pub(crate) fn draws(&self, quick: usize, full: usize, paper: usize) -> usize {
        self.asked.unwrap_or_else(|| self.sized(quick, full, paper))
    }

    /// Numbers that `key` and the seed decide: remembered ones, or freshly made.
    ///
    /// The key names everything the numbers depend on: data set, sizes, parameters.
    pub(crate) fn values(&self, key: &str, make: &mut dyn FnMut() -> Outcome<Vec<f64>>) -> Outcome<Vec<f64>> {
        self.progress.at(key.to_owned().into())?;
        let key = format!("{key}; seed {}", self.seed);
        if let Some(values) = self.cache.get(&key) {
            return Ok(values);
        }
        let start = Instant::now();
        let values = interrupt::stoppable(make)?;
        self.cache.put(&key, &values, start.elapsed().as_secs_f64())?;
        Ok(values)
    }

    /// One number.
    pub(crate) fn value(&self, key: &str, make: &mut dyn FnMut() -> Outcome<f64>) -> Outcome<f64> {
        Ok(self.values(key, &mut || Ok(vec![make()?]))?[0])
    }

    /// One number per draw, with a seed for each.
    pub(crate) fn per_draw(
        &self,
        draws: usize,
        key: &str,
        make: &mut dyn FnMut(u64) -> Outcome<f64>,
    ) -> Outcome<Statistic> {
        let seed = |draw| self.seed.wrapping_mul(1_000_003).wrapping_add(draw);
        Ok(self.each(draws, key, &mut |draw| Ok(vec![make(seed(draw))?]))?[0])
    }

    /// Statistics of the numbers of every draw, which is told to `make` with a seed that descends from that of the run.
    pub(crate) fn drawn(
        &self,
        draws: usize,
        key: &str,
        make: &mut dyn FnMut(u64, u64) -> Outcome<Vec<f64>>,
    ) -> Outcome<Vec<Statistic>> {
        self.each(draws, key, &mut |draw| make(draw, Seed::new(self.seed).child(draw).number()))
    }

    fn each(&self, draws: usize, key: &str, make: &mut dyn FnMut(u64) -> Outcome<Vec<f64>>) -> Outcome<Vec<Statistic>> {
        let one = |draw| self.values(&format!("{key}; draw {draw}"), &mut || make(draw));
        Ok(Statistic::of_each(&(0..draws as u64).map(one).collect::<Outcome<Vec<_>>>()?))
    }

    /// What the paper reports under `key`.
    pub(crate) fn published(&self, key: &str) -> Option<f64> {
        published::find(self.experiment, key).map(|(value, _)| value)
    }

    /// Adds a row to a table made by [`comparison`]: the paper's number, ours, the difference.
    pub(crate) fn beside(&self, table: &mut Table, show: Show, key: &str, what: &str, ours: &Statistic) {
        let (theirs, source) = published::find(self.experiment, key).unzip();
        let difference = theirs.map(|theirs| ours.mean - theirs);
        let [theirs, mean, spread, difference] =
            [theirs, Some(ours.mean), ours.spread(), difference].map(|value| value.cell(show));
        table.add(&[&what, &theirs, &mean, &spread, &difference, &source.unwrap_or_default()]);
    }

    /// Those of some data sets that are there; a remark tells of the others.
    pub(crate) fn present<'b>(&self, names: &[&'b str], remarks: &mut Vec<String>) -> Vec<&'b str> {
        let (there, absent): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| self.data.has(name));
        remarks.extend(absent.iter().map(|name| format!("{name} is not there and was left out.")));
        there
    }
}

/// Mean and standard deviation over draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Statistic {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) count: usize,
}

impl Statistic {
    /// A single number.
    pub(crate) fn one(value: f64) -> Self {
        Statistic { mean: value, deviation: 0.0, count: 1 }
    }

    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Statistic { mean, deviation: (squares / (count as f64 - 1.0).max(1.0)).sqrt(), count }
    }

    /// One for each number that all draws have.
    pub(crate) fn of_each(draws: &[Vec<f64>]) -> Vec<Self> {
        let count = draws.iter().map(Vec::len).min().unwrap_or(0);
        (0..count).map(|i| Statistic::of(&draws.iter().map(|values| values[i]).collect::<Vec<_>>())).collect()
    }

    /// The deviation, where there is more than one draw.
    pub(crate) fn spread(&self) -> Option<f64> {
        (self.count > 1).then_some(self.deviation)
    }

    /// The mean as a point of a plot, with a bar of one standard error to both sides.
    pub(crate) fn point(&self, x: f64) -> Point {
        let error = self.deviation / (self.count as f64).sqrt();
        Point::new(x, self.mean).with_range(self.mean - error, self.mean + error)
    }
}

/// A table of the paper's numbers beside ours; its rows come from [`Run::beside`].
pub(crate) fn comparison(title: impl Into<String>) -> Table {
    Table::new(title)
        .words("what", "what")
        .numbers("paper", "paper")
        .numbers("ours", "ours")
        .numbers("deviation", "deviation")
        .numbers("difference", "difference")
        .words("source", "source")
}

/// What an experiment found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) tables: Vec<Table>,
    /// File names without ending, and plots.
    pub(crate) plots: Vec<(String, Plot)>,
    /// Plain sentences, also about trends that do not hold here.
    pub(crate) remarks: Vec<String>,
    /// What the run has less of than the paper.
    reduced: Vec<String>,
}

impl Findings {
    pub(crate) fn plot(&mut self, file: impl Into<String>, plot: Plot) {
        self.plots.push((file.into(), plot));
    }

    pub(crate) fn remark(&mut self, sentence: impl Into<String>) {
        self.remarks.push(sentence.into());
    }

    /// So many of something, beside the paper's number.
    pub(crate) fn size(&mut self, what: impl std::fmt::Display, ours: usize, paper: usize) {
        if ours < paper {
            self.reduced.push(format!("{what}: {} instead of {}", words::count(ours), words::count(paper)));
        }
    }

    /// Something that is left out.
    pub(crate) fn without(&mut self, what: impl Into<String>) {
        self.reduced.push(what.into());
    }

    /// The sentence about what there is less of, where there is something to say.
    fn less(&self) -> Option<String> {
        (!self.reduced.is_empty()).then(|| {
            format!(
                "Less than in the paper: {}. --draws sets the draws, --paper takes the paper's draws and sizes, in hours or days.",
                self.reduced.join("; ")
            )
        })
    }
}

/// How an experiment is to be run.
#[derive(Debug)]
pub struct Settings<'a> {
    pub quick: bool,
    pub paper: bool,
    pub seeds: Option<usize>,
    pub data: Option<&'a Path>,
    pub out: &'a Path,
    pub plots: Kind,
    /// Where the page goes, if not beside the results.
    pub report: Option<&'a Path>,
    pub fresh: bool,
    pub format: Format,
    /// Whether headings are bold and verdicts coloured.
    pub colour: bool,
    /// No remarks.
    pub quiet: bool,
    pub seed: u64,
}

/// Runs an experiment, prints its tables and writes its folder: plots, results, the report page.
///
/// # Errors
/// If data are missing, files cannot be written, or the user asked to stop.
pub fn run(
    experiment: &Experiment,
    settings: &Settings<'_>,
    watch: &dyn Watch,
    print: &dyn Fn(&str) -> Outcome,
) -> Outcome {
    let folder = settings.out.join(experiment.name);
    output::check_folder(&folder)?;
    settings.report.map_or(Ok(()), output::check_file)?;
    let kept = ["results.json", "numbers.json"].map(|name| folder.join(name));
    let kept = kept.each_ref().map(|path| ("the results in", path.as_path()));
    settings.report.map_or(Ok(()), |page| output::check_apart(&[("--report", page)], &kept))?;
    let data = Library::new(settings.data);
    if !settings.quick && !settings.format.for_programs() && !settings.quiet {
        eprintln!(
            "{}: a full run takes about {} on two cores{}",
            experiment.name,
            words::duration(60.0 * experiment.minutes),
            if settings.paper { "; with --paper hours or days" } else { "" }
        );
    }
    output::create_folder(&folder)?;
    let cache = Cache::open(&folder.join("numbers.json"), settings.fresh)?;
    let progress = watch.waiting();
    let start = Instant::now();
    let known = RUNNERS.iter().find(|(name, _)| *name == experiment.name);
    let (_, run) = known.ok_or_else(|| Failure::Failed(format!("nothing runs {}", experiment.name)))?;
    let findings = run(&Run {
        quick: settings.quick,
        paper: settings.paper,
        asked: settings.seeds.map(|draws| draws.max(1)),
        seeds: settings.seeds.unwrap_or(if settings.quick { 3 } else { 10 }).max(1),
        seed: settings.seed,
        data,
        experiment: experiment.name,
        cache: &cache,
        progress: &*progress,
    })?;
    drop(progress);
    let time = duration(start.elapsed().as_secs_f64(), cache.seconds_spared());
    let mut report = Report::new(&format!("{}: {}", experiment.name, experiment.what), experiment.source);
    let mut results = serde_json::Map::new();
    for (name, plot) in &findings.plots {
        let svg = plot.to_svg();
        let file = folder.join(format!("{name}.{}", settings.plots.ending()));
        output::write_whole(&file, &settings.plots.bytes(&svg)?)?;
        report.figure(&svg);
    }
    for table in &findings.tables {
        results.insert(table.title.clone(), table.to_json());
        report.table(table);
        print(&table.to(settings.format, settings.colour))?;
    }
    for remark in findings.remarks.iter().chain(&findings.less()) {
        report.paragraph(remark);
        if !settings.format.for_programs() {
            print(&format!("{remark}\n"))?;
        }
    }
    let kind = match (settings.quick, settings.paper) {
        (true, _) => "Quick",
        (_, true) => "The paper's",
        _ => "Full",
    };
    report.footer(&format!("{kind} run of {time}, seed {}.", settings.seed));
    let text = format!("{:#}\n", serde_json::Value::Object(results));
    output::write_whole(&folder.join("results.json"), text.as_bytes())?;
    let page = settings.report.map_or_else(|| folder.join("report.html"), Path::to_path_buf);
    output::write_whole(&page, report.to_html().as_bytes())?;
    if settings.format.for_programs() || settings.quiet {
        return Ok(());
    }
    print(&format!(
        "\n{} in {time}; plots and results are in {}, the report is {}\n",
        experiment.name,
        folder.display(),
        page.display()
    ))
}

/// How long a run took, in this sitting and for the numbers of earlier ones that it came upon.
fn duration(now: f64, before: f64) -> String {
    let all = words::duration(now + before);
    if before > 0.0 { format!("{all} ({} of it before)", words::duration(before)) } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_table::progress::Unwatched;

    #[test]
    fn a_run_of_several_sittings_is_as_long_as_all_of_them() {
        assert_eq!(duration(90.0, 0.0), words::duration(90.0));
        let told = duration(30.0, 60.0);
        assert_eq!(told, format!("{} ({} of it before)", words::duration(90.0), words::duration(60.0)));
    }

    #[test]
    fn experiments_have_names_of_their_own_and_say_what_they_show() {
        let names: Vec<&str> = experiments().iter().map(|e| e.name).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert_eq!(names, RUNNERS.map(|(name, _)| name));
        for experiment in experiments() {
            assert!(!experiment.what.is_empty() && !experiment.source.is_empty() && experiment.minutes > 0.0);
        }
    }

    #[test]
    fn a_page_says_what_there_is_less_of() {
        let mut reduced = Findings::default();
        reduced.size("draws", 10, 10);
        assert_eq!(reduced.less(), None);
        reduced.size("draws", 5, 20);
        reduced.size("rows", 10_000, 60_000);
        reduced.without("no 3d");
        let remark = reduced.less().unwrap();
        assert!(remark.contains("draws: 5 instead of 20; rows: 10,000 instead of 60,000; no 3d."), "{remark}");
        assert!(remark.contains("--paper"));
    }

    /// A full run in a folder of its own, which also has its data.
    pub(super) fn with_run(name: &str, check: impl FnOnce(Run<'_>, &Path)) {
        let folder = std::env::temp_dir().join(format!("bochner-run-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let run = Run {
            quick: false,
            paper: false,
            asked: None,
            seeds: 10,
            seed: 0,
            data: Library::new(Some(&folder)),
            experiment: "none",
            cache: &Cache::open(&folder.join("numbers.json"), true).unwrap(),
            progress: &Unwatched,
        };
        check(run, &folder);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn draws_that_were_asked_for_go_before_those_of_an_experiment() {
        with_run("draws", |run, _| {
            let of = |run: &Run<'_>| (run.draws(2, 3, 20), run.sized(2, 3, 20), run.choose(2, 3));
            assert_eq!(of(&run), (3, 3, 3));
            let run = Run { quick: true, ..run };
            assert_eq!(of(&run), (2, 2, 2));
            let run = Run { quick: false, paper: true, ..run };
            assert_eq!(of(&run), (20, 20, 3));
            let run = Run { paper: false, asked: Some(7), ..run };
            assert_eq!(of(&run), (7, 3, 3));
        });
    }
}

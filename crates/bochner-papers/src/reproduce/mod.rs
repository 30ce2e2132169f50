//! The papers' experiments: one file each, one line in the list below; what they show and need stands in
//! `data/experiments.json`, what the papers report in `data/published.json`.
//!
//! An experiment asks `Run` for data and for its settings, takes numbers through `Run::values` (which remembers them, so that
//! an interrupted run goes on where it stopped), and returns `Findings`: tables that set the paper's numbers beside ours,
//! plots, remarks.

mod attention;
mod cache;
mod classify;
mod compressive;
mod ctr_gp;
mod data;
mod gp;
pub mod kept;
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
pub mod scorecard;
mod settings;
mod sketch_time;
mod svi_time;
mod variance_ratios;

use bochner::feature::{AllocationRule, Describe, Directions, FeatureMap, FourierSpec, MaclaurinSpec, OperatorSpec};
use bochner::feature::{PolynomialSpec, SketchKind, Spec, Statistics, Structure};
use bochner::kernel::{AnyKernel, Gaussian, OperatorKernel, OutputMatrix, Polynomial, kernel_matrix};
use bochner::metrics::{error_rate, relative_frobenius_error};
use bochner::model::{Fit, Predict};
use bochner::plan::Sample;
use bochner::preprocess::{LengthScale, median_distance};
use bochner::projection::Sampling;
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
use kept::{Kept, Number};
use ndarray::{Array2, ArrayView2, Axis as Side};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use settings::{Choice, Less};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

pub use settings::Size;

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
    /// Raised when what is computed changes and the settings do not: older numbers are not taken for today's.
    #[serde(default = "first")]
    pub protocol: u32,
    /// What a quick run has, a full one, and the paper, by names that a page shows; the last value stands for those that are
    /// missing, and null for all there is.
    #[serde(default)]
    pub settings: BTreeMap<&'static str, Vec<Value>>,
    /// Settings without whose full size no number can be compared with the paper's.
    #[serde(default)]
    pub decisive: Vec<&'static str>,
}

fn first() -> u32 {
    1
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

/// Training images of the complete CIFAR-10.
const CIFAR10_TRAINING: usize = 50_000;

/// A sketch of products as chapter 4 of the thesis draws it: upsampled where it is structured, one product over all factors.
fn sketched(sketch: SketchKind, weights: Weights) -> PolynomialSpec {
    let (srht, structure) = (Sampling::Upsampled, Structure::Flat);
    PolynomialSpec { sketch, weights, srht, structure, ..PolynomialSpec::default() }
}

/// Optimised Maclaurin features as chapter 5 draws them, with the structured sketch whose blocks are stacked.
fn optimized() -> MaclaurinSpec {
    MaclaurinSpec {
        allocation: AllocationRule::Optimized,
        statistics: Statistics::Pairwise,
        sketch: SketchKind::TensorSrht,
        weights: Weights::Real,
        srht: Sampling::Stacked,
        min_degree: 2,
        max_degree: 10,
        center: true,
        ..MaclaurinSpec::default()
    }
}

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
    /// Where draws start.
    pub(crate) seed: u64,
    pub(crate) data: Library,
    choice: Choice<'a>,
    cache: &'a Cache,
    progress: &'a dyn Progress,
    /// Numbers that stand beside published ones.
    compared: RefCell<BTreeMap<String, Number>>,
}

impl Run<'_> {
    /// A number of something, `usize::MAX` for all there is.
    pub(crate) fn count(&self, setting: &str) -> Outcome<usize> {
        self.choice.count(setting)
    }

    /// A setting of any other type.
    pub(crate) fn setting<T: DeserializeOwned>(&self, name: &str) -> Outcome<T> {
        self.choice.get(name)
    }

    /// Draws of everything random.
    pub(crate) fn draws(&self) -> Outcome<usize> {
        self.count("draws")
    }

    /// Numbers that `key` and the seed decide: remembered ones, or freshly made.
    ///
    /// The key names everything the numbers depend on: data set, sizes, parameters.
    pub(crate) fn values(&self, key: &str, make: &mut dyn FnMut() -> Outcome<Vec<f64>>) -> Outcome<Vec<f64>> {
        self.progress.at(key.to_owned().into())?;
        let protocol = self.choice.experiment.protocol;
        let protocol = if protocol > 1 { format!("; protocol {protocol}") } else { String::new() };
        let key = format!("{key}; seed {}{protocol}", self.seed);
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
        published::find(self.choice.experiment.name, key).map(|(value, _)| value)
    }

    /// Adds a row to a table made by [`comparison`]: the paper's number, ours, the difference.
    pub(crate) fn beside(&self, table: &mut Table, show: Show, key: &str, what: &str, ours: &Statistic) {
        let (theirs, source) = published::find(self.choice.experiment.name, key).unzip();
        if theirs.is_some() {
            self.compared.borrow_mut().insert(key.to_owned(), Number::from(ours));
        }
        let difference = theirs.map(|theirs| ours.mean - theirs);
        let [theirs, mean, spread, difference] =
            [theirs, Some(ours.mean), ours.spread(), difference].map(|value| value.cell(show));
        table.add(&[&what, &theirs, &mean, &spread, &difference, &source.unwrap_or_default()]);
    }

    /// Those of some data sets that are there; a remark tells of the others.
    pub(crate) fn present<'b>(&self, names: &[&'b str], remarks: &mut Vec<String>) -> Vec<&'b str> {
        // Features of networks are archives in one folder.
        let has = |name: &&&str| self.data.has(name) || self.data.has(&format!("network_features/{name}.npz"));
        let (there, absent): (Vec<&str>, Vec<&str>) = names.iter().partition(has);
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
    /// Standard error by the choice of test rows; 0 where that is not known.
    pub(crate) sampling: f64,
}

impl Statistic {
    /// A single number.
    pub(crate) fn one(value: f64) -> Self {
        Statistic { mean: value, deviation: 0.0, count: 1, sampling: 0.0 }
    }

    /// A share in percent that was counted on so many rows.
    pub(crate) fn percent_of(self, rows: usize) -> Self {
        let variance = self.mean.clamp(0.0, 100.0) * (100.0 - self.mean.clamp(0.0, 100.0));
        Statistic { sampling: (variance / rows as f64).sqrt(), ..self }
    }

    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Statistic { mean, deviation: (squares / (count as f64 - 1.0).max(1.0)).sqrt(), count, sampling: 0.0 }
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
    /// Data that the paper had and the run has not: no number of it can be compared.
    lacking: Vec<String>,
}

impl Findings {
    pub(crate) fn plot(&mut self, file: impl Into<String>, plot: Plot) {
        self.plots.push((file.into(), plot));
    }

    pub(crate) fn remark(&mut self, sentence: impl Into<String>) {
        self.remarks.push(sentence.into());
    }

    /// So many rows of all that the paper had, where there are fewer.
    pub(crate) fn rows_there(&mut self, what: &str, there: usize, all: usize) {
        if there < all {
            self.lacking.push(format!("{what}: {} instead of {}", words::count(there), words::count(all)));
        }
    }
}

/// The sentence about what there is less of, where there is something to say.
fn smaller(choice: &Choice<'_>, lacking: &[String]) -> Option<String> {
    let less: Vec<String> = choice.less().iter().map(Less::in_words).chain(lacking.iter().cloned()).collect();
    (!less.is_empty()).then(|| {
        format!(
            "Smaller than in the paper: {}. --draws sets the draws, --set a setting, --paper takes the paper's draws and sizes, in \
             hours or days.",
            less.join("; ")
        )
    })
}

/// How an experiment is to be run.
#[derive(Debug)]
pub struct Settings<'a> {
    pub size: Size,
    /// Draws in place of the experiment's own.
    pub draws: Option<usize>,
    /// Settings by name, as they were written.
    pub set: &'a [(String, String)],
    pub data: Option<&'a Path>,
    pub out: &'a Path,
    pub plots: Kind,
    /// Where the page goes, if not beside the results.
    pub report: Option<&'a Path>,
    /// Where numbers that stand beside published ones are kept.
    pub keep: Option<&'a Path>,
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
    settings.keep.map_or(Ok(()), output::check_folder)?;
    let choice = Choice::new(experiment, settings.size, settings.draws.map(|draws| draws.max(1)), settings.set)?;
    let quick = settings.size == Size::Quick;
    let data = Library::new(settings.data);
    if !quick && !settings.format.for_programs() && !settings.quiet {
        eprintln!(
            "{}: a full run takes about {} on two cores{}",
            experiment.name,
            words::duration(60.0 * experiment.minutes),
            if settings.size == Size::Paper { "; with --paper hours or days" } else { "" }
        );
    }
    output::create_folder(&folder)?;
    let cache = Cache::open(&folder.join("numbers.json"), settings.fresh)?;
    let progress = watch.waiting();
    let start = Instant::now();
    let known = RUNNERS.iter().find(|(name, _)| *name == experiment.name);
    let (_, run) = known.ok_or_else(|| Failure::Failed(format!("nothing runs {}", experiment.name)))?;
    let run_of = Run {
        quick,
        seed: settings.seed,
        data,
        choice: choice.clone(),
        cache: &cache,
        progress: &*progress,
        compared: RefCell::default(),
    };
    let findings = run(&run_of)?;
    let compared = run_of.compared.into_inner();
    drop(progress);
    let (now, before) = (start.elapsed().as_secs_f64(), cache.seconds_spared());
    let time = duration(now, before);
    let less = smaller(&choice, &findings.lacking);
    if let Some(folder) = settings.keep {
        output::create_folder(folder)?;
        Kept::of(&choice, settings.seed, now + before, findings.lacking.clone(), compared).write(folder)?;
    }
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
    for remark in findings.remarks.iter().chain(&less) {
        report.paragraph(remark);
        if !settings.format.for_programs() {
            print(&format!("{remark}\n"))?;
        }
    }
    let kind = match settings.size {
        Size::Quick => "Quick",
        Size::Full => "Full",
        Size::Paper => "The paper's",
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
    fn a_page_says_what_is_smaller_than_in_the_paper() {
        let settings = BTreeMap::from([("draws", vec![2.into(), 3.into(), 20.into()])]);
        let experiment = Experiment { settings, ..Experiment::nameless() };
        let told = |size, rows| {
            let mut findings = Findings::default();
            findings.rows_there("images", rows, 50_000);
            smaller(&Choice::new(&experiment, size, None, &[]).unwrap(), &findings.lacking)
        };
        assert_eq!(told(Size::Paper, 50_000), None);
        let remark = told(Size::Full, 10_000).unwrap();
        assert!(remark.contains("draws: 3 instead of 20; images: 10,000 instead of 50,000."), "{remark}");
        assert!(remark.contains("--paper"));
    }

    /// The sources of the experiments, by file name.
    fn sources() -> Vec<(String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reproduce");
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap())
        };
        std::fs::read_dir(folder).unwrap().map(read).collect()
    }

    #[test]
    fn every_setting_is_read_and_has_values_of_one_kind() {
        let sources = sources();
        for experiment in experiments() {
            for (name, values) in &experiment.settings {
                let quoted = format!("\"{name}\"");
                assert!(sources.iter().any(|(_, text)| text.contains(&quoted)), "{}: {name}", experiment.name);
                assert!((1..=3).contains(&values.len()), "{}: {name}", experiment.name);
                for value in values.iter().filter(|value| !value.is_null()) {
                    let words = value.as_str().map_or(value.to_string(), str::to_owned);
                    let named = [((*name).to_owned(), words)];
                    assert!(Choice::new(experiment, Size::Full, None, &named).is_ok(), "{}: {name}", experiment.name);
                }
            }
            assert!(
                experiment.decisive.iter().all(|name| experiment.settings.contains_key(name)),
                "{}",
                experiment.name
            );
        }
    }

    /// What must stand in a description beside a published number: how it is drawn, and the form of its features.
    const PINNED: [(&str, &[&str]); 7] = [
        ("FourierSpec", &["projection", "form"]),
        ("CompressiveSpec", &["projection", "form", "orthoprojector"]),
        ("SphericalSpec", &["projection"]),
        ("PolynomialSpec", &["sketch", "weights", "srht", "structure"]),
        ("MaclaurinSpec", &["allocation", "sketch", "weights", "srht"]),
        ("OpticalSpec", &["projection"]),
        ("OperatorSpec", &["projection"]),
    ];

    #[test]
    fn no_experiment_reads_a_default_map() {
        for (file, text) in sources() {
            let text = text.split("#[cfg(test)]").next().unwrap();
            assert!(!text.contains("::Auto"), "{file} leaves the choice of a map to the library");
            for (spec, fields) in PINNED {
                let opening = format!("{spec} {{");
                for (start, _) in text.match_indices(&opening) {
                    let literal = &text[start + opening.len()..];
                    let mut depth = 1;
                    let end = literal.char_indices().find_map(|(at, letter)| {
                        depth += i32::from(letter == '{') - i32::from(letter == '}');
                        (depth == 0).then_some(at)
                    });
                    let literal = &literal[..end.unwrap()];
                    let is_new =
                        [format!("..{spec}::default()"), format!("..{spec}::new("), "..Default::default()".into()];
                    if is_new.iter().any(|base| literal.contains(base.as_str())) {
                        let missing: Vec<_> = fields.iter().filter(|field| !literal.contains(*field)).collect();
                        assert!(missing.is_empty(), "{file}: {spec} {{{literal}}} leaves {missing:?} to the defaults");
                    }
                }
            }
        }
    }

    impl Experiment {
        /// One that is in no list.
        pub(super) fn nameless() -> Self {
            let (name, what, source, settings) = ("none", "", "", BTreeMap::new());
            Experiment { name, what, source, needs: vec![], minutes: 1.0, protocol: 1, settings, decisive: vec![] }
        }
    }

    /// A full run in a folder of its own, which also has its data.
    pub(super) fn with_run(name: &str, check: impl FnOnce(Run<'_>, &Path)) {
        let folder = std::env::temp_dir().join(format!("bochner-run-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let nameless = Experiment::nameless();
        let run = Run {
            quick: false,
            seed: 0,
            data: Library::new(Some(&folder)),
            choice: Choice::new(&nameless, Size::Full, None, &[]).unwrap(),
            cache: &Cache::open(&folder.join("numbers.json"), true).unwrap(),
            progress: &Unwatched,
            compared: RefCell::default(),
        };
        check(run, &folder);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn shares_have_the_standard_error_of_their_rows() {
        let found = Statistic::one(20.0).percent_of(10_000);
        assert!((found.sampling - 0.4).abs() < 1e-12);
        assert_eq!(Statistic::one(-1.0).percent_of(10).sampling, 0.0);
    }
}

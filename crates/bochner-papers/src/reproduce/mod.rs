//! The papers' experiments: one file each, one line in the list below.
//!
//! An experiment asks `Run` for data, takes numbers through `Run::values` (which remembers them, so that an interrupted
//! run goes on where it stopped), and returns `Findings`: tables that set the paper's numbers beside ours, plots, remarks.

mod attention;
mod cache;
mod classify;
mod compressive;
mod compressive_cifar10;
mod compressive_mnist;
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
mod orff_convergence;
mod orff_mnist;
mod orff_vectorfield;
mod published;
mod sketch_time;
mod svi_time;
mod variance_ratios;

use bochner::rows::{InMemory, RowSource};
use bochner::words;
use bochner_report::Report;
use bochner_report::plot::{Kind, Plot, Point};
use bochner_report::table::{Cell, Format, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::interrupt;
use bochner_table::output;
use bochner_table::progress::{Progress, Watch};
use cache::Cache;
use data::Library;
use published::Published;
use std::path::Path;
use std::time::Instant;

/// An experiment of one of the papers.
#[derive(Debug)]
pub struct Experiment {
    pub name: &'static str,
    /// What it shows, in one line.
    pub what: &'static str,
    /// Paper and figure or table.
    pub source: &'static str,
    /// Data sets it wants, by name; those it can do without come after.
    pub needs: &'static [&'static str],
    /// Expected minutes of a full run on two cores.
    pub minutes: f64,
    pub(crate) run: fn(&Run<'_>) -> Outcome<Findings>,
}

/// All experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    attention::EXPERIMENT,
    compressive_cifar10::EXPERIMENT,
    compressive_mnist::EXPERIMENT,
    ctr_gp::EXPERIMENT,
    kid::EXPERIMENT,
    maclaurin_gp::EXPERIMENT,
    maclaurin_kernel::EXPERIMENT,
    maclaurin_local::EXPERIMENT,
    optical_fashion_mnist::EXPERIMENT,
    optical_time::EXPERIMENT,
    optical_transfer::EXPERIMENT,
    orff_convergence::EXPERIMENT,
    orff_mnist::EXPERIMENT,
    orff_vectorfield::EXPERIMENT,
    sketch_time::EXPERIMENT,
    svi_time::EXPERIMENT,
    variance_ratios::EXPERIMENT,
];

/// The experiment of that name.
pub fn find(name: &str) -> Outcome<&'static Experiment> {
    EXPERIMENTS.iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name).collect();
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
    published: Published,
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
    pub(crate) fn values(&self, key: &str, make: impl FnOnce() -> Outcome<Vec<f64>>) -> Outcome<Vec<f64>> {
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

    /// One number per seed.
    pub(crate) fn per_seed(&self, key: &str, make: impl FnMut(u64) -> Outcome<f64>) -> Outcome<Statistic> {
        self.per_draw(self.seeds, key, make)
    }

    /// One number per draw, with a seed for each.
    pub(crate) fn per_draw(
        &self,
        draws: usize,
        key: &str,
        mut make: impl FnMut(u64) -> Outcome<f64>,
    ) -> Outcome<Statistic> {
        let mut values = Vec::with_capacity(draws);
        for draw in 0..draws as u64 {
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(draw);
            values.extend(self.values(&format!("{key}; draw {draw}"), || Ok(vec![make(seed)?]))?);
        }
        Ok(Statistic::of(&values))
    }

    /// The rows of a part, to be read as often as wanted.
    pub(crate) fn watched<'b>(&self, part: &'b data::Part) -> Outcome<impl RowSource<f32> + use<'b>> {
        Ok(InMemory::new(part.rows.view(), part.targets.view())?)
    }

    /// What the paper reports under `key`, and where.
    pub(crate) fn published(&self, key: &str) -> Option<published::Value> {
        self.published.get(key)
    }

    /// A row of a table made by [`comparison`]: the paper's number, ours, the difference.
    pub(crate) fn beside(&self, key: &str, what: &str, ours: &Statistic, cell: fn(f64) -> Cell) -> Vec<Cell> {
        let paper = self.published(key);
        let missing = || Cell::missing("–");
        vec![
            Cell::text(what),
            paper.as_ref().map_or_else(missing, |p| cell(p.value)),
            cell(ours.mean),
            if ours.count > 1 { cell(ours.deviation) } else { missing() },
            paper.as_ref().map_or_else(missing, |p| cell(ours.mean - p.value)),
            Cell::text(paper.map_or(String::new(), |p| p.source)),
        ]
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
    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Statistic { mean, deviation: (squares / (count as f64 - 1.0).max(1.0)).sqrt(), count }
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
}

/// What a run has less of than the paper, for a sentence on its page.
#[derive(Debug, Default)]
pub(crate) struct Reduced(Vec<String>);

impl Reduced {
    /// So many of something, beside the paper's number.
    pub(crate) fn size(&mut self, what: impl std::fmt::Display, ours: usize, paper: usize) {
        if ours < paper {
            self.0.push(format!("{what}: {} instead of {}", words::count(ours), words::count(paper)));
        }
    }

    /// Something that is left out.
    pub(crate) fn without(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    /// The sentence, where there is something to say.
    pub(crate) fn remark(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| {
            format!(
                "Less than in the paper: {}. --draws sets the draws, --paper takes the paper's draws and sizes, in hours or days.",
                self.0.join("; ")
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
    let findings = (experiment.run)(&Run {
        quick: settings.quick,
        paper: settings.paper,
        asked: settings.seeds.map(|draws| draws.max(1)),
        seeds: settings.seeds.unwrap_or(if settings.quick { 3 } else { 10 }).max(1),
        seed: settings.seed,
        data,
        published: Published::of(experiment.name),
        cache: &cache,
        progress: &*progress,
    })?;
    drop(progress);
    let time = Time { now: start.elapsed().as_secs_f64(), before: cache.seconds_spared() };
    let mut report = Report::new(&format!("{}: {}", experiment.name, experiment.what), experiment.source);
    let mut results = serde_json::Map::new();
    for (name, plot) in &findings.plots {
        let svg = plot.to_svg();
        let file = folder.join(format!("{name}.{}", settings.plots.ending()));
        output::write_whole(&file, &settings.plots.bytes(&svg)?)?;
        report.plot(plot);
    }
    for table in &findings.tables {
        results.insert(table.title.clone(), table.to_json());
        report.table(table);
        print(&table.to(settings.format, settings.colour))?;
    }
    for remark in &findings.remarks {
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
struct Time {
    now: f64,
    before: f64,
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", words::duration(self.now + self.before))?;
        if self.before > 0.0 { write!(f, " ({} of it before)", words::duration(self.before)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_table::progress::Unwatched;

    #[test]
    fn a_run_of_several_sittings_is_as_long_as_all_of_them() {
        assert_eq!(Time { now: 90.0, before: 0.0 }.to_string(), words::duration(90.0));
        let told = Time { now: 30.0, before: 60.0 }.to_string();
        assert_eq!(told, format!("{} ({} of it before)", words::duration(90.0), words::duration(60.0)));
    }

    #[test]
    fn experiments_have_names_of_their_own_and_say_what_they_show() {
        let mut names: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name).collect();
        assert!(names.is_sorted());
        names.dedup();
        assert_eq!(names.len(), EXPERIMENTS.len());
        for experiment in EXPERIMENTS {
            assert!(!experiment.what.is_empty() && !experiment.source.is_empty() && experiment.minutes > 0.0);
        }
    }

    #[test]
    fn a_page_says_what_there_is_less_of() {
        let mut reduced = Reduced::default();
        reduced.size("draws", 10, 10);
        assert_eq!(reduced.remark(), None);
        reduced.size("draws", 5, 20);
        reduced.size("rows", 10_000, 60_000);
        reduced.without("no 3d");
        let remark = reduced.remark().unwrap();
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
            published: Published::default(),
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

    #[test]
    fn published_values_belong_to_experiments() {
        for name in published::experiments() {
            assert!(EXPERIMENTS.iter().any(|e| e.name == name), "{name}");
        }
    }
}

//! From a file and a request to a model and its verdict: scanning, choosing, fitting, judging.
//!
//! ```
//! use bochner_table::fit::{Request, models};
//! assert!(models().any(|model| model.option == "gp"));
//! let nonsense = Request { model: Some("crystal-ball".into()), ..Request::default() };
//! assert!(nonsense.largest().unwrap_err().to_string().contains("there is no such model"));
//! ```

use crate::checkpoint::{Checkpoint, hash};
use crate::choose::{self, Choice, Constraints, Folds};
use crate::doubt::{Doubt, Evidence};
use crate::failure::{Failure, Outcome, with_remedy};
use crate::interrupt;
use crate::interval::HeldOutErrors;
use crate::job::Job;
pub use crate::job::fitted_kinds;
use crate::map_request::{Described, MapRequest, OperatorRequest};
use crate::model::TableModel;
use crate::pipeline::{self, Part, Pipeline, Preparation, Prepared, Scan};
use crate::progress::{Unwatched, Watch};
use crate::read::{Data, Element, Input, Largest, Missing, Options, Selection};
use crate::score::{Against, Compared, Figure};
use crate::target::{TargetScale, TargetScaling};
use bochner::Model;
use bochner::catalogue::{ModelEntry, Needs, Task, Value};
use bochner::feature::{LearnedFourierSpec, Spec};
use bochner::model::Sums;
use bochner::model::kinds::RidgeSolverName;
use bochner::persist::Stored;
use bochner::preprocess::Views;
use bochner::random::Seed;
use bochner::rows::{InMemory, RowSource};
use bochner::scalar::Real;
use bochner::words;
use ndarray::{Array2, ArrayView2, s};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What the user asks for; the rest is chosen.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    /// Classes if the target holds words or few whole numbers, where nobody says.
    pub task: Option<Task>,
    /// Ridge, or operator for an operator-valued kernel, where nobody says.
    pub model: Option<String>,
    /// Which map, and its parameters.
    pub map: MapRequest,
    /// What is done to rows first.
    pub preparation: Preparation,
    /// Of [`Preparation::Binarize`].
    pub threshold: f64,
    /// On which scale numbers are learned.
    pub target_scale: TargetScaling,
    /// What was done to empty cells when the file was opened.
    pub missing: Missing,
    /// Penalty of large coefficients; `alpha` of a Dirichlet transform.
    pub penalty: Option<f64>,
    /// Seconds that choosing and fitting may take on two cores, about.
    pub budget: f64,
    /// Bytes.
    pub memory: Option<u64>,
    /// How coefficients are computed.
    pub solver: RidgeSolverName,
    /// Of features and coefficients.
    pub precision: Precision,
    /// Of all draws.
    pub seed: u64,
    /// Whether the model file keeps the sums it was solved from, so that [`update`](crate::update::update) can go on from them.
    pub keep_sums: bool,
    /// Whether and where to save what has been learned so far.
    #[serde(skip)]
    pub checkpoint: Option<CheckpointRequest>,
}

/// Where a fit saves what it has learned so far, and how often.
#[derive(Debug, Clone)]
pub struct CheckpointRequest {
    /// The file.
    pub path: PathBuf,
    /// Seconds.
    pub every: f64,
    /// Whether to continue from the file, if it is there.
    pub resume: bool,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            task: None,
            model: None,
            map: MapRequest::default(),
            preparation: Preparation::Auto,
            threshold: 0.5,
            target_scale: TargetScaling::Auto,
            missing: Missing::Mark,
            penalty: None,
            budget: 30.0,
            memory: None,
            solver: RidgeSolverName::Auto,
            precision: Precision::Auto,
            seed: 0,
            keep_sums: false,
            checkpoint: None,
        }
    }
}

/// Of features and coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Precision {
    /// 64 bits for few rows, 32 for many
    Auto,
    /// 32 bits
    Single,
    /// 64 bits
    Double,
}

/// Whether a kind of model has this solver.
fn solves(kind: &ModelEntry, solver: RidgeSolverName) -> bool {
    kind.entry.parameter("solver").is_ok_and(|parameter| parameter.domain.words().contains(&solver.name()))
}

/// What `--model` may say: the first kind of each option, which stands for all.
pub fn models() -> impl Iterator<Item = &'static ModelEntry> {
    let mut before = Vec::new();
    fitted_kinds().filter(move |kind| {
        let new = !before.contains(&kind.option);
        before.push(kind.option);
        new
    })
}

/// Where a model file keeps [`Training`].
pub const TRAINING: &str = "training";

/// What a model file says about its fit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Training {
    /// Rows it was fitted to.
    pub rows: Option<usize>,
    /// What weighed coefficients, or `alpha`.
    pub penalty: Option<f64>,
    /// Figures on rows that had no part in anything.
    pub figures: Vec<Figure>,
    /// How many those were.
    pub scored_rows: usize,
    /// That it is no better than guessing, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// How it compares with a linear model on the same rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Errors that intervals are made of.
    #[serde(skip_serializing_if = "HeldOutErrors::is_empty")]
    pub errors: HeldOutErrors,
    /// Of its draws.
    pub seed: u64,
    /// Who fitted it.
    pub program: String,
}

/// Features whose Gram matrix is made in seconds; sums over rows allow checkpoints, and a last fit with all rows.
const MANY_FEATURES: usize = 8192;

/// Rows from which a map is learned.
const LEAST_ROWS: usize = 100;
/// Rows from which probabilities are calibrated.
const FEW_JUDGES: usize = 20;

/// Rows up to which double precision costs little, and smooth functions gain from it.
const FEW_ROWS: usize = 3000;

/// Everything a finished fit can tell.
#[derive(Debug)]
pub struct Trained {
    /// The model.
    pub model: TableModel,
    /// Name of the file.
    pub data: String,
    /// Whether the file is text without a header.
    pub no_header: bool,
    /// Rows of the file.
    pub rows: usize,
    /// What it was fitted as.
    pub kind: &'static ModelEntry,
    /// Why the task is this one.
    pub reason: String,
    /// From the columns of the file to rows.
    pub pipeline: Pipeline,
    /// What was chosen.
    pub choice: Choice,
    /// `None` for a model that compares rows.
    pub features: Option<usize>,
    /// Figures on rows that had no part in anything.
    pub figures: Vec<Figure>,
    /// That it is no better than guessing, where it is not.
    pub doubt: Option<Doubt>,
    /// How it compares with a linear model on the same rows, where one was fitted.
    pub against: Option<Against>,
    /// Predictions beside the truth.
    pub compared: Compared,
    /// The rows compared, as the file has them.
    pub places: Array2<f64>,
    /// Rows on which the parameters were chosen.
    pub folds: Folds,
    /// Whether the rows of the figures were used for the model in the end.
    pub all_rows: bool,
    /// What its file says about the fit.
    pub training: Training,
    /// How much predictions change when the values of a column of the file are exchanged between rows, the most first; the
    /// largest is 1.
    pub importances: Vec<(String, f64)>,
}

impl Trained {
    /// What there is to tell, for programs.
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "data": self.data,
            "rows": self.rows,
            "task": self.kind.task,
            "reason": self.reason,
            "model": self.kind.entry.name,
            "map": self.choice.description.without_learned(),
            "map_reason": self.choice.map_reason,
            "median_distance": self.choice.median,
            "features": self.features,
            "penalty": self.choice.penalty,
            "note": self.choice.note,
            "limit": self.choice.limit,
            "trials": self.choice.trials,
            "importances": self.importances,
            "held_out_rows": self.folds.judges(),
            "scored_rows": self.compared.truth.nrows(),
            "figures": self.figures,
            "intervals": self.intervals_in_words(),
            "target_scale": if self.pipeline.has_logarithms() { TargetScaling::Log } else { TargetScaling::None },
            "doubt": self.doubt,
            "against_linear": self.against,
            "verdict": self.verdict(),
            "fitted_to_all_rows": self.all_rows,
        })
    }

    /// How wide intervals are that cover nine rows in ten; of classes, nothing.
    pub fn intervals_in_words(&self) -> Option<String> {
        let names = self.pipeline.schema.targets.iter().map(|column| column.name.as_str());
        let scales = self.pipeline.targets.iter().copied();
        self.training.errors.in_words(&names.zip(scales).collect::<Vec<_>>())
    }

    /// How good it is, in a sentence or two.
    pub fn verdict(&self) -> String {
        let scored = words::count(self.compared.truth.nrows());
        let mut said = match &self.figures[..] {
            [] => "There were too few rows to hold some out: nothing is known about how good the model is.".to_owned(),
            figures => {
                let figures: Vec<String> = figures.iter().map(Figure::in_words).collect();
                format!("On {scored} rows that had no part in it: {}.", figures.join("; "))
            }
        };
        for sentence in self.doubt.iter().map(Doubt::in_words).chain(self.against.iter().map(Against::in_words)) {
            said += " ";
            said += &sentence;
        }
        said
    }
}

/// How a sample is divided: rows for the figures, and rows for choices.
struct Split {
    scored: usize,
    folds: Folds,
}

impl Split {
    fn new(sample: usize) -> Self {
        let scored = if sample < 50 { 0 } else { (sample / 10).min(5000) };
        Split { scored, folds: Folds::new(sample - scored, 5000) }
    }

    /// Whether there are too few rows to learn a map from: the best of many iterates would be one by chance.
    fn is_too_small(&self) -> bool {
        self.folds.judges() < LEAST_ROWS
    }
}

impl Request {
    /// The kind of model asked for, or the one that the kernel belongs to, whatever the task.
    ///
    /// # Errors
    /// If what was asked for does not go together.
    pub fn family(&self) -> Outcome<&'static ModelEntry> {
        let operator = self.map.operator_kernel();
        let needs = if operator.is_some() { Needs::Operator } else { Needs::Map };
        let first = fitted_kinds().find(|kind| kind.needs == needs).map_or("", |kind| kind.option);
        let asked = self.model.as_deref().unwrap_or(first);
        let Some(kind) = fitted_kinds().find(|kind| kind.option == asked.replace('_', "-")) else {
            let known = models().map(|kind| kind.option).collect::<Vec<_>>().join(", ");
            return Err(Failure::Usage(format!("--model {asked}: there is no such model; these are {known}")));
        };
        if let Some(kernel) = operator.filter(|_| kind.needs != Needs::Operator) {
            return Err(Failure::Usage(format!("--kernel {kernel} goes with --model operator")));
        }
        let has_solvers = |kind: &ModelEntry| kind.entry.parameter("solver").is_ok();
        if self.solver != RidgeSolverName::Auto && !has_solvers(kind) {
            let known: Vec<&str> = models().filter(|kind| has_solvers(kind)).map(|kind| kind.option).collect();
            return Err(Failure::Usage(format!("--solver goes with --model {}", known.join(" and "))));
        }
        if kind.needs == Needs::Operator {
            self.map.check_operator()?;
        }
        if kind.needs == Needs::Kernel {
            self.map.check_exact()?;
            if self.map.features.is_some() {
                return Err(Failure::Usage("--features: an exact kernel machine compares rows and has none".into()));
            }
        }
        Ok(kind)
    }

    /// Whether all arithmetic is in single precision, with so many rows.
    fn is_single(&self, family: &ModelEntry, rows: usize) -> bool {
        let single = match self.precision {
            Precision::Auto => rows > FEW_ROWS,
            Precision::Single => true,
            Precision::Double => false,
        };
        single && !family.only_double()
    }

    /// The largest number that a file may hold.
    ///
    /// # Errors
    /// If what was asked for does not go together.
    pub fn largest(&self) -> Outcome<Largest> {
        let family = self.family()?;
        Ok(match self.precision == Precision::Single && !family.only_double() {
            true => Largest::single("too large for single precision; --precision double reads it"),
            false => Largest::DOUBLE,
        })
    }

    /// The solver asked for; `auto` compares rows where there are fewer of them than of many features.
    fn solver_for(&self, family: &ModelEntry, rows: usize) -> RidgeSolverName {
        match (self.solver, self.map.features) {
            (RidgeSolverName::Auto, Some(features))
                if solves(family, RidgeSolverName::Dual) && features > rows.max(MANY_FEATURES) =>
            {
                RidgeSolverName::Dual
            }
            (solver, _) => solver,
        }
    }

    /// The map to learn: where nobody says which one to take and rows are those of a table, or where it is asked for.
    fn learns(&self, kind: &ModelEntry, data: &Data) -> Outcome<Option<LearnedFourierSpec>> {
        if kind.needs != Needs::Map {
            return Ok(None);
        }
        let Described { spec, .. } = self.map.describe(self.seed)?;
        Ok(match spec {
            Spec::LearnedFourier(spec) => Some(spec),
            _ if self.map.is_free() && self.preparation == Preparation::Auto && !data.same_units() => {
                Some(LearnedFourierSpec { seed: self.seed, ..LearnedFourierSpec::default() })
            }
            _ => None,
        })
    }

    fn constraints(&self, rows: usize, is_operator: bool) -> Outcome<Constraints> {
        // Of an operator-valued kernel only the length scale is read here.
        let Described { spec, scale } = match is_operator {
            false => self.map.describe(self.seed)?,
            true => Described { spec: Spec::for_kernel("gaussian")?, scale: self.map.length_scale_of_operator()? },
        };
        Ok(Constraints {
            lower_degrees: self.map.with_lower_degrees(&spec)?,
            spec,
            scale,
            learn: None,
            any_map: self.map.any_map() && !is_operator,
            features: self.map.features,
            penalty: self.penalty,
            budget: self.budget,
            memory: self.memory,
            rows,
            seed: Seed::new(self.seed),
            operator: None,
            factors: 0,
        })
    }
}

/// Fits a model to the file at `path`, to predict the columns `target` (names or numbers, separated by commas).
///
/// # Errors
/// As [`fit_data`], and if there is no such file or column.
pub fn fit(path: impl AsRef<Path>, target: &str, request: &Request) -> Outcome<Trained> {
    fit_watched(path, target, request, &Unwatched)
}

/// The same, for whoever waits for it.
///
/// # Errors
/// As [`fit`](fn@fit).
pub fn fit_watched(path: impl AsRef<Path>, target: &str, request: &Request, watch: &dyn Watch) -> Outcome<Trained> {
    let targets = target.split(',').map(str::to_owned).collect();
    let selection = Selection { targets, ..Selection::default() };
    let options = Options { missing: request.missing, largest: Some(request.largest()?), ..Options::lenient() };
    let data = Data::open(Input::open(path.as_ref())?, None, &selection, &options)?;
    fit_data(request, &data, watch)
}

/// Fits a model to a file that was opened with its targets.
///
/// # Errors
/// If the request makes no sense for these data, if they cannot be read or fitted, or if the user asked to stop.
pub fn fit_data(request: &Request, data: &Data, watch: &dyn Watch) -> Outcome<Trained> {
    if data.schema().targets.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: which column is to be predicted? Say --target COLUMN (or --labels FILE for labels in a file of their own); \
             the columns are {}",
            data.input().name,
            data.schema().some_names()
        )));
    }
    let family = request.family()?;
    let seed = Seed::new(request.seed);
    let checkpoint = Checkpoint::open(request.checkpoint.as_ref())?;
    let scan = pipeline::scan(data, seed, request.memory.map_or(1 << 27, |memory| memory / 8), watch)?;
    scan.check_rows(data)?;
    match request.is_single(family, scan.rows) {
        true => train::<f32>(request, data, family, checkpoint, scan, watch),
        false => train::<f64>(request, data, family, checkpoint, scan, watch),
    }
}

fn train<R: Element>(
    request: &Request,
    data: &Data,
    family: &'static ModelEntry,
    checkpoint: Checkpoint<'_>,
    scan: Scan,
    watch: &dyn Watch,
) -> Outcome<Trained> {
    let seed = Seed::new(request.seed);
    let saved = request.checkpoint.as_ref();
    let is_operator = family.needs == Needs::Operator;
    let (recognised, reason) = match is_operator {
        true => (Task::Regression, "operator-valued kernels predict numbers".to_owned()),
        false => scan.recognise(data),
    };
    let (task, reason) = match request.task {
        Some(task) => (task, "asked for".to_owned()),
        None => (recognised, reason),
    };
    let kind = fitted_kinds().find(|kind| kind.option == family.option && kind.task == task);
    let kind =
        kind.ok_or_else(|| Failure::Usage(format!("there is no {} with --model {}", task.name(), family.option)))?;
    let split = Split::new(scan.sample.numbers.len());
    let mut constraints = request.constraints(scan.rows, is_operator)?;
    let mut preparation = request.map.preparation(request.preparation)?;
    if is_operator {
        let targets = scan.sample.targets.slice(s![split.scored.., ..]);
        let operator = request.map.operator(request.seed, || pipeline::correlations(targets))?;
        if operator.is_field() {
            pipeline::check_field(data)?;
            preparation = preparation.of_field()?;
        }
        constraints.operator = Some(operator);
    }
    let field = constraints.operator.as_ref().is_some_and(OperatorRequest::is_field);
    scan.check_targets(data, field)?;
    let mut pipeline = scan.pipeline(data, request.missing, preparation, request.threshold, task)?;
    constraints.learn = request.learns(kind, data)?.filter(|_| !split.is_too_small());
    let others = scan.sample.targets.slice(s![split.scored.., ..]);
    match request.target_scale {
        TargetScaling::Log if task == Task::Classification || is_operator || kind.answers.deviations => {
            let why = match task {
                Task::Classification => "classes have no logarithms".to_owned(),
                Task::Regression => format!("{} learns targets as they are", kind.entry.title),
            };
            return Err(Failure::Usage(format!("--target-scale log: {why}")));
        }
        TargetScaling::Log => {
            let fault = |error| Failure::Failed(format!("{}: --target-scale log: {error}", data.input().name));
            pipeline.take_logarithms(scan.sample.targets.view()).map_err(fault)?;
        }
        _ => {}
    }
    if constraints.learn.is_some() && preparation == Preparation::Auto {
        let views = Views::fit(scan.sample.rows.view());
        let constant =
            |_| Failure::Failed(format!("{}: all columns are constant: nothing to learn from", data.input().name));
        pipeline.see(views.map_err(constant)?);
    }
    if field {
        pipeline.share_target_scale();
    }
    let skewed = request.target_scale == TargetScaling::Auto
        && constraints.learn.is_some()
        && !pipeline.targets.is_empty()
        && kind.has_sums()
        && !kind.answers.deviations
        && constraints.memory.is_none_or(|memory| choose::logarithms_need::<R>() <= memory)
        && others.columns().into_iter().all(|target| TargetScale::is_skewed(&target.to_vec()));
    if skewed {
        let mut with = pipeline.clone();
        with.take_logarithms(scan.sample.targets.view())?;
        let rows = scan.sample.rows.slice(s![split.scored.., ..]);
        let progress = watch.waiting();
        let compare = || choose::compare_logarithms::<R>(&constraints, [&pipeline, &with], rows, others, &*progress);
        let losses = interrupt::stoppable(compare)?;
        constraints.budget = (constraints.budget - choose::LOGARITHM_SECONDS).max(0.5 * constraints.budget);
        if losses.prefer_logarithms() {
            pipeline = with;
        }
    }
    // Models from sums that know how sure they are keep a factor for each class.
    if kind.has_sums() && (kind.answers.deviations || kind.answers.probabilities) {
        constraints.factors = pipeline.labels.len().max(1);
    }
    let solver = request.solver_for(family, scan.rows);
    let direct = matches!(solver, RidgeSolverName::Auto | RidgeSolverName::Cholesky);
    let from_sums = kind.has_sums() && direct;
    if request.keep_sums && !from_sums {
        let known: Vec<&str> = models().filter(|kind| kind.has_sums()).map(|kind| kind.option).collect();
        let known = known.join(", ");
        return Err(Failure::Usage(format!("--keep-sums goes with --model {known} and --solver auto or cholesky")));
    }
    let resume = saved.is_some_and(|saved| saved.resume);
    let mut checkpoint = checkpoint.of(configuration(request, data, &scan));
    let resumed = if resume { checkpoint.load()? } else { None };
    let (choice, sums) = match resumed {
        Some(resumed) => resumed,
        None => {
            let choice = || {
                let made = make_choice::<R>(watch, kind, &constraints, &scan, &pipeline, &split);
                made.map_err(|failure| match failure {
                    Failure::Failed(why) => Failure::Failed(format!("{}: {why}", data.input().name)),
                    other => other,
                })
            };
            (interrupt::stoppable(choice)?, None)
        }
    };
    let mut left_out = scan.sample.numbers[..split.scored].to_vec();
    left_out.sort_unstable();
    let features = choice.description.features(pipeline.output_dim())?;
    let job = Job {
        kind,
        description: &choice.description,
        penalty: choice.penalty,
        classes: (task == Task::Classification).then(|| pipeline.class_names()),
        targets: data.schema().targets.len(),
        memory: request.memory,
        solver: (!direct).then(|| solver.name()),
        centroids: choose::most_centroids(features.unwrap_or(1), scan.rows, request.budget),
        journal: checkpoint.journal(resume),
        seed,
    };
    let progress = watch.reading(data.input(), "training")?;
    let total = scan.rows - split.scored;
    let mut source = Prepared { data, pipeline: &pipeline, left_out: &left_out, skip: 0, total, progress: &*progress };
    let scored = Part::<R>::of(&pipeline, &scan.sample, 0..split.scored)?;
    let (without, with) = match from_sums {
        true => sum_up(&job, &mut source, sums, &scored, &mut checkpoint, &choice, request.keep_sums)?,
        false => {
            checkpoint.save::<R>(None, &choice)?;
            (interrupt::stoppable(|| job.fit::<R>(&mut source).map_err(with_remedy))?, None)
        }
    };
    drop(progress);
    let mut model = TableModel::new(without, pipeline.clone())?;
    let places = scan.sample.rows.slice(s![..split.scored, ..]).to_owned();
    let rows = pipeline.prepared(places.clone())?;
    let mut truth = scan.sample.targets.slice(s![..split.scored, ..]).to_owned();
    if task == Task::Classification {
        truth.mapv_inplace(|v| pipeline.class_of(v).map_or(f64::NAN, |c| c as f64));
    }
    if pipeline.has_logarithms() {
        // One number of many rows: it does not make their figures better than they are.
        pipeline.smear(truth.view(), model.predict_prepared(rows.view())?.view());
        model = TableModel::new(model.model, pipeline.clone())?;
    }
    let compared = Compared { task, truth, predicted: model.predict_prepared(rows.view())? };
    let calibration = match task {
        Task::Classification if !kind.answers.probabilities && split.scored >= FEW_JUDGES => {
            let labels: Vec<usize> = compared.truth.iter().map(|label| *label as usize).collect();
            Some(bochner::model::Calibration::fit(model.model.predict(rows.view())?.view(), &labels, false)?)
        }
        _ => None,
    };
    let errors = match (task, &calibration) {
        (Task::Regression, _) => HeldOutErrors::of(&compared, &pipeline.targets),
        (_, Some(calibration)) => {
            let probabilities = calibration.probabilities(model.model.predict(rows.view())?.view())?;
            HeldOutErrors::of_classes(&compared.truth, &probabilities)
        }
        (_, None) if kind.answers.probabilities => {
            HeldOutErrors::of_classes(&compared.truth, &model.model.probabilities(rows.view())?)
        }
        (_, None) => HeldOutErrors::default(),
    };
    let names: Vec<String> = pipeline.schema.targets.iter().map(|c| c.name.clone()).collect();
    let mut figures = compared.figures(seed, &names);
    let others = Part::<R>::of(&pipeline, &scan.sample, split.scored..scan.sample.numbers.len())?;
    let folds = split.folds.of(&others);
    let linear = match figures.is_empty() || choose::are_too_few(&folds) {
        true => None,
        false => choose::linear(&constraints, &pipeline, &others, &folds[0], rows.view())?,
    };
    drop(folds);
    let linear = linear.map(|predicted| Compared { task, truth: compared.truth.clone(), predicted });
    let against = linear.as_ref().and_then(|linear| compared.against(linear));
    if let Some(linear) = &linear {
        let theirs = linear.figures(seed, &names);
        figures.iter_mut().zip(theirs).for_each(|(figure, other)| figure.linear = Some(other.value));
    }
    let sample = Part::<f64>::of(&pipeline, &scan.sample, 0..scan.sample.numbers.len().min(1000))?;
    let evidence = Evidence {
        task,
        schema: &pipeline.schema,
        scan: &scan,
        rows: sample.rows.view(),
        choice: &choice,
        compared: &compared,
        figures: &figures,
        penalty_asked: request.penalty.is_some(),
        seed,
    };
    let doubt = evidence.doubt();
    let all_rows = with.is_some();
    let mut last = with.map_or(Ok(model), |with| TableModel::new(with, pipeline.clone()))?;
    let rows = if all_rows { scan.rows } else { scan.rows - split.scored };
    let training = Training {
        rows: Some(rows),
        penalty: Some(choice.penalty),
        figures: figures.clone(),
        scored_rows: split.scored,
        doubt: doubt.clone(),
        against: against.clone(),
        errors,
        seed: request.seed,
        program: concat!("bochner ", env!("CARGO_PKG_VERSION")).into(),
    };
    if let Some(calibration) = &calibration {
        last.model.attach(bochner::model::Calibration::NAME, calibration)?;
    }
    last.attach_training(&training)?;
    let importances = importances(&last.model, &pipeline, sample.rows.view())?;
    Ok(Trained {
        model: last,
        data: data.input().name.clone(),
        no_header: data.lacks_header(),
        rows: scan.rows,
        kind,
        reason,
        features,
        pipeline,
        choice,
        figures,
        doubt,
        against,
        compared,
        places,
        folds: split.folds,
        all_rows,
        training,
        importances,
    })
}

/// Rows whose values are exchanged.
const EXCHANGED: usize = 300;

/// The root mean squared change of predictions when all that a column of the file has become is exchanged between rows. Derivatives
/// would count small fast waves for more than they matter.
fn importances(model: &Model, pipeline: &Pipeline, rows: ArrayView2<'_, f64>) -> Outcome<Vec<(String, f64)>> {
    let names: Vec<&str> = pipeline.schema.input_sources().collect();
    let places: Vec<usize> = match &pipeline.views {
        Some(views) => views.columns().collect(),
        None => (0..names.len()).collect(),
    };
    let n = rows.nrows().min(EXCHANGED);
    let rows = rows.slice(s![..n, ..]);
    let before = model.predict(rows)?;
    let mut found: Vec<(String, f64)> = Vec::new();
    for column in &pipeline.schema.inputs {
        let mut moved = rows.to_owned();
        for (k, _) in places.iter().enumerate().filter(|(_, place)| names.get(**place) == Some(&column.name.as_str())) {
            (0..n).for_each(|i| moved[[i, k]] = rows[[(i + n / 2) % n, k]]);
        }
        let change = model.predict(moved.view())? - &before;
        found.push((column.name.clone(), change.iter().map(|v| v * v).sum::<f64>().sqrt()));
    }
    let largest = found.iter().map(|(_, v)| *v).fold(f64::MIN_POSITIVE, f64::max);
    found.iter_mut().for_each(|(_, v)| *v /= largest);
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(found)
}

fn make_choice<R: Real>(
    watch: &dyn Watch,
    kind: &'static ModelEntry,
    constraints: &Constraints,
    scan: &Scan,
    pipeline: &Pipeline,
    split: &Split,
) -> Outcome<Choice> {
    let sample = &scan.sample;
    let folds = split.folds.of(&Part::<R>::of(pipeline, sample, split.scored..sample.numbers.len())?);
    let own_parameter = kind.penalty.is_some_and(|penalty| !penalty.tried.is_empty());
    if let Some(spec) = &constraints.learn {
        let progress = watch.steps(choose::learning_steps(constraints, pipeline, &folds));
        let mut search = constraints.clone();
        if own_parameter {
            search.penalty = None;
        }
        let choice = choose::learned(&search, spec, pipeline, &folds, &*progress)?;
        let asked = constraints.penalty.filter(|_| own_parameter);
        return choose::refine(kind, constraints, asked, pipeline, &folds, choice);
    }
    let progress = watch.steps(choose::steps(constraints));
    // Length scales are looked for with the features and the penalties of a ridge regression.
    let mut search = constraints.clone();
    if own_parameter {
        search.penalty = None;
    }
    if matches!(kind.needs, Needs::Kernel | Needs::Nothing) {
        search.features = Some(512);
        search.any_map = false;
    }
    if kind.needs == Needs::Nothing {
        let spec = &constraints.spec;
        let known = matches!(spec, Spec::Fourier(_) | Spec::Maclaurin(_));
        if !known || spec.get("kernel") != Some("gaussian".into()) {
            let message =
                "--model local-gp has Maclaurin features of the gaussian kernel; leave --map and --kernel out";
            return Err(Failure::Usage(message.into()));
        }
        // What both maps have is searched for with Fourier features.
        let alike = |name: &str| {
            let with = |spec: Spec, name: &str| spec.with(name, constraints.spec.get(name).unwrap_or(Value::None));
            with(with(Spec::named(name)?, "length_scale")?, "seed")
        };
        if matches!(spec, Spec::Maclaurin(_)) {
            if *spec != alike("maclaurin")? {
                return Err(Failure::Usage("--set: --model local-gp chooses the parameters of its map".into()));
            }
            search.spec = alike("fourier")?;
        }
    }
    let choice = choose::choose(&search, pipeline, &folds, &*progress)?;
    choose::refine(kind, constraints, constraints.penalty.filter(|_| own_parameter), pipeline, &folds, choice)
}

/// What must not change between a checkpoint and its resumption: the request, and every number of every row.
fn configuration(request: &Request, data: &Data, scan: &Scan) -> String {
    let facts = json!({
        "program": env!("CARGO_PKG_VERSION"), "request": request, "schema": data.schema(), "rows": scan.rows,
        "digest": data.digest(),
    });
    hash(facts.to_string().as_bytes())
}

/// A fit from sums over rows: the model without the scored rows and, where memory allows, the one with them.
fn sum_up<R: Element>(
    job: &Job<'_>,
    source: &mut Prepared<'_>,
    resumed: Option<Stored>,
    scored: &Part<R>,
    checkpoint: &mut Checkpoint<'_>,
    choice: &Choice,
    keep: bool,
) -> Outcome<(Model, Option<Model>)> {
    let mut sums: Sums<R> = job.sums(RowSource::<R>::input_dim(source), resumed.as_ref()).map_err(with_remedy)?;
    if resumed.is_none() {
        checkpoint.save(Some(&sums), choice)?;
    }
    drop(resumed);
    source.skip = usize::try_from(sums.count()).unwrap_or(usize::MAX).min(source.total);
    let ended = sums.read(source, &mut job.context()?, &mut |sums| {
        checkpoint.now_and_then(sums, choice).map_err(pipeline::stopped)
    });
    if let Err(error) = ended {
        if matches!(error, bochner::Error::Interrupted) {
            checkpoint.save(Some(&sums), choice)?;
        }
        return Err(error.into());
    }
    let room = job.memory.is_none_or(|memory| sums.bytes().saturating_mul(2) <= memory);
    let mut all = None;
    if scored.rows.nrows() > 0 && room {
        let mut with = sums.clone();
        let mut source = InMemory::new(scored.rows.view(), scored.targets.view())?;
        with.read(&mut source, &mut job.context()?, &mut |_| Ok(()))?;
        all = Some(interrupt::stoppable(|| Ok(job.finish_keeping(with, keep)?))?);
    }
    Ok((interrupt::stoppable(|| Ok(job.finish_keeping(sums, keep && all.is_none())?))?, all))
}

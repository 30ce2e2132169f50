//! From a file and a request to a model and its verdict: scanning, choosing, fitting, judging.

use crate::checkpoint::{Checkpoint, Kept, hash};
use crate::choose::{self, Choice, Constraints, Folds};
use crate::description::{OperatorRequest, operator_name};
use crate::failure::{Failure, Outcome, with_remedy};
use crate::interrupt;
use crate::map_request::MapRequest;
use crate::models::{Family, FromSums, Job, Kind, Model, Precise, Sums};
use crate::pipeline::{self, Part, Pipeline, Preparation, Prepared, Scan, Task};
use crate::progress::Watch;
use crate::read::{Data, Largest, Missing};
use crate::score::{self, Answers, Figure};
use bochner::persist::Stored;
use bochner::random::Seed;
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::solve::{ConjugateGradients, Solver, StochasticGradient};
use ndarray::{Array2, s};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

/// What the user asks for; the rest is chosen.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    /// Classes if the target holds words or few whole numbers, where nobody says.
    pub task: Option<Task>,
    /// Ridge, or operator for an operator-valued kernel, where nobody says.
    pub model: Option<Family>,
    pub map: MapRequest,
    pub preparation: Preparation,
    /// Of [`Preparation::Binarise`].
    pub threshold: f64,
    /// What was done to empty cells when the file was opened.
    pub missing: Missing,
    /// Penalty of large coefficients; `alpha` of a Dirichlet transform.
    pub penalty: Option<f64>,
    /// Seconds that choosing and fitting may take on two cores, about.
    pub budget: f64,
    /// Bytes.
    pub memory: Option<u64>,
    pub solver: SolverName,
    pub precision: Precision,
    pub seed: u64,
    #[serde(skip)]
    pub checkpoint: Option<CheckpointRequest>,
}

/// Where a fit saves what it has learned so far, and how often.
#[derive(Debug, Clone)]
pub struct CheckpointRequest {
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
            missing: Missing::Refuse,
            penalty: None,
            budget: 60.0,
            memory: None,
            solver: SolverName::Auto,
            precision: Precision::Single,
            seed: 0,
            checkpoint: None,
        }
    }
}

/// How coefficients are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SolverName {
    /// From sums over rows, exactly, or as dual for fewer rows than very many features
    Auto,
    /// The same, by name
    Cholesky,
    /// From inner products of all pairs of rows: for fewer rows than features
    Dual,
    /// Conjugate gradients: many passes, little memory
    Cg,
    /// Stochastic gradients: few passes, little memory, approximate
    Sgd,
}

/// Of features and coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Precision {
    Single,
    Double,
}

impl SolverName {
    fn solver(self) -> Solver {
        match self {
            SolverName::Auto | SolverName::Cholesky => Solver::Cholesky,
            SolverName::Dual => Solver::Dual,
            SolverName::Cg => Solver::ConjugateGradients(ConjugateGradients::default()),
            SolverName::Sgd => Solver::StochasticGradient(StochasticGradient::default()),
        }
    }

    fn uses_sums(self) -> bool {
        matches!(self, SolverName::Auto | SolverName::Cholesky)
    }
}

/// Features whose Gram matrix is made in seconds; sums over rows allow checkpoints, and a last fit with all rows.
const MANY_FEATURES: usize = 8192;

/// Everything a finished fit can tell.
#[derive(Debug)]
pub struct Fitted {
    /// The model as files have it.
    pub stored: Stored,
    /// Name of the file.
    pub data: String,
    /// Whether the file is text without a header.
    pub no_header: bool,
    pub rows: usize,
    pub kind: &'static Kind,
    pub reason: String,
    pub pipeline: Pipeline,
    pub choice: Choice,
    /// `None` for a model that compares rows.
    pub features: Option<usize>,
    /// Figures on rows that had no part in anything.
    pub figures: Vec<Figure>,
    pub answers: Answers,
    /// The rows of the answers, as the file has them.
    pub places: Array2<f64>,
    /// Rows on which the parameters were chosen.
    pub folds: Folds,
    /// Whether the rows of the figures were used for the model in the end.
    pub all_rows: bool,
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
}

impl Request {
    /// The family asked for, or the one that the kernel belongs to.
    ///
    /// # Errors
    /// If what was asked for does not go together.
    pub fn family(&self) -> Outcome<Family> {
        let operator = self.map.kernel().and_then(operator_name).is_some();
        let family = self.model.unwrap_or(if operator { Family::Operator } else { Family::Ridge });
        if operator && family != Family::Operator {
            let kernel = self.map.kernel().unwrap_or_default();
            return Err(Failure::Usage(format!("--kernel {kernel} goes with --model operator")));
        }
        if self.solver != SolverName::Auto && !family.has_solvers() {
            return Err(Failure::Usage("--solver goes with --model ridge and operator".into()));
        }
        if family == Family::Operator {
            self.map.check_operator()?;
        }
        if family == Family::KernelSvm {
            self.map.check_exact()?;
            if self.map.features.is_some() {
                return Err(Failure::Usage("--features: an exact kernel machine compares rows and has none".into()));
            }
        }
        Ok(family)
    }

    /// Whether all arithmetic is in single precision.
    fn is_single(&self, family: Family) -> bool {
        self.precision == Precision::Single && !family.only_double()
    }

    /// The largest number that a file may hold.
    ///
    /// # Errors
    /// If what was asked for does not go together.
    pub fn largest(&self) -> Outcome<Largest> {
        Ok(match self.is_single(self.family()?) {
            true => Largest::single("too large for single precision; --precision double reads it"),
            false => Largest::DOUBLE,
        })
    }

    /// The solver asked for; `auto` compares rows where there are fewer of them than of many features.
    fn solver_for(&self, family: Family, rows: usize) -> SolverName {
        match (self.solver, self.map.features) {
            (SolverName::Auto, Some(features)) if family == Family::Ridge && features > rows.max(MANY_FEATURES) => {
                SolverName::Dual
            }
            (solver, _) => solver,
        }
    }

    fn constraints(&self, rows: usize) -> Outcome<Constraints> {
        Ok(Constraints {
            map: self.map.describe(self.seed)?,
            any_map: self.map.any_map(),
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

/// Fits a model to a file that was opened with its targets.
///
/// # Errors
/// If the request makes no sense for these data, if they cannot be read or fitted, or if the user asked to stop.
pub fn fit(request: &Request, data: &Data, watch: &dyn Watch) -> Outcome<Fitted> {
    if data.schema().targets.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: which column is to be predicted? Say --target COLUMN (or --labels FILE for labels in a file of their own); \
             the columns are {}",
            data.input().name,
            data.schema().some_names()
        )));
    }
    let family = request.family()?;
    match request.is_single(family) {
        true => train::<f32>(request, data, family, watch),
        false => train::<f64>(request, data, family, watch),
    }
}

fn train<R: Precise>(request: &Request, data: &Data, family: Family, watch: &dyn Watch) -> Outcome<Fitted> {
    let seed = Seed::new(request.seed);
    let progress = watch.reading(data.input(), "looking at the rows")?;
    let sample_bytes = request.memory.map_or(1 << 27, |memory| memory / 8);
    let scan = pipeline::scan(data, seed, sample_bytes, || progress.read())?;
    drop(progress);
    scan.check_rows(data)?;
    let (recognised, reason) = match family {
        Family::Operator => (Task::Regression, "operator-valued kernels predict numbers".to_owned()),
        _ => scan.recognise(data),
    };
    let (task, reason) = match request.task {
        Some(task) => (task, "asked for".to_owned()),
        None => (recognised, reason),
    };
    let kind = Kind::find(family, task)
        .ok_or_else(|| Failure::Usage(format!("there is no {} with --model {}", task.in_words(), family.name())))?;
    let split = Split::new(scan.sample.numbers.len());
    let mut constraints = request.constraints(scan.rows)?;
    let mut preparation = request.preparation;
    if family == Family::Operator {
        let targets = scan.sample.targets.slice(s![split.scored.., ..]);
        let operator = OperatorRequest::new(&constraints.map, || pipeline::correlations(targets))?;
        if operator.is_field() {
            pipeline::check_field(data)?;
            preparation = preparation.of_field()?;
        }
        constraints.operator = Some(operator);
    }
    let field = constraints.operator.as_ref().is_some_and(OperatorRequest::is_field);
    scan.check_targets(data, field)?;
    let mut pipeline = scan.pipeline(data, request.missing, preparation, request.threshold, task)?;
    if field {
        pipeline.share_target_scale();
    }
    if family == Family::Gp {
        constraints.factors = pipeline.labels.len().max(1);
    }
    let how = R::how(kind);
    let solver = request.solver_for(family, scan.rows);
    let from_sums = how.from_sums.filter(|_| solver.uses_sums());
    let kept = match from_sums {
        None => Kept::Choices,
        Some(_) => Kept::Sums { by_class: family == Family::Gp && task == Task::Classification },
    };
    let saved = request.checkpoint.as_ref();
    let resume = saved.is_some_and(|saved| saved.resume);
    let mut checkpoint = Checkpoint::new(saved, configuration(request, data, &scan));
    let resumed = if resume { checkpoint.load::<R>(kept)? } else { None };
    let (choice, sums) = match resumed {
        Some((choice, sums)) => (choice, sums),
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
    let input_dim = data.schema().input_dim();
    let features = choice.description.features(input_dim)?;
    let job = Job {
        description: &choice.description,
        penalty: choice.penalty,
        classes: (task == Task::Classification).then(|| pipeline.class_names()),
        targets: data.schema().targets.len(),
        memory: request.memory,
        solver: solver.solver(),
        centroids: choose::most_centroids(features.unwrap_or(1), scan.rows, request.budget),
        journal: checkpoint.journal(resume),
        seed,
    };
    let progress = watch.reading(data.input(), "training")?;
    let seen = || progress.read();
    let mut source = Prepared::new(data, &pipeline, scan.rows, &left_out, &seen);
    let scored = Part::<R>::of(&pipeline, &scan.sample, 0..split.scored)?;
    let (mut without, with) = match (from_sums, how.from_rows) {
        (Some(make), _) => {
            let model = make(&job, input_dim)?;
            sum_up(&*model, &mut source, sums, &scored, &mut checkpoint, &choice, request.memory)?
        }
        (None, Some(fit)) => {
            checkpoint.save::<R>(None, &choice)?;
            (interrupt::stoppable(|| fit(&job, &mut source).map_err(with_remedy))?, None)
        }
        (None, None) => return Err(Failure::Usage("this solver cannot fit this kind of model".into())),
    };
    drop(progress);
    let described = serde_json::to_value(&pipeline).map_err(|e| Failure::Failed(e.to_string()))?;
    without.header.preprocessing = described.clone();
    let model = Model::new(without)?;
    let places = scan.sample.rows.slice(s![..split.scored, ..]).to_owned();
    let mut rows = places.clone();
    pipeline.apply(rows.view_mut())?;
    let mut truth = scan.sample.targets.slice(s![..split.scored, ..]).to_owned();
    if task == Task::Classification {
        truth.mapv_inplace(|v| pipeline.class_of(v).map_or(f64::NAN, |c| c as f64));
    }
    let answers = Answers { task, truth, predicted: score::predict(&model, rows.view())? };
    let names: Vec<String> = pipeline.schema.targets.iter().map(|c| c.name.clone()).collect();
    let figures = answers.figures(seed, &names);
    let all_rows = with.is_some();
    let mut stored = with.unwrap_or(model.stored);
    stored.header.preprocessing = described;
    let rows = if all_rows { scan.rows } else { scan.rows - split.scored };
    if let Some(extra) = stored.header.extra.as_object_mut() {
        let training = json!({
            "rows": rows, "penalty": choice.penalty, "figures": figures, "scored_rows": split.scored,
            "program": concat!("bochner ", env!("CARGO_PKG_VERSION")),
        });
        extra.insert("training".into(), training);
    }
    Ok(Fitted {
        stored,
        data: data.input().name.clone(),
        no_header: data.lacks_header(),
        rows: scan.rows,
        kind,
        reason,
        features,
        pipeline,
        choice,
        figures,
        answers,
        places,
        folds: split.folds,
        all_rows,
    })
}

fn make_choice<R: Real>(
    watch: &dyn Watch,
    kind: &Kind,
    constraints: &Constraints,
    scan: &Scan,
    pipeline: &Pipeline,
    split: &Split,
) -> Outcome<Choice> {
    let sample = &scan.sample;
    let folds = split.folds.of(&Part::<R>::of(pipeline, sample, split.scored..sample.numbers.len())?);
    let progress = watch.steps(choose::steps(constraints));
    // Length scales are looked for with the features and the penalties of a ridge regression.
    let mut search = constraints.clone();
    let own_parameter = kind.parameter == "alpha" || matches!(kind.option, Family::Svi | Family::KernelSvm);
    if own_parameter {
        search.penalty = None;
    }
    if matches!(kind.option, Family::LocalGp | Family::KernelSvm) {
        search.features = Some(512);
        search.any_map = false;
    }
    if kind.option == Family::LocalGp {
        let word = |key: &str| constraints.map.get(key).and_then(|v| v.as_str());
        let known = matches!(word("map"), None | Some("fourier" | "maclaurin"));
        if !known || !matches!(word("kernel"), None | Some("gaussian")) {
            let message =
                "--model local-gp has Maclaurin features of the gaussian kernel; leave --map and --kernel out";
            return Err(Failure::Usage(message.into()));
        }
        search.map.insert("map".into(), "fourier".into());
    }
    let choice = choose::choose(&search, pipeline, kind.task, &folds, &*progress)?;
    choose::refine(kind, constraints, constraints.penalty.filter(|_| own_parameter), pipeline, &folds, choice)
}

/// What must not change between a checkpoint and its resumption: the request, and the rows as far as sums can tell.
fn configuration(request: &Request, data: &Data, scan: &Scan) -> String {
    let (n, columns) = (scan.rows, scan.columns.mean().len());
    let variances: Vec<f64> = (0..columns).map(|j| scan.columns.variance(j)).collect();
    let facts = json!({
        "program": env!("CARGO_PKG_VERSION"), "request": request, "schema": data.schema(), "rows": n,
        "means": scan.columns.mean(), "variances": variances, "targets": scan.targets.mean(),
    });
    hash(facts.to_string().as_bytes())
}

/// A fit from sums over rows: the model without the scored rows and, where memory allows, the one with them.
fn sum_up<R: Real>(
    model: &dyn FromSums<R>,
    source: &mut Prepared<'_>,
    resumed: Option<Sums<R>>,
    scored: &Part<R>,
    checkpoint: &mut Checkpoint<'_>,
    choice: &Choice,
    memory: Option<u64>,
) -> Outcome<(Stored, Option<Stored>)> {
    let mut sums = match resumed {
        Some(sums) => sums,
        None => {
            let sums = model.begin().map_err(with_remedy)?;
            checkpoint.save(Some(&sums), choice)?;
            sums
        }
    };
    source.skip = usize::try_from(sums.count()).unwrap_or(usize::MAX).min(source.len());
    let ended = model.each(source, &mut |block| {
        model.push(&mut sums, block)?;
        checkpoint.now_and_then(&sums, choice).map_err(pipeline::stopped)
    });
    if let Err(error) = ended {
        if matches!(error, bochner::Error::Interrupted) {
            checkpoint.save(Some(&sums), choice)?;
        }
        return Err(error.into());
    }
    let room = memory.is_none_or(|memory| model.bytes().saturating_mul(2) <= memory);
    let mut all = None;
    if scored.rows.nrows() > 0 && room {
        let mut with = sums.clone();
        let mut source = InMemory::new(scored.rows.view(), scored.targets.view())?;
        model.each(&mut source, &mut |block| model.push(&mut with, block))?;
        all = Some(interrupt::stoppable(|| Ok(model.finish(with)?))?);
    }
    Ok((interrupt::stoppable(|| Ok(model.finish(sums)?))?, all))
}

use crate::checkpoint::{Checkpoint, Kept};
use crate::choose::{self, Choice, Folds, Wishes};
use crate::cli::Context;
use crate::description::{OperatorWish, operator_name};
use crate::failure::{Failure, Outcome, with_remedy};
use crate::fit_report;
use crate::human;
use crate::interrupt;
use crate::map_args::MapArgs;
use crate::models::{self, Family, FromSums, Job, Kind, Model, Precise, Sums};
use crate::output;
use crate::pipeline::{self, Part, Pipeline, Preparation, Prepared, Scan, Task};
use crate::plot::file;
use crate::progress::Progress;
use crate::read::Data;
use crate::score::{self, Answers, Figure};
use crate::source::{self, Columns, Text};
use bochner::persist::Stored;
use bochner::random::Seed;
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::solve::{ConjugateGradients, Solver, StochasticGradient};
use ndarray::{Array2, s};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Train a model on a file
///
/// Reads the file once to learn what its columns hold, chooses a length scale, a map of the kernel, a number of features and
/// a penalty on rows that it holds out, reads the file again to train, and says how well the model does on rows that had no
/// part in it. Whatever you decide yourself is not chosen.
#[derive(Debug, clap::Args, serde::Serialize)]
#[command(after_help = "\
Examples:
  bochner fit houses.csv --target price
  bochner fit irises.csv --target species --out irises.bochner --report page.html
  bochner fit train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz --features 8192
  bochner fit table.tsv --target y --drop id,name --impute median --kernel matern --alpha 0.1
  bochner fit wind.csv --target u,v --kernel divergence_free --plot wind.svg    # a vector field
  bochner fit large.csv --target y --memory 2GB --checkpoint large.checkpoint
  bochner fit large.csv --target y --memory 2GB --checkpoint large.checkpoint --resume

The time of --budget is counted in operations, so that the same command gives the same model on \
every machine. Reading the file and the iterations of svm, kernel-svm, svi, --solver cg and sgd are not counted.

The last two examples are one fit, begun and, after a power cut, continued.")]
pub(crate) struct Args {
    /// A CSV, TSV, Parquet, NPY, NPZ, IDX or LIBSVM file, plain or gzip; - for standard input
    #[serde(skip)]
    data: PathBuf,
    /// Column to predict, by name or number (-1 is the last); several separated by commas
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", allow_hyphen_values = true)]
    target: Vec<String>,
    /// File with the targets of an NPY or IDX file
    #[serde(skip)]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Where the model goes [default: the data's name with the ending .bochner]
    #[serde(skip)]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What is predicted [default: classes if the target holds words or few whole numbers]
    #[arg(long, value_enum)]
    task: Option<Task>,
    /// The kind of model [default: ridge, or operator for an operator-valued --kernel]
    #[arg(long, value_enum)]
    model: Option<Family>,
    /// What is done to rows first
    #[arg(long, value_enum, default_value = "auto")]
    preprocess: Preparation,
    /// Threshold of --preprocess binarise
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true)]
    threshold: f64,
    /// Penalty of large coefficients; alpha of the Dirichlet transform of --model gp for classes [default: by held-out rows]
    #[arg(long, value_parser = human::parse_positive, allow_negative_numbers = true)]
    alpha: Option<f64>,
    /// Seconds the choice of parameters and the fit may take on two cores, about
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = human::parse_positive)]
    budget: f64,
    /// Memory the fit may take, as in 500MB or 2GiB [default: what it needs]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    memory: Option<u64>,
    /// How coefficients are computed
    #[arg(long, value_enum, default_value = "auto")]
    solver: SolverName,
    /// Precision of features and coefficients
    #[arg(long, value_enum, default_value = "single")]
    precision: Precision,
    /// Save what has been learned so far to FILE now and then, and continue from it with --resume: choices, sums over rows,
    /// passes of --solver cg, sgd and of --model svi, svm and kernel-svm, centres of local-gp. A file that is there already
    /// is refused without --resume, and removed when the fit has ended
    #[serde(skip)]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Continue from the checkpoint, if there is one
    #[serde(skip)]
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Seconds between checkpoints
    #[serde(skip)]
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = human::parse_non_negative)]
    checkpoint_every: f64,
    /// A page with what was chosen and how good it is
    #[serde(skip)]
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// A plot, SVG or PNG, of the model on rows that had no part in it: a vector field as arrows, else predictions
    #[serde(skip)]
    #[arg(long, value_name = "FILE.svg|png")]
    plot: Option<PathBuf>,
    /// Print the result as JSON
    #[serde(skip)]
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    map: MapArgs,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    text: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
enum SolverName {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
enum Precision {
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
pub(crate) struct Fitted {
    pub(crate) data: String,
    /// Whether the file is text without a header.
    no_header: bool,
    pub(crate) rows: usize,
    pub(crate) kind: &'static Kind,
    pub(crate) reason: String,
    pub(crate) pipeline: Pipeline,
    pub(crate) choice: Choice,
    /// `None` for a model that compares rows.
    pub(crate) features: Option<usize>,
    /// Figures on rows that had no part in anything.
    pub(crate) figures: Vec<Figure>,
    pub(crate) answers: Answers,
    /// The rows of the answers, as the file has them.
    pub(crate) places: Array2<f64>,
    /// Rows on which the parameters were chosen.
    pub(crate) folds: Folds,
    /// Whether the rows of the figures were used for the model in the end.
    pub(crate) all_rows: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let out = match &args.out {
        Some(path) => path.clone(),
        None => default_name(&args.data),
    };
    args.check_outputs(&out)?;
    let family = args.family()?;
    let largest = match args.precision {
        Precision::Single if !family.only_double() => {
            source::single("too large for single precision; --precision double reads it")
        }
        _ => source::DOUBLE,
    };
    let data = args.columns.open(&args.data, args.labels.as_deref(), &args.target, &args.text, largest)?;
    source::need_target(&data)?;
    let (stored, fitted) = match args.precision {
        Precision::Single if !family.only_double() => train::<f32>(args, context, &data, family)?,
        _ => train::<f64>(args, context, &data, family)?,
    };
    let bytes = stored.to_bytes()?;
    output::write_whole(&out, &bytes)?;
    if let Some(path) = &args.report {
        let page = fit_report::page(&fitted, context).to_html();
        output::write_whole(path, page.as_bytes())?;
    }
    if let Some(path) = &args.plot {
        file::write(path, &fit_report::figure(&fitted))?;
    }
    if let Some(path) = &args.checkpoint {
        Checkpoint::remove(path);
    }
    if args.json {
        return context.print(&format!("{:#}\n", to_json(&fitted, &out, bytes.len())));
    }
    context.print(&summary(&fitted, context))?;
    let pages = args.report.iter().chain(&args.plot);
    let page: String = pages.map(|p| format!(" and {}", p.display())).collect();
    context.print(&format!(
        "\nWrote {} ({}){page}. To predict:\n  bochner predict {} NEW-DATA --out predictions.csv\n",
        context.bold(&out.display().to_string()),
        human::bytes(bytes.len() as u64),
        out.display(),
    ))
}

/// `houses.csv.gz` becomes `houses.bochner`, in the current folder.
fn default_name(data: &Path) -> PathBuf {
    let name = data.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("model");
    PathBuf::from(format!("{}.bochner", if stem == "-" { "model" } else { stem }))
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

impl Args {
    /// Refuses, before any work is done, files that could not be written after it or would replace others.
    fn check_outputs(&self, out: &Path) -> Outcome {
        let outputs = [
            ("--out", Some(out)),
            ("--checkpoint", self.checkpoint.as_deref()),
            ("--report", self.report.as_deref()),
            ("--plot", self.plot.as_deref()),
        ];
        let outputs: Vec<_> = outputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        let labels = self.labels.as_deref().map(|path| ("the labels of", path));
        let inputs: Vec<_> = std::iter::once(("the data file", self.data.as_path())).chain(labels).collect();
        output::check_apart(&outputs, &inputs)?;
        self.plot.as_deref().map_or(Ok(()), file::check)?;
        outputs.iter().filter(|(option, _)| *option != "--plot").try_for_each(|(_, path)| output::check_file(path))?;
        self.checkpoint.as_deref().filter(|_| !self.resume).map_or(Ok(()), Checkpoint::check_new)
    }

    /// The family asked for, or the one that the kernel belongs to.
    fn family(&self) -> Outcome<Family> {
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

    /// The solver asked for; `auto` compares rows where there are fewer of them than of many features.
    fn solver_for(&self, family: Family, rows: usize) -> SolverName {
        match (self.solver, self.map.features) {
            (SolverName::Auto, Some(features)) if family == Family::Ridge && features > rows.max(MANY_FEATURES) => {
                SolverName::Dual
            }
            (solver, _) => solver,
        }
    }

    fn wishes(&self, context: &Context, rows: usize) -> Outcome<Wishes> {
        Ok(Wishes {
            map: self.map.describe(context.global.seed)?,
            any_map: self.map.any_map(),
            features: self.map.features,
            penalty: self.alpha,
            budget: self.budget,
            memory: self.memory,
            rows,
            seed: Seed::new(context.global.seed),
            operator: None,
            factors: 0,
        })
    }
}

fn train<R: Precise>(args: &Args, context: &Context, data: &Data, family: Family) -> Outcome<(Stored, Fitted)> {
    let seed = Seed::new(context.global.seed);
    let progress = Progress::reading(context, data.input(), "looking at the rows")?;
    let sample_bytes = args.memory.map_or(1 << 27, |memory| memory / 8);
    let scan = pipeline::scan(data, seed, sample_bytes, || progress.read())?;
    drop(progress);
    scan.check_rows(data)?;
    let (recognised, reason) = match family {
        Family::Operator => (Task::Regression, "operator-valued kernels predict numbers".to_owned()),
        _ => scan.recognise(data),
    };
    let (task, reason) = match args.task {
        Some(task) => (task, "asked for".to_owned()),
        None => (recognised, reason),
    };
    let kind = Kind::find(family, task).ok_or_else(|| {
        let name = clap::ValueEnum::to_possible_value(&family).map_or(String::new(), |v| v.get_name().to_owned());
        Failure::Usage(format!("there is no {} with --model {name}", task_words(task)))
    })?;
    let split = Split::new(scan.sample.numbers.len());
    let mut wishes = args.wishes(context, scan.rows)?;
    let mut preparation = args.preprocess;
    if family == Family::Operator {
        let targets = scan.sample.targets.slice(s![split.scored.., ..]);
        let wish = OperatorWish::new(&wishes.map, || pipeline::correlations(targets))?;
        if wish.is_field() {
            pipeline::check_field(data)?;
            preparation = preparation.of_field()?;
        }
        wishes.operator = Some(wish);
    }
    let field = wishes.operator.as_ref().is_some_and(OperatorWish::is_field);
    scan.check_targets(data, field)?;
    let mut pipeline = scan.pipeline(data, args.columns.missing(), preparation, args.threshold, task)?;
    if field {
        pipeline.share_target_scale();
    }
    if family == Family::Gp {
        wishes.factors = pipeline.labels.len().max(1);
    }
    let how = R::how(kind);
    let solver = args.solver_for(family, scan.rows);
    let from_sums = how.from_sums.filter(|_| solver.uses_sums());
    let kept = match from_sums {
        None => Kept::Choices,
        Some(_) => Kept::Sums { by_class: family == Family::Gp && task == Task::Classification },
    };
    let mut checkpoint =
        Checkpoint::new(args.checkpoint.as_deref(), args.checkpoint_every, configuration(args, context, &scan)?);
    let resumed = if args.resume { checkpoint.load::<R>(kept)? } else { None };
    let (choice, sums) = match resumed {
        Some((choice, sums)) => (choice, sums),
        None => {
            let choice = || {
                let made = make_choice::<R>(context, kind, &wishes, &scan, &pipeline, &split);
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
        memory: args.memory,
        solver: solver.solver(),
        centroids: choose::most_centroids(features.unwrap_or(1), scan.rows, args.budget),
        journal: checkpoint.journal(args.resume),
        seed,
    };
    let progress = Progress::reading(context, data.input(), "training")?;
    let seen = || progress.read();
    let mut source = Prepared::new(data, &pipeline, scan.rows, &left_out, &seen);
    let scored = Part::<R>::of(&pipeline, &scan.sample, 0..split.scored)?;
    let (mut without, with) = match (from_sums, how.from_rows) {
        (Some(make), _) => {
            let model = make(&job, input_dim)?;
            sum_up(&*model, &mut source, sums, &scored, &mut checkpoint, &choice, args.memory)?
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
    let fitted = Fitted {
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
    };
    Ok((stored, fitted))
}

fn make_choice<R: Real>(
    context: &Context,
    kind: &Kind,
    wishes: &Wishes,
    scan: &Scan,
    pipeline: &Pipeline,
    split: &Split,
) -> Outcome<Choice> {
    let sample = &scan.sample;
    let folds = split.folds.of(&Part::<R>::of(pipeline, sample, split.scored..sample.numbers.len())?);
    let progress = Progress::new(context, choose::steps(wishes));
    // Length scales are looked for with the features and the penalties of a ridge regression.
    let mut search = wishes.clone();
    let own_parameter = kind.parameter == "alpha" || matches!(kind.option, Family::Svi | Family::KernelSvm);
    if own_parameter {
        search.penalty = None;
    }
    if matches!(kind.option, Family::LocalGp | Family::KernelSvm) {
        search.features = Some(512);
        search.any_map = false;
    }
    if kind.option == Family::LocalGp {
        let word = |key: &str| wishes.map.get(key).and_then(|v| v.as_str());
        let known = matches!(word("map"), None | Some("fourier" | "maclaurin"));
        if !known || !matches!(word("kernel"), None | Some("gaussian")) {
            let message =
                "--model local-gp has Maclaurin features of the gaussian kernel; leave --map and --kernel out";
            return Err(Failure::Usage(message.into()));
        }
        search.map.insert("map".into(), "fourier".into());
    }
    let choice = choose::choose(&search, pipeline, kind.task, &folds, &progress)?;
    choose::refine(kind, wishes, wishes.penalty.filter(|_| own_parameter), pipeline, &folds, choice)
}

/// What must not change between a checkpoint and its resumption: the request, and the rows as far as sums can tell.
fn configuration(args: &Args, context: &Context, scan: &Scan) -> Outcome<String> {
    let (n, columns) = (scan.rows, scan.columns.mean().len());
    let variances: Vec<f64> = (0..columns).map(|j| scan.columns.variance(j)).collect();
    let facts = json!({
        "program": env!("CARGO_PKG_VERSION"), "seed": context.global.seed, "arguments": args, "rows": n,
        "means": scan.columns.mean(), "variances": variances, "targets": scan.targets.mean(),
    });
    Ok(crate::checkpoint::hash(facts.to_string().as_bytes()))
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

pub(crate) fn task_words(task: Task) -> &'static str {
    match task {
        Task::Regression => "regression",
        Task::Classification => "classification",
    }
}

pub(crate) fn figure_words(figure: &Figure) -> String {
    let number = |v: f64| match figure.is_share() {
        true => format!("{:.1} %", 100.0 * v),
        false => human::significant(v, 4),
    };
    let error = match figure.is_share() {
        true => format!("{:.1} %", 100.0 * figure.standard_error),
        false => human::significant(figure.standard_error, 2),
    };
    let baseline = match (figure.baseline, figure.is_share()) {
        (Some(b), true) => format!(" (always the commonest class: {})", number(b)),
        (Some(b), false) => format!(" (always the mean: {})", number(b)),
        (None, _) => String::new(),
    };
    format!("{} {} ± {error}{baseline}", figure.name, number(figure.value))
}

fn summary(fitted: &Fitted, context: &Context) -> String {
    let Fitted { pipeline, choice, .. } = fitted;
    let targets: Vec<&str> = pipeline.schema.targets.iter().map(|c| c.name.as_str()).collect();
    let mut lines = vec![
        format!(
            "{}: {} of {}, target {}{}",
            fitted.data,
            human::things(fitted.rows, "row"),
            human::things(pipeline.schema.inputs.len(), "column"),
            targets.join(", "),
            if fitted.no_header { " (without a header: the first row is data)" } else { "" }
        ),
        format!("  task          {}, because {}", task_words(fitted.kind.task), fitted.reason),
    ];
    if fitted.kind.task == Task::Classification {
        let names: Vec<String> = pipeline.class_names().iter().map(models::plain).collect();
        lines.push(format!("  classes       {}", human::some_of(&names)));
    }
    for (i, words) in pipeline.in_words().iter().enumerate() {
        lines.push(format!("  {:<14}{words}", if i == 0 { "rows" } else { "" }));
    }
    lines.push(format!("  model         {}", fitted.kind.words));
    lines.push(format!("  map           {}", choice.description.in_words()));
    lines.extend(choice.map_reason.iter().map(|reason| format!("                {reason}")));
    if let Some(features) = fitted.features {
        lines.push(format!("  features      {} ({})", human::count(features), choice.limit));
    }
    lines.extend(choice.length_scale_in_words().map(|words| format!("  length scale  {words}")));
    let why = choice.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
    lines.push(format!("  {:<14}{}{why}", fitted.kind.parameter, human::significant(choice.penalty, 3)));
    if !choice.trials.is_empty() {
        lines.push(format!("  chosen on     {}", fitted.folds.in_words()));
    }
    lines.push(String::new());
    let scored = fitted.answers.truth.nrows();
    if fitted.figures.is_empty() {
        lines.push("There were too few rows to hold some out: nothing is known about how good the model is.".into());
    } else {
        lines.push(format!("On {} rows that had no part in the choice or the fit:", human::count(scored)));
        for figure in &fitted.figures {
            lines.push(format!("  {}", context.bold(&figure_words(figure))));
        }
        lines.push(match fitted.all_rows {
            true => "The model in the file was then fitted to all rows, these included.".into(),
            false => "The model in the file was fitted without them.".to_owned(),
        });
    }
    lines.push(String::new());
    lines.join("\n")
}

fn to_json(fitted: &Fitted, out: &std::path::Path, bytes: usize) -> serde_json::Value {
    json!({
        "data": fitted.data,
        "rows": fitted.rows,
        "task": fitted.kind.task,
        "reason": fitted.reason,
        "model": fitted.kind.name,
        "map": fitted.choice.description,
        "map_reason": fitted.choice.map_reason,
        "median_distance": fitted.choice.median,
        "features": fitted.features,
        "penalty": fitted.choice.penalty,
        "note": fitted.choice.note,
        "limit": fitted.choice.limit,
        "trials": fitted.choice.trials,
        "held_out_rows": fitted.folds.judges(),
        "scored_rows": fitted.answers.truth.nrows(),
        "figures": fitted.figures,
        "fitted_to_all_rows": fitted.all_rows,
        "file": out.display().to_string(),
        "bytes": bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_model_is_called_after_its_data() {
        for (data, model) in
            [("a/houses.csv.gz", "houses.bochner"), ("-", "model.bochner"), (".hidden", "hidden.bochner")]
        {
            assert_eq!(default_name(Path::new(data)), Path::new(model));
        }
    }
}

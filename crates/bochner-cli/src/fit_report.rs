//! The page about a fit: what was tried, what was chosen, how good it is.

use crate::cli::Context;
use bochner::catalogue::Task;
use bochner::words;
use bochner_report::Report;
use bochner_report::plot::quiver::{Arrow, quiver};
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::choose::Trial;
use bochner_table::dependence::{Dependence, Places, dependences};
use bochner_table::failure::Outcome;
use bochner_table::fit::Trained;
use bochner_table::model::penalty_in_words;
use bochner_table::score::{Against, loss_in_words};

/// Points of a scatter plot: more would hide each other.
const MOST_POINTS: usize = 500;
/// Columns whose part in predictions is drawn.
const MOST_COLUMNS: usize = 6;
/// Classes of a table of confusions.
const MOST_CLASSES: usize = 30;

/// What was chosen and why; what follows without a name of its own belongs to the name above.
pub(crate) fn facts(fitted: &Trained) -> Vec<(&'static str, String)> {
    let Trained { pipeline, choice, kind, .. } = fitted;
    let mut facts = vec![("task", format!("{}, because {}", kind.task.name(), fitted.reason))];
    if kind.task == Task::Classification {
        facts.push(("classes", words::some_of(&fitted.model.class_names())));
    }
    let prepared = pipeline.in_words().into_iter().enumerate();
    facts.extend(prepared.map(|(i, words)| (if i == 0 { "rows" } else { "" }, words)));
    facts.push(("model", kind.entry.title.into()));
    facts.push(("map", choice.description.in_words()));
    facts.extend(choice.map_reason.iter().map(|reason| ("", reason.clone())));
    if let Some(features) = fitted.features {
        facts.push(("features", format!("{} ({})", words::count(features), choice.limit)));
    }
    facts.extend(choice.length_scale_in_words().map(|words| ("length scale", words)));
    let why = choice.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
    facts.push((penalty_in_words(kind), format!("{}{why}", words::significant(choice.penalty, 3))));
    if !choice.trials.is_empty() {
        facts.push(("chosen on", fitted.folds.in_words()));
    }
    facts
}

pub(crate) fn page(fitted: &Trained, context: &Context) -> Outcome<Report> {
    let scored = fitted.compared.truth.nrows();
    let lede = match fitted.figures.first() {
        Some(figure) => format!("{} on {} rows that had no part in it.", figure.in_words(), words::count(scored)),
        None => "There were too few rows to hold some out.".into(),
    };
    let doubt = fitted.doubt.as_ref().map_or(String::new(), |doubt| format!(" {}", doubt.in_words()));
    let lede = format!("{lede}{doubt}");
    let targets: Vec<&str> = fitted.pipeline.schema.targets.iter().map(|c| c.name.as_str()).collect();
    let name =
        std::path::Path::new(&fitted.data).file_name().map_or(fitted.data.as_str().into(), |n| n.to_string_lossy());
    let mut report = Report::new(&format!("{name}: {}", targets.join(", ")), &lede);
    report.heading("What was chosen");
    let mut table = Table::new("").words("what", "").words("choice", "choice");
    let rows = ("data", words::things(fitted.rows, "row"));
    for (what, choice) in std::iter::once(rows).chain(facts(fitted)) {
        table.push(vec![Cell::text(what), Cell::text(choice)]);
    }
    report.table(&table);
    if !fitted.choice.trials.is_empty() {
        report.heading("What was tried");
        report.paragraph(&format!("The loss of each candidate on {}.", fitted.folds.in_words()));
        report.plot(&trials(fitted)).table(&trial_table(fitted));
    }
    if !fitted.figures.is_empty() {
        report.heading("How good it is");
        for figure in &fitted.figures {
            report.paragraph(&figure.in_words());
        }
        let said = fitted.intervals_in_words().into_iter().chain(fitted.against.iter().map(Against::in_words));
        said.for_each(|sentence| {
            report.paragraph(&sentence);
        });
        match fitted.kind.task {
            Task::Regression => {
                if let Some(svg) = field(fitted) {
                    report.figure(&svg);
                }
                for j in 0..fitted.compared.truth.ncols() {
                    report.plot(&scatter(fitted, j));
                }
            }
            Task::Classification => {
                report.plot(&per_class(fitted));
                if fitted.pipeline.labels.len() <= MOST_CLASSES {
                    report.table(&confusions(fitted));
                }
            }
        }
    }
    let columns = dependences(fitted, MOST_COLUMNS)?;
    if fitted.doubt.is_none() && !columns.is_empty() {
        report.heading("How predictions depend on the columns that count most");
        report.paragraph("The mean prediction where one column is set to a value in every row, and the others stay.");
        for column in &columns {
            report.plot(&dependence(column, fitted.kind.task));
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    report.footer(&format!("bochner {version}, seed {}, {} threads", context.global.seed, context.threads()));
    Ok(report)
}

/// How the mean prediction follows a column.
fn dependence(found: &Dependence, task: Task) -> Plot {
    let place = |k: usize| match &found.at {
        Places::Numbers(values) => (values[k], words::significant(values[k], 4)),
        Places::Words(values) => (k as f64, values[k].clone()),
    };
    let lines = found.means.iter().zip(&found.of).enumerate().map(|(number, (means, of))| {
        let style = if matches!(found.at, Places::Numbers(_)) { Style::Line } else { Style::Scatter };
        let mut line = Series::new(of.clone(), style, number);
        for (k, mean) in means.iter().enumerate() {
            let (at, name) = place(k);
            line.push(Point::new(at, *mean), format!("{} {name}\n{of} {}", found.column, words::significant(*mean, 4)));
        }
        line
    });
    let axis = match task {
        Task::Classification => Axis::linear("mean probability").in_percent().within(0.0, 1.0),
        Task::Regression => Axis::linear("mean prediction"),
    };
    Plot {
        title: format!("{} and the prediction", found.column),
        subtitle: "Over rows that had no part in the fit.".into(),
        x: match &found.at {
            Places::Numbers(_) => Axis::linear(&found.column),
            Places::Words(values) => Axis::named(&found.column, values.clone()),
        },
        y: axis,
        series: lines.collect(),
    }
}

/// One plot of the model on rows that had no part in it.
pub(crate) fn figure(fitted: &Trained) -> String {
    match fitted.kind.task {
        Task::Regression => field(fitted).unwrap_or_else(|| scatter(fitted, 0).to_svg()),
        Task::Classification => per_class(fitted).to_svg(),
    }
}

/// A field of the plane: true, fitted, and what is left.
fn field(fitted: &Trained) -> Option<String> {
    let answers = &fitted.compared;
    if fitted.places.ncols() != 2 || answers.truth.ncols() != 2 || answers.truth.nrows() == 0 {
        return None;
    }
    let arrows = |by: &dyn Fn(usize, usize) -> f64| {
        let arrow = |i: usize| Arrow { at: [fitted.places[[i, 0]], fitted.places[[i, 1]]], by: [by(i, 0), by(i, 1)] };
        (0..answers.truth.nrows().min(MOST_POINTS)).map(arrow).collect::<Vec<_>>()
    };
    let (truth, predicted) = (&answers.truth, &answers.predicted);
    let inputs = &fitted.pipeline.schema.inputs;
    let axes = [0, 1].map(|k| inputs.get(k).map_or("", |column| column.name.as_str()));
    let panels = [
        ("true field", arrows(&|i, j| truth[[i, j]])),
        ("fitted field", arrows(&|i, j| predicted[[i, j]])),
        ("true less fitted", arrows(&|i, j| truth[[i, j]] - predicted[[i, j]])),
    ];
    Some(quiver(axes, &panels))
}

/// `Fourier` of `Fourier, orthogonal`: with more features the same kind may be drawn in another way.
fn kind_of(map: &str) -> &str {
    map.split(',').next().unwrap_or(map)
}

fn trials(fitted: &Trained) -> Plot {
    let line_of = |trial: &Trial| (trial.length_scale, kind_of(&trial.map).to_owned());
    let mut lines: Vec<(Option<f64>, String)> = Vec::new();
    for trial in &fitted.choice.trials {
        if !lines.contains(&line_of(trial)) {
            lines.push(line_of(trial));
        }
    }
    let several = lines.iter().any(|(_, map)| *map != lines[0].1);
    let series = lines.iter().enumerate().map(|(k, (scale, map))| {
        let name = scale.map_or("losses".to_owned(), |s| format!("length scale {}", words::significant(s, 3)));
        let name = if several { format!("{map}, {name}") } else { name };
        let mut line = Series::new(name.clone(), Style::Marks, k);
        let here = |t: &&Trial| line_of(t) == (*scale, map.clone());
        let mut points: Vec<_> = fitted.choice.trials.iter().filter(here).collect();
        points.sort_by_key(|t| t.features);
        for t in points {
            let tip = format!(
                "{} features\n{name}\npenalty {}\nloss {}",
                words::count(t.features),
                words::significant(t.penalty, 2),
                words::significant(t.loss, 3)
            );
            line.push(Point::new(t.features as f64, t.loss), tip);
        }
        line
    });
    let mut ticks: Vec<usize> = fitted.choice.trials.iter().map(|t| t.features).collect();
    ticks.sort_unstable();
    ticks.dedup();
    Plot {
        title: "Loss on held-out rows".into(),
        subtitle: "With the best of the penalties that were tried.".into(),
        x: Axis::log("number of features").with_ticks(ticks.iter().map(|&t| t as f64).collect()),
        y: Axis::linear(loss_in_words(fitted.kind.task)).in_percent().within(0.0, f64::INFINITY),
        series: series.collect(),
    }
}

fn trial_table(fitted: &Trained) -> Table {
    let mut table = Table::new("")
        .words("map", "map")
        .numbers("features", "features")
        .numbers("length_scale", "length scale")
        .numbers("penalty", "best penalty")
        .numbers("loss", loss_in_words(fitted.kind.task));
    for t in &fitted.choice.trials {
        table.push(vec![
            Cell::text(t.map.clone()),
            Cell::count(t.features),
            t.length_scale.map_or(Cell::missing("–"), |s| Cell::number(s, 3)),
            Cell::number(t.penalty, 2),
            Cell::percent(t.loss, 2),
        ]);
    }
    table
}

fn scatter(fitted: &Trained, target: usize) -> Plot {
    let name = &fitted.pipeline.schema.targets[target].name;
    let (truth, predicted) = (fitted.compared.truth.column(target), fitted.compared.predicted.column(target));
    let mut points = Series::new("rows", Style::Scatter, 0).unlabelled();
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (y, f) in truth.iter().zip(predicted).take(MOST_POINTS) {
        (low, high) = (low.min(*y), high.max(*y));
        let tip = format!("true {}\npredicted {}", words::significant(*y, 4), words::significant(*f, 4));
        points.push(Point::new(*y, *f), tip);
    }
    let mut line = Series::new("equal", Style::Reference, 6).unlabelled();
    line.push(Point::new(low, low), "predicted as it is");
    line.push(Point::new(high, high), "predicted as it is");
    Plot {
        title: format!("{name}: predicted against true"),
        subtitle: format!(
            "{} rows that had no part in the fit; on the dashed line both agree.",
            truth.len().min(MOST_POINTS)
        ),
        x: Axis::linear(&format!("true {name}")),
        y: Axis::linear(&format!("predicted {name}")),
        series: vec![line, points],
    }
}

/// Rows of each class (counted twice: truth and prediction).
fn counts(fitted: &Trained) -> Vec<Vec<usize>> {
    let classes = fitted.pipeline.labels.len();
    let mut counts = vec![vec![0; classes]; classes];
    for (y, f) in fitted.compared.truth.iter().zip(&fitted.compared.predicted) {
        counts[(*y as usize).min(classes - 1)][(*f as usize).min(classes - 1)] += 1;
    }
    counts
}

fn per_class(fitted: &Trained) -> Plot {
    let names = fitted.model.class_names();
    let mut marks = Series::new("classes", Style::Scatter, 0).unlabelled();
    for (c, row) in counts(fitted).iter().enumerate() {
        let total: usize = row.iter().sum();
        if total > 0 {
            let share = row[c] as f64 / total as f64;
            let shrunk = (row[c] as f64 + 2.0) / (total as f64 + 4.0);
            let error = (shrunk * (1.0 - shrunk) / (total as f64 + 4.0)).sqrt();
            let tip = format!("class {}\n{} of {total} rows recognised", names[c], row[c]);
            let range = ((share - error).max(0.0), (share + error).min(1.0));
            marks.push(Point::new(c as f64, share).with_range(range.0, range.1), tip);
        }
    }
    Plot {
        title: "Recognised rows of each class".into(),
        subtitle: format!(
            "With one standard error, on {} that had no part in the fit.",
            words::things(fitted.compared.truth.nrows(), "row")
        ),
        x: Axis::named("class", names),
        y: Axis::linear("share recognised").in_percent().within(0.0, 1.0),
        series: vec![marks],
    }
}

fn confusions(fitted: &Trained) -> Table {
    let names = fitted.model.class_names();
    let mut table = Table::new("Rows of each class (down) and what was predicted (across)").words("class", "class");
    for name in &names {
        table = table.numbers(name, name);
    }
    for (name, row) in names.iter().zip(counts(fitted)) {
        let cells = row.iter().map(|&n| Cell::count(n));
        table.push(std::iter::once(Cell::text(name.clone())).chain(cells).collect());
    }
    table
}

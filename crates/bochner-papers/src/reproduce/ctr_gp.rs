//! Thesis, figures 4.8 to 4.10: polynomial sketches and their complex-to-real forms in Gaussian-process classification.

use super::data::Prepared;
use super::gp::{Method, Scores, Setting, Sizes, Task, Validation, compare};
use super::{Experiment, Findings, Reduced, Run, Statistic};
use bochner::feature::{PolynomialSpec, SketchKind};
use bochner::variance::Weights;
use bochner_report::plot::{Axis, Plot, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "ctr-gp",
    what: "kernel error, divergence from the exact process and test error of polynomial sketches, real and CtR",
    source: "thesis, figures 4.8 to 4.10, which have no numbers; kernel (x·y + 1)^p on unit rows, D = 2d and 4d with d the \
             padded dimension; one α for all, chosen with TensorSketch on a tenth of the training rows",
    needs: &["letter", "mocap", "mnist", "cifar10"],
    minutes: 45.0,
    run,
};

/// A data set and its dimension with the constant, padded to a power of two.
const SETS: [(&str, usize); 4] = [("letter", 32), ("mocap", 64), ("mnist", 1024), ("cifar10", 4096)];

/// Seeds of the thesis, each with rows and maps of its own.
const SEEDS: usize = 100;

/// All training and test rows.
const ALL: (usize, usize) = (usize::MAX, usize::MAX);

const METRICS: [(&str, &str); 3] = [
    ("error", "relative error of the kernel matrix"),
    ("kl", "KL divergence from the exact process"),
    ("test", "test error"),
];

fn methods(degree: u32) -> Vec<Method> {
    use {SketchKind as S, Weights as W};
    let method = |name, sketch, weights| {
        Method::real(name, PolynomialSpec { degree, coef0: 1.0, sketch, weights, ..PolynomialSpec::default() })
    };
    vec![
        method("TensorSketch", S::TensorSketch, W::Real),
        method("TensorSketch, CtR", S::TensorSketch, W::Ctr),
        method("TensorSRHT", S::TensorSrht, W::Real),
        method("TensorSRHT, CtR", S::TensorSrht, W::Ctr),
        method("Rademacher", S::Rademacher, W::Real),
        method("Rademacher, CtR", S::Rademacher, W::Ctr),
        method("Gaussian", S::Gaussian, W::Real),
        method("Gaussian, CtR", S::Gaussian, W::Ctr),
    ]
}

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let mut findings = Findings::default();
    let (mut found, mut chosen, mut reduced) = (Vec::new(), Vec::new(), Reduced::default());
    for (degree, prepared, figure) in [
        (3, Prepared::NonNegative, "figure 4.8"),
        (6, Prepared::NonNegative, "figure 4.9"),
        (6, Prepared::Standardised, "figure 4.10"),
    ] {
        let rows = if prepared == Prepared::NonNegative { "non-negative" } else { "centred" };
        let title = format!("p = {degree}, {rows} rows");
        let mut all = Vec::new();
        for (data, dim) in SETS {
            if !run.data.has(data) {
                if degree == 3 {
                    findings.remarks.push(format!("{data} is not there and was left out."));
                }
                continue;
            }
            let wide = dim >= 1024;
            // Dense sketches of 3,072 pixels take a minute each.
            if run.quick && data == "cifar10" {
                continue;
            }
            let methods = |_: f64| methods(degree);
            // The factors of ten classes with 16,384 features would take hours.
            let judged = data != "cifar10" && !(wide && run.quick);
            let setting = Setting {
                data,
                label: title.clone(),
                task: Task::Classification,
                prepared,
                unit: true,
                methods: &methods,
                // Dense sketches of 3,072 pixels with 16,384 features are half a minute each.
                features: match run.sized(wide, data == "cifar10", false) {
                    true => vec![2 * dim],
                    false => vec![2 * dim, 4 * dim],
                },
                sizes: Sizes {
                    exact: (run.choose(600, 5000), run.choose(400, 1000)),
                    // With as many rows as the exact process has, one fit serves both comparisons.
                    most: match wide {
                        true => run.sized((3000, 1000), (5000, 2000), ALL),
                        false => run.sized((3000, 1000), ALL, ALL),
                    },
                },
                matrices: match data {
                    // The thesis has one for each of its seeds.
                    "cifar10" => run.sized(3, 3, 1),
                    "mnist" => run.sized(5, 5, 1),
                    _ => run.sized(20, 10, 1),
                },
                judged: &|_, _| judged,
                validation: Validation::ALL,
                draws: if wide { run.draws(1, 1, SEEDS) } else { run.draws(2, 3, SEEDS) },
            };
            if degree == 3 {
                if setting.features.len() == 1 {
                    reduced.without(format!("{data} with D = 2d only"));
                }
                reduced.size(format!("{data}, seeds"), setting.draws, SEEDS);
                if judged && wide {
                    reduced.size(format!("{data}, training rows"), setting.sizes.most.0, 60_000);
                    reduced.size(format!("{data}, test rows"), setting.sizes.most.1, 10_000);
                }
            }
            let (scores, regularisers) = compare(run, &setting)?;
            findings.tables.push(table(&format!("{data}, {title} ({figure})"), &scores));
            if let Some(least) = regularisers.iter().copied().reduce(f64::min) {
                let most = regularisers.iter().copied().fold(least, f64::max);
                let range = if least == most { format!("{least}") } else { format!("{least} to {most}") };
                chosen.push(format!("{data}, {title}: {range}"));
            }
            all.push((data, dim, scores));
        }
        for (index, (name, axis)) in METRICS.into_iter().enumerate() {
            findings.plots.push((format!("p{degree}-{rows}-{name}"), plot(&title, axis, index, &all)));
        }
        found.push((title, all));
    }
    findings.remarks.push(format!("α by validation: {}.", chosen.join("; ")));
    trends(&mut findings, &found);
    findings.remarks.extend(reduced.remark());
    Ok(findings)
}

fn table(title: &str, scores: &[Scores]) -> Table {
    let mut table = Table::new(title)
        .words("sketch", "sketch")
        .numbers("features", "D")
        .numbers("error", "kernel error")
        .numbers("error_deviation", "±");
    if scores.iter().any(|s| s.values.len() > 1) {
        table = table.numbers("kl", "KL").numbers("kl_deviation", "±");
        table = table.numbers("test", "test error").numbers("test_deviation", "±");
    }
    for score in scores {
        let mut cells = vec![Cell::text(score.method), Cell::count(score.features)];
        for (value, is_percent) in score.values.iter().zip([true, false, true]) {
            let cell = |v: f64| if is_percent { Cell::percent(v, 2) } else { Cell::number(v, 4) };
            cells.push(cell(value.mean));
            cells.push(if value.count > 1 { cell(value.deviation) } else { Cell::missing("–") });
        }
        table.push(cells);
    }
    table
}

fn plot(title: &str, axis: &str, index: usize, all: &[(&str, usize, Vec<Scores>)]) -> Plot {
    let shown = |scores: &[Scores]| scores.iter().any(|s| s.values.len() > index);
    let mut names: Vec<(&str, usize, usize)> = Vec::new();
    for (data, dim, scores) in all.iter().filter(|(.., scores)| shown(scores)) {
        for score in scores.iter().filter(|s| s.method == scores[0].method) {
            names.push((data, *dim, score.features));
        }
    }
    let methods = methods(1);
    let series = methods.iter().enumerate().map(|(m, method)| {
        let mut line = Series::new(method.name, Style::Scatter, m);
        for (place, (data, _, features)) in names.iter().enumerate() {
            let scores = all.iter().find(|(name, ..)| name == data).map(|(.., scores)| scores);
            let score = scores.into_iter().flatten().find(|s| s.method == method.name && s.features == *features);
            if let Some(value) = score.map(|s| s.values[index]) {
                // Side by side, as bars would stand.
                let x = place as f64 + 0.09 * (m as f64 - 3.5);
                line.push(value.point(x), format!("{}, {data}, D = {features}\n{:.4}", method.name, value.mean));
            }
        }
        line
    });
    let places = names.iter().map(|(data, dim, features)| format!("{data} {}d", features / dim)).collect();
    let y = Axis::log(axis);
    Plot {
        title: title.into(),
        subtitle: "Mean over draws; bars are standard errors. Lower is better.".into(),
        x: Axis::named("data set and number of features", places),
        y: if index == 1 { y } else { y.in_percent() },
        series: series.collect(),
    }
}

/// What was found for one degree and preparation: data set, dimension, scores.
type Found<'a> = (String, Vec<(&'a str, usize, Vec<Scores>)>);

const CTR: &str = "TensorSRHT, CtR";

/// The trends of the thesis: ratios of errors, and a sentence for each claim.
fn trends(findings: &mut Findings, found: &[Found<'_>]) {
    let mut table = Table::new("CtR-TensorSRHT against others, most features: ratios of errors")
        .words("data", "data set")
        .words("kernel", "kernel and rows")
        .numbers("real", "kernel error / TensorSRHT")
        .numbers("sketch", "kernel error / TensorSketch")
        .numbers("kl_real", "KL / TensorSRHT")
        .numbers("kl_sketch", "KL / TensorSketch")
        .words("lowest", "lowest kernel error");
    let mut ratios = Vec::new();
    let (mut behind, mut lowest) = (Vec::new(), Vec::new());
    for (title, all) in found {
        for (data, _, scores) in all {
            let most = scores.iter().map(|s| s.features).max().unwrap_or(0);
            let most: Vec<&Scores> = scores.iter().filter(|s| s.features == most).collect();
            let of = |name: &str, index: usize| {
                most.iter().find(|s| s.method == name).and_then(|s| s.values.get(index)).map(|v| v.mean)
            };
            let ratio = |other: &str, index| of(CTR, index).zip(of(other, index)).map(|(a, b)| a / b);
            let cell = |value: Option<f64>| value.map_or_else(|| Cell::missing("–"), |v| Cell::fixed(v, 2));
            let best =
                most.iter().min_by(|a, b| a.values[0].mean.total_cmp(&b.values[0].mean)).map_or("", |s| s.method);
            table.push(vec![
                Cell::text(*data),
                Cell::text(title),
                cell(ratio("TensorSRHT", 0)),
                cell(ratio("TensorSketch", 0)),
                cell(ratio("TensorSRHT", 1)),
                cell(ratio("TensorSketch", 1)),
                Cell::text(best),
            ]);
            for real in ["TensorSRHT", "Rademacher", "Gaussian"] {
                let value = |name: &str| most.iter().find(|s| s.method == name).map(|s| s.values[0]);
                let Some((a, b)) = value(&format!("{real}, CtR")).zip(value(real)) else { continue };
                // Twice the standard error of the difference: less than that may be chance.
                let error = |s: &Statistic| s.deviation.powi(2) / s.count as f64;
                if a.mean - b.mean > 2.0 * (error(&a) + error(&b)).sqrt() {
                    behind.push(format!("{real} on {data}, {title} ({:.2} times)", a.mean / b.mean));
                }
            }
            if title.starts_with("p = 3") && best != CTR {
                lowest.push(format!("{best} on {data}"));
            }
            if let Some(ratio) = ratio("TensorSRHT", 0) {
                ratios.push((title.as_str(), *data, ratio));
            }
        }
    }
    findings.tables.insert(0, table);
    let remarks = &mut findings.remarks;
    remarks.push(match &behind[..] {
        [] => "No complex-to-real sketch has a larger kernel error than its real form beyond what may be chance, as in the thesis.".into(),
        list => {
            format!("Complex-to-real sketches are behind their real forms, unlike in the thesis: {}.", list.join("; "))
        }
    });
    remarks.push(match &lowest[..] {
        [] => "For p = 3 CtR-TensorSRHT has the lowest kernel error everywhere, as in the thesis.".into(),
        list => format!("For p = 3 the thesis has CtR-TensorSRHT lowest everywhere; here it is {}.", list.join(", ")),
    });
    for (data, _) in SETS {
        let of = |start: &str| ratios.iter().find(|(t, name, _)| *name == data && t.starts_with(start)).map(|r| r.2);
        let (Some(three), Some(six), Some(centred)) = (of("p = 3"), of("p = 6, non"), of("p = 6, centred")) else {
            continue;
        };
        remarks.push(format!(
            "{data}: the kernel error of CtR-TensorSRHT is {three:.2} times that of real TensorSRHT for p = 3, {six:.2} times for \
             p = 6, {centred:.2} times for p = 6 on centred rows; the advantage {} with p and {} by centring, {} the thesis.",
            if six < three { "grows" } else { "does not grow" },
            if centred > six { "shrinks" } else { "does not shrink" },
            if six < three && centred > six { "as in" } else { "unlike in" }
        ));
    }
    remarks.push(
        "cifar10, where it is there, is compared by kernel matrices only: factors for ten classes and 16,384 features would take \
         hours."
            .into(),
    );
}

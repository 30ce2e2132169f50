//! Thesis, figures 4.8 to 4.10: polynomial sketches and their complex-to-real forms in Gaussian-process classification.

use super::data::Prepared;
use super::gp::{Method, Scores, Setting, Sizes, Task, compare};
use super::{Experiment, Findings, Run};
use crate::failure::Outcome;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::table::{Cell, Table};
use bochner::feature::{PolynomialSpec, SketchKind};
use bochner::variance::Weights;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "ctr-gp",
    what: "kernel error, divergence from the exact process and test error of polynomial sketches, real and CtR",
    source: "thesis, figures 4.8 to 4.10, which have no numbers; kernel (x·y + 1)^p on unit rows, D = 2d and 4d with d the \
             padded dimension; one α for all, chosen with TensorSketch on a tenth of the training rows",
    needs: &["letter", "mocap", "mnist", "cifar10"],
    minutes: 200.0,
    run,
};

/// A data set and its dimension with the constant, padded to a power of two.
const SETS: [(&str, usize); 4] = [("letter", 32), ("mocap", 64), ("mnist", 1024), ("cifar10", 4096)];

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
    let mut found = Vec::new();
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
            let setting = Setting {
                data,
                label: title.clone(),
                task: Task::Classification,
                prepared,
                unit: true,
                methods: &methods,
                features: if wide && run.quick { vec![2 * dim] } else { vec![2 * dim, 4 * dim] },
                sizes: Sizes {
                    exact: (run.choose(1000, 5000), run.choose(500, 1000)),
                    most: (run.choose(4000, usize::MAX), run.choose(1000, usize::MAX)),
                },
                // The factors of ten classes with 16,384 features would take hours.
                matrices_only: data == "cifar10" || (wide && run.quick),
                draws: if wide { run.seeds.min(run.choose(1, 3)) } else { run.seeds },
            };
            let (scores, regularisers) = compare(run, &setting)?;
            findings.tables.push(table(&format!("{data}, {title} ({figure})"), &setting, &scores));
            if let Some(least) = regularisers.iter().copied().reduce(f64::min) {
                let most = regularisers.iter().copied().fold(least, f64::max);
                let range = if least == most { format!("{least}") } else { format!("{least} to {most}") };
                findings.remarks.push(format!("{data}, {title}: α = {range} by validation."));
            }
            all.push((data, dim, scores));
        }
        for (index, (name, axis)) in METRICS.into_iter().enumerate() {
            findings
                .plots
                .push((format!("p{degree}-{rows}-{name}"), plot(&format!("{title}: {axis}"), axis, index, &all)));
        }
        found.push((title, all));
    }
    remarks(&mut findings.remarks, &found);
    Ok(findings)
}

fn table(title: &str, setting: &Setting<'_>, scores: &[Scores]) -> Table {
    let mut table = Table::new(title)
        .words("sketch", "sketch")
        .numbers("features", "D")
        .numbers("error", "kernel error")
        .numbers("error_deviation", "±");
    if !setting.matrices_only {
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
                let (mean, deviation) = (value.mean, value.deviation);
                line.push(
                    Point::new(x, mean).with_range(mean - deviation, mean + deviation),
                    format!("{}, {data}, D = {features}\n{mean:.4}", method.name),
                );
            }
        }
        line
    });
    let places = names.iter().map(|(data, dim, features)| format!("{data} {}d", features / dim)).collect();
    let y = Axis::log(axis);
    Plot {
        title: title.into(),
        subtitle: "Mean over draws; bars are standard deviations. Lower is better.".into(),
        x: Axis::named("data set and number of features", places),
        y: if index == 1 { y } else { y.in_percent() },
        series: series.collect(),
    }
}

/// The trends of the thesis, each with the numbers.
fn remarks(remarks: &mut Vec<String>, found: &[(String, Vec<(&str, usize, Vec<Scores>)>)]) {
    let mut advantage = Vec::new();
    for (title, all) in found {
        for (data, _, scores) in all {
            let of = |name: &str, index: usize| {
                let values = scores.iter().filter(|s| s.method == name && s.values.len() > index);
                values.map(|s| s.values[index].mean).next_back()
            };
            let ratio = |a: &str, b: &str, index| of(a, index).zip(of(b, index)).map(|(a, b)| a / b);
            let (Some(real), Some(sketch)) =
                (ratio("TensorSRHT, CtR", "TensorSRHT", 0), ratio("TensorSRHT, CtR", "TensorSketch", 0))
            else {
                continue;
            };
            advantage.push((title.as_str(), *data, real));
            let mut text = format!(
                "{data}, {title}, most features: the kernel error of CtR-TensorSRHT is {real:.2} times that of TensorSRHT \
                 and {sketch:.2} times that of TensorSketch"
            );
            if let Some(kl) = ratio("TensorSRHT, CtR", "TensorSRHT", 1) {
                text += &format!(", its KL divergence {kl:.2} times that of TensorSRHT");
            }
            if real > 1.0 {
                text += "; the thesis has CtR never behind";
            }
            let best = scores.iter().filter_map(|s| Some((s.method, s.features, s.values.first()?.mean)));
            let most = scores.iter().map(|s| s.features).max().unwrap_or(0);
            let best = best.filter(|b| b.1 == most).min_by(|a, b| a.2.total_cmp(&b.2));
            if let Some((name, ..)) = best
                && title.starts_with("p = 3")
            {
                text += if name == "TensorSRHT, CtR" {
                    "; it has the lowest error of all, as in the thesis"
                } else {
                    "; the thesis has it lowest of all, here "
                };
                if name != "TensorSRHT, CtR" {
                    text += name;
                    text += " is";
                }
            }
            remarks.push(text + ".");
        }
    }
    let mut sets: Vec<&str> = advantage.iter().map(|(_, data, _)| *data).collect();
    sets.dedup();
    sets.sort_unstable();
    sets.dedup();
    for data in sets {
        let of = |start: &str| advantage.iter().find(|(title, name, _)| *name == data && title.starts_with(start));
        let grows = |a: Option<&(&str, &str, f64)>, b: Option<&(&str, &str, f64)>| a.zip(b).map(|(a, b)| (a.2, b.2));
        if let Some((three, six)) = grows(of("p = 3"), of("p = 6, non")) {
            let verdict = if six < three {
                "grows with p, as in the thesis"
            } else {
                "does not grow with p, unlike in the thesis"
            };
            remarks.push(format!(
                "{data}: the advantage of CtR over real TensorSRHT {verdict} (ratios {three:.2} and {six:.2})."
            ));
        }
        if let Some((plain, centred)) = grows(of("p = 6, non"), of("p = 6, centred")) {
            let verdict = if centred > plain {
                "is smaller on centred rows, as in the thesis"
            } else {
                "is not smaller on centred rows, unlike in the thesis"
            };
            remarks.push(format!("{data}: the advantage {verdict} (ratios {plain:.2} and {centred:.2})."));
        }
    }
    remarks.push(
        "cifar10 is compared by kernel matrices only: factors of ten classes with 16,384 features each do not fit."
            .into(),
    );
}

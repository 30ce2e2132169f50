//! Thesis, figure 7.1: how well attention matrices are approximated, for rows of unit length and others.

use super::{Experiment, Findings, Run, Statistic};
use bochner::feature::{Describe, FeatureMap, MaclaurinKernel, MaclaurinSpec, PositiveSpec, Spec};
use bochner::kernel::{Exponential, kernel_matrix};
use bochner::linalg::TileMut;
use bochner::metrics::relative_frobenius_error;
use bochner::preprocess::UnitNorm;
use bochner::random::{Role, Seed, fill_normals};
use bochner::variance::Softmax;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use ndarray::{Array2, Axis as Side};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "attention",
    what: "error of approximated attention matrices: rows of unit length and not, before and after the softmax",
    source: "thesis, figure 7.1; queries and keys are normals, as they are and scaled to unit length",
    needs: &[],
    minutes: 0.3,
    run,
};

const HEAD: usize = 64;
const MACLAURIN: &str = "optimised Maclaurin, CtR";

/// Queries and keys: what tables call them, the spread of their inner products, whether rows have unit length.
const INPUTS: [(&str, f64, bool); 3] =
    [("logits of spread 0.5", 0.5, false), ("logits of spread 2", 2.0, false), ("unit rows", 1.0, true)];

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let length = run.choose(256, 512);
    let budgets = [64, 256, 1024];
    let mut findings = Findings::default();
    let mut all = Vec::new();
    for (input, spread, unit) in INPUTS {
        let normals = |side: u64| {
            let mut values = vec![0.0f64; length * HEAD];
            fill_normals(Seed::new(run.seed).child(side), Role::Noise, 0, 0, TileMut::new(&mut values, length, HEAD));
            // Rows as the kernel exp(x·y) sees them: divided by the fourth root of the dimension.
            let values = values.into_iter().map(|v| v * spread.sqrt() / (HEAD as f64).powf(0.25)).collect();
            let mut rows = Array2::from_shape_vec((length, HEAD), values).expect("length times head numbers");
            if unit {
                UnitNorm::default().apply(rows.view_mut());
            }
            rows
        };
        let (q, k) = (normals(0), normals(1));
        let exact = kernel_matrix(&Exponential::new(1.0)?, q.view(), k.view())?;
        let normalised = normalize(&exact);
        let mut table = Table::new(format!("{input}, length {length}, head {HEAD}: relative Frobenius error"))
            .words("features", "features")
            .numbers("count", "number")
            .numbers("plain", "exp(q·k)")
            .numbers("deviation", "±")
            .numbers("normalised", "softmax")
            .numbers("normalised_deviation", "±");
        let (mut plain_lines, mut softmax_lines) = (Vec::new(), Vec::new());
        for (index, (name, spec)) in maps().into_iter().enumerate() {
            let (mut plain_line, mut softmax_line) =
                (Series::new(name, Style::Marks, index), Series::new(name, Style::Marks, index));
            for features in budgets {
                let error = |normal: bool| {
                    run.per_seed(&format!("{name} {features} {input} {length} {normal}"), |seed| {
                        let both = ndarray::concatenate(Side(0), &[q.view(), k.view()]).expect("equal heads");
                        let map = spec.redrawn(features, seed).resolve(both.view())?.build::<f64>(HEAD)?;
                        let estimate = map.transform(q.view())?.dot(&map.transform(k.view())?.t());
                        Ok(if normal {
                            relative_frobenius_error(normalised.view(), normalize(&estimate).view())?
                        } else {
                            relative_frobenius_error(exact.view(), estimate.view())?
                        })
                    })
                };
                let (plain, softmax) = (error(false)?, error(true)?);
                let spread =
                    |s: &Statistic| if s.count > 1 { Cell::number(s.deviation, 2) } else { Cell::missing("–") };
                table.push(vec![
                    Cell::text(name),
                    Cell::count(features),
                    Cell::number(plain.mean, 3),
                    spread(&plain),
                    Cell::number(softmax.mean, 3),
                    spread(&softmax),
                ]);
                for (line, value) in [(&mut plain_line, plain.mean), (&mut softmax_line, softmax.mean)] {
                    let tip = format!("{name}, {features}\n{value:.4}");
                    line.push(Point::new(features as f64, value), tip);
                }
                all.push((input, name, features, plain.mean));
            }
            table.start_group();
            plain_lines.push(plain_line);
            softmax_lines.push(softmax_line);
        }
        findings.tables.push(table);
        let file = input.replace(' ', "-");
        for (kind, series) in [("exp(q·k)", plain_lines), ("softmax of q·k", softmax_lines)] {
            findings.plots.push((
                format!("{file}-{}", if kind.starts_with("exp") { "plain" } else { "softmax" }),
                Plot {
                    title: format!("{kind}, {input}"),
                    subtitle: "Mean relative Frobenius error over draws.".into(),
                    x: Axis::log("number of features").with_ticks(budgets.map(|b| b as f64).to_vec()),
                    y: Axis::log("relative error"),
                    series,
                },
            ));
        }
    }
    let most = budgets[budgets.len() - 1];
    let of = |input: &str, name: &str| {
        all.iter().find(|(i, n, f, _)| *i == input && *n == name && *f == most).map_or(f64::NAN, |found| found.3)
    };
    let (wide, narrow) = (INPUTS[1].0, INPUTS[2].0);
    let names: Vec<&str> = maps().iter().map(|(name, _)| *name).collect();
    let poor = names.iter().all(|name| of(wide, name) > 0.1);
    let better = names.iter().all(|name| of(narrow, name) < of(wide, name));
    findings.remarks.push(format!(
        "{most} features, {wide}: {}; {}.",
        names.iter().map(|n| format!("{n} has a relative error of {:.2}", of(wide, n))).collect::<Vec<_>>().join(", "),
        if poor { "all are poor, as in the thesis" } else { "not all are poor, unlike in the thesis" }
    ));
    findings.remarks.push(format!(
        "Unit rows {} every method, {} the thesis; the optimised Maclaurin features have an error of {:.4} there, the best of \
         the others {:.4}.",
        if better { "help" } else { "do not help" },
        if better { "as in" } else { "unlike in" },
        of(narrow, MACLAURIN),
        names.iter().filter(|n| **n != MACLAURIN).map(|n| of(narrow, n)).fold(f64::INFINITY, f64::min)
    ));
    findings
        .remarks
        .push("Attention matrices of trained networks are not part of the data: entries are drawn instead.".into());
    Ok(findings)
}

fn maps() -> Vec<(&'static str, Spec)> {
    let positive = |kind| PositiveSpec { kind, ..PositiveSpec::default() };
    let maclaurin = MaclaurinSpec { kernel: MaclaurinKernel::Exponential, ..MaclaurinSpec::default() };
    vec![
        ("Fourier (trigonometric)", positive(Softmax::Trigonometric).into()),
        ("positive", positive(Softmax::Positive).into()),
        ("hyperbolic", positive(Softmax::Hyperbolic).into()),
        (MACLAURIN, maclaurin.into()),
    ]
}

/// Rows divided by their sums.
fn normalize(matrix: &Array2<f64>) -> Array2<f64> {
    let sums = matrix.sum_axis(Side(1)).insert_axis(Side(1));
    matrix / &sums
}

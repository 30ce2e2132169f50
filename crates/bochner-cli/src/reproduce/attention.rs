//! Thesis, figure 7.1: how well softmax attention matrices are approximated, before and after normalisation.

use super::{Experiment, Findings, Run};
use crate::failure::Outcome;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::table::{Cell, Table};
use bochner::feature::{Describe, FeatureMap, MaclaurinKernel, MaclaurinSpec, PositiveSpec, Spec};
use bochner::kernel::{Exponential, kernel_matrix};
use bochner::linalg::TileMut;
use bochner::metrics::relative_frobenius_error;
use bochner::random::{Role, Seed, fill_normals};
use bochner::variance::Softmax;
use ndarray::{Array2, Axis as Side};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "attention",
    what: "error of approximated softmax attention matrices, normalised and not",
    source: "thesis, figure 7.1; queries and keys are normals scaled to a given spread",
    needs: &[],
    minutes: 3.0,
    run,
};

const HEAD: usize = 64;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let length = run.choose(256, 1024);
    let mut findings = Findings::default();
    for spread in [0.5, 1.0] {
        let normals = |side: u64| {
            let mut values = vec![0.0f64; length * HEAD];
            fill_normals(Seed::new(run.seed).child(side), Role::Noise, 0, 0, TileMut::new(&mut values, length, HEAD));
            // Rows as the kernel exp(x·y) sees them: divided by the fourth root of the dimension.
            let values = values.into_iter().map(|v| v * spread / (HEAD as f64).powf(0.25)).collect();
            Array2::from_shape_vec((length, HEAD), values).expect("length times head numbers")
        };
        let (q, k) = (normals(0), normals(1));
        let exact = kernel_matrix(&Exponential::new(1.0)?, q.view(), k.view())?;
        let normalised = normalise(&exact);
        let mut table =
            Table::new(format!("Entries with spread {spread}, length {length}, head {HEAD}: relative Frobenius error"))
                .words("features", "features")
                .numbers("count", "number")
                .numbers("plain", "exp(q·k)")
                .numbers("normalised", "softmax");
        let mut series = Vec::new();
        for (index, (name, spec)) in maps().into_iter().enumerate() {
            let mut line = Series::new(name, Style::Marks, index);
            for features in [64, 256, 1024] {
                let error = |normal: bool| {
                    run.per_seed(&format!("{name} {features} {spread} {length} {normal}"), |seed| {
                        let both = ndarray::concatenate(Side(0), &[q.view(), k.view()]).expect("equal heads");
                        let map = spec.redrawn(features, seed).resolve(both.view())?.build::<f64>(HEAD)?;
                        let estimate = map.transform(q.view())?.dot(&map.transform(k.view())?.t());
                        Ok(if normal {
                            relative_frobenius_error(normalised.view(), normalise(&estimate).view())?
                        } else {
                            relative_frobenius_error(exact.view(), estimate.view())?
                        })
                    })
                };
                let (plain, softmax) = (error(false)?, error(true)?);
                table.push(vec![
                    Cell::text(name),
                    Cell::count(features),
                    Cell::percent(plain.mean, 2),
                    Cell::percent(softmax.mean, 2),
                ]);
                line.push(
                    Point::new(features as f64, softmax.mean),
                    format!("{name}, {features}\n{:.2} %", 100.0 * softmax.mean),
                );
            }
            table.start_group();
            series.push(line);
        }
        findings.tables.push(table);
        findings.plots.push((
            format!("spread-{spread}"),
            Plot {
                title: format!("Softmax matrix, spread {spread}"),
                subtitle: "Mean relative error after normalising rows.".into(),
                x: Axis::log("number of features").with_ticks(vec![64.0, 256.0, 1024.0]),
                y: Axis::log("relative error").in_percent(),
                series,
            },
        ));
    }
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
        ("optimised Maclaurin, CtR", maclaurin.into()),
    ]
}

/// Rows divided by their sums.
fn normalise(matrix: &Array2<f64>) -> Array2<f64> {
    let sums = matrix.sum_axis(Side(1)).insert_axis(Side(1));
    matrix / &sums
}

//! Thesis, figures 3.2, 3.3, 4.1, 4.2, 4.4 and 4.5: how closed-form variances of sketches compare over pairs of rows.

use super::data::Prepared;
use super::{Experiment, Findings, Run};
use bochner::feature::{Describe, PolynomialSpec, SketchKind};
use bochner::variance::Weights;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use ndarray::Array2;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "variance-ratios",
    what: "closed-form variance of one sketch over that of another, for all pairs of rows",
    source: "thesis, figures 3.2, 3.3, 4.1, 4.2, 4.4, 4.5; kernel (x·y)^p, equal numbers of columns",
    needs: &["mnist", "fashion-mnist", "letter"],
    minutes: 0.2,
    run,
};

/// Numerator and denominator of every ratio.
const RATIOS: [(&str, (SketchKind, Weights), (SketchKind, Weights)); 4] = {
    use {SketchKind as S, Weights as W};
    [
        ("Rademacher: complex / real, equal draws", (S::Rademacher, W::Complex), (S::Rademacher, W::Real)),
        ("Rademacher: CtR / real", (S::Rademacher, W::Ctr), (S::Rademacher, W::Real)),
        ("TensorSRHT: CtR / real", (S::TensorSrht, W::Ctr), (S::TensorSrht, W::Real)),
        ("CtR-TensorSRHT / TensorSketch", (S::TensorSrht, W::Ctr), (S::TensorSketch, W::Real)),
    ]
};

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let mut findings = Findings::default();
    let count = run.choose(200, 500);
    for name in ["mnist", "fashion-mnist", "letter"] {
        if !run.data.has(name) {
            findings.remarks.push(format!("{name} is not there and was left out."));
            continue;
        }
        let part = if name == "letter" { run.data.table(name, "test.csv.gz", 1)? } else { run.data.images(name)?.1 };
        let part = part.sample(count, 3);
        let kinds = [("non-negative", Prepared::NonNegative), ("centred", Prepared::Centred)];
        let mut table =
            Table::new(format!("{name}: quantiles of variance ratios over {count} x {count} pairs of rows"))
                .words("ratio", "ratio")
                .words("rows", "rows")
                .numbers("degree", "p");
        for quantile in ["5 %", "25 %", "median", "75 %", "95 %"] {
            table = table.numbers(quantile, quantile);
        }
        table = table.numbers("below_one", "below 1");
        for (index, (label, top, bottom)) in RATIOS.into_iter().enumerate() {
            let mut series = Vec::new();
            for (shade, (prepared, kind)) in kinds.into_iter().enumerate() {
                let rows = kind.unit(part.rows.view())?;
                let mut line = Series::new(prepared, Style::Marks, shade);
                for degree in [2, 3, 5, 7, 10] {
                    let key = format!("{name} {count} {label} {prepared} p={degree}");
                    let found = run.values(&key, || quantiles(&rows, degree, top, bottom))?;
                    if degree == 3 {
                        let (median, below) = (found[2], 100.0 * found[5]);
                        let what = format!("{name}, {prepared} rows, p = 3, {label}");
                        findings
                            .remarks
                            .push(format!("{what}: median {median:.2}, below one for {below:.0} % of pairs."));
                    }
                    let mut cells = vec![Cell::text(label), Cell::text(prepared), Cell::count(degree as usize)];
                    cells.extend(found[..5].iter().map(|&q| Cell::number(q, 3)));
                    cells.push(Cell::percent(found[5], 1));
                    table.push(cells);
                    let tip = format!("{prepared}, p = {degree}\nmedian {:.3}", found[2]);
                    line.push(Point::new(f64::from(degree), found[2]).with_range(found[0], found[4]), tip);
                }
                series.push(line);
            }
            table.start_group();
            findings.plots.push((
                format!("{name}-{}", ["complex-real", "ctr-real", "ctr-srht", "ctr-tensor-sketch"][index]),
                Plot {
                    title: format!("{name}: {label}"),
                    subtitle: "Median over pairs; bars from the 5 % to the 95 % quantile.".into(),
                    x: Axis::linear("degree p").with_ticks(vec![2.0, 3.0, 5.0, 7.0, 10.0]),
                    y: Axis::log("ratio of variances"),
                    series,
                },
            ));
        }
        findings.tables.push(table);
    }
    Ok(findings)
}

/// Five quantiles of the ratio over pairs of different rows, and the fraction below one.
fn quantiles(
    rows: &Array2<f64>,
    degree: u32,
    top: (SketchKind, Weights),
    bottom: (SketchKind, Weights),
) -> Outcome<Vec<f64>> {
    let columns = rows.ncols().next_power_of_two();
    let variance = |(sketch, weights)| {
        // As many complex numbers as real ones, which is how chapter 3 counts; CtR sketches share columns between two parts.
        let spec = PolynomialSpec { n_components: columns, degree, sketch, weights, ..PolynomialSpec::default() };
        spec.variance(rows.view(), rows.view())
    };
    let (top, bottom) = (variance(top)?, variance(bottom)?);
    let mut ratios: Vec<f64> =
        top.indexed_iter().filter(|&((i, j), _)| i < j && bottom[[i, j]] > 0.0).map(|(at, v)| v / bottom[at]).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |q: f64| ratios.get(((ratios.len() as f64 - 1.0) * q) as usize).copied().unwrap_or(f64::NAN);
    let below = ratios.iter().filter(|r| **r < 1.0).count() as f64 / ratios.len().max(1) as f64;
    Ok(vec![at(0.05), at(0.25), at(0.5), at(0.75), at(0.95), below])
}

//! Thesis, figures 3.2, 3.3, 4.1, 4.2, 4.4 and 4.5: how closed-form variances of sketches compare over pairs of rows.

use super::*;

/// A sketch and its weights.
type Kind = (SketchKind, Weights);

/// Name, file name, numerator and denominator of every ratio.
const RATIOS: [(&str, &str, Kind, Kind); 4] = {
    use {SketchKind as S, Weights as W};
    let real = (S::Rademacher, W::Real);
    [
        ("Rademacher: complex / real, equal draws", "complex-real", (S::Rademacher, W::Complex), real),
        ("Rademacher: CtR / real", "ctr-real", (S::Rademacher, W::Ctr), real),
        ("TensorSRHT: CtR / real", "ctr-srht", (S::TensorSrht, W::Ctr), (S::TensorSrht, W::Real)),
        ("CtR-TensorSRHT / TensorSketch", "ctr-tensor-sketch", (S::TensorSrht, W::Ctr), (S::TensorSketch, W::Real)),
    ]
};

const DEGREES: [usize; 5] = [2, 3, 5, 7, 10];

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let mut findings = Findings::default();
    let count = run.choose(200, 500);
    for name in run.present(&["mnist", "fashion-mnist", "letter"], &mut findings.remarks) {
        let part = if name == "letter" { run.data.table(name, "test.csv.gz", 1)? } else { run.data.images(name)?.1 };
        let part = part.sample(count, 3);
        let mut table =
            Table::new(format!("{name}: quantiles of variance ratios over {count} x {count} pairs of rows"))
                .words("ratio", "ratio")
                .words("rows", "rows")
                .numbers("degree", "p");
        for quantile in ["5 %", "25 %", "median", "75 %", "95 %"] {
            table = table.column(quantile, quantile, Show::Number(3));
        }
        table = table.column("below_one", "below 1", Show::Percent(1));
        for (label, file, top, bottom) in RATIOS {
            let mut plot = Plot::new(
                format!("{name}: {label}"),
                "Median over pairs; bars from the 5 % to the 95 % quantile.",
                Axis::linear("degree p").with_counts(&DEGREES),
                Axis::log("ratio of variances"),
            );
            for (prepared, kind) in [("non-negative", Prepared::NonNegative), ("centred", Prepared::Centered)] {
                let rows = kind.unit(part.rows.view())?;
                for degree in DEGREES {
                    let key = format!("{name} {count} {label} {prepared} p={degree}");
                    let found = run.values(&key, &mut || quantiles(&rows, degree as u32, top, bottom))?;
                    let [low, q25, median, q75, high, below] = found[..] else { continue };
                    if degree == 3 {
                        findings.remark(format!(
                            "{name}, {prepared} rows, p = 3, {label}: median {median:.2}, below one for {:.0} % of pairs.",
                            100.0 * below
                        ));
                    }
                    table.add(&[&label, &prepared, &degree, &low, &q25, &median, &q75, &high, &below]);
                    let tip = format!("{prepared}, p = {degree}\nmedian {median:.3}");
                    plot.line(prepared, Style::Marks)
                        .push(Point::new(degree as f64, median).with_range(low, high), tip);
                }
            }
            table.start_group();
            findings.plot(format!("{name}-{file}"), plot);
        }
        findings.tables.push(table);
    }
    Ok(findings)
}

/// Five quantiles of the ratio over pairs of different rows, and the fraction below one.
fn quantiles(rows: &Array2<f64>, degree: u32, top: Kind, bottom: Kind) -> Outcome<Vec<f64>> {
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

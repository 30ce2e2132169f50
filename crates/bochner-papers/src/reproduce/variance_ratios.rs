//! Thesis, figures 3.2, 3.3, 4.1, 4.2, 4.4 and 4.5: how closed-form variances of sketches compare over pairs of rows, and the
//! error where both rows are the same.

use super::*;

/// A sketch and its weights.
type Kind = (SketchKind, Weights);

/// A ratio of variances that a figure shows.
struct Ratio {
    label: &'static str,
    file: &'static str,
    figure: &'static str,
    top: Kind,
    bottom: Kind,
    prepared: (&'static str, Prepared),
    /// What is added to inner products.
    coef0: f64,
    /// Multiples of the padded dimension.
    times: usize,
}

fn ratios() -> Vec<Ratio> {
    use {SketchKind as S, Weights as W};
    let (ctr, real, sketch) = ((S::TensorSrht, W::Ctr), (S::TensorSrht, W::Real), (S::TensorSketch, W::Real));
    let (positive, centred) = (("non-negative", Prepared::NonNegative), ("centred", Prepared::Centered));
    let of = |label, file, figure, top, bottom, prepared| Ratio {
        label,
        file,
        figure,
        top,
        bottom,
        prepared,
        coef0: 1.0,
        times: 2,
    };
    let complex = (S::TensorSrht, W::Complex);
    let rademacher = |weights| (S::Rademacher, weights);
    vec![
        Ratio {
            coef0: 0.0,
            times: 1,
            ..of("TensorSRHT: complex / real, equal draws", "complex-real", "figure 3.3", complex, real, positive)
        },
        of("TensorSRHT: CtR / real", "ctr-real", "figure 4.1", ctr, real, positive),
        of("TensorSRHT: CtR / real", "ctr-real-centred", "figure 4.2", ctr, real, centred),
        of("CtR-TensorSRHT / TensorSketch", "ctr-tensor-sketch", "figure 4.4", ctr, sketch, positive),
        of("TensorSRHT / TensorSketch", "real-tensor-sketch", "figure 4.5", real, sketch, positive),
        of("Rademacher: CtR / real", "rademacher", "ours", rademacher(W::Ctr), rademacher(W::Real), positive),
    ]
}

const DEGREES: [usize; 5] = [2, 3, 5, 7, 10];
/// Points of an empirical distribution function that are kept.
const STEPS: usize = 40;

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let mut findings = Findings::default();
    let count = run.count("rows")?;
    same_rows(run, &mut findings)?;
    for name in run.present(&["letter", "mocap", "cifar10_resnet", "mnist"], &mut findings.remarks) {
        let rows = rows_of(run, name, count)?;
        let mut table = Table::new(format!("{name}: quantiles of variance ratios over all pairs of {count} rows"))
            .words("ratio", "ratio")
            .words("figure", "figure")
            .words("rows", "rows")
            .numbers("degree", "p");
        for quantile in ["5 %", "25 %", "median", "75 %", "95 %"] {
            table = table.column(quantile, quantile, Show::Number(3));
        }
        table = table.column("below_one", "below 1", Show::Percent(1));
        for ratio in ratios() {
            let (prepared, kind) = ratio.prepared;
            let mut plot = Plot::new(
                format!("{name}: {}, {prepared} rows", ratio.label),
                format!(
                    "Empirical distribution over all pairs of {count} rows, D = {} d; {}.",
                    ratio.times, ratio.figure
                ),
                Axis::log("ratio of variances"),
                Axis::linear("share of pairs").in_percent(),
            );
            let ready = kind.unit(rows.view())?;
            for degree in DEGREES {
                let Ratio { label, coef0, times, .. } = &ratio;
                let key = format!("{name} {count} {label} {prepared} coef0={coef0} D={times}d p={degree}");
                let found = run.values(&key, &mut || quantiles(&ready, degree as u32, &ratio))?;
                let (below, found) = (found[STEPS + 1], &found[..=STEPS]);
                let at = |percent: usize| found[percent * STEPS / 100];
                let median = at(50);
                if degree == 3 {
                    findings.remark(format!(
                        "{name}, {prepared} rows, p = 3, {label} ({}): median {median:.2}, below one for {:.0} % of pairs.",
                        ratio.figure,
                        100.0 * below
                    ));
                }
                table.add(&[
                    label,
                    &ratio.figure,
                    &prepared,
                    &degree,
                    &at(5),
                    &at(25),
                    &median,
                    &at(75),
                    &at(95),
                    &below,
                ]);
                let name = format!("p = {degree}");
                for (step, value) in found.iter().enumerate() {
                    let share = step as f64 / STEPS as f64;
                    let tip = format!("{name}\n{:.0} % of pairs are below {value:.3}", 100.0 * share);
                    plot.line(&name, Style::Line).push(Point::new(*value, share), tip);
                }
            }
            table.start_group();
            findings.plot(format!("{name}-{}", ratio.file), plot);
        }
        findings.tables.push(table);
    }
    findings.remark(
        "Thesis: variances of TensorSketch there are estimates from 1,000 draws, here closed forms; its CIFAR-10 features are those of \
         a ResNet34, here of the middle layer of a ResNet-56; EEG and Gisette of figure 3.3 are not in the data.",
    );
    Ok(findings)
}

/// At most so many test rows of a data set; features of CIFAR-10 images are those of a network.
fn rows_of(run: &Run<'_>, name: &str, count: usize) -> Outcome<Array2<f32>> {
    let part = match name {
        "cifar10_resnet" => {
            let arrays = ("resnet56_mid_test", "resnet56_mid_scale");
            let rows = run.data.scaled_array("network_features", "cifar10_resnet.npz", arrays)?;
            Part { targets: Array2::zeros((rows.nrows(), 1)), rows }
        }
        _ => run.data.split(name, run.seed)?.1,
    };
    Ok(part.sample(count, 3).rows)
}

/// Quantiles of the ratio over pairs of different rows, from 0 to 1 in equal steps, and the fraction below one.
fn quantiles(rows: &Array2<f64>, degree: u32, ratio: &Ratio) -> Outcome<Vec<f64>> {
    let &Ratio { top, bottom, coef0, times, .. } = ratio;
    let constant = usize::from(coef0 > 0.0);
    let n_components = times * (rows.ncols() + constant).next_power_of_two();
    let variance = |(sketch, weights)| {
        // As many complex numbers as real ones, which is how chapter 3 counts; CtR sketches share columns between two parts.
        PolynomialSpec { n_components, degree, coef0, ..sketched(sketch, weights) }.variance(rows.view(), rows.view())
    };
    let (top, bottom) = (variance(top)?, variance(bottom)?);
    // A variance that is zero but for rounding has no ratio.
    let least = 1e-12 * bottom.iter().fold(0.0f64, |a, b| a.max(*b));
    let pairs = top.indexed_iter().filter(|&((i, j), _)| i < j && bottom[[i, j]] > least);
    let mut ratios: Vec<f64> = pairs.map(|(at, v)| v / bottom[at]).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |step: usize| ratios.get((ratios.len().max(1) - 1) * step / STEPS).copied().unwrap_or(f64::NAN);
    let below = ratios.iter().filter(|r| **r < 1.0).count() as f64 / ratios.len().max(1) as f64;
    Ok((0..=STEPS).map(at).chain([below]).collect())
}

/// Figure 3.2: the mean absolute error of Rademacher sketches, real and complex, of a row of equal coordinates with itself.
fn same_rows(run: &Run<'_>, findings: &mut Findings) -> Outcome {
    const DIM: usize = 1000;
    const FEATURES: usize = 5000;
    let draws = run.draws()?;
    let row = Array2::from_elem((1, DIM), 1.0 / (DIM as f64).sqrt());
    let mut table = Table::new(format!("x = y, d = {DIM}, D = {FEATURES}: mean absolute error (figure 3.2)"))
        .numbers("degree", "p")
        .column("real", "real", Show::Number(3))
        .column("complex", "complex", Show::Number(3))
        .column("predicted_real", "real, standard deviation", Show::Number(3))
        .column("predicted_complex", "complex, standard deviation", Show::Number(3));
    let mut plot = Plot::new(
        "Rademacher sketches where both rows are the same",
        format!("Mean absolute error over {draws} draws, bars are standard errors."),
        Axis::linear("degree p"),
        Axis::log("mean absolute error"),
    );
    let mut behind = Vec::new();
    for degree in 1..=10u32 {
        let mut found = Vec::new();
        for (name, weights) in [("real", Weights::Real), ("complex", Weights::Complex)] {
            let spec = PolynomialSpec { n_components: FEATURES, degree, ..sketched(SketchKind::Rademacher, weights) };
            let error = run.per_draw(draws, &format!("x = y {name} p={degree}"), &mut |seed| {
                let spec = PolynomialSpec { seed, ..spec.clone() };
                let square = match weights {
                    Weights::Complex => {
                        spec.build_complex::<f64>(DIM)?.transform(row.view())?.iter().map(|v| v.norm_sqr()).sum::<f64>()
                    }
                    _ => spec.build::<f64>(DIM)?.transform(row.view())?.iter().map(|v| v * v).sum(),
                };
                Ok((square - 1.0).abs())
            })?;
            plot.line(name, Style::Marks)
                .push(error.point(f64::from(degree)), format!("{name}, p = {degree}\n{:.4}", error.mean));
            found.push((error.mean, spec.variance(row.view(), row.view())?[[0, 0]].max(0.0).sqrt()));
        }
        let [(real, of_real), (complex, of_complex)] = found[..] else { continue };
        table.add(&[&(degree as usize), &real, &complex, &of_real, &of_complex]);
        if complex >= real {
            behind.push(degree.to_string());
        }
    }
    findings.remark(match &behind[..] {
        [] => "x = y: complex Rademacher sketches have the smaller error at every degree, as in the thesis.".into(),
        list => format!(
            "x = y: complex Rademacher sketches have no smaller error at p = {}, unlike in the thesis.",
            list.join(", ")
        ),
    });
    findings.tables.push(table);
    findings.plot("same-rows", plot);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_sketch_over_itself_are_one() {
        let rows = Array2::from_shape_fn((12, 5), |(i, j)| 0.1 + ((3 * i + j) as f64).sin().abs());
        let all = ratios();
        let same = Ratio { bottom: all[1].top, prepared: all[1].prepared, ..ratios().swap_remove(1) };
        let found = quantiles(&rows, 3, &same).unwrap();
        assert!(found[..=STEPS].iter().all(|ratio| (ratio - 1.0).abs() < 1e-12), "{found:?}");
        assert_eq!(found[STEPS + 1], 0.0);
        // On non-negative rows the complex form is never worse (theorem 4.2.3).
        let found = quantiles(&rows, 3, &all[5]).unwrap();
        assert!(found[..=STEPS].windows(2).all(|pair| pair[0] <= pair[1]) && found[STEPS] <= 1.0 + 1e-9, "{found:?}");
    }
}

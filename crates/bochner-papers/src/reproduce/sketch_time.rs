//! Thesis, figure 4.6: what the polynomial sketches cost and how accurate they are for it.

use super::data::Prepared;
use super::{Experiment, Findings, Reduced, Run, Statistic, comparison};
use bochner::feature::Spec;
use bochner::kernel::{AnyKernel, Polynomial};
use bochner::plan::Sample;
use bochner::random::Seed;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::Cell;
use bochner_table::failure::Outcome;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "sketch-time",
    what: "construction time and error per time of all polynomial sketches",
    source: "thesis, figure 4.6; kernel (x·y + 1)^p on 1,000 non-negative unit rows of MNIST",
    needs: &["mnist"],
    minutes: 8.0,
    run,
};

/// Draws over which the thesis averages.
const SKETCHES: usize = 100;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let part = run.data.images("mnist")?.1.sample(run.choose(500, 1000), 7);
    let rows = Prepared::NonNegative.unit(part.rows.view())?;
    let draws = run.draws(3, 30, SKETCHES);
    let (mut findings, mut ahead) = (Findings::default(), Vec::new());
    for degree in [3, 6] {
        let kernel = AnyKernel::from(Polynomial::new(degree, 1.0, 1.0)?);
        let sample = Sample::new(&kernel, rows.view())?;
        let mut table = comparison(format!("MNIST, p = {degree}: relative Frobenius error, and seconds for all rows"));
        let mut series = Vec::new();
        let mut errors = Vec::new();
        let sketches: Vec<_> = bochner::feature::Spec::candidates(&kernel, rows.view())?
            .into_iter()
            .filter(|c| matches!(c.spec, Spec::Polynomial(_)))
            .collect();
        for (index, candidate) in sketches.iter().enumerate() {
            let mut line = Series::new(&*candidate.name, Style::Marks, index);
            for &features in run.choose(&[1024, 10_240][..], &[1024, 2048, 5120, 10_240][..]) {
                let spec = candidate.spec.redrawn(features, run.seed);
                let key =
                    format!("mnist rows={} p={degree} D={features} {} draws={draws}", rows.nrows(), candidate.name);
                let values = run.values(&key, || {
                    let measured = sample.measure(&spec, draws, Seed::new(run.seed), || Ok(()))?;
                    Ok([vec![measured.seconds], measured.errors].concat())
                })?;
                let (error, seconds) = (Statistic::of(&values[1..]), Statistic::of(&values[..1]));
                let tip = format!(
                    "{}, D = {features}\n{:.2} %, {:.2} ms",
                    candidate.name,
                    100.0 * error.mean,
                    1e3 * seconds.mean
                );
                line.push(Point::new(1e3 * seconds.mean, error.mean), tip);
                if features == 1024 || features == 10_240 {
                    let name = format!("p={degree} D={features} {}", candidate.name);
                    table.push(run.beside(
                        &format!("mnist {name}"),
                        &format!("error, {}, D = {features}", candidate.name),
                        &error,
                        |v| Cell::fixed(v, 4),
                    ));
                    if features == 10_240 {
                        let what = format!("time, {}, D = {features}", candidate.name);
                        table.push(run.beside(&format!("time {name}"), &what, &seconds, |v| Cell::number(v, 3)));
                        errors.push((candidate.name.clone(), error.mean));
                    }
                }
            }
            series.push(line);
        }
        let of = |name: &str| errors.iter().find(|(n, _)| n == name).map_or(f64::NAN, |(_, e)| *e);
        let (ctr, real, sketch) = (of("TensorSRHT, CtR"), of("TensorSRHT, real"), of("TensorSketch"));
        ahead.push(format!(
            "p = {degree}, D = 10,240: complex-to-real TensorSRHT has {:.2} times the error of the real one and {:.2} times that of TensorSketch{}.",
            ctr / real,
            ctr / sketch,
            if ctr <= real && ctr <= sketch { ", as in the thesis" } else { "; the thesis has it ahead of both" }
        ));
        findings.plots.push((
            format!("error-time-p{degree}"),
            Plot {
                title: format!("Error against time, p = {degree}"),
                subtitle: "Median time to transform the rows; one mark per number of features from 1,024 to 10,240."
                    .into(),
                x: Axis::log("milliseconds"),
                y: Axis::log("relative error of the kernel matrix").in_percent(),
                series,
            },
        ));
        findings.tables.push(table);
    }
    findings.remarks = ahead;
    findings
        .remarks
        .push("The paper's times are those of a GPU for 1,000 rows; ours are those of this machine's cores.".into());
    let mut reduced = Reduced::default();
    reduced.size("draws", draws, SKETCHES);
    findings.remarks.extend(reduced.remark());
    Ok(findings)
}

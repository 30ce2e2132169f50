//! Thesis, figure 4.6: what the polynomial sketches cost and how accurate they are for it.

use super::*;

/// The sketches of the figure, by the names that the tables have.
const ALL: [Sketch; 6] = {
    use {SketchKind as S, Weights as W};
    [
        (CTR, S::TensorSrht, W::Ctr),
        (REAL, S::TensorSrht, W::Real),
        (TENSOR_SKETCH, S::TensorSketch, W::Real),
        ("Rademacher, CtR", S::Rademacher, W::Ctr),
        ("Rademacher, real", S::Rademacher, W::Real),
        ("Gaussian, real", S::Gaussian, W::Real),
    ]
};

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let part = run.data.images("mnist")?.1.sample(run.count("rows")?, 7);
    let rows = Prepared::NonNegative.unit(part.rows.view())?;
    let (draws, sizes): (usize, Vec<usize>) = (run.draws()?, run.setting("numbers of features")?);
    let wanted: Vec<String> = run.setting("sketches")?;
    let mut findings = Findings::default();
    for degree in run.setting::<Vec<u32>>("degrees")? {
        let kernel = AnyKernel::from(Polynomial::new(degree, 1.0, 1.0)?);
        let sample = Sample::new(&kernel, rows.view())?;
        let mut table = comparison(format!("MNIST, p = {degree}: relative Frobenius error, and seconds for all rows"));
        let mut plot = Plot::new(
            format!("Error against time, p = {degree}"),
            "Median time to transform the rows; one mark per number of features from 1,024 to 10,240.",
            Axis::log("milliseconds"),
            Axis::log("relative error of the kernel matrix").in_percent(),
        );
        let mut errors = BTreeMap::new();
        for (sketch, kind, weights) in ALL.into_iter().filter(|(name, ..)| wanted.iter().any(|wanted| wanted == name)) {
            for &features in &sizes {
                let spec: Spec = PolynomialSpec { degree, coef0: 1.0, ..sketched(kind, weights) }.into();
                let spec = spec.redrawn(features, run.seed);
                let key = format!("mnist rows={} p={degree} D={features} {sketch} draws={draws}", rows.nrows());
                let values = run.values(&key, &mut || {
                    let measured = sample.measure(&spec, draws, Seed::new(run.seed), || Ok(()))?;
                    Ok([vec![measured.seconds], measured.errors].concat())
                })?;
                let (error, seconds) = (Statistic::of(&values[1..]), Statistic::one(values[0]));
                let (percent, time) = (100.0 * error.mean, 1e3 * seconds.mean);
                let tip = format!("{sketch}, D = {features}\n{percent:.2} %, {time:.2} ms");
                plot.line(sketch, Style::Marks).push(Point::new(time, error.mean), tip);
                let (key, what) = (format!("p={degree} D={features} {sketch}"), format!("{sketch}, D = {features}"));
                if features == 1024 || features == 10_240 {
                    let show = Show::Fixed(4);
                    run.beside(&mut table, show, &format!("mnist {key}"), &format!("error, {what}"), &error);
                }
                if features == 10_240 {
                    let show = Show::Number(3);
                    run.beside(&mut table, show, &format!("time {key}"), &format!("time, {what}"), &seconds);
                    errors.insert(sketch, error.mean);
                }
            }
        }
        let of = |name: &str| errors.get(name).copied().unwrap_or(f64::NAN);
        let (ctr, real, sketch) = (of(CTR), of(REAL), of(TENSOR_SKETCH));
        findings.remark(format!(
            "p = {degree}, D = 10,240: complex-to-real TensorSRHT has {:.2} times the error of the real one and {:.2} times that of TensorSketch{}.",
            ctr / real,
            ctr / sketch,
            if ctr <= real && ctr <= sketch { ", as in the thesis" } else { "; the thesis has it ahead of both" }
        ));
        findings.plot(format!("error-time-p{degree}"), plot);
        findings.tables.push(table);
    }
    findings.remark("The paper's times are those of a GPU for 1,000 rows; ours are those of this machine's cores.");
    Ok(findings)
}

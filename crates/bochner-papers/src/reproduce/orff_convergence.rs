//! Operator-valued random features, figure 1: error against the number of features, with the closed-form variance.

use super::*;
use ndarray::Array4;

const DIM: usize = 4;
const FREQUENCIES: [usize; 5] = [10, 32, 100, 320, 1000];

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let count = run.choose(60, 200);
    let mut draw = Stream::new(Seed::new(run.seed), Role::Noise, 0);
    let rows = Array2::from_shape_simple_fn((count, DIM), || 2.0 * draw.uniform() - 1.0);
    let outputs = Array2::from_shape_fn((DIM, DIM), |(i, j)| if i == j { 1.0 } else { 0.5 });
    let kernels = [
        ("decomposable", OperatorKernel::decomposable(Gaussian::new(1.0)?.into(), OutputMatrix::new(outputs.view())?)?),
        ("curl-free", OperatorKernel::curl_free(1.0)?),
        ("divergence-free", OperatorKernel::div_free(1.0)?),
    ];
    let mut table = Table::new(format!("Relative Frobenius error over {count} x {count} blocks"))
        .words("kernel", "kernel")
        .numbers("frequencies", "D")
        .column("error", "error", Show::Percent(2))
        .column("deviation", "deviation", Show::Percent(2))
        .column("predicted", "predicted", Show::Percent(2));
    let mut plot = Plot::new(
        "Error of operator-valued features",
        "Marks: mean over draws. Dashed: predicted from the closed-form matrix variance.",
        Axis::log("number of frequencies D").with_counts(&FREQUENCIES),
        Axis::log("relative error of the kernel matrix").in_percent(),
    );
    let mut findings = Findings::default();
    for (index, (name, kernel)) in kernels.into_iter().enumerate() {
        let exact = kernel.matrix(rows.view(), rows.view())?;
        let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
        let mut dashed = Series::new(name, Style::Dashed, index).unlabelled();
        let mut means = Vec::new();
        for frequencies in FREQUENCIES {
            let spec = |seed| OperatorSpec {
                n_components: 2 * frequencies,
                projection: Directions::Gaussian,
                seed,
                ..OperatorSpec::new(kernel.clone())
            };
            let found = run.per_draw(run.seeds, &format!("{name} {count} D={frequencies}"), &mut |seed| {
                let estimate: Array4<f64> = spec(seed).build::<f64>(DIM)?.estimate(rows.view(), rows.view())?;
                Ok(((&estimate - &exact).mapv(|e| e * e).sum() / norm_sq).sqrt())
            })?;
            // The trace of E(K̃ - K)² is the expected squared Frobenius norm of a block.
            let variance = spec(0).variance(rows.view(), rows.view())?;
            let traces: f64 = (0..DIM).map(|i| variance.slice(ndarray::s![.., .., i, i]).sum()).sum();
            let predicted = (traces / norm_sq).sqrt();
            table.add(&[&name, &frequencies, &found.mean, &found.deviation, &predicted]);
            let d = frequencies as f64;
            means.push((d, found.mean));
            let tip = format!("{name}, D = {frequencies}\n{:.2} %", 100.0 * found.mean);
            plot.line(name, Style::Scatter).push(Point::new(d, found.mean), tip);
            dashed.push(Point::new(d, predicted), format!("{name}\npredicted {:.2} %", 100.0 * predicted));
        }
        let ((few, large), (many, small)) = (means[0], means[means.len() - 1]);
        let rate = (small / large).ln() / (many / few).ln();
        findings.remark(format!("{name}: the error falls like D to the power {rate:.2}; -0.5 is expected."));
        table.start_group();
        plot.series.push(dashed);
    }
    findings.plot("error", plot);
    findings.tables.push(table);
    Ok(findings)
}

//! Operator-valued random features, figure 1: error against the number of features, with the closed-form variance.

use super::{Experiment, Findings, Run};
use bochner::feature::{Directions, OperatorSpec};
use bochner::kernel::{Gaussian, OperatorKernel, OutputMatrix};
use bochner::random::{Role, Seed, Stream};
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use ndarray::{Array2, Array4};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "orff-convergence",
    what: "error of operator-valued features against D, with the error that variances predict",
    source: "operator-valued, figure 1; points uniform on [-1, 1]^4, the paper has curves only",
    needs: &[],
    minutes: 2.5,
    run,
};

const DIM: usize = 4;

fn run(run: &Run<'_>) -> Outcome<Findings> {
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
        .numbers("error", "error")
        .numbers("deviation", "deviation")
        .numbers("predicted", "predicted");
    let (mut series, mut remarks) = (Vec::new(), Vec::new());
    for (index, (name, kernel)) in kernels.into_iter().enumerate() {
        let exact = kernel.matrix(rows.view(), rows.view())?;
        let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
        let mut measured = Series::new(name, Style::Scatter, index);
        let mut dashed = Series::new(name, Style::Dashed, index).unlabelled();
        let mut means = Vec::new();
        for frequencies in [10, 32, 100, 320, 1000] {
            let spec = |seed| OperatorSpec {
                n_components: 2 * frequencies,
                projection: Directions::Gaussian,
                seed,
                ..OperatorSpec::new(kernel.clone())
            };
            let found = run.per_seed(&format!("{name} {count} D={frequencies}"), |seed| {
                let estimate: Array4<f64> = spec(seed).build::<f64>(DIM)?.estimate(rows.view(), rows.view())?;
                Ok(((&estimate - &exact).mapv(|e| e * e).sum() / norm_sq).sqrt())
            })?;
            // The trace of E(K̃ - K)² is the expected squared Frobenius norm of a block.
            let variance = spec(0).variance(rows.view(), rows.view())?;
            let traces: f64 = (0..DIM).map(|i| variance.slice(ndarray::s![.., .., i, i]).sum()).sum();
            let predicted = (traces / norm_sq).sqrt();
            table.push(vec![
                Cell::text(name),
                Cell::count(frequencies),
                Cell::percent(found.mean, 2),
                Cell::percent(found.deviation, 2),
                Cell::percent(predicted, 2),
            ]);
            means.push((frequencies as f64, found.mean));
            let tip = format!("{name}, D = {frequencies}\n{:.2} %", 100.0 * found.mean);
            measured.push(Point::new(frequencies as f64, found.mean), tip);
            dashed.push(
                Point::new(frequencies as f64, predicted),
                format!("{name}\npredicted {:.2} %", 100.0 * predicted),
            );
        }
        let ((few, large), (many, small)) = (means[0], means[means.len() - 1]);
        let rate = (small / large).ln() / (many / few).ln();
        remarks.push(format!("{name}: the error falls like D to the power {rate:.2}; -0.5 is expected."));
        table.start_group();
        series.extend([dashed, measured]);
    }
    let plot = Plot {
        title: "Error of operator-valued features".into(),
        subtitle: "Marks: mean over draws. Dashed: predicted from the closed-form matrix variance.".into(),
        x: Axis::log("number of frequencies D").with_ticks(vec![10.0, 32.0, 100.0, 320.0, 1000.0]),
        y: Axis::log("relative error of the kernel matrix").in_percent(),
        series,
    };
    Ok(Findings { tables: vec![table], plots: vec![("error".into(), plot)], remarks })
}

//! Compressive random features, figure 2: accuracy and construction time on MNIST.

use super::compressive::Study;
use super::data::Part;
use super::{Experiment, Findings, Run};
use bochner_table::failure::Outcome;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "compressive-mnist",
    what: "accuracy of a linear SVM and construction time, typical and compressive random features",
    source: "compressive, figure 2 (b) and (d); pixels in [0, 1], sigma = 10, C = 1",
    needs: &["mnist"],
    minutes: 40.0,
    run,
};

/// Measurements per image in the paper's table.
const MEASUREMENTS: [usize; 4] = [50, 100, 200, 300];
/// Numbers of features in the paper's table.
const SIZES: [usize; 6] = [100, 500, 1000, 2000, 4000, 6000];

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.images("mnist")?;
    let scaled = |part: Part| Part { rows: part.rows / 255.0, ..part };
    let study = Study {
        train: scaled(train).sample(run.choose(6000, 60_000), 1),
        test: scaled(test).sample(run.choose(2000, 10_000), 2),
        sigma: 10.0,
        measurements: &MEASUREMENTS,
        sizes: run.choose(&[100, 500, 1000], &SIZES),
        timed: true,
    };
    let mut findings = study.run(run)?;
    if run.quick {
        findings
            .remarks
            .push("A quick run trains on 6,000 of 60,000 rows: its accuracies are lower than the paper's.".into());
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_has_a_number_for_every_cell() {
        super::super::compressive::check_published(EXPERIMENT.name, &MEASUREMENTS, &SIZES);
    }
}

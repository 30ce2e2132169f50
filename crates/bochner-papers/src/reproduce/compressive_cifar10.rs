//! Compressive random features, figure 5: accuracy on CIFAR-10.

use super::compressive::Study;
use super::data::Part;
use super::{Experiment, Findings, Run};
use bochner::words;
use bochner_table::failure::Outcome;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "compressive-cifar10",
    what: "accuracy of a linear SVM on natural images, typical and compressive random features",
    source: "compressive, figure 5 (b); 3,072 pixels in [0, 1], sigma = 18, C = 1",
    needs: &["cifar10"],
    minutes: 13.0,
    run,
};

/// Training images of the complete data set.
const COMPLETE: usize = 50_000;

/// Measurements per image in the paper's table.
const MEASUREMENTS: [usize; 5] = [100, 200, 400, 600, 800];
/// Numbers of features in the paper's table.
const SIZES: [usize; 5] = [1000, 2000, 4000, 5000, 6000];

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let scaled = |part: Part| Part { rows: part.rows / 255.0, ..part };
    let train = scaled(run.data.arrays("cifar10", "train_batch1.npz")?);
    let test = scaled(run.data.arrays("cifar10", "test.npz")?);
    let study = Study {
        train: train.sample(run.choose(4000, COMPLETE), 1),
        test: test.sample(run.choose(2000, 10_000), 2),
        sigma: 18.0,
        measurements: run.choose(&[100, 400], &MEASUREMENTS),
        sizes: run.choose(&[1000, 2000], &SIZES),
        timed: false,
    };
    let mut findings = study.run(run)?;
    let rows = study.train.rows.nrows();
    if rows < COMPLETE {
        findings.remarks.push(format!(
            "Trained on {} of {} images{}: accuracies are lower than the paper's, and the differences between rows of the \
             table are what compares.",
            words::count(rows),
            words::count(COMPLETE),
            if run.quick { "" } else { ", as many as the data folder has" }
        ));
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

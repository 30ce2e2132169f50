//! Fits of operator-valued kernels, exact and by features: what two experiments time and judge.

use super::*;

/// How a model did, what its fit took, and the penalty that was chosen.
pub(super) struct Found {
    pub(super) score: f64,
    pub(super) seconds: f64,
    pub(super) penalty: f64,
}

impl Found {
    /// The three numbers, remembered or made.
    pub(super) fn of(run: &Run<'_>, key: &str, make: &mut dyn FnMut() -> Outcome<[f64; 3]>) -> Outcome<Self> {
        let values = run.values(key, &mut || Ok(make()?.to_vec()))?;
        Ok(Found { score: values[0], seconds: values[1], penalty: values[2] })
    }

    /// A row of a table; an exact kernel has no number of frequencies.
    pub(super) fn row(&self, table: &mut Table, name: &str, rows: usize, frequencies: Option<usize>) {
        let frequencies = frequencies.map_or(Cell::missing("∞"), Cell::count);
        table.add(&[&name, &rows, &frequencies, &self.score, &self.seconds, &self.penalty]);
    }
}

/// A table of such fits by numbers of rows and of frequencies.
pub(super) fn table(title: String, (key, heading, show): (&str, &str, Show)) -> Table {
    Table::new(title)
        .words("model", "model")
        .numbers("rows", "N")
        .numbers("frequencies", "D")
        .column(key, heading, show)
        .column("seconds", "time", Show::Duration)
        .column("penalty", "penalty", Show::Number(2))
}

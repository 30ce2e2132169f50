//! Results of runs that are kept: small files with the numbers that stand beside published ones, the settings they were made
//! with, machine and date. Those of full runs come with the program.

use super::settings::{Choice, Size};
use super::{Experiment, Statistic};
use bochner::parallel::threads;
use bochner::words;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::output;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The files that come with the program.
const FILES: [&str; 3] = [
    include_str!("../../data/results/compressive-mnist.json"),
    include_str!("../../data/results/maclaurin-gp.json"),
    include_str!("../../data/results/sketch-time.json"),
];

/// What a run found beside published numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub experiment: String,
    /// Hash of the settings the numbers were made with.
    pub fingerprint: String,
    pub size: Size,
    /// Draws that were asked for in place of the experiment's own.
    pub draws: Option<usize>,
    /// Settings that were named one by one.
    pub set: BTreeMap<String, Value>,
    pub seed: u64,
    /// Day on which the run ended, as year-month-day.
    pub date: String,
    pub machine: String,
    /// Time that all numbers took.
    pub minutes: f64,
    /// Data that the paper had and the run had not.
    pub lacking: Vec<String>,
    /// Numbers by the labels of the published ones.
    pub values: BTreeMap<String, Number>,
}

/// A number of ours, and what is known about its noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Number {
    pub mean: f64,
    /// Standard deviation over draws.
    pub deviation: f64,
    pub draws: usize,
    /// Standard error by the choice of test rows; 0 where that is not known.
    pub sampling: f64,
}

impl From<&Statistic> for Number {
    fn from(found: &Statistic) -> Self {
        Number { mean: found.mean, deviation: found.deviation, draws: found.count, sampling: found.sampling }
    }
}

impl Kept {
    pub(super) fn of(
        choice: &Choice<'_>,
        seed: u64,
        seconds: f64,
        lacking: Vec<String>,
        values: BTreeMap<String, Number>,
    ) -> Self {
        Kept {
            experiment: choice.experiment.name.to_owned(),
            fingerprint: choice.fingerprint(seed),
            size: choice.size,
            draws: choice.draws,
            set: choice.set.clone(),
            seed,
            date: today(),
            machine: machine(),
            minutes: (seconds / 6.0).round() / 10.0,
            lacking,
            values,
        }
    }

    /// The settings of the run with the sizes of today.
    pub(super) fn choice<'a>(&self, experiment: &'a Experiment) -> Choice<'a> {
        Choice::stored(experiment, self.size, self.draws, &self.set)
    }

    /// Whether the experiment would be run in the same way today.
    pub(super) fn is_fresh(&self, experiment: &Experiment) -> bool {
        self.choice(experiment).fingerprint(self.seed) == self.fingerprint
    }

    /// Writes the file of the experiment in a folder.
    pub(super) fn write(&self, folder: &Path) -> Outcome {
        let text = format!("{:#}\n", serde_json::to_value(self).map_err(|e| Failure::Failed(e.to_string()))?);
        output::write_whole(&folder.join(format!("{}.json", self.experiment)), text.as_bytes())
    }
}

/// The results that come with the program.
pub fn embedded() -> &'static [Kept] {
    static ALL: LazyLock<Vec<Kept>> = LazyLock::new(|| {
        FILES.iter().map(|text| serde_json::from_str(text).expect("the embedded results are read by a test")).collect()
    });
    &ALL
}

/// The results in a folder, by experiment; files of other names are left alone.
pub fn read(folder: &Path) -> Outcome<Vec<Kept>> {
    let fail = |path: &Path, e: &dyn std::fmt::Display| Failure::Failed(format!("{}: {e}", path.display()));
    let mut found = Vec::new();
    for experiment in super::experiments() {
        let path = folder.join(format!("{}.json", experiment.name));
        match std::fs::read(&path) {
            Ok(bytes) => found.push(serde_json::from_slice(&bytes).map_err(|e| fail(&path, &e))?),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(fail(&path, &e)),
        }
    }
    if found.is_empty() {
        let expected = "no results of experiments; reproduce NAME --keep FOLDER writes them";
        return Err(Failure::Usage(format!("--keep {}: {expected}", folder.display())));
    }
    Ok(found)
}

/// The processor as the system calls it, and the threads that work.
fn machine() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        told.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    format!("{}, {}", model.unwrap_or(std::env::consts::ARCH), words::things(threads(), "thread"))
}

fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    date(seconds / 86_400)
}

/// The day of the Gregorian calendar so many days after the first of 1970.
fn date(days: u64) -> String {
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, day + 1)
}

#[cfg(test)]
mod tests {
    use super::super::{find, published};
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let told = [0, 58, 59, 11_016, 11_017, 19_782, 20_514].map(date);
        let days = ["1970-01-01", "1970-02-28", "1970-03-01", "2000-02-29", "2000-03-01", "2024-02-29", "2026-03-02"];
        assert_eq!(told, days);
    }

    #[test]
    fn results_that_come_with_the_program_are_those_of_the_present_protocol() {
        for kept in embedded() {
            let experiment = find(&kept.experiment).unwrap();
            assert!(
                kept.is_fresh(experiment),
                "{0}: the settings have changed since {1}; run it again and keep the results (bochner reproduce {0} --keep FOLDER)",
                kept.experiment,
                kept.date
            );
            assert!(kept.size != Size::Quick && !kept.values.is_empty(), "{}", kept.experiment);
            for label in kept.values.keys() {
                assert!(published::find(&kept.experiment, label).is_some(), "{}: {label}", kept.experiment);
            }
        }
    }

    #[test]
    fn every_file_of_results_comes_with_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/results");
        let there = read(&folder).unwrap();
        assert_eq!(there, embedded());
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), there.len());
    }

    #[test]
    fn results_come_back_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("bochner-kept-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(read(&folder).unwrap_err().to_string().contains("--keep"));
        let experiment = find("sketch-time").unwrap();
        let choice = Choice::new(experiment, Size::Full, Some(3), &[("rows".into(), "500".into())]).unwrap();
        let number = Number { mean: 0.1 + 0.2, deviation: 1e-300, draws: 3, sampling: 0.0 };
        let kept = Kept::of(&choice, 5, 90.0, vec![], BTreeMap::from([("a".to_owned(), number)]));
        kept.write(&folder).unwrap();
        assert_eq!(read(&folder).unwrap(), std::slice::from_ref(&kept));
        assert!(kept.is_fresh(experiment) && kept.minutes == 1.5);
        assert!(!Kept { seed: 6, ..kept.clone() }.is_fresh(experiment));
        assert!(!Kept { draws: None, ..kept }.is_fresh(experiment));
        std::fs::remove_dir_all(folder).unwrap();
    }
}

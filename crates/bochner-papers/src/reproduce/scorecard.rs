//! Every published number beside ours, and a verdict on each: made from results that are kept, without running anything.

use super::kept::{self, Kept, Number};
use super::published::{Group, groups};
use super::settings::{Choice, Less};
use super::{Experiment, experiments};
use bochner_report::Report;
use bochner_report::plot::bars::{Bar, bars};
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Show, Table, Tone};
use bochner_table::failure::Outcome;
use serde_json::Value;
use std::path::Path;

/// What a published number and ours say together.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// They differ by no more than twice the noise.
    WithinNoise,
    /// Ours is better by more.
    Better,
    /// Ours is worse by more.
    Worse,
    /// They measure different things, and why.
    Apart(String),
    /// There is no number of ours, and why.
    NotRun(String),
}

impl Verdict {
    fn name(&self) -> &'static str {
        match self {
            Verdict::WithinNoise => "within noise",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Apart(_) => "not comparable",
            Verdict::NotRun(_) => "not run",
        }
    }

    fn reason(&self) -> &str {
        match self {
            Verdict::Apart(why) | Verdict::NotRun(why) => why,
            _ => "",
        }
    }

    /// Whether the numbers can be compared.
    pub fn is_comparable(&self) -> bool {
        matches!(self, Verdict::WithinNoise | Verdict::Better | Verdict::Worse)
    }

    /// Whether ours is as good as the paper's.
    pub fn is_good(&self) -> bool {
        matches!(self, Verdict::WithinNoise | Verdict::Better)
    }

    fn cell(&self) -> Cell {
        let tone = match self {
            Verdict::WithinNoise | Verdict::Better => Tone::Good,
            Verdict::Worse => Tone::Bad,
            _ => Tone::Plain,
        };
        Cell::text(self.name()).toned(tone)
    }
}

/// All verdicts, in the order of bars, and the numbers of their colors.
const VERDICTS: [(&str, usize); 5] =
    [("within noise", 2), ("better", 0), ("worse", 1), ("not comparable", 6), ("not run", 5)];

/// A published number and ours.
#[derive(Debug, Clone)]
pub struct Row {
    pub group: &'static Group,
    pub label: &'static str,
    pub theirs: f64,
    pub ours: Option<Number>,
    /// Standard error of the difference, where anything is known about it.
    pub noise: Option<f64>,
    pub verdict: Verdict,
}

impl Row {
    fn new(group: &'static Group, label: &'static str, theirs: f64, runs: &Runs<'_>) -> Self {
        let ours = runs.kept.and_then(|kept| kept.values.get(label).copied());
        let noise = ours.and_then(|ours| noise(group, label, &ours));
        let verdict = match (ours, &group.apart) {
            (None, _) => Verdict::NotRun(runs.absent(group)),
            (Some(_), Some(why)) => Verdict::Apart(why.clone()),
            (Some(ours), None) => match runs.apart() {
                Some(why) => Verdict::Apart(why),
                None => judge(group.smaller_is_better, ours.mean - theirs, noise),
            },
        };
        Row { group, label, theirs, ours, noise, verdict }
    }

    /// By how many units of noise ours is worse.
    fn distance(&self) -> Option<f64> {
        let (ours, noise) = (self.ours?, self.noise.filter(|noise| *noise > 0.0)?);
        let sign = if self.group.smaller_is_better == Some(false) { -1.0 } else { 1.0 };
        Some(sign * (ours.mean - self.theirs) / noise)
    }
}

/// The standard error of a difference: draws of ours and of theirs, test rows, and the digits that were printed.
fn noise(group: &Group, label: &str, ours: &Number) -> Option<f64> {
    let published = group.deviations.get(label).copied();
    let own = (ours.draws > 1).then_some(ours.deviation);
    // Both draw the same things: two deviations are pooled, and one serves for both.
    let (n, m) = (ours.draws as f64, group.draws.unwrap_or(1) as f64);
    let variance = match (own, published) {
        (Some(own), Some(published)) => ((n - 1.0) * own * own + (m - 1.0) * published * published) / (n + m - 2.0),
        (own, published) => own.or(published).map_or(0.0, |deviation| deviation * deviation),
    };
    let draws = variance * (1.0 / n + 1.0 / m);
    let digits = group.step.unwrap_or(0.0).powi(2) / 12.0;
    let is_known = own.is_some() || published.is_some() || ours.sampling > 0.0;
    (is_known || digits > 0.0).then(|| (draws + ours.sampling.powi(2) + digits).sqrt())
}

/// Two standard errors are noise.
const NOISE: f64 = 2.0;

fn judge(smaller_is_better: Option<bool>, difference: f64, noise: Option<f64>) -> Verdict {
    if difference.abs() <= NOISE * noise.unwrap_or(0.0) {
        return Verdict::WithinNoise;
    }
    match smaller_is_better {
        None => Verdict::Apart("it is neither good nor bad, and differs".into()),
        Some(smaller) if (difference < 0.0) == smaller => Verdict::Better,
        Some(_) => Verdict::Worse,
    }
}

/// An experiment and its results, if there are any.
struct Runs<'a> {
    experiment: &'a Experiment,
    kept: Option<&'a Kept>,
    choice: Option<Choice<'a>>,
}

impl Runs<'_> {
    /// Why no number of a run can be compared.
    fn apart(&self) -> Option<String> {
        let (kept, choice) = (self.kept?, self.choice.as_ref()?);
        if !kept.is_fresh(self.experiment) {
            return Some(format!("stale: the settings have changed since {}", kept.date));
        }
        let decisive = |less: &Less| self.experiment.decisive.contains(&less.name.as_str());
        let less = choice.less().into_iter().filter(decisive).map(|less| less.in_words());
        let all: Vec<String> = less.chain(kept.lacking.iter().cloned()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Why there is no number.
    fn absent(&self, group: &Group) -> String {
        match (&group.missing, self.kept) {
            (Some(why), _) => why.clone(),
            (None, None) => format!(
                "no stored results; a full run takes {}",
                bochner::words::duration(60.0 * self.experiment.minutes)
            ),
            (None, Some(_)) => "the stored run has no such size".into(),
        }
    }
}

/// All published numbers beside ours.
#[derive(Debug)]
pub struct Scorecard {
    pub rows: Vec<Row>,
    results: Vec<Kept>,
}

/// How many numbers of a paper have which verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub paper: &'static str,
    /// By verdict: within noise, better, worse, not comparable, not run.
    pub counts: [usize; 5],
}

impl Tally {
    /// Numbers that are within noise or better.
    pub fn good(&self) -> usize {
        self.counts[0] + self.counts[1]
    }

    /// Numbers that can be compared.
    pub fn comparable(&self) -> usize {
        self.good() + self.counts[2]
    }

    pub fn published(&self) -> usize {
        self.counts.iter().sum()
    }

    fn in_words(&self) -> String {
        let [.., apart, not_run] = self.counts;
        format!(
            "{}: {} of {} comparable numbers are within noise or better; {} are published, {apart} not comparable, {not_run} not run",
            self.paper,
            self.good(),
            self.comparable(),
            self.published()
        )
    }
}

impl Scorecard {
    /// From the results in a folder, or those that come with the program; of one experiment, or of all.
    ///
    /// # Errors
    /// If the folder has no results or cannot be read.
    pub fn read(folder: Option<&Path>, only: Option<&Experiment>) -> Outcome<Self> {
        let results = folder.map_or_else(|| Ok(kept::embedded().to_vec()), kept::read)?;
        Ok(Scorecard::of(results, only))
    }

    fn of(results: Vec<Kept>, only: Option<&Experiment>) -> Self {
        let mut rows = Vec::new();
        for experiment in experiments().iter().filter(|e| only.is_none_or(|only| only.name == e.name)) {
            let kept = results.iter().find(|kept| kept.experiment == experiment.name);
            let runs = Runs { experiment, kept, choice: kept.map(|kept| kept.choice(experiment)) };
            for group in groups().iter().filter(|group| group.experiment == experiment.name) {
                rows.extend(group.values.iter().map(|(label, &theirs)| Row::new(group, label, theirs, &runs)));
            }
        }
        Scorecard { rows, results }
    }

    /// One tally for each paper that has numbers.
    pub fn tallies(&self) -> Vec<Tally> {
        let mut found: Vec<Tally> = Vec::new();
        for row in &self.rows {
            let paper = row.group.paper.as_str();
            let at = found.iter().position(|tally| tally.paper == paper).unwrap_or_else(|| {
                found.push(Tally { paper, counts: [0; 5] });
                found.len() - 1
            });
            let verdict = VERDICTS.iter().position(|(name, _)| *name == row.verdict.name()).unwrap_or(0);
            found[at].counts[verdict] += 1;
        }
        found
    }

    /// The lines that say how many of how many.
    pub fn lines(&self) -> Vec<String> {
        self.tallies().iter().map(Tally::in_words).collect()
    }

    /// One row per published number.
    pub fn table(&self) -> Table {
        let mut table = Table::new("Published numbers beside ours")
            .words("experiment", "experiment")
            .words("place", "place")
            .words("what", "what")
            .words("unit", "unit")
            .numbers("paper", "paper")
            .numbers("ours", "ours")
            .column("noise", "noise", Show::Number(2))
            .words("verdict", "verdict")
            .words("why", "why");
        let mut before = "";
        for row in &self.rows {
            let group = row.group;
            if before != group.experiment {
                table.start_group();
                before = &group.experiment;
            }
            let place = format!("{}, {}", group.paper, group.place);
            let ours = row.ours.map(|ours| Cell::number(ours.mean, 4));
            let (theirs, reason) = (Cell::number(row.theirs, 4), row.verdict.reason());
            table.add(&[
                &group.experiment,
                &place,
                &row.label,
                &group.unit,
                &theirs,
                &ours,
                &row.noise,
                &row.verdict.cell(),
                &reason,
            ]);
        }
        table
    }

    /// The same with the tallies and the stored runs beside the rows, for programs that read objects.
    pub fn table_with_facts(&self) -> Table {
        let facts = self.tallies().into_iter().map(|tally| {
            let (good, comparable, published) = (tally.good(), tally.comparable(), tally.published());
            let value = serde_json::json!({"good": good, "comparable": comparable, "published": published});
            (tally.paper.replace(' ', "_"), value)
        });
        let runs = Value::Array(self.results.iter().map(run_in_json).collect());
        let facts = facts.chain([("runs".to_owned(), runs)]).collect();
        self.table().with_facts("rows", facts)
    }

    /// One row per stored run.
    fn runs(&self) -> Table {
        let mut table = Table::new("Stored results")
            .words("experiment", "experiment")
            .words("date", "date")
            .words("machine", "machine")
            .column("minutes", "time", Show::Duration)
            .words("less", "smaller than in the paper");
        for kept in &self.results {
            let experiment = experiments().iter().find(|e| e.name == kept.experiment);
            let less = experiment.map_or(Vec::new(), |e| kept.choice(e).less());
            let less: Vec<String> = less.iter().map(Less::in_words).chain(kept.lacking.iter().cloned()).collect();
            table.add(&[&kept.experiment, &kept.date, &kept.machine, &(60.0 * kept.minutes), &less.join("; ")]);
        }
        table
    }

    /// How far ours are from theirs, where both can be compared.
    fn distances(&self) -> Plot {
        /// Beyond so many units of noise one mark says as much as another.
        const MOST: f64 = 12.0;
        let names: Vec<String> = experiments()
            .iter()
            .filter(|e| self.rows.iter().any(|row| row.group.experiment == e.name && row.verdict.is_comparable()))
            .map(|e| e.name.to_owned())
            .collect();
        let mut plot = Plot::new(
            "How far ours are from the papers'",
            format!(
                "Differences in units of noise; up is worse, marks at ±{MOST} are as far or further. Dashed: twice the noise."
            ),
            Axis::named("experiment", names.clone()),
            Axis::linear("worse by so many units of noise"),
        );
        for paper in self.tallies().iter().map(|tally| tally.paper) {
            let line = plot.line(paper, Style::Scatter);
            let rows = || self.rows.iter().filter(|row| row.group.paper == paper && row.verdict.is_comparable());
            for row in rows() {
                let place = names.iter().position(|name| *name == row.group.experiment);
                let (Some(place), Some(distance)) = (place, row.distance()) else { continue };
                let of = || rows().filter(|other| other.group.experiment == row.group.experiment);
                let (at, count) = (of().position(|other| other.label == row.label).unwrap_or(0), of().count());
                let x = place as f64 + 0.7 * ((at as f64 + 0.5) / count as f64 - 0.5);
                let ours = row.ours.map_or(f64::NAN, |ours| ours.mean);
                let tip = format!("{}\n{} in the paper, {ours:.4} here: {}", row.label, row.theirs, row.verdict.name());
                line.push(Point::new(x, distance.clamp(-MOST, MOST)), tip);
            }
        }
        let ends = [0, names.len().saturating_sub(1)];
        for (name, height) in [("twice the noise", NOISE), ("better by as much", -NOISE)] {
            plot.series.push(Series::level(name, 6, &ends, height, "twice the standard error of the difference"));
        }
        plot
    }

    /// The page: lines, bars, distances, all numbers.
    pub fn page(&self) -> String {
        let mut report = Report::new(
            "Scorecard: the papers' numbers beside ours",
            "Every published number with ours, from stored results. Noise is the standard error of the difference: draws of both, \
             test rows, printed digits; up to twice of it is within noise.",
        );
        self.lines().iter().for_each(|line| {
            report.paragraph(&format!("{line}."));
        });
        let of_papers: Vec<Bar> = (self.tallies().iter())
            .map(|tally| Bar { name: tally.paper.to_owned(), counts: tally.counts.to_vec() })
            .collect();
        let of_experiments: Vec<Bar> = experiments().iter().filter_map(|e| self.bar(e.name)).collect();
        report.figure(&bars("Verdicts by paper", "Published numbers.", &VERDICTS, &of_papers));
        report.figure(&bars("Verdicts by experiment", "Published numbers.", &VERDICTS, &of_experiments));
        report.plot(&self.distances());
        report.table(&self.runs()).table(&self.table());
        report.to_html()
    }

    fn bar(&self, experiment: &str) -> Option<Bar> {
        let of = |verdict: &str| {
            let rows = self.rows.iter().filter(|row| row.group.experiment == experiment);
            rows.filter(|row| row.verdict.name() == verdict).count()
        };
        let counts: Vec<usize> = VERDICTS.iter().map(|(verdict, _)| of(verdict)).collect();
        (counts.iter().sum::<usize>() > 0).then(|| Bar { name: experiment.to_owned(), counts })
    }
}

/// What programs are told of a run beside its numbers.
fn run_in_json(kept: &Kept) -> Value {
    let mut value = serde_json::to_value(kept).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("values");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::super::settings::Size;
    use super::*;
    use std::collections::BTreeMap;

    fn number(mean: f64) -> Number {
        Number { mean, deviation: 0.01, draws: 4, sampling: 0.0 }
    }

    fn kept(name: &str, set: &[(&str, &str)], values: &[(&str, f64)]) -> Kept {
        let set: Vec<(String, String)> = set.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let choice = Choice::new(find(name).unwrap(), Size::Full, None, &set).unwrap();
        let values = values.iter().map(|&(label, mean)| (label.to_owned(), number(mean))).collect();
        Kept::of(&choice, 0, 60.0, vec![], values)
    }

    fn verdict(card: &Scorecard, label: &str) -> Verdict {
        card.rows.iter().find(|row| row.label == label).unwrap().verdict.clone()
    }

    const LABELS: [&str; 3] = ["p=3 D=1024 optimised TensorSRHT", "p=3 D=1024 random", "p=3 D=1024 spherical"];

    #[test]
    fn every_published_number_has_a_row_and_says_why_it_was_not_run() {
        let card = Scorecard::of(Vec::new(), None);
        let published: usize = groups().iter().map(|group| group.values.len()).sum();
        assert_eq!(card.rows.len(), published);
        assert!(card.rows.iter().all(|row| matches!(&row.verdict, Verdict::NotRun(why) if !why.is_empty())));
        for (tally, line) in card.tallies().iter().zip(card.lines()) {
            assert_eq!((tally.comparable(), tally.counts[4]), (0, tally.published()));
            assert!(line.starts_with(&format!("{}: 0 of 0 comparable", tally.paper)), "{line}");
        }
    }

    #[test]
    fn a_difference_is_judged_by_its_noise() {
        // A deviation of 0.01 over 4 draws here and one there: a standard error of 0.01 √1.25 = 0.01118.
        let values = [(LABELS[0], 0.0082 + 0.02), (LABELS[1], 0.0191 + 0.03), (LABELS[2], 0.0264 - 0.03)];
        let card = Scorecard::of(vec![kept("maclaurin-kernel", &[("rows", "5000")], &values)], None);
        let row = card.rows.iter().find(|row| row.label == LABELS[0]).unwrap();
        let draws = row.group.draws.unwrap_or(1) as f64;
        let digits = row.group.step.unwrap_or(0.0);
        let expected = (1e-4 / 4.0 + 1e-4 / draws + digits * digits / 12.0).sqrt();
        assert!((row.noise.unwrap() - expected).abs() < 1e-12);
        assert_eq!(LABELS.map(|label| verdict(&card, label)), [Verdict::WithinNoise, Verdict::Worse, Verdict::Better]);
        let thesis = card.tallies().into_iter().find(|tally| tally.paper == "thesis").unwrap();
        assert_eq!((thesis.good(), thesis.comparable()), (2, 3));
        assert!(matches!(verdict(&card, "p=10 D=1024 random"), Verdict::NotRun(why) if why.contains("no such size")));
    }

    #[test]
    fn rows_and_draws_and_digits_add_to_the_noise() {
        let group = groups().iter().find(|group| group.experiment == "sketch-time").unwrap();
        let bare = Group { draws: Some(4), step: None, ..group.clone() };
        let of = |group: &Group, number: Number| noise(group, "label", &number);
        let one = Number { draws: 1, deviation: 0.0, ..number(1.0) };
        assert_eq!(of(&bare, one), None);
        assert!((of(&bare, Number { sampling: 0.3, ..one }).unwrap() - 0.3).abs() < 1e-12);
        let digits = Group { step: Some(0.12), ..bare.clone() };
        assert!((of(&digits, one).unwrap() - 0.12 / 12f64.sqrt()).abs() < 1e-12);
        // A published deviation serves one draw of ours too.
        let told = Group { deviations: BTreeMap::from([("label".to_owned(), 0.2)]), ..bare };
        assert!((of(&told, one).unwrap() - 0.2 * 1.25f64.sqrt()).abs() < 1e-12);
        // Three degrees of freedom each: the variances are averaged.
        let four = Number { deviation: 0.4, draws: 4, ..one };
        assert!((of(&told, four).unwrap() - (0.1f64 * 0.5).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn stale_smaller_and_lacking_runs_are_named() {
        let values = [(LABELS[0], 0.0082)];
        let of = |kept: Kept| verdict(&Scorecard::of(vec![kept], None), LABELS[0]);
        let fresh = || kept("maclaurin-kernel", &[("rows", "5000")], &values);
        assert_eq!(of(fresh()), Verdict::WithinNoise);
        let why = |kept| match of(kept) {
            Verdict::Apart(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why(Kept { fingerprint: "old".into(), ..fresh() }).starts_with("stale"));
        assert_eq!(why(Kept { lacking: vec!["half of the images".into()], ..fresh() }), "half of the images");
        let svm = kept("compressive-mnist", &[("training rows", "6000")], &[("accuracy linear m = 50", 90.0)]);
        let card = Scorecard::of(vec![svm], None);
        let expected = Verdict::Apart("training rows: 6,000 instead of 60,000".into());
        assert_eq!(verdict(&card, "accuracy linear m = 50"), expected);
    }

    #[test]
    fn the_card_is_a_table_for_programs_and_a_page_for_people() {
        let card = Scorecard::of(
            vec![kept("maclaurin-kernel", &[], &[(LABELS[0], 0.0082)])],
            Some(find("maclaurin-kernel").unwrap()),
        );
        let json = card.table_with_facts().to_json();
        assert_eq!(json["thesis"]["comparable"], 1);
        assert_eq!(json["rows"].as_array().unwrap().len(), card.rows.len());
        assert_eq!(json["runs"][0]["experiment"], "maclaurin-kernel");
        assert!(json["runs"][0].get("values").is_none());
        let page = card.page();
        for part in ["Verdicts by paper", "How far ours are", "Stored results", LABELS[0]] {
            assert!(page.contains(part), "{part}");
        }
    }
}

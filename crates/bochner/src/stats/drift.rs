use crate::error::{Error, Result, check_dim};
use crate::feature::{DynMap, FeatureMap};
use crate::interrupt;
use crate::random::{Role, Seed, Stream};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, Axis};

/// How far an alarm raises the threshold, in its logarithm; every row lowers it by this much times the rate.
const STEP: f64 = 0.02;

/// The threshold stays within this factor of what the reference rows gave.
const MOST: f64 = 4.0;

/// Steps of the monitor on reference rows drawn anew: so many false alarms, within limits.
const FALSE_ALARMS: f64 = 100.0;
const STEPS: std::ops::Range<usize> = 20_000..400_000;

/// Rows whose features are made at once.
const PIECE: usize = 512;

/// How fast averages forget: the share of the newest row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forgetting {
    /// Of the average that follows a change.
    pub fast: f64,
    /// Of the average that remembers what was before.
    pub slow: f64,
}

impl Default for Forgetting {
    fn default() -> Self {
        Forgetting { fast: 0.02, slow: 0.005 }
    }
}

/// Watches a stream of rows for a change of their distribution.
///
/// Two averages of features forget at different speeds; where rows keep their distribution both are near its mean, and after a change they
/// are apart for a while (Keriven, Garreau and Poli 2018). Nothing of the stream is kept but the two averages. An alarm is
/// raised where their distance passes a threshold; then the slow average starts again from the fast one.
///
/// The threshold begins where the monitor, run on reference rows in random order, raises alarms at the rate asked for. Afterwards every alarm
/// raises it and every row without one lowers it, so that over `T` rows there are `rate·T` alarms up to a bounded number: if nothing
/// changes the rate of false alarms is the one asked for, whatever the distribution is (`docs/mathematics/tests.md`).
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::random::{Role, Seed, Stream};
/// use bochner::stats::{DriftMonitor, Forgetting};
/// use ndarray::Array2;
/// let map = FourierSpec { n_components: 64, ..FourierSpec::default() }.build::<f64>(1)?;
/// let mut draw = Stream::new(Seed::new(0), Role::Noise, 0);
/// let mut rows = |mean: f64| Array2::from_shape_fn((500, 1), |_| mean + draw.normal());
/// let mut monitor = DriftMonitor::new(map, rows(0.0).view(), 1e-3, Forgetting::default(), 0)?;
/// assert!(!monitor.update(rows(0.0).view())?.contains(&true));
/// assert!(monitor.update(rows(2.0).view())?.contains(&true));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DriftMonitor<R: Real> {
    map: DynMap<R>,
    rate: f64,
    averages: Averages,
    log_threshold: f64,
    start: f64,
    rows: u64,
    alarms: u64,
}

/// The two averages.
#[derive(Debug, Clone)]
struct Averages {
    fast: Vec<f64>,
    slow: Vec<f64>,
    forgetting: Forgetting,
    distance: f64,
}

impl Averages {
    fn new(mean: &[f64], forgetting: Forgetting) -> Self {
        Averages { fast: mean.to_vec(), slow: mean.to_vec(), forgetting, distance: 0.0 }
    }

    fn add<R: Real>(&mut self, features: &[R]) -> f64 {
        let Forgetting { fast, slow } = self.forgetting;
        // Four sums, so that vectors of numbers are added; their order is fixed.
        let mut sums = [0.0f64; 4];
        for (at, ((a, b), z)) in self.fast.iter_mut().zip(&mut self.slow).zip(features).enumerate() {
            let z = Real::to_f64(*z);
            *a += fast * (z - *a);
            *b += slow * (z - *b);
            sums[at % 4] += (*a - *b) * (*a - *b);
        }
        self.distance = sums.iter().sum::<f64>().sqrt();
        self.distance
    }

    /// Starts again from where the fast average is.
    fn settle(&mut self) {
        self.slow.copy_from_slice(&self.fast);
    }
}

impl<R: Real> DriftMonitor<R> {
    /// A monitor that has seen rows of the distribution that is not to change.
    ///
    /// # Errors
    /// Fewer than 20 rows, rows that are all equal, a rate that is not between 0 and 0.1, averages that do not forget at two
    /// speeds, and as [`FeatureMap::transform_into`].
    pub fn new(
        map: DynMap<R>,
        reference: ArrayView2<'_, R>,
        rate: f64,
        forgetting: Forgetting,
        seed: u64,
    ) -> Result<Self> {
        if !(rate > 0.0 && rate <= 0.1) {
            return Err(Error::parameter("false_alarm_rate", "a number above 0 and at most 0.1: alarms per row", rate));
        }
        let Forgetting { fast, slow } = forgetting;
        if !(slow > 0.0 && slow < fast && fast < 1.0) {
            let found = format!("fast {fast} and slow {slow}");
            return Err(Error::parameter("forgetting", "two numbers with 0 < slow < fast < 1", found));
        }
        if reference.nrows() < 20 {
            return Err(Error::parameter("number of reference rows", "at least 20", reference.nrows()));
        }
        let features = map.transform(reference)?;
        let mean = features.mapv(Real::to_f64).mean_axis(Axis(0)).expect("there are rows").to_vec();
        let averages = Averages::new(&mean, forgetting);
        let mut monitor = DriftMonitor { map, rate, averages, log_threshold: 0.0, start: 0.0, rows: 0, alarms: 0 };
        monitor.rehearse(&features, &mean, seed)?;
        monitor.averages = Averages::new(&mean, forgetting);
        Ok(monitor)
    }

    /// Finds the threshold on reference rows in random order.
    fn rehearse(&mut self, features: &Array2<R>, mean: &[f64], seed: u64) -> Result<()> {
        let spread: f64 = features
            .rows()
            .into_iter()
            .map(|row| row.iter().zip(mean).map(|(z, m)| (Real::to_f64(*z) - m).powi(2)).sum::<f64>())
            .sum::<f64>()
            / features.nrows() as f64;
        if spread.is_nan() || spread <= 1e-24 * mean.iter().map(|m| m * m).sum::<f64>() {
            return Err(Error::Unsupported {
                what: "drift monitor",
                reason: "the reference rows are all equal, so that any other row would be an alarm".into(),
            });
        }
        let Forgetting { fast: a, slow: b } = self.averages.forgetting;
        // Variance of the difference of the averages, in units of that of the features.
        let share = a / (2.0 - a) + b / (2.0 - b) - 2.0 * a * b / (a + b - a * b);
        let typical = (spread * share).sqrt();
        self.log_threshold = (1.5 * typical).ln();
        let steps = ((FALSE_ALARMS / self.rate) as usize).clamp(STEPS.start, STEPS.end);
        let mut draw = Stream::new(Seed::new(seed), Role::Index, 0);
        let (mut sum, mut count) = (0.0, 0usize);
        let burn = ((4.0 / b) as usize).min(steps / 4);
        for step in 0..steps {
            let row = draw.below(features.nrows() as u64) as usize;
            let row = features.row(row);
            let distance = self.averages.add(row.to_slice().expect("made row by row"));
            if step < burn {
                continue;
            }
            // Large steps at first, then those of later.
            let share = (step - burn) as f64 / (steps - burn) as f64;
            let pace = STEP * (1.0 + 4.0 * (1.0 - 4.0 * share).max(0.0));
            self.decide(distance, pace);
            if share > 0.5 {
                sum += self.log_threshold;
                count += 1;
            }
            if step % 4096 == 0 {
                interrupt::check()?;
            }
        }
        self.log_threshold = sum / count as f64;
        self.start = self.log_threshold;
        Ok(())
    }

    /// Whether this distance is an alarm; the threshold moves.
    fn decide(&mut self, distance: f64, pace: f64) -> bool {
        let alarm = distance > self.log_threshold.exp();
        self.log_threshold += pace * (f64::from(u8::from(alarm)) - self.rate);
        if alarm {
            self.averages.settle();
        }
        alarm
    }

    /// Looks at the next rows; which of them raise an alarm. How rows are cut into calls changes nothing.
    ///
    /// # Errors
    /// As [`FeatureMap::transform_into`]; nothing is looked at then.
    pub fn update(&mut self, rows: ArrayView2<'_, R>) -> Result<Vec<bool>> {
        check_dim("number of columns of rows", self.map.input_dim(), rows.ncols())?;
        crate::rows::check_finite("rows", rows, 0)?;
        let mut found = Vec::with_capacity(rows.nrows());
        for (i, piece) in rows.axis_chunks_iter(Axis(0), PIECE).enumerate() {
            let features = self.map.transform(piece).map_err(|error| error.rows_from(i * PIECE))?;
            for row in features.rows() {
                let distance = self.averages.add(row.to_slice().expect("made row by row"));
                let alarm = self.decide(distance, STEP);
                self.log_threshold = self.log_threshold.clamp(self.start - MOST.ln(), self.start + MOST.ln());
                self.alarms += u64::from(alarm);
                self.rows += 1;
                found.push(alarm);
            }
        }
        Ok(found)
    }

    /// Distance of the two averages.
    pub fn statistic(&self) -> f64 {
        self.averages.distance
    }

    /// The distance that would be an alarm.
    pub fn threshold(&self) -> f64 {
        self.log_threshold.exp()
    }

    /// Rows looked at, the reference not counted.
    pub fn count(&self) -> u64 {
        self.rows
    }

    /// Alarms so far.
    pub fn alarms(&self) -> u64 {
        self.alarms
    }

    /// The map.
    pub fn map(&self) -> &DynMap<R> {
        &self.map
    }
}

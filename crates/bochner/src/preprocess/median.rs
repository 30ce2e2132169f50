use crate::error::{Error, Result};
use crate::interrupt;
use crate::parallel::Parallel;
use crate::random::{Role, Seed, Stream};
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{ArrayView2, Axis};

/// Median of `|xᵢ - xⱼ|` over pairs `i < j` of `rows`, or of `max_rows` of them drawn without replacement.
///
/// Exact for the rows used; of an even number of pairs the mean of the two in the middle. Where rows are so often equal
/// that this is 0, which cannot divide anything, the median over the pairs that differ: tables of a few words or of truth
/// values have such rows.
///
/// # Errors
/// Fewer than two rows, NaN or infinities, and rows that are all equal.
///
/// ```
/// use bochner::preprocess::median_distance;
/// use bochner::random::Seed;
/// let rows = ndarray::array![[0.0f32], [1.0], [3.0]];
/// assert_eq!(median_distance(rows.view(), Seed::new(0), 1000)?, 2.0);
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn median_distance<R: Real>(rows: ArrayView2<'_, R>, seed: Seed, max_rows: usize) -> Result<f64> {
    let n = rows.nrows();
    if n < 2 || max_rows < 2 {
        let name = if n < 2 { "number of rows" } else { "max_rows" };
        return Err(Error::parameter(name, "at least 2 for a median distance", n.min(max_rows)));
    }
    let chosen = match n > max_rows {
        true => rows.select(Axis(0), &sample(n, max_rows, seed)),
        false => rows.to_owned(),
    };
    check_finite("rows", rows, 0)?;
    let d = rows.ncols();
    let numbers: Vec<f64> = chosen.iter().map(|&v| Real::to_f64(v)).collect();
    // A power of two near the largest number keeps squares inside the range of doubles and changes no digit.
    let (_, exponent) = libm::frexp(numbers.iter().fold(0.0, |a: f64, &b| a.max(b.abs())));
    let numbers: Vec<f64> = numbers.iter().map(|&v| libm::scalbn(v, -exponent)).collect();
    let row = |i: usize| &numbers[i * d..][..d];
    let distances = |i: usize| {
        let others = if interrupt::raised() { 0 } else { i };
        (0..others).map(|j| squared_distance(row(i), row(j))).collect::<Vec<_>>()
    };
    let mut squared = (1..chosen.nrows()).in_parallel().map(distances).concat();
    interrupt::check()?;
    let mut median = middle(&mut squared);
    if median == 0.0 {
        squared.retain(|&square| square > 0.0);
        if !squared.is_empty() {
            median = middle(&mut squared);
        }
    }
    let median = libm::scalbn(median, exponent);
    if median > 0.0 && median.is_finite() {
        Ok(median)
    } else {
        Err(Error::Unsupported {
            what: "median distance",
            reason: "all rows are equal; give the length scale as a number".into(),
        })
    }
}

/// `count` different numbers below `n`, in increasing order.
fn sample(n: usize, count: usize, seed: Seed) -> Vec<usize> {
    // Floyd's method: as many draws as numbers, whatever n is.
    let mut draw = Stream::new(seed, Role::Split, 0);
    let mut chosen = std::collections::BTreeSet::new();
    for last in n - count..n {
        let candidate = draw.below(last as u64 + 1) as usize;
        if !chosen.insert(candidate) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    for (a, b) in x.chunks(4).zip(y.chunks(4)) {
        for (s, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *s += (a - b) * (a - b);
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Median of the square roots.
fn middle(squared: &mut [f64]) -> f64 {
    let (half, odd) = (squared.len() / 2, squared.len() % 2 == 1);
    let (below, &mut upper, _) = squared.select_nth_unstable_by(half, f64::total_cmp);
    if odd {
        return upper.sqrt();
    }
    let lower = below.iter().fold(0.0f64, |a, &b| a.max(b));
    0.5 * (lower.sqrt() + upper.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    #[test]
    fn the_median_is_exact_for_odd_and_even_numbers_of_pairs() {
        let seed = Seed::new(0);
        // Distances 1, 3, 7, 2, 6, 4.
        let rows = array![[0.0], [1.0], [3.0], [7.0]];
        assert_eq!(median_distance(rows.view(), seed, 100).unwrap(), 3.5);
        // Distances 5, 13, 8.
        let rows = array![[0.0f32, 0.0], [3.0, 4.0], [5.0, 12.0]];
        let exact = (4.0f64 + 64.0).sqrt();
        assert_eq!(median_distance(rows.view(), seed, 100).unwrap(), exact);
        assert_eq!(median_distance(array![[1.0], [3.0]].view(), seed, 100).unwrap(), 2.0);
    }

    #[test]
    fn a_sample_has_different_rows_and_a_similar_median() {
        let chosen = sample(1000, 400, Seed::new(5));
        assert_eq!(chosen.len(), 400);
        assert!(chosen.windows(2).all(|w| w[0] < w[1]) && chosen[399] < 1000);
        assert_eq!(sample(7, 7, Seed::new(5)), (0..7).collect::<Vec<_>>());
        let mut x = Array2::<f64>::zeros((2000, 3));
        Stream::new(Seed::new(4), Role::Direction, 0).normals_from(0, x.as_slice_mut().unwrap());
        let all = median_distance(x.view(), Seed::new(1), 2000).unwrap();
        let some = median_distance(x.view(), Seed::new(1), 500).unwrap();
        // |x - y|²/2 is chi-square with 3 degrees of freedom: its median is 2.36597 (SciPy 1.16, chi2.ppf).
        assert!((all - (2.0f64 * 2.365_973_884).sqrt()).abs() < 0.05, "{all}");
        assert!((some / all - 1.0).abs() < 0.05, "{some}");
    }

    #[test]
    fn rows_without_a_median_distance_are_refused() {
        let seed = Seed::new(0);
        assert!(median_distance(array![[1.0, 2.0]].view(), seed, 10).is_err());
        assert!(median_distance(array![[1.0], [2.0]].view(), seed, 1).is_err());
        assert!(median_distance(Array2::from_elem((9, 2), 4.0f32).view(), seed, 10).is_err());
        assert!(median_distance(Array2::<f64>::zeros((9, 0)).view(), seed, 10).is_err());
        assert!(median_distance(array![[1.0], [f64::NAN]].view(), seed, 10).is_err());
    }

    #[test]
    fn of_rows_that_are_mostly_equal_those_pairs_count_that_differ() {
        let seed = Seed::new(0);
        // Six pairs, three of them equal: the middle ones are 0 and 1, and equal pairs count.
        let rows = array![[0.0], [0.0], [0.0], [1.0]];
        assert_eq!(median_distance(rows.view(), seed, 10).unwrap(), 0.5);
        // Ten pairs, six of them equal.
        let rows = array![[0.0], [0.0], [0.0], [0.0], [3.0]];
        assert_eq!(median_distance(rows.view(), seed, 10).unwrap(), 3.0);
        let mut rows = Array2::<f32>::zeros((100, 2));
        rows.row_mut(7).fill(3.0);
        rows.row_mut(8).fill(-4.0);
        rows.row_mut(9).fill(5.0);
        // 97 pairs each of lengths 3√2, 4√2 and 5√2, and one of 7√2, 2√2 and 9√2.
        let found = median_distance(rows.view(), seed, 100).unwrap();
        assert!((found - 32f64.sqrt()).abs() < 1e-12, "{found}");
    }

    #[test]
    fn rows_of_any_size_have_a_median() {
        for size in [1e-300, 1e-160, 1e160, 1e300] {
            let rows = array![[0.0, 0.0], [3.0 * size, 4.0 * size]];
            let found = median_distance(rows.view(), Seed::new(0), 10).unwrap();
            assert!((found / (5.0 * size) - 1.0).abs() < 1e-14);
        }
    }
}

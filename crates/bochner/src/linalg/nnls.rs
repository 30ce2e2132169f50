use super::Tile;
use crate::error::{Error, Result, check_dim};

/// The `x ≥ 0` with the least `|Ax - b|`, by the active-set method of Lawson and Hanson (1974, chapter 23).
///
/// For small dense problems: every step solves a least-squares problem over the columns that are not held at 0, by
/// orthogonalisation and without forming `AᵀA`, so that nearly parallel columns cost digits only once. Solutions are
/// usually sparse. Columns that depend on those in use are passed over.
///
/// # Errors
/// A target of another length than the columns; no convergence after `10 (n + 10)` steps for `n` columns.
///
/// ```
/// use bochner::linalg::{Tile, nnls};
/// // The plain solution is (2, -1).
/// let x = nnls(Tile::new(&[1.0, 0.0, 0.0, 1.0], 2, 2), &[2.0, -1.0])?;
/// assert_eq!(x, [2.0, 0.0]);
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn nnls(matrix: Tile<'_, f64>, target: &[f64]) -> Result<Vec<f64>> {
    let (m, n) = (matrix.rows(), matrix.cols());
    check_dim("number of entries of the target", m, target.len())?;
    let columns: Vec<Vec<f64>> = (0..n).map(|j| (0..m).map(|i| matrix.row(i)[j]).collect()).collect();
    let norms: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    let scale = dot(target, target).sqrt();
    let mut x = vec![0.0; n];
    // Columns not held at 0, in the order they came in.
    let mut free: Vec<usize> = Vec::new();
    let mut passed_over = vec![false; n];
    let most_steps = 10 * (n + 10);
    for _ in 0..most_steps {
        let mut residual = target.to_vec();
        for &j in &free {
            residual.iter_mut().zip(&columns[j]).for_each(|(r, c)| *r -= x[j] * c);
        }
        // The column along which the error falls fastest; slopes below rounding do not count.
        let slope = |j: &usize| dot(&columns[*j], &residual) / norms[*j];
        let candidates = (0..n).filter(|j| !free.contains(j) && !passed_over[*j] && norms[*j] > 0.0);
        let best = candidates.map(|j| (j, slope(&j))).max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((entering, _)) = best.filter(|(_, slope)| *slope > 1e-14 * scale) else { return Ok(x) };
        free.push(entering);
        let mut first = true;
        while let Some(solution) = least_squares(free.iter().map(|&j| &columns[j][..]), target) {
            let last = solution.last().copied().unwrap_or(0.0);
            if first && last <= 0.0 {
                break;
            }
            if first {
                passed_over.fill(false);
                first = false;
            }
            if solution.iter().all(|s| *s > 0.0) {
                free.iter().zip(&solution).for_each(|(&j, s)| x[j] = *s);
                break;
            }
            // As far towards the solution as all entries stay non-negative; those that reach 0 are held there.
            let ratio = |j: usize, s: f64| if s <= 0.0 { x[j] / (x[j] - s) } else { f64::INFINITY };
            let ratios: Vec<f64> = free.iter().zip(&solution).map(|(&j, &s)| ratio(j, s)).collect();
            let step = ratios.iter().copied().fold(1.0, f64::min);
            let mut kept = Vec::new();
            for ((&j, &s), ratio) in free.iter().zip(&solution).zip(ratios) {
                // The one that stops the step leaves whatever rounding makes of it.
                if ratio > step {
                    x[j] += step * (s - x[j]);
                    kept.push(j);
                } else {
                    x[j] = 0.0;
                }
            }
            free = kept;
        }
        if first {
            // Rounding decided the slope, or the column adds nothing to those in use.
            free.pop();
            passed_over[entering] = true;
        }
    }
    let mut residual = target.to_vec();
    (0..n).for_each(|j| residual.iter_mut().zip(&columns[j]).for_each(|(r, c)| *r -= x[j] * c));
    let residual = dot(&residual, &residual).sqrt() / scale.max(f64::MIN_POSITIVE);
    Err(Error::NotConverged { iterations: most_steps, residual, tolerance: 1e-14 })
}

/// Coefficients of the combination of columns nearest to `target`; `None` where the columns are dependent.
///
/// Gram–Schmidt with every projection taken twice, which is as accurate as Householder reflections.
pub(crate) fn least_squares<'a>(columns: impl Iterator<Item = &'a [f64]>, target: &[f64]) -> Option<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    // Row j: coefficients of column j in the basis.
    let mut triangle: Vec<Vec<f64>> = Vec::new();
    for column in columns {
        let mut rest = column.to_vec();
        let mut coefficients = vec![0.0; basis.len()];
        for _ in 0..2 {
            for (direction, coefficient) in basis.iter().zip(&mut coefficients) {
                let part = dot(direction, &rest);
                *coefficient += part;
                rest.iter_mut().zip(direction).for_each(|(r, d)| *r -= part * d);
            }
        }
        let norm = dot(&rest, &rest).sqrt();
        // Not a number is no direction either.
        if norm.is_nan() || norm <= 1e-13 * dot(column, column).sqrt() {
            return None;
        }
        rest.iter_mut().for_each(|r| *r /= norm);
        coefficients.push(norm);
        basis.push(rest);
        triangle.push(coefficients);
    }
    let mut rest = target.to_vec();
    let mut solution = Vec::with_capacity(basis.len());
    for direction in &basis {
        let part = dot(direction, &rest);
        rest.iter_mut().zip(direction).for_each(|(r, d)| *r -= part * d);
        solution.push(part);
    }
    for j in (0..solution.len()).rev() {
        solution[j] /= triangle[j][j];
        for i in 0..j {
            solution[i] -= solution[j] * triangle[j][i];
        }
    }
    Some(solution)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matrices of `tools/golden/nnls.py`.
    fn problem(rows: usize, cols: usize, phase: f64) -> (Vec<f64>, Vec<f64>) {
        let entry = |i: usize, j: usize| (phase + 1.7 * i as f64 + 0.9 * (j * j) as f64 + 0.3 * (i * j) as f64).sin();
        let matrix = (0..rows * cols).map(|at| entry(at / cols, at % cols)).collect();
        (matrix, (0..rows).map(|i| (phase + 0.8 * i as f64).cos()).collect())
    }

    #[test]
    fn solutions_agree_with_scipy() {
        // scipy 1.17.1, optimize.nnls.
        let golden: [(usize, usize, f64, &[f64]); 4] = [
            (6, 4, 0.3, &[0.318701630125919, 0.279770382921874, 0.0, 0.237856500263809]),
            (
                12,
                7,
                1.1,
                &[
                    0.242407772479785,
                    0.240707447286255,
                    0.0751746458908672,
                    0.0,
                    0.0597560362306788,
                    0.0,
                    0.054190574741353,
                ],
            ),
            (
                5,
                9,
                2.0,
                &[0.696430798814099, 0.0, 0.0, 20.5640391037165, 0.0, 0.0, 8.0166241673354, 12.4977360010339, 0.0],
            ),
            (
                30,
                12,
                0.7,
                &[
                    0.0607200294452827,
                    0.0666794874722253,
                    0.0,
                    0.0304780782440316,
                    0.0181863469762498,
                    0.0,
                    0.0529359858326135,
                    0.0,
                    0.0779823965016817,
                    0.0,
                    0.112029695812005,
                    0.0408830638030965,
                ],
            ),
        ];
        for (rows, cols, phase, exact) in golden {
            let (matrix, target) = problem(rows, cols, phase);
            let found = nnls(Tile::new(&matrix, rows, cols), &target).unwrap();
            for (f, e) in found.iter().zip(exact) {
                assert!((f - e).abs() < 1e-12 * e.max(1.0), "{rows} x {cols}: {found:?}");
            }
        }
    }

    #[test]
    fn a_target_in_the_cone_is_reached() {
        let (matrix, _) = problem(9, 5, 0.2);
        let exact = [0.0, 1.5, 0.0, 0.25, 3.0];
        let target: Vec<f64> = (0..9).map(|i| dot(&matrix[i * 5..][..5], &exact)).collect();
        let found = nnls(Tile::new(&matrix, 9, 5), &target).unwrap();
        for (f, e) in found.iter().zip(exact) {
            assert!((f - e).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn nothing_and_dependent_columns_are_no_obstacle() {
        let matrix = [1.0, 1.0, 0.0, 2.0, 1.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0];
        let found = nnls(Tile::new(&matrix, 3, 4), &[1.0, 3.0, -1.0]).unwrap();
        // (1, 1, 0) twice: together they take the mean 2 of the first two entries; the last column would only add error.
        assert!((found[0] + found[1] - 2.0).abs() < 1e-14 && found[2] == 0.0 && found[3] == 0.0, "{found:?}");
        assert_eq!(nnls(Tile::new(&matrix, 3, 4), &[-1.0, -1.0, -1.0]).unwrap(), [0.0; 4]);
        assert_eq!(nnls(Tile::new(&[], 3, 0), &[1.0, 2.0, 3.0]).unwrap(), [0.0; 0]);
        assert!(nnls(Tile::new(&matrix, 3, 4), &[1.0]).is_err());
    }
}

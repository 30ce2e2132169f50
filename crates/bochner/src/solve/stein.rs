use super::cholesky::factorise_sums;
use super::conjugate::{add_scaled, dots};
use super::path::{DECOMPOSE_FROM, Path};
use super::{Means, Solution, SolveReport, centre, check_moments, check_solution};
use crate::accumulate::Moments;
use crate::error::{Result, check_count, check_dim, check_non_negative};
use crate::kernel::OutputMatrix;
use crate::linalg::{Cholesky, Eigen, Lower, TileMut};
use ndarray::{Array2, Zip};

/// Ridge regression whose outputs are related by `A = BBᵀ`: minimises `|FΘᵀBᵀ - Y|² + λ|Θ|²`.
///
/// The normal equation `BᵀBΘFᵀF + λΘ = BᵀYᵀF` is a Stein equation. In the eigenbasis of `A` it falls apart into scalar
/// ridge regressions, one for each eigenvalue `aᵢ` other than 0, of the targets `Yuᵢ` with penalty `λ/aᵢ`. A few
/// penalties share factorisations by a shift of the spectrum; many are solved from one eigendecomposition of the Gram matrix.
///
/// # Errors
/// Nothing to fit, another number of outputs, or a matrix that stays indefinite.
pub fn stein(
    moments: Moments<f64>,
    outputs: &OutputMatrix,
    penalty: f64,
    intercept: bool,
) -> Result<(Solution, SolveReport)> {
    let mut solutions = stein_path(moments, outputs, &[penalty], intercept, u64::MAX)?;
    Ok(solutions.swap_remove(0))
}

/// [`stein`] for many penalties; `room` bytes may be used besides the moments.
pub(crate) fn stein_path(
    mut moments: Moments<f64>,
    outputs: &OutputMatrix,
    penalties: &[f64],
    intercept: bool,
    room: u64,
) -> Result<Vec<(Solution, SolveReport)>> {
    penalties.iter().try_for_each(|&penalty| check_non_negative("penalty", penalty))?;
    check_moments(&moments)?;
    check_dim("number of target columns", outputs.len(), moments.outputs())?;
    let rounding = moments.rounding();
    let means = centre(&mut moments, intercept)?;
    let Moments { gram, cross, .. } = moments;
    let (dim, p) = cross.dim();
    let rotated = cross.dot(&outputs.vectors().t());
    drop(cross);
    // One column for every penalty and every eigenvalue other than 0.
    let mut columns = Vec::new();
    for (k, penalty) in penalties.iter().enumerate() {
        columns.extend((0..p).filter(|&i| outputs.values()[i] > 0.0).map(|i| (k, i, penalty / outputs.values()[i])));
    }
    let shifts: Vec<f64> = columns.iter().map(|c| c.2).collect();
    let mut rhs = Array2::zeros((dim, columns.len()));
    for (to, (_, i, _)) in columns.iter().enumerate() {
        rhs.column_mut(to).assign(&rotated.column(*i));
    }
    let (solved, jitter, condition) = if groups(&shifts).len() >= DECOMPOSE_FROM && Eigen::bytes(dim) <= room {
        let path = Path::of(gram, rhs, Means::zeros(dim, columns.len()))?;
        let (solved, condition) = path.columns(&shifts)?;
        (solved, 0.0, condition)
    } else {
        shifted_sums(gram, rhs, &shifts, rounding)?
    };
    let report = SolveReport::direct("stein", jitter, condition);
    (0..penalties.len())
        .map(|k| {
            let mut rotated = Array2::zeros((dim, p));
            for (from, (_, i, _)) in columns.iter().enumerate().filter(|(_, c)| c.0 == k) {
                rotated.column_mut(*i).assign(&solved.column(from));
            }
            let coefficients = rotated.dot(&outputs.vectors());
            let intercept = means.intercept(&coefficients);
            Ok((check_solution(Solution { coefficients, intercept })?, report.clone()))
        })
        .collect()
}

/// Largest ratio of shifts that share a factorisation.
///
/// The iteration then works on eigenvalues between 1/4 and 4 times what was factorised: thirty substitutions at most,
/// about the price of a factorisation at order 2,000 and less beyond.
const RATIO: f64 = 16.0;

/// Energy of the error, relative to that of the solution, at which the iteration ends.
const TOLERANCE: f64 = 1e-15;

/// Substitutions at most; a ratio of 16 needs thirty.
const MOST: usize = 100;

/// Indices of shifts that are within [`RATIO`] of each other, smallest first.
fn groups(shifts: &[f64]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..shifts.len()).collect();
    order.sort_by(|&a, &b| shifts[a].total_cmp(&shifts[b]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for index in order {
        match groups.last_mut() {
            Some(group) if shifts[index] <= RATIO * shifts[group[0]] => group.push(index),
            _ => groups.push(vec![index]),
        }
    }
    groups
}

/// `(G + αⱼI) xⱼ = bⱼ` with a shift for every column; gives the largest jitter and condition too.
///
/// Shifts that are equal share one factorisation and are solved directly. Shifts near each other share the
/// factorisation of `M = G + βI` with `β` their geometric mean, and differ by a multiple of `I`: conjugate gradients
/// preconditioned with `M` then need no product with `G`, since `(G + αI)p = Mp + (α-β)p` and `Mp` is carried along.
pub(crate) fn shifted(gram: Lower<f64>, rhs: Array2<f64>, shifts: &[f64]) -> Result<(Array2<f64>, f64, f64)> {
    shifted_sums(gram, rhs, shifts, 0.0)
}

/// [`shifted`] for sums with a [`rounding`](Moments::rounding).
fn shifted_sums(gram: Lower<f64>, rhs: Array2<f64>, shifts: &[f64], rounding: f64) -> Result<(Array2<f64>, f64, f64)> {
    check_dim("number of shifts", rhs.ncols(), shifts.len())?;
    let mut out = Array2::zeros(rhs.dim());
    let (mut most_jitter, mut most_condition) = (0.0f64, 1.0f64);
    let mut gram = Some(gram);
    let groups = groups(shifts);
    for (number, group) in groups.iter().enumerate() {
        let (low, high) = (shifts[group[0]], shifts[group[group.len() - 1]]);
        let centre = if low == high { low } else { (low * high).sqrt() };
        let mut matrix = gram.take().expect("given back after every group");
        matrix.add_to_diagonal(centre);
        let (factor, jitter, condition) = factorise_sums(matrix, rounding)?;
        (most_jitter, most_condition) = (most_jitter.max(jitter), most_condition.max(condition));
        let mut columns = Array2::zeros((rhs.nrows(), group.len()));
        for (to, &from) in group.iter().enumerate() {
            columns.column_mut(to).assign(&rhs.column(from));
        }
        let solved = if low == high {
            substitute(&factor, columns)?
        } else {
            let offsets: Vec<f64> = group.iter().map(|&i| shifts[i] - centre).collect();
            iterate(&factor, columns, &offsets)?
        };
        for (from, &to) in group.iter().enumerate() {
            out.column_mut(to).assign(&solved.column(from));
        }
        if number + 1 < groups.len() {
            let mut matrix = factor.into_matrix();
            matrix.add_to_diagonal(-centre - jitter);
            gram = Some(matrix);
        }
    }
    Ok((out, most_jitter, most_condition))
}

fn substitute(factor: &Cholesky<f64>, mut columns: Array2<f64>) -> Result<Array2<f64>> {
    let (rows, cols) = columns.dim();
    factor.solve_in_place(TileMut::new(columns.as_slice_mut().expect("standard layout"), rows, cols))?;
    Ok(columns)
}

/// `(M + σⱼI) xⱼ = bⱼ` from a factor of `M`.
fn iterate(factor: &Cholesky<f64>, rhs: Array2<f64>, offsets: &[f64]) -> Result<Array2<f64>> {
    let mut x = Array2::zeros(rhs.dim());
    let mut r = rhs;
    let mut z = substitute(factor, r.clone())?;
    // p and Mp, which follow the same recursion from z and Mz = r.
    let (mut p, mut mp) = (z.clone(), r.clone());
    let mut rho = dots(&r, &z);
    let floor: Vec<f64> = rho.iter().map(|v| TOLERANCE * TOLERANCE * v).collect();
    for _ in 0..MOST {
        let mut image = mp.clone();
        add_scaled(&mut image, offsets, &p);
        let curvature = dots(&p, &image);
        let steps: Vec<f64> = rho
            .iter()
            .zip(&curvature)
            .zip(&floor)
            .map(|((rho, curvature), floor)| if rho > floor && *curvature > 0.0 { rho / curvature } else { 0.0 })
            .collect();
        if steps.iter().all(|step| *step == 0.0) {
            break;
        }
        add_scaled(&mut x, &steps, &p);
        add_scaled(&mut r, &steps.iter().map(|step| -step).collect::<Vec<_>>(), &image);
        z = substitute(factor, r.clone())?;
        let next = dots(&r, &z);
        let turn: Vec<f64> =
            next.iter().zip(&rho).map(|(next, rho)| if *rho > 0.0 { next / rho } else { 0.0 }).collect();
        let turn = ndarray::aview1(&turn);
        for (to, from) in [(&mut p, &z), (&mut mp, &r)] {
            for (mut to, from) in to.rows_mut().into_iter().zip(from.rows()) {
                Zip::from(&mut to).and(&from).and(&turn).for_each(|to, from, turn| *to = from + turn * *to);
            }
        }
        rho = next;
    }
    Ok(x)
}

/// An output matrix found together with the regression.
#[derive(Debug, Clone)]
pub struct LearnedOutputs {
    /// The matrix, with as large a trace as the identity.
    pub outputs: OutputMatrix,
    /// Penalised loss after every step; it never grows.
    pub objectives: Vec<f64>,
}

/// Finds the output matrix by alternating minimisation of `|FC - Y|² + λ tr(C A⁻¹ Cᵀ)` over `C` and over `A` of trace
/// `p`, which is jointly convex: `A ∝ (CᵀC)^(1/2)` (Argyriou, Evgeniou and Pontil 2008, for the transposed problem).
///
/// All steps share one eigendecomposition of the Gram matrix; a step costs `O(Dp²)`.
///
/// # Errors
/// Nothing to fit, no steps, or a penalty that is not positive: without one every matrix is as good.
pub fn learn_outputs(mut moments: Moments<f64>, penalty: f64, intercept: bool, steps: usize) -> Result<LearnedOutputs> {
    crate::error::check_positive("penalty", penalty)?;
    check_count("steps", steps)?;
    check_moments(&moments)?;
    let means = centre(&mut moments, intercept)?;
    let size: f64 = moments.totals.target_squares.iter().sum();
    let Moments { gram, cross, .. } = moments;
    let p = cross.ncols();
    let path = Path::of(gram, cross, means)?;
    let sides = path.rotated();
    let mut outputs = OutputMatrix::identity(p)?;
    let mut objectives: Vec<f64> = Vec::new();
    for _ in 0..steps {
        crate::interrupt::check()?;
        let mut solved = sides.dot(&outputs.vectors().t());
        for (mut row, value) in solved.rows_mut().into_iter().zip(path.eigenvalues()) {
            for (entry, a) in row.iter_mut().zip(outputs.values()) {
                *entry = if *a > 0.0 { *entry / (value.max(0.0) + penalty / a) } else { 0.0 };
            }
        }
        let coefficients = solved.dot(&outputs.vectors());
        // At the best C for this A the loss is what the targets have less what the fit explains.
        let objective = size - (&coefficients * &sides).sum();
        if objectives.last().is_some_and(|last| last - objective <= 1e-9 * size) {
            objectives.push(objective);
            break;
        }
        objectives.push(objective);
        let square = coefficients.t().dot(&coefficients);
        outputs = OutputMatrix::new(square.view())?.balanced_root(1e-9)?;
    }
    Ok(LearnedOutputs { outputs, objectives })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::s;

    fn gram(n: usize, columns: usize) -> (Lower<f64>, Array2<f64>, Array2<f64>) {
        let entry = |i: usize, j: usize| ((i * 31 + j * 17 + i * j) as f64 * 0.7).sin();
        let f = Array2::from_shape_fn((2 * n, n), |(i, j)| entry(i, j) / (1.0 + j as f64));
        let square = f.t().dot(&f);
        let lower = Lower::from_square(square.as_standard_layout().as_slice().unwrap(), n).unwrap();
        (lower, square, Array2::from_shape_fn((n, columns), |(i, j)| entry(j + 3, i)))
    }

    #[test]
    fn shifts_near_each_other_and_far_apart_solve_their_own_systems() {
        let shifts = [1e-3, 1.1e-3, 4e-3, 0.2, 0.2, 900.0, 1e4, 3e-3];
        let (lower, square, rhs) = gram(40, shifts.len());
        assert_eq!(groups(&shifts).iter().map(Vec::len).collect::<Vec<_>>(), [4, 2, 2]);
        let (x, jitter, _) = shifted(lower, rhs.clone(), &shifts).unwrap();
        assert_eq!(jitter, 0.0);
        for (j, shift) in shifts.iter().enumerate() {
            let column = x.column(j).to_owned();
            let left = square.dot(&column) + *shift * &column - rhs.column(j);
            let size = rhs.column(j).dot(&rhs.column(j)).sqrt();
            assert!(left.dot(&left).sqrt() < 1e-11 * size, "{shift}: {}", left.dot(&left).sqrt() / size);
        }
    }

    #[test]
    fn a_shift_of_zero_stands_alone() {
        assert_eq!(groups(&[1.0, 0.0, 0.0, 1e-300]).len(), 3);
        assert!(groups(&[]).is_empty());
        let (lower, _, rhs) = gram(5, 0);
        assert_eq!(shifted(lower, rhs.slice(s![.., ..0]).to_owned(), &[]).unwrap().0.dim(), (5, 0));
    }
}

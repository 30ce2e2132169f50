//! Mean variances and biases over pairs from moments of the rows: one pass, no pair is looked at.
//!
//! Every statistic of the optimised allocation is a mean over pairs of powers of `E|w·x|²|w·y|²` (for variances), of
//! `E(w·x)²conj(w·y)²` (for pseudo-variances) or of `⟨x, y⟩ = E (w·x) conj(w·y)`, with random signs `w`. A power is a product over
//! independent `w`, and the mean over pairs of a product `f(x) conj f(y)` is the squared modulus of the mean of `f`: with the
//! products `∏|w·x|²`, `∏(w·x)²` and `∏ w·x` over some factors, summed over rows for a few hundred draws of the factors,
//! all means follow in time linear in the rows. The sums over `i ≠ j` take `Σ|f(xᵢ)|²` off, as U-statistics do.

use super::Input;
use super::optimized::PairMeans;
use super::pairwise::{Excess, Law, Question, SERIES_REACH, Scaled, Sums};
use crate::error::{Error, Result};
use crate::linalg::Tile;
use crate::linalg::hadamard::{fwht_lanes, rows_to_lanes};
use crate::linalg::vectors::{VectorKernel, Vectors};
use crate::parallel::Parallel;
use crate::random::{Role, Seed, Stream, fourth_root};
use crate::scalar::Real;
use crate::variance::{Kind, Weights};
use ndarray::ArrayView2;

/// Draws of the factors: each statistic is a mean over as many.
const DRAWS: usize = 128;
/// Rows whose sums are kept in the precision of the data.
const GROUP: usize = 512;
/// Statistics per degree: products of squares and their squares, of complex squares, of values and their squares.
const KINDS: usize = 7;
/// Label of the seed's child the factors are drawn from.
const FACTORS: u64 = 1 << 32;

type Lane<R> = [R; 8];

/// Signs of one factor in one round: a row of an Hadamard matrix of order `fold`, repeated along the row, times these.
struct Factor<R> {
    re: Vec<R>,
    im: Vec<R>,
    /// Which row meets which draw: with one order for all factors the draws would have much in common.
    order: Vec<u32>,
}

struct Factors<R> {
    /// `factors[round][degree]`.
    rounds: Vec<Vec<Factor<R>>>,
    fold: usize,
    complex: bool,
    /// Signs of a rotation that makes directions of signs look like normal ones.
    rotation: Option<Vec<R>>,
    most: usize,
}

impl<R: Real> Factors<R> {
    fn draw(dim: usize, law: Law, most: usize, seed: Seed) -> Self {
        let padded = dim.next_power_of_two();
        let fold = padded.min(DRAWS);
        let complex = law.weights != Weights::Real || law.kind == Kind::TensorSketch;
        let seed = seed.child(FACTORS);
        let sign = |draw: &mut Stream| {
            let root = fourth_root::<R>(draw.below(4));
            if complex { (root.re, root.im) } else { (root.re + root.im, R::ZERO) }
        };
        let rounds = (0..DRAWS / fold)
            .map(|round| {
                (0..most)
                    .map(|degree| {
                        let mut draw = Stream::new(seed, Role::Sign, (round * most + degree) as u64);
                        let (re, im) = (0..padded).map(|_| sign(&mut draw)).unzip();
                        Factor { re, im, order: draw.permutation(fold) }
                    })
                    .collect()
            })
            .collect();
        let rotation = (law.kind == Kind::Gaussian).then(|| {
            let mut draw = Stream::new(seed, Role::Direction, 0);
            let scale = 1.0 / (padded as f64).sqrt();
            (0..padded).map(|_| R::from_f64(if draw.below(2) == 0 { scale } else { -scale })).collect()
        });
        Factors { rounds, fold, complex, rotation, most }
    }
}

/// What one thread works in.
struct Scratch<R> {
    lanes: Vec<Lane<R>>,
    re: Vec<Lane<R>>,
    im: Vec<Lane<R>>,
    /// `∏|w·x|²`, `∏(w·x)²` and `∏ w·x` so far.
    squares: Vec<Lane<R>>,
    turned: [Vec<Lane<R>>; 2],
    values: [Vec<Lane<R>>; 2],
}

/// Adds the signed numbers of a folded row.
struct Fold<'a, R> {
    lanes: &'a [Lane<R>],
    signs: &'a [R],
    out: &'a mut [Lane<R>],
}

impl<R: Real> VectorKernel<R> for Fold<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, s: S) {
        let Fold { lanes, signs, out } = self;
        let (packs, fold) = (8 / R::WIDTH, out.len());
        out.fill([R::ZERO; 8]);
        let out = R::packs_mut(out.as_flattened_mut());
        for (lanes, signs) in lanes.chunks(fold).zip(signs.chunks(fold)) {
            let lanes = R::packs(lanes.as_flattened());
            for ((out, lane), &sign) in out.chunks_exact_mut(packs).zip(lanes.chunks_exact(packs)).zip(signs) {
                let sign = s.splat(sign);
                for (out, lane) in out.iter_mut().zip(lane) {
                    s.store(out, s.add(s.load(out), s.mul(s.load(lane), sign)));
                }
            }
        }
    }
}

/// Multiplies the products of a tile by one more factor, and adds them to the sums.
struct Step<'a, R, const COMPLEX: bool> {
    scratch: &'a mut Scratch<R>,
    order: &'a [u32],
    weights: Lane<R>,
    first: bool,
    /// The statistics of this degree, `KINDS` for each draw.
    sums: &'a mut [[Lane<R>; KINDS]],
}

impl<R: Real, const COMPLEX: bool> VectorKernel<R> for Step<'_, R, COMPLEX> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, s: S) {
        let Step { scratch, order, weights, first, sums } = self;
        let packs = 8 / R::WIDTH;
        let (one, zero) = (s.splat(R::ONE), s.splat(R::ZERO));
        let times = |a: S::V, b: S::V, p: S::V, q: S::V| match COMPLEX {
            true => (s.sub(s.mul(p, a), s.mul(q, b)), s.add(s.mul(p, b), s.mul(q, a))),
            false => (s.mul(p, a), zero),
        };
        let weights = R::packs(&weights);
        let (re, im) = (R::packs(scratch.re.as_flattened()), R::packs(scratch.im.as_flattened()));
        let squares = R::packs_mut(scratch.squares.as_flattened_mut());
        let [ps, qs] = scratch.turned.each_mut().map(|part| R::packs_mut(part.as_flattened_mut()));
        let [us, vs] = scratch.values.each_mut().map(|part| R::packs_mut(part.as_flattened_mut()));
        for (k, (sums, &from)) in sums.iter_mut().zip(order).enumerate() {
            let sums = R::packs_mut(sums.as_flattened_mut());
            for half in 0..packs {
                let (to, from, w) = (k * packs + half, from as usize * packs + half, s.load(&weights[half]));
                let before = |products: &[R::Pack], start| if first { start } else { s.load(&products[to]) };
                let a = s.load(&re[from]);
                let b = if COMPLEX { s.load(&im[from]) } else { zero };
                let (aa, bb, ab) = (s.mul(a, a), s.mul(b, b), s.mul(a, b));
                let square = s.mul(before(squares, one), s.add(aa, bb));
                let (p, q) = times(s.sub(aa, bb), s.add(ab, ab), before(ps, one), before(qs, zero));
                let (u, v) = times(a, b, before(us, one), before(vs, zero));
                for (products, value) in [(&mut *squares, square), (ps, p), (qs, q), (us, u), (vs, v)] {
                    s.store(&mut products[to], value);
                }
                let weighted = s.mul(w, square);
                let parts = [
                    weighted,
                    s.mul(weighted, weighted),
                    s.mul(w, p),
                    s.mul(w, q),
                    s.mul(w, u),
                    s.mul(w, v),
                    s.mul(w, weighted),
                ];
                for (kind, part) in parts.into_iter().enumerate() {
                    let sum = &mut sums[kind * packs + half];
                    s.store(sum, s.add(s.load(sum), part));
                }
            }
        }
    }
}

impl<R: Real> Factors<R> {
    /// Sums over a group of rows: `KINDS` statistics for each draw of each degree.
    fn sums<T: Real>(&self, rows: ArrayView2<'_, T>, first: usize, input: &Input, scaled: &Scaled) -> Vec<f64> {
        let (dim, padded) = (rows.ncols(), rows.ncols().next_power_of_two());
        let lanes = |len: usize| vec![[R::ZERO; 8]; len];
        let fold = self.fold;
        let mut scratch = Scratch {
            lanes: lanes(padded),
            re: lanes(fold),
            im: lanes(fold),
            squares: lanes(fold),
            turned: [lanes(fold), lanes(fold)],
            values: [lanes(fold), lanes(fold)],
        };
        let mut sums = vec![[[R::ZERO; 8]; KINDS]; self.rounds.len() * self.most * fold];
        let (mut buffer, mut tile) = (vec![0.0; dim], vec![R::ZERO; 8 * dim]);
        for start in (0..rows.nrows()).step_by(8) {
            let count = 8.min(rows.nrows() - start);
            let mut weights = [R::ZERO; 8];
            for i in 0..count {
                let out = &mut tile[i * dim..][..dim];
                weights[i] = R::from_f64(scaled.weight(input, first + start + i));
                if weights[i] > R::ZERO {
                    scaled.write(input, rows.row(start + i), &mut buffer, out);
                } else {
                    out.fill(R::ZERO);
                }
            }
            rows_to_lanes(Tile::new(&tile, count, dim), &mut scratch.lanes);
            if let Some(rotation) = &self.rotation {
                for (lane, sign) in scratch.lanes.iter_mut().zip(rotation) {
                    lane.iter_mut().for_each(|v| *v *= *sign);
                }
                fwht_lanes(&mut scratch.lanes);
            }
            for (round, sums) in self.rounds.iter().zip(sums.chunks_exact_mut(self.most * fold)) {
                for (degree, (factor, sums)) in round.iter().zip(sums.chunks_exact_mut(fold)).enumerate() {
                    R::dispatch(Fold { lanes: &scratch.lanes, signs: &factor.re, out: &mut scratch.re });
                    fwht_lanes(&mut scratch.re);
                    if self.complex {
                        R::dispatch(Fold { lanes: &scratch.lanes, signs: &factor.im, out: &mut scratch.im });
                        fwht_lanes(&mut scratch.im);
                    }
                    let (first, order, scratch) = (degree == 0, &factor.order, &mut scratch);
                    if self.complex {
                        R::dispatch(Step::<_, true> { scratch, order, weights, first, sums });
                    } else {
                        R::dispatch(Step::<_, false> { scratch, order, weights, first, sums });
                    }
                }
            }
        }
        sums.iter().flatten().map(|lane| lane.iter().map(|&v| Real::to_f64(v)).sum()).collect()
    }
}

/// A mean over draws, with its standard error.
#[derive(Clone, Copy)]
struct Estimate {
    mean: f64,
    error: f64,
}

fn estimate(values: impl Iterator<Item = f64> + Clone) -> Estimate {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let spread = values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    Estimate { mean, error: (spread / n).sqrt() }
}

/// Statistics of pairs from one pass over the rows; as [`pairwise::pair_means`](super::pairwise::pair_means).
pub(super) fn pair_means<T: Real>(rows: ArrayView2<'_, T>, question: Question<'_>, seed: Seed) -> Result<PairMeans> {
    // Rows of the Gaussian kernel beyond the reach of the series have lost their features whatever the allocation is.
    let scaled = Scaled::new(rows, question, SERIES_REACH)?;
    if !scaled.complete {
        return Err(Error::Unsupported {
            what: "statistics \"one_pass\"",
            reason: format!(
                "rows are up to {:.1} length scales long, where moments say little about the kernel (6 at most); use \"pairwise\"",
                scaled.lengths_sq.iter().fold(0.0f64, |a, &b| a.max(b)).sqrt()
            ),
        });
    }
    let sums = if scaled.small() {
        totals::<T, f32>(rows, &scaled, question, seed)
    } else {
        totals::<T, f64>(rows, &scaled, question, seed)
    };
    let found = Moments::new(&sums, &scaled, question, rows.ncols());
    Ok(scaled.means(&found.statistics(&scaled, question, rows.ncols()), question, rows.ncols(), 1.0))
}

/// `KINDS` sums for each draw of each degree of each round.
fn totals<T: Real, R: Real>(
    rows: ArrayView2<'_, T>,
    scaled: &Scaled,
    Question { input, law, most, .. }: Question<'_>,
    seed: Seed,
) -> Vec<f64> {
    let factors = Factors::<R>::draw(rows.ncols(), law, most, seed);
    let parts = (0..rows.nrows()).step_by(GROUP).in_parallel().map(|start| {
        let group = rows.slice(ndarray::s![start..(start + GROUP).min(rows.nrows()), ..]);
        factors.sums(group, start, input, scaled)
    });
    let mut total = vec![0.0; parts[0].len()];
    parts.iter().for_each(|part| total.iter_mut().zip(part).for_each(|(t, p)| *t += p));
    total
}

/// Means over pairs of powers, by degree from 0 on.
struct Moments {
    /// `E|w·x|²|w·y|²` to the power `n`.
    squares: Vec<f64>,
    /// `E(w·x)²conj(w·y)²` to the power `n`.
    turned: Vec<f64>,
    /// `⟨x, y⟩²ᵏ`.
    even: Vec<f64>,
    /// `⟨x, y⟩²ᵏ⁺¹`.
    odd: Vec<f64>,
}

impl Moments {
    fn new(sums: &[f64], scaled: &Scaled, question: Question<'_>, dim: usize) -> Self {
        let Question { input, law, most, .. } = question;
        let m = scaled.lengths_sq.len();
        let pairs = m as f64 * (m as f64 - 1.0);
        let weights = || (0..m).map(|i| scaled.weight(input, i));
        let (sum, sum_sq) = (weights().sum::<f64>(), weights().map(|w| w * w).sum::<f64>());
        let constant = (sum * sum - sum_sq) / pairs;
        let fold = dim.next_power_of_two().min(DRAWS);
        // Statistic `kinds` of degree n (from 1) of every draw.
        let draws = |n: usize| {
            let rounds = sums.chunks_exact(most * fold * KINDS);
            rounds.flat_map(move |round| round[(n - 1) * fold * KINDS..][..fold * KINDS].chunks_exact(KINDS))
        };
        let value = |l: usize| estimate(draws(l).map(|s| (s[4] * s[4] + s[5] * s[5] - s[6]) / pairs));
        let (even, odd) = clean(constant, most, scaled.ln_terms.len().max(most + 2), value);
        let mut squares = vec![constant];
        let mut turned = vec![constant];
        for n in 1..=most {
            // Means of powers of a number between 0 and 3, for unit rows: log-convex.
            let found = estimate(draws(n).map(|s| (s[0] * s[0] - s[1]) / pairs)).mean;
            let last = squares[n - 1];
            let least = if n > 1 && squares[n - 2] > 0.0 { last * (last / squares[n - 2]) } else { 0.0 };
            squares.push(found.clamp(least.min(3.0 * last), 3.0 * last));
            let found = estimate(draws(n).map(|s| (s[2] * s[2] + s[3] * s[3] - s[1]) / pairs));
            let stands_out = found.mean.abs() > 2.0 * found.error;
            turned.push(if stands_out { found.mean.clamp(-squares[n], squares[n]) } else { even[n] });
        }
        let mut moments = Moments { squares, turned, even, odd };
        if law.kind == Kind::Gaussian {
            moments.as_normal(law.weights, dim);
        }
        moments
    }

    /// Signs after a rotation, as normal directions: after a rotation `S` is near `(N + 2t)/(d'+2)`, which signs lack and
    /// normals have.
    fn as_normal(&mut self, weights: Weights, dim: usize) {
        let padded = dim.next_power_of_two() as f64;
        let lacking = if weights == Weights::Real { padded / (padded + 2.0) } else { 1.0 - 1.0 / (padded + 2.0) };
        for (n, square) in self.squares.iter_mut().enumerate() {
            *square /= lacking.powi(n as i32);
        }
        for (n, turned) in self.turned.iter_mut().enumerate() {
            *turned = 2f64.powi(n as i32) * self.even[n.min(self.even.len() - 1)];
        }
    }

    /// Sums over pairs, as means.
    fn statistics(&self, scaled: &Scaled, Question { law, most, .. }: Question<'_>, dim: usize) -> Sums {
        let (first, second, factor) = law.excesses();
        let block = law.block(dim);
        let mut sums = Sums::new(most);
        let power = |which: Excess, n: usize| match which {
            Excess::Off | Excess::Dot => self.turned[n],
            _ => self.squares[n],
        };
        let constant = self.squares[0].max(f64::MIN_POSITIVE);
        for n in 1..=most {
            let excesses = || std::iter::once(first).chain(second);
            let one_dimension = dim == 1 && law.kind != Kind::Gaussian;
            if !one_dimension {
                let sum: f64 = excesses().map(|which| power(which, n) - self.even[n]).sum();
                sums.variance[n - 1] = (factor * sum).max(0.0);
            }
            if block > 1 {
                // (t − e/(d'−1))ⁿ − tⁿ with the mean of e, which is nearly the same for all pairs.
                let covariance = |which: Excess| -> f64 {
                    let delta = (power(which, 1) - self.even[1]) / constant / (block as f64 - 1.0);
                    let mut binomial = 1.0;
                    (1..=n)
                        .map(|k| {
                            binomial *= (n + 1 - k) as f64 / k as f64;
                            binomial * (-delta).powi(k as i32) * self.even[n - k]
                        })
                        .sum()
                };
                sums.covariance[n - 1] = factor * excesses().map(covariance).sum::<f64>();
            }
        }
        let terms: Vec<f64> = scaled.ln_terms.iter().map(|&ln| libm::exp(ln)).collect();
        let moment = |l: usize| if l.is_multiple_of(2) { self.even[l / 2] } else { self.odd[l / 2] };
        for p in 0..=most {
            let tail = p + 1..terms.len();
            let sum: f64 =
                tail.clone().map(|n| tail.clone().map(|k| terms[n] * terms[k] * moment(n + k)).sum::<f64>()).sum();
            let last = if p > 0 { sums.bias[p - 1] } else { f64::INFINITY };
            sums.bias[p] = sum.clamp(0.0, last);
        }
        sums
    }
}

/// Moments `m_l` of inner products from their estimates: those that stand out from their errors, made consistent
/// (`m₂ₖ` is log-convex, `|m₂ₖ₊₁|² ≤ m₂ₖ m₂ₖ₊₂`, all below `m₀` for rows of length 1), and continued from there on as
/// for a normal law.
fn clean(constant: f64, known: usize, most: usize, value: impl Fn(usize) -> Estimate) -> (Vec<f64>, Vec<f64>) {
    let mut even = vec![constant];
    let mut reliable = true;
    for k in 1..=most {
        let last = even[k - 1];
        let ratio = if k > 1 && even[k - 2] > 0.0 { last / even[k - 2] } else { 0.0 };
        let continued = last * (ratio * (2 * k - 1) as f64 / (2 * k).saturating_sub(3).max(1) as f64).min(1.0);
        let found = if 2 * k <= known { Some(value(2 * k)) } else { None };
        let found = found.filter(|found| reliable && found.mean > 2.0 * found.error);
        reliable &= found.is_some();
        even.push(match found {
            Some(found) => found.mean.clamp((last * ratio).min(last), last),
            None => continued,
        });
    }
    let mut share = 0.0;
    let odd = (0..most)
        .map(|k| {
            let bound = (even[k] * even[k + 1]).sqrt();
            if 2 * k < known {
                let found = value(2 * k + 1);
                if found.mean.abs() > 2.0 * found.error && bound > 0.0 {
                    share = (found.mean / bound).clamp(-1.0, 1.0);
                } else {
                    share = 0.0;
                }
            }
            share * bound
        })
        .collect();
    (even, odd)
}

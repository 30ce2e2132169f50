//! Every sampler against its distribution. A test fails by chance with probability below `ALPHA`; seeds are fixed.

use super::*;
use crate::linalg::TileMut;
use crate::scalar::Real;

const ALPHA: f64 = 1e-6;

fn stream(index: u64) -> Stream {
    Stream::new(Seed::new(2024), Role::Noise, index)
}

fn normals(seed: u64, role: Role, index: u64, count: usize) -> Vec<f64> {
    let mut out = vec![0.0; count];
    Stream::new(Seed::new(seed), role, index).normals_from(0, &mut out);
    out
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Two-sided normal quantile at `ALPHA` for the largest of `comparisons` z-scores, by bisection.
fn z_bound(comparisons: usize) -> f64 {
    let tail = ALPHA / (2.0 * comparisons as f64);
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let mid = 0.5 * (low + high);
        if normal_cdf(-mid) > tail { low = mid } else { high = mid }
    }
    high
}

/// Regularised lower incomplete gamma function, by its power series (every term positive).
fn gamma_cdf(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut term = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape + 1.0));
    let (mut sum, mut n) = (term, 0.0);
    while term > 1e-18 * sum {
        n += 1.0;
        term *= x / (shape + n);
        sum += term;
    }
    sum.min(1.0)
}

/// Kolmogorov–Smirnov: the Dvoretzky–Kiefer–Wolfowitz inequality with Massart's constant bounds the distance for every n.
fn assert_distributed(what: &str, mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample.iter().enumerate().fold(0.0f64, |worst, (i, &x)| {
        let p = cdf(x);
        worst.max(p - i as f64 / n).max((i + 1) as f64 / n - p)
    });
    let bound = ((2.0 / ALPHA).ln() / (2.0 * n)).sqrt();
    assert!(distance <= bound, "{what}: distance {distance:.2e} exceeds {bound:.2e}");
}

/// Pearson's chi-square test; expected counts are large enough for its limit law.
fn assert_cells(what: &str, counts: &[u64], probability: impl Fn(usize) -> f64) {
    let total: u64 = counts.iter().sum();
    let statistic: f64 = counts
        .iter()
        .enumerate()
        .map(|(i, &c)| {
            let expected = total as f64 * probability(i);
            assert!(expected > 200.0, "{what}: too few draws for the limit law");
            (c as f64 - expected).powi(2) / expected
        })
        .sum();
    let tail = 1.0 - gamma_cdf((counts.len() - 1) as f64 / 2.0, statistic / 2.0);
    assert!(tail > ALPHA, "{what}: chi-square {statistic:.1} has tail {tail:.1e}");
}

fn ulps(a: f64, b: f64) -> u64 {
    if a == b { 0 } else { a.to_bits().abs_diff(b.to_bits()) }
}

/// Words that end a quarter or an eighth of a turn, a binade, a range; and many others.
fn words() -> Vec<u64> {
    let mut words = vec![0, u64::MAX, 1 << 11, (1 << 11) - 1];
    for bit in 11..64 {
        for around in [-2i64, -1, 0, 1, 2] {
            words.push((1u64 << bit).wrapping_add_signed(around << 11));
            words.push((1u64 << bit).wrapping_neg().wrapping_add_signed(around << 11));
        }
    }
    for eighth in 0..8u64 {
        words.extend((-40i64..40).map(|step| (eighth << 61).wrapping_add_signed(step << 11)));
    }
    let from = words.len();
    words.resize(from + 300_000, 0);
    stream(0).words_from(0, &mut words[from..]);
    words
}

#[test]
fn logarithms_agree_with_libm_to_the_last_place() {
    for w in words() {
        let found = normal::minus_log(w as u32, (w >> 32) as u32);
        let u = ((w >> 11) + 1) as f64 * (0.5f64).powi(53);
        let expected = -libm::log(u);
        // Either is within 1 ulp of the truth.
        assert!(ulps(found, expected) <= 2, "-ln {u:e}: {found:e} instead of {expected:e}");
    }
}

#[test]
fn cosines_and_sines_agree_with_libm_to_the_last_place() {
    for w in words() {
        let (cos, sin) = normal::turn(w as u32, (w >> 32) as u32);
        // Exact reduction to an eighth of a turn. Ours is within 2 ulp of the truth; libm is within 1 ulp of the value at
        // an angle with a relative error of two roundings, which costs a sine 2 ulp and a cosine less than 1.
        let steps = (w >> 11) as i64;
        let quarter = (steps + (1 << 50)) >> 51;
        let rest = (steps - (quarter << 51)) as f64 * (0.5f64).powi(53) * std::f64::consts::TAU;
        let (s, c) = libm::sincos(rest);
        let (c, s) = [(c, s), (-s, c), (-c, -s), (s, -c)][(quarter & 3) as usize];
        assert!(ulps(cos, c) <= 5, "cosine of word {w:#x}: {cos:e} instead of {c:e}");
        assert!(ulps(sin, s) <= 5, "sine of word {w:#x}: {sin:e} instead of {s:e}");
    }
}

#[test]
fn logarithms_cosines_and_sines_are_those_of_mpmath() {
    let all: serde_json::Value = serde_json::from_str(include_str!("../../tests/suite/golden/draws.json")).unwrap();
    for row in all["functions"].as_array().unwrap() {
        let w = row["word"].as_u64().unwrap();
        let (cos, sin) = normal::turn(w as u32, (w >> 32) as u32);
        let found = [("minus_log", normal::minus_log(w as u32, (w >> 32) as u32), 1), ("cos", cos, 2), ("sin", sin, 2)];
        for (name, value, bound) in found {
            let expected: f64 = row[name].as_str().unwrap().parse().unwrap();
            assert!(ulps(value, expected) <= bound, "{name} of word {w:#x}: {value:e} instead of {expected:e}");
        }
    }
}

#[test]
fn quarter_turns_are_exact() {
    let expected = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
    for (quarter, (cos, sin)) in expected.into_iter().enumerate() {
        let found = normal::turn(0x7ff, (quarter as u32) << 30);
        assert_eq!(found, (cos, sin));
    }
    assert_eq!(normal::minus_log(u32::MAX, u32::MAX), 0.0);
}

#[test]
fn vector_and_plain_code_give_the_same_bits() {
    fn check<R: Real>() {
        let (rows, cols, stride) = (5, 203, 210);
        let (mut dispatched, mut plain) = (vec![R::ZERO; rows * stride], vec![R::ZERO; rows * stride]);
        fill_normals(Seed::new(3), Role::Radius, 8, 21, TileMut::with_stride(&mut dispatched, rows, cols, stride));
        let key = [3, 0, Role::Radius as u32, 0, 0, 0, 0, 0];
        normal::fill_inline(&key, 8, 21, TileMut::with_stride(&mut plain, rows, cols, stride));
        assert!(dispatched.iter().zip(&plain).all(|(a, b)| Real::to_f64(*a).to_bits() == Real::to_f64(*b).to_bits()));
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn random_access_equals_sequential_reading() {
    let all = normals(11, Role::Direction, 4, 700);
    let stream = Stream::new(Seed::new(11), Role::Direction, 4);
    for first in [0, 1, 7, 8, 9, 63, 64, 65, 130] {
        for len in [0, 1, 2, 7, 8, 9, 63, 64, 65, 72, 128, 200, 513] {
            let mut part = vec![f64::NAN; len];
            stream.normals_from(first, &mut part);
            assert_eq!(part, all[first..first + len], "from {first}, {len} of them");
        }
    }
    let mut sequential = stream.clone();
    let words: Vec<u64> = (0..300).map(|_| sequential.next_u64()).collect();
    for (first, len) in [(0, 300), (1, 1), (63, 2), (64, 64), (65, 200), (290, 0)] {
        let mut part = vec![0; len];
        stream.words_from(first as u64, &mut part);
        assert_eq!(part, words[first..first + len]);
    }
}

#[test]
fn far_positions_and_indices_are_reached_directly() {
    let far = Stream::new(Seed::new(1), Role::Direction, u64::MAX);
    let (mut a, mut b) = ([0.0f64; 3], [0.0f64; 2]);
    far.normals_from(usize::MAX - 10, &mut a);
    far.normals_from(usize::MAX - 9, &mut b);
    assert_eq!(a[1..], b);
    assert!(a.iter().all(|v| v.is_finite() && *v != 0.0));
}

#[test]
fn tiles_hold_the_streams_row_by_row() {
    for (rows, cols, first) in
        [(1, 1, 0), (3, 5, 0), (9, 8, 8), (7, 20, 3), (4, 64, 0), (3, 130, 13), (2, 700, 6), (2, 0, 1)]
    {
        let mut tile = vec![f32::NAN; rows * cols];
        fill_normals(Seed::new(5), Role::Direction, 100, first, TileMut::new(&mut tile, rows, cols));
        for i in 0..rows {
            let mut row = vec![f32::NAN; cols];
            Stream::new(Seed::new(5), Role::Direction, 100 + i as u64).normals_from(first as usize, &mut row);
            assert_eq!(tile[i * cols..][..cols], row, "row {i} of {rows} x {cols} from {first}");
        }
    }
}

#[test]
fn single_precision_is_double_precision_rounded_once() {
    let double = normals(9, Role::Direction, 0, 1000);
    let mut single = vec![0.0f32; 1000];
    Stream::new(Seed::new(9), Role::Direction, 0).normals_from(0, &mut single);
    assert!(double.iter().zip(&single).all(|(d, s)| *d as f32 == *s));
}

#[test]
fn normals_have_the_moments_of_the_normal_distribution() {
    let n = 4_000_000;
    let sample = normals(1, Role::Direction, 0, n);
    // E z^k for k = 1..=6 and its standard error from E z^2k.
    let moments = [0.0, 1.0, 0.0, 3.0, 0.0, 15.0, 0.0, 105.0, 0.0, 945.0, 0.0, 10395.0];
    for k in 1..=6 {
        let mean = sample.iter().map(|z| z.powi(k)).sum::<f64>() / n as f64;
        let (expected, second) = (moments[k as usize - 1], moments[2 * k as usize - 1]);
        let error = ((second - expected * expected) / n as f64).sqrt();
        assert!((mean - expected).abs() <= z_bound(6) * error, "moment {k}: {mean} instead of {expected}");
    }
}

#[test]
fn normals_follow_the_normal_distribution() {
    assert_distributed("one long stream", normals(2, Role::Direction, 0, 1 << 20), normal_cdf);
    let mut tile = vec![0.0; 1 << 20];
    fill_normals(Seed::new(3), Role::Noise, 0, 0, TileMut::new(&mut tile, 1 << 17, 8));
    assert_distributed("the first block of many streams", tile, normal_cdf);
}

#[test]
fn normal_tails_hold_their_share() {
    let n = 10_000_000;
    let mut sample = vec![0.0f32; n];
    Stream::new(Seed::new(4), Role::Direction, 0).normals_from(0, &mut sample);
    for threshold in [2.0f32, 3.0, 4.0, 4.5] {
        for side in [1.0f32, -1.0] {
            let count = sample.iter().filter(|&&z| side * z > threshold).count() as f64;
            let expected = n as f64 * normal_cdf(-f64::from(threshold));
            // Bernstein's bound for a sum of indicators: exact for every count.
            let t = (2.0 * 8.0 / ALPHA).ln();
            let bound = (2.0 * expected * t).sqrt() + 2.0 * t / 3.0;
            assert!((count - expected).abs() <= bound, "beyond {side} * {threshold}: {count} instead of {expected}");
        }
    }
    assert!(sample.iter().all(|z| z.abs() < 8.58));
}

#[test]
fn streams_roles_seeds_and_positions_are_uncorrelated() {
    let n = 500_000;
    let base = normals(1, Role::Direction, 0, n + 8);
    let others = [
        normals(1, Role::Direction, 1, n),
        normals(1, Role::Direction, 1 << 32, n),
        normals(1, Role::Radius, 0, n),
        normals(2, Role::Direction, 0, n),
        normals(1 << 32, Role::Direction, 0, n),
        normals(Seed::new(1).child(0).number(), Role::Direction, 0, n),
        base[1..=n].to_vec(),
        // Normals 4 apart share a radius: only a true Box–Muller pair leaves their squares uncorrelated.
        base[4..][..n].to_vec(),
        base[8..][..n].to_vec(),
    ];
    let bound = z_bound(2 * others.len()) / (n as f64).sqrt();
    for (i, other) in others.iter().enumerate() {
        let linear = base.iter().zip(other).map(|(a, b)| a * b).sum::<f64>() / n as f64;
        let square = base.iter().zip(other).map(|(a, b)| (a * a - 1.0) * (b * b - 1.0) / 2.0).sum::<f64>() / n as f64;
        assert!(linear.abs() <= bound, "pair {i}: correlation {linear}");
        assert!(square.abs() <= bound, "pair {i}: correlation of squares {square}");
    }
}

#[test]
fn one_normal_at_a_time_follows_the_normal_distribution() {
    let mut stream = stream(1);
    assert_distributed("normal", (0..200_000).map(|_| stream.normal()).collect(), normal_cdf);
}

#[test]
fn uniform_numbers_follow_the_uniform_distribution() {
    let mut stream = stream(2);
    let sample: Vec<f64> = (0..1_000_000).map(|_| stream.uniform()).collect();
    assert!(sample.iter().all(|u| (0.0..1.0).contains(u)));
    assert_distributed("uniform", sample, |x| x);
}

#[test]
fn exponential_numbers_follow_their_distribution() {
    let mut stream = stream(3);
    assert_distributed("exponential", (0..500_000).map(|_| stream.exponential()).collect(), |x| -libm::expm1(-x));
}

#[test]
fn cauchy_numbers_follow_their_distribution() {
    let mut stream = stream(4);
    let sample: Vec<f64> = (0..500_000).map(|_| stream.cauchy()).collect();
    assert!(sample.iter().all(|x| x.is_finite()));
    assert_distributed("cauchy", sample, |x| 0.5 + libm::atan(x) / std::f64::consts::PI);
}

#[test]
fn gamma_numbers_follow_their_distribution_for_small_and_large_shapes() {
    for (i, shape) in [0.05, 0.5, 0.99, 1.0, 1.5, 7.25, 400.0].into_iter().enumerate() {
        let mut stream = stream(100 + i as u64);
        let sample = (0..100_000).map(|_| stream.gamma(shape)).collect();
        assert_distributed(&format!("gamma({shape})"), sample, |x| gamma_cdf(shape, x));
    }
}

#[test]
fn chi_numbers_follow_their_distributions() {
    for (i, df) in [0.5, 1.0, 3.0, 64.0].into_iter().enumerate() {
        let mut stream = stream(200 + i as u64);
        let sample = (0..100_000).map(|_| stream.chi_square(df)).collect();
        assert_distributed(&format!("chi_square({df})"), sample, |x| gamma_cdf(df / 2.0, x / 2.0));
        let sample = (0..100_000).map(|_| stream.chi(df)).collect();
        assert_distributed(&format!("chi({df})"), sample, |x| gamma_cdf(df / 2.0, x * x / 2.0));
    }
}

#[test]
fn numbers_below_a_bound_are_equally_likely() {
    for (i, bound) in [1usize, 2, 3, 7, 10, 1000].into_iter().enumerate() {
        let mut stream = stream(300 + i as u64);
        let mut counts = vec![0; bound];
        for _ in 0..400_000 {
            counts[stream.below(bound as u64) as usize] += 1;
        }
        if bound > 1 {
            assert_cells(&format!("below({bound})"), &counts, |_| 1.0 / bound as f64);
        }
    }
    // Three quarters of the range: taking remainders instead would make the lowest third twice as likely as the rest.
    let (mut stream, bound) = (stream(310), 3u64 << 62);
    let mut counts = [0; 3];
    for _ in 0..100_000 {
        counts[(stream.below(bound) >> 62) as usize] += 1;
    }
    assert_cells("below(3 * 2^62)", &counts, |_| 1.0 / 3.0);
}

#[test]
fn all_orders_of_four_are_equally_likely() {
    let mut stream = stream(5);
    let mut counts = [0; 256];
    for _ in 0..240_000 {
        let order = stream.permutation(4);
        counts[order.iter().fold(0, |code, &i| 4 * code + i as usize)] += 1;
    }
    let cells: Vec<u64> = counts.into_iter().filter(|&c| c > 0).collect();
    assert_eq!(cells.len(), 24);
    assert_cells("permutations of 4", &cells, |_| 1.0 / 24.0);
}

#[test]
fn permutations_contain_every_index_once() {
    let mut order = stream(6).permutation(1000);
    assert_ne!(order[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    order.sort_unstable();
    assert!(order.iter().enumerate().all(|(i, &o)| i == o as usize));
    assert!(stream(6).permutation(0).is_empty());
}

#[test]
fn ordered_choices_without_replacement_are_equally_likely() {
    let mut stream = stream(7);
    let mut counts = [0; 25];
    for _ in 0..200_000 {
        let pair = stream.distinct(5, 2);
        counts[(5 * pair[0] + pair[1]) as usize] += 1;
    }
    let cells: Vec<u64> = counts.into_iter().filter(|&c| c > 0).collect();
    assert_eq!(cells.len(), 20);
    assert_cells("two of five", &cells, |_| 0.05);
}

#[test]
fn choices_from_huge_ranges_are_distinct_and_spread() {
    let n = u64::MAX - 5;
    let chosen = stream(8).distinct(n, 50_000);
    let mut sorted = chosen.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), chosen.len());
    assert_distributed("distinct", chosen.iter().map(|&c| c as f64 / n as f64).collect(), |x| x);
    let mut all = stream(8).distinct(100, 100);
    all.sort_unstable();
    assert!(all.iter().enumerate().all(|(i, &a)| i as u64 == a));
    assert!(stream(8).distinct(0, 0).is_empty());
}

#[test]
fn signs_and_fourth_roots_are_fair() {
    let mut words = vec![0; 20_000];
    stream(9).fill_sign_bits(&mut words);
    let set: f64 = words.iter().map(|w| f64::from(w.count_ones())).sum();
    let n = 64.0 * words.len() as f64;
    assert!((set - n / 2.0).abs() <= z_bound(1) * (n / 4.0).sqrt());
    let mut by_bit = [0u64; 64];
    for w in &words {
        (0..64).for_each(|b| by_bit[b] += w >> b & 1);
    }
    assert_cells("positions of minus signs", &by_bit, |_| 1.0 / 64.0);

    stream(10).fill_fourth_roots(&mut words);
    let mut counts = [0; 4];
    for w in &words {
        (0..32).for_each(|c| counts[(w >> (2 * c) & 3) as usize] += 1);
    }
    assert_cells("fourth roots", &counts, |_| 0.25);
}

#[test]
fn codes_of_fourth_roots_are_powers_of_i() {
    let mut power = num_complex::Complex::new(1.0f64, 0.0);
    for code in 0..8 {
        assert_eq!(fourth_root::<f64>(code), power);
        power *= num_complex::Complex::i();
    }
}

#[test]
fn children_of_a_seed_are_all_different() {
    let mut seeds: Vec<u64> = (0..1_000_000).map(|label| Seed::new(42).child(label).number()).collect();
    for parent in 0..1000 {
        seeds.extend((0..100).map(|label| Seed::new(parent).child(label).number()));
    }
    seeds.extend(0..1000);
    // Parent 42 was already asked for its first hundred children.
    let expected = seeds.len() - 100;
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), expected);
}

//! Against mpmath 1.4 with 40 digits (`tools/golden/special.py`).

use super::statistics::{chi_square_interval, gamma_p, gamma_q, normal_cdf};
use super::*;

/// The lines of `golden.tsv` with this name.
fn golden<const N: usize>(name: &str) -> Vec<[f64; N]> {
    let lines = include_str!("golden.tsv").lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
    let rows: Vec<[f64; N]> = lines
        .map(|line| line.split('\t').map(|v| v.parse().unwrap()).collect::<Vec<f64>>().try_into().unwrap())
        .collect();
    assert!(!rows.is_empty(), "no values of {name}");
    rows
}

fn close(what: &str, found: f64, exact: f64, tolerance: f64) {
    assert!((found - exact).abs() <= tolerance * exact.abs(), "{what}: {found} instead of {exact}");
}

#[test]
fn matern_functions_have_thirteen_digits_for_every_order() {
    for [nu, z, exact] in golden("matern") {
        close(&format!("matern({nu}, {z})"), matern(nu, z), exact, 1e-13 + 5e-16 * z);
    }
    assert_eq!(matern(0.3, 0.0), 1.0);
    assert_eq!(matern(2.2, f64::INFINITY), 0.0);
    assert_eq!(matern(1.5, f64::INFINITY), 0.0);
    assert!((matern(0.01, 1e-300) - 1.0).abs() < 1.0);
}

#[test]
fn half_integers_meet_the_integral() {
    for n in 0..=20 {
        let nu = f64::from(n) + 0.5;
        for z in [1e-6, 0.4, 5.0, 80.0, 700.0] {
            close("half-integer", matern(nu, z), matern(nu + 1e-13, z), 5e-12);
        }
    }
}

#[test]
fn isotropic_functions_are_exact_in_every_dimension() {
    for [d, x, exact] in golden("isotropic") {
        let found = Isotropic::new(d as usize, 100.0).value(x);
        // Sixty-four terms, and phases x·u that carry half an ulp each; their errors average out over more than fifty nodes.
        assert!((found - exact).abs() < 2e-15 + 5e-17 * x, "dimension {d}, argument {x}: {found} instead of {exact}");
    }
    assert_eq!(Isotropic::new(1, 1.0).value(0.7), libm::cos(0.7));
    let far = Isotropic::new(3, 2000.0);
    for x in [150.0, 777.7, 2000.0] {
        assert!((far.value(x) - libm::sin(x) / x).abs() < 1e-14);
    }
}

#[test]
fn binomial_square_sums_have_thirteen_digits_up_to_one() {
    for [a, z, exact] in golden("binomial_square_sum") {
        close(&format!("F_{a}({z})"), binomial_square_sum(a, z), exact, 1e-13);
    }
}

#[test]
fn tables_agree_with_what_they_tabulate_to_twelve_digits() {
    for a in [0.005, 0.25, 0.5, 0.85, 1.5, 5.65] {
        let table = Table::new(0.0, 0.5, 74);
        for i in 0..=400 {
            let z = 1.0 - (1.0 - f64::from(i) / 400.0).powi(3);
            let found = table.value(-libm::log1p(-z), |u| binomial_square_sum(a, -libm::expm1(-u)));
            close("table of binomial sums", found, binomial_square_sum(a, z), 1e-12);
        }
    }
    for (a, b) in [(0.5, 1.0), (1.5, 4.0), (391.5, 392.0), (32.0, 392.0), (15000.0, 30000.0)] {
        let table = Table::new(-20.0, 0.5, 80);
        for i in 0..=400 {
            let u = f64::from(i) * 0.05 - 8.0;
            let exact = kummer(a, b, libm::exp(u));
            if exact > 1e-280 {
                let found = libm::exp(table.value(u, |u| libm::log(kummer(a, b, libm::exp(u)))));
                close(&format!("table of Kummer's function {a} {b} {u}"), found, exact, 1e-12);
            }
        }
    }
}

#[test]
fn tables_do_not_smooth_what_is_not_smooth() {
    let table = Table::new(-1.0, 0.5, 4);
    for i in -100..100 {
        let u = f64::from(i) * 0.0099 - 0.0003;
        assert!((table.value(u, |u| (u - 0.2).abs()) - (u - 0.2).abs()).abs() < 1e-12);
    }
    assert_eq!(table.value(5.0, |u| u), 5.0, "outside of the table");
    assert_eq!(table.value(f64::NEG_INFINITY, |_| 3.0), 3.0);
}

#[test]
fn kummer_functions_have_thirteen_digits() {
    for [a, b, x, exact] in golden("kummer") {
        close(&format!("1F1({a}; {b}; -{x})"), kummer(a, b, x), exact, 2e-13);
    }
    assert_eq!(kummer(2.0, 2.0, 1.5), libm::exp(-1.5));
    assert_eq!(kummer(1.0, 2.0, 0.0), 1.0);
    assert_eq!(kummer(1.0, 2.0, f64::INFINITY), 0.0);
}

#[test]
fn incomplete_gamma_functions_keep_their_digits_in_both_tails() {
    for [a, x, p, q] in golden("incomplete_gamma") {
        close(&format!("P({a}, {x})"), gamma_p(a, x), p, 2e-13);
        close(&format!("Q({a}, {x})"), gamma_q(a, x), q, 2e-13);
    }
    assert_eq!((gamma_p(2.0, 0.0), gamma_q(2.0, f64::INFINITY)), (0.0, 0.0));
    assert!(gamma_p(-1.0, 1.0).is_nan());
}

#[test]
fn normal_quantiles_have_fourteen_digits() {
    for [p, exact] in golden("normal_quantile") {
        close(&format!("quantile of {p}"), normal_quantile(p), exact, 1e-14);
    }
    assert_eq!(normal_quantile(0.5), 0.0);
    assert_eq!(normal_quantile(1.0), f64::INFINITY);
    assert!(normal_quantile(1.5).is_nan());
    for p in [0.51, 0.7, 0.999] {
        close("inverse", normal_cdf(normal_quantile(p)), p, 1e-15);
    }
}

#[test]
fn chi_square_quantiles_have_thirteen_digits() {
    for [freedom, p, exact] in golden("chi_square_quantile") {
        close(&format!("chi-square({freedom}) at {p}"), chi_square_quantile(freedom, p), exact, 2e-13);
    }
    let interval = chi_square_interval(1e-6, 399.0);
    close("lower tail", gamma_p(199.5, interval.start() / 2.0), 5e-7, 1e-11);
    close("upper tail", gamma_q(199.5, interval.end() / 2.0), 5e-7, 1e-11);
}

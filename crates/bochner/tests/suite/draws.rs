//! Draws against values from other software: ChaCha8 written in Python, Box–Muller in mpmath (tools/golden/draws.py).

use bochner::linalg::TileMut;
use bochner::random::{Role, Seed, Stream, fill_normals};
use serde_json::Value;

fn golden() -> Vec<Value> {
    let text = include_str!("golden/draws.json");
    let all: Value = serde_json::from_str(text).expect("the golden file is JSON");
    all["draws"].as_array().expect("a list of draws").clone()
}

fn role(number: u64) -> Role {
    [Role::Direction, Role::Sign, Role::Hash, Role::Noise]
        .into_iter()
        .find(|&r| r as u64 == number)
        .expect("a role used by the golden file")
}

fn address(draw: &Value) -> (Seed, Role, u64, u64) {
    let number = |name: &str| draw[name].as_u64().expect("a number");
    (Seed::new(number("seed")), role(number("role")), number("index"), number("first"))
}

#[test]
fn words_are_those_of_an_independent_chacha8() {
    for draw in golden() {
        let (seed, role, index, first) = address(&draw);
        let expected: Vec<u64> = draw["words"].as_array().unwrap().iter().map(|w| w.as_u64().unwrap()).collect();
        let mut found = vec![0; expected.len()];
        Stream::new(seed, role, index).words_from(first, &mut found);
        assert_eq!(found, expected);
        if first == 0 {
            let mut stream = Stream::new(seed, role, index);
            assert!(expected.iter().all(|&w| stream.next_u64() == w));
        }
    }
}

#[test]
fn normals_are_those_of_mpmath_to_a_few_units_of_the_last_place() {
    for draw in golden() {
        let (seed, role, index, first) = address(&draw);
        let expected: Vec<f64> =
            draw["normals"].as_array().unwrap().iter().map(|z| z.as_str().unwrap().parse().unwrap()).collect();
        let mut found = vec![0.0f64; expected.len()];
        Stream::new(seed, role, index).normals_from(first as usize, &mut found);
        for (f, e) in found.iter().zip(&expected) {
            // Root of a logarithm within 1 ulp: 1.5 ulp with its own rounding; cosine 2, product 0.5; reference 0.5; an ulp of a
            // factor can be two of the product.
            assert!(f.to_bits().abs_diff(e.to_bits()) <= 8, "{f:e} instead of {e:e}");
        }
        let mut single = vec![0.0f32; expected.len()];
        fill_normals(seed, role, index, first, TileMut::new(&mut single, 1, expected.len()));
        for (f, e) in single.iter().zip(&expected) {
            assert_eq!(*f, *e as f32);
        }
    }
}

#[test]
fn short_draws_by_name_do_not_change() {
    // From the words above: uniform numbers are their upper 53 bits, indices below 2^k their upper k bits.
    for draw in golden().iter().filter(|d| d["first"] == 0) {
        let (seed, role, index, _) = address(draw);
        let word = |i: usize| draw["words"][i].as_u64().unwrap();
        let mut stream = Stream::new(seed, role, index);
        assert_eq!(stream.uniform(), (word(0) >> 11) as f64 / (1u64 << 53) as f64);
        assert_eq!(stream.below(1 << 10), word(1) >> 54);
        let mut signs = [0; 3];
        stream.fill_sign_bits(&mut signs);
        assert_eq!(signs, [word(2), word(3), word(4)]);
        assert_eq!(stream.below(u64::MAX), ((u128::from(word(5)) * u128::from(u64::MAX)) >> 64) as u64);
    }
}

//! Drawn maps as data: of which linear pieces and which functions a map is made.
//!
//! What other programs need to compute the features of a map themselves, such as libraries of automatic differentiation. A
//! [`Piece`] has a kind, numbers, arrays, and pieces of its own. Its value at a row `x` is:
//!
//! | kind | value |
//! |---|---|
//! | `chain` | the `pieces` one after the other |
//! | `identity`, `unit` | `x`, `x/\|x\|` |
//! | `affine` | `(x - centre)` times `factors`, number by number, or times the matrix `weights`; what is missing is left out |
//! | `lift` | `(scale x, bias)`; without `bias` only the former |
//! | `linear` | `x` times the matrix `weights`, plus `i` times `x` times `weights_im` where there is one |
//! | `constant` | one number, `value` |
//! | `waves` | `scale exp(rate \|x\|²) exp(i z)` with `z` = `x` times `weights`, times `amplitudes` where there are any |
//! | `cosines` | `scale cos(z + offsets)` |
//! | `exponentials` | `exp(z - rate \|x\|² + shift)`; with `both`, those of `-z` as well, behind |
//! | `moduli` | `scale \|z\|^exponent`, with `z` complex |
//! | `product` | `scale` times the product of the `factors`; factor `i` sees the value of `inputs[i]` where there are inputs |
//! | `count_sketch` | coordinate `j` times the sign `weights[j]` (plus `i` times `weights_im[j]`) is added to coordinate `hashes[j]` |
//! | `convolution` | the circular convolution of the count sketches `factors`, of length `outputs` |
//! | `side_by_side` | real parts, then imaginary parts |
//! | `concat` | the `pieces` side by side, each times its weight in `amplitudes` |
//! | `series` | see below |
//!
//! A `series` is `constants` times the number `exp(ln_constant - rate |x|²)`, then its `pieces`. Each is a `term` with a `degree` and
//! one piece, a sketch of that degree: it is the sketch's value at `x` times `exp((ln_weight - rate |x|²)/degree)`. With
//! `split` it is a real map: constants, spare columns, real parts of all terms, imaginary parts of all terms. Columns of a term
//! that is `paired` are real: those of the first half are real parts, those of the second half imaginary parts, and an odd one is
//! spare.

use crate::error::Result;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::memory::filled;
use crate::projection::{Parts, Projection, panels};
use crate::scalar::{Real, Scalar};
use ndarray::Array2;

/// What a drawn map, or a part of it, is made of; the kinds stand in the module's table.
///
/// ```
/// use bochner::feature::{Content, Describe, FeatureMap, FourierSpec};
/// let map = FourierSpec { n_components: 10, ..Default::default() }.build::<f64>(3)?;
/// let pieces = map.pieces()?;
/// assert_eq!(pieces.kind, "chain");
/// let Some(Content::Pieces(steps)) = pieces.get("pieces") else { panic!("a chain has pieces") };
/// let Some(Content::Matrix(weights)) = steps[0].get("weights") else { panic!("waves have weights") };
/// assert_eq!((steps[0].kind, weights.dim()), ("waves", (3, 5)));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Piece<R> {
    /// What it does with rows.
    pub kind: &'static str,
    /// With what, by name.
    pub contents: Vec<(&'static str, Content<R>)>,
}

/// Something a [`Piece`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content<R> {
    /// A number, or a flag: 0 or 1.
    Number(f64),
    /// One number for each column.
    Vector(Vec<R>),
    /// One row for each input, one column for each output.
    Matrix(Array2<R>),
    /// Output coordinates.
    Indices(Vec<u32>),
    /// Other pieces.
    Pieces(Vec<Piece<R>>),
}

impl<R: Real> Piece<R> {
    pub(super) fn new(kind: &'static str) -> Self {
        Piece { kind, contents: Vec::new() }
    }

    /// Pieces one after the other; of one piece, that piece.
    pub(super) fn chain(pieces: impl IntoIterator<Item = Piece<R>>) -> Self {
        let mut pieces: Vec<_> = pieces.into_iter().collect();
        if pieces.len() == 1 { pieces.remove(0) } else { Piece::new("chain").pieces("pieces", pieces) }
    }

    fn with(mut self, name: &'static str, content: Content<R>) -> Self {
        self.contents.push((name, content));
        self
    }

    pub(super) fn number(self, name: &'static str, value: f64) -> Self {
        self.with(name, Content::Number(value))
    }

    pub(super) fn vector(self, name: &'static str, values: impl IntoIterator<Item = R>) -> Self {
        self.with(name, Content::Vector(values.into_iter().collect()))
    }

    /// The transpose of a list of directions, one a row.
    pub(super) fn directions(self, name: &'static str, rows: &Array2<f64>) -> Self {
        let columns = rows.t().mapv(R::from_f64).as_standard_layout().into_owned();
        self.with(name, Content::Matrix(columns))
    }

    pub(super) fn indices(self, name: &'static str, values: &[u32]) -> Self {
        self.with(name, Content::Indices(values.to_vec()))
    }

    pub(super) fn pieces(self, name: &'static str, pieces: Vec<Piece<R>>) -> Self {
        self.with(name, Content::Pieces(pieces))
    }

    /// The matrix of a projection under `weights`, its imaginary parts under `weights_im`: what becomes of unit vectors. A
    /// projection that is fast because it has a structure loses it here: this takes as many projections as rows have columns,
    /// and as many numbers as rows have columns times as there are directions.
    ///
    /// # Errors
    /// More numbers than fit into memory.
    pub(super) fn projection<P: Projection<Real = R> + ?Sized>(self, projection: &P) -> Result<Self> {
        let (d, m) = (projection.input_dim(), projection.output_dim());
        let fresh = |rows| {
            filled("weights of a projection", (rows, m), R::ZERO, |_| "take fewer features, or the map itself".into())
        };
        let (mut re, mut im) = (fresh(d)?, fresh(if P::Output::IS_COMPLEX { d } else { 0 })?);
        let mut work = Workspace::new();
        let step = projection.shared_rows().max(64);
        for first in (0..d).step_by(step) {
            let n = step.min(d - first);
            let mut units = vec![R::ZERO; n * d];
            units[first..].iter_mut().step_by(d + 1).take(n).for_each(|v| *v = R::ONE);
            let rows = Tile::new(&units, n, d);
            let im_rows = if P::Output::IS_COMPLEX { n } else { 0 };
            let re = &mut re.as_slice_mut().expect("standard layout")[first * m..][..n * m];
            let im = im.as_slice_mut().expect("standard layout");
            let im = &mut im[if im_rows > 0 { first * m } else { 0 }..][..im_rows * m];
            let mut out = Parts::new(TileMut::new(re, n, m), TileMut::new(im, im_rows, m));
            for columns in panels(m, projection.panel()) {
                projection.project_tile_split(rows, columns.clone(), out.columns_mut(columns), &mut work);
            }
        }
        let piece = self.with("weights", Content::Matrix(re));
        Ok(if P::Output::IS_COMPLEX { piece.with("weights_im", Content::Matrix(im)) } else { piece })
    }

    /// What it holds under a name.
    pub fn get(&self, name: &str) -> Option<&Content<R>> {
        self.contents.iter().find(|(n, _)| *n == name).map(|(_, content)| content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex;
    use crate::error::Error;
    use crate::feature::{Describe, OpticalSpec, PolynomialSpec, Structure};
    use crate::projection::{Sampling, Srht};
    use crate::random::Seed;
    use crate::variance::Weights;

    #[test]
    fn weights_are_those_of_the_projection() {
        // More columns than are projected at once, and not a power of two.
        let (d, m) = (70, 150);
        let projection = Srht::<f64, Complex<f64>>::new(Seed::new(3), d, m, Sampling::Upsampled).unwrap();
        let piece = Piece::new("linear").projection(&projection).unwrap();
        let row: Vec<f64> = (0..d).map(|j| libm::sin(j as f64)).collect();
        let mut out = vec![Complex::new(0.0, 0.0); m];
        projection.project_tile(Tile::new(&row, 1, d), 0..m, TileMut::new(&mut out, 1, m), &mut Workspace::new());
        let product = |name: &str| {
            let Some(Content::Matrix(weights)) = piece.get(name) else { panic!("no {name}") };
            assert_eq!(weights.dim(), (d, m));
            ndarray::ArrayView1::from(&row).dot(weights)
        };
        for ((z, re), im) in out.iter().zip(product("weights")).zip(product("weights_im")) {
            assert!((z.re - re).abs() < 1e-12 && (z.im - im).abs() < 1e-12, "{z} {re} {im}");
        }
    }

    #[test]
    fn a_tree_has_a_product_for_every_pair() {
        let spec =
            PolynomialSpec { degree: 3, structure: Structure::Tree, weights: Weights::Real, ..Default::default() };
        let root = spec.build::<f32>(5).unwrap().pieces().unwrap();
        let Some(Content::Pieces(inputs)) = root.get("inputs") else { panic!("a pair has inputs") };
        assert_eq!((root.kind, inputs[0].kind, inputs[1].kind), ("product", "product", "identity"));
    }

    #[test]
    fn readings_of_a_camera_have_no_pieces() {
        let spec = OpticalSpec { camera_bits: Some(4), gain: Some(1.0), ..Default::default() };
        let error = spec.build::<f64>(5).unwrap().pieces().unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
}

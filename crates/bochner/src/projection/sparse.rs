use super::{Cotangents, Projection};
use crate::error::{Error, Result, check_count};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::memory::{bytes, need};
use crate::random::{Role, Seed, Stream};
use crate::scalar::Real;
use std::ops::Range;
use std::sync::Arc;

/// Directions with a few entries each, in columns drawn uniformly without replacement.
///
/// With `q` of `d` columns for each direction and entries `√(d/q)` times standard normal numbers, the mean of `w wᵀ` is `I`.
///
/// # Cost
/// `O(q)` for an output, forwards and back, whatever `d`.
///
/// ```
/// use bochner::feature::{Tile, TileMut, Workspace};
/// use bochner::projection::{Projection, Sparse};
/// use bochner::random::Seed;
/// let directions = Sparse::<f64>::new(Seed::new(7), 5, 8, 2)?;
/// let (mut out, row) = ([0.0; 8], [1.0, 0.0, 0.0, 0.0, 0.0]);
/// directions.project_tile(Tile::new(&row, 1, 5), 0..8, TileMut::new(&mut out, 1, 8), &mut Workspace::new());
/// for (j, value) in out.iter().enumerate() {
///     assert_eq!(*value != 0.0, directions.columns(j).any(|column| column == 0));
/// }
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sparse<R> {
    input_dim: usize,
    output_dim: usize,
    order: usize,
    /// Columns of the first entries of all directions, then of the second entries, and so on.
    columns: Arc<[u32]>,
    weights: Arc<[R]>,
}

impl<R: Real> Sparse<R> {
    /// Normal entries at unit scale, `order` of them in each direction.
    ///
    /// Direction `j` has the columns of (`seed`, [`Role::Index`], `j`) and the entries of (`seed`, [`Role::Direction`], `j`).
    ///
    /// # Errors
    /// A dimension of 0, more entries than columns, weights that do not fit in memory.
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize, order: usize) -> Result<Self> {
        let scale = (input_dim as f64 / order.max(1) as f64).sqrt();
        Self::drawn(seed, input_dim, output_dim, order, |draw| scale * draw.normal())
    }

    /// Entries are what `entry` draws: the contract of a projection is for the caller to see to.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn drawn(
        seed: Seed,
        input_dim: usize,
        output_dim: usize,
        order: usize,
        entry: impl Fn(&mut Stream) -> f64,
    ) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_count("output_dim", output_dim)?;
        if order == 0 || order > input_dim || u32::try_from(input_dim).is_err() {
            return Err(Error::parameter("order", format!("from 1 to the number of columns, {input_dim}"), order));
        }
        let count = output_dim.saturating_mul(order);
        let needed = bytes::<(u32, R)>(&[output_dim, order]).saturating_mul(2);
        need("sparse directions", needed, |_| "ask for fewer of them, or for a lower order".into())?;
        let (mut columns, mut weights) = (vec![0; count], vec![R::ZERO; count]);
        for j in 0..output_dim {
            let mut chosen = Stream::new(seed, Role::Index, j as u64).distinct(input_dim as u64, order);
            // In the order of the columns a row is read from its beginning to its end.
            chosen.sort_unstable();
            let mut draw = Stream::new(seed, Role::Direction, j as u64);
            for (k, column) in chosen.into_iter().enumerate() {
                columns[k * output_dim + j] = column as u32;
                weights[k * output_dim + j] = R::from_f64(entry(&mut draw));
            }
        }
        Ok(Sparse { input_dim, output_dim, order, columns: columns.into(), weights: weights.into() })
    }

    /// Entries of a direction.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Columns of direction `j`, ascending.
    ///
    /// # Panics
    /// There is no such direction.
    pub fn columns(&self, j: usize) -> impl Iterator<Item = usize> + '_ {
        assert!(j < self.output_dim, "direction {j} of {}", self.output_dim);
        self.columns.iter().skip(j).step_by(self.output_dim).map(|&column| column as usize)
    }

    /// Entry by entry: columns and weights of the directions in `columns`.
    fn entries(&self, columns: Range<usize>) -> impl Iterator<Item = (&[u32], &[R])> {
        let places = self.columns.chunks_exact(self.output_dim).zip(self.weights.chunks_exact(self.output_dim));
        places.map(move |(places, weights)| (&places[columns.clone()], &weights[columns.clone()]))
    }
}

impl<R: Real> Projection for Sparse<R> {
    type Real = R;
    type Output = R;

    dims!();

    fn panel(&self) -> usize {
        1
    }

    /// An entry is fetched from anywhere in the row: about four times the time of one in a product.
    fn operations(&self) -> u64 {
        (self.order as u64).saturating_mul(4).saturating_mul(self.output_dim as u64)
    }

    fn project_tile(
        &self,
        rows: Tile<'_, R>,
        columns: Range<usize>,
        mut out: TileMut<'_, R>,
        _work: &mut Workspace<R>,
    ) {
        for i in 0..rows.rows() {
            let (row, out) = (rows.row(i), out.row_mut(i));
            out.fill(R::ZERO);
            for (places, weights) in self.entries(columns.clone()) {
                for (o, (place, weight)) in out.iter_mut().zip(places.iter().zip(weights)) {
                    *o += *weight * row[*place as usize];
                }
            }
        }
    }

    fn pull_tile(
        &self,
        from: Cotangents<'_, R>,
        columns: Range<usize>,
        mut out: TileMut<'_, R>,
        _work: &mut Workspace<R>,
    ) {
        for i in 0..from.re.rows() {
            let (incoming, out) = (from.re.row(i), out.row_mut(i));
            for (places, weights) in self.entries(columns.clone()) {
                for (u, (place, weight)) in incoming.iter().zip(places.iter().zip(weights)) {
                    out[*place as usize] += *weight * *u;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_of_columns_is_as_likely_as_any_other() {
        let (m, d, q) = (6000, 4, 2);
        let sparse = Sparse::<f64>::new(Seed::new(3), d, m, q).unwrap();
        let mut counts = [[0.0; 4]; 4];
        for j in 0..m {
            let pair: Vec<usize> = sparse.columns(j).collect();
            assert!(pair[0] < pair[1] && pair[1] < d, "{pair:?}");
            counts[pair[0]][pair[1]] += 1.0;
        }
        // Six pairs, multinomial: a chi-square of five degrees of freedom.
        let expected = m as f64 / 6.0;
        let chi: f64 = (0..d)
            .flat_map(|a| (a + 1..d).map(move |b| (a, b)))
            .map(|(a, b)| counts[a][b])
            .map(|c: f64| (c - expected).powi(2) / expected)
            .sum();
        assert!(chi < 37.0, "chi-square {chi}; above 37 with probability 6e-7");
    }

    #[test]
    fn the_first_directions_do_not_depend_on_how_many_follow() {
        let few = Sparse::<f64>::new(Seed::new(5), 9, 4, 3).unwrap();
        let many = Sparse::<f64>::new(Seed::new(5), 9, 70, 3).unwrap();
        for j in 0..4 {
            assert!(few.columns(j).eq(many.columns(j)));
            assert!((0..3).all(|k| few.weights[k * 4 + j] == many.weights[k * 70 + j]));
        }
    }

    #[test]
    fn more_entries_than_columns_are_refused() {
        for order in [0, 4] {
            let said = Sparse::<f64>::new(Seed::new(1), 3, 5, order).unwrap_err().to_string();
            assert!(said.contains("from 1 to the number of columns, 3"), "{said}");
        }
    }
}

use super::{FeatureMap, Lift, ProductSketch};
use crate::error::{Error, Result, check_count};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::{Projection, dims};
use crate::scalar::Real;

/// A balanced tree of degree-2 product sketches: `⟨x, y⟩ᵖ` with a variance that does not grow exponentially in `p`.
///
/// A leaf is the (lifted) row itself. An inner node sketches the tensor product of its two children, `D` numbers
/// each, down to `D` numbers with two projections of its own: `D^{-1/2} (W u) ∘ (W' v)`. The tree over
/// `p` leaves therefore has `p - 1` nodes and `⌈log₂ p⌉` levels.
///
/// # Estimate
/// Unbiased, since every node is. Second moments follow a recursion over the nodes
/// ([`crate::variance::PairMoments`]).
///
/// # Cost
/// `p - 1` sketches of two vectors; with Hadamard projections `O(p (d log d + D log D))`.
///
/// # References
/// Ahle et al. 2020, section 3 (the tree); here the nodes are any product sketch of this library.
#[derive(Debug, Clone)]
pub struct TreeSketch<P> {
    root: Node<P>,
    degree: u32,
    input_dim: usize,
    output_dim: usize,
    lift: Lift,
}

#[derive(Debug, Clone)]
enum Node<P> {
    /// The lifted row.
    Leaf,
    /// The sketched product of two children.
    Pair(Box<(Node<P>, Node<P>, ProductSketch<P>)>),
}

impl<R: Real, P: Projection<Real = R, Output = R>> TreeSketch<P> {
    /// A tree over `degree` leaves on rows of length `input_dim`.
    ///
    /// `draw(label, dim)` draws a projection from `dim` to the tree's output dimension; every label occurs once.
    ///
    /// # Errors
    /// Degree below 2 or above 64, a dimension of 0, or what `draw` says.
    pub fn new(
        degree: u32,
        lift: Lift,
        input_dim: usize,
        mut draw: impl FnMut(u64, usize) -> Result<P>,
    ) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        if !(2..=super::MAX_DEGREE).contains(&degree) {
            return Err(Error::parameter("degree", "between 2 and 64 for a tree", degree));
        }
        let mut label = 0;
        let root = grow(degree, lift.output_dim(input_dim), &mut label, &mut draw)?;
        let output_dim = root.output_dim(0);
        Ok(TreeSketch { root, degree, input_dim, output_dim, lift })
    }

    /// Number of leaves.
    pub fn degree(&self) -> u32 {
        self.degree
    }
}

fn grow<R: Real, P: Projection<Real = R, Output = R>>(
    leaves: u32,
    leaf_dim: usize,
    label: &mut u64,
    draw: &mut impl FnMut(u64, usize) -> Result<P>,
) -> Result<Node<P>> {
    if leaves == 1 {
        return Ok(Node::Leaf);
    }
    let left = grow(leaves.div_ceil(2), leaf_dim, label, draw)?;
    let right = grow(leaves / 2, leaf_dim, label, draw)?;
    let factors = vec![draw(*label, left.output_dim(leaf_dim))?, draw(*label + 1, right.output_dim(leaf_dim))?];
    *label += 2;
    Ok(Node::Pair(Box::new((left, right, ProductSketch::multimodal(factors)?))))
}

impl<R: Real, P: Projection<Real = R, Output = R>> Node<P> {
    fn output_dim(&self, leaf_dim: usize) -> usize {
        match self {
            Node::Leaf => leaf_dim,
            Node::Pair(pair) => pair.2.output_dim(),
        }
    }

    fn evaluate(&self, leaf: Tile<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let Node::Pair(pair) = self else { return };
        let (left, right, sketch) = &**pair;
        let mut buffers = Vec::with_capacity(2);
        for child in [left, right] {
            let (n, m) = (leaf.rows(), child.output_dim(leaf.cols()));
            // A leaf is read where it is; only inner nodes need room.
            let mut buffer = work.take(if matches!(child, Node::Leaf) { 0 } else { n * m });
            if let Node::Pair(_) = child {
                child.evaluate(leaf, TileMut::new(&mut buffer, n, m), work);
            }
            buffers.push(buffer);
        }
        let tile = |child: &Node<P>, buffer| match child {
            Node::Leaf => leaf,
            Node::Pair(_) => Tile::new(buffer, leaf.rows(), child.output_dim(leaf.cols())),
        };
        sketch
            .sketch_factors(&[tile(left, &buffers[0]), tile(right, &buffers[1])], out, work)
            .expect("a tree is built with fitting dimensions");
        buffers.into_iter().for_each(|buffer| work.give(buffer));
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> FeatureMap for TreeSketch<P> {
    type Real = R;
    type Output = R;

    dims!();

    fn map_tile(&self, rows: Tile<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (n, m) = (rows.rows(), self.lift.output_dim(rows.cols()));
        let mut lifted = work.take(n * m);
        self.lift.lift_into(rows, 1.0, &mut lifted);
        self.root.evaluate(Tile::new(&lifted, n, m), out, work);
        work.give(lifted);
    }
}

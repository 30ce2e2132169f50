use super::product_sketch::{FactorSketch, Pulled};
use super::{FeatureMap, Lift, Piece, ProductSketch};
use crate::error::{Error, Result, check_count};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::{Cotangents, Projection, dims};
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

impl<R: Real, P: Projection<Real = R, Output = R>> Node<P> {
    fn piece(&self) -> Result<Piece<R>> {
        let Node::Pair(pair) = self else { return Ok(Piece::new("identity")) };
        let (left, right, sketch) = &**pair;
        Ok(sketch.piece()?.pieces("inputs", vec![left.piece()?, right.piece()?]))
    }
}

/// What the children of a node evaluated to, and what theirs did; leaves are read where they are.
struct Values<R> {
    numbers: Vec<R>,
    children: Vec<Values<R>>,
}

impl<R: Real> Values<R> {
    fn give_back(self, work: &mut Workspace<R>) {
        work.give(self.numbers);
        self.children.into_iter().for_each(|child| child.give_back(work));
    }
}

impl<R: Real, P: Projection<Real = R, Output = R>> Node<P> {
    /// What a child of a pair is seen as.
    fn tile<'a>(&self, leaf: Tile<'a, R>, values: &'a Values<R>) -> Tile<'a, R> {
        match self {
            Node::Leaf => leaf,
            Node::Pair(_) => Tile::new(&values.numbers, leaf.rows(), self.output_dim(leaf.cols())),
        }
    }

    /// The values of all nodes below this one, and of this one where `own` is asked for.
    fn values(&self, leaf: Tile<'_, R>, own: bool, work: &mut Workspace<R>) -> Values<R> {
        let Node::Pair(pair) = self else { return Values { numbers: Vec::new(), children: Vec::new() } };
        let (left, right, sketch) = &**pair;
        let children = vec![left.values(leaf, true, work), right.values(leaf, true, work)];
        let (n, m) = (leaf.rows(), sketch.output_dim());
        let mut numbers = work.take(if own { n * m } else { 0 });
        if own {
            let rows = [left.tile(leaf, &children[0]), right.tile(leaf, &children[1])];
            sketch.sketch(&rows, TileMut::new(&mut numbers, n, m), work);
        }
        Values { numbers, children }
    }

    fn pull(
        &self,
        leaf: Tile<'_, R>,
        values: &Values<R>,
        cotangents: Tile<'_, R>,
        mut out: TileMut<'_, R>,
        work: &mut Workspace<R>,
    ) {
        let Node::Pair(pair) = self else {
            return crate::projection::add_scaled(cotangents, R::ONE, &mut out);
        };
        let (left, right, sketch) = &**pair;
        let (n, dims) = (leaf.rows(), [left, right].map(|child| child.output_dim(leaf.cols())));
        let mut buffers = dims.map(|m| work.take(n * m));
        buffers.iter_mut().for_each(|buffer| buffer.fill(R::ZERO));
        let rows = [left.tile(leaf, &values.children[0]), right.tile(leaf, &values.children[1])];
        let outs = buffers.iter_mut().zip(dims).map(|(buffer, m)| TileMut::new(buffer, n, m)).collect();
        sketch.pull(&rows, Cotangents::real(cotangents), Pulled::Each(outs), work);
        for (k, child) in [left, right].into_iter().enumerate() {
            child.pull(leaf, &values.children[k], Tile::new(&buffers[k], n, dims[k]), out.reborrow(), work);
        }
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

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (n, m) = (rows.rows(), self.lift.output_dim(rows.cols()));
        let mut lifted = work.take(n * m);
        self.lift.lift_into(rows, 1.0, &mut lifted);
        let leaf = Tile::new(&lifted, n, m);
        let values = self.root.values(leaf, false, work);
        self.lift.pull_into(out, work, |out, work| self.root.pull(leaf, &values, from.re, out, work));
        values.give_back(work);
        work.give(lifted);
    }

    fn pieces(&self) -> Result<Piece<R>> {
        Ok(self.lift.piece(self.root.piece()?))
    }
}

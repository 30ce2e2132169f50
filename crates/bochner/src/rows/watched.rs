use super::{RowBlock, RowSource};
use crate::error::Result;
use crate::scalar::Real;

/// How far a pass over the rows has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Passes begun, this one included.
    pub pass: usize,
    /// Rows of this pass delivered and taken.
    pub rows: usize,
    /// Rows of a pass, where known.
    pub total: Option<usize>,
}

/// A source that tells a callback after every block how far it has come.
///
/// A callback that returns [`Error::Interrupted`](crate::Error::Interrupted), or any other error, stops the work.
///
/// ```
/// use bochner::rows::{InMemory, RowSource, Watched};
/// use ndarray::Array2;
/// let (rows, targets) = (Array2::<f64>::zeros((10, 2)), Array2::zeros((10, 1)));
/// let mut seen = Vec::new();
/// let mut source = Watched::new(InMemory::new(rows.view(), targets.view())?.with_block_rows(4)?, |at| {
///     seen.push(at.rows);
///     Ok(())
/// });
/// source.for_each_block(&mut |_| Ok(()))?;
/// assert_eq!(seen, [4, 8, 10]);
/// # Ok::<(), bochner::Error>(())
/// ```
pub struct Watched<S, F> {
    source: S,
    callback: F,
    pass: usize,
}

impl<S: std::fmt::Debug, F> std::fmt::Debug for Watched<S, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("source", &self.source).field("pass", &self.pass).finish_non_exhaustive()
    }
}

impl<S, F: FnMut(Progress) -> Result<()>> Watched<S, F> {
    /// `source` with `callback` called after every block.
    pub fn new(source: S, callback: F) -> Self {
        Watched { source, callback, pass: 0 }
    }
}

impl<R: Real, S: RowSource<R>, F: FnMut(Progress) -> Result<()>> RowSource<R> for Watched<S, F> {
    fn input_dim(&self) -> usize {
        self.source.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.source.target_dim()
    }

    fn len_hint(&self) -> Option<usize> {
        self.source.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        self.pass += 1;
        let mut progress = Progress { pass: self.pass, rows: 0, total: self.source.len_hint() };
        let callback = &mut self.callback;
        self.source.for_each_block(&mut |block| {
            visit(block)?;
            progress.rows += block.rows.nrows();
            callback(progress)
        })
    }
}

//! A streamed fit stays under the memory it announces, and takes no more of it for more rows.
#![allow(unsafe_code)] // an allocator that counts

#[path = "suite/waves/mod.rs"]
mod waves;

use bochner::model::{Fit, Ridge, RidgeClassifier};
use bochner::rows::{RowBlock, RowSource};
use bochner::solve::{ConjugateGradients, Preconditioner, Solver, StochasticGradient};
use bochner::{Context, Error, Result};
use ndarray::Array2;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use waves::waves;

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grown(by: usize) {
    let now = NOW.fetch_add(by, Ordering::Relaxed) + by;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every request goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rows made on the way, in one buffer.
struct Made {
    rows: usize,
    known: bool,
    labels: bool,
    block: Array2<f32>,
    targets: Array2<f32>,
}

fn made(rows: usize, known: bool, labels: bool) -> Made {
    Made { rows, known, labels, block: Array2::zeros((200, 4)), targets: Array2::zeros((200, 1)) }
}

impl RowSource<f32> for Made {
    fn input_dim(&self) -> usize {
        4
    }
    fn target_dim(&self) -> usize {
        1
    }
    fn len_hint(&self) -> Option<usize> {
        self.known.then_some(self.rows)
    }
    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, f32>) -> Result<()>) -> Result<()> {
        for start in (0..self.rows).step_by(200) {
            for i in 0..200 {
                for j in 0..4 {
                    self.block[[i, j]] = (((start + i) * 31 + j * 17) as f32 * 0.7).sin();
                }
                let value = self.block[[i, 0]] - self.block[[i, 3]];
                self.targets[[i, 0]] = if self.labels { f32::from(value > 0.0) } else { value };
            }
            visit(RowBlock { rows: self.block.view(), targets: self.targets.view(), weights: None })?;
        }
        Ok(())
    }
}

/// Bytes above what was there before.
fn peak_of(work: impl FnOnce()) -> u64 {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    (PEAK.load(Ordering::Relaxed) - before) as u64
}

/// Rows of the longer fits: a number kept for each of them would be four times this many bytes, and show.
const MANY: usize = 64_000;
/// Bytes by which peaks may differ: a tile more in flight, which a busy machine leaves out of the shorter fit.
const MORE: u64 = 3 << 16;

// One test: another one at the same time would count too.
#[test]
fn memory_follows_features_and_budget_and_never_rows() {
    let dim = 400;
    let preconditioner = Preconditioner::Nystrom(30);
    let cg = ConjugateGradients { tolerance: Some(1e-2), max_iterations: 200, preconditioner };
    let solvers = [
        Solver::Cholesky,
        Solver::ConjugateGradients(cg),
        Solver::StochasticGradient(StochasticGradient { passes: 2, rank: 30 }),
    ];
    let warm = Ridge::new(waves::<f32>(4, dim), 1.0).unwrap();
    // In every thread: what each of them keeps for its products (64 MiB) is allocated once, whichever fit needs it first.
    let warm_up = || warm.fit_stream(&mut made(400, true, false), &mut Context::default()).map(drop).unwrap();
    warm_up();
    rayon::broadcast(|_| warm_up());
    for solver in solvers {
        let ridge = Ridge::new(waves::<f32>(4, dim), 10.0).unwrap().with_solver(solver);
        let announced = ridge.bytes(None, 1, &Context::default()).unwrap();
        let peak = |rows, known| {
            peak_of(|| {
                ridge.fit_stream(&mut made(rows, known, false), &mut Context::default()).unwrap();
            })
        };
        let (few, many) = (peak(2000, true), peak(MANY, false));
        assert!(few.max(many) <= announced, "{solver:?}: {few} and {many} of {announced} bytes announced");
        assert!(many < few + MORE, "{solver:?}: {few} bytes for 2,000 rows, {many} for {MANY}");
        // The announcement is not a guess from above either.
        assert!(announced < 8 * many.max(1 << 20), "{solver:?}: {announced} announced, {many} used");
    }

    let classifier = RidgeClassifier::new(Ridge::new(waves::<f32>(4, dim), 10.0).unwrap());
    let peak = |rows| {
        peak_of(|| {
            classifier.fit_stream(&mut made(rows, false, true), &mut Context::default()).unwrap();
        })
    };
    let (few, many) = (peak(2000), peak(MANY));
    assert!(many < few + MORE, "{few} bytes for 2,000 rows, {many} for {MANY}");

    // A budget is kept by choosing another solver, and an impossible one is refused before anything is read.
    let whole = Ridge::new(waves::<f32>(4, 3000), 10.0).unwrap().with_solver(Solver::Cholesky);
    let whole = whole.bytes(None, 1, &Context::default()).unwrap();
    let ridge = Ridge::new(waves::<f32>(4, 3000), 1e4).unwrap();
    let mut context = Context::default().with_memory_budget(whole - (20 << 20)).unwrap();
    let used = peak_of(|| {
        let model = ridge.fit_stream(&mut made(4000, false, false), &mut context).unwrap();
        assert_eq!(model.report().solver, "cg", "{:?}", model.report());
    });
    assert!(used <= whole - (20 << 20), "{used} of {}", whole - (20 << 20));
    let ridge = Ridge::new(waves::<f32>(4, 3000), 1.0).unwrap();
    let mut context = Context::default().with_memory_budget(1 << 20).unwrap();
    let used = peak_of(|| {
        assert!(matches!(ridge.fit_stream(&mut made(4000, false, false), &mut context), Err(Error::Budget { .. })));
    });
    assert!(used < 1 << 20, "{used}");
}

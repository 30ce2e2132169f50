//! Tests of the library as its users see it, in one program: every file would otherwise be linked by itself, and compile
//! the maps it uses again.

mod approximation;
mod attention;
mod composition;
mod compressive;
mod context;
mod determinism;
mod draws;
mod exact;
mod forged_models;
mod forget;
mod gaussian_process;
mod golden_models;
mod isotropy;
mod journal;
mod model_files;
mod offsets;
mod operator;
mod operator_gp;
mod optical;
mod overflow;
mod positive;
mod pullback;
mod ridge;
mod sizes;
mod sketches;
mod sparsity;
mod spherical;
#[path = "../statistics/mod.rs"]
mod statistics;
mod stats;
mod svm;
mod uncertainty;
mod waves;

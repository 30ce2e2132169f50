//! What people look at: aligned tables, plots as SVG or PNG, one HTML page. Knows no mathematics.

pub mod plot;
mod report;
pub mod table;

pub use report::Report;

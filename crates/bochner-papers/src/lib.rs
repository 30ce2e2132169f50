//! The papers' experiments beside their published numbers, benchmarks against peers, and the data sets of both.
//!
//! | folder or file | holds |
//! | --- | --- |
//! | [`reproduce`] | the experiments, one file each |
//! | [`mod@bench`] | benchmarks: each times a kernel of this library and a reference in the same run |
//! | [`known`], [`fetch`] | data sets by name, and downloads that are believed when their checksum is right |

pub mod bench;
pub mod fetch;
pub mod known;
pub mod reproduce;

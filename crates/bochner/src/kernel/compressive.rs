use super::{AnyKernel, Kernel, distance_sq};
use crate::error::{Error, Result, check_count, check_positive};
use crate::parameter::{Domain, Entry, Sort, parameters};
use crate::special::{Table, kummer};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// The random matrix that compresses rows before Fourier features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// `√(d/m)` times a uniformly random orthoprojector.
    Orthoprojector,
    /// Independent normal entries of variance `1/m`.
    Gaussian,
}

/// What compressive Fourier features of the Gaussian kernel estimate: `E exp(−|P(x−y)|²/2ℓ²)` over the projection `P`.
///
/// `₁F₁(m/2; d/2; −(d/m)|x−y|²/2ℓ²)` for an orthoprojector from `d` to `m` dimensions, `(1 + |x−y|²/mℓ²)^(−m/2)` for
/// independent normals: not the Gaussian kernel, but close to it for large `m` (Chang, Sankaranarayanan and Kumar 2016
/// bound the distance; the closed forms are our own).
///
/// ```
/// use bochner::kernel::{Compression, Compressive, Kernel};
/// let all = Compressive::new(Compression::Orthoprojector, 8, 8, 1.0)?;
/// let half = Compressive::new(Compression::Orthoprojector, 8, 4, 1.0)?;
/// assert!((all.evaluate(&[1.0; 8], &[0.5; 8]) - (-1f64).exp()).abs() < 1e-15);
/// assert!(half.evaluate(&[1.0; 8], &[0.5; 8]) > all.evaluate(&[1.0; 8], &[0.5; 8]));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Parameters")]
pub struct Compressive {
    compression: Compression,
    input_dim: usize,
    output_dim: usize,
    length_scale: f64,
    #[serde(skip)]
    table: Arc<OnceLock<Table>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    compression: Compression,
    input_dim: usize,
    output_dim: usize,
    length_scale: f64,
}

impl TryFrom<Parameters> for Compressive {
    type Error = Error;
    fn try_from(p: Parameters) -> Result<Self> {
        Compressive::new(p.compression, p.input_dim, p.output_dim, p.length_scale)
    }
}

impl PartialEq for Compressive {
    fn eq(&self, other: &Self) -> bool {
        self.compression == other.compression
            && (self.input_dim, self.output_dim) == (other.input_dim, other.output_dim)
            && self.length_scale == other.length_scale
    }
}

impl Compressive {
    /// What every door knows of this kernel; how many columns rows have is for the rows to say.
    pub const ENTRY: Entry = Entry {
        name: "compressive",
        aliases: &[],
        title: "compressive",
        about: "Mean of the Gaussian kernel of randomly compressed rows.",
        parameters: parameters! {
            /// Measurements of each row; all columns where there are fewer.
            compressed_dim: usize = 64, Domain::COUNT, Kernel;
            /// Distance over which the kernel falls off.
            length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
        },
        sort: Sort::Kernel,
    };

    /// The limit kernel of rows of length `input_dim` compressed to `output_dim`.
    ///
    /// # Errors
    /// A length scale that is not positive, dimensions of 0, or an orthoprojector to more dimensions than there are.
    pub fn new(compression: Compression, input_dim: usize, output_dim: usize, length_scale: f64) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_count("output_dim", output_dim)?;
        check_positive("length_scale", length_scale)?;
        if compression == Compression::Orthoprojector && output_dim > input_dim {
            return Err(Error::parameter("output_dim", "at most input_dim for an orthoprojector", output_dim));
        }
        Ok(Compressive { compression, input_dim, output_dim, length_scale, table: Arc::default() })
    }

    /// `P`.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// `d`.
    pub fn input_dim(&self) -> usize {
        self.input_dim
    }

    /// `m`.
    pub fn output_dim(&self) -> usize {
        self.output_dim
    }

    /// `ℓ`.
    pub fn length_scale(&self) -> f64 {
        self.length_scale
    }

    #[inline(always)]
    fn of(&self, distance_sq: f64, kummer: impl Fn(f64, f64, f64) -> f64) -> f64 {
        let (d, m) = (self.input_dim as f64, self.output_dim as f64);
        let scaled = distance_sq / self.length_scale / self.length_scale;
        match self.compression {
            Compression::Orthoprojector => kummer(0.5 * m, 0.5 * d, 0.5 * scaled * (d / m)),
            Compression::Gaussian => libm::exp(-0.5 * m * libm::log1p(scaled / m)),
        }
    }
}

impl Kernel for Compressive {
    fn description(&self) -> Option<AnyKernel> {
        Some(self.clone().into())
    }
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        self.of(distance_sq(x, y), kummer)
    }

    fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
        Some(self.of(distance_sq, kummer))
    }

    fn map_distances_sq(&self, distances_sq: &mut [f64]) -> bool {
        // Kummer's function costs ten microseconds; its logarithm is smooth in the logarithm of the argument.
        let table = self.table.get_or_init(|| Table::new(-36.0, 0.5, 120));
        let tabulated = |a: f64, b: f64, x: f64| {
            if x > 0.0 && a < b {
                libm::exp(table.value(libm::log(x), |u| libm::log(kummer(a, b, libm::exp(u)))))
            } else {
                kummer(a, b, x)
            }
        };
        for entry in distances_sq {
            *entry = self.of(*entry, tabulated);
        }
        true
    }
}

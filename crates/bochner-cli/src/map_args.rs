//! A feature map on the command line.

use crate::{listed, values};
use bochner_table::map_request::MapRequest;

/// Which map turns rows into features.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Map")]
pub(crate) struct MapArgs {
    /// Kind of map [default: that of --kernel, or fourier]
    #[arg(long, value_name = "NAME", value_parser = listed::maps())]
    map: Option<String>,
    /// Number of features
    #[arg(long, value_name = "N", value_parser = values::parse_count)]
    features: Option<usize>,
    /// The kernel; the last four are for several targets that are one function [default: gaussian]
    #[arg(long, value_name = "NAME", value_parser = listed::kernels())]
    kernel: Option<String>,
    /// Length scale of the kernel: a number, a list with one for each column as in [0.5,2], or median for the median
    /// distance of two rows
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    length_scale: Option<String>,
    /// Any other parameter of the map, as in --set degree=3 --set sketch=rademacher
    #[arg(long, value_name = "NAME=VALUE", long_help = listed::settings_of_maps())]
    set: Vec<String>,
}

impl MapArgs {
    pub(crate) fn request(&self) -> MapRequest {
        MapRequest {
            map: self.map.clone(),
            features: self.features,
            kernel: self.kernel.clone(),
            length_scale: self.length_scale.clone(),
            set: self.set.clone(),
        }
    }
}

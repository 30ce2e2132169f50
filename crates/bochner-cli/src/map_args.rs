//! A feature map on the command line: its name, the parameters most people set, and any other by its name.

use crate::failure::{Failure, Outcome};
use crate::human;
use serde_json::{Map, Value};

/// Which map turns rows into features.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(next_help_heading = "Map")]
pub(crate) struct MapArgs {
    /// Kind of map: fourier, polynomial, … (an unknown name lists them)
    #[arg(long, value_name = "NAME", default_value = "fourier")]
    map: String,
    /// Number of features
    #[arg(long, value_name = "N", value_parser = human::parse_count)]
    pub(crate) features: Option<usize>,
    /// Kernel of the map, where it has several: gaussian, laplacian, matern for fourier; for several targets that are one
    /// function: curl_free, divergence_free, helmholtz, decomposable
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Length scale of the kernel: a number, or median for the median distance of two rows
    #[arg(long, value_name = "NUMBER")]
    length_scale: Option<String>,
    /// Any other parameter of the map, as in --set degree=3 --set sketch=rademacher
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl MapArgs {
    /// The kernel asked for.
    pub(crate) fn kernel(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// The description as far as it was given; the number of features is for the caller.
    pub(crate) fn describe(&self, seed: u64) -> Outcome<Map<String, Value>> {
        let mut map = Map::new();
        map.insert("map".into(), self.map.as_str().into());
        map.insert("seed".into(), seed.into());
        if let Some(kernel) = &self.kernel {
            map.insert("kernel".into(), kernel.as_str().into());
        }
        if let Some(scale) = &self.length_scale {
            map.insert("length_scale".into(), value(scale));
        }
        for pair in &self.set {
            let Some((name, text)) = pair.split_once('=') else {
                return Err(Failure::Usage(format!("--set takes NAME=VALUE, got {pair:?}")));
            };
            if ["map", "n_components"].contains(&name) {
                return Err(Failure::Usage(format!("--set {name}: this one is --map or --features")));
            }
            map.insert(name.into(), value(text));
        }
        Ok(map)
    }
}

/// A number, a list or a truth value where it reads like one, else a word.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

//! Where the real data sets are, and how they are read.

use bochner::linalg::gemm::matmul_nt;
use bochner::linalg::{Tile, TileMut};
use bochner::random::{Role, Seed, Stream};
use flate2::read::GzDecoder;
use ndarray::{Array2, Axis};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The bytes of a file (uncompressed if its name ends in `.gz`) under `BOCHNER_DATA`, or else `../shared/data`.
pub(crate) fn bytes(path: &str) -> Vec<u8> {
    let root = std::env::var_os("BOCHNER_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let path = root.join(path);
    let mut file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}; set BOCHNER_DATA", path.display()));
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    } else {
        file.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// All columns of a table but the last, and the last, which is the target.
pub(crate) fn table(path: &str) -> (Array2<f64>, Array2<f64>) {
    let text = String::from_utf8(bytes(path)).unwrap();
    let parse = |cell: &str| cell.parse::<f64>().unwrap();
    let rows: Vec<Vec<f64>> = text.lines().skip(1).map(|line| line.split(',').map(parse).collect()).collect();
    let d = rows[0].len() - 1;
    let x = Array2::from_shape_fn((rows.len(), d), |(i, j)| rows[i][j]);
    (x, Array2::from_shape_fn((rows.len(), 1), |(i, _)| rows[i][d]))
}

/// Pixels of the 28 x 28 images of one part (`train`, `t10k`) of a set, scaled to [0, 1].
pub(crate) fn images(name: &str, part: &str) -> Array2<f64> {
    let bytes = bytes(&format!("{name}/{part}-images-idx3-ubyte.gz"));
    let pixels: Vec<f64> = bytes[16..].iter().map(|&b| f64::from(b) / 255.0).collect();
    Array2::from_shape_vec((pixels.len() / 784, 784), pixels).unwrap()
}

/// Inputs of the test part of an image set or of Letter, or of the whole of another table.
pub(crate) fn inputs(name: &str) -> Array2<f64> {
    match name {
        "letter" => table("letter/test.csv.gz").0,
        "mnist" | "fashion-mnist" => images(name, "t10k"),
        _ => table(&format!("{name}/data.csv.gz")).0,
    }
}

/// `count` rows in the order of a fixed draw.
pub(crate) fn sample(rows: &Array2<f64>, count: usize) -> Array2<f64> {
    let order = Stream::new(Seed::new(1), Role::Split, 0).permutation(rows.nrows());
    let chosen: Vec<usize> = order.iter().take(count).map(|&i| i as usize).collect();
    rows.select(Axis(0), &chosen)
}

/// The kernel that features estimate: inner products of all pairs of rows.
pub(crate) fn inner_products(features: &Array2<f64>) -> Array2<f64> {
    let (n, columns) = features.dim();
    let mut products = Array2::zeros((n, n));
    let tile = Tile::new(features.as_slice().expect("features are contiguous"), n, columns);
    matmul_nt(tile, tile, TileMut::new(products.as_slice_mut().expect("just made"), n, n)).unwrap();
    products
}

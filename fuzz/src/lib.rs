//! Reads whatever the bytes are: an answer or an error, never a crash.

use bochner::rows::RowSource;
use bochner_table::read::{Data, Input, Missing, Options, Selection};
use std::io::{self, Read};

/// Columns beyond which bytes are read once only.
const WIDE: usize = 100_000;

/// Bytes that arrive a few at a time, as from a pipe.
struct Dripping(io::Cursor<Vec<u8>>, usize);

impl Read for Dripping {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(buffer.len());
        self.1 = 1 + (5 * self.1 + 3) % 61;
        self.0.read(&mut buffer[..most])
    }
}

/// The inputs of all rows, if they can be read.
fn inputs(data: &Data) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    let read = data.rows::<f32>().for_each_block(&mut |block| {
        all.extend(block.rows.iter().map(|v| v.to_bits()));
        Ok(())
    });
    read.is_ok().then_some(all)
}

/// Opens and reads the bytes as a data file in several ways; a schema learned from them must read them again, and a pipe that
/// has all bytes at once must give the same numbers as a file.
pub fn read(bytes: &[u8]) {
    let input = || Input::from_bytes("fuzz", bytes.to_vec());
    let last = Selection { targets: vec!["-1".into()], ..Selection::default() };
    for missing in [Missing::Refuse, Missing::Median, Missing::Mark, Missing::Drop] {
        for selection in [&Selection::default(), &last] {
            // Columns that say nothing are left out where gaps are marked, as `fit` does it.
            let options = Options { missing, sift: missing == Missing::Mark, ..Options::default() };
            let Ok(data) = Data::open(input(), None, selection, &options) else { continue };
            let (d, t) = (data.schema().input_dim(), data.schema().targets.len());
            let read = data.rows::<f32>().for_each_block(&mut |block| {
                assert_eq!((block.rows.ncols(), block.targets.ncols()), (d, t));
                assert!(block.rows.iter().chain(&block.targets).all(|v| v.is_finite()));
                Ok(())
            });
            // Names of millions of columns take a second each time.
            if read.is_ok() && d < WIDE {
                let open = |input| Data::open_with(input, None, data.schema(), false, &options);
                let piped =
                    |source: Box<dyn Read + Send>| open(Input::from_stream("fuzz", source).expect("from memory"));
                let again = open(input()).expect("it was read before");
                let cursor = || io::Cursor::new(bytes.to_vec());
                // A few bytes tell less about a table than all of them.
                if let Ok(data) = piped(Box::new(Dripping(cursor(), 1))) {
                    inputs(&data);
                }
                // A pipe waits for the end of a line.
                if let (Ok(piped), true) = (piped(Box::new(cursor())), bytes.ends_with(b"\n")) {
                    assert_eq!(inputs(&again), inputs(&piped));
                }
            }
        }
    }
}

//! Reads whatever the bytes are: an answer or an error, never a crash.

use bochner::rows::RowSource;
use bochner_cli::read::{Data, Input, Missing, Options, Selection};

/// Opens and reads the bytes as a data file in several ways; a schema learned from them must read them again.
pub fn read(bytes: &[u8]) {
    let input = || Input::from_bytes("fuzz", bytes.to_vec());
    let last = Selection { targets: vec!["-1".into()], ..Selection::default() };
    for missing in [Missing::Refuse, Missing::Median, Missing::Drop] {
        for selection in [&Selection::default(), &last] {
            let options = Options { missing, ..Options::default() };
            let Ok(data) = Data::open(input(), None, selection, &options) else { continue };
            let (d, t) = (data.schema().input_dim(), data.schema().targets.len());
            let read = data.rows::<f32>().for_each_block(&mut |block| {
                assert_eq!((block.rows.ncols(), block.targets.ncols()), (d, t));
                assert!(block.rows.iter().chain(&block.targets).all(|v| v.is_finite()));
                Ok(())
            });
            if read.is_ok() {
                let again = Data::open_with(input(), None, data.schema(), false, &options);
                assert!(again.is_ok(), "{again:?}");
            }
        }
    }
}

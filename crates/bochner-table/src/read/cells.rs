//! Columns in memory: the cells of a table that never was a file, made into rows as those of files are.

use super::Result;
use super::columns::{absent, unknown_word};
use super::csv::is_missing;
use super::fault::{Fault, excerpt};
use super::schema::{Kind, Largest};
use crate::pipeline::Pipeline;
use bochner::Error;
use ndarray::Array2;

/// What is said about a gap to users of a model that was trained on rows without.
const ADVICE: &str = "the value is missing, and the model was trained on rows without gaps";

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Numbers; a NaN is a gap.
    Numbers(Vec<f64>),
    /// Words; `None` is a gap.
    Words(Vec<Option<String>>),
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::Numbers(cells) => cells.len(),
            Cells::Words(cells) => cells.len(),
        }
    }

    /// As a file of text would have it; `None` for a gap.
    fn word(&self, row: usize) -> Option<String> {
        match self {
            Cells::Numbers(cells) => Some(cells[row]).filter(|v| !v.is_nan()).map(|v| v.to_string()),
            Cells::Words(cells) => cells[row].clone(),
        }
    }
}

fn check(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}

impl Pipeline {
    /// Rows as the model wants them, from its input columns in their order.
    ///
    /// # Errors
    /// Columns of other lengths or another number of them, gaps where the model knows nothing to fill them with, words that
    /// did not occur in training, words in place of numbers, numbers that are too large.
    pub fn prepare(&self, columns: &[Cells]) -> Result<Array2<f64>> {
        check("number of columns", self.schema.inputs.len(), columns.len())?;
        let rows = columns.first().map_or(0, Cells::len);
        let mut prepared = Array2::zeros((rows, self.schema.input_dim()));
        let mut at = 0;
        for (number, (column, cells)) in self.schema.inputs.iter().zip(columns).enumerate() {
            check("number of rows of a column", rows, cells.len())?;
            let refused = |row: usize, message: String| -> Error {
                let (column, line) = (Some((number + 1, Some(column.name.clone()))), None);
                Fault { file: format!("row {}", row + 1), line, column, message }.into()
            };
            let gap = |row: usize| refused(row, absent(false, self.missing, Some(ADVICE)).into());
            match (&column.kind, cells) {
                (Kind::Number { fill }, Cells::Numbers(cells)) => {
                    let fill = fill.or(self.missing.fills().then_some(0.0));
                    for (row, &cell) in cells.iter().enumerate() {
                        let value = if cell.is_nan() { fill.ok_or_else(|| gap(row))? } else { cell };
                        if value.abs() > Largest::DOUBLE.value {
                            return Err(refused(row, format!("the number {value:e} is {}", Largest::DOUBLE.told)));
                        }
                        prepared[[row, at]] = value;
                    }
                    at += 1;
                }
                (Kind::Number { .. }, Cells::Words(cells)) => {
                    let found = cells.iter().enumerate().find_map(|(row, cell)| Some((row, cell.as_ref()?)));
                    return Err(match found {
                        Some((row, word)) => {
                            refused(row, format!("expected a number, found {}", excerpt(word.as_bytes())))
                        }
                        None => gap(0),
                    });
                }
                (Kind::Words { values }, cells) => {
                    for row in 0..rows {
                        let word = cells.word(row).unwrap_or_default();
                        match values.iter().position(|value| *value == word) {
                            Some(place) => prepared[[row, at + place]] = 1.0,
                            // A missing word is no word: all its columns stay 0.
                            None if is_missing(word.as_bytes()) && self.missing.fills() => {}
                            None if is_missing(word.as_bytes()) => return Err(gap(row)),
                            None => return Err(refused(row, unknown_word(&excerpt(word.as_bytes()), false, true))),
                        }
                    }
                    at += values.len();
                }
            }
        }
        self.prepared(prepared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Column, Missing};
    use crate::read::{Data, Input, Options, Schema};
    use bochner::rows::RowSource;

    fn pipeline(missing: Missing) -> Pipeline {
        let words = Kind::Words { values: vec!["blue".into(), "red".into()] };
        let number = Kind::Number { fill: missing.fills().then_some(2.5) };
        let column = |name: &str, kind: Kind| Column { name: name.into(), kind };
        let inputs = vec![column("size", number), column("color", words)];
        let schema = Schema { inputs, targets: Vec::new() };
        Pipeline { schema, missing, steps: Vec::new(), views: None, targets: Vec::new(), labels: Vec::new() }
    }

    /// The same cells as a file.
    fn of_file(pipeline: &Pipeline, text: &str) -> Result<Array2<f64>> {
        let options = Options { missing: pipeline.missing, advice: Some(ADVICE), ..Options::default() };
        let path =
            std::env::temp_dir().join(format!("bochner-cells-{}-{:?}.csv", std::process::id(), pipeline.missing));
        std::fs::write(&path, text)?;
        let data = Data::open_with(Input::open_once(&path)?, None, &pipeline.schema, false, &options)?;
        let mut all = Vec::new();
        data.rows::<f64>().for_each_block(&mut |block| {
            all.extend(block.rows.iter().copied());
            Ok(())
        })?;
        std::fs::remove_file(&path)?;
        let width = pipeline.schema.input_dim();
        Ok(Array2::from_shape_vec((all.len() / width, width), all).expect("whole rows"))
    }

    fn words(cells: &[Option<&str>]) -> Cells {
        Cells::Words(cells.iter().map(|cell| cell.map(String::from)).collect())
    }

    #[test]
    fn cells_in_memory_become_the_rows_that_those_of_a_file_become() {
        let filled = pipeline(Missing::Mean);
        let columns =
            [Cells::Numbers(vec![1.0, f64::NAN, 3.0, 4.0]), words(&[Some("red"), Some("blue"), None, Some("NA")])];
        let rows = filled.prepare(&columns).unwrap();
        assert_eq!(rows, of_file(&filled, "size,color\n1,red\n,blue\n3,\n4,NA\n").unwrap());
        assert_eq!(rows, ndarray::array![[1.0, 0.0, 1.0], [2.5, 1.0, 0.0], [3.0, 0.0, 0.0], [4.0, 0.0, 0.0]]);
    }

    #[test]
    fn what_files_are_refused_for_is_refused_in_memory_in_the_same_words() {
        let strict = pipeline(Missing::Refuse);
        let (one, red) = (|v: f64| Cells::Numbers(vec![v]), words(&[Some("red")]));
        let cases: [(&[Cells; 2], &str, &str); 3] = [
            (&[one(f64::NAN), red.clone()], "size,color\n,red\n", "column 1 (size): the value is missing"),
            (&[one(1.0), words(&[None])], "size,color\n1,\n", "column 2 (color): the value is missing"),
            (&[one(1.0), words(&[Some("green")])], "size,color\n1,green\n", "the word \"green\" did not occur"),
        ];
        for (cells, text, told) in cases {
            let (memory, file) = (strict.prepare(cells).unwrap_err(), of_file(&strict, text).unwrap_err());
            assert!(memory.to_string().contains(told) && file.to_string().contains(told), "{memory}\n{file}");
        }
        let infinite = strict.prepare(&[one(f64::INFINITY), red.clone()]).unwrap_err();
        assert!(infinite.to_string().contains("row 1: column 1 (size): the number inf is too large"), "{infinite}");
        assert!(strict.prepare(&[red.clone(), red.clone()]).unwrap_err().to_string().contains("expected a number"));
        assert!(strict.prepare(&[one(1.0)]).is_err());
    }
}

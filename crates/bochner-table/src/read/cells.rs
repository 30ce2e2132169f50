//! Columns in memory: the cells of a table that never was a file, made into rows as those of files are.

use super::Result;
use super::columns::{absent, unknown_word};
use super::fault::{Fault, excerpt};
use super::judge::{Verdict, is_missing};
use super::schema::{Kind, Largest, Missing};
use super::times::Moment;
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
            let reading = column.reading();
            // Numbers of a column of numbers, seconds of one of dates and times.
            let value = |row: usize| -> Result<Option<f64>> {
                match cells {
                    Cells::Numbers(cells) => Ok(Some(cells[row]).filter(|cell| !cell.is_nan())),
                    Cells::Words(cells) => match cells[row].as_deref().map(str::as_bytes) {
                        None => Ok(None),
                        Some(cell) if reading.is_gap(cell) => Ok(None),
                        // Numbers that programs hand over are numbers: words among them are a mistake.
                        Some(cell) if reading.verdict != Verdict::Number(None) => {
                            let told =
                                || refused(row, format!("expected {}, found {}", reading.expected(), excerpt(cell)));
                            reading.value(cell).map(Some).ok_or_else(told)
                        }
                        Some(cell) => Err(refused(row, format!("expected a number, found {}", excerpt(cell)))),
                    },
                }
            };
            let width = column.width();
            match &column.kind {
                Kind::Number { fill, marked, .. } => {
                    let fill = fill.or(self.missing.fills().then_some(0.0));
                    for row in 0..rows {
                        let cell = value(row)?;
                        let number = cell.or(fill).ok_or_else(|| gap(row))?;
                        if number.abs() > Largest::DOUBLE.value {
                            return Err(refused(row, format!("the number {number:e} is {}", Largest::DOUBLE.told)));
                        }
                        prepared[[row, at]] = number;
                        if *marked && cell.is_none() {
                            prepared[[row, at + 1]] = 1.0;
                        }
                    }
                }
                Kind::Time { parts, fill, marked, .. } => {
                    for row in 0..rows {
                        let cell = value(row)?;
                        let seconds = cell.or(*fill).ok_or_else(|| gap(row))?;
                        let told = || refused(row, format!("the time {seconds:e} seconds from 1970 is in no calendar"));
                        let moment = Moment::new(seconds).ok_or_else(told)?;
                        for (k, part) in parts.iter().enumerate() {
                            prepared[[row, at + k]] = part.of(&moment);
                        }
                        if *marked && cell.is_none() {
                            prepared[[row, at + parts.len()]] = 1.0;
                        }
                    }
                }
                Kind::Words { values, .. } => {
                    for row in 0..rows {
                        let word = cells.word(row).unwrap_or_default();
                        let is_gap = reading.is_gap(word.as_bytes()) && !values.contains(&word);
                        match column.word_number(if is_gap { "" } else { &word }) {
                            // Missing words share no column with others.
                            Some(place) if !is_gap || place < values.len() => prepared[[row, at + place]] = 1.0,
                            // A missing word is no word: all its columns stay 0.
                            _ if is_gap && self.missing.fills() => {}
                            _ if is_gap => return Err(gap(row)),
                            // Earlier versions took more words for gaps.
                            None if is_missing(word.as_bytes())
                                && self.missing.fills()
                                && self.missing != Missing::Mark => {}
                            _ => return Err(refused(row, unknown_word(&excerpt(word.as_bytes()), false, true))),
                        }
                    }
                }
            }
            at += width;
        }
        self.prepared(prepared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Column, TimePart, Unknown, Writing};
    use crate::read::{Data, Input, Options, Schema};
    use bochner::rows::RowSource;

    fn pipeline(missing: Missing) -> Pipeline {
        let words = Kind::words(vec!["blue".into(), "red".into()]);
        let number = Kind::number(missing.fills().then_some(2.5));
        let inputs = vec![Column::new("size", number), Column::new("color", words)];
        let schema = Schema { inputs, targets: Vec::new() };
        Pipeline { schema, missing, steps: Vec::new(), views: None, targets: Vec::new(), labels: Vec::new() }
    }

    /// The same cells as a file.
    fn of_file(pipeline: &Pipeline, text: &str) -> Result<Array2<f64>> {
        let unknown = Unknown::Refuse;
        let options = Options { missing: pipeline.missing, advice: Some(ADVICE), unknown, ..Options::default() };
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
    fn dates_and_numbers_in_memory_become_the_rows_that_those_of_a_file_become() {
        let parts = vec![TimePart::Days, TimePart::Year, TimePart::WeekdaySin];
        let day = Kind::Time { parts, day_first: true, clock: false, fill: Some(0.0), marked: true };
        let price = Kind::Number {
            fill: Some(2.5),
            marked: true,
            writing: Some(Writing { comma: true, sign: Some("€".into()) }),
        };
        let town = Kind::Words { values: vec![String::new(), "Bonn".into()], shared: 3 };
        let inputs = vec![Column::new("day", day), Column::new("price", price), Column::new("town", town)];
        let pipeline = Pipeline { schema: Schema { inputs, targets: Vec::new() }, ..pipeline(Missing::Mark) };
        let columns = [
            words(&[Some("25/12/2020"), Some("2020-01-06"), None]),
            words(&[Some("3,50 €"), None, Some("1.200")]),
            words(&[Some("Bonn"), Some("Köln"), None]),
        ];
        let rows = pipeline.prepare(&columns).unwrap();
        assert_eq!(
            rows,
            of_file(&pipeline, "day;price;town\n25/12/2020;3,50 €;Bonn\n2020-01-06;;Köln\n;1.200;\n").unwrap()
        );
        assert_eq!(rows.row(1).iter().take(6).copied().collect::<Vec<_>>(), [18267.0, 2020.0, 0.0, 0.0, 2.5, 1.0]);
        let seconds = [Cells::Numbers(vec![1_578_268_800.0]), words(&[Some("1,5")]), words(&[Some("Bonn")])];
        assert_eq!(pipeline.prepare(&seconds).unwrap()[[0, 0]], 18267.0);
        let wrong = [words(&[Some("soon")]), words(&[None]), words(&[None])];
        assert!(pipeline.prepare(&wrong).unwrap_err().to_string().contains("expected a date, found \"soon\""));
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

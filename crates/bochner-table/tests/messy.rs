//! Forty files as people write them, with the columns that they should become and what should be told. At least 36 are read at
//! the first try, without options; each of the others is refused with one report of all that is wrong.

use bochner::rows::RowSource;
use bochner_table::fit::Request;
use bochner_table::read::{Data, Input, Options, Selection};
use ndarray::Array2;
use std::fmt::Write;

/// What becomes of a file.
enum Expected {
    /// These inputs; of some of their cells (row, column, number) what they hold; sentences with these words.
    Columns(Vec<&'static str>, Vec<(usize, usize, f64)>, Vec<&'static str>),
    /// An error with all of these words.
    Report(Vec<&'static str>),
}

struct Messy {
    name: &'static str,
    bytes: Vec<u8>,
    expected: Expected,
    /// Rows that are left, where some are left out.
    rows: usize,
}

const ROWS: usize = 60;

/// A table of `rows` rows with a target `y` that depends on the number of the row.
fn rows(header: &str, rows: usize, separator: char, row: impl Fn(usize) -> String) -> String {
    let mut text = format!("{header}{separator}y\n");
    for i in 0..rows {
        let target = format!("{}.{}", (i * i) % 17, i % 7);
        let target = if separator == ';' { target.replace('.', ",") } else { target };
        writeln!(text, "{}{separator}{target}", row(i)).unwrap();
    }
    text
}

fn table(header: &str, row: impl Fn(usize) -> String) -> Vec<u8> {
    rows(header, ROWS, ',', row).into_bytes()
}

fn semicolons(header: &str, row: impl Fn(usize) -> String) -> Vec<u8> {
    rows(header, ROWS, ';', row).into_bytes()
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| if c == '€' { 0x80 } else { u8::try_from(c as u32).unwrap() }).collect()
}

fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let mark = mark.then_some(0xfeff);
    let units = mark.into_iter().chain(text.encode_utf16());
    units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

fn read(name: &'static str, bytes: Vec<u8>, columns: &[&'static str], told: &[&'static str]) -> Messy {
    Messy { name, bytes, expected: Expected::Columns(columns.to_vec(), Vec::new(), told.to_vec()), rows: ROWS }
}

fn refused(name: &'static str, bytes: Vec<u8>, told: &[&'static str]) -> Messy {
    Messy { name, bytes, expected: Expected::Report(told.to_vec()), rows: ROWS }
}

impl Messy {
    fn cell(mut self, row: usize, column: usize, number: f64) -> Self {
        if let Expected::Columns(_, cells, _) = &mut self.expected {
            cells.push((row, column, number));
        }
        self
    }

    fn rows(self, rows: usize) -> Self {
        Messy { rows, ..self }
    }
}

const DATE: [&str; 6] =
    ["day:days", "day:year", "day:yearday_sin", "day:yearday_cos", "day:weekday_sin", "day:weekday_cos"];

fn with<'a>(first: &[&'a str], then: &[&'a str]) -> Vec<&'a str> {
    [first, then].concat()
}

/// Sine and cosine of a part of a circle.
fn circle(part: f64) -> (f64, f64) {
    (std::f64::consts::TAU * part).sin_cos()
}

/// Days, months and years that differ from row to row: day 1 to 28.
fn date(i: usize) -> (usize, usize, usize) {
    (1 + (5 * i) % 28, 1 + (7 * i) % 12, 2019 + i % 3)
}

fn messy() -> Vec<Messy> {
    let day_and_x = with(&DATE, &["x"]);
    // 2020-06-15 is a Monday, 18,428 days after the first of 1970, and day 167 of 366.
    let monday = |i: usize, year_first: String| if i == 7 { year_first } else { String::new() };
    let or = |text: String, else_: String| if text.is_empty() { else_ } else { text };
    let (year_sin, year_cos) = circle(166.0 / 366.0);
    let dated = |messy: Messy| {
        let messy = messy.cell(7, 0, 18428.0).cell(7, 1, 2020.0).cell(7, 2, year_sin).cell(7, 3, year_cos);
        messy.cell(7, 4, 0.0).cell(7, 5, 1.0).cell(3, 6, 3.0)
    };
    let (six_sin, six_cos) = circle(6.5 / 24.0);
    let mut all = vec![
        // Dates and times.
        dated(read(
            "ISO dates",
            table("day,x", |i| {
                let (d, m, y) = date(i);
                format!("{},{i}", or(monday(i, "2020-06-15".into()), format!("{y}-{m:02}-{d:02}")))
            }),
            &day_and_x,
            &["day: dates"],
        )),
        dated(read(
            "DD.MM.YYYY",
            table("day,x", |i| {
                let (d, m, y) = date(i);
                format!("{},{i}", or(monday(i, "15.06.2020".into()), format!("{d:02}.{m:02}.{y}")))
            }),
            &day_and_x,
            &["day: dates"],
        )),
        dated(read(
            "MM/DD/YYYY, which the days beyond 12 tell",
            table("day,x", |i| {
                let (d, m, y) = date(i);
                format!("{},{i}", or(monday(i, "6/15/2020".into()), format!("{m}/{d}/{y}")))
            }),
            &day_and_x,
            &["day: dates", "month first"],
        )),
        dated(read(
            "DD/MM/YYYY, which the days beyond 12 tell",
            table("day,x", |i| {
                let (d, m, y) = date(i);
                format!("{},{i}", or(monday(i, "15/06/2020".into()), format!("{d:02}/{m:02}/{y}")))
            }),
            &day_and_x,
            &["day: dates", "day first"],
        )),
        read(
            "dates that could be either",
            table("day,x", |i| format!("{:02}/{:02}/{},{i}", 1 + i % 12, 1 + (5 * i) % 11, 2019 + i % 3)),
            &day_and_x,
            &["day: dates", "could be"],
        ),
        read(
            "date and time with T and Z",
            table("when,x", |i| format!("2021-03-{:02}T{:02}:30:00Z,{i}", 1 + i % 28, (6 + 5 * i) % 24)),
            &[
                "when:days",
                "when:yearday_sin",
                "when:yearday_cos",
                "when:weekday_sin",
                "when:weekday_cos",
                "when:hour_sin",
                "when:hour_cos",
                "x",
            ],
            &["when: dates and times"],
        )
        // 2021-03-01 is day 18,687 after the first of 1970, and a Monday.
        .cell(0, 0, 18687.0 + 6.5 / 24.0)
        .cell(0, 5, six_sin)
        .cell(0, 6, six_cos)
        .cell(0, 3, circle(0.0).0),
        read(
            "date and time with a blank, fractions of seconds and a zone",
            table("when,x", |i| format!("2021-03-{:02} {:02}:30:00.250+02:00,{i}", 1 + i % 28, (8 + 5 * i) % 24)),
            &[
                "when:days",
                "when:yearday_sin",
                "when:yearday_cos",
                "when:weekday_sin",
                "when:weekday_cos",
                "when:hour_sin",
                "when:hour_cos",
                "x",
            ],
            &["when: dates and times"],
        )
        .cell(0, 0, 18687.0 + (6.5 * 3600.0 + 0.25) / 86400.0),
        read(
            "times of day",
            table("at,x", |i| format!("{}:{:02},{i}", (6 + 7 * i) % 24, 30 * (1 + i % 2) % 60)),
            &["at:hours", "at:hour_sin", "at:hour_cos", "x"],
            &["at: times"],
        )
        .cell(0, 0, 6.5)
        .cell(0, 1, six_sin)
        .cell(0, 2, six_cos),
        read(
            "dates with gaps",
            table("day,x", |i| {
                let (d, m, y) = date(i);
                if i % 10 == 4 { format!(",{i}") } else { format!("{y}-{m:02}-{d:02},{i}") }
            }),
            &with(&DATE, &["day:missing", "x"]),
            &["day: dates", "day: 6"],
        )
        .cell(4, 6, 1.0)
        .cell(5, 6, 0.0),
        read(
            "the order of days and months is told by row 1,500 only",
            rows("day,x", 2000, ',', |i| match i {
                1500 => format!("25/12/2020,{i}"),
                _ => format!("{:02}/{:02}/{},{i}", 1 + i % 12, 1 + (5 * i) % 11, 2019 + i % 3),
            })
            .into_bytes(),
            &day_and_x,
            &["day: dates", "day first"],
        )
        .rows(2000)
        // 08/03/2020, the eighth of March.
        .cell(7, 0, 18329.0),
    ];
    // Numbers as people write them.
    all.extend([
        read("decimal commas", semicolons("a;b", |i| format!("{},5;{i}", i % 9)), &["a", "b"], &["a", "decimal comma"])
            .cell(3, 0, 3.5),
        read(
            "points between thousands and decimal commas",
            semicolons("a;b", |i| format!("{}.234,5{};{i}", 1 + i % 5, i % 3)),
            &["a", "b"],
            &["a", "decimal comma", "thousands"],
        )
        .cell(1, 0, 2234.51),
        read(
            "commas between thousands",
            table("a,b", |i| format!("\"{},{:03}.5\",{i}", 1 + i, (37 * i) % 1000)),
            &["a", "b"],
            &["a", "thousands"],
        )
        .cell(2, 0, 3074.5),
        read(
            "blanks between thousands",
            table("a,b", |i| format!("{}\u{202f}{:03},{i}", 1 + i, (37 * i) % 1000)),
            &["a", "b"],
            &["a", "thousands"],
        )
        .cell(2, 0, 3074.0),
        read(
            "apostrophes between thousands",
            table("a,b", |i| format!("{}'{:03},{i}", 1 + i, i)),
            &["a", "b"],
            &["a", "thousands"],
        )
        .cell(2, 0, 3002.0),
        read(
            "dollars",
            table("price,b", |i| format!("\"${},{:03}\",{i}", 1 + i, (91 * i) % 1000)),
            &["price", "b"],
            &["price", "$"],
        )
        .cell(1, 0, 2091.0),
        read(
            "euros behind",
            semicolons("price;b", |i| format!("{},90 €;{i}", 10 + i)),
            &["price", "b"],
            &["price", "€"],
        )
        .cell(1, 0, 11.9),
        read(
            "per cent",
            table("share,b", |i| format!("{} %,{i}", (12 + 7 * i) % 100)),
            &["share", "b"],
            &["share", "12 % is 12"],
        )
        .cell(0, 0, 12.0),
        read("a unit behind", table("mass,b", |i| format!("{}.5 kg,{i}", 3 + i)), &["mass", "b"], &["mass", "kg"])
            .cell(1, 0, 4.5),
        read("a minus of print", table("a,b", |i| format!("\u{2212}{}.5,{i}", i)), &["a", "b"], &["a"])
            .cell(2, 0, -2.5),
        read(
            "decimal commas from row 1,200 on",
            rows("a;b", 1500, ';', |i| if i < 1200 { format!("{};{i}", i % 50) } else { format!("{},25;{i}", i % 50) })
                .into_bytes(),
            &["a", "b"],
            &["a", "decimal comma"],
        )
        .rows(1500)
        .cell(3, 0, 3.0)
        .cell(1203, 0, 3.25),
    ]);
    // Gaps.
    let gappy = |marker: &'static str| {
        table("a,b", move |i| if i % 20 == 5 { format!("{marker},{i}") } else { format!("{},{i}", i % 11) })
    };
    all.extend([
        // 57 cells of 0 to 10 that are there: the 29th is 5.
        read("question marks", gappy("?"), &["a", "a:missing", "b"], &["a: 3", "?"])
            .cell(5, 0, 5.0)
            .cell(5, 1, 1.0)
            .cell(6, 1, 0.0),
        read("dashes", gappy("-"), &["a", "a:missing", "b"], &["a: 3", "-"]).cell(5, 0, 5.0).cell(5, 1, 1.0),
        read("points", gappy("."), &["a", "a:missing", "b"], &["a: 3", "."]).cell(5, 0, 5.0),
        read(
            "NA, N/A, null, None, NaN and nothing",
            table("a,b", |i| match i % 10 {
                5 => format!("{},{i}", ["NA", "N/A", "null", "None", "NaN", ""][i / 10]),
                _ => format!("{},{i}", i % 11),
            }),
            &["a", "a:missing", "b"],
            &["a: 6", "NA"],
        )
        .cell(25, 1, 1.0),
        read("a word that stands for nothing", gappy("unknown"), &["a", "a:missing", "b"], &["a: 3", "unknown"])
            .cell(5, 0, 5.0),
        read(
            "none is a word among words",
            table("garage,b", |i| format!("{},{i}", ["none", "one", "two"][i % 3])),
            &["garage=none", "garage=one", "garage=two", "b"],
            &[],
        )
        .cell(0, 0, 1.0),
        read(
            "gaps among words",
            table("color,b", |i| format!("{},{i}", ["red", "", "blue", "NA"][i % 4])),
            &["color=", "color=blue", "color=red", "b"],
            &["color: 30"],
        )
        .cell(1, 0, 1.0)
        .cell(3, 0, 1.0),
        read(
            "targets that are not there",
            {
                let text = String::from_utf8(table("a,b", |i| format!("{},{}", i % 11, i % 7))).unwrap();
                let line = |(i, line): (usize, &str)| match i % 10 {
                    3 => format!("{},\n", line.rsplit_once(',').unwrap().0),
                    _ => format!("{line}\n"),
                };
                text.lines().enumerate().map(line).collect::<String>().into_bytes()
            },
            &["a", "b"],
            &["6 rows", "target"],
        )
        .rows(ROWS - 6),
    ]);
    // Encodings.
    let words = |i: usize| format!("{},{i}", ["Düsseldorf", "Köln", "Fürth"][i % 3]);
    let town = ["Ort=Düsseldorf", "Ort=Fürth", "Ort=Köln", "b"];
    let text = String::from_utf8(table("Ort,b", words)).unwrap();
    all.extend([
        read("UTF-8 with a mark", [b"\xef\xbb\xbf", text.as_bytes()].concat(), &town, &[]).cell(1, 2, 1.0),
        read("Latin-1", latin1(&text), &town, &["windows-1252"]).cell(1, 2, 1.0),
        read("UTF-16, low end first", utf16(&text, true, false), &town, &["UTF-16LE"]).cell(1, 2, 1.0),
        read("UTF-16, high end first, without a mark", utf16(&text, false, true), &town, &["UTF-16BE"]).cell(1, 2, 1.0),
    ]);
    // Columns that say nothing, and columns that say too much.
    all.extend([
        read(
            "an identifier, a name and constants",
            table("id,who,unit,zero,nothing,b", |i| format!("{},person {i},kg,0,,{}", 1000 + i, i % 9)),
            &["b"],
            &["id", "who", "unit", "zero", "nothing", "left out"],
        )
        .cell(4, 0, 4.0),
        {
            let text = rows("town,b", 6000, ',', |i| format!("town {},{}", (i * i) % 1499, i % 9));
            let mut messy = read("many towns", text.into_bytes(), &[], &["town", "different words"]).rows(6000);
            // All names but those of the 64 columns of frequent ones and the 32 shared ones are checked in the test.
            messy.expected = Expected::Columns(vec!["many"], Vec::new(), vec!["town", "750 different words"]);
            messy
        },
    ]);
    // All of it.
    let everything = |i: usize| {
        let (d, m, y) = date(i);
        let town = ["Düsseldorf", "Köln", "keine", ""][i % 4];
        let rent = if i % 20 == 5 { "-".into() } else { format!("1.{:03},50 €", (37 * i) % 1000) };
        format!("{};{d:02}.{m:02}.{y};{town};{rent};EUR", 7000 + i)
    };
    let everything = String::from_utf8(semicolons("Kunden_ID;day;Ort;Miete;Währung", everything)).unwrap();
    all.push(
        read(
            "everything at once",
            latin1(&everything),
            &with(&DATE, &["Ort=", "Ort=Düsseldorf", "Ort=Köln", "Ort=keine", "Miete", "Miete:missing"]),
            &["windows-1252", "day: dates", "Ort: 15", "Miete: 3", "€", "Kunden_ID", "Währung"],
        )
        .cell(0, 10, 1000.5)
        .cell(5, 11, 1.0),
    );
    // What cannot be guessed without losing something.
    all.extend([
        refused(
            "two currencies",
            semicolons("price;b", |i| format!("{}{};{i}", ["$", "€"][i % 2], 3 + i)),
            &["price", "$", "€", "--categories price", "--drop price"],
        ),
        refused(
            "slips of several kinds in two columns",
            table("a,b", |i| match i {
                17 => "1O5,3".into(),
                30 => "7..5,3".into(),
                40 => "1,l2".into(),
                41 => "1,1e".into(),
                _ => format!("{i},{i}"),
            }),
            &["column 1 (a)", "\"1O5\"", "column 2 (b)", "\"l2\""],
        ),
        refused(
            "days and months in two orders",
            table("day,b", |i| {
                if i % 2 == 0 { format!("25/0{}/2020,{i}", 1 + i % 9) } else { format!("0{}/25/2020,{i}", 1 + i % 9) }
            }),
            &["day", "25/01/2020", "02/25/2020", "--categories day", "--drop day"],
        ),
        refused(
            "a date to be predicted",
            (0..ROWS)
                .fold("a,b,y\n".to_owned(), |text, i| text + &format!("{i},{},2020-01-{:02}\n", i % 7, 1 + i % 28))
                .into_bytes(),
            &["column 3 (y)", "2020-01-01", "predict"],
        ),
    ]);
    all
}

fn open(messy: &Messy) -> bochner::Result<(Data, Array2<f64>)> {
    let selection = Selection { targets: vec!["y".into()], ..Selection::default() };
    let input = Input::from_bytes("file", messy.bytes.clone());
    let data = Data::open(input, None, &selection, &Options::lenient())?;
    let rows = all(&data)?;
    Ok((data, rows))
}

fn all(data: &Data) -> bochner::Result<Array2<f64>> {
    let (mut numbers, mut rows) = (Vec::new(), 0);
    data.rows::<f64>().for_each_block(&mut |block| {
        numbers.extend(block.rows.iter().copied());
        rows += block.rows.nrows();
        Ok(())
    })?;
    Ok(Array2::from_shape_vec((rows, data.schema().input_dim()), numbers).unwrap())
}

/// What is wrong with how a file is read.
fn judge(messy: &Messy) -> Result<(), String> {
    let opened = open(messy).map_err(|e| e.to_string());
    let (columns, cells, told) = match (&messy.expected, &opened) {
        (Expected::Report(told), Err(report)) => {
            let missed: Vec<_> = told.iter().filter(|words| !report.contains(**words)).collect();
            return if missed.is_empty() { Ok(()) } else { Err(format!("{missed:?} is not told in {report}")) };
        }
        (Expected::Report(_), Ok(_)) => return Err("it is read, but something is lost".into()),
        (Expected::Columns(..), Err(report)) => return Err(report.clone()),
        (Expected::Columns(columns, cells, told), Ok(_)) => (columns, cells, told),
    };
    let (data, rows) = opened?;
    let names = data.schema().input_names();
    if columns == &["many"] {
        let shared = names.iter().filter(|name| name.starts_with("town#")).count();
        let frequent = names.iter().filter(|name| name.starts_with("town=")).count();
        if (frequent, shared, names.len()) != (64, 32, 97) {
            return Err(format!("{frequent} words and {shared} shared columns of {}", names.len()));
        }
        if rows.rows().into_iter().any(|row| row.iter().take(96).sum::<f64>() != 1.0) {
            return Err("a row has not one town".into());
        }
    } else if &names != columns {
        return Err(format!("the columns are {names:?}"));
    }
    if rows.nrows() != messy.rows {
        return Err(format!("there are {} rows", rows.nrows()));
    }
    for &(i, j, expected) in cells {
        // A time in days has an exact day and a rounded part of one; sines are rounded.
        if (rows[[i, j]] - expected).abs() > 4.0 * f64::EPSILON * expected.abs().max(1.0) {
            return Err(format!("row {i} of {} is {}, not {expected}", names[j], rows[[i, j]]));
        }
    }
    let remarks = data.remarks().join("\n");
    let missed: Vec<_> = told.iter().filter(|words| !remarks.contains(**words)).collect();
    if !missed.is_empty() {
        return Err(format!("{missed:?} is not told in {remarks:?}"));
    }
    // The same at predict, where rows without a target are rows too.
    if messy.rows == rows.nrows() && messy.rows.is_multiple_of(10) {
        let input = Input::from_bytes("new", messy.bytes.clone());
        let new = Data::open_with(input, None, data.schema(), false, &Options::lenient()).map_err(|e| e.to_string())?;
        if all(&new).map_err(|e| e.to_string())? != rows {
            return Err("a new file with the same cells becomes other rows".into());
        }
    }
    Ok(())
}

#[test]
fn messy_files_are_read_at_the_first_try_or_refused_with_one_report() {
    let all = messy();
    let complaints: Vec<String> =
        all.iter().filter_map(|messy| Some(format!("{}: {}", messy.name, judge(messy).err()?))).collect();
    println!("{} of {} files are read as expected", all.len() - complaints.len(), all.len());
    assert!(complaints.is_empty(), "{} of {}:\n{}", complaints.len(), all.len(), complaints.join("\n"));
}

/// Whole targets: which are numbers, and which are the names of classes?
#[test]
fn ordered_targets_are_told_from_classes() {
    let folder = std::env::temp_dir().join(format!("bochner-messy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let fit = |name: &str, target: &dyn Fn(usize) -> usize| {
        let path = folder.join(format!("{name}.csv"));
        let lines = (0..240).map(|i| format!("{},{},{}\n", i % 13, (i * i) % 29, target(i)));
        std::fs::write(&path, format!("a,b,{name}\n{}", lines.collect::<String>())).unwrap();
        let request = Request { budget: 0.2, ..Request::default() };
        let trained = bochner_table::fit(&path, name, &request).unwrap();
        (trained.kind.task.name().to_owned(), trained.reason)
    };
    // Marks around their middle, as the quality of wine has them; digits, each as often as the others; yes and no.
    let quality = [3, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 8];
    let (task, reason) = fit("opinion", &|i| quality[(i * 7) % 20]);
    assert_eq!(task, "regression", "{reason}");
    assert!(reason.contains("opinion holds 6 whole numbers from 3 to 8") && reason.contains("around"), "{reason}");
    assert_eq!(fit("digit", &|i| (i * 7) % 10).0, "classification");
    assert_eq!(fit("sick", &|i| usize::from(i % 3 == 0)).0, "classification");
    assert_eq!(fit("class", &|i| quality[(i * 7) % 20]).0, "classification", "the name says that these are classes");
    std::fs::remove_dir_all(folder).unwrap();
}

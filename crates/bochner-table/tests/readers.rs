//! Every format: files written by other software, nasty files, and random ones.

use bochner::rows::RowSource;
use bochner::scalar::Real;
use bochner_table::read::{Data, Element, Input, Kind, Largest, Missing, Options, Schema, Selection, Unknown};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Rows and targets of all blocks put together.
fn all<R: Element>(data: &Data) -> bochner::Result<(Vec<Vec<f64>>, Vec<Vec<f64>>)> {
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    let mut source = data.rows::<R>();
    let (d, t) = (source.input_dim(), source.target_dim());
    source.for_each_block(&mut |block| {
        assert_eq!((block.rows.ncols(), block.targets.ncols()), (d, t));
        assert_eq!(block.rows.nrows(), block.targets.nrows());
        rows.extend(block.rows.outer_iter().map(|r| r.iter().map(|v| Real::to_f64(*v)).collect::<Vec<_>>()));
        targets.extend(block.targets.outer_iter().map(|r| r.iter().map(|v| Real::to_f64(*v)).collect::<Vec<_>>()));
        Ok(())
    })?;
    Ok((rows, targets))
}

fn targets(names: &[&str]) -> Selection {
    Selection { targets: names.iter().map(|n| n.to_string()).collect(), ..Selection::default() }
}

fn read_bytes(bytes: impl Into<Vec<u8>>) -> bochner::Result<(Vec<Vec<f64>>, Vec<Vec<f64>>)> {
    read_with(bytes, &Selection::default(), &Options::default())
}

fn read_with(
    bytes: impl Into<Vec<u8>>,
    selection: &Selection,
    options: &Options,
) -> bochner::Result<(Vec<Vec<f64>>, Vec<Vec<f64>>)> {
    let input = Input::from_bytes("data", bytes.into());
    all::<f64>(&Data::open(input, None, selection, options)?)
}

fn complaint(bytes: impl Into<Vec<u8>>) -> String {
    read_bytes(bytes).expect_err("the file is bad").to_string()
}

/// The matrix of `tools/golden/readers.py`.
fn matrix() -> Vec<Vec<f64>> {
    (0..5).map(|i| (0..3).map(|j| f64::from((7 * i + 3 * j) % 11 - 5)).collect()).collect()
}

fn labels() -> Vec<Vec<f64>> {
    (0..5).map(|i| vec![f64::from(i % 3)]).collect()
}

fn open(name: &str, selection: &Selection) -> bochner::Result<Data> {
    Data::open(Input::open(&golden(name))?, None, selection, &Options::default())
}

#[test]
fn npy_files_of_every_number_type_hold_the_same_matrix() {
    for name in ["float32", "float64", "int8", "int16", "int32", "int64", "big_endian", "fortran"] {
        let data = open(&format!("{name}.npy"), &Selection::default()).unwrap();
        assert_eq!(all::<f64>(&data).unwrap().0, matrix(), "{name}");
        assert_eq!(all::<f32>(&data).unwrap().0, matrix(), "{name} as f32");
    }
    let absolute: Vec<Vec<f64>> = matrix().iter().map(|r| r.iter().map(|v| v.abs()).collect()).collect();
    for name in ["uint8", "uint16", "uint32", "uint64"] {
        let data = open(&format!("{name}.npy"), &Selection::default()).unwrap();
        assert_eq!(all::<f64>(&data).unwrap().0, absolute, "{name}");
    }
    let truth: Vec<Vec<f64>> = matrix().iter().map(|r| r.iter().map(|v| f64::from(*v != 0.0)).collect()).collect();
    assert_eq!(all::<f64>(&open("bool.npy", &Selection::default()).unwrap()).unwrap().0, truth);
    assert_eq!(all::<f32>(&open("float32.npy.gz", &Selection::default()).unwrap()).unwrap().0, matrix());
}

#[test]
fn columns_of_an_array_are_selected_by_number() {
    let (rows, target) = all::<f64>(&open("int16.npy", &targets(&["-1"])).unwrap()).unwrap();
    for (i, full) in matrix().iter().enumerate() {
        assert_eq!((&rows[i][..], &target[i][..]), (&full[..2], &full[2..]));
    }
}

#[test]
fn arrays_find_their_labels_in_a_second_file_or_in_the_archive() {
    let input = |name| Input::open(&golden(name)).unwrap();
    let data = Data::open(input("float32.npy"), Some(input("labels.npy")), &Selection::default(), &Options::default())
        .unwrap();
    assert_eq!(all::<f32>(&data).unwrap(), (matrix(), labels()));
    for name in ["stored.npz", "deflated.npz"] {
        for selection in [Selection::default(), targets(&["y"])] {
            let data = open(name, &selection).unwrap();
            assert_eq!(all::<f32>(&data).unwrap(), (matrix(), labels()), "{name}");
            assert_eq!(data.len_hint(), Some(5));
            // For predictions the labels are not looked at.
            let new = Data::open_with(input(name), None, data.schema(), false, &Options::default()).unwrap();
            assert!(new.schema().targets.is_empty() && all::<f32>(&new).unwrap().0 == matrix());
        }
    }
    let few =
        Data::open(input("one_based.libsvm"), Some(input("labels.npy")), &Selection::default(), &Options::default());
    assert!(few.unwrap_err().to_string().contains("go with NPY and IDX files only"));
}

#[test]
fn libsvm_files_count_from_one_or_from_zero() {
    for name in ["one_based.libsvm", "zero_based.libsvm"] {
        assert_eq!(all::<f64>(&open(name, &Selection::default()).unwrap()).unwrap(), (matrix(), labels()), "{name}");
    }
}

#[test]
fn an_index_0_in_a_later_line_is_told_with_its_line() {
    let open = |text: &str| {
        let input = Input::from_bytes("t.libsvm", text.as_bytes().to_vec());
        Data::open(input, None, &Selection::default(), &Options::default()).unwrap()
    };
    let from_one = open("1 1:2 2:3\n0 1:4\n");
    assert_eq!(
        (from_one.remarks(), from_one.schema().input_names()),
        (Vec::new(), vec!["1".to_owned(), "2".to_owned()])
    );
    let from_zero = open("1 1:2 2:3\n# comment\n0 0:4\n");
    assert_eq!(from_zero.remarks(), ["t.libsvm: line 3 has an index 0: columns are counted from 0"]);
    assert_eq!(all::<f64>(&from_zero).unwrap().0, [[0.0, 2.0, 3.0], [4.0, 0.0, 0.0]]);
    // New rows of a model that counts from 1.
    let new = |text: &str, schema: &Schema| {
        let input = Input::from_bytes("new.libsvm", text.as_bytes().to_vec());
        Data::open_with(input, None, schema, false, &Options::default())
    };
    let refused = new("1 2:3\n0 0:4\n", from_one.schema()).unwrap_err().to_string();
    assert_eq!(refused, "new.libsvm: line 2: there is an index 0, which the model does not know: it counts from 1");
    assert_eq!(new("1 2:3\n", from_one.schema()).unwrap().remarks(), Vec::<String>::new());
    // A model whose columns have names: indices are places, and where they begin has to be said.
    let table = Input::from_bytes("t.csv", b"a,b\n1,2\n3,4\n".to_vec());
    let table = Data::open(table, None, &Selection::default(), &Options::default()).unwrap();
    let told = "new.libsvm: columns are found by their places: the index 1 is a";
    assert_eq!(new("1 2:3\n", table.schema()).unwrap().remarks(), [told]);
}

#[test]
fn a_table_with_quotes_words_and_gaps_is_read_as_pandas_wrote_it() {
    for name in ["table.csv", "table.tsv.gz"] {
        let input = Input::open(&golden(name)).unwrap();
        let mean = Options { missing: Missing::Mean, ..Options::default() };
        let data = Data::open(input.clone(), None, &targets(&["class"]), &mean).unwrap();
        let names = data.schema().input_names();
        assert_eq!(
            names,
            [
                "size",
                "colour, or hue=dark \"blue\"",
                "colour, or hue=grün",
                "colour, or hue=red",
                "colour, or hue=two\nlines",
                "count"
            ]
        );
        assert_eq!(data.schema().targets[0].kind, Kind::words(vec!["no".into(), "yes".into()]));
        let (rows, classes) = all::<f64>(&data).unwrap();
        assert_eq!(classes, [[0.0], [1.0], [0.0], [0.0], [1.0]]);
        assert_eq!(rows[0], [1.5, 0.0, 0.0, 1.0, 0.0, 3.0]);
        assert_eq!(rows[1], [-2.25, 1.0, 0.0, 0.0, 0.0, 6.0], "the mean of 3, 5, 7, 9 fills the gap");
        assert_eq!(rows[4], [0.1, 0.0, 0.0, 0.0, 1.0, 9.0]);

        let refused = Data::open(input.clone(), None, &targets(&["class"]), &Options::default()).unwrap();
        let message = all::<f64>(&refused).unwrap_err().to_string();
        assert!(message.contains(&format!("{name}: line 3, column 3 (count): the value is missing")), "{message}");

        let drop = Options { missing: Missing::Drop, ..Options::default() };
        let data = Data::open(input, None, &targets(&["class"]), &drop).unwrap();
        assert_eq!(all::<f64>(&data).unwrap().1, [[0.0], [0.0], [0.0], [1.0]]);
    }
}

#[test]
fn a_schema_reads_new_files_in_its_own_order_and_refuses_unknown_words() {
    let text = "a,colour,y\n1,red,0\n2,blue,1\n";
    let data = Data::open(Input::from_bytes("t", text.into()), None, &targets(&["y"]), &Options::default()).unwrap();
    let schema = data.schema().clone();
    let stored: bochner_table::read::Schema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
    assert_eq!(stored, schema);
    let apply = |text: &str| {
        let strict = Options { unknown: Unknown::Refuse, ..Options::default() };
        let data = Data::open_with(Input::from_bytes("new.csv", text.into()), None, &schema, false, &strict)?;
        all::<f64>(&data).map(|r| r.0)
    };
    assert_eq!(apply("extra,colour,a\n9,blue,7\n").unwrap(), [[7.0, 1.0, 0.0]]);
    let message = apply("colour,a\ngreen,7\n").unwrap_err().to_string();
    assert_eq!(
        message,
        "new.csv: line 2, column 1 (colour): the word \"green\" did not occur in training; --unknown-words zeros takes such \
         words for none of those that did"
    );
    assert!(apply("a\n1\n").unwrap_err().to_string().contains("there is no column colour"));
}

#[test]
fn separators_headers_comments_and_line_ends_are_recognised() {
    let expected = vec![vec![1.0, 2.0], vec![3.5, -4.0]];
    for text in [
        "1,2\n3.5,-4\n",
        "1,2\n3.5,-4",
        "a,b\n1,2\n3.5,-4\n",
        "a;b\r\n1;2\r\n3.5;-4\r\n",
        "\u{feff}a\tb\n1\t2\n\n3.5\t-4\n\n",
        "# made by hand\n\n1 2\n3.5  -4 \n",
        "   1.000e+00   2\n   3.500e+00\t-4.0\n",
        "\"a\",\"b\"\n\"1\", 2\n 3.5 ,\"-4\"\n",
        "+1,2.\n35e-1,-.4e1\n",
    ] {
        assert_eq!(read_bytes(text).unwrap().0, expected, "{text:?}");
    }
}

#[test]
fn bars_and_carriage_returns_are_recognised_and_a_strange_separator_is_asked_for() {
    let expected = vec![vec![1.0, 2.0], vec![3.5, -4.0]];
    for text in ["a|b\n1|2\n3.5|-4\n", "a,b\r1,2\r3.5,-4\r", "1 2\r3.5 -4", "\"a\rb\",c\r1,2\r3.5,-4"] {
        assert_eq!(read_bytes(text).unwrap().0, expected, "{text:?}");
        assert_eq!(read_bytes(gzip(text.as_bytes())).unwrap().0, expected, "{text:?}");
    }
    assert_eq!(complaint("a,b\r1,2\r3,x,4\r"), "data: line 3: the row has more than 2 fields");
    let message = read_with("a~b\n1~2\n", &targets(&["b"]), &Options::default()).unwrap_err().to_string();
    assert_eq!(
        message,
        "data: there is no column b; the columns are a~b; if there are more, --separator CHARACTER says what stands \
         between them"
    );
}

#[test]
fn files_of_other_software_are_named() {
    let workbook = |first: &str| [&b"PK\x03\x04"[..], &[0; 26], first.as_bytes(), &[0; 50]].concat();
    for bytes in
        [workbook("[Content_Types].xml"), workbook("xl/workbook.xml"), b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1..".to_vec()]
    {
        assert_eq!(complaint(bytes), "data: this looks like a spreadsheet (Excel, LibreOffice); save it as CSV");
    }
    let named = Input::from_bytes("t.xlsx", workbook(""));
    let message = Data::open(named, None, &Selection::default(), &Options::default()).unwrap_err().to_string();
    assert!(message.contains("save it as CSV"), "{message}");
    for text in [
        "[{\"a\":1,\"y\":2},\n{\"a\":2}]",
        "{\"a\": [1, 2]}",
        "\u{feff}\n { \"a\": 1 }\n{\"a\": 2}",
        "[[1, 2], [3, 4]]",
    ] {
        assert!(complaint(text).starts_with("data: this looks like JSON, which is not read"), "{text}");
    }
    assert!(complaint("<!DOCTYPE html>\n<p>").contains("a web page"));
}

/// A table of `rows` rows whose first column is `cell(i)`.
fn table_of(rows: usize, cell: impl Fn(usize) -> String) -> String {
    (0..rows).fold("a,x,y\n".to_owned(), |text, i| text + &format!("\"{}\",{},{}\n", cell(i), i % 3, 2 * i))
}

#[test]
fn numbers_written_another_way_are_numbers_unless_the_user_says_otherwise() {
    let as_words =
        |names: &[&str]| Selection { words: names.iter().map(|n| n.to_string()).collect(), ..targets(&["y"]) };
    let read = |text: &str, selection: &Selection| read_with(text, selection, &Options::default());
    type Written = (fn(usize) -> String, fn(f64) -> f64);
    let written: [Written; 4] = [
        (|i| format!("{i},5"), |i| i + 0.5),
        (|i| format!("{i}%"), |i| i),
        (|i| format!("$ {i}"), |i| i),
        (|i| format!("{},234", i + 1), |i| 1000.0 * i + 1234.0),
    ];
    for (cell, number) in written {
        let text = table_of(12, cell);
        let (rows, _) = read(&text, &targets(&["y"])).unwrap();
        assert_eq!((rows[0][0], rows[7][0]), (number(0.0), number(7.0)), "{}", cell(7));
        // As a target too, and as words where they are asked for.
        assert_eq!(read(&text, &targets(&["a"])).unwrap().1[7], [number(7.0)]);
        assert_eq!(read(&text, &as_words(&["a"])).unwrap().0[0].len(), 13);
    }
    // Continental tables: semicolons between the numbers, with and without a header.
    for header in ["a;b;y\n", ""] {
        let (rows, _) = read_bytes(format!("{header}1,5;2,25;3\n2,5;3,5;4\n")).unwrap();
        assert_eq!(rows, [[1.5, 2.25, 3.0], [2.5, 3.5, 4.0]]);
    }
    // Points between thousands are told by the decimal commas of another column; in a table without, they are decimal signs.
    let (rows, _) = read_bytes("a;b\n1.234;1,5\n12.500;2,5\n100;3,5\n").unwrap();
    assert_eq!(rows, [[1234.0, 1.5], [12500.0, 2.5], [100.0, 3.5]]);
    let (rows, _) = read_bytes("a;b\n0.998;1,5\n0.999;2,5\n").unwrap();
    assert_eq!(rows, [[0.998, 1.5], [0.999, 2.5]]);
    assert_eq!(read_bytes("a;b\n1.234;1\n12.500;2\n").unwrap().0, [[1.234, 1.0], [12.5, 2.0]]);
    // New rows of a model are told what is expected.
    let data =
        Data::open(Input::from_bytes("t", "a,y\n1,2\n3,4\n".into()), None, &targets(&["y"]), &Options::default());
    let schema = data.unwrap().schema().clone();
    let new = || Input::from_bytes("new", "a\n\"1,5\"\n7\n".into());
    let message = all::<f64>(&Data::open_with(new(), None, &schema, false, &Options::default()).unwrap()).unwrap_err();
    assert!(message.to_string().contains("found \"1,5\": a number has a point as decimal sign"), "{message}");
    // Or their row has no answer, and keeps its place.
    let keep = Options { keep_rows: true, ..Options::default() };
    let data = Data::open_with(new(), None, &schema, false, &keep).unwrap();
    let (rows, _) = all::<f64>(&data).unwrap();
    assert!(rows[0][0].is_nan() && rows[1] == [7.0], "{rows:?}");
    let told = data.remarks();
    assert!(
        told[0].starts_with("new: line 2, column 1 (a): expected a number") && told[0].ends_with("no answer"),
        "{told:?}"
    );
}

#[test]
fn markers_of_gaps_are_those_that_the_user_names() {
    let text = "a,w,y\n1,none,1\n-999,NA,2\n3,x,3\n4,none,4\n";
    let open = |markers: &[&str]| {
        let markers = Some(markers.iter().map(|m| m.to_string()).collect());
        let options = Options { markers, ..Options::lenient() };
        let data = Data::open(Input::from_bytes("t", text.into()), None, &targets(&["y"]), &options).unwrap();
        let (rows, _) = all::<f64>(&data).unwrap();
        (data.schema().input_names(), rows[1].clone())
    };
    // The median of 1, 3 and 4.
    let named = (["a", "a:missing", "w=", "w=NA", "w=x"].map(String::from).to_vec(), vec![3.0, 1.0, 0.0, 1.0, 0.0]);
    assert_eq!(open(&["-999", "None"]), named);
    assert_eq!(open(&[]), (["a", "w=NA", "w=none", "w=x"].map(String::from).to_vec(), vec![-999.0, 1.0, 0.0, 0.0]));
}

#[test]
fn columns_that_say_nothing_are_taken_where_they_are_asked_for() {
    let text: String =
        (0..40).fold("id,one,name,x,y\n".into(), |text, i| text + &format!("{i},1,n{i},{},{i}\n", i % 7));
    let open = |inputs: Option<Vec<String>>, words: Vec<String>| {
        let selection = Selection { inputs, words, ..targets(&["y"]) };
        Data::open(Input::from_bytes("t", text.clone().into()), None, &selection, &Options::lenient()).unwrap()
    };
    let data = open(None, Vec::new());
    assert_eq!(data.schema().input_names(), ["x"]);
    let told = data.remarks().join("\n");
    assert!(told.contains("id (numbers the rows), one (1 in all rows), name (40 different words in 40 rows"), "{told}");
    let asked = |names: &[&str]| Some(names.iter().map(|n| n.to_string()).collect());
    assert_eq!(open(asked(&["id", "one"]), Vec::new()).schema().input_names(), ["id", "one"]);
    assert_eq!(open(None, vec!["name".into()]).schema().input_dim(), 41);
}

#[test]
fn another_encoding_is_noticed_far_from_the_beginning_too() {
    let lines: String = (0..30_000).map(|i| format!("{},{},{i}\n", ["rot", "blau"][i % 2], i % 13)).collect();
    let mut bytes = format!("w,x,y\n{lines}").into_bytes();
    bytes.extend(b"gr\xfcn,1,2\n");
    let open = |encoding: Option<&str>| {
        let options = Options { encoding: encoding.map(String::from), ..Options::default() };
        Data::open(Input::from_bytes("t", bytes.clone()), None, &targets(&["y"]), &options)
    };
    let data = open(None).unwrap();
    assert_eq!(data.schema().input_names(), ["w=blau", "w=grün", "w=rot", "x"]);
    assert_eq!(all::<f64>(&data).unwrap().0[30_000], [0.0, 1.0, 0.0, 1.0]);
    assert!(data.remarks()[0].starts_with("t: the text is taken for windows-1252"), "{:?}", data.remarks());
    assert_eq!(open(Some("latin-2")).unwrap().schema().input_names()[1], "w=grün");
    assert!(open(Some("utf-8")).unwrap_err().to_string().contains("is not UTF-8"));
    assert_eq!(open(Some("klingon")).unwrap_err().to_string(), "t: there is no encoding klingon");
}

#[test]
fn dates_are_read_in_strict_tables_too_and_gaps_among_them_refused() {
    let text = table_of(30, |i| format!("2020-01-{:02}", i + 1));
    let data =
        Data::open(Input::from_bytes("t", text.clone().into()), None, &targets(&["y"]), &Options::default()).unwrap();
    let parts = ["a:days", "a:yearday_sin", "a:yearday_cos", "a:weekday_sin", "a:weekday_cos", "x"];
    assert_eq!(data.schema().input_names(), parts);
    assert_eq!(all::<f64>(&data).unwrap().0[4][0], 18266.0);
    let message = complaint(text.replace("2020-01-03", ""));
    assert!(message.contains("line 4, column 1 (a): the value is missing"), "{message}");
}

#[test]
fn names_and_identifiers_are_no_categories() {
    let text = table_of(30, |i| format!("person{i}"));
    let message = read_with(text.as_str(), &targets(&["y"]), &Options::default()).unwrap_err().to_string();
    assert_eq!(
        message,
        "data: column 1 (a): 30 different words in 30 rows: names, identifiers or free text; --drop a leaves the column out, \
         --categories a takes it as it is"
    );
    let message = read_with(text.as_str(), &targets(&["a"]), &Options::default()).unwrap_err().to_string();
    assert!(message.contains("30 different words in 30 rows") && message.contains("cannot be predicted"), "{message}");
    let categories = Selection { words: vec!["a".into()], ..targets(&["y"]) };
    assert_eq!(read_with(text.as_str(), &categories, &Options::default()).unwrap().0[0].len(), 31);
    let drop = Selection { drop: vec!["a".into()], ..targets(&["y"]) };
    assert_eq!(read_with(text, &drop, &Options::default()).unwrap().0[0].len(), 1);
    for few in [table_of(19, |i| format!("person{i}")), table_of(40, |i| format!("kind{}", i % 20))] {
        assert!(read_with(few, &targets(&["y"]), &Options::default()).is_ok(), "few rows, or few words");
    }
}

#[test]
fn unknown_words_are_zeros_where_the_user_says_so_and_are_counted() {
    let learned = |text: &str| {
        let input = Input::from_bytes("t", text.into());
        Data::open(input, None, &targets(&["y"]), &Options::default()).unwrap().schema().clone()
    };
    let schema = learned("a,colour,y\n1,red,0\n2,blue,1\n");
    let zeros = Options { unknown: Unknown::Zeros, ..Options::default() };
    let new = |text: &str, targets| {
        Data::open_with(Input::from_bytes("new", text.into()), None, &schema, targets, &zeros).unwrap()
    };
    let data = new("colour,a\nred,5\ngreen,7\npink,8\n", false);
    assert_eq!(all::<f64>(&data).unwrap().0, [[5.0, 0.0, 1.0], [7.0, 0.0, 0.0], [8.0, 0.0, 0.0]]);
    let (cells, first) = data.unknown_words().unwrap();
    assert_eq!(cells, 2);
    assert_eq!(first.to_string(), "new: line 3, column 1 (colour): the word \"green\" did not occur in training");
    let known = new("colour,a\nred,5\n", false);
    assert!(all::<f64>(&known).is_ok() && known.unknown_words().is_none());
    // Classes are no features.
    let schema = learned("a,y\n1,yes\n2,no\n");
    let input = Input::from_bytes("new", "a,y\n1,perhaps\n".into());
    let message = all::<f64>(&Data::open_with(input, None, &schema, true, &zeros).unwrap()).unwrap_err().to_string();
    assert_eq!(message, "new: line 2, column 2 (y): the class \"perhaps\" did not occur in training");
    // Parquet files too.
    let bytes = std::fs::read(golden("none.parquet")).unwrap();
    let mean = Options { missing: Missing::Mean, ..Options::default() };
    let data = Data::open(Input::from_bytes("p", bytes.clone()), None, &targets(&["class"]), &mean).unwrap();
    let mut schema = data.schema().clone();
    let values = schema.inputs.iter_mut().find_map(|c| match &mut c.kind {
        Kind::Words { values, .. } => Some(values),
        Kind::Number { .. } | Kind::Time { .. } => None,
    });
    values.unwrap().retain(|word| word != "red");
    let open = |options: &Options| {
        Data::open_with(Input::from_bytes("p", bytes.clone()), None, &schema, false, options).unwrap()
    };
    let message = all::<f64>(&open(&Options { unknown: Unknown::Refuse, ..mean.clone() })).unwrap_err().to_string();
    assert!(message.contains("--unknown-words zeros"), "{message}");
    let data = open(&mean);
    assert_eq!(all::<f64>(&data).unwrap().0.len(), 1000);
    assert!(data.unknown_words().is_some_and(|(cells, first)| cells > 300 && first.to_string().contains("\"red\"")));
}

#[test]
fn a_missing_target_is_told_apart_from_a_missing_value() {
    let read = |text: &str, missing| read_with(text, &targets(&["y"]), &Options { missing, ..Options::default() });
    for text in ["a,y\n1,2\n3,\n", "a,y\n1,no\n3,\n"] {
        let message = read(text, Missing::Mean).unwrap_err().to_string();
        assert_eq!(
            message,
            "data: line 3, column 2 (y): the target is missing, and targets are not filled in; --drop-missing, in place of \
             --impute, leaves such rows out"
        );
        let message = read(text, Missing::Refuse).unwrap_err().to_string();
        assert_eq!(message, "data: line 3, column 2 (y): the target is missing; --drop-missing leaves such rows out");
    }
    let gap = npy(3, 2, |i, j| if (i, j) == (1, 1) { f64::NAN } else { 1.0 });
    for (missing, words) in [(Missing::Mean, "not filled in"), (Missing::Refuse, "--drop-missing leaves such")] {
        let options = Options { missing, ..Options::default() };
        let message = read_with(gap.clone(), &targets(&["2"]), &options).unwrap_err().to_string();
        assert!(
            message.contains("row 2") && message.contains(words) && !message.contains("--impute mean"),
            "{message}"
        );
    }
    // Users of a model cannot train it again.
    let advice = Options { advice: Some("ask its maker"), ..Options::default() };
    for bytes in [&b"a,y\n1,2\n,3\n"[..], &npy(2, 2, |i, _| [1.0, f64::NAN][i]), b"1 1:1\n2 1:nan\n"] {
        let message = read_with(bytes, &Selection::default(), &advice).unwrap_err().to_string();
        assert!(message.ends_with("ask its maker"), "{message}");
    }
}

#[test]
fn numbers_beyond_the_largest_are_refused_at_their_place() {
    let largest = Some(Largest { value: f64::from(f32::MAX), told: "too large for single precision" });
    let options = Options { largest, ..Options::default() };
    let array = npy(3, 2, |i, j| if (i, j) == (1, 1) { -1e300 } else { 1.0 });
    for (bytes, place) in [
        (&b"a,b\n1,2\n3,1e300\n"[..], "data: line 3, column 2 (b): the number 1e300 is"),
        (b"1 1:1\n2 1:1e300\n", "data: line 2: the number 1e300 is"),
        (b"1 1:1\n1e300 1:1\n", "data: line 2: the number 1e300 is"),
        (&array, "data: row 2, column 2 (counted from 1): the number -1e300 is"),
    ] {
        assert!(read_bytes(bytes).is_ok());
        let message = read_with(bytes, &Selection::default(), &options).unwrap_err().to_string();
        assert_eq!(message, format!("{place} too large for single precision"));
    }
    let message = read_with("a,b\n1,2\n3,1e300\n", &targets(&["b"]), &options).unwrap_err().to_string();
    assert!(message.starts_with("data: line 3, column 2 (b)"), "a target too: {message}");
}

#[test]
fn long_names_and_cells_are_cut_in_messages() {
    let long = "x".repeat(1 << 20);
    for text in [format!("{long},b\n1,2\n"), format!("a,b\n1,{long}\n"), format!("{long},b\n,2\n"), format!("{long}\n")]
    {
        for selection in [Selection::default(), targets(&["c"]), targets(&[&long[1..]])] {
            let message = read_with(text.as_str(), &selection, &Options::default())
                .map_or_else(|e| e.to_string(), |_| String::new());
            assert!(message.chars().count() < 400, "{} characters: {:.200}", message.len(), message);
        }
    }
    let message =
        read_with(format!("{long},b\n,2\n"), &Selection::default(), &Options::default()).unwrap_err().to_string();
    assert!(message.starts_with(&format!("data: line 2, column 1 ({}…): the value", "x".repeat(60))), "{message:.200}");
}

/// An archive of stored arrays, as `numpy.savez` writes it but for the dates.
fn archive(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut body, mut directory) = (Vec::new(), Vec::new());
    for (name, array) in arrays {
        let mut crc = flate2::Crc::new();
        crc.update(array);
        let (name, at, len) = (format!("{name}.npy"), body.len() as u32, (array.len() as u32).to_le_bytes());
        let common = [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &crc.sum().to_le_bytes(), &len, &len].concat();
        let name_len = (name.len() as u16).to_le_bytes();
        body.extend([&b"PK\x03\x04"[..], &common[..], &name_len, &[0; 2], name.as_bytes(), array].concat());
        let entry =
            [&b"PK\x01\x02"[..], &[20, 0][..], &common, &name_len, &[0; 12], &at.to_le_bytes(), name.as_bytes()];
        directory.extend(entry.concat());
    }
    let (n, size, at) = ((arrays.len() as u16).to_le_bytes(), directory.len() as u32, body.len() as u32);
    body.extend(directory);
    body.extend([&b"PK\x05\x06"[..], &[0; 4][..], &n, &n, &size.to_le_bytes(), &at.to_le_bytes(), &[0; 2]].concat());
    body
}

#[test]
fn the_only_array_with_columns_is_taken_under_any_name() {
    let rows = npy(4, 2, |i, j| (10 * i + j) as f64);
    let answers = npy(4, 1, |i, _| i as f64);
    let odd = archive(&[("answers", answers.clone()), ("measurements", rows.clone())]);
    let (found, target) = read_with(odd.clone(), &targets(&["answers"]), &Options::default()).unwrap();
    assert_eq!((found[3].as_slice(), target[3].as_slice()), (&[30.0, 31.0][..], &[3.0][..]));
    assert_eq!(read_bytes(odd).unwrap().0[1], [10.0, 11.0]);
    let message = complaint(archive(&[("a", rows.clone()), ("b", rows), ("c", answers)]));
    assert_eq!(message, "data: expected an array called X, or a single one with columns, found a, b, c");
}

#[test]
fn arrays_of_half_precision_are_read_exactly() {
    // Bits of numpy 2: np.float16([1, -2, 65504, 6e-8, -0.33325, 0, 2**-14, -0.0]).view(np.uint16).
    let bits: [u16; 8] = [0x3c00, 0xc000, 0x7bff, 0x0001, 0xb555, 0x0000, 0x0400, 0x8000];
    let expected =
        vec![vec![1.0, -2.0], vec![65504.0, 2f64.powi(-24)], vec![-0.333251953125, 0.0], vec![2f64.powi(-14), -0.0]];
    for (order, bytes) in [('<', bits.map(u16::to_le_bytes).concat()), ('>', bits.map(u16::to_be_bytes).concat())] {
        let header = format!("{{'descr': '{order}f2', 'fortran_order': False, 'shape': (4, 2), }}");
        let file =
            [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &bytes].concat();
        let data = |file: Vec<u8>, missing| {
            let options = Options { missing, ..Options::default() };
            Data::open(Input::from_bytes("data", file), None, &Selection::default(), &options)
        };
        let whole = data(file.clone(), Missing::Refuse).unwrap();
        assert_eq!(
            (all::<f32>(&whole).unwrap().0, all::<f64>(&whole).unwrap().0),
            (expected.clone(), expected.clone())
        );
        let at = file.len() - 2;
        for (strange, words) in [(0x7c00u16, "found an infinity"), (0x7e00, "found NaN")] {
            let bytes = if order == '<' { strange.to_le_bytes() } else { strange.to_be_bytes() };
            let file = [&file[..at], &bytes].concat();
            assert!(complaint(file.clone()).contains(words));
            assert_eq!(data(file, Missing::Zero).and_then(|d| all::<f64>(&d)).is_ok(), strange == 0x7e00);
        }
    }
}

/// A stream that hands over one piece at a time, as somebody who types does.
struct Typed(std::collections::VecDeque<Vec<u8>>, std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl std::io::Read for Typed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(piece) = self.0.front_mut() else { return Ok(0) };
        let n = piece.len().min(buffer.len());
        buffer[..n].copy_from_slice(&piece[..n]);
        piece.drain(..n);
        if piece.is_empty() {
            self.0.pop_front();
            self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        Ok(n)
    }
}

#[test]
fn rows_of_a_stream_are_handed_over_before_the_next_ones_are_read() {
    let text = "a,colour,y\n1,red,0\n2,blue,1\n";
    let data = Data::open(Input::from_bytes("t", text.into()), None, &targets(&["y"]), &Options::default()).unwrap();
    let schema = data.schema().clone();
    for pieces in [
        &["colour,a\n", "red,1\n", "blue,2\nred,3\n", "bl", "ue,4", "\n", "red,5"][..],
        &["colour,a\nred,1\n", "blue,2\nred,3\nblue,4\n", "red", ",5\n"],
        &["colour,a\rred,1\rblue,2\rred,3\rblue,4\rred,5\r"],
    ] {
        let taken = std::sync::Arc::default();
        let typed = pieces.iter().map(|p| p.as_bytes().to_vec()).collect();
        let input = Input::from_stream("typed", Box::new(Typed(typed, std::sync::Arc::clone(&taken)))).unwrap();
        let data = Data::open_with(input, None, &schema, false, &Options::default()).unwrap();
        assert!(data.input().is_stream());
        let (mut rows, mut when) = (Vec::new(), Vec::new());
        data.rows::<f64>()
            .for_each_block(&mut |block| {
                rows.extend(block.rows.column(0).iter().copied());
                when.push(taken.load(std::sync::atomic::Ordering::SeqCst));
                Ok(())
            })
            .unwrap();
        assert_eq!(rows, [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(pieces.len() == 1 || when[0] < pieces.len(), "{when:?} of {}", pieces.len());
        let again = all::<f64>(&data).unwrap_err().to_string();
        assert!(again.contains("can be read only once"), "{again}");
    }
    // A row that the columns fit is answered before there is a second one.
    for first in ["red,1\n", "colour,a\nred,1\n", "1;red\n"] {
        let schema = match first.starts_with('1') {
            true => Schema { inputs: schema.inputs.clone(), targets: Vec::new() },
            false => Schema { inputs: schema.inputs.iter().rev().cloned().collect(), targets: Vec::new() },
        };
        let taken = std::sync::Arc::default();
        let typed = [first, "blue,2\n"].map(|p| p.as_bytes().to_vec()).into();
        let input = Input::from_stream("typed", Box::new(Typed(typed, std::sync::Arc::clone(&taken)))).unwrap();
        let data = Data::open_with(input, None, &schema, false, &Options::default()).unwrap();
        let mut answered = None;
        let read = data.rows::<f64>().for_each_block(&mut |_| {
            answered.get_or_insert(taken.load(std::sync::atomic::Ordering::SeqCst));
            Ok(())
        });
        assert_eq!((answered, read.is_ok()), (Some(1), !first.contains(';')), "{first}");
    }
    // Formats that are read in several passes are copied first.
    let bytes = std::fs::read(golden("float32.npy")).unwrap();
    let learned = Data::open(Input::from_bytes("t", bytes.clone()), None, &Selection::default(), &Options::default());
    for bytes in [bytes.clone(), gzip(&bytes)] {
        let typed = bytes.chunks(50).map(<[u8]>::to_vec).collect();
        let input = Input::from_stream("typed", Box::new(Typed(typed, std::sync::Arc::default()))).unwrap();
        let schema = learned.as_ref().unwrap().schema();
        let data = Data::open_with(input, None, schema, false, &Options::default()).unwrap();
        assert!(!data.input().is_stream() && all::<f32>(&data).unwrap().0 == matrix());
    }
}

#[test]
fn rows_written_plainly_and_otherwise_have_the_same_numbers() {
    // Target in the middle; quotes, exponents, signs, blanks, many digits and other line ends take the long way.
    let write = |i: usize| match i % 6 {
        0 | 1 => format!("{i},-0.25,1234567.125\n"),
        2 => format!("\"{i}\",-2.5e-1,1234567.125\n"),
        3 => format!(" {i} ,-0.25 ,+1234567.125\r\n"),
        4 => format!("{i}.0000000000000000000000,-.25,1234567.1250\n\n"),
        _ => format!("{i}.,-0.250,1234567.125\r\n"),
    };
    let text = |rows: usize| (0..rows).fold("a,y,b\n".to_owned(), |text, i| text + &write(i));
    let (rows, found) = read_with(text(600), &targets(&["y"]), &Options::default()).unwrap();
    assert_eq!(rows, (0..600).map(|i| vec![i as f64, 1_234_567.125]).collect::<Vec<_>>());
    assert!(found.iter().all(|y| y == &[-0.25]));
    let zeros = format!("a,b\n{}", "-0,-0.00\n".repeat(40));
    assert!(read_bytes(zeros).unwrap().0.iter().flatten().all(|zero| *zero == 0.0 && zero.is_sign_negative()));
    // Places of mistakes behind many plain rows, and numbers that are plain and too large.
    let plain = "1,2,3\n".repeat(100);
    for (last, place, words) in [
        ("1,x,3", "line 102, column 2 (y)", "expected a number"),
        ("1,2", "line 102", "has 2 fields"),
        ("1,2,3,4", "line 102", "more than 3"),
    ] {
        let told = complaint(format!("a,y,b\n{plain}{last}\n{plain}"));
        assert!(told.contains(place) && told.contains(words), "{told}");
    }
    let largest = Some(Largest { value: 1e6, told: "larger than expected" });
    let told =
        read_with(text(100), &targets(&["y"]), &Options { largest, ..Options::default() }).unwrap_err().to_string();
    assert!(told.contains("line 2, column 3 (b)") && told.contains("larger than expected"), "{told}");
}

/// The same table as a file and as a pipe that hands over a line at a time.
fn from_both(text: &str, schema: &Schema, options: &Options) -> [bochner::Result<Vec<Vec<f64>>>; 2] {
    let typed = text.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect();
    let pipe = Input::from_stream("new", Box::new(Typed(typed, std::sync::Arc::default()))).unwrap();
    [Input::from_bytes("new", text.into()), pipe].map(|input| {
        let data = Data::open_with(input, None, schema, false, options)?;
        Ok(all::<f64>(&data)?.0)
    })
}

#[test]
fn a_quote_inside_a_field_changes_nothing_in_files_and_pipes() {
    let text = "size,y\n3,0\n4,1\n";
    let data = Data::open(Input::from_bytes("t", text.into()), None, &targets(&["y"]), &Options::default()).unwrap();
    let rows = |n: usize| (0..n).map(|i| if i == 7 { "2\" pipe,7\n".into() } else { format!("\"a\nb\",{i}\n") });
    // The second one is several pieces long, which end where a line does and not where quotes come in pairs.
    for n in [20, 200_000] {
        let text = "what,size\n".chars().chain(rows(n).collect::<String>().chars()).collect::<String>();
        for found in from_both(&text, data.schema(), &Options::default()) {
            let found = found.unwrap();
            assert_eq!((found.len(), found[8][0], found[n - 1][0]), (n, 8.0, (n - 1) as f64));
        }
    }
}

#[test]
fn a_row_that_fits_the_columns_is_data_whatever_has_arrived_of_a_pipe() {
    let open = |text: &str, names: &[&str]| {
        Data::open(Input::from_bytes("t", text.into()), None, &targets(names), &Options::default()).unwrap()
    };
    // Words alone look like a header, unless they are the words of the columns.
    let colours = open("colour,size,y\nred,big,1\nblue,small,2\n", &["y"]);
    for found in from_both("red,small\nblue,big\n", colours.schema(), &Options::default()) {
        assert_eq!(found.unwrap(), [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]);
    }
    for found in from_both("size,colour\nbig,red\n", colours.schema(), &Options::default()) {
        assert_eq!(found.unwrap(), [[0.0, 1.0, 1.0, 0.0]]);
    }
    // The first lines have as many commas as semicolons: columns tell which of them stands between fields.
    let places = open("place;size;y\nA, B;1;2\nC, D;3;4\n", &["y"]);
    for found in from_both("C, D;5\nA, B;6\n", places.schema(), &Options::default()) {
        assert_eq!(found.unwrap(), [[0.0, 1.0, 5.0], [1.0, 0.0, 6.0]]);
    }
    // Carriage returns inside a line separate nothing. Found by fuzzing.
    let strange = open("x\ry\n\t\"\n", &[]);
    for found in from_both("x\ry\n\t\"\n", strange.schema(), &Options::default()) {
        assert_eq!(found.unwrap(), [[1.0]]);
    }
    // Who asks for a column by name tells the separator as well.
    let named = open("size;price, net\n1;low, really\n2;high, or not\n", &["price, net"]);
    assert_eq!(all::<f64>(&named).unwrap(), (vec![vec![1.0], vec![2.0]], vec![vec![1.0], vec![0.0]]));
}

#[test]
fn a_numeric_header_needs_to_be_announced() {
    let options = |header| Options { header: Some(header), ..Options::default() };
    assert_eq!(read_with("1,2\n3,4\n", &Selection::default(), &options(true)).unwrap().0, [[3.0, 4.0]]);
    assert_eq!(read_bytes("1,2\n3,4\n").unwrap().0.len(), 2);
    assert!(read_with("a,b\n3,4\n", &Selection::default(), &options(false)).is_ok(), "words in the first row");
}

#[test]
fn a_row_of_numbers_is_the_header_of_who_asks_for_a_column_by_one_of_them() {
    let years = "2019,2020,2021\n1.5,7.25,1.75\n2.5,1.25,2.75\n";
    let open = |text: &str, selection: &Selection| {
        Data::open(Input::from_bytes("data", text.into()), None, selection, &Options::default())
    };
    let named = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    for selection in [
        targets(&["2021"]),
        Selection { drop: named(&["2019"]), ..targets(&["3"]) },
        Selection { inputs: Some(named(&["2020"])), ..targets(&["-1"]) },
    ] {
        let data = open(years, &selection).unwrap();
        assert!(!data.lacks_header());
        assert_eq!(all::<f64>(&data).unwrap().1, [[1.75], [2.75]]);
        assert_eq!(data.schema().targets[0].name, "2021");
        // New rows are found by these names as well, in any order, with and without a target, and from a pipe.
        for new in ["2020,2019,9\n7,1,0\n", "2019,2020\n1,7\n"] {
            let schema = data.schema();
            let again = |input| Data::open_with(input, None, schema, false, &Options::default()).unwrap();
            let file = all::<f64>(&again(Input::from_bytes("new", new.into()))).unwrap().0;
            let pipe = Input::from_stream("new", Box::new(std::io::Cursor::new(new))).unwrap();
            assert_eq!(all::<f64>(&again(pipe)).unwrap().0, file);
            let expected = schema.inputs.iter().map(|c| if c.name == "2019" { 1.0 } else { 7.0 }).collect::<Vec<_>>();
            assert_eq!(file, [expected]);
        }
    }
    // A number of a column, a row with the same number twice, and a row nobody mentions are data.
    for (text, target) in [(years, "3"), ("2,3,1\n1,2,3\n", "2"), ("7,7,9\n1,2,3\n", "-1")] {
        let data = open(text, &targets(&[target])).unwrap();
        assert!(data.lacks_header() && all::<f64>(&data).unwrap().0.len() == text.lines().count());
    }
    let message = open(years, &targets(&["2022"])).unwrap_err().to_string();
    assert_eq!(
        message,
        "data: there is no column 2022; the columns are 1, 2, 3, as no header was found; --header takes the first row for one"
    );
    let message = open("7,7,9\n1,2,3\n", &targets(&["9"])).unwrap_err().to_string();
    assert!(message.contains("--header"), "another name is there twice: {message}");
    let message = open("0.5,7,9\n1,2,3\n", &targets(&["9"])).unwrap_err().to_string();
    assert!(message.contains("--header"), "a measurement: {message}");
}

#[test]
fn whole_numbers_with_zeros_at_the_beginning_are_names_of_classes() {
    let table = |rows: usize, class: &dyn Fn(usize) -> String| {
        (0..rows).fold("code,y\n".to_owned(), |text, i| text + &format!("{:03},{}\n", i % 7, class(i)))
    };
    let open = |text: &str, selection: &Selection| {
        Data::open(Input::from_bytes("data", text.into()), None, selection, &Options::default()).unwrap()
    };
    for class in [
        |i: usize| ["007", "100", "020"][i % 3].to_owned(),
        |i: usize| ["\"007\"", "7"][i % 2].to_owned(),
        |i: usize| ["12345678901234567890", "12345678901234567891"][i % 2].to_owned(),
    ] {
        let text = table(60, &class);
        let data = open(&text, &targets(&["y"]));
        let Kind::Words { values, .. } = &data.schema().targets[0].kind else { panic!("{} is a name", class(0)) };
        let (rows, found) = all::<f64>(&data).unwrap();
        assert_eq!(rows[6], [6.0], "inputs stay numbers");
        let schema = data.schema();
        let again =
            Data::open_with(Input::from_bytes("new", text.clone().into()), None, schema, true, &Options::default());
        assert_eq!(all::<f64>(&again.unwrap()).unwrap().1, found);
        for (i, found) in found.iter().enumerate() {
            assert_eq!(values[found[0] as usize], class(i).replace('"', ""));
        }
    }
    let is_number = |text: &str, names: &[&str]| {
        let data = open(text, &targets(names));
        all::<f64>(&data).unwrap();
        (matches!(data.schema().targets[0].kind, Kind::Number { .. }), data.code_among_targets())
    };
    // What is printed as it is written, what is not whole, and what has more than one target.
    for class in
        [|i: usize| (i % 3).to_string(), |i: usize| format!("{}.0", i % 3), |i: usize| ["+1", "-1"][i % 2].to_owned()]
    {
        assert_eq!(is_number(&table(60, &class), &["y"]), (true, None));
    }
    let fraction = |i: usize| ["007", "1.5"][i % 2].to_owned();
    assert!(is_number(&table(60, &fraction), &["y"]).0);
    assert_eq!(is_number("a,b,c\n01,02,3\n04,05,6\n", &["a", "b"]), (true, None));
    // Nearly every row another one: measurements of a fixed length.
    for rows in [60, 5000] {
        assert!(is_number(&table(rows, &|i| format!("{i:06}")), &["y"]).0);
    }
    // Further down than anybody looks beforehand: told to who takes them for classes.
    let late = table(3000, &|i| if i < 2500 { "7".into() } else { "08".into() });
    let (number, code) = is_number(&late, &["y"]);
    assert_eq!(
        (number, code.unwrap().to_string().as_str()),
        (
            true,
            "data: line 2502, column 2 (y): the class \"08\" would become 8; --categories y takes the column as words"
        )
    );
}

#[test]
fn a_column_without_a_single_value_is_told_apart_from_a_gap() {
    let read = |bytes: &[u8], selection: &Selection, missing| {
        read_with(bytes, selection, &Options { missing, ..Options::default() }).map_err(|e| e.to_string())
    };
    // As a comma at the end of every line makes one.
    for text in [&b"a,b,\n1,2,\n3,4,\n"[..], b"a,b,\nred,2,\nblue,4,\n"] {
        for missing in [Missing::Refuse, Missing::Mean, Missing::Median, Missing::Drop] {
            assert_eq!(
                read(text, &targets(&["b"]), missing).unwrap_err(),
                "data: column 3 (3): the column is empty in all rows; --drop 3 leaves it out",
                "{missing:?}"
            );
            let message = read(text, &targets(&["3"]), missing).unwrap_err();
            assert!(message.starts_with("data: column 3 (3): the target is missing in all rows"), "{message}");
        }
        let zeros = read(text, &targets(&["b"]), Missing::Zero).unwrap().0;
        assert!(zeros.iter().all(|row| row.last() == Some(&0.0)));
        let drop = Selection { drop: vec!["3".into()], ..targets(&["b"]) };
        assert_eq!(read(text, &drop, Missing::Refuse).unwrap().1, [[2.0], [4.0]]);
    }
    let message = read(b"a,b\n1,\n3,\n", &Selection { words: vec!["b".into()], ..targets(&["a"]) }, Missing::Zero);
    assert!(message.unwrap_err().contains("column 2 (b): the column is empty"), "no words make no column");
    // Gaps are gaps.
    let message = read(b"a,b\n1,\n,4\n", &Selection::default(), Missing::Refuse).unwrap_err();
    assert!(message.contains("line 2, column 2 (b): the value is missing"), "{message}");
    let message = read(b"a,b\n1,\n,4\n", &Selection::default(), Missing::Drop).unwrap_err();
    assert_eq!(message, "data: there are no rows without empty cells");
    // Arrays and sparse files have no mean of nothing either.
    let array = npy(3, 3, |i, j| if j == 1 { f64::NAN } else { (i + j) as f64 });
    let sparse = b"1 1:2 2:nan\n2 1:3 2:nan\n";
    for missing in [Missing::Mean, Missing::Median] {
        assert_eq!(
            read(&array, &targets(&["3"]), missing).unwrap_err(),
            "data: column 2 (counted from 1): the column is empty in all rows; --drop 2 leaves it out"
        );
        assert!(read(sparse, &Selection::default(), missing).unwrap_err().contains("column 2: the column is empty"));
    }
    assert_eq!(read(&array, &targets(&["3"]), Missing::Zero).unwrap().0[2], [2.0, 0.0]);
}

#[test]
fn known_columns_may_have_no_rows() {
    let learned = |bytes: &[u8], selection: &Selection| {
        let data = Data::open(Input::from_bytes("t", bytes.to_vec()), None, selection, &Options::default()).unwrap();
        data.schema().clone()
    };
    let read = |bytes: &[u8], schema: &bochner_table::read::Schema| {
        let input = Input::from_bytes("new", bytes.to_vec());
        Data::open_with(input, None, schema, false, &Options::default()).and_then(|data| all::<f64>(&data))
    };
    let table = learned(b"a,5,y\n1,2,3\n4,5,6\n", &targets(&["y"]));
    for text in [&b"a,5,y\n"[..], b"a,5", b"# nothing yet\n5,a\n\n"] {
        assert_eq!(read(text, &table).unwrap(), (vec![], vec![]));
        let pipe = Input::from_stream("new", Box::new(std::io::Cursor::new(text.to_vec()))).unwrap();
        let pipe = Data::open_with(pipe, None, &table, false, &Options::default()).unwrap();
        assert!(all::<f64>(&pipe).unwrap().0.is_empty());
    }
    assert!(read(b"", &table).unwrap_err().to_string().contains("the file is empty"));
    let array = learned(&npy(2, 3, |i, j| (i + j) as f64), &targets(&["3"]));
    for columns in [2, 3] {
        assert_eq!(read(&npy(0, columns, |_, _| 0.0), &array).unwrap(), (vec![], vec![]));
        assert_eq!(complaint(npy(0, columns, |_, _| 0.0)), "data: there are no rows");
    }
    let empty = archive(&[("X", npy(0, 2, |_, _| 0.0)), ("y", npy(0, 1, |_, _| 0.0))]);
    assert_eq!(read(&empty, &array).unwrap(), (vec![], vec![]));
    assert_eq!(complaint(empty), "data: there are no rows");
}

#[test]
fn nul_bytes_wide_encodings_and_what_follows_compressed_bytes_are_told_as_they_are() {
    let rows: String = (0..40).map(|i| format!("{i},{},3\n", 2 * i)).collect();
    let damaged = |cell: &str| format!("a,b,c\n{}", rows.replace("\n6,12,3\n", &format!("\n6,{cell},3\n")));
    for cell in ["1\x002", "\0", "\"1\x002\""] {
        assert_eq!(
            complaint(damaged(cell)),
            "data: line 8, column 2: found a NUL byte, which is no text: the file is damaged"
        );
    }
    let far: String = (0..2000).map(|i| if i == 1500 { "1,x\0,3\n".into() } else { format!("{i},x,3\n") }).collect();
    let message = complaint(format!("a,b,c\n{far}"));
    assert!(message.contains("found \"x \" with a NUL byte"), "among words: {message}");
    let message = complaint(format!("a,b,c\n{}", far.replace('x', "1")));
    assert!(message.starts_with("data: line 1502, column 2 (b)") && message.contains("with a NUL byte"), "{message}");
    let text = "a,b\n1,2\n3,4\n";
    let wide = |bytes: &dyn Fn(u32) -> Vec<u8>, mark: bool| {
        let mark = mark.then_some('\u{feff}');
        mark.into_iter().chain(text.chars()).flat_map(|c| bytes(c as u32)).collect::<Vec<u8>>()
    };
    for mark in [true, false] {
        for bytes in [wide(&|c| c.to_le_bytes().to_vec(), mark), wide(&|c| c.to_be_bytes().to_vec(), mark)] {
            assert_eq!(complaint(bytes), "data: the text is UTF-32; save it as UTF-8", "mark {mark}");
        }
        for bytes in
            [wide(&|c| (c as u16).to_le_bytes().to_vec(), mark), wide(&|c| (c as u16).to_be_bytes().to_vec(), mark)]
        {
            assert_eq!(read_bytes(bytes).unwrap().0, [[1.0, 2.0], [3.0, 4.0]], "mark {mark}");
        }
    }
    let packed = gzip(text.as_bytes());
    let expected = vec![vec![1.0, 2.0], vec![3.0, 4.0]];
    for tail in [&b""[..], &[0; 3], &[0; 100_000]] {
        assert_eq!(read_bytes([&packed[..], tail].concat()).unwrap().0, expected, "filled up with zeros");
    }
    let twice = [&packed[..], &[0; 9], &gzip(b"5,6\n")].concat();
    assert_eq!(read_bytes(twice).unwrap().0.len(), 3, "two members");
    for tail in ["x", "garbage", &"garbage ".repeat(20_000)] {
        for tail in [tail.as_bytes(), &[&[0; 5][..], tail.as_bytes()].concat()] {
            assert_eq!(
                complaint([&packed[..], tail].concat()),
                "data: bytes that are not compressed follow those that are: the file is damaged"
            );
        }
    }
    assert!(complaint(&packed[..packed.len() - 3]).contains("truncated"));
}

#[test]
fn codes_are_words_where_the_user_says_so() {
    let selection = Selection { words: vec!["code".into()], ..targets(&["y"]) };
    let (rows, _) = read_with("code,y\n10,1\n20,2\n10,3\n", &selection, &Options::default()).unwrap();
    assert_eq!(rows, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]);
}

#[test]
fn bad_tables_get_one_sentence_with_line_and_column() {
    for (text, sentence) in [
        (&b""[..], "data: the file is empty"),
        (b"\n\n \n", "data: there are no rows"),
        (b"a,b\n", "data: there are no rows"),
        (b"a,b,a\n1,2,3\n", "data: line 1, column 3: the name \"a\" is already taken by column 1"),
        (b"a,b\n1,2\n3\n", "data: line 3: the row has 1 fields, expected 2"),
        (b"a,b\n1,2\n3,4,5\n", "data: line 3: the row has more than 2 fields"),
        (b"a,b\n1,2\n3,inf\n", "data: line 3, column 2 (b): the number \"inf\" is infinite"),
        (b"a,b\n1,2\n3,1e999\n", "data: line 3, column 2 (b): the number \"1e999\" is infinite"),
        (b"a,b\n\"1,2\n", "data: line 2, column 1: a quoted field is not closed"),
        (b"a,b\n\"1\"x,2\n", "data: line 2, column 1: there is text after a closing quote"),
        (b"\xff\xfea\0,\0b\0\n\0", "data: there are no rows"),
        (
            b"\xff\xfea\0\n\0\x00\xd8\x31\0",
            "data: the text is not UTF-16LE all through; --encoding names another encoding",
        ),
        (b"abc\0\0\0\0", "data: this is not a text file, and not one of the known binary formats"),
        (b"PAR1....", "data: the Parquet file is damaged: it is too short"),
        (b"PAR1.........", "data: the Parquet file is damaged: its end is missing: it is truncated"),
    ] {
        assert_eq!(complaint(text), sentence, "{:?}", String::from_utf8_lossy(text));
    }
}

#[test]
fn a_word_far_down_in_a_column_of_numbers_is_found_at_its_line() {
    let mut text = String::from("a,b\n");
    for i in 0..150_000 {
        text.push_str(&format!("{i},{}\n", 2 * i));
    }
    text.push_str("7,seven\n");
    assert_eq!(complaint(text), "data: line 150002, column 2 (b): expected a number, found \"seven\"");
}

#[test]
fn a_few_words_among_many_numbers_are_mistakes_unless_the_user_says_otherwise() {
    // A comment and an empty line come before the word: lines are those of the file.
    let table = |numbers: usize, word: &str| {
        let mut text = String::from("# made by hand\na,\"b\"\n");
        (0..numbers).for_each(|i| text.push_str(&format!("{i},{}\n", 2 * i)));
        text + &format!("\n7,7\n8,{word}\n9,9\n")
    };
    assert_eq!(
        complaint(table(20, "seven")),
        "data: line 25, column 2 (b): expected a number, as 22 of the first 23 cells of this column are, found \"seven\"; \
         --missing-markers says which words stand for nothing, --categories b takes the column as words, --drop b leaves it \
         out"
    );
    let words = |words: &[&str]| Selection { words: words.iter().map(|w| w.to_string()).collect(), ..targets(&["a"]) };
    let read = |text: String, selection: Selection| read_with(text, &selection, &Options::default());
    let (rows, _) = read(table(20, "seven"), words(&["b"])).unwrap();
    assert_eq!(rows[0].len(), 23, "a column per word");
    let message = read(table(20, "seven"), Selection { words: vec![], ..targets(&["b"]) }).unwrap_err().to_string();
    assert!(message.contains("line 25, column 2 (b)"), "a target too: {message}");
    assert!(read(table(4, "seven"), words(&[])).is_ok(), "few rows may be anything");
    for missing in ["NA", "nan", "?", ""] {
        assert!(complaint(table(20, missing)).contains("line 25, column 2 (b): the value is missing"), "{missing:?}");
    }
}

#[test]
fn identifiers_are_not_categories() {
    let text: String =
        std::iter::once("id,y\n".to_owned()).chain((0..2000).map(|i| format!("name{i},{i}\n"))).collect();
    let message = complaint(text.as_str());
    assert!(message.starts_with("data: column 1 (id): 2000 different words in 2000 rows"), "{message}");
    let message = read_with(text, &targets(&["id"]), &Options::default()).unwrap_err().to_string();
    assert!(message.starts_with("data: column 1 (id): more than 1000 different words"), "{message}");
}

#[test]
fn a_gigantic_header_is_read_and_its_columns_found() {
    let names: Vec<String> = (0..100_000).map(|j| format!("column_{j}")).collect();
    let values: Vec<String> = (0..100_000).map(|j| j.to_string()).collect();
    let text = format!("{}\n{}\n", names.join(","), values.join(","));
    let selection = Selection { inputs: Some(vec!["column_99999".into()]), ..Selection::default() };
    assert_eq!(read_with(text, &selection, &Options::default()).unwrap().0, [[99_999.0]]);
}

#[test]
fn bad_arrays_get_one_sentence() {
    let header = |text: &str| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    };
    let good = header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
    let mut full = good.clone();
    full.extend([0; 24]);
    assert!(read_bytes(full.clone()).is_ok());
    for len in 6..full.len() {
        let message = complaint(&full[..len]);
        assert!(message.contains("truncated"), "cut at {len}: {message}");
    }
    let mut infinite = full.clone();
    let at = infinite.len() - 4;
    infinite[at..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    assert!(complaint(infinite).contains("row 2, column 3 (counted from 1): expected a finite number"));
    let huge = header("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999999999), }");
    assert!(complaint(huge).contains("which no file holds"));
    let wide = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 9999999999), }");
    assert!(complaint(wide.clone()).contains("truncated"));
    assert!(complaint(gzip(&wide)).contains("too long"), "a compressed length cannot be checked beforehand");
    assert!(complaint(header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }")).contains("no rows"));
    assert!(complaint(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }")).contains("no columns"));
    let objects = open("objects.npy", &Selection::default()).unwrap_err().to_string();
    assert!(objects.contains("Python objects (pickle), which are never loaded"), "{objects}");
    let mut fortran = std::fs::read(golden("fortran.npy")).unwrap();
    fortran = gzip(&fortran);
    assert!(complaint(fortran).contains("Fortran order"));
}

#[test]
fn promises_of_long_rows_are_not_believed() {
    // Sizes of a compressed file are known only when it has been read: 24 bytes must not take gigabytes, nor minutes.
    let idx = |rows: u32, columns: u32| {
        let mut bytes = vec![0, 0, 8, 2];
        bytes.extend(rows.to_be_bytes());
        bytes.extend(columns.to_be_bytes());
        bytes.extend([1; 12]);
        gzip(&bytes)
    };
    assert_eq!(complaint(idx(2_000_000, 4_000_000)), "data: the file ends in row 1 of 2000000: it is truncated");
    assert_eq!(complaint(idx(2, 5_000_000)), "data: rows of 5000000 numbers are too long; 4194304 is the most");
    // Time linear in the columns; searches among all of them for each took minutes.
    let (rows, _) = read_bytes("1 400000:2\n0 7:3\n").unwrap();
    assert_eq!((rows[0].len(), rows[0][399_999], rows[1][6]), (400_000, 2.0, 3.0));
}

#[test]
fn bad_archives_get_one_sentence() {
    for name in ["stored.npz", "deflated.npz"] {
        let bytes = std::fs::read(golden(name)).unwrap();
        for len in 4..bytes.len() {
            let message = complaint(&bytes[..len]);
            assert!(message.starts_with("data: the archive is damaged"), "{name} cut at {len}: {message}");
        }
        // Any byte may be flipped: the answer is an error or the right matrix, never another one.
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            match read_bytes(flipped) {
                Ok((rows, _)) => assert_eq!(rows, matrix(), "{name} flipped at {at}"),
                Err(_) if at < 4 => {}
                Err(message) => {
                    assert!(
                        message.to_string().contains("the archive is damaged"),
                        "{name} flipped at {at}: {message}"
                    );
                }
            }
        }
        // The bytes of X, in the middle of the file, are told by its name.
        let at = bytes.len() / 4;
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        assert!(complaint(flipped).starts_with("data: the archive is damaged, in its member "), "{name}");
    }
}

#[test]
fn bad_idx_files_get_one_sentence() {
    let file = |sizes: &[u32], data: &[u8]| {
        let mut bytes = vec![0, 0, 8, sizes.len() as u8];
        sizes.iter().for_each(|s| bytes.extend(s.to_be_bytes()));
        bytes.extend(data);
        bytes
    };
    let good = file(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(read_bytes(good.clone()).unwrap().0, [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]);
    assert_eq!(read_bytes(gzip(&good)).unwrap().0.len(), 2);
    for len in 4..good.len() {
        assert!(complaint(&good[..len]).contains("truncated"), "cut at {len}");
    }
    let compressed = gzip(&good);
    for len in 18..compressed.len() {
        assert!(complaint(&compressed[..len]).contains("truncated"), "compressed, cut at {len}");
    }
    let little = file(&[2u32.swap_bytes(), 3u32.swap_bytes()], &[0; 6]);
    assert_eq!(complaint(little), "data: the sizes are little-endian; IDX files are big-endian");
    let huge = file(&[u32::MAX; 8], &[0; 6]);
    assert!(complaint(huge).contains("more numbers than any file holds"));
}

#[test]
fn parquet_files_of_every_codec_and_encoding_hold_the_same_table() {
    let mean = Options { missing: Missing::Mean, ..Options::default() };
    for name in ["none", "snappy", "gzip", "zstd", "lz4", "plain", "delta", "split", "groups"] {
        let path = golden(&format!("{name}.parquet"));
        let data = Data::open(Input::open(&path).unwrap(), None, &targets(&["class"]), &mean).unwrap();
        assert_eq!(data.len_hint(), Some(1000), "{name}");
        assert_eq!(
            data.schema().input_names(),
            ["float", "double", "int", "long", "byte", "flag", "word=blue", "word=grün", "word=red", "gaps"]
        );
        let Kind::Words { values, .. } = &data.schema().targets[0].kind else { panic!("words are words") };
        assert_eq!(values, &["no", "yes"]);
        let (rows, classes) = all::<f64>(&data).unwrap();
        let present: Vec<f64> = (0..1000).filter(|i| i % 7 != 0).map(|i| f64::from(i) / 4.0).collect();
        let mean = present.iter().sum::<f64>() / present.len() as f64;
        for (i, (row, class)) in rows.iter().zip(&classes).enumerate() {
            let n = i as f64;
            let word = i % 3;
            let mut expected = vec![n / 8.0 - 3.0, 1.0 / (n + 1.0), n * n - 5000.0, 10_000_000_000.0 - n, n % 251.0];
            expected.push(f64::from(u8::from(i % 5 == 0)));
            expected.extend((0..3).map(|w| f64::from(u8::from(w == word))));
            expected.push(if i % 7 == 0 { mean } else { n / 4.0 });
            for (found, expected) in row.iter().zip(&expected) {
                assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{name}, row {i}: {row:?} {expected}");
            }
            assert_eq!(class[0], f64::from(u8::from(i % 2 == 1)), "{name}, row {i}");
        }
        let refused = Data::open(Input::open(&path).unwrap(), None, &targets(&["class"]), &Options::default()).unwrap();
        let message = all::<f64>(&refused).unwrap_err().to_string();
        assert!(message.contains("column 8 (gaps): row 1 (counted from 1): the value is missing"), "{message}");
        let drop = Options { missing: Missing::Drop, ..Options::default() };
        let dropped = Data::open(Input::open(&path).unwrap(), None, &targets(&["class"]), &drop).unwrap();
        assert_eq!(all::<f32>(&dropped).unwrap().0.len(), present.len());
        let again = Data::open_with(Input::open(&path).unwrap(), None, data.schema(), false, &drop).unwrap();
        assert_eq!(again.schema().inputs, data.schema().inputs);
    }
}

#[test]
fn bad_parquet_files_get_one_sentence() {
    let bytes = std::fs::read(golden("snappy.parquet")).unwrap();
    for len in (4..bytes.len()).step_by(37) {
        let message = complaint(&bytes[..len]);
        assert!(message.starts_with("data: the Parquet file is damaged"), "cut at {len}: {message}");
    }
    assert!(complaint(std::fs::read(golden("nested.parquet")).unwrap()).contains("lists and nested columns"));
    let message = complaint(gzip(&bytes));
    assert!(message.contains("not compressed as a whole"), "{message}");
}

#[test]
fn numbers_of_double_precision_are_too_large_for_single() {
    for text in ["1 1:1e60\n", "1e60 1:1\n", "a,b\n1e60,2\n"] {
        let data = Data::open(
            Input::from_bytes("data", text.as_bytes().to_vec()),
            None,
            &Selection::default(),
            &Options::default(),
        );
        let data = data.unwrap();
        assert!(all::<f64>(&data).is_ok());
        let message = all::<f32>(&data).unwrap_err().to_string();
        assert!(message.starts_with("data: line ") && message.ends_with("too large for f32"), "{message}");
    }
}

#[test]
fn bad_libsvm_files_get_one_sentence() {
    for (text, sentence) in [
        ("1 1:2\n1 2\n", "data: line 2: expected index:value, found \"2\""),
        ("1 1:2\nx 1:2\n", "data: line 2: expected a label, found \"x\""),
        ("1 2:1 2:3\n", "data: line 1: the index 2 comes twice or out of order"),
        (
            "1 1:nan\n",
            "data: line 1: \"1:nan\" is not a number: the value is missing; --impute mean fills such cells in, --drop-missing \
             leaves their rows out",
        ),
        ("1 1:-inf\n", "data: line 1: \"1:-inf\" is not finite"),
        ("1 4000000000:1\n", "data: the index 4000000000 makes rows of 4000000000 numbers, which is too long"),
        ("1 1:2 # fine\n\n# comment\n2 -1:3\n", "data: line 4: expected index:value, found \"-1:3\""),
        (
            "1 qid:1 1:1 2:2\n2 qid:1 1:2 2:2\n",
            "data: line 1: expected index:value, found \"qid:1\": queries, as rankings have them, are not supported",
        ),
        ("1,2 1:1\n2 1:3\n", "data: line 1: expected a label, found \"1,2\": rows of several labels are not supported"),
        (
            "2 1:3\n# comment\n1,-2,3 1:1\n",
            "data: line 3: expected a label, found \"1,-2,3\": rows of several labels are not supported",
        ),
    ] {
        assert_eq!(complaint(text), sentence, "{text:?}");
    }
}

#[test]
fn missing_files_and_folders_are_named() {
    let message = |path: &str| Input::open(Path::new(path)).unwrap_err().to_string();
    assert_eq!(message("no/such.csv"), "no/such.csv: there is no such file");
    assert_eq!(message("/"), "/: expected a file, found a folder");
}

/// An NPY file of doubles, column `j` of row `i` being `value(i, j)`.
fn npy(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Vec<u8> {
    let shape = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(((shape.len() + 1) as u16).to_le_bytes());
    bytes.extend(shape.as_bytes());
    bytes.push(b'\n');
    (0..rows * columns).for_each(|k| bytes.extend(value(k / columns, k % columns).to_le_bytes()));
    bytes
}

#[test]
fn gaps_of_arrays_and_of_sparse_files_are_filled_in_as_those_of_tables_are() {
    // Column 1 is 0, 10, …, 50 with a gap in row 3; column 2 is the target.
    let table = |i: usize, j: usize| match (i, j) {
        (2, 0) => f64::NAN,
        (i, 0) => 10.0 * i as f64,
        (i, _) => i as f64,
    };
    let sparse: String = (0..6).map(|i| format!("{i} 1:{}\n", table(i, 0))).collect();
    let text: String = (0..6).map(|i| format!("{},{i}\n", table(i, 0)).replace("NaN", "")).collect();
    let target = targets(&["2"]);
    let files =
        [(npy(6, 2, table), &target), (text.into_bytes(), &target), (sparse.into_bytes(), &targets(&["label"]))];
    for (bytes, selection) in &files {
        let read = |missing| read_with(bytes.clone(), selection, &Options { missing, ..Options::default() });
        assert!(read(Missing::Refuse).unwrap_err().to_string().contains("--impute"));
        for (missing, fill) in [(Missing::Mean, 26.0), (Missing::Median, 30.0), (Missing::Zero, 0.0)] {
            let (rows, targets) = read(missing).unwrap();
            let expected: Vec<Vec<f64>> = (0..6).map(|i| vec![if i == 2 { fill } else { table(i, 0) }]).collect();
            assert_eq!(rows, expected, "{missing:?}");
            assert_eq!(targets.len(), 6);
        }
        let (rows, targets) = read(Missing::Drop).unwrap();
        assert_eq!((rows.len(), &targets[2][0]), (5, &3.0));
        // Gaps in new rows get what was learned from the old ones.
        let mean = Options { missing: Missing::Mean, ..Options::default() };
        let learned = Data::open(Input::from_bytes("old", bytes.clone()), None, selection, &mean).unwrap();
        let again =
            Data::open_with(Input::from_bytes("new", bytes.clone()), None, learned.schema(), false, &mean).unwrap();
        assert_eq!(all::<f32>(&again).unwrap().0[2], [26.0]);
    }
    // A missing target is never made up.
    let gap = npy(3, 2, |i, j| if (i, j) == (1, 1) { f64::NAN } else { 1.0 });
    let options = Options { missing: Missing::Mean, ..Options::default() };
    let message = read_with(gap, &target, &options).unwrap_err().to_string();
    assert!(message.contains("row 2") && message.contains("target is missing"), "{message}");
}

#[test]
fn columns_of_sparse_files_are_chosen_by_their_indices() {
    let file = "1 1:1 2:2 3:3\n-1 1:4 3:6\n";
    let chosen = |inputs: Option<&[&str]>, drop: &[&str]| {
        let words = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        Selection { inputs: inputs.map(words), drop: words(drop), ..Selection::default() }
    };
    let read = |selection: &Selection| read_with(file, selection, &Options::default()).map(|(rows, _)| rows);
    assert_eq!(read(&chosen(Some(&["3", "1"]), &[])).unwrap(), [[3.0, 1.0], [6.0, 4.0]]);
    assert_eq!(read(&chosen(None, &["2"])).unwrap(), [[1.0, 3.0], [4.0, 6.0]]);
    assert_eq!(read(&chosen(Some(&["3", "2", "1"]), &[])).unwrap(), [[3.0, 2.0, 1.0], [6.0, 0.0, 4.0]]);
    // The same columns in another order are other rows, of arrays as well.
    let array = npy(2, 2, |i, j| (10 * i + j) as f64);
    let turned = read_with(array, &chosen(Some(&["2", "1"]), &[]), &Options::default()).unwrap().0;
    assert_eq!(turned, [[1.0, 0.0], [11.0, 10.0]]);
    assert!(read(&chosen(None, &["7"])).unwrap_err().to_string().contains("there is no column 7"));
    assert!(read(&targets(&["2"])).unwrap_err().to_string().contains("called label"));
    // A model finds its columns again, whatever else the file holds; one that counts from 0 is another file.
    let bytes = |text: &str| Input::from_bytes("new", text.as_bytes().to_vec());
    let learned = Data::open(bytes(file), None, &chosen(None, &["2"]), &Options::default()).unwrap();
    let again = |text: &str| Data::open_with(bytes(text), None, learned.schema(), false, &Options::default());
    assert_eq!(all::<f64>(&again("0 1:7 2:8 3:9 9:1\n").unwrap()).unwrap().0, [[7.0, 9.0]]);
    assert!(again("0 0:7 2:8\n").unwrap_err().to_string().contains("counts from 1"));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Finite numbers of all magnitudes.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), -1e3..1e3f64, (-1000i32..1000).prop_map(f64::from)]
        .prop_map(|v| if v.is_finite() { v } else { 0.5 })
}

fn any_table() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (1usize..6).prop_flat_map(|d| prop::collection::vec(prop::collection::vec(any_number(), d), 1..40))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_written_with_all_digits_come_back_bit_for_bit(
        table in any_table(), separator in prop::sample::select(vec![",", "\t", ";", " "]), header: bool, crlf: bool, exponent: bool
    ) {
        let line_end = if crlf { "\r\n" } else { "\n" };
        let mut text = String::new();
        if header {
            text += &(0..table[0].len()).map(|j| format!("x{j}")).collect::<Vec<_>>().join(separator);
            text += line_end;
        }
        for row in &table {
            let fields: Vec<String> = row.iter().map(|v| if exponent { format!("{v:e}") } else { format!("{v}") }).collect();
            text += &fields.join(separator);
            text += line_end;
        }
        let options = Options { header: Some(header), ..Options::default() };
        let (rows, _) = read_with(text, &Selection::default(), &options).unwrap();
        prop_assert_eq!(rows, table);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_bytes(bytes);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "[-0-9a-z,;:\"#.\\t \\r\\n]{0,200}") {
        let _ = read_bytes(text.clone());
        let _ = read_with(text, &targets(&["1"]), &Options { missing: Missing::Mean, ..Options::default() });
    }

    /// Tables of cells of every kind: whatever is made of them, it is finite, and a schema makes the same of the same cells.
    #[test]
    fn messy_cells_are_read_alike_by_those_who_learn_and_those_who_know(
        cells in prop::collection::vec(
            (0usize..40, prop_oneof![
                "-?[0-9]{1,4}([.,][0-9]{1,3}){0,2}", "[$€]? ?[0-9]{1,3}(,[0-9]{3})?( ?%| kg)?", "[0-9]{1,2}/[0-9]{1,2}/20[0-9]{2}",
                "20[0-9]{2}-[01][0-9]-[0-3][0-9]( [0-2][0-9]:[0-5][0-9])?", "[0-2]?[0-9]:[0-5][0-9]", "[ab?-]{0,2}", "NA|none|",
            ]), 0..30),
        kind in 0usize..6,
    ) {
        let usual = |i: usize| match kind {
            0 => format!("{i}.5"),
            1 => format!("{i},5"),
            2 => format!("2020-01-{:02}", 1 + i % 28),
            3 => format!("{}/{}/2020", 1 + i % 12, 1 + i % 12),
            4 => format!("{}:15", i % 24),
            _ => ["red", "blue"][i % 2].to_owned(),
        };
        let mut column: Vec<String> = (0..40).map(usual).collect();
        cells.into_iter().for_each(|(at, cell)| column[at] = cell);
        let lines: String = column.iter().enumerate().map(|(i, cell)| format!("{cell};{};{i}\n", i % 7)).collect();
        let text = format!("a;x;y\n{lines}");
        let lenient = Options::lenient();
        if let Ok(data) = Data::open(Input::from_bytes("t", text.clone().into()), None, &targets(&["y"]), &lenient)
            && let Ok((rows, _)) = all::<f64>(&data)
        {
            prop_assert!(rows.iter().flatten().all(|v| v.is_finite()) && rows.len() == 40);
            let stored = serde_json::from_str::<Schema>(&serde_json::to_string(data.schema()).unwrap()).unwrap();
            let again = Data::open_with(Input::from_bytes("t", text.into()), None, &stored, false, &lenient).unwrap();
            prop_assert_eq!(all::<f64>(&again).unwrap().0, rows);
        }
    }

    #[test]
    fn no_binary_body_makes_a_reader_panic(
        which in 0usize..9, at in prop::collection::vec((any::<u16>(), any::<u8>()), 0..6), keep in any::<u16>()
    ) {
        let names = ["float32.npy", "fortran.npy", "stored.npz", "deflated.npz", "float32.npy.gz", "table.tsv.gz",
            "small.parquet", "small.parquet", "small_delta.parquet"];
        let mut bytes = std::fs::read(golden(names[which])).unwrap();
        for (place, value) in at {
            let place = usize::from(place) % bytes.len();
            bytes[place] = value;
        }
        // A Parquet file without its end says nothing about the rest.
        if which < 6 {
            bytes.truncate(usize::from(keep) % (2 * bytes.len()));
        }
        let _ = read_bytes(bytes);
    }

    #[test]
    fn words_become_exactly_one_one(words in prop::collection::vec("[a-z \",\\n]{1,5}", 1..30)) {
        let mut text = String::from("word,y\n");
        for word in &words {
            text += &format!("\"{}\",1\n", word.replace('"', "\"\""));
        }
        let missing = ["", "?", "na", "nan", "null", "none"];
        prop_assume!(words.iter().all(|w| !missing.contains(&w.as_str())));
        let selection = Selection { words: vec!["word".into()], ..targets(&["y"]) };
        let data = Data::open(Input::from_bytes("t", text.into_bytes()), None, &selection, &Options::default()).unwrap();
        let Kind::Words { values, .. } = &data.schema().inputs[0].kind else { panic!("words are words") };
        let (rows, _) = all::<f64>(&data).unwrap();
        prop_assert_eq!(rows.len(), words.len());
        for (row, word) in rows.iter().zip(&words) {
            let one = row.iter().position(|v| *v == 1.0).unwrap();
            prop_assert_eq!(&values[one], word);
            prop_assert_eq!(row.iter().sum::<f64>(), 1.0);
        }
    }
}

//! One self-contained HTML page: tables, plots that answer to a pointer, no network.

use crate::plot::Plot;
use crate::table::{Table, escape};
use std::fmt::Write;

/// A page, top to bottom.
#[derive(Debug, Default)]
pub struct Report {
    title: String,
    body: String,
}

impl Report {
    pub fn new(title: &str, lede: &str) -> Self {
        let body = format!("<h1>{}</h1>\n<p class=lede>{}</p>\n", escape(title), escape(lede));
        Report { title: title.into(), body }
    }

    fn element(&mut self, tag: &str, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<{tag}>{}</{tag}>", escape(text));
        self
    }

    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.element("h2", text)
    }

    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.element("p", text)
    }

    /// Small print at the foot.
    pub fn footer(&mut self, text: &str) -> &mut Self {
        self.element("footer", text)
    }

    pub fn plot(&mut self, plot: &Plot) -> &mut Self {
        self.figure(&plot.to_svg())
    }

    /// A drawing.
    pub fn figure(&mut self, svg: &str) -> &mut Self {
        let _ = writeln!(self.body, "<figure>{svg}</figure>");
        self
    }

    pub fn table(&mut self, table: &Table) -> &mut Self {
        self.body.push_str(&table.to_html());
        self
    }

    pub fn to_html(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
             <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:\">\n<link rel=icon href=\"data:,\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}</main>\n\
             <div id=tip role=status hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            escape(&self.title),
            self.body
        )
    }
}

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Point, Series, Style};
    use crate::table::Cell;
    use std::process::Command;

    fn sample() -> Report {
        let mut series = Series::new("first", Style::Marks, 0);
        let mut other = Series::new("second", Style::Scatter, 1);
        for i in 1..6 {
            let (x, y) = (f64::from(i), f64::from(i * i));
            series.push(Point::new(x, y).with_range(0.9 * y, 1.1 * y), format!("first at {i}"));
            other.push(Point::new(x, 2.0 * y), format!("second at {i}"));
        }
        let (x, y) = (Axis::linear("x"), Axis::log("y"));
        let plot = Plot { title: "Squares".into(), subtitle: "Marks.".into(), x, y, series: vec![series, other] };
        let mut table = Table::new("Wide").words("name", "name");
        for j in 0..30 {
            table = table.numbers(&format!("x{j}"), &format!("column {j}"));
        }
        table.push((0..31).map(|j| if j == 0 { Cell::text("<b>") } else { Cell::count(1000 * j) }).collect());
        let mut report = Report::new("Report & test", "A page.");
        let mut words = Table::new("").words("what", "").words("choice", "choice").numbers("share", "share");
        words.push(vec![Cell::text("map"), Cell::text("a sentence of many words ".repeat(9)), Cell::percent(0.123, 1)]);
        report.heading("One").paragraph("Text.").plot(&plot).table(&table).table(&words).footer("End.");
        report
    }

    #[test]
    fn the_page_asks_nothing_of_the_network() {
        let html = sample().to_html();
        for (at, _) in html.match_indices("http") {
            // A name space is a name, and the content policy's attribute begins with the same letters.
            let rest = &html[at..];
            assert!(rest.starts_with("http://www.w3.org/2000/svg") || rest.starts_with("http-equiv"), "{:.60}", rest);
        }
        assert!(!html.contains("src=") && !html.contains("@import") && !html.contains("url("));
    }

    fn chromium() -> Option<&'static str> {
        let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| runs(name))
    }

    /// Opens the page in a browser together with a script, and gives the page afterwards and what went to the console.
    fn browse(browser: &str, name: &str, script: &str) -> (String, String) {
        let folder = std::env::temp_dir().join(format!("bochner-page-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let page = folder.join("page.html");
        let html = sample().to_html().replace("</body>", &format!("<script>{script}</script></body>"));
        std::fs::write(&page, html).unwrap();
        let output = Command::new(browser)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--enable-logging=stderr",
                "--window-size=500,900",
            ])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .args(["--virtual-time-budget=2000", "--dump-dom"])
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        let _ = std::fs::remove_dir_all(&folder);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let console = text(&output.stderr).lines().filter(|l| l.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
        (text(&output.stdout), console)
    }

    #[test]
    fn a_browser_shows_the_page_and_its_plots_answer_to_the_pointer() {
        let Some(browser) = chromium() else {
            eprintln!("skipped: no Chromium found, so the report page was not tried in a browser");
            return;
        };
        let script = r#"
            const out = {};
            const point = (element, kind) => element.dispatchEvent(new PointerEvent(kind, {clientX: 50, clientY: 50}));
            const tip = document.getElementById("tip");
            const mark = document.querySelectorAll(".plot .mark")[2];
            out.before = tip.hidden;
            point(mark, "pointerenter");
            out.shown = !tip.hidden && tip.textContent;
            point(mark, "pointerleave");
            out.after = tip.hidden;
            const label = document.querySelector('.plot .label[data-series="second"]');
            point(label, "pointerenter");
            out.focus = getComputedStyle(document.querySelector('.series[data-series="first"]')).opacity !== "1"
                || document.querySelector(".plot").classList.contains("focus");
            point(label, "pointerleave");
            out.unfocus = !document.querySelector(".plot").classList.contains("focus");
            const words = document.querySelectorAll(".scroll")[1];
            out.wrapped = words.scrollWidth <= words.clientWidth;
            out.whole = getComputedStyle(words.querySelector("td.n")).whiteSpace === "nowrap";
            out.readable = document.querySelector(".plot").getBoundingClientRect().width >= 640;
            out.narrow = document.documentElement.scrollWidth <= innerWidth;
            out.titles = document.querySelectorAll(".mark title").length;
            document.body.dataset.result = JSON.stringify(out);
        "#;
        let (page, console) = browse(browser, "hover", script);
        assert_eq!(console, "", "the console stays empty");
        let result = page.split("data-result=\"").nth(1).unwrap_or_else(|| panic!("no result in {page}"));
        let result = result.split('"').next().unwrap().replace("&quot;", "\"");
        let expected = r#"{"before":true,"shown":"first at 3","after":true,"focus":true,"unfocus":true,"wrapped":true,"whole":true,"readable":true,"narrow":true,"titles":0}"#;
        assert_eq!(result, expected);
    }

    #[test]
    fn the_browser_test_notices_errors() {
        let Some(browser) = chromium() else { return };
        let (_, console) = browse(browser, "error", "document.getElementById('nothing').hidden = true;");
        assert!(console.contains("TypeError"), "{console}");
    }
}

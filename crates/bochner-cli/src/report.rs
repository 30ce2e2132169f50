//! One self-contained HTML page: tables, plots that answer to a pointer, no network.

use crate::plot::Plot;
use crate::table::{Table, escape};
use std::fmt::Write;

/// A page, top to bottom.
#[derive(Debug, Default)]
pub(crate) struct Report {
    title: String,
    body: String,
}

impl Report {
    pub(crate) fn new(title: &str, lede: &str) -> Self {
        let body = format!("<h1>{}</h1>\n<p class=lede>{}</p>\n", escape(title), escape(lede));
        Report { title: title.into(), body }
    }

    pub(crate) fn heading(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
        self
    }

    pub(crate) fn paragraph(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
        self
    }

    pub(crate) fn plot(&mut self, plot: &Plot) -> &mut Self {
        let _ = writeln!(self.body, "<figure>{}</figure>", plot.to_svg());
        self
    }

    pub(crate) fn table(&mut self, table: &Table) -> &mut Self {
        self.body.push_str(&table.to_html());
        self
    }

    /// Small print at the foot.
    pub(crate) fn footer(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<footer>{}</footer>", escape(text));
        self
    }

    pub(crate) fn to_html(&self) -> String {
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

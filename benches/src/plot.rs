//! A bar chart per row, as SVG.

use std::fmt::Write;

use crate::{Row, report::OURS};

const BAR: usize = 24;
const LEFT: usize = 150;
const WIDTH: f64 = 420.0;

pub(crate) fn file_name(work: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = work.chars().map(plain).collect();
    name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

pub(crate) fn svg(row: &Row) -> String {
    let mut bars: Vec<_> = row.ours().map(|ours| (OURS, ours)).into_iter().collect();
    bars.extend(row.floor().map(|floor| ("floor", floor)));
    bars.extend(row.peers());
    let longest = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let height = 40 + bars.len() * BAR;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <text x=\"8\" y=\"20\" font-weight=\"bold\">{}, {}</text>\n",
        row.work(),
        row.unit()
    );
    for (index, (name, value)) in bars.iter().enumerate() {
        let top = 32 + index * BAR;
        let colour = if *name == OURS { "#2a6f97" } else { "#b7c4cf" };
        let (text, width) = (top + 14, value / longest * WIDTH);
        let end = LEFT as f64 + width + 6.0;
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{text}\">{name}</text>\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{width:.1}\" height=\"18\" fill=\"{colour}\"/>\
             <text x=\"{end:.1}\" y=\"{text}\">{value:.1}</text>"
        );
    }
    svg + "</svg>\n"
}

//! A chart of one line, drawn as SVG without help.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Room for the numbers at the axes.
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 50.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 20.0;
/// Lines across, in either direction.
const STEPS: u32 = 5;

/// What is drawn.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    /// By growing x; at least one, none negative.
    pub(crate) points: &'a [(f64, f64)],
}

impl Chart<'_> {
    /// The whole document.
    pub(crate) fn draw(&self) -> String {
        let most = |of: fn(&(f64, f64)) -> f64| {
            let most = self.points.iter().map(of).fold(0.0, f64::max);
            if most > 0.0 { most } else { 1.0 }
        };
        let (x_most, y_most) = (most(|point| point.0), most(|point| point.1));
        let across = |x: f64| LEFT + (WIDTH - LEFT - RIGHT) * x / x_most;
        let up = |y: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * y / y_most;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let mut words = |x: f64, y: f64, anchor: &str, words: &str| {
            let words = escaped(words);
            let _ = writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
            );
        };
        words(WIDTH / 2.0, TOP / 2.0, "middle", self.title);
        words(WIDTH / 2.0, HEIGHT - 10.0, "middle", self.x);
        words(10.0, TOP - 8.0, "start", self.y);
        for step in 0..=STEPS {
            let part = f64::from(step) / f64::from(STEPS);
            words(across(x_most * part), HEIGHT - BOTTOM + 16.0, "middle", &number(x_most * part));
            words(LEFT - 6.0, up(y_most * part) + 4.0, "end", &number(y_most * part));
        }
        for step in 0..=STEPS {
            let y = up(y_most * f64::from(step) / f64::from(STEPS));
            let _ = writeln!(
                text,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>",
                WIDTH - RIGHT
            );
        }
        let line: Vec<String> =
            self.points.iter().map(|(x, y)| format!("{:.1},{:.1}", across(*x), up(*y))).collect();
        let _ = writeln!(
            text,
            "<polyline fill=\"none\" stroke=\"#1565c0\" stroke-width=\"2\" points=\"{}\"/>\n</svg>",
            line.join(" ")
        );
        text
    }
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corners_are_where_the_axes_end() {
        let points = [(0.0, 0.0), (10.0, 5.0)];
        let svg = Chart { title: "a < b", x: "x", y: "y", points: &points }.draw();
        assert!(svg.contains("points=\"70.0,350.0 700.0,40.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>\n"), "{svg}");
    }
}

//! Every relative link of every page leads to a file, and every anchor to a heading.

use std::collections::{HashMap, HashSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex_lite::Regex;

use crate::repo::{File, Finding, Repo};

pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    // Pages under `tests` are input of a test.
    let pages: Vec<&File> =
        repo.with_extension("md").filter(|file| !file.path.contains("/tests/")).collect();
    let read: HashMap<&str, Page> =
        pages.iter().map(|file| (file.path.as_str(), Page::read(&file.text))).collect();
    let mut findings = Vec::new();
    for file in pages {
        for (line, link) in &read[file.path.as_str()].links {
            if let Some(what) = broken(repo, &read, &file.path, link) {
                findings.push(file.finding_at(*line, what));
            }
        }
    }
    findings
}

/// What a page offers and where it points.
struct Page {
    anchors: HashSet<String>,
    links: Vec<(usize, String)>,
}

impl Page {
    fn read(text: &str) -> Self {
        let id = Regex::new(r#"\b(?:id|name)="([^"]+)""#).expect("a valid pattern");
        let mut page = Self { anchors: HashSet::new(), links: Vec::new() };
        let mut heading = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.add_heading(&heading.take().unwrap_or_default());
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = text[..range.start].matches('\n').count() + 1;
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    page.anchors.extend(id.captures_iter(&html).map(|found| found[1].to_owned()));
                }
                _ => {}
            }
        }
        page
    }

    /// The anchor that code hosts give a heading; the second of a kind gets `-1`.
    fn add_heading(&mut self, heading: &str) {
        let slug: String = heading
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut anchor = slug.clone();
        let mut again = 0;
        while !self.anchors.insert(anchor.clone()) {
            again += 1;
            anchor = format!("{slug}-{again}");
        }
    }
}

/// Why `link`, written on page `from`, leads nowhere.
fn broken(repo: &Repo, pages: &HashMap<&str, Page>, from: &str, link: &str) -> Option<String> {
    // With a scheme it leaves the tree; with `::` it is rustdoc's to check.
    if link.contains(':') {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(p, a)| (p, Some(a)));
    let Some(target) = resolve(from, path) else {
        return Some(format!("link `{link}` leaves the tree"));
    };
    if !repo.exists(&target) {
        return Some(format!("link `{link}`: no file `{target}`"));
    }
    let page = pages.get(target.as_str())?;
    let anchor = anchor.filter(|anchor| !page.anchors.contains(*anchor))?;
    Some(format!("link `{link}`: no heading `#{anchor}` in `{target}`"))
}

/// `path` as seen from page `from`, relative to the root; `None` if it leaves the tree.
fn resolve(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    // A leading slash means the root of the repository.
    let mut parts: Vec<&str> = match path.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.rsplit_once('/').map_or(Vec::new(), |(dir, _)| dir.split('/').collect()),
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::shown;

    #[test]
    fn finds_dead_files_dead_anchors_and_ways_out() {
        let page =
            "# Top\n\n[a](gone.md) and ![b](../img.png)\n[c]\n\n[c]: a.md#gone\n[d](../../x)";
        let found = check(&Repo::of(&[("docs/a.md", page)]));
        assert_eq!(
            shown(&found),
            [
                "docs/a.md:3: link `gone.md`: no file `docs/gone.md`",
                "docs/a.md:3: link `../img.png`: no file `img.png`",
                "docs/a.md:4: link `a.md#gone`: no heading `#gone` in `docs/a.md`",
                "docs/a.md:7: link `../../x` leaves the tree",
            ]
        );
    }

    #[test]
    fn accepts_files_folders_headings_and_the_web() {
        let page = "# The `run` command: how?\n\n## Again\n\n## Again\n\n<a id=\"x\"></a>\n\n\
                    [a](#the-run-command-how) [b](../docs/) [c](/docs/b.md#top-1) [d](#x)\n\
                    [e](https://example.org/#y) [f](crate::Mutex) `[g](gone.md)` [h](#again-1)";
        let repo = Repo::of(&[("docs/a.md", page), ("docs/b.md", "# Top\n# Top\n")]);
        let found = check(&repo);
        assert!(found.is_empty(), "{found:?}");
    }
}

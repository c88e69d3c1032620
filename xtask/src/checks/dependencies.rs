//! Licences, bans and sources of every dependency, as `deny.toml` wants them.
//!
//! Does the part of cargo-deny's work that needs no database, from the same file, so that the two
//! cannot disagree about the lists. A key that this check does not know is an error, never ignored.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata};
use serde::Deserialize;
use serde::de::IgnoredAny;
use spdx::{Expression, Licensee, ParseMode};

use crate::repo::{File, Finding};

pub(crate) fn check(file: &File, packages: &[Package]) -> Vec<Finding> {
    match toml_edit::de::from_str::<Deny>(&file.text) {
        Ok(deny) => {
            let mut findings = licences(file, &deny.licenses, packages);
            findings.extend(bans(file, &deny.bans, packages));
            findings.extend(sources(file, &deny.sources, packages));
            findings
        }
        Err(error) => vec![file.finding(error.to_string())],
    }
}

/// What the policy asks about one package of the graph.
#[derive(Clone, Default)]
pub(crate) struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// `None` for a crate of this tree.
    source: Option<String>,
    /// Dependencies of a crate of this tree that any version satisfies.
    wildcards: Vec<String>,
}

impl Package {
    /// Every package that any feature, target or test brings in.
    pub(crate) fn all(metadata: &Metadata) -> Vec<Self> {
        metadata.packages.iter().map(Self::from_metadata).collect()
    }

    fn from_metadata(package: &cargo_metadata::Package) -> Self {
        let is_private = package.publish.as_ref().is_some_and(Vec::is_empty);
        // As cargo-deny's `allow-wildcard-paths`: a path in what is never published is no wildcard.
        let is_local = |kind| is_private || kind == DependencyKind::Development;
        let wildcards = package.dependencies.iter().filter(|dependency| {
            dependency.req.to_string() == "*"
                && !(dependency.path.is_some() && is_local(dependency.kind))
        });
        Self {
            name: package.name.to_string(),
            version: package.version.to_string(),
            licence: package.license.clone(),
            source: package.source.as_ref().map(ToString::to_string),
            wildcards: wildcards.map(|dependency| dependency.name.clone()).collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
    /// `cargo metadata` is asked for all features, as `all-features` says.
    #[serde(rename = "graph")]
    _graph: Graph,
    /// For cargo-deny alone: there is no advisory database here.
    #[serde(rename = "advisories")]
    _advisories: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Graph {
    #[serde(rename = "all-features")]
    _all_features: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    allow: Vec<String>,
    #[serde(rename = "crate")]
    package: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    multiple_versions: Level,
    wildcards: Level,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: bool,
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Banned {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: Level,
    unknown_git: Level,
    allow_registry: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Level {
    Allow,
    Warn,
    Deny,
}

impl Level {
    fn finding(self, file: &File, what: String) -> Option<Finding> {
        let is_warning = self == Self::Warn;
        (self != Self::Allow).then(|| Finding { is_warning, ..file.finding(what) })
    }
}

fn licences(file: &File, policy: &Licenses, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut parse = |names: &[String]| -> Vec<Licensee> {
        let parsed = names.iter().filter_map(|name| match Licensee::parse(name) {
            Ok(licensee) => Some(licensee),
            Err(error) => {
                findings.push(file.finding(format!("licence `{name}`: {}", error.reason)));
                None
            }
        });
        parsed.collect()
    };
    let allowed = parse(&policy.allow);
    let exceptions: Vec<(&str, Vec<Licensee>)> =
        policy.exceptions.iter().map(|e| (e.package.as_str(), parse(&e.allow))).collect();
    for package in packages {
        let own = exceptions.iter().filter(|(name, _)| *name == package.name);
        let allowed: Vec<&Licensee> =
            allowed.iter().chain(own.flat_map(|(_, allowed)| allowed)).collect();
        if let Some(what) = refusal(package, &allowed) {
            findings.push(file.finding(format!("{} {}: {what}", package.name, package.version)));
        }
    }
    findings
}

/// Why the licence of a package is not allowed.
fn refusal(package: &Package, allowed: &[&Licensee]) -> Option<String> {
    let Some(text) = &package.licence else { return Some("names no licence".into()) };
    // Lax, as cargo-deny: old crates write `MIT/Apache-2.0`.
    match Expression::parse_mode(text, ParseMode::LAX) {
        Ok(licence) => {
            let is_allowed = licence.evaluate(|asked| allowed.iter().any(|l| l.satisfies(asked)));
            (!is_allowed).then(|| format!("licence `{text}` is not allowed"))
        }
        Err(error) => Some(format!("licence `{text}`: {}", error.reason)),
    }
}

fn bans(file: &File, policy: &Bans, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
        let banned = policy.deny.iter().filter(|banned| banned.package == package.name);
        findings.extend(
            banned.map(|banned| {
                file.finding(format!("{} is banned: {}", package.name, banned.reason))
            }),
        );
        findings.extend(package.wildcards.iter().filter_map(|wildcard| {
            let what = format!("{} accepts any version of {wildcard}", package.name);
            policy.wildcards.finding(file, what)
        }));
    }
    findings.extend(versions.iter().filter(|(_, versions)| versions.len() > 1).filter_map(
        |(name, versions)| {
            let versions: Vec<&str> = versions.iter().copied().collect();
            let what = format!("{name} in several versions: {}", versions.join(", "));
            policy.multiple_versions.finding(file, what)
        },
    ));
    findings
}

fn sources(file: &File, policy: &Sources, packages: &[Package]) -> Vec<Finding> {
    let unknown = packages.iter().filter_map(|package| {
        let source = package.source.as_deref()?;
        let level = match source.split_once('+') {
            Some(("git", _)) => policy.unknown_git,
            Some(("registry", url)) if policy.allow_registry.iter().any(|known| known == url) => {
                return None;
            }
            _ => policy.unknown_registry,
        };
        level.finding(file, format!("{} comes from unknown {source}", package.name))
    });
    unknown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::{Repo, shown};

    const POLICY: &str = r#"
        [graph]
        all-features = true
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        exceptions = [{ allow = ["Zlib"], crate = "zed" }]
        [bans]
        multiple-versions = "warn"
        wildcards = "deny"
        allow-wildcard-paths = true
        deny = [{ crate = "bad", reason = "it is bad" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
        allow-registry = ["https://example.org/index"]
        [advisories]
        yanked = "deny"
    "#;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            licence: Some(licence.into()),
            source: Some("registry+https://example.org/index".into()),
            wildcards: Vec::new(),
        }
    }

    fn found(policy: &str, packages: &[Package]) -> Vec<String> {
        let repo = Repo::of(&[("deny.toml", policy)]);
        shown(&check(repo.file("deny.toml").expect("just made"), packages))
    }

    #[test]
    fn finds_licences_bans_wildcards_and_sources_outside_the_lists() {
        let unlicensed = Package { licence: None, ..package("none", "1.0.0", "") };
        let git =
            Package { source: Some("git+https://x".into()), ..package("git", "1.0.0", "MIT") };
        let elsewhere =
            Package { source: Some("registry+https://x".into()), ..package("reg", "1.0.0", "MIT") };
        let loose = Package { wildcards: vec!["any".into()], ..package("own", "1.0.0", "MIT") };
        let packages = [
            package("copy", "1.0.0", "GPL-3.0-only OR (MIT AND Zlib)"),
            unlicensed,
            package("bad", "1.0.0", "MIT"),
            loose,
            git,
            elsewhere,
        ];
        assert_eq!(
            found(POLICY, &packages),
            [
                "deny.toml: copy 1.0.0: licence `GPL-3.0-only OR (MIT AND Zlib)` is not allowed",
                "deny.toml: none 1.0.0: names no licence",
                "deny.toml: bad is banned: it is bad",
                "deny.toml: own accepts any version of any",
                "deny.toml: git comes from unknown git+https://x",
                "deny.toml: reg comes from unknown registry+https://x",
            ]
        );
    }

    #[test]
    fn warns_of_several_versions() {
        let packages = [package("twice", "1.0.0", "MIT"), package("twice", "2.0.0", "MIT")];
        let expected = "warning: deny.toml: twice in several versions: 1.0.0, 2.0.0";
        assert_eq!(found(POLICY, &packages), [expected]);
    }

    #[test]
    fn refuses_keys_it_does_not_check() {
        let policy = POLICY.replace("[bans]", "[bans]\nskip-tree = []");
        let found = found(&policy, &[]);
        assert!(found.len() == 1 && found[0].contains("skip-tree"), "{found:?}");
    }

    #[test]
    fn accepts_allowed_licences_exceptions_and_crates_of_the_tree() {
        let own = Package { source: None, ..package("own", "0.1.0", "MIT OR Apache-2.0") };
        let packages =
            [own, package("old", "1.0.0", "MIT/Unlicense"), package("zed", "1.0.0", "Zlib")];
        assert!(found(POLICY, &packages).is_empty());
    }
}

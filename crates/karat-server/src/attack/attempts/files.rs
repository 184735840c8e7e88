//! Attempts to read or write files outside of the root, in the spellings that pass a filter.

use std::path::PathBuf;

use super::paths::{disguised, file_urls, relative, up, with_file_urls};
use super::{Attempt, Planner, Proof};
use crate::attack::canary_site::RootPlants;
use crate::attack::parameters::Parameter;

impl Planner<'_> {
    pub(super) fn secret_files(&self, parameter: &Parameter) -> Vec<Attempt> {
        let dotenv = self.site.dotenv().display().to_string();
        let proofs = || {
            let token = self.site.dotenv_token.clone();
            vec![Proof::Token("the file with secrets", token), Proof::Changed]
        };
        let above = format!("{}{dotenv}", up());
        let mut forms = vec![dotenv.clone(), above.clone(), dotenv.replace('/', "%2f")];
        forms.extend(disguised(&above).map(|(_, text)| text));
        with_file_urls(&mut forms, parameter, &dotenv);
        let mut found: Vec<Attempt> = forms
            .into_iter()
            .map(|text| self.sent(parameter, "a file with secrets", text, proofs()))
            .collect();
        if self.access.has_secret {
            let environ = "/proc/self/environ";
            let mut forms = vec![environ.to_owned(), format!("{}{environ}", up())];
            with_file_urls(&mut forms, parameter, environ);
            let about = "its own environment file";
            let attempt = |text| self.sent(parameter, about, text, vec![self.env_token()]);
            found.extend(forms.into_iter().map(attempt));
        }
        found
    }

    /// Paths outside the root: to a file, to the same without its extension, and to one that does not exist.
    pub(in crate::attack) fn outside(&self) -> [String; 3] {
        let path = self.site.outside_file();
        let new = self.site.folder().join(format!("new-{}.txt", self.site.number()));
        [path.clone(), path.with_extension(""), new].map(|path| path.display().to_string())
    }

    pub(super) fn traversals(&self, parameter: &Parameter) -> Vec<Attempt> {
        let [outside, bare, new] = self.outside();
        let plain = format!("{}{outside}", up());
        let mut forms = vec![
            ("parent folders", plain.clone()),
            ("parent folders, without the extension", format!("{}{bare}", up())),
            ("parent folders of a folder", format!("karat/../{plain}")),
            ("parent folders with backslashes", plain.replace('/', "\\")),
        ];
        forms.extend(disguised(&plain));
        forms.push(("parent folders and a zero byte", format!("{plain}\0.txt")));
        for root in self.site.roots() {
            forms.push(("parent folders of the root", format!("{}/{plain}", root.display())));
        }
        forms.push(("parent folders to a new file", format!("{}{new}", up())));
        self.paths(parameter, forms)
    }

    pub(super) fn absolutes(&self, parameter: &Parameter) -> Vec<Attempt> {
        let [outside, bare, new] = self.outside();
        let mut forms = vec![
            ("an absolute path", outside.clone()),
            ("an absolute path without the extension", bare),
            ("an absolute path with extra slashes", format!("//{outside}")),
            ("an absolute path, encoded", outside.replace('/', "%2f")),
        ];
        let [url, on_host] = file_urls(&outside).map(|text| ("a file URL", text));
        // The first and the last form are compared, so they differ in nothing but the file.
        if parameter.is_url() {
            forms.splice(0..0, [url, on_host]);
            forms.push(("an absolute path to a new file", new.clone()));
            forms.push(("a file URL to a new file", format!("file://{new}")));
        } else {
            forms.extend([url, ("an absolute path to a new file", new)]);
        }
        self.paths(parameter, forms)
    }

    fn paths(&self, parameter: &Parameter, forms: Vec<(&str, String)>) -> Vec<Attempt> {
        let attempt = |(about, text)| self.sent(parameter, about, text, self.escaped());
        forms.into_iter().map(attempt).collect()
    }

    pub(super) fn planted(
        &self,
        parameter: &Parameter,
        about: &str,
        which: impl Fn(&RootPlants) -> &PathBuf,
    ) -> Vec<Attempt> {
        let Some(planted) = self.site.in_root() else { return Vec::new() };
        let path = which(planted);
        if !path.exists() {
            return Vec::new();
        }
        let mut forms = vec![(about, path.display().to_string())];
        let below = self.site.roots().first().and_then(|root| relative(root, path));
        let whole = path.display().to_string();
        forms.push((about, whole.replace('/', "%2f")));
        if let Some(below) = below {
            let is_above = below.starts_with("../");
            let disguised = disguised(&below).map(|(_, text)| (about, text));
            forms.push((about, below));
            forms.extend(disguised.into_iter().filter(|_| is_above));
        }
        self.paths(parameter, forms)
    }
}

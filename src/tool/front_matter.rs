//! The front matter of a Markdown file: a few lines of `name: value` between two lines of `---`.

/// The front matter of a file, and its text.
#[derive(Debug, PartialEq)]
pub struct FrontMatter<'a> {
    members: Vec<(&'a str, String)>,
    /// The text after the front matter.
    pub body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Reads front matter that is YAML of one level: plain values, quoted values, and values that continue in indented
    /// lines. A file without front matter is only text.
    pub fn of(file: &'a str) -> FrontMatter<'a> {
        let file = file.strip_prefix('\u{feff}').unwrap_or(file);
        let all_text = || FrontMatter { members: Vec::new(), body: file };
        let mut lines = file.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
            return all_text();
        };
        let mut members: Vec<(&str, String)> = Vec::new();
        let mut n_bytes = first.len();
        for line in lines {
            n_bytes += line.len();
            if line.trim_end() == "---" {
                return FrontMatter { members, body: file.get(n_bytes..).unwrap_or_default() };
            }
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = members.last_mut() {
                    let space = if value.is_empty() { "" } else { " " };
                    *value = [value.as_str(), space, line.trim()].concat();
                }
            } else if let Some((name, value)) =
                line.split_once(':').filter(|_| !line.starts_with('#'))
            {
                members.push((name.trim(), plain(value.trim()).to_owned()));
            }
        }
        all_text()
    }

    /// A member, if it exists and is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let member = self.members.iter().find(|(of, _)| *of == name);
        member.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// A value without its quotes. The markers `|` and `>` of a value that begins in the next line are empty.
fn plain(value: &str) -> &str {
    if [">", ">-", "|", "|-"].contains(&value) {
        return "";
    }
    let unquoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    unquoted('"').or_else(|| unquoted('\'')).unwrap_or(value)
}

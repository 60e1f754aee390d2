//! A Rust source as the rules look at it: comments and literals blanked out, paths spelled out, functions measured.

/// A source file, read once.
pub struct Source {
    /// Its path from the project's root.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The text with comments, strings and characters replaced by spaces; line breaks stand.
    pub code: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

/// A path such as `crate::model::ToolName`, one entry for each name of a `use` tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// Its parts.
    pub parts: Vec<String>,
    /// The line it stands on.
    pub line: usize,
    /// How many inline `mod name { … }` it stands in.
    pub depth: usize,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// Lines from `fn` to the closing brace, both counted.
    pub lines: usize,
}

impl Source {
    /// Takes a file's text apart.
    pub fn new(name: &str, text: &str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(breaks).collect();
        Self { name: name.to_owned(), text: text.to_owned(), code: blank(text), starts }
    }

    fn line_at(&self, position: usize) -> usize {
        self.starts.partition_point(|start| *start <= position)
    }

    /// Every path in the code, `use` trees flattened.
    pub fn paths(&self) -> Vec<Named> {
        let bytes = self.code.as_bytes();
        let modules = self.inline_modules();
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let Some(end) = word_end(bytes, at) else {
                at += 1;
                continue;
            };
            let line = self.line_at(at);
            let depth = modules.iter().filter(|(from, to)| (*from..*to).contains(&at)).count();
            let mut flat = Vec::new();
            let after = flatten(bytes, at, &mut Vec::new(), &mut flat);
            found.extend(flat.into_iter().map(|parts| Named { parts, line, depth }));
            at = after.max(end);
        }
        found
    }

    /// Positions of the bodies of `mod name { … }`.
    fn inline_modules(&self) -> Vec<(usize, usize)> {
        let bytes = self.code.as_bytes();
        let body = |(at, _): (usize, &str)| {
            let name = skip_space(bytes, at + 3);
            let open = skip_space(bytes, word_end(bytes, name)?);
            (bytes.get(open) == Some(&b'{')).then(|| (open, closing(bytes, open)))
        };
        words(&self.code).filter(|(_, word)| *word == "mod").filter_map(body).collect()
    }

    /// Every function with a body.
    pub fn functions(&self) -> Vec<Function> {
        let bytes = self.code.as_bytes();
        let measure = |(at, _): (usize, &str)| {
            let from = skip_space(bytes, at + 2);
            let to = word_end(bytes, from)?;
            let open = body_start(bytes, to)?;
            let line = self.line_at(at);
            let lines = self.line_at(closing(bytes, open)) - line + 1;
            Some(Function { name: self.code[from..to].to_owned(), line, lines })
        };
        words(&self.code).filter(|(_, word)| *word == "fn").filter_map(measure).collect()
    }

    /// The lines on which a word stands in the code.
    pub fn lines_with_word<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = usize> + 'a {
        words(&self.code).filter(move |(_, word)| *word == wanted).map(|(at, _)| self.line_at(at))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Where the word that begins at `at` ends; `None` when none begins there.
fn word_end(bytes: &[u8], at: usize) -> Option<usize> {
    let begins = at < bytes.len() && is_word(bytes[at]) && (at == 0 || !is_word(bytes[at - 1]));
    begins.then(|| (at..bytes.len()).find(|next| !is_word(bytes[*next])).unwrap_or(bytes.len()))
}

/// Every word of the code with its position.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    (0..code.len()).filter_map(|at| word_end(code.as_bytes(), at).map(|end| (at, &code[at..end])))
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    (at..bytes.len()).find(|next| !bytes[*next].is_ascii_whitespace()).unwrap_or(bytes.len())
}

/// Where the brace closes that opens at `open`; the end of the text when it never does.
fn closing(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    bytes.len()
}

/// Where a function's body opens, after its parameters; `None` for a declaration without one.
fn body_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Reads one path or `use` tree from `at`, adds each full path to `found`, and says where it ended.
fn flatten(bytes: &[u8], at: usize, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let end = (at..bytes.len()).find(|next| !is_word(bytes[*next])).unwrap_or(bytes.len());
    before.push(String::from_utf8_lossy(&bytes[at..end]).into_owned());
    let mut next = skip_space(bytes, end);
    if bytes[next..].starts_with(b"::") {
        next = skip_space(bytes, next + 2);
        match bytes.get(next) {
            Some(byte) if is_word(*byte) => {
                let after = flatten(bytes, next, before, found);
                before.pop();
                return after;
            }
            Some(b'{') => {
                let after = branches(bytes, next, before, found);
                before.pop();
                return after;
            }
            _ => {}
        }
    }
    found.push(before.clone());
    before.pop();
    end
}

/// Reads the branches of a `use` tree; `at` is its opening brace.
fn branches(bytes: &[u8], at: usize, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let close = closing(bytes, at);
    let mut next = at + 1;
    while next < close {
        next = if is_word(bytes[next]) { skip_rename(bytes, flatten(bytes, next, before, found)) } else { next + 1 };
    }
    (close + 1).min(bytes.len())
}

/// Passes over ` as name`.
fn skip_rename(bytes: &[u8], at: usize) -> usize {
    let word = skip_space(bytes, at);
    match word_end(bytes, word) {
        Some(end) if &bytes[word..end] == b"as" => {
            let name = skip_space(bytes, end);
            word_end(bytes, name).unwrap_or(name)
        }
        _ => at,
    }
}

/// The text with comments, strings and characters replaced by spaces.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        match literal_end(bytes, at) {
            Some(end) => {
                code[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8(code).expect("whole characters are blanked")
}

/// Where the comment or literal that begins at `at` ends.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return Some(at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(block_comment_end(bytes, at));
    }
    let after_word = at > 0 && is_word(bytes[at - 1]);
    if !after_word && let Some(end) = raw_string_end(bytes, at) {
        return Some(end);
    }
    match rest[0] {
        b'"' => Some(quoted_end(bytes, at, b'"')),
        b'\'' if is_character(rest) => Some(quoted_end(bytes, at, b'\'')),
        _ => None,
    }
}

fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut next) = (0_usize, at);
    while next < bytes.len() {
        if bytes[next..].starts_with(b"/*") {
            depth += 1;
            next += 2;
        } else if bytes[next..].starts_with(b"*/") {
            depth -= 1;
            next += 2;
            if depth == 0 {
                return next;
            }
        } else {
            next += 1;
        }
    }
    bytes.len()
}

/// The end of `r"…"`, `r#"…"#`, `br"…"` or `cr"…"`.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let prefix = [b"r".as_slice(), b"br", b"cr"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + prefix.len() + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let found = bytes[open + 1..].windows(end.len()).position(|window| window == end);
    Some(found.map_or(bytes.len(), |offset| open + 1 + offset + end.len()))
}

/// Whether a quote begins a character (`'a'`, `'\n'`, `'é'`) and not a lifetime.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(byte) if *byte < 0x80 => rest.get(2) == Some(&b'\''),
        Some(_) => (3..=5).any(|at| rest.get(at) == Some(&b'\'')),
        None => false,
    }
}

fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut next = at + 1;
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 2,
            byte if byte == quote => return next + 1,
            _ => next += 1,
        }
    }
    bytes.len()
}

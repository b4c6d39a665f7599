//! Splits the text of a statement into tokens.

#[derive(Clone, Debug, PartialEq)]
pub enum Tok {
    Word(String),
    Quoted(String),
    Str(String),
    Int(i64),
    Float(f64),
    Param(String),
    Sym(&'static str),
    End,
}

const SYMBOLS: [&str; 26] = [
    "<>", "<=", ">=", "+=", "(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "|", "=", "<", ">", "+", "-", "*", "/",
    "%", "&", "!", "^",
];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Splits the text into tokens with their start and end offsets.
pub fn lex(src: &str) -> Result<Vec<(Tok, usize, usize)>, String> {
    let mut toks = Vec::new();
    let mut at = 0;
    while let Some(c) = src[at..].chars().next() {
        let rest = &src[at..];
        let start = at;
        let word_len = |s: &str| s.find(|c| !is_word(c)).unwrap_or(s.len());
        let tok = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if c.is_ascii_digit() {
            let mut n = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let mut float = false;
            let tail = &rest[n..];
            if tail.starts_with('.') && tail[1..].starts_with(|c: char| c.is_ascii_digit()) {
                float = true;
                n += 1 + tail[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len() - 1);
            }
            let exp = &rest[n..];
            if exp.starts_with(['e', 'E']) {
                let sign = usize::from(exp[1..].starts_with(['+', '-']));
                let digits = exp[1 + sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(exp.len() - 1 - sign);
                if digits > 0 {
                    float = true;
                    n += 1 + sign + digits;
                }
            }
            at += n;
            if float {
                Tok::Float(rest[..n].parse().map_err(|_| place(src, start, "bad number"))?)
            } else {
                Tok::Int(rest[..n].parse().map_err(|_| place(src, start, "number out of range"))?)
            }
        } else if is_word(c) {
            at += word_len(rest);
            Tok::Word(src[start..at].to_string())
        } else if c == '$' {
            at += 1 + word_len(&rest[1..]);
            if at == start + 1 {
                return Err(place(src, start, "parameter has no name"));
            }
            Tok::Param(src[start + 1..at].to_string())
        } else if c == '`' {
            let n = rest[1..].find('`').ok_or_else(|| place(src, at, "name is not closed"))?;
            at += n + 2;
            Tok::Quoted(rest[1..=n].to_string())
        } else if c == '\'' || c == '"' {
            let (text, n) = string_literal(&rest[1..], c).ok_or_else(|| place(src, start, "string is not closed"))?;
            at += 1 + n;
            Tok::Str(text)
        } else if let Some(s) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            at += s.len();
            Tok::Sym(s)
        } else {
            return Err(place(src, at, &format!("unexpected character {c:?}")));
        };
        toks.push((tok, start, at));
    }
    toks.push((Tok::End, at, at));
    Ok(toks)
}

fn string_literal(s: &str, quote: char) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut it = s.char_indices();
    while let Some((i, c)) = it.next() {
        match c {
            c if c == quote => return Some((out, i + c.len_utf8())),
            '\\' => match it.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'u' => {
                    let hex: String = (0..4).filter_map(|_| it.next().map(|x| x.1)).collect();
                    out.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?);
                }
                other => out.push(other),
            },
            c => out.push(c),
        }
    }
    None
}

pub fn place(src: &str, at: usize, what: &str) -> String {
    let before = &src[..at];
    let line = before.matches('\n').count() + 1;
    let col = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("syntax error at line {line}, column {col}: {what}")
}

//! Human text in two languages, kept side by side. Machine formats take English.

/// The language of human text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// 简体中文.
    Zh,
}

/// A constant text in both languages; `{name}` stands for an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// English.
    pub en: &'static str,
    /// Chinese.
    pub zh: &'static str,
}

impl Text {
    /// The text in `lang`, placeholders unfilled.
    pub fn get(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }
}

/// A text made at run time: the same in both languages (a path, a name, what a
/// server said), or one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Localized {
    /// The same in every language.
    Same(String),
    /// One text for each language.
    Both {
        /// English.
        en: String,
        /// Chinese.
        zh: String,
    },
}

impl Localized {
    /// A text with an English and a Chinese form.
    pub fn both(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Localized::Both { en: en.into(), zh: zh.into() }
    }

    /// The text in `lang`.
    pub fn get(&self, lang: Lang) -> &str {
        match (self, lang) {
            (Localized::Same(text), _) => text,
            (Localized::Both { en, .. }, Lang::En) => en,
            (Localized::Both { zh, .. }, Lang::Zh) => zh,
        }
    }
}

macro_rules! localized_from {
    ($($from:ty),*) => {$(
        impl From<$from> for Localized {
            fn from(value: $from) -> Self { Localized::Same(value.to_string()) }
        }
    )*};
}
localized_from!(
    &str,
    String,
    &String,
    u32,
    u64,
    usize,
    i32,
    i64,
    f64,
    char,
    crate::model::RepoPath,
    &crate::model::RepoPath
);

impl From<Text> for Localized {
    fn from(text: Text) -> Self {
        Localized::both(text.en, text.zh)
    }
}

/// Named arguments of a text template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args(Vec<(&'static str, Localized)>);

impl FromIterator<(&'static str, Localized)> for Args {
    fn from_iter<I: IntoIterator<Item = (&'static str, Localized)>>(pairs: I) -> Self {
        let mut args = Args::default();
        pairs.into_iter().for_each(|(name, value)| args.set(name, value));
        args
    }
}

impl Args {
    /// Adds or replaces one argument.
    pub fn set(&mut self, name: &'static str, value: Localized) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of one argument in `lang`.
    pub fn get(&self, name: &str, lang: Lang) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.get(lang))
    }

    /// Fills `{name}` in a template. An unknown name is left as it stands, so that a
    /// missing argument shows instead of vanishing.
    pub fn fill(&self, template: &str, lang: Lang) -> String {
        let mut out = String::with_capacity(template.len() + 16);
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            let tail = &rest[open..];
            match tail.find('}').map(|close| (&tail[1..close], close)) {
                Some((name, close)) if self.get(name, lang).is_some() => {
                    out.push_str(self.get(name, lang).unwrap_or_default());
                    rest = &tail[close + 1..];
                }
                _ => {
                    out.push('{');
                    rest = &tail[1..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_once_and_unknown_names_stay() {
        let mut args = Args::default();
        args.set("path", "{target}".into());
        args.set("count", Localized::both("two", "两"));
        assert_eq!(args.fill("{path} has {count} {rest", Lang::En), "{target} has two {rest");
        assert_eq!(args.fill("{path}有{count}处{missing}", Lang::Zh), "{target}有两处{missing}");
    }
}

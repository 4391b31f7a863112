//! Byte offsets to lines and columns, counted as Python counts lines.

/// The line starts of a text. Lines end with `\n`, `\r\n` or a lone `\r`.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Finds the line starts.
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let ends = memchr::memchr2_iter(b'\n', b'\r', bytes)
            .filter(|&at| bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'))
            .map(|at| at + 1);
        Lines { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// How many lines there are; an empty last one counts.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// 0-based line that holds a byte offset.
    pub fn index(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// Byte offset at which a 0-based line starts; the end of the text for lines beyond it.
    pub fn start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// Text of a 0-based line, without its end.
    pub fn line(&self, line: usize) -> &'a str {
        let text = self.text.get(self.start(line)..self.start(line + 1)).unwrap_or_default();
        text.trim_end_matches(['\n', '\r'])
    }

    /// 1-based line and column, in characters, of a byte offset.
    pub fn place(&self, offset: usize) -> (u32, u32) {
        let line = self.index(offset);
        let before = self.text.get(self.start(line)..offset.min(self.text.len())).unwrap_or_default();
        (count(line), count(before.chars().count()))
    }

    /// Characters of a byte range that lie on the line on which it starts; at least one.
    pub fn width(&self, start: usize, end: usize) -> u32 {
        let line_end = self.start(self.index(start)) + self.line(self.index(start)).len();
        let text = self.text.get(start..end.min(line_end).max(start)).unwrap_or_default();
        u32::try_from(text.chars().count()).unwrap_or(u32::MAX).max(1)
    }
}

/// 0-based to 1-based.
fn count(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX - 1) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_end_counts_once() {
        let lines = Lines::new("a\r\nb\rc\nd");
        assert_eq!(lines.count(), 4);
        assert_eq!((0..4).map(|line| lines.line(line)).collect::<String>(), "abcd");
        assert_eq!(lines.place(3), (2, 1));
    }

    #[test]
    fn columns_count_characters_and_stay_in_the_text() {
        let text = "推理 = （1\n";
        let lines = Lines::new(text);
        assert_eq!(lines.place(text.find('（').unwrap()), (1, 6));
        assert_eq!(lines.place(text.len()), (2, 1));
        assert_eq!(lines.place(text.len() + 99), (2, 1));
        assert_eq!(lines.width(0, text.len()), 7);
    }
}

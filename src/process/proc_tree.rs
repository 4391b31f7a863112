//! The processes below a process, from `/proc`. Elsewhere than on Linux the answer is
//! the process alone.

use std::collections::HashMap;

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Process.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its session.
    pub session: u32,
    /// Already dead, only not yet waited for.
    pub zombie: bool,
    /// CPU time of itself and of the children it waited for, in clock ticks.
    pub cpu_ticks: u64,
}

/// The process table; empty where the system has no /proc.
pub fn table() -> Vec<Entry> {
    all().into_iter().filter_map(entry).collect()
}

/// One process; `None` when there is none, or no /proc.
pub fn entry(pid: u32) -> Option<Entry> {
    parse_stat(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// Reads `pid (name) state parent group session …`. The name may hold anything, also a
/// parenthesis: fields start after the last one.
fn parse_stat(text: &str) -> Option<Entry> {
    let (head, _) = text.split_once(" (")?;
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    // utime, stime, cutime, cstime: fields 14 to 17 of proc_pid_stat(5).
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>());
    Some(Entry {
        pid: head.parse().ok()?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        cpu_ticks: ticks.sum::<Result<u64, _>>().ok()?,
    })
}

/// `pid` and all its descendants that live now, parents before children. Zombies are
/// left out: they hold nothing any more.
pub fn descendants(pid: u32) -> Vec<u32> {
    family(&table(), pid)
}

/// `root` and its living descendants in a process table, parents before children.
pub fn family(table: &[Entry], root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<&Entry>> = HashMap::new();
    for entry in table.iter().filter(|entry| entry.pid != root) {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = vec![root];
    // A dead parent is passed over, its children are not.
    let mut queue = children.remove(&root).unwrap_or_default();
    while let Some(next) = queue.pop() {
        found.extend((!next.zombie).then_some(next.pid));
        queue.extend(children.remove(&next.pid).unwrap_or_default());
    }
    found
}

/// Every process of this machine that we can see; empty where there is no `/proc`.
pub fn all() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Name and arguments of a process, for messages.
pub fn command_line(pid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text: Vec<&str> = text.split('\0').filter(|part| !part.is_empty()).collect();
    (!text.is_empty()).then(|| text.join(" "))
}

/// Who listens on a local TCP port: the process ids that hold the listening socket.
/// `None` where that cannot be known (no `/proc`).
pub fn listeners(port: u16) -> Option<Vec<u32>> {
    let inodes = listening_inodes(port)?;
    let names: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    if names.is_empty() {
        return Some(Vec::new());
    }
    Some(all().into_iter().filter(|pid| holds(*pid, &names)).collect())
}

/// Whether one of these processes holds the listening socket of a local TCP port; looks
/// at them alone, where [`listeners`] looks at the whole machine. `None` where that cannot
/// be known.
pub fn one_listens(pids: &[u32], port: u16) -> Option<bool> {
    let names: Vec<String> = listening_inodes(port)?.iter().map(|inode| format!("socket:[{inode}]")).collect();
    Some(!names.is_empty() && pids.iter().any(|pid| holds(*pid, &names)))
}

/// The same for the path of a Unix socket.
pub fn one_listens_on_socket(pids: &[u32], path: &std::path::Path) -> Option<bool> {
    let names = listening_sockets(path)?;
    Some(!names.is_empty() && pids.iter().any(|pid| holds(*pid, &names)))
}

/// Who listens on a Unix socket: the process ids that hold it. `None` where that cannot be
/// known (no `/proc`).
pub fn socket_listeners(path: &std::path::Path) -> Option<Vec<u32>> {
    let names = listening_sockets(path)?;
    if names.is_empty() {
        return Some(Vec::new());
    }
    Some(all().into_iter().filter(|pid| holds(*pid, &names)).collect())
}

fn listening_sockets(path: &std::path::Path) -> Option<Vec<String>> {
    let table = std::fs::read_to_string("/proc/net/unix").ok()?;
    Some(table.lines().filter_map(|line| listening_socket(line, path)).collect())
}

/// The socket of a line of `/proc/net/unix` that listens (flag `__SO_ACCEPTCON`, 0x10000)
/// under this path.
fn listening_socket(line: &str, path: &std::path::Path) -> Option<String> {
    let mut fields = line.split_ascii_whitespace();
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    let inode = fields.nth(2)?;
    let here = line.split_once(inode).is_some_and(|(_, rest)| std::path::Path::new(rest.trim_start()) == path);
    (flags & 0x1_0000 != 0 && here).then(|| format!("socket:[{inode}]"))
}

fn listening_inodes(port: u16) -> Option<Vec<u64>> {
    let tables: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|table| std::fs::read_to_string(table).ok()).collect();
    if tables.is_empty() {
        return None;
    }
    Some(tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(|line| listening_inode(line, port)).collect())
}

/// The inode of a line of `/proc/net/tcp` that is in state LISTEN (0A) on this port.
fn listening_inode(line: &str, port: u16) -> Option<u64> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
    let listening = *fields.get(3)? == "0A" && u16::from_str_radix(local_port, 16).ok()? == port;
    listening.then(|| fields.get(9)?.parse().ok()).flatten()
}

fn holds(pid: u32, sockets: &[String]) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|target| target.to_str().is_some_and(|target| sockets.iter().any(|socket| socket == target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let entry = parse_stat("12 (a) b (c) S 3 4 5 0 -1 0 0 0 0 0 1 2 3 4 20 0").unwrap();
        assert_eq!(entry, Entry { pid: 12, parent: 3, session: 5, zombie: false, cpu_ticks: 10 });
        assert!(parse_stat("12 (x) Z 3 4 5 0 -1 0 0 0 0 0 1 2 3 4 20 0").unwrap().zombie);
        assert_eq!(parse_stat("12 (cut"), None);
    }

    #[test]
    fn the_whole_family_is_found_and_the_dead_are_left_out() {
        let entry = |pid, parent, zombie| Entry { pid, parent, session: 0, zombie, cpu_ticks: 0 };
        let table = [entry(3, 2, false), entry(2, 1, false), entry(4, 3, true), entry(5, 4, false), entry(9, 8, false)];
        assert_eq!(family(&table, 1), [1, 2, 3, 5]);
        assert_eq!(family(&[entry(1, 1, false)], 1), [1]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_is_a_descendant_and_a_listener_is_found() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(listeners(port).unwrap().contains(&std::process::id()));
        assert_eq!(one_listens(&[std::process::id()], port), Some(true));
        assert_eq!(one_listens(&[1], port), Some(false));
        drop(socket);
        assert_eq!(listeners(port).unwrap(), Vec::<u32>::new());
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a b.sock");
        assert_eq!(socket_listeners(&path).unwrap(), Vec::<u32>::new());
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let _client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        assert_eq!(socket_listeners(&path).unwrap(), [std::process::id()]);
        assert_eq!(one_listens_on_socket(&[std::process::id()], &path), Some(true));
        assert_eq!(one_listens_on_socket(&[1], &path), Some(false));
    }
}

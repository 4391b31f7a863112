//! The processes below a process, from `/proc`. Elsewhere than on Linux the answer is
//! the process alone.

use std::collections::HashMap;

/// `pid` and all its descendants that live now, parents before children. Zombies are
/// left out: they hold nothing any more.
pub fn descendants(pid: u32) -> Vec<u32> {
    let parents = parents();
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (child, parent) in parents {
        children.entry(parent).or_default().push(child);
    }
    let mut found = Vec::new();
    let mut queue = vec![pid];
    while let Some(next) = queue.pop() {
        found.push(next);
        queue.extend(children.remove(&next).unwrap_or_default());
    }
    found
}

/// Every process of this machine that we can see; empty where there is no `/proc`.
pub fn all() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(target_os = "linux")]
fn parents() -> Vec<(u32, u32)> {
    all().into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

#[cfg(not(target_os = "linux"))]
fn parents() -> Vec<(u32, u32)> {
    Vec::new()
}

/// Parent of a process that lives; `None` for a zombie or no process.
#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, also a parenthesis: fields start after the last one.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.next()?.parse().ok(),
    }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_a_descendant_and_a_listener_is_found() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(listeners(port).unwrap().contains(&std::process::id()));
        drop(socket);
        assert_eq!(listeners(port).unwrap(), Vec::<u32>::new());
    }
}

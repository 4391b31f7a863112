//! Why a model could not be fetched: the cause and the next step, in both languages. No
//! text holds a token or the query of an address: signed addresses are secrets too.

use crate::model::Localized;
use std::io;
use std::path::PathBuf;

/// What ended a download.
#[derive(Debug)]
pub enum DownloadError {
    /// Somebody pressed Ctrl-C; what came stays and is continued.
    Interrupted,
    /// The hub wants to know who asks, or does not like the token.
    Unauthorized {
        /// What was asked for.
        what: String,
        /// Variable that holds a token.
        variable: &'static str,
        /// Whether one was sent.
        token_sent: bool,
        /// Page of the model.
        page: String,
    },
    /// The licence has not been accepted.
    Gated {
        /// The model.
        what: String,
        /// Variable that holds a token.
        variable: &'static str,
        /// Page of the model.
        page: String,
    },
    /// There is no such model, revision or file.
    NotFound {
        /// Model, `OWNER/NAME`.
        repo: String,
        /// What is not there: nothing, when it is the model itself.
        part: Option<String>,
        /// The hub's host.
        host: String,
    },
    /// No connection, or one that broke again and again.
    Unreachable {
        /// Host.
        host: String,
        /// What was seen last.
        cause: String,
        /// Variable that names a mirror.
        variable: &'static str,
    },
    /// The server asks to come again later than we wait.
    Busy {
        /// Host.
        host: String,
        /// Its status.
        status: u16,
        /// How long it wants us to wait, seconds.
        wait_s: Option<u64>,
    },
    /// An answer that means nothing to us.
    Unusable {
        /// Host.
        host: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A file name that leads out of the model's folder.
    UnsafeName {
        /// The name, as it was sent.
        name: String,
        /// Host.
        host: String,
    },
    /// The repository holds nothing that a server could load, or more than one such thing.
    Nothing {
        /// Cause.
        cause: Localized,
        /// Advice.
        advice: Localized,
    },
    /// Not enough room.
    Disk {
        /// Where.
        folder: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// A file could not be written or read.
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file came whole, twice, and is another one than the hub lists.
    Differs {
        /// Which.
        file: String,
        /// What is listed.
        expected: String,
        /// What came.
        found: String,
    },
}

impl DownloadError {
    /// Whether another hub may do better.
    pub(super) fn elsewhere(&self) -> bool {
        matches!(self, DownloadError::Unreachable { .. } | DownloadError::Busy { .. })
            || matches!(
                self,
                DownloadError::NotFound { part: None, .. } | DownloadError::Unauthorized { token_sent: false, .. }
            )
    }

    /// What happened.
    pub fn cause(&self) -> Localized {
        let both = |en: String, zh: String| Localized::both(en, zh);
        match self {
            DownloadError::Interrupted => both("interrupted".into(), "已中断（interrupted）".into()),
            DownloadError::Unauthorized { what, token_sent: false, .. } => both(
                format!(
                    "the hub answers 401 for {what}: it is private, gated or does not exist, and no token was sent"
                ),
                format!("平台对 {what} 返回 401：它可能是私有的、有访问限制或不存在，而请求没有带 token"),
            ),
            DownloadError::Unauthorized { what, variable, .. } => both(
                format!("the hub answers 401 for {what}: it does not take the token in {variable}"),
                format!("平台对 {what} 返回 401：{variable} 中的 token 不被接受"),
            ),
            DownloadError::Gated { what, .. } => both(
                format!("{what} is gated: its licence must be accepted first"),
                format!("{what} 有访问限制：需要先接受许可协议"),
            ),
            DownloadError::NotFound { repo, part, host } => match part {
                None => both(format!("{host} has no model {repo} (404)"), format!("{host} 上没有模型 {repo}（404）")),
                Some(part) => both(
                    format!("{repo} on {host} has no {part} (404)"),
                    format!("{host} 上的 {repo} 没有 {part}（404）"),
                ),
            },
            DownloadError::Unreachable { host, cause, .. } => {
                both(format!("{host} cannot be reached: {cause}"), format!("无法访问 {host}：{cause}"))
            }
            DownloadError::Busy { host, status, wait_s } => {
                let wait = wait_s.map(|wait| format!("{wait} s")).unwrap_or_default();
                let (en, zh) = if wait.is_empty() {
                    (String::new(), String::new())
                } else {
                    (format!(" and asks to wait {wait}"), format!("，并要求等待 {wait}"))
                };
                both(format!("{host} answers {status}{en}"), format!("{host} 返回 {status}{zh}"))
            }
            DownloadError::Unusable { host, cause } => {
                both(format!("{host} gave an unusable answer: {cause}"), format!("{host} 的应答不可用：{cause}"))
            }
            DownloadError::UnsafeName { name, host } => both(
                format!("{host} lists a file whose name leads out of the model's folder: {name:?}"),
                format!("{host} 列出的文件名会跳出模型文件夹：{name:?}"),
            ),
            DownloadError::Nothing { cause, .. } => cause.clone(),
            DownloadError::Disk { folder, needed, free } => {
                let (folder, needed, free) = (folder.display(), mebibytes(*needed), mebibytes(*free));
                both(
                    format!("{needed} are needed and {folder} has {free} free"),
                    format!("需要 {needed}，而 {folder} 只剩 {free}"),
                )
            }
            DownloadError::Io { path, source } => Localized::from(format!("{}: {source}", path.display())),
            DownloadError::Differs { file, expected, found } => both(
                format!("{file} came twice with another content than is listed: {found} instead of {expected}"),
                format!("{file} 两次下载的内容都与列表不符：得到 {found}，应为 {expected}"),
            ),
        }
    }

    /// What to do next.
    pub fn advice(&self) -> Localized {
        let both = |en: String, zh: String| Localized::both(en, zh);
        match self {
            DownloadError::Interrupted => both(
                "run the command again: the download goes on where it stopped".into(),
                "请重新运行：下载会从中断处继续".into(),
            ),
            DownloadError::Unauthorized { variable, page, token_sent: false, .. } => both(
                format!("check the name on {page}; for a private or gated model set {variable} to a token that may read it"),
                format!("请在 {page} 核对名称；私有或受限模型请把 {variable} 设为有读取权限的 token"),
            ),
            DownloadError::Unauthorized { variable, .. } => both(
                format!("make a new token that may read the model and set {variable} to it"),
                format!("请新建一个有读取权限的 token，并设置到 {variable}"),
            ),
            DownloadError::Gated { variable, page, .. } => both(
                format!("accept the licence on {page} with your account, and set {variable} to a token of that account"),
                format!("请用你的账号在 {page} 接受许可协议，并把 {variable} 设为该账号的 token"),
            ),
            DownloadError::NotFound { part: None, .. } => both(
                "check the spelling of OWNER/NAME, or choose the other hub with --model-source".into(),
                "请检查 OWNER/NAME 的拼写，或用 --model-source 换另一个平台".into(),
            ),
            DownloadError::NotFound { .. } => both(
                "give a branch, tag or commit that exists after `@`, a file that exists after `:`".into(),
                "`@` 之后请写存在的分支、标签或提交，`:` 之后请写存在的文件".into(),
            ),
            DownloadError::Unreachable { variable, .. } => both(
                format!("check the network, or set {variable} to a mirror; what has come is kept and continued"),
                format!("请检查网络，或把 {variable} 设为镜像地址；已下载的部分会保留并继续"),
            ),
            DownloadError::Busy { .. } => both(
                "try again later; what has come is kept and continued".into(),
                "请稍后再试；已下载的部分会保留并继续".into(),
            ),
            DownloadError::Unusable { .. } => both(
                "see whether the address of the hub or mirror is right".into(),
                "请检查平台或镜像的地址是否正确".into(),
            ),
            DownloadError::UnsafeName { .. } => both(
                "nothing was written; do not use this source".into(),
                "没有写入任何内容；请不要使用该来源".into(),
            ),
            DownloadError::Nothing { advice, .. } => advice.clone(),
            DownloadError::Disk { .. } | DownloadError::Io { .. } => both(
                "free some room or check the permissions, or set HF_HUB_CACHE (MODELSCOPE_CACHE) to a folder on another disk".into(),
                "请腾出空间或检查权限，或用 HF_HUB_CACHE（MODELSCOPE_CACHE）指向另一块磁盘上的文件夹".into(),
            ),
            DownloadError::Differs { .. } => both(
                "the mirror or a proxy in between is faulty: use the hub itself, or another mirror".into(),
                "镜像或中间的代理有问题：请直接使用官方平台或换一个镜像".into(),
            ),
        }
    }
}

/// Bytes for people.
pub(super) fn mebibytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes >= f64::from(1 << 30) {
        format!("{:.1} GiB", bytes / f64::from(1 << 30))
    } else {
        format!("{:.1} MiB", bytes / f64::from(1 << 20))
    }
}

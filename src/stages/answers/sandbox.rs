//! Walls around a notebook, built by the process that becomes its interpreter: a session
//! of its own, no writing outside its folders, no network.
//!
//! The walls are set up in a hidden command of this program that then replaces itself
//! with Python: a single thread without locks held, where every call is allowed.

use crate::cli::ConfineArgs;
use crate::error::RunError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Whether walls are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// Those that the system gives; the report says which held.
    #[default]
    Auto,
    /// All of them, or the run fails.
    On,
    /// None.
    Off,
}

/// How the network is kept away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Network {
    /// A namespace that holds nothing but a loopback device.
    Namespace,
    /// System calls that open network sockets are refused, loopback included.
    Seccomp,
}

/// Walls that stand, or are to be built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walls {
    /// Writing is allowed below these folders only; `None`: everywhere.
    pub(super) writable: Option<Vec<PathBuf>>,
    /// How the network is kept away, if it is.
    pub(super) network: Option<Network>,
}

/// Runs `verify __confine WALLS COMMAND…`: builds the walls and becomes the command.
///
/// # Errors
/// The command cannot be started.
pub fn confine(args: &ConfineArgs) -> Result<u8, RunError> {
    system::confine(args)
}

/// Tries which walls this system gives. Each try is a process of its own.
pub(super) fn probe(folder: &std::path::Path) -> Walls {
    let stands = |walls: &Walls| system::try_out(walls);
    let writable = Walls { writable: Some(vec![folder.to_path_buf()]), network: None };
    let by = |network| Walls { writable: None, network: Some(network) };
    Walls {
        writable: stands(&writable).then_some(vec![folder.to_path_buf()]),
        network: [Network::Namespace, Network::Seccomp].into_iter().find(|network| stands(&by(*network))),
    }
}

#[cfg(unix)]
mod system {
    use super::{ConfineArgs, RunError, Walls};
    use crate::process::ask;
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Duration;

    /// Exit code for a wall that could not be built, as of other launchers.
    const NOT_BUILT: u8 = 125;
    /// How long building walls may take.
    const PATIENCE: Duration = Duration::from_secs(20);

    pub(super) fn confine(args: &ConfineArgs) -> Result<u8, RunError> {
        let failed = |error: io::Error| RunError::file("confine", error);
        let walls: Walls = serde_json::from_str(&args.walls).map_err(|error| failed(error.into()))?;
        let _ = nix::unistd::setsid();
        #[cfg(target_os = "linux")]
        {
            let _ = nix::sys::prctl::set_child_subreaper(true);
            if super::linux::build(&walls).is_err() {
                return Ok(NOT_BUILT);
            }
        }
        #[cfg(not(target_os = "linux"))]
        if walls != Walls::default() {
            return Ok(NOT_BUILT);
        }
        let [program, arguments @ ..] = args.command.as_slice() else { return Ok(0) };
        Err(failed(Command::new(program).args(arguments).exec()))
    }

    pub(super) fn try_out(walls: &Walls) -> bool {
        let (Ok(program), Ok(walls)) = (std::env::current_exe(), serde_json::to_string(walls)) else { return false };
        let tried = ask(Command::new(program).arg("__confine").arg(walls), PATIENCE, || false);
        tried.is_ok_and(|(status, _)| status.success())
    }
}

#[cfg(not(unix))]
mod system {
    use super::{ConfineArgs, RunError, Walls};

    pub(super) fn confine(_args: &ConfineArgs) -> Result<u8, RunError> {
        Ok(125)
    }

    pub(super) fn try_out(_walls: &Walls) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Network, Walls};
    use landlock::{
        ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetStatus, Scope,
    };
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};

    /// Devices that harmless programs write to; accelerators are driven through theirs.
    const DEVICES: &[&str] = &[
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/tty",
        "/dev/ptmx",
        "/dev/pts",
        "/dev/shm",
        "/dev/kfd",
        "/dev/dri",
    ];

    pub(super) fn build(walls: &Walls) -> io::Result<()> {
        match walls.network {
            Some(Network::Namespace) => empty_network()?,
            Some(Network::Seccomp) => refuse_sockets()?,
            None => {}
        }
        match &walls.writable {
            Some(folders) => confine_writing(folders),
            None => Ok(()),
        }
    }

    fn confine_writing(folders: &[PathBuf]) -> io::Result<()> {
        let abi = ABI::V6;
        let all = AccessFs::from_all(abi);
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)
            .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        let ruleset = allow(ruleset, Path::new("/"), AccessFs::from_read(abi))?;
        let devices = DEVICES.iter().map(PathBuf::from).chain(accelerators());
        let device = AccessFs::from_read(abi) | AccessFs::WriteFile | AccessFs::IoctlDev;
        let ruleset = devices.into_iter().filter(|path| path.exists()).try_fold(ruleset, |ruleset, path| {
            // Shared memory and semaphores are files that come and go.
            let access = if path.ends_with("shm") { all } else { device };
            allow(ruleset, &path, access)
        })?;
        let ruleset = folders.iter().try_fold(ruleset, |ruleset, path| allow(ruleset, path, all))?;
        let status = ruleset.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        Ok(())
    }

    fn allow(
        ruleset: landlock::RulesetCreated,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> io::Result<landlock::RulesetCreated> {
        let folder = PathFd::new(path).map_err(io::Error::other)?;
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI::V6) };
        ruleset.add_rule(PathBeneath::new(folder, access)).map_err(io::Error::other)
    }

    fn accelerators() -> Vec<PathBuf> {
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().starts_with("/dev/nvidia")).collect()
    }

    /// Leaves the network for an empty one; with a user namespace where that needs one.
    fn empty_network() -> io::Result<()> {
        use nix::sched::{CloneFlags, unshare};
        let (user, group) = (nix::unistd::getuid(), nix::unistd::getgid());
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
            let _ = fs::write("/proc/self/setgroups", "deny");
            fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        }
        loopback_up()
    }

    /// Workers of one notebook talk over 127.0.0.1.
    #[expect(unsafe_code, reason = "setting a network device up has no safe wrapper; the request lives on this stack")]
    fn loopback_up() -> io::Result<()> {
        use nix::libc;
        use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
        use std::os::fd::AsRawFd;
        let handle = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        // SAFETY: ifreq is plain data, for which zeros are valid; ioctl reads and writes
        // only the request that is passed and no longer than the call.
        let done = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            request.ifr_name[0] = b'l' as libc::c_char;
            request.ifr_name[1] = b'o' as libc::c_char;
            request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
            libc::ioctl(handle.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Refuses every socket that is not local to the machine's own processes.
    fn refuse_sockets() -> io::Result<()> {
        use nix::libc;
        use seccompiler::{
            BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        };
        let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let domain = |family: i32| {
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(family.unsigned_abs()))
                .and_then(|condition| SeccompRule::new(vec![condition]))
                .map_err(io::Error::other)
        };
        let families = [libc::AF_INET, libc::AF_INET6, libc::AF_PACKET, libc::AF_VSOCK];
        let sockets = families.into_iter().map(domain).collect::<io::Result<Vec<_>>>()?;
        let rules = [(libc::SYS_socket, sockets), (libc::SYS_io_uring_setup, Vec::new())].into_iter().collect();
        let refused = SeccompAction::Errno(libc::EACCES.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).map_err(io::Error::other)?;
        let program = BpfProgram::try_from(filter).map_err(io::Error::other)?;
        nix::sys::prctl::set_no_new_privs()?;
        seccompiler::apply_filter(&program).map_err(io::Error::other)
    }
}

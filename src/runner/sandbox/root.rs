//! The file system that a tool sees: a small read-only root with the system's programs, and a private `/tmp`.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use super::super::spawner::send_with_descriptors;
use super::spec::{AtStep, Descriptors, Failure, Report, Spec};
use super::{INNER_ID, net, sys, watch::ProcessTable};

/// System directories and files that are mounted read-only where they exist. `/etc` itself is not: it holds secrets.
const SYSTEM: [&str; 9] = [
    "/usr",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/localtime",
    "/etc/nsswitch.conf",
];
/// What says how to use the host's network; mounted for builders, where it exists.
const NETWORK: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"];
/// Directories that are links into `/usr` on most systems; mounted where they are not.
const MERGED: [&str; 4] = ["/bin", "/sbin", "/lib", "/lib64"];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
const DIRECTORIES: [&str; 7] = ["/tmp", "/proc", "/dev", "/dev/shm", "/etc", "/tool", "/usr"];
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];
const FILES: [(&str, &str); 3] = [
    ("/etc/passwd", "sandbox:x:1000:1000::/tmp/work:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
    ("/etc/group", "sandbox:x:1000:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 sandbox\n"),
];

/// The paths that a tool may read without a private root (Landlock alone).
pub(super) fn system_paths() -> impl Iterator<Item = &'static str> {
    SYSTEM.into_iter().chain(MERGED).chain(["/etc/passwd", "/etc/group", "/etc/hosts"])
}

/// The paths that a builder may read as well.
pub(super) fn network_paths() -> impl Iterator<Item = &'static str> {
    NETWORK.into_iter()
}

/// The device nodes that a tool may use.
pub(super) fn devices() -> impl Iterator<Item = &'static str> {
    DEVICES.into_iter()
}

struct Tree {
    descriptor: OwnedFd,
    target: String,
    is_directory: bool,
}

/// Builds the root and enters it. Returns the view of all processes that only init has.
///
/// Stdin becomes `/tool/arguments.json`, too; `owner` is who shall own the working directory, where that isn't this
/// process already.
pub(super) fn build(spec: &Spec, descriptors: &Descriptors, owner: Option<u32>) -> Result<ProcessTable, Failure> {
    let arguments = &descriptors.stdin;
    limit_namespace();
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).at("make all mounts private")?;
    let trees = detach_sources(spec)?;
    // Both while the old /proc is still visible: the kernel grants no new one without.
    let tools_proc = detached_proc(Some(c"invisible"))?;
    let inits_proc = detached_proc(None)?;
    let arguments_size = rustix::fs::fstat(arguments).at("look at the arguments")?.st_size as u64;
    enter_empty_root()?;
    for directory in DIRECTORIES {
        fs::create_dir(directory).at_path("make the directory", directory)?;
    }
    for tree in trees {
        attach(&tree)?;
    }
    move_to(tools_proc.as_fd(), "/proc")?;
    write_files(spec, arguments, arguments_size)?;
    if spec.waits {
        hand_arguments_over(descriptors.status.as_fd())?;
    }
    mount_scratch(spec, owner)?;
    let attributes = sys::MOUNT_RDONLY | sys::MOUNT_NODEV | sys::MOUNT_NOSUID;
    sys::set_mount_attributes(CWD, c"/", attributes, false).at("make the root read-only")?;
    Ok(ProcessTable::namespace(inits_proc))
}

/// Settings of this user namespace: none may be nested in it, and inotify instances don't use up the server's. Only a
/// second line behind seccomp, so a kernel without them is no failure.
fn limit_namespace() {
    let _absent = fs::write("/proc/sys/user/max_user_namespaces", "0");
    let _absent = fs::write("/proc/sys/user/max_inotify_instances", "16");
}

/// Clones every source as a detached tree: it stays reachable whatever is mounted over it.
fn detach_sources(spec: &Spec) -> Result<Vec<Tree>, Failure> {
    let mut trees = Vec::new();
    for path in SYSTEM.into_iter().chain(MERGED).filter(|path| is_real(path)) {
        trees.push(detach(path, path, sys::MOUNT_RDONLY | sys::MOUNT_NODEV)?);
    }
    for path in DEVICES {
        trees.push(detach(path, path, 0)?);
    }
    if let Some(kept) = spec.kept() {
        for path in NETWORK.into_iter().filter(|path| Path::new(path).exists()) {
            trees.push(detach(path, path, sys::MOUNT_RDONLY | sys::MOUNT_NODEV)?);
        }
        trees.push(detach(&kept.source, &kept.target, sys::MOUNT_NODEV | sys::MOUNT_NOEXEC)?);
    }
    for mount in &spec.mounts {
        trees.push(detach(&mount.source, &mount.target, sys::MOUNT_RDONLY | sys::MOUNT_NODEV)?);
    }
    Ok(trees)
}

/// Whether it exists and is to be mounted, not linked.
fn is_real(path: &str) -> bool {
    if MERGED.contains(&path) {
        fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_symlink())
    } else {
        Path::new(path).exists()
    }
}

fn detach(source: &str, target: &str, attributes: u64) -> Result<Tree, Failure> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let descriptor = rustix::mount::open_tree(CWD, source, flags).at_path("clone the mount of", source)?;
    sys::set_mount_attributes(descriptor.as_fd(), c"", attributes | sys::MOUNT_NOSUID, true)
        .at_path("restrict the mount of", source)?;
    let mode = rustix::fs::fstat(&descriptor).at_path("look at", source)?.st_mode;
    let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
    Ok(Tree { descriptor, target: target.to_owned(), is_directory })
}

fn detached_proc(hide: Option<&std::ffi::CStr>) -> Result<OwnedFd, Failure> {
    let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC).at("open a new /proc")?;
    if let Some(hide) = hide {
        rustix::mount::fsconfig_set_string(context.as_fd(), "hidepid", hide).at("hide processes in /proc")?;
    }
    rustix::mount::fsconfig_create(context.as_fd()).at("create the new /proc")?;
    let attributes =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).at("mount the new /proc")
}

fn mount_tmpfs(target: &str, flags: MountFlags, options: &str) -> Result<(), Failure> {
    let options = CString::new(options).at("format mount options")?;
    let flags = flags | MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", target, "tmpfs", flags, Some(options.as_c_str())).at_path("mount a tmpfs on", target)
}

/// Room for the largest arguments, the largest script, and what else the root holds. Always the same, so that it says nothing
/// of the call; only what is used takes memory.
const ROOT_SIZE: u64 = (8 << 20) + (1 << 20) + (128 << 10);

/// Replaces the root by an empty one.
fn enter_empty_root() -> Result<(), Failure> {
    mount_tmpfs("/tmp", MountFlags::empty(), &format!("mode=0755,size={ROOT_SIZE},nr_inodes=512"))?;
    rustix::process::chdir("/tmp").at("enter the new root")?;
    rustix::process::pivot_root(".", ".").at("change the root")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).at("let go of the old root")?;
    rustix::process::chdir("/").at("enter the new root")
}

fn attach(tree: &Tree) -> Result<(), Failure> {
    let target = Path::new(&tree.target);
    if tree.is_directory {
        make_directories(target).at_path("make the directory", &tree.target)?;
    } else {
        make_directories(target.parent().unwrap_or(target)).at_path("make the directory of", &tree.target)?;
        fs::File::create(target).at_path("make the mount point", &tree.target)?;
    }
    move_to(tree.descriptor.as_fd(), &tree.target)
}

fn move_to(tree: BorrowedFd<'_>, target: &str) -> Result<(), Failure> {
    rustix::mount::move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .at_path("attach the mount at", target)
}

fn make_directories(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

fn write_files(spec: &Spec, arguments: &OwnedFd, arguments_size: u64) -> Result<(), Failure> {
    for link in MERGED {
        if !Path::new(link).exists()
            && let Some(name) = link.strip_prefix('/')
        {
            symlink(format!("usr/{name}"), link).at_path("make the link", link)?;
        }
    }
    for (target, link) in DEVICE_LINKS {
        symlink(target, link).at_path("make the link", link)?;
    }
    // A builder has the host's own `/etc/hosts`.
    for (path, text) in FILES.into_iter().filter(|(path, _)| !Path::new(path).exists()) {
        fs::write(path, text).at_path("write", path)?;
    }
    if let Some(network) = &spec.network {
        net::write_files(network, FILES[2].1)?;
    }
    if let Some(script) = &spec.script {
        fs::write("/tool/main.sh", script).at("write the script")?;
    }
    let mut copy = fs::File::create("/tool/arguments.json").at("write the arguments")?;
    copy_arguments(arguments, arguments_size, &mut copy).at("write the arguments")
}

/// Sends the server the file of arguments, open for writing. Opened through a mount of its own: the root's becomes read-only.
fn hand_arguments_over(status: BorrowedFd<'_>) -> Result<(), Failure> {
    let step = "hand the file of arguments over";
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tool = rustix::mount::open_tree(CWD, "/tool", flags).at(step)?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&tool, "arguments.json", flags, Mode::empty()).at(step)?;
    send_with_descriptors(status, &Report::Arguments.to_bytes(), &[file.as_fd()]).at(step)
}

/// Copies without moving the file's offset, which the tool's stdin shares.
fn copy_arguments(arguments: &OwnedFd, size: u64, copy: &mut fs::File) -> io::Result<()> {
    let mut offset = 0;
    while offset < size {
        let left = usize::try_from(size - offset).unwrap_or(usize::MAX);
        if rustix::fs::sendfile(&*copy, arguments, Some(&mut offset), left)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    copy.flush()
}

/// Mounts what the tool may write to.
fn mount_scratch(spec: &Spec, owner: Option<u32>) -> Result<(), Failure> {
    let size = spec.limits.tmp_bytes.max(64 << 10);
    mount_tmpfs("/tmp", MountFlags::empty(), &format!("mode=1777,size={size},nr_inodes=16384"))?;
    let shared = (size / 2).max(64 << 10);
    mount_tmpfs("/dev/shm", MountFlags::NOEXEC, &format!("mode=1777,size={shared},nr_inodes=4096"))?;
    fs::DirBuilder::new().mode(0o700).create("/tmp/work").at("make the working directory")?;
    if let Some(owner) = owner {
        debug_assert_eq!(owner, INNER_ID);
        let (uid, gid) = (rustix::fs::Uid::from_raw(owner), rustix::fs::Gid::from_raw(owner));
        for path in ["/tmp/work"].into_iter().chain(spec.kept().map(|kept| kept.target.as_str())) {
            rustix::fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::empty())
                .at_path("own the directory", path)?;
        }
    }
    Ok(())
}

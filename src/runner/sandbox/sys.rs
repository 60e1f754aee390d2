//! The system calls that no safe crate offers, each behind a small wrapper.
//!
//! Everything here but the two descriptor helpers is called in the spawner's process tree, which is single-threaded:
//! a forked child may therefore allocate and run any code.

#![expect(unsafe_code, reason = "raw system calls; the only place in the crate")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Makes the mount read-only.
pub(crate) const MOUNT_RDONLY: u64 = 1;
/// Ignores set-user-id bits on the mount.
pub(crate) const MOUNT_NOSUID: u64 = 2;
/// Ignores device nodes on the mount.
pub(crate) const MOUNT_NODEV: u64 = 4;
/// Starts no program that is on the mount.
pub(crate) const MOUNT_NOEXEC: u64 = 8;

/// The namespaces of the full sandbox, as `clone` flags.
pub(crate) const ALL_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// Which side of a clone this is.
pub(crate) enum Cloned {
    /// The new process.
    Child,
    /// The old one, with the child's id and a descriptor for it.
    Parent {
        /// The child's process id.
        process: i32,
        /// Becomes readable when the child is dead.
        pidfd: OwnedFd,
    },
}

fn check(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The arguments of `clone3`, up to the field that says how many bytes the kernel may read (CLONE_ARGS_SIZE_VER2).
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Clones this process into new namespaces.
///
/// # Errors
/// What the kernel answers. Seccomp profiles of containers answer `ENOSYS` to `clone3` so that programs fall back; the
/// old call then tells the true reason (`EPERM`).
pub(crate) fn clone_process(namespaces: u64) -> io::Result<Cloned> {
    let mut descriptor: RawFd = -1;
    let flags = namespaces | libc::CLONE_PIDFD as u64;
    let arguments = CloneArguments {
        flags,
        pidfd: (&raw mut descriptor) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArguments::default()
    };
    // SAFETY: no CLONE_VM, so the child has its own copy of memory and stack; the process is single-threaded, so the copy
    // is consistent. The arguments and the descriptor outlive the call.
    let mut result =
        check(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>()) });
    if matches!(&result, Err(error) if error.raw_os_error() == Some(libc::ENOSYS)) {
        let flags = flags | libc::SIGCHLD as u64;
        // SAFETY: as above; a null stack means the caller's, and CLONE_PIDFD makes the third argument the descriptor's place.
        result = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, &raw mut descriptor, 0usize, 0usize) });
    }
    match result? {
        0 => Ok(Cloned::Child),
        // SAFETY: on success the kernel stored a fresh descriptor that nobody else owns.
        process => Ok(Cloned::Parent { process: process as i32, pidfd: unsafe { OwnedFd::from_raw_fd(descriptor) } }),
    }
}

/// The stack of a process that [`start_process`] starts, until it execs.
const START_STACK: usize = 512 << 10;

/// Runs `child` in a new process that uses this one's memory until it execs; this one waits for that, and no memory has to
/// be copied as `fork` would. Returns the new process. A child that doesn't exec exits.
///
/// # Errors
/// What `clone` answers.
pub(crate) fn start_process<Child: FnOnce()>(child: Child) -> io::Result<i32> {
    extern "C" fn run<Child: FnOnce()>(child: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `start_process` passes a `Child` that is taken only here: its own copy is never looked at again.
        let child = unsafe { child.cast::<std::mem::ManuallyDrop<Child>>().read() };
        std::mem::ManuallyDrop::into_inner(child)();
        exit(125)
    }
    let mut child = std::mem::ManuallyDrop::new(child);
    let mut stack: Vec<u128> = Vec::with_capacity(START_STACK / size_of::<u128>());
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is large, unused, aligned for any type, and outlives the child's use of it, as do the closure and
    // all that it borrows: CLONE_VFORK keeps this process, which is single-threaded, from going on before the child has
    // left this memory. The child never returns from `run`, and leaves by `_exit`.
    let process = unsafe {
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
        libc::clone(run::<Child>, top.cast(), flags, (&raw mut child).cast())
    };
    check(i64::from(process)).map(|process| process as i32)
}

/// Replaces the program. Returns only the error.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both lists end with a null pointer and their strings are borrowed for the duration of the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Leaves at once, without running destructors or exit handlers of the copied process.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Sets mount attributes on a detached tree (`path` empty) or a path, with everything below it when `recursive`.
///
/// # Errors
/// What `mount_setattr` answers.
pub(crate) fn set_mount_attributes(
    tree: BorrowedFd<'_>,
    path: &CStr,
    attributes: u64,
    recursive: bool,
) -> io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const AT_RECURSIVE: libc::c_int = 0x8000;
    let request = MountAttributes { set: attributes, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: path and request outlive the call and the size is the request's own.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const request,
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// Brings the loopback interface of this network namespace up.
///
/// # Errors
/// What `socket` or `ioctl` answers.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: `ifreq` is plain data for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request outlives the call.
    check(i64::from(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })).map(drop)
}

/// Puts `descriptors` at 0, 1, 2, …, inherited over exec, and `last` right behind them, closed on exec; closes all others.
/// Returns the number at which `last` now is.
///
/// # Errors
/// What `fcntl` or `dup3` answers.
pub(crate) fn arrange_descriptors(descriptors: &[BorrowedFd<'_>], last: BorrowedFd<'_>) -> io::Result<RawFd> {
    const ABOVE: RawFd = 64;
    let all: Vec<RawFd> = descriptors.iter().chain([&last]).map(|descriptor| descriptor.as_raw_fd()).collect();
    let mut copies = Vec::with_capacity(all.len());
    for descriptor in all {
        // SAFETY: duplicating a descriptor touches no memory.
        copies.push(check(i64::from(unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, ABOVE) }))? as RawFd);
    }
    for (place, copy) in copies.iter().enumerate() {
        let flags = if place == descriptors.len() { libc::O_CLOEXEC } else { 0 };
        // SAFETY: as above. What was at that place is closed; this process uses none of its old descriptors any more.
        check(i64::from(unsafe { libc::dup3(*copy, place as RawFd, flags) }))?;
    }
    close_from(descriptors.len() as u32 + 1)?;
    Ok(descriptors.len() as RawFd)
}

/// Closes every descriptor from `first` on.
///
/// # Errors
/// What `close_range` answers.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: only for processes that are about to exec, or that keep nothing above `first`.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) }).map(drop)
}

/// Borrows a descriptor by the number that [`arrange_descriptors`] gave it.
pub(crate) fn borrow(descriptor: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the caller put it there and leaves it open until it execs or exits.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

/// Every signal back to its default, none blocked.
pub(crate) fn reset_signals() {
    // SAFETY: default dispositions and an empty mask are always valid; errors (SIGKILL, SIGSTOP) change nothing.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Lets the kernel reap children by itself.
pub(crate) fn ignore_children() {
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Blocks SIGCHLD and SIGTERM and returns a descriptor that is readable when one of them arrives.
///
/// # Errors
/// What `signalfd` answers.
pub(crate) fn signal_descriptor() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before use; the new descriptor is ours alone.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        let descriptor = check(i64::from(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)))?;
        Ok(OwnedFd::from_raw_fd(descriptor as RawFd))
    }
}

/// The signals that have arrived on [`signal_descriptor`]: whether SIGTERM was among them.
pub(crate) fn terminate_was_asked(descriptor: BorrowedFd<'_>) -> bool {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    let mut buffer = [0u8; SIZE];
    let mut asked = false;
    while let Ok(SIZE) = rustix::io::read(descriptor, &mut buffer) {
        // `ssi_signo` is the first field.
        let number = u32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
        asked |= number == libc::SIGTERM as u32;
    }
    asked
}

/// Kills every process this one may signal: in a PID namespace, all but init.
pub(crate) fn kill_everything() {
    // SAFETY: sends a signal.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// What the children that were waited for have used: CPU time and the largest resident size of one of them, in bytes.
pub(crate) fn children_usage() -> (Duration, u64) {
    // SAFETY: `rusage` is plain data; the pointer is valid for the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |value: libc::timeval| Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000);
    (time(usage.ru_utime) + time(usage.ru_stime), usage.ru_maxrss as u64 * 1024)
}

/// The CPU time of a living process.
pub(crate) fn cpu_of(process: i32) -> Option<Duration> {
    // SAFETY: both calls write to what they are given, which outlives them.
    unsafe {
        let (mut clock, mut time): (libc::clockid_t, libc::timespec) = std::mem::zeroed();
        let known = libc::clock_getcpuclockid(process, &raw mut clock) == 0;
        (known && libc::clock_gettime(clock, &raw mut time) == 0)
            .then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// Drops every capability from the bounding set.
pub(crate) fn drop_bounding_set() {
    for capability in 0..64 {
        // SAFETY: takes numbers only; an unknown capability is an error without effect.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } < 0 {
            break;
        }
    }
}

/// Installs a seccomp filter on this thread. `no_new_privs` must be set.
///
/// # Errors
/// What `seccomp` answers.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let description = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which outlives the call, and does not write to it.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const description) })
        .map(drop)
}

/// Attaches a socket filter to a packet socket: TCP packets that open a connection, and UDP, as they arrive.
///
/// # Errors
/// What `setsockopt` answers.
pub(crate) fn attach_attempt_filter(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut program = super::net_filter::attempts();
    let description = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which outlives the call; the size is the description's own.
    check(i64::from(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const description).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    }))
    .map(drop)
}

/// Has a packet socket receive packets of all protocols on all interfaces.
///
/// # Errors
/// What `bind` answers.
pub(crate) fn bind_to_all_packets(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain data for which all zeros is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address outlives the call, and the size is its own.
    check(i64::from(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })).map(drop)
}

/// The clock ticks a second in which `/proc/PID/stat` counts.
pub(crate) fn clock_ticks() -> u64 {
    // SAFETY: reads a constant.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

/// Whether `descriptor` is a socket: what the spawner is started with.
pub(crate) fn is_socket(descriptor: impl AsFd) -> bool {
    rustix::fs::fstat(descriptor)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket)
}

/// Has the runtime watch a descriptor.
///
/// # Errors
/// As [`tokio::io::unix::AsyncFd`].
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<tokio::io::unix::AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open file until it is dropped, and only `AsyncFd` itself drops it.
    unsafe { tokio::io::unix::AsyncFd::register(descriptor) }.map_err(io::Error::from)
}

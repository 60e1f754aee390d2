//! Which system calls a tool may make: an allow-list. What isn't on it looks as if the kernel lacked it (`ENOSYS`, so that
//! libraries fall back); what is known to be dangerous is refused (`EPERM`, so that the message reads right).

use std::collections::BTreeMap;

use super::bpf::{Accept, Rule};

/// What a tool may do with sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Unix, internet and routing sockets: they end at its own network namespace.
    Namespaced,
    /// None: without a network namespace, a socket would reach the host.
    Refused,
}

macro_rules! calls {
    ($($name:ident)*) => { &[$(libc::$name),*] };
}

const FILES: &[i64] = calls! {
    SYS_read SYS_write SYS_close SYS_fstat SYS_lseek SYS_pread64 SYS_pwrite64 SYS_readv SYS_writev SYS_preadv SYS_pwritev
    SYS_preadv2 SYS_pwritev2 SYS_dup SYS_dup3 SYS_fcntl SYS_flock SYS_fsync SYS_fdatasync SYS_sync SYS_syncfs
    SYS_sync_file_range SYS_truncate SYS_ftruncate SYS_fallocate SYS_fadvise64 SYS_readahead SYS_sendfile SYS_splice SYS_tee
    SYS_copy_file_range SYS_getdents64 SYS_getcwd SYS_chdir SYS_fchdir SYS_fchmod SYS_fchown SYS_umask SYS_statfs SYS_fstatfs
    SYS_openat SYS_openat2 SYS_mkdirat SYS_mknodat SYS_fchownat SYS_newfstatat SYS_statx SYS_unlinkat SYS_renameat2
    SYS_linkat SYS_symlinkat SYS_readlinkat SYS_fchmodat SYS_fchmodat2 SYS_faccessat SYS_faccessat2 SYS_utimensat SYS_pipe2
    SYS_close_range SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr
    SYS_llistxattr SYS_flistxattr SYS_removexattr SYS_lremovexattr SYS_fremovexattr SYS_inotify_init1 SYS_inotify_add_watch
    SYS_inotify_rm_watch SYS_io_setup SYS_io_destroy SYS_io_getevents SYS_io_submit SYS_io_cancel
};

const MEMORY: &[i64] = calls! {
    SYS_mmap SYS_mprotect SYS_munmap SYS_mremap SYS_msync SYS_mincore SYS_madvise SYS_brk SYS_mlock SYS_mlock2 SYS_munlock
    SYS_mlockall SYS_munlockall SYS_pkey_mprotect SYS_pkey_alloc SYS_pkey_free SYS_membarrier
};

const PROCESSES: &[i64] = calls! {
    SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigaction
    SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigpending SYS_rt_sigtimedwait SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo
    SYS_rt_sigsuspend SYS_sigaltstack SYS_signalfd4 SYS_pidfd_open SYS_pidfd_send_signal SYS_getpid SYS_getppid SYS_gettid
    SYS_getpgid SYS_setpgid SYS_getsid SYS_setsid SYS_set_tid_address SYS_set_robust_list SYS_get_robust_list SYS_futex
    SYS_futex_waitv SYS_rseq SYS_restart_syscall SYS_prctl SYS_seccomp SYS_landlock_create_ruleset SYS_landlock_add_rule
    SYS_landlock_restrict_self
};

const IDENTITY: &[i64] = calls! {
    SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getgroups SYS_getresuid SYS_getresgid SYS_setuid SYS_setgid SYS_setreuid
    SYS_setregid SYS_setresuid SYS_setresgid SYS_setgroups SYS_setfsuid SYS_setfsgid SYS_capget SYS_capset
};

const SCHEDULING: &[i64] = calls! {
    SYS_sched_yield SYS_sched_getparam SYS_sched_getscheduler SYS_sched_getattr SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_rr_get_interval SYS_sched_getaffinity SYS_sched_setaffinity SYS_getpriority
    SYS_setpriority SYS_ioprio_get SYS_ioprio_set SYS_getcpu SYS_getrusage SYS_times SYS_getrlimit SYS_setrlimit
};

const TIME: &[i64] = calls! {
    SYS_nanosleep SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_gettimeofday SYS_getitimer SYS_setitimer
    SYS_timer_create SYS_timer_settime SYS_timer_gettime SYS_timer_getoverrun SYS_timer_delete SYS_timerfd_create
    SYS_timerfd_settime SYS_timerfd_gettime
};

const WAITING: &[i64] = calls! {
    SYS_pselect6 SYS_ppoll SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2
};

const MESSAGES: &[i64] = calls! {
    SYS_connect SYS_accept SYS_accept4 SYS_bind SYS_listen SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_sendmmsg
    SYS_recvmmsg SYS_shutdown SYS_getsockname SYS_getpeername SYS_socketpair SYS_setsockopt SYS_getsockopt SYS_mq_open
    SYS_mq_unlink SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_notify SYS_mq_getsetattr SYS_semtimedop
};

const SYSTEM: &[i64] = calls! { SYS_uname SYS_sysinfo SYS_getrandom };

/// Calls that newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
const LEGACY: &[i64] = calls! {
    SYS_open SYS_creat SYS_stat SYS_lstat SYS_poll SYS_access SYS_pipe SYS_select SYS_dup2 SYS_pause SYS_alarm SYS_fork
    SYS_vfork SYS_getdents SYS_rename SYS_renameat SYS_mkdir SYS_rmdir SYS_link SYS_unlink SYS_symlink SYS_readlink SYS_chmod
    SYS_chown SYS_lchown SYS_getpgrp SYS_utime SYS_utimes SYS_futimesat SYS_mknod SYS_arch_prctl SYS_time SYS_epoll_create
    SYS_epoll_wait SYS_signalfd SYS_eventfd SYS_inotify_init
};
#[cfg(not(target_arch = "x86_64"))]
const LEGACY: &[i64] = calls! { SYS_renameat };

/// Other processes' memory, mounts and namespaces, kernel interfaces with a history, the machine itself, and memory that no
/// watchdog sees.
const DANGEROUS: &[i64] = calls! {
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_process_mrelease SYS_pidfd_getfd SYS_kcmp
    SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_unshare SYS_setns SYS_open_tree SYS_move_mount SYS_fsopen SYS_fsconfig
    SYS_fsmount SYS_fspick SYS_mount_setattr SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_io_uring_setup
    SYS_io_uring_enter SYS_io_uring_register SYS_keyctl SYS_add_key SYS_request_key SYS_init_module SYS_finit_module
    SYS_delete_module SYS_kexec_load SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_settimeofday
    SYS_clock_settime SYS_clock_adjtime SYS_adjtimex SYS_sethostname SYS_setdomainname SYS_syslog SYS_quotactl
    SYS_name_to_handle_at SYS_open_by_handle_at SYS_fanotify_init SYS_fanotify_mark SYS_vmsplice SYS_move_pages
    SYS_migrate_pages SYS_mbind SYS_set_mempolicy SYS_personality SYS_vhangup SYS_memfd_create SYS_shmget SYS_shmat SYS_shmctl
    SYS_msgget SYS_semget
};
#[cfg(target_arch = "x86_64")]
const DANGEROUS_LEGACY: &[i64] = calls! {
    SYS_iopl SYS_ioperm SYS_lookup_dcookie SYS_ustat SYS_sysfs SYS_modify_ldt SYS_kexec_file_load
};
#[cfg(not(target_arch = "x86_64"))]
const DANGEROUS_LEGACY: &[i64] = calls! { SYS_kexec_file_load };

const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;
/// Puts characters into a terminal's input; the console's variant of it.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;

/// The rule of every call that has one.
pub(super) fn rules(sockets: Sockets) -> BTreeMap<u32, Rule> {
    let allowed = [FILES, MEMORY, PROCESSES, IDENTITY, SCHEDULING, TIME, WAITING, MESSAGES, SYSTEM, LEGACY];
    let mut rules: BTreeMap<u32, Rule> = BTreeMap::new();
    for call in allowed.into_iter().flatten() {
        rules.insert(*call as u32, Rule::Allow);
    }
    for call in [DANGEROUS, DANGEROUS_LEGACY].into_iter().flatten() {
        rules.insert(*call as u32, Rule::Fail(libc::EPERM));
    }
    let mut check = |call: i64, argument: u8, accept: Vec<Accept>, otherwise: i32| {
        rules.insert(call as u32, Rule::Check { argument, accept, otherwise });
    };
    // `clone3` has no rule: its flags are in memory, where no filter can see them; glibc falls back to `clone`.
    check(libc::SYS_clone, 0, vec![Accept::NoneOf(NAMESPACE_FLAGS)], libc::EPERM);
    check(libc::SYS_ioctl, 1, vec![Accept::NeitherOf(TIOCSTI, TIOCLINUX)], libc::EPERM);
    // Init has the same user as the tool: only on itself.
    for call in [libc::SYS_prlimit64, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr] {
        check(call, 0, vec![Accept::Equal(0)], libc::EPERM);
    }
    let families = match sockets {
        // Not vsock, which no namespace confines, nor families with a history.
        Sockets::Namespaced => vec![
            Accept::Equal(libc::AF_UNIX as u32),
            Accept::Equal(libc::AF_INET as u32),
            Accept::Equal(libc::AF_INET6 as u32),
            Accept::EqualWith(libc::AF_NETLINK as u32, 2, libc::NETLINK_ROUTE as u32),
        ],
        Sockets::Refused => Vec::new(),
    };
    let errno = if sockets == Sockets::Refused { libc::EPERM } else { libc::EAFNOSUPPORT };
    check(libc::SYS_socket, 0, families, errno);
    rules
}

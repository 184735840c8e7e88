//! A filter of system calls for bubblewrap.
//!
//! Refuses what a server of tools does not need and what has led out of sandboxes before: mounts and
//! namespaces, io_uring, keys of the kernel, other processes' memory, modules, clocks, and sockets other than
//! local, IP and netlink ones. Everything else is allowed: a list of what may be called would break with
//! every new runtime. The program is classic BPF, a dozen kinds of instructions that are written out here.

use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;

/// Loads a word of the description of the call.
const LOAD: u16 = 0x20;
/// Jumps if the loaded word equals the operand.
const JUMP_EQUAL: u16 = 0x15;
/// Jumps if the loaded word is at least the operand.
const JUMP_AT_LEAST: u16 = 0x35;
/// Ends the program with a verdict.
const RETURN: u16 = 0x06;

/// Offsets of the words: number of the call, architecture, and the low half of an argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;

const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
const EAFNOSUPPORT: u32 = 97;

/// Families of sockets that can be made: unix, inet, inet6, netlink.
const FAMILIES: &[u32] = &[1, 2, 10, 16];
/// Requests that write into the input of a terminal (`TIOCSTI`, `TIOCLINUX`).
const TERMINAL_INPUT: &[u32] = &[0x5412, 0x541c];

/// The numbers of the calls on one architecture.
struct Calls {
    architecture: u32,
    /// Refused with EPERM.
    refused: &'static [u32],
    socket: u32,
    ioctl: u32,
    /// Numbers from here on are of another table (x32), which would be a way round.
    end: Option<u32>,
}

/// The calls that have the same number everywhere: `io_uring_*` look as if the kernel had none, because
/// runtimes then do without.
const MISSING: &[u32] = &[425, 426, 427];
/// `open_tree`, `move_mount`, `fsopen`, `fsconfig`, `fsmount`, `fspick`, `pidfd_getfd`, `mount_setattr`,
/// `quotactl_fd`, `open_tree_attr`.
const REFUSED: &[u32] = &[428, 429, 430, 431, 432, 433, 438, 442, 443, 467];

#[cfg(target_arch = "x86_64")]
const CALLS: Option<Calls> = Some(Calls {
    architecture: 0xc000_003e,
    refused: &[
        101, // ptrace
        103, // syslog
        134, // uselib
        155, // pivot_root
        159, // adjtimex
        161, // chroot
        163, // acct
        164, // settimeofday
        165, // mount
        166, // umount2
        167, // swapon
        168, // swapoff
        169, // reboot
        170, // sethostname
        171, // setdomainname
        172, // iopl
        173, // ioperm
        175, // init_module
        176, // delete_module
        179, // quotactl
        227, // clock_settime
        246, // kexec_load
        248, // add_key
        249, // request_key
        250, // keyctl
        272, // unshare
        298, // perf_event_open
        303, // name_to_handle_at
        304, // open_by_handle_at
        305, // clock_adjtime
        308, // setns
        310, // process_vm_readv
        311, // process_vm_writev
        312, // kcmp
        313, // finit_module
        320, // kexec_file_load
        321, // bpf
        323, // userfaultfd
    ],
    socket: 41,
    ioctl: 16,
    end: Some(0x4000_0000),
});

#[cfg(target_arch = "aarch64")]
const CALLS: Option<Calls> = Some(Calls {
    architecture: 0xc000_00b7,
    refused: &[
        39,  // umount2
        40,  // mount
        41,  // pivot_root
        51,  // chroot
        60,  // quotactl
        89,  // acct
        97,  // unshare
        104, // kexec_load
        105, // init_module
        106, // delete_module
        112, // clock_settime
        116, // syslog
        117, // ptrace
        142, // reboot
        161, // sethostname
        162, // setdomainname
        170, // settimeofday
        171, // adjtimex
        217, // add_key
        218, // request_key
        219, // keyctl
        224, // swapon
        225, // swapoff
        241, // perf_event_open
        264, // name_to_handle_at
        265, // open_by_handle_at
        266, // clock_adjtime
        268, // setns
        270, // process_vm_readv
        271, // process_vm_writev
        272, // kcmp
        273, // finit_module
        280, // bpf
        282, // userfaultfd
        294, // kexec_file_load
    ],
    socket: 198,
    ioctl: 29,
    end: None,
});

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALLS: Option<Calls> = None;

/// The path of a file in memory with the filter, readable by the processes of this user while this process
/// runs. `None` on an architecture whose calls are not listed, or if there can be no such file.
pub(super) fn filter_file() -> Option<String> {
    static FILE: OnceLock<Option<std::fs::File>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let memory = rustix::fs::memfd_create("karat-seccomp", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(memory.ok()?);
        file.write_all(&program(&CALLS?)).ok()?;
        Some(file)
    });
    let number = file.as_ref()?.as_raw_fd();
    Some(format!("/proc/{}/fd/{number}", std::process::id()))
}

fn program(calls: &Calls) -> Vec<u8> {
    let mut code = Code::default();
    code.add(LOAD, 0, 0, ARCHITECTURE);
    code.add(JUMP_EQUAL, 1, 0, calls.architecture);
    code.fail(ENOSYS);
    code.add(LOAD, 0, 0, NUMBER);
    if let Some(end) = calls.end {
        code.add(JUMP_AT_LEAST, 0, 1, end);
        code.fail(ENOSYS);
    }
    for number in MISSING {
        code.add(JUMP_EQUAL, 0, 1, *number);
        code.fail(ENOSYS);
    }
    for number in REFUSED.iter().chain(calls.refused) {
        code.add(JUMP_EQUAL, 0, 1, *number);
        code.fail(EPERM);
    }
    // The argument replaces the number, so each of these two ends the program in its own block.
    code.add(JUMP_EQUAL, 0, jump(2 * FAMILIES.len() + 2), calls.socket);
    code.add(LOAD, 0, 0, FIRST_ARGUMENT);
    for family in FAMILIES {
        code.add(JUMP_EQUAL, 0, 1, *family);
        code.add(RETURN, 0, 0, ALLOW);
    }
    code.fail(EAFNOSUPPORT);
    code.add(JUMP_EQUAL, 0, jump(2 * TERMINAL_INPUT.len() + 1), calls.ioctl);
    code.add(LOAD, 0, 0, SECOND_ARGUMENT);
    for request in TERMINAL_INPUT {
        code.add(JUMP_EQUAL, 0, 1, *request);
        code.fail(EPERM);
    }
    code.add(RETURN, 0, 0, ALLOW);
    code.0
}

fn jump(instructions: usize) -> u8 {
    u8::try_from(instructions).unwrap_or(u8::MAX)
}

/// A program for the kernel: code, two jumps and an operand for each instruction.
#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn add(&mut self, code: u16, if_true: u8, if_false: u8, operand: u32) {
        self.0.extend(code.to_ne_bytes());
        self.0.extend([if_true, if_false]);
        self.0.extend(operand.to_ne_bytes());
    }

    fn fail(&mut self, error: u32) {
        self.add(RETURN, 0, 0, FAIL | error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does.
    fn verdict(program: &[u8], call: [u32; 4]) -> u32 {
        let [number, architecture, first, second] = call;
        let mut loaded = 0;
        let mut at = 0;
        loop {
            let word = &program[8 * at..8 * at + 8];
            let code = u16::from_ne_bytes([word[0], word[1]]);
            let operand = u32::from_ne_bytes([word[4], word[5], word[6], word[7]]);
            at += 1;
            let taken = match code {
                RETURN => return operand,
                LOAD => {
                    loaded = match operand {
                        NUMBER => number,
                        ARCHITECTURE => architecture,
                        FIRST_ARGUMENT => first,
                        _ => second,
                    };
                    continue;
                }
                JUMP_EQUAL => loaded == operand,
                _ => loaded >= operand,
            };
            at += usize::from(if taken { word[2] } else { word[3] });
        }
    }

    #[test]
    fn what_leads_out_is_refused_and_the_rest_allowed() {
        let calls = Calls {
            architecture: 7,
            refused: &[165, 250],
            socket: 41,
            ioctl: 16,
            end: Some(0x4000_0000),
        };
        let program = program(&calls);
        for (call, expected) in [
            ([0, 7, 0, 0], ALLOW),
            ([165, 7, 0, 0], FAIL | EPERM),
            ([250, 7, 0, 0], FAIL | EPERM),
            ([425, 7, 0, 0], FAIL | ENOSYS),
            ([428, 7, 0, 0], FAIL | EPERM),
            ([0, 8, 0, 0], FAIL | ENOSYS),
            ([0x4000_0001, 7, 0, 0], FAIL | ENOSYS),
            ([41, 7, 1, 0], ALLOW),
            ([41, 7, 16, 0], ALLOW),
            ([41, 7, 40, 0], FAIL | EAFNOSUPPORT),
            ([16, 7, 0, 0x5412], FAIL | EPERM),
            ([16, 7, 0, 0x541c], FAIL | EPERM),
            ([16, 7, 0, 0x5401], ALLOW),
        ] {
            assert_eq!(verdict(&program, call), expected, "{call:?}");
        }
    }
}

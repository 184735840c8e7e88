//! The parts that depend on the operating system: processes with their groups and descendants, signals, links,
//! permissions, what is known about a socket or the processor time of this process.
//!
//! There are two implementations with the same functions: `unix`, with what only Linux has in `linux`, and
//! `portable`, on std and tokio alone, for Windows. `RUSTFLAGS="--cfg karat_portable"` selects the latter on
//! any system, so that `./test portable` compiles and tests it on Linux too. What a system lacks is an error
//! that says so, or `None` where a measurement does without. `scripts/platform` fails when another module uses
//! what only some systems have.

#[cfg(all(target_os = "linux", not(karat_portable)))]
mod linux;
#[cfg(any(not(unix), karat_portable))]
mod portable;
#[cfg(any(not(target_os = "linux"), karat_portable))]
mod process_list;
#[cfg(all(unix, not(karat_portable)))]
mod unix;

#[cfg(any(not(unix), karat_portable))]
use portable as system;
#[cfg(all(unix, not(karat_portable)))]
use unix as system;

pub use system::{
    adopt_orphans, cpu_time, is_executable, keep_descriptors, link, make_readable, nothing_to_read,
    own_group, user,
};
pub(crate) use system::{
    as_watcher, create_private_folder, do_not_follow, is_of_the_system, is_private, is_watcher,
    kill_marked, kill_orphans, kill_tree, permissions_of_new_files, program, spare, stop_signal,
    terminate_group,
};

/// The name of this system with its limits, for a message about what it cannot do.
pub fn name() -> String {
    let system = std::env::consts::OS;
    if cfg!(karat_portable) { format!("{system}, in a portable build") } else { system.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_our_own_can_be_made_readable() {
        let folder = tempfile::tempdir().unwrap();
        make_readable(folder.path()).unwrap();
        assert!(std::fs::read_dir(folder.path()).is_ok());
    }

    #[test]
    fn a_link_is_made_or_the_system_says_that_it_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let (file, place) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "text").unwrap();
        match link(&file, &place) {
            Ok(()) => assert_eq!(std::fs::read_to_string(place).unwrap(), "text"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::Unsupported),
        }
    }

    #[tokio::test]
    async fn a_connection_with_something_to_read_is_not_quiet() {
        use tokio::io::AsyncWriteExt as _;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stream, accepted) =
            tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
        let (stream, mut other) = (stream.unwrap(), accepted.unwrap().0);
        assert!(nothing_to_read(&stream));
        other.write_all(b"x").await.unwrap();
        stream.readable().await.unwrap();
        assert!(!nothing_to_read(&stream));
    }
}

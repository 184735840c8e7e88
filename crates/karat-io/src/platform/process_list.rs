//! The processes of the machine as its own program lists them, where the kernel has no files about them.

use std::process::{Command, Stdio};

/// The descendants of a process, parents first. None if the list cannot be had.
pub(super) fn below(id: i32) -> Vec<i32> {
    // POSIX; Windows ends a tree by a program of its own.
    let mut command = Command::new("ps");
    command.args(["-A", "-o", "pid=,ppid="]).stdin(Stdio::null()).stderr(Stdio::null());
    let listed = command.output().map(|output| output.stdout).unwrap_or_default();
    descendants(id, &String::from_utf8_lossy(&listed))
}

fn descendants(id: i32, list: &str) -> Vec<i32> {
    let numbers = list.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().map(str::parse::<i32>);
        Some((words.next()?.ok()?, words.next()?.ok()?))
    });
    let processes: Vec<(i32, i32)> = numbers.collect();
    let mut found = vec![id];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        for (child, of) in &processes {
            // A list that was taken while processes came and went may hold a circle.
            if *of == parent && !found.contains(child) {
                found.push(*child);
            }
        }
        next += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_parents_first_and_circles_end() {
        let list = "    1     0\n   10     1\n   12    11\n   11    10\n   20     1\nPID PPID\n 30 31\n 31 30\n";
        assert_eq!(descendants(10, list), [11, 12]);
        assert_eq!(descendants(30, list), [31]);
        assert_eq!(descendants(20, list), Vec::<i32>::new());
    }

    #[test]
    fn a_child_of_this_process_is_listed() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let found = below(i32::try_from(std::process::id()).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&i32::try_from(child.id()).unwrap()), "{found:?}");
    }
}

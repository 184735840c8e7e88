//! What is written alike in every language: paths, commands, mark-up.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::SECRET_PATH, &[
        ".ssh/*", "id_rsa*", "id_ed25519*", "id_ecdsa*", ".aws/*", ".kube/config*", ".netrc*",
        ".pgpass*", ".npmrc*", ".pypirc*", ".git-credentials*", ".gnupg*", ".docker/config*",
        "/etc/passwd*", "/etc/shadow*", "/etc/kubernetes/*", ".env", ".env file*", ".env.*",
        "wallet.dat*", "login.keychain*", "known_hosts*", ".config/gcloud*", ".azure/*",
        "secrets.yaml*", "secrets.json*", "credentials.json*", ".bash_history*", ".zsh_history*",
        "mcp.json*", "claude_desktop_config*", "cookies.sqlite*", "/proc/self/environ*",
        "terraform.tfstate*", ".p12", ".pfx", ".kdbx",
    ]),
    (Mask::EXECUTE, &[
        "| sh*", "|sh", "| bash*", "|bash*", "| zsh*", "| python*", "| iex*", "|iex*", "base64 -d*",
        "powershell -e*", "invoke-expression", "eval(*", "exec(*", "os.system*", "subprocess*",
        "child_process*", "python -c*", "bash -c*", "sh -c*", "rm -rf*", "nc -e*", "/dev/tcp*",
        "chmod +x*", "curl -s*", "curl -f*", "wget -q*", "wget -o*", "mshta*",
    ]),
    (Mask::PERSIST, &[
        "authorized_keys*", ".bashrc*", ".zshrc*", ".profile*", ".bash_profile*", "crontab*", "cron.d*",
        "systemd unit*", "launchagent*", "launchd*", "post-commit*", "pre-commit hook*", "git hooks*",
        "startup folder*", "sitecustomize*", "autostart*", "~/.config/autostart*",
    ]),
    (Mask::SYSTEM_TAG, &[
        "new system message*", "system: override*", "[assistant instructions*", "hidden directive*",
        "assistant instructions:*", "<important>*", "<system>*", "</system>*", "<secret>*", "<hidden>*",
        "<instructions>*", "<admin>*", "[system]*", "[inst]*", "<<sys>>*", "<|im_start|>*",
        "<|system|>*", "### system*", "system override*", "begin system*", "<assistant>*", "<|user|>*",
    ]),
    (Mask::EXTERNAL, &[
        "ngrok*", "webhook.site*", "pastebin*", "requestbin*", "transfer.sh*",
    ]),
    (Mask::TOOL_WORD, &[
        "tool",
    ]),
];
